"""The encoder of trees: sentences to candidate arcs with features, trees to outputs and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels
from maxmargin.encoders.base import Batch, Encoder, State
from maxmargin.encoders.data.names import ColumnNames, FeatureNamer, Namer
from maxmargin.features.hashed import HashedTrees
from maxmargin.structures._arrays import Ragged, offsets_of
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.dependencies.projective import ProjectiveTrees
from maxmargin.structures.sparse import SparsePoint
from maxmargin.tasks.parsing.defaults import BITS
from maxmargin.tasks.parsing.encoder.names import part_namers, tree_features
from maxmargin.tasks.parsing.encoder.templates import tree_templates
from maxmargin.tasks.parsing.encoder.tokens import Nodes, TokenNumbers
from maxmargin.tasks.parsing.io.treebank import Treebank

MARGIN, MOST_HEADS = 2.6, 16
"""Candidate heads of trees of second order score at most so much less than the best, and are at most so many."""


@dataclass(frozen=True, eq=False)
class HeadEncoder(Encoder):
    """Encodes the trees of sentences, without relations.

    Of first order every arc is a candidate. Of second order the candidates are those that a model of first order ranks
    among the best heads of a token, and the arcs of its best tree; siblings and grandparents are those of candidates.

    Attributes:
        numbers: numbers of the attributes of tokens; None before it is fitted.
        order: 1 or 2.
        bits: there are ``2^bits`` weights.
        single_root: whether exactly one token is below the root.
        first: weights of first order that choose the candidates; None for order 1.
    """

    numbers: TokenNumbers | None = None
    order: int = 1
    bits: int = BITS
    single_root: bool = True
    first: FloatArray | None = None

    kind = "dependency trees"

    def __post_init__(self) -> None:
        _checks.integer("order", self.order, least=1, most=2)
        _checks.integer("bits", self.bits, least=3, most=30)
        _checks.flag("single_root", self.single_root)

    def parse(self, X: Any) -> Treebank:
        """Return the sentences as a treebank."""
        return X if isinstance(X, Treebank) else Treebank.of(X)

    def transform(self, X: Any) -> Batch:
        """See :meth:`Encoder.transform`."""
        return self.batch(self.parse(X))

    def learn(self, parsed: Treebank, y: Sequence[Any]) -> Self:
        """See :meth:`Encoder.learn`."""
        return replace(self, numbers=TokenNumbers.learn(parsed.table))

    def nodes(self, bank: Treebank) -> Nodes:
        """Return the nodes of sentences."""
        assert self.numbers is not None
        return self.numbers.nodes(bank.table)

    def batch(self, parsed: Treebank) -> Batch:
        """See :meth:`Encoder.batch`."""
        return self.batch_of(self.nodes(parsed))

    def batch_of(self, nodes: Nodes, gold: IntArray | None = None) -> Batch:
        """Pack nodes of sentences; ``gold`` heads of all tokens are candidates, too."""
        trees = ProjectiveTrees.dense(nodes.lengths, single_root=self.single_root)
        batch = self._with_features(trees, nodes, 1)
        if self.order == 1:
            return batch
        assert self.first is not None
        scores = batch.features.scores(self.first)
        arcs = np.flatnonzero(_candidates(trees, scores, gold))
        offsets = np.searchsorted(arcs, trees.blocks[0].offsets)
        example = np.repeat(np.arange(trees.n_examples), np.diff(offsets))
        place, n = arcs - trees.blocks[0].offsets[example], trees.n_tokens[example]
        modifiers, heads = place // n + 1, place % n
        heads += heads >= modifiers
        second = ProjectiveTrees(
            nodes.lengths,
            np.stack([heads, modifiers], axis=1),
            offsets,
            single_root=self.single_root,
            siblings=True,
            grandparents=True,
        )
        return self._with_features(second, nodes, 2)

    def _with_features(self, trees: ProjectiveTrees, nodes: Nodes, order: int) -> Batch:
        features = HashedTrees(trees, nodes.numbers, nodes.tags, nodes.kinds, tree_templates(order), self.bits)
        return Batch(trees, features)

    def encode(self, batch: Batch, y: Sequence[Any]) -> SparsePoint:
        """Heads of the tokens of each sentence as vertices; ValueError naming the sentence if one is not legal."""
        assert isinstance(batch.structure, ProjectiveTrees)
        return batch.structure.encode(y)

    def name_parts(self, batch: Batch, x: Any) -> list[Namer]:
        """Return functions that name the arcs and triples of one sentence; ``x`` is its words."""
        return part_namers(batch.structure, x)

    def name_features(self, batch: Batch, x: Any, columns: ColumnNames) -> FeatureNamer:
        """Return a function that names features by their templates."""
        assert isinstance(batch.features, HashedTrees)
        assert self.numbers is not None
        return tree_features(batch.features, self.numbers)

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Right heads, and tokens."""
        return float((np.asarray(gold) == np.asarray(predicted)).sum()), float(len(predicted))

    @property
    def n_weights(self) -> int:
        """``2^bits``."""
        return 1 << self.bits

    def state(self) -> State:
        """See :meth:`Encoder.state`."""
        assert self.numbers is not None
        first = {} if self.first is None else {"first": self.first}
        plain = {"order": self.order, "bits": self.bits, "single_root": self.single_root}
        return {**plain, **self.numbers.arrays(), **first}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        found = cls(TokenNumbers.from_arrays(state), state["order"], state["bits"], state["single_root"])
        return found if found.order == 1 else replace(found, first=checked_weights(state["first"], found.n_weights))


def checked_weights(given: Any, n: int) -> FloatArray:
    """Return weights of a file; ValueError unless they are ``n`` finite numbers."""
    if not isinstance(given, np.ndarray) or given.dtype != np.float64 or given.shape != (n,):
        raise ValueError(f"its weights of first order are not {n} numbers")
    if not np.isfinite(given).all():
        raise ValueError("its weights of first order are not finite")
    return given


def _candidates(trees: ProjectiveTrees, scores: FloatArray, gold: IntArray | None) -> npt.NDArray[np.bool_]:
    """Which of all arcs are candidates."""
    rows = np.repeat(trees.n_tokens, trees.n_tokens)  # arcs to each token
    begin = offsets_of(rows)[:-1]
    row = np.repeat(np.arange(len(rows)), rows)
    keep = scores >= (np.maximum.reduceat(scores, begin) - MARGIN)[row]
    crowded = np.add.reduceat(keep.astype(np.int64), begin)[row] > MOST_HEADS
    some = np.flatnonzero(keep & crowded)
    order = some[np.lexsort((-scores[some], row[some]))]
    first = np.concatenate([[True], np.diff(row[order]) > 0]) if len(order) else np.zeros(0, dtype=np.bool_)
    rank = np.arange(len(order)) - np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    keep[order[rank >= MOST_HEADS]] = False
    keep |= trees.argmax(scores).z > 0.5
    if gold is not None:
        modifiers = np.arange(len(rows)) - np.repeat(trees.token_offsets[:-1], trees.n_tokens) + 1
        keep[begin + gold - (gold > modifiers)] = True
    return keep


def lifted(heads: IntArray, lengths: IntArray) -> tuple[IntArray, int]:
    """Return heads of projective trees, and how many sentences have changed.

    The shortest arc that crosses another is moved to the head of its head, until none crosses (Nivre and Nilsson 2005).
    ValueError naming the sentence if heads are not a tree.
    """
    i, fault, token = _kernels.dependency_fault(offsets_of(lengths), np.ascontiguousarray(heads), False, False)
    if fault:
        raise ValueError(f"example {i}: from token {token} the heads lead around in a circle, not to the root, 0")
    found, changed = heads.copy(), 0
    for own in Ragged(found, offsets_of(lengths)):
        before = own.copy()
        while (crossing := _shortest_crossing(own)) is not None:
            own[crossing - 1] = own[own[crossing - 1] - 1]
        changed += not np.array_equal(before, own)
    return found, changed


def _shortest_crossing(heads: IntArray) -> int | None:
    """The token of the shortest arc over a token that is not below its head; None if the tree is projective."""
    modifiers = np.arange(1, len(heads) + 1)
    low, high = np.minimum(heads, modifiers), np.maximum(heads, modifiers)
    inside = (low[:, None] < low) & (low < high[:, None]) & (high > high[:, None])
    inside |= (low[:, None] < high) & (high < high[:, None]) & (low < low[:, None])
    crossed = np.flatnonzero(inside.any(axis=1) & (heads > 0))
    inner = crossed[heads[heads[crossed] - 1] > 0]  # one root stays one
    crossed = inner if len(inner) else crossed
    return int(crossed[np.argmin((high - low)[crossed])]) + 1 if len(crossed) else None

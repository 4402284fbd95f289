"""A trained parser: trees by their best score, then the best relation of each arc."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _threads
from maxmargin._callers import callers_level
from maxmargin._messages import shown
from maxmargin.explanation.compute import explain_batch
from maxmargin.explanation.result import Explanation
from maxmargin.models.base import Metric, Model
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.tasks.common.tokens.table import WORD, Codes
from maxmargin.tasks.parsing.encoder.parsing import ParsingEncoder
from maxmargin.tasks.parsing.encoder.relations import RelationOf
from maxmargin.tasks.parsing.encoder.tokens import Nodes
from maxmargin.tasks.parsing.io.checks import check_trees, missing_tags
from maxmargin.tasks.parsing.io.treebank import Tree, Treebank
from maxmargin.tasks.parsing.metrics.attachment import AttachmentScores, compare, warn_unlabeled

BLOCK = 1000
"""Sentences that are parsed at a time."""


@dataclass(frozen=True, eq=False)
class ParserModel(Model):
    """Predicts heads and relations; see :class:`maxmargin.Model`."""

    encoder: ParsingEncoder

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of CoNLL-U that predictions use, with ``word`` for forms: those that were filled in training."""
        numbers = self.encoder.trees.numbers
        return () if numbers is None else numbers.columns

    @cached_property
    def _stages(self) -> tuple[Model, Model]:
        """The models of trees and of relations."""
        n = self.encoder.trees.n_weights
        stages = (self.encoder.trees, self.weights[:n]), (self.encoder.relations, self.weights[n:])
        trees, relations = (Model(weights, encoder) for encoder, weights in stages)
        return trees, relations

    def parse(self, bank: Treebank) -> tuple[IntArray, tuple[Codes, list[str]]]:
        """Return heads of all tokens, counted from 1 in their sentence, and their relations as codes and names."""
        encoder = self.encoder
        numbers = encoder.trees.numbers
        if numbers is not None and not numbers.without_tags and (missing := missing_tags(bank)):
            warnings.warn(
                f"{missing}, unlike in training; trees will be worse, so tag the sentences first (maxmargin tag)",
                UserWarning,
                stacklevel=callers_level(),
            )
        heads = np.zeros(bank.n_tokens, dtype=np.int64)
        codes = np.zeros(bank.n_tokens, dtype=np.int32)
        with _threads.threads(self.n_jobs):
            nodes = encoder.trees.nodes(bank)
            tokens = bank.table.sentences
            for first in range(0, bank.n_sentences, BLOCK):
                some = np.arange(first, min(first + BLOCK, bank.n_sentences))
                own = slice(tokens[some[0]], tokens[some[-1] + 1])
                heads[own], codes[own] = self._parsed(nodes.select(some))
        return heads, (codes, list(encoder.classes))

    def _parsed(self, nodes: Nodes) -> tuple[IntArray, Codes]:
        trees, relations = self._stages
        heads = np.concatenate(trees.outputs(self.encoder.trees.batch_of(nodes)))
        batch = self.encoder.relations.batch((nodes, heads))
        return heads, np.array(relations.outputs(batch), dtype=np.int32)

    def predict(self, X: Any) -> list[Tree]:
        """Return the tree of each sentence: heads, counted from 1 with 0 for the root, and relations."""
        bank = self.encoder.parse(X)
        heads, (codes, names) = self.parse(bank)
        return [
            (heads[first:last], [names[code] for code in codes[first:last].tolist()])
            for first, last in pairwise(bank.table.sentences.tolist())
        ]

    def evaluate(self, X: Any, y: Sequence[Tree] | None = None) -> AttachmentScores:
        """Return the attachment scores of predicted trees; without ``y`` gold trees are those of ``X``."""
        bank = with_trees(self.encoder.parse(X), y)
        check_trees(bank)
        heads, relations = self.parse(bank)
        warn_unlabeled(bank.relations, relations)
        return compare(bank, heads, relations)

    def score(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the share of tokens with the right head and relation, subtypes of relations aside (LAS)."""
        if sample_weight is not None:
            raise ValueError("attachment scores count all tokens alike; leave sample_weight out")
        return self.evaluate(X, y).las

    def scorer(
        self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None, metric: Metric | None = None
    ) -> Callable[[Model], float]:
        """See :meth:`Model.scorer`."""
        bank = with_trees(self.encoder.parse(X), y)

        def score(model: Model) -> float:
            assert isinstance(model, ParserModel)
            if metric is not None:
                return float(metric(bank.trees(), model.predict(bank)))
            return model.score(bank)

        check_trees(bank)
        return score

    def explain(  # type: ignore[override]
        self, x: Any, *, against: Any = None, at: int | None = None, relation: bool = False
    ) -> Explanation:
        """Explain the tree of one sentence, or with ``relation`` the relation of one token in its tree.

        Args:
            x: a sentence.
            against: the other tree, a pair (heads, relations) of which heads alone count, or heads; or with
                ``relation`` the other relation. None for the runner-up.
            at: the number of a token, from 0: the best tree in which it has another head; or the token whose relation
                is explained.
            relation: whether to explain the relation of the token ``at``.
        """
        bank = x if isinstance(x, Treebank) else self.encoder.parse([x])
        if bank.n_sentences != 1:
            raise ValueError(f"explain takes one sentence, got {bank.n_sentences}")
        trees, relations = self._stages
        with _threads.threads(self.n_jobs):
            nodes = self.encoder.trees.nodes(bank)
            batch, words = self.encoder.trees.batch_of(nodes), bank.table.cells(bank.table.columns.index(WORD))
            if not _checks.flag("relation", relation):
                given = against[0] if _is_tree(against) else against
                return explain_batch(trees.encoder, batch, trees.weights, words, against=given, at=at)
            at = _checks.integer("at", at, least=0, most=len(words) - 1, hint="the token whose relation is explained")
            heads = trees.outputs(batch)[0]
            names = self.encoder.classes
            if against is not None and not (isinstance(against, str) and against in names):
                raise ValueError(f"against must be a relation ({', '.join(names)}), got {shown(against)}")
            one = self.encoder.relations.batch((nodes, heads)).select(np.array([at]))
            about = RelationOf(nodes, heads, at, words, self.encoder.trees.numbers)
            number = None if against is None else names.index(against)
            found = explain_batch(relations.encoder, one, relations.weights, about, against=number)
            rival = None if found.rival is None else names[found.rival]
            return replace(found, output=names[found.output], rival=rival)

    def k_best(self, X: Any, k: int) -> list[list[tuple[Any, float]]]:
        """Return the ``k`` best trees of each sentence, each with its best relations, and the scores of the trees."""
        bank, found = self.encoder.parse(X), []
        with _threads.threads(self.n_jobs):
            nodes = self.encoder.trees.nodes(bank)
            trees, relations = self._stages
            names = self.encoder.classes
            for i, ranks in enumerate(trees.k_best(cast(Any, bank), k)):
                own = nodes.select(np.array([i]))
                some = []
                for heads, score in ranks:
                    codes = relations.outputs(self.encoder.relations.batch((own, heads)))
                    some.append(((heads, [names[code] for code in codes]), score))
                found.append(some)
        return found


def with_trees(bank: Treebank, y: Iterable[Tree] | None) -> Treebank:
    """Return the treebank with other trees; as it is if they are None."""
    if y is None:
        return bank
    trees = _checks.listed("y", y, "a list of trees, pairs (heads, relations)", sized=False)
    if len(trees) != bank.n_sentences:
        raise ValueError(f"X has {bank.n_sentences} sentences and y {len(trees)} trees; give each sentence one")
    for i, tree in enumerate(trees):
        if not _is_tree(tree):
            raise ValueError(
                f"example {i}: a tree must be a pair (heads, relations), relations strings, got {shown(tree)}"
            )
    found = Treebank(bank.table, bank.data)
    heads = [_unknown_as_missing(heads) for heads, _ in trees]
    for i, (own, (_, relations), n) in enumerate(zip(heads, trees, bank.lengths.tolist(), strict=True)):
        if own.shape != (n,) or own.dtype.kind not in "iu" or len(relations) != n:
            raise ValueError(f"example {i}: a tree must have a head and a relation for each of the {n} tokens")
    names: dict[str, int] = {}
    codes = [names.setdefault("_" if one is None else one, len(names)) for _, relations in trees for one in relations]
    flat = np.concatenate([np.zeros(0, dtype=np.int64), *heads]).astype(np.int64)
    bounds = np.repeat(bank.lengths, bank.lengths)
    wrong = np.flatnonzero((flat < -1) | (flat > bounds) | (flat == bank.places))
    if wrong.size:
        i = int(np.searchsorted(offsets_of(bank.lengths), wrong[0], side="right")) - 1
        raise ValueError(f"example {i}: the head {int(flat[wrong[0]])} is not another token, or 0 for the root")
    vars(found)["known_heads"], vars(found)["relations"] = flat, (np.array(codes, dtype=np.int32), list(names))
    return found


def _is_tree(tree: Any) -> bool:
    """Whether it is a pair whose second part is a list of strings, perhaps None where they are unknown."""
    if not isinstance(tree, (tuple, list)) or len(tree) != 2:
        return False
    heads, relations = tree
    lists = all(hasattr(one, "__len__") and hasattr(one, "__iter__") and not isinstance(one, str) for one in tree)
    return (
        lists
        and all(not isinstance(head, (list, tuple)) and getattr(head, "ndim", 0) == 0 for head in heads)
        and all(one is None or isinstance(one, str) for one in relations)
    )


def _unknown_as_missing(heads: Any) -> npt.NDArray[Any]:
    """Heads as an array, with -1 for None."""
    found = np.asarray(heads)
    if found.dtype == object and found.ndim == 1:
        found = np.asarray([-1 if head is None else head for head in found.tolist()])
    return found

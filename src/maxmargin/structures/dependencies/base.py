"""Dependency trees: every token of a sentence has a head, another token or the root, and the heads form a tree.

A sentence has the tokens ``1 .. n``; 0 is the root. An arc ``(head, modifier)`` may have one of ``K`` labels.
The parts of block ``"arcs"`` are the candidate arcs with each of the labels: ``z = 1`` says that the tree has the arc,
with that label. They are ordered by modifier, then by head, then by label; a modifier is a variable, whose states are
its candidate heads with labels, so Hamming loss counts the tokens whose head or label is wrong.

Candidates are either all arcs (:meth:`DependencyTrees.dense`), whose places are computed, or those of a list. An arc
that is not listed is forbidden, and where a modifier has one candidate it is forced.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels
from maxmargin._vectors import rises
from maxmargin.structures._arrays import (
    Ragged,
    array_of,
    counts_of,
    example_numbers,
    integers,
    offsets_of,
    one_per_example,
    pairs_of,
    ranges,
    vector,
)
from maxmargin.structures.base import Block, FloatArray, IntArray, Structure
from maxmargin.structures.sparse import SparsePoint

MOST_TOKENS = 1 << 15
"""Of one sentence: all its arcs are then fewer than 2^31."""


class DependencyTrees(Structure):
    """A packed batch of sentences; a subclass says which trees are outputs, and finds the best of them.

    Args:
        n_tokens: number of tokens of each sentence, at least 1, shape ``(n_examples,)``.
        arcs: the candidates ``(head, modifier)`` of all sentences, shape ``(n_arcs, 2)``, tokens counted from 1 within
            the sentence, head 0 the root; rising by modifier, then by head. None for all arcs.
        arc_offsets: where the arcs of each sentence begin, shape ``(n_examples + 1,)``; None for all arcs.
        n_labels: ``K``.
        single_root: whether exactly one token has the root as its head, or any number of tokens.

    An output is an int64 array of heads, shape ``(n,)``, entry ``m - 1`` for token ``m``; with more than one label it
    has shape ``(2, n)``: heads, and labels counted from 0.

    A subclass sets ``name`` and ``projective`` and gives ``argmax`` and what else it finds; its constructor calls this
    one and then :meth:`_refuse_treeless`. From here it has ``n_tokens``, ``token_offsets``, ``arcs`` (None for all),
    ``n_labels``, ``single_root``, ``blocks``, :meth:`encode`, :meth:`decode`, :meth:`select` and ``_arc_arrays``, the
    candidates as kernels take them.
    """

    categorical = True
    projective: ClassVar[bool]
    """Whether no two arcs of a tree may cross."""

    def __init__(
        self,
        n_tokens: npt.ArrayLike,
        arcs: npt.ArrayLike | None,
        arc_offsets: npt.ArrayLike | None,
        *,
        n_labels: int = 1,
        single_root: bool = True,
    ) -> None:
        self.n_tokens = counts_of(n_tokens, "n_tokens", least=1)
        if self.n_tokens.size and self.n_tokens.max() >= MOST_TOKENS:
            raise ValueError(
                f"example {int(np.argmax(self.n_tokens))} has {int(self.n_tokens.max())} tokens; at most "
                f"{MOST_TOKENS - 1} are possible, so split it"
            )
        self.n_labels = _checks.integer("n_labels", n_labels, least=1, most=1 << 15)
        self.single_root = _checks.flag("single_root", single_root)
        if (arcs is None) != (arc_offsets is None):
            raise ValueError("give arcs and arc_offsets, or neither of them for all arcs")
        self.arcs = None if arcs is None else pairs_of(arcs, "arcs")
        counts = self.n_tokens**2 if self.arcs is None else np.diff(self._checked_arcs(arc_offsets))
        most = int(counts.max(initial=0))
        if most * self.n_labels >= 1 << 31:
            raise ValueError(
                f"example {int(np.argmax(counts))} has {most} arcs with {self.n_labels} labels each; at most 2^31 - 1 "
                "are possible, so list fewer arcs, split the sentence or give fewer labels"
            )
        self.blocks = (Block("arcs", offsets_of(counts * self.n_labels)),)

    @classmethod
    def dense(cls, n_tokens: npt.ArrayLike, n_labels: int = 1, *, single_root: bool = True, **settings: Any) -> Self:
        """All arcs as candidates: ``n^2 K`` parts for ``n`` tokens, without a list of them.

        Part ``((m - 1) n + h - (h > m)) K + l`` is the arc from head ``h`` to modifier ``m`` with label ``l``.
        """
        return cls(n_tokens, None, None, n_labels=n_labels, single_root=single_root, **settings)

    def _checked_arcs(self, given: npt.ArrayLike | None) -> IntArray:
        """The offsets of the arcs; ValueError where arcs make no sense."""
        assert self.arcs is not None
        offsets = integers(given, "arc_offsets")
        if offsets.shape != (len(self.n_tokens) + 1,) or offsets[0] != 0 or offsets[-1] != len(self.arcs):
            raise ValueError(
                f"arc_offsets must be {len(self.n_tokens) + 1} numbers, one more than examples, from 0 to the number "
                f"of arcs, {len(self.arcs)}"
            )
        if not rises(offsets):
            raise ValueError("arc_offsets must rise")
        example = np.repeat(np.arange(len(self.n_tokens)), np.diff(offsets))
        (head, modifier), n = self.arcs.T, self.n_tokens[example]
        wrong = (head < 0) | (head > n) | (modifier < 1) | (modifier > n) | (head == modifier)
        if wrong.any():
            a = int(np.argmax(wrong))
            raise ValueError(
                f"example {int(example[a])}: arc {(int(head[a]), int(modifier[a]))} is out of range: heads lie in "
                f"0..{int(n[a])} (0 is the root), modifiers in 1..{int(n[a])}, and no token is its own head"
            )
        place = (example * MOST_TOKENS + modifier) * MOST_TOKENS + head
        late = np.flatnonzero(place[1:] <= place[:-1]) + 1
        if late.size:
            a = int(late[0])
            raise ValueError(
                f"example {int(example[a])}: arc {(int(head[a]), int(modifier[a]))} comes too late or twice; list arcs "
                "by modifier, then by head, each once"
            )
        missing = np.flatnonzero(np.bincount(self.token_offsets[example] + modifier - 1, minlength=self._total) == 0)
        if missing.size:
            i = int(np.searchsorted(self.token_offsets, missing[0], side="right")) - 1
            raise ValueError(
                f"example {i}: token {int(missing[0] - self.token_offsets[i]) + 1} has no candidate head; list an arc "
                "to it"
            )
        return offsets

    def _refuse_treeless(self) -> None:
        """ValueError naming the first sentence whose listed arcs contain no tree."""
        if self.arcs is None:
            return
        bare = type(self)(self.n_tokens, None, None, single_root=self.single_root)
        bare.arcs, bare.blocks = self.arcs, (Block("arcs", self.blocks[0].offsets // self.n_labels),)
        absent = np.flatnonzero(bare.argmax(np.zeros(bare.n_parts)).status)
        if absent.size:
            kind = ("a projective" if self.projective else "a") + " tree" + " with one root" * self.single_root
            raise ValueError(
                f"example {int(absent[0])}: its candidate arcs do not contain {kind}; list more arcs, or forbid and "
                "force fewer"
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_examples} sentences, {self._total} tokens, {self.n_parts} parts)"

    @cached_property
    def token_offsets(self) -> IntArray:
        """Where the tokens of each sentence begin, shape ``(n_examples + 1,)``."""
        return offsets_of(self.n_tokens)

    @property
    def _total(self) -> int:
        """Tokens of the batch."""
        return int(self.token_offsets[-1])

    @property
    def _arc_arrays(self) -> tuple[IntArray, npt.NDArray[np.int32]]:
        """Listed candidates as kernels take them, offsets and arcs; both empty for all arcs."""
        if self.arcs is None:
            return np.zeros(0, dtype=np.int64), np.zeros((0, 2), dtype=np.int32)
        return self.blocks[0].offsets // self.n_labels, self.arcs.astype(np.int32)

    @cached_property
    def n_candidates(self) -> IntArray:
        """Candidate heads of each token of the batch, shape ``(n_tokens,)``."""
        if self.arcs is None:
            return np.repeat(self.n_tokens, self.n_tokens)
        example = np.repeat(np.arange(self.n_examples), np.diff(self.blocks[0].offsets) // self.n_labels)
        return np.bincount(self.token_offsets[example] + self.arcs[:, 1] - 1, minlength=self._total)

    @property
    def states_per_variable(self) -> IntArray:
        """Candidate heads times labels of each token."""
        return self.n_candidates * self.n_labels

    def heads_of(self, parts: IntArray) -> tuple[IntArray, IntArray]:
        """Heads and labels of packed parts of the block of arcs."""
        arc, label = np.divmod(parts, self.n_labels)
        if self.arcs is not None:
            return self.arcs[arc, 0], label
        first = self.blocks[0].offsets // self.n_labels
        i = np.searchsorted(first, arc, side="right") - 1
        modifier, place = np.divmod(arc - first[i], self.n_tokens[i])
        return place + (place > modifier), label

    def _part_of(self, example: IntArray, heads: IntArray, modifiers: IntArray, labels: IntArray) -> IntArray:
        """Packed parts of the block of arcs; -1 where an arc is not a candidate."""
        first = self.blocks[0].offsets[example] // self.n_labels
        if self.arcs is None:
            arc = first + (modifiers - 1) * self.n_tokens[example] + heads - (heads > modifiers)
            return arc * self.n_labels + labels
        keys = self._arc_keys
        wanted = (example * MOST_TOKENS + modifiers) * MOST_TOKENS + heads
        arc = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[arc] == wanted, arc * self.n_labels + labels, -1)

    @cached_property
    def _arc_keys(self) -> IntArray:
        """Rising numbers of the listed arcs, by which they are found."""
        assert self.arcs is not None
        example = np.repeat(np.arange(self.n_examples), np.diff(self.blocks[0].offsets) // self.n_labels)
        return (example * MOST_TOKENS + self.arcs[:, 1]) * MOST_TOKENS + self.arcs[:, 0]

    def encode(self, labels: Sequence[Any]) -> SparsePoint:
        """The packed vertex of one tree per sentence; ValueError naming the sentence if it is not one."""
        return SparsePoint.from_index(self, self._parts(*self._trees(labels)))

    def _parts(self, heads: IntArray, labels: IntArray) -> IntArray:
        """The packed parts of checked trees, given by heads and labels of all tokens of the batch."""
        example = np.repeat(np.arange(self.n_examples), self.n_tokens)
        modifiers = np.arange(self._total) - self.token_offsets[example] + 1
        parts = self._part_of(example, heads, modifiers, labels)
        wrong = np.flatnonzero(parts < 0)
        if wrong.size:
            t = int(wrong[0])
            raise ValueError(
                f"example {int(example[t])}: the arc from head {int(heads[t])} to token {int(modifiers[t])} is not a "
                "candidate; list it, or give another tree"
            )
        return parts

    def _trees(self, outputs: Sequence[Any]) -> tuple[IntArray, IntArray]:
        """Heads and labels of all tokens of the batch, checked."""
        given = one_per_example(outputs, self.n_examples, "trees")
        rows = 1 if self.n_labels == 1 else 2
        found = []
        for i, (tree, n) in enumerate(zip(given, self.n_tokens.tolist(), strict=True)):
            shape = (n,) if rows == 1 else (2, n)
            wanted = (
                f"heads, integers of shape {shape}" if rows == 1 else f"heads and labels, integers of shape {shape}"
            )
            own = array_of(tree, f"example {i}: a tree", "iu", wanted)
            if own.shape != shape:
                raise ValueError(f"example {i}: a tree must be {wanted}, got shape {own.shape}")
            found.append(own.reshape(rows, n).astype(np.int64))
        both = np.concatenate([np.zeros((rows, 0), dtype=np.int64), *found], axis=1)
        heads, labels = both[0], both[1] if rows == 2 else np.zeros_like(both[0])
        self._check_trees(heads, labels)
        return np.ascontiguousarray(heads), labels

    def _check_trees(self, heads: IntArray, labels: IntArray) -> None:
        example = np.repeat(np.arange(self.n_examples), self.n_tokens)
        modifiers = np.arange(self._total) - self.token_offsets[example] + 1
        n = self.n_tokens[example]
        wrong = (heads < 0) | (heads > n) | (heads == modifiers)
        if wrong.any():
            t = int(np.argmax(wrong))
            raise ValueError(
                f"example {int(example[t])}: token {int(modifiers[t])} has head {int(heads[t])}; heads lie in "
                f"0..{int(n[t])}, 0 is the root, and no token is its own head"
            )
        wrong = (labels < 0) | (labels >= self.n_labels)
        if wrong.any():
            t = int(np.argmax(wrong))
            raise ValueError(
                f"example {int(example[t])} has label {int(labels[t])}; labels must lie in 0..{self.n_labels - 1}"
            )
        i, fault, token = _kernels.dependency_fault(
            self.token_offsets, np.ascontiguousarray(heads), self.single_root, self.projective
        )
        if fault:
            why = (
                f"from token {token} the heads do not lead to the root, 0, but around in a circle",
                f"token {token} is a second one below the root; give one, or use single_root=False",
                f"the arc to token {token} crosses another; use non-projective trees, or leave the sentence out",
            )[fault - 1]
            raise ValueError(f"example {i}: the heads are not a tree that is allowed here: {why}")

    def decode(self, z: FloatArray) -> list[IntArray]:
        """The trees of a packed vertex: heads of shape ``(n,)``, or with labels heads and labels of ``(2, n)``."""
        values = vector(z, self.n_parts, "z")[: self.starts[1]]
        states = self.n_states
        first = offsets_of(states)
        taken = np.flatnonzero(values > 0.5)
        token = np.searchsorted(first, taken, side="right") - 1
        heads, labels = np.full((2, self._total), -1, dtype=np.int64)
        heads[token], labels[token] = self.heads_of(taken)
        if self.n_labels == 1:
            return list(Ragged(heads, self.token_offsets))
        return np.split(np.stack([heads, labels]), self.token_offsets[1:-1], axis=1) if self.n_examples else []

    def select(self, indices: npt.ArrayLike) -> Self:
        """The batch of the given sentences, in that order; a sentence may come several times."""
        chosen = example_numbers(indices, self.n_examples)
        other = type(self).__new__(type(self))
        other.n_tokens, other.n_labels, other.single_root = self.n_tokens[chosen], self.n_labels, self.single_root
        first = self.blocks[0].offsets // self.n_labels
        other.arcs = None if self.arcs is None else self.arcs[ranges(first[chosen], first[chosen + 1])]
        other.blocks = tuple(Block(block.name, offsets_of(np.diff(block.offsets)[chosen])) for block in self.blocks)
        return other

"""Projective dependency trees: no two arcs cross, so that the best tree is found by dynamic programming.

The score of a tree is the sum of the scores of its arcs with labels, block ``"arcs"``; of second order also of

* ``"siblings"``, triples ``(head, sibling, modifier)``: two modifiers of a head on the same side with none between
  them, the sibling nearer to the head; the head itself in place of the sibling says that the modifier is the first;
* ``"grandparents"``, triples ``(grandparent, head, modifier)``, of arcs whose head is not the root.

Both see heads, not labels. Triples are either all there are, or those of a list; a triple that is not listed scores 0.

Cost of an argmax for ``n`` tokens and ``K`` labels: ``n^2 K + n^3 / 2`` additions and maxima (Eisner 1996); with
siblings ``n^2 K + 5/6 n^3``, and with grandparents ``n^2 K + 5/12 n^4`` (Koo and Collins 2010, model 1) and ``28 n^3``
bytes of memory. The derivation of a tree is unique, so marginals, k-best lists and slack rescaling are those of trees
(:mod:`maxmargin.structures.deductions.base`).
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _kernels, _memory
from maxmargin.structures._arrays import example_numbers, integers, offsets_of, ranges
from maxmargin.structures.base import Block, FloatArray, IntArray
from maxmargin.structures.deductions.base import Deduction
from maxmargin.structures.dependencies.base import DependencyTrees

Triples = tuple[npt.ArrayLike, npt.ArrayLike]
"""Triples of all sentences, shape ``(n, 3)``, and where those of each sentence begin."""


class ProjectiveTrees(DependencyTrees, Deduction):
    """A packed batch of sentences whose outputs are projective trees.

    Args:
        n_tokens, arcs, arc_offsets, n_labels, single_root: see :class:`DependencyTrees`.
        siblings: True for a block of all sibling triples; or the triples ``(head, sibling, modifier)`` and their
            offsets, rising by modifier, head and distance of the sibling from the head; False for no such block.
        grandparents: the same for triples ``(grandparent, head, modifier)``, rising by modifier, head and grandparent.

    Attributes:
        siblings, grandparents: the listed triples, None where there are none or all.
    """

    name = "projective tree"
    projective = True

    def __init__(
        self,
        n_tokens: npt.ArrayLike,
        arcs: npt.ArrayLike | None,
        arc_offsets: npt.ArrayLike | None,
        *,
        n_labels: int = 1,
        single_root: bool = True,
        siblings: bool | Triples = False,
        grandparents: bool | Triples = False,
    ) -> None:
        super().__init__(n_tokens, arcs, arc_offsets, n_labels=n_labels, single_root=single_root)
        self.siblings = self._add_block("siblings", siblings)
        self.grandparents = self._add_block("grandparents", grandparents)
        n = float(self.n_tokens.max(initial=0))
        items = 3.5 * n**3 if self._extent("grandparents") else 3.5 * n**2
        _memory.require(8.0 * items, "the items of the longest sentence", "split it, or leave out grandparents")
        if items >= 1 << 31:
            raise ValueError(f"a sentence of {int(n)} tokens is too long for these trees; split it")
        self._refuse_treeless()

    def _add_block(self, name: str, given: bool | Triples) -> IntArray | None:
        """Add a block of triples, if there are any, and return those that are listed."""
        if isinstance(given, (bool, np.bool_)):
            if given:
                n = self.n_tokens
                counts = _all_siblings(n) if name == "siblings" else _all_grandparents(n)
                self.blocks = (*self.blocks, Block(name, offsets_of(counts)))
            return None
        if not isinstance(given, tuple) or len(given) != 2:
            raise ValueError(f"{name} must be True, False, or a tuple of triples and their offsets")
        nodes, offsets = integers(given[0], name), integers(given[1], f"the offsets of {name}")
        nodes = nodes.reshape(-1, 3) if nodes.size == 0 else nodes
        if nodes.ndim != 2 or nodes.shape[1] != 3:
            raise ValueError(f"{name} must have three columns, shape (number, 3), got {nodes.shape}")
        if offsets.shape != (self.n_examples + 1,) or offsets[0] != 0 or offsets[-1] != len(nodes):
            raise ValueError(
                f"the offsets of {name} must be {self.n_examples + 1} numbers, one more than examples, from 0 to the "
                f"number of triples, {len(nodes)}"
            )
        if (np.diff(offsets) < 0).any():
            raise ValueError(f"the offsets of {name} must rise")
        self._check_triples(name, nodes, offsets)
        self.blocks = (*self.blocks, Block(name, offsets))
        return nodes

    def _check_triples(self, name: str, nodes: IntArray, offsets: IntArray) -> None:
        example = np.repeat(np.arange(self.n_examples), np.diff(offsets))
        n = self.n_tokens[example]
        head, other, modifier = nodes.T[[0, 1, 2] if name == "siblings" else [1, 0, 2]]
        low, high = np.minimum(head, modifier), np.maximum(head, modifier)
        wrong = (low < 0) | (high > n) | (modifier < 1) | (head == modifier) | (other < 0) | (other > n)
        if name == "siblings":
            wrong |= (other != head) & ((other <= low) | (other >= high))
        else:
            wrong |= (head < 1) | ((other >= low) & (other <= high))
        if wrong.any():
            a = int(np.argmax(wrong))
            rule = (
                "(head, sibling, modifier) with the sibling between them, or the head where the modifier is the first"
                if name == "siblings"
                else "(grandparent, head, modifier) with a head that is not the root, and the grandparent not between"
            )
            raise ValueError(
                f"example {int(example[a])}: {name} has {tuple(nodes[a].tolist())}; it must be {rule}, nodes in "
                f"0..{int(n[a])}"
            )
        late = np.flatnonzero(np.diff(self._triple_keys(name, example, head, other, modifier)) <= 0) + 1
        if late.size:
            a = int(late[0])
            order = "the distance of the sibling" if name == "siblings" else "grandparent"
            raise ValueError(
                f"example {int(example[a])}: {name} has {tuple(nodes[a].tolist())} too late or twice; list triples by "
                f"modifier, then head, then {order}"
            )

    def _triple_keys(
        self, name: str, example: IntArray, head: IntArray, other: IntArray, modifier: IntArray
    ) -> IntArray:
        """Numbers by which triples are listed and found."""
        base = int(self.n_tokens.max(initial=0)) + 1
        third = np.abs(other - head) if name == "siblings" else other
        keys: IntArray = ((example * base + modifier) * base + head) * base + third
        return keys

    def _extent(self, name: str) -> int:
        """0 if there is no block of this name, 1 if it has all triples, 2 if they are listed."""
        if all(block.name != name for block in self.blocks):
            return 0
        return 1 if getattr(self, name) is None else 2

    @property
    def kernel(self) -> str:  # type: ignore[override]
        """See :class:`Deduction`: one deduction system for each kind of parts."""
        if self._extent("grandparents"):
            return "GrandparentTrees"
        return "SiblingTrees" if self._extent("siblings") else "FirstOrderTrees"

    @cached_property
    def _batch(self) -> Any:
        triples: list[Any] = []
        for name in ("siblings", "grandparents"):
            nodes, listed = getattr(self, name), self._extent(name) == 2
            offsets = next(block.offsets for block in self.blocks if block.name == name) if listed else _NO_OFFSETS
            triples += [self._extent(name), offsets, nodes.astype(np.int32) if listed else _NO_NODES]
        batch = getattr(_kernels, self.kernel + "Batch")
        return batch(self.n_tokens, self.n_labels, self.single_root, *self._arc_arrays, *triples)

    def _parts(self, heads: IntArray, labels: IntArray) -> IntArray:
        """See :meth:`DependencyTrees._parts`; then the siblings and grandparents of the trees."""
        parts = [super()._parts(heads, labels)]
        example = np.repeat(np.arange(self.n_examples), self.n_tokens)
        modifiers = np.arange(self._total) - self.token_offsets[example] + 1
        if self._extent("siblings"):
            # By sentence, head, side, and then away from the head: each follows its sibling.
            right = modifiers > heads
            order = np.lexsort((np.abs(modifiers - heads), right, heads, example))
            group = np.stack([example, heads, right])[:, order]
            same = np.concatenate([np.zeros(1, dtype=bool), (group[:, 1:] == group[:, :-1]).all(axis=0)])[: len(order)]
            before = np.where(same, np.roll(modifiers[order], 1), heads[order])
            parts.append(self._triples("siblings", example[order], heads[order], before, modifiers[order]))
        if self._extent("grandparents"):
            inner = np.flatnonzero(heads > 0)
            above = heads[self.token_offsets[example[inner]] + heads[inner] - 1]
            parts.append(self._triples("grandparents", example[inner], heads[inner], above, modifiers[inner]))
        return np.concatenate(parts)

    def _triples(self, name: str, example: IntArray, head: IntArray, other: IntArray, modifier: IntArray) -> IntArray:
        """The packed parts of triples, those that have one."""
        b = [block.name for block in self.blocks].index(name)
        offsets, start = self.blocks[b].offsets, self.starts[b]
        if self._extent(name) == 1:
            places = _sibling_places if name == "siblings" else _grandparent_places
            return start + offsets[example] + places(self.n_tokens[example], head, other, modifier)
        nodes = getattr(self, name)
        own = np.repeat(np.arange(self.n_examples), np.diff(offsets))
        columns = nodes.T[[0, 1, 2] if name == "siblings" else [1, 0, 2]]
        keys, wanted = self._triple_keys(name, own, *columns), self._triple_keys(name, example, head, other, modifier)
        found = np.searchsorted(keys, wanted)
        is_there = found < len(keys)
        is_there[is_there] = keys[found[is_there]] == wanted[is_there]
        return start + found[is_there]

    def triples_of(self, name: str, parts: IntArray) -> IntArray:
        """The nodes of parts of a block of triples of the first sentence, as they are listed, shape ``(k, 3)``."""
        if (listed := getattr(self, name)) is not None:
            return np.asarray(listed[parts])
        n, siblings = self.n_tokens[:1], name == "siblings"
        m, h = (grid.ravel() for grid in np.mgrid[1 : n[0] + 1, 0 if siblings else 1 : n[0] + 1])
        m, h = m[m != h], h[m != h]
        starts = _sibling_places(n, h, h, m) if siblings else _grandparent_places(n, h, np.zeros_like(h), m)
        row = np.searchsorted(starts, parts, side="right") - 1
        place, m, h = parts - starts[row], m[row], h[row]
        if siblings:
            return np.stack([h, h + np.sign(m - h) * place, m], axis=1)
        low, high = np.minimum(h, m), np.maximum(h, m)
        return np.stack([np.where(place < low, place, place + high - low + 1), h, m], axis=1)

    def log_outputs(self) -> FloatArray:
        """The natural logarithm of the number of trees of each sentence.

        Of all arcs they are ``C(3n - 2, n - 1) / n`` with one root and ``C(3n, n) / (2n + 1)`` with several, times
        ``K^n`` for the labels; of listed arcs they are counted.
        """
        if self.arcs is not None:
            bare = ProjectiveTrees.__new__(ProjectiveTrees)
            bare.n_tokens, bare.n_labels, bare.single_root, bare.arcs = self.n_tokens, 1, self.single_root, self.arcs
            bare.siblings = bare.grandparents = None
            bare.blocks = (Block("arcs", self.blocks[0].offsets // self.n_labels),)
            trees = bare.marginals(np.zeros(bare.n_parts)).value
        else:
            n = self.n_tokens
            top, below = (3 * n - 2, n - 1) if self.single_root else (3 * n, n)
            factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, 3 * int(n.max(initial=0)) + 1)))])
            trees = factorial[top] - factorial[below] - factorial[top - below]
            trees -= np.log(n if self.single_root else 2 * n + 1)
        counts: FloatArray = trees + self.n_tokens * math.log(self.n_labels)
        return counts

    def select(self, indices: npt.ArrayLike) -> Self:
        """See :meth:`DependencyTrees.select`."""
        other, chosen = super().select(indices), example_numbers(indices, self.n_examples)
        for name in ("siblings", "grandparents"):
            nodes = getattr(self, name)
            if nodes is not None:
                offsets = next(block.offsets for block in self.blocks if block.name == name)
                nodes = nodes[ranges(offsets[chosen], offsets[chosen + 1])]
            setattr(other, name, nodes)
        return other


_NO_OFFSETS, _NO_NODES = np.zeros(0, dtype=np.int64), np.zeros((0, 3), dtype=np.int32)


def _tetrahedron(k: IntArray) -> IntArray:
    """``1 + 3 + 6 + ..``, ``k`` terms."""
    return k * (k + 1) * (k + 2) // 6


def _all_siblings(n: IntArray) -> IntArray:
    """``|head - modifier|`` for each arc."""
    return _tetrahedron(n) + _tetrahedron(n - 1)


def _all_grandparents(n: IntArray) -> IntArray:
    """For each arc between tokens the nodes that are not from head to modifier."""
    return n * n * (n - 1) - 2 * _tetrahedron(n - 1)


def _sibling_places(n: IntArray, h: IntArray, s: IntArray, m: IntArray) -> IntArray:
    """Places of triples among all: by modifier, head and distance of the sibling from the head."""
    modifiers = _tetrahedron(m - 1) + _tetrahedron(n - 1) - _tetrahedron(n - m)
    right, left = h * m - h * (h - 1) // 2, m * (m + 1) // 2 + (h - m - 1) * (h - m) // 2
    places: IntArray = modifiers + np.where(h < m, right, left) + np.abs(s - h)
    return places


def _grandparent_places(n: IntArray, h: IntArray, g: IntArray, m: IntArray) -> IntArray:
    """Places of triples among all: by modifier, head and grandparent."""
    modifiers = (m - 1) * n * (n - 1) - _tetrahedron(m - 2) - _tetrahedron(n - 1) + _tetrahedron(n - m)
    k = h - m - 1
    right, left = (h - 1) * (n - m) + (h - 1) * h // 2, (m - 1) * (n - m) + (m - 1) * m // 2 + k * n - k * (k + 1) // 2
    low, high = np.minimum(h, m), np.maximum(h, m)
    places: IntArray = modifiers + np.where(h < m, right, left) + np.where(g < low, g, g - (high - low + 1))
    return places

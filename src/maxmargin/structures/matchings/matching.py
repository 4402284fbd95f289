"""Bipartite matchings, one-to-one or with node capacities, on full or pruned graphs.

Example ``i`` is a bipartite graph; its parts are its edges, and ``z_e = 1`` says that edge ``e`` is matched::

    Z_i = {0 <= z <= 1,  sum of z over the edges at a node <= its capacity}

The constraint matrix is totally unimodular, so the vertices of ``Z_i`` are exactly the matchings. A node may stay
unmatched.

``argmax`` is a maximum-weight b-matching by shortest augmenting paths (Jonker and Volgenant 1987): one path per unit
of capacity, each path at most ``O(edges)`` on full graphs with capacities of one, and ``O(edges log edges)`` on sparse
graphs and with other capacities, where only nodes with more edges of positive score than their capacity need work.

``margins`` gives for every edge the best score with it less the best score without it, by one argmax and the shortest
paths between all pairs of nodes in its residual graph: ``O(n^3)`` for ``n`` nodes on the smaller side, in vectors.

``project`` minimizes the dual over node variables ``alpha, beta >= 0``::

    z_jk = clip(point_jk - alpha_j - beta_k, 0, 1)

by a primal-dual active set Newton method, globalized by step halving, a line search and exact minimization over rows
and columns in turn (semismooth Newton: Qi and Sun 1993; active sets: Hintermüller, Ito and Kunisch 2003). It stops when
every node satisfies ``|min(dual, capacity - sum)| <= tol / (1000 nodes)``, or rounding if that is larger. The dual is
piecewise quadratic, so the last Newton step is exact and the answer is usually correct to rounding. The sums are then
brought to feasibility by dividing by the largest of them over its capacity.

Cost of a Newton step: a pass over the edges and the elimination of a dense system in the positive duals of the smaller
side (conjugate gradients above 400 of them). Typical are one to three steps warm and two to four cold; targets much
larger than one are approached through smaller ones, with a few steps for each factor of four.

``k_best`` keeps cells of matchings, each with its best and its second best, which is the cheapest cycle of the residual
graph (Chegireddy and Hamacher 1987; the partition is that of Lawler 1972): a rank costs twice the shortest paths of
``margins``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels, _threads
from maxmargin._sparse import sp
from maxmargin._vectors import rises
from maxmargin.structures._arrays import (
    counts_of,
    example_numbers,
    integers,
    offsets_in_memory,
    offsets_of,
    one_per_example,
    pairs_of,
    ranges,
    started,
    vector,
)
from maxmargin.structures.base import Block, FloatArray, IntArray, Points, PointStatus, Polytope, Structure
from maxmargin.structures.fallbacks import generic
from maxmargin.structures.sparse import SparsePoint

MOST_RANKS = 1 << 31
"""``k_best`` counts ranks below this."""


class Matching(Structure):
    """A packed batch of bipartite graphs with one block, ``edges``.

    Args:
        shapes: ``(n_examples, 2)``, the number of left and right nodes.
        edges: ``(n_parts, 2)``, for every edge its left and right node, counted from 0 inside its example; any order.
            None stands for all edges in row-major order, as :meth:`dense` makes them.
        offsets: ``(n_examples + 1,)``, where the edges of each example begin; not needed without ``edges``.
        left_capacity: how many edges a left node may have: one number per left node of the batch (0: never matched), or
            one for all; 1 by default.
        right_capacity: the same for right nodes.
    """

    name = "matching"
    categorical = False
    marginals_unsupported = "marginals over all matchings are #P-hard (a permanent); use geometry=Euclidean()"

    def __init__(
        self,
        shapes: npt.ArrayLike,
        edges: npt.ArrayLike | None = None,
        offsets: npt.ArrayLike | None = None,
        *,
        left_capacity: npt.ArrayLike | None = None,
        right_capacity: npt.ArrayLike | None = None,
    ) -> None:
        self.shapes: IntArray = pairs_of(shapes, "shapes")
        if (self.shapes < 0).any():
            bad = int(np.flatnonzero((self.shapes < 0).any(axis=1))[0])
            raise ValueError(f"example {bad}: shape {tuple(self.shapes[bad].tolist())} is negative")
        left, right = (counts_of(self.shapes[:, side], f"{('left', 'right')[side]} nodes") for side in (0, 1))
        if (self.shapes.prod(axis=1, dtype=np.float64).sum()) >= 1 << 62:
            raise ValueError("the graphs have more than 2^62 pairs of nodes; give fewer examples at a time")
        self._left_start, self._right_start = offsets_of(left), offsets_of(right)
        self._cells = offsets_of(left * right)
        self.left_capacity = self._capacities(left_capacity, int(self._left_start[-1]), "left")
        self.right_capacity = self._capacities(right_capacity, int(self._right_start[-1]), "right")
        self._order: IntArray | None = None
        self._keys: IntArray | None = None
        self._ends: npt.NDArray[np.int32] = np.zeros((0, 2), dtype=np.int32)
        if edges is None:
            if offsets is not None:
                raise ValueError("offsets without edges; give both, or neither for all edges")
            self.blocks = (Block("edges", offsets_in_memory(left * right, 1, "edges")),)
        else:
            self._list(pairs_of(edges, "edges"), offsets)

    @classmethod
    def dense(
        cls,
        shapes: npt.ArrayLike,
        *,
        left_capacity: npt.ArrayLike | None = None,
        right_capacity: npt.ArrayLike | None = None,
    ) -> Self:
        """Graphs with all ``n_left * n_right`` edges, row-major (left node first)."""
        return cls(shapes, left_capacity=left_capacity, right_capacity=right_capacity)

    @property
    def _sides(self) -> tuple[tuple[IntArray, IntArray], tuple[IntArray, IntArray]]:
        """Of left and right nodes: where those of each example begin, and their capacities."""
        return (self._left_start, self.left_capacity), (self._right_start, self.right_capacity)

    @staticmethod
    def _capacities(values: npt.ArrayLike | None, n: int, side: str) -> IntArray:
        given = integers(1 if values is None else values, f"{side}_capacity")
        if given.ndim == 0 or (given.size == 1 and given.ndim == 1 and n != 1):
            given = np.full(n, int(given.reshape(-1)[0]), dtype=np.int64)
        if given.shape != (n,):
            raise ValueError(f"{side}_capacity has shape {given.shape}, but the batch has {n} {side} nodes")
        if (given < 0).any():
            raise ValueError(f"{side}_capacity must be 0 or more, got {int(given.min())}")
        return given

    def _list(self, edges: IntArray, offsets: npt.ArrayLike | None) -> None:
        n = len(self.shapes)
        if offsets is None:
            raise ValueError("edges need offsets, shape (n_examples + 1,)")
        starts = integers(offsets, "offsets")
        if starts.shape != (n + 1,) or starts[0] != 0 or not rises(starts) or starts[-1] != len(edges):
            raise ValueError(f"offsets must be {n + 1} numbers from 0 up to the number of edges, {len(edges)}")
        example = np.repeat(np.arange(n), np.diff(starts))
        outside = ((edges < 0) | (edges >= self.shapes[example])).any(axis=1)
        if outside.any():
            e = int(np.flatnonzero(outside)[0])
            i = int(example[e])
            raise ValueError(
                f"example {i}: edge {tuple(edges[e].tolist())} is out of range for "
                f"{int(self.shapes[i, 0])} left and {int(self.shapes[i, 1])} right nodes"
            )
        keys = self._cells[example] + edges[:, 0] * self.shapes[example, 1] + edges[:, 1]
        if (np.diff(keys) < 0).any():
            self._order = np.argsort(keys, kind="stable")
            keys = keys[self._order]
        twice = np.flatnonzero(np.diff(keys) == 0)
        if len(twice):
            e = int(twice[0]) if self._order is None else int(self._order[twice[0]])
            raise ValueError(
                f"example {int(example[e])}: edge {tuple(edges[e].tolist())} is given more than once; "
                "list every edge once"
            )
        self._keys = keys
        in_order = edges if self._order is None else edges[self._order]
        self._ends = np.ascontiguousarray(in_order, dtype=np.int32)
        self.blocks = (Block("edges", starts),)

    @cached_property
    def edges(self) -> IntArray:
        """Left and right node of every part, local to its example, shape ``(n_parts, 2)``."""
        if self._keys is None:
            offsets = self._cells
            local = np.arange(self.n_parts) - np.repeat(offsets[:-1], np.diff(offsets))
            width = np.repeat(self.shapes[:, 1], np.diff(offsets))
            return np.stack([local // width, local % width], axis=1).astype(np.int64)
        if self._order is None:
            return self._ends.astype(np.int64)
        ends = np.empty(self._ends.shape, dtype=np.int64)
        ends[self._order] = self._ends
        return ends

    @cached_property
    def _example(self) -> IntArray:
        """The example of every part."""
        offsets = self.blocks[0].offsets
        return np.repeat(np.arange(self.n_examples), np.diff(offsets)).astype(np.int64)

    @cached_property
    def _batch(self) -> Any:
        """The graphs as the kernels take them: a kernel object, made and checked once, when first asked for."""
        return _kernels.MatchingBatch(
            self._left_start,
            self._right_start,
            self.blocks[0].offsets,
            self._ends,
            self.left_capacity,
            self.right_capacity,
        )

    def _sorted(self, values: npt.ArrayLike, what: str) -> FloatArray:
        packed = vector(values, self.n_parts, what)
        return packed if self._order is None else packed[self._order]

    def _unsorted(self, z: FloatArray) -> FloatArray:
        if self._order is None:
            return z
        out = np.empty_like(z)
        out[self._order] = z
        return out

    def places(self, labels: Sequence[npt.ArrayLike]) -> tuple[IntArray, IntArray, IntArray]:
        """The parts of pairs (left, right), given as ``(k, 2)`` arrays, one per example, which need not be matchings.

        Returns:
            All pairs, the example of each, and its place in a packed vector.
        """
        pieces: list[IntArray] = []
        for i, label in enumerate(one_per_example(labels, self.n_examples, "matchings")):
            piece = integers(label, f"example {i}: pairs")
            if piece.size and (piece.ndim != 2 or piece.shape[1] != 2):
                raise ValueError(f"example {i}: pairs have shape {piece.shape}; give an array of shape (k, 2)")
            pieces.append(piece.reshape(-1, 2))
        pairs = np.concatenate([np.zeros((0, 2), dtype=np.int64), *pieces])
        example = np.repeat(np.arange(self.n_examples), [len(piece) for piece in pieces]).astype(np.int64)
        inside = ((pairs >= 0) & (pairs < self.shapes[example])).all(axis=1)
        keys = self._cells[example] + pairs[:, 0] * self.shapes[example, 1] + pairs[:, 1]
        if self._keys is None:
            place = keys
        else:
            place = np.searchsorted(self._keys, keys)
            held = np.append(self._keys, -1)[place]
            inside &= held == keys
            if self._order is not None:
                place = np.append(self._order, 0)[place]
        if not inside.all():
            p = int(np.flatnonzero(~inside)[0])
            i = int(example[p])
            raise ValueError(
                f"example {i}: pair {tuple(pairs[p].tolist())} is not an edge of its graph "
                f"({int(self.shapes[i, 0])} x {int(self.shapes[i, 1])} nodes); drop it or add the edge to the graph"
            )
        return pairs, example, place

    def encode(self, labels: Sequence[npt.ArrayLike]) -> SparsePoint:
        """The packed 0/1 vector of matchings given as ``(k, 2)`` arrays of (left, right) pairs, one per example."""
        pairs, example, place = self.places(labels)
        point = SparsePoint.counting(self, place)
        if (point.value > 1).any():
            e = int(point.index[np.argmax(point.value > 1)])
            raise ValueError(
                f"example {int(self._example[e])}: pair {tuple(self.edges[e].tolist())} is given more than once; "
                "list every pair once"
            )
        for side, (start, capacity) in enumerate(self._sides):
            links = np.bincount(start[example] + pairs[:, side], minlength=len(capacity))
            over = np.flatnonzero(links > capacity)
            if len(over):
                node = int(over[0])
                i = int(np.searchsorted(start, node, side="right")) - 1
                word = ("left", "right")[side]
                raise ValueError(
                    f"example {i}: {word} node {node - int(start[i])} has {int(links[node])} links, "
                    f"capacity {int(capacity[node])}; drop links or raise {word}_capacity"
                )
        return point

    def decode(self, z: FloatArray) -> list[IntArray]:
        """The matched pairs of a packed vertex: per example an int64 array ``(k, 2)`` sorted by (left, right)."""
        chosen = np.flatnonzero(self._sorted(z, "z") > 0.5)
        ends = self.edges if self._order is None else self._ends
        pairs = np.ascontiguousarray(ends[chosen], dtype=np.int64)
        cuts = np.searchsorted(chosen, self.blocks[0].offsets[1:-1])
        return list(np.split(pairs, cuts)) if self.n_examples else []

    def argmax(self, scores: FloatArray, *, warm: Any = None) -> Points:
        """The matching of largest total score; edges of score 0 or less are never taken."""
        points = self._from_kernel(_kernels.matching_argmax, self._batch, self._sorted(scores, "scores"))
        return replace(points, z=self._unsorted(points.z))

    def k_best(self, scores: FloatArray, k: int) -> list[Points]:
        """The ``k`` best matchings of every example, exactly; the first is the argmax, ties come in any order."""
        ranks = min(_checks.integer("k", k, least=1), self._most_outputs)
        if ranks >= MOST_RANKS:
            raise ValueError(f"k must be below {MOST_RANKS}, got {k}")
        values = self._sorted(scores, "scores")
        outputs = self._buffers(ranks)
        _kernels.matching_k_best(self._batch, ranks, values, *outputs, _threads.current())
        return [replace(points, z=self._unsorted(points.z)) for points in generic.ranked(*outputs)]

    @cached_property
    def _most_outputs(self) -> int:
        """A bound of the matchings of the example that has most: MOST_RANKS, or the product over the nodes of one side
        of the choices of edges that a node's capacity allows."""
        bits = np.full(self.n_examples, np.inf)
        for side, (start, capacity) in enumerate(self._sides):
            degree = np.bincount(start[self._example] + self.edges[:, side], minlength=len(capacity))
            kinds, place = np.unique(np.stack([degree, np.minimum(capacity, degree)]), axis=1, return_inverse=True)
            choices = [math.log2(sum(math.comb(d, t) for t in range(c + 1))) for d, c in kinds.T.tolist()]
            node = np.repeat(np.arange(self.n_examples), np.diff(start))
            of_node = np.array(choices, dtype=np.float64)[place.reshape(-1)]
            bits = np.minimum(bits, np.bincount(node, of_node, minlength=self.n_examples))
        most = float(bits.max(initial=0.0))
        return MOST_RANKS if most >= 30 else math.ceil(2.0**most * (1 + 1e-12))

    def margins(self, scores: FloatArray) -> FloatArray:
        """By how much each edge is in or out: the best score of a matching with it, less the best without it.

        Batch, shape ``(n_parts,)``: at least 0 for the edges of the best matching, at most 0 for the others, 0 for
        those that are in one best matching and not in another; ``-inf`` for edges that no matching has (an end of
        capacity 0). NaN for all edges of an example whose scores are not finite.
        """
        values = self._sorted(scores, "scores")
        margin = np.empty(self.n_parts)
        status = np.empty(self.n_examples, dtype=np.int8)
        _kernels.matching_margins(self._batch, values, margin, status, _threads.current())
        if (status != PointStatus.OK).any():
            margin[(status != PointStatus.OK)[self._example]] = np.nan
        return self._unsorted(margin)

    def project(self, point: FloatArray, *, tol: float = 1e-8, warm: Any = None) -> Points:
        """Euclidean projection; ``warm`` holds node duals, all left nodes of the batch, then all right nodes."""
        values = self._sorted(point, "point")
        nodes = len(self.left_capacity) + len(self.right_capacity)
        duals = started(warm, (nodes,))
        z, value, status = self._buffers()
        steps = np.empty((self.n_examples, 2), dtype=np.int32)  # Newton steps and fallbacks, for benchmarks
        arguments = (_checks.number("tol", tol, least=0), warm is not None, duals, z, value, status, steps)
        _kernels.matching_project(self._batch, values, *arguments, _threads.current())
        return Points(self._unsorted(z), value, status, duals)

    def polytope(self) -> Polytope:
        """``q = z``; rows: left capacities, right capacities, then ``z <= 1``."""
        m = self.n_parts
        ones, rows = np.ones(m), []
        for side, (start, capacity) in enumerate(self._sides):
            node = start[self._example] + self.edges[:, side]
            rows.append(sp.csr_array((ones, (node, np.arange(m))), (len(capacity), m)))
        return Polytope(
            lift=sp.csr_array(sp.eye_array(m)),
            ub=sp.csr_array(sp.vstack([*rows, sp.eye_array(m)])),
            ub_rhs=np.concatenate([self.left_capacity, self.right_capacity, ones]).astype(np.float64),
        )

    def oracle(self, ranks: int = 1) -> Any:
        """The best matching, or the ``ranks`` best, of one example at a time."""
        most = _checks.integer("ranks", ranks, least=1, most=MOST_RANKS - 1)
        return _kernels.MatchingOracle(
            self._batch, np.zeros(0, dtype=np.int64) if self._order is None else self._order, most
        )

    def select(self, indices: npt.ArrayLike) -> Self:
        """The batch of the given examples, in that order; an example may come several times."""
        chosen = example_numbers(indices, self.n_examples)
        shapes = self.shapes[chosen]
        left, right = (capacity[ranges(start[chosen], start[chosen + 1])] for start, capacity in self._sides)
        kinds = {"left_capacity": left, "right_capacity": right}
        if self._keys is None:
            return type(self)(shapes, **kinds)
        sizes = np.diff(self.blocks[0].offsets)[chosen]
        return type(self)(shapes, self.edges[self.parts_of(chosen)], offsets_of(sizes), **kinds)

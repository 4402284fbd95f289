"""Inputs of one example that a plain array cannot express."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.structures._arrays import counts_of


@dataclass(frozen=True, eq=False)
class Bipartite:
    """A bipartite graph with features on its possible links.

    Attributes:
        features: shape ``(n_edges, d)``, dense or CSR: one row per possible link.
        edges: shape ``(n_edges, 2)``, integers: (left node, right node) of each row.
        shape: ``(n_left, n_right)``.
        left_capacity: how many links each left node may have, one number or shape ``(n_left,)``; None: the model's.
        right_capacity: likewise for right nodes.
    """

    features: Any
    edges: npt.ArrayLike
    shape: tuple[int, int]
    left_capacity: npt.ArrayLike | None = None
    right_capacity: npt.ArrayLike | None = None


@dataclass(frozen=True, eq=False)
class PairGraph:
    """A graph whose nodes are to be paired, with features on the possible pairs.

    Attributes:
        features: shape ``(n_edges, d)``, dense or CSR: one row per possible pair.
        edges: shape ``(n_edges, 2)``, integers: the two nodes of each row, each pair at most once.
        n_nodes: how many nodes there are; None: as many as the edges name.
    """

    features: Any
    edges: npt.ArrayLike
    n_nodes: int | None = None


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph whose nodes are to be labeled.

    Attributes:
        node_features: shape ``(n_nodes, d_n)``, dense or CSR.
        edges: shape ``(n_edges, 2)``, integers: the two nodes of each edge, each pair of nodes at most once.
        edge_features: shape ``(n_edges, d_e)``, dense or CSR, one row per edge. CutSVM and AssociativeSVM
            need entries >= 0, which say how strongly the ends attract each other, and take None for one feature that
            is 1 on every edge; GraphSVM and TreeSVM take entries of any sign, and None for pair scores that do not see
            the input.
        labels: for TreeSVM, for each node the labels allowed there, None for all; or None, for all labels everywhere.
        cliques: sets of nodes that are scored together: a list of tuples of node numbers, each set of nodes at most
            once; None: none. TreeSVM scores all joint labels of a clique, and the order of its nodes counts; CutSVM and
            AssociativeSVM reward cliques of two or more nodes whose labels are all alike.
        clique_features: shape ``(n_cliques, d_c)``, dense or CSR, one row per clique. CutSVM and AssociativeSVM need
            entries >= 0, and take None for one feature that is 1 on every clique; TreeSVM takes entries of any sign,
            and None for scores of cliques that do not see the input.
    """

    node_features: Any
    edges: npt.ArrayLike
    edge_features: Any = None
    labels: Any = None
    cliques: Any = None
    clique_features: Any = None


@dataclass(frozen=True, eq=False)
class Program:
    """Parts with features, of which a linear program says what may be chosen: ``A z <= b, A_eq z = b_eq``.

    Attributes:
        features: shape ``(n_parts, d)``, dense or CSR: one row per part.
        A: shape ``(n_rows, n_parts)``, dense or sparse; None for no inequalities.
        b: shape ``(n_rows,)``.
        A_eq: shape ``(n_equations, n_parts)``, dense or sparse; None for no equations.
        b_eq: shape ``(n_equations,)``.
        upper: the largest value of a part, one number or shape ``(n_parts,)``; the smallest is 0.
    """

    features: Any
    A: Any = None
    b: npt.ArrayLike | None = None
    A_eq: Any = None
    b_eq: npt.ArrayLike | None = None
    upper: npt.ArrayLike = 1.0


@dataclass(frozen=True, eq=False)
class FeatureSequence:
    """A sequence whose transitions see the input.

    Attributes:
        features: shape ``(length, d)``, dense or CSR: one row per position.
        edge_features: shape ``(length - 1, d_e)``, dense or CSR: one row per pair of neighboring positions.
    """

    features: Any
    edge_features: Any = None


@dataclass(frozen=True, eq=False)
class SegmentSequence:
    """A sequence whose segments have features of their own.

    Attributes:
        features: shape ``(length, d)``, dense or CSR: one row per token.
        segment_features: shape ``(n_segments, d_s)``, dense or CSR: one row for each of
            :func:`maxmargin.candidate_segments`, all segments up to the longest; None: none.
    """

    features: Any
    segment_features: Any = None


@dataclass(frozen=True, eq=False)
class WordLattice:
    """A directed acyclic graph whose paths are outputs.

    Attributes:
        features: shape ``(n_edges, d)``, dense or CSR: one row per edge.
        edges: shape ``(n_edges, 2)``, integers: (tail node, head node) of each row.
        words: the word of each edge, None for none; or None, for no words at all.
        start: the node where paths begin.
        end: the node where they end; None for the largest node number.
    """

    features: Any
    edges: npt.ArrayLike
    words: Any = None
    start: int = 0
    end: int | None = None

    @classmethod
    def confusion_network(cls, features: Any, n_alternatives: npt.ArrayLike, words: Any = None) -> Self:
        """Slots one after the other, of each of which one alternative is chosen.

        Args:
            features: one row per alternative, slot after slot.
            n_alternatives: of each slot, shape ``(n_slots,)``; a path takes one edge per slot.
            words: of each alternative, None for none.
        """
        sizes = counts_of(n_alternatives, "n_alternatives")
        if (sizes < 1).any():
            raise ValueError(f"slot {int(np.argmin(sizes))} has {int(sizes.min())} alternatives; every slot needs one")
        slot = np.repeat(np.arange(len(sizes)), sizes)
        return cls(features, np.stack([slot, slot + 1], axis=1), words, 0, len(sizes))


@dataclass(frozen=True, eq=False)
class SequencePair:
    """Two sequences to be aligned, with features of your own.

    Attributes:
        first: a string, or a list of symbols of any hashable type; ``n`` of them.
        second: likewise, ``m`` symbols.
        pair_features: of pairing symbol ``i`` of the first with symbol ``j`` of the second, shape ``(n, m, d)``; or
            ``(n m, d)``, dense or CSR, row ``i m + j``. None for none.
        first_features: of leaving symbol ``i`` of the first in a gap, shape ``(n, d_g)``, dense or CSR; None for none.
        second_features: likewise for the second, shape ``(m, d_g)``.
    """

    first: Any
    second: Any
    pair_features: Any = None
    first_features: Any = None
    second_features: Any = None


@dataclass(frozen=True, eq=False)
class Sentence:
    """A sentence whose tokens are to be joined to a dependency tree: tokens ``1 .. n``, and 0 for the root.

    Attributes:
        features: shape ``(n_arcs, d)``, dense or CSR: one row per candidate arc.
        arcs: shape ``(n_arcs, 2)``, integers: (head, modifier) of each row, in any order, each arc at most once; arcs
            that are not listed are forbidden. None for all arcs, ``n^2`` rows by modifier and then by head: ``0 -> 1``,
            ``2 -> 1``, .. ``n -> 1``, ``0 -> 2``, ``1 -> 2``, ``3 -> 2``, ...
        sibling_features: of second order, shape ``(n_siblings, d_s)``: one row per triple of ``siblings``.
        siblings: shape ``(n_siblings, 3)``: (head, sibling, modifier), two modifiers on the same side of the head
            without one between them, the sibling nearer to it; the head in place of the sibling where the modifier is
            the first. Triples that are not listed score 0.
        grandparent_features: of second order, shape ``(n_grandparents, d_g)``: one row per triple of ``grandparents``.
        grandparents: shape ``(n_grandparents, 3)``: (head of the head, head, modifier). Likewise.
        forbidden: shape ``(k, 2)``: arcs (head, modifier) that the tree must not have, of those above.
        forced: shape ``(k, 2)``: arcs that it must have.
    """

    features: Any
    arcs: npt.ArrayLike | None = None
    sibling_features: Any = None
    siblings: npt.ArrayLike | None = None
    grandparent_features: Any = None
    grandparents: npt.ArrayLike | None = None
    forbidden: npt.ArrayLike | None = None
    forced: npt.ArrayLike | None = None


@dataclass(frozen=True, eq=False)
class SpanChart:
    """A sentence of ``n`` tokens with features of its spans ``(begin, end)``, ``0 <= begin < end <= n``.

    Attributes:
        features: shape ``(n (n + 1) / 2, d)``, dense or CSR: one row per span, ordered by begin, then by end, as
            :func:`maxmargin.spans_of` lists them.
        split_features: shape ``((n + 1) n (n - 1) / 6, d_s)``, dense or CSR: one row per split of a span in two,
            ordered by begin, end and split, as :func:`maxmargin.splits_of` lists them; None for none.
    """

    features: Any
    split_features: Any = None

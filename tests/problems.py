"""Small training problems of every structure, shared by the solver tests."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from oracles.structures import dependencies, edits, grammar, segments
from oracles.structures.lattice import random_lattice
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin import _kernels
from maxmargin.execution import HeldPieces, Piece, PieceSource
from maxmargin.features.cliques import CliqueFeatures
from maxmargin.features.parts import PartFeatures, Stacked
from maxmargin.features.tied import ChainFeatures, SecondOrderFeatures, TiedRows
from maxmargin.features.tree import TreeFeatures
from maxmargin.losses import Hamming
from maxmargin.problem import Problem
from maxmargin.regions import L1, L2
from maxmargin.solvers import Solution, Solver, Status, Stop, solve
from maxmargin.structures import Structure
from maxmargin.structures.base import FloatArray
from maxmargin.structures.candidates import Candidates
from maxmargin.structures.chains.chain import Chain
from maxmargin.structures.chains.second_order import SecondOrderChain
from maxmargin.structures.cuts.clique_cut import CliqueCut
from maxmargin.structures.cuts.cut import Cut
from maxmargin.structures.matchings.matching import Matching
from maxmargin.structures.matchings.pairing import Pairing
from maxmargin.structures.networks.associative import Associative
from maxmargin.structures.networks.clique_network import CliqueNetwork
from maxmargin.structures.networks.graph import PairwiseGraph
from maxmargin.structures.trees.junction import JunctionTree
from maxmargin.structures.trees.tree import Tree

DEDUCTIONS: dict[str, Callable[[np.random.Generator, int], tuple[Structure, mm.features.Features]]] = {
    "edits": edits.problem,
    "projective": dependencies.problem,
    "segments": segments.problem,
    "spans": grammar.spans_problem,
}
"""Structures whose kernels are those of deduction systems, with random problems of each."""
STRUCTURES = (
    "associative",
    "candidates",
    "chain",
    "chain-edges",
    "cliques",
    "cut",
    "graph",
    "junction",
    "lattice",
    "matching",
    "matching-capacity",
    "second-order",
    "tree",
    "clique-network",
    "clique-cut",
    "pairing",
    "nonprojective",
    *DEDUCTIONS,
)
"""New ones come last: tests choose what a structure meets by its place."""
RELAXED = ("associative", "clique-network", "graph")
REGIONS = {
    "ridge": {"C": 0.5},
    "small ridge": {"C": 0.01},
    "ball": {"radius": 0.7},
    "ball and ridge": {"C": 1.0, "radius": 0.5},
    "L1 ball": {"l1": 1.0},
}
ENTROPIC = (
    *DEDUCTIONS,
    "candidates",
    "chain",
    "chain-edges",
    "cliques",
    "lattice",
    "nonprojective",
    "second-order",
    "tree",
    "junction",
)
"""The structures with a sum-product kernel."""


def random_cliques(rng: np.random.Generator, sizes: Sequence[int], most: int = 3) -> list[list[tuple[int, ...]]]:
    """For each example of so many nodes up to ``most`` different sets of two or more of them."""
    drawn = [
        [rng.permutation(size)[: rng.integers(2, size + 1)] for _ in range(rng.integers(0, most + 1)) if size > 1]
        for size in sizes
    ]
    return [list({frozenset(clique.tolist()): tuple(clique.tolist()) for clique in own}.values()) for own in drawn]


def make(
    kind: str, *, seed: int = 0, n: int = 4, region: dict[str, float] | None = None, signs: bool = False
) -> Problem:
    """A noisy problem with ``n`` examples; gold outputs come from hidden weights, so that learning makes sense."""
    rng = np.random.default_rng(seed)
    structure: Structure
    features: mm.features.Features
    if kind in DEDUCTIONS:
        structure, features = DEDUCTIONS[kind](rng, n)
    elif kind == "candidates":
        structure = Candidates(rng.integers(1, 16, size=n))
        features = PartFeatures(rng.normal(size=(structure.n_parts, 4)), structure.blocks[0].offsets)
    elif kind == "nonprojective":
        structure, features = dependencies.nonprojective_problem(rng, n)
    elif kind == "pairing":
        structure = Pairing.dense(rng.integers(3, 5, size=n))
        features = PartFeatures(rng.normal(size=(structure.n_parts, 4)), structure.blocks[0].offsets)
    elif kind == "lattice":
        structure = random_lattice(rng, n, nodes=8)
        features = PartFeatures(rng.normal(size=(structure.n_parts, 4)), structure.blocks[0].offsets)
    elif kind.startswith("chain"):
        lengths, n_labels = rng.integers(1, 5, size=n), 3
        edge_features = rng.normal(size=(int(np.maximum(lengths - 1, 0).sum()), 2)) if kind == "chain-edges" else None
        structure = Chain(lengths, n_labels, transitions="shared" if edge_features is None else "each")
        rows = rng.normal(size=(int(lengths.sum()), 4))
        features = ChainFeatures(rows, lengths, n_labels, edge_features=edge_features)
    elif kind == "second-order":
        lengths, n_labels = rng.integers(1, 6, size=n), 2
        structure = SecondOrderChain(lengths, n_labels)
        features = SecondOrderFeatures(rng.normal(size=(int(lengths.sum()), 4)), lengths, n_labels)
    elif kind in ("cliques", "tree", "junction"):
        sizes, links, starts, allowed = rng.integers(1, 6, size=n), [], [0], []
        for size in sizes.tolist():
            links += [(v, int(rng.integers(0, v))) if v % 2 else (int(rng.integers(0, v)), v) for v in range(1, size)]
            if kind == "junction" and size > 2:
                ring = {(0, size - 1), (size - 1, 0)}.isdisjoint(links[starts[-1] :])
                links += [(size - 1, 0)] if ring else []
            starts.append(len(links))
            allowed += [np.sort(rng.permutation(3)[: int(rng.integers(1, 4))]) for _ in range(size)]
        labels_of = {"n_labels": [len(own) for own in allowed], "labels": np.concatenate(allowed)}
        graph = {"n_nodes": sizes, "edges": np.array(links).reshape(-1, 2), "edge_offsets": starts}
        structure = JunctionTree(**graph, **labels_of) if kind == "junction" else Tree(**graph, **labels_of)
        if kind == "cliques":
            cliques = [[rng.permutation(size)[:3].tolist()] if size else [] for size in sizes.tolist()]
            structure = JunctionTree(**graph, **labels_of, cliques=cliques)
        edge_features = rng.normal(size=(len(links), 2)) if kind == "tree" else None
        features = TreeFeatures(rng.normal(size=(int(sizes.sum()), 4)), structure, 3, edge_features=edge_features)
        if kind == "cliques":
            features = Stacked(features, CliqueFeatures(structure, 3, (1, 2, 3)))
    elif kind in ("clique-cut", "cut"):
        nodes, edges, offsets = [], [], [0]
        for _ in range(n):
            size = int(rng.integers(2, 6 if kind == "cut" else 5))
            pairs = [(j, k) for j in range(size) for k in range(j) if rng.random() < 0.6]
            nodes.append(size)
            edges += pairs
            offsets.append(len(edges))
        shape = np.array(nodes), np.array(edges, dtype=np.int64).reshape(-1, 2), np.array(offsets)
        node_edge = (
            PartFeatures(rng.normal(size=(sum(nodes), 3)), np.cumsum([0, *nodes])),
            PartFeatures(rng.random(size=(len(edges), 2)), offsets, sign=-1.0),
        )
        structure, features = Cut(*shape), Stacked(*node_edge)
        if kind == "clique-cut":
            structure = CliqueCut(*shape, random_cliques(rng, nodes))
            own = structure.cliques.offsets
            features = Stacked(*node_edge, TiedRows(rng.random(size=(int(own[-1]), 1)), own, 2))
    elif kind in ("associative", "clique-network", "graph"):
        nodes, edges, offsets, n_labels = [], [], [0], 3
        for _ in range(n):
            size = int(rng.integers(2, 5))
            edges += [(j, k) for j in range(size) for k in range(j) if rng.random() < 0.7]
            nodes.append(size)
            offsets.append(len(edges))
        pairs, rows = np.array(edges, dtype=np.int64).reshape(-1, 2), rng.normal(size=(sum(nodes), 3))
        node_features = TiedRows(rows, np.cumsum([0, *nodes]), n_labels)
        if kind == "graph":
            structure = PairwiseGraph(nodes, pairs, offsets, n_labels)
            edge_features = TiedRows(rng.normal(size=(len(edges), 1)), offsets, n_labels**2, constant=True)
        else:
            structure = Associative(nodes, pairs, offsets, n_labels)
            edge_features = TiedRows(rng.random(size=(len(edges), 2)), offsets, n_labels)
        features = Stacked(node_features, edge_features)
        if kind == "clique-network":
            structure = CliqueNetwork(nodes, pairs, offsets, n_labels, random_cliques(rng, nodes, most=2))
            own = structure.cliques.offsets
            features = Stacked(
                node_features, edge_features, TiedRows(rng.random(size=(int(own[-1]), 1)), own, n_labels)
            )
    else:
        shapes = rng.integers(1, 5, size=(n, 2))
        structure = Matching.dense(shapes)
        if kind == "matching-capacity":  # and its edges listed backwards
            order = np.lexsort([-np.arange(structure.n_parts), structure._example])
            capacity = np.full(shapes[:, 0].sum(), 2)
            structure = Matching(shapes, structure.edges[order], structure.blocks[0].offsets, left_capacity=capacity)
        features = PartFeatures(rng.normal(size=(structure.n_parts, 4)), structure.blocks[0].offsets)
    hidden = rng.normal(size=features.n_weights)
    mask = None
    if kind in ("associative", "clique-cut", "clique-network", "cut"):
        mask = np.arange(features.n_weights) >= (3 if kind.endswith("cut") else 9)
        hidden[mask] = np.abs(hidden[mask])
    elif signs:
        mask = np.arange(features.n_weights) % 2 == 0
    noise = np.zeros(structure.n_parts)
    noise[structure.variable_parts] = rng.normal(size=structure.starts[1])
    gold = structure.predict(features.scores(hidden) + noise).z
    loss = Hamming(1.0, 2.0) if not structure.categorical else Hamming()
    settings = region or {"C": 0.5}
    if "l1" in settings:
        chosen: L1 | L2 = L1(settings["l1"], mask, settings.get("C", np.inf))
    else:
        chosen = L2(nonnegative=mask, **settings)
    return Problem.build(structure, features, gold, loss, chosen)


def rebuilt(problem: Problem, **changes: Any) -> Problem:
    """The same problem with other options of :meth:`Problem.build`, such as example weights or a rescaling."""
    loss = Hamming() if problem.structure.categorical else Hamming(1.0, 2.0)
    options = {"rescaling": problem.rescaling, "slack": problem.slack, **changes}
    return Problem.build(problem.structure, problem.features, problem.gold_point, loss, problem.region, **options)


def run(problem: Problem, solver: Solver, *, tol: float = 1e-9, max_iter: int = 300, **options: Any) -> Solution:
    """Solve without the warning that a small budget brings; the status must be true."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solution = solve(problem, solver, stop=Stop(tol=tol, max_iter=max_iter), **options)
    honest(solution, tol)
    return solution


def honest(solution: Solution, tol: float) -> None:
    """Never "converged" with a gap above the tolerance or rounding."""
    if solution.status is Status.CONVERGED:
        certificate = solution.certificate
        near = 1.02 * tol  # making weights sparse may add a hundredth of the gap
        assert certificate.relative_gap <= near or certificate.gap <= certificate.rounding
    assert np.isfinite(solution.weights).all()
    assert np.isfinite(solution.certificate.primal)


def visit(problem: Problem, i: int, weights: FloatArray, examples: Any = None) -> tuple[FloatArray, float]:
    """``factor d_i`` and loss of the most violated output, seen by a step of dual averaging after one visit."""
    total, late = weights.copy(), np.zeros(len(weights))
    view = problem.examples() if examples is None else examples
    loss = _kernels.subgradient_pass(view, np.array([i]), 1.0, np.inf, np.zeros(0, dtype=np.uint8), total, late, 1.0)
    return (weights - total) / problem.structure.n_examples, loss


class FilePieces(PieceSource):
    """Pieces as files hold them: bytes, read anew at every use."""

    def __init__(self, problem: Problem, size: int, shards: int) -> None:
        held = HeldPieces.of(problem, size, shards)
        self.examples, self.parts = held.examples, held.parts
        self.data = [pickle.dumps(piece) for piece in held.held]

    def open(self, number: int) -> Piece:
        return pickle.loads(self.data[number])

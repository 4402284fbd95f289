"""Small saddle-point problems as plain arrays, for the twins written from the papers, and their iterates here."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from oracles.enumeration import vertices
from problems import make
from scipy.optimize import lsq_linear

from maxmargin.features.parts import PartFeatures, Stacked
from maxmargin.losses import Hamming
from maxmargin.optimization.run import Run
from maxmargin.optimization.solver import Start
from maxmargin.problem import Problem
from maxmargin.regions import L2
from maxmargin.solvers import Solver
from maxmargin.structures.base import FloatArray
from maxmargin.structures.cuts.cut import Cut

KINDS = ("chain", "chain-edges", "cut", "matching")


def game(kind: str, seed: int, **region: float) -> tuple[Problem, list[tuple[FloatArray, ...]]]:
    """A problem, and for each example ``F_i`` (weights x parts), ``c_i``, ``y_i`` and the vertices of ``Z_i``."""
    problem = _cuts(seed, **region) if kind == "cut" else make(kind, seed=seed, n=4, region=region)
    corners = _cut_vertices(problem.structure) if isinstance(problem.structure, Cut) else vertices(problem.structure)
    examples: list[tuple[FloatArray, ...]] = []
    for i, corner in enumerate(corners):
        one = problem.select([i])
        columns = [one.features.scores(unit) for unit in np.eye(problem.n_weights)]
        examples.append((np.array(columns), one.augmented(np.zeros(problem.n_weights)), one.gold, corner))
    return problem, examples


def iterates(problem: Problem, solver: Solver, count: int) -> Iterator[Any]:
    """The states after each of the first iterations, and what the solver keeps with the data, in one piece."""
    run = Run.of(problem, np.random.default_rng(0), solver.shard_size)
    state = solver.init(run, Start())
    for _ in range(count):
        state = solver.step(run, state)
        yield state, run.memories()[0]


def by_example(problem: Problem, z: FloatArray) -> list[FloatArray]:
    """A packed vector in the pieces of its examples."""
    example = problem.structure.to_parts(np.arange(problem.structure.n_examples))
    return [z[example == i] for i in range(problem.structure.n_examples)]


def project_z(a: Any, corners: Any) -> Any:
    """The nearest point to ``a`` of the hull of listed corners, by least squares up to a factor."""
    rows, to = np.vstack([(corners - a).T, np.ones(len(corners))]), np.append(np.zeros(len(a)), 1.0)
    mass = lsq_linear(rows, to, (0, np.inf), "bvls", tol=1e-16).x
    return mass @ corners / mass.sum()


def _cuts(seed: int, **region: float) -> Problem:
    rng = np.random.default_rng(seed)
    rings = [[(0, 1)], [(0, 1), (1, 2), (0, 2)], [(0, 1), (1, 2), (2, 3), (0, 3)]]
    edges, offsets = np.concatenate(rings), np.cumsum([0, *map(len, rings)])
    structure = Cut(np.array([2, 3, 4]), edges, offsets)
    features = Stacked(
        PartFeatures(rng.normal(size=(9, 3)), structure.blocks[0].offsets),
        PartFeatures(rng.random(size=(len(edges), 2)), structure.blocks[1].offsets, sign=-1.0),
    )
    hidden = np.append(rng.normal(size=3), rng.random(2))
    gold = structure.predict(features.scores(hidden) + np.append(rng.normal(size=9), np.zeros(len(edges)))).z
    return Problem.build(structure, features, gold, Hamming(1.0, 2.0), L2(nonnegative=np.arange(5) >= 3, **region))


def _cut_vertices(structure: Cut) -> list[FloatArray]:
    """Of ``|z_j - z_k| <= z_jk <= 1``: an edge whose ends agree is 0 or 1."""
    found, offsets = [], structure.blocks[1].offsets
    for i, size in enumerate(structure.n_nodes):
        edges = structure.edges[offsets[i] : offsets[i + 1]]
        corners = []
        for nodes in product([0.0, 1.0], repeat=int(size)):
            free = [[1.0] if nodes[j] != nodes[k] else [0.0, 1.0] for j, k in edges]
            corners += [[*nodes, *values] for values in product(*free)]
        found.append(np.array(corners))
    return found

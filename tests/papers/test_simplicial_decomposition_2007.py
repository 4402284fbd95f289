"""``SimplicialDecomposition.plain()`` against restricted simplicial decomposition as Yu and Rousu (2007) state it.

The twin is written from the paper alone: the reduced dual problems (7), (20) and (26), direction-finding (9), (21) and
(30), footnote 1 for the points that are kept. The small active-set solver of the master's quadratic program is a tool
outside the twin.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from oracles import training

import maxmargin as mm
from maxmargin.features.parts import PartFeatures
from maxmargin.losses import LabelCost
from maxmargin.optimization.run import Run
from maxmargin.optimization.solver import Start
from maxmargin.problem import Problem
from maxmargin.regions import L2
from maxmargin.structures.base import FloatArray
from maxmargin.structures.candidates import Candidates

ITERATIONS, C = 25, 0.3
CLEAR = 1e-6
"""Values and weights that differ by less decide nothing."""


def master(points: FloatArray, rest: FloatArray, simplex: FloatArray, q: FloatArray) -> FloatArray:
    """The q that maximizes Q(rest + q'points) with q >= 0 and simplex q = 1, from a feasible one; Q as in twin."""
    H, c, free = points[:, :-1] @ points[:, :-1].T, points[:, -1] - points[:, :-1] @ rest[:-1], q > 0
    while True:
        a, k = simplex[:, free], int(free.sum())
        kkt = np.block([[H[np.ix_(free, free)], a.T], [a, np.zeros((len(a), len(a)))]])
        solved = np.linalg.lstsq(kkt, np.append(c[free], np.ones(len(a))), rcond=1e-14)[0]
        to = np.zeros(len(q))
        to[free] = solved[:k]
        if (to[free] > 0).all():
            q, gain = to, np.where(free, 0.0, c - H @ to - simplex.T @ solved[k:])
            if gain.max(initial=0.0) <= 1e-12 * np.abs(points[:, -1]).max():
                return q
            free[np.argmax(gain)] = True
        else:
            low = free & (to <= 0)
            q = q + (to - q) * (q[low] / (q[low] - to[low])).min()
            free &= ~(low & (q <= 1e-15))


def twin(
    rows: list[FloatArray], r: float, sets: list[list[int]], turns: list[list[int]], cone: bool
) -> Iterator[FloatArray]:
    """Yields the sum over the examples of (beta, zeta, gamma) while the paper's text decides the next one.

    rows[i] are the extreme points of the example's set, or the rays of its cone, one for every output. Examples of one
    of the sets share a simplex or a cone; turns[k] are the sets of iteration k.
    """
    zero = np.zeros(rows[0].shape[1])
    S: list[list[FloatArray]] = [[] for _ in sets]
    X = [[] if cone else [zero] for _ in sets]
    x, q, unique = np.array([zero for _ in sets]), [np.ones(len(own)) for own in X], True
    for turn in turns:
        gradient = np.append(-x.sum(axis=0)[:-1], 1.0)
        for b in turn:
            z, decided = zero, True
            for i in sets[b]:
                value, decided = rows[i] @ gradient, decided and clear(-rows[i] @ gradient)
                z = z + rows[i][np.argmax(value)] * (not cone or value.max() > 1e-11)  # eqs. 9, 21; eq. 30
            known = any(np.allclose(z, s, atol=1e-13) for s in S[b] + X[b])
            if gradient @ (z if cone else z - x[b]) > 1e-11 and not known:
                if len(S[b]) == r:  # footnote 1; X stays empty where x is one of the points left
                    drop, mass = int(np.argmin(q[b][:r])), q[b].sum()
                    decided &= unique and clear(np.unique(q[b][:r]))
                    S[b], q[b] = S[b][:drop] + S[b][drop + 1 :], np.delete(q[b], drop)[: r - 1]
                    same = q[b].max(initial=0.0) == mass
                    X[b], q[b] = ([], q[b]) if same else ([x[b] / mass], mass * np.eye(r)[-1])
                S[b], q[b] = [*S[b], z], np.insert(q[b], len(S[b]), 0.0)
                if not decided:
                    return
        points = np.array([z for b in turn for z in (*S[b], *X[b])]).reshape(-1, len(zero))
        of = np.repeat(turn, [len(S[b]) + len(X[b]) for b in turn])
        simplex = np.array([of == b for b in turn if not cone], dtype=float).reshape(-1, len(of))
        weights = master(points, np.delete(x, turn, axis=0).sum(axis=0), simplex, np.concatenate([q[b] for b in turn]))
        for b in turn:
            q[b], x[b] = weights[of == b], weights[of == b] @ points[of == b]
        unique = independent(points, simplex, np.append(-x.sum(axis=0)[:-1], 1.0))
        yield x.sum(axis=0)


def clear(values: FloatArray) -> bool:
    """Whether one of the values is smaller than all others."""
    first, second = np.append(np.sort(values), np.inf)[:2]
    return bool(second > first + CLEAR)


def independent(points: FloatArray, simplex: FloatArray, gradient: FloatArray) -> bool:
    """Whether a master has one solution q: the points that may have weight are linearly independent."""
    value = points @ gradient
    best = (
        (simplex * np.where(simplex > 0, value, -np.inf).max(axis=1, keepdims=True)).sum(axis=0)
        if len(simplex)
        else 0.0
    )
    rows = np.hstack([points[:, :-1], simplex.T])[value > best - CLEAR]
    return bool(np.linalg.matrix_rank(rows, tol=1e-5) == len(rows)) if len(rows) else True


def posed(seed: int, hinge: str) -> tuple[Problem, list[FloatArray]]:
    """Five lists of outputs in general position, and for each output the twin's (beta, zeta, gamma).

    Q = gamma - 1/2 ||beta||^2 - 1/2 ||zeta||^2, so that zeta is the paper's divided by sqrt(C).
    """
    rescaling, slack = hinge.split(", ")
    rng = np.random.default_rng(seed)
    structure = Candidates(rng.integers(6, 14, size=5))
    features = PartFeatures(rng.normal(size=(structure.n_parts, 40)), structure.blocks[0].offsets)
    gold = structure.encode(rng.integers(0, 6, size=5))
    loss = LabelCost(rng.uniform(0.5, 2.0, size=(14, 14)) * (1.0 - np.eye(14)))
    problem = Problem.build(structure, features, gold, loss, L2(C=C), rescaling=rescaling, slack=slack)
    rows: list[list[FloatArray]] = [[] for _ in range(5)]
    for i, change, cost in training.rows(problem):
        if slack == "linear":
            rows[i].append(C * np.concatenate([change, np.zeros(5), [cost]]))
        else:
            rows[i].append(np.concatenate([change, np.eye(5)[i] / np.sqrt(C), [cost]]))
    return problem, [np.array(own) for own in rows]


MASTERS: dict[str, tuple[dict[str, Any], list[list[int]], list[list[int]]]] = {
    "product": ({}, [[i] for i in range(5)], [[0, 1, 2, 3, 4]]),
    "one": ({"master": "one"}, [[0, 1, 2, 3, 4]], [[0]]),
    "working set, product": (
        {"working_set": "cyclic", "working_set_size": 2},
        [[i] for i in range(5)],
        [[0, 1], [2, 3], [4]],
    ),
    "working set, one": (
        {"master": "one", "working_set": "cyclic", "working_set_size": 2},
        [[0, 1], [2, 3], [4]],
        [[0], [1], [2]],
    ),
}


@pytest.mark.parametrize("hinge", ["margin, linear", "slack, linear", "slack, quadratic", "margin, quadratic"])
@pytest.mark.parametrize("name", MASTERS)
def test_iterates_are_those_of_the_paper(name: str, hinge: str) -> None:
    """As long as the text decides them: it does not say which of two best outputs or two lightest points to take."""
    settings, sets, turns = MASTERS[name]
    for r in (1, 2, 3, 5, np.inf):
        solver = mm.SimplicialDecomposition.plain(r=r, **settings)
        for seed in range(20):
            problem, rows = posed(seed, hinge)
            run = Run.of(problem, np.random.default_rng(0))
            state, k = solver.init(run, Start()), 0
            rounds = (turns * ITERATIONS)[:ITERATIONS]
            for k, x in enumerate(twin(rows, r, sets, rounds, "quadratic" in hinge), 1):
                state = solver.step(run, state)
                where = f"r = {r}, seed {seed}, iteration {k}"
                np.testing.assert_allclose(state.weights, -x[:40], rtol=0, atol=1e-10, err_msg=where)
                assert state.loss * C == pytest.approx(x[-1], abs=1e-10), where
            if k == ITERATIONS:
                break
        assert k == ITERATIONS, f"r = {r}: no run of {ITERATIONS} iterations without ties"

"""Features in any units: whatever a run reports is true, and "converged" means converged.

Objectives are evaluated by enumeration in long double; the optimum comes from Exact on the same problem in units in
which features are about 1. Runs are short: most of them end on their budget, and must say so.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from oracles import enumeration
from oracles.structures import linear_program
from problems import make, run
from test_pairs import SOLVERS

import maxmargin as mm
from maxmargin.features.parts import PartFeatures, Stacked
from maxmargin.losses import Hamming
from maxmargin.optimization.certificate import BestBounds, Certificate, CertificateError, Proposal
from maxmargin.problem import Problem
from maxmargin.regions import L1, L2, Region
from maxmargin.solvers import Solution, Start, Status
from maxmargin.structures import LinearProgram
from maxmargin.structures.base import FloatArray

KINDS = ("candidates", "chain", "matching", "program", "tree")
SCALES = (1e-8, 1e-3, 1e2, 1e6, 1e8)
EPS = np.finfo(np.float64).eps


@cache
def base(kind: str, separable: bool) -> Problem:
    """A problem with features of size 1, each block of parts with weights of its own."""
    if kind == "program":
        rng = np.random.default_rng(0)
        rows = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0]])  # intervals, so that vertices are whole
        structure = LinearProgram([rows] * 3, [np.array([1.0, 2.0])] * 3)
        features = PartFeatures(rng.normal(size=(12, 3)), structure.blocks[0].offsets)
        gold = structure.argmax(features.scores(rng.normal(size=3)) + rng.normal(size=12)).z
        problem = Problem.build(structure, features, gold, Hamming(1.0, 2.0), L2(C=1.0))
    else:
        problem = make(kind, n=3, seed=2)
    if separable:
        hidden = np.random.default_rng(1).normal(size=problem.n_weights)
        gold = problem.structure.argmax(problem.features.scores(hidden)).z
        loss = Hamming() if problem.structure.categorical else Hamming(1.0, 2.0)
        problem = Problem.build(problem.structure, problem.features, gold, loss, problem.region)
    return problem


def posed(kind: str, size: float, region: Region, separable: bool = False, **hinge: str) -> Problem:
    """The problem with features of another size and a region as it is for these."""
    problem = base(kind, separable)
    matrix, structure = problem.features.to_sparse().toarray(), problem.structure
    blocks = [
        PartFeatures(size * matrix[structure.starts[b] : structure.starts[b + 1]], block.offsets)
        for b, block in enumerate(structure.blocks)
    ]
    return replace(problem, features=Stacked(*blocks), region=region, **hinge)


def in_units(region: Region, size: float) -> Region:
    """The region for features that are ``size`` times as large: weights are that much smaller."""
    if isinstance(region, L1):
        return L1(region.radius / size, None, region.C / size)
    assert isinstance(region, L2)
    return L2(region.C / size**2, region.radius / size)


@cache
def outputs(kind: str, separable: bool) -> list[FloatArray]:
    structure = base(kind, separable).structure
    return linear_program.vertices(structure) if kind == "program" else enumeration.vertices(structure)


def objective(kind: str, separable: bool, problem: Problem, weights: FloatArray) -> tuple[float, float]:
    """The objective by enumeration, and the size of its terms: rounding errors are a small multiple of EPS of it."""
    matrix, w = problem.features.to_sparse().toarray().astype(np.longdouble), weights.astype(np.longdouble)
    total = size = np.longdouble(0.0)
    for i, own in enumerate(outputs(kind, separable)):
        parts = problem.structure.parts_of([i])
        apart, costs = own - problem.gold[parts], problem.costs[parts]
        score, loss = apart @ (matrix[parts] @ w), apart @ costs
        wrong = np.abs(apart).sum(axis=1) > 1e-9
        hinge = {"margin": score + loss, "slack": loss * (1.0 + score), "none": wrong * (1.0 + score)}
        most = max(np.longdouble(0.0), hinge[problem.rescaling].max())
        terms = np.abs(costs).sum() + 2.0 * (np.abs(matrix[parts]) @ np.abs(w)).sum() + 1.0
        terms *= max(1.0, loss.max()) if problem.rescaling == "slack" else 1.0
        total += most if problem.slack == "linear" else most * most / 2
        size += terms if problem.slack == "linear" else (most + 1e-13 * terms) * terms
    penalty = problem.region.penalty(weights)
    return float(total + penalty), float(size + penalty)


@cache
def optimum(kind: str, separable: bool, region: Region, hinge: tuple[tuple[str, str], ...]) -> tuple[float, float]:
    """An interval that holds the optimum of the problem with features of size 1."""
    problem = posed(kind, 1.0, region, separable, **dict(hinge))
    solver = mm.Exact() if mm.Exact().unsupported(problem) is None else mm.ProjectedSubgradient()
    certificate = run(problem, solver, tol=1e-7, max_iter=300).certificate
    return certificate.dual, certificate.primal


def check(kind: str, separable: bool, size: float, problem: Problem, solution: Solution, tol: float) -> None:
    found, case = solution.certificate, f"{kind}, {size:g}, {problem.region}, {solution.solver}: {solution.message}"
    value, terms = objective(kind, separable, problem, solution.weights)
    rounding = 200 * EPS * terms
    assert abs(found.primal - value) <= rounding, f"{case}; the objective is {value}"
    hinge = (("rescaling", problem.rescaling), ("slack", problem.slack))
    lower, upper = optimum(kind, separable, in_units(problem.region, 1.0 / size), hinge)
    assert found.dual <= upper * (1 + 1e-6) + rounding, f"{case}; the optimum is at most {upper}"
    assert value >= lower * (1 - 1e-6) - rounding, f"{case}; the optimum is at least {lower}"
    if solution.status is Status.CONVERGED:
        assert value - upper <= 1.02 * tol * value + rounding, f"{case}; the optimum is at most {upper}"
        assert found.relative_gap <= 1.02 * tol or found.gap <= rounding, case


REGIONS: tuple[Region, ...] = (L2(C=0.5), L2(radius=0.7), L1(1.0), L1(np.inf, None, 0.5), L2(C=1.0, radius=0.5))
HINGES = ({}, {"slack": "quadratic"}, {"rescaling": "slack"}, {"rescaling": "slack", "slack": "quadratic"})


@pytest.mark.parametrize("name", SOLVERS)
def test_reports_are_true_in_any_units(name: str) -> None:
    solver, number = SOLVERS[name][0], list(SOLVERS).index(name)
    for at, size in enumerate(SCALES):
        for separable in (False, True):
            kind = KINDS[(number + at + separable) % len(KINDS)]
            supported = [
                (region, hinge)
                for region in REGIONS
                for hinge in HINGES
                if not (one := posed(kind, 1.0, region, separable, **hinge)).relaxed and not solver.unsupported(one)
            ]
            if not supported:
                continue
            region, hinge = supported[(7 * at + 3 * separable + number) % len(supported)]
            same_problem = (at + number + separable) % 2 == 0  # or another one, whose penalty hardly counts or too much
            problem = posed(kind, size, in_units(region, size) if same_problem else region, separable, **hinge)
            cold = run(problem, solver, tol=1e-3, max_iter=25, random_state=0)
            check(kind, separable, size, problem, cold, 1e-3)
            # Weights in other units, with all that the run has left behind.
            start = Start(1e7 * cold.weights, cold.duals, cold.potentials, cold.active_set)
            warm = run(problem, solver, tol=1e-3, max_iter=25, random_state=0, start=start)
            check(kind, separable, size, problem, warm, 1e-3)


def test_a_large_first_objective_does_not_make_a_gap_rounding() -> None:
    """A gap of 1e-12 of the first objective, 1e15 here, is not rounding where the objective has fallen to 100."""
    rng, lengths = np.random.default_rng(0), np.full(40, 5)
    rows = rng.normal(size=(200, 3))
    structure = mm.structures.Chain(lengths, 2)
    gold = structure.encode(np.split(rng.integers(0, 2, size=200), 40))
    features = mm.features.ChainFeatures(1e6 * rows, lengths, 2)
    problem = Problem.build(structure, features, gold, Hamming(), L2(C=1.0))
    solver = mm.ExponentiatedGradient(implicit=False)
    explicit = run(problem, solver, tol=1e-3, max_iter=100, random_state=0)
    assert explicit.history[0].primal > 1e14
    assert explicit.certificate.relative_gap > 0.1
    assert explicit.status is Status.BUDGET
    assert explicit.certificate.rounding < 1e-9 * explicit.certificate.primal


def test_a_large_first_objective_does_not_hide_a_contradiction() -> None:
    problem = base("chain", separable=False)
    weights, bounds = np.zeros(problem.n_weights), BestBounds(problem, minimizes=True)
    first, last = Certificate(5e15, 0.0, 5e15, primal_rounding=70.0), Certificate(1.0, 0.5, 1.0, primal_rounding=1e-13)
    for certificate in (first, last):
        bounds.update(Proposal(weights, weights, 0.0), certificate)
    with pytest.raises(CertificateError, match=r"the lower bound 1\.5 is above the objective 1"):
        bounds.update(Proposal(weights, weights, 0.0), Certificate(2.0, 1.5, 2.0, dual_rounding=1e-13))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_separable_data_end_at_rounding(kind: str, size: float) -> None:
    """Without regularization their hinge loss falls to 0, but for rounding errors of scores that are not small."""
    problem = posed(kind, size, L2(), separable=True)
    solution = run(problem, mm.ProjectedSubgradient(), tol=1e-3, max_iter=3000)
    assert solution.status is Status.CONVERGED, solution.message
    value, terms = objective(kind, True, problem, solution.weights)
    assert value <= 200 * EPS * terms

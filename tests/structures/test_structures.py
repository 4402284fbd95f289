"""All structures, by the promises that every structure makes, and by enumeration where that is possible."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from data import PickOne
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import reference
from oracles.enumeration import vertices
from problems import RELAXED, STRUCTURES, make

from maxmargin import threads
from maxmargin.structures import (
    Chain,
    Cut,
    Lattice,
    LinearProgram,
    Matching,
    PairwiseGraph,
    Points,
    PointStatus,
    Structure,
    Tree,
)
from maxmargin.structures.networks.network import Network
from maxmargin.testing import check_structure

EXACT = [kind for kind in STRUCTURES if kind not in RELAXED]
KINDS = (*STRUCTURES, "program")
OK, NONFINITE, ABSENT = PointStatus.OK, PointStatus.NONFINITE, PointStatus.ABSENT


def batch(kind: str, *, n: int = 4, seed: int = 0) -> Structure:
    if kind != "program":
        return make(kind, seed=seed, n=n).structure
    rng = np.random.default_rng(seed)
    rows = [rng.integers(-1, 2, size=(2, size)).astype(float) for size in rng.integers(1, 6, size=n)]
    return LinearProgram(rows, [row.clip(min=0.0).sum(axis=1) / 2 for row in rows])


def methods(structure: Structure) -> dict[str, Callable[..., list[Points]]]:
    """All that a structure does with a packed vector, by name."""
    found = {
        "argmax": lambda scores: [structure.argmax(scores)],
        "project": lambda scores: [structure.project(scores)],
        "predict": lambda scores: [structure.predict(scores)],
    }
    if not isinstance(structure, Network):
        found["k_best"] = lambda scores: structure.k_best(scores, 3)
    if not structure.marginals_unsupported:
        found["marginals"] = lambda scores: [structure.marginals(scores)]
    return found


def scores_for(structure: Structure, rng: np.random.Generator) -> np.ndarray:
    """Random scores, with ties now and then; on cuts edges and cliques attract."""
    scores = np.round(rng.normal(size=structure.n_parts), int(rng.integers(0, 4)))
    if isinstance(structure, Cut):
        edges, cliques = slice(structure.starts[1], structure.starts[2]), slice(structure.starts[2], None)
        scores[edges], scores[cliques] = -np.abs(scores[edges]), np.abs(scores[cliques])
    return scores


@pytest.mark.parametrize("kind", STRUCTURES)
def test_promises(kind: str) -> None:
    for seed in range(5):
        check_structure(make(kind, seed=seed).structure, np.random.default_rng(seed))


def test_promises_that_are_broken() -> None:
    class Blurred(Chain):
        def marginals(self, potentials: np.ndarray) -> Points:
            found = super().marginals(potentials)
            return replace(found, z=super().marginals(0.9 * potentials).z)

    class Improper(PairwiseGraph):
        def predict(self, scores: np.ndarray) -> Points:
            return self.argmax(scores)

    with pytest.raises(AssertionError, match="gradient of the value"):
        check_structure(Blurred([2, 3], 3, transitions="each"), np.random.default_rng(0))
    with pytest.raises(AssertionError, match="must be z"):
        check_structure(Improper([3], [[0, 1], [1, 2], [2, 0]], [0, 3], 2), np.random.default_rng(0), rounds=30)


def test_categorical_must_be_declared() -> None:
    with pytest.raises(TypeError, match="Silent must declare `categorical`: True if each variable"):
        type("Silent", (Structure,), {})
    with pytest.raises(TypeError, match="Half is categorical and must declare `states_per_variable`"):
        type("Half", (Structure,), {"categorical": True})


def test_categorical_must_be_true() -> None:
    class Parts(Chain):
        categorical, states_per_variable = False, 1

    class Lists(PickOne):
        categorical, states_per_variable = False, 1

    class Wider(PickOne):
        states_per_variable = 2

    class Cuts(Cut):
        categorical, states_per_variable = True, 1

    for structure, message in [
        (Parts([2, 3], 3), r"begin at \[0, 3, 6, 9, 12\]: declare categorical = True"),
        (Lists([2, 3]), r"begin at \[0, 2\]: declare categorical = True"),
        (Wider([2, 3]), "states_per_variable: must add up"),
        (Cuts([2], [[0, 1]], [0, 1]), "a variable without exactly one state"),
    ]:
        with pytest.raises(AssertionError, match=message):
            check_structure(structure, np.random.default_rng(0))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(kind=st.sampled_from(EXACT), seed=st.integers(0, 10_000), k=st.integers(1, 7))
def test_argmax_and_k_best_equal_enumeration(kind: str, seed: int, k: int) -> None:
    structure = make(kind, seed=seed, n=3).structure
    scores = scores_for(structure, np.random.default_rng(seed))
    ranks = structure.k_best(scores, k)
    best = structure.argmax(scores)
    assert len(ranks) == min(k, max(len(outputs) for outputs in vertices(structure)))
    for i, outputs in enumerate(vertices(structure)):
        worth = np.sort(outputs @ scores[structure.parts_of([i])])[::-1]
        assert best.value[i] == pytest.approx(worth[0], abs=1e-9)
        for r, points in enumerate(ranks):
            if r < len(worth):
                assert points.value[i] == pytest.approx(worth[r], abs=1e-9)
            else:
                assert points.status[i] == PointStatus.ABSENT


@pytest.mark.parametrize("k", [10**6, 10**13])
@pytest.mark.parametrize(
    ("structure", "outputs"),
    [
        (Chain([2, 3], 2), [4, 8]),
        (Chain([70], 1), [1]),
        (Cut([2, 3], [[0, 1], [1, 2]], [0, 1, 2]), [4, 8]),
        (Lattice.confusion_network([2, 3, 1, 4], [0, 2, 4]), [6, 4]),
        (Matching.dense([(2, 2), (1, 2)]), [7, 3]),
        (Tree([2, 3], [2, 3, 1, 2, 2], [[0, 1], [1, 2]], [0, 0, 2]), [6, 4]),
    ],
    ids=["chain", "one label", "cut", "lattice", "matching", "tree"],
)
def test_k_best_lists_no_more_ranks_than_there_are_outputs(structure: Structure, outputs: list[int], k: int) -> None:
    ranks = structure.k_best(np.zeros(structure.n_parts), k)
    assert len(ranks) == max(outputs)
    for i, count in enumerate(outputs):
        assert [points.status[i] for points in ranks] == [OK] * count + [ABSENT] * (len(ranks) - count)


def test_k_best_of_more_ranks_than_fit() -> None:
    for long in (Chain([100], 3), Tree([100], 3, np.zeros((0, 2), dtype=int), [0, 0])):
        with pytest.raises(ValueError, match="k must be below"):
            long.k_best(np.zeros(long.n_parts), 10**13)


@pytest.mark.parametrize("kind", KINDS)
def test_one_rule_for_indices(kind: str) -> None:
    structure = batch(kind, n=3)
    for wrong in (-1, 3):
        for method in (structure.select, structure.parts_of):
            with pytest.raises(ValueError, match=r"indices must lie in 0\.\.2"):
                method([0, wrong])
    for method in (structure.select, structure.parts_of):
        for odd in ([0.5], [True, False, True], [[0, 1]], 0):
            with pytest.raises(ValueError, match="one-dimensional array of integers"):
                method(odd)


@pytest.mark.parametrize("kind", KINDS)
def test_one_rule_for_tolerances(kind: str) -> None:
    structure = batch(kind, n=3)
    point = np.random.default_rng(0).normal(size=structure.n_parts)
    for tol in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="tol must be a finite number >= 0"):
            structure.project(point, tol=tol)
    exact = structure.project(point, tol=0)
    assert (exact.status == PointStatus.OK).all()
    np.testing.assert_allclose(exact.z, structure.project(point).z, atol=2e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_one_rule_for_shapes_and_ranks(kind: str) -> None:
    structure = batch(kind)
    for method in (*methods(structure).values(), structure.decode):
        with pytest.raises(ValueError, match=rf"must have shape \({structure.n_parts},\)"):
            method(np.zeros(structure.n_parts + 1))
    if "k_best" in methods(structure):
        with pytest.raises(ValueError, match="k must be an integer >= 1"):
            structure.k_best(np.zeros(structure.n_parts), 0)


@pytest.mark.parametrize("kind", KINDS)
def test_same_bits_for_any_number_of_threads_and_in_any_company(kind: str) -> None:
    structure, rng = batch(kind, n=40), np.random.default_rng(0)
    scores, costs = scores_for(structure, rng), rng.random(structure.n_parts)
    costs[structure.starts[1] :] = 0.0
    asked = rng.normal(size=40), costs, np.zeros(40)
    found = []
    for count in (1, 2, 3):
        with threads(count):
            points = {name: method(scores) for name, method in methods(structure).items()}
            points["warm"] = [structure.project(scores + 0.1, warm=points["project"][0].warm)]
            points["slack"] = [structure.slack_argmax(scores, *asked)]
        found.append(points)
    for other in found[1:]:
        for name, points in found[0].items():
            for one, two in zip(points, other[name], strict=True):
                for field in ("z", "value", "status", *(["warm"] if isinstance(one.warm, np.ndarray) else [])):
                    np.testing.assert_array_equal(getattr(one, field), getattr(two, field), err_msg=name)
    chosen = [5, 30, 30, 1, *range(10, 20)]
    parts, some = structure.parts_of(chosen), structure.select(chosen)
    picked = {name: method(scores[parts]) for name, method in methods(some).items()}
    picked["slack"] = [some.slack_argmax(scores[parts], asked[0][chosen], costs[parts], np.zeros(len(chosen)))]
    np.testing.assert_array_equal(some.part_bound, structure.part_bound[parts])
    for name, points in picked.items():
        for one, two in zip(points, found[0][name], strict=False):
            atol = 1e-9 if kind == "program" or (kind in RELAXED and name != "project") else 0.0
            np.testing.assert_allclose(one.value, two.value[chosen], rtol=atol, atol=atol, err_msg=name)
            if not atol or name == "project":
                np.testing.assert_allclose(one.z, two.z[parts], rtol=0.0, atol=atol, err_msg=name)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_that_are_not_finite_spoil_only_their_example(kind: str, bad: float) -> None:
    structure = batch(kind, n=5)
    scores, sick = scores_for(structure, np.random.default_rng(3)), int(np.argmax(structure.sizes))
    fine = np.flatnonzero(np.arange(5) != sick)
    own, others = structure.parts_of([sick]), structure.parts_of(fine)
    warm = structure.project(scores).warm
    calls = {**methods(structure), "warm": lambda point: [structure.project(point, warm=warm)]}
    for block, start in zip(structure.blocks, structure.starts, strict=False):
        for at in range(int(start + block.offsets[sick]), int(start + block.offsets[sick + 1])):
            spoiled = scores.copy()
            spoiled[at] = bad
            for name, method in calls.items():
                forbids = structure.forbids or name == "marginals"
                if bad == -np.inf and forbids and name not in ("project", "warm"):
                    continue  # there it forbids a part
                for clean, points in zip(method(scores), method(spoiled), strict=False):
                    assert points.status[sick] == NONFINITE, name
                    assert np.isnan(points.value[sick]) or points.value[sick] == 0.0
                    assert not points.z[own].any(), name
                    atol = 1e-9 * (kind == "program")
                    np.testing.assert_allclose(points.z[others], clean.z[others], rtol=0.0, atol=atol)
                    np.testing.assert_allclose(points.value[fine], clean.value[fine], rtol=0.0, atol=atol)
                    np.testing.assert_array_equal(points.status[fine], clean.status[fine])


@pytest.mark.parametrize("kind", KINDS)
def test_no_examples(kind: str) -> None:
    empty = batch(kind).select([])
    assert (empty.n_examples, empty.n_parts) == (0, 0)
    for name, method in methods(empty).items():
        (points,) = method(np.zeros(0))
        assert points.z.shape == points.value.shape == points.status.shape == (0,), name
    assert empty.slack_argmax(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0)).value.shape == (0,)
    assert empty.decode(np.zeros(0)) == []
    assert empty.encode([]).shape == (0,)


@pytest.mark.parametrize("kind", KINDS)
def test_copies_of_structures(kind: str) -> None:
    structure = batch(kind, n=3)
    point = np.random.default_rng(0).normal(size=structure.n_parts)
    before = structure.argmax(point), structure.project(point)
    for again in (copy.deepcopy(structure), pickle.loads(pickle.dumps(structure))):
        for one, two in zip(before, (again.argmax(point), again.project(point)), strict=True):
            np.testing.assert_array_equal(one.z, two.z)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(kind=st.sampled_from(STRUCTURES), seed=st.integers(0, 10_000), scale=st.sampled_from([0.1, 1.0, 10.0]))
def test_projection_is_the_nearest_point(kind: str, seed: int, scale: float) -> None:
    structure = make(kind, seed=seed, n=3).structure
    point = scale * np.random.default_rng(seed).normal(size=structure.n_parts)
    points = structure.project(point)
    assert (points.status == PointStatus.OK).all()
    # Nothing in Z is farther in the direction of the residual: the optimality condition, exact at any size.
    residual = point - points.z
    gap = structure.argmax(residual).value - structure.by_example(residual * points.z)
    assert gap.max() <= 1e-8 * (1.0 + np.abs(point).max())
    # An interior-point method whose objective is exact to 1e-12 is 1e-6 away from the minimizer at worst.
    np.testing.assert_allclose(points.z, reference.project(structure, point), atol=1e-5 * (1.0 + scale))
    assert reference.maximum(structure, residual) <= float(residual @ points.z) + 1e-7 * (1.0 + scale) ** 2
    np.testing.assert_allclose(structure.project(points.z).z, points.z, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_warm_projection_gives_the_same_point(kind: str) -> None:
    structure = batch(kind, n=6)
    rng = np.random.default_rng(0)
    point = rng.normal(size=structure.n_parts)
    warm = structure.project(point).warm
    for _ in range(5):
        point = point + 0.3 * rng.normal(size=structure.n_parts)
        started = structure.project(point, warm=warm)
        np.testing.assert_allclose(started.z, structure.project(point).z, atol=1e-8)
        warm = started.warm


def test_negative_edge_target_of_the_report() -> None:
    """Where eq. (23) of the 2005 report, taken literally, goes wrong."""
    structure = Cut([2], [[0, 1]], [0, 1])
    np.testing.assert_allclose(structure.project(np.array([0.8, 0.3, -0.4])).z, [0.55, 0.55, 0.0], atol=1e-9)

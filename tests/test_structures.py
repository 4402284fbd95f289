"""All structures, by the promises that every structure makes, and by enumeration where that is possible."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import STRUCTURES, make

from maxmargin.structures import Cut, PointStatus, Structure
from maxmargin.testing import chain, check_structure, cut, matching, reference

VERTICES = {"chain": chain.vertices, "cut": cut.vertices, "matching": matching.vertices}


def vertices(structure: Structure) -> list[np.ndarray]:
    return VERTICES[structure.name](structure)


def scores_for(structure: Structure, rng: np.random.Generator) -> np.ndarray:
    """Random scores, with ties now and then; on cuts the edges attract."""
    scores = np.round(rng.normal(size=structure.n_parts), int(rng.integers(0, 4)))
    if isinstance(structure, Cut):
        scores[structure.starts[1] :] = -np.abs(scores[structure.starts[1] :])
    return scores


@pytest.mark.parametrize("kind", STRUCTURES)
def test_promises(kind: str) -> None:
    for seed in range(5):
        check_structure(make(kind, seed=seed).structure, np.random.default_rng(seed))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(kind=st.sampled_from(STRUCTURES), seed=st.integers(0, 10_000), k=st.integers(1, 7))
def test_argmax_and_k_best_equal_enumeration(kind: str, seed: int, k: int) -> None:
    structure = make(kind, seed=seed, n=3).structure
    scores = scores_for(structure, np.random.default_rng(seed))
    ranks = structure.k_best(scores, k)
    best = structure.argmax(scores)
    for i, outputs in enumerate(vertices(structure)):
        worth = np.sort(outputs @ scores[structure.parts_of([i])])[::-1]
        assert best.value[i] == pytest.approx(worth[0], abs=1e-9)
        for r, points in enumerate(ranks):
            if r < len(worth):
                assert points.value[i] == pytest.approx(worth[r], abs=1e-9)
            else:
                assert points.status[i] == PointStatus.ABSENT


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
    # An interior-point method whose objective is exact to 1e-12 is 1e-6 away from the minimiser at worst.
    np.testing.assert_allclose(points.z, reference.project(structure, point), atol=1e-5 * (1.0 + scale))
    assert reference.maximum(structure, residual) <= float(residual @ points.z) + 1e-7 * (1.0 + scale) ** 2
    np.testing.assert_allclose(structure.project(points.z).z, points.z, atol=1e-8)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_warm_projection_gives_the_same_point(kind: str) -> None:
    structure = make(kind, n=6).structure
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

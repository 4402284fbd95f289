"""Associative networks with cliques: what test_structures.py, which takes them as one more kind, does not ask."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import certificate, grid, random_graphs
from oracles import reference
from oracles.enumeration import vertices
from oracles.structures import network
from problems import random_cliques

from maxmargin import _kernels
from maxmargin.structures import Associative, CliqueCut, CliqueNetwork, PointStatus

SETTINGS = settings(deadline=None, derandomize=True, max_examples=30)


def random_batch(rng: np.random.Generator, examples: int, labels: int, most: int = 5) -> CliqueNetwork:
    counts, edges, offsets = random_graphs(rng, examples, most)
    return CliqueNetwork(counts, edges, offsets, labels, random_cliques(rng, counts))


@SETTINGS
@given(seed=st.integers(0, 10**6), labels=st.integers(1, 4), attract=st.booleans())
def test_relaxation_equals_linear_program_and_bounds_all_labelings(seed: int, labels: int, attract: bool) -> None:
    rng = np.random.default_rng(seed)
    structure = random_batch(rng, 3, labels)
    scores = rng.normal(size=structure.n_parts)
    if attract:
        scores[structure.starts[1] :] = np.abs(scores[structure.starts[1] :])
    relaxed, points = structure.relax(scores)
    again = structure.argmax(scores, warm=relaxed.warm)
    for found in (relaxed, again):
        assert not found.status.any()
        if structure.n_parts:
            assert network.feasibility(structure, found.z) <= 1e-12
            assert found.value.sum() == pytest.approx(reference.maximum(structure, scores), abs=1e-7)
        np.testing.assert_allclose(found.value, structure.by_example(scores * found.z), atol=1e-8)
    np.testing.assert_array_equal(structure.encode(structure.decode(points.z)), points.z)
    np.testing.assert_allclose(points.value, structure.by_example(scores * points.z), atol=1e-12)
    for i, outputs in enumerate(vertices(structure)):
        best = (outputs @ scores[structure.parts_of([i])]).max()
        assert points.value[i] <= best + 1e-9
        assert relaxed.value[i] >= best - 1e-9
        if points.status[i] == PointStatus.OK or (attract and labels <= 2):
            assert points.value[i] == pytest.approx(best, abs=1e-8)


@SETTINGS
@given(seed=st.integers(0, 10**6))
def test_two_labels_equal_a_cut(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 7, size=4).tolist()
    cliques = random_cliques(rng, counts, most=5)
    cut, structure = CliqueCut(counts, [], [0] * 5, cliques), CliqueNetwork(counts, [], [0] * 5, 2, cliques)
    nodes, rewards = rng.normal(size=(sum(counts), 2)), rng.random(size=2 * len(cut.cliques))
    best = cut.argmax(np.concatenate([nodes[:, 1] - nodes[:, 0], rewards]))
    all_zero = cut.by_variables(nodes[:, 0])
    relaxed, points = structure.relax(np.concatenate([nodes.ravel(), rewards]))
    np.testing.assert_allclose(relaxed.value, best.value + all_zero, atol=1e-8)
    np.testing.assert_allclose(points.value, relaxed.value, atol=1e-8)
    assert not points.status.any()
    assert not structure.relaxed
    assert random_batch(rng, 1, 3).relaxed


@SETTINGS
@given(seed=st.integers(0, 10**6), labels=st.integers(1, 2), k=st.integers(1, 4))
def test_the_k_best_of_two_labels_are_those_of_all_labelings(seed: int, labels: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_batch(rng, 3, labels, most=4)
    scores = rng.normal(size=structure.n_parts)
    scores[structure.starts[1] :] = np.abs(scores[structure.starts[1] :])
    ranks = structure.k_best(scores, k)
    for i, outputs in enumerate(vertices(structure)):
        worth = np.sort(outputs @ scores[structure.parts_of([i])])[::-1]
        for r, points in enumerate(ranks):
            wanted = worth[r] if r < len(worth) else -np.inf
            assert points.value[i] == pytest.approx(wanted, abs=1e-9)


def test_a_batch_without_cliques_is_an_associative_network() -> None:
    rng = np.random.default_rng(2)
    shape = random_graphs(rng, 4, 6)
    plain, cliques = Associative(*shape, 3), CliqueNetwork(*shape, 3, [[] for _ in range(4)])
    scores = rng.normal(size=plain.n_parts)
    np.testing.assert_allclose(cliques.argmax(scores).value, plain.argmax(scores).value, atol=1e-9)
    np.testing.assert_allclose(cliques.project(scores).z, plain.project(scores).z, atol=1e-7)


def test_labelings_of_squares_of_a_grid_are_near_the_bound() -> None:
    """No change of a single node or of all nodes of a clique improves a labeling: both are expansion moves."""
    rng = np.random.default_rng(3)
    at = np.arange(144).reshape(12, 12)
    squares = [at[i : i + 4, j : j + 4].ravel().tolist() for i in range(0, 12, 4) for j in range(0, 12, 4)]
    squares += [at[i : i + 4, j : j + 4].ravel().tolist() for i in (2, 6) for j in (2, 6)]
    structure = CliqueNetwork([144], grid(12, 12), [0, 264], 3, [squares])
    scores = np.concatenate([rng.normal(size=432), 0.3 * rng.random(264 * 3), 4.0 * rng.random(len(squares) * 3)])
    relaxed, points = structure.relax(scores)
    assert relaxed.value[0] >= points.value[0] - 1e-9
    assert points.value[0] >= 0.97 * relaxed.value[0]
    assert points.value[0] >= scores @ structure.encode(structure.decode(relaxed.z)).dense() - 1e-9
    found = structure.decode(points.z)[0]
    for nodes in (*squares, *([node] for node in range(0, 144, 13))):
        for label in range(3):
            moved = found.copy()
            moved[nodes] = label
            assert scores @ structure.encode([moved]).dense() <= points.value[0] + 1e-9


@SETTINGS
@given(seed=st.integers(0, 10**6), labels=st.integers(1, 4), scale=st.sampled_from([0.3, 1.0, 30.0]))
def test_projection_equals_interior_point(seed: int, labels: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    structure = random_batch(rng, 3, labels)
    point = scale * rng.normal(0.2, 1.0, size=structure.n_parts)
    points = structure.project(point, tol=1e-10)
    assert not points.status.any()
    if not structure.n_parts:
        return
    assert network.feasibility(structure, points.z) <= 1e-12
    np.testing.assert_allclose(points.value, 0.5 * structure.by_example((points.z - point) ** 2), rtol=1e-12)
    assert np.all(certificate(structure, point, points.z) <= 1e-8 * (1.0 + scale))
    np.testing.assert_allclose(points.z, reference.project(structure, point), atol=1e-5 * (1.0 + scale))
    warm = structure.project(point, tol=1e-10, warm=rng.normal(size=points.warm.shape))
    np.testing.assert_allclose(warm.z, points.z, atol=1e-8)


@pytest.mark.parametrize("scale", [1e-6, 0.3, 3.0, 1e5])
def test_large_projection_is_certified_by_its_argmax(scale: float) -> None:
    rng = np.random.default_rng(5)
    at = np.arange(100).reshape(10, 10)
    squares = [at[i : i + 5, j : j + 5].ravel() for i in (0, 5) for j in (0, 5)]
    structure = CliqueNetwork([100], grid(10, 10), [0, 180], 3, [[*squares, range(100)]])
    point = scale * rng.normal(size=structure.n_parts) + 0.3
    points = structure.project(point)
    assert points.status[0] == PointStatus.OK
    assert network.feasibility(structure, points.z) <= 1e-12
    assert certificate(structure, point, points.z)[0] <= 1e-8 * (1.0 + np.abs(point - points.z).sum())
    moved = point + 0.1 * scale * rng.normal(size=structure.n_parts)
    cold, warm = structure.project(moved), structure.project(moved, warm=points.warm)
    np.testing.assert_allclose(cold.z, warm.z, atol=1e-7)
    np.testing.assert_allclose(structure.project(points.z).z, points.z, atol=1e-8)


def test_kernel_refuses_what_it_could_not_read_safely() -> None:
    good = [np.array(own, dtype=np.int64) for own in ([0, 2, 5], [0, 1, 2], [0, 0, 1], [0, 2, 4, 7])]
    members = np.array([0, 1, 1, 2, 0, 1, 2], dtype=np.int32)
    batch = _kernels.CliqueBatch(*good, members)
    for position, wrong in (
        (0, []),
        (0, [0, 2, 4]),
        (0, [0, 5]),
        (1, [0, 2, 1]),
        (1, [1, 1, 2]),
        (2, [0, 0, 2]),
        (3, [0, 2, 4]),
        (3, [0, 2, 4, 8]),
        (3, [0, 5, 4, 7]),
    ):
        changed = [*good[:position], np.array(wrong, dtype=np.int64), *good[position + 1 :]]
        with pytest.raises(ValueError):
            _kernels.CliqueBatch(*changed, members)
    for wrong in (-1, 3):
        with pytest.raises(ValueError, match="not a node of its example"):
            _kernels.CliqueBatch(*good, np.array([0, 1, 1, 2, 0, 1, wrong], dtype=np.int32))
    z, value, status = np.empty(16), np.empty(2), np.empty(2, dtype=np.int8)
    rest = z, value, np.empty(2), status, 1
    _kernels.clique_project(batch, 2, np.zeros(16), 1e-6, 10, np.zeros((7, 2)), *rest)
    for labels, parts, tol, multipliers in ((0, 16, 0.0, 14), (2, 15, 0.0, 14), (2, 16, -1.0, 14), (2, 16, 0.0, 13)):
        with pytest.raises(ValueError):
            _kernels.clique_project(batch, labels, np.zeros(parts), tol, 10, np.zeros(multipliers), *rest)

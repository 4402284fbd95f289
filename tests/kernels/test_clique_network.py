"""Associative networks with cliques: what test_structures.py, which takes them as one more kind, does not ask."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import grid, random_graphs
from oracles import network, reference
from oracles.enumeration import vertices
from problems import random_cliques

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

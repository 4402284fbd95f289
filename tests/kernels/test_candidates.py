"""Lists of candidates against enumeration and an independent solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.enumeration import vertices
from oracles.reference import project as reference_project

from maxmargin.structures import PointStatus
from maxmargin.structures.candidates import Candidates

OK, NONFINITE, ABSENT = PointStatus.OK, PointStatus.NONFINITE, PointStatus.ABSENT

lists = st.lists(st.integers(1, 6), min_size=1, max_size=6)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(sizes=lists, seed=st.integers(0, 10_000), scale=st.sampled_from([1e-12, 1.0, 1e8]), ties=st.booleans())
def test_argmax_k_best_and_slack_by_enumeration(sizes: list[int], seed: int, scale: float, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    structure = Candidates(sizes)
    scores = scale * (rng.integers(0, 3, size=structure.n_parts) if ties else rng.normal(size=structure.n_parts))
    costs, constants, margin = rng.random(structure.n_parts), rng.random(len(sizes)), rng.normal(size=len(sizes))
    best, slack = structure.argmax(scores), structure.slack_argmax(scores, margin, costs, constants)
    ranks = structure.k_best(scores, 4)
    for i, outputs in enumerate(vertices(structure)):
        own = slice(*structure.blocks[0].offsets[i : i + 2])
        values = outputs @ scores[own]
        assert best.value[i] == values.max()
        assert int(best.z[own].argmax()) == int(values.argmax())
        product = (outputs @ costs[own] + constants[i]) * (margin[i] + values)
        assert slack.value[i] == pytest.approx(max(product.max(), 0.0))
        falling = np.sort(values)[::-1]
        for r, rank in enumerate(ranks):
            assert rank.status[i] == (OK if r < len(values) else ABSENT)
            assert rank.value[i] == (falling[r] if r < len(values) else -np.inf)
    assert len(ranks) == min(4, max(sizes))


@settings(deadline=None, derandomize=True, max_examples=30)
@given(sizes=lists, seed=st.integers(0, 10_000), scale=st.sampled_from([1e-3, 1.0, 5.0]))
def test_projection_by_an_independent_solver(sizes: list[int], seed: int, scale: float) -> None:
    structure = Candidates(sizes)
    point = scale * np.random.default_rng(seed).normal(size=structure.n_parts)
    found = structure.project(point)
    np.testing.assert_allclose(found.z, reference_project(structure, point), atol=1e-6)
    np.testing.assert_allclose(structure.by_example(found.z), 1.0, rtol=1e-15)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e8])
def test_projection_of_long_lists_is_certified_by_the_argmax(scale: float) -> None:
    rng = np.random.default_rng(0)
    structure = Candidates([1, 20_000, 3, 5000])
    for point in (scale * rng.normal(size=structure.n_parts), np.full(structure.n_parts, scale)):
        found = structure.project(point)
        assert (found.z >= 0).all()
        np.testing.assert_allclose(structure.by_example(found.z), 1.0, rtol=1e-12)
        residual = point - found.z
        gap = structure.argmax(residual).value - structure.by_example(residual * found.z)
        assert (gap <= 1e-11 * (1.0 + scale)).all()


@settings(deadline=None, derandomize=True, max_examples=30)
@given(sizes=lists, seed=st.integers(0, 10_000), scale=st.sampled_from([1e-3, 1.0, 1e4]))
def test_marginals_is_a_softmax(sizes: list[int], seed: int, scale: float) -> None:
    structure = Candidates(sizes)
    potentials = scale * np.random.default_rng(seed).normal(size=structure.n_parts)
    found = structure.marginals(potentials)
    for i in range(len(sizes)):
        own = slice(*structure.blocks[0].offsets[i : i + 2])
        value = np.logaddexp.reduce(potentials[own])
        assert found.value[i] == pytest.approx(value)
        np.testing.assert_allclose(found.z[own], np.exp(potentials[own] - value), rtol=1e-9, atol=1e-12)


def test_forbidden_candidates() -> None:
    found = Candidates([2, 2]).marginals(np.array([-np.inf, 1.0, -np.inf, -np.inf]))
    np.testing.assert_array_equal(found.z, [0.0, 1.0, 0.0, 0.0])
    np.testing.assert_array_equal(found.status, [OK, ABSENT])
    np.testing.assert_array_equal(found.value, [1.0, -np.inf])


def test_lists_of_one() -> None:
    one = Candidates([1, 1])
    np.testing.assert_array_equal(one.project(np.array([-3.0, 7.0])).z, [1.0, 1.0])
    np.testing.assert_array_equal(one.marginals(np.array([-3.0, 7.0])).value, [-3.0, 7.0])


def test_encode_and_decode() -> None:
    structure = Candidates([2, 3])
    z = structure.encode([1, 0]).dense()
    np.testing.assert_array_equal(z, [0.0, 1.0, 1.0, 0.0, 0.0])
    assert structure.decode(z) == [1, 0]
    for labels, message in (
        ([0], "1 choices for 2 examples"),
        ([0, 3], "example 1: choice 3 is out of range for 3 candidates; count them from 0"),
        ([-1, 0], "example 0: choice -1"),
        ([0, 1.0], "example 1: the choice must be one whole number"),
        ([[0], 1], "example 0: the choice must be one whole number"),
    ):
        with pytest.raises(ValueError, match=message):
            structure.encode(labels)


def test_sizes_are_checked() -> None:
    for sizes, message in (([2, 0], "example 1: a list of 0"), ([[1]], "one dimension"), ([1.5], "must be integers")):
        with pytest.raises(ValueError, match=message):
            Candidates(sizes)

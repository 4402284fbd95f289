"""The kernels of deduction systems, on segmentations: against enumeration, general solvers and other threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import reference
from oracles.enumeration import gibbs, scores_of, vertices, worth
from oracles.structures.segments import random_segments

from maxmargin import threads
from maxmargin.structures import PointStatus, Segments, TransitionConstraints
from maxmargin.testing import check_structure

OK, INEXACT, NONFINITE, ABSENT = PointStatus.OK, PointStatus.INEXACT, PointStatus.NONFINITE, PointStatus.ABSENT
RULES = settings(deadline=None, derandomize=True, max_examples=40)
ALTERNATE = TransitionConstraints(np.array([[False, True], [True, True]]), np.ones(2, bool), np.array([True, True]))
seeds = st.integers(0, 2**32 - 1)


@RULES
@given(seed=seeds, k=st.sampled_from([1, 2, 5, 10**6]))
def test_k_best_equals_enumeration(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_segments(rng, 4)
    scores = scores_of(rng, structure)
    best, ranks = structure.argmax(scores), structure.k_best(scores, k)
    np.testing.assert_array_equal(best.z, ranks[0].z)
    np.testing.assert_array_equal(best.status, ranks[0].status)
    for i, outputs in enumerate(vertices(structure)):
        own = structure.parts_of([i])
        values = worth(outputs, scores[own])
        wanted = np.sort(values[values > -np.inf])[::-1][:k]
        assert [points.status[i] == OK for points in ranks] == [r < len(wanted) for r in range(len(ranks))]
        np.testing.assert_allclose([points.value[i] for points in ranks][: len(wanted)], wanted, atol=1e-12)
        listed = {points.z[own].tobytes() for points in ranks[: len(wanted)]}
        assert len(listed) == len(wanted)
        assert listed <= {row.tobytes() for row in outputs}


@RULES
@given(seed=seeds)
def test_marginals_equal_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_segments(rng, 4)
    potentials = 3.0 * scores_of(rng, structure)
    found = structure.marginals(potentials)
    for i, outputs in enumerate(vertices(structure)):
        own = structure.parts_of([i])
        if (worth(outputs, potentials[own]) == -np.inf).all():
            assert found.status[i] == ABSENT
            continue
        z, value = gibbs(outputs, potentials[own])
        np.testing.assert_allclose(found.z[own], z, atol=1e-12)
        np.testing.assert_allclose(found.value[i], value, atol=1e-12)


@RULES
@given(seed=seeds, hamming=st.booleans())
def test_slack_rescaling_equals_enumeration(seed: int, hamming: bool) -> None:
    rng = np.random.default_rng(seed)
    structure = random_segments(rng, 3)
    scores = scores_of(rng, structure)
    costs = (rng.integers(0, 2, size=structure.n_parts) if hamming else rng.random(structure.n_parts)).astype(float)
    margin, constants = rng.normal(size=3), rng.random(3)
    found = structure.slack_argmax(scores, margin, costs, constants)
    for i, outputs in enumerate(vertices(structure)):
        own = structure.parts_of([i])
        legal = outputs[worth(outputs, scores[own]) > -np.inf]
        if not len(legal):
            assert found.status[i] == ABSENT
            continue
        loss, good = legal @ costs[own] + constants[i], margin[i] + worth(legal, scores[own])
        products = np.where((loss > 0) & (good > 0), loss * good, 0.0)
        assert found.status[i] == OK
        np.testing.assert_allclose(found.value[i], products.max(), atol=1e-12)


def test_projection_and_linear_description_agree_with_a_general_solver() -> None:
    rng = np.random.default_rng(3)
    structure = Segments([4, 2, 0], 2, [3, 2], constraints=ALTERNATE)
    point = rng.normal(size=structure.n_parts)
    found = structure.project(point)
    np.testing.assert_allclose(found.z, reference.project(structure, point), atol=1e-6)
    scores = rng.normal(size=structure.n_parts)
    np.testing.assert_allclose(structure.argmax(scores).value.sum(), reference.maximum(structure, scores), atol=1e-9)


def test_the_same_bits_with_any_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    structure = Segments(rng.integers(0, 30, size=40), 3, 6)
    scores = rng.normal(size=structure.n_parts)
    with threads(1):
        one = structure.argmax(scores), structure.marginals(scores), *structure.k_best(scores, 4)
    with threads(3):
        three = structure.argmax(scores), structure.marginals(scores), *structure.k_best(scores, 4)
    for a, b in zip(one, three, strict=True):
        np.testing.assert_array_equal(a.z, b.z)
        np.testing.assert_array_equal(a.value, b.value)


def test_keeps_the_promises_of_structures() -> None:
    rng = np.random.default_rng(2)
    check_structure(random_segments(rng, 5), rng)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(0, 2, 0)], "example 0: the segments end at 2 and the sequence at 3"),
        ([(1, 3, 0)], r"example 0: segment \(1, 3, 0\) .* does not begin where the one before it ends"),
        ([(0, 3, 0)], r"example 0: segment \(0, 3, 0\) .* is longer than its label allows"),
        ([(0, 1, 0), (1, 1, 0), (1, 3, 1)], r"example 0: segment \(1, 1, 0\) .* is empty"),
        ([(0, 2, 0), (2, 4, 1)], r"example 0: segment \(2, 4, 1\) .* ends after the sequence"),
        ([(0, 2, 0), (2, 3, 2)], r"example 0: segment \(2, 3, 2\) .* has a label that is not between 0 and 1"),
        ([(0, 2, 0), (2, 3, 0)], r"example 0: segment \(2, 3, 0\) .* has a label that may not follow"),
        ([0, 1, 2], r"example 0: segments must be rows \(begin, end, label\)"),
    ],
)
def test_segmentations_that_are_refused(rows: list[tuple[int, int, int]], message: str) -> None:
    structure = Segments([3], 2, 2, constraints=ALTERNATE)
    with pytest.raises(ValueError, match=message):
        structure.encode([rows])

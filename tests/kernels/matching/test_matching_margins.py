"""Margins of edges: against enumeration, and against solving again with an edge forced in or out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.structures.matching import CAPACITIES, margins_by_enumeration, random_matching, scores_of

from maxmargin import _kernels, threads
from maxmargin.structures.matchings.matching import Matching

KINDS = ("normal", "rounded", "positive", "negative", "equal", "zero")


def without(structure, scores, part):
    """The best score of every example if the edges of ``part`` (one per example) may not be taken."""
    changed = scores.copy()
    changed[part] = -1.0
    return structure.argmax(changed).value


def with_edge(structure, scores, part):
    """The best score if it must be taken: so good that every best matching has it."""
    changed = scores.copy()
    big = 4.0 * np.abs(scores).sum() + 1.0
    changed[part] += big
    best = structure.argmax(changed)
    assert (best.z[part] == 1.0).all()
    return structure.by_example(best.z * scores)


@settings(deadline=None, derandomize=True, max_examples=120)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1.0, 0.6, 0.3]),
    st.sampled_from(CAPACITIES),
    st.sampled_from(KINDS),
)
def test_margins_equal_enumeration(seed, density, capacities, kind):
    rng = np.random.default_rng(seed)
    structure = random_matching(rng, rng.integers(0, 4, (3, 2)), density=density, capacities=capacities)
    scores = scores_of(rng, structure, kind)
    margins = structure.margins(scores)
    expected = margins_by_enumeration(structure, scores)
    np.testing.assert_allclose(margins, expected, rtol=0, atol=1e-12)
    best = structure.argmax(scores).z > 0
    assert (margins[best] >= 0).all()
    assert (margins[~best] <= 0).all()
    if kind in ("rounded", "zero"):
        np.testing.assert_array_equal(margins, expected)  # ties are ties


@settings(deadline=None, derandomize=True, max_examples=40)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1.0, 0.4, 0.06]),
    st.sampled_from(CAPACITIES),
    st.sampled_from(KINDS),
    st.sampled_from([-1.0, 0.0, 1.0]),
)
def test_margins_equal_solving_again(seed, density, capacities, kind, shift):
    rng = np.random.default_rng(seed)
    structure = random_matching(rng, [(12, 9), (7, 30), (33, 4), (20, 21)], density=density, capacities=capacities)
    scores = scores_of(rng, structure, kind) + shift
    margins = structure.margins(scores)
    offsets = structure.blocks[0].offsets
    sizes = np.diff(offsets)
    ends = structure.edges
    example = np.repeat(np.arange(4), sizes)
    open_edges = (structure.left_capacity[structure._left_start[example] + ends[:, 0]] > 0) & (
        structure.right_capacity[structure._right_start[example] + ends[:, 1]] > 0
    )
    np.testing.assert_array_equal(margins == -np.inf, ~open_edges)
    for _ in range(4):
        part = np.array([rng.choice(own) for own in np.split(np.arange(len(ends)), offsets[1:-1]) if len(own)])
        part = part[open_edges[part]]
        expected = with_edge(structure, scores, part) - without(structure, scores, part)
        np.testing.assert_allclose(margins[part], expected[example[part]], rtol=0, atol=1e-11)


@pytest.mark.parametrize("capacities", CAPACITIES)
@pytest.mark.parametrize(("shape", "density"), [((120, 130), 1.0), ((1, 300), 1.0), ((300, 200), 0.03)])
def test_margins_at_size(capacities, shape, density):
    rng = np.random.default_rng(3)
    structure = random_matching(rng, [shape], density=density, capacities=capacities)
    scores = rng.normal(size=structure.n_parts) - 0.5
    margins = structure.margins(scores)
    best = structure.argmax(scores).z > 0
    assert (margins[best] >= 0).all()
    assert (margins[~best] <= 0).all()
    some = np.concatenate([rng.choice(np.flatnonzero(best), 5), rng.choice(np.flatnonzero(~best), 5)])
    for e in some[np.isfinite(margins[some])]:
        expected = with_edge(structure, scores, [e]) - without(structure, scores, [e])
        np.testing.assert_allclose(margins[e], expected[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("scale", [1e8, 1e-12])
@pytest.mark.parametrize("capacities", CAPACITIES)
def test_margins_scale_with_the_scores(scale, capacities):
    rng = np.random.default_rng(4)
    structure = random_matching(rng, [(5, 7), (10, 10), (1, 4)], capacities=capacities)
    scores = rng.normal(size=structure.n_parts)
    np.testing.assert_allclose(
        structure.margins(scale * scores), scale * structure.margins(scores), rtol=0, atol=1e-13 * scale
    )


def test_near_ties_do_not_build_up():
    # Sums of multiples of 0.1 differ by rounding: cycles that gain a little must not be followed round and round.
    rng = np.random.default_rng(5)
    structure = random_matching(rng, [(40, 45), (60, 60)], capacities="few")
    tenths = rng.integers(-3, 8, structure.n_parts)
    np.testing.assert_allclose(
        structure.margins(0.1 * tenths), 0.1 * structure.margins(tenths.astype(float)), rtol=0, atol=1e-12
    )


def test_same_bits_for_any_number_of_threads():
    rng = np.random.default_rng(6)
    structure = random_matching(rng, rng.integers(0, 14, (60, 2)), density=0.7, capacities="zeros")
    scores = rng.normal(size=structure.n_parts)
    answers = []
    for n in (1, 2, 3):
        with threads(n):
            answers.append(structure.margins(scores).tobytes())
    assert len(set(answers)) == 1
    chosen = [*range(0, 60, 7), 3, 3]
    parts = structure.parts_of(chosen)
    np.testing.assert_array_equal(structure.select(chosen).margins(scores[parts]), structure.margins(scores)[parts])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nonfinite_scores_spoil_only_their_example(bad):
    structure = Matching.dense([(3, 3), (4, 2), (2, 2)])
    scores = np.random.default_rng(8).normal(size=structure.n_parts)
    clean = structure.margins(scores)
    own = structure.parts_of([1])
    scores[own[3]] = bad
    margins = structure.margins(scores)
    assert np.isnan(margins[own]).all()
    others = structure.parts_of([0, 2])
    np.testing.assert_array_equal(margins[others], clean[others])


@pytest.mark.parametrize("shapes", [np.zeros((0, 2), dtype=np.int64), [(0, 0)], [(0, 3), (2, 0)], [(1, 1)]])
def test_empty_and_tiny(shapes):
    structure = Matching.dense(shapes)
    for score in (2.0, -3.0):
        assert structure.margins(np.full(structure.n_parts, score)).tolist() == [score] * structure.n_parts


def test_refused_vectors():
    structure = Matching.dense([(2, 2)])
    with pytest.raises(ValueError, match="scores must have shape"):
        structure.margins(np.zeros(5))
    for sizes in ((3, 4, 1), (4, 3, 1), (4, 4, 2)):
        scores, margin, status = (np.zeros(n) for n in sizes)
        with pytest.raises(ValueError, match="one entry per"):
            _kernels.matching_margins(structure._batch, scores, margin, status.astype(np.int8), 1)


def test_values_near_overflow_return():
    structure = Matching.dense([(3, 3), (2, 5)])
    scores = np.full(structure.n_parts, 1e307)
    scores[::2] *= -1
    np.testing.assert_array_equal(structure.margins(scores), 1e307 * structure.margins(scores / 1e307))

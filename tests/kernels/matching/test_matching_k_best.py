"""The k best matchings: against enumeration, the partition by argmax alone, and margins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.enumeration import vertices
from oracles.structures.matching import CAPACITIES, random_matching, scores_of

import maxmargin as mm
from maxmargin import _kernels
from maxmargin.structures import PointStatus
from maxmargin.structures.fallbacks import generic
from maxmargin.structures.matchings.matching import Matching


def assert_ranks(structure, scores, ranks, tol=1e-12):
    """Sorted, legal, distinct, and worth what they say; the first is the argmax."""
    best = structure.argmax(scores)
    np.testing.assert_array_equal(ranks[0].z, best.z)
    np.testing.assert_array_equal(ranks[0].value, best.value)
    offsets = structure.blocks[0].offsets
    polytope = structure.polytope()
    for above, rank in zip([None, *ranks], ranks, strict=False):
        found = rank.status == PointStatus.OK
        assert (rank.status[~found] == PointStatus.ABSENT).all()
        assert (rank.value[~found] == -np.inf).all()
        assert (polytope.ub @ rank.z <= polytope.ub_rhs).all()
        np.testing.assert_allclose(rank.value[found], structure.by_example(rank.z * scores)[found], rtol=0, atol=tol)
        if above is not None:
            assert (rank.value <= above.value + tol).all()
    for i in range(structure.n_examples):
        own = [rank.z[offsets[i] : offsets[i + 1]].tobytes() for rank in ranks if rank.status[i] == PointStatus.OK]
        assert len(set(own)) == len(own)


@settings(deadline=None, derandomize=True, max_examples=80)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1.0, 0.6, 0.3]),
    st.sampled_from(CAPACITIES),
    st.sampled_from(["normal", "rounded", "equal", "zero"]),
    st.sampled_from([1, 2, 7, 1000]),
)
def test_k_best_equals_enumeration(seed, density, capacities, kind, k):
    rng = np.random.default_rng(seed)
    structure = random_matching(rng, rng.integers(0, 4, (3, 2)), density=density, capacities=capacities)
    scores = scores_of(rng, structure, kind)
    ranks = structure.k_best(scores, k)
    outputs = vertices(structure)
    assert len(ranks) == min(k, max(len(own) for own in outputs))
    assert_ranks(structure, scores, ranks)
    offsets = structure.blocks[0].offsets
    for i, own in enumerate(outputs):
        expected = np.sort(own @ scores[offsets[i] : offsets[i + 1]])[::-1][:k]
        np.testing.assert_allclose([rank.value[i] for rank in ranks][: len(expected)], expected, rtol=0, atol=1e-12)
        assert [rank.status[i] for rank in ranks] == [PointStatus.OK] * len(expected) + [PointStatus.ABSENT] * (
            len(ranks) - len(expected)
        )


@settings(deadline=None, derandomize=True, max_examples=15)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 0.4]), st.sampled_from(CAPACITIES))
def test_k_best_equals_the_partition_by_argmax_alone(seed, density, capacities):
    rng = np.random.default_rng(seed)
    structure = random_matching(rng, [(5, 6), (7, 3), (1, 4), (0, 2)], density=density, capacities=capacities)
    scores = rng.normal(size=structure.n_parts)
    slow = generic.k_best(structure, scores, 9)
    fast = structure.k_best(scores, 9)
    for one, two in zip(slow, fast, strict=True):
        np.testing.assert_array_equal(one.z, two.z)
        np.testing.assert_array_equal(one.status, two.status)
        np.testing.assert_allclose(one.value, two.value, rtol=0, atol=1e-12)


@pytest.mark.parametrize("capacities", CAPACITIES)
@pytest.mark.parametrize("density", [1.0, 0.1])
def test_k_best_at_size(capacities, density):
    rng = np.random.default_rng(1)
    structure = random_matching(rng, [(40, 50), (26, 26), (2, 90)], density=density, capacities=capacities)
    scores = rng.normal(size=structure.n_parts)
    ranks = structure.k_best(scores, 30)
    assert_ranks(structure, scores, ranks)
    # The step to the second best is the smallest margin.
    least = [np.abs(structure.margins(scores)[structure.parts_of([i])]).min() for i in range(3)]
    np.testing.assert_allclose(ranks[0].value - ranks[1].value, least, rtol=0, atol=1e-12)


@pytest.mark.parametrize("scale", [1e8, 1e-12])
def test_k_best_scales_and_near_ties(scale):
    rng = np.random.default_rng(2)
    structure = random_matching(rng, [(6, 7), (12, 12)], capacities="few")
    scores = scale * np.round(rng.normal(size=structure.n_parts), 1)
    ranks = structure.k_best(scores, 40)
    assert len(ranks) == 40
    assert_ranks(structure, scores, ranks, tol=1e-12 * scale)


def test_values_near_overflow():
    structure = Matching.dense([(3, 3), (2, 5)], left_capacity=2)
    scores = np.full(structure.n_parts, 3e307)
    scores[::2] *= -1
    ranks = structure.k_best(scores, 12)
    polytope = structure.polytope()
    assert all((polytope.ub @ rank.z <= polytope.ub_rhs).all() for rank in ranks)
    expected = structure.k_best(scores / 3e307, 12)
    np.testing.assert_allclose([rank.value for rank in ranks], [3e307 * rank.value for rank in expected], rtol=1e-14)


@pytest.mark.parametrize("shapes", [np.zeros((0, 2), dtype=np.int64), [(0, 0)], [(0, 3), (2, 0)]])
def test_examples_without_edges_have_one_matching(shapes):
    structure = Matching.dense(shapes)
    (only,) = structure.k_best(np.zeros(0), 5)
    assert only.z.shape == (0,)
    assert only.value.tolist() == [0.0] * len(shapes)
    closed = Matching.dense([(2, 2)], left_capacity=0)
    assert len(closed.k_best(np.ones(4), 5)) == 1


def test_one_example_at_a_time():
    """MIRA with several outputs asks the compiled oracle; it must go where the batch methods go."""
    rng = np.random.default_rng(5)
    X = [rng.normal(size=(3, 4, 2)) for _ in range(12)]
    y = [np.array([[0, 1], [1, 0]]), np.array([[2, 3]])] * 6
    settings = {"solver": mm.Mira(k=3, shuffle=False, max_iter=3), "C": 10.0}
    fast = mm.MatchingSVM(**settings).fit(X, y)

    class Slow(Matching):
        def oracle(self, ranks=1):
            return generic.oracle(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Matching, "oracle", Slow.oracle)
        slow = mm.MatchingSVM(**settings).fit(X, y)
    np.testing.assert_allclose(fast.coef_, slow.coef_, rtol=0, atol=1e-10)


def test_refused_arguments():
    structure = Matching.dense([(2, 2)])
    with pytest.raises(ValueError, match="k must be below"):
        Matching.dense([(40, 40)]).k_best(np.zeros(1600), 1 << 40)
    for k, sizes in ((2, (4, 8, 2, 1)), (2, (4, 4, 2, 2)), (2, (3, 6, 2, 2)), (0, (4, 0, 0, 0))):
        scores, z, value, status = (np.zeros(n) for n in sizes)
        with pytest.raises(ValueError, match=r"must|do not fit"):
            _kernels.matching_k_best(structure._batch, k, scores, z, value, status.astype(np.int8), 1)
    with pytest.raises(ValueError, match="ranks must be an integer >= 1"):
        structure.oracle(0)

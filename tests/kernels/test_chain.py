from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from oracles import reference
from oracles.chain import viterbi
from oracles.enumeration import vertices
from sequences import own_parts, score_tables

from maxmargin import _kernels
from maxmargin.structures.base import PointStatus
from maxmargin.structures.chain import Chain

MODES = ["shared", "each"]
# A vector length is set for all examples of a test, so it does not matter that the fixture is not set up for each.
at_one_width = partial(
    settings, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
OK, INEXACT, NONFINITE, ABSENT = PointStatus.OK, PointStatus.INEXACT, PointStatus.NONFINITE, PointStatus.ABSENT


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
@pytest.mark.parametrize("n_labels", [1, 2, 3, 7, 8, 9, 16, 17, 22, 26, 33, 40, 45, 48, 49, 64, 100, 300])
def test_argmax_equals_the_slow_twin(transitions, n_labels):
    rng = np.random.default_rng(n_labels)
    lengths = [0, 1, 2, 3, 11] if n_labels < 300 else [0, 1, 2, 3]
    chain = Chain(lengths, n_labels, transitions=transitions)
    for scores in (rng.normal(size=chain.n_parts), rng.integers(0, 3, size=chain.n_parts).astype(float)):
        best = chain.argmax(scores)
        labels = chain.decode(best.z)
        for i in range(len(lengths)):
            expected, value = viterbi(*score_tables(chain, scores, i))
            np.testing.assert_array_equal(labels[i], expected)
            assert best.value[i] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("transitions", MODES)
@pytest.mark.parametrize("n_labels", [2, 5, 9, 26, 45])
def test_all_vector_lengths_agree(transitions, n_labels):
    chain = Chain(np.arange(12), n_labels, transitions=transitions)
    scores = np.random.default_rng(n_labels).normal(size=chain.n_parts)
    results = {}
    try:
        for wanted in (2, 4, 8):
            lanes = _kernels._use_lanes(wanted)
            results[lanes] = [chain.argmax(scores), *chain.k_best(scores, 3), *chain.k_best(scores, 6)]
    finally:
        _kernels._use_lanes(0)
    for other in results.values():
        for one, two in zip(results[2], other, strict=True):
            np.testing.assert_array_equal(one.z, two.z)
            np.testing.assert_array_equal(one.value, two.value)  # sums along a chain have one order
            np.testing.assert_array_equal(one.status, two.status)


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
def test_forbidden_labels_and_pairs(transitions):
    chain = Chain([4, 3], 3, transitions=transitions)
    rng = np.random.default_rng(7)
    scores = rng.normal(size=chain.n_parts)
    scores[rng.random(chain.n_parts) < 0.25] = -np.inf
    scores[chain.blocks[0].offsets[1] : chain.blocks[0].offsets[1] + 3] = -np.inf  # the second example has no output
    ranks = chain.k_best(scores, 100)
    best = chain.argmax(scores)
    assert best.status[1] == ABSENT
    assert best.value[1] == -np.inf
    assert not own_parts(chain, best.z, 1).any()
    outputs, own = vertices(chain)[0], own_parts(chain, scores, 0)
    values = np.sort([own[v > 0] @ v[v > 0] for v in outputs])[::-1]
    np.testing.assert_allclose([points.value[0] for points in ranks], values[values > -np.inf])
    assert best.value[0] == pytest.approx(values[0])
    assert all(points.status[1] == ABSENT for points in ranks)
    assert all(points.status[0] == OK for points in ranks)
    nothing = chain.k_best(np.full(chain.n_parts, -np.inf), 5)
    assert [points.status.tolist() for points in nothing] == [[ABSENT, ABSENT]]
    point = np.zeros(chain.n_parts)
    point[0] = -np.inf
    np.testing.assert_array_equal(chain.project(point).status, [NONFINITE, OK])


@pytest.mark.parametrize("transitions", MODES)
def test_projection_of_points_of_the_polytope(transitions):
    chain = Chain([5, 1, 8], 4, transitions=transitions)
    rng = np.random.default_rng(0)
    drawn = [chain.encode([rng.integers(0, 4, size=n) for n in chain.lengths]).dense() for _ in range(6)]
    for point in (drawn[0], np.mean(drawn, axis=0), 0.999 * drawn[0] + 0.001 * drawn[1]):
        projected = chain.project(point)
        assert (projected.status == OK).all()
        np.testing.assert_allclose(projected.z, point, atol=1e-10)


def test_projection_at_a_loose_tolerance_is_feasible_and_close():
    chain = Chain([20, 15], 8)
    point = np.random.default_rng(0).normal(size=chain.n_parts)
    exact = chain.project(point).z
    rough = chain.project(point, tol=0.1)
    assert np.abs(chain.by_example((rough.z - exact) ** 2)).max() <= 0.1**2
    assert len(rough.warm.arrays[1]) < len(chain.project(point).warm.arrays[1])
    with pytest.raises(ValueError, match="tol must be a finite number >= 0"):
        chain.project(point, tol=-1.0)


def test_warm_starts_that_do_not_fit_are_ignored():
    chain = Chain([3, 4], 3)
    point = np.random.default_rng(0).normal(size=chain.n_parts)
    expected = chain.project(point)
    others = [Chain([4, 3], 3), Chain([3], 3), Chain([3, 4], 3, transitions="each"), Chain([3, 4], 4)]
    strange = [other.project(np.zeros(other.n_parts)).warm for other in others]
    for warm in [*strange, "something", np.zeros(3)]:
        assert chain.project(point, warm=warm).z.tobytes() == expected.z.tobytes()
    same = Chain([3, 4], 3).project(point).warm
    np.testing.assert_allclose(chain.project(point, warm=same).z, expected.z, atol=1e-12)


def test_illegal_transitions_and_shapes_are_refused():
    with pytest.raises(ValueError, match="transitions must be"):
        Chain([1], 2, transitions="some")
    chain = Chain([2], 2)
    for method in (chain.argmax, chain.project, chain.decode, lambda s: chain.k_best(s, 1)):
        with pytest.raises(ValueError, match=r"must have shape \(8,\)"):
            method(np.zeros(7))


@pytest.mark.parametrize("transitions", MODES)
def test_polytope_contains_the_outputs_and_part_bound_holds(transitions):
    chain = Chain([1, 4, 2], 3, transitions=transitions)
    polytope = chain.polytope()
    for i, outputs in enumerate(vertices(chain)):
        bound = own_parts(chain, chain.part_bound, i)
        most, nodes = outputs.max(axis=0), chain.lengths[i] * 3
        assert (most <= bound).all()
        np.testing.assert_array_equal(most[:nodes], bound[:nodes])
        if transitions == "shared":  # a label may follow itself on every edge
            np.testing.assert_array_equal(most[nodes::4], bound[nodes::4])
    assert polytope.lift.shape == (chain.n_parts, polytope.eq.shape[1])
    for labels in product(range(3), repeat=4):
        point = chain.encode([[0], list(labels), [1, 2]]).dense()
        np.testing.assert_allclose(reference.project(chain, point), point, atol=1e-6)
        if labels[0] == 1:
            break

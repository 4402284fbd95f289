from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles import reference
from oracles.chain import vertices, viterbi

import maxmargin
from maxmargin import _kernels
from maxmargin.structures.base import PointStatus
from maxmargin.structures.chain import Chain

MODES = ["shared", "each"]
# A vector length is set for all examples of a test, so it does not matter that the fixture is not set up for each.
at_one_width = partial(
    settings, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
OK, INEXACT, NONFINITE, ABSENT = PointStatus.OK, PointStatus.INEXACT, PointStatus.NONFINITE, PointStatus.ABSENT


def own_parts(chain, packed, i):
    """The parts of example i, nodes then pairs."""
    return packed[chain.parts_of([i])]


def score_tables(chain, scores, i):
    """Node scores (T, K) and pair scores (K, K) or (T - 1, K, K) of example i."""
    k, length = chain.n_labels, int(chain.lengths[i])
    own = own_parts(chain, scores, i)
    shape = (k, k) if chain.transitions == "shared" else (max(length - 1, 0), k, k)
    return own[: length * k].reshape(length, k), own[length * k :].reshape(shape)


@st.composite
def small_chains(draw, longest=4, labels=3):
    """A tiny batch with scores of the kind that make ties likely."""
    lengths = draw(st.lists(st.integers(0, longest), min_size=0, max_size=4))
    chain = Chain(lengths, draw(st.integers(1, labels)), transitions=draw(st.sampled_from(MODES)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from([1e-12, 0.3, 1.0, 10.0, 1e8]))
    scores = rng.normal(size=chain.n_parts) if draw(st.booleans()) else rng.integers(-2, 3, size=chain.n_parts)
    return chain, scale * scores.astype(float)


def assert_projection(chain, point, points, tol=1e-8):
    """Feasible by its weights, and optimal by the chain's own argmax: max_v (a - z)'(v - z) <= tol."""
    for i in np.flatnonzero(points.status == OK):
        a, z = own_parts(chain, point, i), own_parts(chain, points.z, i)
        assert points.value[i] == pytest.approx(0.5 * np.sum((a - z) ** 2), rel=1e-12, abs=1e-300)
        length, k = chain.lengths[i], chain.n_labels
        assert z.min(initial=0.0) >= 0.0
        np.testing.assert_allclose(z[: length * k].reshape(length, k).sum(axis=1), 1.0, atol=1e-12)
    residual = point - points.z
    gap = chain.argmax(residual).value - chain.by_example(residual * points.z)
    scale = 1.0 + chain.by_example(np.abs(point) * np.maximum(points.z, 1e-3))
    assert (gap <= tol * scale).all()


@pytest.mark.usefixtures("every_vector_length")
@at_one_width(max_examples=60)
@given(small_chains())
def test_argmax_is_the_best_of_all_sequences(case):
    chain, scores = case
    best = chain.argmax(scores)
    assert (best.status == OK).all()
    for i, outputs in enumerate(vertices(chain)):
        own = own_parts(chain, scores, i)
        scale = np.abs(own).sum() + 1e-300
        assert best.value[i] == pytest.approx((outputs @ own).max(), abs=1e-13 * scale)
        assert best.value[i] == pytest.approx(own_parts(chain, best.z, i) @ own, abs=1e-13 * scale)
    np.testing.assert_array_equal(chain.encode(chain.decode(best.z)), best.z)


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
def test_argmax_equals_the_linear_program(transitions):
    chain = Chain([4, 0, 1, 2, 6], 4, transitions=transitions)
    scores = np.random.default_rng(3).normal(size=chain.n_parts)
    assert chain.argmax(scores).value.sum() == pytest.approx(reference.maximum(chain, scores), rel=1e-9)


@pytest.mark.parametrize("transitions", MODES)
def test_argmax_of_a_large_chain_has_no_better_neighbor(transitions):
    chain = Chain([300], 13, transitions=transitions)
    scores = np.random.default_rng(0).normal(size=chain.n_parts)
    best = chain.argmax(scores)
    (labels,) = chain.decode(best.z)
    batch = chain.select(np.zeros(200, dtype=int))
    rng = np.random.default_rng(1)
    changed = np.repeat(labels[None], 200, axis=0)
    for row in changed:
        first = rng.integers(0, 298)
        row[first : first + rng.integers(1, 4)] = rng.integers(0, 13)
    z = batch.encode(list(changed))
    others = batch.by_example(z * scores[chain.parts_of(np.zeros(200, dtype=int))])
    assert others.max() <= best.value[0] + 1e-9


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
def test_same_bits_for_any_number_of_threads(transitions):
    chain = Chain(np.arange(40) % 9, 11, transitions=transitions)
    scores = np.random.default_rng(5).normal(size=chain.n_parts)
    results = []
    for n in (1, 2, 3):
        with maxmargin.threads(n):
            cold = chain.project(scores)
            warm = chain.project(scores + 0.01, warm=cold.warm)
            results.append([chain.argmax(scores), *chain.k_best(scores, 3), cold, warm])
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            assert one.z.tobytes() == two.z.tobytes()
            assert one.value.tobytes() == two.value.tobytes()
            assert one.status.tobytes() == two.status.tobytes()


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
def test_no_examples_and_no_positions(transitions):
    none = Chain([], 3, transitions=transitions)
    assert none.n_examples == none.n_parts == 0
    empty = np.zeros(0)
    assert none.decode(none.encode([])) == []
    for points in (none.argmax(empty), none.k_best(empty, 2)[0], none.project(empty)):
        assert points.z.shape == points.value.shape == points.status.shape == (0,)
    blank = Chain([0, 0], 3, transitions=transitions)
    scores = np.ones(blank.n_parts)
    np.testing.assert_array_equal(blank.argmax(scores).value, [0.0, 0.0])
    (first,) = blank.k_best(scores, 2)
    assert (first.status == OK).all()
    projected = blank.project(scores)
    assert not projected.z.any()
    assert (projected.status == OK).all()
    assert [list(labels) for labels in blank.decode(projected.z)] == [[], []]


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
@pytest.mark.parametrize("value", [0.0, 1.0, -3.5, 1e8, 1e-12])
def test_ties_go_to_the_lowest_labels(transitions, value):
    chain = Chain([1, 5, 20], 17, transitions=transitions)
    scores = np.full(chain.n_parts, value)
    best = chain.argmax(scores)
    assert all((labels == 0).all() for labels in chain.decode(best.z))
    ranks = chain.k_best(scores, 4)
    assert ranks[0].z.tobytes() == best.z.tobytes()
    for points in ranks:
        np.testing.assert_allclose(points.value, best.value, rtol=1e-12)


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("block", [0, 1])
def test_bad_scores_spoil_only_their_example(transitions, bad, block):
    chain = Chain([3, 12, 2], 10, transitions=transitions)
    scores = np.random.default_rng(1).normal(size=chain.n_parts)
    clean = chain.argmax(scores), chain.k_best(scores, 2)[1], chain.project(scores)
    for where in (0, 37, -1):
        spoilt = scores.copy()
        start = chain.starts[block]
        inside = np.arange(start + chain.blocks[block].offsets[1], start + chain.blocks[block].offsets[2])
        spoilt[inside[where]] = bad
        got = chain.argmax(spoilt), chain.k_best(spoilt, 2)[1], chain.project(spoilt)
        for before, after in zip(clean, got, strict=True):
            assert after.status[1] == NONFINITE
            assert np.isnan(after.value[1])
            assert not own_parts(chain, after.z, 1).any()
            for i in (0, 2):
                assert after.status[i] == OK
                np.testing.assert_array_equal(own_parts(chain, before.z, i), own_parts(chain, after.z, i))


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


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
def test_overflow_is_reported(transitions):
    chain = Chain([30], 2, transitions=transitions)
    best = chain.argmax(np.full(chain.n_parts, 1e308))
    assert best.status[0] == NONFINITE
    assert not best.z.any()
    assert chain.project(np.full(chain.n_parts, 1e308)).status[0] in (OK, INEXACT, NONFINITE)


@pytest.mark.usefixtures("every_vector_length")
@at_one_width(max_examples=40)
@given(small_chains(), st.integers(1, 30))
def test_k_best_lists_the_best_sequences_in_order(case, k):
    chain, scores = case
    ranks = chain.k_best(scores, k)
    assert len(ranks) == max(1, min(k, max((len(outputs) for outputs in vertices(chain)), default=0)))
    for i, outputs in enumerate(vertices(chain)):
        own = own_parts(chain, scores, i)
        expected = np.sort(outputs @ own)[::-1][:k]
        found = np.array([points.value[i] for points in ranks])
        np.testing.assert_allclose(found[: len(expected)], expected, atol=1e-13 * (np.abs(own).sum() + 1e-300))
        assert (found[len(expected) :] == -np.inf).all()
        codes = [points.status[i] for points in ranks]
        assert codes == [OK] * len(expected) + [ABSENT] * (len(ranks) - len(expected))
        listed = [own_parts(chain, points.z, i) for points in ranks[: len(expected)]]
        assert len({z.tobytes() for z in listed}) == len(expected)
        constraints = {v.tobytes() for v in outputs}
        assert all(z.tobytes() in constraints for z in listed)


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
def test_k_best_of_large_chains(transitions):
    chain = Chain([40, 7], 26, transitions=transitions)
    scores = np.random.default_rng(2).normal(size=chain.n_parts)
    ranks = chain.k_best(scores, 50)
    assert ranks[0].z.tobytes() == chain.argmax(scores).z.tobytes()
    values = np.array([points.value for points in ranks])
    assert (np.diff(values, axis=0) <= 0).all()
    for points in ranks:
        np.testing.assert_allclose(chain.by_example(points.z * scores), points.value, rtol=1e-12)
        np.testing.assert_array_equal(chain.encode(chain.decode(points.z)), points.z)
    assert len({points.z[: chain.starts[1]].tobytes() for points in ranks}) == 50


def test_k_best_refuses_no_ranks():
    chain = Chain([2], 2)
    with pytest.raises(ValueError, match="k must be at least 1"):
        chain.k_best(np.zeros(chain.n_parts), 0)


@pytest.mark.usefixtures("every_vector_length")
@at_one_width(max_examples=40)
@given(small_chains())
def test_projection_equals_the_interior_point_solver(case):
    chain, point = case
    projected = chain.project(point)
    assert (projected.status == OK).all()
    assert_projection(chain, point, projected)
    if np.abs(point).max(initial=0.0) < 100 and chain.n_parts:
        np.testing.assert_allclose(projected.z, reference.project(chain, point), atol=1e-7)


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
@pytest.mark.parametrize(("length", "n_labels", "scale"), [(25, 26, 1.0), (60, 9, 0.5), (30, 3, 1e8), (5, 4, 1e-12)])
def test_projection_of_large_chains_is_optimal(transitions, length, n_labels, scale):
    chain = Chain([length, 3, length], n_labels, transitions=transitions)
    rng = np.random.default_rng(length)
    point = scale * rng.normal(size=chain.n_parts)
    cold = chain.project(point)
    assert (cold.status == OK).all()
    assert_projection(chain, point, cold, tol=1e-11)
    moved = point + 0.01 * scale * rng.normal(size=chain.n_parts)
    warm = chain.project(moved, warm=cold.warm)
    assert_projection(chain, moved, warm, tol=1e-11)
    np.testing.assert_allclose(warm.z, chain.project(moved).z, atol=1e-8 * max(1.0, scale))


@pytest.mark.parametrize("transitions", MODES)
def test_projection_of_points_of_the_polytope(transitions):
    chain = Chain([5, 1, 8], 4, transitions=transitions)
    rng = np.random.default_rng(0)
    drawn = [chain.encode([rng.integers(0, 4, size=n) for n in chain.lengths]) for _ in range(6)]
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
    assert len(rough.warm.weights) < len(chain.project(point).warm.weights)
    with pytest.raises(ValueError, match="tol must be finite and not negative"):
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


@settings(deadline=None, derandomize=True, max_examples=40)
@given(small_chains(longest=9, labels=6), st.data())
def test_encode_and_decode_are_inverse(case, data):
    chain, _ = case
    label = st.integers(0, chain.n_labels - 1)
    labels = [data.draw(st.lists(label, min_size=n, max_size=n)) for n in chain.lengths.tolist()]
    z = chain.encode(labels)
    decoded = chain.decode(z)
    assert [list(found) for found in decoded] == labels
    assert all(found.dtype == np.int64 for found in decoded)
    assert (z <= chain.part_bound).all()
    for i, sequence in enumerate(labels):
        nodes, pairs = score_tables(chain, z, i)
        assert nodes.sum() == len(sequence)
        counts = np.zeros((chain.n_labels, chain.n_labels))
        for a, b in pairwise(sequence):
            counts[a, b] += 1
        np.testing.assert_array_equal(pairs if chain.transitions == "shared" else pairs.sum(axis=0), counts)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([[0, 1]], "expected 2 label sequences, got 1"),
        ([[0, 1], [0, 1]], r"example 1 has 3 positions but its labels have shape \(2,\); give one label per position"),
        ([[0, 1], [0, 1, 3]], r"example 1 has label 3; labels must lie in 0\.\.2, or build the chain with more labels"),
        ([[-1, 1], [0, 1, 2]], "example 0 has label -1"),
        ([[0.5, 1], [0, 1, 2]], "example 0: labels must be integers, got float64; number the labels from 0"),
        ([["N", "V"], [0, 1, 2]], "example 0: labels must be integers"),
    ],
)
def test_illegal_labels_are_refused_by_example(labels, message):
    with pytest.raises(ValueError, match=message):
        Chain([2, 3], 3).encode(labels)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([-1], 3), "lengths"),
        (([1.5], 3), "lengths"),
        (([[1]], 3), "lengths"),
        (([1], 0), "n_labels"),
        (([1], 40_000), "n_labels"),
    ],
)
def test_illegal_batches_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Chain(*arguments)


def test_illegal_transitions_and_shapes_are_refused():
    with pytest.raises(ValueError, match="transitions must be"):
        Chain([1], 2, transitions="some")
    chain = Chain([2], 2)
    for method in (chain.argmax, chain.project, chain.decode, lambda s: chain.k_best(s, 1)):
        with pytest.raises(ValueError, match=r"must have shape \(8,\)"):
            method(np.zeros(7))


@pytest.mark.parametrize("transitions", MODES)
def test_select_takes_examples_in_any_order_with_repeats(transitions):
    chain = Chain([3, 0, 1, 5], 4, transitions=transitions)
    scores = np.random.default_rng(0).normal(size=chain.n_parts)
    indices = np.array([3, 0, 3, 1, 2, 0])
    part = chain.select(indices)
    positions = chain.parts_of(indices)
    assert part.n_parts == len(positions)
    np.testing.assert_array_equal(part.part_bound, chain.part_bound[positions])
    whole, chosen = chain.argmax(scores), part.argmax(scores[positions])
    np.testing.assert_array_equal(chosen.z, whole.z[positions])
    np.testing.assert_array_equal(chosen.value, whole.value[indices])
    np.testing.assert_array_equal(part.project(scores[positions]).z, chain.project(scores).z[positions])
    assert chain.select([]).n_examples == 0


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
        point = chain.encode([[0], list(labels), [1, 2]])
        np.testing.assert_allclose(reference.project(chain, point), point, atol=1e-6)
        if labels[0] == 1:
            break

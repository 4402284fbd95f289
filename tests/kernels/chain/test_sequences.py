"""Chains of first and second order against enumeration and general solvers; ties, bad input, threads, selection."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import reference
from oracles.enumeration import vertices
from sequences import (
    KINDS,
    at_one_width,
    build,
    once,
    own_parts,
    repeated,
    score_tables,
    small_chains,
    some_constraints,
    viterbi,
)

import maxmargin
from maxmargin import _kernels
from maxmargin.structures import PointStatus, TransitionConstraints
from maxmargin.testing import check_structure

OK, INEXACT, NONFINITE, ABSENT = PointStatus.OK, PointStatus.INEXACT, PointStatus.NONFINITE, PointStatus.ABSENT
every_kind = pytest.mark.parametrize("kind", KINDS)


def rounding(chain, scores, i):
    return 1e-13 * (np.abs(own_parts(chain, scores, i)).sum() * max(chain.lengths[i], 1) + 1e-300)


def assert_projection(chain, point, points, tol=1e-8):
    """Feasible in its nodes, and optimal by the chain's own argmax: max_v (a - z)'(v - z) <= tol."""
    residual = point - points.z
    np.testing.assert_allclose(points.value, 0.5 * chain.by_example(residual**2), rtol=1e-12, atol=1e-300)
    assert points.z.min(initial=0.0) >= 0.0
    np.testing.assert_allclose(points.z[: chain.starts[1]].reshape(-1, chain.n_labels).sum(axis=1), 1.0, atol=1e-12)
    gap = chain.argmax(residual).value - chain.by_example(residual * points.z)
    assert (gap <= tol * (1.0 + chain.by_example(np.abs(point) * np.maximum(points.z, 1e-3)))).all()


@pytest.mark.usefixtures("every_vector_length")
@at_one_width(max_examples=100)
@given(small_chains(longest=5))
def test_argmax_is_the_best_of_all_sequences(case):
    chain, scores = case
    best = chain.argmax(scores)
    assert (best.status == OK).all()
    for i, outputs in enumerate(vertices(chain)):
        own, tol = own_parts(chain, scores, i), rounding(chain, scores, i)
        assert best.value[i] == pytest.approx((outputs @ own).max(), abs=tol)
        assert best.value[i] == pytest.approx(own_parts(chain, best.z, i) @ own, abs=tol)
    np.testing.assert_array_equal(chain.encode(chain.decode(best.z)), best.z)
    found = chain.labels(scores)
    assert [list(labels) for labels in found.outputs] == [list(labels) for labels in chain.decode(best.z)]
    assert found.value.tobytes() == best.value.tobytes()


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize(
    ("kind", "n_labels"),
    [
        *((kind, k) for kind in KINDS for k in (1, 2, 3, 7, 8, 9, 16, 17, 22, 33, 45)),
        *((kind, k) for kind in ("shared", "each") for k in (26, 40, 48, 49, 64, 100, 300)),
        *(("second-order", k) for k in (25, 50)),
    ],
)
def test_argmax_equals_the_slow_twin(kind, n_labels):
    rng = np.random.default_rng(n_labels)
    chain = build(kind, [0, 1, 2, 3, 11, 4] if n_labels < 300 else [0, 1, 2, 3], n_labels)
    for scores in (rng.normal(size=chain.n_parts), rng.integers(0, 3, size=chain.n_parts).astype(float)):
        best = chain.argmax(scores)
        labels = chain.decode(best.z)
        for i in range(chain.n_examples):
            expected, value = viterbi(chain, scores, i)
            np.testing.assert_array_equal(labels[i], expected)
            assert best.value[i] == pytest.approx(value, rel=1e-12)


@every_kind
@pytest.mark.parametrize("n_labels", [2, 5, 9, 26, 45])
def test_all_vector_lengths_agree(kind, n_labels):
    chain = build(
        kind, np.arange(9 if kind == "second-order" else 12), min(n_labels, 26 if kind == "second-order" else 45)
    )
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
@every_kind
@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize("n_labels", [1, 2, 5, 17, 26, 50])
def test_tables_given_once_are_tables_of_every_example(kind, n_labels, constrained):
    rng = np.random.default_rng(n_labels)
    k = min(n_labels, 26) if kind == "second-order" else n_labels
    chain = build(kind, rng.integers(0, 12, size=23), k, some_constraints(rng, k) if constrained else None)
    tables = once(chain, rng)
    packed = repeated(chain, *tables)
    best, shared, same = chain.argmax(packed), chain.labels(*tables), chain.labels(packed)
    assert shared.value.tobytes() == best.value.tobytes() == same.value.tobytes()
    assert shared.status.tobytes() == best.status.tobytes() == same.status.tobytes()
    np.testing.assert_array_equal(shared.outputs.flat, np.concatenate(chain.decode(best.z)))
    assert same.outputs.flat.tobytes() == shared.outputs.flat.tobytes()
    assert chain.max_marginals(*tables).tobytes() == chain.max_marginals(packed).tobytes()
    for i in range(chain.n_examples):
        alone = chain.select([i]).argmax(own_parts(chain, packed, i))
        assert alone.value[0] == best.value[i]
        np.testing.assert_array_equal(own_parts(chain, best.z, i), alone.z)


@pytest.mark.usefixtures("every_vector_length")
@every_kind
def test_forbidden_scores(kind):
    chain = build(kind, [5, 3, 2, 1], 3)
    rng = np.random.default_rng(7)
    scores = rng.normal(size=chain.n_parts)
    scores[rng.random(chain.n_parts) < 0.2] = -np.inf
    scores[chain.blocks[0].offsets[1] : chain.blocks[0].offsets[1] + 3] = -np.inf  # the second example has no output
    best, ranks, means = chain.argmax(scores), chain.k_best(scores, 300), chain.marginals(scores)
    assert best.status[1] == means.status[1] == ABSENT
    assert best.value[1] == means.value[1] == -np.inf
    assert not own_parts(chain, best.z, 1).any()
    assert not own_parts(chain, means.z, 1).any()
    assert all(points.status[1] == ABSENT for points in ranks)
    for i in (0, 2, 3):
        own = own_parts(chain, scores, i)
        values = np.sort([own[v > 0] @ v[v > 0] for v in vertices(chain)[i]])[::-1]
        values = values[values > -np.inf]
        np.testing.assert_allclose([points.value[i] for points in ranks[: len(values)]], values)
        assert [points.status[i] for points in ranks[: len(values)]] == [OK] * len(values)
        assert best.value[i] == pytest.approx(values[0])
        assert means.value[i] == pytest.approx(np.log(np.exp(values).sum()))
    nothing = chain.k_best(np.full(chain.n_parts, -np.inf), 5)
    assert [points.status.tolist() for points in nothing] == [[ABSENT] * 4]
    point = np.zeros(chain.n_parts)
    point[0] = -np.inf
    np.testing.assert_array_equal(chain.project(point).status, [NONFINITE, OK, OK, OK])


@every_kind
def test_constraints_that_leave_no_output(kind):
    never = TransitionConstraints(pairs=np.zeros((2, 2), bool), first=np.ones(2, bool), last=np.array([True, False]))
    chain = build(kind, [1, 2, 3, 0], 2, never)
    scores = np.array([1.0, 2.0] + [0.0] * (chain.n_parts - 2))
    ranks = chain.k_best(scores, 3)
    for points in (chain.argmax(scores), ranks[0], chain.marginals(scores), chain.project(scores)):
        np.testing.assert_array_equal(points.status, [OK, ABSENT, ABSENT, OK])
        np.testing.assert_array_equal(points.z[:2], [1.0, 0.0])
    assert len(ranks) == 1
    np.testing.assert_array_equal(chain.labels(scores).outputs.flat, [0, -1, -1, -1, -1, -1])
    most = np.full((6, 2), -np.inf)
    most[0, 0] = 1.0
    np.testing.assert_array_equal(chain.max_marginals(scores), most)
    tables = once(chain, np.random.default_rng(0))
    assert chain.labels(*tables).status.tolist() == [OK, ABSENT, ABSENT, OK]
    assert (chain.max_marginals(*tables) > -np.inf).sum() == 1


@every_kind
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([[], [2, 1, 0]], "example 1: label 2 may not come first; correct its labels"),
        ([[], [0, 0, 2]], r"example 1: label 2 at position 2 \(from 0\) may not come last; correct its labels"),
        ([[], [0, 1, 1]], r"example 1: label 1 at position 2 \(from 0\) may not follow label 1; correct"),
        ([[], [0, 1, 3]], "example 1 has label 3"),
    ],
)
def test_outputs_that_violate_the_constraints_are_refused_by_example(kind, labels, message):
    follow, ends = np.ones((3, 3), bool), np.array([True, True, False])
    follow[1, 1] = False
    chain = build(kind, [0, 3], 3, TransitionConstraints(pairs=follow, first=ends, last=ends))
    assert [list(own) for own in chain.decode(chain.encode([[], [0, 2, 1]]).dense())] == [[], [0, 2, 1]]
    with pytest.raises(ValueError, match=message):
        chain.encode(labels)


@every_kind
def test_bounds_hold_and_the_polytope_contains_the_outputs(kind):
    rng = np.random.default_rng(1)
    for constraints in (None, some_constraints(rng, 2)):
        chain = build(kind, [1, 6, 2, 3], 2, constraints)
        polytope = chain.polytope()
        assert polytope.lift.shape == (chain.n_parts, polytope.eq.shape[1])
        for i, outputs in enumerate(vertices(chain)):
            bound, most, nodes = own_parts(chain, chain.part_bound, i), outputs.max(axis=0), chain.lengths[i] * 2
            assert (most <= bound).all()
            if constraints is None:
                np.testing.assert_array_equal(most[:nodes], 1.0)
                np.testing.assert_array_equal(bound[:nodes], 1.0)
                if kind == "shared":  # a label may follow itself on every edge
                    np.testing.assert_array_equal(most[nodes::3], bound[nodes::3])
                one = chain.select([i])
                for point in outputs[:: max(len(outputs) // 3, 1)]:
                    np.testing.assert_allclose(reference.project(one, point), point, atol=1e-5)


@every_kind
@pytest.mark.parametrize("constrained", [False, True])
def test_promises_of_structures_are_kept(kind, constrained):
    rng = np.random.default_rng(2)
    check_structure(build(kind, [4, 0, 1, 2, 6], 3, some_constraints(rng, 3) if constrained else None), rng)


@pytest.mark.usefixtures("every_vector_length")
@at_one_width(max_examples=100)
@given(small_chains(), st.sampled_from([0.0, 0.15]))
def test_max_marginals_are_the_best_through_every_label(case, forbidden):
    chain, scores = case
    scores[np.random.default_rng(len(scores)).random(len(scores)) < forbidden] = -np.inf
    most, begin, k = chain.max_marginals(scores), 0, chain.n_labels
    for i, outputs in enumerate(vertices(chain)):
        own, length = own_parts(chain, scores, i), int(chain.lengths[i])
        worth = np.array([own[y > 0] @ y[y > 0] for y in outputs])
        nodes = outputs[:, : length * k].reshape(len(outputs), length, k) > 0
        expected = np.where(nodes, worth[:, None, None], -np.inf).max(axis=0, initial=-np.inf)
        tolerance = 1e-13 * (np.abs(own[own > -np.inf]).sum() * max(length, 1) + 1e-300)
        np.testing.assert_allclose(most[begin : begin + length], expected, rtol=0.0, atol=tolerance)
        begin += length


@every_kind
def test_argmax_equals_the_linear_program(kind):
    rng = np.random.default_rng(3)
    for constraints in (None, some_constraints(rng, 3)):
        chain = build(kind, [4, 0, 1, 2, 3, 6], 3, constraints)
        scores = rng.normal(size=chain.n_parts)
        assert chain.argmax(scores).value.sum() == pytest.approx(reference.maximum(chain, scores), rel=1e-9)


@every_kind
def test_argmax_of_a_large_chain_has_no_better_neighbor(kind):
    chain = build(kind, [300], 13)
    scores = np.random.default_rng(0).normal(size=chain.n_parts)
    best = chain.argmax(scores)
    rng = np.random.default_rng(1)
    for _ in range(100):
        (changed,) = chain.decode(best.z)
        first, size = rng.integers(0, 298), rng.integers(1, 4)
        changed[first : first + size] = rng.integers(0, 13, size=size)
        assert np.asarray(chain.encode([changed])) @ scores <= best.value[0] + 1e-9


@pytest.mark.usefixtures("every_vector_length")
@every_kind
@pytest.mark.parametrize("constrained", [False, True])
def test_same_bits_for_any_number_of_threads(kind, constrained):
    rng = np.random.default_rng(5)
    chain = build(kind, np.arange(40) % 14, 6, some_constraints(rng, 6) if constrained else None)
    scores, tables = rng.normal(size=chain.n_parts), once(chain, rng)
    results = []
    for n in (1, 2, 3):
        with maxmargin.threads(n):
            cold = chain.project(scores)
            warm = chain.project(scores + 0.01, warm=cold.warm)
            points = [chain.argmax(scores), *chain.k_best(scores, 4), chain.marginals(scores), cold, warm]
            found = [array.tobytes() for point in points for array in (point.z, point.value, point.status)]
            labels = chain.labels(scores), chain.labels(*tables)
            found += [array.tobytes() for one in labels for array in (one.outputs.flat, one.value, one.status)]
            most = chain.max_marginals(scores), chain.max_marginals(*tables)
            results.append([*found, *(array.tobytes() for array in most)])
    assert results[0] == results[1] == results[2]


@pytest.mark.usefixtures("every_vector_length")
@every_kind
def test_no_examples_and_no_positions(kind):
    none, empty = build(kind, [], 3), np.zeros(0)
    assert none.n_examples == none.n_parts == 0
    assert none.decode(np.asarray(none.encode([]))) == []
    for points in (none.argmax(empty), none.k_best(empty, 2)[0], none.project(empty), none.marginals(empty)):
        assert points.z.shape == points.value.shape == points.status.shape == (0,)
    blank = build(kind, [0, 0], 3)
    for chain in (none, blank):
        scores, tables = np.zeros(chain.n_parts), once(chain, np.random.default_rng(0))
        assert chain.max_marginals(scores).shape == chain.max_marginals(*tables).shape == (0, 3)
        for found in (chain.labels(scores), chain.labels(*tables)):
            assert found.outputs.flat.shape == (0,)
            assert found.value.tolist() == [0.0] * chain.n_examples
            assert found.status.tolist() == [OK] * chain.n_examples
    scores = np.ones(blank.n_parts)
    np.testing.assert_array_equal(blank.argmax(scores).value, [0.0, 0.0])
    (first,) = blank.k_best(scores, 2)
    for points in (first, blank.project(scores), blank.marginals(scores)):
        assert not points.z.any()
        assert (points.status == OK).all()
    assert [list(labels) for labels in blank.decode(np.zeros(blank.n_parts))] == [[], []]


@pytest.mark.usefixtures("every_vector_length")
@every_kind
@pytest.mark.parametrize("value", [0.0, 1.0, -3.5, 1e8, 1e-12])
def test_ties_go_to_the_lowest_labels(kind, value):
    chain = build(kind, [1, 2, 5, 20], 9 if kind == "second-order" else 17)
    scores = np.full(chain.n_parts, value)
    best = chain.argmax(scores)
    assert all((labels == 0).all() for labels in chain.decode(best.z))
    ranks = chain.k_best(scores, 4)
    assert ranks[0].z.tobytes() == best.z.tobytes()
    for points in ranks:
        there = points.status == OK
        np.testing.assert_allclose(points.value[there], best.value[there], rtol=1e-12)


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize(
    ("kind", "block"), [(kind, block) for kind in KINDS for block in range(len(build(kind, [1], 1).blocks))]
)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_scores_spoil_only_their_example(kind, block, bad):
    chain = build(kind, [3, 6, 2], 5)
    scores = np.random.default_rng(1).normal(size=chain.n_parts)

    def results(values):
        return chain.argmax(values), chain.k_best(values, 2)[1], chain.project(values), chain.marginals(values)

    clean = results(scores)
    for where in (0, 17, -1):
        spoilt, start = scores.copy(), chain.starts[block]
        inside = np.arange(start + chain.blocks[block].offsets[1], start + chain.blocks[block].offsets[2])
        spoilt[inside[where]] = bad
        for before, after in zip(clean, results(spoilt), strict=True):
            assert after.status.tolist() == [OK, NONFINITE, OK]
            assert np.isnan(after.value[1])
            assert not own_parts(chain, after.z, 1).any()
            for i in (0, 2):
                np.testing.assert_array_equal(own_parts(chain, before.z, i), own_parts(chain, after.z, i))
        most = chain.max_marginals(spoilt)
        assert np.isnan(most[3:9]).all()
        assert np.isfinite(most[[0, 1, 2, 9, 10]]).all()


@pytest.mark.usefixtures("every_vector_length")
@every_kind
def test_overflow_is_reported(kind):
    chain = build(kind, [30], 2)
    scores = np.full(chain.n_parts, 1e308)
    for points in (chain.argmax(scores), chain.marginals(scores)):
        assert points.status[0] == NONFINITE
        assert not points.z.any()
    assert chain.project(scores).status[0] in (OK, INEXACT, NONFINITE)


@pytest.mark.usefixtures("every_vector_length")
@at_one_width(max_examples=60)
@given(small_chains(), st.integers(1, 30))
def test_k_best_lists_the_best_sequences_in_order(case, k):
    chain, scores = case
    ranks, listed = chain.k_best(scores, k), vertices(chain)
    assert len(ranks) == max(1, min(k, max((len(outputs) for outputs in listed), default=0)))
    for i, outputs in enumerate(listed):
        expected = np.sort(outputs @ own_parts(chain, scores, i))[::-1][:k]
        found = np.array([points.value[i] for points in ranks])
        np.testing.assert_allclose(found[: len(expected)], expected, atol=rounding(chain, scores, i))
        assert (found[len(expected) :] == -np.inf).all()
        assert [p.status[i] for p in ranks] == [OK] * len(expected) + [ABSENT] * (len(ranks) - len(expected))
        drawn = {own_parts(chain, points.z, i).tobytes() for points in ranks[: len(expected)]}
        assert len(drawn) == len(expected)
        assert drawn <= {v.tobytes() for v in outputs}


@pytest.mark.usefixtures("every_vector_length")
@every_kind
def test_k_best_of_large_chains(kind):
    chain = build(kind, [40, 7], 12 if kind == "second-order" else 26)
    scores = np.random.default_rng(2).normal(size=chain.n_parts)
    ranks = chain.k_best(scores, 50)
    assert ranks[0].z.tobytes() == chain.argmax(scores).z.tobytes()
    assert (np.diff([points.value for points in ranks], axis=0) <= 0).all()
    for points in ranks:
        np.testing.assert_allclose(chain.by_example(points.z * scores), points.value, rtol=1e-12)
        np.testing.assert_array_equal(chain.encode(chain.decode(points.z)), points.z)
    assert len({points.z[: chain.starts[1]].tobytes() for points in ranks}) == 50
    with pytest.raises(ValueError, match="k must be an integer >= 1"):
        chain.k_best(scores, 0)


@pytest.mark.usefixtures("every_vector_length")
@at_one_width(max_examples=60)
@given(small_chains())
def test_projection_equals_the_interior_point_solver(case):
    chain, point = case
    projected = chain.project(point)
    assert (projected.status == OK).all()
    assert_projection(chain, point, projected)
    if np.abs(point).max(initial=0.0) < 100 and chain.n_parts:
        tol = 1e-6  # where a constraint just holds, interior points come no closer
        np.testing.assert_allclose(projected.z, reference.project(chain, point), atol=tol)


@pytest.mark.usefixtures("every_vector_length")
@every_kind
@pytest.mark.parametrize(("length", "n_labels", "scale"), [(25, 26, 1.0), (60, 9, 0.5), (30, 3, 1e8), (5, 4, 1e-12)])
def test_projection_of_large_chains_is_optimal(kind, length, n_labels, scale):
    if kind == "second-order":
        length, n_labels = min(length, 30), min(n_labels, 9)
    chain, rng = build(kind, [length, 3, length], n_labels), np.random.default_rng(length)
    point = scale * rng.normal(size=chain.n_parts)
    cold = chain.project(point)
    assert (cold.status == OK).all()
    assert_projection(chain, point, cold, tol=1e-11)
    moved = point + 0.01 * scale * rng.normal(size=chain.n_parts)
    warm = chain.project(moved, warm=cold.warm)
    assert_projection(chain, moved, warm, tol=1e-11)
    np.testing.assert_allclose(warm.z, chain.project(moved).z, atol=1e-8 * max(1.0, scale))
    other = build(kind, [length, 3, length], n_labels, some_constraints(rng, n_labels))
    assert other.project(point, warm=cold.warm).z.tobytes() == other.project(point).z.tobytes()


@settings(deadline=None, derandomize=True, max_examples=60)
@given(small_chains(longest=9, labels=5, constrained=False), st.data())
def test_encode_and_decode_are_inverse(case, data):
    chain, _ = case
    label = st.integers(0, chain.n_labels - 1)
    labels = [data.draw(st.lists(label, min_size=n, max_size=n)) for n in chain.lengths.tolist()]
    z = chain.encode(labels).dense()
    decoded = chain.decode(z)
    assert [list(found) for found in decoded] == labels
    assert all(found.dtype == np.int64 for found in decoded)
    assert (z <= chain.part_bound).all()
    for i, sequence in enumerate(labels):
        nodes, *tables = score_tables(chain, z, i)
        assert nodes.sum() == len(sequence)
        for order, table in enumerate(tables, start=2):
            counts = np.zeros((chain.n_labels,) * order)
            for t in range(len(sequence) - order + 1):
                counts[tuple(sequence[t : t + order])] += 1
            np.testing.assert_array_equal(table if table.ndim == order else table.sum(axis=0), counts)


@every_kind
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([[0, 1]], "1 label sequences for 2 examples; give one per example"),
        ([[0, 1], [0, 1]], r"example 1 has 3 positions but its labels have shape \(2,\); give one label per position"),
        ([[0, 1], [0, 1, 3]], r"example 1 has label 3; labels must lie in 0\.\.2, or build the .*with more labels"),
        ([[-1, 1], [0, 1, 2]], "example 0 has label -1"),
        ([[0.5, 1], [0, 1, 2]], "example 0: labels must be integers, labels numbered from 0, got shape .* of float64"),
        ([["N", "V"], [0, 1, 2]], "example 0: labels must be integers"),
    ],
)
def test_illegal_labels_are_refused_by_example(kind, labels, message):
    with pytest.raises(ValueError, match=message):
        build(kind, [2, 3], 3).encode(labels)


@every_kind
def test_illegal_batches_and_shapes_are_refused(kind):
    for lengths, n_labels, message in [
        ([-1], 3, "example 0: lengths must be at least 0, got -1"),
        ([1.5], 3, "lengths must"),
        ([[1]], 3, "lengths must"),
        ([1], 0, "n_labels must be an integer >= 1 and <= "),
        ([1], 40_000, "n_labels must be an integer >= 1 and <= "),
    ]:
        with pytest.raises(ValueError, match=message):
            build(kind, lengths, n_labels)
    with pytest.raises(ValueError, match="the constraints are for 3 labels, but the chain has 2"):
        build(kind, [1], 2, some_constraints(np.random.default_rng(0), 3))
    with pytest.raises(ValueError, match="constraints must be a TransitionConstraints or None, got str"):
        build(kind, [1], 2, "bio")
    chain = build(kind, [2], 2)
    methods = chain.argmax, chain.project, chain.decode, chain.marginals, chain.max_marginals, chain.labels
    for method in (*methods, lambda scores: chain.k_best(scores, 1)):
        with pytest.raises(ValueError, match=rf"must have shape \({chain.n_parts},\)"):
            method(np.zeros(chain.n_parts - 1))


@every_kind
def test_select_takes_examples_in_any_order_with_repeats(kind):
    rng = np.random.default_rng(0)
    chain = build(kind, [3, 0, 1, 5], 4, some_constraints(rng, 4))
    scores, indices = rng.normal(size=chain.n_parts), np.array([3, 0, 3, 1, 2, 0])
    part, positions = chain.select(indices), chain.parts_of(indices)
    assert part.n_parts == len(positions)
    np.testing.assert_array_equal(part.part_bound, chain.part_bound[positions])
    np.testing.assert_array_equal(part.argmax(scores[positions]).value, chain.argmax(scores).value[indices])
    for method in ("argmax", "project", "marginals"):
        found, whole = getattr(part, method)(scores[positions]), getattr(chain, method)(scores)
        np.testing.assert_array_equal(found.z, whole.z[positions])
    assert chain.select([]).n_examples == 0

from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles import reference
from oracles.enumeration import vertices
from oracles.second_order import product_chain, viterbi
from sequences import own_parts, score_tables, some_constraints

from maxmargin import _kernels
from maxmargin.structures.base import PointStatus
from maxmargin.structures.chain import Chain
from maxmargin.structures.second_order import SecondOrderChain
from maxmargin.structures.transitions import TransitionConstraints
from maxmargin.testing import check_structure

at_one_width = partial(
    settings, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
OK, INEXACT, NONFINITE, ABSENT = PointStatus.OK, PointStatus.INEXACT, PointStatus.NONFINITE, PointStatus.ABSENT


@st.composite
def small_chains(draw, longest=5, labels=3, rules=True):
    """A tiny batch with scores of the kind that make ties likely."""
    lengths = draw(st.lists(st.integers(0, longest), min_size=0, max_size=4))
    k = draw(st.integers(1, labels))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    constraints = some_constraints(rng, k) if rules and draw(st.booleans()) else None
    chain = SecondOrderChain(lengths, k, constraints=constraints)
    scale = draw(st.sampled_from([1e-12, 0.3, 1.0, 10.0, 1e8]))
    scores = rng.normal(size=chain.n_parts) if draw(st.booleans()) else rng.integers(-2, 3, size=chain.n_parts)
    if draw(st.booleans()) and len(lengths) > 1:  # the same tables for all
        for block, start in zip(chain.blocks[1:], chain.starts[1:], strict=False):
            table = scores[start : start + int(block.offsets[1])].copy()
            scores[start : start + int(block.offsets[-1])] = np.tile(table, len(lengths))
    return chain, scale * scores.astype(float)


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("n_labels", [1, 2, 3, 7, 8, 9, 16, 17, 22, 25, 33, 45, 50])
def test_argmax_equals_the_slow_twin(n_labels):
    rng = np.random.default_rng(n_labels)
    chain = SecondOrderChain([0, 1, 2, 3, 11, 4], n_labels)
    for scores in (rng.normal(size=chain.n_parts), rng.integers(0, 3, size=chain.n_parts).astype(float)):
        best = chain.argmax(scores)
        labels = chain.decode(best.z)
        for i in range(chain.n_examples):
            expected, value = viterbi(*score_tables(chain, scores, i))
            np.testing.assert_array_equal(labels[i], expected)
            assert best.value[i] == pytest.approx(value, rel=1e-12)


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transition_constraints", [False, True])
@pytest.mark.parametrize("n_labels", [2, 5, 17, 26])
def test_tables_given_once_are_tables_of_every_example(n_labels, transition_constraints):
    rng = np.random.default_rng(n_labels)
    lengths = rng.integers(0, 12, size=23)
    chain = SecondOrderChain(
        lengths, n_labels, constraints=some_constraints(rng, n_labels) if transition_constraints else None
    )
    nodes, k = rng.normal(size=(int(lengths.sum()), n_labels)), n_labels
    pairs, triples = rng.normal(size=(k, k)), rng.normal(size=(k, k, k))
    tables = [np.tile(table.ravel(), len(lengths)) for table in (pairs, triples)]
    packed = np.concatenate([nodes.ravel(), *tables])
    best, once = chain.argmax(packed), chain.labels(nodes, pairs, triples)
    assert once.value.tobytes() == best.value.tobytes()
    np.testing.assert_array_equal(once.outputs.flat, np.concatenate(chain.decode(best.z)))
    assert chain.labels(packed).outputs.flat.tobytes() == once.outputs.flat.tobytes()
    most = chain.max_marginals(nodes, pairs, triples)
    assert most.tobytes() == chain.max_marginals(packed).tobytes()
    one_by_one = [chain.select([i]).argmax(own_parts(chain, packed, i)) for i in range(len(lengths))]
    np.testing.assert_array_equal(best.value, [points.value[0] for points in one_by_one])
    for i, points in enumerate(one_by_one):
        np.testing.assert_array_equal(own_parts(chain, best.z, i), points.z)
    with pytest.raises(ValueError, match="pairs and triples must have shapes"):
        chain.labels(nodes, pairs, triples[0])
    with pytest.raises(ValueError, match="node scores must have shape"):
        chain.labels(nodes[1:], pairs, triples)


@pytest.mark.parametrize("n_labels", [2, 3, 9, 22])
def test_without_triples_it_is_a_chain(n_labels):
    rng = np.random.default_rng(n_labels)
    lengths = np.array([1, 7, 0, 2, 12])
    first, second = Chain(lengths, n_labels), SecondOrderChain(lengths, n_labels)
    scores = rng.normal(size=first.n_parts)
    with_zeros = np.concatenate([scores, np.zeros(len(lengths) * n_labels**3)])
    one, two = first.argmax(scores), second.argmax(with_zeros)
    np.testing.assert_array_equal(one.z, two.z[: first.n_parts])
    np.testing.assert_allclose(one.value, two.value, rtol=1e-12)
    one, two = first.marginals(scores), second.marginals(with_zeros)
    np.testing.assert_allclose(one.z, two.z[: first.n_parts], atol=1e-12)
    np.testing.assert_allclose(one.value, two.value, rtol=1e-12)
    for a, b in zip(first.k_best(scores, 6), second.k_best(with_zeros, 6), strict=True):
        np.testing.assert_allclose(a.value, b.value, rtol=1e-12)


@pytest.mark.parametrize(("length", "n_labels"), [(2, 4), (7, 3), (30, 5)])
def test_it_is_a_chain_over_pairs_of_labels(length, n_labels):
    chain = SecondOrderChain([length], n_labels)
    scores = np.random.default_rng(length).normal(size=chain.n_parts)
    over_pairs, other = product_chain(*score_tables(chain, scores, 0))
    assert chain.argmax(scores).value[0] == pytest.approx(over_pairs.argmax(other).value[0], rel=1e-12)
    one, two = chain.marginals(scores), over_pairs.marginals(other)
    assert one.value[0] == pytest.approx(two.value[0], rel=1e-12)
    k = n_labels
    joint = two.z[: (length - 1) * k * k].reshape(length - 1, k, k)
    np.testing.assert_allclose(one.z[k : length * k], joint.sum(axis=1).ravel(), atol=1e-12)
    np.testing.assert_allclose(one.z[length * k : length * k + k * k], joint.sum(axis=0).ravel(), atol=1e-11)
    for a, b in zip(chain.k_best(scores, 9), over_pairs.k_best(other, 9), strict=True):
        assert a.value[0] == pytest.approx(b.value[0], rel=1e-12)


@pytest.mark.usefixtures("every_vector_length")
def test_long_chains_have_their_layers_made_again():
    chain = SecondOrderChain([2500, 1023, 1025, 1026, 2049, 7], 4)
    rng = np.random.default_rng(0)
    for scores in (rng.normal(size=chain.n_parts), rng.integers(0, 2, size=chain.n_parts).astype(float)):
        best = chain.argmax(scores)
        for i, labels in enumerate(chain.decode(best.z)):
            expected, value = viterbi(*score_tables(chain, scores, i))
            np.testing.assert_array_equal(labels, expected)
            assert best.value[i] == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize("n_labels", [2, 5, 9, 26])
def test_all_vector_lengths_agree(n_labels):
    chain = SecondOrderChain(np.arange(9), n_labels)
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
            np.testing.assert_array_equal(one.value, two.value)
            np.testing.assert_array_equal(one.status, two.status)


@pytest.mark.usefixtures("every_vector_length")
def test_forbidden_scores():
    chain = SecondOrderChain([5, 3, 2, 1], 3)
    rng = np.random.default_rng(7)
    scores = rng.normal(size=chain.n_parts)
    scores[rng.random(chain.n_parts) < 0.2] = -np.inf
    scores[chain.blocks[0].offsets[1] : chain.blocks[0].offsets[1] + 3] = -np.inf  # the second example has no output
    best, ranks, means = chain.argmax(scores), chain.k_best(scores, 300), chain.marginals(scores)
    assert best.status[1] == means.status[1] == ABSENT
    assert best.value[1] == means.value[1] == -np.inf
    assert not own_parts(chain, best.z, 1).any()
    assert not own_parts(chain, means.z, 1).any()
    for i in (0, 2, 3):
        own = own_parts(chain, scores, i)
        values = np.sort([own[v > 0] @ v[v > 0] for v in vertices(chain)[i]])[::-1]
        values = values[values > -np.inf]
        np.testing.assert_allclose([points.value[i] for points in ranks[: len(values)]], values)
        assert means.value[i] == pytest.approx(np.log(np.exp(values).sum()))
    nothing = chain.k_best(np.full(chain.n_parts, -np.inf), 5)
    assert [points.status.tolist() for points in nothing] == [[ABSENT] * 4]
    point = np.zeros(chain.n_parts)
    point[0] = -np.inf
    np.testing.assert_array_equal(chain.project(point).status, [NONFINITE, OK, OK, OK])


def test_rules_that_leave_no_output():
    never = TransitionConstraints(pairs=np.zeros((2, 2), bool), first=np.ones(2, bool), last=np.array([True, False]))
    chain = SecondOrderChain([1, 2, 3, 0], 2, constraints=never)
    scores = np.array([1.0, 2.0] + [0.0] * (chain.n_parts - 2))
    ranks = chain.k_best(scores, 3)
    for points in (chain.argmax(scores), ranks[0], chain.marginals(scores), chain.project(scores)):
        np.testing.assert_array_equal(points.status, [OK, ABSENT, ABSENT, OK])
        np.testing.assert_array_equal(points.z[:2], [1.0, 0.0])
    assert len(ranks) == 1
    np.testing.assert_array_equal(chain.labels(scores).outputs.flat, [0, -1, -1, -1, -1, -1])


@pytest.mark.usefixtures("every_vector_length")
@at_one_width(max_examples=40)
@given(small_chains())
def test_max_marginals_are_the_best_through_every_label(case):
    chain, scores = case
    most = chain.max_marginals(scores)
    begin = 0
    for i, outputs in enumerate(vertices(chain)):
        own, length = own_parts(chain, scores, i), int(chain.lengths[i])
        values = outputs @ own
        for t in range(length):
            for label in range(chain.n_labels):
                through = values[outputs[:, t * chain.n_labels + label] > 0]
                expected = through.max(initial=-np.inf)
                assert most[begin + t, label] == pytest.approx(expected, abs=1e-12 * (np.abs(own).sum() * length))
        begin += length


def gibbs(chain, potentials, i):
    """Expected parts and log-partition function of example i, by enumeration."""
    outputs, own = vertices(chain)[i], own_parts(chain, potentials, i).astype(np.longdouble)
    scores = outputs @ own
    weights = np.exp(scores - scores.max())
    return (weights / weights.sum()).astype(float) @ outputs, float(scores.max() + np.log(weights.sum()))


def assert_consistent(chain, points):
    """Nodes sum to one, pairs are sums of triples but for the ends, and so on: every marginal is feasible."""
    k = chain.n_labels
    for i in np.flatnonzero(points.status == OK):
        length = int(chain.lengths[i])
        nodes, pairs, triples = score_tables(chain, points.z, i)
        assert points.z.min(initial=0.0) >= 0.0
        np.testing.assert_allclose(nodes.sum(axis=1), 1.0, atol=1e-11)
        if length > 1:
            np.testing.assert_allclose(pairs.sum(axis=1), nodes[:-1].sum(axis=0), atol=1e-11 * length)
            np.testing.assert_allclose(pairs.sum(axis=0), nodes[1:].sum(axis=0), atol=1e-11 * length)
        if length > 2:
            np.testing.assert_allclose(triples.sum(axis=(0, 2)), nodes[1:-1].sum(axis=0), atol=1e-11 * length)
        assert triples.sum() == pytest.approx(max(length - 2, 0), abs=1e-11 * max(length, 1))
        assert pairs.shape == (k, k)


def both_ways(chain, potentials):
    """Scaled probabilities, or logs where these would underflow; and logs."""
    found = [chain.marginals(potentials)]
    z, value = np.empty(chain.n_parts), np.empty(chain.n_examples)
    status = np.empty(chain.n_examples, dtype=np.int8)
    _kernels.second_order_marginals(*chain._packed(potentials), True, z, value, status, 1)
    return [*found, type(found[0])(z, value, status)]


@pytest.mark.usefixtures("every_vector_length")
@at_one_width(max_examples=60)
@given(small_chains())
def test_marginals_is_the_gibbs_distribution(case):
    chain, potentials = case
    for points in both_ways(chain, potentials):
        assert (points.status == OK).all()
        assert_consistent(chain, points)
        for i in range(chain.n_examples):
            means, value = gibbs(chain, potentials, i)
            scale = max(np.abs(own_parts(chain, potentials, i)).max(initial=1.0), 1.0)
            np.testing.assert_allclose(
                own_parts(chain, points.z, i), means, atol=1e-11 * min(scale, 1e4) + 1e-15 * scale
            )
            assert points.value[i] == pytest.approx(value, rel=1e-11, abs=1e-11)


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("scale", [1e-3, 1.0, 20.0, 200.0, 1e6])
@pytest.mark.parametrize(("length", "n_labels"), [(60, 7), (25, 17), (9, 26)])
def test_marginals_of_large_chains(length, n_labels, scale):
    rng = np.random.default_rng(length)
    chain = SecondOrderChain([length, 2, length - 3], n_labels, constraints=some_constraints(rng, n_labels, 0.8))
    potentials = scale * rng.normal(size=chain.n_parts)
    one, two = both_ways(chain, potentials)
    for points in (one, two):
        assert (points.status == OK).all()
        assert_consistent(chain, points)
    np.testing.assert_allclose(one.z, two.z, atol=1e-9 * max(scale / 1e3, 1.0))
    np.testing.assert_allclose(one.value, two.value, rtol=1e-11)
    assert (one.value >= chain.argmax(potentials).value - 1e-9 * scale).all()
    if scale <= 1.0:  # the marginals are the gradient of the log-partition function
        direction = rng.normal(size=chain.n_parts)
        step = 1e-5 * direction
        slope = (chain.marginals(potentials + step).value - chain.marginals(potentials - step).value) / 2e-5
        np.testing.assert_allclose(slope, chain.by_example(one.z * direction), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([[], [2, 1, 0]], "example 1: label 2 may not come first"),
        ([[], [0, 0, 2]], "example 1: label 2 at position 2 .* may not come last"),
        ([[], [0, 1, 1]], "example 1: label 1 at position 2 .* may not follow label 1"),
    ],
)
def test_outputs_that_break_the_rules_are_refused_by_example(labels, message):
    follow = np.ones((3, 3), bool)
    follow[1, 1] = False
    constraints = TransitionConstraints(pairs=follow, first=np.array([1, 1, 0], bool), last=np.array([1, 1, 0], bool))
    chain = SecondOrderChain([0, 3], 3, constraints=constraints)
    assert [list(own) for own in chain.decode(chain.encode([[], [0, 2, 1]]).dense())] == [[], [0, 2, 1]]
    with pytest.raises(ValueError, match=message):
        chain.encode(labels)


def test_part_bound_holds_and_the_polytope_contains_the_outputs():
    rng = np.random.default_rng(1)
    for constraints in (None, some_constraints(rng, 2)):
        chain = SecondOrderChain([1, 6, 2, 3], 2, constraints=constraints)
        for i, outputs in enumerate(vertices(chain)):
            bound = own_parts(chain, chain.part_bound, i)
            assert (outputs.max(axis=0) <= bound).all()
            if constraints is None:
                np.testing.assert_array_equal(outputs.max(axis=0)[: chain.lengths[i] * 2], 1.0)
                one = chain.select([i])
                for point in outputs[:: max(len(outputs) // 3, 1)]:
                    np.testing.assert_allclose(reference.project(one, point), point, atol=1e-5)


@pytest.mark.parametrize("transition_constraints", [False, True])
def test_it_keeps_the_promises_of_structures(transition_constraints):
    rng = np.random.default_rng(2)
    check_structure(
        SecondOrderChain([4, 0, 1, 2, 6], 3, constraints=some_constraints(rng, 3) if transition_constraints else None),
        rng,
    )

"""Sum-product on chains against enumeration, a slow twin, an interior-point method and optimality conditions."""

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from oracles.enumeration import vertices
from oracles.reference import conic
from oracles.structures.chain import gibbs, sum_product
from sequences import MODES, at_one_width, own_parts, score_tables

import maxmargin
from maxmargin import _kernels
from maxmargin.structures.base import PointStatus
from maxmargin.structures.chains.chain import Chain

OK, NONFINITE, ABSENT = PointStatus.OK, PointStatus.NONFINITE, PointStatus.ABSENT


def edges_of(chain, edges, i):
    """The edge marginals of example i among those of the batch."""
    ends = np.cumsum(np.maximum(chain.lengths - 1, 0))
    return edges[ends[i] - max(chain.lengths[i] - 1, 0) : ends[i]]


def assert_feasible(chain, points, edges):
    """Marginals sum to one, edges agree with nodes and pairs are sums of edges, all to rounding."""
    for i in np.flatnonzero(points.status == OK):
        nodes, pairs = score_tables(chain, points.z, i)
        own = edges_of(chain, edges, i)
        assert min(nodes.min(initial=0.0), own.min(initial=0.0), pairs.min(initial=0.0)) >= 0.0
        np.testing.assert_allclose(nodes.sum(axis=1), 1.0, rtol=0, atol=1e-12)
        np.testing.assert_allclose(own.sum(axis=2), nodes[:-1], rtol=0, atol=1e-12)
        np.testing.assert_allclose(own.sum(axis=1), nodes[1:], rtol=0, atol=1e-12)
        expected = own.sum(axis=0) if chain.transitions == "shared" else own
        np.testing.assert_allclose(pairs, expected, rtol=1e-12, atol=1e-12)


def assert_equals_twin(chain, potentials, points, i, scale):
    """Equal to the slow twin up to what rounding potentials of this scale does to probabilities."""
    nodes, edges, value = sum_product(*score_tables(chain, potentials, i))
    got_nodes, got_pairs = score_tables(chain, points.z, i)
    expected = edges.sum(axis=0) if chain.transitions == "shared" else edges
    tolerance = 1e-12 + 1e-14 * scale
    np.testing.assert_allclose(got_nodes, nodes, rtol=0, atol=tolerance)
    np.testing.assert_allclose(got_pairs, expected, rtol=0, atol=tolerance * max(len(nodes), 1))
    assert points.value[i] == pytest.approx(value, rel=1e-13, abs=1e-13 * scale + 1e-13)


@st.composite
def small_chains(draw, longest=4, labels=3, forbid=True):
    """A tiny batch with potentials of all scales, some of them forbidden."""
    lengths = draw(st.lists(st.integers(0, longest), min_size=0, max_size=4))
    chain = Chain(lengths, draw(st.integers(1, labels)), transitions=draw(st.sampled_from(MODES)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from([1e-12, 0.3, 1.0, 10.0, 300.0, 1e4, 1e6, 1e8]))
    potentials = rng.normal(size=chain.n_parts) if draw(st.booleans()) else rng.integers(-2, 3, size=chain.n_parts)
    potentials = scale * potentials.astype(float)
    if forbid and draw(st.booleans()):
        potentials[rng.random(chain.n_parts) < 0.25] = -np.inf
    return chain, potentials, scale


@pytest.mark.usefixtures("every_vector_length")
@at_one_width(max_examples=80)
@given(small_chains())
def test_equals_enumeration(case):
    chain, potentials, scale = case
    points = chain.marginals(potentials)
    _, means, value = gibbs(chain, potentials)
    for i in range(chain.n_examples):
        assert points.status[i] == (OK if value[i] > -np.inf else ABSENT)
        # A relative error of 1e-16 in sums of potentials is an absolute one in the exponents.
        np.testing.assert_allclose(own_parts(chain, points.z, i), means[i], rtol=0, atol=1e-13 + 1e-14 * scale)
        assert points.value[i] == pytest.approx(value[i], rel=1e-13, abs=1e-13 + 1e-14 * scale)
    assert_feasible(chain, points, chain.edge_marginals(potentials))


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
@pytest.mark.parametrize("n_labels", [1, 2, 3, 7, 8, 9, 16, 17, 26, 33, 45, 48, 49, 64, 100])
def test_equals_the_slow_twin(transitions, n_labels):
    rng = np.random.default_rng(n_labels)
    chain = Chain([0, 1, 2, 3, 11], n_labels, transitions=transitions)
    for scale in (1.0, 40.0, 300.0, 1e4, 1e6):
        potentials = scale * rng.normal(size=chain.n_parts)
        potentials[rng.random(chain.n_parts) < 0.05] = -np.inf
        points = chain.marginals(potentials)
        assert points.value[0] == 0.0
        for i in range(1, 5):
            if points.status[i] == OK:
                assert_equals_twin(chain, potentials, points, i, scale)
        assert (points.status == OK).any()
        assert_feasible(chain, points, chain.edge_marginals(potentials))


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
@pytest.mark.parametrize("scale", [1e-12, 0.1, 1.0, 10.0, 100.0, 300.0, 1e4])
def test_both_ways_agree(transitions, scale):
    """Probabilities and log-sum-exp; at 1e4 only the second is left, so that the bits are the same."""
    chain = Chain([0, 1, 2, 30, 100], 12, transitions=transitions)
    potentials = scale * np.random.default_rng(0).normal(size=chain.n_parts)
    potentials[np.random.default_rng(1).random(chain.n_parts) < 0.02] = -np.inf
    edges, z, value = np.empty((129, 12, 12)), np.empty(chain.n_parts), np.empty(5)
    status = np.empty(5, dtype=np.int8)
    asked = edges if transitions == "shared" else np.empty(0)
    _kernels.chain_marginals(*chain._layout, True, potentials, z, value, status, asked, 1)
    points = chain.marginals(potentials)
    np.testing.assert_array_equal(points.status, status)
    np.testing.assert_allclose(points.z, z, rtol=0, atol=1e-11)
    np.testing.assert_allclose(points.value, value, rtol=1e-13, atol=1e-13)
    if transitions == "shared":
        np.testing.assert_allclose(chain.edge_marginals(potentials), edges, rtol=0, atol=1e-11)
    if scale == 1e4:
        assert own_parts(chain, points.z, 4).tobytes() == own_parts(chain, z, 4).tobytes()


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
@pytest.mark.parametrize("scale", [1.0, 40.0, 80.0, 120.0, 160.0, 200.0, 300.0, 400.0, 1e4])
def test_a_mass_that_one_side_loses_comes_back(transitions, scale):
    """The best label of the prefix is forbidden later on, so the first message drops what the last one needs."""
    chain = Chain([6], 5, transitions=transitions)
    potentials = np.random.default_rng(2).normal(size=chain.n_parts)
    nodes = potentials[:30].reshape(6, 5)
    nodes[:3, 0] += scale
    pairs = potentials[30:].reshape(-1, 5, 5)
    pairs[:, 0, 1:] -= 4 * scale
    nodes[3:, 0] -= 5 * scale
    points = chain.marginals(potentials)
    assert points.status[0] == OK
    assert_equals_twin(chain, potentials, points, 0, scale)
    assert_feasible(chain, points, chain.edge_marginals(potentials))


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
@pytest.mark.parametrize("n_labels", [2, 5])
def test_what_the_fast_way_may_lose_is_lost_nowhere(transitions, n_labels):
    """Chains around the largest spread that scaled probabilities bear, against logs."""
    rng = np.random.default_rng(n_labels)
    chain = Chain(rng.integers(2, 9, size=600), n_labels, transitions=transitions)
    scale = chain.to_parts(rng.uniform(20.0, 1200.0, size=600))
    kind = chain.to_parts(rng.integers(0, 3, size=600).astype(float))
    steps, smooth = rng.integers(-1, 1, size=chain.n_parts).astype(float), rng.normal(size=chain.n_parts)
    rare = np.where(rng.random(chain.n_parts) < 0.1, -1.0, 0.01 * smooth)
    potentials = scale * np.select([kind == 0, kind == 1], [steps, 0.3 * smooth], rare)
    z, value, status = np.empty(chain.n_parts), np.empty(600), np.empty(600, dtype=np.int8)
    _kernels.chain_marginals(*chain._layout, True, potentials, z, value, status, np.empty(0), 1)
    points = chain.marginals(potentials)
    np.testing.assert_array_equal(points.status, status)
    np.testing.assert_allclose(points.z, z, rtol=0, atol=1e-11)
    np.testing.assert_allclose(points.value, value, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("transitions", MODES)
def test_the_gradient_of_the_log_partition_function_is_z(transitions):
    chain = Chain([1, 3, 5], 3, transitions=transitions)
    rng = np.random.default_rng(4)
    potentials = rng.normal(size=chain.n_parts)
    z = chain.marginals(potentials).z
    h = 1e-4
    for part in range(chain.n_parts):
        step = np.zeros(chain.n_parts)
        step[part] = h
        far = [chain.marginals(potentials + s * step).value.sum() for s in (-2, -1, 1, 2)]
        slope = (far[0] - 8 * far[1] + 8 * far[2] - far[3]) / (12 * h)
        assert slope == pytest.approx(z[part], abs=1e-10)


def numerical_step(outputs, center, step):
    """``argmax_p step'(outputs'p) - KL(p || center)`` over distributions of outputs by an interior-point method."""
    n = len(outputs)
    # Variables p and h with h_y <= -p_y log(p_y / center_y), which is the exponential cone (h, p, center).
    rows = [sp.hstack([sp.csc_array(np.ones((1, n))), sp.csc_array((1, n))])]
    rhs, cones = [1.0], [clarabel.ZeroConeT(1)]
    for y in range(n):
        block = sp.lil_array((3, 2 * n))
        block[0, n + y] = block[1, y] = -1.0
        rows.append(block)
        rhs.extend([0.0, 0.0, center[y]])
        cones.append(clarabel.ExponentialConeT())
    cost = -np.concatenate([outputs @ step, np.ones(n)])
    x, value = conic(np.zeros((2 * n, 2 * n)), cost, sp.vstack(rows), rhs, cones)
    return x[:n], -value


@pytest.mark.parametrize("transitions", MODES)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_bregman_projection_equals_a_numerical_one(transitions, seed):
    chain = Chain([3, 2, 1], 3, transitions=transitions)
    rng = np.random.default_rng(seed)
    start, step = rng.normal(size=chain.n_parts), rng.normal(size=chain.n_parts)
    centers, _, before = gibbs(chain, start)
    got = chain.marginals(start + step)
    for i, outputs in enumerate(vertices(chain)):
        p, value = numerical_step(outputs, centers[i], own_parts(chain, step, i))
        np.testing.assert_allclose(own_parts(chain, got.z, i), p @ outputs, rtol=0, atol=1e-5)
        # The best value of the step is the change of the log-partition function.
        assert got.value[i] - before[i] == pytest.approx(value, abs=1e-7)


def entropy(x):
    return -np.sum(np.where(x > 0, x * np.log(np.where(x > 0, x, 1.0)), 0.0))


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0, 1e3])
def test_large_chains_meet_the_variational_value(transitions, scale):
    """log Z = potentials'z + entropy, the entropy of a chain being that of its edges less that of inner nodes."""
    chain = Chain([200, 1, 57], 21, transitions=transitions)
    potentials = scale * np.random.default_rng(3).normal(size=chain.n_parts)
    points, edges = chain.marginals(potentials), chain.edge_marginals(potentials)
    assert (points.status == OK).all()
    assert_feasible(chain, points, edges)
    worth = chain.by_example(potentials * points.z)
    for i, length in enumerate(chain.lengths):
        nodes, _ = score_tables(chain, points.z, i)
        own = entropy(edges_of(chain, edges, i)) - entropy(nodes[1:-1]) if length > 1 else entropy(nodes)
        assert points.value[i] == pytest.approx(worth[i] + own, rel=1e-10)
    # Any other feasible point is worth less: here those of other potentials, mixed in.
    other = chain.marginals(np.random.default_rng(4).normal(size=chain.n_parts)).z
    assert (points.value >= chain.by_example(potentials * other)).all()


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
@pytest.mark.parametrize("n_labels", [3, 8, 21])
def test_large_potentials_give_the_argmax(transitions, n_labels):
    chain = Chain([1, 4, 40], n_labels, transitions=transitions)
    potentials = 1e4 * np.random.default_rng(n_labels).normal(size=chain.n_parts)
    points, best = chain.marginals(potentials), chain.argmax(potentials)
    runner_up = chain.k_best(potentials, 2)[1]
    for i in range(3):
        margin = best.value[i] - runner_up.value[i]
        assert points.value[i] >= best.value[i] * (1 - 1e-14)
        if margin > 60.0:
            np.testing.assert_allclose(own_parts(chain, points.z, i), own_parts(chain, best.z, i), atol=1e-20)
    for scale in (1e8, 1e15, 1e100):
        points = chain.marginals(scale * potentials)
        assert (points.status == OK).all()
        np.testing.assert_allclose(points.z, best.z, atol=1e-12)


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
@pytest.mark.parametrize("value", [0.0, 1.0, -3.5, 1e8, -1e8, 1e-12])
def test_equal_potentials_are_uniform(transitions, value):
    chain = Chain([1, 5, 20], 17, transitions=transitions)
    points = chain.marginals(np.full(chain.n_parts, value))
    np.testing.assert_allclose(points.z[: chain.starts[1]], 1 / 17, rtol=1e-13)
    expected = chain.lengths * np.log(17) + (2 * chain.lengths - 1) * value
    np.testing.assert_allclose(points.value, expected, rtol=1e-13)


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
def test_no_examples_and_no_positions(transitions):
    for lengths in ([], [0, 0]):
        none = Chain(lengths, 3, transitions=transitions)
        assert none.edge_marginals(np.ones(none.n_parts)).shape == (0, 3, 3)
        np.testing.assert_array_equal(none.marginals(np.ones(none.n_parts)).value, np.zeros(len(lengths)))
    single = Chain([1, 0, 1], 3, transitions=transitions)
    points = single.marginals(np.ones(single.n_parts))
    np.testing.assert_allclose(points.value, [1 + np.log(3), 0.0, 1 + np.log(3)])
    assert not points.z[single.starts[1] :].any()
    assert single.edge_marginals(np.ones(single.n_parts)).shape == (0, 3, 3)


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("block", [0, 1])
def test_bad_potentials_spoil_only_their_example(transitions, bad, block):
    chain = Chain([3, 12, 2], 10, transitions=transitions)
    potentials = np.random.default_rng(1).normal(size=chain.n_parts)
    clean = chain.marginals(potentials)
    start = chain.starts[block]
    inside = np.arange(start + chain.blocks[block].offsets[1], start + chain.blocks[block].offsets[2])
    for where in (0, 37, -1):
        spoilt = potentials.copy()
        spoilt[inside[where]] = bad
        got, edges = chain.marginals(spoilt), chain.edge_marginals(spoilt)
        np.testing.assert_array_equal(got.status, [OK, NONFINITE, OK])
        assert np.isnan(got.value[1])
        assert not own_parts(chain, got.z, 1).any()
        assert not edges_of(chain, edges, 1).any()
        for i in (0, 2):
            np.testing.assert_array_equal(own_parts(chain, clean.z, i), own_parts(chain, got.z, i))


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
def test_everything_forbidden_is_absent(transitions):
    chain = Chain([4, 4, 4, 1], 9, transitions=transitions)
    rng = np.random.default_rng(7)
    potentials = rng.normal(size=chain.n_parts)
    nodes = potentials[: chain.starts[1]].reshape(-1, 9)
    nodes[2] = -np.inf  # a position without a label
    nodes[12] = -np.inf  # the only position of the last example
    second = chain.starts[1] + chain.blocks[1].offsets
    potentials[second[1] : second[1] + 81] = -np.inf  # no pair at all
    got, edges = chain.marginals(potentials), chain.edge_marginals(potentials)
    np.testing.assert_array_equal(got.status, [ABSENT, ABSENT, OK, ABSENT])
    np.testing.assert_array_equal(got.value[[0, 1, 3]], -np.inf)
    for i in (0, 1, 3):
        assert not own_parts(chain, got.z, i).any()
        assert not edges_of(chain, edges, i).any()
    assert_equals_twin(chain, potentials, got, 2, 1.0)
    # Every label and many a pair is allowed, but no path.
    nodes[2] = 0.0
    nodes[1, 1:] = -np.inf
    first = potentials[second[0] : second[0] + 81 * (1 if transitions == "shared" else 3)].reshape(-1, 9, 9)
    first[:, 0, :] = -np.inf
    assert chain.marginals(potentials).status[0] == ABSENT


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
@pytest.mark.parametrize("magnitude", [1e300, 1e308])
def test_potentials_at_the_end_of_the_range(transitions, magnitude):
    chain = Chain([3, 1], 4, transitions=transitions)
    potentials = magnitude * np.sign(np.random.default_rng(0).normal(size=chain.n_parts))
    points = chain.marginals(potentials)
    for i in range(2):
        if points.status[i] == OK:
            assert np.isfinite(points.value[i])
            nodes, _ = score_tables(chain, points.z, i)
            np.testing.assert_allclose(nodes.sum(axis=1), 1.0, atol=1e-12)
        else:
            assert not own_parts(chain, points.z, i).any()


def mixed_batch(transitions, n_labels=11):
    """Chains of which some go one way and some the other, and some share their matrix with the one before."""
    chain = Chain(np.arange(40) % 9, n_labels, transitions=transitions)
    rng = np.random.default_rng(5)
    potentials = rng.normal(size=chain.n_parts)
    for i in range(0, 40, 3):
        potentials[chain.parts_of([i])] *= 1e4
    if transitions == "shared":
        pairs = potentials[chain.starts[1] :].reshape(40, n_labels, n_labels)
        pairs[20:] = pairs[20]
    return chain, potentials


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
def test_same_bits_for_any_number_of_threads_and_any_neighbors(transitions):
    chain, potentials = mixed_batch(transitions)
    results = []
    for n in (1, 2, 3):
        with maxmargin.threads(n):
            results.append((chain.marginals(potentials), chain.edge_marginals(potentials)))
    for points, edges in results[1:]:
        assert points.z.tobytes() == results[0][0].z.tobytes()
        assert points.value.tobytes() == results[0][0].value.tobytes()
        assert points.status.tobytes() == results[0][0].status.tobytes()
        assert edges.tobytes() == results[0][1].tobytes()
    chosen = np.random.default_rng(6).integers(0, 40, size=70)
    picked = chain.select(chosen).marginals(potentials[chain.parts_of(chosen)])
    assert picked.z.tobytes() == results[0][0].z[chain.parts_of(chosen)].tobytes()
    assert picked.value.tobytes() == results[0][0].value[chosen].tobytes()


@pytest.mark.parametrize("transitions", MODES)
@pytest.mark.parametrize("n_labels", [2, 5, 9, 26, 45])
def test_all_vector_lengths_agree(transitions, n_labels):
    chain, potentials = mixed_batch(transitions, n_labels)
    results = {}
    try:
        for wanted in (2, 4, 8):
            results[_kernels._use_lanes(wanted)] = chain.marginals(potentials)
    finally:
        _kernels._use_lanes(0)
    for other in results.values():
        np.testing.assert_allclose(other.z, results[2].z, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(other.value, results[2].value, rtol=1e-13)
        np.testing.assert_array_equal(other.status, results[2].status)


@pytest.mark.usefixtures("every_vector_length")
def test_exponentials_are_exact_to_a_few_units():
    """With two labels and one position the odds are one exponential."""
    x = -np.concatenate([np.linspace(0.0, 700.0, 5001), np.geomspace(1e-300, 1.0, 500)])
    chain = Chain(np.ones(len(x), dtype=int), 2)
    potentials = np.zeros(chain.n_parts)
    potentials[1 : chain.starts[1] : 2] = x
    nodes = chain.marginals(potentials).z[: chain.starts[1]].reshape(-1, 2)
    np.testing.assert_allclose(nodes[:, 1] / nodes[:, 0], np.exp(x), rtol=1e-15)


def test_chains_with_shared_and_own_matrices_agree():
    shared, each = Chain([5, 1, 7], 6), Chain([5, 1, 7], 6, transitions="each")
    potentials = np.random.default_rng(9).normal(size=shared.n_parts)
    pairs = potentials[shared.starts[1] :].reshape(3, 36)
    spread = np.concatenate([potentials[: shared.starts[1]], np.repeat(pairs, [4, 0, 6], axis=0).ravel()])
    one, two = shared.marginals(potentials), each.marginals(spread)
    np.testing.assert_allclose(one.value, two.value, rtol=1e-13)
    np.testing.assert_allclose(shared.edge_marginals(potentials), each.edge_marginals(spread), rtol=1e-12)
    np.testing.assert_allclose(one.z[: shared.starts[1]], two.z[: each.starts[1]], rtol=1e-12)


def test_wrong_shapes_are_refused():
    chain = Chain([2, 3], 4)
    assert chain.marginals_unsupported == ""
    with pytest.raises(ValueError, match=r"potentials must have shape \(52,\), got \(51,\)"):
        chain.marginals(np.zeros(51))
    with pytest.raises(ValueError, match="potentials must have shape"):
        chain.edge_marginals(np.zeros(51))
    outputs = np.zeros(52), np.zeros(2), np.zeros(2, dtype=np.int8)
    for edges in (np.zeros(16), np.zeros((4, 4, 4))):
        with pytest.raises(ValueError, match="edges do not fit the batch"):
            _kernels.chain_marginals(*chain._layout, False, np.zeros(52), *outputs, edges, 1)
    with pytest.raises(ValueError, match="outputs do not fit the batch"):
        _kernels.chain_marginals(*chain._layout, False, np.zeros(52), outputs[0][:-1], *outputs[1:], np.zeros(0), 1)


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("scale", [1.0, 150.0, 1e4])
def test_a_long_chain(scale):
    chain = Chain([2000], 3)
    potentials = scale * np.random.default_rng(8).normal(size=chain.n_parts)
    points = chain.marginals(potentials)
    assert_equals_twin(chain, potentials, points, 0, 10 * scale)
    assert_feasible(chain, points, chain.edge_marginals(potentials))


@pytest.mark.parametrize("lengths", [[1], [9], [9] * 50])
def test_the_kernel_leaves_subnormal_numbers_as_they_were(lengths):
    chain = Chain(lengths, 4)
    chain.marginals(300.0 * np.random.default_rng(0).normal(size=chain.n_parts))
    assert (np.full(16, 1e-300) * 1e-20 > 0).all()

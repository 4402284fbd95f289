import numpy as np
import pytest
from hypothesis import given
from oracles.enumeration import vertices
from oracles.structures.second_order import product_chain, viterbi
from sequences import at_one_width, own_parts, score_tables, small_chains, some_constraints

from maxmargin import _kernels
from maxmargin.structures.base import PointStatus
from maxmargin.structures.chains.chain import Chain
from maxmargin.structures.chains.second_order import SecondOrderChain

OK, INEXACT, NONFINITE, ABSENT = PointStatus.OK, PointStatus.INEXACT, PointStatus.NONFINITE, PointStatus.ABSENT


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
@given(small_chains(longest=5, kinds=("second-order",)))
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


def test_tables_that_do_not_fit_are_refused():
    chain, nodes, pairs = SecondOrderChain([2, 1], 3), np.zeros((3, 3)), np.zeros((3, 3))
    with pytest.raises(ValueError, match="pairs and triples must have shapes"):
        chain.labels(nodes, pairs, pairs)
    with pytest.raises(ValueError, match="node scores must have shape"):
        chain.labels(nodes[1:], pairs, np.zeros((3, 3, 3)))

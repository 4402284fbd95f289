"""Max-marginals of chains: by enumeration, and against the argmax."""

from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles.chain import max_marginals, vertices

import maxmargin
from maxmargin.structures import Chain, TransitionConstraints
from maxmargin.structures.base import PointStatus

MODES = ["shared", "each"]
at_one_width = partial(
    settings, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def by_example(chain, best):
    return np.split(best, np.cumsum(chain.lengths)[:-1])


def repeated(chain, nodes, pairs):
    times = chain.n_examples if chain.transitions == "shared" else int(np.maximum(chain.lengths - 1, 0).sum())
    return np.concatenate([nodes, np.tile(np.ravel(pairs), times)])


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
@at_one_width(max_examples=50)
@given(data=st.data())
def test_equal_enumeration(transitions, data):
    k = data.draw(st.integers(1, 3))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    share = data.draw(st.sampled_from([0.5, 0.8, 1.0]))
    rules = TransitionConstraints(rng.random((k, k)) < share, rng.random(k) < share, rng.random(k) < share)
    lengths = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    chain = Chain(lengths, k, transitions=transitions, constraints=rules if data.draw(st.booleans()) else None)
    scores = data.draw(st.sampled_from([1e-12, 1.0, 1e8])) * rng.normal(size=chain.n_parts)
    scores[rng.random(chain.n_parts) < data.draw(st.sampled_from([0.0, 0.15]))] = -np.inf
    found = by_example(chain, chain.max_marginals(scores))
    for i, outputs in enumerate(vertices(chain)):
        own = scores[chain.parts_of([i])]
        worth = np.array([own[y > 0] @ y[y > 0] for y in outputs])
        nodes = outputs[:, : lengths[i] * k].reshape(len(outputs), lengths[i], k) > 0
        expected = np.where(nodes, worth[:, None, None], -np.inf).max(axis=0, initial=-np.inf)
        tolerance = 1e-13 * (np.abs(own[own > -np.inf]).sum() + 1e-300)
        np.testing.assert_allclose(found[i], expected, rtol=0.0, atol=tolerance)


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
@pytest.mark.parametrize("n_labels", [1, 2, 7, 9, 16, 22, 26, 49, 100])
def test_agree_with_the_argmax_and_the_slow_twin(transitions, n_labels):
    rng = np.random.default_rng(n_labels)
    rules = TransitionConstraints(
        rng.random((n_labels, n_labels)) < 0.8, np.ones(n_labels, bool), rng.random(n_labels) < 0.7
    )
    chain = Chain([0, 1, 2, 3, 30], n_labels, transitions=transitions, constraints=rules if n_labels > 2 else None)
    scores = rng.normal(size=chain.n_parts)
    found = by_example(chain, chain.max_marginals(scores))
    best = chain.argmax(scores)
    masked = chain._masked(scores)
    for i, labels in enumerate(chain.decode(best.z)):
        np.testing.assert_allclose(found[i].max(axis=1), best.value[i], rtol=1e-12)
        np.testing.assert_allclose(found[i][np.arange(len(labels)), labels], best.value[i], rtol=1e-12)
        own, nodes = masked[chain.parts_of([i])], chain.lengths[i] * n_labels
        shape = (n_labels, n_labels) if transitions == "shared" else (-1, n_labels, n_labels)
        tables = own[nodes:].reshape(shape) if len(own) > nodes else np.zeros((0, n_labels, n_labels))
        expected = max_marginals(own[:nodes].reshape(-1, n_labels), tables)
        np.testing.assert_allclose(found[i], expected, rtol=1e-11)


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
@pytest.mark.parametrize("n_labels", [1, 5, 9, 22, 50])
def test_one_matrix_for_all(transitions, n_labels):
    rng = np.random.default_rng(n_labels)
    rules = TransitionConstraints(
        rng.random((n_labels, n_labels)) < 0.7, rng.random(n_labels) < 0.7, rng.random(n_labels) < 0.7
    )
    for constraints in (None, rules):
        chain = Chain(rng.integers(0, 9, size=25), n_labels, transitions=transitions, constraints=constraints)
        nodes, pairs = rng.normal(size=chain.starts[1]), rng.normal(size=(n_labels, n_labels))
        whole = chain.max_marginals(repeated(chain, nodes, pairs))
        assert chain.max_marginals(nodes, pairs).tobytes() == whole.tobytes()


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
def test_bad_and_absent_examples(transitions):
    chain = Chain([3, 0, 4, 2, 2], 5, transitions=transitions)
    rng = np.random.default_rng(0)
    nodes, pairs = rng.normal(size=chain.starts[1]), rng.normal(size=(5, 5))
    for bad in (np.nan, np.inf):
        spoilt = nodes.copy()
        spoilt[chain.blocks[0].offsets[2] + 7] = bad
        spoilt[-10:-5] = -np.inf
        for best in (chain.max_marginals(repeated(chain, spoilt, pairs)), chain.max_marginals(spoilt, pairs)):
            first, _, broken, fine, absent = by_example(chain, best)
            assert np.isnan(broken).all()
            assert (absent == -np.inf).all()
            assert np.isfinite(first).all()
            assert np.isfinite(fine).all()
        broken = pairs.copy()
        broken[4, 4] = bad
        assert np.isnan(chain.max_marginals(nodes, broken)).all()
    over = np.full(chain.n_parts, 1e308)
    assert (chain.argmax(over).status[chain.lengths > 0] == PointStatus.NONFINITE).all()
    assert np.isnan(chain.max_marginals(over)).all()


@pytest.mark.parametrize("transitions", MODES)
@pytest.mark.parametrize("value", [0.0, -3.5, 1e8, 1e-12])
def test_equal_scores(transitions, value):
    chain = Chain([1, 5], 17, transitions=transitions)
    best = chain.max_marginals(np.full(chain.n_parts, value))
    np.testing.assert_allclose(best, np.repeat([1, 9], [1, 5])[:, None] * np.full(17, value), rtol=1e-12)


@pytest.mark.parametrize("transitions", MODES)
def test_no_examples_and_threads(transitions):
    for lengths in ([], [0, 0]):
        none = Chain(lengths, 3, transitions=transitions)
        assert none.max_marginals(np.zeros(none.n_parts)).shape == (0, 3)
        assert none.max_marginals(np.zeros(0), np.zeros((3, 3))).shape == (0, 3)
    chain = Chain(np.arange(80) % 9, 11, transitions=transitions)
    rng = np.random.default_rng(5)
    scores, pairs = rng.normal(size=chain.n_parts), rng.normal(size=(11, 11))
    results = []
    for n in (1, 2, 3):
        with maxmargin.threads(n):
            best = chain.max_marginals(scores), chain.max_marginals(scores[: chain.starts[1]], pairs)
        results.append([one.tobytes() for one in best])
    assert results[0] == results[1] == results[2]
    with pytest.raises(ValueError, match="scores must have shape"):
        chain.max_marginals(scores[1:])

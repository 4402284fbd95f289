"""Max-marginals of chains: by enumeration, and against the argmax."""

import numpy as np
import pytest
from oracles.structures.chain import max_marginals
from sequences import MODES, repeated

from maxmargin.structures import Chain, TransitionConstraints
from maxmargin.structures.base import PointStatus


def by_example(chain, best):
    return np.split(best, np.cumsum(chain.lengths)[:-1])


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

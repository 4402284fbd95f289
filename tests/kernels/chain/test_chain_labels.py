"""Best label sequences without packed vectors: the same as the argmax, also where all examples share one matrix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.structures.chain import viterbi
from sequences import MODES, at_one_width, repeated

from maxmargin import _kernels
from maxmargin.structures.base import PointStatus
from maxmargin.structures.chains.chain import Chain

OK, NONFINITE, ABSENT = PointStatus.OK, PointStatus.NONFINITE, PointStatus.ABSENT


def assert_as_argmax(chain, scores, found):
    best = chain.argmax(scores)
    assert found.outputs.flat.dtype == np.int32
    assert found.value.tobytes() == best.value.tobytes()
    assert found.status.tobytes() == best.status.tobytes()
    good = np.repeat(best.status == OK, chain.lengths)
    expected = np.concatenate([np.zeros(0, dtype=np.int64), *chain.decode(best.z)])
    np.testing.assert_array_equal(found.outputs.flat, np.where(good, expected, -1))


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
@at_one_width(max_examples=40)
@given(data=st.data())
def test_labels_are_those_of_the_argmax(transitions, data):
    lengths = data.draw(st.lists(st.integers(0, 6), max_size=5))
    chain = Chain(lengths, data.draw(st.sampled_from([1, 2, 3, 5, 9, 17, 22, 50])), transitions=transitions)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    scale = data.draw(st.sampled_from([1e-12, 1.0, 1e8]))

    def drawn(size):
        values = scale * (rng.normal(size=size) if smooth else rng.integers(-1, 2, size=size)).astype(float)
        values[rng.random(size) < forbidden] = -np.inf
        return values

    smooth, forbidden = data.draw(st.booleans()), data.draw(st.sampled_from([0.0, 0.2, 0.7]))
    scores = drawn(chain.n_parts)
    assert_as_argmax(chain, scores, chain.labels(scores))
    nodes, pairs = drawn(chain.starts[1]), drawn((chain.n_labels, chain.n_labels))
    assert_as_argmax(chain, repeated(chain, nodes, pairs), chain.labels(nodes, pairs))


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("n_labels", [2, 13, 22, 26, 49, 100])
def test_labels_equal_the_slow_twin(n_labels):
    rng = np.random.default_rng(n_labels)
    chain = Chain([40, 1, 3], n_labels)
    nodes, pairs = rng.normal(size=chain.starts[1]), rng.normal(size=(n_labels, n_labels))
    found = chain.labels(nodes, pairs)
    rows = np.split(nodes.reshape(-1, n_labels), np.cumsum(chain.lengths)[:-1])
    for own, labels, value in zip(rows, np.split(found.outputs.flat, [40, 41]), found.value, strict=True):
        expected, worth = viterbi(own, pairs)
        np.testing.assert_array_equal(labels, expected)
        assert value == pytest.approx(worth, rel=1e-12)


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
def test_bad_scores_have_no_labels(transitions):
    chain = Chain([3, 0, 4, 2], 5, transitions=transitions)
    rng = np.random.default_rng(0)
    nodes, pairs = rng.normal(size=chain.starts[1]), rng.normal(size=(5, 5))
    for bad in (np.nan, np.inf):
        spoilt = nodes.copy()
        spoilt[chain.blocks[0].offsets[2] + 7] = bad
        spoilt[-10:-5] = -np.inf
        for found in (chain.labels(repeated(chain, spoilt, pairs)), chain.labels(spoilt, pairs)):
            assert found.status.tolist() == [OK, OK, NONFINITE, ABSENT]
            assert np.isnan(found.value[2])
            assert found.value[3] == -np.inf
            assert (found.outputs.flat[:3] >= 0).all()
            assert (found.outputs.flat[3:] == -1).all()
        broken = pairs.copy()
        broken[4, 4] = bad
        assert (chain.labels(nodes, broken).status == NONFINITE).all()
    over = chain.labels(np.full(chain.starts[1], 1e308), np.full((5, 5), 1e308))
    assert over.status.tolist() == [NONFINITE, OK, NONFINITE, NONFINITE]


def test_shapes_that_do_not_fit_are_refused():
    chain = Chain([2, 1], 3)
    with pytest.raises(ValueError, match=r"scores must have shape \(27,\), got \(9,\)"):
        chain.labels(np.zeros(9))
    with pytest.raises(ValueError, match=r"scores of the nodes, which go with pairs, must have shape \(9,\)"):
        chain.labels(np.zeros(27), np.zeros((3, 3)))
    with pytest.raises(ValueError, match=r"pairs must have shape \(3, 3\), got \(9,\)"):
        chain.labels(np.zeros(9), np.zeros(9))
    outputs = np.zeros(3, dtype=np.int32), np.zeros(2), np.zeros(2, dtype=np.int8), 1
    none, nodes, pairs = np.zeros(0), np.zeros(9), np.zeros((3, 3))
    for offsets in ([0, 6], [0, 12, 9], [0, 5, 9], [3, 6, 9], [0, -3, 9]):
        with pytest.raises(ValueError, match=r"fit|span|multiple"):
            _kernels.chain_labels_once(np.array(offsets), 3, nodes, pairs, none, none, *outputs)
    with pytest.raises(ValueError, match="one entry per label"):
        _kernels.chain_labels_once(np.array([0, 6, 9]), 3, nodes, pairs, np.zeros(2), none, *outputs)

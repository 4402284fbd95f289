"""The kernel of link features as the binding gives it: what it refuses, and what it writes for bad numbers."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.tasks import alignment as twin

from maxmargin.tasks import _kernels
from maxmargin.tasks.alignment.encoder.features import Evidence, LinkFeatures
from maxmargin.tasks.alignment.translation.words import IndexedBitext

NAMES = (
    *("source_start", "target_start", "grid_start", "source_word", "target_word"),
    *("letters_start", "letters", "shape", "digits", "kind"),
    *("model1_forward", "model1_backward", "hmm_forward", "hmm_backward", "together"),
    *("count_source", "count_target", "null_source", "null_target", "identity", "user"),
)


def arguments(**changes):
    """Two pairs, 2 x 1 and 1 x 2 words, of the words "ab" and "b"."""
    metadata = {
        "source_start": np.array([0, 2, 3]),
        "target_start": np.array([0, 1, 3]),
        "grid_start": np.array([0, 2, 4]),
        "source_word": np.array([0, 1, 0], dtype=np.int32),
        "target_word": np.array([1, 1, 0], dtype=np.int32),
        "letters_start": np.array([0, 2, 3]),
        "letters": np.array([97, 98, 98], dtype=np.uint32),
        "shape": np.array([0, 1], dtype=np.int32),
        "digits": np.array([-1, -1], dtype=np.int32),
        "kind": np.zeros(2, dtype=np.uint8),
        **{name: np.full(4, 0.5) for name in NAMES[10:15]},
        **{name: np.full(3, 0.5) for name in NAMES[15:19]},
        "identity": np.array([0, -1, 1, -1], dtype=np.int32),
        "user": np.ones((4, 1)),
    }
    return [{**metadata, **changes}[name] for name in NAMES]


def batch(**changes):
    return _kernels.LinkBatch(*arguments(**changes), 10.0)


ALL = (1 << len(_kernels.link_group_sizes())) - 1
WIDTH = sum(_kernels.link_group_sizes()) + 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source_start": np.array([0, 2, 4])}, "offsets must rise"),
        ({"source_start": np.array([0, 4, 3])}, "offsets must rise"),
        ({"source_start": np.array([0, 3])}, "one entry per sentence pair"),
        ({"grid_start": np.array([0, 3, 4])}, "source x target"),
        ({"grid_start": np.zeros(0, dtype=np.int64)}, "offsets must rise"),
        ({"source_word": np.array([0, 1, 2], dtype=np.int32)}, "outside the list of words"),
        ({"target_word": np.array([0, -1, 1], dtype=np.int32)}, "outside the list of words"),
        ({"letters_start": np.array([0, 2, 4])}, "offsets must rise"),
        ({"letters_start": np.array([0, 3])}, "one entry per word"),
        ({"letters": np.array([97, 98, 2**32 - 1], dtype=np.uint32)}, "not a code point"),
        ({"letters": np.full(70, 97, dtype=np.uint32), "letters_start": np.array([0, 65, 70])}, "too many letters"),
        ({"shape": np.zeros(1, dtype=np.int32)}, "one entry per word"),
        ({"hmm_forward": np.zeros(3)}, "same size"),
        ({"null_source": np.zeros(2)}, "one entry per word"),
        ({"identity": np.zeros(3, dtype=np.int32)}, "one entry per cell"),
        ({"user": np.zeros((3, 1))}, "one row per cell"),
        ({"user": np.zeros(4)}, "one row per cell"),
    ],
)
def test_batches_that_do_not_fit(changes, message):
    with pytest.raises(ValueError, match=message):
        batch(**changes)


@pytest.mark.parametrize("name", NAMES)
def test_arrays_are_never_converted(name):
    wrong = dict(zip(NAMES, arguments(), strict=True))[name].astype(np.float32)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        batch(**{name: wrong})


def test_numbers_of_pairs():
    for wrong in (np.nan, np.inf, -1.0):
        with pytest.raises(ValueError, match="n_pairs"):
            _kernels.LinkBatch(*arguments(), wrong)


def test_calls_that_do_not_fit():
    made, status = batch(), np.zeros(2, dtype=np.int8)
    weights, out = np.zeros(WIDTH + 2), np.zeros(4)
    made.scores(ALL, True, 2, weights, out, status, 1)
    wrong = [
        (lambda: made.scores(ALL + 1, True, 2, weights, out, status, 1), "no such group"),
        (lambda: made.scores(ALL, True, 1, weights[1:], out, status, 1), "too large"),
        (lambda: made.scores(ALL, True, -1, weights, out, status, 1), "number of word pairs"),
        (lambda: made.scores(ALL, True, 2, weights[1:], out, status, 1), "weights do not fit"),
        (lambda: made.scores(ALL, False, 2, weights, out, status, 1), "weights do not fit"),
        (lambda: made.scores(ALL, True, 2, weights, out[1:], status, 1), "one entry per cell"),
        (lambda: made.scores(ALL, True, 2, weights, out, status[1:], 1), "one entry per sentence pair"),
        (lambda: made.scores(ALL, True, 2, weights, out, status, 0), "threads"),
        (lambda: made.dense(ALL, True, np.zeros((4, WIDTH - 1)), status, 1), "one column per feature"),
        (lambda: made.dense(ALL, True, np.zeros((3, WIDTH)), status, 1), "one row per cell"),
        (lambda: made.count(ALL, True, 2, np.zeros(3, dtype=np.int64), status, 1), "one entry per cell"),
        (lambda: made.words(True, np.zeros((2, 14)), status, 1), "one row per word"),
        (lambda: made.words(True, np.zeros((3, 13)), status, 1), "one column per feature"),
    ]
    for call, message in wrong:
        with pytest.raises(ValueError, match=message):
            call()
    for start in ([0, 1, 2, 3], [0, 1, 2, 3, 5], [0, 3, 2, 3, 4], [1, 2, 3, 3, 4]):
        with pytest.raises(ValueError, match="start"):
            made.fill(ALL, True, 2, np.array(start), np.zeros(4, dtype=np.int32), np.zeros(4), status, 1)


def test_fill_never_writes_past_the_room_of_a_cell():
    made, status = batch(), np.zeros(2, dtype=np.int8)
    columns, values = np.full(4, -1, dtype=np.int32), np.zeros(4)
    made.fill(ALL, True, 2, np.array([0, 2, 2, 4, 4]), columns, values, status, 1)
    assert columns.tolist()[:1] == [0]
    assert (columns >= 0).all()


@pytest.mark.parametrize("name", [*NAMES[10:19], "user"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_pairs_with_bad_numbers_are_marked_and_zero(name, value):
    bad = dict(zip(NAMES, arguments(), strict=True))[name]
    bad[0] = value
    made, status = batch(**{name: bad}), np.zeros(2, dtype=np.int8)
    out = np.full((4, WIDTH), 7.0)
    made.dense(ALL, True, out, status, 1)
    assert status.tolist() == [2, 0]
    np.testing.assert_array_equal(out[:2], 0.0)
    assert np.isfinite(out).all()
    assert (out[2:, 0] == 1.0).all()
    scores, counts, words = np.full(4, 7.0), np.full(4, 7), np.full((3, 14), 7.0)
    made.scores(ALL, True, 0, np.ones(WIDTH), scores, status, 1)
    made.count(ALL, True, 0, counts, status, 1)
    made.words(True, words, status, 1)
    assert (scores[:2] == 0).all()
    assert (counts[:2] == 0).all()
    assert (words[:2] == 0).all()
    assert (words[2:, 0] == 1).all()


def test_the_batch_keeps_its_arrays_alive():
    made = batch(hmm_forward=np.full(4, 0.25))
    filler = [np.zeros(4) for _ in range(100)]
    out, status = np.zeros((4, 9)), np.zeros(2, dtype=np.int8)
    made.dense(4, False, out, status, 1)
    assert len(filler) == 100
    assert (out[:, 0] == 0.5).all()
    out = np.zeros((4, 18))
    made.dense(8, False, out, status, 1)
    assert (out[:, 0] == 0.25).all()


def test_same_bits_for_any_number_of_threads():
    n = 50
    words = np.zeros(2 * n, dtype=np.int32)
    metadata = {
        "source_start": 2 * np.arange(n + 1),
        "target_start": 2 * np.arange(n + 1),
        "grid_start": 4 * np.arange(n + 1),
        "source_word": words,
        "target_word": words + 1,
        **{name: np.random.default_rng(i).random(4 * n) for i, name in enumerate(NAMES[10:15])},
        **{name: np.random.default_rng(i).random(2 * n) for i, name in enumerate(NAMES[15:19])},
        "identity": np.zeros(4 * n, dtype=np.int32),
        "user": np.ones((4 * n, 1)),
    }
    made, found = batch(**metadata), []
    for threads in (1, 2, 3):
        status, dense, words = np.zeros(n, dtype=np.int8), np.zeros((4 * n, WIDTH)), np.zeros((2 * n, 14))
        scores, counts = np.zeros(4 * n), np.zeros(4 * n, dtype=np.int64)
        made.dense(ALL, True, dense, status, threads)
        made.scores(ALL, True, 1, np.linspace(-1, 1, WIDTH + 1), scores, status, threads)
        made.words(False, words, status, threads)
        made.count(ALL, True, 1, counts, status, threads)
        start = np.concatenate([[0], np.cumsum(counts)])
        columns, values = np.zeros(start[-1], dtype=np.int32), np.zeros(start[-1])
        made.fill(ALL, True, 1, start, columns, values, status, threads)
        found.append([array.tobytes() for array in (dense, scores, words, counts, columns, values)])
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("shape", [(1, 1), (7, 8), (8, 9), (2, 31), (2, 32), (2, 33), (33, 65)])
def test_whole_tiles_and_their_remainders(shape, every_vector_length):
    rng = np.random.default_rng(sum(shape))
    J, K = shape
    words = ["parlement", "parliament", "1998", ",", "The", "x" * 64, "xy" * 40]
    case = Evidence(
        IndexedBitext.of(*([[words[i] for i in rng.integers(0, len(words), n)]] for n in shape)),
        *rng.random((4, J * K)),
        rng.random(J),
        rng.random(K),
        rng.integers(0, 3, J * K).astype(float),
        rng.integers(3, 30, J).astype(float),
        rng.integers(3, 30, K).astype(float),
        500.0,
    )
    found, expected = LinkFeatures().matrix(case), twin.link_features(case)
    np.testing.assert_allclose(found, np.concatenate(list(expected.values()), axis=1), atol=1e-9)
    weights = rng.standard_normal(found.shape[1])
    np.testing.assert_allclose(LinkFeatures().scores(case, weights), found @ weights, atol=1e-10)

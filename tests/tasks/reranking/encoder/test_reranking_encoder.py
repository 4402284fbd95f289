from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from maxmargin._sparse import sp
from maxmargin.tasks.reranking.encoder.reranking import RerankingEncoder
from maxmargin.tasks.reranking.io.lists import NBestLists

OFFSETS = np.array([0, 3, 4, 8], dtype=np.int64)
TEXTS = ["a b", "a c", "a", "", "b b", "b c d", "a d", "c"]


def lists(**changes: object) -> NBestLists:
    values = np.random.default_rng(0).normal(size=(8, 2)) * [1e-3, 1e6] + [5.0, -1e9]
    return replace(NBestLists(TEXTS, OFFSETS, ("lm", "tm"), values, ["0", "1", "2"]), **changes)  # type: ignore[arg-type]


def within(values: np.ndarray) -> list[np.ndarray]:
    return np.split(values, OFFSETS[1:-1])


def test_spread_is_the_standard_deviation_within_lists() -> None:
    encoder, rows = RerankingEncoder().fit_rows(lists())
    centered = np.concatenate([one - one.mean(axis=0) for one in within(rows)])
    np.testing.assert_allclose(np.sqrt((centered**2).mean(axis=0)), 1.0, rtol=1e-6)
    np.testing.assert_allclose(rows * encoder.scale, lists().values)


def test_lists_normalized_one_by_one() -> None:
    _, rows = RerankingEncoder("list").fit_rows(lists())
    for one in within(rows):
        np.testing.assert_allclose(one.mean(axis=0), 0.0, atol=1e-7)
        np.testing.assert_allclose(one.std(axis=0), 1.0 if len(one) > 1 else 0.0, rtol=1e-7)


def test_features_that_never_vary_are_kept_as_they_are() -> None:
    encoder, rows = RerankingEncoder().fit_rows(lists(values=np.ones((8, 2))))
    np.testing.assert_array_equal(encoder.scale, 1.0)
    np.testing.assert_array_equal(rows, 1.0)
    np.testing.assert_array_equal(RerankingEncoder("list").fit_rows(lists(values=np.ones((8, 2))))[1], 0.0)


def everything() -> NBestLists:
    sparse = sp.csr_array(
        np.array([[1, 0, 2], [0, 0, 2], [3, 0, 2], [0] * 3, [0] * 3, [0, 1, 0], [0] * 3, [0] * 3], float)
    )
    segments = ["1:0-1:0-0 2:2-2:1-1", "1:0-2:0-1", "1:0-2:0-0", "", "1:0-0:0-1", "", "1:0-0:0-0", ""]
    return lists(
        sparse_names=("s_1", "s_2", "constant"), sparse=sparse, segments=segments, sources=["x y z", "u", "v w"]
    )


def test_sparse_features_of_every_kind() -> None:
    encoder, rows = RerankingEncoder(length=True, ngrams=2, phrases=True).fit_rows(everything())
    names = encoder.feature_names()
    assert len(names) == len(set(names)) == encoder.n_weights == rows.shape[1]
    found = dict(zip(names, rows.toarray().T, strict=True))
    np.testing.assert_array_equal(found["s_1"], [1, 0, 3, 0, 0, 0, 0, 0])
    assert "constant" not in names  # the same for all hypotheses of each list
    np.testing.assert_array_equal(found["phrase x y ||| a"], [1, 0, 0, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(found["phrase v ||| b b"], [0, 0, 0, 0, 1, 0, 0, 0])
    np.testing.assert_array_equal(found["ngram b"], [1, 0, 0, 0, 2, 1, 0, 0])
    np.testing.assert_allclose(found["length"] * encoder.scale[2], [len(text.split()) for text in TEXTS])
    copies = (encoder, pickle.loads(pickle.dumps(encoder)), RerankingEncoder.from_state(encoder.state()))
    for one in copies:
        np.testing.assert_array_equal(one.rows(everything()).toarray(), rows.toarray())


def test_sparse_features_that_occur_in_one_list_can_be_left_out() -> None:
    encoder, _ = RerankingEncoder(ngrams=1, min_lists=2).fit_rows(everything())
    assert set(encoder.feature_names()) == {"lm", "tm", "ngram b", "ngram c"}


def test_features_are_found_by_name() -> None:
    encoder, rows = RerankingEncoder().fit_rows(lists())
    swapped = lists(names=("tm", "more", "lm"), values=lists().values[:, [1, 0, 0]])
    np.testing.assert_array_equal(encoder.rows(swapped), rows)
    with pytest.raises(ValueError, match=r"lack the feature 'tm'.*they have lm"):
        encoder.rows(lists(names=("lm",), values=lists().values[:, :1]))


def test_lists_without_features_are_refused() -> None:
    empty = lists(names=(), values=np.zeros((8, 0)))
    with pytest.raises(ValueError, match="no features; give"):
        RerankingEncoder().fit_rows(empty)
    beyond = replace(everything(), segments=["1:0-0:0-9", *everything().segments[1:]])
    with pytest.raises(ValueError, match="the phrase 0-0:0-9 goes beyond the words"):
        RerankingEncoder(phrases=True).fit_rows(beyond)
    with pytest.raises(ValueError, match="no phrase segments"):
        RerankingEncoder(phrases=True).fit_rows(lists())
    with pytest.raises(ValueError, match="normalize must be one of"):
        RerankingEncoder("unit")

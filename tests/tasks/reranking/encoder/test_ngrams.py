from __future__ import annotations

import pickle
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.tasks.reranking.encoder.ngrams import NgramFeatures

TEXTS = st.lists(st.text(alphabet="ab é\n\t", max_size=8), min_size=1, max_size=8)


def grams(text: str, order: int) -> Counter[str]:
    words = ["<s>", *text.split(), "</s>"]
    return Counter(" ".join(words[i : i + n]) for n in range(1, order + 1) for i in range(len(words) - n + 1))


def varying(texts: list[str], offsets: np.ndarray, order: int) -> Counter[str]:
    """In how many lists an n-gram tells hypotheses apart."""
    found: Counter[str] = Counter()
    for first, last in pairwise(offsets):
        counts = [grams(text, order) for text in texts[first:last]]
        found.update(gram for gram in set().union(*counts) if len({one[gram] for one in counts}) > 1)
    return found


@given(TEXTS, st.integers(1, 3), st.integers(1, 2), st.integers(1, 3))
def test_counts_are_those_of_a_counter(texts: list[str], order: int, min_lists: int, size: int) -> None:
    offsets = np.unique([*range(0, len(texts), size), len(texts)]).astype(np.int64)
    features, matrix = NgramFeatures.learn(texts, offsets, order, min_lists)
    wanted = {gram for gram, lists in varying(texts, offsets, order).items() if lists >= min_lists}
    names = features.names()
    assert sorted(names) == sorted(wanted)
    assert features.n_features == len(names) == matrix.shape[1]
    dense = matrix.toarray()
    for row, text in enumerate(texts):
        counts = grams(text, order)
        np.testing.assert_array_equal(dense[row], [counts[name] for name in names])
    for again in (features, pickle.loads(pickle.dumps(features)), NgramFeatures.from_state(features.state())):
        np.testing.assert_array_equal(again.transform(texts).toarray(), dense)


def test_unknown_words_are_left_out() -> None:
    features, _ = NgramFeatures.learn(["a b", "a c"], np.array([0, 2]), 2, 1)
    found = dict(zip(features.names(), features.transform(["a x b"]).toarray()[0], strict=True))
    assert found == {"a b": 0, "b": 1, "b </s>": 1, "a c": 0, "c": 0, "c </s>": 0}


def test_a_damaged_state_is_refused() -> None:
    features, _ = NgramFeatures.learn(["a b", "a c"], np.array([0, 2]), 2, 1)
    state = features.state()
    for change in ({"last": state["last"] + 9}, {"prefixes": state["prefixes"][:-1]}):
        with pytest.raises(ValueError, match="n-gram"):
            NgramFeatures.from_state({**state, **change})
    with pytest.raises(ValueError, match="extend one before it"):
        NgramFeatures.from_state({**state, "prefixes": state["prefixes"] + 5})

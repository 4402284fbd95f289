from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from maxmargin._sparse import sp
from maxmargin.encoders.data.inputs import WordLattice
from maxmargin.structures.base import FloatArray
from maxmargin.tasks.reranking import (
    Lattices,
    NBestLists,
    WordErrorRate,
    made_lattices,
    made_lists,
    train_on_lattices,
)
from maxmargin.tasks.reranking.encoder.lattices import EdgeRows, merged
from maxmargin.tasks.reranking.encoder.reranking import RerankingEncoder
from maxmargin.tasks.reranking.training import RerankerSettings

SLOTS = [["a", "b", None], ["", "c d"], ["a", "b"]]


def network(seed: int) -> WordLattice:
    """A confusion network: one alternative of each slot, so that all paths are known."""
    rng = np.random.default_rng(seed)
    edges = [(slot, slot + 1) for slot, words in enumerate(SLOTS) for _ in words]
    words = [word for slot in SLOTS for word in slot]
    return WordLattice(rng.normal(size=(len(edges), 2)), np.array(edges), words=words)


def lattices() -> Lattices:
    return Lattices([network(0), network(1)], ("am", "lm"), ["x", "y"], [("a",), ("b",)])


def paths(lattice: WordLattice) -> dict[str, list[FloatArray]]:
    """The features of all paths by what they say."""
    starts = np.cumsum([0, *map(len, SLOTS)])
    found: dict[str, list[FloatArray]] = {}
    for choice in product(*map(range, map(len, SLOTS))):
        edges = [int(starts[slot]) + at for slot, at in enumerate(choice)]
        text = " ".join(word for edge in edges if (word := lattice.words[edge]))  # type: ignore[index]
        found.setdefault(text, []).append(np.asarray(lattice.features)[edges].sum(axis=0))
    return found


def test_the_best_texts_by_enumeration() -> None:
    weights = np.array([1.0, -0.5])
    edges = EdgeRows.of(lattices(), RerankingEncoder())
    lists = edges.best_lists(weights, 50)
    assert lists.ids == ["x", "y"]
    for i, lattice in enumerate(lattices().lattices):
        own = slice(int(lists.offsets[i]), int(lists.offsets[i + 1]))
        wanted = {text: max(rows, key=lambda row: float(row @ weights)) for text, rows in paths(lattice).items()}
        assert lists.texts[own] == sorted(wanted, key=lambda text: -float(wanted[text] @ weights))
        np.testing.assert_allclose(lists.values[own], [wanted[text] for text in lists.texts[own]])
    assert lists.totals is not None
    np.testing.assert_allclose(lists.totals, lists.values @ weights)
    few = edges.best_lists(weights, 3)
    assert few.texts == [text for i in range(2) for text in lists.texts[int(lists.offsets[i]) :][:3]]


def test_joined_lists_have_each_text_once() -> None:
    edges = EdgeRows.of(lattices(), RerankingEncoder())
    first, second = edges.best_lists(np.array([1.0, 0.0]), 3), edges.best_lists(np.array([0.0, 1.0]), 3)
    both = merged(first, second)
    for i in range(2):
        texts, known, more = (
            list(one.texts[int(one.offsets[i]) : int(one.offsets[i + 1])]) for one in (both, first, second)
        )
        assert texts == [*known, *(text for text in more if text not in known)]
    assert merged(both, first).n_hypotheses == both.n_hypotheses


def test_some_lattices_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    edges, weights = EdgeRows.of(lattices(), RerankingEncoder()), np.array([1.0, -0.5])
    whole = edges.best_lists(weights, 5)
    monkeypatch.setattr("maxmargin.tasks.reranking.encoder.lattices._NUMBERS_AT_ONCE", 1)
    again = edges.best_lists(weights, 5)
    assert (again.texts, again.offsets.tolist()) == (whole.texts, whole.offsets.tolist())
    np.testing.assert_array_equal(again.values, whole.values)


def test_a_text_that_is_spelled_in_two_ways_comes_once() -> None:
    both = WordLattice(np.array([[3.0], [1.0], [1.0], [0.5]]), [(0, 2), (0, 1), (1, 2), (0, 2)], ["a b", "a", "b", "c"])
    found = EdgeRows.of(Lattices([both], ("lm",), ["x"]), RerankingEncoder()).best_lists(np.ones(1), 3)
    assert (list(found.texts), found.values[:, 0].tolist()) == (["a b", "c"], [3.0, 0.5])


def test_the_length_is_a_feature_of_edges() -> None:
    lists = EdgeRows.of(lattices(), RerankingEncoder(length=True)).best_lists(np.array([1.0, 1.0, 0.0]), 9)
    assert lists.names == ("am", "lm", "length")
    np.testing.assert_array_equal(lists.values[:, 2], [len(text.split()) for text in lists.texts])


def test_what_lattices_cannot_have() -> None:
    for encoder, message in (
        (RerankingEncoder(ngrams=1), "n-grams and phrase pairs are features of lists"),
        (RerankingEncoder("list"), 'use normalize="spread"'),
        (RerankingEncoder(names=("tm",)), "lack the feature 'tm'.*they have am, lm"),
    ):
        with pytest.raises(ValueError, match=message):
            EdgeRows.of(lattices(), encoder)
    sparse = made_lists(4, size=3)
    names = sp.csr_array(np.arange(float(sparse.n_hypotheses))[:, None])
    fitted, _ = RerankingEncoder().fit_rows(replace(sparse, sparse_names=("x_y",), sparse=names))
    with pytest.raises(ValueError, match="only dense ones; train without sparse ones"):
        EdgeRows.of(lattices(), fitted)
    silent = [replace(lattices().lattices[0], words=None), *lattices().lattices[1:]]
    with pytest.raises(ValueError, match="lattice 0 has no words; give words"):
        EdgeRows.of(replace(lattices(), lattices=silent), RerankingEncoder(length=True))
    bare = [replace(one, features=np.zeros((len(one.edges), 0))) for one in lattices().lattices]  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no features; give scores on their edges"):
        EdgeRows.of(replace(lattices(), lattices=bare, names=()), RerankingEncoder())
    huge = replace(lattices(), lattices=[replace(one, features=one.features * 1e200) for one in lattices().lattices])  # type: ignore[operator]
    with pytest.raises(ValueError, match="example 0: its scores are not finite"):
        EdgeRows.of(huge, RerankingEncoder()).best_lists(np.array([1e200, 1.0]), 1)


def test_training_needs_references_and_known_names() -> None:
    metrics = (WordErrorRate(),)
    with pytest.raises(ValueError, match="no references"):
        train_on_lattices(replace(lattices(), references=None), metrics)
    with pytest.raises(ValueError, match="no feature of the lattices is called 'tm'; there are am, lm"):
        train_on_lattices(lattices(), metrics, weights={"tm": 1.0})


def quality(best: NBestLists, lattices: Lattices) -> float:
    """One minus the word error rate of the best texts."""
    assert lattices.references is not None
    metric = WordErrorRate()
    return float(metric.quality(metric.statistics(best.texts, lattices.references, best.owner).sum(axis=0)))


@pytest.mark.parametrize("method", ["mert", "max-margin"])
def test_training_on_lattices_beats_the_decoder(method: str) -> None:
    metric, decoder = WordErrorRate(), {"acoustic": 1.0, "lm": 3.0, "length": 0.0}
    settings = RerankerSettings(method=method, folds=2)
    train, other = made_lattices(25, 0), made_lattices(25, 3)
    model = train_on_lattices(train, (metric,), settings, weights=decoder, k=20, rounds=2)
    first = EdgeRows.of(other, RerankingEncoder()).best_lists(np.array(list(decoder.values())), 1)
    assert quality(model.best_of_lattices(other), other) > quality(first, other)
    if method == "mert":  # what the last run says, over all paths
        assert model.metadata["quality"] == pytest.approx(quality(model.best_of_lattices(train), train))

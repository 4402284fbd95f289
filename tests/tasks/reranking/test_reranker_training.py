from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.tasks.reranking import Bleu, ChrF, Gains, WordErrorRate, made_lists, made_transcripts, score
from maxmargin.tasks.reranking.encoder.reranking import RerankingEncoder
from maxmargin.tasks.reranking.io.lists import NBestLists
from maxmargin.tasks.reranking.model import RerankerModel
from maxmargin.tasks.reranking.training import Judged, RerankerSettings, train_reranker
from maxmargin.tasks.reranking.tuning.base import Method, Tuned, TuningLists
from maxmargin.tasks.reranking.tuning.methods import METHODS
from maxmargin.training.selection import folds


def judged(n: int = 40, seed: int = 0) -> Judged:
    lists = made_transcripts(n, seed, size=20)
    assert lists.references is not None
    return Judged.of(lists, lists.references, (WordErrorRate(), ChrF()))


@pytest.fixture(scope="module")
def lists() -> Judged:
    return judged()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_beats_the_decoder_on_other_lists(method: str, lists: Judged) -> None:
    model = train_reranker(lists, RerankerSettings(method=method, folds=3))
    other = judged(60, 1)
    chosen = other.lists.offsets[:-1] + model.predict(other.lists)
    rates = [score(other.metrics[0], other.statistics[0][rows]) for rows in (chosen, other.lists.offsets[:-1])]
    # LP (8) wants every good hypothesis above every bad one, which these features cannot do.
    assert rates[0] < rates[1] + (1.0 if method == "lp8" else 0.0)
    report = model.report
    assert report is not None
    assert [one.metric for one in report.held_out] == ["WER", "chrF2"]
    assert [one.tuned for one in report.held_out] == [True, False]
    assert report.held_out[0].oracle <= report.held_out[0].reranked
    assert (model.training is not None) == method.startswith(("lp", "max"))


def test_seeds_decide_and_threads_do_not(lists: Judged) -> None:
    for method in METHODS:
        runs = [
            train_reranker(lists, RerankerSettings(method=method, folds=2, n_jobs=jobs, random_state=3))
            for jobs in (1, 2)
        ]
        np.testing.assert_array_equal(runs[0].weights, runs[1].weights)
        assert runs[0].metadata == runs[1].metadata


@dataclass(frozen=True)
class Fixed(Method):
    """Weights that are known beforehand, to see what is chosen and reported."""

    C: float = 1.0
    name = "fixed"

    def tune(self, lists: TuningLists, *, start: Any = None, seed: int = 0) -> Tuned:
        return Tuned(np.array([self.C]))

    def candidates(self) -> tuple[Fixed, ...]:
        return tuple(replace(self, C=C) for C in (-1.0, 0.0, 1.0))

    def describe(self) -> dict[str, Any]:
        return {"C": self.C}


def test_folds_choose_and_each_takes_what_the_others_prefer() -> None:
    """By enumeration: with fixed weights held-out choices are those on all lists, fold by fold."""
    rng = np.random.default_rng(5)
    values, offsets = rng.normal(size=(60, 1)), np.arange(0, 61, 4)
    gains = rng.normal(size=60) + 0.2 * values[:, 0]
    data = NBestLists([""] * 60, offsets, ("x",), values, [str(i) for i in range(15)])
    settings = RerankerSettings(method=Fixed(), folds=4, encoder=RerankingEncoder("none"), random_state=2)
    model = train_reranker(Judged.of(data, [()] * 15, (Gains(gains),)), settings)
    own = gains.reshape(15, 4)
    picked = {C: own[np.arange(15), (C * values.reshape(15, 4)).argmax(axis=1)] for C in (-1.0, 0.0, 1.0)}
    means = {C: float(one.mean()) for C, one in picked.items()}
    best = max(means, key=means.__getitem__)
    report = model.report
    assert report is not None
    assert report.variant == Fixed(best)
    np.testing.assert_array_equal(model.weights, [best])
    assert {settings["C"]: shown for settings, shown in report.tried} == pytest.approx(means)
    honest = np.zeros(15)
    for part in folds(15, 4, 2):
        rest = np.setdiff1d(np.arange(15), part)
        preferred = max(picked, key=lambda C: picked[C][rest].sum())
        honest[part] = picked[preferred][part]
    assert report.held_out[0].reranked == pytest.approx(honest.mean())
    assert report.held_out[0].first == pytest.approx(own[:, 0].mean())
    assert report.held_out[0].oracle == pytest.approx(own.max(axis=1).mean())


def test_dev_lists_choose_in_place_of_folds(lists: Judged) -> None:
    dev = judged(20, 7)
    model = train_reranker(lists, RerankerSettings(method="pro", C=[0.01, 1.0]), dev=dev)
    report = model.report
    assert report is not None
    assert report.folds == 0
    assert len(report.tried) == 2
    rows = dev.lists.offsets[:-1] + model.predict(dev.lists)
    assert report.held_out[0].reranked == pytest.approx(score(dev.metrics[0], dev.statistics[0][rows]))


def test_nothing_held_out(lists: Judged) -> None:
    for data, settings in ((lists, RerankerSettings(method="pro", folds=0)), (lists.select(np.array([0])), None)):
        report = train_reranker(data, settings).report
        assert report is not None
        assert report.held_out == ()


def test_signs_by_name(lists: Judged) -> None:
    for method in METHODS:
        settings = RerankerSettings(method=method, folds=0, positive=["acoustic"], negative=["lm", "length"])
        weights = train_reranker(lists, settings).dense_weights
        assert weights["acoustic"] >= 0.0
        assert weights["lm"] <= 0.0
        assert weights["length"] <= 0.0


def test_sparse_features_beside_dense_ones() -> None:
    data = made_lists(30, 0, size=15)
    assert data.references is not None
    settings = RerankerSettings(encoder=RerankingEncoder(ngrams=2, length=True), folds=2, C=[0.01])
    model = train_reranker(Judged.of(data, data.references, (Bleu(),)), settings)
    assert len(model.weights) > 500
    assert model.predict(made_lists(5, 1, size=15))


def test_lists_normalized_one_by_one_have_no_weights_for_a_decoder(lists: Judged) -> None:
    model = train_reranker(lists, RerankerSettings(method="perceptron", encoder=RerankingEncoder("list"), folds=0))
    with pytest.raises(ValueError, match='train with normalize="spread"'):
        _ = model.dense_weights


def test_a_file_keeps_the_model(lists: Judged, tmp_path: Any) -> None:
    model = train_reranker(lists, RerankerSettings(encoder=RerankingEncoder(ngrams=1), folds=2, C=[0.1]))
    model.save(tmp_path / "model")
    loaded = mm.load(tmp_path / "model")
    assert isinstance(loaded, RerankerModel)
    for one, other in zip(model.scores(lists.lists), loaded.scores(lists.lists), strict=True):
        np.testing.assert_array_equal(one, other)
    assert loaded.describe() == model.describe()
    assert loaded.k_best_texts(lists.lists, 2) == model.k_best_texts(lists.lists, 2)


def test_rankings_of_a_model(lists: Judged) -> None:
    model = train_reranker(lists, RerankerSettings(method="perceptron", folds=0))
    ranks, scores, best = (one(lists.lists) for one in (model.rank, model.scores, model.best_texts))
    for i, (order, own) in enumerate(zip(ranks, scores, strict=True)):
        assert (np.diff(own[order]) <= 0).all()
        assert model.predict(lists.lists)[i] == order[0]
        assert best[i] == lists.lists.texts[lists.lists.offsets[i] + order[0]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "mart"}, "no method is called 'mart'; give one of max-margin, lp7"),
        ({"method": "mert", "C": [1.0]}, "mert has no C"),
        ({"C": []}, "C is empty"),
        ({"folds": 1}, "folds must be 0"),
        ({"level": 1.0}, "level must be"),
        ({"positive": ["a"], "negative": ["a"]}, "'a' is among the positive and the negative"),
        ({"positive": ["b"]}, "no dense feature is called 'b'; there are acoustic, lm, length"),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str, lists: Judged) -> None:
    with pytest.raises(ValueError, match=message):
        train_reranker(lists, RerankerSettings(**settings))


def test_references_must_fit(lists: Judged) -> None:
    with pytest.raises(ValueError, match="there are 40 lists and 1 references"):
        Judged.of(lists.lists, [("a",)], (WordErrorRate(),))

"""Folds of the training sentences: the choice of C, and probabilities without dev data."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from corpora import WORDS, chunked, dictionaries, markov, matrices

from maxmargin.solvers import AveragedPerceptron
from maxmargin.tasks.tagging import SequenceTagger, folds, load_corpus, training
from maxmargin.tasks.tagging.encoder.extraction import TokenRows
from maxmargin.tasks.tagging.folds import GRID, LEAST_SENTENCES, MOST_TOKENS, RUNS, Folds, cut
from maxmargin.training import train_examples
from maxmargin.training.selection import climb


def bits(tagger):
    return tagger.model_.weights.tobytes(), tagger.model_.calibration, tagger.choices_


@pytest.mark.parametrize(("n", "k"), [(20, 2), (100, 3), (5, 3), (3000, 4)])
def test_folds_are_runs_of_neighbors(n, k):
    lengths = np.random.default_rng(0).integers(0, 30, size=n)
    parts = cut(lengths, k)
    assert len(parts) == k
    together = np.concatenate(parts)
    assert len(set(together.tolist())) == len(together)
    assert (lengths[together] > 0).all()
    assert lengths[together].sum() <= MOST_TOKENS
    if lengths.sum() <= MOST_TOKENS // 2:
        assert set(together.tolist()) == set(np.flatnonzero(lengths).tolist())
    of = np.full(n, -1)
    for number, part in enumerate(parts):
        of[part] = number
    seen = of[of >= 0]
    assert (np.diff(seen) != 0).sum() < k * RUNS


def test_climbing():
    def climbed(scores, start=0.3):
        return climb(GRID, start, lambda C: scores[GRID.index(C)])

    assert climbed([0.0, 0.1, 0.2, 0.3, 0.2, 0.1, 0.0]) == (0.3, [(0.1, 0.2), (0.3, 0.3), (1.0, 0.2)])
    assert climbed([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6])[0] == 10.0
    assert climbed([0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0])[0] == 0.01
    assert climbed([0.9] * 7)[0] == 0.3  # of equal ones, where it starts
    assert climbed([0.9, 0.9, 0.9, 0.9, 0.901, 0.9, 0.9])[0] == 0.3  # too little for a larger one
    assert climbed([0.9, 0.9, 0.901, 0.9, 0.9, 0.9, 0.9])[0] == 0.1
    assert climb((1.0, 0.1), None, lambda C: C) == (1.0, [(0.1, 0.1), (1.0, 1.0)])


def test_folds_share_the_time_limit(monkeypatch):
    """Every score takes ten seconds of a clock that stands still otherwise."""
    clock = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    real, limits = Folds.score, []

    def slow(self, C):
        clock[0] += 10.0
        return real(self, C)

    def watched(examples, settings, **more):
        limits.append(settings.max_seconds)
        return train_examples(examples, settings, **more)

    monkeypatch.setattr(Folds, "score", slow)
    monkeypatch.setattr(training, "train_examples", watched)
    X, y = chunked(60, seed=2, longest=8)
    tagger = SequenceTagger(C=GRID, max_seconds=100.0).fit(dictionaries(X), y)
    assert [choice["C"] for choice, _ in tagger.choices_] == [0.01, 0.03, 0.1]  # after 30 seconds no other is tried
    assert tagger.model_.metadata["C"] in (0.01, 0.03, 0.1)
    folds, rest = limits[:9], limits[9:]
    assert folds == [100.0 / 4 / 3] * 9
    # Models of the last C tried are kept for calibration, else folds are trained again, for which time is left.
    assert rest in ([70.0], [45.0, *[100.0 / 4 / 3] * 3])
    limits.clear()
    SequenceTagger(C=0.1, max_seconds=100.0).fit(dictionaries(X), y)
    assert limits == [75.0, *[100.0 / 4 / 3] * 3]  # a quarter is kept for the folds that calibrate


def test_own_attributes_have_C_chosen_and_presets_their_own():
    X, y = chunked(60, seed=2, longest=8)
    tagger = SequenceTagger().fit(dictionaries(X), y)
    metadata = tagger.model_.metadata
    assert (metadata["chosen_on"], metadata["calibrated_on"], tagger.calibrated_on) == ("folds",) * 3
    assert metadata["C"] in [C for C, _ in metadata["tried"]]
    assert tagger.choices_ == tuple(({"C": C}, score) for C, score in metadata["tried"])
    alone = SequenceTagger(C=metadata["C"]).fit(dictionaries(X), y)
    assert alone.model_.weights.tobytes() == tagger.model_.weights.tobytes()
    assert alone.model_.calibration == tagger.model_.calibration
    assert alone.choices_ == ()
    own = SequenceTagger(preset="pos").fit(X, y)
    assert own.choices_ == ()
    assert own.calibrated_on == "folds"
    assert SequenceTagger(preset="pos", C="auto").fit(X, y).choices_
    assert bits(SequenceTagger(n_jobs=2).fit(dictionaries(X), y)) == bits(tagger)
    given = SequenceTagger(C=[1.0, 0.1], template=WORDS).fit(X, y)
    assert [one["C"] for one, _ in given.choices_] == [0.1, 1.0]
    assert bits(SequenceTagger(C=[0.1, 1.0], template=WORDS).fit(X, y)) == bits(given)


@pytest.mark.parametrize("kind", ["edges", "order", "unknown", "weights", "perceptron", "metric"])
def test_all_that_can_be_trained_has_folds(kind):
    X, y = markov(40, seed=5)
    settings, data = {"template": WORDS}, {}
    if kind == "edges":
        X, settings = matrices(X, edges=True), {}
    elif kind == "order":
        settings["order"] = 2
    elif kind == "unknown":
        y = [[None if (i + t) % 7 == 0 else label for t, label in enumerate(labels)] for i, labels in enumerate(y)]
        y[3] = [None] * len(y[3])
    elif kind == "weights":
        data = {"sample_weight": np.arange(len(X)) % 3 + 0.5, "loss_weight": [np.ones(len(x)) * 2 for x in X]}
    elif kind == "perceptron":
        settings |= {"solver": AveragedPerceptron(), "max_iter": 2}
    else:
        settings["metric"] = lambda gold, found: float(np.mean([a == b for a, b in zip(gold, found, strict=True)]))
    tagger = SequenceTagger(**settings).fit(X, y, **data)
    assert tagger.calibrated_on == "folds"
    assert tagger.model_.temperature > 0
    assert bool(tagger.choices_) == (kind != "perceptron")


def test_few_sentences_have_no_folds():
    X, y = markov(LEAST_SENTENCES - 1, seed=5)
    tagger = SequenceTagger(template=WORDS).fit(X, y)
    assert tagger.calibrated_on is None
    assert tagger.model_.metadata["C"] == 0.3
    assert tagger.choices_ == ()
    with pytest.raises(ValueError, match=r"several values of C are compared on dev data, or by folds of 20 sentences"):
        SequenceTagger(template=WORDS, C=[0.1, 1]).fit(X, y)
    with pytest.raises(ValueError, match="folds must be an integer >= 0"):
        SequenceTagger(template=WORDS, folds=-1).fit(X, y)
    # Further sentences keep the calibration of earlier ones if they are too few for one of their own.
    X, y = markov(60, seed=5)
    tagger = SequenceTagger(template=WORDS).fit(X, y)
    before = tagger.model_.calibration
    tagger.partial_fit(X[:5], y[:5])
    assert (tagger.model_.calibration, tagger.calibrated_on) == (before, "folds")
    tagger.partial_fit(*markov(40, seed=6))
    assert tagger.calibrated_on == "folds"
    assert tagger.model_.calibration != before


def calibration_error(tagger, X, y):
    sure, right = [], []
    for found, labels in zip(tagger.predict_proba(X), y, strict=True):
        best = found.argmax(axis=1)
        sure += found.max(axis=1).tolist()
        right += [tagger.classes_[code] == label for code, label in zip(best, labels, strict=True)]
    bins = np.minimum((np.array(sure) * 10).astype(int), 9)
    off = np.array(sure) - np.array(right)
    return sum(abs(off[bins == one].sum()) for one in range(10)) / len(off)


def test_models_of_folds_do_without_attributes_of_other_sentences(monkeypatch):
    X, y = chunked(60)
    X = [[f"{word}{i % 7}{t}" for t, word in enumerate(words)] for i, words in enumerate(X)]
    monkeypatch.setattr(folds, "MOST_TOKENS", 80)
    widths, narrow = [], TokenRows.narrow

    def watched(rows):
        found = narrow(rows)
        widths.append((rows.tokens.n_columns, found.tokens.n_columns))
        return found

    monkeypatch.setattr(TokenRows, "narrow", watched)
    own = SequenceTagger(support="all", C=[0.1, 1.0], tol=0.1).fit(X, y)
    assert all(after < before for before, after in widths)
    monkeypatch.setattr(TokenRows, "narrow", lambda rows: rows)
    other = SequenceTagger(support="all", C=[0.1, 1.0], tol=0.1).fit(X, y)
    assert widths
    assert own.model_.weights.tobytes() == other.model_.weights.tobytes()
    assert own.model_.calibration == pytest.approx(other.model_.calibration)
    assert own.choices_ == other.choices_


def test_probabilities_without_dev_data_mean_something():
    train, test = load_corpus().split()

    def attributes(before, word):
        return {"word": word.lower(), "end": word[-3:], "title": word.istitle(), "before": before}

    def features(part):
        return [[attributes(*pair) for pair in itertools.pairwise(["", *words])] for words in part.tokens]

    X, others = features(train), features(test)
    tagger = SequenceTagger(C=0.3).fit(X, train.upos)
    assert calibration_error(tagger, others, test.upos) < 0.05
    plain = SequenceTagger(C=0.3, folds=0).fit(X, train.upos)
    with pytest.warns(UserWarning, match="probabilities are not calibrated: the tagger was trained without dev data"):
        assert calibration_error(plain, others, test.upos) > 0.3
    assert plain.model_.weights.tobytes() == tagger.model_.weights.tobytes()

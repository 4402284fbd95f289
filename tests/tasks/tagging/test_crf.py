"""CRF in place of sklearn_crfsuite.CRF: scripts that were written for that class."""

from __future__ import annotations

import inspect
import pickle
import warnings
from itertools import chain

import numpy as np
import pytest
from corpora import chunked, markov
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer
from sklearn.model_selection import RandomizedSearchCV, cross_val_predict

import maxmargin as mm
from maxmargin.tasks.tagging import CRF, SequenceTagger
from maxmargin.tasks.tagging.crf import LEAST_PENALTY, translated


def word2features(sentence, i):
    """As tutorials of sklearn-crfsuite make them."""
    word = sentence[i]
    features = {"bias": 1.0, "word.lower()": word.lower(), "word[-1:]": word[-1:], "digit": word.isdigit()}
    if i > 0:
        features.update({"-1:word.lower()": sentence[i - 1].lower()})
    else:
        features["BOS"] = True
    return features


def featured(X):
    return [[word2features(sentence, i) for i in range(len(sentence))] for sentence in X]


def flat_accuracy(y_true, y_pred):
    pairs = list(zip(chain.from_iterable(y_true), chain.from_iterable(y_pred), strict=True))
    return sum(a == b for a, b in pairs) / len(pairs)


@pytest.fixture(scope="module")
def corpus():
    X, y = chunked(60, seed=0)
    others, gold = chunked(40, seed=1)
    return featured(X), y, featured(others), gold


def script(CRF, corpus):
    """A script for sklearn_crfsuite.CRF; what it finds."""
    X_train, y_train, X_test, y_test = corpus
    crf = CRF(algorithm="lbfgs", c2=0.1, max_iterations=100, all_possible_transitions=True)
    crf.fit(X_train, y_train)
    labels = list(crf.classes_)
    labels.remove("O")
    y_pred = crf.predict(X_test)
    transitions = sorted(crf.transition_features_.items(), key=lambda pair: -pair[1])
    states = sorted(crf.state_features_.items(), key=lambda pair: -pair[1])
    marginals = crf.predict_marginals(X_test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = RandomizedSearchCV(
            CRF(algorithm="lbfgs", max_iterations=50, all_possible_transitions=True),
            {"c2": [0.05, 0.5]},
            cv=3,
            n_iter=2,
            scoring=make_scorer(flat_accuracy),
            random_state=0,
        )
        search.fit(X_train, y_train)
    again = pickle.loads(pickle.dumps(crf))
    assert [list(one) for one in again.predict(X_test)] == [list(one) for one in y_pred]
    return {
        "labels": sorted(labels),
        "accuracy": flat_accuracy(y_test, y_pred),
        "score": crf.score(X_test, y_test),
        "single": list(crf.predict_single(X_test[0])) == list(y_pred[0]),
        "transitions": {pair for pair, _ in transitions},
        "support": {attribute for (attribute, _), _ in states},
        "names": sorted(crf.attributes_),
        "count": crf.num_attributes_,
        "size": crf.size_,
        "marginals": [[sorted(token) for token in sentence] for sentence in marginals],
        "sums": [sum(token.values()) for sentence in marginals for token in sentence],
        "one": crf.predict_marginals_single(X_test[1]),
        "best": search.best_score_,
        "estimator": search.best_estimator_.score(X_test, y_test),
    }


def test_a_script_runs_as_it_is(corpus):
    found = script(CRF, corpus)
    assert found["labels"] == ["B-X", "I-X"]
    assert found["accuracy"] == found["score"]
    assert found["accuracy"] > 0.8
    assert found["single"]
    assert found["best"] > 0.8
    assert found["size"] > 100
    assert found["count"] == len(found["names"]) == len(set(found["names"]))
    np.testing.assert_allclose(found["sums"], 1.0)


def test_both_find_the_same(corpus):
    theirs = pytest.importorskip("sklearn_crfsuite", reason="sklearn_crfsuite is not installed")
    one, two = script(CRF, corpus), script(theirs.CRF, corpus)
    for key in ("labels", "names", "count", "marginals", "single"):
        assert one[key] == two[key], key
    assert two["support"] <= one["support"]
    assert one["accuracy"] >= two["accuracy"] - 0.03
    assert one["estimator"] >= two["estimator"] - 0.03
    assert [sorted(token) for token in one["one"]] == [sorted(token) for token in two["one"]]
    np.testing.assert_allclose(two["sums"], one["sums"], atol=1e-6)


def test_the_constructors_are_the_same():
    theirs = pytest.importorskip("sklearn_crfsuite", reason="sklearn_crfsuite is not installed")
    ours, wanted = (inspect.signature(one.__init__).parameters for one in (CRF, theirs.CRF))
    assert list(ours) == list(wanted)
    assert [p.default for p in ours.values()] == [p.default for p in wanted.values()]
    missing = {name for name in dir(theirs.CRF) if not name.startswith("_")} - set(dir(CRF))
    assert not missing


def same(one, two, X):
    """Whether two taggers are the same model."""
    assert one.model_.weights.tobytes() == two.model_.weights.tobytes()
    assert one.predict(X) == two.predict(X)
    assert one.state_features_ == two.state_features_
    assert one.predict_proba(X[:1])[0].tobytes() == two.predict_proba(X[:1])[0].tobytes()


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, {}),
        ({"c2": 0.1}, {"C": 0.3}),
        ({"c2": 1.6}, {"C": 0.15}),
        ({"c1": 0.25, "c2": 0.1}, {"C": 0.3, "prune": 0.1}),
        ({"min_freq": 2.5, "all_possible_states": True}, {"min_count": 3, "support": "all"}),
        ({"min_freq": 0, "all_possible_states": False}, {"min_count": 1, "support": "observed"}),
        ({"algorithm": "ap", "max_iterations": 200}, {"max_iter": 200}),
        ({"algorithm": "arow", "variance": 2, "gamma": 3, "c": 5, "pa_type": 2, "epsilon": 1e-9}, {}),
    ],
    ids=str,
)
def test_settings_are_translated(corpus, given, wanted):
    X, y, _, _ = corpus
    same(CRF(**given).fit(X, y).sequence_tagger_, SequenceTagger(**wanted).fit(X, y), X)


def test_penalties_rise_and_fall_together():
    weak_to_strong = [translated(c1, c2) for c1, c2 in ((0, 0.005), (0.05, 0.01), (0.1, 0.1), (0.5, 1.0), (2.0, 5.0))]
    assert [one["C"] for one in weak_to_strong] == sorted({one["C"] for one in weak_to_strong}, reverse=True)
    assert [one["prune"] for one in weak_to_strong] == sorted({one["prune"] for one in weak_to_strong})
    assert translated(0.0, 0.0) == translated(0.0, LEAST_PENALTY)


def test_c1_leaves_few_weights(corpus):
    X, y, _, _ = corpus
    models = [CRF(c1=c1, c2=0.1).fit(X, y) for c1 in (0.0, 0.1, 1.0, 4.0)]
    counts = [len(crf.state_features_) for crf in models]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1] > 0
    assert models[-1].num_attributes_ < models[0].num_attributes_
    assert {name for name, _ in models[-1].state_features_} == set(models[-1].attributes_)
    assert models[-1].size_ < models[0].size_
    assert models[-1].sequence_tagger_.solution_.certificate.relative_gap <= 0.01
    assert models[-1].score(X, y) > 0.6


def test_candidates_of_a_random_search_differ(corpus):
    X, y, _, _ = corpus
    rng = np.random.default_rng(0)
    drawn = [{"c1": rng.exponential(0.5), "c2": rng.exponential(0.05)} for _ in range(4)]
    assert len({CRF(**one).fit(X, y).coef_.tobytes() for one in drawn}) == len(drawn)


def test_predictions_of_cross_validation(corpus):
    X, y, _, _ = corpus
    for model in (CRF(c2=0.1), SequenceTagger(C=0.3)):
        found = cross_val_predict(model, X, y, cv=3)
        assert [len(labels) for labels in found] == [len(labels) for labels in y]
        assert flat_accuracy(y, found) > 0.6
    level = [sentence[:1] for sentence in X]  # of one length: lists, and no matrix
    assert CRF(c2=0.1).fit(level, [labels[:1] for labels in y]).predict(level).shape == (len(X),)


def test_generators(corpus, tmp_path):
    X, y, others, gold = corpus
    plain = CRF(c2=0.1).fit(X, y)
    lazy = CRF(c2=0.1).fit((iter(x) for x in X), (labels for labels in y))
    same(plain.sequence_tagger_, lazy.sequence_tagger_, X)
    plain.save(tmp_path / "model")
    for model in (lazy, lazy.sequence_tagger_, mm.load(tmp_path / "model")):
        assert list(model.predict(x for x in others)) == list(plain.predict(others))
        assert list(model.predict_marginals(x for x in others[:2])) == list(plain.predict_marginals(others[:2]))
        assert model.predict_single(iter(others[0])) == plain.predict(others)[0]
    dev = SequenceTagger(C=0.3).fit(X, y, dev=(iter(others), iter(gold)))
    assert dev.calibrated_on == "dev data"


def test_every_object_has_the_attributes(corpus, tmp_path):
    X, y, _, _ = corpus
    crf = CRF(c2=0.1).fit(X, y)
    crf.save(tmp_path / "model")
    tagger, model, loaded = crf.sequence_tagger_, crf.sequence_tagger_.model_, mm.load(tmp_path / "model")
    names = ("state_features_", "transition_features_", "attributes_", "calibrated_on")
    for one in (tagger, model, loaded, SequenceTagger.load(tmp_path / "model")):
        assert list(one.classes_) == crf.classes_
        assert {name: getattr(one, name) for name in names} == {name: getattr(crf, name) for name in names}
        assert one.predict_marginals_single(X[0]) == crf.predict_marginals_single(X[0])
    assert crf.calibrated_on == "folds"
    log = crf.training_log_
    assert log.last_iteration is log.iterations[-1]
    assert log.last_iteration["loss"] == pytest.approx(tagger.solution_.certificate.primal)
    assert [one["num"] for one in log.iterations] == [record.iteration for record in tagger.solution_.history]
    assert log.last_iteration["gap"] <= 0.01
    assert log == tagger.training_log_ == model.training_log_
    assert loaded.training_log_ is None


def test_dev_data(corpus):
    X, y, others, gold = corpus
    crf = CRF().fit(X, y, X_dev=others, y_dev=gold)
    assert crf.sequence_tagger_.dev_scores_
    assert crf.sequence_tagger_.model_.temperature is not None
    with pytest.raises(ValueError, match="give both X_dev and y_dev"):
        CRF().fit(X, y, X_dev=others)


def test_model_files(corpus, tmp_path):
    X, y, others, _ = corpus
    path = tmp_path / "model"
    crf = CRF(model_filename=str(path)).fit(X, y)
    assert mm.load(path).predict(others) == list(crf.predict(others))
    assert list(CRF(model_filename=path).predict(others)) == list(crf.predict(others))
    assert CRF(model_filename=path).size_ == path.stat().st_size == crf.size_
    path.write_bytes(b"lCRF")
    with pytest.raises(mm.ModelFileError):
        CRF(model_filename=path).predict(others)


def test_a_model_file_that_cannot_be_written_costs_no_training(corpus, tmp_path):
    X, y, _, _ = corpus
    crf = CRF(model_filename=tmp_path / "no" / "model")
    with pytest.raises(FileNotFoundError, match=r"model'.*: its folder does not exist; create it, or name another"):
        crf.fit(X, y)
    assert not hasattr(crf, "sequence_tagger_")
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(IsADirectoryError, match="this is a folder; give a file"):
        CRF(model_filename=folder).fit(X, y)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"algorithm": "x"}, "algorithm must be one of 'lbfgs', 'l2sgd', 'ap', 'pa', 'arow', got 'x'"),
        ({"c2": -1}, "c2 must be a finite number >= 0, got -1"),
        ({"c1": "much"}, "c1 must be a finite number >= 0, got 'much'"),
        ({"min_freq": float("nan")}, "min_freq must be a finite number >= 0, got nan"),
        ({"max_iterations": 0}, "max_iterations must be an integer >= 1, got 0"),
    ],
    ids=str,
)
def test_odd_settings(corpus, given, message):
    X, y, _, _ = corpus
    crf = CRF(**given)
    with pytest.raises(ValueError, match=message):
        crf.fit(X, y)
    assert not hasattr(crf, "sequence_tagger_")


def test_untrained(tmp_path):
    crf = CRF(model_filename=tmp_path / "missing")
    X = featured(markov(2)[0])
    for use in (crf.predict, crf.predict_marginals, lambda X: crf.predict_single(X[0]), lambda X: crf.size_):
        with pytest.raises(NotFittedError, match="call fit"):
            use(X)
    assert not hasattr(crf, "classes_")
    assert not hasattr(crf, "coef_")
    with pytest.raises(AttributeError, match=r"no pycrfsuite.Tagger"):
        crf.tagger_  # noqa: B018
    for name in ("tagger_", "training_log_"):
        assert not hasattr(crf, name)


def test_manners_of_scikit_learn(corpus):
    X, y, _, _ = corpus
    crf = CRF(c2=0.2, algorithm="pa")
    assert repr(crf) == "CRF(algorithm='pa', c2=0.2)"
    assert clone(crf).get_params() == crf.get_params()
    assert crf.set_params(c2=0.3).c2 == 0.3
    fitted = crf.fit(X, y)
    assert fitted is crf
    bits = crf.sequence_tagger_.model_.weights.tobytes()
    with pytest.raises(ValueError, match="sentence 0"):
        crf.fit([[5]], [["a"]])
    assert crf.sequence_tagger_.model_.weights.tobytes() == bits

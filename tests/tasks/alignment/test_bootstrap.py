"""Learning without annotations."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.tasks.alignment import Reference, SentencePair, WordAligner, as_links, evaluate
from maxmargin.tasks.alignment.bootstrap import FALSE_NEGATIVE, LENGTHS, STRENGTH, sample, translation_aligner
from maxmargin.tasks.alignment.encoder.features import GROUPS
from maxmargin.tasks.alignment.translation import bitext_models
from maxmargin.tasks.alignment.translation.models import learn


def test_it_beats_the_hidden_markov_models(corpus):
    """Better than their best symmetrization; no references are given (but the first weights know this corpus)."""
    X = list(zip(corpus.source, corpus.target, strict=True))
    aligner = WordAligner(tol=1e-2).bootstrap(X)
    baselines = [aligner.align_hmm(X, method=method) for method in ("intersection", "grow-diag-final-and", "union")]
    learned, *others = (evaluate(corpus.references, found).aer for found in (aligner.predict(X), *baselines))
    assert learned < min(others)
    assert aligner.held_out_ is None
    assert aligner.choices_ == ()
    assert aligner.model_.metadata["held_out_aer"] is None
    for one in aligner.align(X[:20]):
        assert ((one.confidence > 0) & (one.confidence <= 1)).all()


def invented(n, seed=0):
    """Sentences of a made-up language, translated word by word, with neighbors that change places."""
    rng = np.random.default_rng(seed)
    words = ["".join(rng.choice(list("bcdfgklmnprst"), 2)) + f"{number}a" for number in range(150)]
    other = ["".join(rng.choice(list("aeiou"), 2)) + "xyzvw"[number % 5] + str(number) for number in range(150)]
    share = 1 / np.arange(1, 151)
    X, y = [], []
    for _ in range(n):
        length = int(rng.integers(4, 12))
        chosen = rng.choice(150, length, p=share / share.sum())
        order = np.arange(length)
        for at in range(length - 1):
            if rng.random() < 0.3:
                order[[at, at + 1]] = order[[at + 1, at]]
        X.append(([words[number] for number in chosen], [other[number] for number in chosen[order]]))
        y.append(as_links([(int(source), target) for target, source in enumerate(order)]))
    return X, y


def test_an_invented_language():
    X, y = invented(400)
    aligner = WordAligner(tol=1e-2, n_jobs=2).bootstrap(X, n_pairs=100)
    learned, teacher = (evaluate_sure(y, found) for found in (aligner.predict(X), aligner.align_hmm(X)))
    assert learned <= teacher + 0.002
    assert learned < 0.1


def evaluate_sure(y, found):
    return evaluate([Reference.of(links) for links in y], found).aer


def settings_of(aligner):
    return aligner.model_.metadata["C"], aligner.model_.metadata["false_negative"]


def test_settings(few):
    X = few[0]
    plain = WordAligner(tol=1e-2).bootstrap(X, n_pairs=20)
    assert settings_of(plain) == (STRENGTH / 20, FALSE_NEGATIVE)
    own = WordAligner(C=0.05, false_negative=3.0, fertility=1, tol=1e-2).bootstrap(X, n_pairs=20)
    assert settings_of(own) == (0.05, 3.0)
    assert own.model_.encoder.link_model.fertility == 1
    again = WordAligner(tol=1e-2, n_jobs=2).bootstrap(X, n_pairs=20)
    np.testing.assert_array_equal(plain.coef_, again.coef_)
    other = WordAligner(tol=1e-2, random_state=1).bootstrap(X, n_pairs=20)
    assert not np.array_equal(plain.coef_, other.coef_)
    only = WordAligner(features=("bias", "hmm", "position"), tol=1e-2).bootstrap(X, n_pairs=20)
    assert set(only.model_.encoder.link_model.links.groups) == {"bias", "hmm", "position"}
    assert set(plain.model_.encoder.link_model.links.groups) == set(GROUPS)
    with pytest.raises(ValueError, match="features, which is empty; add others"):
        WordAligner(features=[]).bootstrap(X)


def test_numbers_that_occur_once_on_both_sides_are_linked():
    """In an invented language, whose only common words are numbers of the same shape, each of them new."""
    X, _ = invented(300)
    rng = np.random.default_rng(1)
    wanted = []
    for source, target in X:
        first, second = rng.choice(np.arange(1000, 10000), 2, replace=False).astype(str)
        places = [(len(source), 0), (0, len(target))]
        source.insert(0, second)
        source.append(first)
        target.insert(0, first)
        target.append(second)
        wanted.append([(places[0][0] + 1, places[0][1]), (places[1][0], places[1][1] + 1)])
    found = WordAligner(tol=1e-2, n_jobs=2).bootstrap(X, n_pairs=100).predict(X)
    linked = [
        pair in set(map(tuple, links.tolist())) for pairs, links in zip(wanted, found, strict=True) for pair in pairs
    ]
    assert np.mean(linked) > 0.98


def test_weights_of_another_model(few, models):
    """Weights are taken from it by name; frequent word pairs start at 0."""
    other = WordAligner(models=models, tol=1e-2).bootstrap(few[0], n_pairs=20)
    still = WordAligner(models=models, tol=1e-2, C=1e-9, start=other.model_).bootstrap(few[0], n_pairs=20)
    lexical = np.array([name.startswith("lexical") for name in still.feature_names_])
    np.testing.assert_allclose(still.coef_[~lexical], other.coef_[~lexical], atol=1e-6)
    np.testing.assert_allclose(still.coef_[lexical], 0.0, atol=1e-6)


def test_models_that_are_there(few, models):
    aligner = WordAligner(models=models, tol=1e-2).bootstrap(few[0], n_pairs=20)
    assert aligner.models_ is models


def test_extra_columns(few):
    X = [SentencePair(*pair, {"other": reference.sure}) for pair, reference in zip(*few, strict=True)]
    aligner = WordAligner(tol=1e-2).bootstrap(X, n_pairs=30)
    assert "extra: other" in aligner.feature_names_
    assert len(aligner.predict(X)) == len(X)


@pytest.mark.parametrize("X", [[], [([], [])], [("a", ""), ("", "b")], [("a " * 1001, "b")]])
def test_nothing_to_learn_from(X):
    with pytest.raises(ValueError, match="no pair with 1 to 1000 words on both sides; give sentence pairs"):
        WordAligner().bootstrap(X)


@pytest.mark.parametrize("n_pairs", [0, -1, 1.5, True, "3"])
def test_refused_numbers_of_pairs(n_pairs):
    with pytest.raises(ValueError, match="n_pairs must be an integer >= 1"):
        WordAligner().bootstrap([("a", "b")], n_pairs=n_pairs)


@pytest.mark.parametrize("pair", [("a", "b"), ("a b", "x"), (" ".join(map(str, range(60))), "a b c " * 15)])
def test_unusual_lengths(pair):
    """Short or long pairs are used where there are no others."""
    aligner = WordAligner(tol=0.1).bootstrap([pair, ("", "")])
    assert aligner.solution_.status == "converged"
    assert len(aligner.predict([pair])) == 1


def test_sample():
    sizes = np.arange(100)
    chosen = sample(np.stack([sizes, sizes], axis=1), 1000, 0)
    np.testing.assert_array_equal(chosen, np.arange(LENGTHS[0], LENGTHS[1] + 1))
    some = sample(np.stack([sizes, sizes], axis=1), 10, 0)
    assert len(some) == 10
    assert (np.diff(some) > 0).all()
    assert set(some) <= set(chosen)
    long = np.full((5000, 2), 40)
    assert [len(sample(long, n_pairs, 0)) for n_pairs in (10, 1000, 4000)] == [10, 37, 150]
    np.testing.assert_array_equal(sample(np.array([(0, 5), (1, 50), (2, 2)]), 5, 0), [2])
    np.testing.assert_array_equal(sample(np.array([(50, 50), (90, 50), (45, 2000)]), 1, 0), [0])


def test_links_of_hidden_markov_models_need_models_of_words_alone(corpus, monkeypatch):
    X = list(corpus)[:60]
    expected = WordAligner().bootstrap(X).align_hmm(X, adapt=False)
    learned = []
    monkeypatch.setattr(bitext_models, "learn", lambda *args, **given: learned.append(1) or learn(*args, **given))
    model = translation_aligner(X)
    assert model.encoder.models.words_only
    assert len(learned) == 1
    assert all(map(np.array_equal, model.align_hmm(X, adapt=False), expected))

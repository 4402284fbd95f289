"""Translation models that learn from further bitext."""

import numpy as np
import pytest

from maxmargin.tasks.alignment import BitextModels, WordAligner, evaluate, load_corpus
from maxmargin.tasks.alignment.translation.update import updated
from maxmargin.tasks.alignment.translation.words import normalize

CORPUS = load_corpus()
OLD, NEW = CORPUS.select(range(0, 260, 3)), CORPUS.select([at for at in range(260) if at % 3 == 1])
MODELS = BitextModels.learn(OLD.source, OLD.target)


@pytest.fixture(scope="module")
def more():
    return updated(MODELS, NEW.source, NEW.target)


def test_what_was_learned_is_still_there(more):
    models, entries = more
    assert models.n_pairs == len(OLD) + len(NEW)
    assert models.contains(OLD.source, OLD.target).all()
    assert models.contains(NEW.source, NEW.target).all()
    for name in ("words", "stems", "variational"):
        old, new = getattr(MODELS, name), getattr(models, name)
        counts = new.cooccurrences
        assert counts.source.words[: len(old.cooccurrences.source)] == old.cooccurrences.source.words
        assert (counts.source.counts[: len(old.cooccurrences.source)] >= old.cooccurrences.source.counts).all()
        rows = np.repeat(np.arange(len(counts.source)), np.diff(counts.row_start))
        assert (np.diff(rows * len(counts.target) + counts.column) > 0).all()
        for probabilities in (new.model1, new.hmm):
            for of, p in ((rows, probabilities.word[:, 0]), (counts.column, probabilities.word[:, 1])):
                assert (np.bincount(of, p) < 1.001).all()
            for table in (probabilities.null_target, probabilities.null_source):
                assert table.sum() == pytest.approx(1, abs=1e-4)
    counts = models.words.cooccurrences
    assert counts.names(entries) == MODELS.words.cooccurrences.names(np.arange(len(entries)))
    untouched = ~np.isin(counts.source.words, [normalize(word) for words in NEW.source for word in words])
    rows = np.repeat(np.arange(len(counts.source)), np.diff(counts.row_start))[entries]
    same = untouched[rows]
    assert same.any()
    np.testing.assert_array_equal(models.words.hmm.word[entries[same], 0], MODELS.words.hmm.word[same, 0])


def test_pairs_are_learned_once(more):
    models, _ = more
    again, entries = updated(models, [*OLD.source, *NEW.source], [*OLD.target, *NEW.target])
    assert again is models
    assert len(entries) == models.words.cooccurrences.n_entries
    twice, _ = updated(MODELS, [*NEW.source, *NEW.source], [*NEW.target, *NEW.target])
    assert twice.n_pairs == models.n_pairs
    np.testing.assert_array_equal(twice.words.hmm.word, models.words.hmm.word)


def test_more_bitext_helps(tmp_path):
    """On pairs that neither the old nor the new bitext has, with the same weights, after saving, too."""
    test = CORPUS.select([at for at in range(260) if at % 3 == 2])
    settings = {"C": 0.1, "false_negative": 2.0, "folds": 0, "rounds": 0, "tol": 1e-2}
    old = WordAligner(models=MODELS, **settings).fit(list(OLD), OLD.references).model_
    new = old.updated(list(NEW))
    np.testing.assert_array_equal(new.weights, old.weights)
    assert new.feature_names == old.feature_names

    def errors(model):
        found = model.predict(list(test), adapt=False), model.align_hmm(list(test), adapt=False)
        return [evaluate(test.references, links).aer for links in found]

    before, after = errors(old), errors(new)
    assert after[0] < before[0] - 0.005
    assert after[1] < before[1] - 0.02
    new.save(tmp_path / "model", min_probability=0)
    assert errors(type(new).load(tmp_path / "model")) == pytest.approx(after, abs=0.002)

"""Translation models that learn from the text they align."""

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.tasks.alignment import BitextModels, WordAligner, evaluate, load_corpus
from maxmargin.tasks.alignment.encoder.evidence import Evidence
from maxmargin.tasks.alignment.translation.adaptation import adapt
from maxmargin.tasks.alignment.translation.words import IndexedBitext, normalize

CORPUS = load_corpus()
TRAIN, TEST = CORPUS.split()
MODELS = BitextModels.learn(TRAIN.source, TRAIN.target)
NEW = [
    ("the xylo is in the zorp .", "le xilo est dans la zorpe ."),
    ("we see the zorp .", "nous voyons la zorpe ."),
    ("the xylo is red .", "le xilo est rouge ."),
] * 3


def sums_of(probabilities, cooccurrences):
    """Sums of the probabilities that each word generates, forward and backward."""
    rows = np.repeat(np.arange(len(cooccurrences.source)), np.diff(cooccurrences.row_start))
    return np.bincount(rows, probabilities.word[:, 0]), np.bincount(cooccurrences.column, probabilities.word[:, 1])


def test_adapted_models_are_of_the_words_of_the_text_alone():
    adapted, entries = adapt(MODELS, IndexedBitext.of(TEST.source, TEST.target))
    for name in ("words", "stems", "variational"):
        model = getattr(adapted, name)
        for probabilities in (model.model1, model.hmm):
            for sums in sums_of(probabilities, model.cooccurrences):
                assert (sums < 1.001).all()
            assert all((table > 0).all() and (table <= 1).all() for table in probabilities)
    cooccurrences, old = adapted.words.cooccurrences, MODELS.words.cooccurrences
    assert set(cooccurrences.source.words) == {normalize(word) for sentence in TEST.source for word in sentence}
    assert adapted.n_pairs == MODELS.n_pairs + len(TEST)
    known = np.flatnonzero(entries >= 0)
    assert cooccurrences.names(known[:50]) == old.names(entries[known[:50]])
    assert (cooccurrences.counts[known] > old.counts[entries[known]]).all()


def test_what_the_bitext_says_often_stays():
    adapted, entries = adapt(MODELS, IndexedBitext.of(TEST.source, TEST.target))
    known = np.flatnonzero(entries >= 0)
    before, after = MODELS.words.hmm.word[entries[known], 0], adapted.words.hmm.word[known, 0]
    rows = np.repeat(
        np.arange(len(adapted.words.cooccurrences.source)), np.diff(adapted.words.cooccurrences.row_start)
    )[known]
    often = adapted.words.cooccurrences.source.counts[rows] > 60
    assert np.abs(before - after)[often].max() < 0.25
    assert np.abs(before - after)[often].mean() < 0.02


def test_new_words_are_learned_from_the_text():
    source, target = ([pair[side].split() for pair in NEW] for side in (0, 1))
    adapted, _ = adapt(MODELS, IndexedBitext.of(source, target))
    cooccurrences = adapted.words.cooccurrences
    batch = cooccurrences.batch(IndexedBitext.of(source[:1], target[:1]))
    found = adapted.words.posteriors(batch, cooccurrences.entries(batch))
    both = (found.forward * found.backward).reshape(7, 7)
    assert both[1].argmax() == 1
    assert both[5].argmax() == 5
    assert min(both[1, 1], both[5, 5]) > 0.5


@pytest.mark.parametrize("text", [[], [([], [])], [(["a"], [])], [(["x"], ["y"])]])
def test_texts_of_nothing(text):
    source, target = [list(pair[0]) for pair in text], [list(pair[1]) for pair in text]
    adapted, _ = adapt(MODELS, IndexedBitext.of(source, target))
    assert Evidence.of(adapted, IndexedBitext.of(source, target)).n_examples == len(text)


def test_same_bits_for_any_number_of_threads():
    found = []
    for threads in (1, 2, 3):
        with mm.threads(threads):
            adapted, _ = adapt(MODELS, IndexedBitext.of(TEST.source, TEST.target))
            found.append([table for name in ("words", "stems", "variational") for table in getattr(adapted, name).hmm])
    for other in found[1:]:
        assert all((one == two).all() for one, two in zip(found[0], other, strict=True))


def test_aligner_that_adapts_keeps_its_frequent_pairs_and_finds_more():
    pairs = list(zip(TRAIN.source, TRAIN.target, strict=True))
    aligner = WordAligner(C=0.1, false_negative=2.0, models=MODELS, folds=0).fit(pairs, TRAIN.references)
    unseen = list(zip(TEST.source, TEST.target, strict=True))
    encoder = aligner.model_.encoder
    adapted = encoder.translation(IndexedBitext.of(TEST.source, TEST.target))
    numbers = adapted.lexical
    names = encoder.link_model.links.lexical_names
    cooccurrences = adapted.models.words.cooccurrences
    for entry in np.flatnonzero(numbers >= 0).tolist():
        assert cooccurrences.names(np.array([entry])) == [names[numbers[entry]]]
    plain = evaluate(TEST.references, aligner.predict(unseen, adapt=False)).aer
    better = evaluate(TEST.references, aligner.predict(unseen)).aer
    assert better < plain


def test_pairs_of_the_bitext_are_not_counted_twice():
    pairs = list(zip(TRAIN.source, TRAIN.target, strict=True))
    aligner = WordAligner(C=0.1, false_negative=2.0, models=MODELS, folds=0).fit(pairs[:40], TRAIN.references[:40])
    unseen = list(zip(TEST.source, TEST.target, strict=True))[:10]
    mixed = aligner.predict([*unseen[:5], *pairs[:5], *unseen[5:]])
    apart = [*aligner.predict(unseen), *aligner.predict(pairs[:5], adapt=False)]
    for one, two in zip(mixed, [*apart[:5], *apart[10:], *apart[5:10]], strict=True):
        np.testing.assert_array_equal(one, two)
    assert MODELS.contains(TRAIN.source, TRAIN.target).all()
    assert not MODELS.contains(TEST.source, TEST.target).any()

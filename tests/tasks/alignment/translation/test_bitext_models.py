"""Translation models of a bitext: evidence from three models, and model files that may be damaged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maxmargin as mm
from maxmargin.tasks.alignment import load_corpus
from maxmargin.tasks.alignment.encoder.evidence import POSTERIOR_NAMES, Evidence
from maxmargin.tasks.alignment.translation import cooccurrences
from maxmargin.tasks.alignment.translation import models as translation
from maxmargin.tasks.alignment.translation.bitext_models import MODELS, PRIOR, STEM_LETTERS, BitextModels
from maxmargin.tasks.alignment.translation.cooccurrences import PreparedBitext
from maxmargin.tasks.alignment.translation.models import learn
from maxmargin.tasks.alignment.translation.words import IndexedBitext

CORPUS = load_corpus()
LEARNED = BitextModels.learn(CORPUS.source, CORPUS.target, model1_iterations=2, hmm_iterations=2)


def same_models(one, two):
    first, second = (
        {name: (value.dtype, value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value
         for name, value in models.state().items()}
        for models in (one, two)
    )  # fmt: skip
    return first == second


def test_the_three_models():
    words = learn(PreparedBitext(IndexedBitext.of(CORPUS.source, CORPUS.target)), model1_iterations=2, hmm_iterations=2)
    stems = PreparedBitext(IndexedBitext.of(CORPUS.source, CORPUS.target), letters=STEM_LETTERS)
    settings = {"model1_iterations": 2, "hmm_iterations": 2}
    for expected, found in (
        (words, LEARNED.words),
        (learn(stems, **settings), LEARNED.stems),
        (learn(stems, agreement=False, prior=PRIOR, **settings), LEARNED.variational),
    ):
        np.testing.assert_array_equal(expected.hmm.word, found.hmm.word)
        np.testing.assert_array_equal(expected.links, found.links)
        assert expected.history == found.history
    assert LEARNED.stems.cooccurrences is LEARNED.variational.cooccurrences
    assert LEARNED.n_pairs == len(CORPUS)


def test_progress_is_told():
    reported = []
    BitextModels.learn(
        CORPUS.source[:9],
        CORPUS.target[:9],
        model1_iterations=1,
        hmm_iterations=2,
        on_iteration=lambda *x: reported.append(x),
    )
    assert [(name, iteration.model) for name, iteration in reported] == [
        (name, model) for name in MODELS for model in ("model1", "hmm", "hmm")
    ]


def test_same_bits_for_any_number_of_threads():
    found = []
    for threads in (1, 2, 3):
        with mm.threads(threads):
            models = BitextModels.learn(CORPUS.source * 2, CORPUS.target * 2, model1_iterations=1, hmm_iterations=1)
            evidence = Evidence.of(
                models,
                IndexedBitext.of(CORPUS.source, CORPUS.target),
                lexical=models.words.numbered(models.words.frequent(9)),
            )
            found.append((models, evidence))
    for models, evidence in found[1:]:
        assert same_models(found[0][0], models)
        for name in ("hmm_forward", "hmm_backward", "model1_forward", "null_source", "posteriors", "lexical"):
            assert getattr(found[0][1], name).tobytes() == getattr(evidence, name).tobytes()


def test_large_bitexts_keep_probable_word_pairs(monkeypatch):
    settings = {"model1_iterations": 3, "hmm_iterations": 1}
    whole = BitextModels.learn(CORPUS.source, CORPUS.target, **settings)
    monkeypatch.setattr(cooccurrences, "LARGE", len(CORPUS) - 1)
    monkeypatch.setattr(translation, "LEAST", 0.02)
    reported, found = [], []
    for threads in (1, 2, 3):
        with mm.threads(threads):
            found.append(
                BitextModels.learn(
                    CORPUS.source, CORPUS.target, on_iteration=lambda name, _: reported.append(name), **settings
                )
            )
    assert all(same_models(found[0], other) for other in found[1:])
    assert reported[:9] == [*["words"] * 4, *["stems"] * 4, "variational"]
    large = found[0]
    assert large.variational.model1 is large.stems.model1
    assert large.variational.cooccurrences is large.stems.cooccurrences
    for before, after in ((whole.words, large.words), (whole.stems, large.stems)):
        old, new = before.cooccurrences, after.cooccurrences
        rows = np.repeat(np.arange(len(old.source)), np.diff(old.row_start))
        word = before.model1.word
        kept = np.sqrt(word[:, 0]) * np.sqrt(word[:, 1]) >= np.float32(0.02)
        for way, of in ((0, rows), (1, old.column)):
            best = np.zeros(of.max() + 1, dtype=np.float32)
            np.maximum.at(best, of, word[:, way])
            kept |= word[:, way] == best[of]
        assert 0.1 < kept.mean() < 0.9
        assert set(new.names(np.arange(new.n_entries))) == set(old.names(np.flatnonzero(kept)))
        np.testing.assert_array_equal(after.model1.word, word[kept])
        assert new.source is old.source or new.source.words == old.source.words  # no word is lost
        assert (np.diff(new.row_start) > 0).all()
        assert np.isfinite(after.hmm.word).all()


def test_evidence_is_what_the_models_say():
    source, target = [["the", "House", "zzz"], [], ["the"]], [["La", "maison"], ["x"], []]
    lexical = LEARNED.words.frequent(25)
    evidence = Evidence.of(
        LEARNED, IndexedBitext.of(source, target), lexical=LEARNED.words.numbered(lexical), extra=np.ones((6, 1))
    )
    cooccurrences = LEARNED.words.cooccurrences
    words = evidence.bitext.words.words
    assert [words[number] for number in evidence.bitext.source] == ["the", "House", "zzz", "the"]
    assert [words[number] for number in evidence.bitext.target] == ["La", "maison", "x"]
    names = cooccurrences.names(np.arange(cooccurrences.n_entries))
    for cell, (e, f) in enumerate((e, f) for e in ("the", "house", "zzz") for f in ("la", "maison")):
        entry = names.index(f"{e} ~ {f}") if f"{e} ~ {f}" in names else -1
        assert evidence.joint_count[cell] == (cooccurrences.counts[entry] if entry >= 0 else 0)
        place = lexical.tolist().index(entry) if entry in lexical.tolist() else -1
        assert evidence.lexical[cell] == place
    for word, count in zip(("the", "house"), evidence.count_source, strict=False):
        pairs = sum(word in [token.lower() for token in sentence] for sentence in CORPUS.source)
        assert count == pairs
    assert evidence.count_source[2] == 0
    assert evidence.n_pairs == len(CORPUS)
    assert evidence.posteriors.shape == (6, len(POSTERIOR_NAMES))
    batch = LEARNED.stems.cooccurrences.batch(IndexedBitext.of(source, target))
    entries = LEARNED.stems.cooccurrences.entries(batch)
    for at, model in ((0, LEARNED.stems), (7, LEARNED.variational)):
        p, q = model.posteriors(batch, entries)[:2]
        product = p * q
        expected = [p, q, product, np.sqrt(product), np.minimum(p, q), np.maximum(p, q)]
        np.testing.assert_allclose(evidence.posteriors[:, at : at + 6], np.stack(expected, axis=1))
        np.testing.assert_allclose(evidence.posteriors[:, at + 6], np.log10(product + 1e-9) / 9 + 1)
    assert Evidence.of(LEARNED, IndexedBitext.of([], [])).n_cells == 0
    assert Evidence.of(LEARNED, IndexedBitext.of([[]], [["a"]])).n_cells == 0


def test_pruned_models_keep_what_is_likely():
    pruned, _ = LEARNED.pruned(0.05)
    assert pruned.stems.cooccurrences is pruned.variational.cooccurrences
    for name in MODELS:
        whole, part = getattr(LEARNED, name), getattr(pruned, name)
        assert 0 < part.cooccurrences.n_entries < whole.cooccurrences.n_entries
        assert whole.likely(0.05).sum() <= part.cooccurrences.n_entries
    assert same_models(BitextModels.from_state(pruned.state()), pruned)
    assert same_models(LEARNED.pruned(0.0)[0], LEARNED)
    before, after = (
        Evidence.of(models, IndexedBitext.of(CORPUS.source, CORPUS.target)) for models in (LEARNED, LEARNED.pruned()[0])
    )
    assert np.abs(before.hmm_forward - after.hmm_forward).max() < 0.05


def test_round_trip():
    restored = BitextModels.from_state(LEARNED.state())
    assert same_models(restored, LEARNED)
    one, two = (Evidence.of(models, IndexedBitext.of(CORPUS.source, CORPUS.target)) for models in (LEARNED, restored))
    np.testing.assert_array_equal(one.hmm_forward, two.hmm_forward)
    np.testing.assert_array_equal(one.posteriors, two.posteriors)
    empty = BitextModels.learn([], [])
    assert same_models(BitextModels.from_state(empty.state()), empty)


def restored_or_refused(name, damaged):
    """Damage is refused, or what comes back can be used."""
    try:
        models = BitextModels.from_state({**STATE, name: damaged})
    except (ValueError, KeyError):
        return True
    evidence = Evidence.of(models, IndexedBitext.of(CORPUS.source[:5], CORPUS.target[:5]))
    assert np.isfinite(evidence.hmm_forward).all()
    assert np.isfinite(evidence.posteriors).all()
    return False


STATE = LEARNED.state()
ARRAYS = sorted(name for name, value in STATE.items() if isinstance(value, np.ndarray))


def test_damaged_fingerprints_are_refused():
    seen = STATE["seen"]
    for damaged in (seen.astype(float), seen[::-1], seen[None], seen.repeat(2)):
        with pytest.raises(ValueError, match="fingerprints of sentence pairs are damaged"):
            BitextModels.from_state({**STATE, "seen": damaged})


@pytest.mark.parametrize("name", sorted(set(ARRAYS) - {"seen"}))
def test_damaged_arrays_are_refused(name):
    array = STATE[name]
    other = np.float64 if array.dtype != np.float64 else np.float32
    wrong = [
        array.astype(other),
        array.astype(np.complex64),
        array.astype(object),
        array[:-1],
        np.concatenate([array, array[-1:]]),
        array[..., None],
        array.ravel() if array.ndim > 1 else array[None],
        np.zeros(0, dtype=array.dtype),
        np.array(0, dtype=array.dtype),
        array[::-1] if name.endswith(("row_start", "column", "offsets")) else array[:0],
    ]
    low = np.iinfo(array.dtype).min if array.dtype.kind in "iu" else -1.0
    values = [low, np.iinfo(array.dtype).max] if array.dtype.kind in "iu" else [np.nan, np.inf, -np.inf, -1.0, 1e30]
    if array.dtype == np.uint8:
        values = [255]
    for value in values:
        for at in (0, len(array) // 2, len(array) - 1):
            changed = array.copy()
            changed[at] = value
            wrong.append(changed)
    for damaged in wrong:
        harmless = (
            name.endswith((".counts", ".counts", ".links")) and damaged.dtype == array.dtype and np.all(damaged >= 0)
        )
        if harmless and damaged.shape == array.shape:
            restored_or_refused(name, damaged)
        else:
            assert restored_or_refused(name, damaged), damaged
    with pytest.raises((ValueError, KeyError)):
        BitextModels.from_state({key: value for key, value in STATE.items() if key != name})


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.sampled_from(ARRAYS), st.integers(0, 10**9), st.integers(1, 8))
def test_flipped_bytes_never_crash(name, seed, n_bytes):
    rng = np.random.default_rng(seed)
    data = bytearray(STATE[name].tobytes())
    for at in rng.integers(0, len(data), n_bytes):
        data[at] = rng.integers(256)
    damaged = np.frombuffer(bytes(data), dtype=STATE[name].dtype).reshape(STATE[name].shape)
    restored_or_refused(name, damaged)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("n_pairs", -1), ("n_pairs", 1.5), ("n_pairs", True), ("n_pairs", None), ("n_pairs", "9"),
        ("stem_letters", -1), ("stem_letters", "4"), ("null", None), ("null", [0.1, 0.1]), ("null", [0.1, 0.1, 1.0]),
        ("null", [0.1, 0.1, float("nan")]), ("null", [0.1, 0.1, "x"]), ("null", [0.1, -0.1, 0.1]),
    ],
)  # fmt: skip
def test_damaged_headers_are_refused(key, value):
    with pytest.raises(ValueError, match="its"):
        BitextModels.from_state({**STATE, key: value})
    with pytest.raises(KeyError):
        BitextModels.from_state({k: v for k, v in STATE.items() if k != key})

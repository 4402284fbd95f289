"""BLEU, chrF and TER are sacrebleu's, on odd text too; smoothed BLEU against its formula."""

from __future__ import annotations

import gzip
import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
import sacrebleu.metrics as sacrebleu
from hypothesis import given
from hypothesis import strategies as st

import maxmargin as mm
from benchmarks.record import DATA
from maxmargin.tasks.reranking import Bleu, ChrF, Ter, metric_named
from maxmargin.tasks.reranking.metrics import lists as text_lists

METRICS = [
    (Bleu(), sacrebleu.BLEU(tokenize="none")),
    (Bleu("13a"), sacrebleu.BLEU()),
    (Bleu("char", lowercase=True), sacrebleu.BLEU(tokenize="char", lowercase=True)),
    (ChrF(), sacrebleu.CHRF()),
    (metric_named("chrF++"), sacrebleu.CHRF(word_order=2)),
    (ChrF(0, 1, 1), sacrebleu.CHRF(0, 1, 1)),
    (ChrF(3, 1, 0.5, lowercase=True), sacrebleu.CHRF(3, 1, 0.5, lowercase=True)),
    (Ter(), sacrebleu.TER()),
    (Ter(normalized=True, no_punct=True, case_sensitive=True), sacrebleu.TER(True, True, False, True)),
    (Ter(normalized=True, no_punct=True, asian_support=True), sacrebleu.TER(True, True, True)),
]
WORDS = st.sampled_from(["the", "The", "cat", "(cat)", "sat.", ".", "&amp;", "1,5", "Straße", "猫", "🐈", "\ud800"])
GAPS = st.sampled_from([" ", "  ", "\t", "\u3000", "\r", "\u200b"])
SENTENCES = st.lists(WORDS | GAPS, max_size=14).map("".join) | st.lists(WORDS, max_size=10).map(" ".join)


def scored(metric, texts, references):
    statistics = metric.statistics(texts, references, np.arange(len(texts)))
    return metric.shown(float(metric.quality(statistics.sum(axis=0))))


def by_files(references):
    """References as sacrebleu takes them: a list per file, None where a sentence has fewer."""
    most = max(map(len, references))
    return [[some[at] if at < len(some) else None for some in references] for at in range(most)]


@pytest.mark.parametrize(("metric", "twin"), METRICS, ids=lambda one: getattr(one, "name", ""))
@given(
    corpus=st.lists(
        st.tuples(SENTENCES, st.lists(SENTENCES, min_size=1, max_size=3)),
        min_size=1,
        max_size=4,
    )
)
def test_corpus_scores_are_those_of_sacrebleu(metric, twin, corpus):
    texts, references = (list(side) for side in zip(*corpus, strict=True))
    expected = twin.corpus_score(texts, by_files(references)).score
    assert scored(metric, texts, references) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("options", list(itertools.product([False, True], repeat=4)))
def test_edits_are_those_of_sacrebleu(options):
    """To the bit, for every hypothesis and all options, where many blocks can be shifted."""
    metric, twin = Ter(*options), sacrebleu.TER(*options)
    rng = np.random.default_rng(0)
    words = ["the", "The", "cat's", "(cat)", "sat.", "&amp;", "1,5", "\u0130", "\u732b\u3001\u732b", "\U0001f408"]
    gaps = [" ", " ", " ", "\u3000", "\x1c", "\n-"]

    def sentence():
        size = rng.integers(0, 12)
        return "".join(word + gap for word, gap in zip(rng.choice(words, size), rng.choice(gaps, size), strict=True))

    references = [[sentence() for _ in range(1 + at % 3)] for at in range(12)]
    owner = np.repeat(np.arange(12), 2)
    texts = [sentence() for _ in owner]
    scores = [twin.sentence_score(text, references[at]) for text, at in zip(texts, owner, strict=True)]
    found = metric.statistics(texts, references, owner)
    assert found.tolist() == [[one.num_edits, one.ref_length] for one in scores]


@pytest.mark.parametrize(("metric", "twin"), METRICS, ids=lambda one: getattr(one, "name", ""))
def test_signatures_are_those_of_sacrebleu(metric, twin):
    twin.corpus_score(["a"], [["a"]])
    assert f"nrefs:1|{metric.signature}" == str(twin.get_signature())


def test_names():
    assert [metric_named(name).name for name in ("BLEU", "chrf", "chrf++", "ter", "wer", "cer")] == [
        *("BLEU", "chrF2", "chrF2++", "TER", "WER", "CER")
    ]
    assert metric_named("bleu", tokenize="13a") == Bleu("13a")
    with pytest.raises(ValueError, match="no metric is named 'blue'; give one of bleu, chrf, "):
        metric_named("blue")


def lists(seed=0, n=7):
    """Texts with several references, lists of different sizes and one without hypotheses."""
    rng = np.random.default_rng(seed)
    words = [f"w{i}" for i in range(12)]

    def sentence():
        return " ".join(rng.choice(words, size=rng.integers(0, 12)))

    sizes = rng.integers(1, 6, size=n)
    sizes[2] = 0
    references = [[sentence() for _ in range(rng.integers(1, 4))] for _ in range(n)]
    return [sentence() for _ in range(sizes.sum())], references, np.repeat(np.arange(n), sizes)


@pytest.mark.parametrize("name", ["bleu", "chrf", "chrf++", "ter", "wer", "cer"])
def test_statistics_of_lists_are_those_of_their_hypotheses(name, monkeypatch):
    metric = metric_named(name)
    texts, references, owner = lists()
    one_by_one = [
        metric.statistics([text], [references[at]], np.zeros(1, dtype=np.int64))[0]
        for text, at in zip(texts, owner.tolist(), strict=True)
    ]
    found = metric.statistics(texts, references, owner)
    assert np.array_equal(found, one_by_one)
    monkeypatch.setattr(text_lists, "_AT_ONCE", 4)
    with mm.threads(3):
        assert np.array_equal(metric.statistics(tuple(texts), references, owner), found)
    assert metric.statistics([], [], np.zeros(0, dtype=np.int64)).shape == (0, metric.n_statistics)
    quality = metric.sentence_quality(found)
    assert quality.shape == (len(texts),)
    assert np.isfinite(quality).all()
    assert (quality <= 1.0).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"owner": np.zeros(3, dtype=np.int64)}, r"2 hypotheses and owner of shape \(3,\)"),
        ({"owner": np.array([1, 0])}, "owner must not decrease"),
        ({"owner": np.array([0, 2])}, r"owner must lie in 0\.\.1"),
        ({"references": [["a"], []]}, "list 1: no references; give a list of one or more strings"),
        ({"references": ["a", ["b"]]}, "list 0: its references are a string; give a list"),
    ],
)
def test_lists_that_do_not_fit_are_refused(change, message):
    right = {"texts": ["a", "b"], "references": [["a"], ["b"]], "owner": np.arange(2)}
    for name in ("bleu", "ter", "wer"):
        with pytest.raises(ValueError, match=message):
            metric_named(name).statistics(**right | change)


def test_smoothed_sentence_bleu():
    metric = Bleu()
    texts = ["a b c d x", "a", "", "x y", "a b c d e f g"]
    found = metric.sentence_quality(metric.statistics(texts, [["a b c d e f"]], np.zeros(5, dtype=np.int64)))
    expected = [
        math.exp(1 - 6 / 5) * (4 / 5 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25,
        math.exp(1 - 6 / 1),  # one is added to no matches out of no n-grams
        0.0,
        0.0,
        (6 / 7 * 6 / 7 * 5 / 6 * 4 / 5) ** 0.25,
    ]
    assert found == pytest.approx(expected, rel=1e-12)
    # A sentence that is its reference has 1, and whole tables are scored at once.
    assert metric.sentence_quality(np.array([[[6, 5, 4, 3, 6, 5, 4, 3, 6, 6.0]]])).tolist() == [[1.0]]


def test_settings_are_checked():
    with pytest.raises(ValueError, match=r"tokenize must be one of .*13a.*, got 'words'"):
        Bleu("words")
    with pytest.raises(ValueError, match="one of them above 0"):
        ChrF(0)
    with pytest.raises(ValueError, match="char_order must be an integer >= 0"):
        ChrF(-1)
    with pytest.raises(ValueError, match="one of them above 0"):
        ChrF(65)
    with pytest.raises(ValueError, match="beta must be"):
        ChrF(beta=0)


def test_without_sacrebleu():
    """Tokenized text needs no sacrebleu; what does says how to install it."""
    code = """
import sys
sys.modules["sacrebleu"] = sys.modules["sacrebleu.metrics"] = None
import numpy as np
from maxmargin.tasks.reranking import Bleu, Ter, metric_named
for name in ("bleu", "chrf", "chrf++", "ter", "wer", "cer"):
    metric = metric_named(name)
    print(metric.shown(float(metric.quality(metric.statistics(["a b c d"], [["a b c d"]], np.array([0]))[0]))))
    print(metric.signature)
for make in (lambda: Bleu("13a"), lambda: Ter(no_punct=True)):
    try:
        make()
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    version, missing = mm.__version__, "sacrebleu is not installed; run: pip install 'maxmargin[rerank]'"
    assert done.stdout.splitlines() == [
        *("100.0", f"case:mixed|eff:no|tok:none|smooth:exp|version:maxmargin-{version}"),
        *("100.0", f"case:mixed|eff:yes|nc:6|nw:0|space:no|version:maxmargin-{version}"),
        *("100.0", f"case:mixed|eff:yes|nc:6|nw:2|space:no|version:maxmargin-{version}"),
        *("0.0", f"case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:maxmargin-{version}"),
        *("0.0", "", "0.0", "", missing, missing),
    ]


@pytest.mark.skipif(not (DATA / "reranking").is_dir(), reason="needs the public reranking lists")
def test_lists_of_a_decoder():
    folder = DATA / "reranking"
    references = [[line] for line in (folder / "dev2_en.al").read_text("latin-1").split("\n")[:-1]]
    texts = gzip.decompress((folder / "sysB_dev2" / "100best.gz").read_bytes()).decode("latin-1").split("\n")[:-1]
    owner = np.repeat(np.arange(100), 100)
    for metric, twin in ((Bleu(), sacrebleu.BLEU(tokenize="none", force=True)), (ChrF(), sacrebleu.CHRF())):
        statistics = metric.statistics(texts, references, owner)
        for rank in (0, 99):
            expected = twin.corpus_score(texts[rank::100], [[line for (line,) in references]]).score
            found = metric.shown(float(metric.quality(statistics[rank::100].sum(axis=0))))
            assert found == pytest.approx(expected, abs=1e-9)
    # sacrebleu takes 20 ms for a hypothesis.
    edits, twin, some = Ter().statistics(texts, references, owner), sacrebleu.TER(), range(7, 10_000, 499)
    for at, score in ((at, twin.sentence_score(texts[at], references[at // 100])) for at in some):
        assert edits[at].tolist() == [score.num_edits, score.ref_length]

"""Models learned from sentence pairs: against twins, and what is promised of them."""

from __future__ import annotations

from string import ascii_lowercase

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.tasks import translation as twin

import maxmargin as mm
from maxmargin.tasks.alignment import load_corpus
from maxmargin.tasks.alignment.io.links import as_links
from maxmargin.tasks.alignment.metrics.scores import evaluate
from maxmargin.tasks.alignment.translation import models as translation
from maxmargin.tasks.alignment.translation import passes
from maxmargin.tasks.alignment.translation.cooccurrences import BitextBatch, PreparedBitext
from maxmargin.tasks.alignment.translation.models import EMIteration, Posteriors, learn
from maxmargin.tasks.alignment.translation.words import IndexedBitext

WORDS = ["a", "b", "c", "d"]
NAMES = [first + second for first in ascii_lowercase[:10] for second in ascii_lowercase[:10]]


def corpora(most=4, pairs=4):
    sentence = st.lists(st.sampled_from(WORDS), max_size=most)
    return st.lists(st.tuples(sentence, sentence), max_size=pairs)


def sides(pairs):
    return [source for source, _ in pairs], [target for _, target in pairs]


def prepared(source, target, **settings):
    return PreparedBitext(IndexedBitext.of(source, target), **settings)


def names_of(cooccurrences):
    return cooccurrences.names(np.arange(cooccurrences.n_entries))


@settings(deadline=None, derandomize=True, max_examples=40)
@given(
    corpora(3), st.integers(0, 3), st.integers(0, 3), st.booleans(), st.sampled_from([0.0, 0.01, 2.0]),
    st.sampled_from([0.0, 0.1, 0.4]), st.sampled_from([1, 2, 10]),
)  # fmt: skip
def test_learns_what_the_twin_learns(pairs, first, second, agreement, prior, null, width):
    settings = {"model1_iterations": first, "hmm_iterations": second, "agreement": agreement}
    settings |= {"prior": prior, "null": null, "width": width}
    bitext = prepared(*sides(pairs))
    model, cooccurrences = learn(bitext, **settings), bitext.cooccurrences
    numbers = [
        ([cooccurrences.source.index[e] for e in source], [cooccurrences.target.index[f] for f in target])
        for source, target in pairs
    ]
    expected = twin.learn(numbers, **settings)
    rows = np.repeat(np.arange(len(cooccurrences.source)), np.diff(cooccurrences.row_start)).tolist()
    tolerance = {"rtol": 1e-3, "atol": 1e-5}  # float32 probabilities, through some iterations
    for entry, (e, f) in enumerate(zip(rows, cooccurrences.column.tolist(), strict=True)):
        np.testing.assert_allclose(model.hmm.word[entry, 0], expected.words[0][e, f], **tolerance)
        np.testing.assert_allclose(model.hmm.word[entry, 1], expected.words[1][f, e], **tolerance)
    for table, values in zip((model.hmm.null_target, model.hmm.null_source), expected.null, strict=True):
        np.testing.assert_allclose(table, [values[word] for word in range(len(table))], **tolerance)
    np.testing.assert_allclose(model.jumps, expected.jumps, **tolerance)
    np.testing.assert_allclose(
        np.reshape([(one.forward, one.backward) for one in model.history], (-1, 2)),
        np.reshape(expected.history, (-1, 2)),
        rtol=1e-5,
        atol=1e-5,
    )
    assert [one.model for one in model.history] == ["model1"] * first + ["hmm"] * second


def never_falls(model, tokens):
    """Word probabilities are float32: rounding one changes a word's log-likelihood by 6e-8, both ways by 1.2e-7."""
    for name in ("model1", "hmm"):
        values = np.array([(one.forward, one.backward) for one in model.history if one.model == name])
        assert (np.diff(values, axis=0) >= -1.3e-7 * tokens).all(), np.diff(values, axis=0).min()


@settings(deadline=None, derandomize=True, max_examples=100)
@given(corpora(8, 8), st.sampled_from([0.0, 0.1, 0.5]), st.sampled_from([1, 3, 10]))
def test_the_likelihood_never_falls(pairs, null, width):
    bitext = prepared(*sides(pairs))
    model = learn(bitext, model1_iterations=15, hmm_iterations=25, agreement=False, prior=0.0, null=null, width=width)
    never_falls(model, sum(len(side) for pair in pairs for side in pair))


@pytest.mark.parametrize("letters", [0, 4])
def test_the_likelihood_never_falls_on_the_corpus(letters):
    corpus = load_corpus()
    reported: list[EMIteration] = []
    bitext = prepared(corpus.source, corpus.target, letters=letters)
    model = learn(bitext, model1_iterations=15, hmm_iterations=15, agreement=False, on_iteration=reported.append)
    assert tuple(reported) == model.history
    never_falls(model, sum(map(len, corpus.source + corpus.target)))
    assert model.history[-1].forward > model.history[0].forward + 100


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.integers(0, 10_000), st.integers(1, 12))
def test_jumps_never_fit_worse(seed, width):
    rng = np.random.default_rng(seed)
    moved, departures = np.zeros(2 * width + 1), np.zeros((12, 12))
    for _ in range(int(rng.integers(0, 40))):
        positions = int(rng.integers(1, 12))
        last, to = int(rng.integers(-1, positions)), int(rng.integers(0, positions))
        count = rng.random() ** 3
        moved[np.clip(to - last, -width, width) + width] += count
        departures[last + 1, positions] += count
    c = rng.random(2 * width + 1) + 0.01
    c /= c.sum()
    better = translation._jumps(moved, departures, c)
    assert (better > 0).all()
    np.testing.assert_allclose(better.sum(), 1.0)
    before, after = (twin.jump_objective(moved, departures, one) for one in (c, better))
    assert after >= before - 1e-6 * (1 + moved.sum())


def every_array(batch, model, posteriors):
    cooccurrences = model.cooccurrences
    return [
        cooccurrences.row_start, cooccurrences.column, cooccurrences.counts, cooccurrences.source.counts,
        cooccurrences.target.counts,
        batch.source_start, batch.source, batch.target_start, batch.target, model.links, *model.model1, *model.hmm,
        model.jumps, *posteriors, np.array([(one.forward, one.backward) for one in model.history]),
    ]  # fmt: skip


@pytest.mark.parametrize("agreement", [False, True])
def test_same_bits_for_any_number_of_threads(agreement):
    corpus = load_corpus()
    found = []
    for threads in (1, 2, 3):
        with mm.threads(threads):
            bitext = prepared(corpus.source * 3, corpus.target * 3)
            model = learn(bitext, model1_iterations=2, hmm_iterations=2, agreement=agreement)
            batch = model.cooccurrences.batch(IndexedBitext.of(corpus.source, corpus.target))
            posteriors = model.posteriors(batch, model.cooccurrences.entries(batch))
            found.append(every_array(batch, model, posteriors))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            assert one.tobytes() == two.tobytes()


def grids(batch: BitextBatch, values):
    shapes = np.stack([np.diff(batch.source_start), np.diff(batch.target_start)], axis=1)
    return [piece.reshape(shape) for piece, shape in zip(np.split(values, batch.grid_start[1:-1]), shapes, strict=True)]


def sums_are_one(batch: BitextBatch, posteriors: Posteriors):
    for grid, null in zip(
        grids(batch, posteriors.forward), np.split(posteriors.null_target, batch.target_start[1:-1]), strict=True
    ):
        np.testing.assert_allclose(grid.sum(axis=0) + null, 1.0, atol=1e-5)
    for grid, null in zip(
        grids(batch, posteriors.backward), np.split(posteriors.null_source, batch.source_start[1:-1]), strict=True
    ):
        np.testing.assert_allclose(grid.sum(axis=1) + null, 1.0, atol=1e-5)


def test_posteriors_of_any_sentences():
    corpus = load_corpus()
    model = learn(prepared(corpus.source, corpus.target), model1_iterations=3, hmm_iterations=3)
    source = [[], ["house"], [], ["zzz", "house", "qqq"], ["the"] * 300, ["the", "the", "house", "the"], ["zzz"]]
    target = [[], [], ["maison"], ["xxx"], ["la", "maison"] * 200, ["la"], ["yyy"]]
    batch = model.cooccurrences.batch(IndexedBitext.of(source, target))
    assert (batch.source == -1).sum() == 3
    entries = model.cooccurrences.entries(batch)
    assert len(entries) == batch.grid_start[-1]
    for name in ("model1", "hmm"):
        posteriors = model.posteriors(batch, entries, model=name)
        sums_are_one(batch, posteriors)
        assert all(np.isfinite(values).all() for values in posteriors)
        np.testing.assert_allclose(posteriors.null_source[:1], 1.0, rtol=1e-6)
        np.testing.assert_allclose(posteriors.null_target[:1], 1.0, rtol=1e-6)


def test_long_sentences_teach_nothing_but_get_posteriors(monkeypatch):
    monkeypatch.setattr(passes, "LONGEST_LEARNED", 3)
    short = [(["a", "b"], ["x", "y"]), (["b", "c"], ["y", "z", "z"])]
    long = (["a", "b", "c", "a"], ["z", "z", "z", "x", "x", "y"])
    model, other = learn(prepared(*sides([*short, long]))), learn(prepared(*sides(short)))
    for word, table in (("a ~ x", model), ("b ~ y", model)):
        at, there = (names_of(m.cooccurrences).index(word) for m in (table, other))
        np.testing.assert_allclose(model.hmm.word[at], other.hmm.word[there], rtol=1e-3)
    assert model.history[-1].forward == pytest.approx(other.history[-1].forward, rel=1e-5)
    assert "a ~ z" not in names_of(model.cooccurrences)
    assert model.cooccurrences.n_pairs == 2
    batch = model.cooccurrences.batch(IndexedBitext.of(*sides([long])))
    sums_are_one(batch, model.posteriors(batch, model.cooccurrences.entries(batch)))


def test_no_pairs():
    for pairs in ([], [([], [])], [(["a"], []), ([], ["x"])]):
        bitext = prepared(*sides(pairs))
        model = learn(bitext)
        assert model.cooccurrences.n_entries == 0
        assert model.cooccurrences.n_pairs == len(pairs)
        assert [one.forward for one in model.history] == [0.0] * 10
        batch = model.cooccurrences.batch(IndexedBitext.of([["a", "b"], []], [["x"], []]))
        posteriors = model.posteriors(batch, model.cooccurrences.entries(batch))
        sums_are_one(batch, posteriors)
        assert len(model.frequent(5)) == 0


def test_counts_are_of_pairs():
    source, target = [["a", "A", "b"], ["a"], ["b1"], []], [["x", "x"], ["x", "y"], ["x"], ["z"]]
    cooccurrences = prepared(source, target).cooccurrences
    source, target = cooccurrences.source, cooccurrences.target
    assert dict(zip(source.words, source.counts.tolist(), strict=True)) == {"a": 2, "b": 1, "b1": 1}
    assert dict(zip(target.words, target.counts.tolist(), strict=True)) == {"x": 3, "y": 1, "z": 1}
    together = dict(zip(names_of(cooccurrences), cooccurrences.counts.tolist(), strict=True))
    assert together == {"a ~ x": 2, "a ~ y": 1, "b ~ x": 1, "b1 ~ x": 1}


def test_identical_words_start_out_more_probable():
    """Two numbers and a name that occur once find each other, though nothing else tells words of the pair apart."""
    pairs = [(["1997", "1998", "Zoltan"], ["Zoltan", "1998", "1997"]), (["the", "cat", "2"], ["2", "le", "cat"])]
    whole = prepared(*sides(pairs)).cooccurrences
    assert [names_of(whole)[at] for at in whole.identical()] == [
        "1997 ~ 1997",
        "1998 ~ 1998",
        "zoltan ~ zoltan",
        "2 ~ 2",
    ]
    cut = prepared(*sides(pairs), letters=4).cooccurrences
    assert [names_of(cut)[at] for at in cut.identical()] == ["0000 ~ 0000", "0 ~ 0"]
    model = learn(prepared(*sides(pairs[:1])))
    assert "_kernel" not in vars(model.cooccurrences)  # its copy of all entries is not kept while models learn
    for name, (forward, backward) in zip(names_of(model.cooccurrences), model.hmm.word, strict=True):
        first, second = name.split(" ~ ")
        assert (min(forward, backward) > 0.9) == (first == second)


def test_stems_are_cut():
    cooccurrences = prepared([["Parliament", "parlour"]], [["parlement"]], letters=4).cooccurrences
    assert cooccurrences.source.words == ["parl"]
    assert cooccurrences.batch(IndexedBitext.of([["PARLance"]], [["x"]])).source.tolist() == [0]


def intersected(model, source, target, name="hmm"):
    """Links that are the best of their column and of their row, better than the empty word."""
    batch = model.cooccurrences.batch(IndexedBitext.of(source, target))
    posteriors = model.posteriors(batch, model.cooccurrences.entries(batch), model=name)
    empty = (
        np.split(posteriors.null_target, batch.target_start[1:-1]),
        np.split(posteriors.null_source, batch.source_start[1:-1]),
    )
    found = []
    for forward, backward, above, beside in zip(
        grids(batch, posteriors.forward), grids(batch, posteriors.backward), *empty, strict=True
    ):
        chosen = np.zeros(forward.shape, dtype=bool)
        if forward.size:
            chosen = (forward == forward.max(axis=0)) & (forward > above) & (backward == backward.max(axis=1)[:, None])
            chosen &= backward > beside[:, None]
        found.append(as_links(np.argwhere(chosen)))
    return found


def made_up(n, *, seed, noise, n_words=60, longest=9):
    """Sentences of made-up words whose translations are reordered nearby; a share of words is added, or left out."""
    rng = np.random.default_rng(seed)
    source, target, references = [], [], []
    for length in rng.integers(2, longest, n).tolist():
        words = (n_words * rng.random(length) ** 2).astype(int)
        order = np.argsort(np.arange(length) + rng.uniform(0, 2.5, length))
        given, links = [], []
        for j in order.tolist():
            if rng.random() < noise:
                given.append("of" + NAMES[rng.integers(5)])
            if rng.random() >= noise:
                links.append((j, len(given)))
                given.append("f" + NAMES[words[j]])
        source.append(["e" + NAMES[word] for word in words])
        target.append(given)
        references.append(mm.tasks.alignment.Reference.of(links))
    return source, target, references


def test_learns_a_dictionary_perfectly():
    rng = np.random.default_rng(0)
    source, target, truth = [], [], []
    for _ in range(300):
        words = rng.choice(20, size=int(rng.integers(1, 6)), replace=False)
        order = rng.permutation(len(words))
        source.append(["e" + NAMES[word] for word in words])
        target.append(["f" + NAMES[word] for word in words[order]])
        truth.append(as_links([(int(j), k) for k, j in enumerate(order)]))
    for agreement in (False, True):
        model = learn(prepared(source, target), agreement=agreement)
        best: dict[str, tuple[float, str]] = {}
        for name, p in zip(names_of(model.cooccurrences), model.hmm.word[:, 0], strict=True):
            e, f = name.split(" ~ ")
            best[e] = max(best.get(e, (0.0, "")), (float(p), f))
        assert all(f == "f" + e[1:] and p > 0.9 for e, (p, f) in best.items())
        for found, links in zip(intersected(model, source, target), truth, strict=True):
            np.testing.assert_array_equal(found, links)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_agreement_makes_better_links(seed):
    source, target, references = made_up(400, seed=seed, noise=0.2)
    bitext = prepared(source, target)
    errors = [
        evaluate(references, intersected(learn(bitext, agreement=agreement), source, target)).aer
        for agreement in (False, True)
    ]
    assert errors[1] < errors[0]
    assert errors[1] < 0.1


def test_selected_slots():
    corpus = load_corpus()
    model = learn(prepared(corpus.source, corpus.target), model1_iterations=2, hmm_iterations=2)
    frequent = model.frequent(20)
    assert len(frequent) == 20
    assert (np.diff(frequent) > 0).all()
    others = np.delete(model.links, frequent)
    assert model.links[frequent].min() >= max(1.0, others.max())
    assert len(model.frequent(10**9)) == (model.links >= 1).sum()
    kept = model.likely(0.1)
    smaller = model.select(model.cooccurrences.select(kept), kept)
    assert names_of(smaller.cooccurrences) == model.cooccurrences.names(np.flatnonzero(kept))
    np.testing.assert_array_equal(smaller.hmm.word, model.hmm.word[kept])
    batch = model.cooccurrences.batch(IndexedBitext.of(corpus.source, corpus.target))
    entries, fewer = model.cooccurrences.entries(batch), smaller.cooccurrences.entries(batch)
    places = np.append(np.cumsum(kept) - 1, -1)
    np.testing.assert_array_equal(fewer, np.where(np.append(kept, False)[entries], places[entries], -1))
    sums_are_one(batch, smaller.posteriors(batch, fewer))


def test_bad_arguments_are_refused():
    bitext = prepared([["a"]], [["x"]])
    for name, value in (
        ("model1_iterations", -1), ("hmm_iterations", 1.5), ("width", 0), ("width", True), ("null", 1.0),
        ("null", np.nan), ("prior", -1.0), ("prior", np.inf),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=name):
            learn(bitext, **{name: value})
    model = learn(bitext)
    batch = model.cooccurrences.batch(IndexedBitext.of([["a"]], [["x"]]))
    with pytest.raises(ValueError, match="'model1' or 'hmm'"):
        model.posteriors(batch, model.cooccurrences.entries(batch), model="model4")
    with pytest.raises(ValueError, match="2 source sentences but 1 target"):
        prepared([["a"], ["b"]], [["x"]])
    with pytest.raises(ValueError, match="one for each"):
        model.cooccurrences.batch(IndexedBitext.of([["a"], ["b"]], [["x"]]))
    with pytest.raises(ValueError, match="per cell"):
        model.posteriors(batch, np.zeros(2, dtype=np.int64))

"""Predictions of taggers against all label sequences, one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from corpora import KINDS, PAIRS, WORDS, chunked, markov, matrices, table_of_scores

from maxmargin.tasks.tagging import SequenceTagger
from maxmargin.tasks.tagging.dev import COLDEST, HOTTEST
from maxmargin.tasks.tagging.encoder import layout

pytestmark = pytest.mark.filterwarnings("ignore:probabilities are not calibrated")


@pytest.fixture(scope="module", params=sorted(KINDS))
def trained(request):
    """A tagger whose weights are shaken, so that nothing is a tie, and sentences of lengths 0, 1, 2 and more."""
    X, y, settings = KINDS[request.param]
    tagger = SequenceTagger(tol=1e-2, **settings).fit(X, y)
    model = tagger.model_
    rng = np.random.default_rng(5)
    weights = model.weights + 0.3 * rng.standard_normal(len(model.weights))
    model = replace(model, weights=weights, calibration={"temperature": 0.7})
    few = X[:4]
    if not hasattr(X[0], "features"):
        few = [*few, X[0][:0], X[1][:1], X[2][:2]]
    return model, few


@pytest.fixture(params=["one piece", "many pieces"])
def piece(request, monkeypatch):
    if request.param == "many pieces":
        monkeypatch.setattr(layout, "SHARD", 10)


def _forced(model, X):
    """A label at every second token, taken from an allowed sequence."""
    rng = np.random.default_rng(0)
    found = []
    for outputs in table_of_scores(model, X):
        codes = outputs[rng.integers(len(outputs))][0]
        found.append([model.labels[c] if t % 2 else None for t, c in enumerate(codes)])
    return found


@pytest.mark.parametrize("force", [False, True], ids=["free", "forced"])
def test_against_all_sequences(trained, piece, force):
    model, X = trained
    known = _forced(model, X) if force else None
    scores = table_of_scores(model, X, known)
    best = model.predict(X, known=known)
    marginals = model.predict_proba(X, known=known)
    ranked = model.k_best(X, 4, known=known)
    rows = model.extractor.rows(X)
    codes, flat = model.best_with_margins(rows, model.known_codes(known, rows.lengths))
    margins = np.split(flat, rows.offsets[1:-1])
    assert [label for sentence in best for label in sentence] == [model.labels[c] for c in codes]
    for i, outputs in enumerate(scores):
        ordered = sorted(outputs, key=lambda pair: -pair[1])
        assert best[i] == [model.labels[c] for c in ordered[0][0]]
        assert [labels for labels, _ in ranked[i]] == [[model.labels[c] for c in codes] for codes, _ in ordered[:4]]
        np.testing.assert_allclose([score for _, score in ranked[i]], [s for _, s in ordered[:4]], atol=1e-10)
        weight = np.exp((np.array([s for _, s in outputs]) - ordered[0][1]) / 0.7)
        weight /= weight.sum()
        wanted = np.zeros_like(marginals[i])
        for (codes_here, _), w in zip(outputs, weight, strict=True):
            wanted[np.arange(len(codes_here)), list(codes_here)] += w
        np.testing.assert_allclose(marginals[i], wanted, atol=1e-10)
        for t, margin in enumerate(margins[i]):
            others = [s for codes_here, s in outputs if codes_here[t] != ordered[0][0][t]]
            assert margin == pytest.approx(ordered[0][1] - max(others) if others else np.inf, abs=1e-10)
    if not force:
        for one, two in zip(model.margins(X), margins, strict=True):
            np.testing.assert_array_equal(one, two)


def test_same_bits_for_threads_and_pieces(trained, monkeypatch):
    model, X = trained

    def everything(n_jobs):
        threaded = replace(model, n_jobs=n_jobs)
        arrays = [*threaded.predict_proba(X), *threaded.margins(X)]
        return threaded.predict(X), threaded.k_best(X, 3), [array.tobytes() for array in arrays]

    wanted = everything(1)
    assert everything(2) == everything(3) == wanted
    monkeypatch.setattr(layout, "SHARD", 7)
    assert everything(1) == everything(3) == wanted


def test_no_sentences(trained):
    model, _X = trained
    assert model.predict([]) == model.k_best([], 2) == model.predict_proba([]) == model.margins([]) == []
    assert model.predict([], known=[]) == []
    rows = model.extractor.rows([])
    assert len(model.best(rows)) == 0
    assert model.marginals(rows).shape == (0, len(model.labels))


def test_fewer_sequences_than_asked_for(trained):
    model, X = trained
    for outputs, ranked in zip(table_of_scores(model, X), model.k_best(X, 300), strict=True):
        assert len(ranked) == min(len(outputs), 300)


@pytest.mark.filterwarnings("ignore:all weights of the model are zero")
def test_margins_where_no_other_label_is_possible():
    X, y = [[{"a"}], [{"b"}, {"c"}]], [["x"], ["x", "x"]]
    tagger = SequenceTagger().fit(X, y)
    assert tagger.predict(X) == y
    assert all(np.isinf(margin).all() for margin in tagger.margins(X))
    assert all((found == 1.0).all() for found in tagger.predict_proba(X))


@pytest.mark.parametrize("settings", [{}, {"order": 2}, {"template": PAIRS}], ids=["first", "second", "pairs"])
@pytest.mark.filterwarnings("ignore:all weights of the model are zero")
def test_sentences_without_an_allowed_labeling(settings, piece):
    """Chunks of two tokens each: sentences of odd lengths are labeled without the constraints."""
    X = [["b0", "e0"], ["b1", "e0", "b0", "e1"], ["b1", "e1"], ["e1", "e1"]]
    y = [["B-X", "E-X"] * (len(x) // 2) for x in X]
    odd, gold = [["e0"], ["b0", "e0"], [], ["b1", "e0", "e1"], ["b0"]], [["E-X"], *y[:1], [], ["B-X"] * 3, ["B-X"]]
    tagger = SequenceTagger(**{"template": WORDS, **settings}).fit(X, y, dev=(odd, gold))
    model = tagger.model_
    assert model.weight_layout.constraints is not None
    model = replace(model, weights=model.weights + 0.3 * np.random.default_rng(1).standard_normal(len(model.weights)))
    free = replace(model, encoder=replace(model.encoder, weight_layout=replace(model.weight_layout, constraints=None)))
    for one in range(len(odd)):
        this = free if len(odd[one]) % 2 else model
        alone = odd[one : one + 1]
        assert model.predict(odd)[one] == this.predict(alone)[0]
        assert model.k_best(odd, 3)[one] == this.k_best(alone, 3)[0]
        np.testing.assert_array_equal(model.margins(odd)[one], this.margins(alone)[0])
        np.testing.assert_array_equal(model.predict_proba(odd)[one], this.predict_proba(alone)[0])
    known = [[None], [None, None], [], [None] * 3, [None]]
    assert model.predict(odd, known=known) == model.predict(odd)
    known[3][1] = "B-X"
    with pytest.raises(ValueError, match="sentence 3: no allowed labeling has the known labels; correct them"):
        model.predict(odd, known=known)
    with pytest.raises(ValueError, match="sentence 4: no labels satisfy the constraints in a sentence of this length"):
        SequenceTagger(**{"template": WORDS, "constraints": "iobes", **settings}).fit([*X, ["b0"]], [*y, [None]])


def test_labels_that_cannot_be():
    X, y = chunked(10)
    tagger = SequenceTagger(template=WORDS).fit(X, y)
    for known, message in [
        ([["I-X"]], "sentence 0: no allowed labeling has the known labels; correct them"),
        ([["Z"]], "sentence 0, token 0: 'Z' is not a label of this model"),
        ([[["O"]]], r"sentence 0, token 0: \['O'\] is not a label of this model"),
        ([[("O", ["O"])]], r"sentence 0, token 0: \('O', \['O'\]\) is not a label of this model"),
        ([[{"O"}]], r"sentence 0, token 0: \{'O'\} is not a label of this model"),
        (["O"], "sentence 0: known must be a list of labels, got 'O'"),
        ([None], "sentence 0: known must be a list of labels, got None"),
        ("O", "known must be a list of lists of labels, got 'O'"),
        ([[None, None]], "sentence 0: known has 2 entries for 1 tokens; use None to skip"),
        ([], "known has 0 sentences where there are 1"),
    ]:
        for use in (tagger.predict, tagger.predict_proba, lambda X, known: tagger.k_best(X, 2, known=known)):
            with pytest.raises(ValueError, match=message):
                use([["b0"]], known=known)
    for k in (0, -1, 2.5, "2", True):
        with pytest.raises(ValueError, match="k must be an integer >= 1"):
            tagger.k_best(X, k)


def test_unseen_attributes_are_left_out():
    X, y = markov(20)
    tagger = SequenceTagger(template="U:%x[0,0]\n", tol=1e-3).fit(X, y)
    bias = tagger.k_best([["never"] * 3], 1)[0][0]
    pairs = tagger.model_.weight_layout.split(tagger.model_.weights)[1]
    place = {label: code for code, label in enumerate(tagger.classes_)}
    assert bias[1] == pytest.approx(sum(pairs[place[a], place[b]] for a, b in zip(bias[0], bias[0][1:], strict=False)))


def test_scores_that_are_not_finite():
    X, y = markov(6)
    model = SequenceTagger(tol=1e-2).fit(matrices(X), y).model_
    model = replace(model, weights=1e10 * model.weights)
    rows = [np.zeros((1, 4)), np.full((2, 4), 1e308)]
    for use in (model.predict, model.predict_proba, model.margins, lambda X: model.k_best(X, 2)):
        with pytest.raises(ValueError, match="sentence 1: scores are not finite; scale the features down"):
            use(rows)


def test_temperature_minimizes_the_loss_of_gold_labels():
    X, y = markov(40, noise=0.5, seed=3)
    others, gold = markov(40, noise=0.5, seed=4)
    tagger = SequenceTagger(template=WORDS, C=1.0, patience=None).fit(X, y, dev=(others, gold))
    model, rows = tagger.model_, tagger.model_.extractor.rows(others)
    codes = np.array([model.codes[label] for labels in gold for label in labels])

    def loss(temperature):
        found = model.marginals(rows, temperature=temperature)
        return -np.log(found[np.arange(len(codes)), codes]).mean()

    best = model.temperature
    assert COLDEST < best < HOTTEST
    assert all(loss(best) <= loss(best * factor) + 1e-9 for factor in (0.5, 0.9, 0.98, 1.02, 1.1, 2.0))
    assert model.scorer(others, [["new"] * len(labels) for labels in gold]).temperature(model) is None
    some = [["new" if label == "a" else label for label in labels] for labels in gold]
    assert model.scorer(others, some).temperature(model) > 0
    # Without dev data and folds scores are taken as they are.
    plain = SequenceTagger(template=WORDS, C=1.0, folds=0).fit(X, y)
    assert plain.model_.calibration == {}
    assert plain.calibrated_on is None
    np.testing.assert_array_equal(plain.model_.marginals(rows), plain.model_.marginals(rows, temperature=1.0))


def test_generators_are_labeled_lazily():
    tagger = SequenceTagger(max_iter=3).fit([["a", "b"], ["b"]] * 4, [["A", "B"], ["B"]] * 4)
    taken = []

    def sentences():
        for i in range(10):
            taken.append(i)
            yield ["a"] * (i % 3) + ["b"]

    found = tagger.predict_iter(sentences(), size=2)
    first = next(found)
    assert taken == [0, 1]
    assert [first, *found] == tagger.predict(list(sentences()))
    with pytest.raises(ValueError, match="size must be"):
        next(tagger.predict_iter([], size=0))

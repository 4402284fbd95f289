"""SequenceTagger: what it takes, what it refuses, and the manners of scikit-learn."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from corpora import PAIRS, WORDS, chunked, dictionaries, markov, matrices
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import maxmargin as mm
from maxmargin.solvers import Checkpoint
from maxmargin.structures import TransitionConstraints
from maxmargin.tasks.tagging import AttributeText, SequenceTagger, Template, TokenTable, preset_text
from maxmargin.tasks.tagging.encoder.presets import PRESETS

pytestmark = pytest.mark.filterwarnings("ignore:probabilities are not calibrated")


def bits(tagger):
    return tagger.model_.weights.tobytes()


@pytest.fixture(scope="module")
def corpus():
    return markov(12, seed=1)


# Inputs.


def test_the_same_words_however_given(corpus):
    X, y = corpus
    wanted = SequenceTagger(template=WORDS).fit(X, y)
    table = TokenTable.of_lists(X)
    names = sorted({label for labels in y for label in labels}, reverse=True)
    codes = np.array([names.index(label) for labels in y for label in labels], dtype=np.int32)
    for other, labels in [
        ([tuple(x) for x in X], [tuple(some) for some in y]),
        ([np.array(x) for x in X], [np.array(some) for some in y]),
        ([[(word,) for word in x] for x in X], y),
        (tuple(X), tuple(y)),
        (table, y),
        (table, (codes, names)),
    ]:
        tagger = SequenceTagger(template=WORDS).fit(other, labels)
        assert bits(tagger) == bits(wanted)
        assert tagger.predict(other) == wanted.predict(X) == wanted.predict(table)
        assert tagger.classes_ == ["a", "b", "c"]
    assert tagger.predict_single(X[0]) == wanted.predict(X)[0]
    assert bits(SequenceTagger(template=Template.parse(WORDS, ["word"])).fit(X, y)) == bits(wanted)


def test_columns(corpus):
    X, y = corpus
    rows = [[(word, word[:2], word[-1]) for word in x] for x in X]
    one = SequenceTagger(template="U:%x[0,1]\nU:%x[0,2]\n").fit(rows, y)
    two = SequenceTagger(template="U:%x[0,kind]\nU:%x[0,number]\n", columns=["word", "kind", "number"]).fit(rows, y)
    three = SequenceTagger(template="U:%x[0,kind]\nU:%x[0,number]\n", columns="word,kind,number").fit(rows, y)
    assert bits(one) == bits(two) == bits(three)
    assert one.predict(rows) == two.predict(rows)
    with pytest.raises(ValueError, match="column"):
        SequenceTagger(template="U:%x[0,3]\n").fit(rows, y)
    with pytest.raises(ValueError, match="no column 'kind', which the template uses; there are word"):
        two.predict(TokenTable.of_lists(X))
    with pytest.raises(ValueError, match="column"):
        two.predict(X)


def test_dictionaries_lists_and_files_of_attributes(corpus):
    X, y = corpus
    given = [[{"word": word, "size": 0.5} for word in x] for x in X]
    wanted = SequenceTagger().fit(given, y)
    text = AttributeText.of_lists(given)
    assert bits(SequenceTagger().fit(text, y)) == bits(wanted)
    assert wanted.predict(text) == wanted.predict(given)
    names = [[[f"word:{word}"] for word in x] for x in X]
    plain = SequenceTagger().fit(names, y)
    assert plain.predict([[set(token) for token in x] for x in names]) == plain.predict(names)
    assert "word:w00" in plain.attributes_
    assert wanted.attributes_[:2] == [f"word:{X[0][0]}", "size"]


def test_dense_and_sparse_matrices(corpus):
    X, y = corpus
    dense = matrices(X)
    wanted = SequenceTagger().fit(dense, y)
    for convert in (sp.csr_array, sp.csr_matrix, sp.coo_array, mm.FeatureSequence):
        given = [convert(x) for x in dense]
        assert bits(SequenceTagger().fit(given, y)) == bits(wanted)
        assert wanted.predict(given) == wanted.predict(dense)
    assert wanted.attributes_ == [f"feature {i}" for i in range(4)]
    edged = SequenceTagger().fit(matrices(X, edges=True), y)
    assert edged.model_.weight_layout.edge_support is not None
    assert edged.model_.extractor.edge_name(1) == "edge feature 1"


@pytest.mark.parametrize("preset", PRESETS)
def test_presets(preset):
    X, y = chunked(20)
    columns = Template.parse(preset_text(preset), ["word", "pos"], preset).columns_used
    given = X if columns == ("word",) else [[(word, word[0].upper()) for word in x] for x in X]
    tagger = SequenceTagger(preset=preset).fit(given, y)
    assert tagger.score(given, y) > 0.8
    assert tagger.model_.metadata["preset"] == preset


def test_labels_of_any_kind(corpus):
    X, y = corpus
    number = {"a": 3, "b": -1, "c": 10**20}
    for convert in (
        lambda label: number[label],
        lambda label: (label, 1),
        lambda label: label == "a",
        lambda label: {"a": "x", "b": 2, "c": ("y",)}[label],
        lambda label: f"é {label}\n",
        np.str_,
    ):
        labels = [[convert(label) for label in some] for some in y]
        tagger = SequenceTagger(template=WORDS, tol=1e-3).fit(X, labels)
        found = tagger.predict(X)
        assert {label for some in found for label in some} <= set(tagger.classes_)
        assert tagger.score(X, labels) > 0.7


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (5, "X must be a list"),
        (None, "X must be a list"),
        ("words", "X must be a list"),
        ([], "X is empty"),
        ([5], "sentence 0: expected a list of tokens or a matrix, got int"),
        ([None], "sentence 0: expected a list of tokens or a matrix, got NoneType"),
        ([[5]], "sentence 0, token 0"),
        ([[{"a": 1}, 5]], "sentence 0, token 1"),
        ([[{"a": 1}], ["b", 3.0]], "sentence 1, token 1"),
        ([[{"a": float("nan")}]], "sentence 0, token 0: attribute 'a'"),
        ([[{"a": 1}], [{"b": float("inf")}]], "sentence 1, token 0: attribute 'b'"),
        ([[{3: 1}]], "sentence 0, token 0: the name of an attribute must be text"),
        ([[{"a": object()}]], "sentence 0, token 0"),
        ([[{"a": 1}], np.zeros((1, 2))], "sentence 1, token 0"),
        ([np.zeros((1, 2)), [{"a": 1}]], "example 1"),
        ([np.zeros((1, 2)), np.zeros((1, 3))], "example 1: features have 3 columns, expected 2"),
        ([np.zeros((1, 2)), np.array([[np.nan, 1]])], "example 1: features hold NaN"),
        ([sp.csr_array(np.array([[np.inf, 1]]))], "example 0: features hold NaN or infinity"),
        ([np.zeros(3)], "example 0: features must be a 2-D array"),
        ([np.zeros((1, 2), dtype=complex)], "example 0: features must be real numbers"),
        ([mm.FeatureSequence(np.zeros((2, 2)), np.zeros((2, 1)))], "example 0: 2 rows of edge features for 2 tokens"),
        ([mm.FeatureSequence(np.zeros((2, 2)), np.zeros((1, 1))), np.zeros((1, 2))], "example 1: no edge features"),
        ([mm.FeatureSequence(np.zeros((2, 2)), np.zeros((1, 0)))], "the edge features have no columns"),
    ],
)
def test_odd_inputs(X, message):
    y = [["a"] * (len(x) if isinstance(x, list) else 1) for x in X] if isinstance(X, list) and X else [["a"]]
    with pytest.raises(ValueError, match=re.escape(message)):
        SequenceTagger().fit(X, y)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (["word"], "sentence 0 must be a list of tokens, got 'word'"),
        ([["a"], [5]], "sentence 1, token 0: expected a string"),
        ([["a", {"b": 1}]], "sentence 0, token 1: expected a string"),
        ([["a", None]], "sentence 0, token 1: expected a string"),
        ([["a", b"b"]], "sentence 0, token 1: expected a string"),
        ([["a", ("b", "c")]], "sentence 0, token 1"),
        ([[("a", "b")], [("c",)]], "sentence 1, token 0: 1 columns, and others have 2"),
        ([np.zeros((1, 2))], "matrices need no template or preset; leave it out, or give tokens of text"),
        (AttributeText.of_lists([[{"a": 1}]]), "attributes of tokens need no template or preset"),
    ],
)
def test_odd_tokens(X, message):
    y = [["a"] * len(x) for x in X] if isinstance(X, list) else [["a"]]
    with pytest.raises(ValueError, match=re.escape(message)):
        SequenceTagger(template=WORDS).fit(X, y)


def test_other_inputs_than_in_training(corpus):
    X, y = corpus
    words = SequenceTagger(template=WORDS).fit(X, y)
    items = SequenceTagger().fit(dictionaries(X), y)
    rows = SequenceTagger().fit(matrices(X), y)
    table, text = TokenTable.of_lists(X), AttributeText.of_lists(dictionaries(X))
    for tagger, other, message in [
        (words, [[{"lemma": "be"}]], "sentence 0, token 0: no column 'word', which the template uses; there are lemma"),
        (words, matrices(X), "sentence 0, token 0: expected a string"),
        (words, [5], "sentence 0: expected a list of tokens"),
        (items, table, "this model takes attributes of tokens, not columns of text"),
        (items, matrices(X), "sentence 0, token 0: expected a dictionary or a list of texts"),
        (words, text, "this model takes columns of text, not attributes of tokens"),
        (rows, table, "this model takes a matrix of features per sentence, not tokens of text"),
        (rows, text, "this model takes a matrix of features per sentence, not tokens of text"),
        (rows, X, "example 0: features must be real numbers"),
        (rows, [np.zeros((1, 3))], "example 0: features have 3 columns, expected 4"),
        (words, "text", "X must be a list"),
        (words, None, "X must be a list"),
    ]:
        for use in (tagger.predict, tagger.predict_proba, tagger.margins):
            with pytest.raises(ValueError, match=re.escape(message)):
                use(other)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "y must be a list"),
        ("ab", "y must be a list"),
        ([], "y is empty"),
        ([["a", "b"]], "2 sentences and 1 label sequences; give one for each"),
        ([["a", "b"], ["a", "b"]], "sentence 1: 2 labels for 1 tokens; give each token one"),
        ([["a"], ["a", "b"]], "sentence 0: 1 labels for 2 tokens; give each token one"),
        (["ab", "c"], "example 0: y must be a list or 1-D array with one label per position, got 'ab'"),
        ([["a", ["b"]], ["c"]], "example 0: labels must be hashable"),
        ([["a", float("nan")], ["c"]], "example 0: NaN cannot be a label"),
        ([[None, None], [None]], "no label is known; label at least some tokens"),
        ((np.array([0, 1]), ["a", "b"]), "2 labels for 3 tokens; give each token one"),
        ((np.array([0, 1, 2]), ["a", "b"]), "codes of labels must be places in the list of 2 labels, or -1"),
        ((np.array([-1, -1, -1]), ["a"]), "no label is known"),
    ],
    ids=str,
)
def test_odd_labels(y, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        SequenceTagger(template=WORDS).fit([["x", "y"], ["z"]], y)


def test_two_arrays_are_two_sentences():
    X = [["x", "y"], ["z"]]
    for y in ((np.array(["a", "b"]), np.array(["a"])), (np.array([0, 1]), np.array([0])), (np.array([0, 1]), [0])):
        tagger = SequenceTagger(template=WORDS, tol=1e-3).fit(X, y)
        assert tagger.predict(X) == [list(some) for some in y]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"preset": "pos", "template": WORDS}, "give a preset or a template, not both"),
        ({"preset": "x", "template": None}, "no preset 'x'; choose one of chunking, ner, pos"),
        ({"template": 5}, "template must be the text of a template or a Template, got 5"),
        ({"columns": 5}, "columns must be names of columns, got 5"),
        ({"order": 3}, "order must be 1 or 2, got 3"),
        ({"order": 1.0}, "order must be 1 or 2, got 1.0"),
        ({"order": 2, "template": PAIRS}, "order=2 cannot be combined with attributes of pairs"),
        (
            {"constraints": "x"},
            "constraints must be None, a TransitionConstraints or one of 'auto', 'bio', 'iobes', got 'x'",
        ),
        ({"constraints": TransitionConstraints.anything(5)}, "constraints are for 5 labels, there are 3"),
        ({"forbidden": 5}, "forbidden must be a list of pairs of labels, got 5"),
        ({"forbidden": ["ab"]}, "forbidden must be a list of pairs of labels, got 'ab'"),
        ({"forbidden": [("a", "z")]}, "there is no label 'z'"),
        ({"forbidden": [(None, None)]}, "name at least one label"),
        ({"classes": "abc"}, "classes must be a list of labels, got 'abc'"),
        ({"classes": ["a", "b"]}, "label 'c' was not seen before"),
        ({"classes": ["a", "b", "c", "a"]}, "distinct labels"),
        ({"classes": ["a", "b", "c", None]}, "classes holds None, which stands for an unknown label"),
        ({"classes": ["a", "b", "c", "?"], "unknown": "?"}, "classes holds '?', which stands for an unknown label"),
        ({"min_count": 0}, "min_count must be an integer >= 1, got 0"),
        ({"support": "x"}, "support must be one of 'negative', 'observed', 'all', got 'x'"),
        ({"C": 0}, "C must be a number > 0 or infinity, got 0"),
        ({"C": float("inf")}, 'support="negative" is not possible, as it needs'),
        ({"loss": {"z": 1}}, "loss names 'z', which is not a label; there are a, b, c"),
        ({"loss": {"a": -1}}, "finite costs >= 0"),
        ({"loss": [[0, 1], [1, 0]]}, "LabelCost needs a (3, 3) matrix"),
        ({"solver": "x"}, 'solver must be "auto" or a solver object'),
        ({"metric": "x"}, "metric must be one of"),
        ({"n_jobs": 0}, "n_jobs must be None or a non-zero integer"),
        ({"random_state": "x"}, "random_state must be None or an integer >= 0, got 'x'"),
    ],
    ids=str,
)
def test_odd_settings(corpus, settings, message):
    tagger = SequenceTagger(**{"template": WORDS, **settings})
    with pytest.raises(ValueError, match=re.escape(message)):
        tagger.fit(*corpus)
    assert not hasattr(tagger, "model_")


@pytest.mark.parametrize("value", [1e200, 1e308])
def test_values_that_are_too_large(value):
    tagger = SequenceTagger()
    with pytest.raises(ValueError, match="values of attributes are too large; scale them down"):
        tagger.fit([[{"a": value, "b": 1.0}, {"c": value}], [{"a": value}]], [["x", "y"], ["y"]])
    assert not hasattr(tagger, "model_")


def test_weights_are_checked(corpus):
    X, y = corpus
    tagger = SequenceTagger(template=WORDS)
    for settings, message in [
        ({"sample_weight": np.ones(3)}, "sample_weight must be numbers of shape (12,)"),
        ({"sample_weight": -np.ones(12)}, "example 0: sample_weight must be finite and >= 0"),
        ({"loss_weight": [[1.0]]}, "loss_weight must have 12 entries"),
        ({"loss_weight": [[1.0] * 9] * 12}, "example 0: loss_weight must be"),
        ({"loss_weight": [[np.nan] * len(x) for x in X]}, "example 0: loss_weight must be"),
    ]:
        with pytest.raises(ValueError, match=re.escape(message)):
            tagger.fit(X, y, **settings)


def test_a_tagger_stays_as_it_was_where_fit_fails(corpus):
    X, y = corpus
    tagger = SequenceTagger(template=WORDS).fit(X, y)
    before, found, model = bits(tagger), tagger.predict(X), tagger.model_
    for bad in (([[5]], [["a"]]), (X, y[:-1]), (X, [[None] * len(x) for x in X])):
        for use in (tagger.fit, tagger.partial_fit):
            with pytest.raises(ValueError, match=r"sentences?|label"):
                use(*bad)
    with pytest.raises(ValueError, match="dev"):
        tagger.fit(X, y, dev=(X, y[:-1]))

    def fails(record):
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        tagger.set_params(callbacks=[fails]).partial_fit([["new"]], [["a"]])
    assert tagger.model_ is model
    assert bits(tagger) == before
    assert tagger.predict(X) == found
    fresh = SequenceTagger(template=WORDS)
    with pytest.raises(ValueError, match="12 sentences and 11 label sequences"):
        fresh.partial_fit(X, y[:-1], classes=["a", "b", "c"])
    assert fresh.classes is None


# Rules.


def test_rules_are_recognized():
    X, y = chunked(12)
    assert SequenceTagger(template=WORDS).fit(X, y).model_.weight_layout.constraints == TransitionConstraints.bio(
        ["B-X", "I-X", "O"]
    )
    assert SequenceTagger(template=WORDS, constraints=None).fit(X, y).model_.weight_layout.constraints is None
    broken = [["I-X"] * len(labels) for labels in y[:6]] + y[6:]
    with pytest.warns(UserWarning, match="too many to keep the rules"):
        assert SequenceTagger(template=WORDS).fit(X, broken).model_.weight_layout.constraints is None
    with pytest.raises(ValueError, match="sentence 0, token 0: the label 'I-X' violates the constraints"):
        SequenceTagger(template=WORDS, constraints="bio").fit(X, broken)
    with pytest.raises(
        ValueError,
        match=r"sentence 1, token 1: the label 'I-X' after 'O' violates.* without constraints",
    ):
        SequenceTagger(template=WORDS, constraints="bio").fit([["x"], ["x", "y"]], [["O"], ["O", "I-X"]])
    strict = SequenceTagger(template=WORDS).fit([["a", "b", "c", "d"]], [["B-X", "E-X", "S-X", "O"]])
    assert strict.model_.weight_layout.constraints == TransitionConstraints.iobes(list(strict.classes_))
    given = TransitionConstraints.forbid(["B-X", "I-X", "O"], [("O", "I-X")])
    assert SequenceTagger(template=WORDS, constraints=given).fit(X, y).model_.weight_layout.constraints == given
    both = SequenceTagger(template=WORDS, forbidden=[("I-X", None)], constraints="bio")
    kept = [i for i, labels in enumerate(y) if labels[-1] != "I-X"]
    constraints = both.fit([X[i] for i in kept], [y[i] for i in kept]).model_.weight_layout.constraints
    assert not constraints.last[1]
    assert not constraints.first[1]


def test_transitions_are_the_legal_ones():
    X, y = chunked(12)
    tagger = SequenceTagger(template=WORDS).fit(X, y)
    assert ("O", "I-X") not in tagger.transition_features_
    assert len(tagger.transition_features_) == 8
    assert len(SequenceTagger(template=WORDS, constraints=None).fit(X, y).transition_features_) == 9


# Frequencies.


def test_rare_attributes_are_left_out():
    X = [["a", "b", "a"], ["c", "b", "a"]]
    y = [["x", "y", "x"], ["y", "y", "x"]]
    tagger = SequenceTagger(template="U:%x[0,0]\n", min_count=2).fit(X, y)
    assert tagger.attributes_ == ["U:a", "U:b"]
    assert tagger.partial_fit([["c", "d", "d"]], [["x", "y", "y"]]).attributes_ == ["U:a", "U:b", "U:d"]
    assert SequenceTagger(template="U:%x[0,0]\n", min_count=9).fit(X, y).attributes_ == []


# The manners of scikit-learn.


def test_unfitted(corpus, tmp_path):
    X, y = corpus
    tagger = SequenceTagger()
    uses = (tagger.predict, tagger.predict_proba, tagger.margins, tagger.predict_marginals, tagger.predict_single)
    for use in (*uses, lambda X: tagger.k_best(X, 2), lambda X: tagger.score(X, y), lambda X: tagger.evaluate(X, y)):
        with pytest.raises(NotFittedError):
            use(X)
    with pytest.raises(NotFittedError):
        tagger.save(tmp_path / "model")
    for name in ("classes_", "coef_", "attributes_", "state_features_", "transition_features_"):
        assert not hasattr(tagger, name)


def test_parameters():
    tagger = SequenceTagger(template=WORDS, C=[0.1, 1], order=2)
    other = clone(tagger)
    assert other.get_params() == tagger.get_params()
    assert other is not tagger
    assert repr(SequenceTagger()) == "SequenceTagger()"
    assert repr(SequenceTagger(preset="pos", C=0.5)) == "SequenceTagger(C=0.5, preset='pos')"
    assert tagger.set_params(C=0.3, order=1).C == 0.3
    with pytest.raises(ValueError, match="Invalid parameter 'c'"):
        tagger.set_params(c=1)


def test_search_and_cross_validation(corpus):
    X, y = markov(24, seed=3)
    scores = cross_val_score(SequenceTagger(template=WORDS), X, y, cv=3)
    assert scores.shape == (3,)
    assert scores.mean() > 0.6
    search = GridSearchCV(SequenceTagger(template=WORDS), {"C": [1e-5, 0.1], "order": [1, 2]}, cv=2).fit(X, y)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert search.score(X, y) == search.best_estimator_.score(X, y)


def test_score_is_accuracy(corpus):
    X, y = corpus
    tagger = SequenceTagger(template=WORDS).fit(X, y)
    assert tagger.coef_ is tagger.model_.weights
    found = tagger.predict(X)
    right = sum(a == b for one, two in zip(found, y, strict=True) for a, b in zip(one, two, strict=True))
    assert tagger.score(X, y) == right / sum(map(len, y))
    assert tagger.evaluate(X, y).accuracy == tagger.score(X, y)
    unseen = [["new", *labels[1:]] for labels in y]
    assert tagger.evaluate(X, unseen).accuracy == tagger.score(X, unseen) < tagger.score(X, y)
    weight = np.arange(len(y)) % 2
    odd = [sentences[1::2] for sentences in (X, y)]
    assert tagger.score(X, y, sample_weight=weight) == tagger.score(*odd)
    with pytest.raises(ValueError, match="labels are unknown; leave such sentences out"):
        tagger.score(X, [[None] * len(labels) for labels in y], sample_weight=weight)
    with pytest.raises(ValueError, match="sentence 0 has"):
        tagger.score(X, [[*y[0], "a"], *y[1:]])


def test_pickles(corpus):
    X, y = corpus
    for given, settings in [
        (X, {"template": WORDS}),
        (X, {"template": PAIRS}),
        (dictionaries(X), {}),
        (matrices(X), {}),
    ]:
        tagger = SequenceTagger(**settings).fit(given, y)
        again = pickle.loads(pickle.dumps(tagger))
        assert again.predict(given) == tagger.predict(given)
        assert bits(again.partial_fit(given, y)) == bits(tagger.partial_fit(given, y))


def test_marginals_as_dictionaries(corpus):
    X, y = corpus
    tagger = SequenceTagger(template=WORDS).fit(X, y)
    found = tagger.predict_marginals(X)
    for sentence, array in zip(found, tagger.predict_proba(X), strict=True):
        assert [list(token.values()) for token in sentence] == array.tolist()
        assert all(list(token) == tagger.classes_ for token in sentence)
    assert tagger.predict_marginals_single(X[0]) == found[0]


def test_features_of_weights(corpus):
    X, y = corpus
    tagger = SequenceTagger(template=WORDS, tol=1e-3).fit(X, y)
    model = tagger.model_
    assert sum(map(abs, tagger.state_features_.values())) == pytest.approx(
        np.abs(model.weight_layout.split(model.weights)[0]).sum()
    )
    assert tagger.state_features_["U00:w00", "a"] > tagger.state_features_.get(("U00:w00", "b"), 0.0)
    assert tagger.transition_features_["a", "b"] > tagger.transition_features_["b", "a"]


# Runs that end early, and go on.


def test_budgets_and_convergence(corpus):
    X, y = corpus
    with pytest.warns(ConvergenceWarning):
        tagger = SequenceTagger(template=WORDS, C=10, tol=1e-9, max_iter=2).fit(X, y)
    assert tagger.model_.metadata["status"] == "budget"
    assert tagger.model_.metadata["iterations"] == 2
    stopped = SequenceTagger(template=WORDS, C=10, tol=1e-9, callbacks=[lambda record: record.iteration >= 3])
    assert stopped.fit(X, y).model_.metadata["iterations"] == 3


def test_a_checkpoint_goes_on_with_the_same_bits(corpus, tmp_path):
    X, y = corpus
    others, gold = markov(8, seed=9)
    y = [[None if (i + t) % 5 == 0 else label for t, label in enumerate(labels)] for i, labels in enumerate(y)]
    settings = {"template": WORDS, "C": [0.1, 2.0], "tol": 1e-4, "patience": None}
    wanted = SequenceTagger(**settings).fit(X, y, dev=(others, gold))
    for fails_at in (1, 5, 12):
        seen = []

        def fails(record, seen=seen, fails_at=fails_at):
            seen.append(record)
            if len(seen) > fails_at:
                raise RuntimeError("killed")

        path = tmp_path / str(fails_at)
        there = Checkpoint(path, every=0)
        with pytest.raises(RuntimeError):
            SequenceTagger(checkpoint=there, callbacks=[fails], **settings).fit(X, y, dev=(others, gold))
        assert list(tmp_path.iterdir())
        again = SequenceTagger(checkpoint=there, **settings).fit(X, y, dev=(others, gold))
        assert bits(again) == bits(wanted)
        assert again.dev_scores_ == wanted.dev_scores_
        assert not list(tmp_path.iterdir())


def interrupts(record):
    if record.iteration == 3:
        raise KeyboardInterrupt


ENDS = [({"max_iter": 2}, "budget"), ({"callbacks": [interrupts]}, "interrupted")]


@pytest.mark.parametrize(("end", "status"), ENDS, ids=["budget", "Ctrl-C"])
def test_a_run_that_was_ended_keeps_its_checkpoint(corpus, tmp_path, end, status):
    """Ctrl-C in the first of several runs ends all: what there is is kept, and training resumes from there."""
    settings = {"template": WORDS, "C": [10.0, 20.0], "tol": 1e-5, "patience": None}
    there, dev = {"checkpoint": str(tmp_path / "run"), **settings}, markov(8, seed=9)
    with pytest.warns(ConvergenceWarning):
        tagger = SequenceTagger(**end, **there).fit(*corpus, dev=dev)
    assert tagger.model_.metadata["status"] == status
    assert tagger.model_.metadata["C"] == 10.0
    assert list(tmp_path.iterdir())
    again = SequenceTagger(**there).fit(*corpus, dev=dev)
    assert bits(again) == bits(SequenceTagger(**settings).fit(*corpus, dev=dev))
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore:all weights of the model are zero")
def test_corner_cases_of_sizes():
    one = SequenceTagger().fit([[["a"]]], [["x"]])
    assert one.predict([[["a"]], [["b"], ["c"]]]) == [["x"], ["x", "x"]]
    empty = SequenceTagger(template=WORDS).fit([[], ["a", "b"], []], [[], ["x", "y"], []])
    assert empty.predict([[], ["a", "b"]]) == [[], ["x", "y"]]
    nothing = SequenceTagger().fit([[{}, {}, {}]], [["x", "x", "y"]])
    assert nothing.attributes_ == []
    assert len(nothing.predict_single([{"new": 1.0}] * 3)) == 3
    for X in ([[]], [[], []]):
        with pytest.raises(ValueError, match="no label is known"):
            SequenceTagger(classes=["a", "b"]).fit(X, [[] for _ in X])
    long = SequenceTagger(template=WORDS).fit(*markov(5))
    assert len(long.predict([["w00"] * 50_000])[0]) == 50_000

"""The word aligner: what it learns, what it accepts, and that it behaves as an estimator."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from data import same
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import maxmargin as mm
from maxmargin.solvers import Checkpoint, SimplicialDecomposition
from maxmargin.tasks.alignment import (
    Bitext,
    BitextModels,
    Prediction,
    Reference,
    SentencePair,
    WordAligner,
    as_links,
    evaluate,
    model,
)
from maxmargin.tasks.alignment.io.link_files import format_links
from maxmargin.tasks.alignment.metrics.symmetrization import METHODS
from maxmargin.tasks.alignment.translation.saved_tables import SavedTables

NONE = np.zeros((0, 2), dtype=np.int64)


def constraints(links, pair, fertility=2):
    """Sorted distinct links inside a pair, none of whose words has too many."""
    assert links.dtype == np.int64
    assert links.ndim == 2
    np.testing.assert_array_equal(links, np.unique(links, axis=0).reshape(-1, 2))
    for side in (0, 1):
        at = links[:, side]
        assert (at >= 0).all()
        assert (at < len(pair[side])).all()
        assert np.bincount(at, minlength=1).max() <= fertility


def test_it_learns(corpus):
    """Better than every symmetrization of its own hidden Markov models, with settings as they come."""
    train, test = corpus.split()
    X, held = (list(zip(part.source, part.target, strict=True)) for part in (train, test))
    aligner = WordAligner(folds=0, tol=1e-2).fit(X, train.references, bitext=held)
    assert aligner.models_.n_pairs == len(corpus)
    error = 1 - aligner.score(held, test.references)
    baselines = {name: evaluate(test.references, aligner.align_hmm(held, method=name)).aer for name in METHODS}
    assert error < 0.75 * min(baselines.values())
    for links, pair in zip(aligner.predict(held), held, strict=True):
        constraints(links, pair)


def test_settings_are_chosen(few, others, models):
    X, y = few
    aligner = WordAligner(models=models, C=(0.05, 0.2), false_negative=(1.0, 2.0), folds=2, tol=1e-2).fit(X, y)
    metadata = aligner.model_.metadata
    used = {name: metadata[name] for name in ("C", "false_negative")}
    assert (used, aligner.held_out_.aer) in aligner.choices_
    assert metadata["held_out_aer"] == aligner.held_out_.aer == min(aer for _, aer in aligner.choices_)
    assert aligner.held_out_.sentences == len(X)
    assert aligner.model_.calibration["slope"] > 0
    given = WordAligner(models=models, C=(0.05, 0.2), false_negative=2.0, tol=1e-2).fit(X, y, dev=others)
    assert given.held_out_.sentences == len(others[0])
    assert {tried["false_negative"] for tried, _ in given.choices_} == {2.0}
    assert given.score(*others) == pytest.approx(1 - given.held_out_.aer, abs=0.02)


@pytest.mark.parametrize("folds", [0, 1])
def test_nothing_held_out(make, few, folds):
    used = r"no held-out pairs to choose settings by: C=0.2 and false_negative=2 are used; give single numbers"
    with pytest.warns(UserWarning, match=used):
        aligner = make(C=(0.1, 0.2, 0.3), folds=folds).fit(few[0][:10], few[1][:10])
    assert (aligner.model_.metadata["C"], aligner.choices_, aligner.held_out_) == (0.2, (), None)
    assert aligner.align(few[0][:2])[0].confidence is not None


def test_settings_that_cannot_be_chosen(models, few):
    X, y = few[0][:1], few[1][:1]
    with pytest.warns(UserWarning, match=r"C=0.1 and false_negative=4 are used"):
        WordAligner(models=models, false_negative=[1, 4], tol=0.1).fit(X, y)  # a single pair
    with pytest.warns(UserWarning, match=r"C=0.2 and false_negative=1 are used"):
        WordAligner(models=models, C=[1, 2], tol=0.1).bootstrap(few[0][:5])
    usual = WordAligner(models=models, tol=0.1).fit(X, y)  # the defaults, without a warning
    assert (usual.model_.metadata["C"], usual.model_.metadata["false_negative"]) == (0.1, 2.0)
    WordAligner(models=models, false_negative=3.0, tol=0.1).fit(X, y)


def test_the_order_of_settings_does_not_matter(make, few):
    X, y = few[0][:12], few[1][:12]
    chosen = [
        make(C=C, false_negative=cost, folds=2).fit(X, y) for C, cost in (((0.1, 1), (1, 2, 4)), ((1, 0.1), (4, 1, 2)))
    ]
    assert chosen[0].choices_ == chosen[1].choices_
    assert np.array_equal(chosen[0].coef_, chosen[1].coef_)


def test_a_bitext_beside_models_is_refused(make, few):
    with pytest.raises(ValueError, match=r"bitext is not used, as models has .* give one of them"):
        make().fit(*few, bitext=few[0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"features": []}, "no features of links are left of features, which is empty; add others, such as bias"),
        ({"features": ["extra"]}, "features: extra has no extra columns; add"),
        (
            {"features": ["lexical", "extra"], "frequent_pairs": 0},
            "features: extra has no extra columns, lexical has no frequent_pairs; add",
        ),
    ],
)
def test_no_features(make, few, settings, message):
    with pytest.raises(ValueError, match=message):
        make(**settings).fit(*few)
    with pytest.raises(ValueError, match=message):
        make(**settings).bootstrap(few[0])


def test_threads_and_seeds(few, models):
    X, y = few[0][:30], few[1][:30]
    one, two, again = (
        WordAligner(C=(0.1, 0.2), false_negative=2.0, folds=2, tol=1e-2, n_jobs=jobs).fit(X, y, bitext=few[0])
        for jobs in (1, 2, None)
    )
    for other in (two, again):
        np.testing.assert_array_equal(one.coef_, other.coef_)
        assert one.choices_ == other.choices_
        assert one.model_.calibration == other.model_.calibration
        for first, second in zip(one.align(few[0]), other.align(few[0]), strict=True):
            np.testing.assert_array_equal(first.links, second.links)
            np.testing.assert_array_equal(first.confidence, second.confidence)
    assert same(one.align_hmm(X), two.align_hmm(X))


def test_scikit_learn_manners(make, few, aligner):
    X, y = few
    bare = WordAligner(fertility=3)
    assert bare.get_params()["fertility"] == 3
    assert bare.set_params(rounds=1) is bare
    assert repr(WordAligner()) == "WordAligner()"
    assert len(repr(aligner)) < 500
    copy = clone(aligner)
    assert not hasattr(copy, "coef_")
    assert copy.models is aligner.models
    np.testing.assert_array_equal(copy.fit(X, y).coef_, aligner.coef_)
    again = pickle.loads(pickle.dumps(aligner))
    assert same(again.predict(X), aligner.predict(X))
    scores = cross_val_score(make(), X[:20], y[:20], cv=2)
    assert scores.shape == (2,)
    assert (scores > 0.7).all()
    search = GridSearchCV(make(), {"fertility": [1, 2]}, cv=2).fit(X[:20], y[:20])
    assert search.best_params_["fertility"] in (1, 2)
    assert search.best_estimator_.score(X, y) > 0.8


def test_fit_with_models_that_are_there(make, few, models, aligner):
    assert aligner.models_ is models
    own = WordAligner(folds=0, C=0.1, false_negative=2.0, tol=1e-2).fit(few[0][:10], few[1][:10])
    assert isinstance(own.models_, BitextModels)
    assert own.models_.n_pairs == 10
    again = make(models=own.models_).fit(few[0][:10], few[1][:10])
    np.testing.assert_array_equal(own.coef_, again.coef_)


def test_however_inputs_are_given(make, few, aligner):
    X, y = few[0][:10], few[1][:10]
    forms = [
        X,
        tuple(X),
        [list(pair) for pair in X],
        [(tuple(source), tuple(target)) for source, target in X],
        [(" ".join(source), "  ".join(target) + "\n") for source, target in X],
        [SentencePair(source, target) for source, target in X],
        [SentencePair(" ".join(source), target) for source, target in X],
        Bitext([list(source) for source, _ in X], [list(target) for _, target in X]),
    ]
    for form in forms:
        assert same(aligner.predict(form), aligner.predict(X))
        np.testing.assert_array_equal(make().fit(form, y).coef_, make().fit(X, y).coef_)


def test_however_references_are_given(make, few):
    X, sure = few[0][:10], [reference.sure for reference in few[1][:10]]
    wanted = make().fit(X, sure).coef_
    for y in (
        [Reference.of(links) for links in sure],
        [links.astype(np.int32) for links in sure],
        [links[::-1].tolist() for links in sure],
        [[tuple(link) for link in links] for links in sure],
        [{tuple(link) for link in links.tolist()} for links in sure],
        [Prediction(links, np.ones(len(links))) for links in sure],
    ):
        np.testing.assert_array_equal(make().fit(X, y).coef_, wanted)
        assert make().fit(X, y).score(X, y) > 0.8


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[(0, 0)], [(0, 5)]], r"sentence pair 2: link \(0, 5\) is outside its 2 source and 3 target words"),
        ([[(0, 0)], [(-1, 0)]], "sentence pair 2: a reference must be .* positions from 0"),
        (
            [[(0, 0)], Reference(np.array([[0, -1]]), np.array([[0, -1]]))],
            r"sentence pair 2: link \(0, -1\) has a negative position; positions count from 0",
        ),
        ([[(0, 0)], None], "sentence pair 2: a reference must be"),
        ([[(0, 0)]], "2 sentence pairs but 1 references"),
    ],
)
def test_refused_references(make, y, message):
    X = [("a b", "x y"), ("a b", "x y z")]
    with pytest.raises(ValueError, match=message):
        make().fit(X, y)
    with pytest.raises(ValueError, match=message.replace("sentence pair", "dev pair")):
        make().fit(X, [[], []], dev=(X, y))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (["a b c"], "sentence pair 1 must be"),
        (["ab"], "sentence pair 1 must be a SentencePair or two sentences, got str"),
        ("ab", "sentence pairs must be a list of pairs"),
        ([{"a", "b"}], "sentence pair 1 must be"),
        ([{"a": "x", "b": "y"}], "sentence pair 1 must be"),
        ([("a", "b"), ("a", "b", "c")], "sentence pair 2 must be"),
        ([("a", "b"), 3], "sentence pair 2 must be"),
        ([("a", ["b", 3])], "sentence pair 1: a sentence must be"),
        ([("a", None)], "sentence pair 1: a sentence must be"),
        ([(b"a", b"b")], "sentence pair 1: a sentence must be"),
    ],
)
def test_refused_inputs(make, aligner, X, message):
    for call in (
        aligner.predict,
        aligner.align,
        aligner.align_hmm,
        lambda X: make().fit(X, [[]] * len(X)),
        lambda X: make().bootstrap(X),
    ):
        with pytest.raises(ValueError, match=message):
            call(X)
    with pytest.raises(ValueError, match=message.replace("sentence pair", "dev pair")):
        make().fit([("a", "b")], [[]], dev=(X, [[]] * len(X)))
    with pytest.raises(ValueError, match=message.replace("sentence pair", "bitext pair")):
        WordAligner().fit([("a", "b")], [[]], bitext=X)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fertility": 0}, "fertility must be an integer >= 1"),
        ({"fertility": 1.5}, "fertility must be an integer >= 1"),
        ({"fertility": True}, "fertility must be an integer >= 1"),
        ({"frequent_pairs": -1}, "frequent_pairs must be an integer >= 0"),
        ({"rounds": -1}, "rounds must be an integer >= 0"),
        ({"folds": 2.5}, "folds must be an integer >= 0"),
        ({"random_state": -1}, "random_state must be an integer >= 0"),
        ({"random_state": "x"}, "random_state must be an integer >= 0"),
        ({"C": 0}, "C must be a finite number > 0"),
        ({"C": "1"}, "C must be a finite number > 0"),
        ({"C": (1, np.nan)}, "C must be a finite number > 0"),
        ({"C": ()}, "C is empty; give at least one"),
        ({"false_negative": -1}, "false_negative must be a finite number > 0"),
        ({"solver": "sgd"}, "solver must be"),
        ({"solver": mm.BlockFrankWolfe}, "solver must be"),
        ({"tol": -1}, "tol must be a finite number >= 0"),
        ({"tol": None}, "tol must be a finite number >= 0"),
        ({"tol": np.nan}, "tol must be a finite number >= 0"),
        ({"models": "x"}, "models must be the models_ of an aligner"),
        ({"features": "hmm"}, "features must be a list of groups"),
        ({"features": 3}, "features must be a list of groups"),
        ({"features": ("nope",)}, "no group 'nope' of features; use some of"),
        ({"features": [["hmm"]]}, r"no group .* of features; use some of"),
        ({"features": ["bias", "bias"]}, "names a group twice"),
        ({"n_jobs": 0}, "n_jobs must be None or a non-zero integer"),
    ],
)
def test_refused_settings(make, few, settings, message):
    aligner = make(**settings)
    with pytest.raises(ValueError, match=message):
        aligner.fit(few[0][:3], few[1][:3])
    with pytest.raises(ValueError, match=message):
        aligner.bootstrap(few[0][:3])
    assert not hasattr(aligner, "coef_")


@pytest.mark.parametrize("threshold", [-0.1, 1.1, np.nan, np.inf, "0.5", [0.5]])
def test_refused_thresholds(aligner, few, threshold):
    with pytest.raises(ValueError, match=r"threshold must be a number >= 0 and <= 1"):
        aligner.align(few[0], threshold=threshold)


def test_before_fit(few, tmp_path):
    bare = WordAligner()
    for call in (
        lambda: bare.predict(few[0]),
        lambda: bare.predict([]),
        lambda: bare.align(few[0]),
        lambda: bare.align_hmm(few[0]),
        lambda: bare.score(*few),
        lambda: bare.save(tmp_path / "model"),
    ):
        with pytest.raises(NotFittedError):
            call()
    with pytest.raises(ValueError, match=r"no sentence pairs to learn from; give some, or use bootstrap"):
        bare.fit([], [])
    with pytest.raises(ValueError, match="unknown method 'grow'; choose one of intersection"):
        WordAligner(folds=0).fit([("a", "b")], [[(0, 0)]]).align_hmm([("a", "b")], method="grow")


def test_one_result_per_input(aligner, few):
    assert aligner.predict([]) == aligner.align([]) == aligner.align([], threshold=0.5) == aligner.align_hmm([]) == []
    odd = [([], []), ("a", ""), ("", "b c"), few[0][0], ("a", "b"), ("", ""), (["", " "], ["\n", "a\tb"]), ("", "")]
    for found in (
        aligner.predict(odd),
        [one.links for one in aligner.align(odd)],
        [one.links for one in aligner.align(odd, threshold=0.3)],
        aligner.align_hmm(odd),
        aligner.align_hmm(odd, method="union"),
    ):
        assert len(found) == len(odd)
        for number in (0, 1, 2, 5, 7):
            np.testing.assert_array_equal(found[number], NONE)
    np.testing.assert_array_equal(aligner.predict(odd)[3], aligner.predict(few[0][:1])[0])
    found = [len(one.confidence) for one in aligner.align(odd, threshold=0.0)]
    assert [number for number, links in enumerate(found) if links] == [3, 4, 6]


def test_many_inputs_are_independent_of_each_other(aligner, few, others, monkeypatch):
    """Also where they are more than are treated at a time."""
    X = [*few[0], *others[0], ("", ""), ("", "")]
    once = aligner.align(X)
    for cells in (1, 50, 3000):
        monkeypatch.setattr(model, "_PIECE", cells)
        for first, again in zip(once, aligner.align(X), strict=True):
            np.testing.assert_array_equal(first.links, again.links)
            np.testing.assert_allclose(first.confidence, again.confidence, rtol=1e-9)
    alone = [aligner.predict([pair])[0] for pair in X[:20]]
    assert same(alone, aligner.predict(X[:20]))


def test_unknown_words(aligner):
    pair = "我 喜欢 这 本 书 。", "мне нравится эта книга ."
    (links,) = aligner.predict([pair])
    constraints(links, [side.split() for side in pair])
    assert len(links) > 0
    (found,) = aligner.align([("\ud800 é \0", "\udfff e\u0301 \0 " + "x" * 100_000)])
    assert np.isfinite(found.confidence).all()


def test_long_sentences(aligner, make, few):
    long = "a " * 1001, "b"
    for call in (aligner.predict, aligner.align):
        with pytest.warns(
            UserWarning, match=r"sentence pair 2 has more than 1000 words .* gets no links \(2 such pairs"
        ):
            found = call([few[0][0], long, long[::-1], few[0][1]])
        found = [one.links if isinstance(one, Prediction) else one for one in found]
        assert same(found, [aligner.predict(few[0][:1])[0], NONE, NONE, aligner.predict(few[0][1:2])[0]])
    X, y = few[0][:5], few[1][:5]
    with pytest.warns(UserWarning, match="sentence pair 6 has more than 1000 words on a side and is not learned from"):
        without = make().fit([*X, long], [*y, [(0, 0), (500, 0), (900, 0)]])
    with pytest.warns(UserWarning, match="dev pair 1 has more than 1000 words on a side and is not learned from"):
        make().fit(X, y, dev=([long], [[]]))
    np.testing.assert_allclose(without.coef_, make(tol=1e-2).fit(X, y).coef_, atol=0.2)
    (links,) = aligner.predict([("the cat " * 75, "le chat " * 75)])
    constraints(links, ["x" * 150] * 2)


@pytest.mark.parametrize("fertility", [1, 2, 4])
def test_fertility(make, few, others, fertility):
    aligner = make(fertility=fertility).fit(*few)
    assert len(aligner.coef_) == len(aligner.feature_names_)
    assert len(set(aligner.feature_names_)) == len(aligner.coef_)
    most = 0
    for links, pair in zip(aligner.predict(others[0]), others[0], strict=True):
        constraints(links, pair, fertility)
        most = max(most, *(np.bincount(links[:, side]).max() for side in (0, 1)))
    assert most == min(fertility, 2) or (fertility == 4 and 2 <= most <= 4)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([("a b c", "x y z")], [[(0, 0)]]),
        ([("a", "x")], [[(0, 0)]]),
        ([("a", "x")], [[]]),
        ([("a b c", "x y z")] * 2, [Reference.of([]), Reference.of([], [(0, 0), (1, 1)])]),
        ([("a b", "x y")], [[(0, 0), (0, 1), (1, 0), (1, 1)]]),
        ([("a", "x y z u v w")], [[(0, k) for k in range(6)]]),
        ([("a", ""), ("", ""), ("", "x")], [[], [], []]),
        ([("a", ""), ("b c", "y z")], [[], [(1, 1)]]),
    ],
)
@pytest.mark.parametrize("fertility", [1, 2])
@pytest.mark.parametrize("folds", [0, 2])
@pytest.mark.filterwarnings("ignore:there are no held-out pairs to choose settings by")
@pytest.mark.filterwarnings("ignore:all weights of the model are zero")
def test_small_and_odd_gold(X, y, fertility, folds):
    aligner = WordAligner(fertility=fertility, folds=folds, C=(0.1, 1.0), rounds=1, tol=1e-2).fit(X, y)
    assert np.isfinite(aligner.coef_).all()
    for links, pair in zip(aligner.predict(X), X, strict=True):
        constraints(links, [side.split() for side in pair], fertility)
    for one in aligner.align(X):
        assert np.isfinite(one.confidence).all()
    aligner = WordAligner(fertility=fertility, C=(0.1, 1.0), rounds=0, tol=1e-2).fit(
        [("a b", "x y")], [[(0, 1)]], dev=(X, y)
    )
    assert aligner.held_out_.sentences == len(X)


def test_extra_columns(make, few, others):
    """Another aligner that is right helps; one that says nothing changes little."""

    def given(data, links):
        return [SentencePair(*pair, {"other": one}) for pair, one in zip(data[0], links, strict=True)]

    right = [[reference.sure for reference in data[1]] for data in (few, others)]
    reported = make().fit(given(few, right[0]), few[1])
    assert "extra: other" in reported.feature_names_
    assert reported.model_.encoder.link_model.links.extra_names == ("other",)
    with_it = 1 - reported.score(given(others, right[1]), others[1])
    without = 1 - make().fit(*few).score(*others)
    assert with_it < 0.5 * without
    shifted = [np.stack([links[:, 0], np.maximum(links[:, 1] - 1, 0)], axis=1) for links in right[1]]
    assert 1 - reported.score(given(others, shifted), others[1]) > with_it
    sure = [Prediction(links, np.full(len(links), 1.0)) for links in right[1]]
    unsure = [Prediction(links, np.zeros(len(links))) for links in right[1]]
    nothing = [NONE for _ in right[1]]
    assert same(reported.predict(given(others, sure)), reported.predict(given(others, right[1])))
    assert same(reported.predict(given(others, unsure)), reported.predict(given(others, nothing)))
    assert reported.align_hmm(given(others, nothing))[0].shape[1] == 2
    many = given(others, right[1]) * 40
    for call in (reported.predict, reported.align, reported.align_hmm):
        with pytest.raises(ValueError, match=f"sentence pair {len(many) + 1} has no extra column 'other', which the"):
            call([*many, ("a", "b")])
    with pytest.raises(ValueError, match="sentence pair 1 has no extra column 'other'"):
        reported.predict([SentencePair("a", "b", {"another": [(0, 0)]})])
    with pytest.warns(UserWarning, match="gets no links"):
        assert len(reported.predict([SentencePair("a " * 1001, "b", {"other": [(1000, 0)]})])[0]) == 0


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (
            {"other": [(0, 2)]},
            "sentence pair 2, extra column 'other': a link is outside its 2 source and 2 target words",
        ),
        ({"other": Prediction(as_links([(0, 0)]), np.array([np.nan]))}, "'other': there must be a finite confidence"),
        ({"other": Prediction(as_links([(0, 0)]), np.ones(2))}, "'other': there must be a finite confidence"),
        ({}, r"sentence pair 2 has the extra columns \[\], the first sentence pair \['other'\]; give the same to all"),
        ({3: NONE}, "sentence pair 2: extra columns must be a dictionary"),
        (["other"], "sentence pair 2: extra columns must be a dictionary"),
    ],
)
def test_refused_extra_columns(make, extra, message):
    X = [SentencePair("a b", "x y", {"other": [(0, 0)]}), SentencePair("a b", "x y", extra)]
    with pytest.raises(ValueError, match=message):
        make().fit(X, [[(0, 0)], [(0, 0)]])
    with pytest.raises(ValueError, match=message):
        make().bootstrap(X)


SOLVERS = [
    mm.BlockFrankWolfe(),
    mm.CuttingPlane(),
    mm.DualExtragradient(),
    mm.Extragradient(),
    mm.ProjectedSubgradient(),
    mm.SimplicialDecomposition(),
    mm.Subgradient(),
]


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
def test_every_solver(make, few, solver):
    X, y = few[0][:12], few[1][:12]
    aligner = make(solver=solver, rounds=1, tol=0.05).fit(X, y)
    honest(aligner, 0.05)
    assert aligner.solution_.status == "converged"
    assert aligner.model_.metadata["solver"] == type(solver).__name__
    assert aligner.score(X, y) > 0.9


def test_the_exact_solver(make, few):
    X, y = few[0][:3], few[1][:3]
    exact = make(solver=mm.Exact(), rounds=0, tol=1e-6).fit(X, y)
    honest(exact, 1e-6)
    np.testing.assert_allclose(exact.coef_, make(rounds=0, tol=1e-7).fit(X, y).coef_, atol=1e-3)


@pytest.mark.parametrize("solver", [mm.AveragedPerceptron(), mm.Mira()], ids=lambda solver: type(solver).__name__)
def test_online_solvers(make, few, solver):
    aligner = make(solver=solver).fit(few[0][:12], few[1][:12])
    assert aligner.solution_.status == "finished"  # they solve another problem
    assert aligner.score(few[0][:12], few[1][:12]) > 0.9


@pytest.mark.parametrize("solver", [mm.ColumnGeneration(), mm.ExponentiatedGradient()])
def test_solvers_of_other_problems(make, few, solver):
    with pytest.raises(ValueError, match=r"cannot solve this problem: .*; .*use"):
        make(solver=solver).fit(few[0][:3], few[1][:3])


def honest(aligner, tol):
    """The certificate says what it is worth, and the file tells the same."""
    gap, status = aligner.solution_.certificate.relative_gap, aligner.solution_.status
    assert gap >= -1e-9
    assert (gap <= tol) == (status == "converged")
    assert aligner.model_.metadata["status"] == status
    assert aligner.model_.metadata["relative_gap"] == gap


@pytest.mark.parametrize("tol", [0.1, 1e-2, 1e-3])
def test_certificates(make, few, tol):
    honest(make(tol=tol).fit(few[0][:20], few[1][:20]), tol)


def test_groups_of_features(make, few):
    X, y = few[0][:10], few[1][:10]
    for groups in (("bias", "hmm"), ["lexical", "position"], ("orthography",)):
        aligner = make(features=groups, frequent_pairs=5).fit(X, y)
        assert {name.partition(":")[0] for name in aligner.model_.encoder.link_model.links.names} == set(groups)
    assert make(frequent_pairs=0).fit(X, y).model_.encoder.lexical.shape == (0,)


def test_links_as_strings(make, few, aligner):
    """As Pharaoh files have them; p marks possible links."""
    X, y = few
    texts = [format_links(one) for one in y]
    assert any("p" in text for text in texts)
    learned = make().fit(X, texts)
    assert np.array_equal(learned.coef_, aligner.coef_)
    assert learned.score(X, texts) == aligner.score(X, y)
    found = aligner.predict(X)
    assert evaluate(texts, [format_links(one) for one in found]).aer == evaluate(y, found).aer
    with pytest.raises(ValueError, match=r"sentence pair 2: a reference .* string such as '0-0 1p2': .*'1x1' is not"):
        make().fit(X[:2], ["0-0", "1x1"])
    with pytest.raises(ValueError, match=r"sentence 1: .*'a' is not a link"):
        evaluate(["a"], ["0-0"])


def test_scores_of_pairs(aligner, others, few):
    """True pairs score higher than shuffled ones; empty sides have 0."""
    X, _ = others
    shuffled = [(source, target) for (source, _), (_, target) in zip(X, X[1:] + X[:1], strict=True)]
    scores = aligner.score_pairs([*X, *shuffled, ("a", ""), ("", "")])
    assert scores.shape == (2 * len(X) + 2,)
    assert ((scores >= 0) & (scores <= 1)).all()
    true, wrong = scores[: len(X)], scores[len(X) : -2]
    assert (true[:, None] > wrong[None, :]).mean() > 0.97
    assert scores[-2:].tolist() == [0, 0]
    # The score of a pair does not depend on the others.
    np.testing.assert_array_equal(aligner.score_pairs(X[:3]), true[:3])
    # The share of linked words, all of the same weight where all are as frequent.
    loaded = aligner.model_
    assert loaded.score_pairs(X).tolist() == true.tolist()
    (pair,) = loaded.align(X[:1], adapt=False)
    counts = loaded.encoder.models.words.cooccurrences
    sides = []
    for side, words, vocabulary in ((0, X[0][0], counts.source), (1, X[0][1], counts.target)):
        n = np.array([vocabulary.counts[vocabulary.index[word.lower()]] for word in words])
        weight = np.sqrt(np.log((counts.n_pairs + 1) / (n + 0.5)))
        best = np.zeros(len(words))
        np.maximum.at(best, pair.links[:, side], pair.confidence)
        sides.append(weight @ best / weight.sum())
    assert min(sides) == pytest.approx(true[0])


class Killed(Exception):
    """The end of a process."""


@pytest.mark.parametrize("learns", ["fit", "bootstrap"])
def test_training_that_is_cut_resumes(few, learns, tmp_path, monkeypatch):
    """In the middle of translation models, of folds and of the last run."""

    X, y = (some[::3] for some in few)

    def aligner(**settings):
        C = [0.1, 0.3] if learns == "fit" else 0.1
        return WordAligner(C=C, false_negative=2.0, folds=2, tol=1e-2, **settings)

    def trained(one):
        return one.fit(X, y) if learns == "fit" else one.bootstrap(X, n_pairs=20)

    def cut(kind, name, after):
        """Kill the call of this number."""
        left, plain = [after], getattr(kind, name)

        def killing(self, *given, **named):
            left[0] -= 1
            if left[0] == 0:
                raise Killed
            return plain(self, *given, **named)

        return killing

    whole = trained(aligner())
    checkpoint = Checkpoint(tmp_path / "run", every=0.0)
    cuts = [(SavedTables, "save", 7), (SimplicialDecomposition, "step", 40)]
    cuts += [(SimplicialDecomposition, "step", 60)] if learns == "fit" else []
    for kind, name, after in cuts:
        with monkeypatch.context() as patch:
            patch.setattr(kind, name, cut(kind, name, after if learns == "fit" or name == "save" else 4))
            with pytest.raises(Killed):
                trained(aligner(checkpoint=checkpoint))
        assert list(tmp_path.iterdir())
    again = trained(aligner(checkpoint=checkpoint))
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    assert again.choices_ == whole.choices_
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="checkpoint must be the name of a file or a Checkpoint, got 3"):
        trained(aligner(checkpoint=3))

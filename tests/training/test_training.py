"""What happens inside ``fit``: regions, weights, budgets, callbacks, warm starts, threads."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from dataclasses import fields, replace

import numpy as np
import pytest
from data import KINDS, PickOne, chains, cuts, made, matchings, picks, same, variables_of
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin import _threads
from maxmargin._terminal import set_quiet
from maxmargin.encoders import ChainEncoder
from maxmargin.encoders.deductions.bracketed import nodes_of
from maxmargin.estimators.base import SettingsArguments
from maxmargin.problem import Problem
from maxmargin.regions import L2
from maxmargin.solvers import JsonLines, ProgressBar, Start, Validation, solve
from maxmargin.training import Settings, selection, train, train_examples

kinds = pytest.mark.parametrize("kind", list(KINDS))


@kinds
@pytest.mark.parametrize("settings", [{"C": 0.1}, {"C": 10}, {"radius": 0.5}, {"C": 1.0, "radius": 0.4}, {}])
def test_regions_agree_with_the_exact_solver(kind, settings):
    model, (X, y), _ = made(kind, **settings)
    found = model.fit(X, y).solution_.certificate
    exact = clone(model).set_params(solver=mm.Exact(), tol=1e-6).fit(X, y).solution_.certificate
    assert exact.relative_gap < 1e-6
    assert found.primal == pytest.approx(exact.primal, rel=2e-3)
    assert found.dual <= exact.primal * (1 + 1e-9)
    if "radius" in settings:
        assert np.linalg.norm(model.coef_) <= settings["radius"] * (1 + 1e-12)


@kinds
def test_no_regularization_does_not_warn_at_the_budget(kind):
    model, (X, y), _ = made(kind, C=np.inf, max_iter=20)
    model.fit(X, y)
    assert model.solution_.certificate.dual >= 0.0
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize(
    "solver",
    [mm.Extragradient(), mm.Extragradient.plain(), mm.DualExtragradient(), mm.DualExtragradient(store_duals=False)],
)
def test_solver_objects(solver):
    X, y = matchings(4)
    model = mm.MatchingSVM(C=0.5, solver=solver, tol=0.02).fit(X, y)
    assert model.solution_.solver is solver
    assert model.solution_.why == "chosen by the caller"
    exact = mm.MatchingSVM(C=0.5, solver=mm.Exact()).fit(X, y)
    assert model.solution_.certificate.primal == pytest.approx(exact.solution_.certificate.primal, rel=0.03)


def test_auto_says_why():
    model = mm.MatchingSVM().fit(*matchings(2))
    assert "simplicial decomposition" in model.solution_.why
    ball = mm.MatchingSVM(radius=1.0).fit(*matchings(2))
    assert "a ball without a ridge penalty: simplicial decomposition" in ball.solution_.why


@kinds
def test_a_weight_of_two_is_the_example_twice_and_of_zero_is_leaving_it_out(kind):
    model, (X, y), _ = made(kind, C=1.0, solver=mm.Exact(), tol=1e-5)
    if kind == "chain":
        model.set_params(classes=("a", "b", "c"))
    if kind == "segments":
        model.set_params(longest=3)
    weights = np.ones(len(X))
    weights[:2] = 2.0, 0.0
    weighted = clone(model).fit(X, y, weights).coef_
    repeated = clone(model).fit([X[0], X[0], *X[2:]], [y[0], y[0], *y[2:]]).coef_
    np.testing.assert_allclose(weighted, repeated, atol=1e-4)
    ones = clone(model).fit(X, y, sample_weight=np.ones(len(X), dtype=int)).coef_
    np.testing.assert_array_equal(ones, clone(model).fit(X, y).coef_)


@kinds
@pytest.mark.filterwarnings("ignore:all weights of the model are zero")
def test_loss_weights(kind):
    model, (X, y), _ = made(kind, solver=mm.Exact(), tol=1e-5)
    counts = [variables_of(*example) for example in zip(X, y, strict=True)]
    plain = clone(model).fit(X, y)
    same_weights = clone(model).fit(X, y, loss_weight=[np.ones(n) for n in counts])
    np.testing.assert_array_equal(same_weights.coef_, plain.coef_)
    nothing = clone(model).fit(X, y, loss_weight=[np.zeros(n) for n in counts])
    assert nothing.solution_.certificate.primal == pytest.approx(0.0, abs=1e-8)
    double = clone(model).fit(X, y, loss_weight=[[2] * n for n in counts])
    assert double.solution_.certificate.primal > plain.solution_.certificate.primal


@kinds
def test_dev_data_keep_the_best_weights(kind):
    model, (X, y), held_out = made(kind, C=np.inf, max_iter=15)
    model.fit(X, y, dev=held_out)
    scores = [score for _, score in model.dev_scores_]
    assert model.score(*held_out) == max(scores)
    assert next(iteration for iteration, _ in model.dev_scores_) == 0
    assert model.fit(X, y).dev_scores_ == ()


@kinds
def test_patience_stops_early(kind):
    model, (X, y), held_out = made(kind, C=100.0, max_iter=200, tol=0.0)
    model.set_params(patience=3).fit(X, y, dev=held_out)
    assert model.solution_.status == "stopped"
    scores = [score for _, score in model.dev_scores_]
    assert len(scores) - 1 - int(np.argmax(scores)) == 3
    assert model.score(*held_out) == max(scores)
    stopped = model.dev_scores_
    model.set_params(patience=np.int64(4)).fit(X, y, dev=held_out)
    assert model.dev_scores_[: len(stopped)] == stopped
    for bad in (0, -1, 1.5, "2", True):
        with pytest.raises(ValueError, match="patience must be an integer >= 1"):
            model.set_params(patience=bad).fit(X, y, dev=held_out)
    with pytest.raises(ValueError, match="patience counts dev scores: give dev data"):
        model.set_params(patience=3).fit(X, y)


@kinds
def test_metadata_describe_the_weights_of_the_model(kind, tmp_path):
    model, (X, y), held_out = made(kind, max_iter=15, tol=0.1)
    metadata = model.fit(X, y).model_.metadata
    assert metadata["C"] == 1.0
    assert metadata["radius"] == "inf"
    assert metadata["primal"] == model.solution_.certificate.primal
    assert metadata["dual"] == model.solution_.certificate.dual
    assert not {"dev_iteration", "dev_score", "run_relative_gap"} & set(metadata)
    model.set_params(radius=0.5).fit(X, y, dev=held_out).save(tmp_path / "model")
    metadata = mm.load(tmp_path / "model").metadata
    assert (metadata["C"], metadata["radius"]) == ("inf", 0.5)
    kept = next(one for one in model.solution_.history if one.iteration == metadata["dev_iteration"])
    assert (metadata["primal"], metadata["dual"]) == (kept.primal, model.solution_.certificate.dual)
    assert metadata["dev_score"] == model.score(*held_out) == max(score for _, score in model.dev_scores_)
    assert (metadata["dev_iteration"], metadata["dev_score"]) in model.dev_scores_


@pytest.mark.parametrize(
    "bad", [{"rescaling": "x"}, {"slack": "x"}, {"radius": -1}, {"random_state": "a"}, {"n_jobs": 0}, {"norm": "l3"}]
)
def test_settings_are_checked_before_any_data(bad):
    with pytest.raises(ValueError, match=f"{next(iter(bad))} must be"):
        Settings(**bad)


def test_settings_of_estimators_are_those_of_training():
    assert {field.name for field in fields(Settings)} == {*SettingsArguments.__annotations__} - {"warm_start"}


def test_train_removes_its_checkpoint(tmp_path):
    X, y = chains(6)
    train(ChainEncoder(), X, y, Settings(solver=mm.BlockFrankWolfe(), checkpoint=tmp_path / "run"))
    assert not list(tmp_path.iterdir())
    with pytest.warns(ConvergenceWarning):
        train(ChainEncoder(), X, y, Settings(solver=mm.BlockFrankWolfe(), checkpoint=tmp_path / "run", max_iter=1))
    assert (tmp_path / "run").exists()


@pytest.mark.filterwarnings("ignore:all weights of the model are zero")
def test_folds_of_examples_with_several_good_outputs():
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(4, 2)) for _ in range(6)], [[0, 2]] * 6
    model = mm.CandidatesSVM(formulation="all", rescaling="none", norm="l1", C=1.0)
    folds = model._examples(X, y, None, None).select(np.array([1, 4])), model._examples(X[1::3], y[1::3], None, None)
    found = [train_examples(fold, model._settings()).training.solution.certificate for fold in folds]
    assert found[0] == found[1]


def test_choice_at_the_edge_is_told():
    assert selection.best([(1.0, 0.5), (0.1, 0.5), (3.0, 0.4)]) == 0.1  # of equal ones the smallest
    assert "is the largest of those tried; try larger ones" in selection.edge([(0.1, 0.2), (1.0, 0.4), (0.5, 0.3)])
    assert "is the smallest of those tried; try smaller ones" in selection.edge([(1.0, 0.2), (0.1, 0.4), (0.5, 0.3)])
    for inside in ([(0.1, 0.2), (1.0, 0.4)], [(0.1, 0.4), (0.5, 0.4), (1.0, 0.2)], [(0.1, 0.2), (0.5, 0.4), (1, 0.3)]):
        assert not selection.edge(inside)
    X, y = chains(40)
    with pytest.warns(UserWarning, match=r"C=1 has the best score and is the largest of those tried"):
        model = mm.ChainSVM(C=[1e-6, 1e-5, 1.0], tol=1e-2).fit(X[:20], y[:20], dev=(X[20:], y[20:]))
    assert [one for one, _ in model.choices_] == [{"C": 1e-6}, {"C": 1e-5}, {"C": 1.0}]
    assert max(model.choices_, key=lambda pair: pair[1])[0]["C"] == model.model_.training.C == 1.0


def test_dev_metric():
    X, y = chains(20)
    model = mm.ChainSVM(C=[0.1, 1.0], metric=lambda gold, found: sum(map(list.__eq__, gold, found)) / len(gold))
    model.fit(X[:10], y[:10], dev=(X[10:], y[10:]))
    whole = np.mean([found == gold for found, gold in zip(model.predict(X[10:]), y[10:], strict=True)])
    assert model.model_.metadata["dev_score"] == whole
    with pytest.raises(ValueError, match="metric must be a function of gold and predicted outputs, got 'f1'"):
        mm.ChainSVM(metric="f1").fit(X, y)


@pytest.mark.parametrize("bad", [5, ([1],), (1, 2, 3), "ab"])
def test_bad_dev_data(bad):
    model, (X, y), _ = made("matching")
    with pytest.raises(ValueError, match="dev must be a pair"):
        model.fit(X, y, dev=bad)
    with pytest.raises(ValueError, match=r"dev data: example 1: features have 1 columns"):
        model.fit(X, y, dev=([X[0], np.ones((2, 2, 1))], y[:2]))
    with pytest.raises(ValueError, match="dev data: X has 2 examples but y has 3"):
        model.fit(X, y, dev=(X[:2], y[:3]))


def test_a_callback_sees_records_and_stops():
    X, y = matchings(4)
    seen = []

    def stop(record):
        seen.append(record)
        return record.iteration >= 3

    model = mm.MatchingSVM(tol=0.0, callbacks=[stop]).fit(X, y)
    assert model.solution_.status == "stopped"
    assert model.solution_.counters.iterations == 3
    assert [record.iteration for record in seen] == [0, 1, 2, 3]
    assert not any(record.weights.flags.writeable for record in seen)
    assert seen[-1].weights.shape == model.coef_.shape
    assert [r.as_dict() for r in model.solution_.history] == [r.as_dict() for r in seen]
    gaps = [record.certificate.gap for record in seen]
    assert gaps == sorted(gaps, reverse=True)


def test_callback_validation_with_patience():
    X, y = matchings(4)
    watch = Validation(lambda weights: 1.0, patience=2)
    model = mm.MatchingSVM(tol=0.0, callbacks=[watch]).fit(X, y)
    assert model.solution_.counters.iterations == 2
    assert (watch.best_score, watch.best_iteration) == (1.0, 0)


def test_json_lines(tmp_path):
    X, y = matchings(4)
    path = tmp_path / "log.jsonl"
    model = mm.MatchingSVM(C=np.inf, callbacks=[JsonLines(path)], max_iter=4).fit(X, y)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["iteration"] for row in rows] == [r.iteration for r in model.solution_.history]
    assert rows[-1]["primal"] == model.solution_.certificate.primal
    assert all(row["primal"] >= row["dual"] for row in rows)
    assert set(rows[0]) >= {"iteration", "seconds", "primal", "dual", "gap", "relative_gap", "norm", "argmax"}


def test_a_failing_callback_is_not_swallowed_and_bars_are_closed():
    closed = []

    class Bar:
        def __call__(self, record):
            if record.iteration == 2:
                raise RuntimeError("mine")

        def close(self):
            closed.append(True)

    model = mm.MatchingSVM(callbacks=[Bar()], tol=0.0)
    with pytest.raises(RuntimeError, match="mine"):
        model.fit(*matchings(3))
    assert closed == [True]
    assert not hasattr(model, "model_")


def test_progress_is_silent_off_a_terminal(capfd):
    X, y = matchings(3)
    stream = io.StringIO()
    mm.MatchingSVM(callbacks=[ProgressBar(stream)]).fit(X, y)
    mm.MatchingSVM(verbose=True).fit(X, y)
    assert stream.getvalue() == ""
    assert capfd.readouterr() == ("", "")


def test_progress_is_drawn_on_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    main, side = os.openpty()
    drawn = bytearray()

    def drain():
        try:
            while piece := os.read(main, 4096):
                drawn.extend(piece)
        except OSError:
            return

    reader = threading.Thread(target=drain)
    reader.start()
    with open(side, "w", encoding="utf-8") as terminal:
        X, y = matchings(3)
        model = mm.MatchingSVM(callbacks=[ProgressBar(terminal)], max_iter=7, tol=0.0, C=np.inf)
        model.fit(X, y)
        clone(model).fit(X, y)
        monkeypatch.setattr(sys, "stderr", terminal)
        mm.MatchingSVM(C=[0.1, 1.0], verbose=True).fit(X, y, dev=(X, y))
        set_quiet(True)
        mm.MatchingSVM(C=77.0, verbose=True).fit(X, y)
        set_quiet(False)
    reader.join()
    os.close(main)
    assert b"training" in drawn
    for words in (b"training C=0.1 (1/2)", b"training C=1 (2/2)", b"pass ", b", gap ", b" (aim 1e-03), dev 0."):
        assert words in drawn
    assert b"C=77" not in drawn
    assert b"/10000" not in drawn


def test_interrupting_returns_the_best_so_far():
    def interrupt(record):
        if record.iteration == 4:
            raise KeyboardInterrupt

    X, y = matchings(4)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = mm.MatchingSVM(callbacks=[interrupt], tol=0.0).fit(X, y)
    assert model.solution_.status == "interrupted"
    assert "best weights so far" in model.solution_.message
    assert model.solution_.certificate.primal <= model.solution_.history[0].primal
    assert len(model.predict(X)) == 4


def test_interrupting_before_there_is_anything_leaves_the_estimator_alone(monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(mm.Extragradient, "init", interrupt)
    model = mm.MatchingSVM(solver=mm.Extragradient())
    with pytest.raises(KeyboardInterrupt):
        model.fit(*matchings(3))
    assert not hasattr(model, "solution_")


@kinds
def test_warm_start_needs_fewer_iterations(kind):
    model, (X, y), _ = made(kind, warm_start=True, tol=1e-3)
    cold = model.fit(X, y).solution_.counters.iterations
    warm = model.fit(X, y).solution_.counters.iterations
    assert cold > 2
    assert warm <= cold / 2


@pytest.mark.filterwarnings("ignore:all weights of the model are zero")
def test_warm_start_on_other_data_keeps_the_certificate_true():
    # Both have four parts, but two links may be chosen among the first and only one among the second.
    first, second = [np.full((2, 2, 1), 0.1)], [np.full((1, 4, 1), 0.1)]
    optimum = mm.MatchingSVM(C=1e-3, solver=mm.Exact()).fit(second, [[[0, 0]]]).solution_.certificate.primal
    model = mm.MatchingSVM(C=1e-3, warm_start=True).fit(first, [[[0, 0], [1, 1]]])
    assert model.solution_.certificate.primal > 1.5 * optimum
    duals = []
    model.set_params(callbacks=[lambda record: duals.append(record.certificate.dual)]).fit(second, [[[0, 0]]])
    assert max(duals) <= optimum * (1 + 1e-9)
    assert model.solution_.certificate.primal == pytest.approx(optimum, rel=2e-3)


def test_warm_start_with_other_features_is_refused():
    model = mm.MatchingSVM(warm_start=True).fit(*matchings(3))
    with pytest.raises(ValueError, match="fit without warm_start"):
        model.fit(*matchings(3, d=4))
    assert model.coef_.shape == (3,)


@pytest.mark.parametrize("edges", [False, True])
def test_warm_start_with_other_labels_is_refused(edges):
    X, y = chains(6, edges=edges)
    model = mm.ChainSVM(warm_start=True).fit(X, y)
    coef = model.coef_
    grown = [*y[:-1], ["d"] * len(y[-1])]
    as_many = [["new" if label == "a" else label for label in row] for row in y]
    fewer = [["b" if label == "a" else label for label in row] for row in y]
    for labels in (grown, as_many, fewer):
        with pytest.raises(ValueError, match=r"labels are not those of the last fit; fit without.*classes="):
            model.fit(X, labels)
    with pytest.raises(ValueError, match="labels are not those of the last fit"):
        model.set_params(classes=("c", "b", "a")).fit(X, y)  # the same, but the columns change places
    assert model.classes_ == ("a", "b", "c")
    assert model.coef_ is coef
    assert model.set_params(warm_start=False, classes=None).fit(X, as_many).classes_ == ("b", "c", "new")
    wide = mm.ChainSVM(warm_start=True, classes=("a", "b", "c", "d")).fit(X, y)
    assert wide.fit(X, grown).score(X, grown) > 0.8


def test_warm_start_does_not_take_node_weights_for_edge_weights():
    X, y = cuts(3)
    model = mm.CutSVM(warm_start=True).fit(X, y)
    other = [mm.Graph(x.node_features[:, :1], x.edges, np.ones((len(x.edges), 3))) for x in X]
    with pytest.raises(ValueError, match="fit without warm_start"):
        model.fit(other, y)


def test_start_weights_of_another_length_are_refused():
    X, y = chains(3)
    encoder = mm.encoders.ChainEncoder().fit(X, y)[0]
    packed = encoder.transform(X)
    problem = Problem.build(
        packed.structure, packed.features, encoder.encode(packed, y), mm.losses.Hamming(), L2(C=1.0)
    )
    with pytest.raises(ValueError, match="when the features or the labels change"):
        solve(problem, mm.Extragradient(), start=Start(np.zeros(3)))


@pytest.mark.filterwarnings("ignore:all weights of the model are zero")
def test_budgets_warn():
    X, y = matchings(6)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        few = mm.MatchingSVM(max_iter=1, tol=1e-9).fit(X, y)
    assert few.solution_.status == "budget"
    assert few.solution_.counters.iterations == 1
    with pytest.warns(ConvergenceWarning):
        short = mm.MatchingSVM(max_seconds=1e-9, tol=1e-9).fit(X, y)
    assert short.solution_.status == "budget"
    assert len(short.predict(X)) == 6
    mm.MatchingSVM(max_seconds=60, max_iter=np.int64(500)).fit(X, y)


def test_threads_may_be_set_after_training():
    seen = []

    class Watched(PickOne):
        def argmax(self, scores, *, warm=None):
            seen.append(_threads.current())
            return super().argmax(scores, warm=warm)

    X, y = picks(3)
    model = mm.StructuredSVM(Watched, n_jobs=2).fit(X, y)
    for n_jobs, expected in ((None, 1), (3, 3), (2, 2)):
        model.set_params(n_jobs=n_jobs)
        seen.clear()
        model.predict(X), model.score(X, y), model.decision_function(X), model.k_best(X, 1)
        assert set(seen) == {expected}
    with pytest.raises(ValueError, match="n_jobs must be"):
        model.set_params(n_jobs=0).predict(X)


@kinds
def test_threads_do_not_change_a_bit(kind):
    model, (X, y), (X_new, _) = made(kind, n_jobs=1)
    one = clone(model).fit(X, y)
    for n_jobs in (2, -1, np.int64(3), 10**6):
        other = clone(model).set_params(n_jobs=n_jobs).fit(X, y)
        np.testing.assert_array_equal(other.coef_, one.coef_)
        assert same(other.predict(X_new), one.predict(X_new))


def test_threads_around_an_estimator_are_kept():
    seen = []
    X, y = matchings(3)
    model = mm.MatchingSVM(callbacks=[lambda record: seen.append(mm._threads.current())])
    with mm.threads(2):
        model.fit(X, y)
    assert set(seen) == {2}
    seen.clear()
    with mm.threads(2):
        model.set_params(n_jobs=1).fit(X, y)
    assert set(seen) == {1}


@kinds
def test_the_same_seed_gives_the_same_bits(kind):
    model, (X, y), _ = made(kind, random_state=3)
    np.testing.assert_array_equal(model.fit(X, y).coef_, clone(model).fit(X, y).coef_)


@pytest.mark.filterwarnings("ignore:all weights of the model are zero")
def test_nonnegative_weights():
    X, y = matchings(5)
    free = mm.MatchingSVM().fit(X, [[] for _ in y]).coef_
    assert free.min() < 0
    for chosen in ([0, 1, 2], np.ones(3, dtype=bool), (2, 1, 0), np.arange(3)):
        assert (mm.MatchingSVM(nonnegative=chosen).fit(X, [[] for _ in y]).coef_ >= 0).all()
    np.testing.assert_array_equal(mm.MatchingSVM(nonnegative=[]).fit(X, [[] for _ in y]).coef_, free)
    graphs, labels = cuts(3)
    both = mm.CutSVM(nonnegative=[0]).fit(graphs, labels).coef_
    assert (both[[0, 2, 3]] >= 0).all()


@kinds
@pytest.mark.filterwarnings("ignore:all weights of the model are zero")
def test_arithmetic_that_overflows_is_a_status_or_an_error(kind):
    model, (X, y), _ = made(kind)
    if isinstance(X[0], mm.Graph):
        huge = [mm.Graph(1e200 * x.node_features, x.edges, x.edge_features) for x in X]
    elif isinstance(X[0], (mm.PairGraph, mm.SpanChart, mm.WordLattice)):
        huge = [replace(x, features=1e200 * x.features) for x in X]
    else:
        huge = [1e200 * x for x in X]
    with pytest.warns(ConvergenceWarning, match="numbers became NaN or infinite.*scale the features down"):
        model.fit(huge, y)
    assert model.solution_.status == "nonfinite"
    assert np.isfinite(model.coef_).all()
    with pytest.raises(ValueError, match="give smaller weights"):
        model.set_params(loss=mm.losses.Hamming(10, 10)).fit(X, y, np.full(len(X), 1e308))


def test_a_model_of_zeros_is_announced_whatever_the_status():
    X, y = chains(8)
    said = r"all weights of the model are zero.* raise C or the radius.* the run "
    with pytest.warns(UserWarning, match=said + "converged") as caught:
        model = mm.ChainSVM(norm="l1", C=1e-4).fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]
    assert not model.coef_.any()
    assert model.solution_.status == "converged"
    assert model.solution_.message == str(caught[0].message)
    stop = {"callbacks": [lambda record: True], "solver": mm.Extragradient()}
    with pytest.warns(UserWarning, match=said + "stopped by a callback"):
        assert mm.ChainSVM(C=1.0, **stop).fit(X, y).solution_.status == "stopped"
    with pytest.warns(UserWarning, match=r"all weights of the model are zero.* raise max_iter"):
        mm.ChainSVM(C=np.inf, **stop).fit(X, y)
    with pytest.warns(UserWarning, match=said + "converged"):
        train(mm.encoders.ChainEncoder(), X, y, Settings(norm="l1", C=1e-4))


def test_one_label_is_the_reason_of_a_model_of_zeros():
    X, y = chains(8)
    with pytest.warns(UserWarning, match=r"all weights of the model are zero, as all labels are 'O'; check that these"):
        model = mm.ChainSVM(C=1.0).fit(X, [["O"] * len(labels) for labels in y])
    assert model.predict(X)[0] == ["O"] * len(y[0])


def test_zeros_with_the_best_dev_score_are_announced():
    X, y = chains(8)
    ties = mm.ChainSVM(C=1.0, solver=mm.Extragradient(), callbacks=[lambda record: True])
    with pytest.warns(UserWarning, match="all weights of the model are zero"):
        first = ties.fit(X, y).predict(X)  # what weights of zero predict
    with pytest.warns(UserWarning, match="all weights of the model are zero.* the run converged"):
        model = mm.ChainSVM(C=1.0, solver=mm.Extragradient()).fit(X, y, dev=(X, first))
    assert model.solution_.weights.any()
    assert not model.coef_.any()


def test_warnings_show_the_line_of_the_caller():
    with pytest.warns(ConvergenceWarning) as caught:
        mm.MatchingSVM(max_iter=1, tol=1e-9).fit(*matchings(6))
    assert [warning.filename for warning in caught] == [__file__]


@kinds
def test_the_primal_is_the_objective_of_the_docstring(kind):
    """``1/(2C) ||w||^2 + sum_i s_i max_y [loss + score(y) - score(gold)]`` by enumeration of all outputs."""
    model, (X, y), _ = made(kind, C=0.7)
    weights = np.arange(1.0, len(X) + 1)
    model.fit(X, y, weights)

    def wrong(gold, found):
        if kind in ("matching", "pairing"):
            gold, found = ({tuple(pair) for pair in links.tolist()} for links in (gold, found))
            return len(gold ^ found)
        if kind == "grammar":
            gold, found = (set(nodes_of(tree, "y").nodes) for tree in (gold, found))
            return len(gold ^ found)
        if kind == "lattice":
            return len(set(gold.tolist()) ^ set(found.tolist()))
        if kind == "segments":
            gold, found = ([(label, t == b) for b, e, label in rows for t in range(b, e)] for rows in (gold, found))
        return sum(a != b for a, b in zip(gold, found, strict=True))

    total = float(model.coef_ @ model.coef_) / (2 * 0.7)
    for s, gold, found in zip(weights, y, model.k_best(X, 10_000), strict=True):
        own = next(score for output, score in found if wrong(gold, output) == 0)
        total += s * max(wrong(gold, output) + score - own for output, score in found)
    assert model.solution_.certificate.primal == pytest.approx(total, rel=1e-9)


def test_label_costs_move_the_mistakes(tmp_path):
    X, y = chains(12, seed=4)
    costs = np.array([[0, 9, 0.1], [0.1, 0, 0.1], [0.1, 9, 0]])
    model = mm.ChainSVM(C=0.02, loss=mm.losses.LabelCost(costs)).fit(X, y)
    plain = mm.ChainSVM(C=0.02).fit(X, y)

    def count(estimator):
        return sum(labels.count("b") for labels in estimator.predict(X))

    assert count(model) < count(plain)
    model.save(tmp_path / "model")
    assert mm.load(tmp_path / "model").metadata["loss"] == "LabelCost"
    assert clone(model).fit(X, y).predict(X) == model.predict(X)

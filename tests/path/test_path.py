"""The regularization path: exact points, the dual-extragradient path, and the plot of both."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from data import KINDS, PickOne, chains, cuts, graphs, made, matchings, picks, same
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import maxmargin as mm
from maxmargin.report import plot_confusion, plot_path
from maxmargin.solvers import Record

kinds = pytest.mark.parametrize("kind", list(KINDS))
ROOT = Path(__file__).parents[2]
RADII = [0.1, 0.3, 1.0, 2.0]


def noisy(n, seed):
    """Sequences that no weights label without error."""
    rng = np.random.default_rng(seed)
    X, y = chains(n, seed=seed)
    return [x + 0.6 * rng.standard_normal(x.shape) for x in X], y


@pytest.fixture(scope="module")
def path():
    """A path with everything in it."""
    return mm.regularization_path(
        mm.ChainSVM(tol=1e-3), *noisy(30, 1), radii=RADII, dev=noisy(20, 2), test=noisy(20, 3), iterations=600
    )


@kinds
@pytest.mark.parametrize("parameter", ["radius", "C"])
def test_exact_points_are_those_of_separate_fits(kind, parameter):
    estimator, (X, y), (X_new, y_new) = made(kind, tol=1e-4)
    values = [0.02, 0.2, 1.0]
    given = {"radii" if parameter == "radius" else "Cs": values}
    path = mm.regularization_path(estimator, X, y, **given, dev=(X_new, y_new), test=(X, y), iterations=0)
    assert path.parameter == parameter
    assert path.iterates == ()
    assert [point.setting for point in path.exact] == values
    for point in path.exact:
        alone = clone(estimator).set_params(**{parameter: point.setting}).fit(X, y)
        certificate = alone.solution_.certificate
        assert point.status == "converged"
        assert point.gap <= 1e-4 * point.primal
        assert point.dual - 1e-9 <= certificate.primal
        assert certificate.dual - 1e-9 <= point.primal
        # Errors are the estimator's own scores at these weights.
        model = path.model(point)
        np.testing.assert_array_equal(model.coef_, point.weights)
        assert point.train_error == 1 - model.score(X, y)
        assert point.test_error == point.train_error
        assert point.dev_error == 1 - model.score(X_new, y_new)
        alone.coef_, alone.model_ = point.weights, model
        assert point.dev_error == 1 - alone.score(X_new, y_new)
        assert point.norm == pytest.approx(np.linalg.norm(point.weights))
        assert point.l1_norm == pytest.approx(np.abs(point.weights).sum())
    assert not hasattr(estimator, "coef_")
    assert (estimator.C, estimator.radius) == (None, None)


@pytest.mark.parametrize(
    "solver", [mm.Extragradient(), mm.DualExtragradient(), mm.Exact()], ids=lambda s: type(s).__name__
)
def test_hinge_never_rises_and_norm_never_falls(solver):
    X, y = noisy(20, 4)
    for given in ({"radii": np.geomspace(0.05, 2, 8)}, {"Cs": np.geomspace(0.003, 0.3, 8)}):
        path = mm.regularization_path(mm.ChainSVM(tol=1e-4, solver=solver), X, y, **given, iterations=0)
        values = path.arrays("exact")
        slack = 1e-3 * values["hinge"][0] if "Cs" in given else 1e-9
        assert (np.diff(values["hinge"]) <= slack).all()
        assert (np.diff(values["norm"]) >= -0.02 * values["norm"][1:]).all()
        if "radii" in given:
            np.testing.assert_allclose(values["norm"][:5], values["setting"][:5], rtol=1e-3)


@pytest.mark.parametrize("solver", [mm.Extragradient(), mm.DualExtragradient()], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("given", [{"radii": np.geomspace(0.1, 4, 10)}, {"Cs": np.geomspace(0.01, 1, 10)}])
def test_warm_starts_reach_the_same_optimum_in_fewer_iterations(solver, given):
    X, y = noisy(60, 5)
    estimator = mm.ChainSVM(tol=1e-3, solver=solver)
    path = mm.regularization_path(estimator, X, y, **given, iterations=0)
    cold = []
    for point in path.exact:
        alone = clone(estimator).set_params(**{path.parameter: point.setting}).fit(X, y)
        cold.append(alone.solution_.counters.iterations)
        assert point.dual - 1e-9 <= alone.solution_.certificate.primal
        assert alone.solution_.certificate.dual - 1e-9 <= point.primal
        assert point.status == "converged"
    assert sum(point.iteration for point in path.exact) < sum(cold)


def test_a_warm_start_where_the_duals_are_still_a_vertex():
    """There the solvers' own balance of steps finds no distance to measure; a run with it took 1,000 iterations."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(rng.integers(3, 9), 5)) for _ in range(60)]
    y = [["up" if row[0] + 0.7 * rng.normal() > row[1] else "down" for row in x] for x in X]
    path = mm.regularization_path(mm.ChainSVM(), X, y, radii=[0.1, 0.3], iterations=0)
    assert path.exact[1].status == "converged"
    assert path.exact[1].iteration < 30


@kinds
def test_the_dual_extragradient_path_is_one_unregularized_run(kind):
    estimator, (X, y), (X_new, y_new) = made(kind)
    path = mm.regularization_path(estimator, X, y, radii=[1.0], dev=(X_new, y_new), iterations=40)
    seen = {}

    def watch(record: Record) -> None:
        seen[record.iteration] = record.weights.copy()

    solver = mm.DualExtragradient.plain(geometry="auto")
    run = clone(estimator).set_params(C=np.inf, solver=solver, tol=0.0, max_iter=40, callbacks=[watch]).fit(X, y)
    assert path.iterates[0].norm == 0.0
    assert path.iterates[0].iteration == 0
    assert path.iterates[0].hinge == pytest.approx(run.solution_.history[0].primal)
    assert path.iterates[-1].iteration == max(seen)
    np.testing.assert_array_equal(path.iterates[-1].weights, seen[max(seen)])
    for point in path.iterates:
        weights = seen[point.iteration]
        model = mm.Model(weights, path.encoder)
        assert point.norm == pytest.approx(np.linalg.norm(weights))
        assert point.train_error == 1 - model.score(X, y)
        assert point.dev_error == 1 - model.score(X_new, y_new)
        assert point.setting is None
        assert point.test_error is None
        assert (point.dual, point.gap) == (0.0, point.hinge)
    assert sum(point.weights is not None for point in path.iterates) <= 2
    best = path.best("iterates")
    assert best.dev_error == min(point.dev_error for point in path.iterates)
    np.testing.assert_array_equal(best.weights, seen[best.iteration])


def test_iterates_are_recorded_ever_farther_apart(path):
    at = path.arrays("iterates")["iteration"]
    np.testing.assert_array_equal(at[:9], np.arange(9))
    assert at[-1] == 600
    assert len(at) < 60
    assert (np.diff(at)[9:-1] >= at[9:-2] // 8).all()


def test_a_run_in_a_ball_has_certificates():
    X, y = noisy(20, 1)
    path = mm.regularization_path(mm.ChainSVM(), X, y, radii=[1.0], iterations=300, ball=1.0)
    values = path.arrays("iterates")
    assert (np.diff(values["dual"]) >= 0).all()
    assert values["gap"][-1] < 0.2 * values["gap"][0]
    assert values["dual"][-1] <= path.exact[0].primal + 1e-9
    assert (values["norm"] <= 1 + 1e-9).all()


def test_radii_are_chosen_where_none_are_given():
    path = mm.regularization_path(mm.MatchingSVM(), *matchings(8), iterations=50)
    radii = path.arrays("exact")["setting"]
    assert len(radii) == 10
    assert radii[-1] == pytest.approx(path.arrays("iterates")["norm"].max())
    assert radii[0] == pytest.approx(radii[-1] / 100)


def test_settings_are_sorted_and_repeats_dropped():
    X, y = chains()
    path = mm.regularization_path(mm.ChainSVM(), X, y, radii=(1, 0.5, 1), iterations=0)
    assert [point.setting for point in path.exact] == [0.5, 1.0]


def test_the_estimators_other_settings_hold():
    X, y = cuts()
    both = mm.regularization_path(mm.CutSVM(C=0.01), X, y, radii=[0.05, 10.0], iterations=0)
    assert 0.048 <= both.exact[0].norm <= 0.05 * (1 + 1e-9)
    ridge = mm.CutSVM(C=0.01).fit(X, y)
    assert both.exact[1].norm == pytest.approx(np.linalg.norm(ridge.coef_), rel=0.05)
    path = mm.regularization_path(mm.CutSVM(nonnegative=[0]), X, y, radii=[1.0], iterations=30)
    assert path.exact[0].weights[0] >= 0
    assert path.iterates[-1].weights[2:].min() >= 0
    loss = mm.losses.Hamming(false_positive=1, false_negative=3)
    costly = mm.regularization_path(mm.CutSVM(loss=loss), X, y, radii=[1.0], iterations=1)
    assert costly.iterates[0].hinge > both.exact[0].hinge
    half = mm.regularization_path(mm.CutSVM(), X, y, radii=[1.0], iterations=1, sample_weight=np.full(len(X), 0.5))
    full = mm.regularization_path(mm.CutSVM(), X, y, radii=[1.0], iterations=1)
    assert half.iterates[0].hinge == pytest.approx(0.5 * full.iterates[0].hinge)


def test_a_structure_of_ones_own_and_an_error_of_ones_own():
    X, y = picks()

    def off_by(gold, found):
        return float(
            np.mean([abs(int(a[0] if isinstance(a, tuple) else a) - b) for a, b in zip(gold, found, strict=True)])
        )

    odd = [(label, "and more") for label in y]
    path = mm.regularization_path(
        mm.StructuredSVM(PickOne), X, y, radii=[0.5, 5.0], iterations=20, dev=(X, odd), error=off_by
    )
    for point in path.exact:
        assert point.dev_error == point.train_error
        assert point.train_error == off_by(y, path.model(point).predict(X))


def test_threads_do_not_change_a_path():
    X, y = matchings(12)
    runs = [
        mm.regularization_path(mm.MatchingSVM(n_jobs=n), X, y, radii=[0.5, 2.0], dev=(X, y), iterations=60)
        for n in (1, 2, 3)
    ]
    for other in runs[1:]:
        for which in ("exact", "iterates"):
            first, second = runs[0].arrays(which), other.arrays(which)
            for name in first.keys() - {"seconds"}:
                np.testing.assert_array_equal(first[name], second[name])


def test_results_in_every_form(path):
    data = json.loads(json.dumps(path.to_dict()))
    assert data["parameter"] == "radius"
    assert [point["setting"] for point in data["exact"]] == RADII
    assert "weights" not in data["iterates"][0]
    assert set(path.arrays("exact")) == set(data["exact"][0]) - {"status", "relaxed"}
    assert len(path.arrays("iterates")["hinge"]) == len(path.iterates) == len(data["iterates"])
    errors = [point.dev_error for point in (*path.exact, *path.iterates)]
    assert path.best().dev_error == min(errors)
    assert path.best().weights is not None
    assert path.best("exact") in path.exact
    model = path.model()
    X, y = noisy(20, 3)
    assert 1 - model.score(X, y) == path.best().test_error
    assert len(model.predict(X)) == 20
    assert path.excess().shape == (len(RADII),)
    assert "weights" not in repr(path.exact[0])


def test_the_chosen_model_saves_and_loads(path, tmp_path):
    path.model().save(tmp_path / "best.mm")
    again = mm.load(tmp_path / "best.mm")
    X, _ = noisy(5, 9)
    assert same(again.predict(X), path.model().predict(X))
    assert again.metadata["dev_error"] == path.best().dev_error


def test_the_exact_path_is_below_the_dual_extragradient_path():
    X, y = noisy(30, 1)
    path = mm.regularization_path(mm.ChainSVM(tol=1e-3), X, y, iterations=100)
    excess, gaps = path.excess(), path.arrays("exact")["gap"]
    assert np.isfinite(excess).all()
    assert (excess >= -gaps - 1e-9).all()
    assert excess.max() > 0
    # At an iterate's own norm nothing is interpolated.
    middle = path.iterates[2]
    at = mm.regularization_path(mm.ChainSVM(tol=1e-3), X, y, radii=[middle.norm], iterations=100)
    assert at.exact[0].norm == pytest.approx(middle.norm, rel=0.02)
    assert at.excess()[0] <= middle.hinge - at.exact[0].hinge + 1e-6
    assert np.isnan(mm.regularization_path(mm.ChainSVM(), X, y, radii=[1.0], iterations=0).excess()).all()


def test_interruption_keeps_what_is_complete():
    X, y = noisy(30, 1)

    def interrupt(record: Record) -> None:
        if record.iteration > 3 and record.norm > 0.5:
            raise KeyboardInterrupt

    estimator = mm.ChainSVM(callbacks=[interrupt])
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        path = mm.regularization_path(estimator, X, y, radii=[0.1, 0.3, 2.0, 3.0], iterations=5)
    assert [point.setting for point in path.exact] == [0.1, 0.3]
    assert len(path.iterates) == 6


@pytest.mark.parametrize("calls", [1, 3, 5])
def test_interruption_of_the_dual_extragradient_run(calls):
    X, y = chains()
    left = iter(range(calls))

    def impatient(gold, found):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return 0.5

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        path = mm.regularization_path(mm.ChainSVM(), X, y, dev=(X, y), iterations=50, error=impatient)
    assert path.exact == ()
    assert [point.iteration for point in path.iterates] == list(range(calls // 2))
    if path.iterates:
        assert path.model().coef_.shape == path.iterates[-1].weights.shape


def test_a_norm_that_needs_a_radius():
    X, y = cuts()
    path = mm.regularization_path(mm.CutSVM(norm="l1"), X, y, radii=[0.5], iterations=20)
    plain = mm.regularization_path(mm.CutSVM(), X, y, radii=[0.5], iterations=20)
    for name, values in plain.arrays("iterates").items():
        if name != "seconds":
            np.testing.assert_array_equal(path.arrays("iterates")[name], values)
    with pytest.raises(ValueError, match="radius or C must be finite"):
        mm.regularization_path(mm.CutSVM(norm="l1", C=np.inf), X, y, iterations=20)


def test_a_point_that_does_not_converge_says_so():
    X, y = noisy(30, 1)
    with pytest.warns(ConvergenceWarning, match="budget"):
        path = mm.regularization_path(mm.ChainSVM(max_iter=2, tol=1e-9), X, y, radii=[2.0], iterations=3)
    assert path.exact[0].status == "budget"
    assert path.exact[0].gap > 0


def test_progress_is_drawn_only_on_a_terminal_and_when_wanted(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    X, y = chains()
    for verbose, stream in ((True, io.StringIO()), (False, Terminal()), (True, Terminal())):
        monkeypatch.setattr(sys, "stderr", stream)
        mm.regularization_path(mm.ChainSVM(verbose=verbose), X, y, radii=[1.0], iterations=3)
        assert bool(stream.getvalue()) == (verbose and stream.isatty())


BAD = {
    "empty radii": ({"radii": []}, "radii is empty"),
    "empty Cs": ({"Cs": np.zeros(0)}, "Cs is empty"),
    "both": ({"radii": [1.0], "Cs": [1.0]}, "not both"),
    "negative": ({"radii": [1.0, -1.0]}, "positive and finite, got -1.0"),
    "zero": ({"Cs": [0]}, "positive and finite"),
    "nan": ({"radii": [np.nan]}, "positive and finite"),
    "infinite": ({"Cs": [np.inf]}, "positive and finite"),
    "a number": ({"radii": 1.0}, "list of positive numbers"),
    "words": ({"radii": ["1"]}, "list of positive numbers"),
    "none inside": ({"radii": [None, 1.0]}, "list of positive numbers"),
    "ragged": ({"radii": [[1.0], [1.0, 2.0]]}, "list of positive numbers"),
    "truths": ({"Cs": [True]}, "list of positive numbers"),
    "nothing to do": ({"iterations": 0}, "give radii or Cs"),
    "iterations": ({"radii": [1.0], "iterations": -1}, "iterations must be an integer >= 0"),
    "half iterations": ({"radii": [1.0], "iterations": 1.5}, "iterations must be an integer"),
    "dev": ({"radii": [1.0], "dev": 3}, r"dev must be a pair \(X, y\)"),
    "dev of three": ({"radii": [1.0], "dev": ([], [], [])}, "dev must be a pair"),
    "empty dev": ({"radii": [1.0], "dev": ([], [])}, "dev data: X is empty"),
    "test": ({"radii": [1.0], "test": ("ab", "cd")}, "test data: X must be a list"),
    "error": ({"radii": [1.0], "error": 3}, "error must be a function"),
    "error of nan": ({"radii": [1.0], "error": lambda gold, found: np.nan}, "finite number"),
    "error of words": ({"radii": [1.0], "error": lambda gold, found: "few"}, "finite number"),
    "solver": ({"radii": [1.0], "dual_extragradient": mm.Extragradient()}, "dual_extragradient must be"),
    "ball": ({"radii": [1.0], "ball": -1.0}, "ball must be a number > 0 or infinity"),
    "ball of nan": ({"radii": [1.0], "ball": np.nan}, "ball must be a number > 0 or infinity"),
    "ball of words": ({"radii": [1.0], "ball": "large"}, "ball must be a number > 0 or infinity"),
}


@pytest.mark.parametrize("name", list(BAD))
def test_bad_input_is_refused(name):
    settings, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        mm.regularization_path(mm.ChainSVM(), *chains(), **settings)


def test_bad_data_name_the_example():
    X, y = chains()
    with pytest.raises(ValueError, match=r"dev data: example 1: .*columns"):
        mm.regularization_path(mm.ChainSVM(), X, y, radii=[1.0], dev=([X[0], X[1][:, :2]], y[:2]))
    with pytest.raises(ValueError, match=r"test data: X has 2 examples but y has 1"):
        mm.regularization_path(mm.ChainSVM(), X, y, radii=[1.0], test=(X[:2], y[:1]))
    broken = [x.copy() for x in X]
    broken[2][0, 0] = np.nan
    with pytest.raises(ValueError, match=r"example 2: .*NaN"):
        mm.regularization_path(mm.ChainSVM(), broken, y, radii=[1.0])
    with pytest.raises(ValueError, match=r"dev data: example 0"):
        mm.regularization_path(mm.ChainSVM(), X, y, radii=[1.0], dev=(X[:1], [["unheard of"] * len(y[0])]))


@pytest.mark.parametrize("estimator", [LogisticRegression(), mm.ChainSVM, None, "chain"])
def test_other_estimators_are_refused(estimator):
    with pytest.raises(ValueError, match="estimator must be an estimator of maxmargin"):
        mm.regularization_path(estimator, *chains(), radii=[1.0])


def test_unfit_settings_of_the_estimator_are_refused():
    for settings in ({"tol": -1.0}, {"solver": "fast"}, {"max_iter": 0}, {"C": -1.0}, {"n_jobs": 0}):
        with pytest.raises(ValueError, match=next(iter(settings))):
            mm.regularization_path(mm.ChainSVM(**settings), *chains(), radii=[1.0], iterations=0)


def test_questions_that_have_no_answer(path):
    X, y = chains()
    blind = mm.regularization_path(mm.ChainSVM(), X, y, radii=[1.0], iterations=5)
    with pytest.raises(ValueError, match="give regularization_path dev"):
        blind.best()
    with pytest.raises(ValueError, match="which must be"):
        path.points("all")
    with pytest.raises(ValueError, match="keep their weights"):
        path.model(path.iterates[0])
    assert blind.iterates[-1].weights is not None
    assert np.isnan(blind.arrays("exact")["test_error"]).all()


def test_plot_has_four_panels(path):
    for settings in ({}, {"scale": "log", "against": "l1_norm", "error": "loss", "title": "chains"}):
        figure = plot_path(path, **settings)
        assert len(figure.axes) == 4
        assert all(axes.get_xlabel() and axes.get_ylabel() and axes.lines for axes in figure.axes)
        assert len(figure.legends) == 1
        figure.canvas.draw()
    points = figure.axes[0].lines[1].get_xydata()
    np.testing.assert_allclose(points[:, 0], path.arrays("exact")["l1_norm"])
    np.testing.assert_allclose(points[:, 1], path.arrays("exact")["hinge"])


def test_plots_draw_where_they_are_told_to(path):
    given = Figure()
    assert plot_path(path, figure=given) is given
    assert len(given.axes) == 4
    half = Figure(layout="constrained").subfigures(1, 2)[0]
    assert plot_path(path, figure=half) is half
    axes = Figure().subplots()
    assert plot_confusion(np.array([[3, 1], [0, 2]]), ["a", "b"], axes=axes) is axes.figure
    assert len(axes.figure.axes) == 1


def test_plot_of_a_path_that_lacks_things():
    X, y = chains()
    for settings in ({"iterations": 0}, {"iterations": 4}, {"iterations": 1, "test": (X, y)}):
        figure = plot_path(mm.regularization_path(mm.ChainSVM(), X, y, radii=[1.0], **settings))
        figure.canvas.draw()
        assert len(figure.axes) == 4


@pytest.mark.parametrize("settings", [{"against": "length"}, {"scale": "square"}])
def test_plot_refuses_unknown_settings(path, settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        plot_path(path, **settings)


def test_only_the_plot_needs_matplotlib():
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.path.insert(0, 'tests')\n"
        "import maxmargin as mm\nfrom data import chains\n"
        "path = mm.regularization_path(mm.ChainSVM(), *chains(), radii=[1.0], iterations=2)\n"
        "try:\n    mm.report.plot_path(path)\nexcept ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert "maxmargin[plot]" in done.stdout


def test_a_kernel_model_of_a_path_saves_and_loads(tmp_path):
    X, y = matchings(8)
    estimator = mm.MatchingSVM(features=mm.features.Kernel("rbf"), tol=1e-2)
    path = mm.regularization_path(estimator, X, y, radii=[0.5, 1.0], dev=(X, y), iterations=5)
    model = path.model(path.exact[-1])
    alone = clone(estimator).set_params(radius=1.0).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), rtol=0.1)
    model.save(tmp_path / "model")
    np.testing.assert_allclose(mm.load(tmp_path / "model").decision_function(X), model.decision_function(X), rtol=1e-9)


def test_relaxed_figures_are_called_so():
    X, y = graphs()
    path = mm.regularization_path(mm.GraphSVM(tol=1e-2), X, y, radii=[0.5], dev=(X, y), iterations=5)
    assert all(point.relaxed for point in (*path.exact, *path.iterates))
    assert path.exact[0].to_dict()["relaxed"] is True
    assert path.model(path.exact[0]).metadata["relaxed"] is True
    X, y = matchings(4)
    assert not mm.regularization_path(mm.MatchingSVM(), X, y, radii=[0.5], iterations=2).exact[0].relaxed

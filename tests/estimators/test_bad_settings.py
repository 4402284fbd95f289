"""Settings, structures, losses and callbacks that estimators refuse, with what they expected."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from data import PickOne, chains, picks
from refusals import BAD, CLAIMED, EVERY, Unreadable, kinds, refused, spoiled
from sklearn.base import clone

import maxmargin as mm

INTEGER, NUMBER = "must be an integer >= 1", "must be a number > 0"
SETTINGS = {
    "C": [
        ([-1.0], f"C {NUMBER} or infinity.*larger C"),
        ([0, np.nan, "1", True, [1.0, -1.0]], f"C {NUMBER}"),
        ([[]], "C is empty"),
        ([[0.1, 1.0]], "several values of C are compared on dev data"),
    ],
    "radius": [([-1.0, "big"], f"radius {NUMBER}")],
    "tol": [([-1e-3, np.nan, np.inf, "small", None], "tol must be a finite number >= 0")],
    "max_iter": [([0, -5, 1.5, "many", np.inf, True], f"max_iter {INTEGER}")],
    "max_seconds": [([0, -1.0, np.nan, "1"], f"max_seconds {NUMBER}")],
    "n_jobs": [
        ([0], "n_jobs must be None or a non-zero integer.*-1 for all"),
        ([1.5, "2", True], "n_jobs must be None"),
    ],
    "solver": [
        (["best", None, np.ones(2)], 'solver must be "auto" or a solver object'),
        ([mm.Extragradient], r"write mm.Extragradient\(\)"),
    ],
    "loss": [
        (["hamming", mm.losses.Hamming], r"loss must be a loss of maxmargin\.losses"),
        ([mm.losses.Hamming(-1.0, -1.0)], "false_positive must be a finite number >= 0"),
    ],
    "random_state": [(["seed", -1, 1.5], "random_state must be None or an integer")],
    "callbacks": [([[3]], "callbacks must be functions"), ([3, print], "callbacks must be a list")],
    "nonnegative": [
        (
            [[99], [True], "all", [0.5], [[0], [1, 2]], [-1], 3, [[0, 1]]],
            "nonnegative must be a list of indices from 0, a mask of the",
        )
    ],
    "verbose": [(["x"], "verbose must be True or False")],
    "warm_start": [(["x"], "warm_start must be True or False")],
}


@kinds
@pytest.mark.parametrize("name", SETTINGS)
def test_settings(fitted, kind, name):
    model, X, y = fitted[kind]
    for values, message in SETTINGS[name]:
        for value in values:
            with pytest.raises(ValueError, match=message):
                clone(model).set_params(**{name: value}).fit(X, y)


@pytest.mark.parametrize("structure", [None, 3, "chain", [PickOne]])
def test_structures(structure):
    with pytest.raises(ValueError, match=r"structure must be a Structure class.*ChainSVM"):
        mm.StructuredSVM(structure).fit(*picks())


def test_structures_that_break_their_promises():
    X, y = picks()
    with pytest.raises(ValueError, match=r"must make a maxmargin\.structures\.Structure, got list"):
        mm.StructuredSVM(list).fit(X, y)
    with pytest.raises(ValueError, match="give one row of features per part"):
        mm.StructuredSVM(lambda sizes: PickOne(sizes + 1)).fit(X, y)

    class Short(PickOne):
        def encode(self, labels):
            return np.zeros(3)

    with pytest.raises(ValueError, match=r"Short\.encode must return a vector of shape"):
        mm.StructuredSVM(Short).fit(X, y)


def test_parts_of_ones_own():
    X, y = picks()
    model = mm.StructuredSVM(PickOne).fit(X, y)
    refused(model, spoiled(X, np.zeros((0, 2))), y, rf"example {BAD}: no parts; remove it", at=EVERY)
    refused(model, spoiled(X, np.zeros(2)), y, rf"example {BAD}: .*2-D", at=EVERY)
    refused(model, spoiled(X, np.full((2, 2), np.nan)), y, rf"example {BAD}: .*NaN", at=EVERY)
    refused(model, X, spoiled(y, 99), f"example {BAD}: 99 is not one of its", at=("fit", "score"))


@pytest.mark.parametrize("name", ["Chain", "Tree", "Matching", "Cut", "PairwiseGraph", "Associative"])
def test_built_in_structures_have_their_estimators(name):
    with pytest.raises(ValueError, match="for the built-in structures use ChainSVM"):
        mm.StructuredSVM(getattr(mm.structures, name)).fit(*chains())


def test_plots_of_something_else():
    with pytest.raises(ValueError, match=r"what mm\.regularization_path returns"):
        mm.report.plot_path(3)
    with pytest.raises(ValueError, match="map names to solutions"):
        mm.report.plot_convergence(3)


@pytest.mark.parametrize("seed", [[[[1]]], [1, [2, [3]]], "1", -1, 1.5, True, Unreadable(), np.timedelta64(3, "s")])
def test_seeds_that_numpy_would_crash_on(seed):
    with pytest.raises(ValueError, match="random_state must be None or an integer >= 0"):
        mm.training.Settings(random_state=seed)


def test_numbers_of_any_kind_are_taken_as_they_are_meant():
    from fractions import Fraction

    X, y = chains(4)
    given = {"C": Fraction(1, 2), "tol": np.float32(0.5), "max_iter": np.int8(100), "max_seconds": 10**400}
    assert mm.ChainSVM(**given).fit(X, y).solution_.certificate.relative_gap <= 0.5
    for value in (10**400, np.longdouble("1e4000"), 1j, "1"):
        with pytest.raises(ValueError, match="tol must be a finite number >= 0"):
            mm.Stop(tol=value)


@pytest.mark.parametrize("value", ["x" * 10**6, list(range(10**6)), 10**5000], ids=["text", "list", "number"])
def test_messages_stay_short(value):
    with pytest.raises(ValueError, match="solver must be") as caught:
        mm.training.Settings(solver=value)
    assert len(str(caught.value)) < 1000


class Odd(mm.losses.Loss):
    """A loss that returns what it was given."""

    def __init__(self, returned):
        self.returned = returned

    def costs(self, structure, gold):
        return self.returned


@pytest.mark.parametrize(
    "returned", [None, 3, "ab", (1, 2, 3), ("a", "b"), (np.ones(2),), (None, None), (CLAIMED,) * 2]
)
def test_losses_that_return_something_else(fitted, returned):
    model, X, y = fitted["chain"]
    with pytest.raises(ValueError, match=r"Odd\.costs (must )?return"):
        clone(model).set_params(loss=Odd(returned)).fit(X, y)


@pytest.mark.parametrize("returned", [np.zeros(2), sp.csr_array(np.eye(2))])
def test_callbacks_whose_result_is_neither_true_nor_false(fitted, returned):
    model, X, y = fitted["chain"]
    with pytest.raises(ValueError, match="callbacks must return True to stop"):
        clone(model).set_params(callbacks=[lambda record: returned]).fit(X, y)

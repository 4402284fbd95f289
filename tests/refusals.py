"""What tests of refused input share: how to spoil an example, and calls that must raise ValueError."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from data import KINDS
from sklearn.base import clone

import maxmargin as mm

kinds = pytest.mark.parametrize("kind", list(KINDS))
BAD = 2  # the example that each test spoils

EVERY = ("fit", "predict", "score", "k_best", "decision_function")

CLAIMED = np.broadcast_to(0.0, (10**6, 10**6))  # claims 8 TB, and holds one number


def refused(model, X, y, message, *, at=("fit", "predict", "score")):
    """All given calls raise ValueError with this message; fitting is tried on a fresh estimator."""
    calls = {
        "fit": lambda: clone(model).fit(X, y),
        "predict": lambda: model.predict(X),
        "score": lambda: model.score(X, y),
        "k_best": lambda: model.k_best(X, 2),
        "decision_function": lambda: model.decision_function(X),
        "relaxation": lambda: model.relaxation(X),
    }
    for name in at:
        with pytest.raises(ValueError, match=message) as caught:
            calls[name]()
        assert not isinstance(caught.value, UnicodeError), name


def spoiled(values, bad, index=BAD):
    """A copy of a list with one entry replaced."""
    return [bad if i == index else value for i, value in enumerate(values)]


def features_of(kind, x):
    """The main features of one input, and how to put others in their place."""
    if isinstance(x, mm.Graph):
        return x.node_features, lambda new: replace(x, node_features=new)
    if isinstance(x, (mm.PairGraph, mm.SpanChart, mm.WordLattice)):
        return x.features, lambda new: replace(x, features=new)
    return x, lambda new: new


class Unreadable:
    """An object that NumPy cannot read."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array here")

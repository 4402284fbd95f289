"""Node classifiers as model files hold them: class scores of rows of features, whatever library trained them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _threads
from maxmargin._messages import shown
from maxmargin.encoders.base import State
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks import _kernels

Rows = npt.NDArray[np.float32]
"""Features of nodes, shape ``(n, d)``."""

ABSENT = -12.0
"""The score of a class that a classifier has not seen, beside scores around 0."""

_CLASSIFIERS: dict[str, type[NodeClassifier]] = {}


class NodeClassifier(ABC):
    """Class probabilities of rows of features: the softmax of scores.

    A subclass gives :meth:`scores`, :meth:`state` and :meth:`from_state`.
    """

    kind: ClassVar[str]
    """The word for this class in model files."""

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        _CLASSIFIERS[cls.kind] = cls

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of columns of the rows."""

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """Number of classes."""

    @abstractmethod
    def scores(self, rows: Rows) -> FloatArray:
        """Scores of classes, shape ``(n, n_classes)``."""

    @abstractmethod
    def state(self) -> State:
        """Plain values and arrays for :meth:`from_state`."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State) -> Self:
        """The classifier of a model file; ValueError, KeyError or TypeError if the state makes no sense."""

    def probabilities(self, rows: Rows) -> FloatArray:
        """Probabilities of classes, shape ``(n, n_classes)``."""
        scores = self.scores(rows)
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
        return scores


def classifier_from_state(state: State) -> NodeClassifier:
    """The classifier of a model file, whatever its class."""
    kind = state["kind"]
    if not isinstance(kind, str) or kind not in _CLASSIFIERS:
        raise ValueError(f"it has an unknown kind of classifier, {shown(kind)}; update maxmargin")
    return _CLASSIFIERS[kind].from_state(state)


@dataclass(frozen=True, eq=False)
class Trees(NodeClassifier):
    """Boosted trees and forests: sums of the values of the leaves that a row reaches.

    Attributes:
        link: "scores" if the sums are scores, "probabilities" if they are probabilities.
        baseline: sums before any tree, shape ``(n_classes,)``.
        feature: the feature that each node compares, -1 at leaves; nodes of all trees, children after their parents.
        threshold: a row goes left where its feature is at most this.
        left: the left child of each node.
        right: the right child.
        value: what a leaf adds, shape ``(n_nodes, 1)`` or ``(n_nodes, n_classes)``.
        root: the first node of each tree.
        column: the first class that each tree adds to.
        width: number of columns of the rows.
    """

    link: str
    baseline: FloatArray
    feature: npt.NDArray[np.int32]
    threshold: FloatArray
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    value: FloatArray
    root: npt.NDArray[np.int32]
    column: npt.NDArray[np.int32]
    width: int

    kind = "trees"

    @property
    def n_features(self) -> int:
        """Number of columns of the rows."""
        return self.width

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.baseline)

    @classmethod
    def constant(cls, baseline: FloatArray, width: int) -> Trees:
        """No trees at all."""
        none, zero = np.zeros(0, dtype=np.int32), np.zeros(0)
        return cls("scores", baseline, none, zero, none, none, zero[:, None], none, none, width)

    def scores(self, rows: Rows) -> FloatArray:
        """Sums over the trees, or their logarithms."""
        out = np.tile(self.baseline, (len(rows), 1))
        nodes = self.feature, self.left, self.right, self.threshold, self.value, self.root, self.column
        plain = np.ascontiguousarray(rows, dtype=np.float32)
        _kernels.add_trees(*nodes, self.value.shape[1], plain, out, _threads.current())
        return out if self.link == "scores" else np.log(np.maximum(out, np.exp(ABSENT)))

    _ARRAYS: ClassVar[dict[str, type]] = {
        "baseline": np.float64,
        "feature": np.int32,
        "threshold": np.float64,
        "left": np.int32,
        "right": np.int32,
        "value": np.float64,
        "root": np.int32,
        "column": np.int32,
    }

    def state(self) -> State:
        """All arrays."""
        return {
            "kind": self.kind,
            "link": self.link,
            "width": self.width,
            **{name: getattr(self, name) for name in self._ARRAYS},
        }

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`NodeClassifier.from_state`."""
        arrays = {name: state[name] for name in cls._ARRAYS}
        for name, dtype in cls._ARRAYS.items():
            if arrays[name].dtype != dtype or arrays[name].ndim != (2 if name == "value" else 1):
                raise ValueError(f"the {name} of its trees is damaged")
        width = state["width"]
        if isinstance(width, bool) or not isinstance(width, int) or width < 0 or not len(arrays["baseline"]):
            raise ValueError("the width of its trees is damaged")
        if not all(np.isfinite(arrays[name]).all() for name in ("baseline", "threshold", "value")):
            raise ValueError("its trees have numbers that are not finite")
        if state["link"] not in ("scores", "probabilities"):
            raise ValueError("the link of its trees is damaged")
        found = cls(link=state["link"], **arrays, width=width)
        found.scores(np.zeros((0, width), dtype=np.float32))  # the kernel checks the nodes
        return found


@dataclass(frozen=True, eq=False)
class CodedLinear(NodeClassifier):
    """A linear model of one-hot codes: each feature's bin has a weight per class.

    Attributes:
        bounds: upper bounds of the bins of each feature, rising, shape ``(d, n_bins - 1)``.
        weights: shape ``(d, n_bins, n_classes)``.
        intercept: shape ``(n_classes,)``.
    """

    bounds: FloatArray
    weights: FloatArray
    intercept: FloatArray

    kind = "coded linear"

    @property
    def n_features(self) -> int:
        """Number of columns of the rows."""
        return len(self.bounds)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.intercept)

    def scores(self, rows: Rows) -> FloatArray:
        """The weights of the bins of each feature, summed."""
        found = np.tile(self.intercept, (len(rows), 1))
        for column, own in enumerate(coded(rows, self.bounds).T):
            found += self.weights[column, own]
        return found

    def state(self) -> State:
        """All arrays."""
        return {"kind": self.kind, "bounds": self.bounds, "weights": self.weights, "intercept": self.intercept}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`NodeClassifier.from_state`."""
        bounds, weights, intercept = (state[name] for name in ("bounds", "weights", "intercept"))
        if any(one.dtype != np.float64 or not np.isfinite(one).all() for one in (bounds, weights, intercept)):
            raise ValueError("the numbers of its linear classifier are damaged")
        if bounds.ndim != 2 or intercept.ndim != 1 or not len(intercept):
            raise ValueError("the shapes of its linear classifier are damaged")
        if weights.shape != (len(bounds), bounds.shape[1] + 1, len(intercept)) or (np.diff(bounds) < 0).any():
            raise ValueError("the shapes of its linear classifier do not fit each other")
        return cls(bounds, weights, intercept)


@dataclass(frozen=True, eq=False)
class Estimator(NodeClassifier):
    """A classifier of another library, kept as it is; such a model lives in memory only.

    Attributes:
        fitted: has ``predict_proba``.
        present: the classes that its columns stand for.
        classes: number of classes.
        width: number of columns of the rows.
    """

    fitted: Any
    present: IntArray
    classes: int
    width: int

    kind = "estimator"

    @property
    def n_features(self) -> int:
        """Number of columns of the rows."""
        return self.width

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.classes

    def scores(self, rows: Rows) -> FloatArray:
        """Its log-probabilities."""
        found = np.full((len(rows), self.classes), ABSENT)
        found[:, self.present] = np.log(np.maximum(self.fitted.predict_proba(rows), np.exp(ABSENT)))
        return found

    def state(self) -> State:
        """Refused: model files hold nothing that can execute."""
        raise ValueError(
            f"a model whose node classifier is a {type(self.fitted).__name__} cannot be saved, as model files hold "
            'only trees and linear models; train with classifier="boosting", "lightgbm" or "linear", or with gradient '
            "boosting or random forests of scikit-learn"
        )

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Refused, as they are never saved."""
        raise ValueError("its node classifier is damaged")


MOST_MEMBERS = 1000
"""A mean of more classifiers than this is refused."""


@dataclass(frozen=True, eq=False)
class Mean(NodeClassifier):
    """The mean of the probabilities of several classifiers.

    Attributes:
        members: the classifiers, at least one.
    """

    members: tuple[NodeClassifier, ...]

    kind = "mean"

    @property
    def n_features(self) -> int:
        """Number of columns of the rows."""
        return self.members[0].n_features

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.members[0].n_classes

    def scores(self, rows: Rows) -> FloatArray:
        """The logarithms of the mean probabilities."""
        total = np.zeros((len(rows), self.n_classes))
        for member in self.members:
            total += member.probabilities(rows)
        return np.log(np.maximum(total / len(self.members), np.exp(ABSENT)))

    def state(self) -> State:
        """The state of each member under names of its own."""
        return {"kind": self.kind, **state_of_all("member", self.members)}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`NodeClassifier.from_state`."""
        states = states_of_all("member", state, MOST_MEMBERS)
        if any(own["kind"] == cls.kind for own in states):
            raise ValueError("it has a mean of means")
        members = [classifier_from_state(own) for own in states]
        if len({(one.n_features, one.n_classes) for one in members}) > 1:
            raise ValueError("the classifiers of a mean do not fit each other")
        return cls(tuple(members))


def state_of_all(name: str, members: Sequence[NodeClassifier]) -> State:
    """The states of several classifiers in one, each entry under the name and number of its classifier."""
    found: State = {f"{name}s": len(members)}
    for number, member in enumerate(members):
        found |= {f"{name}{number}_{key}": value for key, value in member.state().items()}
    return found


def states_of_all(name: str, state: State, most: int) -> list[State]:
    """The inverse of :func:`state_of_all`; ValueError unless there are 1 to ``most``."""
    count = _checks.integer(f"{name}s", state[f"{name}s"], least=1)
    if count > most:
        raise ValueError(f"it has {count} {name}s; at most {most} are possible")
    return [part_of(state, f"{name}{number}_") for number in range(count)]


def part_of(state: State, prefix: str) -> State:
    """The entries whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def quantile_bounds(rows: Rows, n_bins: int) -> FloatArray:
    """Upper bounds of bins with equally many rows each, shape ``(d, n_bins - 1)``."""
    levels = np.arange(1, n_bins) / n_bins
    return np.ascontiguousarray(np.quantile(rows, levels, axis=0).T, dtype=np.float64)


def coded(rows: Rows, bounds: FloatArray) -> IntArray:
    """The bin of every feature of every row, shape ``(n, d)``."""
    found = np.empty(rows.shape, dtype=np.int64)
    for column, upper in enumerate(bounds):
        found[:, column] = np.searchsorted(upper, rows[:, column], side="left")
    return found

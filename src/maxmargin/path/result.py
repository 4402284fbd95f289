"""A regularization path: its points, their figures, and their models."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np

from maxmargin import _checks
from maxmargin.encoders.base import Encoder
from maxmargin.models.base import Model
from maxmargin.structures.base import FloatArray

Which = Literal["exact", "iterates"]


@dataclass(frozen=True, eq=False)
class PathPoint:
    """One model of the path and how good it is.

    Attributes:
        setting: the radius or C of an exact point; None on the dual-extragradient path.
        iteration: iterations that this point took (exact), or after which it was recorded.
        seconds: likewise; on the dual-extragradient path with the time that judging its points takes.
        hinge: training hinge loss ``H(w)``.
        norm: Euclidean norm of the weights.
        l1_norm: sum of the absolute weights.
        primal: objective of the point's own problem at these weights: the hinge loss and, with C, the penalty.
        dual: largest certified lower bound of that problem's optimum; 0 for an unregularized run.
        train_error: 1 - score on the training data (or the value of ``error``).
        dev_error: the same on the dev data; None without any.
        test_error: the same on the test data; None without any.
        status: how the run of an exact point ended; "" for an iterate.
        relaxed: whether hinge, primal and dual are those of a relaxation (see :class:`maxmargin.solvers.Certificate`).
        weights: shape ``(n_weights,)``; of the iterates only the best on the dev data and the last keep theirs.
    """

    setting: float | None
    iteration: int
    seconds: float
    hinge: float
    norm: float
    l1_norm: float
    primal: float
    dual: float
    train_error: float
    dev_error: float | None = None
    test_error: float | None = None
    status: str = ""
    relaxed: bool = False
    weights: FloatArray | None = field(default=None, repr=False)

    @property
    def gap(self) -> float:
        """``primal - dual``: how far from optimal the weights are at most, for their own problem."""
        return self.primal - self.dual

    def to_dict(self) -> dict[str, Any]:
        """All but the weights as plain JSON values."""
        return {name: _plain(getattr(self, name)) for name in (*_NUMBERS, "status", "relaxed")}


_NUMBERS = (*(f.name for f in fields(PathPoint) if f.name not in ("status", "relaxed", "weights")), "gap")


@dataclass(frozen=True, eq=False)
class RegularizationPath:
    """The result of :func:`regularization_path`.

    Attributes:
        exact: certified points, in the order of increasing ``setting``.
        iterates: the dual-extragradient path, from zero weights on.
        parameter: the name of the setting of an exact point: "radius" or "C".
        encoder: with a point's weights, everything that a model needs.
        n_jobs: threads for prediction.
    """

    exact: tuple[PathPoint, ...]
    iterates: tuple[PathPoint, ...]
    parameter: str
    encoder: Encoder
    n_jobs: int | None = None

    def points(self, which: Which) -> tuple[PathPoint, ...]:
        """The exact points or the iterates."""
        _checks.one_of("which", which, ("exact", "iterates"))
        return self.exact if which == "exact" else self.iterates

    def arrays(self, which: Which) -> dict[str, FloatArray]:
        """Every figure as an array over the points, by the names of :class:`PathPoint`; NaN where there is none."""
        points = self.points(which)
        return {
            name: np.array([np.nan if (v := getattr(point, name)) is None else v for point in points], dtype=np.float64)
            for name in _NUMBERS
        }

    def best(self, which: Which | None = None) -> PathPoint:
        """The point with the smallest dev error, of one kind or of both; the smallest norm of equally good ones.

        It has its weights.
        """
        points = [*self.exact, *self.iterates] if which is None else [*self.points(which)]
        judged = [(p.dev_error, p.norm, i) for i, p in enumerate(points) if p.dev_error is not None]
        if not judged:
            raise ValueError("best() chooses by dev error: give regularization_path dev=(X, y)")
        return points[min(judged)[2]]

    def excess(self) -> FloatArray:
        """How far the dual-extragradient path's hinge loss is above each exact point's, shape ``(n_exact,)``.

        At the exact point's norm; between two iterates along the straight line, whose hinge loss is not below that of
        weights between them (it is convex). The least where the path has that norm more than once, NaN where never.
        """
        norms, hinges = (self.arrays("iterates")[name] for name in ("norm", "hinge"))
        before, after = norms[:-1], norms[1:]
        found = np.full(len(self.exact), np.nan)
        for place, point in enumerate(self.exact):
            low, high = point.norm * (1 - 1e-9), point.norm * (1 + 1e-9)
            met = np.flatnonzero((np.minimum(before, after) <= high) & (low <= np.maximum(before, after)))
            span = after[met] - before[met]
            share = np.divide(point.norm - before[met], span, out=np.zeros_like(span), where=span != 0)
            there = hinges[met] + np.clip(share, 0.0, 1.0) * (hinges[met + 1] - hinges[met])
            if there.size:
                found[place] = there.min() - point.hinge
        return found

    def model(self, point: PathPoint | None = None) -> Model:
        """The model of a point that has its weights; of :meth:`best` by default."""
        point = self.best() if point is None else point
        if point.weights is None:
            raise ValueError("of the iterates only the best on the dev data and the last one keep their weights")
        metadata = {"path": "iterate" if point.setting is None else self.parameter, **point.to_dict()}
        metadata = {name: value for name, value in metadata.items() if value is not None and value not in ("", False)}
        encoder, weights = self.encoder.to_model(point.weights)
        return Model(weights, encoder, metadata, self.n_jobs)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the weights as plain JSON values; numbers that are not finite become None."""
        return {
            "parameter": self.parameter,
            "exact": [point.to_dict() for point in self.exact],
            "iterates": [point.to_dict() for point in self.iterates],
        }


def _plain(value: Any) -> Any:
    """A JSON value: numbers that are not finite become None."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value

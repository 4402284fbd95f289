"""Callbacks: functions that get a frozen :class:`Record` at every certificate and may stop the run.

A callback is any function of a record; returning True stops the run. The ones here draw a progress bar, write JSON
lines and choose the stopping point on dev data.

A callback with a state may have ``state_dict()``, which returns arrays and numbers by name that it does not change
later, and ``load_state_dict(state)``: a run that resumes from a checkpoint restores the callback as it was.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin._terminal import is_quiet
from maxmargin.optimization.certificate import Certificate
from maxmargin.optimization.checkpoints.saved import array, count, number, require, value_of
from maxmargin.structures.base import FloatArray


@dataclass(frozen=True)
class Record:
    """The state of a run at one certificate.

    Attributes:
        iteration: iterations done.
        seconds: since the run started.
        certificate: smallest primal and largest dual so far.
        primal: objective of the current proposal.
        weights: the current proposal's weights, read-only.
        norm: its Euclidean norm.
        argmax: loss-augmented argmax passes so far.
        projections: projections of single examples so far.
        limit: the iteration limit.
        tol: the relative gap aimed at.
    """

    iteration: int
    seconds: float
    certificate: Certificate
    primal: float
    weights: FloatArray
    norm: float
    argmax: float
    projections: int
    limit: int
    tol: float

    def as_dict(self) -> dict[str, float | int]:
        """All but the weights, as plain numbers."""
        return {
            "iteration": self.iteration,
            "seconds": self.seconds,
            "primal": self.certificate.primal,
            "dual": self.certificate.dual,
            "gap": self.certificate.gap,
            "relative_gap": self.certificate.relative_gap,
            **({} if self.certificate.restricted_gap is None else {"restricted_gap": self.certificate.restricted_gap}),
            "current_primal": self.primal,
            "norm": self.norm,
            "argmax": self.argmax,
            "projections": self.projections,
        }


Callback = Callable[[Record], Any]


def checked_callbacks(callbacks: Any) -> list[Callback]:
    """Callbacks as a list; ValueError unless they are functions."""
    found = _checks.listed("callbacks", callbacks, "a list of functions of a record", sized=False)
    for callback in found:
        if not callable(callback):
            raise ValueError(f"callbacks must be functions of a record, got {shown(callback)}")
    return found


def asks_to_stop(callback: Callback, record: Record) -> bool:
    """Call a callback: whether its result is true."""
    found = callback(record)
    try:
        return bool(found)
    except Exception:  # an array, for example, is neither true nor false
        raise ValueError(f"callbacks must return True to stop, else False or None, got {shown(found)}") from None


class ProgressBar:
    """A progress bar on stderr, drawn only if that is a terminal: phase, passes, gap, tolerance, dev score, time.

    It moves as the logarithm of the gap does on its way to the tolerance, or with the iterations if these end first.

    Args:
        stream: where to draw; None for stderr.
        phase: what is being done.
        validation: whose dev scores are shown; it must be called before the bar.
    """

    def __init__(
        self, stream: TextIO | None = None, phase: str = "training", validation: Validation | None = None
    ) -> None:
        self._given, self._phase, self._validation = stream, phase, validation
        self._first: float | None = None
        self._bar: Any = None
        self._task: Any = None

    def __deepcopy__(self, memo: dict[int, Any]) -> ProgressBar:
        """A stream cannot be copied, but ``sklearn.base.clone`` must work: the copy draws on the same stream."""
        return ProgressBar(self._given, self._phase, self._validation)

    def __call__(self, record: Record) -> None:
        """Draw or move the bar."""
        gap = record.certificate.relative_gap
        # With bar and time, these fit into 80 columns.
        figures = f"pass {record.iteration}, gap {gap:.1e} (aim {record.tol:.0e})"
        if self._validation is not None and self._validation.history:
            figures += f", dev {self._validation.history[-1][1]:.4f}"
        share = record.iteration / max(record.limit, 1)
        if np.isfinite(gap) and gap > 0:
            self._first = max(self._first or gap, gap)
            if 0 < record.tol < self._first:
                share = max(share, float(np.log(self._first / gap) / np.log(self._first / record.tol)))
        self.show(self._phase, round(1000 * min(share, 1.0)), 1000, figures)

    def show(self, what: str, done: int, total: int | None, figures: str | None = None) -> None:
        """Draw or move the bar.

        Args:
            what: what is being done.
            done: how much of it is done.
            total: how much there is; None if this is not known.
            figures: what is shown beside it; None for these two numbers.
        """
        stream = self._given or sys.stderr
        if stream is None or not stream.isatty() or is_quiet():
            return
        if figures is None:
            figures = "" if total is None else f"{done} of {total}"
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=8),
                TextColumn("{task.fields[figures]}"),
                TimeElapsedColumn(),
                console=Console(file=stream),
                transient=True,
            )
            self._task = self._bar.add_task(what, total=total, figures=figures)
            self._bar.start()
        self._bar.update(self._task, description=what, completed=done, total=total, figures=figures)

    def close(self) -> None:
        """Remove the bar from the screen; the loop calls it at the end of every run."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class JsonLines:
    """One JSON object per certificate, appended to a file and flushed, so that a run can be followed and plotted."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __call__(self, record: Record) -> None:
        """Append one line."""
        row = {key: (value if np.isfinite(value) else None) for key, value in record.as_dict().items()}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


@dataclass
class Validation:
    """Choose the stopping point on dev data: keeps the weights with the best score.

    Args:
        score: weights to a number, larger is better.
        patience: stop after this many certificates without a better score; None never stops.

    After the run ``best_weights``, ``best_score``, ``best_iteration`` and ``history`` (iteration, score) are set.
    """

    score: Callable[[FloatArray], float]
    patience: int | None = None
    best_weights: FloatArray | None = field(default=None, init=False)
    best_score: float = field(default=-np.inf, init=False)
    best_iteration: int = field(default=0, init=False)
    history: list[tuple[int, float]] = field(default_factory=list, init=False)
    _waited: int = field(default=0, init=False)

    def __call__(self, record: Record) -> bool:
        """Score the current weights; True when patience has run out."""
        score = float(self.score(record.weights))
        self.history.append((record.iteration, score))
        if score > self.best_score:
            self.best_weights, self.best_score = record.weights.copy(), score
            self.best_iteration, self._waited = record.iteration, 0
        else:
            self._waited += 1
        return self.patience is not None and self._waited >= self.patience

    def state_dict(self) -> dict[str, Any]:
        """The best weights so far and all scores, for a checkpoint."""
        iterations, scores = zip(*self.history, strict=True) if self.history else ((), ())
        return {
            "weights": np.zeros(0) if self.best_weights is None else self.best_weights,
            "found": self.best_weights is not None,
            "score": self.best_score,
            "iteration": self.best_iteration,
            "waited": self._waited,
            "iterations": np.array(iterations, dtype=np.int64),
            "scores": np.array(scores, dtype=np.float64),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`state_dict` returned; ValueError if it makes no sense."""
        at, scores = value_of(state, "iterations"), value_of(state, "scores")
        fits = isinstance(at, np.ndarray) and isinstance(scores, np.ndarray) and at.shape == scores.shape == (len(at),)
        require(fits and at.dtype == np.int64 and scores.dtype == np.float64, "the dev scores are not pairs of numbers")
        require((at >= 0).all() and (np.diff(at) >= 0).all(), "the iterations of the dev scores do not rise")
        found, iteration, waited = count(state, "found", most=1), count(state, "iteration"), count(state, "waited")
        score = number(state, "score", infinite=True)
        require(not found or (scores[at == iteration] == score).any(), "the best dev score is not one of them")
        require(waited <= len(at), "more certificates without a better dev score than certificates")
        self.best_weights = array(state, "weights", np.float64, (None,)) if found else None
        self.best_score, self.best_iteration, self._waited = score, iteration, waited
        self.history = list(zip(at.tolist(), scores.tolist(), strict=True))

    @property
    def reason(self) -> str:
        """Why the run was stopped, for its message."""
        return (
            f"stopped as {self.patience} certificates brought no better dev score than that of iteration "
            f"{self.best_iteration}, whose weights are kept,"
        )

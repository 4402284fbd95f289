"""Checkpoints: a run that was killed goes on from its last save and ends with the same bits.

A save holds all that decides what comes next: the solver's state (:meth:`Solver.freeze`), the state of the random
numbers, the counters, the best weights, the figures of the history and what callbacks remember. It is taken between two
steps, at a certificate or where Ctrl-C ends the run, and written beside the old one, which it then replaces as a whole.
The format is that of model files (:mod:`maxmargin.model_file`): plain arrays, and numbers that are exact.

Cost: nothing between saves; for a save the state as plain arrays, which are hashed, written and let go.
"""

from __future__ import annotations

import dataclasses
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import _checks as checks
from maxmargin import model_file
from maxmargin._callers import callers_level
from maxmargin._version import __version__
from maxmargin.optimization.base import Counters, Frozen, Solver
from maxmargin.optimization.callbacks import Callback, Record
from maxmargin.optimization.certificate import Certificate
from maxmargin.problem import Problem
from maxmargin.structures.base import FloatArray

CHECKPOINT = "checkpoint"
"""The kind of such files, where model files have that of their model."""

_AFRESH = "remove it to start afresh"


class CheckpointError(ValueError):
    """A checkpoint cannot be gone on from, or not be written."""


@dataclass(frozen=True)
class Checkpoint:
    """Where a run is saved, how often, and what it belongs to.

    Attributes:
        path: the file. Where it exists a run goes on from it.
        every: seconds between saves, which are made at certificates; 0 saves at each.
        fingerprint: a word for what the problem itself does not show, such as the files that it was made from; a save
            with another one is refused.
        keep: whether an estimator leaves the file when it is done, for :meth:`remove` once the model is stored.
    """

    path: str | Path
    every: float = 30.0
    fingerprint: str = ""
    keep: bool = False

    def __post_init__(self) -> None:
        path: Any = self.path
        fingerprint: Any = self.fingerprint
        if not isinstance(path, (str, Path)) or not str(path):
            raise ValueError(f"the path of a checkpoint must be the name of a file, got {path!r}")
        checks.number("every", self.every, least=0, infinite=True, hint="seconds between saves; 30 is a good choice")
        if not isinstance(fingerprint, str):
            raise ValueError(f"fingerprint must be a string, got {fingerprint!r}")
        checks.flag("keep", self.keep)

    def remove(self) -> None:
        """Delete the file, if there is one."""
        Path(self.path).unlink(missing_ok=True)


@dataclass(frozen=True, eq=False)
class Moment:
    """A run between two steps.

    Attributes:
        state: the solver's, frozen.
        random: the state of the random numbers.
        counters: the work done.
        best: the best weights so far, or None before the first certificate.
        figures: primal, dual, hinge and size that go with them.
        history: the records so far.
        callbacks: for each callback with a memory its type's name and what it remembers.
        warm: for each shard what its next argmax starts from.
        next_check: the iteration of the next certificate.
        seconds: time spent.
        asked: why a callback wants the run to stop; empty if none does.
    """

    state: Frozen
    random: dict[str, Any]
    counters: Counters
    best: FloatArray | None
    figures: tuple[float, ...]
    history: tuple[Record, ...]
    callbacks: tuple[tuple[str, Frozen], ...]
    warm: tuple[FloatArray | None, ...]
    next_check: int
    seconds: float
    asked: str


@dataclass(eq=False)
class Saver:
    """What the loop talks to: reads the file at the start, writes it when it is time."""

    checkpoint: Checkpoint
    identity: dict[str, Any]
    relaxed: bool
    _written: bool = False
    _saved_at: float = field(default_factory=time.perf_counter)

    @classmethod
    def of(cls, checkpoint: Checkpoint, problem: Problem, solver: Solver, random_state: Any) -> Saver:
        """Check that runs of this solver can be saved, and there."""
        if solver.checkpoint_unsupported:
            raise CheckpointError(f"a run of {type(solver).__name__} cannot be saved: {solver.checkpoint_unsupported}")
        if random_state is not None and not isinstance(random_state, (int, np.integer)):
            raise CheckpointError(f"with a checkpoint random_state must be None or an integer, got {random_state!r}")
        _check_folder(Path(checkpoint.path))
        return cls(checkpoint, _identity(checkpoint, problem, solver, random_state), problem.relaxed)

    def load(self) -> Moment | None:
        """The moment in the file; None where there is no file. CheckpointError where it is not this run's."""
        path = self.checkpoint.path
        try:
            header, arrays = model_file.read(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CheckpointError(f"{path}: the checkpoint cannot be read: {error.strerror}") from None
        except model_file.ModelFileError:
            raise CheckpointError(
                f"{path} is no checkpoint, or a truncated or damaged one; name another file, or {_AFRESH}"
            ) from None
        if header.get("kind") != CHECKPOINT:
            raise CheckpointError(f"{path} holds a model and no checkpoint; name another file")
        if difference := _difference(header.get("run"), self.identity):
            raise CheckpointError(f"{path}: this checkpoint is of another run: {difference}; {_AFRESH}")
        try:
            restored = _restored(header, arrays, self.relaxed)
        except (KeyError, TypeError, ValueError, IndexError, OverflowError):
            raise self.damaged() from None
        self._written = True
        return restored

    def damaged(self) -> CheckpointError:
        """The error for a file whose contents make no sense."""
        return CheckpointError(f"{self.checkpoint.path}: this checkpoint is damaged; {_AFRESH}")

    def moved(self) -> None:
        """The run is about to leave the moment that was written."""
        self._written = False

    def keep(self, moment: Callable[[], Moment]) -> None:
        """Write the moment if it is time; it is made only then, and not kept."""
        self.moved()
        if time.perf_counter() - self._saved_at >= self.checkpoint.every:
            self.finish(moment)

    def finish(self, moment: Callable[[], Moment]) -> None:
        """Write the moment, unless that was done; a disk that fails is told and does not end the run."""
        if self._written:
            return
        header, arrays = _stored(moment())
        try:
            model_file.write(self.checkpoint.path, {"kind": CHECKPOINT, "run": self.identity, **header}, arrays)
        except OSError as error:
            warnings.warn(
                f"{self.checkpoint.path}: the checkpoint could not be written: {error.strerror}; training goes on, and "
                "if it is interrupted, from the last checkpoint that could",
                RuntimeWarning,
                stacklevel=callers_level(),
            )
        else:
            self._written = True
        self._saved_at = time.perf_counter()


def remembered(callbacks: Sequence[Callback]) -> tuple[tuple[str, Frozen], ...]:
    """What the callbacks with a memory remember."""
    return tuple((type(one).__name__, one.freeze()) for one in _with_memory(callbacks))


def remind(callbacks: Sequence[Callback], frozen: Sequence[tuple[str, Frozen]]) -> None:
    """Give callbacks back what they remembered; CheckpointError where they are not the same ones."""
    found = _with_memory(callbacks)
    names, saved = [type(one).__name__ for one in found], [name for name, _ in frozen]
    if names != saved:
        raise CheckpointError(
            f"the checkpoint was saved with {', '.join(saved) or 'no'} callbacks that remember something, this run has "
            f"{', '.join(names) or 'none'}; give the same ones, or remove the checkpoint to start afresh"
        )
    for callback, (_, values) in zip(found, frozen, strict=True):
        callback.thaw(values)


def _with_memory(callbacks: Sequence[Callback]) -> list[Any]:
    return [one for one in callbacks if hasattr(one, "freeze") and hasattr(one, "thaw")]


def _check_folder(path: Path) -> None:
    """Whether a file can be written there: to learn so after an hour would be late."""
    if path.is_dir():
        raise CheckpointError(f"{path} is a folder; name a file for the checkpoint")
    if not path.parent.is_dir():
        raise CheckpointError(f"{path}: the folder of the checkpoint does not exist; make it, or name another")
    if not os.access(path.parent, os.W_OK):
        raise CheckpointError(f"{path}: the folder of the checkpoint is not writable; name another")


def _identity(checkpoint: Checkpoint, problem: Problem, solver: Solver, random_state: Any) -> dict[str, Any]:
    """What must be the same for a run to go on with the same bits, as JSON."""
    names = [one.name for one in dataclasses.fields(solver)] if dataclasses.is_dataclass(solver) else list(vars(solver))
    seed = random_state if random_state is None else str(random_state)
    return {
        "version": __version__,
        "solver": type(solver).__name__,
        "settings": {name: repr(getattr(solver, name)) for name in names if name != "max_iter"},
        "random_state": seed,
        "shape": {
            "examples": problem.structure.n_examples,
            "parts": problem.structure.n_parts,
            "weights": problem.n_weights,
        },
        "problem": problem.fingerprint(),
        "fingerprint": checkpoint.fingerprint,
    }


def _difference(saved: Any, now: dict[str, Any]) -> str:
    """The first thing in which two runs differ, in words; empty where they agree."""
    if not isinstance(saved, dict):
        return "it does not say which"
    for key, says in (("version", "maxmargin"), ("solver", "the solver"), ("random_state", "random_state")):
        if saved.get(key) != now[key]:
            return f"{says} was {saved.get(key)} there and is {now[key]} here"
    for key in ("settings", "shape", "problem"):
        values = saved.get(key)
        if not isinstance(values, dict):
            return f"it does not say its {key}"
        for name, value in now[key].items():
            if values.get(name) == value:
                continue
            if key == "problem":
                return "C, radius or norm differ" if name == "regularization" else f"the {name} differ"
            there = f"{values.get(name)} {name}" if key == "shape" else f"{name}={values.get(name)}"
            return f"it has {there}, this one {value}"
    if saved.get("fingerprint") != now["fingerprint"]:
        return f"it was made for {saved.get('fingerprint')!r}, this one is for {now['fingerprint']!r}"
    return ""


_FIGURES = ("iteration", "seconds", "primal", "norm", "argmax", "projections", "limit", "tol")
_BOUNDS = ("primal", "dual", "hinge")
_WHOLE = ("iteration", "projections", "limit")


def _split(frozen: Frozen, prefix: str, arrays: dict[str, Any]) -> dict[str, int | str]:
    """Arrays go to the file's arrays, numbers to its header: whole ones as they are, others in hexadecimal."""
    numbers: dict[str, int | str] = {}
    for name, value in frozen.items():
        if isinstance(value, np.ndarray):
            arrays[prefix + name] = value
        else:
            numbers[name] = int(value) if isinstance(value, (int, np.integer)) else float(value).hex()
    return numbers


def _joined(numbers: Any, prefix: str, arrays: dict[str, Any]) -> Frozen:
    frozen: Frozen = {name: _number(value) for name, value in numbers.items()}
    return frozen | {name.removeprefix(prefix): one for name, one in arrays.items() if name.startswith(prefix)}


def _number(value: Any) -> int | float:
    return float.fromhex(value) if isinstance(value, str) else int(value)


def _stored(moment: Moment) -> tuple[dict[str, Any], dict[str, Any]]:
    arrays: dict[str, Any] = {}
    rows = [
        [*(getattr(one, name) for name in _FIGURES), *(getattr(one.certificate, name) for name in _BOUNDS)]
        for one in moment.history
    ]
    arrays["history"] = np.array(rows, dtype=np.float64).reshape(len(rows), len(_FIGURES) + len(_BOUNDS))
    if moment.best is not None:
        arrays["best"] = moment.best
    for number, warm in enumerate(moment.warm):
        if warm is not None:
            arrays[f"warm.{number}"] = warm
    header = {
        "state": _split(moment.state, "state.", arrays),
        "random": moment.random,
        "counters": _split(vars(moment.counters), "", {}),
        "figures": [value.hex() for value in map(float, moment.figures)],
        "callbacks": [
            {"type": name, "numbers": _split(frozen, f"callback.{number}.", arrays)}
            for number, (name, frozen) in enumerate(moment.callbacks)
        ],
        "shards": len(moment.warm),
        "next_check": moment.next_check,
        "seconds": float(moment.seconds).hex(),
        "asked": moment.asked,
    }
    return header, arrays


def _restored(header: dict[str, Any], arrays: dict[str, Any], relaxed: bool) -> Moment:
    history = []
    for row in arrays["history"].tolist():
        values = dict(zip(_FIGURES, row[: len(_FIGURES)], strict=True))
        bounds = dict(zip(_BOUNDS, row[len(_FIGURES) :], strict=True))
        values |= {name: int(values[name]) for name in _WHOLE}
        history.append(Record(**values, certificate=Certificate(**bounds, relaxed=relaxed), weights=np.zeros(0)))
    counters = {name: _number(value) for name, value in header["counters"].items()}
    return Moment(
        state=_joined(header["state"], "state.", arrays),
        random=dict(header["random"]),
        counters=Counters(**counters),  # type: ignore[arg-type]
        best=arrays.get("best"),
        figures=tuple(float.fromhex(value) for value in header["figures"]),
        history=tuple(history),
        callbacks=tuple(
            (str(one["type"]), _joined(one["numbers"], f"callback.{number}.", arrays))
            for number, one in enumerate(header["callbacks"])
        ),
        warm=tuple(arrays.get(f"warm.{number}") for number in range(int(header["shards"]))),
        next_check=int(header["next_check"]),
        seconds=float.fromhex(header["seconds"]),
        asked=str(header["asked"]),
    )

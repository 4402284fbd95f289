"""Checkpoints: a run that was killed resumes from its last save and ends with the same bits.

A checkpoint holds everything that decides what comes next: the solver's state (:meth:`Solver.state_dict`), the state of
the random numbers, the counters, the best weights, the history and the states of callbacks. It is taken between two
steps, at a certificate or where Ctrl-C ends the run, and written to a new file that then replaces the old one.
The format is that of model files (:mod:`maxmargin.model_file`): plain arrays, and numbers that are exact.

Cost: nothing between saves; for a save the state as plain arrays, which are hashed, written and released.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import _checks, model_file
from maxmargin._callers import callers_level
from maxmargin._interrupts import defer_interrupts
from maxmargin._version import __version__
from maxmargin.optimization.base import Counters, Solver, StateDict, weight_sized
from maxmargin.optimization.callbacks import Callback, Record
from maxmargin.optimization.carry import Carry
from maxmargin.optimization.certificate import Certificate, Responses
from maxmargin.problem import Problem

_START_OVER = "remove it to start over"


class CheckpointError(ValueError):
    """A checkpoint cannot be resumed, or cannot be written."""


@dataclass(frozen=True)
class Checkpoint:
    """Where a run is saved, how often, and what it belongs to.

    Attributes:
        path: the file. If it exists, a run resumes from it.
        every: seconds between saves, which are made at certificates; 0 saves at each.
        fingerprint: a string for what the problem itself does not show, such as the files that it was made from; a
            checkpoint with a different one is refused.
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
        _checks.number("every", self.every, least=0, infinite=True, hint="seconds between saves; 30 is a good choice")
        if not isinstance(fingerprint, str):
            raise ValueError(f"fingerprint must be a string, got {fingerprint!r}")
        _checks.flag("keep", self.keep)

    def beside(self, suffix: str) -> Checkpoint:
        """The same with a file whose name has a suffix more, for one of several runs."""
        return dataclasses.replace(self, path=f"{self.path}{suffix}")

    def remove(self) -> None:
        """Delete the file, if there is one."""
        Path(self.path).unlink(missing_ok=True)


class Checkpointer:
    """The loop's view of checkpoints; this one saves nothing."""

    def resume(self, carry: Carry) -> bool:
        """Restore the run from the file; False if there is none."""
        return False

    def step(self) -> contextlib.AbstractContextManager[None]:
        """Surround a step of the solver, in the middle of which nothing can be saved."""
        return contextlib.nullcontext()

    def certificate(self, carry: Carry) -> contextlib.AbstractContextManager[None]:
        """Surround a certificate, after which the run is saved if it is time."""
        return contextlib.nullcontext()

    def finish(self, carry: Carry) -> None:
        """Save the run where it ends, unless that is in the middle of a step."""


class FileCheckpointer(Checkpointer):
    """Restores a run from a file and saves it there; CheckpointError if the solver has no ``state_dict``."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        problem: Problem,
        solver: Solver,
        random_state: Any,
        callbacks: Sequence[Callback],
    ) -> None:
        if solver.checkpoint_unsupported:
            raise CheckpointError(f"a run of {type(solver).__name__} cannot be saved: {solver.checkpoint_unsupported}")
        if random_state is not None and not isinstance(random_state, (int, np.integer)):
            raise CheckpointError(f"with a checkpoint random_state must be None or an integer, got {random_state!r}")
        _check_folder(Path(checkpoint.path))
        self.checkpoint, self.solver, self.callbacks = checkpoint, solver, callbacks
        self.identity = _identity(checkpoint, problem, solver, random_state)
        self._between_steps = self._written = False
        self._before_certificate: Callable[[], tuple[dict[str, Any], dict[str, Any]]] | None = None
        self._saved_at = time.perf_counter()

    def resume(self, carry: Carry) -> bool:
        """Restore the run from the file; CheckpointError if it is damaged or of another run."""
        path = self.checkpoint.path
        try:
            header, arrays = model_file.read(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise CheckpointError(f"{path}: the checkpoint cannot be read: {error.strerror}") from None
        except model_file.ModelFileError:
            raise CheckpointError(
                f"{path} is not a checkpoint, or it is truncated or damaged; name another file, or {_START_OVER}"
            ) from None
        if header.get("kind") != model_file.CHECKPOINT:
            raise CheckpointError(f"{path} holds a model, not a checkpoint; name another file")
        if difference := _difference(header.get("run"), self.identity):
            raise CheckpointError(f"{path}: this checkpoint is of another run: {difference}; {_START_OVER}")
        try:
            self._restore(carry, header, arrays)
        except CheckpointError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, OverflowError):
            raise CheckpointError(f"{path}: this checkpoint is damaged; {_START_OVER}") from None
        self._between_steps = self._written = True
        return True

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Ctrl-C waits until the step is complete, so that the run can be saved there."""
        with defer_interrupts():
            self._between_steps = self._written = False
            yield
            self._between_steps = True

    @contextlib.contextmanager
    def certificate(self, carry: Carry) -> Iterator[None]:
        """If the certificate is interrupted, the run before it is saved and a resumed run takes it again."""
        self._between_steps, self._before_certificate = True, self._capture(carry)
        yield
        self._before_certificate, self._written = None, False
        # Warm starts that are not arrays are dropped before saving, so that a resumed run matches an uninterrupted one.
        carry.run.warm = [one if isinstance(one, np.ndarray) else None for one in carry.run.warm]
        self.save_if_due(carry)

    def save_if_due(self, carry: Carry) -> None:
        """Save the run if the last save is long enough ago."""
        if time.perf_counter() - self._saved_at >= self.checkpoint.every:
            self._save(carry)

    def finish(self, carry: Carry) -> None:
        """Save the run where it ends; Ctrl-C leaves the file that is there."""
        if self._between_steps:
            self._save(carry)

    def _capture(self, carry: Carry) -> Callable[[], tuple[dict[str, Any], dict[str, Any]]]:
        """The run as it stands, as header and arrays of a file.

        The solver's state, which changes in steps only, is turned into arrays when the result is called.
        """
        state, run, best, history = carry.state, carry.run, carry.best, tuple(carry.history)
        arrays: dict[str, Any] = {f"warm.{i}": warm for i, warm in enumerate(run.warm) if warm is not None}
        if best.weights is not None:
            arrays["best"] = best.weights
        if len(best.responses):
            arrays["responses"] = best.responses.points
        header: dict[str, Any] = {
            "kind": model_file.CHECKPOINT,
            "run": self.identity,
            "random": run.random.bit_generator.state,
            "counters": _split(vars(run.counters), "", {}),
            "bounds": [float(bound).hex() for bound in best.bounds],
            "callbacks": [
                {"type": type(one).__name__, "numbers": _split(one.state_dict(), f"callback.{number}.", arrays)}
                for number, one in enumerate(_stateful(self.callbacks))
            ],
            "shards": len(run.warm),
            "next_check": carry.schedule.next_check,
            "asked": carry.asked,
        }

        def stored() -> tuple[dict[str, Any], dict[str, Any]]:
            header["state"] = _split(self.solver.state_dict(state), "state.", arrays)
            header["seconds"] = carry.clock.seconds.hex()
            rows = [
                [*(getattr(one, name) for name in _FIELDS), *(getattr(one.certificate, name) for name in _BOUNDS)]
                for one in history
            ]
            arrays["history"] = np.array(rows, dtype=np.float64).reshape(len(rows), len(_FIELDS) + len(_BOUNDS))
            return header, arrays

        return stored

    def _restore(self, carry: Carry, header: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Load what :meth:`_capture` stored."""
        run = carry.run
        run.counters = Counters(**_joined(header["counters"], "", {}))
        carry.state = self.solver.load_state_dict(run, _joined(header["state"], "state.", arrays))
        best = weight_sized(run, arrays["best"]) if "best" in arrays else None
        bounds = tuple(float.fromhex(bound) for bound in header["bounds"])
        carry.best.restore(best, bounds, Responses(arrays.get("responses")))
        run.random.bit_generator.state = header["random"]
        names = [f"warm.{number}" for number in range(int(header["shards"]))]
        run.warm = [np.array(arrays[name]) if name in arrays else None for name in names]
        self._restore_callbacks(
            [
                (str(one["type"]), _joined(one["numbers"], f"callback.{number}.", arrays))
                for number, one in enumerate(header["callbacks"])
            ]
        )
        carry.history = [_record(row, run.problem.relaxed) for row in arrays["history"].tolist()]
        carry.schedule.next_check, carry.asked = int(header["next_check"]), str(header["asked"])
        carry.clock.began -= float.fromhex(header["seconds"])

    def _restore_callbacks(self, states: Sequence[tuple[str, StateDict]]) -> None:
        """Load the states into callbacks of the same types; CheckpointError if these are not the same."""
        found = _stateful(self.callbacks)
        names, saved = [type(one).__name__ for one in found], [name for name, _ in states]
        if names != saved:
            raise CheckpointError(
                f"the checkpoint was saved with the stateful callbacks {', '.join(saved) or 'none'}, this run has "
                f"{', '.join(names) or 'none'}; give the same ones, or remove the checkpoint to start over"
            )
        for callback, (_, state) in zip(found, states, strict=True):
            callback.load_state_dict(state)

    def _save(self, carry: Carry) -> None:
        """Write the run unless that was done; a disk that fails gives a warning and does not end the run."""
        if self._written:
            return
        header, arrays = (self._before_certificate or self._capture(carry))()
        try:
            model_file.write(self.checkpoint.path, header, arrays)
        except OSError as error:
            warnings.warn(
                f"{self.checkpoint.path}: the checkpoint could not be written: {error.strerror}; training continues, "
                "and if it is interrupted it resumes from the last checkpoint that was written",
                RuntimeWarning,
                stacklevel=callers_level(),
            )
        else:
            self._written = True
        self._saved_at = time.perf_counter()


def _stateful(callbacks: Sequence[Callback]) -> list[Any]:
    return [one for one in callbacks if hasattr(one, "state_dict") and hasattr(one, "load_state_dict")]


def _check_folder(path: Path) -> None:
    """CheckpointError unless a file can be written there, so that a run fails at its start and not after an hour."""
    if path.is_dir():
        raise CheckpointError(f"{path} is a folder; name a file for the checkpoint")
    if not path.parent.is_dir():
        raise CheckpointError(f"{path}: the folder of the checkpoint does not exist; create it, or name another")
    if not os.access(path.parent, os.W_OK):
        raise CheckpointError(f"{path}: the folder of the checkpoint is not writable; name another")


def _identity(checkpoint: Checkpoint, problem: Problem, solver: Solver, random_state: Any) -> dict[str, Any]:
    """Everything that must be the same for a run to resume with the same bits, as JSON."""
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
    """The first difference between two runs, in words; empty if they agree."""
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


_FIELDS = ("iteration", "seconds", "primal", "norm", "argmax", "projections", "limit", "tol")
_BOUNDS = ("primal", "dual", "hinge", "radius", "restricted_dual")
_INTEGERS = ("iteration", "projections", "limit")


def _split(state: StateDict, prefix: str, arrays: dict[str, Any]) -> dict[str, int | str]:
    """Arrays go to the file's arrays, numbers to its header: integers as they are, floats in hexadecimal."""
    numbers: dict[str, int | str] = {}
    for name, value in state.items():
        if isinstance(value, np.ndarray):
            arrays[prefix + name] = value
        else:
            numbers[name] = int(value) if isinstance(value, (int, np.integer)) else float(value).hex()
    return numbers


def _joined(numbers: Any, prefix: str, arrays: dict[str, Any]) -> StateDict:
    """The inverse of :func:`_split`."""
    state: StateDict = {
        name: float.fromhex(value) if isinstance(value, str) else int(value) for name, value in numbers.items()
    }
    return state | {name.removeprefix(prefix): one for name, one in arrays.items() if name.startswith(prefix)}


def _record(row: list[float], relaxed: bool) -> Record:
    """The record of one row of the history."""
    values: dict[str, Any] = dict(zip(_FIELDS, row[: len(_FIELDS)], strict=True))
    values |= {name: int(values[name]) for name in _INTEGERS}
    bounds: dict[str, Any] = dict(zip(_BOUNDS, row[len(_FIELDS) :], strict=True))
    # None was stored as NaN.
    absent = {name: None for name in ("radius", "restricted_dual") if np.isnan(bounds[name])}
    certificate = Certificate(**(bounds | absent), relaxed=relaxed)
    return Record(**values, certificate=certificate, weights=np.zeros(0))

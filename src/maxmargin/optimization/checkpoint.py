"""Checkpoints: a run that was killed resumes from its last save and ends with the same bits.

A checkpoint holds everything that decides what comes next: the solver's state (:meth:`Solver.state_dict`), the state of
the random numbers, the counters, the best weights, the history and the states of callbacks. It is taken between two
steps, at a certificate or where Ctrl-C ends the run, and written to a new file that then replaces the old one, which is
kept beside it: a run whose last checkpoint is damaged resumes from the one before and ends with the same bits, too.
The format is that of model files (:mod:`maxmargin.model_file`): plain arrays, and numbers that are exact. All of it is
checked before a run resumes (:mod:`maxmargin.optimization.restored` and ``load_state_dict`` of the solver).

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
from maxmargin._messages import FileContentError, shortened, shown
from maxmargin._version import __version__
from maxmargin.optimization import restored
from maxmargin.optimization.base import Solver, StateDict
from maxmargin.optimization.callbacks import Callback, Validation
from maxmargin.optimization.carry import Carry
from maxmargin.optimization.certificate import CertificateError
from maxmargin.optimization.restored import BOUNDS, FIELDS
from maxmargin.optimization.saved import require, vector
from maxmargin.problem import Problem

PREVIOUS = ".previous"
"""The end of the name of the file that holds the save before the last one."""

_START_OVER = "remove it to start over"


class CheckpointError(FileContentError):
    """A checkpoint cannot be resumed, or cannot be written."""


class _DamagedError(CheckpointError):
    """A checkpoint is damaged, so that the previous one may help."""


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
        _checks.path("the path of a checkpoint", path)
        _checks.number("every", self.every, least=0, infinite=True, hint="seconds between saves; 30 is a good choice")
        if not isinstance(fingerprint, str):
            raise ValueError(f"fingerprint must be a string, got {shown(fingerprint)}")
        _checks.flag("keep", self.keep)

    def beside(self, suffix: str) -> Checkpoint:
        """The same with a file whose name has a suffix more, for one of several runs."""
        return dataclasses.replace(self, path=f"{self.path}{suffix}")

    @property
    def previous(self) -> Path:
        """The file of the save before the last one, from which a run resumes if the last one is damaged."""
        return Path(f"{self.path}{PREVIOUS}")

    def remove(self) -> None:
        """Delete the file and the previous one, if they are there."""
        for path in (Path(self.path), self.previous):
            path.unlink(missing_ok=True)


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

    def contradicted(self, error: CertificateError) -> Exception:
        """The error to raise when bounds contradict each other."""
        return error


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
            raise CheckpointError(
                f"with a checkpoint random_state must be None or an integer, got {shown(random_state)}"
            )
        _check_folder(Path(checkpoint.path))
        self.checkpoint, self.solver, self.callbacks = checkpoint, solver, callbacks
        self.identity = _identity(checkpoint, problem, solver, random_state)
        self._between_steps = self._written = False
        self._resumed = False
        self._whole = False  # whether the file there is one that this run has read or written
        self._before_certificate: Callable[[], tuple[dict[str, Any], dict[str, Any]]] | None = None
        self._saved_at = time.perf_counter()

    def resume(self, carry: Carry) -> bool:
        """Restore the run from the file or, if that is damaged, from the previous one; False if there is none.

        CheckpointError if both are damaged, or the file is of another run.
        """
        path, previous = Path(self.checkpoint.path), self.checkpoint.previous
        try:
            found = self._resume_from(path, carry)
        except _DamagedError as damage:
            try:
                found = self._resume_from(previous, carry)
            except _DamagedError as other:
                raise CheckpointError(f"{damage}; {other}; name another file, or remove both to start over") from None
            except CheckpointError:  # of another run
                found = False
            if not found:
                raise CheckpointError(f"{damage}; name another file, or {_START_OVER}") from None
            warnings.warn(
                f"{damage}; training resumes from the checkpoint before it, {previous}, at iteration {carry.iteration}",
                RuntimeWarning,
                stacklevel=callers_level(),
            )
        else:
            self._whole = found
            if not found:
                previous.unlink(missing_ok=True)  # of a run that was to start over
        self._between_steps = self._written = self._resumed = found
        return found

    def _resume_from(self, path: Path, carry: Carry) -> bool:
        """Restore the run from a file; False if there is none."""
        try:
            header, arrays = model_file.read(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise CheckpointError(f"{path}: the checkpoint cannot be read: {error.strerror}") from None
        except model_file.ModelFileError:
            raise _DamagedError(f"{path} is not a checkpoint, or it is truncated or damaged") from None
        if header.get("kind") != model_file.CHECKPOINT:
            raise CheckpointError(f"{path} holds a model, not a checkpoint; name another file")
        if difference := _difference(header.get("run"), self.identity):
            raise CheckpointError(f"{path}: this checkpoint is of another run: {difference}; {_START_OVER}")
        try:
            self._restore(carry, header, arrays)
        except (CheckpointError, MemoryError):
            raise
        except Exception as error:  # of a solver or callback of the user's own, too
            reason = shortened(str(error) or type(error).__name__, 300)
            raise _DamagedError(f"{path}: this checkpoint is damaged: {reason}") from None
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

    def contradicted(self, error: CertificateError) -> Exception:
        """In a run that was resumed the numbers of the file may be wrong, not those of the structure."""
        if not self._resumed:
            return error
        return CheckpointError(
            f"{self.checkpoint.path}: the run that resumed from this checkpoint contradicts its bounds; {_START_OVER}, "
            f"and if that run ends like this, too: {error}"
        )

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
                [*(getattr(one, name) for name in FIELDS), *(getattr(one.certificate, name) for name in BOUNDS)]
                for one in history
            ]
            arrays["history"] = np.array(rows, dtype=np.float64).reshape(len(rows), len(FIELDS) + len(BOUNDS))
            return header, arrays

        return stored

    def _restore(self, carry: Carry, header: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Load what :meth:`_capture` stored; ValueError if it makes no sense. Nothing changes before all is checked."""
        run, minimizes = carry.run, self.solver.minimizes
        missing = [name for name in _ENTRIES if name not in header]
        require(not missing, f"{' and '.join(missing)} is missing")
        counters = restored.counters_of(header["counters"])
        history = restored.history_of(arrays, counters, run.problem, minimizes)
        best = vector(arrays, "best", run.problem.n_weights) if "best" in arrays else None
        bounds = restored.bounds_of(header["bounds"], len(carry.best.bounds))
        warm = restored.warm_of(run, header["shards"], arrays)
        restored.check_bounds(run, best, bounds, history, warm, minimizes)
        responses = restored.responses_of(arrays, history)
        random = restored.random_of(run.random, header["random"])
        watched = minimizes or bool(self.callbacks)
        next_check = restored.next_check_of(header["next_check"], counters.iterations, history, watched)
        seconds = restored.hexadecimal(header["seconds"], "seconds")
        require(0.0 <= seconds < float("inf"), "seconds are negative or infinite")
        require(isinstance(header["asked"], str), "the reason to stop is not a text")
        state = self.solver.load_state_dict(
            dataclasses.replace(run, counters=counters, random=random, warm=warm),
            _joined(header["state"], "state.", arrays),
        )
        self._restore_callbacks(header["callbacks"], arrays, run.problem)
        run.counters, run.random, run.warm = counters, random, warm
        carry.state, carry.history = state, history
        carry.best.restore(best, bounds, responses)
        carry.schedule.next_check, carry.asked = next_check, header["asked"]
        carry.clock.began -= seconds

    def _restore_callbacks(self, given: Any, arrays: dict[str, Any], problem: Problem) -> None:
        """Load the states into callbacks of the same types; CheckpointError if these are not the same."""
        fits = isinstance(given, list) and all(
            isinstance(one, dict) and isinstance(one.get("type"), str) for one in given
        )
        require(fits, "its callbacks are not a list of states")
        found = _stateful(self.callbacks)
        names, saved = [type(one).__name__ for one in found], [one["type"] for one in given]
        if names != saved:
            raise CheckpointError(
                f"the checkpoint was saved with the stateful callbacks {', '.join(saved) or 'none'}, this run has "
                f"{', '.join(names) or 'none'}; give the same ones, or remove the checkpoint to start over"
            )
        for number, (callback, one) in enumerate(zip(found, given, strict=True)):
            callback.load_state_dict(_joined(one.get("numbers"), f"callback.{number}.", arrays))
            if isinstance(callback, Validation) and callback.best_weights is not None:
                vector(
                    {"the best weights on dev data": callback.best_weights},
                    "the best weights on dev data",
                    problem.n_weights,
                )

    def _save(self, carry: Carry) -> None:
        """Write the run unless that was done; a disk that fails gives a warning and does not end the run."""
        if self._written:
            return
        header, arrays = (self._before_certificate or self._capture(carry))()
        try:
            model_file.write(self.checkpoint.path, header, arrays, self.checkpoint.previous if self._whole else None)
        except OSError as error:
            warnings.warn(
                f"{self.checkpoint.path}: the checkpoint could not be written: {error.strerror}; training continues, "
                "and if it is interrupted it resumes from the last checkpoint that was written",
                RuntimeWarning,
                stacklevel=callers_level(),
            )
        else:
            self._written = self._whole = True
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


_ENTRIES = ("random", "counters", "bounds", "callbacks", "shards", "next_check", "asked", "state", "seconds")
"""What the header says besides the identity of the run."""


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
    state = restored.numbers_of(numbers, "numbers of a state")
    return state | {name.removeprefix(prefix): one for name, one in arrays.items() if name.startswith(prefix)}

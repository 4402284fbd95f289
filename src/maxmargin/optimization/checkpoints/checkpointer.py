"""Checkpoints: a run that was killed resumes from its last save and ends with the same bits.

A checkpoint holds everything that decides what comes next: the solver's state (:meth:`Solver.state_dict`), the state of
the random numbers, the counters, the best weights, the history and the states of callbacks. It is taken between two
steps, at a certificate or where Ctrl-C ends the run, and written to a new file that then replaces the old one, which is
kept beside it: a run whose last checkpoint is damaged resumes from the one before and ends with the same bits, too.
The format is that of model files (:mod:`maxmargin.model_file`): plain arrays, and numbers that are exact. All of it is
checked before a run resumes (:mod:`maxmargin.optimization.checkpoints.restored` and ``load_state_dict`` of the solver).

Cost: nothing between saves; for a save the state as plain arrays, which are hashed, written and released.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin._interrupts import defer_interrupts
from maxmargin._messages import shown
from maxmargin._version import __version__
from maxmargin.optimization.callbacks import Callback, Validation
from maxmargin.optimization.carry import Carry
from maxmargin.optimization.certificate import CertificateError
from maxmargin.optimization.checkpoints import restored
from maxmargin.optimization.checkpoints.files import START_OVER, Checkpoint, CheckpointError, CheckpointFiles
from maxmargin.optimization.checkpoints.restored import BOUNDS, FIELDS
from maxmargin.optimization.checkpoints.saved import StateDict, part_of, require, vector
from maxmargin.optimization.solver import Solver
from maxmargin.problem import BaseProblem


class Checkpointer:
    """The loop's view of checkpoints; this one saves nothing."""

    def resume(self, carry: Carry) -> bool:
        """Restore the run from the file; False if there is none."""
        return False

    def step(self, carry: Carry) -> contextlib.AbstractContextManager[None]:
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

    def close(self) -> None:
        """Let other runs use the files."""


class FileCheckpointer(Checkpointer):
    """Restores a run from a file and saves it there; CheckpointError if the solver has no ``state_dict``."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        solver: Solver,
        random_state: Any,
        callbacks: Sequence[Callback],
        shards: int = 1,
    ) -> None:
        if solver.checkpoint_unsupported:
            raise CheckpointError(f"a run of {type(solver).__name__} cannot be saved: {solver.checkpoint_unsupported}")
        if random_state is not None and not isinstance(random_state, (int, np.integer)):
            raise CheckpointError(
                f"with a checkpoint random_state must be None or an integer, got {shown(random_state)}"
            )
        self.checkpoint, self.solver, self.callbacks = checkpoint, solver, callbacks
        self.identity: dict[str, Any] = {}
        self._random_state, self._shards = random_state, shards
        self._remembers = type(solver).memory_dict is not Solver.memory_dict
        self._between_steps = self._written = False
        self._resumed = False
        self._before_certificate: Callable[[], tuple[dict[str, Any], dict[str, Any]]] | None = None
        self._last: tuple[dict[str, Any], dict[str, Any]] | None = None
        self._saved_at = time.perf_counter()
        self.files = CheckpointFiles(checkpoint)

    def close(self) -> None:
        """Let other runs use the files."""
        self.files.close()

    def resume(self, carry: Carry) -> bool:
        """Restore the run from the newest file that is not damaged; False if there is none.

        CheckpointError if all are damaged, or the newest is of another run.
        """
        # A problem that is elsewhere is read there, by the workers of the run.
        problem = carry.run.data or carry.run.problem
        self.identity = _identity(self.checkpoint, problem, self.solver, self._random_state, self._shards)

        def load(path: Path, header: dict[str, Any], arrays: dict[str, Any]) -> str:
            if difference := _difference(header.get("run"), self.identity):
                raise CheckpointError(f"{path}: this checkpoint is of another run: {difference}; {START_OVER}")
            self._restore(carry, header, arrays)
            return f"at iteration {carry.iteration}"

        found = self.files.restore(load)
        self._between_steps = self._written = self._resumed = found
        return found

    @contextlib.contextmanager
    def step(self, carry: Carry) -> Iterator[None]:
        """Ctrl-C waits until the step is complete, so that the run can be saved there.

        What no file holds is dropped after each step and certificate, so that a resumed run matches an uninterrupted
        one.
        """
        with defer_interrupts():
            self._between_steps = self._written = False
            yield
            carry.run.forget(self.solver.settled_memory)
            self._between_steps = True

    @contextlib.contextmanager
    def certificate(self, carry: Carry) -> Iterator[None]:
        """If the certificate is interrupted, the run before it is saved and a resumed run takes it again."""
        self._between_steps, self._before_certificate = True, self._capture(carry)
        yield
        self._before_certificate, self._written = None, False
        carry.run.forget(self.solver.settled_memory)
        self._settle(carry)
        self.save_if_due(carry)

    def _settle(self, carry: Carry) -> None:
        """Go on as a resumed run would, and keep what is to be saved until the next certificate.

        That is taken as arrays here if steps may leave a state that cannot be saved.
        """
        carry.state = self.solver.settled(carry.state)
        if type(self.solver).settled is not Solver.settled:
            self._last = self._capture(carry)()

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
            f"{self.checkpoint.path}: the run that resumed from this checkpoint contradicts its bounds; {START_OVER}, "
            f"and if that run ends like this, too: {error}"
        )

    def _capture(self, carry: Carry) -> Callable[[], tuple[dict[str, Any], dict[str, Any]]]:
        """The run as it stands, as header and arrays of a file.

        The solver's state, which changes in steps only, is turned into arrays when the result is called.
        """
        state, run, best, history = carry.state, carry.run, carry.best, tuple(carry.history)
        memories = run.snapshot() if self._remembers or run.warm_starts is not False else None
        arrays: dict[str, Any] = {}
        if best.weights is not None:
            arrays["best"] = best.weights
        if len(best.responses):
            arrays["responses"] = best.responses.points
        header: dict[str, Any] = {
            "run": self.identity,
            "random": run.random.bit_generator.state,
            "counters": _split(vars(run.counters), "", {}),
            "bounds": [float(bound).hex() for bound in best.bounds],
            "callbacks": [
                {"type": type(one).__name__, "numbers": _split(one.state_dict(), f"callback.{number}.", arrays)}
                for number, one in enumerate(_stateful(self.callbacks))
            ],
            "places": [run.session.n_shards, run.session.n_pieces],
            "hinge_tol": float(run.hinge_tol).hex(),
            "next_check": carry.schedule.next_check,
            "asked": carry.asked,
        }

        def stored() -> tuple[dict[str, Any], dict[str, Any]]:
            starts, own = ([], []) if memories is None else memories()
            arrays.update({f"warm.{i}": warm for i, warm in enumerate(starts) if warm is not None})
            header["shards"] = len(starts)
            kept = [{} if one is None else self.solver.memory_dict(state, one) for one in own]
            if any(kept):
                header["pieces"] = [_split(one, f"{_PIECE}{i}.", arrays) for i, one in enumerate(kept)]
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
        if header["places"] != (places := [run.session.n_shards, run.session.n_pieces]):
            raise CheckpointError(
                f"the checkpoint is of a run on {header['places']} shards and pieces, this one is on {places}; give "
                f"the same executor, or {START_OVER}"
            )
        warm = restored.warm_of(run, header["shards"], arrays)
        hinge_tol = restored.hexadecimal(header["hinge_tol"], "hinge_tol")
        require(0.0 <= hinge_tol < float("inf"), "hinge_tol is negative or infinite")
        found = dataclasses.replace(run, counters=counters, hinge_tol=hinge_tol)
        found.warm = warm
        found.remember(_memories(header.get("pieces"), arrays, run.session.n_pieces))
        restored.check_bounds(found, best, bounds, history, minimizes)
        responses = restored.responses_of(arrays, history)
        found.random = restored.random_of(run.random, header["random"])
        watched = minimizes or bool(self.callbacks)
        next_check = restored.next_check_of(header["next_check"], counters.iterations, history, watched)
        seconds = restored.hexadecimal(header["seconds"], "seconds")
        require(0.0 <= seconds < float("inf"), "seconds are negative or infinite")
        require(isinstance(header["asked"], str), "the reason to stop is not a text")
        state = self.solver.load_state_dict(found, _joined(header["state"], "state.", arrays))
        self._restore_callbacks(header["callbacks"], arrays, run.problem)
        carry.run, carry.state, carry.history = found, state, history
        carry.best.restore(best, bounds, responses)
        carry.schedule.next_check, carry.asked = next_check, header["asked"]
        carry.clock.began -= seconds

    def _restore_callbacks(self, given: Any, arrays: dict[str, Any], problem: BaseProblem) -> None:
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
        if self.solver.settled(carry.state) is not carry.state:
            if self._last is None:
                return
            header, arrays = self._last
        else:
            header, arrays = (self._before_certificate or self._capture(carry))()
        self._written = self.files.write(header, arrays) or self._written
        self._saved_at = time.perf_counter()


def _stateful(callbacks: Sequence[Callback]) -> list[Any]:
    return [one for one in callbacks if hasattr(one, "state_dict") and hasattr(one, "load_state_dict")]


def _identity(
    checkpoint: Checkpoint, problem: BaseProblem, solver: Solver, random_state: Any, shards: int
) -> dict[str, Any]:
    """Everything that must be the same for a run to resume with the same bits, as JSON."""
    names = [one.name for one in dataclasses.fields(solver)] if dataclasses.is_dataclass(solver) else list(vars(solver))
    seed = random_state if random_state is None else str(random_state)
    return {
        "version": __version__,
        "solver": type(solver).__name__,
        "settings": {name: repr(getattr(solver, name)) for name in names if name != "max_iter"},
        "random_state": seed,
        "shape": {
            "examples": problem.n_examples,
            "parts": problem.n_parts,
            "weights": problem.n_weights,
            "shards": shards,
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


_ENTRIES = (
    *(
        "places",
        "random",
        "counters",
        "bounds",
        "callbacks",
        "shards",
        "hinge_tol",
        "next_check",
        "asked",
        "state",
        "seconds",
    ),
)
"""What the header says besides the identity of the run."""


_PIECE = "piece."
"""The beginning of the names of arrays that are kept with a piece, before its number."""


def _memories(given: Any, arrays: dict[str, Any], pieces: int) -> list[StateDict | None]:
    """What a solver keeps with each piece, as arrays and numbers; None if the file has nothing of that."""
    if given is None:
        return [None] * pieces
    require(isinstance(given, list) and len(given) == pieces, f"it does not have the memories of {pieces} pieces")
    found = [restored.numbers_of(one, "numbers of a piece") for one in given]
    for name, one in arrays.items():
        if name.startswith(_PIECE):
            number, _, own = name.removeprefix(_PIECE).partition(".")
            at = int(number) if number.isascii() and number.isdecimal() and len(number) < 10 else pieces
            require(at < pieces, f"{name} is of no piece")
            found[at][own] = one
    return list(found)


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
    return state | part_of(arrays, prefix)

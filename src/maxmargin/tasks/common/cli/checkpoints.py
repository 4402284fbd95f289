"""Checkpoints of commands that train: kept beside the model until it is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maxmargin._files import remove_leftovers
from maxmargin._interrupts import defer_interrupts
from maxmargin._terminal import note
from maxmargin.tasks.common.cli.commands import BestSoFar, written_line

if TYPE_CHECKING:
    from maxmargin.solvers import Checkpoint

STAGES = ("stages", "pixels", "folds", "models", "relations", "first", "second")
"""Names of stages at the end of names of checkpoints, beside the numbers of runs."""


class Checkpoints:
    """The checkpoints of a training run, in files beside the model."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.path = out.with_name(f"{out.name}.checkpoint")
        own = re.escape(self.path.name) + rf"(-({'|'.join(STAGES)}|[0-9]+)){{0,3}}"
        self._own, self._older = re.compile(own), re.compile(own + r"(\.previous(-[0-9]+)?)?")

    def checkpoint(self, every: float, fingerprint: str = "") -> Checkpoint:
        """Return the checkpoint of the run, kept until :meth:`remove`."""
        from maxmargin.solvers import Checkpoint  # here, as commands start without solvers

        return Checkpoint(self.path, every=every, fingerprint=fingerprint, keep=True)

    def found(self) -> list[Path]:
        """Return the existing ones, the newest last."""
        there = [path for path in self.path.parent.iterdir() if self._own.fullmatch(path.name) and path.is_file()]
        return sorted(there, key=lambda path: (path.stat().st_mtime_ns, path.name))

    def begin(self, resume: bool) -> None:
        """Print where training starts from; without ``resume``, old checkpoints are removed.

        What runs that were killed left of a file in the middle of writing it is removed anyway.
        """
        there = self.found()
        for path in (self.out, self.path, *there):
            remove_leftovers(path)
        if resume:
            what = f"resumes from {there[-1]}" if there else f"starts from the beginning: there is no {self.path}"
            note(f"training {what}")
        elif there:
            what = f"{there[-1]} of an unfinished run is removed; --resume would have resumed from it"
            note(what)
            self.remove()

    def save(self, model: Any, **options: Any) -> None:
        """Write the model file, and remove the checkpoints if training is complete.

        If training was interrupted, so is the command when the model is written; one that has learned nothing yet is
        not written.

        Args:
            model: a trained model of any task.
            options: those of its ``save``.
        """
        complete = model.training is None or not model.training.interrupted
        if not complete and not model.weights.any():
            raise KeyboardInterrupt
        with defer_interrupts():
            model.save(self.out, **options)
            if complete:
                self.remove()
        if not complete:
            raise BestSoFar

    def remove(self) -> None:
        """Remove all checkpoints, with the saves before the last ones."""
        for path in list(self.path.parent.iterdir()):
            if self._older.fullmatch(path.name) and path.is_file():
                path.unlink(missing_ok=True)

    def summary(self, written: Sequence[Path] = (), best: bool = False) -> str:
        """Return what an interruption leaves behind: the model if it is among the written files, and checkpoints.

        Args:
            written: the files that were written.
            best: whether the model is that of the best weights so far.
        """
        there = self.found()
        if self.out not in written and not there:
            return "nothing was written, and no checkpoint was saved yet"
        model = written_line(self.out, best) if self.out in written else "no model was written"
        return "; ".join(filter(None, (model, self.kept())))

    def kept(self) -> str:
        """Return what is said of checkpoints that are there; empty if there are none."""
        there = self.found()
        return f"{there[-1]} is kept: the same command with --resume resumes from it" if there else ""

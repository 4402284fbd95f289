"""The tables of a translation model after each iteration, in a checkpoint."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin._version import __version__
from maxmargin.optimization.checkpoints.files import START_OVER, Checkpoint, CheckpointError, CheckpointFiles
from maxmargin.optimization.checkpoints.saved import array, count, require


class SavedTables:
    """Arrays of a model that is learned, saved as it learns; it holds the lock on the files within ``with``.

    Args:
        checkpoint: the files, and the seconds between two saves.
        made_from: a digest of the bitext and of all settings that decide the tables.
    """

    def __init__(self, checkpoint: Checkpoint, made_from: str) -> None:
        self.checkpoint, self.made_from = checkpoint, made_from
        self.arrays: dict[str, Any] = {}
        self.done = 0

    def __enter__(self) -> SavedTables:
        self._files = CheckpointFiles.restored(self.checkpoint, self._load)
        self._saved_at = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        self.arrays = {}
        self._files.close()

    def _load(self, path: Path, header: dict[str, Any], arrays: dict[str, Any]) -> str:
        if header.get("version") != __version__ or header.get("made_from") != self.made_from:
            raise CheckpointError(
                f"{path}: this checkpoint is of translation models of another bitext, with other settings or by "
                f"another version; {START_OVER}"
            )
        self.done, self.arrays = count(header, "iterations", most=1_000_000), arrays
        require(self.done > 0, "it is of no iteration")
        return f"after {self.done} iterations"

    def table(self, name: str, dtype: Any, shape: tuple[int | None, ...], most: float = np.inf) -> Any:
        """A copy of a saved array of a type and shape, with finite numbers from 0 to ``most``; else CheckpointError."""
        try:
            found = array(self.arrays, name, dtype, shape)
            require((found >= 0).all() and (found <= most).all(), f"{name} has numbers out of range")
        except ValueError as error:
            raise CheckpointError(
                f"{self.checkpoint.path}: this checkpoint is damaged: {error}; {START_OVER}"
            ) from None
        return found

    def save(self, done: int, arrays: dict[str, Any], *, last: bool) -> None:
        """Save the tables after an iteration, if the last save is long enough ago or there is no further one."""
        if last or time.perf_counter() - self._saved_at >= self.checkpoint.every:
            header = {"version": __version__, "made_from": self.made_from, "iterations": done}
            self._files.write(header, arrays)
            self._saved_at = time.perf_counter()

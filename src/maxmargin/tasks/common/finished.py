"""Results of the stages before and between the runs of solvers, kept in a file until the model is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin._digest import digest
from maxmargin._version import __version__
from maxmargin.optimization.checkpoints.files import Checkpoint, CheckpointFiles
from maxmargin.optimization.checkpoints.saved import part_of, require

Result = dict[str, Any]
"""Arrays, and plain JSON values, by name."""


class Finished:
    """Results of finished stages in a checkpoint, so that training that resumes does not repeat them.

    A result belongs to the values that it was made from: of other data or settings, none is taken.

    Args:
        checkpoint: the file; None keeps nothing.
    """

    def __init__(self, checkpoint: Checkpoint | None) -> None:
        self.checkpoint, self._results = checkpoint, dict[str, Result]()

    def __enter__(self) -> Finished:
        if self.checkpoint is not None:
            self._files = CheckpointFiles.restored(self.checkpoint, self._load)
        return self

    def __exit__(self, *_: object) -> None:
        if self.checkpoint is not None:
            self._files.close()

    def _load(self, path: Path, header: dict[str, Any], arrays: dict[str, Any]) -> str:
        require(isinstance(header.get("results"), list), "it names no results")
        found: dict[str, Result] = {}
        if header.get("version") == __version__:  # results of another version may differ
            for number, (key, values) in enumerate(header["results"]):
                require(isinstance(key, str) and isinstance(values, dict), "a result has no name")
                found[key] = values | part_of(arrays, f"{number}.")
        self._results = found
        return f"after {len(found)} stages"

    def once(self, name: str, compute: Callable[[], Result], *made_from: Any) -> Result:
        """The result of a stage, from the file if it is there.

        Args:
            name: of the stage.
            compute: does the work.
            made_from: all values that decide the result.
        """
        if self.checkpoint is None:
            return compute()
        key = f"{name} {digest(*made_from)}"
        if key not in self._results:
            self._results[key] = compute()
            arrays, names = {}, []
            for number, (one, result) in enumerate(self._results.items()):
                held = {name for name, value in result.items() if isinstance(value, np.ndarray)}
                arrays.update({f"{number}.{name}": result[name] for name in held})
                names.append([one, {name: value for name, value in result.items() if name not in held}])
            self._files.write({"version": __version__, "results": names}, arrays)
        return dict(self._results[key])

    def remove(self) -> None:
        """Delete the file, unless the checkpoint is to be kept."""
        if self.checkpoint is not None and not self.checkpoint.keep:
            self.checkpoint.remove()

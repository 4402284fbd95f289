"""The files of a checkpoint: the newest save and some before it, for one process at a time.

A save is written to a new file that then takes the place of the old one, which is kept beside it under another name. So
a file is whole whenever a process is killed, and where the newest is damaged all the same, an older one helps.
The format is that of model files (:mod:`maxmargin.model_file`), with a checksum over all of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from maxmargin import _checks, model_file
from maxmargin._callers import callers_level
from maxmargin._files import remove_leftovers
from maxmargin._locks import FileInUseError, FileLock
from maxmargin._messages import FileContentError, shortened, shown

PREVIOUS = ".previous"
"""The end of the name of the file that holds the save before the last one; older ones have a number after it."""

START_OVER = "remove it to start over"

_OLDER = re.compile(re.escape(PREVIOUS) + r"(-[0-9]+)?")

Load = Callable[[Path, dict[str, Any], dict[str, Any]], str]
"""Restores a run from a file, given its header and its arrays; says where the run stands."""


class CheckpointError(FileContentError):
    """A checkpoint cannot be resumed, or cannot be written."""


class _DamagedError(CheckpointError):
    """A checkpoint is damaged, so that an older one may help."""


@dataclass(frozen=True)
class Checkpoint:
    """Where a run is saved, how often, and what it belongs to.

    Attributes:
        path: the file. If it exists, a run resumes from it.
        every: seconds between saves, which are made at certificates; 0 saves at each.
        fingerprint: a string for what the problem itself does not show, such as the files that it was made from; a
            checkpoint with a different one is refused.
        keep: whether an estimator leaves the files when it is done, for :meth:`remove` once the model is stored.
        keep_files: how many saves are kept, the newest included. A run resumes from the newest that is not damaged.
    """

    path: str | Path
    every: float = 30.0
    fingerprint: str = ""
    keep: bool = False
    keep_files: int = 2

    def __post_init__(self) -> None:
        path: Any = self.path
        fingerprint: Any = self.fingerprint
        _checks.path("the path of a checkpoint", path)
        _checks.number("every", self.every, least=0, infinite=True, hint="seconds between saves; 30 is a good choice")
        if not isinstance(fingerprint, str):
            raise ValueError(f"fingerprint must be a string, got {shown(fingerprint)}")
        _checks.flag("keep", self.keep)
        _checks.integer("keep_files", self.keep_files, least=1, most=1000)

    @classmethod
    def of(cls, given: Any) -> Checkpoint | None:
        """The setting ``checkpoint`` of an estimator: the name of a file, a checkpoint, or None; else ValueError."""
        if given is None or isinstance(given, cls):
            return given
        if not isinstance(given, (str, Path)):
            raise ValueError(f"checkpoint must be the name of a file or a Checkpoint, got {shown(given)}")
        return cls(given)

    def beside(self, suffix: str) -> Checkpoint:
        """The same with a file whose name has a suffix more, for one of several runs."""
        return dataclasses.replace(self, path=f"{self.path}{suffix}")

    @property
    def files(self) -> tuple[Path, ...]:
        """The names of the saves that are kept, the newest first."""
        names = ("", PREVIOUS, *(f"{PREVIOUS}-{age}" for age in range(2, self.keep_files)))
        return tuple(Path(f"{self.path}{name}") for name in names[: self.keep_files])

    @property
    def previous(self) -> Path:
        """The file of the save before the last one, from which a run resumes if the last one is damaged."""
        return Path(f"{self.path}{PREVIOUS}")

    def remove(self) -> None:
        """Delete the file and all older saves, if they are there."""
        path = Path(self.path)
        path.unlink(missing_ok=True)
        remove_older(path)


def is_older(name: str, of: str) -> bool:
    """Whether a file's name is that of an older save of a checkpoint named ``of``."""
    return name.startswith(of) and _OLDER.fullmatch(name[len(of) :]) is not None


def remove_older(path: Path) -> None:
    """Delete the saves before the last one."""
    if path.parent.is_dir():
        for one in list(path.parent.iterdir()):
            if is_older(one.name, path.name):
                one.unlink(missing_ok=True)


class CheckpointFiles:
    """The files of a checkpoint, which no other run may use until :meth:`close`.

    Raises:
        CheckpointError: the folder is not there or not writable, or another run uses the checkpoint.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint, self.path = checkpoint, Path(checkpoint.path)
        _check_folder(self.path)
        try:
            self._lock = FileLock(self.path)
        except FileInUseError as error:
            by = "another run" if error.pid is None else f"process {error.pid}"
            raise CheckpointError(
                f"{self.path}: {by} uses this checkpoint; wait until it ends, or name another file"
            ) from None
        except OSError as error:
            raise CheckpointError(
                f"{self.path}: no file can be written in the folder of the checkpoint: {error.strerror}; name another"
            ) from None
        with contextlib.suppress(OSError):
            remove_leftovers(self.path)  # of runs that were killed
        self._whole = False  # whether the newest file is one that this run has read or written
        self._damaged: list[Path] = []
        self._warned = False

    @classmethod
    def restored(cls, checkpoint: Checkpoint, load: Load) -> Self:
        """The files, after :meth:`restore`; they are closed if that fails."""
        files = cls(checkpoint)
        try:
            files.restore(load)
        except BaseException:
            files.close()
            raise
        return files

    def restore(self, load: Load) -> bool:
        """Load the newest save that is not damaged, and warn if others are; False if there is none.

        Args:
            load: raises a CheckpointError if the file is not for this run, and any other error if it is damaged.

        Raises:
            CheckpointError: all files are damaged, or the newest one is not for this run.
        """
        if not self.path.exists():
            remove_older(self.path)  # of a run that was to start over
            return False
        damages: list[str] = []
        for path in self.checkpoint.files:
            try:
                place = _read(path, load)
            except FileNotFoundError:
                continue
            except _DamagedError as damage:
                damages.append(str(damage))
                self._damaged.append(path)
            except CheckpointError:
                if not damages:
                    raise
            else:
                self._whole = not damages
                if damages:
                    warnings.warn(
                        f"{'; '.join(damages)}; training resumes from the checkpoint before it, {path}, {place}",
                        RuntimeWarning,
                        stacklevel=callers_level(),
                    )
                return True
        if not damages:  # they were removed meanwhile
            return False
        remedy = START_OVER if len(damages) == 1 else "remove them to start over"
        raise CheckpointError(f"{'; '.join(damages)}; name another file, or {remedy}")

    def write(self, header: dict[str, Any], arrays: dict[str, Any]) -> bool:
        """Write the newest save and keep those before it; a disk that fails gives a warning, and the result False."""
        older = self.checkpoint.files[1:] if self._whole else ()
        try:
            for path in self._damaged:
                if path != self.path:
                    path.unlink(missing_ok=True)
            model_file.write(self.path, {"kind": model_file.CHECKPOINT, **header}, arrays, older)
        except OSError as error:
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"{self.path}: the checkpoint could not be written: {error.strerror}; training continues, "
                    "and if it is interrupted it resumes from the last checkpoint that was written",
                    RuntimeWarning,
                    stacklevel=callers_level(),
                )
            return False
        self._whole, self._damaged = True, []
        return True

    def close(self) -> None:
        """Let other runs use the files."""
        self._lock.release()


def _read(path: Path, load: Load) -> str:
    """Load one file."""
    try:
        header, arrays = model_file.read(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CheckpointError(f"{path}: the checkpoint cannot be read: {error.strerror}") from None
    except model_file.ModelFileError:
        raise _DamagedError(f"{path} is not a checkpoint, or it is truncated or damaged") from None
    if header.get("kind") != model_file.CHECKPOINT:
        raise CheckpointError(f"{path} holds a model, not a checkpoint; name another file")
    try:
        return load(path, header, arrays)
    except (CheckpointError, MemoryError):
        raise
    except Exception as error:  # of a solver or callback of the user's own, too
        reason = shortened(str(error) or type(error).__name__, 300)
        raise _DamagedError(f"{path}: this checkpoint is damaged: {reason}") from None


def _check_folder(path: Path) -> None:
    """CheckpointError unless a file can be written there, so that a run fails at its start and not after an hour."""
    if path.is_dir():
        raise CheckpointError(f"{path} is a folder; name a file for the checkpoint")
    if not path.parent.is_dir():
        raise CheckpointError(f"{path}: the folder of the checkpoint does not exist; create it, or name another")
    if not os.access(path.parent, os.W_OK):
        raise CheckpointError(f"{path}: the folder of the checkpoint is not writable; name another")

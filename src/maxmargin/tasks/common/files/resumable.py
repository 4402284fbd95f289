"""Output that is written block by block and can be resumed after the process was killed.

``OUT.partial`` holds what was written so far, uncompressed, and ``OUT.journal`` what it was made of and, after every
block, how long the output was and its checksum. A run that resumes keeps the blocks whose bytes are there, and makes
the others: the same file as without the interruption.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from maxmargin._files import record, regular_file
from maxmargin._interrupts import defer_interrupts
from maxmargin._locks import FileInUseError, FileLock
from maxmargin._terminal import note
from maxmargin._version import __version__
from maxmargin.tasks.common.files.compression import SUFFIXES
from maxmargin.tasks.common.files.text import STANDARD_INPUT, AnyPath, FileError, open_output, problem
from maxmargin.tasks.common.workers import WorkerError

_HEAD = 1 << 20
"""Bytes at the beginning of an input that are compared."""
_SYNC = 1.0
"""Seconds after which files are made to reach the disk."""


@dataclass(frozen=True)
class Run:
    """What a run that resumes must have in common with the one before.

    Attributes:
        resume: whether to resume.
        model: the model file.
        inputs: the input files.
        options: the options that change the output, in a form that JSON can hold.
    """

    resume: bool
    model: Path
    inputs: Sequence[str]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def resumable(self) -> bool:
        """Whether the inputs can be read again: they are files."""
        return all(_is_file(one) for one in self.inputs)

    def identity(self) -> dict[str, Any]:
        """Return checksums and options, as JSON would give them back."""
        found = {
            "version": __version__,
            "model": _digest(self.model, None),
            "inputs": [[os.stat(one).st_size, _digest(one, _HEAD)] for one in self.inputs],
            "options": self.options,
        }
        return json.loads(json.dumps(found))  # type: ignore[no-any-return]


def _is_file(path: str) -> bool:
    try:
        return path != STANDARD_INPUT and stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return True  # which is said when it is read


def _digest(path: AnyPath, size: int | None) -> str:
    with open(path, "rb") as file:
        if size is not None:
            return hashlib.sha256(file.read(size)).hexdigest()
        return hashlib.file_digest(file, "sha256").hexdigest()


class BlockOutput:
    """A stream that takes whole blocks; ``done`` of them are there from a run before."""

    done = 0

    def __init__(self, stream: BinaryIO, *, flush: bool = False) -> None:
        self._stream, self._flush = stream, flush

    def write(self, data: bytes) -> None:
        """Write the next block."""
        self._stream.write(data)
        if self._flush:
            self._stream.flush()


@contextmanager
def open_blocks(out: AnyPath | BinaryIO, run: Run | None = None) -> Iterator[BlockOutput]:
    """Open a stream or a file as :func:`~maxmargin.tasks.common.files.text.open_output` does, for whole blocks.

    What was written to a file stays beside it if the run is interrupted, unless an input is a pipe.

    Raises:
        FileError: a run cannot be resumed, as the model, the options or an input are not the same.
    """
    if run is None or hasattr(out, "write") or str(out) == STANDARD_INPUT or not run.resumable:
        if run is not None and run.resume:
            raise FileError("--resume needs --out, and inputs that are files; standard input cannot be read again")
        with open_output(out) as stream:
            yield BlockOutput(stream, flush=str(out) == STANDARD_INPUT)
        return
    path = Path(os.fspath(out))
    try:
        lock = FileLock(path)
    except FileInUseError as found:
        other = "another process" if found.pid is None else f"process {found.pid}"
        raise problem(path, None, f"{other} writes this file; wait for it, end it, or give another --out") from None
    try:
        output = _Journaled(path, run)
        try:
            yield output
        except ValueError as error:
            output.close()
            if not isinstance(error, WorkerError):  # the same command would fail again
                output.remove()
            raise
        except BaseException:
            output.close()
            if not output.done:
                output.remove()
            raise
        output.complete(path)
    except OSError as error:
        raise problem(path, None, f"{error.strerror or error}; check the name of the file and the disk") from None
    finally:
        lock.release()


def kept(out: str, written: Sequence[Path]) -> str:
    """Return what an interruption leaves behind of an output file; ``written``: files that were completed."""
    if Path(out) in written:
        return f"{out} was written"
    partial, journal = _names(Path(out))
    if not (partial.exists() and journal.exists()):
        return "nothing was written"
    return f"{Path(out).with_name(partial.name)} is kept: the same command with --resume resumes"


def _names(out: Path) -> tuple[Path, Path]:
    target = regular_file(out)
    return target.with_name(f"{target.name}.partial"), target.with_name(f"{target.name}.journal")


class _Journaled(BlockOutput):
    """The partial file and its journal."""

    def __init__(self, out: Path, run: Run) -> None:
        self.partial, self.journal = _names(out)
        identity = run.identity()
        self.done, length, self._hash = 0, 0, hashlib.sha256()
        if run.resume and self._checked(identity):
            self.done, length = self._whole_blocks()
            note(f"resumes {self.partial} after {self.done} blocks, {length} bytes")
        elif run.resume:
            note(f"starts from the beginning: there is no {self.journal}")
        elif self.journal.exists():
            note(f"{self.partial} of an unfinished run is removed; --resume would have resumed it")
        if not self.done:
            self.remove()
            length, self._hash = 0, hashlib.sha256()
        self._file = open(self.partial, "r+b" if self.done else "xb")  # noqa: SIM115
        self._file.truncate(length)
        self._file.seek(length)
        self._length, self._synced = length, 0.0
        if self.done:
            self._lines = open(self.journal, "ab")  # noqa: SIM115
            self._record()  # perhaps after a line that was cut
        else:
            self._lines = open(self.journal, "xb")  # noqa: SIM115
            self._lines.write(json.dumps(identity).encode() + b"\n")
            self._lines.flush()

    def write(self, data: bytes) -> None:
        """Write a block, and then say so in the journal."""
        self._file.write(data)
        self._file.flush()
        self._hash.update(data)
        self._length += len(data)
        self.done += 1
        self._record()

    def _record(self) -> None:
        if time.monotonic() - self._synced > _SYNC:
            os.fsync(self._file.fileno())
        line = json.dumps([self.done, self._length, self._hash.hexdigest()])
        self._lines.write(b"\n" + line.encode() + b"\n")
        self._lines.flush()
        if time.monotonic() - self._synced > _SYNC:
            os.fsync(self._lines.fileno())
            self._synced = time.monotonic()

    def _checked(self, identity: dict[str, Any]) -> bool:
        """Return whether there is a journal; FileError if it is that of another run."""
        if not self.journal.exists():
            return False
        with open(self.journal, "rb") as file:
            line = file.readline()
        if not line.endswith(b"\n"):  # killed while that was written
            return False
        try:
            before = json.loads(line)
            differ = [name for name in identity if before[name] != identity[name]]
        except (ValueError, KeyError, TypeError):
            raise problem(self.journal, 1, "it is damaged; run the command without --resume") from None
        if differ:
            what = {"version": "another version of maxmargin", "model": "another model", "inputs": "another input"}
            given = what.get(differ[0], "other options")
            raise problem(self.journal, None, f"it is of a run with {given}; give the same, or leave --resume out")
        return True

    def _whole_blocks(self) -> tuple[int, int]:
        """Return the number and length of the blocks whose bytes are there; the checksum is then that of these."""
        done, length = 0, 0
        if not self.partial.exists():
            return 0, 0
        with open(self.journal, "rb") as lines, open(self.partial, "rb") as file:
            for line in lines.readlines()[1:]:
                try:
                    number, end, wanted = json.loads(line)
                except ValueError:  # blank, or cut
                    continue
                now = self._hash.copy()
                now.update(file.read(end - length))
                if file.tell() != end or now.hexdigest() != wanted:
                    break
                self._hash, done, length = now, number, end
        return done, length

    def close(self) -> None:
        """Close both files, which stay."""
        with suppress(OSError):
            self._file.close()
            self._lines.close()

    def remove(self) -> None:
        """Remove both files."""
        for path in (self.journal, self.partial):
            path.unlink(missing_ok=True)

    def complete(self, out: Path) -> None:
        """Give the output its name, compressed if that says so."""
        os.fsync(self._file.fileno())
        self.close()
        with defer_interrupts():
            self._complete(out)
            self.remove()

    def _complete(self, out: Path) -> None:
        target = regular_file(out)
        if target.name.lower().endswith(SUFFIXES) or str(out).lower().endswith(SUFFIXES):
            with open(self.partial, "rb") as file, open_output(out) as stream:
                shutil.copyfileobj(file, stream, io.DEFAULT_BUFFER_SIZE * 16)
        else:
            if target.exists():
                shutil.copymode(target, self.partial)
            os.replace(self.partial, target)
            record(out)

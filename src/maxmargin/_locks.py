"""Files that one process at a time may work on."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from maxmargin._files import hidden_name, regular_file

try:
    import fcntl
except ImportError:  # not on this system: nothing is locked
    fcntl = None  # type: ignore[assignment]


_held: list[FileLock] = []


class FileInUseError(OSError):
    """Another process works on a file; ``pid`` is its number, None if it is not known."""

    def __init__(self, path: Path, pid: int | None) -> None:
        super().__init__(f"{path} is in use")
        self.pid = pid


class FileLock:
    """The right to write a file, until :meth:`release` or the end of the process.

    The system locks a file beside it that names the process. The lock of a process that has ended, however it did, is
    gone, so that the file that it may leave is no obstacle. Where the system cannot lock files, nothing is locked.

    Args:
        path: the file; the one that a link points to.

    Raises:
        FileInUseError: another process has the right.
    """

    def __init__(self, path: Path) -> None:
        target = regular_file(path)
        self._path = target.with_name(f"{hidden_name(target)}.lock")
        self._file = None if fcntl is None else self._locked(path)

    def _locked(self, path: Path) -> int | None:
        """Return the open file, locked; None if that is not possible here."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.read(file, 20).decode("ascii", "replace").strip()
            os.close(file)
            raise FileInUseError(path, int(pid) if pid.isdigit() else None) from None
        except OSError:  # a file system without locks
            os.close(file)
            return None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), os.stat(self._path)):
                os.ftruncate(file, 0)
                os.write(file, f"{os.getpid()}\n".encode())
                return file
        os.close(file)  # the process that had it has just removed it
        return self._locked(path)

    def release(self) -> None:
        """Give the right up and remove the file."""
        if self._file is not None:
            with contextlib.suppress(FileNotFoundError):
                self._path.unlink()
            os.close(self._file)
            self._file = None


def release_at_the_end(lock: FileLock) -> None:
    """Let :func:`release_all` release a lock."""
    _held.append(lock)


def release_all() -> None:
    """Release what a command has locked."""
    while _held:
        _held.pop().release()

"""Files that are written whole or not at all."""

from __future__ import annotations

import atexit
import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

from maxmargin._interrupts import defer_interrupts

_NAMED = 50
"""Characters of a file's name in that of its temporary file, which the system may limit to 255 bytes."""

_written: ContextVar[list[Path] | None] = ContextVar("maxmargin_written", default=None)


@contextmanager
def replacing(path: str | os.PathLike[str], previous: Sequence[Path] = ()) -> Iterator[BinaryIO]:
    """A new file that takes the place of ``path`` when the block is complete; else ``path`` stays what it was.

    Written beside it under an unpredictable name. A link stays, and the file that it names is replaced; whatever else
    is not a regular file, such as a device or a named pipe, is refused and stays what it is.

    Args:
        path: the file.
        previous: the file that was there before gets the first of these names, the one that had it the second, and
            so on.

    Raises:
        OSError: something that is not a regular file has this name, or the file cannot be written.
    """
    target = regular_file(path)
    temporary = _beside(target)
    _unfinished[temporary] = os.getpid()
    try:
        # Opened like any other file, so that the system applies the umask (reading that would mean setting it).
        with _opened(temporary, path) as file:
            yield file
        if target.exists():
            shutil.copymode(target, temporary)
        if previous:
            names = [regular_file(one) for one in previous]
            for newer, older in reversed([*pairwise(names)]):
                with suppress(FileNotFoundError):
                    os.replace(newer, older)
            _keep(target, names[0])
        regular_file(target)  # which may have become something else since
        with defer_interrupts():
            os.replace(temporary, target)
            record(path)
    except BaseException:
        with defer_interrupts():
            temporary.unlink(missing_ok=True)
        raise
    finally:
        _unfinished.pop(temporary, None)


_unfinished: dict[Path, int] = {}
"""Files that are being written beside their targets, and by which process."""


@atexit.register
def _remove_unfinished() -> None:
    """Remove what is left at the end: an interrupt may have come just when a block of :func:`replacing` began."""
    for temporary, process in list(_unfinished.items()):
        if process == os.getpid():
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _opened(temporary: Path, path: str | os.PathLike[str]) -> BinaryIO:
    """Open a new file for writing; an error names the file that it will replace."""
    try:
        return open(temporary, "xb")
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def regular_file(path: str | os.PathLike[str]) -> Path:
    """The regular file that a path names, through links, whether it exists or is to be made.

    Raises:
        OSError: something else has this name: a folder, a device, a named pipe, a socket, or a loop of links.
    """
    try:
        mode = os.stat(path).st_mode  # of the path, as what it resolves to need not have a name, as behind /dev/stdout
    except (FileNotFoundError, NotADirectoryError):
        return Path(os.path.realpath(path))
    if stat.S_ISREG(mode):
        return Path(os.path.realpath(path))
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "this is a folder; give a file", os.fspath(path))
    kind = next((kind for is_kind, kind in _KINDS if is_kind(mode)), "not a regular file")
    raise OSError(errno.EINVAL, f"this is {kind}, and only regular files are written", os.fspath(path))


_KINDS = (
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def hidden_name(target: Path) -> str:
    """How the names of files beside a target begin that are not to be seen; a digest tells long names apart."""
    digest = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:8]
    return f".{target.name[:_NAMED]}.{digest}"


def _beside(target: Path) -> Path:
    return target.parent / f"{hidden_name(target)}.{secrets.token_hex(16)}.part"


def _keep(target: Path, previous: Path) -> None:
    """Give a file a second name, in place of another file that has it; where files have one name only, a copy."""
    second = _beside(target)
    try:
        try:
            os.link(target, second)
        except FileNotFoundError:  # nothing to keep
            return
        except (OSError, NotImplementedError, AttributeError):
            shutil.copyfile(target, second)
        os.replace(second, previous)
    finally:
        second.unlink(missing_ok=True)


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files of processes that were killed while they wrote to ``path``."""
    target = Path(os.path.realpath(path))
    own = re.compile(re.escape(hidden_name(target)) + r"\.[0-9a-f]{32}\.part")
    for one in target.parent.iterdir():
        if own.fullmatch(one.name):
            one.unlink(missing_ok=True)


def record(path: str | os.PathLike[str]) -> None:
    """Count a file as written, for :func:`recorded`."""
    if (written := _written.get()) is not None:
        written.append(Path(path))


@contextmanager
def recorded() -> Iterator[list[Path]]:
    """The files that were completed within the block (:func:`record`), in this thread and in those it has started."""
    found: list[Path] = []
    token = _written.set(found)
    try:
        yield found
    finally:
        _written.reset(token)

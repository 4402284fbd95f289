"""Text files: bytes and lines, with errors that name the file and the line; output files."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from os import PathLike
from typing import Any, BinaryIO, cast

from maxmargin._files import replacing
from maxmargin._messages import FileContentError
from maxmargin._terminal import printable
from maxmargin.model_file import MAGIC
from maxmargin.tasks.common.files.compression import ALWAYS, compressed, decompressed, expands
from maxmargin.tasks.common.files.compression import EXPANSION as EXPANSION
from maxmargin.tasks.common.files.compression import most_expanded as most_expanded

AnyPath = str | PathLike[str]

STANDARD_INPUT = "-"


class FileError(FileContentError):
    """A file that cannot be read or has wrong content: ``FILE, line N: what is wrong; what to do``."""


def name_of(path: AnyPath) -> str:
    """Return the name of a file for messages."""
    return "standard input" if str(path) == STANDARD_INPUT else printable(path)


def count_of(number: int, noun: str) -> str:
    """Return ``1 line``, ``2 lines``, ..."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def problem(path: AnyPath, line: int | None, message: str, *, unit: str = "line") -> FileError:
    """Return the error for a line, counted from 1, or another unit of a file, or for the whole file."""
    where = name_of(path) if line is None else f"{name_of(path)}, {unit} {line}"
    return FileError(f"{where}: {message}")


def is_model(path: AnyPath) -> bool:
    """Return whether a file is a model; FileError if it cannot be read."""
    if str(path) == STANDARD_INPUT:
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise problem(path, None, f"{error.strerror or error}; check the name of the file") from None


def refuse_expansion(path: AnyPath, size: int, wanted: float, always: int = ALWAYS) -> None:
    """Raise FileError if a compressed file of ``size`` bytes would expand to more than it may."""
    if wanted > most_expanded(size, always):
        raise problem(path, None, expands(size))


def paths_of(given: AnyPath | Sequence[AnyPath]) -> list[AnyPath]:
    """Return one or several paths as a list."""
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]


def once(paths: Sequence[AnyPath | None]) -> None:
    """Raise FileError if standard input is to be read more than once."""
    if sum(str(path) == STANDARD_INPUT for path in paths) > 1:
        raise FileError("standard input (-) can be read only once; give the other inputs as files")


def read_bytes(path: AnyPath) -> bytes:
    """Read a file or, for ``-``, standard input; compressed ones are recognized by content and decompressed."""
    with open_bytes(path) as stream:
        return stream.read()


@contextmanager
def open_bytes(path: AnyPath) -> Iterator[BinaryIO]:
    """Open a file or, for ``-``, standard input as a stream of bytes, decompressed if it is compressed."""

    def error(message: str) -> FileError:
        return problem(path, None, message)

    if str(path) == STANDARD_INPUT:
        yield decompressed(sys.stdin.buffer, error)
        return
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open(path, "rb"))
        except OSError as failed:
            raise error(f"{failed.strerror or failed}; check the name of the file") from None
        except ValueError:  # a name that no file can have
            raise error("no file can have this name; check it") from None
        yield decompressed(file, error)


def read_text(path: AnyPath, encoding: str | None = None) -> bytes:
    """Read a file like :func:`read_bytes`, check that it is text without NUL, and drop the byte order mark.

    Args:
        path: the file.
        encoding: its encoding, where users can give one (``--encoding``); None takes UTF-8 alone.

    Returns:
        The text as UTF-8.
    """
    return text_of(path, read_bytes(path), encoding)


def text_of(path: AnyPath, data: bytes, encoding: str | None = None, *, lines: int = 0) -> bytes:
    """Return what :func:`read_text` does for a file whose content has been read, or a part of it after ``lines``."""
    try:
        text = data.decode(encoding or "utf-8")
    except LookupError:
        raise ValueError(f"--encoding {encoding} is not known; give one that Python has, such as latin-1") from None
    except UnicodeDecodeError as error:
        line = data[: error.start].decode(encoding or "utf-8", "replace").count("\n") + 1 + lines
        given = f"--encoding {encoding}" if encoding and not _is_utf8(encoding) else "UTF-8"
        advice = "save the file as UTF-8, for example with iconv"
        if encoding:
            advice += ", or give its encoding, as --encoding latin-1" if given == "UTF-8" else ", or give another one"
        raise problem(path, line, f"byte 0x{data[error.start]:02x} is not {given}; {advice}") from None
    if encoding and not _is_utf8(encoding):
        data = text.encode("utf-8")
    if (at := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, at) + 1 + lines
        raise problem(path, line, "a NUL byte, so this is not UTF-8 text; save it as UTF-8, for example with iconv")
    return data if lines else data.removeprefix(b"\xef\xbb\xbf")


def _is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name == "utf-8"


def lines_of(data: bytes) -> list[bytes]:
    """Return the lines without line ends; the last line may lack one."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def words_of(line: bytes | str) -> list[str]:
    """Split a line of :func:`read_text`, or a string, at ASCII white space only."""
    # Unlike files, strings may hold lone surrogates and NUL; str.split would also split at other white space.
    parts = line.encode("utf-8", "surrogatepass").split() if isinstance(line, str) else line.split()
    if not parts:
        return []
    whole = b"\0".join(parts).decode("utf-8", "surrogatepass").split("\0")
    # Decoding all at once is several times faster than word by word.
    return whole if len(whole) == len(parts) else [part.decode("utf-8", "surrogatepass") for part in parts]


@contextmanager
def open_output(out: AnyPath | BinaryIO) -> Iterator[BinaryIO]:
    """Open a binary stream: ``out`` itself, or a file, compressed if its name says so; ``-`` is standard output.

    A file is there when the block is complete; before, or if it fails, there is what was there before.
    """
    if hasattr(out, "write"):
        yield cast(BinaryIO, out)
        return
    path = out
    if str(path) == STANDARD_INPUT:
        stream: Any = sys.stdout.buffer
        # With PYTHONUNBUFFERED it is the raw file, which may write only a part of what it is given.
        raw = isinstance(stream, io.RawIOBase)
        stream = io.BufferedWriter(stream) if raw else stream
        try:
            yield stream
            stream.flush()
        finally:
            if raw:
                with suppress(OSError):
                    stream.detach()
        return
    try:
        with replacing(path) as file, compressed(file, path) as stream:
            yield stream
    except OSError as error:
        raise problem(path, None, f"{error.strerror or error}; check the name of the file") from None

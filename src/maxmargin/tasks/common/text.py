"""What tasks read: bytes of files and lines of text, with errors that name the file and the line."""

from __future__ import annotations

import gzip
import sys
import zlib
from os import PathLike

from maxmargin._terminal import printable

AnyPath = str | PathLike[str]

STANDARD_INPUT = "-"


class FileError(ValueError):
    """A file that cannot be read or does not hold what it should: ``FILE, line N: what is wrong; what to do``."""


def name_of(path: AnyPath) -> str:
    """The file as errors name it."""
    return "standard input" if str(path) == STANDARD_INPUT else printable(path)


def count_of(number: int, noun: str) -> str:
    """``1 line``, ``2 lines``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def problem(path: AnyPath, line: int | None, message: str) -> FileError:
    """The error for a line, counted from 1, or for the file as a whole."""
    where = name_of(path) if line is None else f"{name_of(path)}, line {line}"
    return FileError(f"{where}: {message}")


def read_bytes(path: AnyPath) -> bytes:
    """The content of a file or, for ``-``, of standard input; unpacked if it is gzip, whatever the name says."""
    try:
        if str(path) == STANDARD_INPUT:
            data = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as file:
                data = file.read()
    except OSError as error:
        raise problem(path, None, f"{error.strerror or error}; check the name of the file") from None
    except ValueError:  # a name that no file can have
        raise problem(path, None, "no file can have this name; check it") from None
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise problem(path, None, f"damaged gzip file ({error}); copy or compress it again") from None
    return data


def read_text(path: AnyPath) -> bytes:
    """Like :func:`read_bytes`, but known to be UTF-8 without NUL, and without the mark at the start."""
    data = read_bytes(path)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise problem(
            path,
            line,
            f"byte 0x{data[error.start]:02x} is no UTF-8; save the file as UTF-8, for example with iconv",
        ) from None
    if (at := data.find(b"\0")) >= 0:
        line = data.count(b"\n", 0, at) + 1
        raise problem(
            path, line, "a NUL byte, so this is no text in UTF-8; save the file as UTF-8, for example with iconv"
        )
    return data.removeprefix(b"\xef\xbb\xbf")


def lines_of(data: bytes) -> list[bytes]:
    """Lines without their ends; the last one may have none."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines


def words_of(line: bytes | str) -> list[str]:
    """The words of a line of :func:`read_text`, or of a string, split at ASCII white space and nowhere else."""
    # Strings may hold lone surrogates and NUL, which files may not; str.split would split at much more.
    parts = line.encode("utf-8", "surrogatepass").split() if isinstance(line, str) else line.split()
    whole = b"\0".join(parts).decode("utf-8", "surrogatepass").split("\0") if parts else []
    # Decoding all at once is several times faster than word by word.
    return whole if len(whole) == len(parts) else [part.decode("utf-8", "surrogatepass") for part in parts]

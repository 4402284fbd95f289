"""Text files read block by block, so that memory does not grow with the file; also pipes, as far as they have come."""

from __future__ import annotations

import gzip
import io
import os
import select
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Self, cast

from maxmargin.tasks.common.compression import decompressed
from maxmargin.tasks.common.text import (
    STANDARD_INPUT,
    AnyPath,
    FileError,
    problem,
    read_bytes,
    refuse_expansion,
    text_of,
)

BLOCK = 1 << 17
"""Bytes of a block; one is larger if no sentence ends in it."""

_SMALL = 1 << 10


class TextBlocks:
    """A text file, or standard input for ``-``, as blocks of whole lines, decompressed on the way if it is compressed.

    A block of a pipe or a terminal is what has come so far, if that has a whole sentence. Used as a context manager.

    Args:
        path: the file.
        size: bytes of a block; None for the whole file as one block.
    """

    def __init__(self, path: AnyPath, size: int | None = BLOCK) -> None:
        self.path, self.size = path, size
        self._buffer, self._ended, self._file = b"", False, None
        if size is None:
            self._buffer, self._ended = read_bytes(path), True
            return
        with _named(path):
            if str(path) == STANDARD_INPUT:
                stream: Any = sys.stdin.buffer
            else:
                self._file = stream = open(path, "rb")  # noqa: SIM115 (closed by __exit__)
        self._source: _Source = _Source(stream)
        self._packed: gzip.GzipFile | io.BufferedReader | None = None
        with _named(self.path):
            start = self._source.read(2)
        self._source.held = start
        if start == b"\x1f\x8b":
            self._packed = gzip.GzipFile(fileobj=cast(BinaryIO, self._source))  # gives what has come without waiting
        elif start in (b"BZ", b"\xfd7", b"\x28\xb5"):
            with _named(self.path):
                found = decompressed(cast(BinaryIO, self._source), lambda message: problem(path, None, message))
            self._packed = cast(io.BufferedReader, found)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def head(self, enough: Callable[[bytes], bool]) -> bytes:
        """Return whole lines from the beginning that are enough, or all; the blocks will have them again."""
        while not self._ended and not enough(self._buffer[: self._buffer.rfind(b"\n") + 1]):
            self._more(self.size or 0)
        end = len(self._buffer) if self._ended else self._buffer.rfind(b"\n") + 1
        return text_of(self.path, self._buffer[:end])

    def blocks(self, *, paragraphs: bool) -> Iterator[tuple[int, bytes]]:
        """Yield the number of lines before each block, and the block.

        Args:
            paragraphs: whether blocks end at blank lines, else at any line.
        """
        lines, ends = 0, _last_blank if paragraphs else _last_line
        while not self._ended or self._buffer:
            end, tried = ends(self._buffer, 0), len(self._buffer)
            while not end and not self._ended:
                self._fill(max(self.size or 0, 2 * tried))
                end, tried = ends(self._buffer, tried), len(self._buffer)
            end = len(self._buffer) if self._ended else end
            block, self._buffer = self._buffer[:end], self._buffer[end:]
            if block:
                yield lines, text_of(self.path, block, lines=lines)
            lines += block.count(b"\n")

    def _fill(self, wanted: int) -> None:
        """Read at least once, and then up to ``wanted`` bytes as long as that means no waiting."""
        pieces, size = [self._buffer], len(self._buffer)
        while not self._ended and (len(pieces) == 1 or (size < wanted and self._source.ready)):
            pieces.append(self._read(max(wanted - size, 1)))
            size += len(pieces[-1])
        self._buffer = b"".join(pieces)

    def _more(self, wanted: int) -> None:
        self._buffer += self._read(wanted)

    def _read(self, wanted: int) -> bytes:
        """Return the next bytes, at most ``wanted``; none at the end."""
        with _named(self.path):
            found = self._source.read(wanted) if self._packed is None else self._packed.read1(wanted)
        if self._packed is not None:
            refuse_expansion(self.path, self._source.count, len(self._buffer))
        self._ended = not found
        return found


class _Source:
    """A binary stream that returns what has come without waiting for more, and counts it."""

    def __init__(self, stream: Any) -> None:
        self.held, self.count = b"", 0
        self._next: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
        try:
            self._number: int | None = stream.fileno()
            if stat.S_ISREG(os.fstat(self._number).st_mode):
                self._number = None
        except (OSError, AttributeError, ValueError):  # not a file of the system
            self._number = None

    @property
    def ready(self) -> bool:
        """Whether there is more, or the end, without waiting."""
        if self._number is None:
            return True
        try:
            return bool(select.select([self._number], [], [], 0)[0])
        except (OSError, ValueError):
            return False

    def read(self, size: int) -> bytes:
        """Return at most ``size`` bytes, none at the end; few are returned in full, as headers of gzip need them."""
        if self.held:
            found, self.held = self.held[:size], self.held[size:]
        else:
            found = self._next(size)
            self.count += len(found)
        while size < _SMALL and len(found) < size and (more := self._next(size - len(found))):
            found += more
            self.count += len(more)
        return found


@contextmanager
def _named(path: AnyPath) -> Iterator[None]:
    """Name the file in errors of reading."""
    try:
        yield
    except FileError:
        raise
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise problem(path, None, f"damaged gzip file ({error}); copy or compress it again") from None
    except OSError as error:
        raise problem(path, None, f"{error.strerror or error}; check the name of the file") from None
    except ValueError:
        raise problem(path, None, "no file can have this name; check it") from None


def _last_blank(data: bytes, first: int) -> int:
    """Return the end of the last blank line that ends after ``first``, 0 if there is none."""
    stop = data.rfind(b"\n")
    while stop >= first and stop >= 0:
        begin = data.rfind(b"\n", 0, stop) + 1
        if not data[begin:stop].strip():
            return stop + 1
        stop = begin - 1
    return 0


def _last_line(data: bytes, first: int) -> int:
    """Return the end of the last line that ends after ``first``, 0 if there is none."""
    return data.rfind(b"\n", first) + 1

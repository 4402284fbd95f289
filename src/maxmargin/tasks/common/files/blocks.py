"""Text files read block by block, so that memory does not grow with the file; also pipes, as far as they have come."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Self

from maxmargin.tasks.common.files.compression import is_ready
from maxmargin.tasks.common.files.text import STANDARD_INPUT, AnyPath, lines_of, open_bytes, read_bytes, text_of

BLOCK = 1 << 17
"""Bytes of a block; one is larger if no sentence ends in it."""


class TextBlocks:
    """A text file, or standard input for ``-``, as blocks of whole lines, decompressed on the way if it is compressed.

    A block of a pipe or a terminal is what has come so far, if that has a whole sentence. Used as a context manager.

    Args:
        path: the file.
        size: bytes of a block; None for the whole file as one block.
    """

    def __init__(self, path: AnyPath, size: int | None = BLOCK) -> None:
        self.path, self.size = path, size
        self._buffer, self._ended, self._files = b"", False, ExitStack()
        if size is None:
            self._buffer, self._ended = read_bytes(path), True
        else:
            self._stream: Any = self._files.enter_context(open_bytes(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def head(self, enough: Callable[[bytes], bool]) -> bytes:
        """Return whole lines from the beginning that are enough, or all; the blocks will have them again."""
        while not self._ended and not enough(self._buffer[: self._buffer.rfind(b"\n") + 1]):
            self._buffer += self._read(self.size or 0)
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
        while not self._ended and (len(pieces) == 1 or (size < wanted and is_ready(self._stream))):
            pieces.append(self._read(max(wanted - size, 1)))
            size += len(pieces[-1])
        self._buffer = b"".join(pieces)

    def _read(self, wanted: int) -> bytes:
        """Return the next bytes, at most ``wanted``; none at the end."""
        found: bytes = self._stream.read1(wanted)
        self._ended = not found
        return found


class Lines:
    """The lines of a file, taken as many at a time as are wanted."""

    def __init__(self, text: TextBlocks) -> None:
        self._blocks = text.blocks(paragraphs=False)
        self._lines: list[bytes] = []
        self.taken = 0

    def take(self, size: int | None) -> list[bytes]:
        """The next ``size`` lines, fewer at the end; None for those that have come, at least one."""
        while len(self._lines) < (1 if size is None else size) and (block := next(self._blocks, None)):
            self._lines += lines_of(block[1])
        found, self._lines = self._lines[:size], [] if size is None else self._lines[size:]
        self.taken += len(found)
        return found

    def count(self) -> int:
        """The number of lines of the file, of which the rest is read."""
        while self.take(None):
            pass
        return self.taken


def has_come(paths: Sequence[AnyPath | None]) -> bool:
    """Return whether inputs can be read without waiting, as far as that is known: of standard input."""
    if not any(str(path) == STANDARD_INPUT for path in paths):
        return True
    try:
        return bool(select.select([sys.stdin], [], [], 0)[0])
    except (OSError, ValueError):  # not a file of the system, or Windows, which can ask sockets only
        return True


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

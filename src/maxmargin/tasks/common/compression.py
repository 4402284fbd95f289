"""Compressed files, recognized by their first bytes and read piece by piece: gzip, bzip2, xz and Zstandard.

What a file may expand to is limited, as a few bytes can be made to fill the memory.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import re
import stat
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO, cast

from maxmargin._messages import quoted
from maxmargin.tasks.common.packages import optional

EXPANSION = "MAXMARGIN_EXPANSION"
"""The environment variable that says how many times its size a compressed file may expand to; 100 by default."""

_EXPANSION = 100.0
ALWAYS = 1 << 22
"""Bytes to which any compressed file may expand."""

_PIECE = 1 << 20
_ZSTD_PIECE = 1 << 10  # of compressed bytes: a block of four can be 128 KiB, and all that is fed is expanded at once


def most_expanded(size: int, always: int = ALWAYS) -> int:
    """Return the bytes to which a compressed file of so many may expand; ``always`` are fine whatever its size.

    Text shrinks to a third or a tenth, and rarely to a hundredth, but files that were made to fill the memory to a
    thousandth.
    """
    given = os.environ.get(EXPANSION, "")
    try:
        times = float(given) if given else _EXPANSION
        if not times >= 1.0:
            raise ValueError
    except ValueError:
        raise ValueError(
            f"{EXPANSION} must be a number >= 1, got {quoted(given)}; unset it for {_EXPANSION:g}"
        ) from None
    return max(always, int(min(times * size, float(1 << 62))))


def expands(size: int) -> str:
    """Return the error of a file of so many bytes that expands to more than it may."""
    times = f"{most_expanded(size, 0) / max(size, 1):g}"
    return (
        f"its {size} bytes expand to more than {times} times as many, as if made to fill the memory; if you trust it, "
        f"decompress it first, or set the environment variable {EXPANSION} to a number above {times}"
    )


def decompressed(file: BinaryIO, error: Callable[[str], Exception]) -> BinaryIO:
    """Return a stream of the content of a file: decompressed if it is compressed, otherwise the same bytes.

    Args:
        file: the file, at its beginning.
        error: the exception for a message, raised on opening and on reading.
    """
    first = file.peek(_LONGEST)[:_LONGEST] if hasattr(file, "peek") else b""
    if len(first) == _LONGEST and not any(magic.match(first) for magic, _, _ in _KINDS):
        return file
    # A pipe may have given fewer bytes so far.
    source = _Source(file, file.read(_LONGEST), error)
    name, opened = next(((name, opened) for magic, name, opened in _KINDS if magic.match(source.first)), ("", None))
    content: io.RawIOBase = source
    if opened is not None:
        content = _Content(opened(cast(BinaryIO, io.BufferedReader(source, 1 << 16))), source, name, error)
    return cast(BinaryIO, io.BufferedReader(content, _PIECE))


class _Source(io.RawIOBase):
    """The bytes of a file whose ``first`` ones have been read, counted."""

    def __init__(self, file: BinaryIO, first: bytes, error: Callable[[str], Exception]) -> None:
        self.first = self._left = first
        self._file, self._error, self._count, self._size = file, error, len(first), 0
        with contextlib.suppress(OSError, ValueError, AttributeError):  # if it is not a file of the system
            found = os.fstat(file.fileno())
            self._size = found.st_size if stat.S_ISREG(found.st_mode) else 0

    @property
    def size(self) -> int:
        """Bytes of the whole file, or those that were read so far if it does not say."""
        return max(self._size, self._count)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            try:
                self._left = getattr(self._file, "read1", self._file.read)(len(buffer))
            except OSError as error:
                raise self._error(f"{error.strerror or error}; check the file") from None
            self._count += len(self._left)
        piece, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(piece)] = piece
        return len(piece)


class _Content(io.RawIOBase):
    """A decompressed stream that is never longer than it may be."""

    def __init__(self, stream: BinaryIO, source: _Source, name: str, error: Callable[[str], Exception]) -> None:
        self._stream, self._source, self._name, self._error, self._count = stream, source, name, error, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            piece = self._stream.read(len(buffer))
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise self._error(f"damaged {self._name} file ({error}); copy or compress it again") from None
        self._count += len(piece)
        if self._count > most_expanded(self._source.size):
            raise self._error(expands(self._source.size))
        buffer[: len(piece)] = piece
        return len(piece)


class _Zstandard(io.RawIOBase):
    """The content of a Zstandard file of one or several frames."""

    def __init__(self, file: BinaryIO) -> None:
        package = optional("zstandard", "zstd")
        self._new: Callable[[], Any] = lambda: package.ZstdDecompressor().decompressobj()
        self._error = package.ZstdError
        self._file, self._frame, self._left, self._rest = file, self._new(), b"", b""
        self._whole = True  # no frame has been begun

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            data = self._rest or self._file.read(_ZSTD_PIECE)
            self._rest = b""
            if not data:
                if self._whole:
                    return 0
                raise EOFError("the file ends before its last frame does")
            try:
                self._left, self._whole = self._frame.decompress(data), False
            except self._error as error:
                raise EOFError(str(error)) from None
            if self._frame.eof:
                self._rest, self._whole, self._frame = self._frame.unused_data, True, self._new()
        piece, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(piece)] = piece
        return len(piece)


_KINDS: tuple[tuple[re.Pattern[bytes], str, Callable[[BinaryIO], Any]], ...] = (
    (re.compile(rb"\x1f\x8b"), "gzip", lambda file: gzip.GzipFile(fileobj=file)),
    (re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"), "bzip2", bz2.BZ2File),
    (re.compile(rb"\xfd7zXZ\x00"), "xz", lzma.LZMAFile),
    (re.compile(rb"\x28\xb5\x2f\xfd"), "Zstandard", _Zstandard),
)
_LONGEST = 10
"""Number of bytes that tell all kinds."""

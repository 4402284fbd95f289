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
import select
import stat
import zlib
from collections.abc import Callable, Iterator
from os import PathLike
from typing import Any, BinaryIO, NamedTuple, Protocol, cast

from maxmargin._messages import quoted
from maxmargin.tasks.common.packages import optional

EXPANSION = "MAXMARGIN_EXPANSION"
"""The environment variable that says how many times its size a compressed file may expand to; 100 by default."""

_EXPANSION = 100.0
ALWAYS = 1 << 22
"""Bytes to which any compressed file may expand."""

SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
"""How the names of compressed files end."""

_PIECE = 1 << 20
_PACKED_PIECE = 1 << 16
_ZSTD_PIECE = 1 << 10  # a block of four bytes can be 128 KiB, and all that is fed is expanded at once


def plain_name(path: str | PathLike[str]) -> str:
    """Return a path without the ending of compressed files, if it has one."""
    name = os.fspath(path)
    return next((name[: -len(one)] for one in SUFFIXES if name.lower().endswith(one)), name)


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


@contextlib.contextmanager
def compressed(file: BinaryIO, path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """Open a stream into a file that is compressed if its name says so; equal content gives equal files."""
    end = next((one for one in SUFFIXES if os.fspath(path).lower().endswith(one)), "")
    if not end:
        yield file
        return
    with _PACKERS[end](file) as stream:
        yield cast(BinaryIO, stream)


_PACKERS: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda file: gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0, compresslevel=6),
    ".bz2": lambda file: bz2.BZ2File(file, "wb"),
    ".xz": lambda file: lzma.LZMAFile(file, "wb"),  # noqa: SIM115 (closed by compressed)
    ".zst": lambda file: optional("zstandard", "zstd").ZstdCompressor().stream_writer(file, closefd=False),
}

_LOOK = 0.5
"""Seconds between two looks at signals."""


def decompressed(file: BinaryIO, error: Callable[[str], Exception]) -> BinaryIO:
    """Return a stream of the content of a file: decompressed if it is compressed, otherwise the same bytes.

    Its ``read1`` returns what has come through a pipe without waiting for more; see also :func:`is_ready`.

    Args:
        file: the file, at its beginning.
        error: the exception for a message, raised on opening and on reading.
    """
    number = _file_number(file)
    regular = number is not None and stat.S_ISREG(os.fstat(number).st_mode)
    if regular and hasattr(file, "peek") and not any(_kinds(file.peek(_LONGEST)[:_LONGEST])):
        return file
    source = _Source(file, number, regular, error)
    first = b""
    # As long as they may be the first bytes of a compressed file; a first line of text is hardly ever.
    while any(kind.magic.startswith(first) and len(kind.magic) > len(first) for kind in _KINDS):
        if not (more := source.take(_LONGEST - len(first))):
            break
        first += more
    source.held = first
    kind = next(_kinds(first), None)
    return cast(BinaryIO, _Stream(source if kind is None else _Frames(source, kind, error), source))


def is_ready(stream: Any) -> bool:
    """Whether a stream of :func:`decompressed` has more, or has ended, without waiting."""
    return stream.source.ready if isinstance(stream, _Stream) else True


def _file_number(file: Any) -> int | None:
    """Return the number of a file of the system; None for other streams."""
    try:
        return int(file.fileno())
    except (OSError, ValueError, AttributeError):
        return None


class _Stream(io.BufferedReader):
    """A buffered stream that knows the bytes it comes from."""

    def __init__(self, content: io.RawIOBase, source: _Source) -> None:
        super().__init__(content, _PIECE)
        self.source = source


class _Source(io.RawIOBase):
    """The bytes of a file as they come, counted; those that are ``held`` come first."""

    def __init__(self, file: BinaryIO, number: int | None, regular: bool, error: Callable[[str], Exception]) -> None:
        self.held, self.regular = b"", regular
        # What comes through a pipe is not read ahead, so that the system knows whether there is more.
        raw = None if regular or number is None else getattr(file, "raw", None)
        self._next: Callable[[int], bytes] = getattr(file, "read1", file.read) if raw is None else raw.read
        self._number, self._error, self._count = number, error, 0
        self._size = os.fstat(number).st_size if regular and number is not None else 0

    @property
    def size(self) -> int:
        """Bytes of the whole file, or those that were read so far if it does not say."""
        return max(self._size, self._count)

    @property
    def ready(self) -> bool:
        """Whether there is more, or the end, without waiting."""
        if self.regular or self._number is None or self.held:
            return True
        try:
            return bool(select.select([self._number], [], [], 0)[0])
        except (OSError, ValueError):  # as on Windows, which can ask sockets only: then callers wait
            return False

    def readable(self) -> bool:
        return True

    def take(self, size: int) -> bytes:
        """Return at most ``size`` bytes, those that have come; none at the end."""
        if self.held:
            found, self.held = self.held[:size], self.held[size:]
            return found
        try:
            self._wait()
            found = self._next(size)
        except OSError as error:
            raise self._error(f"{error.strerror or error}; check the file") from None
        self._count += len(found)
        return found

    def _wait(self) -> None:
        """Wait for more, and look at signals now and then: a read would hide one that comes just before it."""
        if self.regular or self._number is None:
            return
        with contextlib.suppress(OSError, ValueError):  # as on Windows, which can ask sockets only
            while not select.select([self._number], [], [], _LOOK)[0]:
                pass

    def readinto(self, buffer: Any) -> int:
        found = self.take(len(buffer))
        buffer[: len(found)] = found
        return len(found)


class _Decompressor(Protocol):
    """Decompresses one frame, as those of :mod:`bz2` and :mod:`lzma` do."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Frames(io.RawIOBase):
    """The content of a file of one or several compressed frames, never longer than it may be.

    What has come is decompressed without waiting for more, unlike by the classes for files of Python's modules.
    """

    def __init__(self, source: _Source, kind: _Kind, error: Callable[[str], Exception]) -> None:
        self._source, self._kind, self._error = source, kind, error
        self._frame, self._rest, self._count = kind.new(), b"", 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            found = self._next(len(buffer))
            # Of a file that does not wait all that was asked for, as damage is known only at the end of a frame.
            while self._source.regular and len(found) < len(buffer) and (more := self._next(len(buffer) - len(found))):
                found += more
        except self._kind.errors() as error:
            raise self._error(f"damaged {self._kind.name} file ({error}); copy or compress it again") from None
        self._count += len(found)
        if self._count > most_expanded(self._source.size):
            raise self._error(expands(self._source.size))
        buffer[: len(found)] = found
        return len(found)

    def readall(self) -> bytes:
        return b"".join(iter(lambda: self.read(_PIECE) or b"", b""))

    def _next(self, most: int) -> bytes:
        """Return at most so many decompressed bytes, none at the end."""
        while True:
            if self._frame.eof:
                if not self._begun():
                    return b""
            elif self._frame.needs_input and not self._rest:
                self._rest = self._source.take(self._kind.piece)
                if not self._rest:
                    raise EOFError("it ends before its last frame does")
            data, self._rest = self._rest, b""
            found = self._frame.decompress(data, most)
            if self._frame.eof:
                self._rest = self._frame.unused_data
            if found:
                return found

    def _begun(self) -> bool:
        """Begin the next frame, perhaps after padding with zeros; False if there is none."""
        while not (rest := self._rest.lstrip(b"\0")):
            self._rest = self._source.take(self._kind.piece)
            if not self._rest:
                return False
        self._rest = rest
        self._frame = self._kind.new()
        return True


class _Gzip:
    """A :class:`_Decompressor` of gzip."""

    def __init__(self) -> None:
        self._stream, self._full = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16), False

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def needs_input(self) -> bool:
        return not (self._full or self._stream.unconsumed_tail)

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        found = self._stream.decompress(self._stream.unconsumed_tail + data, max_length)
        self._full = len(found) == max_length
        return found


class _Zstandard:
    """A :class:`_Decompressor` of Zstandard, which keeps what is more than was asked for."""

    def __init__(self) -> None:
        self._stream: Any = optional("zstandard", "zstd").ZstdDecompressor().decompressobj()
        self._more = b""

    @property
    def eof(self) -> bool:
        return self._stream.eof and not self._more

    @property
    def needs_input(self) -> bool:
        return not self._more

    @property
    def unused_data(self) -> bytes:
        return bytes(self._stream.unused_data)

    def decompress(self, data: bytes, max_length: int) -> bytes:
        every = self._more + (self._stream.decompress(data) if data else b"")
        self._more = every[max_length:]
        return every[:max_length]


class _Kind(NamedTuple):
    """A kind of compressed files: its first bytes, name, decompressor of a frame, and bytes to feed at a time."""

    magic: bytes
    name: str
    new: Callable[[], _Decompressor]
    piece: int = _PACKED_PIECE

    def errors(self) -> tuple[type[Exception], ...]:
        """Exceptions of damaged files."""
        package = (optional("zstandard", "zstd").ZstdError,) if self.new is _Zstandard else ()
        return (OSError, EOFError, zlib.error, lzma.LZMAError, *package)


_KINDS = (
    _Kind(b"\x1f\x8b", "gzip", _Gzip),
    # Nine sizes of blocks, and then a block or, in a file without content, the end.
    *(
        _Kind(b"BZh%d" % size + next_one, "bzip2", bz2.BZ2Decompressor)
        for size in range(1, 10)
        for next_one in (b"1AY&SY", b"\x17rE8P\x90")
    ),
    _Kind(b"\xfd7zXZ\x00", "xz", lzma.LZMADecompressor),
    _Kind(b"\x28\xb5\x2f\xfd", "Zstandard", _Zstandard, _ZSTD_PIECE),
)
_LONGEST = max(len(kind.magic) for kind in _KINDS)


def _kinds(first: bytes) -> Iterator[_Kind]:
    """Yield the kinds of files with these first bytes."""
    return (kind for kind in _KINDS if first.startswith(kind.magic))

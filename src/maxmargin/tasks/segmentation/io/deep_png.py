"""PNG files of 16 bits a channel in color, which Pillow would reduce to 8 bits."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

_HEADER = struct.Struct(">IIBBBBB")
_START = 8
_NONE, _SUB, _UP, _AVERAGE, _PAETH = range(5)


def color_depth(data: bytes) -> int | None:
    """Return the bits per channel of a PNG file in color; None for other PNG files."""
    if len(data) < _START + 8 + _HEADER.size or data[12:16] != b"IHDR":
        return None
    _, _, depth, kind, *_ = _HEADER.unpack_from(data, _START + 8)
    return int(depth) if kind in (2, 6) else None


def decode_deep(data: bytes, max_pixels: int) -> npt.NDArray[np.uint16]:
    """Return the pixels of a PNG file of 16 bits a channel in color, shape ``(h, w, 3)`` or with alpha ``(h, w, 4)``.

    Raises ValueError on damaged files; those with interlaced rows are not supported.
    """
    width, height, _, kind, compression, filters, interlace = _HEADER.unpack_from(data, _START + 8)
    if compression or filters:
        raise ValueError("unknown compression")
    if interlace:
        raise ValueError("interlaced rows of 16 bits; save it without interlacing")
    if not 0 < width * height <= max_pixels:
        raise ValueError(f"{width} x {height} pixels; at most {max_pixels} are read")
    channels = 3 if kind == 2 else 4
    wanted = height * (1 + 2 * channels * width)
    unpacker = zlib.decompressobj()
    content = unpacker.decompress(b"".join(_contents(data)), wanted)
    if len(content) < wanted:
        raise ValueError(f"{len(content)} bytes of pixels instead of {wanted}")
    rows = np.frombuffer(content, dtype=np.uint8).reshape(height, -1)
    plain = _unfiltered(rows[:, 0], rows[:, 1:].reshape(height, width, 2 * channels))
    return plain.view(">u2").astype(np.uint16)


def _contents(data: bytes) -> Iterator[bytes]:
    """Yield the compressed pixels, chunk by chunk, with their checksums checked."""
    at = _START
    while at + 12 <= len(data):
        length, name = struct.unpack_from(">I4s", data, at)
        end = at + 8 + length
        if end + 4 > len(data):
            break
        if zlib.crc32(data[at + 4 : end]) != struct.unpack_from(">I", data, end)[0]:
            raise ValueError(f"wrong checksum at byte {at}")
        if name == b"IEND":
            return
        if name == b"IDAT":
            yield data[at + 8 : end]
        at = end + 4
    raise ValueError("the file is cut off")


def _unfiltered(kinds: npt.NDArray[np.uint8], rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Undo the filters of rows, shape ``(h, w, bytes)``.

    A pixel depends on those to the left, above, and above left, so all pixels of an antidiagonal are independent.
    """
    if (kinds > _PAETH).any():
        raise ValueError(f"unknown filter {int(kinds.max())}")
    height, width, _ = rows.shape
    # One row and one column of zeros in front spare the tests at the edges.
    plain = np.zeros((height + 1, width + 1, rows.shape[2]), dtype=np.int16)
    for diagonal in range(height + width - 1):
        y = np.arange(max(0, diagonal - width + 1), min(height, diagonal + 1))
        x = diagonal - y
        left, up, corner = plain[y + 1, x], plain[y, x + 1], plain[y, x]
        kind = kinds[y][:, None]
        toward_left, toward_up = abs(up - corner), abs(left - corner)
        toward_corner = abs(left + up - 2 * corner)
        nearest = np.where(toward_up <= toward_corner, up, corner)
        nearest = np.where((toward_left <= toward_up) & (toward_left <= toward_corner), left, nearest)
        guess = np.select(
            [kind == _SUB, kind == _UP, kind == _AVERAGE, kind == _PAETH], [left, up, (left + up) >> 1, nearest], 0
        )
        plain[y + 1, x + 1] = (rows[y, x] + guess) & 255
    return np.ascontiguousarray(plain[1:, 1:]).astype(np.uint8)

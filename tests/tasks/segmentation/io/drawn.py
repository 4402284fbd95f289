"""Images and scans that tests write to files."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest

pytest.importorskip("PIL", reason="needs the images extra")
pytest.importorskip("tifffile", reason="needs the images extra")

from PIL import Image

RNG = np.random.default_rng(0)
GRAY = RNG.integers(0, 256, (13, 17), dtype=np.uint8)
COLOR = RNG.integers(0, 256, (13, 17, 3), dtype=np.uint8)
DEEP = RNG.integers(0, 65536, (13, 17), dtype=np.uint16)
DEEP_COLOR = RNG.integers(0, 65536, (13, 17, 3), dtype=np.uint16)
SMOOTH = np.add.outer(np.arange(40), np.arange(60)).astype(np.uint8)


def saved_by_pillow(image, path, **options):
    """Write an array, or an image of Pillow, and return the name of the file."""
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(path, **options)
    return path


def png_bytes(rows: bytes, width: int, height: int, depth: int, kind: int) -> bytes:
    """A PNG file of rows with their filter bytes."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def filtered(rows: np.ndarray, pixel: int, kinds) -> bytes:
    """Apply the filters of PNG to rows of bytes, pixel by pixel as the specification says."""
    out = bytearray()
    before = np.zeros(rows.shape[1], dtype=int)
    for kind, row in zip(kinds, rows.astype(int), strict=True):
        out.append(kind)
        for at, value in enumerate(row):
            left = row[at - pixel] if at >= pixel else 0
            corner = before[at - pixel] if at >= pixel else 0
            up = before[at]
            guess = left + up - corner
            near = min((abs(guess - left), 0, left), (abs(guess - up), 1, up), (abs(guess - corner), 2, corner))[2]
            out.append((value - [0, left, up, (left + up) // 2, near][kind]) % 256)
        before = row
    return bytes(out)


def bytes_of(image: Image.Image, format: str, **options) -> bytes:
    stream = io.BytesIO()
    image.save(stream, format=format, **options)
    return stream.getvalue()

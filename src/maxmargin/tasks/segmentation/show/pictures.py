"""Pictures as bytes of PNG and JPEG files, small enough for a page."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.common.packages import optional
from maxmargin.tasks.segmentation.io.images import resize_image
from maxmargin.tasks.segmentation.io.pixels import EXTRA

WIDTH = 360
"""Pictures are at most so wide."""
_HEIGHT = 540
_SIDE_HEIGHT = 96  # a side view of flat ground is stretched to this


def indexed_png(numbers: npt.NDArray[Any], colors: npt.ArrayLike) -> bytes:
    """A PNG file of the colors behind numbers.

    Args:
        numbers: a number below 256 for each pixel, shape ``(h, w)``.
        colors: red, green, blue and opacity of each number, shape ``(n, 4)``.
    """
    table = np.asarray(colors, dtype=np.uint8)
    height, width = numbers.shape
    rows = np.zeros((height, width + 1), dtype=np.uint8)  # each row begins with the number of its filter, none
    rows[:, 1:] = numbers
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", head), (b"PLTE", table[:, :3].tobytes()), (b"tRNS", table[:, 3].tobytes()))
    chunks = [*parts, (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def jpeg(image: npt.NDArray[np.uint8], quality: int = 82) -> bytes:
    """A JPEG file of an 8-bit RGB image."""
    packed = io.BytesIO()
    optional("PIL.Image", EXTRA).fromarray(np.ascontiguousarray(image)).save(packed, format="jpeg", quality=quality)
    return packed.getvalue()


def data_uri(content: bytes) -> str:
    """An address that is the content of a PNG or JPEG file."""
    kind = "png" if content.startswith(b"\x89PNG") else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def reduced_size(height: int, width: int) -> tuple[int, int]:
    """Height and width of an image in a page."""
    scale = min(1.0, WIDTH / width, _HEIGHT / height)
    return max(1, round(height * scale)), max(1, round(width * scale))


def reduced(image: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """An 8-bit image in the size of a page."""
    return resize_image(image, reduced_size(image.shape[0], image.shape[1]))


def top_view(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where points are seen from above, shape ``(n, 2)``, rightwards and upwards, and how near they are."""
    return points[:, :2], points[:, 2]


def side_view(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same from the side, across the direction in which the scan is longest."""
    flat = points[:, :2] - points[:, :2].mean(axis=0)
    _, _, axes = np.linalg.svd(flat.T @ flat)
    along = axes[0] if axes[0][np.abs(axes[0]).argmax()] > 0 else -axes[0]
    across = np.array([along[1], -along[0]])
    place = np.column_stack([flat @ along, points[:, 2]])
    width, height = np.ptp(place, axis=0)
    place[:, 1] *= max(1.0, _SIDE_HEIGHT / WIDTH * float(width) / max(float(height), 1e-12))
    return place, flat @ across


def raster(place: FloatArray, nearness: FloatArray, numbers: IntArray) -> npt.NDArray[np.uint8]:
    """A picture of points: the number of the nearest one at each pixel, 0 where there is none.

    Args:
        place: rightwards and upwards, shape ``(n, 2)``.
        nearness: points with a larger one hide others.
        numbers: from 1 to 255, for each point.
    """
    low, span = place.min(axis=0), np.maximum(np.ptp(place, axis=0), 1e-9)
    scale = min((WIDTH - 4) / span[0], (_HEIGHT - 4) / span[1])
    width, height = (max(8, int(np.ceil(side * scale)) + 4) for side in span)
    at = ((place - low) * scale + 1.5).astype(np.int64)
    # Points are as large as it takes to close most gaps between them.
    size = int(np.clip(np.ceil(np.sqrt(0.6 * width * height / len(place))), 1, 4))
    order = np.argsort(nearness, kind="stable")
    columns, rows, ordered = at[order, 0], height - 1 - at[order, 1], numbers[order]
    picture = np.zeros((height, width), dtype=np.uint8)
    for down in range(size):
        for right in range(size):
            # Of equal places the last one, which is the nearest, is kept.
            picture[np.clip(rows + down, 0, height - 1), np.clip(columns + right, 0, width - 1)] = ordered
    return picture

"""Images as arrays: gray ``(h, w)``, RGB ``(h, w, 3)``, and stacks of either.

Values keep the type of the file as far as learning needs it: uint8, uint16, or float32 for all else.
"""

from __future__ import annotations

import io
from os import fspath
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.tasks.common.files.text import AnyPath, name_of, open_output, problem
from maxmargin.tasks.common.packages import optional
from maxmargin.tasks.segmentation.io.arrays import write_arrays
from maxmargin.tasks.segmentation.io.pixels import EXTRA, Array, decode

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".npz", ".npy")
"""Ends of names of images in folders; single files may have any name."""


def read_image(path: AnyPath) -> Array:
    """Read an image or a stack.

    PNG, JPEG and TIFF (8 or 16 bits, floating point, several pages) and npz (one array, or the one named ``image``) are
    recognized by content. Alpha is dropped, palettes and CMYK become RGB, and the EXIF orientation is applied.

    Returns:
        uint8, uint16 or float32 of shape ``(h, w)``, ``(h, w, 3)``, ``(d, h, w)`` or ``(d, h, w, 3)``.
    """
    pixels = decode(path)
    values = pixels.values
    if pixels.palette is not None:
        colors = pixels.palette[np.minimum(values, len(pixels.palette) - 1)]
        gray = bool((colors[..., 0] == colors[..., 1]).all() and (colors[..., 0] == colors[..., 2]).all())
        values = colors[..., 0] if gray else colors
    return _plain(path, np.ascontiguousarray(values))


def _plain(path: AnyPath, values: Array) -> Array:
    """Return the values as uint8, uint16 or float32."""
    if values.dtype == np.bool_:
        return np.where(values, np.uint8(255), np.uint8(0))
    if values.dtype.kind in "ui":
        if values.dtype.itemsize == 1 and values.dtype.kind == "u":
            return values
        low, high = int(values.min()), int(values.max())
        if low >= 0 and high <= 65535:
            return values.astype(np.uint16)
        return values.astype(np.float32)
    with np.errstate(over="ignore"):  # what is too large becomes infinite and is found below
        real = values.astype(np.float32)
    wrong = ~np.isfinite(real)
    if wrong.any():
        at = tuple(int(index) for index in np.argwhere(wrong)[0])
        raise problem(
            path,
            None,
            f"{int(wrong.sum())} values are not finite float32 numbers, the first ({values[at]}) at {position(at)}; "
            "replace them, for example by 0",
        )
    return real


def position(at: tuple[int, ...]) -> str:
    """Name a pixel for messages: ``row 3, column 7``, counted from 1; in stacks the page first."""
    *page, row, column = (index + 1 for index in at[: max(2, min(len(at), 3))])
    where = f"row {row}, column {column}"
    return f"page {page[0]}, {where}" if page else where


def write_image(path: AnyPath, image: Array) -> None:
    """Write an image or a stack; the end of the name says how: ``.png``, ``.jpg``, ``.tif`` or ``.npz``.

    PNG holds uint8 images and gray uint16 ones, JPEG uint8 ones with losses, TIFF and npz everything.
    """
    image = np.asarray(image)
    ending = suffix_of(path)
    if ending == ".npz":
        write_arrays(path, {"image": image})
    elif ending in (".tif", ".tiff"):
        write_tiff(path, image)
    elif ending in (".png", ".jpg", ".jpeg"):
        color = image.ndim == 3 and image.shape[-1] == 3
        deep = image.dtype == np.uint16 and ending == ".png" and not color
        if not (image.ndim == 2 or color) or not (image.dtype == np.uint8 or deep):
            what = f"an image of shape {image.shape} and type {image.dtype}"
            raise ValueError(f"{name_of(path)}: {what} does not fit this format; write .tif or .npz")
        save_pillow(path, optional("PIL.Image", EXTRA).fromarray(np.ascontiguousarray(image)))
    else:
        raise ValueError(f"{name_of(path)}: unknown format; end the name with .png, .jpg, .tif or .npz")


def suffix_of(path: AnyPath) -> str:
    """Return the end of a file's name in lower case, with its dot; empty if there is none."""
    name = fspath(path).replace("\\", "/").rpartition("/")[2]
    stem, dot, end = name.rpartition(".")
    return f".{end.lower()}" if dot and stem else ""


def save_pillow(path: AnyPath, image: Any, **options: Any) -> None:
    """Write an image of Pillow in the format of its name."""
    format = "jpeg" if suffix_of(path) in (".jpg", ".jpeg") else "png"
    packed = io.BytesIO()
    image.save(packed, format=format, **({"quality": 95} if format == "jpeg" else {}), **options)
    with open_output(path) as file:
        file.write(packed.getvalue())


def write_tiff(path: AnyPath, values: Array) -> None:
    """Write a TIFF file, with one page per image of a stack."""
    color = values.ndim in (3, 4) and values.shape[-1] == 3
    packed = io.BytesIO()
    optional("tifffile", EXTRA).imwrite(
        packed, values, photometric="rgb" if color else "minisblack", compression="zlib", metadata=None
    )
    with open_output(path) as file:
        file.write(packed.getvalue())


def resize_image(image: Array, size: tuple[int, int]) -> Array:
    """Resize an image to (height, width); a smaller one has the means of the areas that its pixels cover."""
    pillow = optional("PIL.Image", EXTRA)
    height, width = size
    if image.shape[:2] == size:
        return image
    smaller = height * width < image.shape[0] * image.shape[1]
    filter = pillow.Resampling.BOX if smaller else pillow.Resampling.BICUBIC
    if image.dtype == np.uint8:
        resized: Array = np.array(pillow.fromarray(image).resize((width, height), filter))
        return resized
    planes = image[..., None] if image.ndim == 2 else image
    channels = [
        pillow.fromarray(np.ascontiguousarray(planes[..., at], dtype=np.float32)) for at in range(planes.shape[-1])
    ]
    resized_channels = [np.array(one.resize((width, height), filter)) for one in channels]
    result = np.stack(resized_channels, axis=-1).reshape(height, width, *image.shape[2:])
    if image.dtype.kind == "u":
        np.rint(np.clip(result, 0, np.iinfo(image.dtype).max), out=result)
    return result.astype(image.dtype)


def resize_labels(labels: npt.NDArray[Any], size: tuple[int, int]) -> npt.NDArray[Any]:
    """Resize labels of pixels to (height, width); each new pixel takes the label of the nearest old one."""
    height, width = labels.shape
    rows = ((np.arange(size[0]) + 0.5) * height / size[0]).astype(np.int64)
    columns = ((np.arange(size[1]) + 0.5) * width / size[1]).astype(np.int64)
    nearest: Array = labels[rows[:, None], columns[None, :]]
    return nearest

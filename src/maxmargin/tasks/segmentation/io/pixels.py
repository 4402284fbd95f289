"""Pixels as files store them: PNG, JPEG, TIFF and npz, recognized by content.

Images and masks read the same files in two ways: an image wants colors, a mask the numbers behind them. :func:`decode`
returns both.
"""

from __future__ import annotations

import io
import logging
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin._quiet import quiet
from maxmargin.tasks.common.files.text import AnyPath, FileError, most_expanded, problem, read_bytes, refuse_expansion
from maxmargin.tasks.common.packages import optional
from maxmargin.tasks.segmentation.io.arrays import NPY, ZIP, named_array
from maxmargin.tasks.segmentation.io.deep_png import color_depth, decode_deep

Array = npt.NDArray[Any]

EXTRA = "images"
"""The extra with the packages that read and write images."""

MAX_PIXELS = 1 << 28
"""The largest image or stack that is read."""

ALWAYS_PIXELS = 1 << 25
"""Pixels that a compressed file of any size may have."""

FORMATS = "PNG, JPEG, TIFF or npz"

_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "png",
    b"\xff\xd8\xff": "jpeg",
    b"II*\0": "tiff",
    b"MM\0*": "tiff",
    b"II+\0": "tiff",
    b"MM\0+": "tiff",
    ZIP: "npz",
    NPY: "npz",
}
_FOREIGN = {b"GIF8": "GIF", b"BM": "BMP", b"RIFF": "WebP", b"%PDF": "PDF", b"<svg": "SVG", b"\x89HDF": "HDF5"}


@dataclass(frozen=True, eq=False)
class Pixels:
    """What a file holds.

    Attributes:
        values: ``(h, w)``, ``(h, w, 3)``, ``(d, h, w)`` or ``(d, h, w, 3)``; numbers of palette entries if there is a
            palette.
        color: whether the last axis is red, green, blue.
        palette: the colors behind the numbers, shape ``(entries, 3)``; None without a palette.
        format: png, jpeg, tiff or npz.
        alpha: how opaque each pixel is, 0 if not at all; None if all are.
    """

    values: Array
    color: bool
    palette: npt.NDArray[np.uint8] | None
    format: str
    alpha: Array | None = None


def decode(path: AnyPath, names: Sequence[str] = ("image",)) -> Pixels:
    """Read the pixels of a file.

    Args:
        path: the file.
        names: names of the array in npz files that hold several, the preferred one first.
    """
    data = read_bytes(path)
    if not data:
        raise problem(path, None, f"the file is empty; give {FORMATS}")
    format = next((format for start, format in _SIGNATURES.items() if data.startswith(start)), None)
    if format is None:
        found = next((f"a {name} file" for start, name in _FOREIGN.items() if data.startswith(start)), "not an image")
        raise problem(path, None, f"{found}; convert it to {FORMATS}")
    if format == "npz":
        pixels = _of_array(path, named_array(path, data, names))
    elif format == "tiff":
        pixels = _tiff(path, data)
    elif format == "png" and color_depth(data) == 16:
        deep: Array = _guarded(path, "PNG", lambda: decode_deep(data, most_expanded(len(data), ALWAYS_PIXELS)))
        pixels = Pixels(deep[..., :3], True, None, "png", deep[..., 3] if deep.shape[-1] == 4 else None)
    else:
        pixels = _pillow(path, data, format)
    if not pixels.values.size:
        raise problem(path, None, f"an image of size {_size(pixels.values.shape)}; give one with pixels")
    return pixels


def _size(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape))


def _of_array(path: AnyPath, array: Array) -> Pixels:
    if array.dtype.kind not in "buif":
        raise problem(path, None, f"an array of type {array.dtype}; save numbers")
    if array.ndim not in (2, 3, 4) or (array.ndim == 4 and array.shape[-1] not in (1, 2, 3, 4)):
        raise problem(
            path,
            None,
            f"an array of shape {_size(array.shape) or 'one number'}; give height x width, height x width x 3, "
            "depth x height x width or depth x height x width x 3",
        )
    # Three axes are ambiguous: few numbers at the end are channels, as in images of three or more columns.
    channels = array.ndim == 4 or (array.ndim == 3 and array.shape[-1] in (3, 4))
    values, color, alpha = _color(path, array) if channels else (array, False, None)
    _check_size(path, values.shape[:-1] if color else values.shape)
    return Pixels(values, color, None, "npz", alpha)


def _color(path: AnyPath, values: Array) -> tuple[Array, bool, Array | None]:
    """Values, whether they have color, and alpha: 1 or 2 channels are gray, 3 or 4 are color."""
    channels = values.shape[-1]
    if channels > 4:
        raise problem(path, None, f"{channels} channels; give gray, RGB or RGBA")
    alpha = values[..., -1] if channels in (2, 4) else None
    return (values[..., :3], True, alpha) if channels > 2 else (values[..., 0], False, alpha)


def _check_size(path: AnyPath, shape: Sequence[int], size: int | None = None) -> None:
    """Raise FileError if there are too many pixels, also for the ``size`` of a compressed file."""
    count = 1
    for length in shape:
        count *= int(length)
    if count > MAX_PIXELS:
        raise problem(path, None, f"{_size(shape)} pixels are more than {MAX_PIXELS}; cut or reduce the image")
    if size is not None:
        refuse_expansion(path, size, count, ALWAYS_PIXELS)


def _guarded(path: AnyPath, kind: str, decoder: Any) -> Any:
    """Call a decoder; whatever a damaged file makes it raise becomes an error that names the file."""
    try:
        with quiet():  # damaged metadata and large images: the former does not matter here, the latter are checked
            return decoder()
    except (FileError, ImportError):
        raise
    except MemoryError:
        raise problem(path, None, "too large for the memory; cut or reduce the image") from None
    except Exception as error:  # decoders raise almost any class of exception on damaged files
        text = str(error) or type(error).__name__
        text = text.replace("<_io.BytesIO object>", "the file")
        raise problem(path, None, f"damaged or unsupported {kind} file ({text}); copy or save it again") from None


def _pillow(path: AnyPath, data: bytes, format: str, *, page: int | None = None) -> Pixels:
    image_module = optional("PIL.Image", EXTRA)

    def load() -> Pixels:
        with image_module.open(io.BytesIO(data), formats=[format]) as image:
            _check_size(path, image.size, len(data))
            if page is not None:
                image.seek(page)
            orientation = image.getexif().get(0x0112, 1) if page is None else 1
            image.load()
            return _of_pillow(path, image, format, orientation)

    found: Pixels = _guarded(path, format.upper(), load)
    return found


def _of_pillow(path: AnyPath, image: Any, format: str, orientation: int) -> Pixels:
    palette = None
    if image.mode in ("P", "PA"):
        palette = np.asarray(image.getpalette("RGB"), dtype=np.uint8).reshape(-1, 3)
        values, color = np.array(image if image.mode == "P" else image.getchannel(0)), False
        missing = int(values.max(initial=0)) + 1 - len(palette)
        if missing > 0:  # numbers past the end of a palette are black, as in Pillow
            palette = np.concatenate([palette, np.zeros((missing, 3), dtype=np.uint8)])
    elif image.mode in ("1", "L", "I", "F") or image.mode.startswith("I;16"):
        values, color = np.array(image), False
    elif image.mode in ("LA", "La"):
        values, color = np.array(image)[..., 0], False
    elif image.mode in ("RGB", "RGBA", "RGBX", "RGBa"):
        values, color = np.array(image)[..., :3], True
    elif image.mode in ("CMYK", "YCbCr"):
        values, color = np.array(image.convert("RGB")), True
    else:
        raise problem(path, None, f"colors of kind {image.mode}; save the image as gray or RGB")
    alpha = None
    if image.mode in ("PA", "LA", "La", "RGBA", "RGBa"):
        alpha = np.array(image.getchannel(image.getbands()[-1]))
    elif "transparency" in image.info and image.mode in ("1", "L", "P", "RGB"):  # a transparent value or color
        alpha = np.array(image.convert("RGBA").getchannel("A"))
    upright = None if alpha is None else _upright(alpha, orientation)
    return Pixels(_upright(values, orientation), color, palette, format, upright)


def _upright(values: Array, orientation: object) -> Array:
    """Turn and mirror the first two axes as the EXIF orientation says; ones that do not exist mean nothing."""
    if orientation in (5, 6, 7, 8):
        values = values.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        values = values[::-1]
    if orientation in (2, 3, 6, 7):
        values = values[:, ::-1]
    return np.ascontiguousarray(values)


def _tiff(path: AnyPath, data: bytes) -> Pixels:
    tifffile = optional("tifffile", EXTRA)

    def load() -> Pixels | None:
        _check_pages(data)
        with _damage_is_an_error(), tifffile.TiffFile(io.BytesIO(data)) as file:
            if not file.pages:
                raise ValueError("no image in it")
            if len(file.series) != 1:
                shapes = ", ".join(_size(series.shape) for series in file.series[:3])
                raise problem(
                    path, None, f"{len(file.series)} images of different kinds ({shapes}); give one image or stack"
                )
            series, page = file.series[0], file.pages[0]
            _check_size(path, series.shape, len(data))
            # Pillow has the decompressors that tifffile gets only from another package.
            kinds = ("MINISBLACK", "MINISWHITE", "RGB", "PALETTE", "SEPARATED")
            plain = getattr(page.photometric, "name", "") in kinds
            if not plain or getattr(page.compression, "name", "") not in (
                "NONE",
                "ADOBE_DEFLATE",
                "DEFLATE",
                "PACKBITS",
            ):
                return None
            if page.is_subsampled or page.fillorder != 1:
                return None
            values, axes = series.asarray(), series.axes
            return _of_tiff(path, values, axes, page)

    def pages() -> int:
        with _damage_is_an_error(), tifffile.TiffFile(io.BytesIO(data)) as file:
            return len(file.pages)

    found: Pixels | None = _guarded(path, "TIFF", load)
    if found is not None:
        return found
    count: int = _guarded(path, "TIFF", pages)
    if count == 1:
        return _pillow(path, data, "tiff")
    stack = [_pillow(path, data, "tiff", page=page) for page in range(count)]
    if len({(one.values.shape, one.color) for one in stack}) > 1:
        raise problem(path, None, "pages of different sizes; give one image or a stack of equal ones")
    first = stack[0]
    return Pixels(np.stack([one.values for one in stack]), first.color, first.palette, "tiff")


def _check_pages(data: bytes) -> None:
    """Follow the chain of pages: tifffile may never end on one that returns to an earlier page."""
    order = "<" if data.startswith(b"II") else ">"
    large = data[2:4] in (b"+\0", b"\0+")
    count, entry, after = ("Q", 20, "Q") if large else ("H", 12, "I")
    begin, first = (8, "Q") if large else (4, "I")
    (at,) = struct.unpack_from(order + first, data, begin)
    seen = set()
    while at:
        if at in seen:
            raise ValueError("pages in a circle")
        seen.add(at)
        (entries,) = struct.unpack_from(order + count, data, at)
        end = at + struct.calcsize(order + count) + entries * entry
        if end + struct.calcsize(order + after) > len(data):
            raise ValueError(f"the file ends inside page {len(seen)}")
        (at,) = struct.unpack_from(order + after, data, end)
    if not seen:
        raise ValueError("no pages")


@contextmanager
def _damage_is_an_error() -> Iterator[None]:
    """Raise what tifffile only logs: pages that it leaves out because the file is cut off."""
    found: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            message = record.getMessage()
            # Damaged tags do not matter unless a page needs them.
            if record.levelno >= logging.ERROR and ("TiffPages" in message or "corrupted file" in message):
                found.append(message.partition("> ")[2] or message)

    logger, handler = logging.getLogger("tifffile"), Keep()
    propagate = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagate
    if found:
        raise ValueError(found[0])


def _of_tiff(path: AnyPath, values: Array, axes: str, page: Any) -> Pixels:
    kind = page.photometric.name
    # Channels are samples, or a short axis of channels as ImageJ writes them.
    if "S" not in axes and "C" in axes and values.shape[axes.index("C")] in (3, 4):
        axes = axes.replace("C", "S")
    keep = [at for at, axis in enumerate(axes) if axis in "YXS" or values.shape[at] > 1]
    values, axes = values.reshape([values.shape[at] for at in keep]), "".join(axes[at] for at in keep)
    if "S" in axes:
        values = np.moveaxis(values, axes.index("S"), -1)
        axes = axes.replace("S", "") + "S"
    if not axes.rstrip("S").endswith("YX") or len(axes.rstrip("S")) > 3:
        raise problem(path, None, f"axes {axes} of lengths {_size(values.shape)}; give one image or one stack")
    palette = None
    color, alpha = False, None
    if kind == "SEPARATED":
        if values.shape[-1] < 4 or not axes.endswith("S"):
            raise problem(path, None, f"inks in {values.shape[-1]} channels; save the image as RGB")
        values, color = _of_inks(values), True
    elif axes.endswith("S"):
        values, color, alpha = _color(path, values)
    if kind == "MINISWHITE" and values.dtype.kind in "bu":
        values = ~values
    if kind == "PALETTE" and page.colormap is not None:
        table = np.asarray(page.colormap)
        palette = (table >> 8 if table.max(initial=0) > 255 else table).astype(np.uint8).T
    tag = page.tags.get(274)
    if len(axes.rstrip("S")) == 2 and tag is not None:
        values = _upright(values, tag.value)
        alpha = None if alpha is None else _upright(alpha, tag.value)
    return Pixels(np.ascontiguousarray(values), color, palette, "tiff", alpha)


def _of_inks(inks: Array) -> Array:
    """Return RGB of CMYK, as Pillow does."""
    if inks.dtype.kind != "u":
        raise ValueError(f"inks of type {inks.dtype}")
    full = float(np.iinfo(inks.dtype).max)
    paper = full - inks[..., :4].astype(np.float64)
    return np.asarray(np.rint(paper[..., :3] * paper[..., 3:] / full), dtype=inks.dtype)

"""Masks: labels of pixels as images, by gray value or number, or by color."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import IntArray
from maxmargin.tasks.common.files.text import AnyPath, FileError, count_of, name_of, problem
from maxmargin.tasks.common.packages import optional
from maxmargin.tasks.segmentation.io.arrays import write_arrays
from maxmargin.tasks.segmentation.io.classes import (
    VOID,
    ClassCodes,
    Definition,
    Value,
    gray,
    learned_codes,
    packed,
    shown,
    unpacked,
)
from maxmargin.tasks.segmentation.io.images import position, save_pillow, suffix_of, write_tiff
from maxmargin.tasks.segmentation.io.pixels import EXTRA, Array, Pixels, decode

_ARRAY_NAMES = ("mask", "labels")
_BLACK_AND_WHITE = (0, 255)
_TWO = ("background", "foreground")
_NEAR = 64  # how far JPEG may move a value of a black and white mask
_MOST_BETWEEN = 0.05  # the largest share of pixels farther away
_COLOR_NOISE = 8  # how far JPEG may move the channels of a gray pixel apart
_MAX_VALUES = 64

_PALETTE = (
    *((0, 0, 0), (255, 255, 255), (230, 60, 50), (60, 160, 75), (70, 100, 220), (250, 200, 40), (245, 130, 50)),
    *((145, 60, 180), (70, 200, 220), (240, 80, 200), (170, 110, 60), (128, 128, 128), (150, 220, 120), (100, 40, 60)),
)


def read_mask(path: AnyPath, codes: ClassCodes) -> IntArray:
    """Read a mask: the class of each pixel, -1 where it has none.

    Args:
        path: a PNG, JPEG or TIFF file, or an npz file with one array or one named ``mask``.
        codes: the values of the classes.
    """
    pixels = decode(path, _ARRAY_NAMES)
    if codes.by_color:
        colors = _colors(path, pixels)
        values = packed(colors)
    else:
        values = _integers(path, pixels, codes)
    if pixels.format == "jpeg" and _far_apart(codes):
        codes = replace(codes, rounded=True)
    labels, unknown = codes.lookup(values)
    if unknown.any():
        at = tuple(int(index) for index in np.argwhere(unknown)[0])
        value: Value = unpacked(int(values[at])) if codes.by_color else int(values[at])
        raise _unknown_value(path, pixels, codes, value, at, int(unknown.sum()))
    return labels


def read_seeds(path: AnyPath, codes: ClassCodes) -> IntArray:
    """Read seeds, pixels whose class a user knows: the class of each pixel, -1 where it is not known.

    Values of classes are those of masks. Pixels that are transparent, void, or of any other value are not known.

    Args:
        path: a PNG or TIFF file, or an npz file with one array or one named ``seeds``, in the size of the image.
        codes: the values of the classes.
    """
    pixels = decode(path, ("seeds", *_ARRAY_NAMES))
    if pixels.format == "jpeg":
        raise problem(path, None, "JPEG changes the values of seeds; save them as PNG")
    exact = replace(codes, others=None, rounded=False)
    values, known = _seed_values(path, pixels, exact)
    labels, unknown = exact.lookup(values)
    known &= ~unknown
    if pixels.alpha is not None:
        known &= pixels.alpha > 0
    return np.where(known, labels, VOID)


def _seed_values(path: AnyPath, pixels: Pixels, codes: ClassCodes) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Colors, or numbers or gray values, of pixels, and which pixels have one."""
    values = pixels.values
    if codes.by_color:
        colors = packed(_colors(path, pixels))
        return colors, np.ones(colors.shape, dtype=bool)
    if pixels.color:
        return values[..., 1].astype(np.int64), (values == values[..., :1]).all(axis=-1)
    if values.dtype.kind == "f":
        whole = np.isfinite(values) & (np.rint(values) == values) & (np.abs(values) < 2.0**53)
        return np.where(whole, values, 0).astype(np.int64), whole
    if values.dtype == np.bool_:
        known = {value for given in codes.values for value in given}
        values = np.where(values, 255 if 255 in known else 1, 0)
    return values.astype(np.int64), np.ones(values.shape, dtype=bool)


def _unknown_value(
    path: AnyPath, pixels: Pixels, codes: ClassCodes, value: Value, at: tuple[int, ...], count: int
) -> FileError:
    what = "color" if codes.by_color else "value"
    known = ", ".join(f"{name}={shown(one)}" for name, one in zip(codes.names, codes.written, strict=True))
    if pixels.format == "jpeg":
        advice = "JPEG changes the values of masks; save the mask as PNG"
    else:
        advice = f"known are {known}; give it a class, as {codes.names[-1]}={shown(value)}, or void={shown(value)}"
    return problem(
        path,
        None,
        f"unknown {what} {shown(value)} at {position(at)} ({count_of(count, 'pixel')} of unknown {what}); {advice}",
    )


def _colors(path: AnyPath, pixels: Pixels) -> Array:
    """Return the colors of pixels, ``(..., 3)``."""
    if pixels.palette is not None:
        return pixels.palette[pixels.values]
    values = pixels.values
    if values.dtype == np.bool_:
        values = np.where(values, 255, 0)
    if values.dtype.kind == "f" or values.min() < 0 or values.max() > 255:
        raise problem(path, None, f"values of type {values.dtype} are not colors; save masks by color as 8-bit RGB")
    return values if pixels.color else np.repeat(values[..., None], 3, axis=-1)


def _integers(path: AnyPath, pixels: Pixels, codes: ClassCodes | None = None) -> IntArray:
    """Return the numbers or gray values of pixels."""
    values = pixels.values
    if pixels.color:
        noise = _COLOR_NOISE if pixels.format == "jpeg" else 0
        wide = values.astype(np.int64)
        differ = (wide.max(axis=-1) - wide.min(axis=-1)) > noise
        if differ.any():
            at = tuple(int(index) for index in np.argwhere(differ)[0])
            color = shown((int(wide[at][0]), int(wide[at][1]), int(wide[at][2])))
            raise problem(
                path,
                None,
                f"color {color} at {position(at)}, but the classes have numbers; give colors, as horse={color}, or "
                "save the mask with numbers",
            )
        return wide[..., 1]
    if values.dtype == np.bool_:
        known = {value for given in codes.values for value in given} if codes is not None else {255}
        return np.where(values, 255 if 255 in known else 1, 0).astype(np.int64)
    if values.dtype.kind == "f":
        whole = np.isfinite(values) & (np.rint(values) == values)
        if not whole.all():
            at = tuple(int(index) for index in np.argwhere(~whole)[0])
            raise problem(path, None, f"value {values[at]} at {position(at)} is not an integer; save masks as integers")
    integers = values.astype(np.int64)
    if codes is not None and codes.rounded and pixels.format != "jpeg":
        present = np.unique(integers)
        if present[-1] == 1 and 1 not in codes.written:
            raise problem(
                path,
                None,
                "values 0 and 1, where the masks learned from have 0 and 255; save all masks in the same way",
            )
    return integers


def learn_codes(paths: Sequence[AnyPath], definition: Definition | None = None) -> ClassCodes:
    """Return the classes of masks: as the user defined them, or by the values that occur.

    Two gray values are ``background`` and ``foreground``, also in JPEG files, where gray above 127 is foreground. A few
    numbers, of palettes too, or a few colors, are classes in ascending order.

    Args:
        paths: the masks to learn from.
        definition: what the user said of classes, as :func:`parse_classes` returns it.
    """
    definition = definition or Definition()
    if not paths:
        raise ValueError("no masks to learn classes from; give some")
    if definition.values is not None:
        return definition.codes()
    found = _Found()
    for path in paths:
        found.add(path)
    voids = {value for value in definition.void if isinstance(value, tuple)}
    if not found.by_color and not voids:
        values, rounded = found.gray_values()
        names = _TWO if len(set(values) - set(definition.void)) == 2 else ()
        codes = _named(paths, values, definition, names)
        return replace(codes, rounded=rounded)
    void = tuple(value if isinstance(value, tuple) else gray(value) for value in definition.void)
    return _named(paths, found.color_values(), replace(definition, void=void), ())


def _named(
    paths: Sequence[AnyPath], values: Sequence[Value], definition: Definition, names: Sequence[str]
) -> ClassCodes:
    try:
        return learned_codes(values, definition, default_names=names)
    except ValueError as error:
        whose = name_of(paths[0]) if len(paths) == 1 else f"{name_of(paths[0])} and {len(paths) - 1} more masks"
        raise FileError(f"{whose}: {error}") from None


def _far_apart(codes: ClassCodes) -> bool:
    """Whether values that JPEG has changed can be told from each other."""
    if not codes.by_index or codes.others is not None:
        return False
    levels = sorted(int(value) for given in (*codes.values, codes.void) for value in given if isinstance(value, int))
    return all(b - a >= _NEAR for a, b in pairwise(levels))


class _Found:
    """What masks contain: how often each gray value occurs, and which colors."""

    def __init__(self) -> None:
        self.lossy = False
        self.by_color = False
        self._counts: dict[int, int] = {}
        self._first: dict[int, AnyPath] = {}  # a file with each gray value
        self._colors: dict[int, AnyPath] = {}
        self._palette: dict[int, int] = {}
        self._lossy_file: AnyPath = ""

    def add(self, path: AnyPath) -> None:
        """Count the values of one more mask."""
        pixels = decode(path, _ARRAY_NAMES)
        gray_file = not pixels.color
        if pixels.format == "jpeg":
            self.lossy, self._lossy_file = True, path
        if pixels.color:
            wide = pixels.values.astype(np.int16) if pixels.values.dtype == np.uint8 else pixels.values.astype(np.int64)
            spread = int((wide.max(axis=-1) - wide.min(axis=-1)).max(initial=0))
            gray_file = spread <= (_COLOR_NOISE if pixels.format == "jpeg" else 0)
        if pixels.palette is not None:
            self._add_palette(path, pixels)
        if not gray_file:
            self.by_color = True
            if pixels.format == "jpeg":
                raise problem(path, None, "a JPEG mask in color; JPEG changes colors, so save masks by color as PNG")
        if gray_file:
            values, counts = np.unique(_integers(path, pixels), return_counts=True)
            if len(values) > _MAX_VALUES and pixels.format != "jpeg" and not _black_and_white(values, counts):
                raise problem(
                    path,
                    None,
                    f"{len(values)} different values, from {values[0]} to {values[-1]}; is this a mask? give masks "
                    f"with at most {_MAX_VALUES} values, or say which values stand for which class, as cell=1-500",
                )
            for value, count in zip(values.tolist(), counts.tolist(), strict=True):
                self._counts[value] = self._counts.get(value, 0) + count
                self._first.setdefault(value, path)
        if pixels.palette is None and (pixels.values.dtype.kind == "f" or pixels.values.dtype.itemsize > 1):
            return  # not colors
        colors = np.unique(packed(_colors(path, pixels))) if not self.lossy else np.zeros(0, dtype=np.int64)
        if len(colors) > 4 * _MAX_VALUES and self.by_color:
            raise problem(path, None, f"{len(colors)} different colors; is this a mask? give masks with few colors")
        for color in colors[: 4 * _MAX_VALUES].tolist():
            self._colors.setdefault(color, path)

    def _add_palette(self, path: AnyPath, pixels: Pixels) -> None:
        """Take palettes that differ from file to file as colors: their numbers mean nothing."""
        assert pixels.palette is not None
        for number, color in zip(*self._used(pixels), strict=True):
            if self._palette.setdefault(number, color) != color:
                self.by_color = True

    @staticmethod
    def _used(pixels: Pixels) -> tuple[list[int], list[int]]:
        assert pixels.palette is not None
        numbers = np.unique(pixels.values)
        return numbers.tolist(), packed(pixels.palette[numbers]).tolist()

    def gray_values(self) -> tuple[list[Value], bool]:
        """Return the gray values in ascending order, and whether others are to be rounded to them."""
        values = np.array(sorted(self._counts), dtype=np.int64)
        counts = np.array([self._counts[value] for value in values.tolist()], dtype=np.int64)
        noisy = self.lossy or len(values) > _MAX_VALUES
        if noisy and _black_and_white(values, counts):
            return list(_BLACK_AND_WHITE), True
        if self.lossy:
            raise problem(
                self._lossy_file,
                None,
                f"a JPEG mask that is not black and white (values from {values[0]} to {values[-1]}); JPEG changes "
                "values, so save masks as PNG",
            )
        if len(values) > _MAX_VALUES:
            path = self._first[int(values[_MAX_VALUES])]
            raise problem(path, None, f"more than {_MAX_VALUES} different values in all masks; give masks with fewer")
        return list(values.tolist()), False

    def color_values(self) -> list[Value]:
        """Return the colors in ascending order."""
        if len(self._colors) > _MAX_VALUES:
            path = list(self._colors.values())[_MAX_VALUES]
            raise problem(path, None, f"more than {_MAX_VALUES} different colors in all masks; give masks with fewer")
        return [unpacked(color) for color in sorted(self._colors)]


def _black_and_white(values: npt.NDArray[Any], counts: npt.NDArray[Any]) -> bool:
    """Whether nearly all of the values are near 0 or 255."""
    if values[0] < 0 or values[-1] > 255 or values[-1] <= 255 - _NEAR:
        return False
    between = (values > _NEAR) & (values < 255 - _NEAR)
    return bool(counts[between].sum() <= _MOST_BETWEEN * counts.sum())


def write_mask(path: AnyPath, labels: npt.NDArray[Any], codes: ClassCodes) -> None:
    """Write labels of pixels in the values of their classes; :func:`read_mask` reads them again.

    Args:
        path: ``.png`` for images, with a palette so that viewers show the classes; ``.tif`` or ``.npz`` for these and
            for stacks.
        labels: the class of each pixel, -1 for none, which needs a void value.
        codes: the values of the classes.
    """
    labels = np.asarray(labels)
    if labels.ndim not in (2, 3) or labels.dtype.kind not in "ui":
        raise ValueError(
            f"labels of shape {labels.shape} and type {labels.dtype}; give integers of an image or a stack"
        )
    low, high = int(labels.min(initial=0)), int(labels.max(initial=0))
    if low < VOID or high >= codes.n_classes:
        raise ValueError(f"labels from {low} to {high}; give -1 to {codes.n_classes - 1}")
    written: list[Value] = list(codes.written)
    if low == VOID:
        if not codes.void:
            raise ValueError("pixels without a class, and no value to write for them; give one, as void=255")
        written.append(codes.void[0])
    table = np.array(written)  # -1 is the last entry
    if table.dtype.kind not in "ui":
        raise ValueError("classes of masks are integers or colors; give these")
    ending = suffix_of(path)
    if ending == ".png" and labels.ndim == 2:
        _write_png(path, labels, codes, table)
    elif ending in (".tif", ".tiff"):
        write_tiff(path, _narrow(table)[labels])
    elif ending == ".npz":
        write_arrays(path, {"mask": _narrow(table)[labels]})
    elif ending == ".png":
        raise ValueError(f"{name_of(path)}: PNG holds no stacks; write .tif or .npz")
    else:
        raise ValueError(f"{name_of(path)}: unknown format of masks; end the name with .png, .tif or .npz")


def _narrow(table: Array) -> Array:
    """Return the values in the smallest type that every reader knows."""
    for kind in (np.uint8, np.uint16):
        if table.min() >= 0 and table.max() <= np.iinfo(kind).max:
            return table.astype(kind)
    return table.astype(np.int32)


def _write_png(path: AnyPath, labels: Array, codes: ClassCodes, table: Array) -> None:
    image_module = optional("PIL.Image", EXTRA)
    if codes.by_color:
        save_pillow(path, image_module.fromarray(table.astype(np.uint8)[labels]))
        return
    if table.min() < 0 or table.max() > 65535:
        raise ValueError(f"{name_of(path)}: values {table.min()} to {table.max()} do not fit PNG; write .tif or .npz")
    if table.max() > 255:
        save_pillow(path, image_module.fromarray(table.astype(np.uint16)[labels]))
        return
    image = image_module.fromarray(table.astype(np.uint8)[labels])
    if set(table.tolist()) != set(_BLACK_AND_WHITE):  # these show as they are
        image.putpalette(_palette(table[: codes.n_classes].tolist()))
    save_pillow(path, image)


def _palette(values: Sequence[int]) -> list[int]:
    """Return 256 colors in which the values of the classes differ; all others are gray."""
    colors = [(number, number, number) for number in range(256)]
    for at, value in enumerate(values):
        colors[value] = class_color(at)
    return [channel for color in colors for channel in color]


def class_color(number: int) -> tuple[int, int, int]:
    """Return a color to show a class in: black and white for the first two, then distinct ones."""
    if number < len(_PALETTE):
        return _PALETTE[number]
    # Steps by the golden ratio around the circle of hues stay apart for any number of classes.
    hue = (number * 0.6180339887498949) % 1.0
    wave = np.clip(np.abs((hue * 6.0 + np.array([0.0, 4.0, 2.0])) % 6.0 - 3.0) - 1.0, 0.0, 1.0)
    red, green, blue = (round(60 + 170 * float(channel)) for channel in wave)
    return red, green, blue

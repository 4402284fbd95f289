"""Images and masks in folders, paired by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from os import fspath
from pathlib import Path
from typing import overload

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import IntArray
from maxmargin.tasks.common.files.compression import plain_name
from maxmargin.tasks.common.files.text import AnyPath, count_of, name_of
from maxmargin.tasks.common.files.text import FileError as FileError
from maxmargin.tasks.segmentation.io.classes import ClassCodes
from maxmargin.tasks.segmentation.io.images import SUFFIXES, read_image, resize_image, resize_labels
from maxmargin.tasks.segmentation.io.masks import read_mask
from maxmargin.tasks.segmentation.io.pixels import Array

Paths = AnyPath | Sequence[AnyPath]
"""A folder, a file, or several of both."""

_ASPECT = 0.02  # how far the aspect ratios of an image and its mask may differ


def natural_key(path: AnyPath) -> list[tuple[int, int, str]]:
    """Return a sort key under which ``img2`` comes before ``img10``."""
    parts = re.split(r"(\d+)", fspath(path))
    return [(1, int(part), "") if part.isdecimal() and part.isascii() else (0, 0, part) for part in parts]


def as_list(paths: Paths) -> list[AnyPath]:
    """Return one or several paths as a list."""
    return list(paths) if isinstance(paths, Sequence) and not isinstance(paths, str) else [paths]


def list_files(paths: Paths, suffixes: Sequence[str] = SUFFIXES, *, what: str = "images") -> list[Path]:
    """Return the files given, and those in folders given whose names end in one of the suffixes, in natural order.

    Args:
        paths: folders and files.
        suffixes: ends of the names to take from folders; hidden files are ignored.
        what: what is listed, for messages.
    """
    found: list[Path] = []
    for given in map(Path, as_list(paths)):
        if given.is_dir():
            inside = [
                path
                for path in given.iterdir()
                if path.name.lower().endswith(tuple(suffixes)) and not path.name.startswith(".") and path.is_file()
            ]
            if not inside:
                raise FileError(
                    f"{name_of(given)}: no {what} in this folder; give one with {', '.join(suffixes)} files"
                )
            found += sorted(inside, key=natural_key)
        elif given.exists():
            found.append(given)
        else:
            raise FileError(f"{name_of(given)}: no such file or folder; check the name")
    if not found:
        raise FileError(f"no {what}; give a folder or files")
    return found


def stem_of(path: AnyPath) -> str:
    """Return the name of a file without folder and ends."""
    name = Path(path).name
    return Path(plain_name(name)).stem


def by_stem(paths: Sequence[Path]) -> dict[str, Path]:
    """Return files by their names without ends; two of one name are an error."""
    found: dict[str, Path] = {}
    for path in paths:
        stem = stem_of(path)
        if stem in found and found[stem] != path:
            raise FileError(
                f"{name_of(found[stem])} and {name_of(path)} have the same name {stem!r}; rename or remove one of them"
            )
        found[stem] = path
    return found


def pair_files(
    first: Paths,
    second: Paths,
    *,
    what: tuple[str, str] = ("image", "mask"),
    suffixes: Sequence[str] = SUFFIXES,
    all_of_second: bool = False,
) -> list[tuple[Path, Path]]:
    """Pair files by their names without ends, in natural order.

    Args:
        first: a folder or files; each must have a partner.
        second: a folder or files with the partners.
        what: what a file of each is, for messages.
        suffixes: ends of names of files in folders.
        all_of_second: whether each of the second must have a partner, too.
    """
    left = by_stem(list_files(first, suffixes, what=f"{what[0]}s"))
    right = by_stem(list_files(second, suffixes, what=f"{what[1]}s"))
    _complete(left, right, first, second, what)
    if all_of_second:
        _complete(right, left, second, first, what[::-1])
    return [(path, right[stem]) for stem, path in left.items()]


def _complete(
    left: dict[str, Path], right: dict[str, Path], first: Paths, second: Paths, what: tuple[str, ...]
) -> None:
    alone = [path for stem, path in left.items() if stem not in right]
    if alone:
        more = f" (and {len(alone) - 1} more)" if len(alone) > 1 else ""
        raise FileError(
            f"{what[0]} {name_of(alone[0])}{more} of {_where(first)} has no {what[1]} named {stem_of(alone[0])}.* in "
            f"{_where(second)}; add it, or remove the {what[0]}"
        )


def _where(paths: Paths) -> str:
    given = as_list(paths)
    return name_of(given[0]) if len(given) == 1 else f"{count_of(len(given), 'path')} from {name_of(given[0])}"


def same_aspect(first: tuple[int, int], second: tuple[int, int]) -> bool:
    """Whether two sizes (height, width) have the same aspect ratio up to 2 percent, or up to rounding to pixels."""
    (h, w), (other_h, other_w) = first, second
    if abs(w * other_h - h * other_w) <= _ASPECT * h * other_w:
        return True
    small, large = sorted([first, second])
    return (
        abs(small[0] - large[0] * small[1] / large[1]) <= 1.0 or abs(small[1] - large[1] * small[0] / large[0]) <= 1.0
    )


@dataclass(frozen=True, eq=False)
class LabeledImage:
    """An image and the labels of its pixels.

    Attributes:
        name: the name of the file without folder and end.
        image: as :func:`read_image` returns it, resized to the mask.
        mask: the class of each pixel, -1 for none.
    """

    name: str
    image: Array
    mask: IntArray


@dataclass(frozen=True)
class LabeledImages(Sequence[LabeledImage]):
    """Images and masks in files, each pair read when it is asked for.

    Attributes:
        pairs: the files.
        codes: the values of the classes in the masks.
    """

    pairs: tuple[tuple[Path, Path], ...]
    codes: ClassCodes

    @classmethod
    def of(cls, images: Paths, masks: Paths, codes: ClassCodes) -> LabeledImages:
        """Pair the files of folders."""
        return cls(tuple(pair_files(images, masks)), codes)

    def __len__(self) -> int:
        return len(self.pairs)

    @overload
    def __getitem__(self, at: int) -> LabeledImage: ...

    @overload
    def __getitem__(self, at: slice) -> LabeledImages: ...

    def __getitem__(self, at: int | slice) -> LabeledImage | LabeledImages:
        if isinstance(at, slice):
            return LabeledImages(self.pairs[at], self.codes)
        image_path, mask_path = self.pairs[at]
        mask = read_mask(mask_path, self.codes)
        image = fitted_image(image_path, read_image(image_path), mask_path, mask.shape)
        return LabeledImage(stem_of(image_path), image, mask)


def fitted_image(image_path: AnyPath, image: Array, mask_path: AnyPath, shape: tuple[int, ...]) -> Array:
    """Return an image in the size of its mask, resized if the aspect ratios are the same."""
    size = pixels_shape(image)
    if size == shape:
        return image
    if len(size) == 2 and len(shape) == 2 and same_aspect((size[0], size[1]), (shape[0], shape[1])):
        return resize_image(image, (shape[0], shape[1]))
    raise _other_size(image_path, size, mask_path, shape)


def fitted_labels(
    path: AnyPath, labels: npt.NDArray[np.int64], mask_path: AnyPath, shape: tuple[int, ...]
) -> npt.NDArray[np.int64]:
    """Return predicted labels in the size of the mask, resized if the aspect ratios are the same."""
    if labels.shape == shape:
        return labels
    if labels.ndim == 2 and len(shape) == 2 and same_aspect((labels.shape[0], labels.shape[1]), (shape[0], shape[1])):
        return resize_labels(labels, (shape[0], shape[1]))
    raise _other_size(path, labels.shape, mask_path, shape)


def pixels_shape(image: Array) -> tuple[int, ...]:
    """Return the size of an image or stack without its axis of colors."""
    return image.shape[:-1] if image.ndim == 4 or (image.ndim == 3 and image.shape[-1] == 3) else image.shape


def _other_size(path: AnyPath, size: Sequence[int], mask_path: AnyPath, shape: Sequence[int]) -> FileError:
    return FileError(
        f"{name_of(path)} has {spelled_size(size)} pixels and {name_of(mask_path)} {spelled_size(shape)}, which is "
        "another aspect ratio; give a mask of the same image"
    )


def spelled_size(size: Sequence[int]) -> str:
    """Width by height, as image viewers say it; for stacks with the number of pages."""
    *depth, height, width = size
    return f"{width} x {height}" + (f" x {depth[0]} pages" if depth else "")

"""Scans: points in space with attributes, and labels as files have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import FloatArray
from maxmargin.tasks.common.files.text import AnyPath, FileError, problem

Array = npt.NDArray[Any]

EXTRA = "scans"
"""The extra with the packages that read and write LAS and LAZ files."""

LABEL = "label"
"""The column that predicted labels are written to."""

LABEL_NAMES = (LABEL, "labels", "classification", "class", "class_id", "label_id")
"""Columns of labels, by name, if the user names none."""

_AXES = ("x", "y", "z")


@dataclass(frozen=True, eq=False)
class Scan:
    """Points in space.

    Attributes:
        points: shape ``(n, 3)``.
        attributes: further numbers of each point by name, each of shape ``(n,)``: intensity, colors, returns, ...
        labels: the label of each point as the file has it, integers or words; None without labels.
        source: the file that the scan was read from; None if it was not.
        format: text, ply, las or npz.
    """

    points: FloatArray
    attributes: Mapping[str, Array] = field(default_factory=dict)
    labels: Array | None = None
    source: AnyPath | None = None
    format: str = "text"

    def __post_init__(self) -> None:
        points: Any = self.points
        if not isinstance(points, np.ndarray) or points.ndim != 2 or points.shape[1] != 3:
            given = f"of shape {points.shape}" if isinstance(points, np.ndarray) else f"in a {type(points).__name__}"
            raise ValueError(f"points {given}; give an array of shape (n, 3)")
        if not isinstance(self.attributes, Mapping):
            raise ValueError(f"attributes must map names to arrays, got {type(self.attributes).__name__}")
        for name, values in [*self.attributes.items(), *([] if self.labels is None else [(LABEL, self.labels)])]:
            if not isinstance(values, np.ndarray) or values.shape != (len(self),):
                given = (
                    f"has shape {values.shape}" if isinstance(values, np.ndarray) else f"is a {type(values).__name__}"
                )
                raise ValueError(f"{name} {given}; give an array of one value for each of {len(self)} points")

    def __len__(self) -> int:
        return len(self.points)


def make_scan(
    path: AnyPath,
    format: str,
    columns: Mapping[str, Array],
    label_column: str | int | None,
    *,
    where: Callable[[int], str] = lambda point: f"point {point + 1}",
) -> Scan:
    """Make a scan of the columns of a file.

    Args:
        path: the file.
        format: its format.
        columns: its columns by name in their order; those named x, y, z (in any case), or else the first three, are
            coordinates.
        label_column: the column of labels, by name or by number from 1; None takes one of :data:`LABEL_NAMES` if there
            is one.
        where: names a point for messages.
    """
    names = list(columns)
    axes = coordinates_of(names)
    if axes is None:
        raise problem(path, None, f"columns {', '.join(names)}; give at least three, x, y and z")
    values = [columns[name] for name in axes]
    for name, one in zip(axes, values, strict=True):
        if one.dtype.kind not in "buif":
            wrong = next((at for at, word in enumerate(one.tolist()) if not _is_number(word)), 0)
            raise problem(path, None, f"{where(wrong)}: {one[wrong]!r} in column {name} is not a number; correct it")
    points = np.stack([one.astype(np.float64) for one in values], axis=1)
    if not len(points):
        raise problem(path, None, "no points; give a scan with some")
    finite = np.isfinite(points)
    if not finite.all():
        at, axis = (int(index) for index in np.argwhere(~finite)[0])
        count = int((~finite).any(axis=1).sum())
        raise problem(
            path,
            None,
            f"{where(at)}: coordinate {axes[axis]} is {points[at, axis]} (in all {count} such points); remove the "
            "points without finite coordinates",
        )
    label = label_name(path, names, label_column)
    if label in axes:
        raise problem(path, None, f"label column {label_column} is coordinate {label}; give another one")
    attributes = {name: one for name, one in columns.items() if name not in (*axes, label) and one.dtype.kind in "buif"}
    labels = None if label is None else _labels(path, label, columns[label], where)
    return Scan(points, attributes, labels, path, format)


def _is_number(word: object) -> bool:
    try:
        float(str(word))
    except ValueError:
        return False
    return True


def coordinates_of(names: Sequence[str]) -> list[str] | None:
    """Return the columns of the coordinates; None if there are fewer than three."""
    lower = [name.lower() for name in names]
    if all(axis in lower for axis in _AXES):
        return [names[lower.index(axis)] for axis in _AXES]
    return list(names[:3]) if len(names) >= 3 else None


def label_name(path: AnyPath, names: Sequence[str], label_column: str | int | None) -> str | None:
    """Return the name of the column of labels; None if the user gave none and none is known by its name."""
    if label_column is None:
        # CloudCompare puts a prefix before names of its own.
        plain = {name.lower().removeprefix("scalar_"): name for name in reversed(names)}
        return next((plain[name] for name in LABEL_NAMES if name in plain), None)
    text = str(label_column)
    if text in names:
        return text
    if text.isascii() and text.isdecimal():
        if 1 <= int(text) <= len(names):
            return names[int(text) - 1]
        raise problem(path, None, f"no column {text}; give --label-column a number from 1 to {len(names)}")
    raise problem(
        path,
        None,
        f"no column {text!r}; give --label-column one of {', '.join(names)}, or a number from 1 to {len(names)}",
    )


def _labels(path: AnyPath, name: str, values: Array, where: Callable[[int], str]) -> Array:
    if values.dtype.kind == "f":
        wrong = ~np.isfinite(values) | (np.rint(values) != values) | (abs(values) > 2.0**53)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise problem(
                path, None, f"{where(at)}: {values[at]} in column {name} is not a label; give integers or words"
            )
    return values if values.dtype.kind == "U" else values.astype(np.int64)


def cut_off(path: AnyPath, wanted: int, found: int) -> FileError:
    """Return the error for a file with fewer points than its header says."""
    return problem(path, None, f"cut off: the header says {wanted} points and the file has {found}; copy it again")

"""Scans in files: text, PLY, LAS and LAZ, and npz, recognized by content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import IntArray
from maxmargin.tasks.common.files.compression import SUFFIXES as PACKED_SUFFIXES
from maxmargin.tasks.common.files.compression import plain_name
from maxmargin.tasks.common.files.text import (
    STANDARD_INPUT,
    AnyPath,
    FileError,
    name_of,
    open_bytes,
    problem,
    read_bytes,
)
from maxmargin.tasks.segmentation.io.arrays import NPY, ZIP, read_arrays, write_arrays
from maxmargin.tasks.segmentation.io.classes import VOID, ClassCodes, Definition, Value, learned_codes, shown
from maxmargin.tasks.segmentation.io.las import SIGNATURE, read_las, write_las
from maxmargin.tasks.segmentation.io.ply import SIGNATURES, read_ply, write_ply
from maxmargin.tasks.segmentation.io.points import LABEL, Array, Scan, make_scan
from maxmargin.tasks.segmentation.io.text_scans import read_text_scan, write_text_scan

SUFFIXES = tuple(
    end + packed
    for end in (".txt", ".xyz", ".csv", ".pts", ".asc", ".ply", ".las", ".laz", ".npz", ".xyz_label_conf")
    for packed in ("", *PACKED_SUFFIXES)
)
"""Ends of names of scans in folders; single files may have any name."""

_POINTS = "points"
_COLORS = ("rgb", "color", "colors")


def read_scan(path: AnyPath, label_column: str | int | None = None) -> Scan:
    """Read a scan.

    Args:
        path: a text file (a point per line), PLY, LAS, LAZ or npz file; text and PLY may be compressed.
        label_column: the column, property or dimension of the labels, by name or by number from 1. None takes one named
            label, labels, classification, class, class_id or label_id; without one the scan has no labels.
    """
    start = _beginning(path)
    if start.startswith(SIGNATURES):
        return read_ply(path, label_column)
    if start.startswith(SIGNATURE):
        return read_las(path, label_column)
    if start.startswith((ZIP, NPY)):
        return _read_npz(path, label_column)
    return read_text_scan(path, label_column)


def _beginning(path: AnyPath) -> bytes:
    if str(path) == STANDARD_INPUT:
        raise problem(path, None, "scans are read from files; give a file")
    with open_bytes(path) as stream:
        start = stream.read(1 << 12)
    if not start:
        raise problem(path, None, "the file is empty; give a scan with points")
    return start


def _read_npz(path: AnyPath, label_column: str | int | None) -> Scan:
    arrays = read_arrays(path, read_bytes(path))
    points = arrays.pop(_POINTS, None)
    if points is None and len(arrays) == 1:
        points = arrays.popitem()[1]
    if points is None or points.ndim != 2 or points.shape[1] < 3 or points.dtype.kind not in "buif":
        raise problem(path, None, f"no array {_POINTS!r} of shape (n, 3); save one with numpy.savez_compressed")
    columns: dict[str, Array] = {name: points[:, at] for at, name in enumerate("xyz")}
    columns |= {f"column{at + 1}": points[:, at] for at in range(3, points.shape[1])}
    for name, values in arrays.items():
        if values.shape[:1] != (len(points),) or values.ndim > 2:
            raise problem(
                path, None, f"array {name!r} has shape {values.shape}; give one value for each of {len(points)} points"
            )
        if values.ndim == 1:
            columns[name] = values
        elif name in _COLORS and values.shape[1] >= 3:
            columns |= {color: values[:, at] for at, color in enumerate(("red", "green", "blue"))}
        else:
            columns |= {f"{name}_{at + 1}": values[:, at] for at in range(values.shape[1])}
    return make_scan(path, "npz", columns, label_column)


def write_scan(
    path: AnyPath,
    scan: Scan,
    labels: npt.NDArray[Any] | None = None,
    *,
    columns: Mapping[str, npt.NDArray[Any]] | None = None,
    class_names: Mapping[int, str] | None = None,
) -> None:
    """Write a scan: text, PLY, LAS or LAZ, or npz, by the end of the name.

    In the format that the scan was read from, everything in that file is kept, and the columns below are added to it.

    Args:
        path: the file to write.
        scan: the scan.
        labels: labels, integers or words, for the column ``label`` (the dimension ``classification`` in LAS files);
            a column of this name is replaced.
        columns: further columns, such as probabilities.
        class_names: the names of labels that are integers, for a comment in PLY files.
    """
    added: dict[str, Array] = {}
    if labels is not None:
        added[LABEL] = np.asarray(labels)
    added |= {name: np.asarray(values) for name, values in (columns or {}).items()}
    for name, values in added.items():
        if values.shape != (len(scan),):
            raise ValueError(f"{name} has shape {values.shape}; give one value for each of {len(scan)} points")
    name = plain_name(path).lower()
    if name.endswith(".ply"):
        write_ply(path, scan, added, [f"class {value} {word}" for value, word in (class_names or {}).items()])
    elif name.endswith((".las", ".laz")):
        write_las(path, scan, added)
    elif name.endswith(".npz"):
        own = {} if scan.labels is None else {LABEL: scan.labels}
        write_arrays(path, {_POINTS: scan.points, **scan.attributes, **own, **added})
    else:
        write_text_scan(path, scan, added)


def point_classes(scan: Scan, codes: ClassCodes) -> IntArray:
    """Return the class of each point of a scan with labels, -1 where it has none."""
    path = scan.source if scan.source is not None else "scan"
    if scan.labels is None:
        raise problem(path, None, "no column of labels; name it with --label-column")
    if codes.by_color:
        raise ValueError("classes of scans are integers or words, not colors; give these")
    if codes.by_index and scan.labels.dtype.kind == "U":
        raise problem(path, None, f"label {str(scan.labels[0])!r} is a word, but the classes have numbers; give words")
    labels, unknown = codes.lookup(scan.labels)
    if unknown.any():
        at = int(np.flatnonzero(unknown)[0])
        value = scan.labels[at]
        known = ", ".join(f"{name}={shown(one)}" for name, one in zip(codes.names, codes.written, strict=True))
        raise problem(
            path,
            None,
            f"unknown label {value} at point {at + 1} ({int(unknown.sum())} points of unknown labels); known are "
            f"{known}; give it a class, as {codes.names[-1]}={value}, or void={value}, or all others, as void=*",
        )
    return labels


def point_seeds(scan: Scan, codes: ClassCodes) -> IntArray:
    """Return the class of each point that a user labeled, -1 for void and for all labels that are not a class."""
    if scan.labels is None:
        raise problem(scan.source or "scan", None, "no column of labels; name it with --label-column")
    words = scan.labels.dtype.kind == "U"
    if codes.by_index and words:
        raise problem(scan.source or "scan", None, "labels are words, but the classes have numbers; give numbers")
    labels, unknown = replace(codes, others=None).lookup(scan.labels)
    return np.where(unknown, VOID, labels)


def learn_scan_codes(scans: Sequence[Scan], definition: Definition | None = None) -> ClassCodes:
    """Return the classes of labeled scans: as the user defined them, or the labels that occur, in ascending order."""
    definition = definition or Definition()
    if definition.values is not None:
        return definition.codes()
    found: set[Value] = set()
    for scan in scans:
        if scan.labels is None:
            raise problem(scan.source or "scan", None, "no column of labels; name it with --label-column")
        found |= set(np.unique(scan.labels).tolist())
    if len({type(value) for value in found}) > 1:
        raise FileError("some scans have integers and some words as labels; give all the same")
    try:
        return learned_codes(sorted(found, key=lambda value: (str(type(value)), value)), definition)
    except ValueError as error:
        whose = name_of(scans[0].source or "scan") if scans else "no scans"
        raise FileError(f"{whose}: {error}") from None

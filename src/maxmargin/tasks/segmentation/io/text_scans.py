"""Scans as text: a point per line, columns separated by white space, commas or semicolons.

Lines that begin with ``#`` or ``//`` are comments. Columns have names if the first line has, or if the last comment
before the points names as many columns as there are, x, y and z among them; otherwise they are x, y, z, column4, ...
A first line with nothing but the number of points is skipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.tasks.common.files.compression import plain_name
from maxmargin.tasks.common.files.text import AnyPath, FileError, open_output, problem, read_text
from maxmargin.tasks.segmentation.io.points import LABEL, Array, Scan, cut_off, make_scan

_COMMENTS = ("#", "//")


@dataclass(frozen=True)
class _Layout:
    """How a text file is laid out.

    Attributes:
        names: the columns.
        separator: what separates cells; None is white space.
        decimal_comma: whether numbers have a comma for a point.
        header: the line with the names, counted from 0; None without one.
        counted: whether the first line is the number of points.
        rows: the lines of points, counted from 0.
    """

    names: tuple[str, ...]
    separator: str | None
    decimal_comma: bool
    header: int | None
    counted: bool
    rows: Sequence[int]


def read_text_scan(path: AnyPath, label_column: str | int | None = None) -> Scan:
    """Read a scan; see :func:`~maxmargin.tasks.segmentation.io.scans.read_scan`."""
    lines = _lines(path)
    layout = _layout(path, lines)
    columns = _columns(path, [lines[row] for row in layout.rows], layout)
    return make_scan(path, "text", columns, label_column, where=lambda point: f"line {layout.rows[point] + 1}")


def _lines(path: AnyPath) -> list[str]:
    return [line.rstrip("\r") for line in read_text(path).decode("utf-8").split("\n")]


def _cells(line: str, separator: str | None) -> list[str]:
    return line.split() if separator is None else [cell.strip() for cell in line.split(separator)]


def _number(cell: str, decimal_comma: bool = False) -> float | None:
    """Return the number in a cell; None if there is none."""
    try:
        return float(cell.replace(",", ".") if decimal_comma else cell) if "_" not in cell else None
    except ValueError:
        return None


def _layout(path: AnyPath, lines: Sequence[str]) -> _Layout:
    rows = [
        at for at, line in enumerate(lines) if line and not line.isspace() and not line.lstrip().startswith(_COMMENTS)
    ]
    if not rows:
        raise problem(path, None, "no points; give a line with x, y and z for each")
    counted = False
    if len(_cells(lines[rows[0]], None)) == 1 and lines[rows[0]].strip().isdecimal() and len(rows) > 1:
        counted = True
        if int(lines[rows[0]]) != len(rows) - 1:
            raise cut_off(path, int(lines[rows[0]]), len(rows) - 1)
        rows = rows[1:]
    first = lines[rows[0]]
    separator = ";" if ";" in first else "," if "," in first else None
    cells = _cells(first, separator)
    header = None
    names: list[str] | None = None
    if all(_number(cell, True) is None for cell in cells) and len(rows) > 1:
        header, names = rows[0], [cell.strip("\"'") for cell in cells]
        rows = rows[1:]
        first = lines[rows[0]]
        cells = _cells(first, separator)
    elif rows[0]:
        header, names = _commented_names(lines, rows[0], len(cells))
    if names is None:
        names = [*"xyz", *(f"column{number}" for number in range(4, len(cells) + 1))][: len(cells)]
    elif len(set(names)) < len(names):
        assert header is not None
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise problem(path, header + 1, f"two columns are named {twice!r}; rename one")
    decimal_comma = separator == ";" and any("," in cell and _number(cell, True) is not None for cell in cells)
    return _Layout(tuple(names), separator, decimal_comma, header, counted, rows)


def _commented_names(lines: Sequence[str], end: int, count: int) -> tuple[int | None, list[str] | None]:
    """Return the last comment before the points and the names in it, if it has one for each column."""
    for at in reversed(range(end)):
        if not lines[at].strip():
            continue
        text = lines[at].strip().lstrip("#/").replace(",", " ").replace(";", " ")
        names = text.split()
        if len(names) == count and {"x", "y", "z"} <= {name.lower() for name in names}:
            return at, names
        break
    return None, None


def _columns(path: AnyPath, lines: list[str], layout: _Layout) -> dict[str, Array]:
    """Return the columns by name; those with words are arrays of strings."""
    if any("#" in line for line in lines[:1]) or "#" in "".join(lines):
        lines = [line.partition("#")[0] for line in lines]
    if layout.decimal_comma:
        lines = [line.replace(",", ".") for line in lines]
    first = _cells(lines[0], layout.separator)
    numeric = [at for at in range(len(layout.names)) if at < len(first) and _number(first[at]) is not None]
    while True:
        try:
            table = _table(lines, layout, numeric)
            break
        except ValueError:
            # A column may begin with numbers and go on with words.
            wordy = _wordy_column(path, lines, layout, numeric)
            numeric.remove(wordy)
    columns: dict[str, Array] = {}
    for at, name in enumerate(layout.names):
        if at in numeric:
            columns[name] = table[:, numeric.index(at)]
        else:
            columns[name] = np.array([_cells(line, layout.separator)[at] for line in lines], dtype=str)
    return columns


def _table(lines: list[str], layout: _Layout, numeric: list[int]) -> Array:
    whole = len(numeric) == len(layout.names)
    if not numeric:
        raise ValueError("no numbers")
    if not whole:
        _check_widths(lines, layout)
    return np.loadtxt(
        lines,
        dtype=np.float64,
        comments=None,
        delimiter=layout.separator,
        ndmin=2,
        usecols=None if whole else numeric,
    ).reshape(len(lines), len(numeric))


def _check_widths(lines: list[str], layout: _Layout) -> None:
    if any(len(_cells(line, layout.separator)) != len(layout.names) for line in lines):
        raise ValueError("lines of different lengths")


def _wordy_column(path: AnyPath, lines: Sequence[str], layout: _Layout, numeric: Sequence[int]) -> int:
    """Return the first of the numeric columns in which some line has a word; raise if it cannot have words."""
    for row, line in enumerate(lines):
        number = layout.rows[row] + 1
        cells = _cells(line, layout.separator)
        if len(cells) != len(layout.names):
            raise problem(
                path, number, f"{len(cells)} columns instead of {len(layout.names)}; give every point the same columns"
            )
        for at in numeric:
            if _number(cells[at]) is None:
                if layout.names[at].lower() in ("x", "y", "z"):
                    raise problem(
                        path, number, f"{cells[at]!r} in column {layout.names[at]} is not a number; correct it"
                    )
                return at
    raise problem(path, None, "columns that cannot be read; give x, y and z as numbers")


def write_text_scan(path: AnyPath, scan: Scan, columns: Mapping[str, Array]) -> None:
    """Write a scan with more columns; see :func:`~maxmargin.tasks.segmentation.io.scans.write_scan`."""
    if scan.source is not None and scan.format == "text":
        lines = _extended_lines(scan.source, columns)
    else:
        lines = _new_lines(path, scan, columns)
    with open_output(path) as file:
        file.write(("\n".join(lines) + "\n").encode())


def _spelled(values: Array) -> list[str]:
    if values.dtype.kind == "f":
        return [f"{value:.6g}" for value in values.tolist()]
    return [str(value) for value in values.tolist()]


def _extended_lines(source: AnyPath, columns: Mapping[str, Array]) -> list[str]:
    """Return the lines of a file with more columns; columns that it has are replaced."""
    lines = _lines(source)
    while lines and not lines[-1].strip():
        lines.pop()
    layout = _layout(source, lines)
    written = {name: _spelled(values) for name, values in columns.items()}
    for name, cells in written.items():
        if len(cells) != len(layout.rows):
            raise FileError(f"{source} has changed: {len(layout.rows)} points, and {name} has {len(cells)} values")
    glue = layout.separator or ("\t" if "\t" in lines[layout.rows[0]] else " ")
    replaced = {name: layout.names.index(name) for name in written if name in layout.names}
    added = [name for name in written if name not in replaced]
    for point, row in enumerate(layout.rows):
        line = lines[row].partition("#")[0].rstrip()
        if replaced:
            cells = _cells(line, layout.separator)
            for name, at in replaced.items():
                cells[at] = written[name][point]
            line = glue.join(cells)
        lines[row] = glue.join([line, *(written[name][point] for name in added)])
    if layout.header is not None:
        lines[layout.header] = glue.join([lines[layout.header].rstrip(), *added])
    elif not layout.counted:
        lines.insert(layout.rows[0], "# " + " ".join([*layout.names, *added]))
    return lines


def _new_lines(path: AnyPath, scan: Scan, columns: Mapping[str, Array]) -> list[str]:
    csv = plain_name(path).lower().endswith(".csv")
    glue = "," if csv else " "
    further: dict[str, Any] = {name: one for name, one in scan.attributes.items() if name not in columns}
    if scan.labels is not None and LABEL not in columns:
        further[LABEL] = scan.labels
    cells = [[repr(value) for value in scan.points[:, axis].tolist()] for axis in range(3)]
    cells += [[str(value) for value in one.tolist()] for one in further.values()]
    cells += [_spelled(one) for one in columns.values()]
    head = glue.join([*"xyz", *further, *columns])
    return [head if csv else f"# {head}", *(glue.join(row) for row in zip(*cells, strict=True))]

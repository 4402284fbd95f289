"""PLY files: ASCII and binary, with points in the element ``vertex``; other elements are kept as they are."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from maxmargin.tasks.common.files.text import AnyPath, FileError, open_output, problem, read_bytes
from maxmargin.tasks.segmentation.io.points import LABEL, Array, Scan, cut_off, make_scan

SIGNATURES = (b"ply\n", b"ply\r")

_TYPES = {
    **{"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4", "float": "f4"},
    **{"double": "f8", "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4"},
    **{"float32": "f4", "float64": "f8", "int64": "i8", "uint64": "u8"},
}
_NAMES = {"i1": "char", "u1": "uchar", "i2": "short", "u2": "ushort", "i4": "int", "u4": "uint", "f4": "float"}
_NAMES |= {"f8": "double", "i8": "int64", "u8": "uint64"}
_ORDERS = {"ascii": None, "binary_little_endian": "<", "binary_big_endian": ">"}
_MAX_HEADER = 1 << 20
_MAX_LINES = 10_000


@dataclass(frozen=True)
class _Property:
    """A property of an element: its name, type and, for lists, the type of the length."""

    name: str
    type: str
    length: str | None = None


@dataclass(frozen=True)
class _Element:
    """An element: its name, number of rows and properties."""

    name: str
    count: int
    properties: tuple[_Property, ...]

    @property
    def fixed(self) -> bool:
        """Whether all rows have the same length."""
        return all(one.length is None for one in self.properties)

    def dtype(self, order: str) -> np.dtype[np.void]:
        """Return the type of a row; all properties must be single numbers."""
        return np.dtype([(one.name, order + one.type) for one in self.properties])


@dataclass(frozen=True)
class _File:
    """A PLY file: the lines of its header, its elements, the order of bytes (None for ASCII), and its body."""

    header: list[str]
    elements: list[_Element]
    order: str | None
    body: bytes
    first_line: int  # the number of the line after the header

    @property
    def vertex(self) -> int:
        """The place of the element ``vertex``."""
        return next(at for at, element in enumerate(self.elements) if element.name == "vertex")


def read_ply(path: AnyPath, label_column: str | int | None = None) -> Scan:
    """Read a scan; see :func:`~maxmargin.tasks.segmentation.io.scans.read_scan`."""
    file = _open(path)
    table, _, _, numbers = _vertices(path, file)
    columns = {name: table[name] for name in table.dtype.names or ()}
    if numbers is None:
        return make_scan(path, "ply", columns, label_column)
    lines = numbers
    return make_scan(path, "ply", columns, label_column, where=lambda point: f"line {lines[point]}")


def _open(path: AnyPath) -> _File:
    data = read_bytes(path)
    end = data.find(b"end_header", 0, _MAX_HEADER)
    stop = data.find(b"\n", end) + 1
    if not data.startswith(SIGNATURES) or end < 0 or stop <= 0:
        raise problem(path, None, "not a PLY file, or its header is cut off; copy it again")
    try:
        header = data[:stop].decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise problem(path, None, "the header of the PLY file is not UTF-8; write it again") from None
    if len(header) > _MAX_LINES:
        raise problem(path, None, f"a header of {len(header)} lines; give one with at most {_MAX_LINES}")
    order: str | None = None
    known = False
    elements: list[_Element] = []
    for number, line in enumerate(header[1:], start=2):
        words = line.split()
        if not words or words[0] in ("comment", "obj_info", "end_header"):
            continue
        try:
            if words[0] == "format":
                order, known = _ORDERS[words[1]], True
            elif words[0] == "element":
                if len(words) != 3 or not words[2].isdecimal() or len(words[2]) > 18:
                    raise ValueError(line)
                elements.append(_Element(words[1], int(words[2]), ()))
            elif words[0] == "property":
                last = elements.pop()
                one = _property(words)
                if one.name in {other.name for other in last.properties}:
                    raise ValueError(line)
                elements.append(_Element(last.name, last.count, (*last.properties, one)))
            else:
                raise ValueError(line)
        except (KeyError, IndexError, ValueError):
            raise problem(path, number, f"{line[:80]!r} is not a line of a PLY header; write the file again") from None
    if not known:
        raise problem(path, None, "the PLY header says no format; write the file again")
    names = [element.name for element in elements]
    if names.count("vertex") != 1:
        raise problem(path, None, "no points (element vertex) in the PLY file; give a scan")
    return _File(header, elements, order, data[stop:], len(header) + 1)


def _property(words: list[str]) -> _Property:
    if words[1] == "list":
        _, _, length, kind, name = words
        if _TYPES[length][0] == "f":
            raise ValueError(length)
        return _Property(name, _TYPES[kind], _TYPES[length])
    _, kind, name = words
    return _Property(name, _TYPES[kind])


def _vertices(path: AnyPath, file: _File) -> tuple[Array, int, int, range | None]:
    """Return the rows of points, where they begin and end in the body, and the numbers of their lines."""
    element = file.elements[file.vertex]
    if not element.fixed:
        listed = next(one.name for one in element.properties if one.length is not None)
        raise problem(path, None, f"property {listed} of points is a list; write the file without it")
    if not element.properties:
        raise problem(path, None, "points without properties; give x, y and z")
    if file.order is None:
        return _ascii_vertices(path, file, element)
    at = 0
    for before in file.elements[: file.vertex]:
        at = _skip(path, file, before, at)
    dtype = element.dtype(file.order)
    have = max(0, len(file.body) - at) // dtype.itemsize
    if have < element.count:
        raise cut_off(path, element.count, have)
    rows = np.frombuffer(file.body, dtype=dtype, count=element.count, offset=at)
    return rows.astype(element.dtype("=")), at, at + element.count * dtype.itemsize, None


def _skip(path: AnyPath, file: _File, element: _Element, at: int) -> int:
    """Return where the next element begins."""
    assert file.order is not None
    if element.fixed:
        at += element.count * (element.dtype(file.order).itemsize if element.properties else 0)
    else:
        formats = {"i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q"}
        for _ in range(element.count):
            for one in element.properties:
                size = int(one.type[1])
                if one.length is not None:
                    try:
                        (length,) = struct.unpack_from(file.order + formats[one.length], file.body, at)
                    except struct.error:
                        raise _cut_in(path, element) from None
                    at += int(one.length[1])
                    size *= length
                if size < 0 or at + size > len(file.body):
                    raise _cut_in(path, element)
                at += size
    if at > len(file.body):
        raise _cut_in(path, element)
    return at


def _cut_in(path: AnyPath, element: _Element) -> FileError:
    return problem(path, None, f"the PLY file ends inside element {element.name}; copy it again")


def _ascii_vertices(path: AnyPath, file: _File, element: _Element) -> tuple[Array, int, int, range | None]:
    lines = file.body.split(b"\n")
    if not lines[-1].strip():
        lines.pop()
    begin = sum(before.count for before in file.elements[: file.vertex])
    if len(lines) < begin + element.count:
        raise cut_off(path, element.count, max(0, len(lines) - begin))
    chosen = lines[begin : begin + element.count]
    numbers = range(file.first_line + begin, file.first_line + begin + element.count)
    rows = np.empty(element.count, dtype=element.dtype("="))
    if chosen:
        try:
            table = np.loadtxt([line.decode("ascii") for line in chosen], dtype=np.float64, comments=None, ndmin=2)
            fits = table.shape == (element.count, len(element.properties))
        except ValueError:
            fits = False
        if not fits:
            raise _bad_line(path, chosen, numbers, len(element.properties))
        for at, one in enumerate(element.properties):
            rows[one.name] = _cast(path, table[:, at], one, numbers)
    start = sum(len(line) + 1 for line in lines[:begin])
    return rows, start, start + sum(len(line) + 1 for line in chosen), numbers


def _bad_line(path: AnyPath, lines: list[bytes], numbers: range, count: int) -> FileError:
    for number, line in zip(numbers, lines, strict=True):
        words = line.split()
        if len(words) != count:
            return problem(path, number, f"{len(words)} numbers instead of {count}; write the file again")
        for word in words:
            try:
                float(word)
            except ValueError:
                return problem(path, number, f"{word[:40].decode('ascii', 'replace')!r} is not a number; correct it")
    return problem(path, numbers[0], "numbers that cannot be read; write the file again")


def _cast(path: AnyPath, values: Array, one: _Property, numbers: range) -> Array:
    dtype = np.dtype(one.type)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            return values.astype(dtype)
    limits = np.iinfo(dtype)
    wrong = ~((values >= float(limits.min)) & (values <= float(limits.max)) & (np.rint(values) == values))
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        kind = _NAMES[one.type]
        raise problem(
            path, numbers[at], f"{values[at]:g} in property {one.name} is not of type {kind}; write it as such"
        )
    return values.astype(dtype)


def write_ply(path: AnyPath, scan: Scan, columns: Mapping[str, Array], comments: list[str]) -> None:
    """Write a scan with more columns; see :func:`~maxmargin.tasks.segmentation.io.scans.write_scan`."""
    if scan.source is not None and scan.format == "ply":
        data = _extended(scan.source, columns, comments)
    else:
        data = _new(scan, columns, comments)
    with open_output(path) as file:
        file.write(data)


def _stored(values: Array) -> Array:
    """Return values in a type that every reader of PLY knows."""
    if values.dtype.kind == "f":
        return values.astype(np.float32)
    if values.dtype.kind not in "bui" or not (len(values) == 0 or abs(values.astype(np.int64)).max() < 1 << 31):
        raise ValueError("PLY holds integers of 32 bits, and no words; give the classes such numbers")
    return values.astype(np.int32)


def _joined(table: Array, columns: Mapping[str, Array]) -> Array:
    """Return rows with more columns; columns of the same name are replaced."""
    stored = {name: _stored(values) for name, values in columns.items()}
    kept = [name for name in table.dtype.names or () if name not in stored]
    fields = [(name, table.dtype[name].str) for name in kept] + [(name, one.dtype.str) for name, one in stored.items()]
    joined = np.empty(len(table), dtype=fields)
    for name in kept:
        joined[name] = table[name]
    for name, one in stored.items():
        joined[name] = one
    return joined


def _described(table: Array) -> list[str]:
    return [f"property {_NAMES[table.dtype[name].str[1:]]} {name}" for name in table.dtype.names or ()]


def _packed(table: Array, order: str | None) -> bytes:
    names = table.dtype.names or ()
    if order is not None:
        return table.astype([(name, order + table.dtype[name].str[1:]) for name in names]).tobytes()
    # As numbers of numpy, so that float32 has no more digits than it needs.
    cells = [list(map(str, table[name])) for name in names]
    return "".join(" ".join(row) + "\n" for row in zip(*cells, strict=True)).encode()


def _extended(source: AnyPath, columns: Mapping[str, Array], comments: list[str]) -> bytes:
    file = _open(source)
    table, begin, end, _ = _vertices(source, file)
    if any(len(values) != len(table) for values in columns.values()):
        raise FileError(f"{source} has changed: it has {len(table)} points now")
    joined = _joined(table, columns)
    header: list[str] = []
    inside = False
    for line in file.header:
        word, *rest = line.split() or [""]
        if word == "element":
            inside = rest[0] == "vertex"
            if inside:
                header += [*(f"comment {comment}" for comment in comments), line, *_described(joined)]
                continue
        if not (word == "property" and inside):
            header.append(line)
    body = file.body[:begin] + _packed(joined, file.order) + file.body[end:]
    return "\n".join([*header, ""]).encode() + body


def _new(scan: Scan, columns: Mapping[str, Array], comments: list[str]) -> bytes:
    fields = {name: scan.points[:, axis] for axis, name in enumerate("xyz")}
    further = {name: one for name, one in scan.attributes.items() if name not in fields}
    if scan.labels is not None and LABEL not in columns:
        columns = {LABEL: scan.labels, **columns}
    table = np.empty(len(scan), dtype=[(name, one.dtype.str) for name, one in {**fields, **further}.items()])
    for name, one in {**fields, **further}.items():
        table[name] = one
    joined = _joined(table, columns)
    header = ["ply", "format binary_little_endian 1.0", *(f"comment {comment}" for comment in comments)]
    header += [f"element vertex {len(joined)}", *_described(joined), "end_header", ""]
    return "\n".join(header).encode() + _packed(joined, "<")

"""PLY files: round trips in every form, cut anywhere, and headers that claim too much."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from attempts import read_or_refuse
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.tasks.common.files.text import FileError
from maxmargin.tasks.segmentation.io.points import Scan
from maxmargin.tasks.segmentation.io.scans import read_scan, write_scan

FORMATS = {"ascii": None, "binary_little_endian": "<", "binary_big_endian": ">"}
TYPES = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4", "float": "f4"}
TYPES |= {"double": "f8", "int8": "i1", "uint16": "u2", "float32": "f4", "float64": "f8"}
CODES = {"i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "f4": "f", "f8": "d"}


def packed(form, kind, value):
    """A number, as struct writes it."""
    order = FORMATS[form]
    if order is None:
        return f"{value} ".encode()
    return struct.pack(order + CODES[TYPES[kind]], value)


def ply(form, properties, rows, *, before=(), after=()):
    """A PLY file; ``before`` and ``after`` are lists of integers, of elements around the points."""
    header = ["ply", f"format {form} 1.0", "comment of a test"]
    if before:
        header += [f"element face {len(before)}", "property float area", "property list uchar int vertex_indices"]
    header += [f"element vertex {len(rows)}", *(f"property {kind} {name}" for kind, name in properties)]
    if after:
        header += [f"element edge {len(after)}", "property list ushort short places"]
    end = b"\n" if FORMATS[form] is None else b""
    body = b""
    for one in before:
        body += packed(form, "float", 0.5) + packed(form, "uchar", len(one))
        body += b"".join(packed(form, "int", value) for value in one) + end
    for row in rows:
        body += b"".join(packed(form, kind, value) for (kind, _), value in zip(properties, row, strict=True)) + end
    for one in after:
        body += packed(form, "ushort", len(one)) + b"".join(packed(form, "short", value) for value in one) + end
    return "\n".join([*header, "end_header", ""]).encode() + body


XYZ = [("float", "x"), ("double", "y"), ("float32", "z")]
LISTS = st.lists(st.lists(st.integers(-99, 99), max_size=4), max_size=3)


@st.composite
def files(draw):
    """The form, properties, rows and lists of a file."""
    kinds = draw(st.lists(st.sampled_from(sorted(TYPES)), max_size=4))
    properties = [*XYZ, *((kind, f"p{at}") for at, kind in enumerate(kinds))]
    properties = draw(st.permutations(properties))

    def number(kind):
        dtype = np.dtype(TYPES[kind])
        if dtype.kind == "f":
            return st.floats(-1e6, 1e6, width=32)
        return st.integers(int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))

    rows = draw(st.lists(st.tuples(*(number(kind) for kind, _ in properties)), min_size=1, max_size=5))
    return draw(st.sampled_from(sorted(FORMATS))), properties, rows, draw(LISTS), draw(LISTS)


@given(files())
def test_every_form(tmp_path_factory, made):
    form, properties, rows, before, after = made
    path = tmp_path_factory.getbasetemp() / "a.ply"
    path.write_bytes(ply(form, properties, rows, before=before, after=after))
    scan = read_scan(path)
    columns = {name: np.array([row[at] for row in rows]) for at, (_, name) in enumerate(properties)}
    np.testing.assert_array_equal(scan.points, np.stack([columns[axis] for axis in "xyz"], axis=1))
    for kind, name in properties:
        if name not in ("x", "y", "z"):
            assert scan.attributes[name].dtype == TYPES[kind]
            np.testing.assert_array_equal(scan.attributes[name], columns[name])
    # Written again: points, properties and other elements stay, labels come with it.
    labels = np.arange(len(rows)) - 1
    out = path.with_name("b.ply")
    write_scan(out, scan, labels, columns={"p_tree": labels / 4}, class_names={0: "ground"})
    again = read_scan(out)
    np.testing.assert_array_equal(again.points, scan.points)
    np.testing.assert_array_equal(again.labels, labels)
    assert list(again.attributes) == [*scan.attributes, "p_tree"]
    for name, values in scan.attributes.items():
        assert again.attributes[name].dtype == values.dtype
        np.testing.assert_array_equal(again.attributes[name], values)
    content = out.read_bytes()
    assert f"format {form} 1.0".encode() in content
    assert b"comment class 0 ground\n" in content
    if after:
        tail = ply(form, properties, [], after=after).partition(b"end_header\n")[2]
        assert content.endswith(tail)
    # A second time the labels are replaced.
    write_scan(path, again, labels + 3)
    np.testing.assert_array_equal(read_scan(path).labels, labels + 3)


@given(st.sampled_from(sorted(FORMATS)), st.floats(0, 0.999), st.booleans())
def test_cut_anywhere(tmp_path_factory, form, share, around):
    """A cut file is an error with its name; an ASCII number may only become shorter."""
    lists = [[1, 2, 3]] * 3 if around else ()
    content = ply(form, [*XYZ, ("uchar", "label")], [(1.5, 2, 3, 7)] * 9, before=lists)
    path = tmp_path_factory.getbasetemp() / "cut.ply"
    path.write_bytes(content[: int(share * len(content))])
    scan = read_or_refuse(read_scan, path)
    assert scan is None or (form == "ascii" and len(scan) == 9)


@given(st.data())
def test_changed_bytes(tmp_path_factory, data):
    form = data.draw(st.sampled_from(sorted(FORMATS)))
    content = bytearray(ply(form, [*XYZ, ("uchar", "label")], [(1.5, 2, 3, 7)] * 4, before=[[1, 2]] * 2))
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "changed.ply"
    path.write_bytes(content)
    scan = read_or_refuse(read_scan, path)
    assert scan is None or len(scan)


HEAD = "ply\nformat {}\n{}end_header\n"
AXES = "property float x\nproperty float y\nproperty float z\n"


@pytest.mark.parametrize(
    ("form", "rest", "body", "message"),
    [
        (
            "ascii 1.0",
            "element vertex 999999999999\n" + AXES,
            b"1 2 3\n",
            "cut off: the header says 999999999999 points",
        ),
        ("binary_little_endian 1.0", "element vertex 99999999999\n" + AXES, b"\0" * 99, "cut off: .* the file has 8"),
        ("binary_little_endian 1.0", "element vertex -1\n" + AXES, b"", "line 3: 'element vertex -1' is not a line"),
        ("binary_little_endian 1.0", f"element vertex {'9' * 30}\n" + AXES, b"", "is not a line of a PLY header"),
        ("binary_middle_endian 1.0", "element vertex 1\n" + AXES, b"", "line 2: 'format binary_middle_endian 1.0'"),
        ("ascii 1.0", "element face 1\n" + AXES, b"", "no points"),
        ("ascii 1.0", "element vertex 0\n" + AXES, b"", "no points"),
        ("ascii 1.0", "element vertex 1\n", b"1 2 3\n", "points without properties"),
        ("ascii 1.0", "element vertex 1\nproperty float x\n", b"1\n", "columns x; give at least three"),
        ("ascii 1.0", "property float x\n", b"", "line 3: 'property float x' is not a line"),
        ("ascii 1.0", "element vertex 1\n" + AXES + "property float x\n", b"", "line 7: 'property float x'"),
        ("ascii 1.0", "element vertex 1\n" + AXES + "property half w\n", b"", "line 7: 'property half w'"),
        (
            "ascii 1.0",
            "element vertex 1\n" + AXES + "property list uchar int w\n",
            b"",
            "property w of points is a list",
        ),
        ("ascii 1.0", "element vertex 2\n" + AXES, b"1 2 3\n4 5\n", "line 9: 2 numbers instead of 3"),
        ("ascii 1.0", "element vertex 2\n" + AXES, b"1 2 3\n4 five 6\n", "line 9: 'five' is not a number"),
        ("ascii 1.0", "element vertex 2\n" + AXES, b"1 2 3\n4 nan 6\n", "line 9: coordinate y is nan"),
        (
            "ascii 1.0",
            "element vertex 1\n" + AXES + "property uchar w\n",
            b"1 2 3 256\n",
            "256 in property w is not of",
        ),
        (
            "ascii 1.0",
            "element vertex 1\n" + AXES + "property uchar w\n",
            b"1 2 3 nan\n",
            "nan in property w is not of",
        ),
        (
            "binary_big_endian 1.0",
            "element vertex 1\n" + AXES,
            struct.pack(">3f", 1, np.inf, 0),
            "point 1: .* y is inf",
        ),
        (
            "binary_little_endian 1.0",
            "element face 4000000000\nproperty list uint uint i\nelement vertex 1\n" + AXES,
            b"\xff" * 40,
            "ends inside element face",
        ),
        (
            "binary_little_endian 1.0",
            "element face 5\nproperty list float uint i\n",
            b"",
            "line 4: 'property list float",
        ),
    ],
)
def test_bad_files(saved, form, rest, body, message):
    with pytest.raises(FileError, match=message):
        read_scan(saved(HEAD.format(form, rest).encode() + body, "a.ply"))


def test_bad_headers(saved):
    for content in (
        b"ply\n",
        b"ply\nformat ascii 1.0\nelement vertex 1\n",
        b"ply\nend_header",
        b"ply\n\xff\nend_header\n",
    ):
        with pytest.raises(FileError, match=r"a\.ply: "):
            read_scan(saved(content, "a.ply"))
    with pytest.raises(FileError, match="says no format"):
        read_scan(saved(b"ply\nend_header\n", "a.ply"))
    with pytest.raises(FileError, match="at most 10000"):
        read_scan(saved(b"ply\n" + b"comment\n" * 20000 + b"end_header\n", "a.ply"))


def test_lines_end_with_carriage_returns(saved):
    content = ply("ascii", XYZ, [(1, 2, 3)]).replace(b"\n", b"\r\n")
    assert read_scan(saved(content, "a.ply")).points.tolist() == [[1, 2, 3]]


def test_labels_by_property(saved):
    content = ply("ascii", [*XYZ, ("float", "scalar_Label"), ("int", "id")], [(1, 2, 3, 4, 5)])
    assert read_scan(saved(content, "a.ply")).labels.tolist() == [4]
    scan = read_scan(saved(content, "a.ply"), "id")
    assert (scan.labels.tolist(), list(scan.attributes)) == ([5], ["scalar_Label"])
    assert read_scan(saved(content, "a.ply"), 5).labels.tolist() == [5]


def test_new_files(tmp_path):
    scan = Scan(np.arange(6.0).reshape(2, 3) / 7, {"intensity": np.array([1, 2], dtype=np.uint16)}, np.array([3, 4]))
    write_scan(tmp_path / "a.ply", scan)
    found = read_scan(tmp_path / "a.ply")
    np.testing.assert_array_equal(found.points, scan.points)
    assert found.labels.tolist() == [3, 4]
    assert found.attributes["intensity"].tolist() == [1, 2]
    with pytest.raises(ValueError, match="integers of 32 bits, and no words"):
        write_scan(tmp_path / "a.ply", scan, np.array(["tree", "car"]))

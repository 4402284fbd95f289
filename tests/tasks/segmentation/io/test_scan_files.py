"""Scans as text and npz: layouts, labels, errors with the line, and writing what was read."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.record import DATA
from maxmargin.tasks.common.files.text import FileError
from maxmargin.tasks.segmentation.io.classes import parse_classes
from maxmargin.tasks.segmentation.io.points import Scan
from maxmargin.tasks.segmentation.io.scans import learn_scan_codes, point_classes, read_scan, write_scan

POINTS = [[1.5, 2.0, -3.0], [4.0, 5.25, 6.0], [7.0, 8.0, 9e3]]


def names(scan):
    return list(scan.attributes)


@pytest.mark.parametrize(
    ("text", "attributes"),
    [
        ("1.5 2 -3\n4 5.25 6\n7 8 9e3\n", []),
        ("1.5\t2\t-3\t7\r\n4\t5.25\t6\t7\r\n7\t8\t9e3\t7", ["column4"]),
        ("# a scan\n\n1.5,2,-3\n4, 5.25 ,6\n# inside\n7,8,9e3\n\n", []),
        ("x;y;z;Intensity\n1,5;2;-3;1\n4;5,25;6;1\n7;8;9000;1,5\n", ["Intensity"]),
        ("Z,Y,X,R\n-3,2,1.5,0\n6,5.25,4,0\n9e3,8,7,0\n", ["R"]),
        ("//X Y Z time\n1.5 2 -3 0\n4 5.25 6 0\n7 8 9e3 0\n", ["time"]),
        ("# x y z time\n1.5 2 -3 0\n4 5.25 6 0 # last\n7 8 9e3 0\n", ["time"]),
        ("3\n1.5 2 -3 9\n4 5.25 6 9\n7 8 9e3 9\n", ["column4"]),
        ('"x","y","z","a"\n1.5,2,-3,1\n4,5.25,6,1\n7,8,9e3,1\n', ["a"]),
        ("east north up word\n1.5 2 -3 b\n4 5.25 6 1\n7 8 9e3 c\n", []),
    ],
)
def test_layouts(saved, text, attributes):
    for content, name in ((text.encode(), "scan.txt"), (gzip.compress(text.encode()), "scan.xyz.gz")):
        scan = read_scan(saved(content, name))
        np.testing.assert_array_equal(scan.points, POINTS)
        assert names(scan) == attributes
        assert scan.labels is None
        assert (scan.format, len(scan)) == ("text", 3)


def test_labels_by_name_and_number(saved):
    text = "1 2 3 1400 2\n4 5 6 1300 2\n7 8 9 1202 1\n"
    scan = read_scan(saved(text), 4)
    assert scan.labels.tolist() == [1400, 1300, 1202]
    assert names(scan) == ["column5"]
    assert read_scan(saved(text), "column5").labels.tolist() == [2, 2, 1]
    for header in ("x y z Label conf", "x y z classification conf", "x y z scalar_Classification conf"):
        scan = read_scan(saved(header + "\n" + text))
        assert scan.labels.tolist() == [1400, 1300, 1202]
        assert names(scan) == ["conf"]
    scan = read_scan(saved("1 2 3 tree\n4 5 6 7\n"), 4)
    assert scan.labels.tolist() == ["tree", "7"]
    scan = read_scan(saved("1 2 3 7\n4 5 6 tree\n"), 4)
    assert scan.labels.tolist() == ["7", "tree"]


@pytest.mark.parametrize(
    ("text", "label", "message"),
    [
        ("", None, "empty"),
        ("# nothing\n", None, "no points"),
        ("x y z\n", None, "columns"),
        ("1 2\n3 4\n", None, "columns x, y; give at least three"),
        ("1 2 3\n4 5\n", None, r"file, line 2: 2 columns instead of 3"),
        ("1 2 3\n# c\n4 5 6 7\n", None, r"file, line 3: 4 columns instead of 3"),
        ("1 2 3\n4 five 6\n", None, r"file, line 2: 'five' in column y is not a number"),
        ("1 2 3\n4 1_0 6\n", None, r"file, line 2: '1_0' in column y"),
        ("1 2 3\n\n4 nan 6\n", None, r"line 3: coordinate y is nan \(in all 1 such points\); remove"),
        ("1 2 3\n4 5 -inf\n4 5 1e999\n", None, r"line 2: coordinate z is -inf \(in all 2"),
        ("1 2 3\n", 4, r"no column 4; give --label-column a number from 1 to 3"),
        ("1 2 3\n", "class", r"no column 'class'; give --label-column one of x, y, z"),
        ("1 2 3\n", 2, "is coordinate y"),
        ("1 2 3 0.5\n", 4, r"line 1: 0\.5 in column column4 is not a label"),
        ("1 2 3 nan\n", 4, "nan in column column4 is not a label"),
        ("5\n1 2 3\n4 5 6\n", None, "cut off: the header says 5 points and the file has 2"),
        ("x y z z\n1 2 3 4\n", None, r"line 1: two columns are named 'z'"),
        ("a,b,c,d,e\n1,2,3,4,tree,6\n", None, "line 2: 6 columns instead of 5"),
    ],
)
def test_bad_text(saved, text, label, message):
    with pytest.raises(FileError, match=message):
        read_scan(saved(text), label)


def test_other_bad_files(saved, tmp_path):
    with pytest.raises(FileError, match="line 2: byte 0xff is not UTF-8"):
        read_scan(saved(b"1 2 3\n\xff\n"))
    with pytest.raises(FileError, match="NUL"):
        read_scan(saved(b"1 2 3\n\0\0\n"))
    with pytest.raises(FileError, match="damaged gzip"):
        read_scan(saved(gzip.compress(b"1 2 3\n" * 50)[:-9]))
    with pytest.raises(FileError, match="No such file"):
        read_scan(tmp_path / "none")
    with pytest.raises(FileError, match="scans are read from files"):
        read_scan("-")


def test_three_points_and_one(saved):
    assert len(read_scan(saved("0 0 0\n0 0 0\n0 0 0\n"))) == 3
    assert len(read_scan(saved("0 0 0"))) == 1


@given(
    st.lists(st.tuples(*[st.floats(-1e6, 1e6)] * 3, st.integers(-9, 99)), min_size=1, max_size=8),
    st.sampled_from("ctn"),
)
def test_round_trips(tmp_path_factory, rows, kind):
    path = tmp_path_factory.getbasetemp() / {"c": "a.csv", "t": "a.txt.gz", "n": "a.npz"}[kind]
    points = np.array([row[:3] for row in rows])
    labels = np.array([row[3] for row in rows])
    write_scan(path, Scan(points, {"intensity": labels * 2.0}), labels)
    found = read_scan(path)
    np.testing.assert_array_equal(found.points, points)
    np.testing.assert_array_equal(found.labels, labels)
    np.testing.assert_array_equal(found.attributes["intensity"], labels * 2.0)


def test_written_text_keeps_the_lines(saved, tmp_path):
    out = tmp_path / "out.txt"

    def written(text, labels, **columns):
        scan = read_scan(saved(text))
        write_scan(out, scan, np.array(labels), columns={name: np.array(one) for name, one in columns.items()})
        assert read_scan(out).labels.tolist() == labels
        return out.read_text()

    assert written("# from a car\n1.50 2 3 7\n\n4 5 6.0 7\n", [5, 6]) == (
        "# from a car\n# x y z column4 label\n1.50 2 3 7 5\n\n4 5 6.0 7 6\n"
    )
    assert written("x,y,z\n1,2,3\n", [2], p_tree=[0.25]) == "x,y,z,label,p_tree\n1,2,3,2,0.25\n"
    assert written("# x y z t\n1 2 3 0\n", ["tree"]) == "# x y z t label\n1 2 3 0 tree\n"
    assert written("x;y;z;label;t\n1,5;2;3;9;0\n", [4]) == "x;y;z;label;t\n1,5;2;3;4;0\n"
    scan = read_scan(saved("2\n1 2 3\n4 5 6\n", "a.pts"))
    write_scan(tmp_path / "b.pts", scan, np.array([0, 1]))
    assert (tmp_path / "b.pts").read_text() == "2\n1 2 3 0\n4 5 6 1\n"
    with pytest.raises(ValueError, match="one value for each of 2 points"):
        write_scan(out, scan, np.array([1, 2, 3]))
    saved("1 2 3\n", "a.pts")
    with pytest.raises(FileError, match="has changed"):
        write_scan(out, scan, np.array([1, 2]))


def test_npz(tmp_path):
    points = np.array(POINTS)
    np.savez(tmp_path / "a.npz", points=points, label=[1, 2, 3], rgb=np.eye(3), normal=np.eye(3), time=[1, 2, 3])
    scan = read_scan(tmp_path / "a.npz")
    assert names(scan) == ["red", "green", "blue", "normal_1", "normal_2", "normal_3", "time"]
    assert scan.labels.tolist() == [1, 2, 3]
    np.save(tmp_path / "a.npy", np.column_stack([points, [7, 8, 9]]))
    assert read_scan(tmp_path / "a.npy", 4).labels.tolist() == [7, 8, 9]
    for arrays, message in [
        ({"a": points, "b": points}, "no array 'points'"),
        ({"points": points[:, :2]}, "no array 'points' of shape"),
        ({"points": points, "b": [1, 2]}, r"array 'b' has shape \(2,\); give one value for each of 3 points"),
        ({"points": points[:0]}, "no points"),
        ({"points": points * np.nan}, "point 1: coordinate x is nan"),
    ]:
        np.savez(tmp_path / "b.npz", **arrays)
        with pytest.raises(FileError, match=message):
            read_scan(tmp_path / "b.npz")


def test_classes_of_points(saved):
    scan = read_scan(saved("1 2 3 1400\n4 5 6 1300\n7 8 9 1202\n"), 4)
    codes = learn_scan_codes([scan], parse_classes("ground=1200-1206 plant=1300-1306 void=1400"))
    assert point_classes(scan, codes).tolist() == [-1, 1, 0]
    assert learn_scan_codes([scan]).names == ("1202", "1300", "1400")
    assert learn_scan_codes([scan], parse_classes("g,p,f")).values == ((1202,), (1300,), (1400,))
    with pytest.raises(FileError, match=r"file: 3 values \(1202, 1300, 1400\) and 2 classes"):
        learn_scan_codes([scan], parse_classes("g,p"))
    with pytest.raises(
        FileError, match=r"file: unknown label 1400 at point 1 \(2 points of .* void=1400, or all others"
    ):
        point_classes(scan, parse_classes("ground=1202").codes())
    with pytest.raises(FileError, match="no column of labels; name it with --label-column"):
        point_classes(read_scan(saved("1 2 3\n")), codes)
    with pytest.raises(FileError, match="no column of labels"):
        learn_scan_codes([read_scan(saved("1 2 3\n"))])
    words = read_scan(saved("1 2 3 tree\n4 5 6 road\n", "words"), 4)
    assert point_classes(words, learn_scan_codes([words], parse_classes("road,tree"))).tolist() == [1, 0]
    with pytest.raises(FileError, match="label 'tree' is a word, but the classes have numbers"):
        point_classes(words, codes)
    with pytest.raises(FileError, match="some scans have integers and some words"):
        learn_scan_codes([scan, words])
    with pytest.raises(ValueError, match="not colors"):
        point_classes(scan, parse_classes("a=#ff0000").codes())


def test_scans_of_arrays_are_checked():
    with pytest.raises(ValueError, match=r"points of shape \(3, 2\)"):
        Scan(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="time has shape"):
        Scan(np.zeros((3, 3)), {"time": np.zeros(2)})


@pytest.mark.skipif(not (DATA / "segmentation" / "oakland").exists(), reason="the Oakland scans are not there")
def test_oakland(tmp_path):
    path = DATA / "segmentation/oakland/oakland_part3_am.xyz_label_conf.gz"
    scan = read_scan(path, 4)
    with gzip.open(path) as file:
        table = np.loadtxt(file)
    np.testing.assert_array_equal(scan.points, table[:, :3])
    np.testing.assert_array_equal(scan.labels, table[:, 3])
    assert names(scan) == ["column5"]
    write_scan(tmp_path / "out.txt", scan, scan.labels % 7)
    np.testing.assert_array_equal(read_scan(tmp_path / "out.txt").labels, scan.labels % 7)

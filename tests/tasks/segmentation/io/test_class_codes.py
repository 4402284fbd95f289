"""Definitions of classes, and the classes of values."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.tasks.common.files.text import FileError
from maxmargin.tasks.segmentation.io.classes import (
    ClassCodes,
    Definition,
    learned_codes,
    packed,
    parse_classes,
    parse_values,
    unpacked,
)


def test_spellings():
    expected = Definition(("ground", "tree"), ((1202, 1203), (1300, 1301, 1302)), (9999,), None)
    for text in (
        "ground=1202,1203 tree=1300-1302 void=9999",
        "ground=1202,1203,tree=1300-1302,void=9999",
        "ground = 1202, 1203; tree = 1300-1302; void = 9999",
    ):
        assert parse_classes(text) == expected
    assert parse_classes("ground=1202,1203 tree=1300-1302", void="9999") == expected
    assert parse_classes("background,horse") == Definition(("background", "horse"))
    assert parse_classes(None, void="255") == Definition(void=(255,))
    assert parse_classes("a=#f00 b=#00ff00").values == (((255, 0, 0),), ((0, 255, 0),))
    assert parse_classes("a=-1 b=-5--3").values == ((-1,), (-5, -4, -3))


def test_files(saved):
    text = "# classes of streets\n\nground 1200 1202\nvoid = 1001\ntree=1300-1301\n"
    path = saved(text, "classes.txt")
    assert parse_classes(file=path) == Definition(("ground", "tree"), ((1200, 1202), (1300, 1301)), (1001,))
    chosen = parse_classes("tree", file=path)
    assert chosen == Definition(("tree",), ((1300, 1301),), (1001, 1200, 1202))
    with pytest.raises(FileError, match=r"classes\.txt: no class 'car'"):
        parse_classes("car,tree", file=path)
    with pytest.raises(ValueError, match="given twice"):
        parse_classes("tree=3", file=path)
    with pytest.raises(FileError, match=r"classes\.txt, line 2: '#12' is not a color"):
        parse_classes(file=saved("a=1\nb=#12\n", "classes.txt"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=1 b=1", "value 1 stands for both 'a' and 'b'"),
        ("a=1 a=2", "named twice"),
        ("a=1 void=1", "both 'a' and 'void'"),
        ("a= b=2", "'b=2' is not a value"),
        ("b=2 void= c=", "is not a value"),
        ("a b=2", "class 'a' has no value"),
        ("a=5-1", "not a range"),
        ("a=1-99999999", "not a range"),
        ("a=99999999999999999999999", "too large"),
        ("a=#12345", "not a color"),
        ("a=* b=*", "given to two classes"),
        ("a=300 b=#ff0000", "not a gray between 0 and 255"),
        ("a=tree b=#ff0000", "mixed"),
        ("=3", "is not a name"),
    ],
)
def test_wrong_definitions(text, message):
    with pytest.raises(ValueError, match=message):
        parse_classes(text).codes()
    with pytest.raises(ValueError, match="'\\*' is given to a class and to void"):
        parse_classes("a=*", void="*")


def test_mixed_spellings_of_one_kind():
    assert parse_classes("a=0 b=#ff0000 void=255").codes().values == (((0, 0, 0),), ((255, 0, 0),))
    assert parse_classes("a=tree b=7").codes().values == (("tree",), ("7",))


def test_lookup_of_integers_and_others():
    codes = parse_classes("a=1,3 b=7 void=9").codes()
    labels, unknown = codes.lookup(np.array([[1, 3, 7], [9, 8, -2]]))
    assert labels.tolist() == [[0, 0, 1], [-1, -1, -1]]
    assert unknown.tolist() == [[False] * 3, [False, True, True]]
    labels, unknown = parse_classes("a=1,3 rest=* void=9").codes().lookup(np.array([1, 9, 8, 3]))
    assert labels.tolist() == [0, -1, 1, 0]
    assert not unknown.any()
    assert parse_classes("a=0,3 rest=*").codes().written == (0, 1)
    labels, unknown = parse_classes("a=1,3", void="*").codes().lookup(np.array([1, 9]))
    assert (labels.tolist(), unknown.any()) == ([0, -1], False)


def test_lookup_of_words():
    codes = parse_classes("plant=tree,bush ground=road rest=*").codes()
    labels, unknown = codes.lookup(np.array(["road", "bush", "car", "tree"]))
    assert labels.tolist() == [1, 0, 2, 0]
    assert not unknown.any()
    _, unknown = parse_classes("plant=tree").codes().lookup(np.array(["road", "tree"]))
    assert unknown.tolist() == [True, False]


@given(st.lists(st.integers(0, 255), min_size=1, max_size=6, unique=True))
def test_rounding_takes_the_nearest(levels):
    codes = ClassCodes(tuple(f"c{n}" for n in range(len(levels))), tuple((value,) for value in levels), rounded=True)
    labels, unknown = codes.lookup(np.arange(256))
    assert not unknown.any()
    distance = abs(np.arange(256)[:, None] - np.array(levels)[None, :])
    assert (distance[np.arange(256), labels] == distance.min(axis=1)).all()


def test_black_and_white_divides_after_127():
    codes = ClassCodes(("background", "foreground"), ((0,), (255,)), rounded=True)
    assert codes.lookup(np.array([0, 127, 128, 255]))[0].tolist() == [0, 0, 1, 1]


@given(st.tuples(st.integers(0, 255), st.integers(0, 255), st.integers(0, 255)))
def test_packed_colors(color):
    assert unpacked(int(packed(np.array(color)))) == color
    assert parse_values("#{:02x}{:02X}{:02x}".format(*color)) == [color]


@pytest.mark.parametrize("text", ["a=1,3 b=7-9 void=0 c=*", "a=#ff0000 b=#00ff00 void=#ffffff", "a=tree b=car"])
def test_states(text):
    codes = parse_classes(text).codes()
    assert ClassCodes.from_state(json.loads(json.dumps(codes.state()))) == codes


@pytest.mark.parametrize(
    "change",
    [
        {"names": "ab"},
        {"names": [1, 2]},
        {"names": []},
        {"names": ["a", "a"]},
        {"names": ["a b", "c"]},
        {"values": [[1]]},
        {"values": [[1], [None]]},
        {"values": [[1], [True]]},
        {"values": [[1], 2]},
        {"values": [[1], [1]]},
        {"values": [[1], []]},
        {"values": [[1], [1 << 70]]},
        {"others": 2},
        {"others": "a"},
        {"rounded": 1},
        {"void": None},
        {"void": [1]},
    ],
)
def test_bad_states(change):
    state = parse_classes("a=1 b=2").codes().state()
    with pytest.raises(ValueError):
        ClassCodes.from_state({**state, **change})
    for key in state:
        with pytest.raises(ValueError):
            ClassCodes.from_state({name: value for name, value in state.items() if name != key})


def test_names_for_values_that_occur():
    assert learned_codes([0, 3], parse_classes("a,b")).values == ((0,), (3,))
    assert learned_codes([0, 3, 255], parse_classes("a,b", void="255")).void == (255,)
    assert learned_codes([0, 3], Definition()).names == ("0", "3")
    assert learned_codes(["car", "tree"], parse_classes("tree,car,bus")).values == (("tree",), ("car",), ("bus",))
    assert learned_codes([(255, 0, 0)], Definition()).names == ("color_ff0000",)
    with pytest.raises(ValueError, match=r"3 values \(0, 1, 255\) and 2 classes \(a, b\); say .* a=0, .* void=255"):
        learned_codes([0, 1, 255], parse_classes("a,b"))
    with pytest.raises(ValueError, match="no values"):
        learned_codes([255], parse_classes(None, void="255"))

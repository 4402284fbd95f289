"""The scanner of Moses lists and of numbers, against plain Python, on any bytes."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from maxmargin.tasks import _kernels

NONE, FIELDS, ID, UNNAMED, NUMBER, NO_VALUE, WIDTH, TWICE, TOTAL = range(9)
BLANK = b" \t\r\x0b\x0c"
REAL = re.compile(rb"\+?-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")

PIECE = st.sampled_from(
    ["|||", "||| ", " ||| ", "a= ", "b= ", "ab= 1 ", "c=2", "d: 3", "1 ", "-2.5e1", "x", "é", "0 ", "\t"]
)
TEXT = st.lists(st.one_of(PIECE, st.sampled_from([" ", "\n", "inf", "nan", "1e999", "=", ":"])), max_size=40).map(
    "".join
)
LINE = st.tuples(
    st.sampled_from(["0", "1", "x y", ""]),
    st.sampled_from(["the house", "", "a | b"]),
    st.lists(st.sampled_from(["LM0= -1.5", "TM0= 1 2", "TM0= 1 2 3", "w_a=2", "5", "LM0=", "q= x"]), max_size=4),
    st.sampled_from(["", " ||| -3.5", " ||| ", " ||| x", " ||| 1 ||| 0-0 1-1 ||| more"]),
).map(lambda t: f"{t[0]} ||| {t[1]} ||| {' '.join(t[2])}{t[3]}")


def real(word: bytes) -> float | None:
    word = word.strip(BLANK)
    if not REAL.fullmatch(word) or word.startswith(b"+-"):
        return None
    value = float(word)
    return (
        value
        if math.isfinite(value) and not (value == 0 and re.search(rb"[1-9]", word.lower().split(b"e")[0]))
        else None
    )


def fields_of(line: bytes) -> list[bytes]:
    """The first five pieces between words |||."""
    found = re.split(rb"(?:(?<=[ \t\r\x0b\x0c])|^)\|\|\|(?=[ \t\r\x0b\x0c]|$)", line)
    return [piece.strip(BLANK) for piece in found[:5]]


def entries_of(text: bytes) -> tuple[int, list[tuple[bytes, list[float]]]]:
    """A fault, and the names that were complete before it, with their values."""
    done: list[tuple[bytes, list[float]]] = []
    name, values = None, []
    for word in [*text.split(), None]:
        if word is not None and name is not None and (value := real(word)) is not None:
            values.append(value)
            continue
        begins = word is None or (len(word) > 1 and word[-1:] in b"=:")
        joined = None if begins or real(word) is not None else word.rpartition(b"=")
        if not begins and (joined is None or not joined[0] or real(joined[2]) is None):
            return (UNNAMED if joined is None else NUMBER), done
        if name is not None:
            if not values:
                return NO_VALUE, done
            done.append((name, values))
        if joined is not None:
            done.append((joined[0], [real(joined[2])]))
        name, values = None if word is None or joined is not None else word[:-1], []
    return NONE, done


def expected(data: bytes):
    """The fault and its line, or all hypotheses."""
    widths: dict[bytes, int] = {}
    rows = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip(BLANK):
            continue
        fields = fields_of(line.rstrip(BLANK))
        if len(fields) < 3:
            return FIELDS, number
        if len(fields[0].split()) != 1:
            return ID, number
        total = None
        if len(fields) > 3 and fields[3] and (total := real(fields[3])) is None:
            return TOTAL, number
        fault, entries = entries_of(fields[2])
        seen = set()
        for name, values in entries:
            if widths.setdefault(name, len(values)) != len(values):
                return WIDTH, number
            if name in seen:
                return TWICE, number
            seen.add(name)
        if fault:
            return fault, number
        rows.append((fields[0], fields[1], fields[4] if len(fields) > 4 else b"", total, number, dict(entries)))
    return NONE, rows


def scanned(data: bytes):
    table = _kernels.StringTable()
    problem, *arrays = _kernels.nbest_scan(np.frombuffer(data, dtype=np.uint8), table)
    if problem[0] != NONE:
        assert 0 <= problem[2] <= problem[3] <= len(data)
        return problem[0], problem[1]
    a, b, c, d, e, f, lines, totals, starts, columns, values, width = arrays
    names = [table.text(at) for at in range(len(table))]
    owner = np.repeat(np.arange(len(names)), width)
    rows = []
    for i in range(len(lines)):
        entries: dict[bytes, list[float]] = {}
        for column, value in zip(columns[starts[i] : starts[i + 1]], values[starts[i] : starts[i + 1]], strict=True):
            entries.setdefault(names[owner[column]], []).append(value)
        total = None if np.isnan(totals[i]) else totals[i]
        rows.append((data[a[i] : b[i]], data[c[i] : d[i]], data[e[i] : f[i]], total, lines[i], entries))
    return NONE, rows


@settings(max_examples=300)
@given(st.one_of(TEXT, st.lists(LINE, max_size=5).map("\n".join)).map(str.encode))
@example(b"0 ||| a ||| LM0= 1\n0 ||| b ||| LM0= 2 3\n")
@example(b"0 ||| ||| LM0= 1 ||| 2 |||\n")
@example(b"|||||| ||| |||")
@example(b"0 ||| a ||| b=1 c= 2 d: 3 4 ||| 5 ||| 0-0")
def test_hypotheses_are_those_of_plain_python(data):
    assert scanned(data) == expected(data)


@given(st.binary(max_size=80))
def test_any_bytes_are_scanned(data):
    scanned(data)


def test_numbers_at_places():
    text = np.frombuffer(b"1.5 -2e3\tx +4 nan inf  ", dtype=np.uint8)
    begin, end = np.array([0, 4, 11, 3]), np.array([3, 8, 13, 8])
    out = np.zeros(4)
    assert _kernels.text_numbers(text, begin, end, out) == -1
    assert out.tolist() == [1.5, -2000.0, 4.0, -2000.0]
    for first, last in [(9, 10), (14, 17), (18, 21), (21, 23), (0, 0)]:
        assert _kernels.text_numbers(text, np.array([0, first]), np.array([3, last]), np.zeros(2)) == 1


@pytest.mark.parametrize(("begin", "end"), [([0], [9]), ([-1], [1]), ([2], [1]), ([0, 1], [1])])
def test_places_outside_are_refused(begin, end):
    with pytest.raises(ValueError, match=r"outside|equally long"):
        _kernels.text_numbers(np.zeros(3, dtype=np.uint8), np.array(begin), np.array(end), np.zeros(len(begin)))


def test_the_table_of_names_must_be_empty():
    table = _kernels.StringTable()
    _kernels.nbest_scan(np.frombuffer(b"0 ||| a ||| b= 1", dtype=np.uint8), table)
    with pytest.raises(ValueError, match="empty"):
        _kernels.nbest_scan(np.zeros(0, dtype=np.uint8), table)

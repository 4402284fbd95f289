"""The scanners of token files and the writer of labels, against plain Python, on any bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from maxmargin.tasks import _kernels

TABS, BLANKS, CONLLU, TAGGED, JOINED, WORDS = range(6)
RAGGED, NUMBER, UNTAGGED, WEIGHT = 2, 3, 4, 5

TEXT = st.text(st.sampled_from("ab/#1.-\\: \t\r\n\x0b\x0cé\ud7ff"), max_size=60).map(str.encode)


def scan(data: bytes, layout: int, width: int):
    text = np.frombuffer(data, dtype=np.uint8)
    tokens, sentences = _kernels.token_count(text, layout)
    begin, end = (np.full((tokens, width), -1) for _ in range(2))
    lines, offsets = np.full(tokens, -1), np.full(sentences + 1, -1)
    problem = _kernels.token_scan(text, layout, begin, end, lines, offsets)
    rows = [[data[b:e] for b, e in zip(*row, strict=True)] for row in zip(begin.tolist(), end.tolist(), strict=True)]
    return problem, rows, lines.tolist(), offsets.tolist()


def tag(word: bytes):
    head, slash, tail = word.rpartition(b"/")
    return [head, tail] if head and slash and tail else None


def beside(line: bytes) -> bool:
    first = line.split(b"\t")[0]
    pieces = first.replace(b"-", b".").split(b".")
    return line.startswith(b"#") or (len(pieces) == 2 and all(piece.isdigit() for piece in pieces))


def expected(data: bytes, layout: int, width: int):
    """The fault and its line, or all rows, their lines and the offsets of sentences."""
    rows, lines, offsets, open_ = [], [], [], False
    for number, line in enumerate(data.split(b"\n"), start=1):
        line = line.rstrip()
        if not line:
            open_ = False
            continue
        if layout >= TAGGED:
            offsets.append(len(rows))
            before = []
            words = [(word, data) for word in line.split()]
            for at, (word, _) in enumerate(words):
                if layout == WORDS:
                    rows.append([word])
                elif (pair := tag(word)) is None:
                    if layout == TAGGED or at == len(words) - 1:
                        return UNTAGGED, number
                    before.append(word)
                    continue
                else:
                    rows.append([*pair, before] if before else pair)
                before = []
                lines.append(number)
            continue
        if layout == CONLLU:
            if beside(line):
                continue
            if not line.split(b"\t")[0].isdigit():
                return NUMBER, number
        cells = line.split() if layout == BLANKS else line.split(b"\t")
        if len(cells) != width:
            return RAGGED, number
        if not open_:
            offsets.append(len(rows))
        open_ = True
        rows.append(cells)
        lines.append(number)
    return 0, (rows, lines, [*offsets, len(rows)])


@given(TEXT, st.sampled_from([TABS, BLANKS, CONLLU]), st.integers(1, 4))
@example(b"", TABS, 1)
@example(b"\n", BLANKS, 1)
@example(b"a\tb\n\n\na\t\n", TABS, 1)
@example(b"1\ta\n1-2\tb\n3.1\tc\n# d\n\n\n2\tb", CONLLU, 2)
@settings(max_examples=400)
def test_cells(data, layout, width):
    problem, rows, lines, offsets = scan(data, layout, width)
    fault, rest = expected(data, layout, width)
    assert problem[0] == fault
    if fault:
        assert problem[1] == rest
        return
    assert (rows, lines, offsets) == rest


@given(TEXT, st.sampled_from([TAGGED, JOINED, WORDS]))
@example(b"a/b c / d/e", JOINED)
@example(b"//x a//y", TAGGED)
@example(b"a/b c", JOINED)
@settings(max_examples=400)
def test_words(data, layout):
    problem, rows, lines, offsets = scan(data, layout, 1 if layout == WORDS else 2)
    fault, rest = expected(data, layout, 0)
    assert problem[0] == fault
    if fault:
        assert problem[1] == rest
        return
    wanted, *others = rest
    assert [lines, offsets] == others
    for row, want in zip(rows, wanted, strict=True):
        if len(want) == 3:  # words that were joined: white space between them stays as it is
            assert row[1] == want[1]
            assert row[0].split() == [*want[2], want[0]]
        else:
            assert row == want


def scan_attributes(data: bytes):
    text = np.frombuffer(bytearray(data), dtype=np.uint8)
    tokens, sentences, attributes = _kernels.attribute_count(text)
    begin, end, weight = np.full(attributes, -1), np.full(attributes, -1), np.full(attributes, np.nan)
    starts, first, last, lines = (np.full(tokens + extra, -1) for extra in (1, 0, 0, 0))
    offsets = np.full(sentences + 1, -1)
    problem = _kernels.attribute_scan(text, begin, end, weight, starts, first, last, lines, offsets)
    buffer = text.tobytes()
    names = [(buffer[b:e], w) for b, e, w in zip(begin.tolist(), end.tolist(), weight.tolist(), strict=True) if b >= 0]
    labels = [buffer[b:e] for b, e in zip(first.tolist(), last.tolist(), strict=True)]
    return problem, labels, names, starts.tolist(), lines.tolist(), offsets.tolist()


def unescaped(text: bytes, colon: bool):
    """The name up to a colon without its escapes, and what follows the colon, if there is one."""
    name, at = b"", 0
    while at < len(text) and not (colon and text[at : at + 1] == b":"):
        if text[at : at + 2] in (b"\\:", b"\\\\"):
            at += 1
        name += text[at : at + 1]
        at += 1
    return name, text[at + 1 :] if at < len(text) else None


@given(TEXT)
@example(b"B\tw=\\:\tx\\\\y:2.5\t:3\tz:\n\n\nI\n O\ta:1e-3 ")
@example(b"B\ta:1e999")
@example(b"B\ta:nan")
@example(b"B\ta:+-1")
@settings(max_examples=400)
def test_attributes(data):
    problem, labels, names, starts, lines, offsets = scan_attributes(data)
    want_labels, want_names, want_starts, want_lines, want_offsets, open_ = [], [], [0], [], [], False
    for number, line in enumerate(data.split(b"\n"), start=1):
        line = line.rstrip()
        if not line:
            open_ = False
            continue
        label, *fields = line.split(b"\t")
        if not open_:
            want_offsets.append(len(want_labels))
        open_ = True
        want_labels.append(unescaped(label, False)[0])
        for field in filter(None, fields):
            name, value = unescaped(field, True)
            try:
                weight = 1.0 if value is None or not value.strip() else float(value)
            except ValueError:
                weight = np.nan
            if not np.isfinite(weight):
                assert problem[:2] == (WEIGHT, number)
                return
            want_names.append((name, weight))
        want_starts.append(len(want_names))
        want_lines.append(number)
    assert problem[0] == 0
    assert (labels, names, starts) == (want_labels, want_names, want_starts)
    assert (lines, offsets) == (want_lines, [*want_offsets, len(want_labels)])


def splice(data, begin, end, code, names, number=(), before=b"", digits=6, room=None):
    letters = b"".join(names)
    offsets = np.cumsum([0, *map(len, names)])
    size = len(data) + 100 * (len(begin) + 1) + 30 * len(number) if room is None else room
    out = np.zeros(size, dtype=np.uint8)
    length = _kernels.text_splice(
        np.frombuffer(data, dtype=np.uint8),
        np.array(begin, dtype=np.int64),
        np.array(end, dtype=np.int64),
        np.array(code, dtype=np.int32),
        offsets,
        np.frombuffer(letters, dtype=np.uint8),
        np.array(number, dtype=np.float64),
        np.frombuffer(before, dtype=np.uint8),
        digits,
        out,
    )
    return out[:length].tobytes()


@given(st.binary(max_size=30), st.data())
def test_splice(data, draw):
    places = sorted(draw.draw(st.lists(st.integers(0, len(data)), max_size=8)))
    places = places[: len(places) // 2 * 2]
    begin, end = places[::2], places[1::2]
    names = draw.draw(st.lists(st.binary(max_size=4), max_size=3))
    code = [draw.draw(st.integers(-1, len(names) - 1)) for _ in begin]
    number = [draw.draw(st.sampled_from([0.5, -1e-300, np.nan, np.inf, 123456789.0])) for _ in begin]
    wanted, at = b"", 0
    for b, e, c, x in zip(begin, end, code, number, strict=True):
        wanted += data[at:b] + (names[c] if c >= 0 else b"") + (b"" if np.isnan(x) else b"|" + f"{x:.6g}".encode())
        at = e
    assert splice(data, begin, end, code, names, number, b"|") == wanted + data[at:]


def test_numbers_have_the_digits_asked_for():
    numbers = [-1.23456789012e-300, 1e300, 0.1]
    found = splice(b"", [0] * 3, [0] * 3, [-1] * 3, [], numbers, b" ", digits=9)
    assert found == b" -1.23456789e-300 1e+300 0.1"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"begin": [0, 0], "end": [2, 1]}, "sorted"),
        ({"begin": [1, 2], "end": [0, 3]}, "sorted"),
        ({"begin": [0, 2], "end": [1, 9]}, "lie in the text"),
        ({"begin": [-1, 2]}, "sorted"),
        ({"code": [0, 1]}, "code must"),
        ({"code": [0, -2]}, "code must"),
        ({"code": [0]}, "one entry"),
        ({"number": [1.0]}, "one entry"),
        ({"digits": 0}, "digits"),
        ({"digits": 10}, "digits"),
        ({"room": 4}, "too small"),
    ],
)
def test_what_does_not_fit_is_refused(changed, message):
    settings = {"data": b"abcd", "begin": [0, 2], "end": [1, 3], "code": [0, 0], "names": [b"xy"], **changed}
    with pytest.raises(ValueError, match=message):
        splice(**settings)


def test_arrays_that_are_too_small_end_the_scan():
    text = np.frombuffer(b"a b\nc d\n\ne f\n", dtype=np.uint8)
    for tokens, sentences in ((2, 2), (3, 1), (0, 0)):
        begin, end = (np.zeros((tokens, 2), dtype=np.int64) for _ in range(2))
        lines, offsets = np.zeros(tokens, dtype=np.int64), np.zeros(sentences + 1, dtype=np.int64)
        assert _kernels.token_scan(text, BLANKS, begin, end, lines, offsets)[0] == 1
        few = np.zeros(tokens + 1, dtype=np.int64), lines.copy(), lines.copy(), lines, offsets
        nothing = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
        assert _kernels.attribute_scan(text.copy(), *nothing, *few)[0] == 1
    attributes = np.frombuffer(bytearray(b"a\tb\tc"), dtype=np.uint8)
    one = np.zeros(1, dtype=np.int64)
    few = (
        one.copy(),
        one.copy(),
        np.zeros(1),
        np.zeros(2, dtype=np.int64),
        one,
        one.copy(),
        one.copy(),
        np.zeros(2, int),
    )
    assert _kernels.attribute_scan(attributes, *few)[0] == 1


def test_wrong_layouts_and_shapes_are_refused():
    text = np.zeros(0, dtype=np.uint8)
    empty, one = np.zeros((0, 2), dtype=np.int64), np.zeros(1, dtype=np.int64)
    for layout in (-1, 6):
        with pytest.raises(ValueError, match="layout"):
            _kernels.token_count(text, layout)
    with pytest.raises(ValueError, match="one cell"):
        _kernels.token_scan(text, WORDS, empty, empty.copy(), one[:0], one)
    with pytest.raises(ValueError, match="sentences"):
        _kernels.token_scan(text, TABS, empty, empty.copy(), one[:0], one[:0].copy())
    with pytest.raises(ValueError, match="per token"):
        _kernels.token_scan(text, TABS, empty, empty.copy(), one, one.copy())
    with pytest.raises(ValueError, match="a column"):
        _kernels.token_scan(text, TABS, empty[:, :0].copy(), empty[:, :0].copy(), one[:0], one)

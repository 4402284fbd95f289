"""Strings to numbers, against a dictionary of Python's."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.tasks import _kernels

words = st.lists(st.one_of(st.binary(max_size=4), st.binary(max_size=40), st.sampled_from([b"", b"a", b"aa", b"a\0"])))


def flat(strings):
    ends = np.cumsum([0, *map(len, strings)], dtype=np.int64)
    return np.frombuffer(b"".join(strings), dtype=np.uint8), ends[:-1].copy(), ends[1:].copy()


def numbers(table, strings, grow=True):
    out = np.full(len(strings), -7, dtype=np.int32)
    table.number(*flat(strings), grow, out)
    return out.tolist()


def table_of(strings):
    text, _, ends = flat(strings)
    return _kernels.StringTable.from_strings(text, ends)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(words, words)
def test_numbers_are_those_of_a_dictionary(first, second):
    table, twin = _kernels.StringTable(), {}
    assert numbers(table, first) == [twin.setdefault(word, len(twin)) for word in first]
    assert len(table) == len(twin)
    assert [table.text(i) for i in range(len(table))] == list(twin)
    assert numbers(table, second, grow=False) == [twin.get(word, -1) for word in second]
    assert [table.find(word) for word in second] == [twin.get(word, -1) for word in second]
    assert len(table) == len(twin)
    assert numbers(table, second) == [twin.setdefault(word, len(twin)) for word in second]
    text, ends = table.strings()
    assert text.tobytes() == b"".join(twin)
    assert ends.tolist() == np.cumsum([len(word) for word in twin]).tolist()
    again = _kernels.StringTable.from_strings(text, ends)
    assert numbers(again, [*first, *second], grow=False) == [twin[word] for word in [*first, *second]]


@settings(deadline=None, derandomize=True, max_examples=60)
@given(words, st.randoms(use_true_random=False))
def test_only_and_truncate(strings, random):
    distinct = list(dict.fromkeys(strings))
    table = table_of(distinct)
    keep = np.array([random.random() < 0.5 for _ in distinct], dtype=bool)
    kept = [word for word, wanted in zip(distinct, keep, strict=True) if wanted]
    fewer = table.only(keep)
    assert [fewer.text(i) for i in range(len(fewer))] == kept
    assert numbers(fewer, distinct, grow=False) == [kept.index(word) if word in kept else -1 for word in distinct]
    assert len(table) == len(distinct)
    size = random.randint(0, len(distinct))
    table.truncate(size)
    assert numbers(table, distinct, grow=False) == [i if i < size else -1 for i in range(len(distinct))]
    assert numbers(table, distinct) == list(range(len(distinct)))


def test_many_strings_of_all_lengths():
    rng = np.random.default_rng(0)
    strings = [rng.integers(97, 100, size=size).astype(np.uint8).tobytes() for size in rng.integers(0, 60, size=50_000)]
    twin: dict[bytes, int] = {}
    table = _kernels.StringTable()
    assert numbers(table, strings) == [twin.setdefault(word, len(twin)) for word in strings]
    table.truncate(1000)
    assert numbers(table, strings, grow=False) == [twin[word] if twin[word] < 1000 else -1 for word in strings]


def test_strings_that_differ_in_one_byte_are_different():
    strings = []
    for size in range(1, 40):
        for place in range(size):
            word = bytearray(size)
            word[place] = 1
            strings.append(bytes(word))
        strings.append(bytes(size))
    assert numbers(_kernels.StringTable(), strings) == list(range(len(strings)))


def test_nothing():
    table = _kernels.StringTable()
    assert numbers(table, []) == []
    assert len(table) == 0
    assert table.find(b"") == -1
    text, ends = table.strings()
    assert len(text) == len(ends) == 0
    assert len(table.only(np.zeros(0, dtype=bool))) == 0
    table.truncate(0)
    assert numbers(table, [b""]) == [0]


def test_readers_while_others_grow():
    table = _kernels.StringTable()
    strings = [b"%d" % i for i in range(3000)]
    wrong = []

    def work(first):
        for _ in range(5):
            found = numbers(table, strings[first:])
            if [table.text(i) for i in found[:50]] != strings[first : first + 50]:
                wrong.append(first)

    threads = [threading.Thread(target=work, args=(first,)) for first in (0, 1000, 2000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(table) == 3000


def test_refused_arrays():
    table = _kernels.StringTable()
    buffer, out = np.zeros(3, dtype=np.uint8), np.zeros(1, dtype=np.int32)

    def one(value):
        return np.array([value], dtype=np.int64)

    for begin, end in ((-1, 1), (2, 1), (0, 4), (4, 4)):
        with pytest.raises(ValueError, match="outside of the buffer"):
            table.number(buffer, one(begin), one(end), True, out)
    with pytest.raises(ValueError, match="equally long"):
        table.number(buffer, one(0), np.zeros(2, dtype=np.int64), True, out)
    with pytest.raises(TypeError):
        table.number(buffer, one(0), one(1), True, out.astype(np.int64))
    for ends in ([2, 1, 3], [-1, 3], [0, 2], [4]):
        with pytest.raises(ValueError, match="ends must"):
            _kernels.StringTable.from_strings(buffer, np.array(ends, dtype=np.int64))
    with pytest.raises(ValueError, match="different"):
        _kernels.StringTable.from_strings(buffer, np.array([1, 2, 3], dtype=np.int64))
    for number in (-1, 0):
        with pytest.raises(IndexError):
            table.text(number)
    with pytest.raises(ValueError, match="one entry per string"):
        table.only(np.zeros(1, dtype=bool))
    with pytest.raises(ValueError, match="negative"):
        table.truncate(-1)

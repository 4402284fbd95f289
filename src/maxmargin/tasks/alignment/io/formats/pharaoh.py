"""Pharaoh and TALP: a line per pair of ``0-0 1p2``; ``-`` is sure, ``p`` possible, ``0-0:0.93`` has a confidence."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from maxmargin._messages import quoted
from maxmargin.tasks.alignment.io.formats.table import Rows, Table, by_chunks, confidence_of, from_first, numbers_at
from maxmargin.tasks.common.files.text import AnyPath, lines_of, problem

LINK = re.compile(rb"([0-9]{1,9})([-p])([0-9]{1,9})(?::([-+.0-9eE]{1,40}))?")


def parse(path: AnyPath, data: bytes, first: int) -> Table:
    """Parse lines of ``0-0 1p2``, whose positions count from ``first``; from 1, 0 is the empty word."""
    table, lines = by_chunks(path, data, _vectorized, _by_lines)
    return from_first(replace(table, count=lines), first)


def parse_text(text: str) -> Table:
    """Parse the links of one pair, ``0-0 1p2``, from 0; ValueError if it is anything else."""
    return parse("links", b" ".join(text.encode("utf-8", "replace").split()), 0)


def _vectorized(chunk: bytes, before: int) -> Table | None:
    """The links of lines of ``number-number`` and ``numberpnumber``; None if there is anything else.

    About 20 ns per byte, against some 100 ns for a loop over words.
    """
    text = np.frombuffer(chunk, dtype=np.uint8)
    digit = (text >= ord("0")) & (text <= ord("9"))
    joint = (text == ord("-")) | (text == ord("p"))
    newline = text == ord("\n")
    blank = newline | (text == ord(" ")) | (text == ord("\t")) | (text == ord("\r"))
    if not (digit | joint | blank).all():
        return None
    after_blank = np.concatenate([[True], blank[:-1]])
    first = np.flatnonzero(after_blank & ~blank)
    joints = np.flatnonzero(joint)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], digit, [False]]).astype(np.int8)))
    begin, end = edges[::2], edges[1::2]
    # A word is a number, a joint and a number: as many joints as words, each between the two numbers of its word.
    if len(first) != len(joints) or len(begin) != 2 * len(first) or ((end - begin) > 9).any():
        return None
    if (begin[::2] != first).any() or (end[::2] != joints).any() or (begin[1::2] != joints + 1).any():
        return None
    numbers = numbers_at(text, begin, end)
    line = before + np.cumsum(newline, dtype=np.int64)[first] if len(first) else np.zeros(0, dtype=np.int64)
    return Table(line, numbers.reshape(-1, 2), text[joints] == ord("-"), None, line + 1, 0)


def _by_lines(path: AnyPath, chunk: bytes, before: int) -> Table:
    rows = Rows(path)
    for number, line in enumerate(lines_of(chunk), start=before):
        for word in line.split():
            match = LINK.fullmatch(word)
            if match is None:
                raise problem(
                    path,
                    number + 1,
                    f"{quoted(word)} is not a link; write source-target such as 0-0, or 0p0 for a possible link",
                )
            source, joint, target, confidence = match.groups()
            certain = None if confidence is None else confidence_of(path, number + 1, confidence.decode())
            rows.add(number, int(source), int(target), joint == b"-", certain, number + 1)
    return rows.table(0)

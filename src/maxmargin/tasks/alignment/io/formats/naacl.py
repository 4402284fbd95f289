"""NAACL: a line per link of ``sentence source target [S|P] [confidence]``, from 1; word 0 is the empty word."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maxmargin._messages import quoted
from maxmargin.tasks.alignment.io.formats.table import (
    NUMBER,
    Rows,
    Table,
    by_chunks,
    confidence_of,
    finite,
    from_first,
    numbers_at,
)
from maxmargin.tasks.common.files.text import AnyPath, lines_of, problem


def parse(path: AnyPath, data: bytes, first: int | None) -> Table:
    """Parse the links of a file whose words count from ``first``.

    None is for files without a position 0, which count from 1: 0 may be the first word as well as the empty word, so
    it is refused. With 0 sentences count from 0, too, if there is a sentence 0.
    """
    table, _ = by_chunks(path, data, _vectorized, _by_lines)
    from_zero = first == 0 and bool((table.sentence == 0).any())
    if not from_zero and (zeros := np.flatnonzero(table.sentence == 0)).size:
        raise problem(
            path,
            int(table.line[zeros[0]]),
            "sentence 0; number sentences from 1, or give --first 0 (of gold --gold-first) if words count from 0",
        )
    zeros = np.flatnonzero((table.links == 0).any(axis=1))
    if first is None and len(zeros):
        raise problem(
            path,
            int(table.line[zeros[0]]),
            "word 0, but in this format words count from 1; if this file counts from 0, give --first 0; if 0 is the "
            "empty word, --first 1 (of gold --gold-first, in Python first=)",
        )
    less = 0 if from_zero else 1
    table = replace(table, sentence=table.sentence - less, count=table.count - less + 1 if len(table.sentence) else 0)
    return from_first(table, 1 if first is None else first)


def _vectorized(chunk: bytes, before: int) -> Table | None:
    """The links of lines of three numbers with or without S or P; None if there is anything else."""
    text = np.frombuffer(chunk, dtype=np.uint8)
    letter = (text == ord("S")) | (text == ord("P"))
    newline = text == ord("\n")
    blank = newline | (text == ord(" ")) | (text == ord("\t")) | (text == ord("\r"))
    if not (letter | blank | ((text >= ord("0")) & (text <= ord("9")))).all():
        return None
    edges = np.flatnonzero(np.diff(np.concatenate([[True], blank, [True]]).astype(np.int8)))
    begin, end = edges[::2], edges[1::2]
    if not len(begin):
        return None
    line = np.cumsum(newline, dtype=np.int64)[begin]
    first = np.flatnonzero(np.concatenate([[True], line[1:] != line[:-1]]))
    words = np.diff(np.concatenate([first, [len(line)]]))
    marked = letter[begin]
    # Three numbers, or three numbers and one word of one letter; no letter anywhere else.
    if not ((words == 3) | (words == 4)).all() or not np.array_equal(np.flatnonzero(marked), first[words == 4] + 3):
        return None
    if np.count_nonzero(letter) != np.count_nonzero(marked) or ((end - begin) > np.where(marked, 1, 9)).any():
        return None
    numbers = numbers_at(text, begin[~marked], end[~marked]).reshape(-1, 3)
    sure = np.ones(len(numbers), dtype=bool)
    sure[words == 4] = text[begin[marked]] == ord("S")
    return Table(numbers[:, 0], numbers[:, 1:], sure, None, before + line[first] + 1, int(numbers[:, 0].max()))


def _by_lines(path: AnyPath, chunk: bytes, before: int) -> Table:
    rows, count = Rows(path), 0
    for number, line in enumerate(lines_of(chunk), start=before + 1):
        words = line.split()
        if not words:
            continue
        if not 3 <= len(words) <= 5 or not all(NUMBER.fullmatch(word) for word in words[:3]):
            raise problem(
                path,
                number,
                f"{quoted(b' '.join(words))} is not a link; write sentence, source and target word, each from 1, "
                "then S or P, then a confidence",
            )
        rest = words[3:]
        mark = rest.pop(0) if rest and rest[0] in (b"S", b"P") else b"S"
        if len(rest) > 1:
            raise problem(path, number, f"{quoted(words[3])} is neither S nor P; use one of them")
        if rest and len(words) == 4 and finite(rest[0].decode("utf-8")) is None:
            raise problem(
                path,
                number,
                f"{quoted(rest[0])} is neither S, P nor a confidence; use S or P, or a finite number such as 0.93",
            )
        sentence = int(words[0])
        count = max(count, sentence)
        certain = confidence_of(path, number, rest[0].decode("utf-8")) if rest else None
        rows.add(sentence, int(words[1]), int(words[2]), mark == b"S", certain, number)
    return rows.table(count)

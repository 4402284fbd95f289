"""N-best lists of Moses: ``id ||| text ||| Name0= value value Name1= value ... ||| total ||| alignment``.

The total and what follows may be absent. Features may also be written ``name=value``, or ``name: value value`` as in
old files. Phrases are read from the text (``the house |0-1|``) or the alignment (``0-1=0-1``, or ``0-0`` for words).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum

import numpy as np

from maxmargin._messages import quoted
from maxmargin.structures.base import IntArray
from maxmargin.tasks import _kernels
from maxmargin.tasks.common.files.text import AnyPath, count_of, problem
from maxmargin.tasks.reranking.io.features import Entries
from maxmargin.tasks.reranking.io.inputs import lists_of_ids
from maxmargin.tasks.reranking.io.lists import NBestLists

_LAYOUT = "write id ||| text ||| name= value ... ||| total"
MARK = re.compile(r"\|(\d+)-(\d+)(?:,[^|]*)?\|")
"""What stands behind the words of a phrase: the first and last word of its source."""

_LINK = re.compile(r"(\d+)(?:-(\d+))?=(\d+)(?:-(\d+))?|(\d+)-(\d+)")


class _Fault(IntEnum):
    NONE = 0
    FIELDS = 1
    ID = 2
    UNNAMED = 3
    NUMBER = 4
    NO_VALUE = 5
    WIDTH = 6
    TWICE = 7
    TOTAL = 8


def parse(path: AnyPath, data: bytes, names: Sequence[str] | None) -> NBestLists:
    """Return the lists of a file; FileError names the line of an error.

    Args:
        path: the file, for errors.
        data: its content, UTF-8.
        names: the dense features to take; None for all.
    """
    table = _kernels.StringTable()
    fault, *arrays = _kernels.nbest_scan(np.frombuffer(data, dtype=np.uint8), table)
    if fault[0] != _Fault.NONE:
        raise problem(path, fault[1], _message(data, *fault))
    id_begin, id_end, text_begin, text_end, more_begin, more_end, lines, totals, starts, columns, values, width = arrays
    if not len(lines):
        raise problem(path, None, f"no hypotheses; {_LAYOUT}, a line per hypothesis")
    offsets, ids = lists_of_ids(path, _pieces(data, id_begin, id_end), lines)
    without = np.isnan(totals)
    if without.any() and not without.all():
        kind = "a total score" if without[0] else "no total score"
        odd = int(lines[np.argmax(without != without[0])])
        raise problem(path, odd, f"{kind}, unlike line {lines[0]}; give the total of all hypotheses or of none")
    entries = Entries(starts, columns, values, _names(table), width, lines)
    dense, rows, sparse_names, sparse = entries.divided(path, names)
    texts = _pieces(data, text_begin, text_end)
    texts, segments = _segmented(path, texts, _pieces(data, more_begin, more_end), lines)
    return NBestLists(
        texts=texts,
        offsets=offsets,
        names=tuple(dense),
        values=rows,
        ids=ids,
        sparse_names=tuple(sparse_names),
        sparse=sparse,
        segments=segments,
        totals=None if without.all() else totals,
    )


def _names(table: _kernels.StringTable) -> list[str]:
    return [table.text(number).decode("utf-8") for number in range(len(table))]


def _pieces(data: bytes, begin: IntArray, end: IntArray) -> list[str]:
    return [data[a:b].decode("utf-8") for a, b in zip(begin.tolist(), end.tolist(), strict=True)]


def _message(data: bytes, fault: int, line: int, begin: int, end: int, found: int, wanted: int) -> str:
    piece = quoted(data[begin : min(end, begin + 200)])
    if fault == _Fault.FIELDS:
        return f"{count_of(found, 'field')}; {_LAYOUT}, with blanks around each |||"
    if fault == _Fault.ID:
        return f"{piece} is not an id; {_LAYOUT}, with an id that is one word"
    if fault == _Fault.UNNAMED:
        return f"the value {piece} comes before the name of a feature; write name= value"
    if fault == _Fault.NUMBER:
        return f"{piece} is neither a name of a feature nor a finite number; write name= value"
    if fault == _Fault.NO_VALUE:
        return f"feature {piece} has no value; write name= value"
    if fault == _Fault.WIDTH:
        values = count_of(found, "value")
        return f"feature {piece} has {values}, and in lines before {wanted}; give it equally many in all lines"
    if fault == _Fault.TWICE:
        return f"feature {piece} comes twice; give all its values behind one name"
    return f"{piece} is not a finite total score; {_LAYOUT}"


def _segmented(
    path: AnyPath, texts: list[str], alignments: list[str], lines: IntArray
) -> tuple[list[str], list[str] | None]:
    """Texts without marks of phrases, and the phrases; None where the file has none."""
    first = next((text for text in texts if text), "")
    if first and MARK.fullmatch(first.split()[-1]):
        found = [_inline(path, text, int(line)) for text, line in zip(texts, lines, strict=True)]
        return [text for text, _ in found], [phrases for _, phrases in found]
    if not any(alignments):
        return texts, None
    known: dict[str, str] = {}
    for alignment, line in zip(alignments, lines, strict=True):
        if alignment not in known:
            known[alignment] = _aligned(path, alignment, int(line))
    return texts, [known[alignment] for alignment in alignments]


def _numbered(spans: list[tuple[str, str]]) -> str:
    return " ".join(f"{number}:{source}:{target}" for number, (source, target) in enumerate(spans, start=1))


def _inline(path: AnyPath, text: str, line: int) -> tuple[str, str]:
    """The words of ``the house |0-1| is |2-2|``, and its phrases ``1:0-1:0-1 2:2-2:2-2``."""
    words: list[str] = []
    spans: list[tuple[str, str]] = []
    begin = 0
    for word in text.split():
        if (match := MARK.fullmatch(word)) is None:
            words.append(word)
        elif begin < len(words):
            spans.append((f"{match[1]}-{match[2]}", f"{begin}-{len(words) - 1}"))
            begin = len(words)
    if begin < len(words):
        raise problem(path, line, f"{quoted(words[-1])} is in no phrase; write |first-last| behind each phrase")
    return " ".join(words), _numbered(spans)


def _aligned(path: AnyPath, alignment: str, line: int) -> str:
    """The phrases of ``0-1=0-1 2=2``, or the linked words of ``0-0 1-1``."""
    spans = []
    for word in alignment.split():
        if (match := _LINK.fullmatch(word)) is None:
            message = f"{quoted(word)} is not part of an alignment; write 0-1=0-0 for phrases, 0-0 for words"
            raise problem(path, line, message)
        a, b, c, d, i, j = match.groups()
        spans.append((f"{i}-{i}", f"{j}-{j}") if a is None else (f"{a}-{b or a}", f"{c}-{d or c}"))
    return _numbered(spans)

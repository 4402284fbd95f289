"""Words of texts as numbers, all texts at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import IntArray
from maxmargin.tasks import _kernels

_BLANKS = np.zeros(256, dtype=bool)
_BLANKS[[9, 10, 11, 12, 13, 32]] = True


def word_numbers(
    texts: Sequence[str], table: _kernels.StringTable, *, grow: bool
) -> tuple[IntArray, npt.NDArray[np.int32]]:
    """Number the words of texts, which ASCII white space separates.

    Args:
        texts: any strings.
        table: numbers of words; unknown words are added, or get -1.
        grow: whether to add unknown words.

    Returns:
        Where the words of each text begin, shape ``(len(texts) + 1,)``, and the numbers of all words.
    """
    joined = "\n".join(text.replace("\n", " ") if "\n" in text else text for text in texts)
    buffer = np.frombuffer(joined.encode("utf-8", "surrogatepass"), dtype=np.uint8)
    blank = np.concatenate([[True], _BLANKS[buffer], [True]])
    begin, end = np.flatnonzero(blank[:-1] & ~blank[1:]), np.flatnonzero(~blank[:-1] & blank[1:])
    numbers = np.empty(len(begin), dtype=np.int32)
    table.number(buffer, begin.astype(np.int64), end.astype(np.int64), grow, numbers)
    ends = np.append(np.flatnonzero(buffer == ord("\n")), len(buffer)) if len(texts) else np.zeros(0, dtype=np.int64)
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.searchsorted(begin, ends)])
    return starts.astype(np.int64), numbers


def string_numbers(strings: Sequence[str], table: _kernels.StringTable, *, grow: bool) -> npt.NDArray[np.int32]:
    """Number whole strings; unknown ones are added, or get -1."""
    coded = [string.encode("utf-8", "surrogatepass") for string in strings]
    ends = np.cumsum([0, *map(len, coded)], dtype=np.int64)
    buffer = np.frombuffer(b"".join(coded), dtype=np.uint8)
    numbers = np.empty(len(coded), dtype=np.int32)
    table.number(buffer, np.ascontiguousarray(ends[:-1]), np.ascontiguousarray(ends[1:]), grow, numbers)
    return numbers

"""Lists of equally many lines, one text per line; empty lines pad lists that are shorter."""

from __future__ import annotations

import numpy as np

from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.tasks.common.files.text import AnyPath, count_of, lines_of, problem
from maxmargin.tasks.reranking.io.lists import NBestLists


def size_of_lists(path: AnyPath, n_lines: int, list_size: int | None, inputs: int | None) -> int:
    """Return the number of lines of each list; FileError if lists cannot all have as many.

    Args:
        path: the file, for errors.
        n_lines: its lines.
        list_size: the number as given; None if it is not.
        inputs: the number of inputs, as references or sources tell; None if there are none.
    """
    if list_size is None:
        if inputs is None:
            message = f"{count_of(n_lines, 'line')} and no number of lists; give references, sources or the list size"
            raise problem(path, None, message)
        if n_lines % inputs:
            raise problem(
                path,
                None,
                f"{count_of(n_lines, 'line')}, which is not a multiple of the {count_of(inputs, 'input')}; give all "
                "inputs equally many lines, empty ones where there are fewer hypotheses",
            )
        return n_lines // inputs
    if list_size < 1:
        raise ValueError(f"list_size must be at least 1, got {list_size}")
    if n_lines % list_size:
        raise problem(
            path,
            n_lines,
            f"the last list has {count_of(n_lines % list_size, 'line')} instead of {list_size}; give all lists equally "
            "many lines, empty ones where there are fewer hypotheses",
        )
    return list_size


def parse(path: AnyPath, data: bytes, list_size: int | None, inputs: int | None) -> tuple[NBestLists, IntArray, int]:
    """Return lists without features, which lines, from 0, are hypotheses, and the number of all lines.

    Only empty lines at the end of a list pad it; a list of nothing else is one empty hypothesis.
    """
    lines = lines_of(data)
    if not lines:
        raise problem(path, None, "no hypotheses; give a line per hypothesis")
    texts = [line.strip().decode("utf-8") for line in lines]
    size = size_of_lists(path, len(texts), list_size, inputs)
    filled = np.array([bool(text) for text in texts]).reshape(-1, size)
    counts = np.where(filled.any(axis=1), size - np.argmax(filled[:, ::-1], axis=1), 1)
    kept = np.flatnonzero(np.arange(size) < counts[:, None])
    lists = NBestLists(
        texts=[texts[at] for at in kept.tolist()],
        offsets=offsets_of(counts),
        names=(),
        values=np.zeros((len(kept), 0)),
        ids=[str(number) for number in range(len(counts))],
        list_size=size,
    )
    return lists, kept, len(texts)

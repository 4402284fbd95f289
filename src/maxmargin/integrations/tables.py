"""Sequences out of tables and predictions back into them, by names of columns.

A table is a data frame of pandas or polars, an Arrow table, a dataset of Hugging Face or a dictionary of columns. It
has a row per token and a column that tells the sequences apart, or a row per sequence, whose cells are lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from maxmargin._messages import shown
from maxmargin.datasets.columns import listed, n_rows, series_of
from maxmargin.datasets.sources import ColumnSource, plain
from maxmargin.integrations.columns import check_table, classes_of, columns_of, is_missing

Names = str | Sequence[str]


def sequences(table: Any, inputs: Names, outputs: str | None = None, *, by: Names | None = None) -> tuple[Any, Any]:
    """Return the inputs and the labels of all sequences, the pair ``(X, y)`` that ``fit`` takes.

    Args:
        table: the table.
        inputs: the column of tokens. Of several columns, tokens are tuples; of columns of numbers, sequences are
            matrices, shape ``(n_tokens, n_columns)``.
        outputs: the column of labels, whose empty cells are unknown labels, None; without it y is None.
        by: of a table with a row per token, the column that tells sequences apart, or several, as ``["document",
            "sentence"]``; the rows of a sequence must follow one another. None for a table with a row per sequence.
    """
    names, ids = _listed("inputs", inputs), [] if by is None else _listed("by", by)
    found = columns_of(table, [*names, *([] if outputs is None else [outputs]), *ids])
    columns, labels = found[: len(names)], None if outputs is None else found[len(names)]
    if by is not None:
        bounds = _bounds(ids, found[len(found) - len(ids) :])
        columns = [[values[first:last] for first, last in bounds] for values in columns]
        labels = None if labels is None else [labels[first:last] for first, last in bounds]

    def where(i: int, j: int) -> str:
        return f"row {i}, token {j}" if by is None else f"row {bounds[i][0] + j}"

    X = _tokens(names, columns, _is_one(inputs), where)
    if labels is None or outputs is None:
        return X, None
    return X, [[None if is_missing(one) else one for one in _cells(i, outputs, row)] for i, row in enumerate(labels)]


def as_column(predicted: Sequence[Any], table: Any, *, by: Names | None = None, name: str = "predicted") -> Any:
    """Return predictions as a column of the table: a Series of pandas, with its index, or of polars, else a list.

    Args:
        predicted: a sequence of labels for each sequence, as ``predict`` returns them.
        table: the table that :func:`sequences` has read.
        by: as for :func:`sequences`; the column then has a label in each row, else a list.
        name: the name of the column.
    """
    check_table(table)
    if not hasattr(predicted, "__len__"):
        raise ValueError(
            f"predicted must have the labels of each sequence, as predict returns them, got {shown(predicted)}"
        )
    ids = None if by is None else _listed("by", by)
    bounds = [(i, i + 1) for i in range(n_rows(table))] if ids is None else _bounds(ids, columns_of(table, ids))
    if len(predicted) != len(bounds):
        raise ValueError(f"the table has {len(bounds)} sequences, and there are predictions for {len(predicted)}")
    values: list[Any] = []
    for own, (first, last) in zip(map(listed, predicted), bounds, strict=True):
        if by is not None and len(own) != last - first:
            raise ValueError(f"rows {first} to {last - 1} are one sequence, and it has {len(own)} labels")
        values += [own] if by is None else own
    return series_of(table, name, values)


def source(table: Any, inputs: str, outputs: str, **options: Any) -> ColumnSource:
    """Return a table with a row per sequence as a source of :meth:`maxmargin.ShardedDataset.build`, read in blocks.

    A :class:`maxmargin.datasets.ColumnSource` whose labels are the names of classes, where Hugging Face has numbers.

    Args:
        table: the table; of Hugging Face also a dataset that is streamed.
        inputs: the column of tokens.
        outputs: the column of labels.
        options: further ones of :class:`maxmargin.datasets.ColumnSource`.
    """
    return ColumnSource(table, inputs, classes_of(table, outputs) or outputs, **options)


def _listed(argument: str, names: Names) -> list[str]:
    found: list[Any] = [names] if _is_one(names) else list(names)
    if not found:
        raise ValueError(f"{argument} names no column; give the name of one, or several")
    return found


def _is_one(names: Any) -> bool:
    """Return whether this is the name of one column: text, or a number, as pandas names columns without a header."""
    return isinstance(names, str) or not isinstance(names, Iterable)


def _bounds(names: list[str], columns: list[list[Any]]) -> list[tuple[int, int]]:
    """Return the first row of each sequence, and that after its last, by the columns that tell sequences apart."""
    keys, by = list(zip(*columns, strict=True)), " and ".join(map(str, names))
    for row, key in enumerate(keys):
        if any(map(is_missing, key)):
            raise ValueError(f"row {row}: its {by} is empty; say which sequence the row belongs to")
        if any(isinstance(one, (list, dict, set, np.ndarray)) for one in key):
            raise ValueError(
                f"row {row}: {by} must tell sequences apart by text or numbers, got "
                f"{shown(key[0] if len(key) == 1 else key)}; of a table with a row per sequence leave out by="
            )
    begins = [row for row, key in enumerate(keys) if not row or key != keys[row - 1]]
    seen = set()
    for row in begins:
        if keys[row] in seen:
            text = ", ".join(map(str, keys[row]))
            raise ValueError(
                f"row {row}: {by} {text} comes again after another one; sort the rows by it, or name "
                "all columns that tell sequences apart, by=['document', 'sentence']"
            )
        seen.add(keys[row])
    return list(pairwise([*begins, len(keys)]))


def _cells(row: int, name: str, value: Any) -> list[Any]:
    if isinstance(value, (str, Mapping)) or not hasattr(value, "__len__"):
        raise ValueError(
            f"row {row}: {shown(name)} must be a list with an entry per token, got {shown(value)}; of a table with a "
            "row per token say by which column sequences are told apart, by=..."
        )
    return listed(value)


def _tokens(names: list[str], columns: list[list[Any]], single: bool, where: Callable[[int, int], str]) -> list[Any]:
    """Return the tokens of each sequence; ``columns[c][i]`` are the cells of column ``c`` in sequence ``i``."""
    parts = [
        [_cells(i, name, cell) for name, cell in zip(names, row, strict=True)]
        for i, row in enumerate(zip(*columns, strict=True))
    ]
    for i, part in enumerate(parts):
        for name, cells in zip(names, part, strict=True):
            if len(cells) != len(part[0]):
                raise ValueError(
                    f"row {i}: {len(part[0])} entries in {shown(names[0])} and {len(cells)} in {shown(name)}"
                )
            for j, cell in enumerate(cells):
                if is_missing(cell):
                    raise ValueError(f"{where(i, j)}: {shown(name)} is empty; fill it, or leave out the sequence")
    cells = [cell for part in parts for own in part for cell in own]
    if cells and all(isinstance(cell, (int, float, np.number)) for cell in cells):
        return [np.array(part, dtype=np.float64).T.reshape(-1, len(names)) for part in parts]
    if not single:
        return [list(zip(*part, strict=True)) for part in parts]
    return [_plain(i, names[0], part[0]) for i, part in enumerate(parts)]


def _plain(row: int, name: str, cells: list[Any]) -> Any:
    try:
        return plain(cells)
    except ValueError:
        raise ValueError(
            f"row {row}: {shown(name)} must have as many numbers for each token; fill up the shorter ones"
        ) from None

"""Lists from the data of Python programs: matrices, dictionaries, tables with groups."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _memory
from maxmargin._messages import shown
from maxmargin._sparse import sp
from maxmargin.encoders.data import checks
from maxmargin.structures._arrays import array_of, offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.tasks.reranking.io.lists import NBestLists

TEXT = "text"
"""The key of a hypothesis's text in a dictionary, and the name of such a column."""


def as_lists(X: Any, groups: npt.ArrayLike | None = None) -> NBestLists:
    """Return n-best lists from any of the forms that a reranker takes.

    Args:
        X: :class:`NBestLists`; a list with, for each input, a matrix with a row of features per hypothesis (dense or
            sparse), or a list of dictionaries from names to numbers (``"text"`` may name the text); or, with
            ``groups``, a table with a row per hypothesis: a matrix or a pandas data frame, whose column ``"text"`` may
            hold texts.
        groups: for a table, the group of each row; rows of a group must be consecutive.
    """
    if isinstance(X, NBestLists):
        if groups is not None:
            raise ValueError("groups are for tables with a row per hypothesis; these lists have their own")
        return X
    if groups is not None:
        return _of_table(X, array_of(groups, "groups", "biufcOUSmM", "one entry per row"))
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        raise ValueError("a data frame needs groups, the list that each row belongs to: give groups=frame[name]")
    examples = checks.examples(X)
    if isinstance(examples[0], (list, tuple)) and len(examples[0]) and isinstance(examples[0][0], Mapping):
        return _of_dictionaries(examples)
    rows = checks.rows(examples, "features", "no hypotheses")
    rows.require(rows.width)
    return _of_matrix(rows.matrix, rows.offsets)


def _of_matrix(
    matrix: Any, offsets: IntArray, texts: Sequence[str] | None = None, names: Sequence[str] = ()
) -> NBestLists:
    n, width = matrix.shape
    _memory.require(100.0 * width, f"the names of {width} columns", "give a matrix with fewer columns")
    names = tuple(names) or tuple(f"x{column}" for column in range(width))
    dense = isinstance(matrix, np.ndarray)
    return NBestLists(
        texts=[""] * n if texts is None else texts,
        offsets=offsets,
        names=names if dense else (),
        values=np.ascontiguousarray(matrix, dtype=np.float64) if dense else np.zeros((n, 0)),
        ids=[str(number) for number in range(len(offsets) - 1)],
        sparse_names=() if dense else names,
        sparse=None if dense else matrix,
    )


def _is_finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and bool(abs(value) <= sys.float_info.max)  # integers may be larger


def _of_dictionaries(examples: list[Any]) -> NBestLists:
    """Names that every hypothesis has are dense, the others are sparse."""
    texts: list[str] = []
    number: dict[str, int] = {}
    columns: list[int] = []
    values: list[float] = []
    starts = [0]
    for index, one in enumerate(examples):
        if not isinstance(one, Sequence) or not len(one):
            raise ValueError(f"example {index}: give a list of one or more dictionaries, one per hypothesis")
        for row, hypothesis in enumerate(one):
            if not isinstance(hypothesis, Mapping):
                raise ValueError(
                    f"example {index}, hypothesis {row}: must be a dictionary from names of features to numbers, got "
                    f"{type(hypothesis).__name__}"
                )
            texts.append(str(hypothesis.get(TEXT, "")))
            for name, value in hypothesis.items():
                if name == TEXT:
                    continue
                if not isinstance(value, (Real, np.bool_)) or not _is_finite(_checks.plain(value)):
                    raise ValueError(
                        f"example {index}, hypothesis {row}: {shown(name)} must be a finite number, got {shown(value)}"
                    )
                columns.append(number.setdefault(str(name), len(number)))
                values.append(float(value))
            starts.append(len(columns))
    table = sp.csr_array((np.array(values), np.array(columns, dtype=np.int64), starts), shape=(len(texts), len(number)))
    everywhere = np.bincount(np.array(columns, dtype=np.int64), minlength=len(number)) == len(texts)
    names = np.array(list(number), dtype=object)
    sparse = sp.csr_array(table[:, np.flatnonzero(~everywhere)]) if not everywhere.all() else None
    return NBestLists(
        texts=texts,
        offsets=offsets_of([len(one) for one in examples]),
        names=tuple(names[everywhere]),
        values=np.ascontiguousarray(table[:, np.flatnonzero(everywhere)].toarray()),
        ids=[str(index) for index in range(len(examples))],
        sparse_names=tuple(names[~everywhere]),
        sparse=sparse,
    )


def _of_table(X: Any, groups: npt.NDArray[Any]) -> NBestLists:
    names: list[str] = []
    texts = None
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        if TEXT in X.columns:
            texts = [str(text) for text in X[TEXT]]
            X = X.drop(columns=TEXT)
        names = [str(name) for name in X.columns]
        if twice := [name for at, name in enumerate(names) if name in names[:at]]:
            raise ValueError(f"two columns are called {shown(twice[0])}; give each feature its own name")
        X = X.to_numpy()
    matrix = checks.rows([X], "features").matrix
    if groups.ndim != 1 or len(groups) != matrix.shape[0]:
        raise ValueError(f"groups must have one entry per row, {matrix.shape[0]}, got shape {groups.shape}")
    if not len(groups):
        raise ValueError("the table is empty: give at least one row")
    begins = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
    labels = groups[begins]
    seen = set()
    for row, label in zip(begins.tolist(), labels.tolist(), strict=True):
        if label is None or label != label:
            raise ValueError(f"row {row}: its group is {label}; give each row the group that it belongs to")
        if label in seen:
            raise ValueError(f"row {row}: group {shown(label)} comes again after another one; sort the rows by group")
        seen.add(label)
    lists = _of_matrix(matrix, np.append(begins, len(groups)), texts, names)
    return replace(lists, ids=[str(label) for label in labels])

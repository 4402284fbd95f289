"""Columns of tables of any library, as lists. No library is imported: the methods of a table tell what it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from maxmargin._messages import shown
from maxmargin.datasets.sources import SourceError, listed


def names_of(table: Any) -> list[str]:
    """Return the names of all columns; SourceError if it is not a table whose columns can be taken by name."""
    if hasattr(table, "collect_schema") and hasattr(table, "collect") and not hasattr(table, "get_column"):
        raise SourceError("the table is a query that has not run; give the result of its collect()")
    if isinstance(table, Mapping):
        return list(table)
    found = table.column_names if hasattr(table, "column_names") else getattr(table, "columns", None)
    if found is None or not (hasattr(table, "__getitem__") and hasattr(table, "__len__")):
        raise SourceError(
            f"a table must have columns that are taken by name, got {shown(table)}; of a dataset that is streamed make "
            "a source()"
        )
    return list(found)


def n_rows(table: Any) -> int:
    """Return the number of rows; errors as of :func:`names_of`."""
    names_of(table)
    return len(next(iter(table.values()), ())) if isinstance(table, Mapping) else len(table)


def column_of(table: Any, name: str) -> list[Any]:
    """Return the values of a column, with the names of classes in place of their numbers."""
    there = names_of(table)
    if there.count(name) != 1:
        what = "no column" if name not in there else f"{there.count(name)} columns"
        raise ValueError(f"there is {what} {shown(name)}; the table has {', '.join(map(str, there))}")
    names = class_names(table, name)
    return [decoded(value, names) for value in listed(table[name])]


def class_names(table: Any, name: str) -> list[str] | None:
    """Return the names of a ``ClassLabel`` of Hugging Face; None if the column is of another kind."""
    features = getattr(table, "features", None)
    feature = features.get(name) if isinstance(features, Mapping) else None
    inner = feature[0] if isinstance(feature, list) else getattr(feature, "feature", feature)
    return getattr(inner, "names", None)


def decoded(value: Any, names: list[str] | None) -> Any:
    """Return the names of classes in place of numbers, also in lists; None for negative ones, which stand for none."""
    if isinstance(value, (list, tuple, np.ndarray)) and names is not None:
        return [decoded(one, names) for one in value]
    if names is None or value is None:
        return value
    return names[value] if value >= 0 else None


def is_missing(value: Any) -> bool:
    """Return whether a cell is empty, in the ways of Arrow and polars, of NumPy and of pandas."""
    return value is None or type(value).__name__ == "NAType" or (isinstance(value, float) and value != value)

"""Columns of tables of any library, as lists. No library is imported: the methods of a table tell what it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
    values, classes = listed(table[name]), classes_of(table, name)
    if classes is None:
        return values
    found = []
    for row, value in enumerate(values):
        try:
            found.append(classes.decoded(value))
        except ValueError as error:
            raise ValueError(f"row {row}: {error}") from None
    return found


@dataclass(frozen=True)
class Classes:
    """A column of numbers of classes: a function that returns the names that a row has in it.

    Attributes:
        column: the name of the column.
        names: the names of the classes, by number.
    """

    column: str
    names: tuple[str, ...]

    def __call__(self, row: Mapping[str, Any]) -> Any:
        """Return the names that a row has in the column."""
        return self.decoded(row[self.column])

    def decoded(self, value: Any) -> Any:
        """Return names in place of numbers, also in lists; None for negative ones, which stand for none."""
        if isinstance(value, (list, tuple, np.ndarray)):
            return [self.decoded(one) for one in value]
        if value is None or value < 0:
            return None
        if value >= len(self.names):
            raise ValueError(
                f"{shown(self.column)} has the class number {value}, and its ClassLabel has {len(self.names)} classes, "
                "counted from 0; give it the names of all classes, or correct the number"
            )
        return self.names[value]


def classes_of(table: Any, name: str) -> Classes | None:
    """Return the classes of a column that is a ``ClassLabel`` of Hugging Face; None if it is of another kind."""
    features = getattr(table, "features", None)
    feature = features.get(name) if isinstance(features, Mapping) else None
    inner = feature[0] if isinstance(feature, list) else getattr(feature, "feature", feature)
    names = getattr(inner, "names", None)
    return None if names is None else Classes(name, tuple(names))


def is_missing(value: Any) -> bool:
    """Return whether a cell is empty, in the ways of Arrow and polars, of NumPy and of pandas."""
    return value is None or type(value).__name__ == "NAType" or (isinstance(value, float) and value != value)

"""Columns of tables as lists of values that estimators take: labels by name, and which cells are empty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._messages import shown
from maxmargin.datasets.columns import column_of, listed, names_of


def columns_of(table: Any, names: list[str]) -> list[list[Any]]:
    """Return the values of columns, with the names of classes in place of their numbers.

    ValueError names two columns if they differ in length, as those of a dictionary may.
    """
    check_table(table)
    found = [_column(table, name) for name in names]
    for name, values in zip(names, found, strict=True):
        if len(values) != len(found[0]):
            raise ValueError(
                f"column {shown(names[0])} has {len(found[0])} rows and {shown(name)} has {len(values)}; give a table "
                "whose columns have the same length"
            )
    return found


def check_table(table: Any) -> None:
    """Raise ValueError for what is not a table whose columns can be taken by name."""
    if isinstance(table, Mapping) and table and all(hasattr(part, "column_names") for part in table.values()):
        first = next(iter(table))
        raise ValueError(f"the table is a dictionary of datasets; give one of them, such as dataset[{first!r}]")
    if names_of(table) is None or hasattr(type(table), "to_frame"):  # as Series have
        raise ValueError(
            f"a table must have columns that are taken by name, got {shown(table)}; of a dataset that is streamed make "
            "a source()"
        )


def _column(table: Any, name: str) -> list[Any]:
    values, classes = listed(column_of(table, name)), classes_of(table, name)
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

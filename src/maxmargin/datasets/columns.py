"""Columns of tables by name, out and in. No library is imported: the class of a table tells what it is.

A table is a dictionary of columns, a data frame of pandas or polars, an Arrow table or batch, or a dataset of Hugging
Face.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from maxmargin._messages import shown


def is_frame(value: Any) -> bool:
    """Return whether a value is a data frame of pandas or polars."""
    return _has(value, "columns", "shape", "__getitem__", "__array__")


def names_of(table: Any) -> list[Any] | None:
    """Return the names of all columns; None if it is not a table whose columns can be taken by name.

    ValueError for a query of polars or dask, which has no values before it runs.
    """
    for run, other in (("collect", "collect_schema"), ("compute", "persist")):
        if _has(table, run, other):
            raise ValueError(f"the table is a query that has not run; give the result of its {run}()")
    if _by_keys(table):
        return list(table.keys())
    if not is_frame(table) and not _has(table, "__getitem__", "__len__"):
        return None
    found = table.column_names if _has(table, "column_names") else table.columns if _has(table, "columns") else None
    return None if found is None else list(found)


def n_rows(table: Any) -> int:
    """Return the number of rows of a table; of a dictionary, of its first column."""
    return len(next(iter(table.values()), ())) if _by_keys(table) else len(table)


def column_of(table: Any, name: Any) -> Any:
    """Return the values of a column: a list of Python objects, but of a dictionary as they are in it.

    ValueError says which columns there are if the name is not that of one, or of several.
    """
    if _by_keys(table) and name in table:
        return table[name]
    there = names_of(table) or []
    if there.count(name) != 1:
        what = "is no column" if name not in there else f"are {there.count(name)} columns"
        raise ValueError(f"there {what} {shown(name)}; the table has {', '.join(map(str, there)) or 'none'}")
    return listed(table[name])


def series_of(table: Any, name: str, values: list[Any]) -> Any:
    """Return values as a column beside those of a table: a Series of pandas, with its index, or polars, else a list."""
    if _has(table, "get_column"):
        return type(table)({name: values}).get_column(name)
    if _has(table, "assign"):
        return table.iloc[:, :0].assign(**{name: values})[name]
    return values


def takes_columns(table: Any) -> bool:
    """Return whether :func:`with_column` knows how to add a column."""
    return isinstance(table, Mapping) or any(_has(table, name) for name in ("append_column", "get_column", "assign"))


def with_column(table: Any, name: str, values: list[Any]) -> Any:
    """Return a table with a column more, or with another one in place of that of this name; a copy.

    The columns of dictionaries are arrays, as Ray Data wants them.
    """
    if isinstance(table, Mapping):
        column = np.empty(len(values), dtype=object)  # of one dimension, whatever the values are
        for at, value in enumerate(values):
            column[at] = value
        return {**table, name: column}
    if _has(table, "append_column"):
        rest = table.drop_columns([name]) if name in table.column_names else table
        return rest.append_column(name, [values])
    series = series_of(table, name, values)
    return table.with_columns(series) if _has(table, "get_column") else table.assign(**{name: series})


def listed(column: Any) -> list[Any]:
    """Return the values of a column of any library as a list of Python objects."""
    for name in ("to_pylist", "to_list", "tolist"):  # Arrow; polars and pandas; NumPy
        if hasattr(column, name):
            return list(getattr(column, name)())
    return list(column)


def _by_keys(table: Any) -> bool:
    """Return whether a table is a dictionary of columns, or as good as one, as archives of arrays are."""
    return isinstance(table, Mapping) or (_has(table, "keys", "__getitem__") and not _has(table, "columns"))


def _has(value: Any, *members: str) -> bool:
    """Return whether the class of a value has members; columns of pandas are members of the object alone."""
    return all(hasattr(type(value), name) for name in members)

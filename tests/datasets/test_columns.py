"""Columns of tables of pandas, polars, Arrow, dictionaries and archives of NumPy by name: out, in, and what is none."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from maxmargin.datasets import ColumnSource
from maxmargin.datasets.columns import (
    column_of,
    is_frame,
    listed,
    n_rows,
    names_of,
    series_of,
    takes_columns,
    with_column,
)

pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
pd = pytest.importorskip("pandas", reason="needs pandas")
pl = pytest.importorskip("polars", reason="needs polars")

COLUMNS = {"n": [1, 2, 3], "words": [["a"], ["b", "\u00fc"], []], "columns": ["x", "y", None]}
MAKERS = {
    "dictionary": dict,
    "pandas": lambda own: pd.DataFrame(own, index=list("uvw")[: len(own["n"])]),
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "batch": pa.RecordBatch.from_pydict,
}
ALL = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


@ALL
def test_columns_come_out(make: Any) -> None:
    table = make(COLUMNS)
    assert names_of(table) == list(COLUMNS)
    assert n_rows(table) == 3
    for name, values in COLUMNS.items():
        found = list(column_of(table, name))
        assert [None if one != one else one for one in found] == values  # pandas may write NaN for None
    with pytest.raises(ValueError, match="there is no column 'm'; the table has n, words, columns"):
        column_of(table, "m")
    block = ColumnSource(table, "words", "n").next()
    assert block is not None
    assert (block.X, block.y) == (COLUMNS["words"], COLUMNS["n"])


@pytest.mark.parametrize("make", [MAKERS[name] for name in MAKERS if name != "batch"])
@pytest.mark.parametrize("values", [["p", "q", "r"], [["p"], [], ["q", "r"]], [[1, 2], [3, 4], [5, 6]]])
def test_columns_go_in(make: Any, values: list[Any]) -> None:
    """New ones at the end, others in place of that of their name; the table stays as it was."""
    table = make(COLUMNS)
    assert takes_columns(table)
    for name in ("new", "n"):
        found = with_column(table, name, values)
        assert type(found) is type(table)
        assert set(names_of(found) or ()) == {*COLUMNS, name}
        assert list(column_of(found, name)) == values
        assert list(column_of(found, "words")) == COLUMNS["words"]
        assert list(column_of(table, "n")) == COLUMNS["n"]
    assert listed(series_of(table, "new", values)) == values
    empty = make({name: own[:0] for name, own in COLUMNS.items()})
    assert list(column_of(with_column(empty, "new", []), "new")) == []


def test_indices_of_pandas_stay() -> None:
    frame = pd.DataFrame(COLUMNS, index=["b", "a", "b"])
    assert with_column(frame, "new", [1, 2, 3])["new"].tolist() == [1, 2, 3]
    assert with_column(frame, "new", [1, 2, 3]).index.tolist() == series_of(frame, "new", [1, 2, 3]).index.tolist()


def test_what_is_no_table() -> None:
    for value in (3, "text", [["a"]], np.eye(2), None, iter([])):
        assert names_of(value) is None
        assert not is_frame(value)
        assert not takes_columns(value)
    for query in (pl.DataFrame(COLUMNS).lazy(), pl.LazyFrame()):
        with pytest.raises(ValueError, match=r"the table is a query that has not run; give the result of its collect"):
            names_of(query)
        with pytest.raises(ValueError, match=r"the table is a query that has not run; give the result of its collect"):
            ColumnSource(query, "words", "n").next()
    assert [is_frame(MAKERS[name](COLUMNS)) for name in ("dictionary", "pandas", "polars")] == [False, True, True]


def test_names_may_be_those_of_methods() -> None:
    """Columns of pandas are attributes, too, and must not pass for what the methods of other tables are."""
    names = ["column_names", "get_column", "append_column", "to_pydict", "collect", "collect_schema"]
    frame = pd.DataFrame({name: [at] for at, name in enumerate(names)})
    assert names_of(frame) == names
    assert with_column(frame, "new", [7])["new"].tolist() == [7]
    block = ColumnSource(frame, "collect", "to_pydict").next()
    assert block is not None
    assert (block.X, block.y) == ([4], [3])


def test_a_name_of_two_columns_is_refused() -> None:
    frame = pd.DataFrame([["a", "b"]], columns=["word", "word"])
    with pytest.raises(ValueError, match="there are 2 columns 'word'; the table has word, word"):
        column_of(frame, "word")


def test_archives_of_arrays() -> None:
    file = io.BytesIO()
    np.savez(file, x=np.arange(6.0).reshape(2, 3), y=np.array(["a", "b"]))
    file.seek(0)
    archive = np.load(file)
    assert names_of(archive) == ["x", "y"]
    block = ColumnSource(archive, "x", "y").next()
    assert block is not None
    assert [x.tolist() for x in block.X] == [[0, 1, 2], [3, 4, 5]]

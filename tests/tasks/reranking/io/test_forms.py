from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from maxmargin._sparse import sp
from maxmargin.tasks.reranking.io.forms import as_lists

MATRICES = [np.arange(6.0).reshape(2, 3), np.ones((1, 3)), -np.ones((4, 3))]


class Frame:
    """As much of a data frame as is needed; pandas is no dependency."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self._columns = columns
        self.columns = list(columns)

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]

    def drop(self, columns: str) -> Frame:
        return Frame({name: one for name, one in self._columns.items() if name != columns})

    def to_numpy(self) -> np.ndarray:
        return np.column_stack(list(self._columns.values()))


def test_matrices() -> None:
    lists = as_lists(MATRICES)
    assert lists.sizes.tolist() == [2, 1, 4]
    assert lists.names == ("x0", "x1", "x2")
    np.testing.assert_array_equal(lists.values, np.concatenate(MATRICES))
    assert as_lists(lists) is lists


def test_sparse_matrices() -> None:
    lists = as_lists([sp.csr_array(one) for one in MATRICES])
    assert lists.names == ()
    assert lists.sparse_names == ("x0", "x1", "x2")
    np.testing.assert_array_equal(lists.sparse.toarray(), np.concatenate(MATRICES))


def test_dictionaries_have_dense_and_sparse_features() -> None:
    lists = as_lists([[{"text": "a b", "lm": 1, "rare": 2.5}, {"lm": True}], [{"lm": -1.0}]])
    assert lists.texts == ["a b", "", ""]
    assert lists.names == ("lm",)
    np.testing.assert_array_equal(lists.values, [[1.0], [1.0], [-1.0]])
    assert lists.sparse_names == ("rare",)
    np.testing.assert_array_equal(lists.sparse.toarray(), [[2.5], [0.0], [0.0]])


def test_tables_with_groups() -> None:
    frame = Frame({"text": list("abcd"), "lm": [1.0, 2.0, 3.0, 4.0]})
    lists = as_lists(frame, groups=["q2", "q2", "q1", "q3"])
    assert lists.ids == ["q2", "q1", "q3"]
    assert lists.sizes.tolist() == [2, 1, 1]
    assert lists.texts == list("abcd")
    assert lists.names == ("lm",)
    np.testing.assert_array_equal(as_lists(np.eye(4), groups=[1, 1, 1, 2]).sizes, [3, 1])


@pytest.mark.parametrize(
    ("given", "groups", "message"),
    [
        ([], None, "X is empty"),
        ([np.zeros((0, 3))], None, "example 0: no hypotheses"),
        ([sp.csr_array((2, 2**40))], None, "the names of .* columns would need"),
        ([np.zeros((2, 3)), np.zeros((2, 4))], None, "example 1: features have 4 columns, expected 3"),
        ([np.full((2, 3), np.nan)], None, "example 0"),
        ([[{"a": 1.0}], []], None, "example 1: give a list of one or more dictionaries"),
        ([[{"a": 1.0}, 5]], None, "example 0, hypothesis 1: must be a dictionary"),
        ([[{"a": np.inf}]], None, "example 0, hypothesis 0: 'a' must be a finite number"),
        ([[{"a": "b"}]], None, "example 0, hypothesis 0: 'a' must be a finite number"),
        (np.eye(3), [1, 2, 1], "row 2: group .* comes again"),
        (np.eye(3), [1.0, 1.0, np.nan], "row 2: its group is nan"),
        (np.eye(3), np.array(["a", None, 3], dtype=object), "row 1: its group is None"),
        ([[{"a": 10**400}]], None, "example 0, hypothesis 0: 'a' must be a finite number"),
        (np.eye(3), [1, 2], "groups must have one entry per row, 3"),
        (np.zeros((0, 3)), [], "the table is empty"),
        (Frame({"1": [1.0], 1: [2.0]}), [1], "two columns are called '1'"),
        (Frame({"lm": [1.0]}), None, "a data frame needs groups"),
        (as_lists(MATRICES), [1, 2, 3], "these lists have their own"),
    ],
)
def test_bad_input(given: Any, groups: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_lists(given, groups)

"""Sums of decision trees against a plain walk, and arrays that are no trees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.tasks import _kernels

NAMES = ("feature", "left", "right", "threshold", "value", "root", "column")


def grown(rng, n_trees, n_features, n_columns, width, depth=5):
    """Random trees as the arrays of the kernel; some are single leaves."""
    nodes: list[list] = []
    roots = []

    def grow(left):
        at = len(nodes)
        leaf = left == 0 or rng.random() < 0.2
        nodes.append([-1, 0, 0, float(rng.choice([-1.0, 0.0, 0.5, rng.normal()]))])
        if not leaf:
            nodes[at][0] = int(rng.integers(n_features))
            nodes[at][1], nodes[at][2] = grow(left - 1), grow(left - 1)
        return at

    for _ in range(n_trees):
        roots.append(grow(int(rng.integers(depth + 1))))
    table = np.array(nodes, dtype=float).reshape(-1, 4)
    return {
        "feature": table[:, 0].astype(np.int32),
        "left": table[:, 1].astype(np.int32),
        "right": table[:, 2].astype(np.int32),
        "threshold": table[:, 3].copy(),
        "value": rng.normal(size=len(table) * width),
        "root": np.array(roots, dtype=np.int32),
        "column": rng.integers(n_columns - width + 1, size=n_trees).astype(np.int32),
    }


def run(trees, width, rows, out, threads=1):
    _kernels.add_trees(*(trees[name] for name in NAMES), width, rows, out, threads)
    return out


def walked(trees, width, rows, out):
    """The same by walking each tree with each row; NaN goes left, as no number is larger than the threshold."""
    found = out.copy()
    for row, to in zip(rows, found, strict=True):
        for root, column in zip(trees["root"], trees["column"], strict=True):
            at = root
            while trees["feature"][at] >= 0:
                above = float(row[trees["feature"][at]]) > trees["threshold"][at]
                at = trees["right" if above else "left"][at]
            to[column : column + width] += trees["value"][at * width : (at + 1) * width]
    return found


@given(
    seed=st.integers(0, 10_000),
    n_trees=st.integers(0, 6),
    n_rows=st.sampled_from([0, 1, 7, 8, 9, 150]),
    n_features=st.integers(1, 4),
    width=st.integers(1, 3),
    spare=st.integers(0, 2),
    threads=st.sampled_from([1, 2]),
)
def test_sums_are_those_of_a_plain_walk(seed, n_trees, n_rows, n_features, width, spare, threads):
    rng = np.random.default_rng(seed)
    trees = grown(rng, n_trees, n_features, width + spare, width)
    rows = rng.choice([-1.0, 0.0, 0.5, 1.0, np.nan, np.inf, -np.inf], size=(n_rows, n_features)).astype(np.float32)
    out = rng.normal(size=(n_rows, width + spare))
    expected = walked(trees, width, rows, out)
    np.testing.assert_array_equal(run(trees, width, rows, out, threads), expected)


def stump(**changes):
    """Two trees of one split each, with some arrays replaced."""
    trees = {
        "feature": np.array([1, -1, -1, 0, -1, -1], dtype=np.int32),
        "left": np.array([1, 0, 0, 4, 0, 0], dtype=np.int32),
        "right": np.array([2, 0, 0, 5, 0, 0], dtype=np.int32),
        "threshold": np.array([0.1, 0, 0, 0.5, 0, 0]),
        "value": np.array([0.0, 1, 2, 0, 10, 20]),
        "root": np.array([0, 3], dtype=np.int32),
        "column": np.array([0, 1], dtype=np.int32),
    }
    kept = {name: np.asarray(value, dtype=trees[name].dtype) for name, value in changes.items()}
    return {**trees, **kept}


@pytest.mark.parametrize("threads", [1, 2])
def test_stumps(threads):
    rows = np.array([[0, 0], [1, 1], [0.5, 0.1], [np.nan, np.nan]], dtype=np.float32)
    # The float next to 0.1 is larger than 0.1, so the third row goes right in the first tree.
    expected = [[1, 10], [2, 20], [2, 10], [1, 10]]
    np.testing.assert_array_equal(run(stump(), 1, rows, np.zeros((4, 2)), threads), expected)


def test_no_trees_and_no_rows():
    rows = np.full((3, 2), np.nan, dtype=np.float32)
    none = {name: value[:0] for name, value in stump().items()}
    np.testing.assert_array_equal(run(none, 1, rows, np.ones((3, 2))), np.ones((3, 2)))
    assert run(stump(), 1, rows[:0], np.zeros((0, 2))).shape == (0, 2)


BAD = [
    ({"left": [0, 0, 0, 4, 0, 0]}, "after their parents"),  # a node that is its own child
    ({"right": [2, 0, 0, 0, 0, 0]}, "after their parents"),  # a way back
    ({"feature": [1, 0, -1, 0, -1, -1], "left": [1, 0, 0, 4, 0, 0]}, "after their parents"),  # 0 -> 1 -> 0
    ({"left": [6, 0, 0, 4, 0, 0]}, "after their parents"),
    ({"right": [2**31 - 1, 0, 0, 5, 0, 0]}, "after their parents"),
    ({"right": [-1, 0, 0, 5, 0, 0]}, "after their parents"),
    ({"feature": [2, -1, -1, 0, -1, -1]}, "features must be columns"),
    ({"feature": [-2, -1, -1, 0, -1, -1]}, "features must be columns"),
    ({"root": [0, 6]}, "roots must be nodes"),
    ({"root": [-1, 3]}, "roots must be nodes"),
    ({"column": [0, 2]}, "columns must lie inside"),
    ({"column": [-1, 1]}, "columns must lie inside"),
    ({"left": [1, 0, 0, 4, 0]}, "two children"),
    ({"right": [2]}, "two children"),
    ({"threshold": []}, "a threshold"),
    ({"value": [0.0, 1, 2, 0, 10]}, "its values"),
    ({"value": [0.0] * 12}, "its values"),
    ({"root": [0]}, "a root and a column"),
    ({"column": [0, 1, 1]}, "a root and a column"),
]


@pytest.mark.parametrize(("changes", "message"), BAD, ids=[str(changes) for changes, _ in BAD])
def test_arrays_that_are_no_trees_are_refused(changes, message):
    out = np.zeros((3, 2))
    with pytest.raises(ValueError, match=message):
        run(stump(**changes), 1, np.zeros((3, 2), dtype=np.float32), out)
    assert not out.any()


@pytest.mark.parametrize("width", [-1, 0, 3])
def test_widths_outside_the_outputs_are_refused(width):
    with pytest.raises(ValueError, match="between one value and one per column"):
        run(stump(), width, np.zeros((3, 2), dtype=np.float32), np.zeros((3, 2)))


def test_a_wide_tree_may_not_begin_in_the_last_column():
    trees = stump(value=np.zeros(12))
    with pytest.raises(ValueError, match="columns must lie inside"):
        run(trees, 2, np.zeros((3, 2), dtype=np.float32), np.zeros((3, 2)))


def test_outputs_have_a_row_per_row():
    with pytest.raises(ValueError, match="a row per row"):
        run(stump(), 1, np.zeros((3, 2), dtype=np.float32), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="a row per row"):
        run(stump(), 1, np.zeros(6, dtype=np.float32), np.zeros((6, 2)))

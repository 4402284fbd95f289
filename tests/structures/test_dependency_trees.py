"""Dependency trees: layout of parts, and outputs that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from maxmargin.structures.base import FloatArray, Points
from maxmargin.structures.dependencies.base import DependencyTrees


class Trees(DependencyTrees):
    """Trees without a search."""

    name = "tree"
    projective = True

    def argmax(self, scores: FloatArray, *, warm: Any = None) -> Points:
        raise AssertionError("the layout of parts needs no search")


class AnyTrees(Trees):
    """The same with arcs that may cross."""

    projective = False


def test_dense_parts_have_computed_places() -> None:
    trees = Trees.dense([2, 4], n_labels=3, single_root=False)
    assert trees.n_parts == 4 * 3 + 16 * 3
    assert trees.states_per_variable.tolist() == [6, 6, 12, 12, 12, 12]
    both = [np.array([[2, 0], [1, 2]]), np.array([[0, 1, 4, 2], [0, 1, 2, 0]])]
    point = trees.encode(both)
    place = [((m - 1) * n + h - (h > m)) * 3 + k + start
             for n, start, (heads, labels) in [(2, 0, both[0]), (4, 12, both[1])]
             for m, (h, k) in enumerate(zip(heads, labels, strict=True), start=1)]  # fmt: skip
    np.testing.assert_array_equal(point.index, place)
    for found, given in zip(trees.decode(point.dense()), both, strict=True):
        np.testing.assert_array_equal(found, given)
    other = trees.select([1, 0, 1])
    np.testing.assert_array_equal(np.asarray(other.encode([both[1], both[0], both[1]]))[:48], point.dense()[12:])


def test_listed_arcs_are_the_candidates() -> None:
    arcs, offsets = [(0, 1), (2, 1), (0, 2), (1, 2), (0, 1), (0, 2), (1, 2), (3, 2), (2, 3)], [0, 4, 9]
    trees = Trees([2, 3], arcs, offsets, single_root=False)
    assert trees.states_per_variable.tolist() == [2, 2, 1, 3, 1]
    point = trees.encode([[2, 0], np.array([0, 1, 2])])
    assert point.index.tolist() == [1, 2, 4, 6, 8]
    assert [tree.tolist() for tree in trees.decode(point.dense())] == [[2, 0], [0, 1, 2]]
    assert trees.select([1]).encode([[0, 0, 2]]).index.tolist() == [0, 1, 4]
    with pytest.raises(ValueError, match="example 1: the arc from head 0 to token 3 is not a candidate"):
        trees.encode([[0, 0], [0, 0, 0]])


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ([2, 1, 0, 3], "from token 1 the heads do not lead to the root"),
        ([0, 0, 1, 1], "token 2 is a second one below the root"),
        ([3, 0, 2, 1], "the arc to token 1 crosses another"),
        ([3, 4, 0, 3], "the arc to token 1 crosses another"),
        ([1, 0, 2, 2], "token 1 has head 1"),
        ([5, 0, 2, 2], "token 1 has head 5; heads lie in 0..4"),
        ([-1, 0, 2, 2], "token 1 has head -1"),
        ([2, 0, 2], r"got shape \(3,\)"),
        ([0.5, 0, 2, 2], "heads, integers"),
    ],
)
def test_what_is_not_a_tree_is_refused(heads: list[int], message: str) -> None:
    trees = Trees.dense([2, 4])
    with pytest.raises(ValueError, match=f"example 1: .*{message}"):
        trees.encode([[0, 1], heads])


def test_arcs_that_cross_and_several_roots_are_allowed_on_demand() -> None:
    AnyTrees.dense([4]).encode([[3, 4, 0, 3]])
    assert Trees.dense([4], single_root=False).encode([[0, 0, 2, 2]]).index.tolist() == [0, 4, 10, 14]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([2], [(0, 1), (1, 2)], None), "or neither"),
        (([2], [(0, 1), (1, 2)], [0, 1]), "to the number of arcs, 2"),
        (([2], [(0, 1), (3, 2)], [0, 2]), r"example 0: arc \(3, 2\) is out of range"),
        (([2], [(0, 1), (1, 0)], [0, 2]), r"example 0: arc \(1, 0\) is out of range"),
        (([2], [(0, 1), (2, 2)], [0, 2]), "no token is its own head"),
        (([2], [(0, 2), (0, 1)], [0, 2]), r"example 0: arc \(0, 1\) comes too late or twice"),
        (([2], [(0, 1), (0, 2), (0, 2)], [0, 3]), r"example 0: arc \(0, 2\) comes too late or twice"),
        (([2], [(0, 1), (2, 1)], [0, 2]), "example 0: token 2 has no candidate head"),
        (([0], None, None), "n_tokens must be at least 1"),
        (([1 << 15], None, None), "split it"),
    ],
)
def test_arcs_that_make_no_sense_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Trees(*arguments)

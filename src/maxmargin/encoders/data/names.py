"""Names of parts and of weights in the user's words, for explanations of predictions.

A name has two halves: *what* it is about, a token or a link, a column of features; and the *state* that it stands for
there, such as a label. Explanations add up what parts of one token, or weights of one column, contribute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin.structures._arrays import IntArray, offsets_of
from maxmargin.structures.clique_sets import Cliques


class Name(NamedTuple):
    """A name.

    Attributes:
        what: what it is about, such as "position 3" or "edge feature 2".
        state: what it stands for there, such as a label; empty where there is one thing only.
    """

    what: str
    state: str = ""

    def __str__(self) -> str:
        return f"{self.what} = {self.state}" if self.state else self.what


Namer = Callable[[int], Name]


def by_number(word: str) -> Namer:
    """A function that names parts by one word and their place."""
    return lambda at: Name(f"{word} {at}")


def edge_namer(edges: IntArray, state: str) -> Namer:
    """Names of edges with one part each, by their two nodes."""
    return lambda at: Name(f"edge {edges[at, 0]}-{edges[at, 1]}", state)


def node_states(n_states: int, state: Callable[[int], str]) -> Namer:
    """Names of nodes with a part for each state."""
    return lambda at: Name(f"node {at // n_states}", state(at % n_states))


def edge_states(edges: IntArray, n_states: int, state: Callable[[int], str]) -> Namer:
    """Names of edges with a part for each state, by their two nodes."""
    return lambda at: Name("edge {}-{}".format(*edges[at // n_states]), state(at % n_states))


def clique_namer(cliques: Cliques, n_states: int, state: Callable[[int], str]) -> Namer:
    """Names of cliques with a part for each state, by their nodes."""
    return lambda at: Name(clique_nodes(cliques, at // n_states), state(at % n_states))


def clique_nodes(cliques: Cliques, clique: int) -> str:
    """A clique by its nodes."""
    own = cliques.nodes[cliques.begin[clique] : cliques.begin[clique + 1]]
    return f"clique {', '.join(map(str, own.tolist()))}"


class WeightTable(NamedTuple):
    """Names of consecutive weights.

    Attributes:
        size: how many there are.
        name: the name of each, counted from 0 in the table.
        summed: whether contributions of weights with the same name are shown as one, as those of support rows.
    """

    size: int
    name: Namer
    summed: bool = False


def table(
    n_rows: int, row: Callable[[int], str], n_states: int = 1, state: Callable[[int], str] = lambda at: ""
) -> WeightTable:
    """Names of the weights of ``n_rows`` columns of features, each with one weight for each state, row-major."""
    return WeightTable(n_rows * n_states, lambda at: Name(row(at // n_states), state(at % n_states)))


def after(words: str, column: Callable[[int], str]) -> Callable[[int], str]:
    """The names of columns behind some words."""
    return lambda at: f"{words}, {column(at)}"


def joined(label: Callable[[int], str], n_labels: int, n_nodes: int = 2) -> Callable[[int], str]:
    """The text of several labels in a row, from the digits of one number."""

    def text(joint: int) -> str:
        digits = [joint // n_labels**place % n_labels for place in reversed(range(n_nodes))]
        return " → ".join(map(label, digits))

    return text


class ColumnNames:
    """The names that a user gives to columns of features, and words for the others.

    Args:
        given: None; names of the columns of the one matrix that an input has, or of its first one; or for each matrix,
            by the name that it has in the input's class (``"edge_features"``), the names of its columns.
    """

    def __init__(self, given: Sequence[str] | Mapping[str, Sequence[str]] | None = None) -> None:
        self._all = dict(given) if isinstance(given, Mapping) else {}
        self._first = None if given is None or isinstance(given, Mapping) else given
        self._known: list[str] = []

    def of(self, matrix: str, width: int, words: str = "") -> Callable[[int], str]:
        """A function that names the columns of a matrix; ``words``: what columns without a name are called."""
        given = self._all.pop(matrix, None)
        if self._first is not None:
            given, self._first = self._first, None
        self._known.append(matrix)
        words = words or matrix.removesuffix("s").replace("_", " ")
        if given is None:
            return lambda column: f"{words} {column}"
        listed = _checks.listed(f"feature_names of {matrix}", given, f"a list of {width} names")
        if len(listed) != width:
            raise ValueError(
                f"feature_names has {len(listed)} names for the {width} columns of {matrix}; give each one"
            )
        texts = [_text(one) for one in listed]
        return texts.__getitem__

    def refuse_others(self) -> None:
        """ValueError if names were given that no matrix has taken."""
        if self._all:
            known = ", ".join(map(shown, self._known)) or "none"
            raise ValueError(f"feature_names has {shown(next(iter(self._all)))}, but inputs have {known}")
        if self._first is not None:
            raise ValueError("feature_names are for matrices of features, and this model has none; leave them out")


class WeightNames:
    """Names of all weights, made when they are asked for and kept.

    Args:
        tables: names of the weights, one table after the other.
    """

    def __init__(self, tables: Sequence[WeightTable]) -> None:
        self._tables = tables
        self._ends = offsets_of([one.size for one in tables])[1:]
        self._kept: dict[int, tuple[Name, bool]] = {}

    def __call__(self, part: int, weights: Sequence[int]) -> list[tuple[Name, bool]]:
        """The names of the weights of one part, and whether those of the same name are shown as one."""
        return [self._kept.get(at) or self._named(at) for at in weights]

    def _named(self, at: int) -> tuple[Name, bool]:
        number = int(np.searchsorted(self._ends, at, side="right"))
        own = self._tables[number]
        found = self._kept[at] = own.name(at - int(self._ends[number]) + own.size), own.summed
        return found


FeatureNamer = Callable[[int, Sequence[int]], list[tuple[Name, bool]]]
"""Names of the features of a part, given with the weights of its row in order; see :class:`WeightNames`."""


def _text(name: object) -> str:
    try:
        return str(name)
    except Exception:  # the caller's code
        return shown(name)

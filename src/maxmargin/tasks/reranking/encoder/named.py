"""Sparse features that have names: those of files, and phrase pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin._messages import quoted
from maxmargin._sparse import sp
from maxmargin.encoders.base import State
from maxmargin.structures.base import IntArray
from maxmargin.tasks import _kernels
from maxmargin.tasks.reranking.io.lists import NBestLists

LARGEST = 1e100
"""The largest feature: squares and sums of larger ones overflow."""


class NamedFeatures:
    """Names that were learned, a column for each; values of a name that comes several times in a row add up."""

    def __init__(self, table: _kernels.StringTable) -> None:
        self._table = table

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self._table)

    @classmethod
    def learn(cls, rows: NamedRows, offsets: IntArray, min_lists: int) -> tuple[NamedFeatures, Any]:
        """Return the features of training lists, and their values, CSR of shape ``(n_hypotheses, n_features)``.

        Args:
            rows: names and values.
            offsets: where each list begins.
            min_lists: the least number of lists in which a name must tell hypotheses apart.
        """
        learner = NamedLearner()
        found = learner.add(rows, offsets)
        fitted, keep = learner.features(min_lists)
        return fitted, sp.csr_array(found[:, np.flatnonzero(keep)])

    def transform(self, rows: NamedRows) -> Any:
        """Return the values of known names, CSR of shape ``(n_hypotheses, n_features)``."""
        return rows.matrix(self._table, grow=False)

    def names(self) -> list[str]:
        """Return the name of every column."""
        return [self._table.text(number).decode("utf-8", "replace") for number in range(len(self._table))]

    def state(self) -> State:
        """Return arrays for a model file."""
        text, ends = self._table.strings()
        return {"text": text, "ends": ends}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the features of a model file; ValueError, KeyError or TypeError if the arrays make no sense."""
        return cls(_kernels.StringTable.from_strings(state["text"], state["ends"]))

    def __getstate__(self) -> State:
        return self.state()

    def __setstate__(self, state: State) -> None:
        self.__dict__.update(self.from_state(state).__dict__)


class NamedLearner:
    """Learns names from lists that come in blocks, in the order in which they are met."""

    def __init__(self) -> None:
        self._table, self._lists = _kernels.StringTable(), np.zeros(0, dtype=np.int64)

    def add(self, rows: NamedRows, offsets: IntArray) -> Any:
        """Add lists; return the values of all names so far, CSR."""
        found = rows.matrix(self._table, grow=True)
        lists = np.empty(len(self._table), dtype=np.int32)
        starts, columns = found.indptr.astype(np.int64), found.indices.astype(np.int32)
        _kernels.varying_lists(offsets, starts, columns, found.data, lists)
        total = lists.astype(np.int64)
        total[: len(self._lists)] += self._lists
        self._lists = total
        return found

    def features(self, min_lists: int) -> tuple[NamedFeatures, npt.NDArray[np.bool_]]:
        """The names that tell hypotheses apart in so many lists, and which those are."""
        keep = self._lists >= min_lists
        return NamedFeatures(self._table.only(keep)), keep


class NamedRows:
    """Names and values of the hypotheses of lists.

    Args:
        strings: different names, in any order.
        starts: where the entries of each hypothesis begin.
        which: the number of each entry's name among ``strings``.
        values: the value of each entry.
    """

    def __init__(self, strings: Sequence[str], starts: IntArray, which: IntArray, values: Any) -> None:
        self._strings, self._starts, self._which, self._values = strings, starts, which, values

    def matrix(self, table: _kernels.StringTable, *, grow: bool) -> Any:
        """Return the entries as CSR with the numbers of names in a table as columns; unknown names are left out."""
        columns = _numbers(self._strings, table, grow=grow)[self._which]
        known = columns >= 0
        starts = np.concatenate([[0], np.cumsum(known)])[self._starts]
        found = sp.csr_array((self._values[known], columns[known], starts), shape=(len(starts) - 1, len(table)))
        found.sum_duplicates()
        return found


def sparse_of_file(lists: NBestLists, dense: Sequence[str]) -> NamedRows:
    """Return the sparse features that the files of the lists have.

    A feature that hypotheses may lack can be in all hypotheses of other lists, and is dense there: all that is not
    among the ``dense`` features of a model counts as sparse.
    """
    known = set(dense)
    others = [at for at, name in enumerate(lists.names) if name not in known]
    names = (*lists.sparse_names, *(lists.names[at] for at in others))
    blocks = [*([] if lists.sparse is None else [lists.sparse]), sp.csr_array(lists.values[:, others])]
    matrix = sp.csr_array(sp.hstack(blocks, format="csr")) if others else blocks[0]
    large = np.flatnonzero(np.abs(matrix.data) > LARGEST)
    if len(large):
        row = int(np.searchsorted(matrix.indptr, large[0], side="right")) - 1
        raise too_large(lists, row, names[matrix.indices[large[0]]], matrix.data[large[0]])
    return NamedRows(names, matrix.indptr.astype(np.int64), matrix.indices, matrix.data)


def too_large(lists: NBestLists, row: int, name: str, value: float) -> ValueError:
    """Return the error for a feature beyond :data:`LARGEST`."""
    owner = int(lists.owner[row])
    return ValueError(
        f"list {lists.ids[owner]}, hypothesis {row - int(lists.offsets[owner])}: feature {quoted(name)} is {value:g}; "
        f"give numbers of at most {LARGEST:g}"
    )


def _numbers(strings: Sequence[str], table: _kernels.StringTable, *, grow: bool) -> npt.NDArray[np.int32]:
    """Number whole strings; unknown ones are added to the table, or get -1."""
    coded = [string.encode("utf-8", "surrogatepass") for string in strings]
    ends = np.cumsum([0, *map(len, coded)], dtype=np.int64)
    buffer = np.frombuffer(b"".join(coded), dtype=np.uint8)
    numbers = np.empty(len(coded), dtype=np.int32)
    table.number(buffer, np.ascontiguousarray(ends[:-1]), np.ascontiguousarray(ends[1:]), grow, numbers)
    return numbers

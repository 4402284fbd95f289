"""Attributes of tokens: named values, numbered by a vocabulary, as sparse rows.

They come from feature dictionaries as in python-crfsuite, or from columns of text by :mod:`.templates.template`. A
compiled string table numbers them exactly: two attributes never share a number, unlike in feature hashing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin._messages import shown
from maxmargin._sparse import sp
from maxmargin._terminal import printable
from maxmargin.features.entries import Entries
from maxmargin.structures._arrays import offsets_of, ranges
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks import _kernels
from maxmargin.tasks.common.tokens.table import AttributeText, packed

_CHECKED = 1 << 20
"""Bytes of the text of a vocabulary that are decoded at a time, to check them."""


@dataclass(frozen=True, eq=False)
class Attributes:
    """Rows of numbered attributes, one per token (or per pair of neighbors), sentence after sentence.

    Attributes:
        starts: row ``r`` is ``columns[starts[r]:starts[r + 1]]``, shape ``(n_rows + 1,)``, int64.
        columns: numbers of attributes, increasing in each row, int32.
        values: their values, float64; None if all are 1.
        n_columns: size of the vocabulary.
        lengths: rows per sentence, int64.
    """

    starts: IntArray
    columns: npt.NDArray[np.int32]
    values: FloatArray | None
    n_columns: int
    lengths: IntArray

    @classmethod
    def of_entries(cls, entries: Entries, lengths: IntArray) -> Self:
        """Of the rows of features, see :attr:`entries`; arrays are not copied."""
        starts, columns = entries.starts.astype(np.int64, copy=False), entries.columns.astype(np.int32, copy=False)
        return cls(starts, columns, entries.values if len(entries.values) else None, entries.d, lengths)

    @classmethod
    def joined(cls, some: Sequence[Attributes]) -> Self:
        """Join rows of the same vocabulary, one after the other."""
        values = None
        if any(one.values is not None for one in some):
            values = np.concatenate([np.ones(len(one.columns)) if one.values is None else one.values for one in some])
        return cls(
            offsets_of(np.concatenate([np.diff(one.starts) for one in some])),
            np.concatenate([one.columns for one in some]),
            values,
            some[0].n_columns,
            np.concatenate([one.lengths for one in some]),
        )

    @property
    def n_rows(self) -> int:
        """Number of rows of all sentences."""
        return len(self.starts) - 1

    @cached_property
    def matrix(self) -> Any:
        """The rows as a CSR matrix of float64, shape ``(n_rows, n_columns)``, in canonical form."""
        values = np.ones(len(self.columns)) if self.values is None else self.values
        narrow = np.int32 if len(self.columns) < 1 << 31 else np.int64  # equal types, or kernels would widen both
        arrays = values, self.columns.astype(narrow, copy=False), self.starts.astype(narrow)
        return sp.csr_array(arrays, shape=(self.n_rows, self.n_columns))

    @cached_property
    def entries(self) -> Entries:
        """The rows for features of the library; values that are all 1 take no memory."""
        return Entries(self.starts, self.columns, self.n_columns, *([] if self.values is None else [self.values]))

    def counts(self) -> IntArray:
        """Return the number of rows of each attribute, shape ``(n_columns,)``, int64."""
        return np.bincount(self.columns, minlength=self.n_columns).astype(np.int64, copy=False)

    def only(self, keep: npt.NDArray[np.bool_]) -> Attributes:
        """Return the rows with only the kept columns, renumbered in order."""
        kept = keep[self.columns]
        before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
        renumbered = (np.cumsum(keep) - 1).astype(np.int32)
        return Attributes(
            before[self.starts],
            renumbered[self.columns[kept]],
            None if self.values is None else self.values[kept],
            int(np.count_nonzero(keep)),
            self.lengths,
        )

    def narrow(self) -> Attributes:
        """Return the rows without the columns that none of them has."""
        return self.only(self.counts() > 0)

    def select(self, rows: IntArray, lengths: IntArray) -> Attributes:
        """Return some of the rows, as sentences of the given lengths."""
        first, last = self.starts[rows], self.starts[rows + 1]
        entries = ranges(first, last)
        values = None if self.values is None else self.values[entries]
        return Attributes(offsets_of(last - first), self.columns[entries], values, self.n_columns, lengths)


class AttributeVocabulary:
    """Attributes, numbered in order of first appearance.

    A failed call leaves the vocabulary unchanged.
    """

    def __init__(self, table: Any = None) -> None:
        self.table = _kernels.StringTable() if table is None else table

    def __len__(self) -> int:
        return len(self.table)

    def name(self, number: int) -> str:
        """Return the attribute with a number."""
        return str(self.table.text(number).decode("utf-8", "surrogatepass"))

    @property
    def names(self) -> list[str]:
        """All attributes in the order of their numbers."""
        text, ends = self.table.strings()
        return decoded(text.tobytes(), ends)

    def of_items(self, sentences: Iterable[Any], *, grow: bool = False) -> Attributes:
        """Return the attributes of feature dictionaries.

        A token is a dictionary, or a list, tuple or set of names, or one name. In a dictionary,

        - ``{"word": "the"}`` is the attribute ``word:the``,
        - ``{"length": 3.0}`` is ``length`` with the value 3; True is 1; 0 and False are dropped;
        - ``{"near": ["a", "b"]}`` is ``near:a`` and ``near:b``; sets likewise, in the order of their UTF-8;
        - ``{"before": {"word": "of"}}`` is ``before:word:of``, and so on for nested dictionaries.

        Values of an attribute that is repeated in a token add up. These are python-crfsuite's rules, except that a
        token that is a string is one name here, not a list of letters.

        Args:
            sentences: any iterable of iterables of tokens.
            grow: whether to add new attributes to the vocabulary; otherwise they are dropped.

        Raises:
            ValueError: names sentence and token; the vocabulary is unchanged.
        """
        starts, columns, values, lengths = _kernels.attributes_of_items(self.table, sentences, grow)
        return Attributes(starts, columns, values, len(self), lengths)

    def of_text(self, text: AttributeText, *, grow: bool = False) -> Attributes:
        """Return the attributes of a CRFsuite file, with their weights as values.

        ValueError names the line if the values of an attribute add up to infinity; the vocabulary is then unchanged.
        """
        before = len(self)
        numbers = np.empty(len(text.begin), dtype=np.int32)
        buffer = np.frombuffer(text.buffer, dtype=np.uint8)
        self.table.number(buffer, text.begin, text.end, grow, numbers)
        known = numbers >= 0
        starts = np.concatenate([[0], np.cumsum(known)])[text.starts]
        shape = len(text.starts) - 1, len(self)
        matrix = sp.csr_array((text.weight[known], numbers[known], starts), shape=shape)
        matrix.sum_duplicates()
        if not np.isfinite(matrix.data).all():
            at = int(np.flatnonzero(~np.isfinite(matrix.data))[0])
            where = text.where(int(np.searchsorted(matrix.indptr, at, side="right")) - 1)
            name = printable(self.name(int(matrix.indices[at])))
            self.table = self.table.only(np.arange(len(self)) < before)
            raise ValueError(f"{where}: the values of {shown(name)} are too large to be added; scale them down")
        values = None if (matrix.data == 1.0).all() else matrix.data
        columns = matrix.indices.astype(np.int32, copy=False)
        return Attributes(matrix.indptr.astype(np.int64), columns, values, len(self), np.diff(text.sentences))

    def only(self, keep: npt.NDArray[np.bool_]) -> AttributeVocabulary:
        """Return the vocabulary of the kept attributes, renumbered in order."""
        return AttributeVocabulary(self.table.only(np.ascontiguousarray(keep, dtype=np.bool_)))

    def cut(self, attributes: Attributes, min_count: int, known: int = 0) -> tuple[AttributeVocabulary, Attributes]:
        """Drop attributes of fewer than ``min_count`` rows, except the first ``known``, from vocabulary and rows."""
        if min_count <= 1:
            return self, attributes
        keep = attributes.counts() >= min_count
        keep[:known] = True
        return self.only(keep), attributes.only(keep)

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of a model file: ``text`` (all names in UTF-8) and ``ends`` (of each, in bytes)."""
        text, ends = self.table.strings()
        return {"text": text, "ends": ends}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The inverse of :meth:`to_arrays`; ValueError if they are damaged."""
        for name, dtype in (("text", np.uint8), ("ends", np.int64)):
            if name not in arrays:
                raise ValueError(f"the vocabulary has no array {shown(name)}; save the model again")
            if arrays[name].dtype != dtype or arrays[name].ndim != 1:
                raise ValueError(f"{name} of the vocabulary must be one-dimensional {np.dtype(dtype)}; save it again")
        text, ends = (np.ascontiguousarray(arrays[name]) for name in ("text", "ends"))
        try:
            table = _kernels.StringTable.from_strings(text, ends)
            _check_text(text, ends)
        except ValueError as error:
            raise ValueError(f"the vocabulary is damaged ({error}); save the model again") from None
        return cls(table)

    def __getstate__(self) -> dict[str, npt.NDArray[Any]]:
        return self.to_arrays()

    def __setstate__(self, state: dict[str, npt.NDArray[Any]]) -> None:
        self.table = _kernels.StringTable.from_strings(state["text"], state["ends"])


def _check_text(text: npt.NDArray[np.uint8], ends: IntArray) -> None:
    """Raise ValueError unless each string is text; a run of strings at a time, as decoded text takes memory."""
    cuts = ends[np.searchsorted(ends, np.arange(_CHECKED, len(text), _CHECKED))]
    for first, last in pairwise([0, *cuts.tolist(), len(text)]):
        text[first:last].tobytes().decode("utf-8", "surrogatepass")
    begins = ends[:-1][ends[:-1] < len(text)]
    if bool(np.any((text[begins] & 0xC0) == 0x80)):
        raise ValueError("a string begins inside a character")


def numbers_of(vocabulary: AttributeVocabulary, names: Sequence[str], *, grow: bool = False) -> npt.NDArray[np.int32]:
    """Return the numbers of names, -1 for those that are not there unless they are added (``grow``)."""
    text, ends = packed(names)
    found = np.empty(len(names), dtype=np.int32)
    vocabulary.table.number(np.frombuffer(text, dtype=np.uint8), ends[:-1].copy(), ends[1:].copy(), grow, found)
    return found


def decoded(text: bytes, ends: IntArray) -> list[str]:
    """Return the strings of a string table."""
    bounds = pairwise([0, *ends.tolist()])
    if text.isascii():  # one decoding, and slices
        whole = text.decode("ascii")
        return [whole[first:last] for first, last in bounds]
    return [text[first:last].decode("utf-8", "surrogatepass") for first, last in bounds]

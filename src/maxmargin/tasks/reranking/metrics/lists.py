"""Hypotheses and references of lists in the form that kernels take: numbers of words, or code points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.structures._arrays import offsets_of, pieces
from maxmargin.structures.base import IntArray
from maxmargin.tasks import _kernels

Numbers = npt.NDArray[np.int32]
Tokens = tuple[Numbers, IntArray, Numbers, IntArray]
"""Token numbers of hypotheses, one after the other, and where each begins; the same of references."""

_AT_ONCE = 1 << 17  # hypotheses whose tokens are in memory at once


@dataclass(frozen=True, eq=False)
class TextLists:
    """Hypotheses and references, list after list.

    Attributes:
        texts: the hypotheses.
        offsets: list ``i`` has the hypotheses ``offsets[i]:offsets[i + 1]``; shape ``(n_lists + 1,)``.
        references: the references.
        reference_offsets: the same for the references, at least one per list.
    """

    texts: Sequence[str]
    offsets: IntArray
    references: Sequence[str]
    reference_offsets: IntArray

    @classmethod
    def of(cls, texts: Sequence[str], references: Sequence[Sequence[str]], owner: IntArray) -> TextLists:
        """Pack what :meth:`Metric.statistics` is given; ValueError if the parts do not fit."""
        lists = np.asarray(owner)
        if lists.shape != (len(texts),):
            raise ValueError(f"{len(texts)} hypotheses and owner of shape {lists.shape}; give the list of each")
        if len(lists) and (lists.min() < 0 or lists.max() >= len(references)):
            raise ValueError(f"owner must lie in 0..{len(references) - 1}, the lists that have references")
        if (lists[1:] < lists[:-1]).any():
            raise ValueError("owner must not decrease: give the hypotheses list after list")
        for at, some in enumerate(references):
            if isinstance(some, str) or not len(some):
                what = "its references are a string" if isinstance(some, str) else "no references"
                raise ValueError(f"list {at}: {what}; give a list of one or more strings")
        return cls(
            texts=texts,
            offsets=np.searchsorted(lists, np.arange(len(references) + 1)).astype(np.int64),
            references=[reference for some in references for reference in some],
            reference_offsets=offsets_of([len(some) for some in references]),
        )

    def blocks(self) -> Iterator[tuple[slice, TextLists]]:
        """Yield some lists at a time, with the place of their hypotheses."""
        for some in pieces(np.diff(self.offsets), _AT_ONCE):
            first, last = int(some[0]), int(some[-1]) + 1
            begin, end = int(self.offsets[first]), int(self.offsets[last])
            gold_begin, gold_end = int(self.reference_offsets[first]), int(self.reference_offsets[last])
            block = TextLists(
                texts=self.texts[begin:end],
                offsets=self.offsets[first : last + 1] - begin,
                references=self.references[gold_begin:gold_end],
                reference_offsets=self.reference_offsets[first : last + 1] - gold_begin,
            )
            yield slice(begin, end), block

    def mapped(self, change: Any) -> TextLists:
        """Return the same lists with each text changed by a function of strings, called once for equal texts."""
        changed = {text: change(text) for text in {*self.texts, *self.references}}
        texts, references = ([changed[text] for text in some] for some in (self.texts, self.references))
        return TextLists(texts, self.offsets, references, self.reference_offsets)

    @property
    def of_lists(self) -> tuple[IntArray, IntArray]:
        """Offsets of the hypotheses and of the references of lists, for kernels."""
        return self.offsets, self.reference_offsets

    def words(self, *, punctuation: bool = False) -> Tokens:
        """Return the numbers of the words of hypotheses and references: pieces between white space.

        Args:
            punctuation: whether a mark of ASCII at the end of a word, else at its beginning, is a word of its own.
        """
        table = _kernels.StringTable()
        # References come first: their words, which are looked up most, stand close together in the table.
        gold = _kernels.words_of_texts(table, self.references, punctuation)
        texts = _kernels.words_of_texts(table, self.texts, punctuation)
        return texts[0], texts[1], gold[0], gold[1]

    def characters(self, *, blanks: bool) -> Tokens:
        """Return the characters of hypotheses and references, with or without one blank between words."""
        texts, gold = (_kernels.characters_of_texts(some, blanks) for some in (self.texts, self.references))
        return texts[0], texts[1], gold[0], gold[1]

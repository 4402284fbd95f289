"""Word and character error rates, the metrics of speech recognition."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maxmargin import _threads
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks import _kernels
from maxmargin.tasks.reranking.metrics.base import Formula, Metric
from maxmargin.tasks.reranking.metrics.lists import TextLists, Tokens


class _ErrorRate(Metric):
    """Insertions, deletions and substitutions, as few as possible, over the length of the reference.

    Statistics: errors and reference length, from the reference with the smallest error rate, the first of equal ones.
    """

    n_statistics = 2
    formula = Formula.ERROR_RATE
    lower_is_better = True

    def statistics(self, texts: Sequence[str], references: Sequence[Sequence[str]], owner: IntArray) -> FloatArray:
        """Return errors and reference length, shape ``(len(texts), 2)``; arguments as for :class:`Metric`."""
        out = np.empty((len(texts), 2))
        for rows, block in TextLists.of(texts, references, owner).blocks():
            _kernels.error_statistics(*self._tokens(block), *block.of_lists, out[rows], _threads.current())
        return out

    @abstractmethod
    def _tokens(self, lists: TextLists) -> Tokens:
        """Return what is counted."""


@dataclass(frozen=True)
class WordErrorRate(_ErrorRate):
    """Word error rate; words are the pieces between white space."""

    name = "WER"

    def _tokens(self, lists: TextLists) -> Tokens:
        return lists.words()


@dataclass(frozen=True)
class CharacterErrorRate(_ErrorRate):
    """Character error rate; a blank between two words counts as one character, other white space does not count."""

    name = "CER"

    def _tokens(self, lists: TextLists) -> Tokens:
        return lists.characters(blanks=True)

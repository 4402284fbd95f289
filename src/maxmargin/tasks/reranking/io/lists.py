"""N-best lists: the hypotheses of each input with their features, packed list after list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin._sparse import sp
from maxmargin.structures._arrays import example_numbers, offsets_of, ranges
from maxmargin.structures.base import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class NBestLists:
    """Lists of hypotheses. Hypotheses of all lists stand one after the other, in the order of the files.

    Attributes:
        texts: the hypotheses, tokens separated by blanks; ``n_hypotheses`` strings, which may be empty.
        offsets: list ``i`` has the hypotheses ``offsets[i]:offsets[i + 1]``, at least one; shape ``(n_lists + 1,)``.
        names: names of the dense features, all different.
        values: the dense features, shape ``(n_hypotheses, len(names))``, finite.
        ids: the name of each list in its file, ``n_lists`` strings.
        sparse_names: names of the sparse features that the files have; empty if there are none.
        sparse: their values, CSR of shape ``(n_hypotheses, len(sparse_names))``; None if there are none.
        references: for each list one or more references, where the file has them; None otherwise.
        segments: the phrases of each hypothesis, ``number:first-last:first-last`` for the positions from 0 of the
            source and target words of each, separated by blanks; None if the file does not have them.
        sources: the input of each list; None if they are not known.
        list_size: lines of each list in a file of the plain layout, those that pad it included; None elsewhere.
        totals: the total score that the decoder gave each hypothesis, where the file has it; None otherwise.
    """

    texts: Sequence[str]
    offsets: IntArray
    names: tuple[str, ...]
    values: FloatArray
    ids: Sequence[str]
    sparse_names: tuple[str, ...] = ()
    sparse: Any = None
    references: Sequence[tuple[str, ...]] | None = None
    segments: Sequence[str] | None = None
    sources: Sequence[str] | None = None
    list_size: int | None = None
    totals: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_hypotheses(self) -> int:
        """Number of hypotheses of all lists."""
        return len(self.texts)

    @property
    def sizes(self) -> IntArray:
        """Number of hypotheses of each list, shape ``(n_lists,)``."""
        return np.diff(self.offsets)

    @cached_property
    def owner(self) -> IntArray:
        """The list of each hypothesis, shape ``(n_hypotheses,)``."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def select(self, lists: npt.ArrayLike) -> Self:
        """Return some of the lists, in the given order."""
        chosen = example_numbers(lists, len(self))
        rows = ranges(self.offsets[chosen], self.offsets[chosen + 1])
        numbers, which = rows.tolist(), chosen.tolist()
        return replace(
            self,
            texts=[self.texts[i] for i in numbers],
            offsets=offsets_of(self.sizes[chosen]),
            values=self.values[rows],
            ids=[self.ids[i] for i in which],
            sparse=None if self.sparse is None else sp.csr_array(self.sparse[rows]),
            references=None if self.references is None else [self.references[i] for i in which],
            segments=None if self.segments is None else [self.segments[i] for i in numbers],
            sources=None if self.sources is None else [self.sources[i] for i in which],
            totals=None if self.totals is None else self.totals[rows],
        )


def ranked(lists: NBestLists, scores: npt.ArrayLike, k: int | None = None, *, distinct: bool = False) -> NBestLists:
    """Return the ``k`` best hypotheses of each list, best first, with their scores as totals; all if ``k`` is None.

    Of equal scores, the hypothesis that comes first in the list is the better one. With ``distinct``, only the best of
    hypotheses with the same text is kept.
    """
    totals = np.asarray(scores, dtype=np.float64)
    if totals.shape != (lists.n_hypotheses,):
        raise ValueError(f"scores must have shape ({lists.n_hypotheses},), got {totals.shape}")
    if k is not None and k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    order = np.lexsort((-totals, lists.owner))
    if distinct:
        seen = {
            (i, lists.texts[at]): at
            for i, at in zip(lists.owner[order[::-1]].tolist(), order[::-1].tolist(), strict=True)
        }
        order = order[np.isin(order, list(seen.values()))]
    if k is not None:
        owner = lists.owner[order]
        order = order[np.arange(len(order)) - np.searchsorted(owner, owner) < k]
    numbers = order.tolist()
    return replace(
        lists,
        texts=[lists.texts[at] for at in numbers],
        offsets=offsets_of(np.bincount(lists.owner[order], minlength=len(lists))),
        values=lists.values[order],
        sparse=None if lists.sparse is None else sp.csr_array(lists.sparse[order]),
        segments=None if lists.segments is None else [lists.segments[at] for at in numbers],
        totals=totals[order],
    )

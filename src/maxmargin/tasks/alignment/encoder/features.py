"""Features of word pairs and of single words.

:class:`LinkFeatures` turns the :class:`Evidence` of a batch of sentence pairs into features of all word pairs (cells),
:class:`WordFeatures` into features of the words of one side. Grids hold the cells of all pairs, pair after pair,
row-major source x target. Positions outside a sentence count as 0; values are about in [-1, 1] for any finite input.

With ``e`` a source word at ``j`` of ``J``, ``f`` a target word at ``k`` of ``K``, ``c`` numbers of sentence pairs out
of ``n``, ``p`` the forward and ``q`` the backward HMM posterior of the cell and ``g = p q``:

- Dice is ``2 c(e,f) / (c(e) + c(f))``, PMI ``log(c(e,f) n / (c(e) c(f))) / log n`` cut to [0, 1]; the likelihood ratio
  ``log(1 + G^2) / 10``, negative for words that co-occur less often than by chance (Dunning, Accurate methods for the
  statistics of surprise and coincidence, 1993).
- "against" compares ``g`` with the best other ``h`` of its row or column: ``(g - h) / (g + h + 0.01)``.
- Letters are compared without case and accents, only the first 64 of a word; common letters are ``2 lcs / (m + n)``
  of the longest common subsequence, bigrams the Dice coefficient of the sets of neighboring letters.
- Words are identical if they have the same letters, or the same digits, and no other word of the two sentences has;
  "elsewhere" means that one of the two words is identical to another one.
- A word is rare with ``c <= 3``, frequent with ``c > n / 100``, and punctuation if it has no letter and no digit.

Cost: about 100 features of a cell in a few hundred cycles; scores are computed without a matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _threads
from maxmargin._messages import shown
from maxmargin._sparse import sp
from maxmargin.structures._arrays import offsets_of, vector
from maxmargin.structures.base import FloatArray, IntArray, PointStatus
from maxmargin.tasks.alignment.encoder.evidence import Evidence as Evidence
from maxmargin.tasks.alignment.translation.words import Int32Array

# fmt: off
_NINE = (
    "forward", "backward", "product", "geometric mean", "smaller", "larger", "best in its column", "best in its row",
    "best in both",
)

_COLUMNS: dict[str, tuple[str, ...]] = {
    "bias": ("one",),
    "association": (
        "Dice", "root of Dice", "PMI", "likelihood ratio", "Dice minus best other of its row",
        "Dice minus best other of its column", "Dice of the words before", "Dice of the words after", "Dice around",
    ),
    "model1": _NINE,
    "hmm": (
        *_NINE, "log forward", "log backward", "product against its row", "product against its column",
        "product best in its row", "product best in its column", "product best in both", "forward minus Model 1",
        "backward minus Model 1",
    ),
    "neighbors": (
        "previous source, previous target", "next source, next target", "previous source, next target",
        "next source, previous target", "previous source", "next source", "previous target", "next target",
        "better of the diagonal", "mean of the diagonal x product", "agreement of the diagonal",
    ),
    "position": (
        "distance", "distance squared", "root of distance", "distance x (1 - product)",
        "distance squared x (1 - product)", "root of distance x (1 - product)", "same position", "both first",
        "both last", "distance x ratio of lengths", "short sentence",
    ),
    "orthography": (
        "equal", "equal when normalized", "common prefix", "common suffix", "common letters", "common bigrams",
        "prefix of four", "equal digits", "different digits", "equal punctuation", "different punctuation",
        "one is punctuation", "both capitalized", "one is capitalized", "difference of lengths", "long and alike",
    ),
    "frequency": (
        "source", "target", "difference", "both at most once", "both rare", "both frequent", "one is frequent",
        "one is unseen", "both unseen", "both rare x product", "both frequent x product", "one is frequent x product",
        "both rare x common letters", "one is frequent x distance",
    ),
    "null": (
        "source", "target", "larger", "neither", "source frequent x (1 - product)", "target frequent x (1 - product)",
    ),
    "identical": (
        "same letters", "same letters, digits", "same letters, both rare", "same letters elsewhere", "same digits only",
        "same digits elsewhere",
    ),
}
"""Groups whose columns do not depend on the data, in the kernel's order, and the names of their columns."""

GROUPS = (*_COLUMNS, "posteriors", "extra", "lexical")
"""All groups, in the order of their columns."""

_WORD_COLUMNS = (
    "one", "frequency", "rare", "frequent", "length", "punctuation", "digits", "expected links",
    "expected links, its own direction", "second partner", "second partner is next to the first",
    "second partner if next to the first", "null", "neighbors at its best partner",
)
# fmt: on


def _refuse_nonfinite(status: npt.NDArray[np.int8]) -> None:
    bad = np.flatnonzero(status == PointStatus.NONFINITE)
    if len(bad):
        raise ValueError(
            f"sentence pair {bad[0] + 1}: its evidence or extra columns have NaN or infinity; give finite numbers"
        )


@dataclass(frozen=True)
class LinkFeatures:
    """Features of word pairs, group by group.

    Attributes:
        groups: which groups of columns, of :data:`GROUPS`, in any order; columns come in the order of :data:`GROUPS`.
        n_lexical: number of frequent word pairs with an indicator column each, in the group ``lexical``.
        posterior_names: names of the columns of the other models, in the group ``posteriors``.
        extra_names: names of the columns that users give, in the group ``extra``.
        lexical_names: names of the frequent word pairs; may be empty.
    """

    groups: Sequence[str] = tuple(_COLUMNS)
    n_lexical: int = 0
    posterior_names: Sequence[str] = ()
    extra_names: Sequence[str] = ()
    lexical_names: Sequence[str] = ()

    def __post_init__(self) -> None:
        if isinstance(self.groups, str):
            raise ValueError(f"groups must be a tuple of names, got the string {shown(self.groups)}")
        for group in self.groups:
            if group not in GROUPS:
                raise ValueError(f"there is no group {shown(group)} of features; use some of {', '.join(GROUPS)}")
        if len(set(self.groups)) != len(self.groups):
            raise ValueError(f"groups names a group twice: {', '.join(self.groups)}")
        _checks.integer("n_lexical", self.n_lexical, least=0)
        if self.lexical_names and len(self.lexical_names) != self.n_lexical:
            raise ValueError(f"lexical_names has {len(self.lexical_names)} names for {self.n_lexical} word pairs")
        object.__setattr__(self, "groups", tuple(group for group in GROUPS if group in self.groups))
        object.__setattr__(self, "posterior_names", tuple(self.posterior_names))
        object.__setattr__(self, "extra_names", tuple(self.extra_names))
        object.__setattr__(self, "lexical_names", tuple(self.lexical_names))

    @property
    def names(self) -> list[str]:
        """A readable name for every column."""
        return [f"{group}: {name}" for group in self.groups for name in self._columns(group)]

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self._n_dense + self._n_lexical

    def _columns(self, group: str) -> Sequence[str]:
        if group == "posteriors":
            return self.posterior_names
        if group == "extra":
            return self.extra_names
        if group == "lexical":
            return self.lexical_names or [f"word pair {number}" for number in range(self.n_lexical)]
        return _COLUMNS[group]

    @cached_property
    def _mask(self) -> int:
        return sum(1 << number for number, group in enumerate(_COLUMNS) if group in self.groups)

    @cached_property
    def _n_dense(self) -> int:
        return sum(len(self._columns(group)) for group in self.groups if group != "lexical")

    @property
    def _n_lexical(self) -> int:
        return self.n_lexical if "lexical" in self.groups else 0

    def _prepare(self, evidence: Evidence) -> tuple[Any, bool]:
        """The kernel's batch of evidence that has what the groups need, and whether further columns are used."""
        unused: dict[str, Any] = {}
        wanted_any = False
        for group, names in (("posteriors", self.posterior_names), ("extra", self.extra_names)):
            wanted = len(names) if group in self.groups else 0
            columns = getattr(evidence, group)
            found = 0 if columns is None else columns.shape[1]
            if wanted and wanted != found:
                raise ValueError(
                    f"the evidence has {found} {group} columns where {wanted} are named; give the same columns"
                )
            if found and not wanted:
                unused[group] = None
            wanted_any |= wanted > 0
        if wanted_any and unused:
            evidence = replace(evidence, **unused)
        if self._n_lexical:
            if evidence.lexical is None:
                raise ValueError("the evidence has no lexical column; give it, or omit the group 'lexical'")
            largest = int(evidence.lexical.max(initial=-1))
            if largest >= self.n_lexical:
                raise ValueError(f"lexical has the number {largest}, but there are {self.n_lexical} word pairs")
        return evidence._batch, wanted_any

    def matrix(self, evidence: Evidence) -> FloatArray | sp.csr_matrix:
        """Features of all cells, shape ``(cells, n_features)``: dense, or CSR where the group ``lexical`` is on."""
        if not self.is_sparse:
            batch, extra = self._prepare(evidence)
            status = np.zeros(evidence.n_examples, dtype=np.int8)
            dense = np.empty((evidence.n_cells, self.n_features))
            batch.dense(self._mask, extra, dense, status, _threads.current())
            _refuse_nonfinite(status)
            return dense
        start = offsets_of(self.counts(evidence))
        columns, values = np.empty(start[-1], dtype=np.int32), np.empty(start[-1])
        self.fill(evidence, start, columns, values)
        narrow = start.astype(np.int32) if start[-1] < 2**31 else start
        return sp.csr_matrix((values, columns, narrow), shape=(evidence.n_cells, self.n_features))

    @property
    def is_sparse(self) -> bool:
        """Whether the features are a sparse matrix."""
        return self._n_lexical > 0

    def counts(self, evidence: Evidence) -> IntArray:
        """The number of features of every cell that are not zero, a grid."""
        batch, extra = self._prepare(evidence)
        status, counts = np.zeros(evidence.n_examples, dtype=np.int8), np.empty(evidence.n_cells, dtype=np.int64)
        batch.count(self._mask, extra, self._n_lexical, counts, status, _threads.current())
        _refuse_nonfinite(status)
        return counts

    def fill(self, evidence: Evidence, start: IntArray, columns: Int32Array, values: FloatArray) -> None:
        """Write the features that are not zero.

        Args:
            evidence: the sentence pairs.
            start: where those of each cell begin, rising from 0 and with the end of the arrays last; there may be gaps.
            columns: their columns are written here.
            values: their values are written here.
        """
        batch, extra = self._prepare(evidence)
        status = np.zeros(evidence.n_examples, dtype=np.int8)
        batch.fill(self._mask, extra, self._n_lexical, start, columns, values, status, _threads.current())

    def scores(self, evidence: Evidence, weights: npt.ArrayLike) -> FloatArray:
        """The score of every cell, a grid: ``matrix(evidence) @ weights`` to rounding, without the matrix."""
        batch, extra = self._prepare(evidence)
        checked = vector(weights, self.n_features, "weights")
        status, out = np.zeros(evidence.n_examples, dtype=np.int8), np.empty(evidence.n_cells)
        batch.scores(self._mask, extra, self._n_lexical, checked, out, status, _threads.current())
        _refuse_nonfinite(status)
        return out


def require_columns(groups: Sequence[str], extra_names: Sequence[str], n_lexical: int) -> None:
    """Refuse groups of features that are unknown, or have no columns at all."""
    LinkFeatures(groups=groups)
    reasons: dict[str, str] = {}
    if not extra_names and "extra" in groups:
        reasons["extra"] = "has no extra columns"
    if not n_lexical and "lexical" in groups:
        reasons["lexical"] = "has no frequent_pairs"
    if all(group in reasons for group in groups):
        lost = ", ".join(f"{name} {reason}" for name, reason in reasons.items())
        raise ValueError(
            f"no features of links are left of features{f': {lost}' if lost else ', which is empty'}; add others, such "
            "as bias, association and position, or None for all"
        )


@dataclass(frozen=True)
class WordFeatures:
    """Features of the words of one side, which score the fertility slots.

    A source word has many partners in the forward direction, where it may generate many target words; a target word in
    the backward one. ``expected links`` sums ``g`` over a word's partners, ``its own direction`` that direction's
    posteriors (both cut at 4, and divided by 4); ``second partner`` is its second largest posterior. ``neighbors at
    its best partner`` is the mean posterior, in the other direction, of the words before and after with the partner of
    the largest ``g``.

    Attributes:
        side: ``"source"`` or ``"target"``.
    """

    side: Literal["source", "target"]

    def __post_init__(self) -> None:
        if self.side not in ("source", "target"):
            raise ValueError(f"side must be 'source' or 'target', got {shown(self.side)}")

    @property
    def names(self) -> list[str]:
        """A readable name for every column."""
        return [f"{self.side} word: {name}" for name in _WORD_COLUMNS]

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(_WORD_COLUMNS)

    def matrix(self, evidence: Evidence) -> FloatArray:
        """Features of all words of the side, shape ``(words, n_features)``."""
        words = evidence.bitext.source if self.side == "source" else evidence.bitext.target
        out, status = np.empty((len(words), self.n_features)), np.zeros(evidence.n_examples, dtype=np.int8)
        evidence._batch.words(self.side == "source", out, status, _threads.current())
        _refuse_nonfinite(status)
        return out

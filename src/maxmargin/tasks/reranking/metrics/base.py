"""What a metric is: statistics of a sentence that add up over a corpus, and a formula that scores their sums."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import IntEnum
from typing import ClassVar

import numpy as np

from maxmargin import _threads
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks import _kernels


class Formula(IntEnum):
    """Formulas that kernels know (cpp/include/maxmargin/reranking/quality.hpp)."""

    BLEU = 0
    CHRF = 1
    ERROR_RATE = 2
    MEAN = 3


class Metric(ABC):
    """A metric that depends on a corpus only through sums of statistics of its sentences.

    *Quality* is what training maximizes, larger is better: BLEU and chrF in [0, 1], one minus an error rate. What users
    read, such as a BLEU of 34.2 or a word error rate of 12.3%, is ``shown(quality)``.

    A metric of your own gives ``name``, ``n_statistics``, :meth:`statistics` and :meth:`quality`.
    """

    name: str
    """For options and tables: "BLEU", "WER"."""

    n_statistics: int
    """Statistics of a sentence."""

    formula: ClassVar[Formula | None] = None
    """The formula of :meth:`quality`, where kernels know it; they are called back where it is None."""

    beta: float = 1.0
    """Parameter of the formula."""

    lower_is_better: ClassVar[bool] = False
    """Whether users read an error rate."""

    decimals: ClassVar[int] = 2
    """Digits that users read behind the point."""

    @abstractmethod
    def statistics(self, texts: Sequence[str], references: Sequence[Sequence[str]], owner: IntArray) -> FloatArray:
        """Return the statistics of each hypothesis, shape ``(len(texts), n_statistics)``.

        Args:
            texts: hypotheses, tokens separated by blanks.
            references: for each list its references, at least one.
            owner: the list that each hypothesis belongs to, shape ``(len(texts),)``, not decreasing.
        """

    def quality(self, sums: FloatArray) -> FloatArray:
        """Return the quality of corpora from summed statistics: shape ``(..., n_statistics)`` to ``(...)``."""
        if self.formula is None:
            raise NotImplementedError(f"{type(self).__name__} must give a formula or the method quality")
        rows = np.ascontiguousarray(sums, dtype=np.float64).reshape(-1, self.n_statistics)
        out = np.empty(len(rows))
        _kernels.metric_quality(int(self.formula), self.beta, rows, out, _threads.current())
        return out.reshape(np.shape(sums)[:-1])

    def sentence_quality(self, statistics: FloatArray) -> FloatArray:
        """Return the quality of single sentences, smoothed where a corpus formula would be too coarse for one."""
        return self.quality(statistics)

    def shown(self, quality: float) -> float:
        """Return the number that users read, in percent."""
        return 100.0 * (1.0 - quality if self.lower_is_better else quality)

    @property
    def signature(self) -> str:
        """The version and settings that make a score reproducible; empty if there is nothing to say."""
        return ""

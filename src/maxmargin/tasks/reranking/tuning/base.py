"""What a tuning method sees, and what it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from maxmargin.features.rows import Rows, rows_of
from maxmargin.optimization.solution import Solution
from maxmargin.structures._arrays import example_numbers, offsets_of
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.candidates import Candidates
from maxmargin.tasks.reranking.metrics.base import Metric

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class TuningLists:
    """Lists as rows of features, with the statistics of the metric to tune.

    Attributes:
        offsets: list ``i`` has the hypotheses ``offsets[i]:offsets[i + 1]``, at least one; shape ``(n_lists + 1,)``.
        rows: their features, a C-contiguous float64 array or CSR, shape ``(n_hypotheses, n_features)``.
        statistics: those of ``metric``, shape ``(n_hypotheses, metric.n_statistics)``.
        metric: the metric to tune.
        signs: 1 for a feature whose weight must be >= 0, -1 for one that must be <= 0, else 0; shape ``(n_features,)``.
        texts: the hypotheses, for methods that compare them; None if they are not known.
    """

    offsets: IntArray
    rows: Any
    statistics: FloatArray
    metric: Metric
    signs: npt.NDArray[np.int8]
    texts: Sequence[str] | None = None
    _last: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what ``make`` returns, made anew only if the last key was another.

        Settings of a method that differ in their strength alone share in this way what does not depend on it.
        """
        found: T | None = self._last.get(key)
        if found is None:
            found = make()
            self._last.clear()
            self._last[key] = found
        return found

    @property
    def n_features(self) -> int:
        """Number of weights."""
        return int(self.rows.shape[1])

    @cached_property
    def structure(self) -> Candidates:
        """The lists as a structure."""
        return Candidates(np.diff(self.offsets))

    @cached_property
    def quality(self) -> FloatArray:
        """The sentence quality of each hypothesis, shape ``(n_hypotheses,)``."""
        return self.metric.sentence_quality(self.statistics)

    def scores(self, weights: FloatArray) -> FloatArray:
        """The score of each hypothesis, shape ``(n_hypotheses,)``."""
        out = np.empty(int(self.offsets[-1]))
        Rows(self.rows, "features").times(np.ascontiguousarray(weights, dtype=np.float64), 1, out)
        return out

    def choose(self, weights: FloatArray) -> IntArray:
        """The row of the best hypothesis of each list, the first of equal ones, shape ``(n_lists,)``."""
        return self.structure.first_largest(self.scores(weights))[0]

    def corpus_quality(self, chosen: IntArray) -> float:
        """The quality of the corpus of the chosen rows."""
        return float(self.metric.quality(self.statistics[chosen].sum(axis=0)))

    def select(self, lists: npt.ArrayLike) -> Self:
        """Return some of the lists, in the given order."""
        which = example_numbers(lists, len(self))
        at = rows_of(self.offsets, which)
        texts = self.texts
        if texts is not None:
            texts = texts[at] if isinstance(at, slice) else [texts[i] for i in at.tolist()]
        return replace(
            self,
            offsets=offsets_of(np.diff(self.offsets)[which]),
            rows=self.rows[at],
            statistics=self.statistics[at],
            texts=texts,
        )


@dataclass(frozen=True, eq=False)
class Tuned:
    """The result of a tuning method.

    Attributes:
        weights: shape ``(n_features,)``.
        solution: the certified run, of methods that minimize a convex objective; None for the others.
        details: what else there is to say, as plain JSON values.
        interrupted: whether Ctrl-C ended tuning; the weights are the best so far.
    """

    weights: FloatArray
    solution: Solution | None = None
    details: dict[str, Any] = field(default_factory=dict)
    interrupted: bool = False


class Method(ABC):
    """A tuning method: its settings, a frozen dataclass."""

    name: str
    """For options and tables."""

    @abstractmethod
    def tune(self, lists: TuningLists, *, start: FloatArray | None = None, seed: int = 0) -> Tuned:
        """Return weights for the lists; threads as :func:`maxmargin.threads` says, the same bits for any number.

        Args:
            lists: features in comparable units, as the encoder scales them.
            start: weights to start from; None for a choice of the method.
            seed: of random draws.
        """

    def candidates(self) -> Sequence[Method]:
        """The settings that held-out lists choose from; just these by default."""
        return (self,)

    def describe(self) -> dict[str, Any]:
        """The settings that :meth:`candidates` differ in, as plain JSON values."""
        return {}

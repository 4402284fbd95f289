"""Structures whose methods are those of one kernel object, a batch that the bindings have checked."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar

from maxmargin import _checks, _kernels, _threads
from maxmargin.structures._arrays import vector
from maxmargin.structures.base import FloatArray, Points, Structure
from maxmargin.structures.fallbacks import generic

MOST_RANKS = (1 << 31) - 1
"""``k_best`` counts ranks up to this."""

FEW_RANKS = 100
"""Up to so many ranks it is not worth while to count the outputs before they are listed."""


class Compiled(Structure):
    """A batch that a kernel object treats as a whole; subclasses give :attr:`kernel` and :attr:`_batch`."""

    categorical = False
    kernel: ClassVar[str]
    """The name of its kernel objects: ``kernel + "Batch"`` and ``kernel + "Oracle"`` of the compiled module."""

    @cached_property
    @abstractmethod
    def _batch(self) -> Any:
        """The kernel object, made and checked once, when first asked for."""

    def argmax(self, scores: FloatArray, *, warm: Any = None) -> Points:
        """The best output of every example; ``warm`` is not needed."""
        return self._from_kernel(self._batch.argmax, vector(scores, self.n_parts, "scores"))

    def k_best(self, scores: FloatArray, k: int) -> list[Points]:
        """The ``k`` best outputs of every example, exactly; the first is the argmax."""
        ranks = self._ranks(k)
        outputs = self._buffers(ranks)
        self._batch.k_best(ranks, vector(scores, self.n_parts, "scores"), *outputs, _threads.current())
        return generic.ranked(*outputs)

    def _ranks(self, k: int) -> int:
        """``k``, or if that is large and there are fewer outputs, their number."""
        ranks = _checks.integer("k", k, least=1)
        ranks = ranks if ranks <= FEW_RANKS else min(ranks, self._most_outputs)
        if ranks >= MOST_RANKS:
            raise ValueError(f"k must be below {MOST_RANKS}, got {k}")
        return ranks

    @cached_property
    def _most_outputs(self) -> int:
        """The number of outputs of the example that has most, but at least 1 and no more than MOST_RANKS."""
        most = float(self.log_outputs().max(initial=0.0))
        return MOST_RANKS if most >= math.log(MOST_RANKS) else max(math.ceil(math.exp(most) - 1e-6), 1)

    def marginals(self, potentials: FloatArray) -> Points:
        """Expected parts of ``p(y) ~ exp(potentials'y)``; ``value`` is the log-partition function.

        Potentials may be of any size (marginals are as exact as sums of such numbers); ``-inf`` forbids a part.
        """
        if self.marginals_unsupported:
            return super().marginals(potentials)
        return self._from_kernel(self._batch.marginals, vector(potentials, self.n_parts, "potentials"))

    def slack_argmax(
        self, scores: FloatArray, margin: FloatArray, costs: FloatArray, constants: FloatArray, *, warm: Any = None
    ) -> Points:
        """``argmax_y (costs'y + constants) (margin + scores'y)`` over outputs.

        Exactly where the kernel has it (:attr:`slack_relaxed` is False): for each item or node, all pairs of loss and
        score are kept of which none beats another in both. INEXACT, with an upper bound as value, where there would be
        more than 64 to 4096 of them, by the size of the example. ``warm`` is for the relaxed maximum.
        """
        if self.slack_relaxed:
            return super().slack_argmax(scores, margin, costs, constants, warm=warm)
        scores, costs = vector(scores, self.n_parts, "scores"), vector(costs, self.n_parts, "costs")
        margin, constants = vector(margin, self.n_examples, "margin"), vector(constants, self.n_examples, "constants")
        return self._from_kernel(self._batch.slack_argmax, scores, margin, costs, constants)

    def project(self, point: FloatArray, *, tol: float = 1e-8, warm: Any = None) -> Points:
        """Euclidean projection by an active set of outputs in the kernel; ``warm`` from a call of this batch."""
        point = vector(point, self.n_parts, "point")
        return generic.project_in_kernel(
            self, tol, warm, self, lambda hull, *outputs: self._batch.project(hull, point, *outputs)
        )

    def oracle(self, ranks: int = 1) -> Any:
        """The best output, or the ``ranks`` best, and where it is exact slack rescaling, of one example at a time."""
        most = _checks.integer("ranks", ranks, least=1, most=MOST_RANKS)
        return getattr(_kernels, self.kernel + "Oracle")(self._batch, most)

"""A trained reranker: choices, rankings, weights in the units of the features, and its file.

It imports neither training nor scikit-learn, so that commands that only predict start quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _threads
from maxmargin.encoders.data import checks
from maxmargin.explanation.compute import explain_batch
from maxmargin.explanation.result import Explanation
from maxmargin.models.base import Metric as Score
from maxmargin.models.base import Model
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.common.weights import strongest_weights
from maxmargin.tasks.reranking.encoder.lattices import EdgeRows
from maxmargin.tasks.reranking.encoder.reranking import RerankingEncoder
from maxmargin.tasks.reranking.io.forms import as_lists
from maxmargin.tasks.reranking.io.lattices import Lattices
from maxmargin.tasks.reranking.io.lists import NBestLists, ranked
from maxmargin.tasks.reranking.report import Report


@dataclass(frozen=True, eq=False)
class RerankerModel(Model):
    """Weights of the features of hypotheses; the score of a hypothesis is ``w'f``.

    Lists are given in any form that :func:`~maxmargin.tasks.reranking.io.forms.as_lists` takes.

    Attributes:
        encoder: turns hypotheses into rows of features.
        report: what held-out lists said in training; None for a model from a file.
    """

    encoder: RerankingEncoder
    report: Report | None = None

    def predict(self, X: Any) -> list[int]:
        """Return the number of the best hypothesis of each list, counted from 0, the first of equal ones."""
        return super().predict(X)

    def explain(self, x: Any, *, against: int | None = None) -> Explanation:  # type: ignore[override]
        """Explain the choice from one list: what features contribute to its margin over another hypothesis.

        Values are those that weights multiply: dense features in units of their spread (see ``normalize``).

        Args:
            x: one list of hypotheses, in any form that lists of them have.
            against: the number of the other hypothesis, from 0; None for the runner-up.
        """
        lists = x if isinstance(x, NBestLists) else as_lists([x])
        if len(lists) != 1:
            raise ValueError(f"explain takes one list of hypotheses, got {len(lists)}")
        with _threads.threads(self.n_jobs):
            given = (
                None if against is None else _checks.integer("against", against, least=0, most=int(lists.sizes[0]) - 1)
            )
            return explain_batch(self.encoder, self.encoder.batch(lists), self.weights, lists, against=given)

    def scores(self, X: Any) -> list[FloatArray]:
        """Return the scores of the hypotheses of each list."""
        lists = as_lists(X)
        with _threads.threads(self.n_jobs):
            batch = self.encoder.batch(lists)
            return np.split(self._scores(batch), lists.offsets[1:-1])

    def rank(self, X: Any) -> list[IntArray]:
        """Return the numbers of the hypotheses of each list, counted from 0, best first; equal ones in their order."""
        return [np.argsort(-scores, kind="stable") for scores in self.scores(X)]

    def best_texts(self, X: Any) -> list[str]:
        """Return the text of the best hypothesis of each list."""
        lists = as_lists(X)
        return [lists.texts[first + at] for first, at in zip(lists.offsets.tolist(), self.predict(lists), strict=False)]

    def k_best_texts(self, X: Any, k: int) -> list[list[tuple[str, float]]]:
        """Return the ``k`` best different texts of each list with their scores, best first."""
        best = self.best_lists(as_lists(X), k)
        assert best.totals is not None
        pairs = list(zip(best.texts, best.totals.tolist(), strict=True))
        return [pairs[first:last] for first, last in pairwise(best.offsets.tolist())]

    def best_lists(self, lists: NBestLists, k: int = 1) -> NBestLists:
        """Return the ``k`` best different texts of each list, best first, with their scores as totals."""
        return ranked(lists, np.concatenate(self.scores(lists)), _checks.integer("k", k, least=1), distinct=True)

    def score(self, X: Any, y: Sequence[Any], sample_weight: npt.ArrayLike | None = None) -> float:  # type: ignore[override]
        """Return the mean gain of the chosen hypotheses; ``y`` has the gains of each list, larger is better."""
        return self.scorer(X, y, sample_weight)(self)

    def scorer(
        self,
        X: Any,
        y: Sequence[Any],
        sample_weight: npt.ArrayLike | None = None,
        metric: Score | None = None,
    ) -> Callable[[Model], float]:
        """A function of rerankers: their :meth:`score`, or ``metric`` of gains and choices, on lists."""
        lists = as_lists(X)
        gains = [np.asarray(one, dtype=np.float64) for one in checks.examples(y, "y")]
        if [len(one) for one in gains] != lists.sizes.tolist():
            raise ValueError("y must have the gains of each list, one per hypothesis")
        weight = checks.weights(sample_weight, len(lists))

        def score(model: Model) -> float:
            chosen = model.outputs(model.encoder.transform(lists))  # type: ignore[arg-type]
            if metric is not None:
                return float(metric(list(y), chosen))
            return float(np.average([one[at] for one, at in zip(gains, chosen, strict=True)], weights=weight))

        return score

    def best_of_lattices(self, lattices: Lattices, k: int = 1) -> NBestLists:
        """Return the ``k`` best different texts of each lattice, best first, with their features and total scores."""
        with _threads.threads(self.n_jobs):
            edges = EdgeRows.of(lattices, self.encoder)
            return edges.best_lists(self.weights / self.encoder.scale, _checks.integer("k", k, least=1))

    @property
    def dense_weights(self) -> dict[str, float]:
        """The weights of dense features in the units of the features, by name: what a decoder would take.

        ValueError if features are normalized within lists, as no fixed weights then say the same.
        """
        if self.encoder.normalize == "list":
            raise ValueError(
                "features were normalized within each list, so no weights of a decoder say the same; train with "
                'normalize="spread"'
            )
        names, scale = self.encoder.names, self.encoder.scale
        return dict(zip(names, (self.weights[: len(names)] / scale + 0.0).tolist(), strict=True))  # no -0.0

    def sparse_weights(self) -> dict[str, float]:
        """Return the weights of sparse features that differ from zero, by name."""
        names, first = self.encoder.feature_names(), len(self.encoder.names)
        return {names[at]: float(self.weights[at]) for at in first + np.flatnonzero(self.weights[first:])}

    def strongest(self, top: int) -> dict[str, Any]:
        """Return the largest weights of either sign with the names of their features, as plain JSON values."""
        names = self.encoder.feature_names()
        return strongest_weights(self.weights, top, lambda at: {"feature": names[at]})

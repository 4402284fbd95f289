"""Reranker: a scikit-learn estimator that chooses the best of n."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from maxmargin import _checks, _threads
from maxmargin._estimator import Estimator
from maxmargin.datasets import ShardedDataset
from maxmargin.encoders.data import checks
from maxmargin.execution import Executor
from maxmargin.explanation.result import Explanation
from maxmargin.optimization.checkpoints.files import Checkpoint
from maxmargin.structures._arrays import vector
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.reranking.encoder.reranking import RerankingEncoder
from maxmargin.tasks.reranking.io.forms import as_lists
from maxmargin.tasks.reranking.io.lists import NBestLists
from maxmargin.tasks.reranking.metrics.base import Metric
from maxmargin.tasks.reranking.metrics.gains import Gains
from maxmargin.tasks.reranking.metrics.names import metric_named, second_metrics
from maxmargin.tasks.reranking.model import RerankerModel
from maxmargin.tasks.reranking.sharding import RerankingRecipe, train_reranker_on
from maxmargin.tasks.reranking.training import Judged, RerankerSettings, train_reranker
from maxmargin.tasks.reranking.tuning.base import Method
from maxmargin.training import Settings


class Reranker(Estimator):
    """Chooses one hypothesis of each list by a linear score whose weights are tuned to a metric.

    X is a list with, for each input, a matrix with a row of features per hypothesis (dense or CSR), or a list of
    dictionaries from names of features to numbers (``"text"`` names the text of the hypothesis); or a matrix or pandas
    data frame with a row per hypothesis, with ``groups``; or :class:`NBestLists` of a file. Lists may have any size.

    y says how good hypotheses are: real-valued gains, larger is better, an array per list (with ``groups``, one array);
    or references, where hypotheses have texts: a string, or several strings, for each list.

    Args:
        method: "max-margin", "lp7", "lp8", "mert", "pro", "mira" or "perceptron", or a method object with settings.
        C: for regularized methods, larger means less regularization; of several, held-out lists choose; None for the
            method's own choice.
        metric: for references, "bleu", "chrf", "ter", "wer" or "cer", or a :class:`Metric`; for gains, None.
        normalize: units of dense features: "spread" (divided by their standard deviation within lists), "list" (mean 0
            and standard deviation 1 within each list) or "none".
        length: whether the number of words is a feature.
        ngrams: the longest word n-grams that are sparse features; 0 for none.
        phrases: whether phrase pairs are sparse features; lists need segments.
        min_lists: sparse features must tell hypotheses apart in so many training lists.
        positive: names of dense features whose weights must be >= 0; columns of matrices are "x0", "x1", ...
        negative: names of those whose weights must be <= 0.
        folds: number of folds on which settings are chosen and the gain is estimated; 0 holds nothing out.
        n_jobs: threads, as scikit-learn reads it; never changes the result.
        executor: where max-margin, lp7 and lp8 work on the lists, in shards: an executor of
            :mod:`maxmargin.execution`; None for this process.
        random_state: the seed.
        verbose: draw a progress bar on a terminal.
        checkpoint: a file or a :class:`maxmargin.solvers.Checkpoint`, from which interrupted training resumes.

    Attributes:
        coef_: the weights of dense features, then of sparse ones, in units of the scaled features.
        feature_names_: the name of each weight.
        report_: how settings were chosen, and the gain on held-out lists with its interval.
        solution_: certificate, status and history of the last run of max-margin, lp7 and lp8; None for other methods.
        model_: the trained :class:`RerankerModel`.
    """

    model_: RerankerModel

    def __init__(
        self,
        method: str | Method = "max-margin",
        *,
        C: float | Sequence[float] | None = None,
        metric: str | Metric | None = None,
        normalize: str = "spread",
        length: bool = False,
        ngrams: int = 0,
        phrases: bool = False,
        min_lists: int = 1,
        positive: Sequence[str] = (),
        negative: Sequence[str] = (),
        folds: int = 5,
        n_jobs: int | None = None,
        executor: Executor | None = None,
        random_state: int = 0,
        verbose: bool = False,
        checkpoint: str | Path | Checkpoint | None = None,
    ) -> None:
        self.method, self.C, self.metric, self.normalize, self.length = method, C, metric, normalize, length
        self.ngrams, self.phrases, self.min_lists = ngrams, phrases, min_lists
        self.positive, self.negative, self.folds = positive, negative, folds
        self.n_jobs, self.random_state, self.verbose, self.checkpoint = n_jobs, random_state, verbose, checkpoint
        self.executor = executor

    def fit(
        self, X: Any, y: Any = None, groups: npt.ArrayLike | None = None, *, dev: tuple[Any, Any] | None = None
    ) -> Self:
        """Train.

        Args:
            X: lists of hypotheses; or, without ``y``, a dataset of :meth:`build_dataset`, which is not divided into
                folds: without ``dev`` the middle one of several ``C`` is taken.
            y: gains of the hypotheses of each list, or references.
            groups: for a table with a row per hypothesis, the list that each row belongs to; rows of a list together.
            dev: lists and their gains or references ``(X, y)`` to choose the settings of the method by, in place of
                folds.
        """
        settings = self._settings()
        if dev is not None and (not isinstance(dev, (tuple, list)) or len(dev) != 2):
            raise ValueError("dev must be a pair (X, y) of lists and their gains or references")
        held = None if dev is None else self._judged(as_lists(dev[0]), dev[1], grouped=False)
        if isinstance(X, ShardedDataset):
            for name, given in (("y", y), ("groups", groups)):
                if given is not None:
                    raise ValueError(f"a dataset has its own {name}; leave it out, or give it to build_dataset")
            X.require(self._recipe())
            model = train_reranker_on(X, settings, dev=held)
        else:
            if y is None:
                raise ValueError("y is missing: give gains or references, or a ShardedDataset in place of X and y")
            judged = self._judged(as_lists(X, groups), y, grouped=groups is not None)
            model = train_reranker(judged, settings, dev=held)
        self.model_, self.report_ = model, model.report
        self.solution_ = None if model.training is None else model.training.solution
        return self

    def build_dataset(self, folder: str | Path, source: Any, **options: Any) -> ShardedDataset:
        """Judge and encode lists into a folder, from which :meth:`fit` trains in the memory of one shard.

        Args:
            folder: the folder.
            source: lists and their gains or references ``(x, y)``, see :meth:`maxmargin.ShardedDataset.build`.
            options: further options of :meth:`maxmargin.ShardedDataset.build`.
        """
        with _threads.threads(self.n_jobs):
            return ShardedDataset.build(folder, self._recipe(), source, **options)

    def _recipe(self) -> RerankingRecipe:
        named = self.metric if isinstance(self.metric, str) else type(self.metric).__name__
        judged_by = "gains or bleu" if self.metric is None else named
        return RerankingRecipe(self._settings(), lambda lists, y: self._judged(lists, y, grouped=False), judged_by)

    def _settings(self) -> RerankerSettings:
        return RerankerSettings(
            method=self.method,
            C=None if self.C is None else Settings(C=self.C).grid,
            encoder=RerankingEncoder(self.normalize, self.length, self.ngrams, self.phrases, self.min_lists),
            positive=self.positive,
            negative=self.negative,
            folds=self.folds,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            executor=self.executor,
            verbose=self.verbose,
            checkpoint=Checkpoint.of(self.checkpoint),
        )

    def _judged(self, lists: NBestLists, y: Any, *, grouped: bool) -> Judged:
        references = _references(y)
        if references is not None:
            given = "bleu" if self.metric is None else self.metric
            tuned = given if isinstance(given, Metric) else metric_named(given)
            if not any(lists.texts):
                raise ValueError("y has references, but no hypothesis has a text to compare with them; give gains")
            return Judged.of(lists, references, (tuned, *second_metrics(tuned)))
        if self.metric is not None:
            raise ValueError("metric needs references, and y has gains; give references, or leave metric out")
        gains = vector(y, int(lists.offsets[-1]), "y, the gains of all hypotheses,") if grouped else _flat(y, lists)
        metric = Gains(gains)
        return Judged.of(lists, [()] * len(lists), (metric,))

    def _model(self) -> RerankerModel:
        """The trained model with the number of threads that is set now."""
        check_is_fitted(self, "model_")
        return replace(self.model_, n_jobs=self.n_jobs)

    @property
    def coef_(self) -> FloatArray:
        """The weights."""
        return self._model().weights

    @property
    def feature_names_(self) -> list[str]:
        """The name of each weight."""
        return self._model().encoder.feature_names()

    def predict(self, X: Any, groups: npt.ArrayLike | None = None) -> list[int]:
        """Return the number of the best hypothesis of each list, counted from 0."""
        return self._model().predict(as_lists(X, groups))

    def explain(self, x: Any, *, against: int | None = None) -> Explanation:
        """Explain the prediction for one list; see :meth:`RerankerModel.explain`."""
        return self._model().explain(x, against=against)

    def rank(self, X: Any, groups: npt.ArrayLike | None = None) -> list[IntArray]:
        """Return the numbers of the hypotheses of each list, best first."""
        return self._model().rank(as_lists(X, groups))

    def decision_function(self, X: Any, groups: npt.ArrayLike | None = None) -> list[FloatArray]:
        """Return the scores of the hypotheses of each list."""
        return self._model().scores(as_lists(X, groups))

    def score(self, X: Any, y: Any, groups: npt.ArrayLike | None = None) -> float:
        """Return the quality of the chosen hypotheses as a corpus, larger is better: the metric's, or the mean gain."""
        lists = as_lists(X, groups)
        judged = self._judged(lists, y, grouped=groups is not None)
        rows = lists.offsets[:-1] + np.asarray(self.predict(lists), dtype=np.int64)
        return float(judged.metrics[0].quality(judged.statistics[0][rows].sum(axis=0)))

    def save(self, path: str | Path) -> None:
        """Write the trained model to a file that :func:`maxmargin.load` reads."""
        self._model().save(path)


def _references(y: Any) -> list[tuple[str, ...]] | None:
    """References from strings or lists of strings, one per list; None if y has numbers."""
    if isinstance(y, np.ndarray) and y.dtype.kind not in "OUS":
        return None
    entries = _checks.listed("y", y, "gains or references for each list")
    if not entries:
        return None
    if all(isinstance(one, str) for one in entries):
        return [(one,) for one in entries]
    if all(isinstance(one, (list, tuple)) and one and all(isinstance(text, str) for text in one) for one in entries):
        return [tuple(one) for one in entries]
    return None


def _flat(y: Any, lists: NBestLists) -> FloatArray:
    """The gains of all hypotheses, one after the other."""
    y = _checks.listed("y", y, "gains of the hypotheses of each list")
    if len(y) != len(lists):
        raise ValueError(f"X has {len(lists)} lists but y has {len(y)} entries: give gains or references for each list")
    pieces = []
    for index, (one, size) in enumerate(zip(y, lists.sizes.tolist(), strict=True)):
        gains = checks.array(one, index, "y", "biuf", "gains, one per hypothesis")
        if gains.shape != (size,):
            raise ValueError(f"example {index}: y has shape {gains.shape} for {size} hypotheses; give a gain for each")
        pieces.append(gains)
    return np.concatenate(pieces).astype(np.float64)

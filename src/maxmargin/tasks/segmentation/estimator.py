"""Segmenter and ScanSegmenter: scikit-learn estimators for segmentation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.segmentation.encoder.segmentation import SegmentationEncoder
from maxmargin.tasks.segmentation.model import SegmenterModel
from maxmargin.tasks.segmentation.training import StageSettings, train_segmenter
from maxmargin.training import Settings


class _Segmenting(BaseEstimator, ABC):  # type: ignore[misc]
    """What both estimators share."""

    model_: SegmenterModel
    n_jobs: int | None
    verbose: bool

    @abstractmethod
    def _encoder(self) -> SegmentationEncoder:
        """The encoder that has not been fitted."""

    def fit(
        self, X: Sequence[Any], y: Sequence[Any], *, dev: tuple[Sequence[Any], Sequence[Any]] | None = None
    ) -> Self:
        """Train.

        Args:
            X: images or scans, one per example.
            y: for each an array of integers, the label of each pixel or point; ``void`` where it has none.
            dev: held-out examples ``(X, y)`` that choose the stopping point, and C if there are several.
        """
        settings, stages = self._chosen(Settings), self._chosen(StageSettings)
        model = train_segmenter(self._encoder(), X, y, settings, stages, dev=dev)
        assert model.training is not None
        self.model_, self.solution_ = model, model.training.solution
        self.dev_scores_ = model.training.dev_scores
        return self

    def _chosen(self, kind: Any, **given: Any) -> Any:
        """The settings of a kind: those given, and others that this estimator has."""
        own = {
            field.name: getattr(self, field.name) for field in fields(kind) if field.init and hasattr(self, field.name)
        }
        return kind(**{**own, **given})

    def _model(self) -> SegmenterModel:
        check_is_fitted(self, "model_")
        return replace(self.model_, n_jobs=self.n_jobs)

    @property
    def classes_(self) -> list[int]:
        """The labels, in the order of the columns of probabilities."""
        return list(self._model().encoder.classes or ())

    @property
    def coef_(self) -> FloatArray:
        """The weights of nodes and edges, shape ``(n_weights,)``."""
        return self._model().weights

    def predict(self, X: Sequence[Any], *, seeds: Sequence[Any] | None = None) -> list[IntArray]:
        """The label of every pixel or point; see :meth:`SegmenterModel.predict`."""
        return self._model().predict(X, seeds=seeds)

    def predict_proba(self, X: Sequence[Any]) -> list[FloatArray]:
        """The class probabilities of every pixel or point; see :meth:`SegmenterModel.predict_proba`."""
        return self._model().predict_proba(X)

    def score(self, X: Sequence[Any], y: Sequence[Any], sample_weight: Any = None) -> float:
        """The share of labeled pixels or points that are right."""
        return self._model().score(X, y, sample_weight)

    def save(self, path: str | Path) -> None:
        """Write the model to a file that :func:`maxmargin.load` reads."""
        self._model().save(path)

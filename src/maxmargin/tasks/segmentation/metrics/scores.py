"""Scores of predicted labels of pixels or points.

With n_ab the pixels of class a that are predicted as b:

- error: share of pixels with a wrong label, 1 - sum_a n_aa / sum_ab n_ab; ``image_error``: the mean of the images' own;
- recall (accuracy of a class) of a: n_aa / sum_b n_ab; precision: n_aa / sum_b n_ba;
- IoU of a: n_aa / (sum_b n_ab + sum_b n_ba - n_aa), also called the Jaccard index; ``mean_iou`` is the mean over the
  classes that occur in the gold or the predicted labels;
- boundary F: see :mod:`maxmargin.tasks.segmentation.metrics.boundaries`; the mean over images.

Sums are over all images, so that large images count more. Pixels whose gold label is void (-1) do not count; those with
a predicted label of -1 count as wrong. A rate without anything to count is NaN. Intervals resample images.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin._sparse import sp
from maxmargin.structures._arrays import array_of
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.common import resampling
from maxmargin.tasks.common.resampling import Comparison, Interval
from maxmargin.tasks.segmentation.metrics.boundaries import boundary_scores


@dataclass(frozen=True, eq=False)
class Scores:
    """Counts of labels over images or scans, and the rates that follow; the module has the definitions.

    Attributes:
        names: the classes.
        images: the images or scans.
        counts: for each image how many pixels of class a are predicted as b, shape ``(images, classes, classes + 1)``;
            in the last column those without a predicted class.
        boundary: for each image and class precision, recall and F of boundaries, shape ``(images, classes, 3)``; NaN
            where there is no boundary; None for scans.
        unit: ``pixel`` or ``point``.
    """

    names: tuple[str, ...]
    images: tuple[str, ...]
    counts: IntArray = field(repr=False)
    boundary: FloatArray | None = field(default=None, repr=False)
    unit: str = "pixel"

    @property
    def confusion(self) -> IntArray:
        """How many pixels of class a are predicted as b, shape ``(classes, classes + 1)``."""
        return np.asarray(self.counts.sum(axis=0))

    @property
    def total(self) -> int:
        """The number of pixels with a gold label."""
        return int(self.counts.sum())

    @property
    def error(self) -> float:
        """Share of pixels with a wrong label."""
        return 1.0 - _ratio(float(np.trace(self.confusion)), float(self.total))

    @property
    def image_errors(self) -> FloatArray:
        """The error of each image; NaN without gold labels."""
        right = np.trace(self.counts, axis1=1, axis2=2)
        return 1.0 - _ratios(right, self.counts.sum(axis=(1, 2)))

    @property
    def image_error(self) -> float:
        """Mean of the images' errors."""
        return _mean(self.image_errors)

    @property
    def recall(self) -> FloatArray:
        """Accuracy of each class: the share of its pixels that are found."""
        return _ratios(_diagonal(self.confusion), self.confusion.sum(axis=1))

    @property
    def precision(self) -> FloatArray:
        """For each class the share of the pixels predicted as it that belong to it."""
        return _ratios(_diagonal(self.confusion), self.confusion[:, :-1].sum(axis=0))

    @property
    def iou(self) -> FloatArray:
        """Intersection over union of each class."""
        return _iou(self.confusion)

    @property
    def mean_iou(self) -> float:
        """Mean of the IoU of the classes that occur."""
        return _mean(self.iou)

    @property
    def image_ious(self) -> FloatArray:
        """IoU of each class in each image, shape ``(images, classes)``."""
        return np.stack([_iou(one) for one in self.counts]) if len(self.counts) else np.zeros((0, len(self.names)))

    @property
    def image_boundary_f(self) -> FloatArray:
        """Boundary F of each image: the mean over its classes; NaN for scans and images without boundaries."""
        if self.boundary is None:
            return np.full(len(self.images), np.nan)
        return _means(self.boundary[:, :, 2])

    @property
    def boundary_f(self) -> float:
        """Mean of the images' boundary F."""
        return _mean(self.image_boundary_f)

    @property
    def class_boundary_f(self) -> FloatArray:
        """Mean of the boundary F of each class over images."""
        if self.boundary is None:
            return np.full(len(self.names), np.nan)
        return _means(self.boundary[:, :, 2].T)

    def per_image(self) -> list[dict[str, Any]]:
        """Return the scores of each image as plain values, the worst first."""
        errors, ious, boundary = self.image_errors, self.image_ious, self.image_boundary_f
        order = np.argsort(-np.where(np.isnan(errors), -1.0, errors), kind="stable")
        rows = []
        for at in order.tolist():
            row: dict[str, Any] = {
                "image": self.images[at],
                f"{self.unit}s": int(self.counts[at].sum()),
                "error": _plain(errors[at]),
                "mean_iou": _plain(_mean(ious[at])),
                "iou": dict(zip(self.names, map(_plain, ious[at]), strict=True)),
            }
            if self.boundary is not None:
                row["boundary_f"] = _plain(boundary[at])
            rows.append(row)
        return rows

    def as_dict(self) -> dict[str, Any]:
        """Return rates and counts as plain values for JSON; rates without anything to count are None."""
        columns = {"recall": self.recall, "precision": self.precision, "iou": self.iou}
        if self.boundary is not None:
            columns["boundary_f"] = self.class_boundary_f
        classes = {
            name: {
                **{rate: _plain(values[at]) for rate, values in columns.items()},
                f"{self.unit}s": int(self.confusion[at].sum()),
                f"predicted_{self.unit}s": int(self.confusion[:, at].sum()),
            }
            for at, name in enumerate(self.names)
        }
        rates: dict[str, Any] = {
            "error": _plain(self.error),
            "image_error": _plain(self.image_error),
            "mean_iou": _plain(self.mean_iou),
        }
        if self.boundary is not None:
            rates["boundary_f"] = _plain(self.boundary_f)
        return {
            **rates,
            "images": len(self.images),
            f"{self.unit}s": self.total,
            "classes": classes,
            "confusion": self.confusion[:, :-1].tolist(),
            "without_class": int(self.confusion[:, -1].sum()),
        }


def evaluate(
    gold: Iterable[IntArray],
    predicted: Iterable[IntArray],
    names: Sequence[str],
    *,
    images: Sequence[str] | None = None,
    boundaries: bool = True,
    unit: str = "pixel",
) -> Scores:
    """Return the scores of predicted labels; the labels may come from generators, so that one image is in memory.

    Args:
        gold: for each image or scan the class of each pixel or point, -1 for none.
        predicted: the predicted classes in arrays of the same shapes.
        names: the classes.
        images: the names of the images; None numbers them from 1.
        boundaries: whether to compare boundaries, which only images have.
        unit: ``pixel`` or ``point``.
    """
    names = _checks.listed("names", names, "a list of names of the classes")
    images = None if images is None else _checks.listed("images", images, "a list of names of the images")
    if not all(isinstance(name, str) for name in (*names, *(images or ()))):
        raise ValueError("names of classes and images must be strings")
    _checks.flag("boundaries", boundaries)
    for what, side in (("gold", gold), ("predicted", predicted)):
        if not hasattr(side, "__iter__") or isinstance(side, str | bytes | dict) or sp.issparse(side):
            raise ValueError(f"{what} must be arrays of classes, one per image, got {shown(side)}")
    k = len(names)
    counts: list[IntArray] = []
    found: list[FloatArray] = []
    for at, (right, given) in enumerate(zip_longest(gold, predicted)):
        if right is None or given is None:
            raise ValueError(f"gold or predicted ends after {at} images; give as many of both")
        if images is not None and at >= len(images):
            raise ValueError(f"{len(images)} names for more images; give a name for each")
        name = f"{images[at]:.200}" if images is not None else str(at + 1)
        right, given = _checked(right, k, f"{name}, gold"), _checked(given, k, f"{name}, predicted")
        if right.shape != given.shape:
            raise ValueError(f"{name}: {right.shape} gold labels and {given.shape} predicted ones; give equal shapes")
        counts.append(count_labels(right, given, k))
        if boundaries:
            found.append(boundary_scores(right, given, k))
    listed = tuple(images) if images is not None else tuple(str(at + 1) for at in range(len(counts)))
    if len(listed) != len(counts):
        raise ValueError(f"{len(listed)} names and {len(counts)} images; give a name for each")
    table = np.stack(counts) if counts else np.zeros((0, k, k + 1), dtype=np.int64)
    rates = (np.stack(found) if found else np.zeros((0, k, 3))) if boundaries else None
    return Scores(tuple(names), listed, table, rates, unit)


def joined(several: Sequence[Scores]) -> Scores:
    """Return the scores of the images of several scores with the same classes."""
    if not several:
        raise ValueError("no scores; give some")
    first = several[0]
    if any((one.names, one.unit) != (first.names, first.unit) for one in several):
        raise ValueError("scores of different classes or units; give those of the same")
    counts = np.concatenate([one.counts for one in several])
    parts = [one.boundary for one in several if one.boundary is not None]
    boundary = np.concatenate(parts) if len(parts) == len(several) else None
    return Scores(first.names, tuple(name for one in several for name in one.images), counts, boundary, first.unit)


def count_labels(gold: IntArray, predicted: IntArray, n_classes: int) -> IntArray:
    """Return how many pixels of class a are predicted as b, shape ``(n_classes, n_classes + 1)``."""
    keep = gold >= 0
    columns = n_classes + 1
    predictions = np.where(predicted[keep] < 0, n_classes, predicted[keep])
    keys = gold[keep].astype(np.int64) * columns + predictions
    return np.bincount(keys, minlength=n_classes * columns).reshape(n_classes, columns).astype(np.int64)


def _checked(labels: IntArray, n_classes: int, where: str) -> IntArray:
    labels = array_of(labels, f"{where}: labels", "ui", "integers")
    low, high = int(labels.min(initial=0)), int(labels.max(initial=0))
    if low < -1 or high >= n_classes:
        raise ValueError(f"{where}: labels from {low} to {high}; give -1 to {n_classes - 1}")
    return labels


def error_interval(scores: Scores, **settings: Any) -> Interval:
    """Return a bootstrap interval of the error; ``settings`` are those of :func:`resampling.interval`."""
    return resampling.interval(_total_and_right(scores), _error_rate, **settings)


def iou_interval(scores: Scores, **settings: Any) -> Interval:
    """Return a bootstrap interval of the mean IoU."""
    return resampling.mean_interval(_union_and_intersection(scores), _share, **settings)


def class_iou_intervals(scores: Scores, **settings: Any) -> list[Interval]:
    """Return a bootstrap interval of the IoU of each class; NaN for classes that do not occur."""
    return [resampling.mean_interval([counts], _share, **settings) for counts in _union_and_intersection(scores)]


def boundary_interval(scores: Scores, **settings: Any) -> Interval:
    """Return a bootstrap interval of the mean boundary F of images."""
    rates = scores.image_boundary_f
    known = np.isfinite(rates)
    statistics = np.stack([known, np.where(known, rates, 0.0)], axis=1)
    return resampling.mean_interval([statistics], _share, **settings)


def compare_scores(first: Scores, second: Scores, **settings: Any) -> Comparison:
    """Compare the errors of two systems on the same images; below 0 the second is better."""
    if first.images != second.images:
        raise ValueError("the two systems have labels of different images; give the same")
    return resampling.compare(_total_and_right(first), _total_and_right(second), _error_rate, **settings)


def _total_and_right(scores: Scores) -> IntArray:
    right = np.trace(scores.counts, axis1=1, axis2=2)
    return np.stack([scores.counts.sum(axis=(1, 2)), right], axis=1).astype(np.int64)


def _union_and_intersection(scores: Scores) -> list[IntArray]:
    counts = scores.counts
    both = np.einsum("naa->na", counts[:, :, :-1])
    union = counts.sum(axis=2) + counts[:, :, :-1].sum(axis=1) - both
    return [np.stack([union[:, at], both[:, at]], axis=1) for at in range(len(scores.names))]


def _error_rate(sums: FloatArray) -> FloatArray:
    total, right = sums[..., 0], sums[..., 1]
    return np.where(total > 0, 1.0 - right / np.maximum(total, 1.0), 0.0)


def _share(sums: FloatArray) -> FloatArray:
    total, hits = sums[..., 0], sums[..., 1]
    return np.where(total > 0, hits / np.maximum(total, 1.0), np.nan)


def _diagonal(confusion: IntArray) -> IntArray:
    return np.diagonal(confusion[:, :-1])


def _iou(confusion: IntArray) -> FloatArray:
    both = _diagonal(confusion)
    return _ratios(both, confusion.sum(axis=1) + confusion[:, :-1].sum(axis=0) - both)


def _ratios(hits: IntArray, total: IntArray) -> FloatArray:
    return _share(np.stack([total, hits], axis=-1).astype(np.float64))


def _ratio(hits: float, total: float) -> float:
    return hits / total if total else float("nan")


def _mean(values: FloatArray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else float("nan")


def _means(rows: FloatArray) -> FloatArray:
    return np.array([_mean(row) for row in rows])


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None

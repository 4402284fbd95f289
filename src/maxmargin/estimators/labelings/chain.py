"""Sequences."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Unpack

from maxmargin.encoders.base import Encoder
from maxmargin.encoders.labelings.chain import ChainEncoder
from maxmargin.estimators.base import SettingsArguments, takes_settings
from maxmargin.estimators.labelings.labeled import LabeledSVM
from maxmargin.features.kernel import Kernel


class ChainSVM(LabeledSVM):
    """Sequences with a label per position.

    Score of labels ``y``: ``sum_t W[:, y_t]'x_t + sum_t T[y_{t-1}, y_t]``, plus ``sum_t V[:, y_{t-1}, y_t]'e_t`` where
    edge features ``e_t`` are given, or ``sum_t U[y_{t-2}, y_{t-1}, y_t]`` with ``order=2``. ``coef_`` holds ``W``,
    ``T``, then ``V`` or ``U``, row-major. X: list of ``(length, d)`` dense or CSR matrices or
    :class:`maxmargin.FeatureSequence`; y: list of label sequences of any hashable labels.

    Args:
        classes: all labels, where training data may lack some; None takes those of the training data.
        order: 1, or 2 for scores of three labels in a row (without edge features): ``K`` times the time, and
            ``K^3`` more weights.
        features: a :class:`maxmargin.features.Kernel` in place of explicit features of positions; those of edges stay
            linear. ``coef_`` then begins with dual coefficients, shape ``(n_support, K)``, in place of ``W``.

    The other arguments are those of :class:`StructuredSVM`. ``classes_`` lists the labels after fitting.
    """

    @takes_settings
    def __init__(
        self,
        *,
        classes: Sequence[Hashable] | None = None,
        order: int = 1,
        features: Kernel | None = None,
        **settings: Unpack[SettingsArguments],
    ) -> None:
        self.classes = classes
        self.order = order
        self.features = features

    def _encoder(self) -> Encoder:
        return ChainEncoder(self._classes(), kernel=self.features, order=self.order)

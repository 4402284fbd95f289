"""Sequences."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from maxmargin.estimators.base import StructuredSVM, takes_settings
from maxmargin.packing.base import Packer
from maxmargin.packing.chain import ChainPacker
from maxmargin.packing.labels import distinct


class ChainSVM(StructuredSVM):
    """Sequences with a label per position.

    Score of labels ``y``: ``sum_t W[:, y_t]'x_t + sum_t T[y_{t-1}, y_t]``, plus ``sum_t V[:, y_{t-1}, y_t]'e_t`` where
    edge features ``e_t`` are given. X: list of ``(length, d)`` dense or CSR matrices or :class:`maxmargin.Sequence`;
    y: list of label sequences of any hashable labels.

    Args:
        classes: all labels, where training data may lack some; None takes those of the training data.

    The other arguments are those of :class:`StructuredSVM`. ``classes_`` lists the labels after fitting.
    """

    @takes_settings
    def __init__(self, *, classes: Sequence[Hashable] | None = None, **settings: Any) -> None:
        super().__init__(None, **settings)
        self.classes = classes

    def _packer(self) -> Packer:
        return ChainPacker(None if self.classes is None else distinct(self.classes))

    @property
    def classes_(self) -> tuple[Hashable, ...]:
        """All labels, in the order of the weights' columns."""
        return self._model().classes_

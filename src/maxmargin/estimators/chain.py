"""Sequences."""

from __future__ import annotations

from maxmargin.estimators.labelled import LabelledSVM
from maxmargin.packing.base import Packer
from maxmargin.packing.chain import ChainPacker


class ChainSVM(LabelledSVM):
    """Sequences with a label per position.

    Score of labels ``y``: ``sum_t W[:, y_t]'x_t + sum_t T[y_{t-1}, y_t]``, plus ``sum_t V[:, y_{t-1}, y_t]'e_t`` where
    edge features ``e_t`` are given. X: list of ``(length, d)`` dense or CSR matrices or :class:`maxmargin.Sequence`;
    y: list of label sequences of any hashable labels.

    Args:
        classes: all labels, where training data may lack some; None takes those of the training data.

    The other arguments are those of :class:`StructuredSVM`. ``classes_`` lists the labels after fitting.
    """

    def _packer(self) -> Packer:
        return ChainPacker(self._classes())

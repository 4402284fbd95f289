"""Bases of the estimators with a label per position or node."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Unpack

from maxmargin.encoders.data.labels import distinct
from maxmargin.estimators.base import SettingsArguments, StructuredSVM, takes_settings
from maxmargin.models.base import Relaxation


class LabeledSVM(StructuredSVM):
    """Base of the estimators whose positions or nodes have one label each."""

    @takes_settings
    def __init__(self, *, classes: Sequence[Hashable] | None = None, **settings: Unpack[SettingsArguments]) -> None:
        self.classes = classes

    def _classes(self) -> tuple[Hashable, ...] | None:
        """``classes``, checked."""
        found = None if self.classes is None else distinct(self.classes)
        if found is not None and None in found:
            raise ValueError("classes holds None, which stands for an unknown label; leave it out")
        return found

    @property
    def classes_(self) -> tuple[Hashable, ...]:
        """All labels, in the order of the weights' columns."""
        return self._model().classes_


class NetworkSVM(LabeledSVM):
    """Base of the estimators that label the nodes of graphs by a linear relaxation."""

    def relaxation(self, X: Sequence[Any]) -> list[Relaxation]:
        """For each example its labels, and what the relaxation says of them; see :meth:`maxmargin.Model.relaxation`."""
        return self._model().relaxation(X)

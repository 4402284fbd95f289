"""What estimators over labelled graphs share."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from maxmargin.estimators.base import StructuredSVM
from maxmargin.model import Relaxation


class NetworkSVM(StructuredSVM):
    """Labels of graphs' nodes by a linear relaxation: settings and methods of the named ones."""

    @property
    def classes_(self) -> tuple[Hashable, ...]:
        """All labels, in the order of the weights' columns."""
        return self._model().classes_

    def relaxation(self, X: Sequence[Any]) -> list[Relaxation]:
        """For each example its labels, and what the relaxation says of them; see :meth:`maxmargin.Model.relaxation`."""
        return self._model().relaxation(X)

"""Binary labellings of graphs whose neighbours tend to agree."""

from __future__ import annotations

from typing import Any

from maxmargin.estimators.base import StructuredSVM, takes_settings
from maxmargin.packing.base import Packer
from maxmargin.packing.cut import CutPacker


class CutSVM(StructuredSVM):
    """Binary labellings of graphs whose neighbours tend to agree, for example segmentations.

    Score of labels ``y``: ``sum_j y_j w_n'x_j - sum_jk [y_j != y_k] w_e'x_jk`` with ``w_e >= 0``, so that the best
    labelling is a minimum cut. X: list of :class:`maxmargin.Graph`; y: list of 0/1 arrays. ``coef_`` holds the node
    weights, then the edge weights. Add a constant column to the node features for a bias.

    The arguments are those of :class:`StructuredSVM`.
    """

    @takes_settings
    def __init__(self, **settings: Any) -> None:
        super().__init__(None, **settings)

    def _packer(self) -> Packer:
        return CutPacker()

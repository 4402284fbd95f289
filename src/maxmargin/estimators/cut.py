"""Binary labelings of graphs whose neighbors tend to agree."""

from __future__ import annotations

from typing import Unpack

from maxmargin.encoders.base import Encoder
from maxmargin.encoders.cut import CutEncoder
from maxmargin.estimators.base import SettingsArguments, StructuredSVM, takes_settings
from maxmargin.features.kernel import Kernel
from maxmargin.structures.base import FloatArray


class CutSVM(StructuredSVM):
    """Binary labelings of graphs whose neighbors tend to agree, for example segmentations.

    Score of labels ``y``: ``sum_j y_j w_n'x_j - sum_jk [y_j != y_k] w_e'x_jk`` with ``w_e >= 0``, so that the best
    labeling is a minimum cut. X: list of :class:`maxmargin.Graph`; y: list of 0/1 arrays. ``coef_`` holds the node
    weights, then the edge weights. Add a constant column to the node features for a bias.

    Where graphs have ``cliques``, a clique ``c`` whose labels are all alike adds ``w_c'x_c`` with ``w_c >= 0``, the
    P^n Potts model; ``coef_`` goes on with ``w_c``. The best labeling is still a minimum cut.

    Args:
        potentials: "potts" as above, or "regular": an edge scores ``w_{y_j y_k}'x_jk`` with four weight sets,
            ``w00 + w11 >= w01 + w10``, where ``j`` is the first node of the edge as given; scores are relative to that
            of labeling all nodes 0. ``coef_`` then holds the node weights and the orthonormal coordinates
            ``(w11 + w10 - w00 - w01) / 2``, ``(w11 + w01 - w00 - w10) / 2``, ``(w00 + w11 - w01 - w10) / 2 >= 0``.
            A clique scores ``u_0'x_c`` if all its labels are 0, ``u_1'x_c`` if all are 1, with ``u >= 0`` of shape
            ``(d_c, 2)`` at the end of ``coef_``: cliques of three nodes, and edges between them, give all regular
            functions of three labels.
        features: a :class:`maxmargin.features.Kernel` in place of explicit *node* features; edge features stay linear
            (also where regular potentials let nodes see them), as their signs have no kernel form. ``coef_`` then
            begins with dual coefficients instead of node weights.

    The other arguments are those of :class:`StructuredSVM`.
    """

    @takes_settings
    def __init__(
        self, *, potentials: str = "potts", features: Kernel | None = None, **settings: Unpack[SettingsArguments]
    ) -> None:
        self.potentials = potentials
        self.features = features

    def _encoder(self) -> Encoder:
        return CutEncoder(potentials=self.potentials, kernel=self.features)

    @property
    def regular_weights_(self) -> FloatArray:
        """The edges' weights for the labels 00, 01, 10 and 11 of their ends, shape ``(4, d_e)``."""
        model = self._model()
        assert isinstance(model.encoder, CutEncoder)
        return model.encoder.regular_weights(model.weights)

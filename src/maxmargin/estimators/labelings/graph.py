"""Labelings of general graphs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Unpack

from maxmargin.encoders.base import Encoder
from maxmargin.encoders.labelings.graph import GraphEncoder
from maxmargin.estimators.base import SettingsArguments, takes_settings
from maxmargin.estimators.labelings.labeled import NetworkSVM
from maxmargin.features.kernel import Kernel


class GraphSVM(NetworkSVM):
    """Labels of the nodes of graphs of any shape, with any score for the pair of labels at an edge.

    Score of labels ``y``: ``sum_i W[:, y_i]'x_i + sum_ij T[y_i, y_j]``, plus ``sum_ij V[:, y_i, y_j]'x_ij`` where edge
    features ``x_ij`` are given, over edges ``(i, j)`` in the direction as given. X: list of :class:`maxmargin.Graph`
    (edge features of any sign, or None); y: list of label sequences of any hashable labels. ``coef_`` holds
    ``W (d, K)``, then ``T (K, K)``, then ``V (d_e, K, K)``.

    Training and certificate are those of the local-polytope relaxation: exact on trees, and with two labels where
    equal labels attract; elsewhere the relaxed hinge loss is an upper bound of the true one. ``predict`` gives
    labels of the best score where the relaxation is tight, and good ones elsewhere: ``relaxation`` says which.

    Args:
        classes: all labels, where training data may lack some; None takes those of the training data.
        features: a :class:`maxmargin.features.Kernel` in place of explicit features of nodes; those of edges stay
            linear. ``coef_`` then begins with dual coefficients, shape ``(n_support, K)``, in place of ``W``.

    The other arguments are those of :class:`StructuredSVM`. ``classes_`` lists the labels after fitting.
    """

    @takes_settings
    def __init__(
        self,
        *,
        classes: Sequence[Hashable] | None = None,
        features: Kernel | None = None,
        **settings: Unpack[SettingsArguments],
    ) -> None:
        self.classes = classes
        self.features = features

    def _encoder(self) -> Encoder:
        return GraphEncoder(self._classes(), kernel=self.features)

"""Trees, forests and graphs of small width."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Unpack

from maxmargin.encoders.base import Encoder
from maxmargin.encoders.labelings.tree import TreeEncoder
from maxmargin.estimators.base import SettingsArguments, takes_settings
from maxmargin.estimators.labelings.labeled import LabeledSVM
from maxmargin.features.kernel import Kernel


class TreeSVM(LabeledSVM):
    """Trees and forests with a label per node, and other graphs of small tree width.

    Score of labels ``y``: ``sum_v W[:, y_v]'x_v + sum_uv T[y_u, y_v]`` over nodes ``v`` and edges ``(u, v)``, plus
    ``sum_uv V[:, y_u, y_v]'e_uv`` where edge features ``e_uv`` are given; ``u`` is the first end of an edge as it was
    given, ``v`` the second. ``coef_`` holds ``W``, ``T``, ``V``, row-major. X: list of :class:`maxmargin.Graph`, whose
    ``labels`` may say which labels a node can have; y: list of label sequences of any hashable labels, one per node.

    Where graphs have ``cliques``, a clique of nodes ``v_1 .. v_s`` adds ``T_s[y_{v_1}, ..., y_{v_s}]``, plus
    ``V_s[:, y_{v_1}, ..., y_{v_s}]'f`` where it has features ``f``: one table per number of nodes. ``coef_`` then goes
    on with ``T_s``, ``V_s`` for each ``s``, rising.

    Everything is exact: graphs with cycles go through a junction tree, at a price of ``K^(width + 1)`` per node.

    Args:
        classes: all labels, where training data may lack some; None takes those of the training data.
        width: largest tree width of a graph that is accepted: 1 for forests only, None for any whose clusters have at
            most 100,000 joint labels.
        features: a :class:`maxmargin.features.Kernel` in place of explicit features of nodes; edges and cliques
            stay linear. ``coef_`` then begins with dual coefficients, shape ``(n_support, K)``, in place of ``W``.

    The other arguments are those of :class:`StructuredSVM`. ``classes_`` lists the labels after fitting.
    """

    @takes_settings
    def __init__(
        self,
        *,
        classes: Sequence[Hashable] | None = None,
        width: int | None = None,
        features: Kernel | None = None,
        **settings: Unpack[SettingsArguments],
    ) -> None:
        self.classes = classes
        self.width = width
        self.features = features

    def _encoder(self) -> Encoder:
        return TreeEncoder(self._classes(), kernel=self.features, width=self.width)

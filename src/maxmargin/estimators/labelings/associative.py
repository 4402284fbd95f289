"""Labelings of graphs whose neighbors tend to agree, with any number of labels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Unpack

from maxmargin._checks import flag
from maxmargin.encoders.base import Encoder
from maxmargin.encoders.labelings.associative import AssociativeEncoder
from maxmargin.estimators.base import SettingsArguments, takes_settings
from maxmargin.estimators.labelings.labeled import NetworkSVM
from maxmargin.features.kernel import Kernel


class AssociativeSVM(NetworkSVM):
    """Labels of the nodes of graphs whose neighbors tend to have the same label (associative Markov networks).

    Score of labels ``y``: ``sum_i W[:, y_i]'x_i + sum_ij [y_i = y_j] V[:, y_i]'x_ij`` with ``V >= 0`` and edge features
    ``x_ij >= 0``. X: list of :class:`maxmargin.Graph` (without edge features every edge has the one feature 1); y: list
    of label sequences of any hashable labels. ``coef_`` holds ``W (d, K)``, then ``V (d_e, K)`` or ``(d_e,)``.

    Where graphs have ``cliques``, a clique ``c`` whose nodes all have label ``l`` adds ``U[:, l]'x_c`` with ``U >= 0``
    and clique features ``x_c >= 0`` (without them every clique has the one feature 1); ``coef_`` goes on with
    ``U (d_c, K)`` or ``(d_c,)``.

    With two labels training is exact. With more, training and certificate are those of the linear relaxation of Taskar,
    Chatalbashev and Koller (2004), whose hinge loss is an upper bound of the true one, and ``predict`` searches by
    expansion moves; ``relaxation`` says where its labels are known to be the best.

    Args:
        classes: all labels, where training data may lack some; None takes those of the training data.
        per_label: whether each label has edge and clique weights of its own; False ties them (P^n Potts).
        features: a :class:`maxmargin.features.Kernel` in place of explicit features of nodes; those of edges
            and cliques stay linear. ``coef_`` then begins with dual coefficients, shape ``(n_support, K)``, in place of
            ``W``.

    The other arguments are those of :class:`StructuredSVM`. ``classes_`` lists the labels after fitting.
    """

    @takes_settings
    def __init__(
        self,
        *,
        classes: Sequence[Hashable] | None = None,
        per_label: bool = True,
        features: Kernel | None = None,
        **settings: Unpack[SettingsArguments],
    ) -> None:
        self.classes = classes
        self.per_label = per_label
        self.features = features

    def _encoder(self) -> Encoder:
        return AssociativeEncoder(self._classes(), kernel=self.features, per_label=flag("per_label", self.per_label))

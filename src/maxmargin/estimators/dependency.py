"""Dependency trees."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Unpack

from maxmargin.encoders.base import Encoder
from maxmargin.encoders.dependency import DependencyEncoder
from maxmargin.estimators.base import SettingsArguments, takes_settings
from maxmargin.estimators.labelings.labeled import LabeledSVM
from maxmargin.features.kernel import Kernel


class DependencySVM(LabeledSVM):
    """Dependency trees over the tokens of sentences: every token has a head, another token or the root, 0.

    Score of a tree: ``sum (w + W[:, l])'x_hm`` over its arcs from head ``h`` to modifier ``m`` with label ``l``, and
    with ``order=2`` also ``u's_hkm`` over neighboring modifiers ``k, m`` of a head and ``v'g_khm`` over heads of heads.
    ``coef_`` holds ``w``, ``W`` row-major (if there are several labels), ``u`` and ``v``. X: list of
    :class:`maxmargin.Sentence`, or of ``(n^2, d)`` matrices, one row per arc by modifier and then by head; y: for each
    sentence the heads, shape ``(n,)``, or a pair ``(heads, labels)``. Predictions are of the same form. ``score`` is
    the share of tokens with the right head (and label): attachment score.

    Args:
        projective: whether arcs must not cross; else all trees.
        single_root: whether exactly one token is below the root.
        order: 1 for arcs, 2 for siblings and grandparents too (projective trees).
        classes: all labels, where training data may lack some; None takes those of the training data.
        features: a :class:`maxmargin.features.Kernel` in place of explicit features of arcs; those of second order stay
            linear. ``coef_`` then begins with dual coefficients of the support arcs.

    The other arguments are those of :class:`StructuredSVM`. ``classes_`` lists the labels after fitting.
    """

    @takes_settings
    def __init__(
        self,
        *,
        projective: bool = True,
        single_root: bool = True,
        order: int = 1,
        classes: Sequence[Hashable] | None = None,
        features: Kernel | None = None,
        **settings: Unpack[SettingsArguments],
    ) -> None:
        self.projective = projective
        self.single_root = single_root
        self.order = order
        self.classes = classes
        self.features = features

    def _encoder(self) -> Encoder:
        return DependencyEncoder(self.projective, self.single_root, self.order, self._classes(), kernel=self.features)

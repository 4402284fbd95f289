"""Bipartite matchings."""

from __future__ import annotations

from typing import Unpack

from maxmargin.encoders.base import Encoder
from maxmargin.encoders.matchings.matching import MatchingEncoder
from maxmargin.estimators.base import SettingsArguments, StructuredSVM, takes_settings
from maxmargin.features.kernel import Kernel


class MatchingSVM(StructuredSVM):
    """Bipartite matchings, for example word alignments.

    Score of a matching: the sum of ``w'x_jk`` over its links. X: list of ``(n_left, n_right, d)`` arrays, or
    :class:`maxmargin.Bipartite` for pruned links; y: list of ``(k, 2)`` integer arrays of matched pairs.

    Args:
        left_capacity: how many links a left node may have.
        right_capacity: how many links a right node may have.
        features: a :class:`maxmargin.features.Kernel` in place of explicit link features; ``coef_`` then holds the dual
            coefficients of the support links.

    The other arguments are those of :class:`StructuredSVM`.
    """

    @takes_settings
    def __init__(
        self,
        *,
        left_capacity: int = 1,
        right_capacity: int = 1,
        features: Kernel | None = None,
        **settings: Unpack[SettingsArguments],
    ) -> None:
        self.left_capacity = left_capacity
        self.right_capacity = right_capacity
        self.features = features

    def _encoder(self) -> Encoder:
        return MatchingEncoder(self.left_capacity, self.right_capacity, kernel=self.features)

"""Pairings: matchings of any graph."""

from __future__ import annotations

from typing import Unpack

from maxmargin.encoders.base import Encoder
from maxmargin.encoders.matchings.pairing import PairingEncoder
from maxmargin.estimators.base import SettingsArguments, StructuredSVM, takes_settings
from maxmargin.features.kernel import Kernel


class PairingSVM(StructuredSVM):
    """Pairs of nodes of one set, each node in at most one: disulfide bonds, roommates, duplicate records.

    Score of a pairing: the sum of ``w'x_jk`` over its pairs. X: list of ``(n, n, d)`` arrays, of which the features of
    ``(j, k)`` with ``j < k`` are read, or :class:`maxmargin.PairGraph` for some pairs only; y: list of ``(k, 2)``
    integer arrays of paired nodes. Predictions are sorted, the lower node of a pair first; ``score`` is F1 over pairs.

    Args:
        perfect: whether every node has a partner.
        features: a :class:`maxmargin.features.Kernel` in place of explicit features; ``coef_`` then holds the dual
            coefficients of the support pairs.

    The other arguments are those of :class:`StructuredSVM`.
    """

    @takes_settings
    def __init__(
        self, *, perfect: bool = False, features: Kernel | None = None, **settings: Unpack[SettingsArguments]
    ) -> None:
        self.perfect = perfect
        self.features = features

    def _encoder(self) -> Encoder:
        return PairingEncoder(self.perfect, kernel=self.features)

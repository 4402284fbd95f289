"""Outputs that a linear program of the user describes."""

from __future__ import annotations

from typing import Unpack

from maxmargin.encoders.base import Encoder
from maxmargin.encoders.program import ProgramEncoder
from maxmargin.estimators.base import SettingsArguments, StructuredSVM, takes_settings


class ProgramSVM(StructuredSVM):
    """Choices of parts under linear constraints that come with each input.

    Score of a choice: the sum of ``z_p w'x_p`` over its parts. X: list of :class:`maxmargin.Program`; y: list of 0/1
    vectors (whole numbers, where ``upper`` allows more; then give a ``loss`` of your own, as Hamming loss counts 0/1
    decisions).

    Args:
        relaxed: False is the promise that all vertices of the programs are whole numbers. True says that they are not:
            training minimizes, and its certificate bounds, the hinge loss of the relaxation, which is no smaller than
            that of the whole outputs; prediction finds whole outputs by branch and bound.

    The other arguments are those of :class:`StructuredSVM`.
    """

    @takes_settings
    def __init__(self, *, relaxed: bool = False, **settings: Unpack[SettingsArguments]) -> None:
        self.relaxed = relaxed

    def _encoder(self) -> Encoder:
        return ProgramEncoder(self.relaxed)

"""Sequences cut into labeled segments."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Unpack

from maxmargin import _checks
from maxmargin.encoders.base import Encoder
from maxmargin.encoders.deductions.segments import Longest, SegmentEncoder
from maxmargin.estimators.base import SettingsArguments, takes_settings
from maxmargin.estimators.labelings.labeled import LabeledSVM
from maxmargin.features.kernel import Kernel


class SegmentSVM(LabeledSVM):
    """Sequences that are cut into labeled segments, scored as wholes (semi-Markov models).

    Score of a segmentation: the sum over its segments ``(b, e, y)`` of ``sum_t W[:, s_t]'x_t + D[e - b, y]``, plus
    ``V[:, y]'f_be`` where features ``f_be`` of segments are given, and ``T[y, y']`` for each segment of label ``y'``
    that follows one of label ``y``. The state ``s_t`` of a token is the label of its segment and its place there
    (``roles``). ``coef_`` holds ``W``, ``T``, ``D`` and ``V``, row-major. X: list of ``(length, d)`` dense or CSR
    matrices or :class:`maxmargin.SegmentSequence`; y: list of lists of segments ``(begin, end, label)`` with any
    hashable labels, as predictions are. The loss counts tokens whose state is wrong; ``score`` is F1 over segments.

    Args:
        classes: all labels, where training data may lack some; None takes those of the training data.
        longest: the most tokens of a segment: one number, a dictionary with one for some labels, or None for the
            longest of each label in the training data.
        roles: which tokens of a segment have weights ``W`` of their own: "I" none, "BI" the first, "BIES" the first,
            the last, and that of a segment of one token.
        outside: the label of tokens that are in no segment: y need not name them, and predictions do not. None:
            segments must cover all tokens.
        forbidden: pairs of labels that may not follow each other, ``("A", "B")``; ``(None, "B")`` forbids a label at
            the beginning, ``("A", None)`` at the end.
        features: a :class:`maxmargin.features.Kernel` in place of explicit features of tokens; those of segments stay
            linear. ``coef_`` then begins with dual coefficients, shape ``(n_support, n_states)``, in place of ``W``.

    The other arguments are those of :class:`StructuredSVM`. ``classes_`` lists the labels after fitting.
    """

    @takes_settings
    def __init__(
        self,
        *,
        classes: Sequence[Hashable] | None = None,
        longest: Longest = None,
        roles: str = "BI",
        outside: Hashable = None,
        forbidden: Iterable[tuple[Hashable, Hashable]] = (),
        features: Kernel | None = None,
        **settings: Unpack[SettingsArguments],
    ) -> None:
        self.classes = classes
        self.longest, self.roles, self.outside, self.forbidden = longest, roles, outside, forbidden
        self.features = features

    def _encoder(self) -> Encoder:
        pairs = _checks.listed("forbidden", self.forbidden, "a list of pairs of labels", sized=False)
        return SegmentEncoder(
            self._classes(), self.longest, self.roles, self.outside, tuple(pairs), kernel=self.features
        )

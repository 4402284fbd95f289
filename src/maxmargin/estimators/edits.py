"""Alignments of two sequences, and the distances they teach."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Unpack, cast

from maxmargin.edit_model import EditModel
from maxmargin.encoders.base import Encoder
from maxmargin.encoders.edits import EditEncoder
from maxmargin.estimators.base import SettingsArguments, StructuredSVM, takes_settings
from maxmargin.structures.base import FloatArray


class EditSVM(StructuredSVM):
    """Alignments of two sequences by pairs, deletions and insertions, for example a learned edit distance.

    The score of an alignment is the sum of the scores of its pairs of symbols, of the symbols in gaps and of the
    openings of gaps, each linear in features of the symbols they meet (docs/edit-distance.md). X: list of pairs of
    sequences, such as two strings, or :class:`maxmargin.SequencePair` with features of your own; y: for each pair an
    integer array ``(k, 2)`` of aligned positions ``(i, j)``, rising in both columns. Predictions are such arrays.
    ``score`` is F1 over pairs of positions; with ``nonmatches`` the share of right verdicts.

    Args:
        gaps: "affine", where the first symbol of a run of deletions or insertions also pays for opening the gap, or
            "linear".
        nonmatches: whether two sequences may also be no match, which y and predictions call False. The loss then
            counts wrong verdicts.
        symbols: whether to learn scores of symbols; without, features must come with the inputs.
        symmetric: whether both sequences share the weights, so that their order does not matter.
        context: whether symbols in gaps see the symbols before and after them.
        classes_of: classes of symbols that share weights, such as ``{"a": "vowel", "b": "consonant"}``; symbols that
            were not seen in training are known by them alone. None for none.
        min_count: symbols that occur less often in training are treated as unknown.

    The other arguments are those of :class:`StructuredSVM`.
    """

    @takes_settings
    def __init__(
        self,
        *,
        gaps: str = "affine",
        nonmatches: bool = False,
        symbols: bool = True,
        symmetric: bool = False,
        context: bool = True,
        classes_of: Mapping[Hashable, Hashable] | None = None,
        min_count: int = 1,
        **settings: Unpack[SettingsArguments],
    ) -> None:
        self.gaps = gaps
        self.nonmatches = nonmatches
        self.symbols = symbols
        self.symmetric = symmetric
        self.context = context
        self.classes_of = classes_of
        self.min_count = min_count

    def _encoder(self) -> Encoder:
        return EditEncoder(
            self.gaps, self.nonmatches, self.symbols, self.symmetric, self.context, self.classes_of, self.min_count
        )

    def _edits(self) -> EditModel:
        return cast(EditModel, self._model())

    def score_pairs(self, X: Sequence[Any]) -> FloatArray:
        """The score of the best alignment of each pair; see :meth:`maxmargin.EditModel.score_pairs`."""
        return self._edits().score_pairs(X)

    def match_scores(self, X: Sequence[Any]) -> FloatArray:
        """How much better an alignment is than no match; see :meth:`maxmargin.EditModel.match_scores`."""
        return self._edits().match_scores(X)

    def match_matrix(self, first: Sequence[Any], second: Sequence[Any]) -> FloatArray:
        """:meth:`match_scores` of all pairs of two lists; see :meth:`maxmargin.EditModel.match_matrix`."""
        return self._edits().match_matrix(first, second)

    def distance(self, X: Sequence[Any]) -> FloatArray:
        """The learned distance of each pair; see :meth:`maxmargin.EditModel.distance`."""
        return self._edits().distance(X)

    def distances(self, first: Sequence[Any], second: Sequence[Any]) -> FloatArray:
        """:meth:`distance` of all pairs of two lists; see :meth:`maxmargin.EditModel.distances`."""
        return self._edits().distances(first, second)

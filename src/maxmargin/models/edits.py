"""A trained model of edit alignments: besides predictions, scores and distances of many pairs of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from maxmargin import _checks, _memory, _threads
from maxmargin.encoders.data import checks
from maxmargin.encoders.deductions.edits import EditEncoder
from maxmargin.encoders.deductions.sequence_pairs import sequence_pair
from maxmargin.encoders.deductions.symbols import SymbolSequences
from maxmargin.models.base import Model
from maxmargin.structures.base import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class EditModel(Model):
    """Weights of edit operations.

    Scores and distances are found without a batch: symbols are looked up in tables, several pairs side by side. They
    need a model whose features are those of symbols.
    """

    encoder: EditEncoder

    @classmethod
    def levenshtein(cls, n_jobs: int | None = None) -> Self:
        """The model of equal costs: ``-score_pairs(X)`` is Levenshtein's distance, the least number of edits."""
        encoder = EditEncoder(gaps="linear", symmetric=True, context=False, known=())
        return cls(encoder.unit_weights(), encoder, n_jobs=n_jobs)

    def score_pairs(self, X: Sequence[Any]) -> FloatArray:
        """The score of the best alignment of each pair of sequences, shape ``(n_examples,)``."""
        with _threads.threads(self.n_jobs):
            return self._best(*_numbered(X))

    def match_scores(self, X: Sequence[Any]) -> FloatArray:
        """The score of the best alignment less that of no match: pairs above 0 match; shape ``(n_examples,)``."""
        self._require_verdict()
        with _threads.threads(self.n_jobs):
            return self._margin(*_numbered(X))

    def distance(self, X: Sequence[Any]) -> FloatArray:
        """How far apart the sequences of each pair are, shape ``(n_examples,)``.

        With the score ``S`` of the best alignment, of sequences of ``n`` and ``m`` symbols,
        ``d(a, b) = ((S(a, a) + S(b, b)) / 2 - S(a, b)) / max((n + m) / 2, 1)``: 0 for equal sequences. It does not
        change if all operations on a symbol score more by the same number (twice for pairs of it), which no alignment
        can tell. It is symmetric if the model is, but need not obey the triangle inequality, and is negative where a
        pair of different symbols scores more than those of equal ones.
        """
        with _threads.threads(self.n_jobs):
            return self._distance(*_numbered(X))

    def distances(self, first: Sequence[Any], second: Sequence[Any]) -> FloatArray:
        """The :meth:`distance` of every sequence of a list from every one of another, shape ``(n_first, n_second)``."""
        return self._matrix(first, second, verdict=False)

    def match_matrix(self, first: Sequence[Any], second: Sequence[Any]) -> FloatArray:
        """The :meth:`match_scores` of every sequence of a list with every one of another."""
        self._require_verdict()
        return self._matrix(first, second, verdict=True)

    def _matrix(self, first: Sequence[Any], second: Sequence[Any], *, verdict: bool) -> FloatArray:
        lists = [
            _checks.listed(name, own, "a list of sequences") for name, own in (("first", first), ("second", second))
        ]
        rows, columns = (len(own) for own in lists)
        _memory.require(48.0 * rows * columns, f"{rows} x {columns} distances", "give fewer sequences at a time")
        sequences = SymbolSequences.parse(
            lists[0] + lists[1], lambda at: f"first[{at}]" if at < rows else f"second[{at - rows}]"
        )
        one, two = np.repeat(np.arange(rows), columns), rows + np.tile(np.arange(columns), rows)
        with _threads.threads(self.n_jobs):
            return (self._margin if verdict else self._distance)(sequences, one, two).reshape(rows, columns)

    def _require_verdict(self) -> None:
        if not self.encoder.nonmatches:
            raise ValueError(
                "the model was not trained to tell pairs that do not match; set nonmatches=True, or use distance"
            )

    def _best(self, sequences: SymbolSequences, first: IntArray, second: IntArray) -> FloatArray:
        return self.encoder.best_scores(self.weights, sequences, first, second)

    def _margin(self, sequences: SymbolSequences, first: IntArray, second: IntArray) -> FloatArray:
        lengths = sequences.lengths
        verdict = self.encoder.verdict_scores(self.weights, lengths[first], lengths[second])
        return self._best(sequences, first, second) - verdict

    def _distance(self, sequences: SymbolSequences, first: IntArray, second: IntArray) -> FloatArray:
        every, lengths = np.arange(len(sequences.offsets) - 1), sequences.lengths
        own = self._best(sequences, every, every)
        mean = np.maximum(0.5 * (lengths[first] + lengths[second]), 1.0)
        return np.asarray((0.5 * (own[first] + own[second]) - self._best(sequences, first, second)) / mean)


def _numbered(X: Sequence[Any]) -> tuple[SymbolSequences, IntArray, IntArray]:
    """The different sequences of pairs, and for each pair the numbers of its two."""
    pairs = [x if type(x) is tuple and len(x) == 2 else _plain(x, index) for index, x in enumerate(checks.examples(X))]
    n = len(pairs)
    flat = [x[0] for x in pairs] + [x[1] for x in pairs]
    if set(map(type, flat)) == {str}:  # strings are often repeated: every one is looked at once
        place = {text: at for at, text in enumerate(dict.fromkeys(flat))}
        number = np.fromiter(map(place.__getitem__, flat), dtype=np.int64, count=2 * n)
        return SymbolSequences.parse(list(place), str), number[:n], number[n:]
    sides = "first", "second"
    sequences = SymbolSequences.parse(flat, lambda at: f"example {at % n}: its {sides[at // n]} sequence")
    return sequences, np.arange(n), np.arange(n, 2 * n)


def _plain(x: Any, index: int) -> tuple[Any, Any]:
    given = sequence_pair(x, index)
    if not (given.pair_features is given.first_features is given.second_features is None):
        raise ValueError(
            f"example {index}: scores of pairs are for sequences without features of their own; use decision_function"
        )
    return given.first, given.second

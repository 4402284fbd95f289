"""A trained model of edit alignments: besides predictions, scores and distances of many pairs of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import _checks, _memory, _threads
from maxmargin.encoders.data import checks
from maxmargin.encoders.data.symbols import SymbolSequences
from maxmargin.encoders.edits import EditEncoder
from maxmargin.model import Model
from maxmargin.structures.base import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class EditModel(Model):
    """Weights of edit operations.

    Scores and distances are found without a batch: symbols are looked up in tables, several pairs side by side. They
    need a model whose features are those of symbols.
    """

    encoder: EditEncoder

    def score_pairs(self, X: Sequence[Any]) -> FloatArray:
        """The score of the best alignment of each pair of sequences, shape ``(n_examples,)``."""
        with _threads.threads(self.n_jobs):
            return self._of_pairs(X)[0]

    def match_scores(self, X: Sequence[Any]) -> FloatArray:
        """The score of the best alignment less that of no match: pairs above 0 match; shape ``(n_examples,)``."""
        self._require_verdict()
        with _threads.threads(self.n_jobs):
            scores, sequences = self._of_pairs(X)
            first, second = sequences.lengths[: len(scores)], sequences.lengths[len(scores) :]
            return scores - self.encoder.verdict_scores(self.weights, first, second)

    def distance(self, X: Sequence[Any]) -> FloatArray:
        """How far apart the sequences of each pair are, shape ``(n_examples,)``.

        With the score ``S`` of the best alignment, of sequences of ``n`` and ``m`` symbols,
        ``d(a, b) = ((S(a, a) + S(b, b)) / 2 - S(a, b)) / max((n + m) / 2, 1)``: 0 for equal sequences. It does not
        change if all operations on a symbol score more by the same number (twice for pairs of it), which no alignment
        can tell. It is symmetric if the model is, but need not obey the triangle inequality, and is negative where a
        pair of different symbols scores more than those of equal ones.
        """
        with _threads.threads(self.n_jobs):
            scores, sequences = self._of_pairs(X)
            own = self._of_themselves(sequences)
            return _distance(scores, own[: len(scores)], own[len(scores) :], sequences.lengths, len(scores))

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
        _memory.require(32.0 * rows * columns, f"{rows} x {columns} distances", "give fewer sequences at a time")
        with _threads.threads(self.n_jobs):
            sequences = SymbolSequences.parse(
                lists[0] + lists[1], lambda at: f"first[{at}]" if at < rows else f"second[{at - rows}]"
            )
            one, two = np.repeat(np.arange(rows), columns), rows + np.tile(np.arange(columns), rows)
            scores = self._best(sequences, one, two)
            lengths = sequences.lengths
            if verdict:
                found = scores - self.encoder.verdict_scores(self.weights, lengths[one], lengths[two])
            else:
                own = self._of_themselves(sequences)
                found = _distance(scores, own[one], own[two], np.concatenate([lengths[one], lengths[two]]), len(one))
        return found.reshape(rows, columns)

    def _require_verdict(self) -> None:
        if not self.encoder.nonmatches:
            raise ValueError(
                "the model was not trained to tell pairs that do not match; set nonmatches=True, or use distance"
            )

    def _of_pairs(self, X: Sequence[Any]) -> tuple[FloatArray, SymbolSequences]:
        """The scores of the best alignments, and the first and then the second sequences."""
        parsed = self.encoder.parse(checks.examples(X))
        if parsed.pairs is not None or parsed.gaps is not None:
            raise ValueError("scores of pairs are for sequences without features of their own; use decision_function")
        first = np.arange(parsed.n)
        return self._best(parsed.sequences, first, parsed.n + first), parsed.sequences

    def _of_themselves(self, sequences: SymbolSequences) -> FloatArray:
        every = np.arange(len(sequences.offsets) - 1)
        return self._best(sequences, every, every)

    def _best(self, sequences: SymbolSequences, first: IntArray, second: IntArray) -> FloatArray:
        return self.encoder.best_scores(self.weights, sequences, first, second)


def _distance(scores: FloatArray, first: FloatArray, second: FloatArray, lengths: IntArray, n: int) -> FloatArray:
    """Distances from scores of pairs, scores of sequences with themselves, and lengths of the first and second ones."""
    mean = 0.5 * (lengths[:n] + lengths[n:])
    return np.asarray((0.5 * (first + second) - scores) / np.maximum(mean, 1.0))

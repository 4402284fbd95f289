"""Alignment error rate, precision and recall of predicted links, with intervals and comparisons.

With the predicted links A, the sure links S and the possible links P (which contain S), all summed over the sentences
(Och and Ney, *A systematic comparison of various statistical alignment models*, 2003):

    precision  |A and P| / |A|                              1 if nothing is predicted
    recall     |A and S| / |S|                              1 if nothing is sure
    F1         2 precision recall / (precision + recall)    0 if both are 0
    AER        1 - (|A and S| + |A and P|) / (|A| + |S|)    0 if nothing is predicted and nothing is sure
    balance    precision - recall                           above 0: too few links; below 0: too many

Intervals and comparisons are of the AER, which depends on a sentence only by the two integers ``|A| + |S|`` and
``|A and S| + |A and P|``, as :mod:`maxmargin.tasks.common.resampling` needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.alignment.io.links import Prediction, Reference, as_links, link_keys, pack, sentence_of
from maxmargin.tasks.common import resampling
from maxmargin.tasks.common.resampling import Comparison, Interval

_COUNTS = ("predicted", "sure", "possible", "predicted_sure", "predicted_possible")


@dataclass(frozen=True)
class Scores:
    """Counts over one or more sentences and the rates that follow; the module has the definitions.

    Attributes:
        sentences: number of sentences.
        exact: number of sentences with all sure links and otherwise only possible ones.
        predicted: \\|A\\|.
        sure: \\|S\\|.
        possible: \\|P\\|, the sure links among them.
        predicted_sure: \\|A and S\\|.
        predicted_possible: \\|A and P\\|.
        counts: the last five for each sentence, shape ``(sentences, 5)``.
    """

    sentences: int
    exact: int
    predicted: int
    sure: int
    possible: int
    predicted_sure: int
    predicted_possible: int
    counts: IntArray = field(repr=False, compare=False)

    @classmethod
    def of(cls, counts: IntArray) -> Scores:
        """Build from the counts of each sentence, shape ``(sentences, 5)``."""
        predicted, sure, _, predicted_sure, predicted_possible = counts.T
        exact = int(((predicted_sure == sure) & (predicted_possible == predicted)).sum())
        totals = dict(zip(_COUNTS, counts.sum(axis=0).tolist(), strict=True))
        return cls(sentences=len(counts), exact=exact, counts=counts, **totals)

    @property
    def precision(self) -> float:
        """Share of the predicted links that are possible."""
        return self.predicted_possible / self.predicted if self.predicted else 1.0

    @property
    def recall(self) -> float:
        """Share of the sure links that are predicted."""
        return self.predicted_sure / self.sure if self.sure else 1.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2.0 * self.precision * self.recall / total if total else 0.0

    @property
    def aer(self) -> float:
        """Alignment error rate."""
        total = self.predicted + self.sure
        return 1.0 - (self.predicted_sure + self.predicted_possible) / total if total else 0.0

    @property
    def balance(self) -> float:
        """Precision minus recall: positive with too few links, negative with too many."""
        return self.precision - self.recall

    @property
    def per_sentence(self) -> list[Scores]:
        """The scores of each sentence by itself."""
        return [Scores.of(self.counts[at : at + 1]) for at in range(len(self.counts))]

    def as_dict(self) -> dict[str, Any]:
        """Rates and counts as plain numbers."""
        rates = {name: getattr(self, name) for name in ("aer", "precision", "recall", "f1", "balance")}
        return rates | {name: getattr(self, name) for name in ("sentences", "exact", *_COUNTS)}


def evaluate(references: Sequence[Reference | str], predictions: Sequence[IntArray | Prediction | str]) -> Scores:
    """The scores of predicted links.

    Args:
        references: sure and possible links of each sentence pair, or strings such as ``0-0 1p2``.
        predictions: links of each pair, shape ``(k, 2)``, or strings; confidences are ignored.
    """
    references = _checks.listed("references", references, "a list of Reference, one per sentence pair")
    predictions = _checks.listed("predictions", predictions, "a list of links, one array per sentence pair")
    references = _parsed(references, Reference.of)
    predictions = _parsed(predictions, as_links)
    for number, reference in enumerate(references):
        _checks.instance(f"sentence {number + 1}: the reference", reference, Reference, "a Reference")
    if len(references) != len(predictions):
        raise ValueError(
            f"{len(references)} sentence pairs have references and {len(predictions)} predictions; give one per pair"
        )
    packed = [
        pack([reference.sure for reference in references]),
        pack([reference.possible for reference in references]),
        pack(predictions),
    ]
    sentences = [sentence_of(start) for start, _ in packed]
    keys = link_keys(np.concatenate(sentences), np.concatenate([links for _, links in packed]))
    ends = np.cumsum([len(one) for one in sentences])
    n = len(references)
    # Links are sets: repeated ones count once, and sure ones are possible whether or not they are repeated there.
    sure_keys, sure_at = _distinct(keys[: ends[0]], sentences[0])
    possible_keys, possible_at = _distinct(keys[: ends[1]], np.concatenate(sentences[:2]))
    predicted_keys, predicted_at = _distinct(keys[ends[1] :], sentences[2])
    counts = np.stack(
        [
            np.bincount(at, minlength=n)
            for at in (
                predicted_at,
                sure_at,
                possible_at,
                predicted_at[_among(predicted_keys, sure_keys)],
                predicted_at[_among(predicted_keys, possible_keys)],
            )
        ],
        axis=1,
    ).astype(np.int64)
    return Scores.of(counts)


def _parsed(given: Sequence[Any], parse: Callable[[str], Any]) -> list[Any]:
    """The links of each sentence pair, those of strings parsed."""
    found = []
    for number, one in enumerate(given):
        try:
            found.append(parse(one) if isinstance(one, str) else one)
        except ValueError as error:
            raise ValueError(f"sentence {number + 1}: {error}") from None
    return found


def _distinct(keys: IntArray, sentence: IntArray) -> tuple[IntArray, IntArray]:
    if (keys[1:] > keys[:-1]).all():
        return keys, sentence
    order = np.argsort(keys, kind="stable")  # linear time for a few sorted runs, such as these
    keys = keys[order]
    first = np.concatenate([[True], keys[1:] != keys[:-1]])
    return keys[first], sentence[order[first]]


def _among(keys: IntArray, sorted_keys: IntArray) -> npt.NDArray[np.bool_]:
    """Which of the keys are in the sorted ones."""
    if not len(sorted_keys):
        return np.zeros(len(keys), dtype=bool)
    at = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return np.asarray(sorted_keys[at] == keys, dtype=bool)


def interval_of(scores: Scores, *, level: float = 0.95, resamples: int = 2000, seed: int = 0) -> Interval:
    """A bootstrap interval of the AER of scores."""
    return resampling.interval(_total_and_hits(scores), _aer, level=level, resamples=resamples, seed=seed)


def compare_scores(
    first: Scores, second: Scores, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Comparison:
    """Compare two systems by their scores on the same sentences; below 0 the second is better."""
    return resampling.compare(
        _total_and_hits(first), _total_and_hits(second), _aer, level=level, resamples=resamples, seed=seed
    )


def _total_and_hits(scores: Scores) -> IntArray:
    counts = scores.counts
    return np.stack([counts[:, 0] + counts[:, 1], counts[:, 3] + counts[:, 4]], axis=1)


def _aer(sums: FloatArray) -> FloatArray:
    total, hits = sums[..., 0], sums[..., 1]
    return np.where(total > 0, 1.0 - hits / np.maximum(total, 1.0), 0.0)

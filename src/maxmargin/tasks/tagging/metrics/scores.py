"""Scores of predicted labels: accuracies, precision and recall of labels and chunks, confusions, intervals.

With the counts of gold, predicted and correct (gold and predicted) tokens of a label, or chunks as conlleval counts
them (:mod:`maxmargin.tasks.tagging.metrics.chunks`):

    precision  correct / predicted                  0 if nothing is predicted
    recall     correct / gold                       0 if nothing is gold
    F1         2 correct / (gold + predicted)       0 if there is neither

A sentence is exact if all its labels are right. A gold label that was not in the training data counts as an error, with
its own row in the confusion matrix.

A million tokens given as codes take a fraction of a second.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin.encoders.data.labels import Labels, plain
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.common import resampling
from maxmargin.tasks.common.resampling import Comparison, Interval
from maxmargin.tasks.tagging.metrics.chunks import count_chunks, look_like_chunks

T = TypeVar("T")
Measure = Literal["accuracy", "sentence_accuracy", "f1"]
MEASURES: tuple[Measure, ...] = ("accuracy", "sentence_accuracy", "f1")
"""Rates with intervals and comparisons; ``f1`` is that of chunks."""


@dataclass(frozen=True)
class Rates:
    """Precision, recall and F1 of one label, one type of chunks, or all chunks.

    Attributes:
        gold: number of gold ones.
        predicted: number of predicted ones.
        correct: number of correct ones.
    """

    gold: int
    predicted: int
    correct: int

    @property
    def precision(self) -> float:
        """Share of the predicted ones that are right."""
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of the gold ones that are found."""
        return self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        total = self.gold + self.predicted
        return 2.0 * self.correct / total if total else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return rates and counts as plain numbers."""
        rates = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        return rates | {"gold": self.gold, "predicted": self.predicted, "correct": self.correct}


@dataclass(frozen=True, eq=False)
class TagScores:
    """Scores of predicted labels; see the module for the definitions.

    Attributes:
        labels: the K gold and predicted labels.
        pairs: the nonzero entries of the confusion matrix: indices of the gold and of the predicted label in ``labels``
            and the number of tokens, sorted by indices, shape ``(m, 3)``.
        of_sentences: tokens and correct tokens of each sentence, shape ``(sentences, 2)``.
        chunk_types: counts of chunks by type; empty if the labels do not encode chunks.
        chunks_of_sentences: gold, predicted and correct chunks of each sentence, shape ``(sentences, 3)``; None if the
            labels do not encode chunks.
        unseen: gold labels that the system did not know.
    """

    labels: tuple[Hashable, ...]
    pairs: IntArray = field(repr=False)
    of_sentences: IntArray = field(repr=False)
    chunk_types: dict[str, Rates] = field(repr=False)
    chunks_of_sentences: IntArray | None = field(repr=False)
    unseen: tuple[Hashable, ...] = ()

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        return int(self.of_sentences[:, 0].sum())

    @property
    def correct(self) -> int:
        """Number of tokens with the right label."""
        return int(self.of_sentences[:, 1].sum())

    @property
    def accuracy(self) -> float:
        """Share of the tokens with the right label."""
        return self.correct / self.tokens if self.tokens else 0.0

    @property
    def sentences(self) -> int:
        """Number of sentences."""
        return len(self.of_sentences)

    @property
    def exact(self) -> int:
        """Number of sentences with all labels right; a sentence without tokens counts as right."""
        return int((self.of_sentences[:, 0] == self.of_sentences[:, 1]).sum())

    @property
    def sentence_accuracy(self) -> float:
        """Share of the sentences with all labels right."""
        return self.exact / self.sentences if self.sentences else 0.0

    @property
    def chunks(self) -> Rates | None:
        """Precision, recall and F1 of all chunks; None if the labels do not encode chunks."""
        if self.chunks_of_sentences is None:
            return None
        return Rates(*self.chunks_of_sentences.sum(axis=0).tolist())

    @property
    def f1(self) -> float:
        """F1 of chunks; ValueError if the labels do not encode chunks."""
        return _need_chunks(self.chunks).f1

    @property
    def per_label(self) -> dict[Hashable, Rates]:
        """Precision, recall and F1 of each label."""
        k = len(self.labels)
        gold, predicted, count = self.pairs.T
        same = gold == predicted
        columns = ((gold, count), (predicted, count), (gold[same], count[same]))
        counts = np.zeros((k, 3), dtype=np.int64)
        for column, (at, times) in enumerate(columns):
            np.add.at(counts[:, column], at, times)
        return {label: Rates(*row) for label, row in zip(self.labels, counts.tolist(), strict=True)}

    @property
    def macro_f1(self) -> float:
        """Mean F1 of the labels that are gold or predicted somewhere."""
        found = [rates.f1 for rates in self.per_label.values() if rates.gold or rates.predicted]
        return sum(found) / len(found) if found else 0.0

    @property
    def confusion(self) -> IntArray:
        """Confusion matrix: tokens by gold label (rows) and predicted label (columns), shape ``(K, K)``."""
        table = np.zeros((len(self.labels), len(self.labels)), dtype=np.int64)
        table[self.pairs[:, 0], self.pairs[:, 1]] = self.pairs[:, 2]
        return table

    def confused(self, limit: int | None = None) -> list[tuple[Hashable, Hashable, int]]:
        """Return gold label, predicted label and number of tokens of the ``limit`` most frequent errors."""
        wrong = self.pairs[self.pairs[:, 0] != self.pairs[:, 1]]
        order = np.argsort(-wrong[:, 2], kind="stable")[:limit]
        return [(self.labels[g], self.labels[p], count) for g, p, count in wrong[order].tolist()]

    def counts(self, measure: Measure) -> IntArray:
        """Return total and hits of each sentence, whose sums have the measure as quotient, shape ``(sentences, 2)``."""
        if measure == "accuracy":
            return self.of_sentences
        if measure == "sentence_accuracy":
            exact = self.of_sentences[:, 0] == self.of_sentences[:, 1]
            return np.stack([np.ones(self.sentences, dtype=np.int64), exact.astype(np.int64)], axis=1)
        if measure == "f1":
            gold, predicted, correct = _need_chunks(self.chunks_of_sentences).T
            return np.stack([gold + predicted, 2 * correct], axis=1)
        raise ValueError(f"measure must be one of {', '.join(MEASURES)}, got {shown(measure)}")

    @property
    def measure(self) -> Measure:
        """The default measure: F1 of chunks, or accuracy without chunks."""
        return "accuracy" if self.chunks_of_sentences is None else "f1"

    def summary(self, *, limit: int | None = 20) -> dict[str, Any]:
        """Return plain values for JSON: labels as text, the ``limit`` most frequent confusions."""
        chunks = self.chunks
        overall = None
        if chunks is not None:
            types = [{"type": kind, **rates.as_dict()} for kind, rates in self.chunk_types.items()]
            overall = {**chunks.as_dict(), "types": types}
        return {
            "tokens": self.tokens,
            "correct": self.correct,
            "accuracy": self.accuracy,
            "sentences": self.sentences,
            "exact": self.exact,
            "sentence_accuracy": self.sentence_accuracy,
            "chunks": overall,
            "macro_f1": self.macro_f1,
            "labels": [{"label": str(label), **rates.as_dict()} for label, rates in self.per_label.items()],
            "unseen_labels": [str(label) for label in self.unseen],
            "confusions": [
                {"gold": str(gold), "predicted": str(predicted), "tokens": count}
                for gold, predicted, count in self.confused(limit)
            ],
        }


def _need_chunks(chunks: T | None) -> T:
    if chunks is None:
        raise ValueError(
            "F1 is that of chunks, and these labels do not look like B-NP, I-NP, O; evaluate with chunks=True if they "
            "are chunks, or use the accuracy"
        )
    return chunks


def evaluate(
    gold: Sequence[Sequence[Hashable]],
    predicted: Sequence[Sequence[Hashable]],
    *,
    chunks: bool | None = None,
    known: Iterable[Hashable] | None = None,
) -> TagScores:
    """Return the scores of predicted labels.

    Args:
        gold: a sequence of hashable labels per sentence.
        predicted: as many labels for each sentence.
        chunks: whether to count chunks; None (default) counts them if the labels look like chunks.
        known: the labels of the training data, for ``unseen``.

    Returns:
        The scores. Labels are sorted if all are strings, otherwise in order of appearance.
    """
    sides = _parsed(gold, "gold"), _parsed(predicted, "predicted")
    if len(sides[0]) != len(sides[1]):
        raise ValueError(
            f"{len(sides[0])} sentences have gold labels and {len(sides[1])} predicted ones; give both for each "
            "sentence"
        )
    lengths = [np.diff(side.offsets) for side in sides]
    if (different := np.flatnonzero(lengths[0] != lengths[1])).size:
        i = int(different[0])
        counts = f"{lengths[0][i]} gold labels and {lengths[1][i]} predicted ones"
        raise ValueError(f"sentence {i} has {counts}; give one of each per token")
    found = dict.fromkeys([*sides[0].flat, *sides[1].flat])
    labels = sorted(found, key=str) if all(isinstance(label, str) for label in found) else list(found)
    place = {label: at for at, label in enumerate(labels)}
    codes = [side.codes(place).flat for side in sides]
    return _scores(codes[0], codes[1], sides[0].offsets, labels, chunks, None if known is None else _known(known))


def _known(labels: Any) -> set[Hashable]:
    given = sorted(labels, key=str) if isinstance(labels, (set, frozenset)) else labels
    listed = _checks.listed("known", given, "a list of labels", sized=False)
    return {plain(label, "known") for label in listed}


def _parsed(side: Any, name: str) -> Labels:
    """Return the labels of all sentences, checked."""
    given = _checks.listed(name, side, "a list with a list of labels per sentence")
    try:
        return Labels.parse(given)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def evaluate_codes(
    gold: IntArray,
    predicted: IntArray,
    sentences: IntArray,
    labels: Sequence[Hashable],
    *,
    gold_labels: Sequence[Hashable] | None = None,
    chunks: bool | None = None,
) -> TagScores:
    """Return the scores of predicted labels given as codes, without a loop over tokens.

    Args:
        gold: indices into ``gold_labels``, shape ``(tokens,)``.
        predicted: indices into ``labels``, shape ``(tokens,)``.
        sentences: sentence ``i`` has the tokens ``sentences[i]:sentences[i + 1]``, shape ``(sentences + 1,)``.
        labels: the labels that the system knows, all different.
        gold_labels: the labels of ``gold``, all different; ``labels`` by default. Those unknown to the system come
            last.
        chunks: as for :func:`evaluate`.
    """
    gold_labels = labels if gold_labels is None else gold_labels
    for name, codes, own in (("gold", gold, gold_labels), ("predicted", predicted, labels)):
        if codes.ndim != 1 or not np.issubdtype(codes.dtype, np.integer):
            raise ValueError(f"{name} must be a vector of integers, got shape {codes.shape} of {codes.dtype}")
        if len(codes) and not (codes.min() >= 0 and codes.max() < len(own)):
            at = int(np.flatnonzero((codes < 0) | (codes >= len(own)))[0])
            raise ValueError(f"{name}: token {at} has the label number {codes[at]}, and there are {len(own)} labels")
        if len(set(own)) != len(own):
            raise ValueError(f"{name}: a label is repeated; give different ones")
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} tokens have gold labels and {len(predicted)} predicted ones; give one of each")
    if (
        sentences.ndim != 1
        or not len(sentences)
        or sentences[0] != 0
        or sentences[-1] != len(gold)
        or (np.diff(sentences) < 0).any()
    ):
        raise ValueError(f"sentences must increase from 0 to the number of tokens, {len(gold)}")
    place = {label: at for at, label in enumerate(labels)}
    union = [*labels, *(label for label in gold_labels if label not in place)]
    if gold_labels is not labels:
        place = {label: at for at, label in enumerate(union)}
        gold = np.array([place[label] for label in gold_labels], dtype=np.int64)[gold]
    return _scores(gold, predicted, sentences, union, chunks, set(labels))


def _scores(
    gold: IntArray,
    predicted: IntArray,
    sentences: IntArray,
    labels: Sequence[Hashable],
    chunks: bool | None,
    known: set[Hashable] | None,
) -> TagScores:
    n, k = len(sentences) - 1, len(labels)
    sentence = np.repeat(np.arange(n), np.diff(sentences))
    right = np.bincount(sentence[gold == predicted], minlength=n)
    pairs = _pairs(gold, predicted, k)
    types: dict[str, Rates] = {}
    of_sentences = None
    if look_like_chunks(labels) if chunks is None else chunks:
        counted = count_chunks(gold, predicted, sentences, labels)
        types = {kind: Rates(*row) for kind, row in zip(counted.types, counted.of_types.tolist(), strict=True)}
        of_sentences = counted.of_sentences
    unseen: tuple[Hashable, ...] = ()
    if known is not None:
        unseen = tuple(labels[at] for at in np.unique(pairs[:, 0]).tolist() if labels[at] not in known)
    counts = np.stack([np.diff(sentences), right], axis=1).astype(np.int64)
    return TagScores(tuple(labels), pairs, counts, types, of_sentences, unseen)


def _pairs(gold: IntArray, predicted: IntArray, k: int) -> IntArray:
    keys = gold.astype(np.int64) * k + predicted
    if k * k <= max(len(keys), 1 << 16):
        table = np.bincount(keys, minlength=k * k)
        found = np.flatnonzero(table)
        times = table[found]
    else:
        found, times = np.unique(keys, return_counts=True)
    return np.stack([found // max(k, 1), found % max(k, 1), times], axis=1).astype(np.int64)


def _quotient(sums: FloatArray) -> FloatArray:
    total, hits = sums[..., 0], sums[..., 1]
    return np.where(total > 0, hits / np.maximum(total, 1.0), 0.0)


def interval_of(
    scores: TagScores,
    measure: Measure | None = None,
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Return the percentile bootstrap interval of a measure.

    Args:
        scores: scores of :func:`evaluate`.
        measure: ``"accuracy"``, ``"sentence_accuracy"`` or ``"f1"`` (of chunks); by default F1 if there are chunks,
            otherwise accuracy.
        level: share of the resamples inside the interval.
        resamples: number of resampled corpora.
        seed: random seed.
    """
    _checks.instance("scores", scores, TagScores, "scores of evaluate")
    counts = scores.counts(measure or scores.measure)
    return resampling.interval(counts, _quotient, level=level, resamples=resamples, seed=seed)


def compare_scores(
    first: TagScores,
    second: TagScores,
    measure: Measure | None = None,
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Comparison:
    """Return the paired bootstrap of two systems on the same sentences; above 0 the second is better.

    Arguments as for :func:`interval_of`.
    """
    _checks.instance("first", first, TagScores, "scores of evaluate")
    _checks.instance("second", second, TagScores, "scores of evaluate")
    measure = measure or first.measure
    if first.sentences == second.sentences and (first.of_sentences[:, 0] != second.of_sentences[:, 0]).any():
        at = int(np.flatnonzero(first.of_sentences[:, 0] != second.of_sentences[:, 0])[0])
        lengths = [int(scores.of_sentences[at, 0]) for scores in (first, second)]
        raise ValueError(f"sentence {at} has {lengths[0]} tokens for the first and {lengths[1]} for the second system")
    counts = first.counts(measure), second.counts(measure)
    return resampling.compare(*counts, _quotient, level=level, resamples=resamples, seed=seed)

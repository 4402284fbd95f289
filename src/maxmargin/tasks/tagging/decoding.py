"""Labels of rows of attributes: the best, by how much, how probable, and the next best, as codes, piece by piece.

A piece is some consecutive sentences whose packed scores stay in cache (:meth:`WeightLayout.pieces`). With ``T``
tokens and ``K`` labels the best labels cost one product of rows and weights, ``O(T K^2)`` for chains of order 1 and
``O(T K^3)`` for order 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _threads
from maxmargin.structures.base import FloatArray, IntArray, PointStatus
from maxmargin.tasks.tagging.extraction import TokenRows
from maxmargin.tasks.tagging.layout import WeightLayout
from maxmargin.tasks.tagging.table import Codes


@dataclass(frozen=True, eq=False)
class Decoder:
    """Labels by weights; all arrays are flat over the tokens of all sentences.

    In every method ``known`` holds codes that must be taken, negative where there is none, shape ``(n_tokens,)``.

    Attributes:
        layout: what the weights mean.
        weights: shape ``(layout.n_weights,)``.
        n_jobs: threads, as scikit-learn reads it.
    """

    layout: WeightLayout
    weights: FloatArray
    n_jobs: int | None = None

    def best(self, rows: TokenRows, known: Codes | None = None) -> Codes:
        """Codes of the best labels, shape ``(n_tokens,)``."""
        found = np.empty(int(rows.lengths.sum()), dtype=np.int32)
        _, pairs, rest = self.layout.split(self.weights)
        with _threads.threads(self.n_jobs):
            for examples, tokens, scores in self._node_scores(rows, known):
                structure: Any = self.layout.structure(rows.lengths[examples])
                if self.layout.order == 2:
                    labelling = structure.labels(scores.ravel(), pairs, rest)
                elif self.layout.edge_support is None:
                    labelling = structure.labels(scores.ravel(), pairs)
                else:
                    labelling = structure.labels(self._packed(rows, examples, scores))
                self._check(labelling.status, examples)
                found[tokens] = labelling.labels
        return found

    def best_with_margins(self, rows: TokenRows, known: Codes | None = None) -> tuple[Codes, FloatArray]:
        """Codes of the best labels, and by how much each beats the best labelling with another label there.

        Infinite where no other label is legal.
        """
        codes = self.best(rows, known)
        margins = np.empty(len(codes))
        _, pairs, rest = self.layout.split(self.weights)
        with _threads.threads(self.n_jobs):
            for examples, tokens, scores in self._node_scores(rows, known):
                structure: Any = self.layout.structure(rows.lengths[examples])
                if self.layout.order == 2:
                    most = structure.max_marginals(scores.ravel(), pairs, rest)
                elif self.layout.edge_support is None:
                    most = structure.max_marginals(scores.ravel(), pairs)
                else:
                    most = structure.max_marginals(self._packed(rows, examples, scores))
                own = codes[tokens]
                best = most[np.arange(len(own)), own]
                most[np.arange(len(own)), own] = -np.inf
                margins[tokens] = np.maximum(best - most.max(axis=1, initial=-np.inf), 0.0)
        return codes, margins

    def marginals(self, rows: TokenRows, known: Codes | None = None, temperature: float = 1.0) -> FloatArray:
        """Probabilities of labels at tokens, shape ``(n_tokens, n_labels)``."""
        k = self.layout.n_labels
        found = np.empty((int(rows.lengths.sum()), k))
        with _threads.threads(self.n_jobs):
            for examples, tokens, scores in self._node_scores(rows, known, packed=True):
                structure = self.layout.structure(rows.lengths[examples])
                points = structure.entropic(self._packed(rows, examples, scores) / temperature)
                self._check(points.status, examples)
                found[tokens] = points.z[: scores.size].reshape(-1, k)
        return found

    def ranked(self, rows: TokenRows, k: int, known: Codes | None = None) -> Iterator[list[tuple[list[int], float]]]:
        """For each sentence its ``k`` best labellings: lists of codes with their scores, best first."""
        with _threads.threads(self.n_jobs):
            for examples, _, scores in self._node_scores(rows, known, packed=True, copies=max(k, 1)):
                lengths = rows.lengths[examples]
                structure = self.layout.structure(lengths)
                ranks = structure.k_best(self._packed(rows, examples, scores), k)
                self._check(ranks[0].status, examples)
                decoded = [structure.decode(points.z) for points in ranks]
                for i in range(len(examples)):
                    yield [
                        (labels[i].tolist(), float(points.value[i]))
                        for labels, points in zip(decoded, ranks, strict=True)
                        if points.status[i] <= PointStatus.INEXACT
                    ]

    def _node_scores(
        self, rows: TokenRows, known: Codes | None, *, packed: bool = False, copies: int = 1
    ) -> Iterator[tuple[IntArray, slice, FloatArray]]:
        """Piece by piece: numbers of its sentences, its tokens, and their scores ``(n_tokens, n_labels)``."""
        k, offsets = self.layout.n_labels, rows.offsets
        features = self.layout.token_features(rows)
        weights = self.layout.split(self.weights)[0]
        wide = k * copies if not packed else copies * (k + k ** (self.layout.order + 1))
        if self.layout.edge_support is not None:
            wide = copies * (k + k**2)
        for examples in self.layout.pieces(rows.lengths, wide):
            tokens = slice(int(offsets[examples[0]]), int(offsets[examples[-1] + 1]))
            scores = np.empty((tokens.stop - tokens.start, k))
            features.select(examples).write_scores(weights, scores.reshape(-1))
            if known is not None:
                given = known[tokens]
                at = np.flatnonzero(given >= 0)
                own = scores[at, given[at]]
                scores[at] = -np.inf
                scores[at, given[at]] = own
            yield examples, tokens, scores

    def _packed(self, rows: TokenRows, examples: IntArray, scores: FloatArray) -> FloatArray:
        """The scores of all parts of a piece."""
        _, pairs, rest = self.layout.split(self.weights)
        parts = [scores.reshape(-1)]
        if self.layout.edge_support is not None:
            assert rows.edges is not None
            whole = self.layout.edge_features(rows).select(examples)
            parts.append(whole.scores(np.concatenate([pairs.reshape(-1), rest])))
        else:
            parts.append(np.tile(pairs.reshape(-1), len(examples)))
            if self.layout.order == 2:
                parts.append(np.tile(rest.reshape(-1), len(examples)))
        return np.concatenate(parts)

    def _check(self, status: npt.NDArray[np.int8], examples: IntArray) -> None:
        wrong = np.flatnonzero(status > PointStatus.INEXACT)
        if not wrong.size:
            return
        i = int(examples[wrong[0]])
        if status[wrong[0]] == PointStatus.ABSENT:
            raise ValueError(f"sentence {i}: no legal labelling has the labels that are known; correct them")
        raise ValueError(f"sentence {i}: scores are not finite; scale the features down")

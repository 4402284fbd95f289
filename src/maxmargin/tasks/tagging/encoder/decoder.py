"""Decoding of rows of attributes: best labels, margins, marginals and k-best lists, as codes, shard by shard.

A shard is a run of consecutive sentences whose packed scores stay in cache (:meth:`WeightLayout.shards`). With ``T``
tokens and ``K`` labels, the best labels cost one product of rows and weights, plus ``O(T K^2)`` for chains of order 1
and ``O(T K^3)`` for order 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _threads
from maxmargin.structures._arrays import ranges
from maxmargin.structures.base import FloatArray, IntArray, PointStatus
from maxmargin.tasks.common.tokens.table import Codes
from maxmargin.tasks.tagging.encoder.extraction import TokenRows
from maxmargin.tasks.tagging.encoder.layout import WeightLayout

Found = tuple[npt.NDArray[np.int8], npt.NDArray[Any]]
"""The status of sentences, and what was found for their tokens."""


@dataclass(frozen=True, eq=False)
class Decoder:
    """Finds labels by weights; all arrays are flat over the tokens of all sentences.

    In every method, ``known`` holds codes that must be taken, negative elsewhere, shape ``(n_tokens,)``. If no label
    sequence of a sentence's length satisfies the constraints, they are dropped for that sentence.

    Attributes:
        layout: meaning of the weights.
        weights: shape ``(layout.n_weights,)``.
        n_jobs: threads, as in scikit-learn.
    """

    layout: WeightLayout
    weights: FloatArray
    n_jobs: int | None = None

    def best(self, rows: TokenRows, known: Codes | None = None) -> Codes:
        """Return the codes of the best labels, shape ``(n_tokens,)``."""

        def labels(layout: WeightLayout, examples: IntArray, scores: FloatArray) -> Found:
            structure: Any = layout.structure(rows.lengths[examples])
            labeling = structure.labels(*self._shared(rows, examples, scores))
            return labeling.status, labeling.outputs.flat

        return self._joined(rows, np.empty(int(rows.lengths.sum()), dtype=np.int32), known, labels)

    def best_with_margins(self, rows: TokenRows, known: Codes | None = None) -> tuple[Codes, FloatArray]:
        """Return the codes of the best labels and their margins over the best labeling with another label there.

        Margins are infinite where no other label is allowed.
        """
        codes = self.best(rows, known)

        def margins(layout: WeightLayout, examples: IntArray, scores: FloatArray) -> Found:
            structure: Any = layout.structure(rows.lengths[examples])
            most: FloatArray = structure.max_marginals(*self._shared(rows, examples, scores))
            own = codes[ranges(rows.offsets[examples], rows.offsets[examples + 1])]
            at = np.arange(len(own))
            best = most[at, own]
            most[at, own] = -np.inf
            status = np.zeros(len(examples), dtype=np.int8)
            sentence = np.repeat(np.arange(len(examples)), rows.lengths[examples])
            status[sentence[~np.isfinite(best)]] = PointStatus.ABSENT
            best[~np.isfinite(best)] = 0.0
            return status, np.maximum(best - most.max(axis=1, initial=-np.inf), 0.0)

        return codes, self._joined(rows, np.empty(len(codes)), known, margins)

    def best_with_probabilities(
        self, rows: TokenRows, known: Codes | None = None, temperature: float = 1.0
    ) -> tuple[Codes, FloatArray]:
        """Return the codes of the best labels and their probabilities; those of other labels are not kept."""
        codes = self.best(rows, known)

        def shares(layout: WeightLayout, examples: IntArray, scores: FloatArray) -> Found:
            status, found = self._shares(layout, rows, examples, scores, temperature)
            own = codes[ranges(rows.offsets[examples], rows.offsets[examples + 1])]
            return status, found[np.arange(len(own)), own]

        return codes, self._joined(rows, np.empty(len(codes)), known, shares, packed=True)

    def marginals(self, rows: TokenRows, known: Codes | None = None, temperature: float = 1.0) -> FloatArray:
        """Return the probabilities of labels at tokens, shape ``(n_tokens, n_labels)``."""

        def shares(layout: WeightLayout, examples: IntArray, scores: FloatArray) -> Found:
            return self._shares(layout, rows, examples, scores, temperature)

        out = np.empty((int(rows.lengths.sum()), self.layout.n_labels))
        return self._joined(rows, out, known, shares, packed=True)

    def _shares(
        self, layout: WeightLayout, rows: TokenRows, examples: IntArray, scores: FloatArray, temperature: float
    ) -> Found:
        """Return the probabilities of labels at the tokens of a shard."""
        structure = layout.structure(rows.lengths[examples])
        points = structure.marginals(self._packed(rows, examples, scores) / temperature)
        return points.status, points.z[: scores.size].reshape(-1, self.layout.n_labels)

    def _joined(
        self,
        rows: TokenRows,
        out: npt.NDArray[Any],
        known: Codes | None,
        find: Callable[[WeightLayout, IntArray, FloatArray], Found],
        *,
        packed: bool = False,
    ) -> npt.NDArray[Any]:
        """Fill ``out``, one row per token, by a function of a layout, a shard's sentences and their scores."""
        with _threads.threads(self.n_jobs):
            for examples, tokens, scores in self._node_scores(rows, known, packed=packed):
                status, found = find(self.layout, examples, scores)
                for some, at in self._infeasible(status, rows, examples, known):
                    status, found[at] = find(self._unconstrained, some, scores[at])
                    self._check(status, some)
                out[tokens] = found
        return out

    def ranked(self, rows: TokenRows, k: int, known: Codes | None = None) -> Iterator[list[tuple[list[int], float]]]:
        """Yield the ``k`` best labelings of each sentence: lists of codes with their scores, best first."""
        with _threads.threads(self.n_jobs):
            for examples, _, scores in self._node_scores(rows, known, packed=True, copies=max(k, 1)):
                status, lists = self._ranked(self.layout, rows, examples, scores, k)
                for some, at in self._infeasible(status, rows, examples, known):
                    status, others = self._ranked(self._unconstrained, rows, some, scores[at], k)
                    self._check(status, some)
                    for i, ranks in zip(some.tolist(), others, strict=True):
                        lists[i - int(examples[0])] = ranks
                yield from lists

    @cached_property
    def _unconstrained(self) -> WeightLayout:
        return replace(self.layout, constraints=None)

    def _ranked(
        self, layout: WeightLayout, rows: TokenRows, examples: IntArray, scores: FloatArray, k: int
    ) -> tuple[npt.NDArray[np.int8], list[list[tuple[list[int], float]]]]:
        """Return the status of sentences and the ``k`` best labelings of each."""
        structure = layout.structure(rows.lengths[examples])
        ranks = structure.k_best(self._packed(rows, examples, scores), k)
        decoded = [structure.decode(points.z) for points in ranks]
        return ranks[0].status, [
            [
                (labels[i].tolist(), float(points.value[i]))
                for labels, points in zip(decoded, ranks, strict=True)
                if points.status[i] <= PointStatus.INEXACT
            ]
            for i in range(len(examples))
        ]

    def _infeasible(
        self, status: npt.NDArray[np.int8], rows: TokenRows, examples: IntArray, known: Codes | None
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the sentences of a shard without an allowed labeling, if any, and the places of their tokens in it.

        ValueError if known labels are the reason, or if scores are not finite.
        """
        absent = status == PointStatus.ABSENT
        if known is not None and absent.any():
            given = np.append(0, np.cumsum(known >= 0))[rows.offsets]
            absent &= given[examples + 1] == given[examples]
        self._check(np.where(absent, np.int8(0), status), examples)
        if absent.any():
            some, first = examples[absent], int(rows.offsets[examples[0]])
            yield some, ranges(rows.offsets[some] - first, rows.offsets[some + 1] - first)

    def _node_scores(
        self, rows: TokenRows, known: Codes | None, *, packed: bool = False, copies: int = 1
    ) -> Iterator[tuple[IntArray, slice, FloatArray]]:
        """Yield for each shard its sentences, its tokens, and their scores ``(n_tokens, n_labels)``."""
        k, offsets = self.layout.n_labels, rows.offsets
        features = self.layout.token_features(rows)
        weights = self.layout.split(self.weights)[0]
        wide = k * copies if not packed else copies * (k + k ** (self.layout.order + 1))
        if self.layout.edge_support is not None:
            wide = copies * (k + k**2)
        if (chunks := self.layout.chunks) is not None:
            wide = copies * (k + len(chunks.types) * (chunks.most + 1))
        for examples in self.layout.shards(rows.lengths, wide):
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

    def _shared(self, rows: TokenRows, examples: IntArray, scores: FloatArray) -> tuple[FloatArray, ...]:
        """Return the scores of tokens, transitions and triples; all in one for attributes of edges or segments."""
        if self.layout.edge_support is not None or self.layout.chunks is not None:
            return (self._packed(rows, examples, scores),)
        _, pairs, rest = self.layout.split(self.weights)
        return (scores.ravel(), pairs, rest) if self.layout.order == 2 else (scores.ravel(), pairs)

    def _packed(self, rows: TokenRows, examples: IntArray, scores: FloatArray) -> FloatArray:
        """Return the scores of all parts of a shard."""
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
            if self.layout.chunks is not None:
                parts.append(self.layout.segment_features(rows).select(examples).scores(rest))
        return np.concatenate(parts)

    def _check(self, status: npt.NDArray[np.int8], examples: IntArray) -> None:
        wrong = np.flatnonzero(status > PointStatus.INEXACT)
        if not wrong.size:
            return
        i = int(examples[wrong[0]])
        if status[wrong[0]] == PointStatus.ABSENT:
            raise ValueError(f"sentence {i}: no allowed labeling has the known labels; correct them")
        raise ValueError(f"sentence {i}: scores are not finite; scale the features down")

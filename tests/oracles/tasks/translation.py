"""Slow twins of the translation models: dictionaries, loops, and sums over all alignments.

A bitext is a list of pairs ``(source, target)`` of lists of word numbers, -1 for unknown words. Alignments of a
sentence are enumerated, so it must be tiny: its cost is ``(positions + 1) ** words``.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import digamma

from maxmargin.structures.base import FloatArray

Pair = tuple[list[int], list[int]]
Table = dict[tuple[int, int], float]


def lexicon(pairs: Sequence[Pair]) -> dict[tuple[int, int], int]:
    """In how many pairs two words meet, by (source word, target word), in sorted order."""
    together: dict[tuple[int, int], int] = defaultdict(int)
    for source, target in pairs:
        for e in set(source) - {-1}:
            for f in set(target) - {-1}:
                together[e, f] += 1
    return dict(sorted(together.items()))


class Believed(NamedTuple):
    """What a model believes of one sentence.

    ``links[i, k]`` is the posterior that position ``i`` generated word ``k``, ``null[k]`` that the empty word did;
    ``jumps[last + 1, i]`` is how often the model expects to go from ``last`` (-1: the beginning) to ``i``.
    """

    links: FloatArray
    null: FloatArray
    jumps: FloatArray
    likelihood: float


def model1(emission: FloatArray, null: FloatArray) -> Believed:
    """Model 1: each word by itself. ``emission`` is (positions, words), ``null`` (words,)."""
    positions, words = emission.shape
    links, empty, likelihood = np.zeros((positions, words)), np.zeros(words), 0.0
    for k in range(words):
        total = float(null[k]) + sum(float(emission[i, k]) for i in range(positions))
        likelihood += math.log(total / (positions + 1))
        empty[k] = null[k] / total
        for i in range(positions):
            links[i, k] = emission[i, k] / total
    return Believed(links, empty, np.zeros((positions + 1, positions)), likelihood)


def _jump(c: FloatArray, last: int, to: int, positions: int) -> float:
    width = len(c) // 2

    def value(i: int) -> float:
        return float(c[min(max(i - last, -width), width) + width])

    return value(to) / sum(value(i) for i in range(positions))


def hmm(emission: FloatArray, null: FloatArray, c: FloatArray, p_null: float) -> Believed:
    """The hidden Markov model by enumeration of all alignments, the empty word (None) among the positions."""
    positions, words = emission.shape
    links, empty = np.zeros((positions, words)), np.zeros(words)
    jumps, total = np.zeros((positions + 1, positions)), 0.0
    for alignment in product([None, *range(positions)], repeat=words):
        weight, last, moves = 1.0, -1, []
        for k, i in enumerate(alignment):
            if i is None:
                weight *= (p_null if positions else 1.0) * float(null[k])
            else:
                weight *= (1 - p_null) * _jump(c, last, i, positions) * float(emission[i, k])
                moves.append((last + 1, i))
                last = i
        total += weight
        for k, i in enumerate(alignment):
            if i is None:
                empty[k] += weight
            else:
                links[i, k] += weight
        for move in moves:
            jumps[move] += weight
    return Believed(links / total, empty / total, jumps / total, math.log(total))


def jump_objective(moved: FloatArray, departures: FloatArray, c: FloatArray) -> float:
    """The expected log-likelihood of jumps ``c``.

    ``moved`` counts jumps by distance, ``departures[last + 1, positions]`` by where they start.
    """
    width = len(c) // 2
    value = sum(float(n) * math.log(float(x)) for n, x in zip(moved, c, strict=True) if n > 0)
    for (at, positions), n in np.ndenumerate(departures):
        if n > 0:
            reach = (min(max(i - (at - 1), -width), width) + width for i in range(positions))
            value -= float(n) * math.log(sum(float(c[b]) for b in reach))
    return value


def jump_counts(jumps: FloatArray, width: int) -> FloatArray:
    """Expected jumps of one sentence by distance, those beyond ``width`` with the outermost."""
    moved = np.zeros(2 * width + 1)
    for (at, i), n in np.ndenumerate(jumps):
        moved[min(max(i - (at - 1), -width), width) + width] += n
    return moved


def _improved(moved: FloatArray, departures: FloatArray, c: FloatArray) -> FloatArray:
    """Up to 30 rounds of ``c_b = moved_b / sum over departures of their share of bucket b, over its c_b``."""
    width = len(c) // 2
    for _ in range(30):
        below = np.zeros(len(c))
        for (at, positions), n in np.ndenumerate(departures):
            if n > 0:
                reach = [min(max(i - (at - 1), -width), width) + width for i in range(positions)]
                total = sum(c[b] for b in reach)
                for b in reach:
                    below[b] += n / total
        better = np.array([m / b if b > 0 else 0.0 for m, b in zip(moved, below, strict=True)])
        better = np.maximum(better, 1e-9 * better.max())
        better = better / better.sum()
        least = jump_objective(moved, departures, c) - 1e-9 * moved.sum()
        if jump_objective(moved, departures, better) < least:
            break
        c = better
    return c


@dataclass
class _Direction:
    """One direction in training: the words of ``given`` generate those of ``made``."""

    words: Table
    null: dict[int, float]
    c: FloatArray
    counts: Table = field(default_factory=dict)
    null_counts: dict[int, float] = field(default_factory=dict)
    moved: FloatArray = field(default_factory=lambda: np.zeros(0))
    departures: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))

    def start(self, longest: int) -> None:
        self.counts, self.null_counts = dict.fromkeys(self.words, 0.0), dict.fromkeys(self.null, 0.0)
        self.moved, self.departures = np.zeros(len(self.c)), np.zeros((longest + 1, longest + 1))

    def believe(self, given: list[int], made: list[int], markov: bool, p_null: float) -> Believed:
        emission = np.array([[max(self.words[e, f], 1e-30) for f in made] for e in given])
        null = np.array([max(self.null[f], 1e-30) for f in made])
        return hmm(emission, null, self.c, p_null) if markov else model1(emission, null)

    def count(self, given: list[int], made: list[int], believed: Believed, links: FloatArray) -> None:
        for k, f in enumerate(made):
            self.null_counts[f] += believed.null[k]
            for i, e in enumerate(given):
                self.counts[e, f] += links[i, k]
        self.moved += jump_counts(believed.jumps, len(self.c) // 2)
        for i in range(len(given) + 1):
            self.departures[i, len(given)] += believed.jumps[i].sum()

    def maximize(self, prior: float, markov: bool) -> None:
        rows: dict[int, list[float]] = defaultdict(list)
        for (e, _), count in self.counts.items():
            rows[e].append(count)
        for (e, f), count in self.counts.items():
            under = sum(rows[e]) + prior * len(rows[e])
            if prior > 0:
                self.words[e, f] = math.exp(digamma(count + prior) - digamma(under))
            else:
                self.words[e, f] = count / under if under > 0 else 0.0
        total = sum(self.null_counts.values())
        self.null = {f: count / total if total > 0 else 1 / len(self.null) for f, count in self.null_counts.items()}
        if markov and self.moved.sum() > 0:
            self.c = _improved(self.moved, self.departures, self.c)


class Learned(NamedTuple):
    """``words``, ``null`` and ``jumps`` of both directions, and (forward, backward) log-likelihoods by iteration."""

    words: tuple[Table, Table]
    null: tuple[dict[int, float], dict[int, float]]
    jumps: FloatArray
    history: list[tuple[float, float]]


def learn(
    pairs: Sequence[Pair],
    *,
    model1_iterations: int,
    hmm_iterations: int,
    agreement: bool,
    prior: float = 0.0,
    null: float = 0.1,
    width: int = 10,
) -> Learned:
    """Expectation-maximization with dictionaries; tables of the backward model are keyed (target, source word)."""
    met = lexicon(pairs)
    sides = [sorted({word for pair in pairs for word in pair[side]}) for side in (0, 1)]
    start = np.exp(-0.3 * np.abs(np.arange(-width, width + 1) - 1.0))
    directions = [
        _Direction(
            {(key if way == 0 else key[::-1]): 1 / len(made) for key in met},
            {word: 1 / len(made) for word in made},
            start / start.sum(),
        )
        for way, made in ((0, sides[1]), (1, sides[0]))
    ]
    longest = max((len(side) for pair in pairs for side in pair), default=0)
    history = []
    for iteration in range(model1_iterations + hmm_iterations):
        markov = iteration >= model1_iterations
        likelihood = [0.0, 0.0]
        for direction in directions:
            direction.start(longest)
        for source, target in pairs:
            if not source or not target:
                continue
            both = [
                directions[0].believe(source, target, markov, null),
                directions[1].believe(target, source, markov, null),
            ]
            links = [both[0].links, both[1].links]
            if markov and agreement:
                links = [both[0].links * both[1].links.T, both[1].links * both[0].links.T]
            directions[0].count(source, target, both[0], links[0])
            directions[1].count(target, source, both[1], links[1])
            for way in (0, 1):
                likelihood[way] += both[way].likelihood
        for direction in directions:
            direction.maximize(prior, markov)
        history.append((likelihood[0], likelihood[1]))
    forth, back = directions
    return Learned((forth.words, back.words), (forth.null, back.null), np.stack([forth.c, back.c]), history)

"""Slow twins of the kernels of word alignment: features of word pairs and of words, one number at a time.

Evidence is taken by the names of its attributes; it has been checked, its values are in their ranges.
"""

from __future__ import annotations

import math
import unicodedata
from functools import cache
from typing import Any

import numpy as np

from maxmargin.structures.base import FloatArray


def common_subsequence(first: str, second: str) -> int:
    """Length of the longest common subsequence, by dynamic programming."""
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


@cache
def letters_of(word: str) -> str:
    """The letters that are compared: without case, without accents, 64 at most."""
    once = unicodedata.normalize("NFKD", word).casefold()
    kept = [letter for letter in unicodedata.normalize("NFKD", once) if unicodedata.combining(letter) == 0]
    return "".join(kept)[:64]


@cache
def shape_of(word: str) -> str:
    """Without case, composed, digits as 0."""
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", word).casefold())
    return "".join("0" if letter.isdecimal() else letter for letter in unicodedata.normalize("NFC", folded))


def digits_of(word: str) -> str:
    """The decimal digits of a word."""
    return "".join(letter for letter in word if letter.isdecimal())


def punctuation(word: str) -> bool:
    """Whether a word has neither letters nor digits."""
    return all(not letter.isalnum() for letter in word)


def bigram_dice(first: str, second: str) -> float:
    """Dice coefficient of the sets of neighboring letters."""
    one, two = ({word[i : i + 2] for i in range(len(word) - 1)} for word in (first, second))
    return 2 * len(one & two) / (len(one) + len(two)) if one or two else 0.0


def _common_start(first: str, second: str) -> int:
    count = 0
    for a, b in zip(first, second, strict=False):
        if a != b:
            break
        count += 1
    return count


def _likelihood_ratio(both: float, e: float, f: float, n: float) -> float:
    def part(x: float) -> float:
        return x * math.log(x) if x > 0 else 0.0

    inner = sum(part(max(x, 0.0)) for x in (both, e - both, f - both, n - e - f + both))
    margins = part(e) + part(f) + part(max(n - e, 0.0)) + part(max(n - f, 0.0))
    size = math.log1p(max(2 * (inner + part(n) - margins), 0.0)) / 10
    return size if both * n > e * f else -size


def _pmi(both: float, e: float, f: float, n: float) -> float:
    if both <= 0 or e <= 0 or f <= 0 or n <= 1:
        return 0.0
    return min(max(math.log(both * n / (e * f)) / math.log(n), 0.0), 1.0)


class _Grid:
    """A grid of one pair that is 0 outside."""

    def __init__(self, values: FloatArray) -> None:
        self.values = values

    def at(self, j: int, k: int) -> float:
        rows, columns = self.values.shape
        return float(self.values[j, k]) if 0 <= j < rows and 0 <= k < columns else 0.0

    def other_in_row(self, j: int, k: int) -> float:
        return max([float(x) for i, x in enumerate(self.values[j]) if i != k], default=0.0)

    def other_in_column(self, j: int, k: int) -> float:
        return max([float(x) for i, x in enumerate(self.values[:, k]) if i != j], default=0.0)


def _nine(forward: _Grid, backward: _Grid, j: int, k: int) -> list[float]:
    p, q = forward.at(j, k), backward.at(j, k)
    column = float(p > 0 and p >= forward.other_in_column(j, k))
    row = float(q > 0 and q >= backward.other_in_row(j, k))
    return [p, q, p * q, math.sqrt(p * q), min(p, q), max(p, q), column, row, column * row]


def _dice(evidence: Any, pair: int) -> FloatArray:
    J, K, grids, (e, f) = _parts(evidence, pair)
    dice = np.zeros((J, K))
    for j in range(J):
        for k in range(K):
            if e[j] + f[k] > 0:
                dice[j, k] = min(2 * grids["joint_count"].at(j, k) / (e[j] + f[k]), 1.0)
    return dice


def _parts(evidence: Any, pair: int) -> tuple[int, int, dict[str, _Grid], tuple[FloatArray, FloatArray]]:
    s, t = evidence.bitext.source_start[pair : pair + 2], evidence.bitext.target_start[pair : pair + 2]
    J, K = int(s[1] - s[0]), int(t[1] - t[0])
    cells = slice(evidence.bitext.grid_start[pair], evidence.bitext.grid_start[pair + 1])
    names = ("model1_forward", "model1_backward", "hmm_forward", "hmm_backward", "joint_count")
    grids = {name: _Grid(getattr(evidence, name)[cells].reshape(J, K)) for name in names}
    return J, K, grids, (evidence.count_source[s[0] : s[1]], evidence.count_target[t[0] : t[1]])


def _orthography(e: str, f: str) -> list[float]:
    a, b = letters_of(e), letters_of(f)
    longest = max(len(a), len(b), 1)
    prefix = _common_start(a, b)
    common = 2 * common_subsequence(a, b) / max(len(a) + len(b), 1)
    digits = digits_of(e), digits_of(f)
    marks = punctuation(e), punctuation(f)
    capitals = e[:1].isupper(), f[:1].isupper()
    return [
        float(e == f),
        float(shape_of(e) == shape_of(f)),
        prefix / longest,
        _common_start(a[::-1], b[::-1]) / longest,
        common,
        bigram_dice(a, b),
        float(prefix >= 4),
        float(all(digits) and digits[0] == digits[1]),
        float(all(digits) and digits[0] != digits[1]),
        float(all(marks) and e == f),
        float(all(marks) and e != f),
        float(marks[0] != marks[1]),
        float(all(capitals)),
        float(capitals[0] != capitals[1]),
        abs(len(a) - len(b)) / longest,
        float(min(len(a), len(b)) >= 5 and common >= 0.6),
    ]


def _twin(words: tuple[list[str], list[str]], side: int, at: int) -> int | None:
    """The place of the only equal word of the other side, if this word stands once; words without a value are empty."""
    mine, theirs = words[side], words[1 - side]
    value = mine[at]
    return theirs.index(value) if value and mine.count(value) == theirs.count(value) == 1 else None


def _identical(sides: tuple[list[str], list[str]], j: int, k: int, rare: float) -> list[float]:
    found = []
    for value in (lambda word: "" if punctuation(word) else letters_of(word), digits_of):
        values = [value(word) for word in sides[0]], [value(word) for word in sides[1]]
        forth, back = _twin(values, 0, j), _twin(values, 1, k)
        same = forth == k
        found.append((float(same), float(not same and (forth is not None or back is not None))))
    (same, elsewhere), (digits, digits_elsewhere) = found
    with_digits = same * float(digits_of(sides[0][j]) != "")
    return [same, with_digits, same * rare, elsewhere, digits * (1 - same), digits_elsewhere]


def link_features(evidence: Any) -> dict[str, FloatArray]:
    """Features of all cells by group, each of shape ``(cells, columns of the group)``, without lexical and extra."""
    rows: dict[str, list[list[float]]] = {}
    n, bitext, words = float(evidence.n_pairs), evidence.bitext, evidence.bitext.words.words
    for pair in range(len(evidence.bitext.source_start) - 1):
        J, K, grids, counts = _parts(evidence, pair)
        dice = _Grid(_dice(evidence, pair))
        h_f, h_b = grids["hmm_forward"], grids["hmm_backward"]
        m_f, m_b = grids["model1_forward"], grids["model1_backward"]
        product = _Grid(h_f.values * h_b.values)
        spans = (bitext.source, bitext.source_start), (bitext.target, bitext.target_start)
        source, target = ([words[w] for w in side[start[pair] : start[pair + 1]]] for side, start in spans)
        for j in range(J):
            for k in range(K):
                at_e, at_f = int(evidence.bitext.source_start[pair]) + j, int(evidence.bitext.target_start[pair]) + k
                e, f = words[bitext.source[at_e]], words[bitext.target[at_f]]
                c_e, c_f, both = float(counts[0][j]), float(counts[1][k]), grids["joint_count"].at(j, k)
                g, d = product.at(j, k), dice.at(j, k)
                far = abs((j + 0.5) / J - (k + 0.5) / K)
                spelling = _orthography(e, f)
                found: dict[str, list[float]] = {"bias": [1.0]}
                around = [dice.at(j - 1, k - 1), dice.at(j + 1, k + 1)]
                found["association"] = [
                    d,
                    math.sqrt(d),
                    _pmi(both, c_e, c_f, n),
                    _likelihood_ratio(both, c_e, c_f, n),
                    d - dice.other_in_row(j, k),
                    d - dice.other_in_column(j, k),
                    *around,
                    sum(around) / 2,
                ]
                found["model1"] = _nine(m_f, m_b, j, k)
                row, column = product.other_in_row(j, k), product.other_in_column(j, k)
                first, top = float(g > 0 and g >= row), float(g > 0 and g >= column)
                found["hmm"] = [
                    *_nine(h_f, h_b, j, k),
                    *(min(max(math.log10(x.at(j, k) + 1e-6) / 6 + 1, 0.0), 1.0) for x in (h_f, h_b)),
                    (g - row) / (g + row + 0.01),
                    (g - column) / (g + column + 0.01),
                    first,
                    top,
                    first * top,
                    h_f.at(j, k) - m_f.at(j, k),
                    h_b.at(j, k) - m_b.at(j, k),
                ]
                steps = [(-1, -1), (1, 1), (-1, 1), (1, -1), (-1, 0), (1, 0), (0, -1), (0, 1)]
                near = [product.at(j + dj, k + dk) for dj, dk in steps]
                before, after = near[:2]
                agreement = 2 * before * after / (before + after) if before + after > 0 else 0.0
                found["neighbors"] = [*near, max(before, after), (before + after) / 2 * g, agreement]
                found["position"] = [
                    *(far, far**2, math.sqrt(far)),
                    *(x * (1 - g) for x in (far, far**2, math.sqrt(far))),
                    float(j == k),
                    float(j == k == 0),
                    float(j == J - 1 and k == K - 1),
                    far * min(abs(math.log(J / K)), 1.0),
                    float(min(J, K) <= 5),
                ]
                found["orthography"] = spelling
                often_e, often_f = c_e > n / 100, c_f > n / 100
                often, one = float(often_e and often_f), float(often_e != often_f)
                rare = float(c_e <= 3 and c_f <= 3)
                logs = [min(math.log1p(c) / math.log1p(n), 1.0) if n > 0 else 0.0 for c in (c_e, c_f)]
                found["frequency"] = [
                    *logs,
                    abs(logs[0] - logs[1]),
                    float(c_e <= 1 and c_f <= 1),
                    rare,
                    often,
                    one,
                    float(c_e == 0 or c_f == 0),
                    float(c_e == c_f == 0),
                    rare * g,
                    often * g,
                    one * g,
                    rare * spelling[4],
                    one * far,
                ]
                n_e, n_f = float(evidence.null_source[at_e]), float(evidence.null_target[at_f])
                found["null"] = [
                    *(n_e, n_f, max(n_e, n_f), (1 - n_e) * (1 - n_f)),
                    often_e * (1 - g),
                    often_f * (1 - g),
                ]
                found["identical"] = _identical((source, target), j, k, rare)
                for group, values in found.items():
                    rows.setdefault(group, []).append(values)
    return {group: np.array(values) for group, values in rows.items()}


def word_features(evidence: Any, side: str) -> FloatArray:
    """Features of all words of one side, shape ``(words, 14)``."""
    rows, n, bitext, words = [], float(evidence.n_pairs), evidence.bitext, evidence.bitext.words.words
    source = side == "source"
    for pair in range(len(evidence.bitext.source_start) - 1):
        _, _, grids, counts = _parts(evidence, pair)
        many, few = grids["hmm_forward"].values, grids["hmm_backward"].values
        if not source:
            many, few = few.T, many.T
        begin = int((evidence.bitext.source_start if source else evidence.bitext.target_start)[pair])
        for i, count in enumerate(counts[0 if source else 1].tolist()):
            word = words[(bitext.source if source else bitext.target)[begin + i]]
            own, products = many[i].tolist(), (many[i] * few[i]).tolist()
            order = sorted(range(len(own)), key=own.__getitem__, reverse=True)
            second = own[order[1]] if len(own) > 1 else 0.0
            adjacent = float(second > 0 and abs(order[0] - order[1]) == 1)
            best = int(np.argmax(products)) if own and max(products) > 0 else None
            around = [x for x in (i - 1, i + 1) if best is not None and 0 <= x < len(many)]
            rows.append(
                [
                    1.0,
                    min(math.log1p(count) / math.log1p(n), 1.0) if n > 0 else 0.0,
                    float(count <= 3),
                    float(count > n / 100),
                    min(len(letters_of(word)) / 10, 1.0),
                    float(punctuation(word)),
                    float(digits_of(word) != ""),
                    min(sum(products), 4.0) / 4,
                    min(sum(own), 4.0) / 4,
                    second,
                    adjacent,
                    adjacent * second,
                    float((evidence.null_source if source else evidence.null_target)[begin + i]),
                    sum(float(few[x, best]) for x in around) / 2,
                ]
            )
    return np.array(rows).reshape(-1, 14)

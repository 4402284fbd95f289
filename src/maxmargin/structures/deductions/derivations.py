"""Derivations of sentences by a grammar: binary rules, unary rules without cycles, and preterminals over tokens.

Example ``i`` is a sentence of ``n`` tokens. A part is a rule used over a span, ``z_{b,e,r} = 1``: binary rules over two
tokens or more, preterminals over one, unary rules over any span. Where a span is split follows from the rules used
below, so a derivation is known by its parts. Rules are numbered: binary ones, then unary ones, then preterminals.

Cost of the argmax: ``n^3 / 6`` times the binary rules, and ``n^2 / 2`` times the unary ones.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels
from maxmargin.structures._arrays import example_numbers, integers, offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.structures.deductions.charts import Chart


class Derivations(Chart):
    """A packed batch of sentences with one block, ``rules``.

    Args:
        lengths: numbers of tokens, at least 1, shape ``(n_examples,)``.
        n_symbols: symbols of the grammar are numbered from 0; each must be in a rule.
        binary: ``(n_binary, 3)``, rules ``A -> B C`` as rows ``(A, B, C)``.
        unary: ``(n_unary, 2)``, rules ``A -> B``; no symbol may come back to itself.
        preterminals: the symbols that may stand over a token, each at most once.
        start: the symbol of the whole sentence.

    An output is an int64 array ``(n_used, 3)``: begin, end and rule of each step of the derivation, in preorder: a rule
    before those that derive its symbols, left before right.
    """

    name = "derivation"
    kernel = "Derivations"

    def __init__(
        self,
        lengths: npt.ArrayLike,
        n_symbols: int,
        binary: npt.ArrayLike,
        unary: npt.ArrayLike,
        preterminals: npt.ArrayLike,
        start: int = 0,
    ) -> None:
        self._set_lengths(lengths)
        self.n_symbols = _checks.integer("n_symbols", n_symbols, least=1)
        self.binary = _rules(binary, 3, "binary", self.n_symbols)
        self.unary = _rules(unary, 2, "unary", self.n_symbols)
        self.preterminals = _rules(preterminals, 1, "preterminals", self.n_symbols)[:, 0]
        self.start = _checks.integer("start", start, least=0, most=self.n_symbols - 1)
        used = {self.start, *self.binary.ravel().tolist(), *self.unary.ravel().tolist(), *self.preterminals.tolist()}
        if len(used) < self.n_symbols:
            raise ValueError(f"symbol {min(set(range(self.n_symbols)) - used)} is in no rule; number those that are")
        self._rank = _ranks(self.unary, self.n_symbols)
        self._set_blocks("rules")
        self._check_lengths()

    def __repr__(self) -> str:
        return (
            f"Derivations({self.n_examples} sentences, {int(self.lengths.sum())} tokens, {self.n_symbols} symbols, "
            f"{self.n_rules} rules)"
        )

    @property
    def n_rules(self) -> int:
        """Binary and unary rules and preterminals."""
        return len(self.binary) + len(self.unary) + len(self.preterminals)

    @cached_property
    def _left_sides(self) -> IntArray:
        """The symbol that each rule derives."""
        return np.concatenate([self.binary[:, 0], self.unary[:, 0], self.preterminals])

    @cached_property
    def _batch(self) -> Any:
        binary, unary = (np.ascontiguousarray(rules, dtype=np.int32).ravel() for rules in (self.binary, self.unary))
        preterminals = np.ascontiguousarray(self.preterminals, dtype=np.int32)
        return _kernels.DerivationsBatch(self.lengths, self.n_symbols, binary, unary, preterminals, self.start)

    @cached_property
    def _part_offsets(self) -> IntArray:
        sizes = np.full(int(self._row_offsets[-1]), len(self.binary) + len(self.unary), dtype=np.int64)
        sizes[self._tokens] = len(self.unary) + len(self.preterminals)
        return offsets_of(sizes)

    @cached_property
    def _first_number(self) -> IntArray:
        first = np.zeros(int(self._row_offsets[-1]), dtype=np.int64)
        first[self._tokens] = len(self.binary)
        return first

    @cached_property
    def columns(self) -> IntArray:
        """For every part its row of the chart times the number of rules, plus its rule: shape ``(n_parts,)``."""
        sizes = np.diff(self._part_offsets)
        shift = np.arange(len(sizes)) * self.n_rules + self._first_number - self._part_offsets[:-1]
        return np.arange(self.n_parts) + np.repeat(shift, sizes)

    def _check_lengths(self) -> None:
        """ValueError naming the first sentence whose length the grammar cannot derive."""
        longest = int(self.lengths.max(initial=1))
        derived = np.zeros((longest + 1, self.n_symbols), dtype=np.bool_)  # by how many tokens they can have
        derived[1, self.preterminals] = True
        for n in range(1, longest + 1):
            left, right = derived[1:n][:, self.binary[:, 1]], derived[n - 1 : 0 : -1][:, self.binary[:, 2]]
            derived[n, self.binary[(left & right).any(axis=0), 0]] = True
            for rank in range(1, int(self._rank.max(initial=0)) + 1):
                rules = self.unary[self._rank[self.unary[:, 0]] == rank]
                derived[n, rules[derived[n, rules[:, 1]], 0]] = True
        absent = ~derived[self.lengths, self.start]
        if absent.any():
            i = int(np.argmax(absent))
            raise ValueError(
                f"example {i}: the grammar derives no sentence of {int(self.lengths[i])} tokens; add rules or remove it"
            )

    def _order(self, number: IntArray) -> IntArray:
        return -self._rank[self._left_sides[number]]

    def _check(self, rows: IntArray, index: int) -> None:
        """The rows derive the start symbol over the sentence, in preorder."""
        n_binary, n_unary, at = len(self.binary), len(self.unary), 0
        if (outside := (rows[:, 2] < 0) | (rows[:, 2] >= self.n_rules)).any():
            raise ValueError(
                f"example {index}: rule {int(rows[np.argmax(outside), 2])} is out of range for {self.n_rules} rules"
            )
        given: list[list[int]] = rows.tolist()
        wanted = [(self.start, 0, int(self.lengths[index]))]
        while wanted:
            symbol, begin, end = wanted.pop()
            if at == len(given):
                raise ValueError(f"example {index}: no rule derives symbol {symbol} over ({begin}, {end})")
            rule = given[at][2]
            if given[at][:2] != [begin, end] or self._left_sides[rule] != symbol:
                raise ValueError(
                    f"example {index}: entry {at} uses rule {rule} over {tuple(given[at][:2])}, where symbol {symbol} "
                    f"over ({begin}, {end}) is to be derived; give the rules in preorder"
                )
            at += 1
            unary = n_binary <= rule < n_binary + n_unary
            if not unary and (end == begin + 1) != (rule >= n_binary):
                raise ValueError(
                    f"example {index}: entry {at - 1} uses rule {rule} over ({begin}, {end}); preterminals stand over "
                    "one token, binary rules over more"
                )
            if rule < n_binary:
                split = given[at][1] if at < len(given) else end
                if not begin < split < end:
                    raise ValueError(
                        f"example {index}: entry {at - 1}, a binary rule, is not followed by its left part"
                    )
                _, left, right = self.binary[rule].tolist()
                wanted += [(right, split, end), (left, begin, split)]
            elif unary:
                wanted.append((int(self.unary[rule - n_binary, 1]), begin, end))
        if at < len(given):
            raise ValueError(f"example {index}: entries from {at} on are not part of the derivation")

    def select(self, indices: npt.ArrayLike) -> Self:
        """The batch of the given examples, in that order; an example may come several times."""
        found = type(self).__new__(type(self))
        chosen = self.lengths[example_numbers(indices, self.n_examples)]
        found.__dict__.update({**self.__getstate__(), "lengths": chosen})
        found._set_blocks("rules")
        return found


def _rules(given: npt.ArrayLike, width: int, what: str, n_symbols: int) -> IntArray:
    """Rules as checked rows of symbols."""
    found = integers(given, what)
    if found.size == 0 or (width == 1 and found.ndim == 1):
        found = found.reshape(-1, width)
    if found.ndim != 2 or found.shape[1] != width:
        raise ValueError(f"{what} must have shape (n_rules, {width}), got {found.shape}")
    if found.size and not 0 <= found.min() <= found.max() < n_symbols:
        raise ValueError(f"{what}: symbols must lie in 0..{n_symbols - 1}")
    if len(np.unique(found, axis=0)) < len(found):
        raise ValueError(f"{what}: a rule is given twice; give each once")
    return found


def _ranks(unary: IntArray, n_symbols: int) -> IntArray:
    """For each symbol the longest chain of unary rules below it; ValueError if one comes back to where it began."""
    rank = np.zeros(n_symbols, dtype=np.int64)
    for _ in range(n_symbols):
        above = rank.copy()
        np.maximum.at(above, unary[:, 0], rank[unary[:, 1]] + 1)
        if (above == rank).all():
            return rank
        rank = above
    raise ValueError("the unary rules form a cycle; drop one of them")

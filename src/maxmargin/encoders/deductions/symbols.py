"""Sequences of symbols: strings, or lists of any hashable values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _memory
from maxmargin.encoders.data.labels import plain
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray

_CODES = 0x110000
"""Code points of Unicode."""

_FEW = 1 << 16
"""Below so many characters sorting them is faster than a table of all code points."""


@dataclass(frozen=True, eq=False)
class SymbolSequences:
    """Sequences end to end, their symbols numbered.

    Attributes:
        offsets: where each sequence begins in ``numbers``, and the end; shape ``(n_sequences + 1,)``.
        numbers: the number of every symbol, equal ones alike; shape ``(n_symbols,)``.
        symbols: the different symbols, by their numbers.
    """

    offsets: IntArray
    numbers: npt.NDArray[np.int32]
    symbols: tuple[Hashable, ...]

    @classmethod
    def parse(cls, sequences: Sequence[Any], where: Callable[[int], str]) -> SymbolSequences:
        """Check and number sequences; ``where`` names the one at a place in errors."""
        if all(type(sequence) is str for sequence in sequences):
            return cls._of_strings(sequences)
        flat: list[Hashable] = []
        lengths = []
        for at, sequence in enumerate(sequences):
            own = list(sequence) if isinstance(sequence, str) else _listed(sequence, where(at))
            flat += own
            lengths.append(len(own))
        index: dict[Hashable, int] = {}
        numbers = [index.setdefault(symbol, len(index)) for symbol in flat]
        return cls(offsets_of(lengths), np.array(numbers, dtype=np.int32), tuple(index))

    @classmethod
    def _of_strings(cls, strings: Sequence[str]) -> SymbolSequences:
        """By code points, without a look at single characters."""
        lengths = np.fromiter(map(len, strings), dtype=np.int64, count=len(strings))
        _memory.require(16.0 * float(lengths.sum()), "the characters of all strings", "give fewer strings at a time")
        codes = np.frombuffer("".join(strings).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        if len(codes) < _FEW:
            few, numbers = np.unique(codes, return_inverse=True)
            return cls(offsets_of(lengths), numbers.astype(np.int32), tuple(map(chr, few.tolist())))
        found = np.zeros(_CODES, dtype=np.bool_)
        found[codes] = True
        number = np.cumsum(found, dtype=np.int32) - np.int32(1)
        return cls(offsets_of(lengths), number[codes], tuple(map(chr, np.flatnonzero(found).tolist())))

    @property
    def lengths(self) -> IntArray:
        """Of the sequences, shape ``(n_sequences,)``."""
        return np.diff(self.offsets)

    def counts(self) -> IntArray:
        """How often each of ``symbols`` occurs."""
        return np.bincount(self.numbers, minlength=len(self.symbols)).astype(np.int64)


def _listed(sequence: Any, what: str) -> list[Hashable]:
    listed = _checks.listed(what, sequence, "a string or a list of symbols")
    return [plain(symbol, what, "symbol") for symbol in listed]

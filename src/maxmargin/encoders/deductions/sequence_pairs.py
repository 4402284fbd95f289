"""Pairs of sequences as inputs of edit alignments: their symbols numbered, the features that they bring checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from maxmargin._messages import shown
from maxmargin._sparse import sp
from maxmargin.encoders.data import checks
from maxmargin.encoders.data.inputs import SequencePair
from maxmargin.encoders.deductions.symbols import SymbolSequences
from maxmargin.structures.base import IntArray


class ParsedPairs(NamedTuple):
    """Checked pairs of sequences.

    Attributes:
        sequences: all first sequences, then all second ones.
        pairs: features of pairs, one matrix per example; None without.
        gaps: features of gaps, a matrix per sequence in the order of ``sequences``; None without.
    """

    sequences: SymbolSequences
    pairs: checks.Rows | None
    gaps: checks.Rows | None

    @classmethod
    def of(cls, X: list[Any]) -> ParsedPairs:
        """Check inputs; ValueError naming the example."""
        pairs = [sequence_pair(x, index) for index, x in enumerate(X)]
        sides = "first", "second"
        sequences = SymbolSequences.parse(
            [one.first for one in pairs] + [one.second for one in pairs],
            lambda at: f"example {at % len(pairs)}: its {sides[at // len(pairs)]} sequence",
        )
        return cls(sequences, _pair_rows(pairs, sequences.lengths), _gap_rows(pairs, sequences.lengths))

    @property
    def n(self) -> int:
        """Number of examples."""
        return len(self.sequences.offsets) // 2

    def counts(self) -> Counter[Hashable]:
        """How often each symbol occurs."""
        counts = self.sequences.counts()
        return Counter(dict(zip(self.sequences.symbols, counts.tolist(), strict=True)))


def sequence_pair(x: Any, index: int) -> SequencePair:
    """One input; ValueError naming the example if it is not a pair."""
    if isinstance(x, SequencePair):
        return x
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise ValueError(
            f"example {index}: X must be a pair of sequences, such as two strings, or mm.SequencePair, got {shown(x)}"
        )
    return SequencePair(*x)


def _pair_rows(pairs: list[SequencePair], lengths: IntArray) -> checks.Rows | None:
    """The features of pairs, if any example has them; then all must."""
    if all(one.pair_features is None for one in pairs):
        return None
    given = []
    for index, one in enumerate(pairs):
        n, m = int(lengths[index]), int(lengths[len(pairs) + index])
        if one.pair_features is None:
            raise ValueError(f"example {index}: it has no pair_features, but others do; give them for all or for none")
        features = one.pair_features
        if not sp.issparse(features) and np.ndim(features) == 3:
            array = checks.array(features, index, "pair_features", "fiub", "real numbers in an (n, m, d) array")
            if array.shape[:2] != (n, m):
                raise ValueError(
                    f"example {index}: pair_features have shape {array.shape}, the sequences {n} and {m} symbols"
                )
            features = array.reshape(n * m, array.shape[2])
        given.append(features)
    rows = checks.rows(given, "pair_features")
    return _fitting(rows, lengths[: len(pairs)] * lengths[len(pairs) :], "pair_features", "pairs of symbols")


def _gap_rows(pairs: list[SequencePair], lengths: IntArray) -> checks.Rows | None:
    """The features of gaps, if any example has them; then all must."""
    given = [one.first_features for one in pairs] + [one.second_features for one in pairs]
    missing = [features is None for features in given]
    if all(missing):
        return None
    if any(missing):
        at = missing.index(True)
        name = "first_features" if at < len(pairs) else "second_features"
        raise ValueError(
            f"example {at % len(pairs)}: it has no {name}, but there are features of other gaps; give them for all "
            "sequences or for none"
        )
    checked = checks.Rows(
        [checks.matrix(features, at % len(pairs), "features of gaps") for at, features in enumerate(given)],
        "features of gaps",
    )
    width = checked.matrices[0].shape[1]
    for at, (found, wanted) in enumerate(zip(checked.matrices, lengths.tolist(), strict=True)):
        if found.shape != (wanted, width):
            name = "first_features" if at < len(pairs) else "second_features"
            raise ValueError(
                f"example {at % len(pairs)}: {name} have shape {found.shape}, expected {(wanted, width)}: one row for "
                "each symbol"
            )
    return checked


def _fitting(rows: checks.Rows, wanted: IntArray, what: str, of: str) -> checks.Rows:
    wrong = np.diff(rows.offsets) != wanted
    if wrong.any():
        index = int(np.argmax(wrong))
        raise ValueError(
            f"example {index}: {what} have {int(np.diff(rows.offsets)[index])} rows, but there are "
            f"{int(wanted[index])} {of}; give one row each"
        )
    return rows

"""Links between the words of a sentence pair, the currency of the package.

The links of one pair are an int64 array of shape ``(k, 2)``: (source position, target position), both from 0, distinct
and sorted by (source, target). Source words are rows and left nodes, target words columns and right nodes, everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import FloatArray, IntArray


def as_links(pairs: Iterable[tuple[int, int]] | npt.ArrayLike) -> IntArray:
    """Pairs in any order, with or without repetitions, as links; ValueError if they are no pairs of integers >= 0."""
    return np.unique(as_positions(pairs), axis=0)


def as_positions(pairs: Iterable[tuple[int, int]] | npt.ArrayLike) -> IntArray:
    """The same in the order given, with repetitions, so that other numbers may go with them."""
    array = np.asarray(pairs if isinstance(pairs, np.ndarray) else list(pairs))  # type: ignore[arg-type]
    if not array.size:
        return np.zeros((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ValueError("links must be pairs (source position, target position) of integers")
    positions = array.astype(np.int64)
    if (positions < 0).any():
        raise ValueError("links must be positions from 0; one is negative, or too large")
    return positions


@dataclass(frozen=True, eq=False)
class Reference:
    """What annotators say of one sentence pair.

    Attributes:
        sure: links that must be there, shape ``(k, 2)``.
        possible: links that may be there, shape ``(m, 2)``; contains the sure ones.
    """

    sure: IntArray
    possible: IntArray

    @classmethod
    def of(cls, sure: Iterable[tuple[int, int]] | npt.ArrayLike, possible: Iterable[tuple[int, int]] = ()) -> Self:
        """From pairs in any order; sure links need not be repeated among the possible ones."""
        certain = as_links(sure)
        return cls(certain, as_links(np.concatenate([certain, as_links(possible)])))


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a program says of one sentence pair.

    Attributes:
        links: shape ``(k, 2)``.
        confidence: one number per link, shape ``(k,)``, or None where nothing is known.
    """

    links: IntArray
    confidence: FloatArray | None = None

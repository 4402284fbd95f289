"""Links between the words of sentence pairs, one array per pair or packed into flat arrays.

The links of one pair are an int64 array of shape ``(k, 2)``: (source position, target position), both from 0, distinct
and sorted by (source, target). Source words are rows and left nodes, target words columns and right nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _memory
from maxmargin._sparse import sp
from maxmargin.structures._arrays import array_of, offsets_of
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.alignment.io.formats.pharaoh import parse_text


def as_links(pairs: Iterable[tuple[int, int]] | npt.ArrayLike | str) -> IntArray:
    """Sorted, distinct links from pairs in any order; ValueError unless they are pairs of integers >= 0."""
    return _distinct(as_positions(pairs))


def _distinct(links: IntArray) -> IntArray:
    """Sorted links without repetitions; for the few links of a pair much faster than :func:`numpy.unique`."""
    if len(links) < 2:
        return links
    links = links[np.lexsort((links[:, 1], links[:, 0]))]
    new = np.concatenate(([True], (links[1:] != links[:-1]).any(axis=1)))
    return links if new.all() else links[new]


def as_positions(pairs: Iterable[tuple[int, int]] | npt.ArrayLike | str) -> IntArray:
    """Links in the order given, with repetitions; ValueError unless they are pairs of integers >= 0.

    A string has them as ``0-0 1p2``.
    """
    if isinstance(pairs, str):
        return parse_text(pairs).links
    wanted = "pairs (source position, target position) of integers"
    given: Any = pairs
    if isinstance(pairs, (set, frozenset, dict)) and not sp.issparse(pairs):  # some sparse matrices are dicts
        given = list(pairs)
    if not isinstance(given, (np.ndarray, list)):
        given = _checks.listed("links", given, wanted, sized=False)
    array = array_of(given, "links", "iu", wanted)
    if not array.size:
        return np.zeros((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise ValueError(f"links must be {wanted}, got shape {array.shape}")
    positions = array.astype(np.int64)
    if (positions < 0).any():
        raise ValueError("links must be positions from 0; one is negative, or too large")
    return positions


@dataclass(frozen=True, eq=False)
class Reference:
    """The links of annotators for one sentence pair.

    Attributes:
        sure: links that an alignment must have, shape ``(k, 2)``.
        possible: links that an alignment may have, shape ``(m, 2)``; contains the sure ones.
    """

    sure: IntArray
    possible: IntArray

    @classmethod
    def of(
        cls, sure: Iterable[tuple[int, int]] | npt.ArrayLike | str, possible: Iterable[tuple[int, int]] = ()
    ) -> Self:
        """Build from pairs in any order; sure links need not be repeated among the possible ones.

        Links that are a string, ``0-0 1p2``, have both: those with ``p`` are possible.
        """
        if isinstance(sure, str):
            table = parse_text(sure)
            return cls.of(table.links[table.sure], [*as_links(possible).tolist(), *table.links.tolist()])
        certain, others = as_links(sure), as_positions(possible)
        return cls(certain, _distinct(np.concatenate([certain, others])) if len(others) else certain)


@dataclass(frozen=True, eq=False)
class Prediction:
    """The links of an aligner for one sentence pair.

    Attributes:
        links: shape ``(k, 2)``.
        confidence: one number per link, shape ``(k,)``, or None.
    """

    links: IntArray
    confidence: FloatArray | None = None


def pack(links: Sequence[IntArray | Prediction], called: str = "sentence") -> tuple[IntArray, IntArray]:
    """Links of ``n`` pairs as offsets ``(n + 1,)`` and one array ``(k, 2)``; errors call a pair ``called`` N."""
    arrays = [one.links if isinstance(one, Prediction) else one for one in links]
    if not arrays:
        return np.zeros(1, dtype=np.int64), np.zeros((0, 2), dtype=np.int64)
    for number, one in enumerate(arrays):
        if type(one) is not np.ndarray or one.ndim != 2 or one.shape[1] != 2 or one.dtype != np.int64:
            raise ValueError(
                f"{called} {number + 1}: links must be an int64 array of shape (k, 2); make it with as_links(pairs)"
            )
    _memory.require(16.0 * sum(len(one) for one in arrays), "all links", "give fewer pairs at a time")
    flat = np.ascontiguousarray(np.concatenate(arrays))  # of Fortran order if all the arrays are
    start = offsets_of([len(one) for one in arrays])
    if len(flat) and int(flat.min()) < 0:
        at = int(np.argmax((flat < 0).any(axis=1)))
        raise ValueError(
            f"{called} {int(np.searchsorted(start, at, side='right'))}: link {tuple(flat[at].tolist())} has a negative "
            "position; positions count from 0"
        )
    return start, flat


def unpack(start: IntArray, links: IntArray) -> list[IntArray]:
    """The inverse of :func:`pack`; the arrays share memory with ``links``."""
    ends = start.tolist()
    return [links[first:last] for first, last in pairwise(ends)]


def sentence_of(start: IntArray) -> IntArray:
    """The sentence number of each link, shape ``(k,)``."""
    return np.repeat(np.arange(len(start) - 1, dtype=np.int64), np.diff(start))


def refuse_outside(
    start: IntArray, links: IntArray, n_source: IntArray, n_target: IntArray, called: str = "sentence pair"
) -> None:
    """Raise ValueError for the first link outside its pair; ``n_source`` and ``n_target`` are numbers of words."""
    pair = sentence_of(start)
    outside = (links[:, 0] >= n_source[pair]) | (links[:, 1] >= n_target[pair])
    if outside.any():
        at = int(np.argmax(outside))
        p = int(pair[at])
        raise ValueError(
            f"{called} {p + 1}: link {tuple(links[at].tolist())} is outside its {int(n_source[p])} source and "
            f"{int(n_target[p])} target words; positions count from 0"
        )


def link_keys(sentence: IntArray, links: IntArray) -> IntArray:
    """One number per link, shape ``(k,)``, that orders links by (sentence, source, target)."""
    if not len(links):
        return np.zeros(0, dtype=np.int64)
    source, target = links[:, 0], links[:, 1]
    rows, columns = int(source.max()) + 1, int(target.max()) + 1
    if (int(sentence.max()) + 1) * rows * columns >= 1 << 62:
        # Very large positions are replaced by their ranks.
        source, target = (np.unique(values, return_inverse=True)[1] for values in (source, target))
        word = np.stack([sentence, source], axis=1)
        sentence = np.unique(word, axis=0, return_inverse=True)[1].reshape(-1)
        return np.asarray(sentence * (int(target.max()) + 1) + target, dtype=np.int64)
    return np.asarray((sentence * rows + source) * columns + target, dtype=np.int64)

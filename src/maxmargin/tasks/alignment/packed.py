"""Links of many sentence pairs in flat arrays, so that nothing loops over links in Python."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.tasks.alignment.links import Prediction


def pack(links: Sequence[IntArray | Prediction], called: str = "sentence") -> tuple[IntArray, IntArray]:
    """Links of ``n`` pairs as offsets ``(n + 1,)`` and one array ``(k, 2)``; errors call a pair ``called`` N."""
    arrays = [one.links if isinstance(one, Prediction) else one for one in links]
    if not arrays:
        return np.zeros(1, dtype=np.int64), np.zeros((0, 2), dtype=np.int64)
    try:
        flat = np.ascontiguousarray(np.concatenate(arrays))  # of Fortran order if all the arrays are
        good = flat.ndim == 2 and flat.shape[1] == 2 and flat.dtype == np.int64
    except (TypeError, ValueError):
        good = False
    if not good:  # look for the one that is wrong only where there is one
        for number, one in enumerate(arrays):
            if not isinstance(one, np.ndarray) or one.ndim != 2 or one.shape[1] != 2 or one.dtype != np.int64:
                raise ValueError(
                    f"{called} {number + 1}: links must be an int64 array of shape (k, 2); make it with as_links(pairs)"
                )
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
    """ValueError for the first packed link beyond its pair's words, whose numbers have shape ``(n,)``."""
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
    """One number per link, ``(k,)``, equal where sentence and words are, in the order (sentence, source, target)."""
    if not len(links):
        return np.zeros(0, dtype=np.int64)
    source, target = links[:, 0], links[:, 1]
    rows, columns = int(source.max()) + 1, int(target.max()) + 1
    if (int(sentence.max()) + 1) * rows * columns >= 1 << 62:
        # Absurdly large positions: number those that occur.
        source, target = (np.unique(values, return_inverse=True)[1] for values in (source, target))
        word = np.stack([sentence, source], axis=1)
        sentence = np.unique(word, axis=0, return_inverse=True)[1].reshape(-1)
        return np.asarray(sentence * (int(target.max()) + 1) + target, dtype=np.int64)
    return np.asarray((sentence * rows + source) * columns + target, dtype=np.int64)

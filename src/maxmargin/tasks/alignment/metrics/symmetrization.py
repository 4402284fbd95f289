"""Symmetrization: one set of links from the links of two directed aligners.

    symmetrize(forward, backward, "grow-diag-final-and")

Both directions are given as (source, target). ``forward`` is the aligner that gives each target word at most one source
word, ``backward`` the other one; only the two methods with *final* distinguish them.

- ``intersection``, ``union``, ``forward``, ``backward``: as named.
- ``grow-diag``: the intersection, extended by links of the union that are next to a present link, also diagonally, and
  have a word without links, until nothing changes.
- ``grow-diag-final``: then the links of the forward direction that have a word without links, then the backward ones.
- ``grow-diag-final-and``: then those of which both words have no link.

The result depends on the order in which links are tried. It is that of the Moses toolkit: links by (target, source);
neighbors above, left, below, right and then the diagonal ones; a link added after the current one is visited in the
same scan, one added before it in the next scan.

Koehn, Och and Marcu, *Statistical phrase-based translation*, 2003; Koehn et al., *Edinburgh system description for the
2005 IWSLT speech translation evaluation*. Cost O(k log k) per sentence pair with k links, threads over pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from maxmargin import _checks, _threads
from maxmargin._messages import shown
from maxmargin.structures._arrays import offsets_of, ranges
from maxmargin.structures.base import IntArray
from maxmargin.tasks import _kernels
from maxmargin.tasks.alignment.io.links import Prediction, link_keys, pack, sentence_of, unpack


class Method(StrEnum):
    """The methods by name; the first five in the order of their numbers in the kernel."""

    intersection = "intersection"
    union = "union"
    grow_diag = "grow-diag"
    grow_diag_final = "grow-diag-final"
    grow_diag_final_and = "grow-diag-final-and"
    forward = "forward"
    backward = "backward"


METHODS = tuple(method.value for method in Method)
_COMPILED = METHODS[:5]


def symmetrize(
    forward: Sequence[IntArray | Prediction],
    backward: Sequence[IntArray | Prediction],
    method: str = "grow-diag-final-and",
) -> list[IntArray]:
    """The links of each sentence pair, shape ``(k, 2)``, from those of two directions.

    Args:
        forward: for each pair its links in one direction, sorted and distinct as :func:`as_links` makes them.
        backward: those of the other direction, also as (source, target).
        method: one of :data:`METHODS`.
    """
    if not _checks.is_one_of(method, *METHODS):
        raise ValueError(f"unknown method {shown(method)}; choose one of {', '.join(METHODS)}")
    if len(forward) != len(backward):
        raise ValueError(
            f"{len(forward)} sentence pairs forward and {len(backward)} backward; both need one entry per pair"
        )
    forward_start, forward_links = _checked(forward, "forward")
    backward_start, backward_links = _checked(backward, "backward")
    if method not in _COMPILED:
        return unpack(forward_start, forward_links) if method == "forward" else unpack(backward_start, backward_links)
    links = np.empty((len(forward_links) + len(backward_links), 2), dtype=np.int64)
    count = np.zeros(len(forward), dtype=np.int64)
    _kernels.symmetrize_links(
        _COMPILED.index(method),
        forward_start,
        forward_links,
        backward_start,
        backward_links,
        links,
        count,
        _threads.current(),
    )
    first = forward_start[:-1] + backward_start[:-1]
    return unpack(offsets_of(count), links[ranges(first, first + count)])


def _checked(links: Sequence[IntArray | Prediction], direction: str) -> tuple[IntArray, IntArray]:
    start, flat = pack(links)
    unsorted = np.flatnonzero(np.diff(link_keys(sentence_of(start), flat)) <= 0) + 1
    wrong = np.concatenate([unsorted, np.flatnonzero((flat >= 1 << 31).any(axis=1))])
    if len(wrong):
        at = int(wrong.min())
        raise ValueError(
            f"sentence {int(np.searchsorted(start, at, side='right'))}, {direction}: link {flat[at].tolist()} is too "
            "large, repeated or out of order; make links with as_links(pairs)"
        )
    return start, flat

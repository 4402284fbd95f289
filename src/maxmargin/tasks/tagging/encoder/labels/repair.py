"""Labels of chunks that do not follow their scheme, mended: the chunks stay as conlleval counts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.tasks.tagging.encoder.labels.gold import UNKNOWN, GoldLabels
from maxmargin.tasks.tagging.metrics.chunks import BoolArray, chunk_edges, look_like_chunks, tag_and_type

_STRICT = ("E", "S", "L", "U")


def has_strict_scheme(names: Sequence[str]) -> bool:
    """Return whether labels mark the ends of chunks, as IOBES and BILOU do."""
    return any(name.startswith(tuple(f"{tag}-" for tag in _STRICT)) for name in names)


def repaired(given: GoldLabels, lengths: IntArray) -> tuple[GoldLabels, int]:
    """Return labels that follow their scheme, BIO or IOBES, and how many have changed.

    Each chunk, as conlleval reads the labels, is written again: ``I-NP`` after ``O`` or after another type becomes
    ``B-NP``. Labels beside unknown ones stay.

    Args:
        given: the labels.
        lengths: tokens of each sentence.

    Raises:
        ValueError: the labels do not encode chunks.
    """
    names = [str(name) for name in given.names]
    if not look_like_chunks(names):
        raise ValueError("repair mends labels of chunks, such as B-NP and I-NP, and these are not; leave it out")
    offsets = offsets_of(lengths)
    outside = len(names)
    known = given.numbers >= 0
    codes = np.where(known, given.numbers, outside).astype(np.int64)
    begins, ends = chunk_edges(codes, offsets, [*names, "O"])
    extended = {name: at for at, name in enumerate(names)}
    strict, letters = has_strict_scheme(names), {name.partition("-")[0] for name in names}
    table = np.empty((outside + 1, 2, 2), dtype=np.int64)
    for code, name in enumerate([*names, ""]):
        for begin in (0, 1):
            for end in (0, 1):
                wanted = _written(name, bool(begin), bool(end), strict, letters)
                table[code, begin, end] = code if wanted == name else extended.setdefault(wanted, len(extended))
    found = np.where(known & _beside_known(known, offsets), table[codes, begins.astype(int), ends.astype(int)], codes)
    used = np.unique(found[known])
    everything = list(extended)
    kept = [*range(len(names)), *(int(code) for code in used if code >= outside)]  # new ones only if they occur
    place = np.full(len(everything) + 1, UNKNOWN, dtype=np.int32)
    place[kept] = np.arange(len(kept))
    numbers = np.where(known, place[np.where(known, found, 0)], UNKNOWN).astype(np.int32)
    labels = (*given.names, *(everything[code] for code in kept[len(names) :]))
    return replace(given, numbers=numbers, names=labels), int((numbers != given.numbers).sum())


def _written(name: str, begin: bool, end: bool, strict: bool, letters: set[str]) -> str:
    """Return a label with the tag for a place in its chunk."""
    _, dash, kind = name.partition("-")
    if tag_and_type(name)[0] not in ("B", "I", "E", "S"):
        return name
    if strict and end:
        wanted = ("U" if "U" in letters else "S") if begin else ("L" if "L" in letters else "E")
    else:
        wanted = "B" if begin else "M" if "M" in letters else "I"
    return f"{wanted}{dash}{kind}"


def _beside_known(known: BoolArray, offsets: IntArray) -> BoolArray:
    """Return which tokens have no neighbors with unknown labels."""
    before, after = np.ones(len(known), dtype=bool), np.ones(len(known), dtype=bool)
    before[1:], after[:-1] = known[:-1], known[1:]
    some = np.diff(offsets) > 0
    before[offsets[:-1][some]] = after[offsets[1:][some] - 1] = True
    return before & after

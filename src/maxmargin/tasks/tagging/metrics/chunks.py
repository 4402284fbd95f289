"""Chunks in sequences of labels, counted as conlleval counts them.

A label is a tag and a type, ``B-NP``, split at its first dash: types may have dashes, and a label without one has the
type "". Chunks are not parsed: they begin and end between two tokens, depending on the tags and types on both sides
(``O`` without a type before the first token of a sentence and after the last), so every sequence of labels has a
meaning, even an inconsistent one. With the tags B, I and E of IOB1, IOB2, IOE1 and IOE2, ``[`` and ``]``, which are
chunks of one token, and ``O`` and ``.``, which are outside, a chunk

    ends     after B or I, before B or O;  after E, before E, I or O;  after [ or ];
             after anything that is not outside, before another type
    begins   after B, I or O, before B;  after O or E, before I or E;  before [ or ];
             before anything that is not outside, after another type

These are the rules of conlleval, version 2004-01-26, the program of the CoNLL shared tasks (Tjong Kim Sang and
Buchholz, *Introduction to the CoNLL-2000 shared task*, 2000). It has no rules for S, nor for B after E, so it joins
neighbors of one type in IOBES; two more rules separate them, and change nothing for labels without these tags:

    after E a chunk ends and begins before B;  S is a chunk of one token, whatever stands beside it

L and U of BILOU are read as E and S, M of BMES as I. A predicted chunk is correct if a gold chunk of the same type
begins and ends at the same tokens.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import IntArray

BoolArray = npt.NDArray[np.bool_]

_TAGS = ("O", ".", "B", "I", "E", "S", "[", "]", "other")
_OUTSIDE = 2  # the first two
_READ_AS = {"L": "E", "U": "S", "M": "I"}
_ENDS = ("BB", "BO", "IB", "IO", "EE", "EI", "EO", "EB", "BS", "IS", "ES")
_BEGINS = ("BB", "IB", "OB", "OI", "EE", "EI", "OE", "EB", "SB", "SI", "SE")


def _rules(pairs: tuple[str, ...]) -> BoolArray:
    table = np.zeros((len(_TAGS), len(_TAGS)), dtype=bool)
    for pair in pairs:
        table[_TAGS.index(pair[0]), _TAGS.index(pair[1])] = True
    return table


_END, _BEGIN = _rules(_ENDS), _rules(_BEGINS)
for _single in "S[]":
    _END[_TAGS.index(_single), :] = True
    _BEGIN[:, _TAGS.index(_single)] = True


def tag_and_type(label: Hashable) -> tuple[str, str]:
    """Return the tag and the type of a label: ``("B", "NP")`` of ``B-NP``, ``("O", "")`` of ``O``."""
    tag, _, kind = str(label).partition("-")
    return _READ_AS.get(tag, tag), kind


def look_like_chunks(labels: Sequence[Hashable]) -> bool:
    """Return whether most labels are ``O`` or have one of the tags B, I, E, S, L, U and M, and at least one has."""
    tags = [tag_and_type(label)[0] if isinstance(label, str) else "other" for label in labels]
    inside = sum(tag in ("B", "I", "E", "S") for tag in tags)
    return inside > 0 and 2 * (inside + tags.count("O")) > len(tags)


@dataclass(frozen=True)
class ChunkCounts:
    """Counts of chunks.

    Attributes:
        types: the types of the chunks, sorted.
        of_types: gold, predicted and correct chunks of each type, shape ``(types, 3)``.
        of_sentences: the same for each sentence, shape ``(sentences, 3)``.
    """

    types: tuple[str, ...]
    of_types: IntArray
    of_sentences: IntArray


def count_chunks(gold: IntArray, predicted: IntArray, sentences: IntArray, names: Sequence[Hashable]) -> ChunkCounts:
    """Count the chunks of two labelings of the same sentences, in time linear in the tokens.

    Args:
        gold: indices into ``names``, shape ``(tokens,)``.
        predicted: the same.
        sentences: sentence ``i`` has the tokens ``sentences[i]:sentences[i + 1]``, shape ``(sentences + 1,)``.
        names: the labels.
    """
    types, tag_of, type_of = _parted(names)
    n = len(sentences) - 1
    rows = [_padded(codes, sentences, len(names)) for codes in (gold, predicted)]
    kinds = [type_of[row] for row in rows]
    found = [_boundaries(tag_of[row], kind) for row, kind in zip(rows, kinds, strict=True)]
    ends, begins = [end for end, _ in found], [begin for _, begin in found]

    # Both are in the same chunk from a common begin to the next place where either ends or the types differ.
    alike = kinds[0][1:] == kinds[1][1:]
    places = np.arange(len(alike))
    joined = np.maximum.accumulate(np.where(begins[0] & begins[1] & alike, places, -1))
    parted_at = np.maximum.accumulate(np.where(ends[0] | ends[1] | ~alike, places, -1))
    together = (joined >= parted_at) & (joined >= 0)
    # A chunk is correct at its last token: both end before the next one, or there is none.
    correct = together
    correct[:-1] &= (ends[0] & ends[1])[1:]

    where = np.repeat(np.arange(n), np.diff(sentences) + 1)
    marks = ((begins[0], kinds[0][1:]), (begins[1], kinds[1][1:]), (correct, kinds[0][1:]))
    of_types = np.stack([np.bincount(kind[mark], minlength=len(types)) for mark, kind in marks], axis=1)
    of_sentences = np.stack([np.bincount(where[mark], minlength=n) for mark, _ in marks], axis=1)
    there = np.flatnonzero(of_types.any(axis=1))
    return ChunkCounts(
        tuple(types[kind] for kind in there.tolist()), of_types[there].astype(np.int64), of_sentences.astype(np.int64)
    )


def chunk_edges(codes: IntArray, sentences: IntArray, names: Sequence[Hashable]) -> tuple[BoolArray, BoolArray]:
    """Return at which tokens chunks begin, and at which they end; arguments as for :func:`count_chunks`."""
    _, tag_of, type_of = _parted(names)
    row = _padded(codes, sentences, len(names))
    ends, begins = _boundaries(tag_of[row], type_of[row])
    at = _places(sentences)
    return begins[at - 1], ends[at]


def _parted(names: Sequence[Hashable]) -> tuple[list[str], npt.NDArray[np.int8], npt.NDArray[np.int32]]:
    """Return all types, and the tag and the type of each label and of one more, ``O``."""
    parted = [*map(tag_and_type, names), ("O", "")]
    types = sorted({kind for _, kind in parted})
    place = {kind: at for at, kind in enumerate(types)}
    tag_of = np.array([_TAGS.index(tag) if tag in _TAGS else len(_TAGS) - 1 for tag, _ in parted], dtype=np.int8)
    return types, tag_of, np.array([place[kind] for _, kind in parted], dtype=np.int32)


def _places(sentences: IntArray) -> IntArray:
    """Return the places of tokens in a row of labels with one O before each sentence, and one at the end."""
    return np.arange(sentences[-1]) + np.repeat(np.arange(1, len(sentences)), np.diff(sentences))


def _padded(codes: IntArray, sentences: IntArray, outside: int) -> IntArray:
    """Return such a row."""
    row = np.full(len(codes) + len(sentences), outside, dtype=np.int64)
    row[_places(sentences)] = codes
    return row


def _boundaries(tag: npt.NDArray[np.int8], kind: npt.NDArray[np.int32]) -> tuple[BoolArray, BoolArray]:
    """Return where chunks end before a token and where they begin at it, for all but the first."""
    before, after = tag[:-1], tag[1:]
    changed = kind[:-1] != kind[1:]
    pair = before * np.int8(len(_TAGS)) + after
    end: BoolArray = _END.ravel()[pair] | (changed & (before >= _OUTSIDE))
    begin: BoolArray = _BEGIN.ravel()[pair] | (changed & (after >= _OUTSIDE))
    return end, begin

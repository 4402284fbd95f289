"""Chunks as segments: types of chunks, the labels that write them, and how long they may be.

With ``segments=True`` a tagger cuts sentences into chunks and single tokens outside of chunks, and scores each as a
whole (:class:`~maxmargin.structures.TaggedSegments`): the labels of tokens are the states of a segment's tokens.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from maxmargin._messages import shown
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.structures.chains.transitions import BoolArray, TransitionConstraints
from maxmargin.structures.deductions.segments import FIRST, INSIDE, LAST, SINGLE, TaggedSegments, n_candidate_segments
from maxmargin.tasks.tagging.encoder.labels.repair import has_strict_scheme
from maxmargin.tasks.tagging.metrics.chunks import look_like_chunks, tag_and_type

_REMEDY = "segments are for BIO and IOBES labels; leave segments out, or let repair (--repair) mend the labels"


@dataclass(frozen=True, eq=False)
class ChunkLayout:
    """The segments that labels write.

    Attributes:
        types: types of chunks, then labels outside of chunks, such as ``O``; ``K`` of them.
        states: the labels of first, inside, last and single tokens of each, -1 for none, shape ``(K, 4)``.
        longest: the most tokens of each, shape ``(K,)``.
    """

    types: tuple[str, ...]
    states: IntArray
    longest: IntArray

    @classmethod
    def of_labels(cls, labels: Sequence[Hashable]) -> Self:
        """Return the types of labels, each of any length; ValueError if the labels do not write chunks."""
        names = [str(label) for label in labels]
        if not look_like_chunks(names) or len(set(names)) < len(names):
            raise ValueError(f"the labels do not encode chunks: {', '.join(names[:5])} ...; {_REMEDY}")
        strict = has_strict_scheme(names)
        places = {"B": [FIRST], "I": [INSIDE], "E": [LAST], "S": [SINGLE]} if strict else {"B": [FIRST, SINGLE]}
        places = places if strict else places | {"I": [INSIDE, LAST]}
        found: dict[tuple[str, str], IntArray] = {}
        for code, name in enumerate(names):
            tag, kind = tag_and_type(name)
            inside = tag in places
            own = found.setdefault(("", kind) if inside else (name, name), np.full(4, -1, dtype=np.int64))
            own[places[tag] if inside else slice(None)] = code
        for (_, kind), own in found.items():
            if own[FIRST] < 0 and own[SINGLE] < 0:
                lone = names[int(own.max())]
                raise ValueError(
                    f"there is the label {shown(lone)}, and none that begins a chunk of type {kind}; {_REMEDY}"
                )
        types = tuple(kind for _, kind in found)
        whole = np.array([own[FIRST] == own[INSIDE] for own in found.values()])
        return cls(types, np.array([*found.values()]), np.where(whole, 1, np.iinfo(np.int32).max // 2))

    def fitted(self, codes: IntArray, lengths: IntArray) -> ChunkLayout:
        """Return a copy whose types are at most as long as in labeled sentences."""
        _, length, kind = self.segments(codes, lengths)
        most = np.ones(len(self.types), dtype=np.int64)
        np.maximum.at(most, kind, length)
        return replace(self, longest=np.minimum(self.longest, most))

    def segments(self, codes: IntArray, lengths: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return the first token of each segment, counted over all sentences, its length and its type.

        A chunk begins at its first label, or where the type changes; labels must be known.
        """
        offsets = offsets_of(lengths)
        kind_of = np.zeros(int(self.states.max()) + 1, dtype=np.int64)
        begins = np.zeros(len(kind_of), dtype=bool)
        for number, own in enumerate(self.states):
            kind_of[own[own >= 0]] = number
            begins[own[[FIRST, SINGLE]][own[[FIRST, SINGLE]] >= 0]] = True
        kind, starts = kind_of[codes], begins[codes]
        starts[1:] |= kind[1:] != kind[:-1]
        starts[offsets[:-1][lengths > 0]] = True
        first = np.flatnonzero(starts)
        return first, np.diff(np.append(first, len(codes))), kind[first]

    def candidates(self, codes: IntArray, lengths: IntArray) -> tuple[IntArray, IntArray]:
        """Return the numbers of the gold segments among all candidates of all sentences, and their types.

        Segments that are too long are left out.
        """
        first, length, kind = self.segments(codes, lengths)
        fits = length <= self.longest[kind]
        first, length, kind = first[fits], length[fits], kind[fits]
        offsets = offsets_of(lengths)
        sentence = np.searchsorted(offsets, first, side="right") - 1
        n, begin = lengths[sentence], first - offsets[sentence]
        before = n_candidate_segments(n, self.most) - n_candidate_segments(n - begin, self.most)
        return offsets_of(n_candidate_segments(lengths, self.most))[sentence] + before + length - 1, kind

    @property
    def most(self) -> int:
        """The most tokens of a segment."""
        return int(self.longest.max())

    def rules(self, constraints: TransitionConstraints) -> TransitionConstraints:
        """Return constraints on types, from those on labels; ValueError if these depend on more than types."""
        k = len(self.types)
        pairs, first, last = np.ones((k, k), dtype=bool), np.ones(k, dtype=bool), np.ones(k, dtype=bool)
        starts = [_known(own[[FIRST, SINGLE]]) for own in self.states]
        ends = [_known(own[[LAST, SINGLE]]) for own in self.states]
        for a in range(k):
            first[a] = _one(constraints.first[starts[a]])
            last[a] = _one(constraints.last[ends[a]])
            for b in range(k):
                pairs[a, b] = _one(constraints.pairs[np.ix_(ends[a], starts[b])])
        for own, most in zip(self.states, self.longest, strict=True):
            inner = [(own[a], own[b]) for a, b in ((FIRST, LAST), (FIRST, INSIDE), (INSIDE, INSIDE), (INSIDE, LAST))]
            if most > 1 and not all(constraints.pairs[a, b] for a, b in inner if a >= 0 and b >= 0):
                raise ValueError("forbidden pairs of labels inside of chunks cannot be combined with segments")
        return TransitionConstraints(pairs, first, last)

    def structure(self, lengths: IntArray, constraints: TransitionConstraints | None) -> TaggedSegments:
        """Return the segmentations of sentences, constrained by types."""
        longest = self.longest
        return TaggedSegments(lengths, len(self.types), longest, states=self.states, constraints=constraints)


def _known(states: IntArray) -> IntArray:
    return np.unique(states[states >= 0])


def _one(flags: BoolArray) -> bool:
    """Return the flag that all have."""
    if not flags.size:
        return True
    if bool(flags.any()) != bool(flags.all()):
        raise ValueError(
            "forbidden pairs of labels must be the same for short and long chunks if segments=True: forbid the labels "
            "of both, as ('B-NP', 'B-VP') and ('I-NP', 'B-VP')"
        )
    return bool(flags.flat[0])

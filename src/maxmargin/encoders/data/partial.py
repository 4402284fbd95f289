"""Outputs that are known in part, as users write them: labels that are unknown or one of several, parts, links."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Container, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin.encoders.data.labels import Labels, plain, sequence_of
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.structures.fallbacks.given import Given

_EXAMPLE = re.compile(r"\bexample (\d+)")


@dataclass(frozen=True, eq=False)
class PartialLinks:
    """What is known of the links of a matching, or of the pairs of a pairing, for :class:`maxmargin.LatentSVM`.

    Attributes:
        links: shape ``(k, 2)``, the links that are there.
        possible: shape ``(m, 2)``, further links that may be there or not; all others are absent. None: see ``absent``.
        absent: shape ``(m, 2)``, links that are not there; all others may be. Give ``possible`` or ``absent``.
    """

    links: npt.ArrayLike
    possible: npt.ArrayLike | None = None
    absent: npt.ArrayLike | None = None


@dataclass(frozen=True, eq=False)
class PartialParts:
    """What is known of an output, part by part, for :class:`maxmargin.LatentSVM`.

    For every structure whose outputs have no other form: lattices, programs and structures of your own.

    Attributes:
        values: for each part of the structure's first block (a row of features of a matching, lattice, program or
            structure of your own) 1 if the output has it, 0 if it lacks it, None or -1 if that is unknown.
    """

    values: Any


@dataclass(frozen=True, eq=False)
class PartialSegments:
    """What is known of the segments of a sequence, for :class:`maxmargin.LatentSVM`.

    Attributes:
        known: segments ``(begin, end, label)`` that are there, apart from each other; a label may be None (unknown) or
            a set of labels (one of them is right). Tokens between them are in any segments, or in none. Where there is
            an ``outside`` label, ``(begin, end, outside)`` says of tokens that they are in no segment.
    """

    known: Any


@dataclass(frozen=True, eq=False)
class PartialTree:
    """What is known of a tree over a sentence, for :class:`maxmargin.LatentSVM`.

    Attributes:
        known: nodes ``(begin, end, label)`` that are there, whatever else is; all nodes over one span, the outer ones
            first, as they are learned as one label. With a grammar ``(begin, end, rule)``: steps of the derivation.
        brackets: spans ``(begin, end)`` that no node crosses, whether they are nodes or not.
    """

    known: Any = ()
    brackets: Any = ()


@dataclass(frozen=True, eq=False)
class PartialLabels:
    """Label sequences of all examples in which labels may be unknown or one of several.

    Attributes:
        kinds: the different entries: None for an unknown label, else the labels of which one is right.
        codes: the place in ``kinds`` of each position's entry, example after example.
        offsets: where each example begins in ``codes``, and the end.
    """

    kinds: list[frozenset[Hashable] | None]
    codes: IntArray
    offsets: IntArray

    @classmethod
    def parse(cls, y: Sequence[Any]) -> PartialLabels:
        """Check the outputs of a user: a sequence per example of labels, None, and sets of labels."""
        kinds: list[frozenset[Hashable] | None] = [None]
        place: dict[Hashable, int] = {None: 0}
        codes, lengths = [], []
        for index, given in enumerate(y):
            own = sequence_of(given, index)
            lengths.append(len(own))
            for entry in own:
                several = isinstance(entry, (set, frozenset))
                key: Any = frozenset(entry) if several else plain(entry, f"example {index}")
                if key not in place:
                    if several and not entry:
                        raise ValueError(
                            f"example {index}: an empty set of labels, of which none can be right; use None for unknown"
                        )
                    place[key] = len(kinds)
                    labels = key if several else (key,)
                    kinds.append(frozenset(plain(label, f"example {index}") for label in labels))
                codes.append(place[key])
        return cls(kinds, np.array(codes, dtype=np.int64), offsets_of(lengths))

    def vocabulary(self) -> tuple[Hashable, ...]:
        """All labels: sorted if they can be compared, else in order of appearance; ValueError if there are none."""
        seen = {label: None for kind in self.kinds if kind is not None for label in sorted(kind, key=repr)}
        if not seen:
            raise ValueError("all labels are unknown: give some, or all of them with classes=[...]")
        return Labels(list(seen), np.zeros(1, dtype=np.int64)).vocabulary()

    def table(self, index: dict[Hashable, int]) -> Given:
        """For each kind of entry what it says of each label, shape ``(n_kinds, n_labels)``: 1, -1 or 0.

        ValueError naming the example for a label that has no number.
        """
        table = np.zeros((len(self.kinds), len(index)), dtype=np.int8)
        for kind, labels in enumerate(self.kinds):
            if labels is None:
                continue
            new = [label for label in labels if label not in index]
            if new:
                first = int(np.argmax(self.codes == kind))
                example = int(np.searchsorted(self.offsets, first, side="right")) - 1
                raise ValueError(
                    f"example {example}: label {shown(new[0])} was not seen in training; give all labels with "
                    "classes=[...] or remove the example"
                )
            table[kind] = -1
            table[kind, [index[label] for label in labels]] = 1 if len(labels) == 1 else 0
        return table


def has_unknown(labels: Any, classes: Container[Hashable]) -> bool:
    """Whether one example's labels are not all known: some are None, or sets that are not labels themselves."""
    several = set, frozenset
    return any(
        one is None or (isinstance(one, several) and (isinstance(one, set) or one not in classes))
        for one in sequence_of(labels, 0)
    )


def labeled_spans(given: Any, what: str, wanted: str) -> list[tuple[int, int, Any]]:
    """Rows ``(begin, end, label)`` of a user, with begin and end checked; errors begin with ``what``."""
    found = []
    for row in _checks.listed(what, given, f"a list of {wanted}"):
        own = row.tolist() if isinstance(row, np.ndarray) else row
        if not isinstance(own, (tuple, list)) or len(own) != 3:
            raise ValueError(f"{what} must be a list of {wanted}, got {shown(row)} in it")
        begin, end = (_position(value, what, own) for value in own[:2])
        found.append((begin, end, own[2]))
    return found


def _position(value: Any, what: str, row: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < 1 << 62:
        raise ValueError(f"{what}: begin and end of {shown(row)} must be positions, whole numbers from 0 on")
    return int(value)


def partial_parts(given: PartialParts, index: int, n: int) -> Given:
    """Known parts of one example of ``n`` variable parts: 1 in, -1 out, 0 unknown."""
    wanted = f"a list with 1, 0, or None for unknown for each of its {n} parts"
    values = _checks.listed(f"example {index}: the values of PartialParts", given.values, wanted)
    return _known(values, index, n, wanted)


def partial_nodes(given: Any, index: int, n: int) -> Given:
    """Known 0/1 labels of one example of ``n`` nodes: 1, -1 for label 0, 0 for unknown."""
    wanted = f"a list or 1-D array with 0, 1, or None for unknown for each of its {n} nodes"
    return _known(_checks.listed(f"example {index}: y", given, wanted), index, n, wanted)


def _known(values: Sequence[Any], index: int, n: int, wanted: str) -> Given:
    meaning = {1: 1, 0: -1, -1: 0, None: 0}
    try:
        found = [meaning[value] for value in values]
    except (KeyError, TypeError):
        raise ValueError(f"example {index}: give {wanted}, got {shown(values)}") from None
    if len(found) != n:
        raise ValueError(f"example {index}: give {wanted}, got {len(found)} entries")
    return np.array(found, dtype=np.int8)


@contextlib.contextmanager
def numbered(examples: IntArray) -> Iterator[None]:
    """Count examples in errors as they are counted outside, where ``examples`` are those of a part of a batch."""
    try:
        yield
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        raise ValueError(
            _EXAMPLE.sub(lambda found: f"example {examples[int(found[1])]}", str(error), count=1)
        ) from None

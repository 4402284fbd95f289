"""Gold labels as codes: of any hashable labels, or of the codes and names of a file; unknown ones are marked."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.encoders import checks
from maxmargin.encoders.labels import distinct, sequence, vocabulary
from maxmargin.structures.base import IntArray
from maxmargin.tasks.tagging.model import UNKNOWN
from maxmargin.tasks.tagging.table import Codes

FlatCodes = tuple[Codes, IntArray | None]
"""Codes of all tokens, and the lengths of the label sequences where these are known."""


@dataclass(frozen=True)
class GoldLabels:
    """How labels are read.

    Attributes:
        unknown: the label that stands for one that is not known, besides None.
    """

    unknown: Hashable = None

    def codes(self, y: Any, known: tuple[Hashable, ...] | None = None) -> tuple[tuple[Hashable, ...], Any]:
        """All labels, and those of the sentences as flat codes with lengths."""
        if _are_codes(y):
            return self._given(y[0], y[1], known)
        given = [sequence(labels, index) for index, labels in enumerate(checks.examples(y, "y"))]
        classes = known
        if classes is None:
            seen = [[label for label in labels if not self.is_unknown(label)] for labels in given]
            classes = vocabulary(seen)
            if not classes:
                raise ValueError("no label is known; label at least some tokens")
        place: dict[Hashable, int] = {label: code for code, label in enumerate(classes)}
        flat = []
        for i, labels in enumerate(given):
            for label in labels:
                code = UNKNOWN if self.is_unknown(label) else place.get(label)
                if code is None:
                    raise ValueError(
                        f"sentence {i}: label {label!r} was not seen before; give all labels with classes=[...] at the "
                        "first training"
                    )
                flat.append(code)
        lengths = np.array([len(labels) for labels in given], dtype=np.int64)
        return classes, (np.array(flat, dtype=np.int32), lengths)

    def _given(self, numbers: Codes, names: Sequence[str], known: tuple[Hashable, ...] | None) -> tuple[Any, Any]:
        """Codes of a file, whose labels come in the order of their first appearance."""
        used = [name for name in names if not self.is_unknown(name)]
        classes = known or tuple(sorted(used))
        if not classes:
            raise ValueError("no label is known; label at least some tokens")
        place = {label: code for code, label in enumerate(classes)}
        for name in used:
            if name not in place:
                raise ValueError(f"label {name!r} was not seen before; give all labels at the first training")
        if numbers.size and not (numbers.min() >= UNKNOWN and numbers.max() < len(names)):
            raise ValueError(f"codes of labels must be places in the list of {len(names)} labels, or {UNKNOWN}")
        moved = np.array([*(place.get(name, UNKNOWN) for name in names), UNKNOWN], dtype=np.int32)
        return classes, (moved[numbers], None)

    def classes(self, given: Any) -> tuple[Hashable, ...]:
        """A user's list of all labels, checked."""
        classes = distinct(given)
        for label in classes:
            if self.is_unknown(label):
                raise ValueError(f"classes holds {label!r}, which stands for a label that is not known; leave it out")
        return classes

    def is_unknown(self, label: Hashable) -> bool:
        """Whether a label says that none is known."""
        return label is None or (self.unknown is not None and label == self.unknown)

    def dev_codes(self, y: Any, labels: tuple[Hashable, ...], lengths: IntArray) -> tuple[IntArray, list[Hashable]]:
        """Gold labels as codes; those that the model does not know get codes behind its own."""
        names: list[Hashable] = list(labels)
        place = {label: code for code, label in enumerate(names)}

        def code(label: Hashable) -> int:
            if self.is_unknown(label):
                raise ValueError("the dev data have labels that are not known; leave such sentences out")
            if label not in place:
                place[label] = len(names)
                names.append(label)
            return place[label]

        if _are_codes(y):
            if y[0].size and not (y[0].min() >= 0 and y[0].max() < len(y[1])):
                raise ValueError("the dev data have labels that are not known; leave such sentences out")
            codes = np.array([code(name) for name in y[1]], dtype=np.int64)[y[0]]
        else:
            given = [sequence(some, i) for i, some in enumerate(checks.examples(y, "y_dev"))]
            if len(given) != len(lengths):
                raise ValueError(f"the dev data have {len(lengths)} sentences and {len(given)} label sequences")
            for i, (some, length) in enumerate(zip(given, lengths.tolist(), strict=True)):
                if len(some) != length:
                    raise ValueError(f"dev sentence {i}: {len(some)} labels for {length} tokens; give each token one")
            codes = np.array([code(label) for some in given for label in some], dtype=np.int64)
        if len(codes) != int(lengths.sum()):
            raise ValueError(f"the dev data have {len(codes)} labels for {int(lengths.sum())} tokens")
        return codes, names


def check_lengths(codes: FlatCodes, wanted: IntArray) -> None:
    """One label per token: flat codes, with the lengths of the label sequences where these are known."""
    flat, lengths = codes
    if lengths is not None and len(lengths) != len(wanted):
        raise ValueError(f"{len(wanted)} sentences and {len(lengths)} label sequences; give one for each")
    if lengths is not None and not np.array_equal(lengths, wanted):
        i = int(np.flatnonzero(lengths != wanted)[0])
        raise ValueError(f"sentence {i}: {lengths[i]} labels for {wanted[i]} tokens; give each token one")
    if len(flat) != int(wanted.sum()):
        raise ValueError(f"{len(flat)} labels for {int(wanted.sum())} tokens; give each token one")


def _are_codes(y: Any) -> bool:
    """Whether labels are given as flat codes with their names, and not as two sequences of labels."""
    if not (isinstance(y, tuple) and len(y) == 2 and isinstance(y[0], np.ndarray) and y[0].dtype.kind in "iu"):
        return False
    return isinstance(y[1], (list, tuple)) and all(isinstance(name, str) for name in y[1])

"""Gold labels as codes, from any hashable labels or from the codes and names of a file."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin.encoders import checks
from maxmargin.encoders.labels import distinct, sequence, vocabulary
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.tagging.encoder.extraction import TokenRows
from maxmargin.tasks.tagging.io.table import Codes

UNKNOWN = -1
"""The code of an unknown label."""

FlatCodes = tuple[Codes, IntArray | None]
"""Codes of all tokens, and the lengths of the label sequences if these are known."""


@dataclass(frozen=True)
class GoldLabels:
    """Conversion of labels to codes.

    Attributes:
        unknown: the label that stands for an unknown one, besides None.
    """

    unknown: Hashable = None

    def codes(self, y: Any, known: tuple[Hashable, ...] | None = None) -> tuple[tuple[Hashable, ...], Any]:
        """Return all labels, and those of the sentences as flat codes with lengths."""
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
        """Convert the codes of a file, whose labels are in order of first appearance."""
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
        """Check a list of all labels."""
        classes = distinct(given)
        for label in classes:
            if self.is_unknown(label):
                raise ValueError(f"classes holds {label!r}, which stands for an unknown label; leave it out")
        return classes

    def is_unknown(self, label: Hashable) -> bool:
        """Return whether a label stands for an unknown one."""
        return label is None or (self.unknown is not None and label == self.unknown)

    def dev_codes(self, y: Any, labels: tuple[Hashable, ...], lengths: IntArray) -> tuple[IntArray, list[Hashable]]:
        """Return gold labels as codes; labels that the model does not know get codes after its own."""
        names: list[Hashable] = list(labels)
        place = {label: code for code, label in enumerate(names)}

        def code(label: Hashable) -> int:
            if self.is_unknown(label):
                raise ValueError("the dev data have unknown labels; leave such sentences out")
            if label not in place:
                place[label] = len(names)
                names.append(label)
            return place[label]

        if _are_codes(y):
            if y[0].size and not (y[0].min() >= 0 and y[0].max() < len(y[1])):
                raise ValueError("the dev data have unknown labels; leave such sentences out")
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


@dataclass(frozen=True, eq=False)
class LabeledRows:
    """Labeled sentences.

    Attributes:
        rows: attributes of the sentences.
        codes: labels of all tokens, :data:`UNKNOWN` for unknown ones, shape ``(n_tokens,)``.
        sentence_weight: weight of each sentence, shape ``(n_sentences,)``; None for 1.
        token_weight: cost of a wrong label at each token, shape ``(n_tokens,)``; None for 1.
    """

    rows: TokenRows
    codes: Codes
    sentence_weight: FloatArray | None = None
    token_weight: FloatArray | None = None

    @property
    def lengths(self) -> IntArray:
        """Tokens per sentence."""
        return self.rows.lengths

    def runs(self) -> LabeledRows:
        """Return the runs of known labels, each as a sentence of its own."""
        known, offsets = self.codes >= 0, self.rows.offsets
        begins = known.copy()
        begins[1:] &= ~known[:-1]
        first = offsets[:-1][self.lengths > 0]
        begins[first] = known[first]
        lengths = np.diff(np.append(np.flatnonzero(begins[known]), known.sum()))
        sentence = np.repeat(np.arange(len(self.lengths)), self.lengths)
        edges = None
        if self.rows.edges is not None:
            # Edge rows belong to a token and the one before it, so the first tokens of sentences have none.
            inner = np.ones(len(known), dtype=bool)
            inner[first] = False
            chosen = np.flatnonzero((known & ~begins)[inner])
            edges = self.rows.edges.select(chosen, np.maximum(lengths - 1, 0))
        rows = TokenRows(self.rows.tokens.select(np.flatnonzero(known), lengths), edges)
        weight = None if self.sentence_weight is None else self.sentence_weight[sentence[np.flatnonzero(begins)]]
        return LabeledRows(
            rows, self.codes[known], weight, None if self.token_weight is None else self.token_weight[known]
        )


def check_lengths(codes: FlatCodes, wanted: IntArray) -> None:
    """Raise ValueError unless there is one label per token."""
    flat, lengths = codes
    if lengths is not None and len(lengths) != len(wanted):
        raise ValueError(f"{len(wanted)} sentences and {len(lengths)} label sequences; give one for each")
    if lengths is not None and not np.array_equal(lengths, wanted):
        i = int(np.flatnonzero(lengths != wanted)[0])
        raise ValueError(f"sentence {i}: {lengths[i]} labels for {wanted[i]} tokens; give each token one")
    if len(flat) != int(wanted.sum()):
        raise ValueError(f"{len(flat)} labels for {int(wanted.sum())} tokens; give each token one")


def _are_codes(y: Any) -> bool:
    """Return whether labels are flat codes with their names, and not two sequences of labels."""
    if not (isinstance(y, tuple) and len(y) == 2 and isinstance(y[0], np.ndarray) and y[0].dtype.kind in "iu"):
        return False
    return isinstance(y[1], (list, tuple)) and all(isinstance(name, str) for name in y[1])

"""Gold labels as codes, from any hashable labels or from the codes and names of a file."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._messages import quoted
from maxmargin.encoders.data import checks
from maxmargin.encoders.data.labels import Labels
from maxmargin.structures._arrays import offsets_of, ranges
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.common.tokens.table import Codes
from maxmargin.tasks.tagging.encoder.attributes import Attributes
from maxmargin.tasks.tagging.encoder.extraction import TokenRows

UNKNOWN = -1
"""The code of an unknown label."""


@dataclass(frozen=True, eq=False)
class GoldLabels:
    """Labels of all tokens, numbered.

    Attributes:
        numbers: place of each token's label in ``names``, :data:`UNKNOWN` for unknown labels, shape ``(n_tokens,)``.
        names: the labels that were given, except unknown ones.
        lengths: lengths of the label sequences; None if the labels were given as flat codes.
    """

    numbers: Codes
    names: tuple[Hashable, ...]
    lengths: IntArray | None

    @classmethod
    def parse(cls, y: Any, unknown: Hashable = None) -> GoldLabels:
        """Read sequences of labels, or the codes and names of a file; None and ``unknown`` stand for unknown labels."""
        if isinstance(y, GoldLabels):
            return y
        lengths = None
        if _are_codes(y):
            numbers, given = y
            if numbers.size and not (numbers.min() >= UNKNOWN and numbers.max() < len(given)):
                raise ValueError(f"codes of labels must be places in the list of {len(given)} labels, or {UNKNOWN}")
        else:
            labels = Labels.parse(checks.examples(y, "y"))
            given, lengths = dict.fromkeys(labels.flat), np.diff(labels.offsets)
            place = {label: number for number, label in enumerate(given)}
            numbers = np.fromiter(map(place.__getitem__, labels.flat), np.int32, len(labels.flat))
        names = tuple(label for label in given if label not in (None, unknown))
        return cls(_renumbered(given, names)[numbers], names, lengths)

    def vocabulary(self) -> tuple[Hashable, ...]:
        """All labels: sorted if they can be compared, else in order of appearance."""
        return Labels(list(self.names), np.zeros(1, dtype=np.int64)).vocabulary()

    def codes(self, classes: tuple[Hashable, ...]) -> Codes:
        """Return the places of the labels in ``classes``; ValueError if a label is not there."""
        moved = _renumbered(self.names, classes)
        if (new := np.flatnonzero(moved[:-1] == UNKNOWN)).size:
            where = ""
            if self.lengths is not None:
                token = int(np.argmax(self.numbers == new[0]))
                where = f"sentence {int(np.searchsorted(offsets_of(self.lengths), token, side='right')) - 1}: "
            raise ValueError(
                f"{where}label {quoted(self.names[new[0]])} was not seen before; give all labels with classes=[...] at "
                "the first training"
            )
        return moved[self.numbers]

    def check_lengths(self, wanted: IntArray) -> None:
        """Raise ValueError unless there is one label per token."""
        n, lengths = int(wanted.sum()), self.lengths
        if lengths is not None and len(lengths) != len(wanted):
            raise ValueError(f"{len(wanted)} sentences and {len(lengths)} label sequences; give one for each")
        if lengths is not None and not np.array_equal(lengths, wanted):
            i = int(np.flatnonzero(lengths != wanted)[0])
            raise ValueError(f"sentence {i}: {lengths[i]} labels for {wanted[i]} tokens; give each token one")
        if len(self.numbers) != n:
            raise ValueError(f"{len(self.numbers)} labels for {n} tokens; give each token one")


def _renumbered(names: Any, classes: tuple[Hashable, ...]) -> Codes:
    """Return the place of each name in ``classes``, :data:`UNKNOWN` if it has none; one more entry for unknown ones."""
    place = {label: code for code, label in enumerate(classes)}
    return np.array([*(place.get(name, UNKNOWN) for name in names), UNKNOWN], dtype=np.int32)


@dataclass(frozen=True, eq=False)
class LabeledRows:
    """Labeled sentences.

    Attributes:
        rows: attributes of the sentences.
        codes: labels of all tokens, :data:`UNKNOWN` for unknown ones, shape ``(n_tokens,)``.
        sentence_weight: weight of each sentence, shape ``(n_sentences,)``; None for 1.
        loss_weight: cost of a wrong label at each token, shape ``(n_tokens,)``; None for 1.
        repaired: number of labels that were mended.
    """

    rows: TokenRows
    codes: Codes
    sentence_weight: FloatArray | None = None
    loss_weight: FloatArray | None = None
    repaired: int = 0

    @property
    def lengths(self) -> IntArray:
        """Tokens per sentence."""
        return self.rows.lengths

    @property
    def incomplete(self) -> bool:
        """Whether labels are unknown."""
        return bool((self.codes < 0).any())

    @property
    def labeled(self) -> IntArray:
        """The sentences with known labels."""
        return np.flatnonzero(np.diff(np.append(0, np.cumsum(self.codes >= 0))[self.rows.offsets]))

    @classmethod
    def joined(cls, some: Sequence[LabeledRows]) -> LabeledRows:
        """Join labeled sentences of the same attributes; there must be some, all weighted or none."""

        def whole(name: str) -> Any:
            values = [getattr(one, name) for one in some]
            return None if values[0] is None else np.concatenate(values)

        edges = [one.rows.edges for one in some if one.rows.edges is not None]
        segments = [one.rows.segments for one in some if one.rows.segments is not None]
        rows = TokenRows(
            Attributes.joined([one.rows.tokens for one in some]),
            Attributes.joined(edges) if edges else None,
            Attributes.joined(segments) if segments else None,
        )
        repaired = sum(one.repaired for one in some)
        return cls(rows, whole("codes"), whole("sentence_weight"), whole("loss_weight"), repaired)

    def select(self, sentences: IntArray) -> LabeledRows:
        """Return some of the sentences."""
        lengths, rows = self.lengths[sentences], self.rows
        tokens = ranges(rows.offsets[sentences], rows.offsets[sentences + 1])
        edges = None
        if rows.edges is not None:
            pairs = ranges(rows.edge_offsets[sentences], rows.edge_offsets[sentences + 1])
            edges = rows.edges.select(pairs, np.maximum(lengths - 1, 0))
        segments = rows.segments
        if segments is not None:
            counts, offsets = segments.lengths, offsets_of(segments.lengths)
            segments = segments.select(ranges(offsets[sentences], offsets[sentences + 1]), counts[sentences])
        return LabeledRows(
            TokenRows(rows.tokens.select(tokens, lengths), edges, segments),
            self.codes[tokens],
            None if self.sentence_weight is None else self.sentence_weight[sentences],
            None if self.loss_weight is None else self.loss_weight[tokens],
            self.repaired,
        )

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
            rows, self.codes[known], weight, None if self.loss_weight is None else self.loss_weight[known]
        )


def _are_codes(y: Any) -> bool:
    """Return whether labels are flat codes with their names, and not two sequences of labels."""
    if not (isinstance(y, tuple) and len(y) == 2 and isinstance(y[0], np.ndarray) and y[0].dtype.kind in "iu"):
        return False
    return isinstance(y[1], (list, tuple)) and all(isinstance(name, str) for name in y[1])

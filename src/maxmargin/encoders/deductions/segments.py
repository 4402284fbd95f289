"""Sequences cut into labeled segments.

X is a list of ``(length, d)`` matrices or :class:`SegmentSequence`, y of lists of segments ``(begin, end, label)``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin._sparse import sp
from maxmargin.encoders.base import Batch, State
from maxmargin.encoders.data import checks
from maxmargin.encoders.data.inputs import SegmentSequence
from maxmargin.encoders.data.labels import Labels, distinct, label_from_json, label_to_json
from maxmargin.encoders.data.names import ColumnNames, Name, Namer, WeightTable, joined, table
from maxmargin.encoders.data.partial import PartialSegments, numbered
from maxmargin.encoders.data.segments import Row, SegmentOutputs, filled, known_segments, most_of, segments_of, written
from maxmargin.encoders.rows import KernelEncoder, kernel_from_state
from maxmargin.features.base import Features
from maxmargin.features.kernel import Kernel, KernelMap
from maxmargin.features.parts import Beside, Stacked
from maxmargin.features.tied import TiedRows
from maxmargin.structures.base import IntArray, Structure
from maxmargin.structures.chains.transitions import TransitionConstraints
from maxmargin.structures.deductions.segments import (
    FIRST,
    INSIDE,
    LAST,
    ROLES,
    SINGLE,
    Segments,
    candidate_segments,
    token_states,
)
from maxmargin.structures.fallbacks.given import Given
from maxmargin.structures.sparse import SparsePoint

_PLACES = {"I": (), "BI": ("first", "later"), "BIES": ("first", "inside", "last", "single")}
"""Words for the states of each label."""

Longest = int | Mapping[Hashable, int] | None


@dataclass(frozen=True, eq=False)
class SegmentEncoder(KernelEncoder):
    """Encodes sequences that are cut into labeled segments.

    Attributes:
        classes: all labels, in the order of the weights' columns; None: those of the training data.
        longest: the most tokens of a segment: one number, one by label, or None for the longest of the training data;
            once fitted, a number for each label.
        roles: which tokens of a segment have weights of their own, see :func:`maxmargin.structures.token_states`.
        outside: the label of tokens that are in no given segment; None: segments must cover all tokens.
        forbidden: pairs of labels that may not follow each other; None for the beginning or the end.
        n_features: columns of the features of tokens.
        n_segment_features: columns of the features of segments; 0 without any.
        kernel: a kernel in place of explicit features of tokens, or None.
        support: with a kernel, the rows that it compares others with.
    """

    classes: tuple[Hashable, ...] | None = None
    longest: Longest | tuple[int, ...] = None
    roles: str = "BI"
    outside: Hashable = None
    forbidden: tuple[tuple[Hashable, Hashable], ...] = ()
    n_features: int | None = None
    n_segment_features: int | None = None
    kernel: Kernel | None = field(default=None, kw_only=True)
    support: KernelMap | None = field(default=None, kw_only=True)

    kind = "segments"

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.one_of("roles", self.roles, tuple(ROLES))
        if isinstance(self.longest, Mapping):
            for label, most in self.longest.items():
                _checks.integer(f"longest[{shown(label)}]", most, least=1)
        elif self.longest is not None and not isinstance(self.longest, tuple):
            _checks.integer("longest", self.longest, least=1)

    @property
    def _columns(self) -> int:
        """One per state of a token."""
        return int(token_states(self.n_labels, self.roles).max()) + 1 if self.n_labels else 0

    @property
    def _longest(self) -> tuple[int, ...]:
        """The longest segment of each label of a fitted encoder."""
        assert isinstance(self.longest, tuple)
        return self.longest

    def parse(self, X: list[Any]) -> tuple[checks.Rows, checks.Rows | None]:
        """The features of tokens, and of segments if there are any."""
        given = [x if isinstance(x, SegmentSequence) else SegmentSequence(x) for x in X]
        some = [x.segment_features is not None for x in given]
        if any(some) and not all(some):
            raise ValueError(
                f"example {some.index(False)}: no segment features, but {sum(some)} of {len(some)} sequences have "
                "them; give them for all or for none"
            )
        tokens = checks.rows([x.features for x in given], "features", "an empty sequence has no segments")
        wholes = checks.rows([x.segment_features for x in given], "segment features") if any(some) else None
        return tokens, wholes

    def parse_outputs(self, y: list[Any]) -> SegmentOutputs:
        """The segments of all examples."""
        return SegmentOutputs.parse(y)

    def learn(self, parsed: tuple[checks.Rows, checks.Rows | None], y: Sequence[Any]) -> Self:
        """Labels (sorted where they can be), the longest segments and widths."""
        return self._with_widths(parsed)._with_labels(most_of(SegmentOutputs.parse(y), {}))

    def learn_partial(self, parsed: tuple[checks.Rows, checks.Rows | None], y: Sequence[Any]) -> Self:
        """Labels are those that are given somewhere; all of them are as long as segments whose label is unknown."""
        whole = np.array([index for index, one in enumerate(y) if not self.is_partial(one)], dtype=np.int64)
        with numbered(whole):
            most = most_of(SegmentOutputs.parse([y[index] for index in whole.tolist()]), {})
        unnamed = 1
        for index, one in enumerate(y):
            for begin, end, labels in known_segments(one, index) if isinstance(one, PartialSegments) else ():
                unnamed = max(unnamed, end - begin if labels is None else 1)
                for label in sorted(labels or (), key=repr):
                    most[label] = max(most.get(label, 1), end - begin)
        names = [*most, *(distinct(self.classes) if self.classes is not None else ())]
        return self._with_widths(parsed)._with_labels({name: max(most.get(name, 1), unnamed) for name in names})

    def _with_widths(self, parsed: tuple[checks.Rows, checks.Rows | None]) -> Self:
        tokens, wholes = parsed
        return replace(
            self,
            n_features=tokens.width,
            n_segment_features=0 if wholes is None else wholes.width,
            support=self._support(tokens),
        )

    def learn_blocks(self, blocks: Iterable[tuple[Any, Any]]) -> Self:
        """Widths are those of the first block; labels and the longest segments those of all."""
        learned = super().learn_blocks(blocks)
        most: dict[Hashable, int] = {}
        for _, y in blocks:
            most_of(SegmentOutputs.parse(checks.examples(y, "y")), most)
        return replace(learned, classes=self.classes, longest=self.longest)._with_labels(most)

    def _with_labels(self, most: dict[Hashable, int]) -> Self:
        """A copy with the labels and the longest segments of the training data, as ``most`` has them."""
        if self.outside is not None:
            most = {**most, self.outside: 1}
        labels = Labels(list(most), np.zeros(1, dtype=np.int64)).vocabulary()
        classes = labels if self.classes is None else distinct(self.classes)
        if self.outside is not None and self.outside not in classes:
            classes = (*classes, self.outside)
        if not classes:
            raise ValueError("y has no segment; give some, or classes=[...]")
        given = self.longest
        if isinstance(given, Mapping):
            for label in given:
                if label not in classes:
                    raise ValueError(
                        f"longest names {shown(label)}, which is not a label; there are {_listed(classes)}"
                    )
        assert not isinstance(given, tuple)  # as it is not fitted
        if given is not None and not isinstance(given, Mapping):
            given = dict.fromkeys(classes, given)
        found = {label: int((given or {}).get(label, most.get(label, 1))) for label in classes}
        if self.outside is not None:
            found[self.outside] = 1
        fitted = replace(self, classes=classes, longest=tuple(found.values()))
        _ = fitted._constraints  # which checks the pairs
        return fitted

    @cached_property
    def _constraints(self) -> TransitionConstraints | None:
        """The constraints on labels; None if nothing is forbidden."""
        pairs: list[Any] = []
        for given in _checks.listed("forbidden", self.forbidden, "a list of pairs of labels", sized=False):
            pair = _checks.listed("a forbidden transition", given, "a pair of labels; None stands for the start or end")
            for label in pair:
                if label is not None and label not in self._index:
                    raise ValueError(
                        f"forbidden names {shown(label)}, which is not a label; there are {_listed(self.classes)}"
                    )
            pairs.append(tuple(None if label is None else str(self._index[label]) for label in pair))
        return TransitionConstraints.forbid([str(k) for k in range(self.n_labels)], pairs) if pairs else None

    def structure(self, lengths: IntArray) -> Segments:
        """The segmentations of sequences of these lengths."""
        states = token_states(self.n_labels, self.roles)
        return Segments(lengths, self.n_labels, self._longest, states=states, constraints=self._constraints)

    def batch(self, parsed: tuple[checks.Rows, checks.Rows | None]) -> Batch:
        """The tokens of all sequences, and their segments."""
        tokens, wholes = parsed
        tokens.require(self.n_features)
        if (wholes is None) != (not self.n_segment_features):
            raise ValueError(
                "example 0: segment features must be given for all sequences, in training and in prediction, or for "
                "none (mm.SegmentSequence(features, segment_features))"
            )
        structure, k = self.structure(np.diff(tokens.offsets)), self.n_labels
        offsets = structure.blocks[2].offsets // k
        features: list[Features] = [TiedRows(_one_hot(structure.row_lengths - 1, structure.most), offsets, k)]
        if wholes is not None:
            wholes.require(self.n_segment_features)
            wrong = np.flatnonzero(np.diff(wholes.offsets) != np.diff(offsets))
            if wrong.size:
                i = int(wrong[0])
                raise ValueError(
                    f"example {i}: {int(np.diff(wholes.offsets)[i])} rows of segment features for "
                    f"{int(np.diff(offsets)[i])} segments of up to {structure.most} tokens; give "
                    f"longest={structure.most} and a row for each of "
                    f"mm.candidate_segments({int(structure.lengths[i])}, {structure.most})"
                )
            features.append(TiedRows(wholes.matrix, offsets, k))
        n = structure.n_examples
        return Batch(
            structure,
            Stacked(
                TiedRows(self._row_matrix(tokens), tokens.offsets, structure.n_states_each),
                TiedRows(np.zeros((n, 0)), np.arange(n + 1), k**2, constant=True),
                features[0] if len(features) == 1 else Beside(*features),
            ),
        )

    def encode(self, batch: Batch, y: Sequence[Any]) -> SparsePoint:
        """Labels to numbers, tokens outside of segments to segments of one token, then to vertices."""
        structure = batch.structure
        assert isinstance(structure, Segments)
        return structure.encode(self._numbered(structure, y), names=self.classes)

    def check(self, batch: Batch, y: Sequence[Any]) -> None:
        """Refuse what is not a segmentation. Segments longer than any of the training data are allowed, and missed."""
        structure = batch.structure
        assert isinstance(structure, Segments)
        most = max(int(structure.lengths.max(initial=1)), structure.most)
        any_length = Segments(structure.lengths, self.n_labels, most, constraints=self._constraints)
        any_length.encode(self._numbered(structure, y), names=self.classes)

    def is_partial(self, output: Any) -> bool:
        """:class:`PartialSegments` and :class:`PartialParts`."""
        return isinstance(output, PartialSegments) or super().is_partial(output)

    def known_parts(self, structure: Structure, output: Any, index: int) -> Given:
        """See :meth:`Encoder.known_parts`: states that the tokens of known segments cannot have are out."""
        if not isinstance(output, PartialSegments):
            return super().known_parts(structure, output, index)
        assert isinstance(structure, Segments)
        states, n = structure.states, int(structure.lengths[index])
        allowed = np.ones((n, structure.n_states_each), dtype=bool)
        begins = np.isin(np.arange(structure.n_states_each), states[:, [FIRST, SINGLE]])
        for begin, end, labels in known_segments(output, index):
            where = f"example {index}: known segment {shown((begin, end, written(labels)))}"
            if end > n:
                raise ValueError(f"{where} ends after the sequence of {n} tokens")
            codes = self._codes_of(labels, end - begin, where)
            if labels == frozenset((self.outside,)):
                allowed[begin:end] &= np.isin(np.arange(allowed.shape[1]), states[codes, SINGLE])
                continue
            places = [SINGLE] if end - begin == 1 else [FIRST, *[INSIDE] * (end - begin - 2), LAST]
            for token, place in enumerate(places, start=begin):
                allowed[token] &= np.isin(np.arange(allowed.shape[1]), states[codes, place])
            if self.roles == "I":
                for token in {begin - 1, end} & set(range(n)) if self._longest[codes[0]] > 1 else ():
                    allowed[token, states[codes[0], FIRST]] = False
            elif end < n:
                allowed[end] &= begins
        return np.where(allowed, 0, -1).astype(np.int8).ravel()

    def _codes_of(self, labels: frozenset[Hashable] | None, length: int, where: str) -> list[int]:
        """The labels that a known segment of so many tokens may have; ValueError if states of tokens cannot say so."""
        if labels is None:
            labels = frozenset(label for label in self.classes or () if label != self.outside)
        for label in labels:
            if label not in self._index:
                raise ValueError(
                    f"{where}: label {shown(label)} was not seen in training; give all labels with classes=[...] or "
                    "remove the segment"
                )
        if self.outside in labels:
            if len(labels) > 1 and length > 1:
                raise ValueError(
                    f"{where}: tokens outside of segments are not a segment of {length} tokens; give the label "
                    "outside alone"
                )
            length = 1
        codes = sorted(self._index[label] for label in labels)
        found = [k for k in codes if self._longest[k] >= length]
        if not found:
            raise ValueError(f"{where} is longer than its label allows; cut it, or raise longest")
        if self.roles == "I" and labels != frozenset((self.outside,)):
            rules = self._constraints
            alone = len(found) == 1 and (
                self._longest[found[0]] == 1 or (rules and not rules.pairs[found[0], found[0]])
            )
            if not alone:
                raise ValueError(
                    f'{where}: with roles="I" tokens do not show where segments begin; use roles="BI", or give one '
                    "label and forbid it after itself"
                )
        return found

    def _numbered(self, structure: Segments, y: Sequence[Any]) -> list[Any]:
        """Rows of begin, end and the label's number, for every token of each sequence."""
        given, index = SegmentOutputs.parse(y), self._index
        found = []
        for i, length in enumerate(structure.lengths.tolist()):
            rows = []
            for begin, end, label in given[i]:
                if label not in index:
                    raise ValueError(
                        f"example {i}: label {shown(label)} was not seen in training; give all labels with "
                        "classes=[...] or remove the example"
                    )
                rows.append((begin, end, index[label]))
            found.append(rows if self.outside is None else filled(rows, length, index[self.outside]))
        return found

    def decode(self, batch: Batch, outputs: Sequence[Any]) -> list[list[Row]]:
        """Lists of ``(begin, end, label)``, without those outside."""
        names = self.classes or ()
        return [
            [(b, e, names[k]) for b, e, k in rows.tolist() if self.outside is None or names[k] != self.outside]
            for rows in outputs
        ]

    def label_text(self, number: int) -> str:
        """A label in names."""
        return str((self.classes or ())[number])

    def _state_text(self, state: int) -> str:
        """A state of tokens in names: the label, and the place in its segment."""
        label, place = divmod(state, max(ROLES[self.roles]) + 1)
        places = _PLACES[self.roles]
        return f"{self.label_text(label)}{f' ({places[place]})' if places else ''}"

    def name_parts(self, batch: Batch, x: Any) -> list[Namer]:
        """Tokens with their states, transitions, and segments with their labels."""
        structure, k = batch.structure, self.n_labels
        assert isinstance(structure, Segments)
        states, pair = structure.n_states_each, joined(self.label_text, k)
        segments = candidate_segments(int(structure.lengths[0]), structure.most)
        return [
            lambda at: Name(f"token {at // states}", self._state_text(at % states)),
            lambda at: Name("transition", pair(at)),
            lambda at: Name("tokens {} to {}".format(*(segments[at // k] - (0, 1))), self.label_text(at % k)),
        ]

    def name_weights(self, columns: ColumnNames) -> list[WeightTable]:
        """Those of tokens by state, of pairs of labels, and of lengths and features of segments by label."""
        k, wide = self.n_labels, self.n_segment_features or 0
        n_states = k * (max(ROLES[self.roles]) + 1)
        tokens = self._row_names(columns, self.n_features, "features", self._state_text)
        assert tokens.size % n_states == 0
        segments = columns.of("segment_features", wide) if wide else str
        return [
            tokens,
            table(1, lambda at: "transition", k**2, joined(self.label_text, k)),
            table(max(self._longest), lambda at: f"length {at + 1}", k, self.label_text),
            table(wide, segments, k, self.label_text),
        ]

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Twice the common segments out of all on both sides: the score is F1 over all segments."""
        own = {row for row in segments_of(gold, 0) if self.outside is None or row[2] != self.outside}
        return 2.0 * len(own & set(predicted)), float(len(own) + len(predicted))

    @property
    def n_weights(self) -> int:
        """Those of tokens by state, of pairs of labels, and of lengths and features of segments by label."""
        if not self.n_labels:
            return 0
        wide = max(self._longest) + (self.n_segment_features or 0)
        return self._n_row_weights(self.n_features) + self.n_labels**2 + wide * self.n_labels

    @property
    def layout(self) -> tuple[Any, ...]:
        """Widths, the labels in order with their longest segments, roles, the kernel and its training rows."""
        widths = self.n_features, self.n_segment_features
        return self.kind, *widths, self.classes, self._longest, self.roles, self._kernel_layout

    def state(self) -> State:
        """Labels, settings, widths and the kernel."""
        return {
            "classes": [label_to_json(label) for label in self.classes or ()],
            "longest": list(self._longest),
            "roles": self.roles,
            "outside": None if self.outside is None else self._index[self.outside],
            "forbidden": [[None if one is None else self._index[one] for one in pair] for pair in self.forbidden],
            "n_features": self.n_features,
            "n_segment_features": self.n_segment_features,
            **self._kernel_state(),
        }

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        if not all(isinstance(state[name], list) for name in ("classes", "longest", "forbidden")):
            raise ValueError("its labels or longest segments are not lists")
        classes = distinct([label_from_json(label) for label in state["classes"]])
        longest = tuple(_checks.integer("longest", most, least=1, most=(1 << 30) - 1) for most in state["longest"])
        if len(longest) != len(classes):
            raise ValueError("it has not one longest segment for each label")

        def named(number: Any) -> Hashable:
            at = None if number is None else _checks.integer("a label", number, least=0, most=len(classes) - 1)
            return None if at is None else classes[at]

        n_features = _checks.integer("n_features", state["n_features"], least=0)
        kernel, support = kernel_from_state(state, n_features)
        fitted = cls(
            classes=classes,
            longest=longest,
            roles=state["roles"],
            outside=named(state["outside"]),
            forbidden=tuple((named(a), named(b)) for a, b in state["forbidden"]),
            n_features=n_features,
            n_segment_features=_checks.integer("n_segment_features", state["n_segment_features"], least=0),
            kernel=kernel,
            support=support,
        )
        _ = fitted._constraints
        return fitted


def _one_hot(columns: IntArray, width: int) -> Any:
    """A CSR matrix with a one in each row."""
    n = len(columns)
    return sp.csr_array((np.ones(n), columns.astype(np.int32), np.arange(n + 1, dtype=np.int32)), shape=(n, width))


def _listed(labels: Sequence[Hashable] | None) -> str:
    return ", ".join(map(str, labels or ()))

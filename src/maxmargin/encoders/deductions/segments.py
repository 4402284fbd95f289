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
from maxmargin.encoders.data.labels import Labels, distinct, label_from_json, label_to_json, plain
from maxmargin.encoders.rows import KernelEncoder, kernel_from_state
from maxmargin.features.base import Features
from maxmargin.features.kernel import Kernel, KernelMap
from maxmargin.features.parts import Beside, Stacked
from maxmargin.features.tied import TiedRows
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.structures.chains.transitions import TransitionConstraints
from maxmargin.structures.deductions.segments import ROLES, Segments, token_states
from maxmargin.structures.sparse import SparsePoint

Row = tuple[int, int, Hashable]
Longest = int | Mapping[Hashable, int] | None


@dataclass(frozen=True, eq=False)
class SegmentOutputs(Sequence[list[Row]]):
    """The segments of all examples as they were given.

    Attributes:
        rows: begin, end and label of each, example after example.
        offsets: where each example begins in ``rows``, and the end.
    """

    rows: list[Row]
    offsets: IntArray

    @classmethod
    def parse(cls, y: Sequence[Any]) -> SegmentOutputs:
        """Check the outputs of a user: for each example a list of ``(begin, end, label)``."""
        if isinstance(y, SegmentOutputs):
            return y
        found = [segments_of(given, index) for index, given in enumerate(y)]
        return cls([row for rows in found for row in rows], offsets_of([len(rows) for rows in found]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: Any) -> Any:
        return self.rows[self.offsets[index] : self.offsets[index + 1]]


def segments_of(given: Any, index: int) -> list[Row]:
    """The segments of one example; ValueError naming it if they are not ``(begin, end, label)``."""
    what = f"example {index}: y"
    rows = _checks.listed(what, given, "a list of segments (begin, end, label)")
    found = []
    for row in rows:
        own = row.tolist() if isinstance(row, np.ndarray) else row
        if not isinstance(own, (tuple, list)) or len(own) != 3:
            raise ValueError(f"{what} must be a list of segments (begin, end, label), got {shown(row)} in it")
        begin, end = (_position(value, what, own) for value in own[:2])
        found.append((begin, end, plain(own[2], f"example {index}")))
    return found


def _position(value: Any, what: str, row: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value < 1 << 62:
        raise ValueError(f"{what}: begin and end of {shown(row)} must be positions, whole numbers from 0 on")
    return int(value)


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

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        return {label: k for k, label in enumerate(self.classes or ())}

    @property
    def n_labels(self) -> int:
        """How many labels there are, the one outside too."""
        return len(self.classes or ())

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
        tokens, wholes = parsed
        learned = replace(
            self,
            n_features=tokens.width,
            n_segment_features=0 if wholes is None else wholes.width,
            support=self._support(tokens),
        )
        return learned._with_labels(_most_of(SegmentOutputs.parse(y), {}))

    def learn_blocks(self, blocks: Iterable[tuple[Any, Any]]) -> Self:
        """Widths are those of the first block; labels and the longest segments those of all."""
        learned = super().learn_blocks(blocks)
        most: dict[Hashable, int] = {}
        for _, y in blocks:
            _most_of(SegmentOutputs.parse(checks.examples(y, "y")), most)
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
            pair = _checks.listed("a forbidden transition", given, "a pair of labels, each may be None")
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
        return structure.encode(self._numbered(structure, y))

    def check(self, batch: Batch, y: Sequence[Any]) -> None:
        """Refuse what is not a segmentation. Segments longer than any of the training data are allowed, and missed."""
        structure = batch.structure
        assert isinstance(structure, Segments)
        most = max(int(structure.lengths.max(initial=1)), structure.most)
        any_length = Segments(structure.lengths, self.n_labels, most, constraints=self._constraints)
        any_length.encode(self._numbered(structure, y))

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
            found.append(rows if self.outside is None else _filled(rows, length, index[self.outside]))
        return found

    def decode(self, batch: Batch, outputs: Sequence[Any]) -> list[list[Row]]:
        """Lists of ``(begin, end, label)``, without those outside."""
        names = self.classes or ()
        return [
            [(b, e, names[k]) for b, e, k in rows.tolist() if self.outside is None or names[k] != self.outside]
            for rows in outputs
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


def _most_of(outputs: SegmentOutputs, most: dict[Hashable, int]) -> dict[Hashable, int]:
    """The longest segment of each label, added to those of earlier outputs."""
    for begin, end, label in outputs.rows:
        most[label] = max(most.get(label, 1), end - begin)
    return most


def _filled(rows: list[tuple[int, int, int]], length: int, outside: int) -> list[tuple[int, int, int]]:
    """Segments in order, with one of a token for every token that is in none of them."""
    found: list[tuple[int, int, int]] = []
    at = 0
    for begin, end, label in sorted(row for row in rows if row[2] != outside):
        found += [(t, t + 1, outside) for t in range(at, min(begin, length))]
        found.append((begin, end, label))
        at = end
    return found + [(t, t + 1, outside) for t in range(at, length)]


def _one_hot(columns: IntArray, width: int) -> Any:
    """A CSR matrix with a one in each row."""
    n = len(columns)
    return sp.csr_array((np.ones(n), columns.astype(np.int32), np.arange(n + 1, dtype=np.int32)), shape=(n, width))


def _listed(labels: Sequence[Hashable] | None) -> str:
    return ", ".join(map(str, labels or ()))

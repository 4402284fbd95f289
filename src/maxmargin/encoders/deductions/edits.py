"""Edit alignments: X is a list of pairs of sequences, y of their alignments, each a ``(k, 2)`` array of positions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _kernels, _memory, _threads
from maxmargin._messages import shown
from maxmargin._sparse import sp
from maxmargin.encoders.base import Batch, Encoder, State
from maxmargin.encoders.data import checks
from maxmargin.encoders.data.labels import label_from_json, label_to_json, plain
from maxmargin.encoders.data.names import ColumnNames, Name, Namer, WeightTable, after, table
from maxmargin.encoders.deductions.edit_features import MOST_SYMBOLS, Columns, EditFeatures, Tables, matrix
from maxmargin.encoders.deductions.sequence_pairs import ParsedPairs, sequence_pair
from maxmargin.encoders.deductions.symbols import SymbolSequences
from maxmargin.features.parts import PartFeatures, Stacked
from maxmargin.structures._arrays import offsets_of, ranges
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.deductions.edits import Edits
from maxmargin.structures.sparse import SparsePoint

_VERDICT = 3
"""Features of saying that two sequences do not match: a constant, the mean of the lengths, their difference."""

_LENGTH = 0.1
"""Lengths count in tens, so that their weights are of the size of others."""


@dataclass(frozen=True, eq=False)
class EditEncoder(Encoder):
    """Encodes pairs of sequences; see :mod:`maxmargin.encoders.deductions.edit_features` for the features of symbols.

    Attributes:
        gaps: "affine" or "linear".
        nonmatches: whether two sequences may also be no match.
        symbols: whether the model has features of symbols, besides those that the inputs bring.
        symmetric: whether the order of the two sequences does not matter.
        context: whether gaps see the neighbors of their symbols.
        classes_of: classes of symbols, such as vowels and consonants; None for none.
        min_count: symbols that occur less often in training are unknown.
        known: the known symbols; None before it is fitted.
        n_pair_features: columns of the inputs' features of pairs.
        n_gap_features: columns of their features of gaps.
    """

    gaps: str = "affine"
    nonmatches: bool = False
    symbols: bool = True
    symmetric: bool = False
    context: bool = True
    classes_of: Mapping[Hashable, Hashable] | None = None
    min_count: int = 1
    known: tuple[Hashable, ...] | None = field(default=None, repr=False)
    n_pair_features: int = 0
    n_gap_features: int = 0

    kind = "edits"
    model_class = "maxmargin.models.edits:EditModel"

    def __post_init__(self) -> None:
        _checks.one_of("gaps", self.gaps, ("affine", "linear"))
        for name in ("nonmatches", "symbols", "symmetric", "context"):
            _checks.flag(name, getattr(self, name))
        _checks.integer("min_count", self.min_count, least=1)
        classes = {} if self.classes_of is None else self.classes_of
        if not isinstance(classes, Mapping):
            raise ValueError(f"classes_of must be a mapping of symbols to classes, or None, got {shown(classes)}")
        checked = {
            plain(symbol, "classes_of", "symbol"): plain(name, "classes_of", "label")
            for symbol, name in classes.items()
        }
        if len(set(checked.values())) >= MOST_SYMBOLS:
            raise ValueError(f"classes_of must have fewer than {MOST_SYMBOLS} different classes")
        object.__setattr__(self, "classes_of", checked)

    @cached_property
    def features(self) -> EditFeatures:
        """The features of symbols."""
        classes = self.classes_of or {}
        return EditFeatures(self.known or (), classes, self.symmetric, self.context, self.symbols)

    @property
    def affine(self) -> bool:
        """Whether gaps have openings."""
        return self.gaps == "affine"

    def parse(self, X: list[Any]) -> ParsedPairs:
        """The sequences, their symbols numbered, and the features that they bring."""
        return ParsedPairs.of(X)

    def learn(self, parsed: ParsedPairs, y: Sequence[Any]) -> Self:
        """The symbols and the numbers of features of the inputs."""
        counts = parsed.counts() if self.symbols else Counter()
        return self._learned(counts, parsed)

    def learn_blocks(self, blocks: Iterable[tuple[Any, Any]]) -> Self:
        """Symbols are those of all blocks, numbers of features those of the first."""
        counts: Counter[Hashable] = Counter()
        first: ParsedPairs | None = None
        for X, _ in blocks:
            parsed = self.parse(checks.examples(X))
            first = parsed if first is None else first
            if self.symbols:
                counts.update(parsed.counts())
        if first is None:
            raise ValueError("there are no examples: give at least one")
        return self._learned(counts, first)

    def _learned(self, counts: Counter[Hashable], parsed: ParsedPairs) -> Self:
        known = [symbol for symbol, count in counts.items() if count >= self.min_count]
        if len(known) > MOST_SYMBOLS:
            raise ValueError(
                f"there are {len(known)} different symbols, and each pair of them would have weights; at most "
                f"{MOST_SYMBOLS} are supported: raise min_count (now {self.min_count}), or set symbols=False and give "
                "features of pairs"
            )
        widths = (0 if rows is None else rows.width for rows in (parsed.pairs, parsed.gaps))
        ordered = tuple(sorted(known, key=lambda symbol: (type(symbol).__name__, repr(symbol))))
        pairs, gaps = widths
        return replace(self, known=ordered, n_pair_features=pairs, n_gap_features=gaps)

    def batch(self, parsed: ParsedPairs) -> Batch:
        """All pairs of sequences with the features of their parts."""
        for given, width, what in (
            (parsed.pairs, self.n_pair_features, "pair_features"),
            (parsed.gaps, self.n_gap_features, "first_features and second_features"),
        ):
            if given is not None:
                given.require(width)
            elif width:
                raise ValueError(
                    f"example 0: it has no {what}; give the {width} columns that the model was trained with"
                )
        lengths = parsed.sequences.lengths
        first, second = lengths[: parsed.n], lengths[parsed.n :]
        structure = Edits(first, second, affine=self.affine, nonmatch=self.nonmatches)
        entries = 16.0 * 6 * float((first * second).sum() if len(first) else 0)
        _memory.require(entries, "the features of all pairs of symbols", "give fewer examples at a time")
        rows = self.features.rows(parsed.sequences)
        maps = [self._pair_map(parsed, rows, structure), *self._gap_maps(parsed, rows, structure)]
        if self.nonmatches:
            maps.insert(0, PartFeatures(_verdict(first, second), structure.blocks[0].offsets))
        return Batch(structure, Stacked(*maps))

    def _pair_map(self, parsed: ParsedPairs, rows: IntArray, structure: Edits) -> PartFeatures:
        """The features of all cells."""
        offsets, n = parsed.sequences.offsets, parsed.n
        first, second = structure.first, structure.second
        cells = offsets_of(first * second)
        # The symbols of each cell: those of the first sequence repeated, those of the second over and over.
        upper = np.arange(int(offsets[n])).repeat(np.repeat(second, first))
        lower = ranges(np.repeat(offsets[n:-1], first), np.repeat(offsets[n + 1 :], first))
        numbers = parsed.sequences.numbers
        equal = numbers[upper] == numbers[lower]
        columns = self.features.pair_columns(rows[upper], rows[lower], equal)
        some = (first > 0) & (second > 0)
        ends = np.zeros((2, len(upper)), dtype=np.bool_)
        ends[0, cells[:-1][some]] = ends[1, cells[1:][some] - 1] = True
        columns += self.features.end_columns(equal, ends[0], ends[1])
        block = structure.blocks[int(self.nonmatches)]
        return self._map(columns, self.features.n_pair_weights, parsed.pairs, None, block.offsets)

    def _gap_maps(self, parsed: ParsedPairs, rows: IntArray, structure: Edits) -> list[PartFeatures]:
        """The features of the symbols in gaps, and of openings."""
        offsets, n = parsed.sequences.offsets, parsed.n
        before, after = self.features.neighbors(rows, offsets)
        # The order of parts: of each example the first sequence, then the second.
        order = np.stack([np.arange(n), np.arange(n, 2 * n)], axis=1).ravel()
        symbols = ranges(offsets[order], offsets[order + 1])
        side = symbols >= offsets[n]
        features = self.features
        kinds = [(features.gap_columns, features.gap_columns_after, features.n_gap_weights)]
        if self.affine:
            kinds.append((features.open_columns, features.open_columns_after, features.n_open_weights))
        maps = []
        for columns, columns_after, width in kinds:
            pieces = [
                [*columns(s, before[symbols], rows[symbols]), *columns_after(s, rows[symbols], after[symbols])]
                for s in (0, 1)
            ]
            chosen = [np.where(side, two, one) for one, two in zip(*pieces, strict=True)]
            own = None if parsed.gaps is None else symbols
            maps.append(self._map(chosen, width, parsed.gaps, own, structure.blocks[-1].offsets, side))
        return maps

    def _map(
        self,
        columns: Columns,
        width: int,
        rows: checks.Rows | None,
        order: IntArray | None,
        offsets: IntArray,
        side: Any = None,
    ) -> PartFeatures:
        """Features of symbols, and beside them those of the inputs, on columns of each side unless symmetric."""
        own = matrix(columns, int(offsets[-1]), width)
        if rows is None:
            return PartFeatures(own, offsets)
        given = rows.matrix if order is None else rows.matrix[order]
        parts = [own, sp.csr_array(given)]
        if side is not None and not self.symmetric:
            sides = (sp.csr_array(sp.diags_array((side == s).astype(np.float64)) @ sp.csr_array(given)) for s in (0, 1))
            parts = [own, *sides]
        return PartFeatures(sp.csr_array(sp.hstack(parts, format="csr")), offsets)

    def encode(self, batch: Batch, y: Sequence[Any]) -> SparsePoint:
        """Alignments to vertices; False for no match, True for the alignment with the fewest edits."""
        hidden = self.hidden(y)
        alignments = [
            None if at else self._alignment(one, index) for index, (one, at) in enumerate(zip(y, hidden, strict=True))
        ]
        some = np.flatnonzero(hidden)
        if len(some):
            own = batch.select(some)
            found = own.structure.argmax(own.features.scores(self.unit_weights()))
            for index, alignment in zip(some.tolist(), own.structure.decode(found.z), strict=True):
                alignments[index] = alignment
        return batch.structure.encode(alignments)

    def hidden(self, y: Sequence[Any]) -> npt.NDArray[np.bool_]:
        """Which outputs say that sequences match, but not how; ValueError if there are no symbols to tell."""
        found = np.array([isinstance(one, (bool, np.bool_)) and bool(one) for one in y], dtype=np.bool_)
        if found.any() and not self.symbols:
            raise ValueError(
                f"example {int(np.argmax(found))}: True says that the sequences match, but not how, and without "
                "features of symbols there is nothing to begin with; give their alignment"
            )
        return found

    def _alignment(self, given: Any, index: int) -> IntArray | None:
        if isinstance(given, (bool, np.bool_)):
            if not self.nonmatches:
                raise ValueError(
                    f"example {index}: False says that the sequences do not match; set nonmatches=True to learn that"
                )
            return None
        return checks.pairs(given, index, "y", "(k, 2) of aligned positions (i, j), or True or False")

    def unit_weights(self) -> FloatArray:
        """Weights under which the best alignments have the fewest edits, and no match is out of the question."""
        pieces = [np.full(_VERDICT if self.nonmatches else 0, -1e9), *self.features.unit_weights()]
        starts, weights = np.cumsum([0, *self.widths]), np.zeros(self.n_weights)
        for start, piece in zip(starts.tolist(), pieces[: 4 if self.affine else 3], strict=False):
            weights[start : start + len(piece)] = piece
        return weights

    def decode(self, batch: Batch, outputs: Sequence[Any]) -> list[Any]:
        """Alignments, and False for no match."""
        return [False if output is None else output for output in outputs]

    def vertex_of(self, batch: Batch, y: Sequence[Any], scores: FloatArray) -> FloatArray:
        """True stands for the best alignment, and False for no match."""
        z, hidden = self.encode(batch, y).dense(), self.hidden(y)
        if hidden.any():
            asked = scores.copy()
            asked[: batch.structure.starts[1] if self.nonmatches else 0] = -np.inf
            best = batch.structure.argmax(asked).z
            z = np.where(batch.structure.to_parts(hidden.astype(np.float64)) > 0, best, z)
        return z

    def name_parts(self, batch: Batch, x: Any) -> list[Namer]:
        """Pairs and gaps by their symbols, and whether the sequences match."""
        pair = sequence_pair(x, 0)
        first, second = ([f"{symbol!r} ({at})" for at, symbol in enumerate(own)] for own in (pair.first, pair.second))
        symbols = [*(f"first {one}" for one in first), *(f"second {one}" for one in second)]
        names: list[Namer] = [
            lambda at: Name(f"first {first[at // len(second)]}", f"with {second[at % len(second)]}"),
            lambda at: Name(symbols[at], "in a gap"),
            lambda at: Name(symbols[at], "opens a gap"),
        ]
        return [*([lambda at: Name("no match")] if self.nonmatches else []), *names[: 3 if self.affine else 2]]

    def name_weights(self, columns: ColumnNames) -> list[WeightTable]:
        """Those of the verdict, of pairs, of gaps and of openings; after features of symbols those of inputs."""
        features, width, sides = self.features, self.n_gap_features, ("first", "second")
        verdict = ("one", "mean length", "difference of lengths")
        names = [table(_VERDICT if self.nonmatches else 0, lambda at: f"no match, {verdict[at]}")]
        names.append(table(features.n_pair_weights, features.pair_text))
        if self.n_pair_features:
            names.append(table(self.n_pair_features, columns.of("pair_features", self.n_pair_features)))
        own = [columns.of(f"{side}_features", width) for side in sides[: features.n_sides]] if width else []
        names.append(table(features.n_gap_weights, features.gap_text))
        names += [table(width, after("gap", column)) for column in own]
        if self.affine:
            names.append(table(features.n_open_weights, features.open_text))
            names += [table(width, after("opening", column)) for column in own]
        return names

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Twice the common pairs out of all pairs on both sides; with nonmatches, whether the verdict is right.

        Without nonmatches, a gold output that does not say how the sequences match counts nothing.
        """
        if self.nonmatches:
            return float((gold is False) == (predicted is False)), 1.0
        if isinstance(gold, (bool, np.bool_)):
            return 0.0, 0.0
        right = {tuple(pair) for pair in np.asarray(gold).reshape(-1, 2).tolist()}
        found = {tuple(pair) for pair in np.asarray(predicted).reshape(-1, 2).tolist()}
        return 2.0 * len(right & found), float(len(right) + len(found))

    @property
    def widths(self) -> tuple[int, int, int, int]:
        """How many weights the verdict, pairs, gaps and openings have, in this order."""
        features = self.features
        more = self.n_gap_features * features.n_sides
        openings = features.n_open_weights + more if self.affine else 0
        verdict = _VERDICT if self.nonmatches else 0
        return verdict, features.n_pair_weights + self.n_pair_features, features.n_gap_weights + more, openings

    @property
    def n_weights(self) -> int:
        """Those of the verdict, of pairs, of gaps and of openings."""
        return sum(self.widths)

    @property
    def layout(self) -> tuple[Any, ...]:
        """All that decides what weights stand for."""
        classes = tuple((self.classes_of or {}).items())
        return self.kind, self.widths, self.gaps, self.symbols, self.symmetric, self.context, classes, self.known

    def tables(self, weights: FloatArray) -> Tables:
        """The weights as scores by symbols; ValueError if inputs have features of their own."""
        if self.n_pair_features or self.n_gap_features:
            raise ValueError(
                "scores without a batch are for models whose features are those of symbols; this one was trained with "
                "features of its inputs: use decision_function"
            )
        starts = np.cumsum(self.widths)
        _, pairs, gaps, openings = np.split(weights, starts[:-1])
        return self.features.tables(pairs, gaps, openings if self.affine else None)

    def best_scores(
        self, weights: FloatArray, sequences: SymbolSequences, first: IntArray, second: IntArray
    ) -> FloatArray:
        """The scores of the best alignments of pairs of sequences, given by their numbers; shape of ``first``."""
        tables = self.tables(weights)
        rows, scores = self.features.rows(sequences).astype(np.int32), np.empty(len(first))
        one, two = (np.ascontiguousarray(side, dtype=np.int64) for side in (first, second))
        _kernels.edit_scores(
            sequences.offsets,
            rows,
            np.ascontiguousarray(sequences.numbers),
            len(self.known or ()),
            tables.pairs.ravel(),
            tables.equal,
            tables.gap_before.ravel(),
            tables.gap_after.ravel(),
            tables.open_before.ravel(),
            tables.open_after.ravel(),
            tables.ends,
            one,
            two,
            scores,
            _threads.current(),
        )
        return scores

    def verdict_scores(self, weights: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
        """The scores of saying that sequences of these lengths do not match."""
        return np.asarray(_verdict(first, second) @ weights[:_VERDICT])

    def state(self) -> State:
        """Settings and symbols."""
        names = (
            "gaps",
            "nonmatches",
            "symbols",
            "symmetric",
            "context",
            "min_count",
            "n_pair_features",
            "n_gap_features",
        )
        return {
            **{name: getattr(self, name) for name in names},
            "known": [label_to_json(symbol) for symbol in self.known or ()],
            "classes_of": [[label_to_json(part) for part in pair] for pair in (self.classes_of or {}).items()],
        }

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        if not isinstance(state["known"], list) or not isinstance(state["classes_of"], list):
            raise ValueError("its symbols are not a list")
        known = tuple(label_from_json(symbol) for symbol in state["known"])
        if len(set(known)) != len(known) or len(known) > MOST_SYMBOLS:
            raise ValueError(f"its symbols are not at most {MOST_SYMBOLS} different ones")
        classes = {label_from_json(symbol): label_from_json(name) for symbol, name in state["classes_of"]}
        pairs, gaps = (_checks.integer(key, state[key], least=0) for key in ("n_pair_features", "n_gap_features"))
        plainly = {name: state[name] for name in ("gaps", "nonmatches", "symbols", "symmetric", "context", "min_count")}
        return cls(**plainly, classes_of=classes, known=known, n_pair_features=pairs, n_gap_features=gaps)


def _verdict(first: IntArray, second: IntArray) -> FloatArray:
    """The features of saying that two sequences do not match, shape ``(n, 3)``."""
    return np.stack([np.ones(len(first)), _LENGTH * 0.5 * (first + second), _LENGTH * np.abs(first - second)], axis=1)

"""The encoder of relations: each token of a tree has one of several relations to its head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from maxmargin import _checks, _threads
from maxmargin.encoders.base import Batch, Encoder, State
from maxmargin.encoders.data.names import ColumnNames, FeatureNamer, Name, Namer
from maxmargin.features.supported import Support, SupportedRows
from maxmargin.structures._arrays import offsets_of, ranges
from maxmargin.structures.base import IntArray
from maxmargin.structures.candidates import Candidates
from maxmargin.structures.sparse import SparsePoint
from maxmargin.tasks import _kernels
from maxmargin.tasks.parsing.defaults import BITS
from maxmargin.tasks.parsing.encoder.names import token_text
from maxmargin.tasks.parsing.encoder.relation_names import relation_features
from maxmargin.tasks.parsing.encoder.templates import relation_templates
from maxmargin.tasks.parsing.encoder.tokens import Nodes, TokenNumbers

Arcs = tuple[Nodes, IntArray]
"""Sentences and the heads of all their tokens."""


class RelationOf(NamedTuple):
    """One token, whose relation is explained.

    Attributes:
        nodes: its sentence.
        heads: of all tokens.
        token: its number, from 0.
        words: of the sentence.
        numbers: those of the attributes.
    """

    nodes: Nodes
    heads: IntArray
    token: int
    words: Sequence[str]
    numbers: TokenNumbers | None


@dataclass(frozen=True, eq=False)
class RelationEncoder(Encoder):
    """Encodes the relations of tokens, one example each, whose heads are known.

    Attributes:
        classes: all relations.
        bits: features are hashed to ``2^bits`` columns.
        support: which pairs of a column and a relation have weights: those that occur in training.
    """

    classes: tuple[str, ...] = ()
    bits: int = BITS
    support: Support | None = None

    kind = "dependency relations"

    def parse(self, X: Any) -> Any:
        """Return the sentences and heads as they are."""
        return X

    def transform(self, X: Any) -> Batch:
        """See :meth:`Encoder.transform`."""
        return self.batch(X)

    def fit(self, X: Any, y: Any, tokens: IntArray | None = None) -> tuple[Self, Batch, SparsePoint]:
        """See :meth:`Encoder.fit`; ``y`` is the number of the relation of each token, or of the given ``tokens``."""
        rows = self._rows(X)
        if tokens is not None:
            starts, columns = rows
            kept = ranges(starts[tokens], starts[tokens + 1])
            rows = offsets_of(np.diff(starts)[tokens]), np.ascontiguousarray(columns[kept])
        support = Support.observed(rows, y, len(self.classes), n_features=1 << self.bits)
        fitted = replace(self, support=support)
        batch = fitted._batch(rows)
        return fitted, batch, fitted.encode(batch, y)

    def learn(self, parsed: Any, y: Sequence[Any]) -> Self:
        """See :meth:`Encoder.learn`."""
        return self.fit(parsed, y)[0]

    def batch(self, parsed: Any) -> Batch:
        """See :meth:`Encoder.batch`."""
        return self._batch(self._rows(parsed))

    def _rows(self, arcs: Arcs) -> tuple[Any, Any]:
        nodes, heads = arcs
        rows: tuple[Any, Any] = _kernels.relation_rows(
            nodes.lengths,
            nodes.numbers,
            nodes.kinds,
            np.ascontiguousarray(heads, dtype=np.int64),
            *relation_templates(),
            self.bits,
            _threads.current(),
        )
        return rows

    def _batch(self, rows: tuple[Any, Any]) -> Batch:
        assert self.support is not None
        n, k = len(rows[0]) - 1, len(self.classes)
        return Batch(Candidates(np.full(n, k)), SupportedRows(rows, np.arange(n + 1), self.support))

    def encode(self, batch: Batch, y: Sequence[Any]) -> SparsePoint:
        """Numbers of relations as vertices."""
        numbers = np.asarray(y, dtype=np.int64)
        return SparsePoint.from_index(batch.structure, np.arange(len(numbers)) * len(self.classes) + numbers)

    def name_parts(self, batch: Batch, x: Any) -> list[Namer]:
        """Return a function that names the relations of one token."""
        assert isinstance(x, RelationOf)
        return [lambda at: Name(token_text(x.words, x.token + 1), self.classes[at])]

    def name_features(self, batch: Batch, x: Any, columns: ColumnNames) -> FeatureNamer:
        """Return a function that names features by their templates."""
        assert isinstance(x, RelationOf)
        assert x.numbers is not None
        assert self.support is not None
        named = relation_features(x.nodes, x.heads, x.numbers, self.support, self.bits, self.classes)
        return lambda part, weights: named(x.token * len(self.classes) + part, weights)

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Whether the relation is right."""
        return float(gold == predicted), 1.0

    @property
    def n_weights(self) -> int:
        """Pairs of a column and a relation."""
        return 0 if self.support is None else self.support.n_weights

    def state(self) -> State:
        """See :meth:`Encoder.state`."""
        assert self.support is not None
        pairs = {"starts": self.support.starts, "columns": self.support.columns}
        return {"relations": list(self.classes), "relation_bits": self.bits, **pairs}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        classes, bits = state["relations"], _checks.integer("relation_bits", state["relation_bits"], least=1, most=30)
        if not isinstance(classes, list) or not classes or not all(isinstance(one, str) for one in classes):
            raise ValueError("its relations are not names")
        support = Support(state["starts"], state["columns"], len(classes))
        if support.n_features != 1 << bits:
            raise ValueError(f"its relations have features for {support.n_features} columns, not {1 << bits}")
        _ = support.compiled  # checks it
        return cls(tuple(classes), bits, support)

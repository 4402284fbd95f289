"""The encoder of a parser: trees, then the relations of their arcs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from maxmargin.encoders.base import Batch, Encoder, State
from maxmargin.structures.sparse import SparsePoint
from maxmargin.tasks.parsing.encoder.heads import HeadEncoder
from maxmargin.tasks.parsing.encoder.relations import RelationEncoder
from maxmargin.tasks.parsing.io.treebank import Treebank


@dataclass(frozen=True, eq=False)
class ParsingEncoder(Encoder):
    """Two encoders, fitted by :func:`~maxmargin.tasks.parsing.training.train_parser`; weights of trees come first.

    Attributes:
        trees: the encoder of trees.
        relations: that of relations.
    """

    trees: HeadEncoder = field(default_factory=HeadEncoder)
    relations: RelationEncoder = field(default_factory=RelationEncoder)

    kind = "dependency parsing"
    model_class = "maxmargin.tasks.parsing.model:ParserModel"
    decodes_datasets = False

    @property
    def classes(self) -> tuple[str, ...]:  # type: ignore[override]
        """All relations."""
        return self.relations.classes

    @property
    def labeled(self) -> bool:
        """Whether there are relations to choose from."""
        return self.classes != ("_",)

    def parse(self, X: Any) -> Treebank:
        """Return the sentences as a treebank."""
        return self.trees.parse(X)

    def transform(self, X: Any) -> Batch:
        """Return the trees of the sentences; relations are those of a tree, which a model finds first."""
        return self.trees.transform(X)

    def learn(self, parsed: Any, y: Sequence[Any]) -> Self:
        """Refused: trees and relations are trained one after the other."""
        raise ValueError("a parser is trained by train_parser or DependencyParser.fit")

    def batch(self, parsed: Treebank) -> Batch:
        """See :meth:`transform`."""
        return self.trees.batch(parsed)

    def encode(self, batch: Batch, y: Sequence[Any]) -> SparsePoint:
        """Return the heads of trees ``(heads, relations)`` as vertices."""
        return self.trees.encode(batch, [heads for heads, _ in y])

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Tokens with the right head and relation, and tokens."""
        same = np.asarray(gold[0]) == np.asarray(predicted[0])
        return float((same & (np.asarray(gold[1]) == np.asarray(predicted[1]))).sum()), float(len(predicted[0]))

    @property
    def n_weights(self) -> int:
        """Weights of trees and of relations."""
        return self.trees.n_weights + self.relations.n_weights

    def state(self) -> State:
        """See :meth:`Encoder.state`."""
        return {**self.trees.state(), **self.relations.state()}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        return cls(HeadEncoder.from_state(state), RelationEncoder.from_state(state))

"""Labels with hidden sub-labels: the structure labels positions or nodes by pairs, users see the first of each pair.

A label ``a`` becomes ``(a, 0) .. (a, k - 1)``, each with weights of its own: a letter that is written in several ways,
say. Which of them a position has is never given.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin.encoders.base import Batch, Encoder, State, encoder_of_kind
from maxmargin.encoders.data import checks
from maxmargin.encoders.data.inputs import Graph
from maxmargin.encoders.data.labels import Labels, distinct
from maxmargin.encoders.data.names import ColumnNames, Namer, WeightTable
from maxmargin.encoders.data.partial import PartialLabels
from maxmargin.encoders.labelings.clusters import clusters_within
from maxmargin.encoders.labelings.labeled import LabeledEncoder, given_labels
from maxmargin.features.base import Features
from maxmargin.features.parts import Stacked
from maxmargin.features.tied import TiedRows
from maxmargin.structures._arrays import Ragged
from maxmargin.structures.base import FloatArray, Points, Structure
from maxmargin.structures.fallbacks import generic
from maxmargin.structures.fallbacks.given import Given
from maxmargin.structures.sparse import SparsePoint


@dataclass(frozen=True, eq=False)
class SublabelEncoder(Encoder):
    """Encodes labels with hidden sub-labels.

    Attributes:
        base: the encoder of the pairs ``(label, sub-label)``, label-major; before fitting, of labels.
        n_sublabels: sub-labels of each label.
        visible: the labels that users see; None before fitting.
    """

    base: LabeledEncoder
    n_sublabels: int
    visible: tuple[Hashable, ...] | None = None

    kind = "sublabels"

    @property
    def classes(self) -> tuple[Hashable, ...] | None:  # type: ignore[override]
        """The labels that users see."""
        return self.visible

    @cached_property
    def _shown(self) -> LabeledEncoder:
        """The encoder of the pairs under the names that users see."""
        names = tuple(label for label in self.visible or () for _ in range(self.n_sublabels))
        return replace(self.base, classes=names)

    def parse(self, X: list[Any]) -> Any:
        """As the base; labels that a node of a graph allows become all their pairs."""
        return self.base.parse([self._paired(x) if isinstance(x, Graph) and x.labels is not None else x for x in X])

    def _paired(self, graph: Graph) -> Graph:
        if not isinstance(graph.labels, (list, tuple)):
            return graph  # which the base refuses
        numbers = range(self.n_sublabels)
        allowed = [
            [(label, number) for label in own for number in numbers] if isinstance(own, (list, tuple, set)) else own
            for own in graph.labels
        ]
        return replace(graph, labels=allowed)

    def learn(self, parsed: Any, y: Sequence[Any]) -> Self:
        """Labels and widths."""
        return self.learn_partial(parsed, y)

    def learn_partial(self, parsed: Any, y: Sequence[Any]) -> Self:
        """Labels are those that are given somewhere, alone or as one of several."""
        given = self.base.classes
        visible = PartialLabels.parse(y).vocabulary() if given is None else distinct(given)
        pairs = tuple((label, number) for label in visible for number in range(self.n_sublabels))
        return replace(self, base=replace(self.base, classes=pairs).learn(parsed, []), visible=visible)

    def batch(self, parsed: Any) -> Batch:
        """Positions or nodes labeled by pairs."""
        return self.base.batch(parsed)

    def encode(self, batch: Batch, y: Sequence[Any]) -> SparsePoint:
        """Labels as vertices in which every label has its first sub-label."""
        codes = (y if isinstance(y, Labels) else Labels.known(checks.examples(y, "y"))).codes(self._index)
        return batch.structure.encode(Ragged(codes.flat * self.n_sublabels, codes.offsets))

    def given(self, batch: Batch, y: Sequence[Any]) -> Given:
        """Labels, None for an unknown one, a set for one of several; all sub-labels of right ones are free."""
        labels = PartialLabels.parse(y)
        table = np.repeat(labels.table(self._index), self.n_sublabels, axis=1)
        return given_labels(batch.structure, labels, np.where(table > 0, 0, table).astype(np.int8))

    def first_given(self, batch: Batch, given: Given, random: np.random.Generator) -> Given:
        """What is given, and where the label is known a sub-label: its cluster among the rows of that label."""
        structure, k = batch.structure, self.n_sublabels
        sizes, visible = structure.n_states, structure.part_states // k
        if not len(sizes):
            return given
        begin = np.cumsum(sizes) - sizes
        lowest = np.minimum.reduceat(np.where(given >= 0, visible, len(self._index)), begin)
        highest = np.maximum.reduceat(np.where(given >= 0, visible, -1), begin)
        label = np.where(lowest == highest, lowest, -1)
        chosen = np.repeat(clusters_within(_node_rows(batch.features), label, k, random), sizes)
        pinned = np.where(structure.part_states % k == chosen, 1, -1)
        return np.where((chosen >= 0) & (given >= 0), pinned, given).astype(np.int8)

    def decode(self, batch: Batch, outputs: Sequence[Any]) -> list[Any]:
        """Lists of labels without their sub-labels."""
        return self._shown.decode(batch, outputs)

    def k_best(self, structure: Structure, scores: FloatArray, k: int) -> list[Points]:
        """The best outputs that differ in labels, each with its best sub-labels."""
        return generic.k_best(structure, scores, k, structure.part_states // self.n_sublabels)

    @cached_property
    def _named(self) -> LabeledEncoder:
        """The encoder of the pairs under names that tell sub-labels apart."""
        names = tuple(f"{label} #{k + 1}" for label in self.visible or () for k in range(self.n_sublabels))
        return replace(self.base, classes=names)

    def vertex_of(self, batch: Batch, y: Sequence[Any], scores: FloatArray) -> FloatArray:
        """Labels with their best sub-labels."""
        return self._best_agreeing(batch, checks.examples(y, "y"), scores)

    def name_parts(self, batch: Batch, x: Any) -> list[Namer]:
        """As the base, with the number of each sub-label."""
        return self._named.name_parts(batch, x)

    def name_weights(self, columns: ColumnNames) -> list[WeightTable]:
        """As the base, with the number of each sub-label."""
        return self._named.name_weights(columns)

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Right labels out of positions or nodes."""
        return self.base.agreement(gold, predicted)

    @property
    def n_weights(self) -> int:
        """Those of the pairs."""
        return self.base.n_weights

    @property
    def layout(self) -> tuple[Any, ...]:
        """That of the pairs."""
        return self.kind, self.n_sublabels, self.base.layout

    @property
    def settings(self) -> str:
        """Those of the base, and the number of sub-labels."""
        return f"{type(self).__name__}({self.base.settings}, {self.n_sublabels})"

    def nonnegative(self) -> npt.NDArray[np.bool_] | None:
        """As the base."""
        return self.base.nonnegative()

    @property
    def l1_unsupported(self) -> str:
        """As the base."""
        return self.base.l1_unsupported

    @property
    def signs_unsupported(self) -> str:
        """As the base."""
        return self.base.signs_unsupported

    def to_model(self, weights: FloatArray) -> tuple[Encoder, FloatArray]:
        """As the base."""
        base, own = self.base.to_model(weights)
        assert isinstance(base, LabeledEncoder)
        return replace(self, base=base), own

    def to_training(self, trained: Encoder, weights: FloatArray) -> FloatArray:
        """As the base."""
        assert isinstance(trained, SublabelEncoder)
        return self.base.to_training(trained.base, weights)

    def state(self) -> State:
        """That of the base, its kind, and the number of sub-labels."""
        own = {"base": self.base.kind, "base_version": self.base.version, "n_sublabels": self.n_sublabels}
        return {**self.base.state(), **own}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        found, k = encoder_of_kind(state["base"]), _checks.integer("n_sublabels", state["n_sublabels"], least=2)
        if not issubclass(found, LabeledEncoder) or state["base_version"] != found.version:
            raise ValueError(f"models of kind {state['base']!r} and this version have no sub-labels")
        own = {"base", "base_version", "n_sublabels"}
        base = found.from_state({name: value for name, value in state.items() if name not in own})
        pairs = base.classes or ()
        visible = tuple(pair[0] for pair in pairs[::k] if isinstance(pair, tuple) and pair)
        if pairs != tuple((label, number) for label in visible for number in range(k)):
            raise ValueError(f"its labels are not pairs of a label and one of {k} sub-labels")
        return cls(base, k, visible)


def _node_rows(features: Features) -> Any:
    """The rows of features of positions or nodes."""
    while isinstance(features, Stacked):
        features = features.features[0]
    assert isinstance(features, TiedRows)
    return features.rows

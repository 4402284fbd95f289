"""Base of the encoders with a label per position or node: a vocabulary of labels, and two widths of features.

A kernel may take the place of the features of positions or nodes; those of edges stay linear.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from maxmargin import _checks
from maxmargin.encoders.base import Batch, State
from maxmargin.encoders.data import checks
from maxmargin.encoders.data.labels import Labels, distinct, label_from_json, label_to_json, sequence
from maxmargin.encoders.data.names import ColumnNames, WeightTable, joined, table
from maxmargin.encoders.data.partial import PartialLabels, has_unknown
from maxmargin.encoders.rows import KernelEncoder, kernel_from_state
from maxmargin.features.kernel import Kernel, KernelMap
from maxmargin.structures._arrays import Ragged, offsets_of
from maxmargin.structures.base import Structure
from maxmargin.structures.fallbacks.given import Given
from maxmargin.structures.sparse import SparsePoint


@dataclass(frozen=True, eq=False)
class LabeledEncoder(KernelEncoder):
    """Encodes examples whose positions or nodes have one label each.

    Attributes:
        classes: all labels, in the order of the weights' columns; None: those of the training data.
        n_features: columns of the features of positions or nodes.
        n_edge_features: columns of the edge features; 0 if pairs of labels do not see the input.
        kernel: a kernel in place of explicit features of positions or nodes, or None.
        support: with a kernel, the rows that it compares others with.
    """

    classes: tuple[Hashable, ...] | None = None
    n_features: int | None = None
    n_edge_features: int | None = None
    kernel: Kernel | None = field(default=None, kw_only=True)
    support: KernelMap | None = field(default=None, kw_only=True)

    edge_words: ClassVar[tuple[str, str]] = "graphs", "mm.Graph(node_features, edges, edge_features)"
    """Words of errors: for examples, and for how they hold edge features."""

    row_words: ClassVar[tuple[str, str]] = "node_features", "pair of labels"
    """Words of names: the attribute of an input that holds its rows of features, and what pairs of labels are."""

    @property
    def _columns(self) -> int:
        """One per label."""
        return self.n_labels

    def parse_outputs(self, y: list[Any]) -> Labels:
        """The labels of all examples."""
        return Labels.known(y)

    def _learned(self, nodes: checks.Rows, edges: checks.Rows | None, y: Sequence[Any]) -> Self:
        """A copy with the labels (sorted where they can be) and widths of the training data, and the kernel's rows."""
        return replace(
            self,
            classes=Labels.known(y).vocabulary() if self.classes is None else distinct(self.classes),
            n_features=nodes.width,
            n_edge_features=0 if edges is None else edges.width,
            support=self._support(nodes),
        )

    def learn_blocks(self, blocks: Iterable[tuple[Any, Any]]) -> Self:
        """Widths are those of the first block, labels those of all."""
        learned = super().learn_blocks(blocks)
        if self.classes is not None:
            return learned
        seen: dict[Hashable, None] = {}
        for _, y in blocks:
            seen |= dict.fromkeys(Labels.known(checks.examples(y, "y")).flat)
        return replace(learned, classes=Labels(list(seen), np.zeros(1, dtype=np.int64)).vocabulary())

    def _edge_matrix(self, nodes: checks.Rows, edges: checks.Rows | None) -> Any:
        """All rows of edges (None where pairs do not see the input); the widths of both are checked."""
        nodes.require(self.n_features)
        if edges is not None and self.n_edge_features:
            edges.require(self.n_edge_features)
            return edges.matrix
        if self.n_edge_features or (edges is not None and any(found.shape[1] for found in edges.matrices)):
            examples, how = self.edge_words
            raise ValueError(
                f"example 0: edge features must be given for all {examples}, in training and in prediction, or for "
                f"none ({how})"
            )
        return None

    def codes(self, y: Sequence[Any]) -> Ragged:
        """The number of every label in ``classes``; ValueError for a label that is not there."""
        labels = y if isinstance(y, Labels) else Labels.known(checks.examples(y, "y"))
        return labels.codes(self._index)

    def encode(self, batch: Batch, y: Sequence[Any]) -> SparsePoint:
        """Labels to numbers, then to vertices."""
        return batch.structure.encode(self.codes(y))

    def learn_partial(self, parsed: Any, y: Sequence[Any]) -> Self:
        """Labels are those that are given somewhere, alone or as one of several."""
        classes = PartialLabels.parse(y).vocabulary() if self.classes is None else self.classes
        return replace(self, classes=classes).learn(parsed, [])

    def is_partial(self, output: Any) -> bool:
        """Labels some of which are None or sets."""
        return has_unknown(output, self._index)

    def given(self, batch: Batch, y: Sequence[Any]) -> Given:
        """Labels, None for an unknown one, a set for one of several."""
        labels = PartialLabels.parse(y)
        return given_labels(batch.structure, labels, labels.table(self._index))

    def decode(self, batch: Batch, outputs: Sequence[Any]) -> list[list[Hashable]]:
        """Lists of labels."""
        names = np.empty(self.n_labels, dtype=object)
        names[:] = self.classes or ()
        if not isinstance(outputs, Ragged):
            outputs = Ragged(np.concatenate([np.zeros(0, dtype=np.int64), *outputs]), offsets_of([*map(len, outputs)]))
        flat = names[outputs.flat].tolist()
        return [flat[first:last] for first, last in pairwise(outputs.offsets.tolist())]

    def label_text(self, number: int) -> str:
        """A label in names."""
        return str((self.classes or ())[number])

    @property
    def pair_text(self) -> Callable[[int], str]:
        """Two neighboring labels in names, by their joint number."""
        return joined(self.label_text, self.n_labels)

    def name_weights(self, columns: ColumnNames) -> list[WeightTable]:
        """Those of positions or nodes, of pairs of labels, and of edges."""
        edges, pairs = self.n_edge_features or 0, self.n_labels**2
        return [
            self._row_names(columns, self.n_features, self.row_words[0], self.label_text),
            table(1, lambda at: self.row_words[1], pairs, self.pair_text),
            table(edges, columns.of("edge_features", edges), pairs, self.pair_text),
        ]

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Right labels out of positions or nodes."""
        return float(sum(a == b for a, b in zip(sequence(gold, 0), predicted, strict=True))), float(len(predicted))

    @property
    def n_weights(self) -> int:
        """Node weights, one table of pair weights, and one table per edge feature."""
        return self._n_row_weights(self.n_features) + (1 + (self.n_edge_features or 0)) * self.n_labels**2

    @property
    def layout(self) -> tuple[Any, ...]:
        """Both widths, the labels in order, the kernel and its training rows."""
        return self.kind, self.n_features, self.n_edge_features, self.classes, self._kernel_layout

    def state(self) -> State:
        """Labels, widths and the kernel."""
        return {
            "classes": [label_to_json(label) for label in self.classes or ()],
            "n_features": self.n_features,
            "n_edge_features": self.n_edge_features,
            **self._kernel_state(),
        }

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        if not isinstance(state["classes"], list):
            raise ValueError("its labels are not a list")
        n_features = _checks.integer("n_features", state["n_features"], least=0)
        kernel, support = kernel_from_state(state, n_features)
        return cls(
            classes=distinct([label_from_json(label) for label in state["classes"]]),
            n_features=n_features,
            n_edge_features=_checks.integer("n_edge_features", state["n_edge_features"], least=0),
            kernel=kernel,
            support=support,
        )


def given_labels(structure: Structure, labels: PartialLabels, table: Given) -> Given:
    """What labels say of the variable parts of a batch; ``table`` holds what each kind of entry says of each label."""
    lengths, wanted = np.diff(labels.offsets), structure.n_variables
    if (lengths != wanted).any():
        index = int(np.argmax(lengths != wanted))
        raise ValueError(
            f"example {index}: {lengths[index]} labels for {wanted[index]} positions or nodes; give each one, None for "
            "an unknown one"
        )
    return table[np.repeat(labels.codes, structure.n_states), structure.part_states]

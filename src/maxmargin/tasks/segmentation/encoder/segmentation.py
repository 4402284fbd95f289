"""The encoder of segmentations: images or scans to graphs whose nodes carry the stages' probabilities."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _threads
from maxmargin.encoders.base import Batch, Encoder, State
from maxmargin.encoders.cut import CutEncoder
from maxmargin.encoders.data import checks
from maxmargin.encoders.data.inputs import Graph
from maxmargin.encoders.data.labels import distinct, label_from_json, label_to_json
from maxmargin.encoders.data.names import ColumnNames, Name, Namer, WeightTable
from maxmargin.encoders.labelings.associative import AssociativeEncoder
from maxmargin.structures._arrays import array_of
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.sparse import SparsePoint
from maxmargin.tasks.segmentation.encoder.potentials import node_feature_names, node_features
from maxmargin.tasks.segmentation.io.classes import ClassCodes
from maxmargin.tasks.segmentation.learning.auto_context import AutoContext
from maxmargin.tasks.segmentation.learning.classifiers import part_of
from maxmargin.tasks.segmentation.sites import Extractor, Sites

GraphEncoder = CutEncoder | AssociativeEncoder

_NO_STAGES, _NO_GRAPHS = AutoContext(()), CutEncoder()


@dataclass(frozen=True, eq=False)
class SegmentBatch(Batch):
    """A batch that remembers the sites of its examples.

    Attributes:
        sites: one per example.
    """

    sites: tuple[Sites, ...] = ()

    def select(self, examples: IntArray) -> SegmentBatch:
        """The given examples."""
        found = super().select(examples)
        return SegmentBatch(found.structure, found.features, tuple(self.sites[i] for i in examples))


@dataclass(frozen=True, eq=False)
class SegmentationEncoder(Encoder):
    """Encodes images or scans; a subclass says which.

    Attributes:
        extractor: turns inputs into sites.
        classes: the labels of pixels or points.
        void: the label of those that are not labeled.
        auto_context: the trained stages.
        graph: encodes the graphs: two classes by cuts, more by associative networks.
        codes: names of the classes, and their values in files; None if labels are all that is known.
    """

    extractor: Extractor
    classes: tuple[Hashable, ...] | None = None
    void: int = -1
    auto_context: AutoContext = _NO_STAGES
    graph: GraphEncoder = _NO_GRAPHS
    codes: ClassCodes | None = None

    extractor_class: ClassVar[type[Extractor]]
    decodes_datasets = False  # which have no pixels or points

    def parse(self, X: list[Any]) -> list[Sites]:
        """The sites of all inputs; ValueError naming the example if one makes no sense."""

        def one(item: tuple[int, Any]) -> Sites:
            try:
                return self.extractor.sites(item[1])
            except ValueError as error:
                raise ValueError(f"example {item[0]}: {error}") from None

        return list(_threads.mapped(one, list(enumerate(X))))

    def learn(self, parsed: Any, y: Sequence[Any]) -> Self:
        """Itself: :func:`~maxmargin.tasks.segmentation.training.train_segmenter` trains the stages."""
        return self

    def batch(self, parsed: list[Sites]) -> SegmentBatch:
        """Pack sites with the probabilities of the last stage."""
        return self.pack(parsed, [self.auto_context.probabilities(one) for one in parsed])

    def pack(self, sites: Sequence[Sites], probabilities: Sequence[FloatArray]) -> SegmentBatch:
        """Pack sites whose nodes have the given class probabilities."""
        graphs = [graph_of(one, own) for one, own in zip(sites, probabilities, strict=True)]
        found = self.graph.batch(self.graph.parse(graphs))
        return SegmentBatch(found.structure, found.features, tuple(sites))

    def encode(self, batch: Batch, y: Sequence[Any]) -> SparsePoint:
        """Labels of pixels or points to those of nodes: of each the most frequent class, or the first if void."""
        assert isinstance(batch, SegmentBatch)
        k = len(self.classes or ())
        pairs = zip(batch.sites, self.coded(y), strict=True)
        nodes = [sites.counts(labels, k).argmax(axis=1) for sites, labels in pairs]
        return batch.structure.encode(nodes)

    def coded(self, y: Sequence[Any]) -> list[IntArray]:
        """Labels as numbers of classes, -1 for void; ValueError naming the example for an unknown label."""
        return [self.codes_of(labels, index) for index, labels in enumerate(checks.examples(y, "y"))]

    def codes_of(self, labels: Any, index: int) -> IntArray:
        """The labels of one example as numbers of classes; ``index`` is its number, for messages."""
        given = label_array(labels, index)
        values = self._values
        at = np.minimum(np.searchsorted(values, given), len(values) - 1)
        known, void = values[at] == given, given == self.void
        wrong = ~(known | void)
        if wrong.any():
            first = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise ValueError(
                f"example {index}: label {given[first]} at {first} is not a class ({', '.join(map(str, values))}), nor "
                f"void ({self.void}); change it, or train with it"
            )
        return np.where(void, -1, self._order[at])

    @cached_property
    def _order(self) -> IntArray:
        """The classes in increasing order."""
        return np.argsort(np.asarray(self.classes or (), dtype=np.int64), kind="stable")

    @cached_property
    def _values(self) -> IntArray:
        return np.asarray(self.classes or (), dtype=np.int64)[self._order]

    def decode(self, batch: Batch, outputs: Sequence[Any]) -> list[IntArray]:
        """Labels of nodes to those of pixels or points."""
        assert isinstance(batch, SegmentBatch)
        names = np.asarray(self.classes or (), dtype=np.int64)
        pairs = zip(batch.sites, outputs, strict=True)
        return [names[np.asarray(labels)[sites.node_of]] for sites, labels in pairs]

    def vertex_of(self, batch: Batch, y: Sequence[Any], scores: FloatArray) -> FloatArray:
        """Nodes without a label that is known keep the predicted one."""
        assert isinstance(batch, SegmentBatch)
        predicted = batch.structure.labels(scores).outputs
        k, nodes = len(self.classes or ()), []
        for sites, labels, own in zip(batch.sites, self.coded(y), predicted, strict=True):
            if labels.shape != sites.node_of.shape:
                raise ValueError(f"the labels have shape {labels.shape}, expected {sites.node_of.shape}")
            counts = sites.counts(labels, k)
            nodes.append(np.where(counts.any(axis=1), counts.argmax(axis=1), own))
        return batch.structure.encode(nodes).dense()

    def name_parts(self, batch: Batch, x: Any) -> list[Namer]:
        """Functions that name regions by their numbers and centers, or nodes of points, and pairs of neighbors."""
        assert isinstance(batch, SegmentBatch)
        centers = batch.sites[0].centers
        word, names = "node" if centers is None else "region", self._graph_of_names.name_parts(batch, x)

        def node(at: int) -> Name:
            found = names[0](at)
            number = int(found.what.split()[-1])
            where = "" if centers is None else f" at {', '.join(map(str, centers[number].tolist()))}"
            return self._of_class(Name(f"{word} {number}{where}", found.state))

        def edge(at: int) -> Name:
            found = names[1](at)
            return self._of_class(found._replace(what=found.what.replace("edge", f"{word}s")))

        return [node, edge]

    @cached_property
    def _graph_of_names(self) -> GraphEncoder:
        """The graphs' encoder with the names of classes as its labels, where it has labels."""
        graph = self.graph
        return replace(graph, classes=self.class_names) if isinstance(graph, AssociativeEncoder) else graph

    def _of_class(self, name: Name) -> Name:
        """A name of two classes, where 1 stands for the second."""
        return name._replace(state=self.class_names[1]) if name.state == "1" and len(self.class_names) == 2 else name

    def name_weights(self, columns: ColumnNames) -> list[WeightTable]:
        """Names of what cuts see of nodes, and of edges."""
        edges = [*self.extractor.edge_feature_names, *self.extractor.edge_context_names]
        given = {"node_features": node_feature_names(self.class_names), "edge_features": edges}
        tables = self._graph_of_names.name_weights(ColumnNames(given))

        def shown(name: Namer) -> Namer:
            return lambda at: self._of_class(name(at))

        return [one._replace(name=shown(one.name)) for one in tables]

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Right labels out of labeled pixels or points."""
        known = np.asarray(gold) != self.void
        return float((np.asarray(gold)[known] == predicted[known]).sum()), float(known.sum())

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes, or else their labels."""
        return tuple(map(str, self.classes or ())) if self.codes is None else self.codes.names

    @property
    def file_codes(self) -> ClassCodes:
        """The values of the classes in files: those of training, or else the labels themselves."""
        if self.codes is not None:
            return self.codes
        labels = [int(str(label)) for label in self.classes or ()]
        return ClassCodes(tuple(map(str, labels)), tuple((label,) for label in labels), (self.void,))

    @property
    def n_weights(self) -> int:
        """Number of weights of the graphs."""
        return self.graph.n_weights

    @property
    def layout(self) -> tuple[Any, ...]:
        """The layout of the graphs' weights."""
        return self.kind, *self.graph.layout

    def nonnegative(self) -> npt.NDArray[np.bool_] | None:
        """The edge weights."""
        return self.graph.nonnegative()

    def describe(self) -> dict[str, Any]:
        """Classes, stages and features, as plain JSON values."""
        return {
            "classes": list(self.class_names),
            "stages": len(self.auto_context.stages),
            "graph": self.graph.kind,
        }

    def state(self) -> State:
        """Extractor, classes, stages and the graphs' encoder."""
        return {
            "classes": [label_to_json(label) for label in self.classes or ()],
            "void": self.void,
            "codes": None if self.codes is None else self.codes.state(),
            "graph": self.graph.kind,
            "graph_state": self.graph.state(),
            **self.auto_context.state(),
            **{f"extractor_{name}": value for name, value in self.extractor.state().items()},
        }

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        if not isinstance(state["classes"], list):
            raise ValueError("its classes are damaged")
        classes = distinct([label_from_json(label) for label in state["classes"]])
        if not all(type(label) is int and abs(label) < 1 << 62 for label in (*classes, state["void"])):
            raise ValueError("its classes are not integers of 64 bits")
        graph = graph_from_state(state["graph"], state["graph_state"])
        auto_context = AutoContext.from_state(state)
        if any(stage.n_classes != len(classes) for stage in auto_context.stages):
            raise ValueError("its stages do not fit its classes")
        if len(classes) < 2 or state["void"] in classes:
            raise ValueError("it has fewer than two classes, or void is one of them")
        if graph.kind != graph_encoder(len(classes)).kind:
            raise ValueError("its graphs do not fit its classes")
        codes = None if state["codes"] is None else ClassCodes.from_state(state["codes"])
        if codes is not None and codes.n_classes != len(classes):
            raise ValueError("its classes do not fit their names")
        extractor = cls.extractor_class.from_state(part_of(state, "extractor_"))
        if auto_context.stages[0].n_features != extractor.n_features:
            raise ValueError("its stages do not fit its features")
        return cls(extractor, classes, state["void"], auto_context, graph, codes)


def graph_encoder(n_classes: int, potentials: str = "potts") -> GraphEncoder:
    """The encoder of graphs with so many classes, not fitted; ``potentials`` as CutSVM takes them."""
    if n_classes == 2:
        return CutEncoder(potentials=potentials)
    if potentials != "potts":
        raise ValueError(f'potentials="{potentials}" is for two classes, and there are {n_classes}; use "potts"')
    return AssociativeEncoder(classes=tuple(range(n_classes)), per_label=False)


def graph_from_state(kind: Any, state: Any) -> GraphEncoder:
    """The encoder of graphs of a model file; ValueError, KeyError or TypeError if its state makes no sense."""
    kinds: dict[str, type[GraphEncoder]] = {one.kind: one for one in (CutEncoder, AssociativeEncoder)}
    if not isinstance(kind, str) or kind not in kinds or not isinstance(state, dict):
        raise ValueError("its graphs are damaged")
    return kinds[kind].from_state(state)


def graph_of(sites: Sites, probabilities: FloatArray) -> Graph:
    """The graph that a cut labels."""
    edges = np.hstack([sites.edge_features, sites.edge_context(probabilities)])
    return Graph(node_features(probabilities), sites.edges, edges)


def label_array(labels: Any, index: int) -> IntArray:
    """An array of labels as integers; ValueError naming the example if it is not one."""
    wanted = "an array of integers, one for each pixel or point"
    given = array_of(labels, f"example {index}: labels", "iub", wanted)
    if not given.size:
        raise ValueError(f"example {index}: labels must be {wanted}, got shape {given.shape}")
    return given.astype(np.int64)

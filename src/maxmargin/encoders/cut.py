"""Binary labelings of graphs whose edges attract: X is a list of :class:`Graph`, y a list of 0/1 arrays.

Regular potentials give an edge between labels ``(y_j, y_k)`` the score ``w_{y_j y_k}'x_jk``, with four weight sets that
satisfy ``w00 + w11 >= w01 + w10``. In the orthonormal coordinates

    first = (w11 + w10 - w00 - w01) / 2    second = (w11 + w01 - w00 - w10) / 2    edge = (w00 + w11 - w01 - w10) / 2

and ``(w00 + w01 + w10 + w11) / 2``, which changes no decision and is 0 at the optimum, the edge's score is

    w00'x + z_j first'x + z_k second'x - z_jk edge'x,    edge >= 0:

a Potts model whose nodes also have the summed features of the edges that begin, and of those that end in them.

A clique ``c`` whose nodes all have label ``l`` scores ``u_l'x_c`` with ``u_l >= 0``; in Potts models ``u_0 = u_1``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin._checks import one_of
from maxmargin._sparse import sp
from maxmargin.encoders.base import Batch, State
from maxmargin.encoders.data import checks, graphs
from maxmargin.encoders.data.names import ColumnNames, Name, Namer, WeightTable, after, clique_namer, edge_namer, table
from maxmargin.encoders.data.partial import has_unknown, partial_nodes
from maxmargin.encoders.rows import KernelEncoder, kernel_from_state
from maxmargin.features.kernel import Kernel, KernelMap
from maxmargin.features.parts import Beside, PartFeatures, Stacked
from maxmargin.features.tied import TiedRows
from maxmargin.structures.base import FloatArray
from maxmargin.structures.cuts.clique_cut import CliqueCut
from maxmargin.structures.cuts.cut import Cut
from maxmargin.structures.fallbacks.given import Given
from maxmargin.structures.sparse import SparsePoint

POTENTIALS = ("potts", "regular")

_L1_UNSUPPORTED = (
    "an L1 ball with regular potentials has no cheap projection (in coordinates that keep them regular it is not an "
    'L1 ball); use norm="l2" (radius or C), or potentials="potts"'
)


@dataclass(frozen=True, eq=False)
class CutEncoder(KernelEncoder):
    """Encodes graphs: score of a labeling ``sum_j y_j w_n'x_j - sum_jk [y_j != y_k] w_e'x_jk`` with ``w_e >= 0``.

    Where graphs have cliques, ``sum_c [all of c alike] w_c'x_c`` with ``w_c >= 0`` comes on top.

    Attributes:
        n_node_features: columns of the node features.
        n_edge_features: columns of the edge features.
        potentials: "potts" as above, or "regular": ``sum_j y_j w_n'x_j + sum_jk w_{y_j y_k}'x_jk``, up to the score of
            labeling all nodes 0, and cliques have weights for each label.
        kernel: a kernel in place of explicit node features, or None; edge features stay linear.
        support: with a kernel, the rows that it compares others with.
        n_clique_features: columns of the clique features; 0 without cliques.
    """

    n_node_features: int | None = None
    n_edge_features: int | None = None
    potentials: str = "potts"
    kernel: Kernel | None = None
    support: KernelMap | None = None
    n_clique_features: int = 0

    kind = "cut"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("potentials", self.potentials, POTENTIALS)

    def parse(self, X: list[Any]) -> graphs.Graphs:
        """The graphs; an edge without features has the one feature 1."""
        return graphs.parse(X, labels="a cut's nodes are all 0 or 1").with_ones()

    def learn(self, parsed: graphs.Graphs, y: Sequence[Any]) -> Self:
        """The numbers of features, and with a kernel the training nodes."""
        return replace(
            self,
            n_node_features=parsed.nodes.width,
            n_edge_features=parsed.edge_rows.width,
            n_clique_features=parsed.clique_width(),
            support=self._support(parsed.nodes),
        )

    def learn_blocks(self, blocks: Iterable[tuple[Any, Any]]) -> Self:
        """Widths are those of the first block, or of cliques the first that has some."""
        learned = super().learn_blocks(blocks)
        if not learned.n_clique_features:
            widths = (self.parse(checks.examples(X)).clique_width() for X, _ in blocks)
            learned = replace(learned, n_clique_features=next(filter(None, widths), 0))
        return learned

    def batch(self, parsed: graphs.Graphs) -> Batch:
        """The nodes and edges of all graphs."""
        parsed.nodes.require(self.n_node_features)
        parsed.edge_rows.require(self.n_edge_features)
        parsed.require_attraction(
            "they say how strongly the ends attract each other",
            "shift them, or split a signed feature into its positive and negative part",
        )
        edge_rows, edge_offsets = parsed.edge_rows.matrix, parsed.edge_offsets
        shape = np.diff(parsed.nodes.offsets), parsed.edges, edge_offsets
        cliques, clique_rows = parsed.attracting_cliques(self.n_clique_features)
        structure = CliqueCut(*shape, cliques) if self.n_clique_features else Cut(*shape)
        node_map = self._row_features(parsed.nodes, parsed.nodes.offsets)
        if self.potentials == "regular":
            node_map = Beside(node_map, *_ends(structure, edge_rows))
        maps = [node_map, PartFeatures(edge_rows, edge_offsets, sign=-1.0)]
        if self.n_clique_features:
            alike = self.potentials == "potts"
            maps.append(TiedRows(clique_rows.matrix, clique_rows.offsets, 2, alike=alike))
        return Batch(structure, Stacked(*maps))

    def encode(self, batch: Batch, y: Sequence[Any]) -> SparsePoint:
        """0/1 labels to vertices."""
        wanted = "a list or 1-D array of 0 or 1 for each node (unknown ones need mm.LatentSVM)"
        return batch.structure.encode(
            [checks.array(labels, index, "y", "fiub", wanted) for index, labels in enumerate(checks.examples(y, "y"))]
        )

    def is_partial(self, output: Any) -> bool:
        """Labels some of which are None."""
        return has_unknown(output, ())

    def given(self, batch: Batch, y: Sequence[Any]) -> Given:
        """0, 1, or None for the unknown label of a node."""
        nodes = batch.structure.n_variables.tolist()
        known = [partial_nodes(one, index, n) for index, (one, n) in enumerate(zip(y, nodes, strict=True))]
        return np.concatenate(known)

    def name_parts(self, batch: Batch, x: Any) -> list[Namer]:
        """Nodes, edges whose ends differ, and cliques that are all 0 or all 1."""
        structure = batch.structure
        assert isinstance(structure, Cut)
        names: list[Namer] = [lambda at: Name(f"node {at}", "1"), edge_namer(structure.edges, "ends differ")]
        if isinstance(structure, CliqueCut):
            names.append(clique_namer(structure.cliques, 2, lambda label: f"all {label}"))
        return names

    def name_weights(self, columns: ColumnNames) -> list[WeightTable]:
        """Those of nodes, with regular potentials of first and second ends, then of edges and cliques."""
        edges, cliques = self.n_edge_features or 0, self.n_clique_features
        names = [self._row_names(columns, self.n_node_features, "node_features", lambda at: "1")]
        edge = columns.of("edge_features", edges)
        if self.potentials == "regular":
            names += [table(edges, after(f"{end} end", edge), 1, lambda at: "1") for end in ("first", "second")]
        names.append(table(edges, edge, 1, lambda at: "ends differ"))
        if cliques:
            clique, potts = columns.of("clique_features", cliques), self.potentials == "potts"
            names.append(table(cliques, clique, 1 if potts else 2, lambda at: "all alike" if potts else f"all {at}"))
        return names

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Right labels out of nodes."""
        return float(np.sum(np.asarray(gold) == predicted)), float(len(predicted))

    @property
    def n_weights(self) -> int:
        """Node weights, with regular potentials those of first and second ends, then edge and clique weights."""
        edges = (3 if self.potentials == "regular" else 1) * (self.n_edge_features or 0)
        return self._n_row_weights(self.n_node_features) + edges + self._n_clique_weights

    @property
    def _n_clique_weights(self) -> int:
        return self.n_clique_features * (2 if self.potentials == "regular" else 1)

    @property
    def layout(self) -> tuple[Any, ...]:
        """All widths, as weights must not change places; the kernel, and its training rows."""
        widths = self.n_node_features, self.n_edge_features, self.n_clique_features
        return self.kind, *widths, self.potentials, self._kernel_layout

    @property
    def l1_unsupported(self) -> str:
        """See :meth:`Encoder.l1_unsupported`."""
        return _L1_UNSUPPORTED if self.potentials == "regular" else super().l1_unsupported

    def nonnegative(self) -> npt.NDArray[np.bool_]:
        """The edge and clique weights."""
        return np.arange(self.n_weights) >= self.n_weights - (self.n_edge_features or 0) - self._n_clique_weights

    def regular_weights(self, weights: FloatArray) -> FloatArray:
        """The four weight sets of regular potentials, rows w00, w01, w10, w11: shape ``(4, n_edge_features)``.

        Their norm is that of the ``3 d_e`` coordinates of edges, and their sum is 0. Potts potentials are
        regular too: ``w00 = w11 = w_e / 2``, ``w01 = w10 = -w_e / 2``.
        """
        d, end = self.n_edge_features or 0, len(weights) - self._n_clique_weights
        if self.potentials == "potts":
            return 0.5 * np.outer([1.0, -1.0, -1.0, 1.0], weights[end - d : end])
        first, second, edge = weights[end - 3 * d : end].reshape(3, d)
        return 0.5 * np.stack(
            [-first - second + edge, -first + second - edge, first - second - edge, first + second + edge]
        )

    def state(self) -> State:
        """Widths, potentials, the kernel."""
        return {
            "n_node_features": self.n_node_features,
            "n_edge_features": self.n_edge_features,
            "n_clique_features": self.n_clique_features,
            "potentials": self.potentials,
            **self._kernel_state(),
        }

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        nodes, edges, cliques = (
            _checks.integer(key, state[key], least=0)
            for key in ("n_node_features", "n_edge_features", "n_clique_features")
        )
        return cls(nodes, edges, state["potentials"], *kernel_from_state(state, nodes), cliques)


def _ends(structure: Cut, edge_rows: Any) -> tuple[PartFeatures, PartFeatures]:
    """For every node the summed features of the edges whose first end it is, and of those whose second end it is."""
    n_edges = edge_rows.shape[0]
    first = np.repeat(structure.blocks[0].offsets[:-1], np.diff(structure.blocks[1].offsets))
    ends = structure.edges + first[:, None]
    shape = (structure.starts[1], n_edges)
    maps = []
    for side in (0, 1):
        incidence = sp.csr_array((np.ones(n_edges), (ends[:, side], np.arange(n_edges))), shape=shape)
        sums = incidence @ edge_rows
        maps.append(PartFeatures(sp.csr_array(sums) if sp.issparse(sums) else sums, structure.blocks[0].offsets))
    return maps[0], maps[1]

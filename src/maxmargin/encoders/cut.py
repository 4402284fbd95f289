"""Binary labelings of graphs whose edges attract: X is a list of :class:`Graph`, y a list of 0/1 arrays.

Regular potentials give an edge between labels ``(y_j, y_k)`` the score ``w_{y_j y_k}'x_jk``, with four weight sets that
satisfy ``w00 + w11 >= w01 + w10``. In the orthonormal coordinates

    first = (w11 + w10 - w00 - w01) / 2    second = (w11 + w01 - w00 - w10) / 2    edge = (w00 + w11 - w01 - w10) / 2

and ``(w00 + w01 + w10 + w11) / 2``, which changes no decision and is 0 at the optimum, the edge's score is

    w00'x + z_j first'x + z_k second'x - z_jk edge'x,    edge >= 0:

a Potts model whose nodes also have the summed features of the edges that begin, and of those that end in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin._sparse import sp
from maxmargin.encoders import checks, graphs, kernels
from maxmargin.encoders.base import Batch, Encoder
from maxmargin.features.base import Features
from maxmargin.features.kernel import Kernel, KernelMap
from maxmargin.features.parts import Beside, PartFeatures, Stacked
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.cut import Cut

POTENTIALS = ("potts", "regular")

_NO_L1 = (
    "an L1 ball with regular potentials has no cheap projection (in coordinates that keep them regular it is no L1 "
    'ball); use norm="l2" (radius or C), or potentials="potts"'
)


@dataclass(frozen=True, eq=False)
class CutEncoder(Encoder):
    """Packs graphs: score of a labeling ``sum_j y_j w_n'x_j - sum_jk [y_j != y_k] w_e'x_jk`` with ``w_e >= 0``.

    Attributes:
        n_node_features: columns of the node features.
        n_edge_features: columns of the edge features.
        potentials: "potts" as above, or "regular": ``sum_j y_j w_n'x_j + sum_jk w_{y_j y_k}'x_jk``, up to the score of
            labeling all nodes 0.
        kernel: a kernel in place of explicit node features, or None; edge features stay linear.
        support: with a kernel, the rows that it is taken with.
    """

    n_node_features: int | None = None
    n_edge_features: int | None = None
    potentials: str = "potts"
    kernel: Kernel | None = None
    support: KernelMap | None = None

    kind = "cut"

    def __post_init__(self) -> None:
        if not isinstance(self.potentials, str) or self.potentials not in POTENTIALS:
            raise ValueError(f'potentials must be "potts" or "regular", got {self.potentials!r}')
        kernels.check(self.kernel)

    def _split(self, X: Sequence[Any]) -> tuple[list[Any], list[IntArray], list[Any]]:
        nodes, edges, features = graphs.split(X, labels="a cut's nodes are all 0 or 1")
        return nodes, edges, graphs.with_ones(edges, features)

    def learn(self, X: Sequence[Any], y: Sequence[Any]) -> Self:
        """The numbers of features, and with a kernel the training nodes."""
        nodes, _, features = self._split(X)
        n_node_features = checks.width(nodes, None, "node features")
        return replace(
            self,
            n_node_features=n_node_features,
            n_edge_features=checks.width(features, None, "edge features"),
            support=None
            if self.kernel is None
            else KernelMap.learn(self.kernel, checks.stack(nodes, "node features")[0]),
        )

    def pack(self, X: Sequence[Any]) -> Batch:
        """Stack nodes and edges of all graphs."""
        nodes, edges, features = self._split(X)
        node_rows, node_offsets, edge_rows, edge_offsets = graphs.stacked(
            nodes,
            features,
            (self.n_node_features, self.n_edge_features),
            "they say how strongly the ends attract each other",
            "shift them, or split a signed feature into its positive and negative part",
        )
        structure = Cut(np.diff(node_offsets), np.concatenate(edges), edge_offsets)
        node_map: Features
        if self.support is None:
            node_map = PartFeatures(node_rows, node_offsets)
        else:
            node_map = self.support.features(node_rows, node_offsets)
        if self.potentials == "regular":
            node_map = Beside(node_map, *_ends(structure, edge_rows))
        return Batch(structure, Stacked(node_map, PartFeatures(edge_rows, edge_offsets, sign=-1.0)))

    def encode(self, packed: Batch, y: Sequence[Any]) -> FloatArray:
        """0/1 labels to vertices."""
        wanted = "a list or 1-D array of 0 or 1 for each node"
        return packed.structure.encode(
            [checks.array(labels, index, "y", "fiub", wanted) for index, labels in enumerate(checks.examples(y, "y"))]
        )

    def decode(self, packed: Batch, z: FloatArray) -> list[IntArray]:
        """0/1 integer arrays."""
        return packed.structure.decode(z)

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Right labels out of nodes."""
        return float(np.sum(np.asarray(gold) == predicted)), float(len(predicted))

    @property
    def _n_node_weights(self) -> int:
        """Weights of the nodes' own features: with a kernel its dimension, then one per support row."""
        return (self.n_node_features or 0) if self.support is None else self.support.n_weights

    @property
    def n_weights(self) -> int:
        """Node weights, with regular potentials those of first and second ends, then edge weights."""
        return self._n_node_weights + (3 if self.potentials == "regular" else 1) * (self.n_edge_features or 0)

    @property
    def layout(self) -> tuple[Any, ...]:
        """Both widths: node and edge weights must not change places; the kernel, and its training rows."""
        kernel = self.kernel if self.support is None else (self.support.kernel, self.support.digest)
        return self.kind, self.n_node_features, self.n_edge_features, self.potentials, kernel

    @property
    def no_l1(self) -> str:
        """See :meth:`Encoder.no_l1`."""
        return _NO_L1 if self.potentials == "regular" else kernels.NO_L1 if self.kernel is not None else ""

    @property
    def no_signs(self) -> str:
        """See :meth:`Encoder.no_signs`."""
        return kernels.NO_SIGNS if self.kernel is not None else ""

    def nonnegative(self) -> npt.NDArray[np.bool_]:
        """The edge weights."""
        return np.arange(self.n_weights) >= self.n_weights - (self.n_edge_features or 0)

    def regular_weights(self, weights: FloatArray) -> FloatArray:
        """The four weight sets of regular potentials, rows w00, w01, w10, w11: shape ``(4, n_edge_features)``.

        Their norm is that of the last ``3 d_e`` coordinates, and their sum is 0. Potts potentials are
        regular too: ``w00 = w11 = w_e / 2``, ``w01 = w10 = -w_e / 2``.
        """
        d = self.n_edge_features or 0
        if self.potentials == "potts":
            return 0.5 * np.outer([1.0, -1.0, -1.0, 1.0], weights[len(weights) - d :])
        first, second, edge = weights[len(weights) - 3 * d :].reshape(3, d)
        return 0.5 * np.stack(
            [-first - second + edge, -first + second - edge, first - second - edge, first + second + edge]
        )

    def finish(self, weights: FloatArray) -> tuple[Encoder, FloatArray]:
        """With a kernel: the support rows and their dual coefficients, then the edge weights."""
        if self.support is None:
            return self, weights
        n = self._n_node_weights
        support, dual = self.support.finish(weights[:n])
        return replace(self, support=support), np.concatenate([dual, weights[n:]])

    def resume(self, trained: Encoder, weights: FloatArray) -> FloatArray:
        """See :meth:`Encoder.resume`."""
        assert isinstance(trained, CutEncoder)
        if self.support is None or trained.support is None:
            return weights
        n = trained._n_node_weights
        return np.concatenate([self.support.resume(trained.support, weights[:n]), weights[n:]])

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The support rows."""
        return {} if self.support is None else self.support.arrays()

    def with_arrays(self, arrays: dict[str, npt.NDArray[Any]]) -> Self:
        """See :meth:`Encoder.with_arrays`."""
        if self.kernel is None:
            return self
        return replace(self, support=KernelMap.from_arrays(self.kernel, arrays, self.n_node_features or 0))

    def header(self) -> dict[str, Any]:
        """Widths; potentials where they are not Potts; the kernel."""
        return {
            "n_node_features": self.n_node_features,
            "n_edge_features": self.n_edge_features,
            **({} if self.potentials == "potts" else {"potentials": self.potentials}),
            **kernels.header(self.support),
        }

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> Self:
        """See :meth:`Encoder.from_header`."""
        nodes, edges = (checks.integer(header[key], key) for key in ("n_node_features", "n_edge_features"))
        return cls(nodes, edges, header.get("potentials", "potts"), kernels.from_header(header))


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

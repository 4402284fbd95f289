"""Several good paths per lattice (:mod:`maxmargin.problem.good`).

The best bad path is the first of the best paths that is not good, found on demand, so hinges are exact, and cost at
most one rank more than there are good paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _kernels, _threads
from maxmargin._messages import shown
from maxmargin.problem.good import GoodOutputs
from maxmargin.structures._arrays import offsets_of, ranges, sums_of
from maxmargin.structures.base import FloatArray, IntArray, Structure
from maxmargin.structures.lattice import Lattice
from maxmargin.structures.sparse import SparsePoint

FORMULATIONS = ("gold", "all", "best")
"""Those of :data:`maxmargin.problem.good.FORMULATIONS` that lattices have: their bad paths are not listed."""


@dataclass(frozen=True, eq=False)
class PathSets(GoodOutputs):
    """Which paths of lattices are good.

    Attributes:
        formulation: "all" or "best".
        starts: where the good paths of each example begin, shape ``(n_examples + 1,)``.
        offsets: where the edges of each good path begin, shape ``(n_paths + 1,)``.
        edges: edges of the good paths in path order, counted from 0 in their example.
        chosen: for "best", the good path of each example that bad ones are compared with, shape ``(n_examples,)``;
            empty for "all".
    """

    formulation: str
    starts: IntArray
    offsets: IntArray
    edges: npt.NDArray[np.int32]
    chosen: IntArray

    @classmethod
    def build(cls, structure: Structure, paths: Sequence[Sequence[npt.ArrayLike]], formulation: str) -> PathSets:
        """Check the good paths.

        Args:
            structure: a batch of :class:`Lattice`.
            paths: for each example its good paths, at least one; repeated ones count once.
            formulation: "all", or "best", which starts with the first good path of each example.
        """
        if formulation not in FORMULATIONS[1:]:
            raise ValueError(f'formulation with good paths must be "all" or "best", got {shown(formulation)}')
        if not isinstance(structure, Lattice):
            raise ValueError(f"good paths are those of lattices, not of {structure.called}")
        if len(paths) != structure.n_examples:
            raise ValueError(f"{len(paths)} sets of good paths for {structure.n_examples} examples")
        unique = [list({tuple(np.asarray(path).tolist()): path for path in own}.values()) for own in paths]
        counts = np.array([len(own) for own in unique], dtype=np.int64)
        if (counts == 0).any():
            raise ValueError(f"example {int(np.argmin(counts))}: no path is good; give one or remove the example")
        # Checks in rounds over the r-th good path of every example, whose errors name the example.
        for rank in range(int(counts.max(initial=0))):
            structure.encode([own[min(rank, len(own) - 1)] for own in unique])
        flat = [np.asarray(path, dtype=np.int32) for own in unique for path in own]
        starts = offsets_of(counts)
        return cls(
            formulation,
            starts,
            offsets_of([len(path) for path in flat]),
            np.concatenate([np.zeros(0, dtype=np.int32), *flat]),
            starts[:-1].copy() if formulation == "best" else np.zeros(0, dtype=np.int64),
        )

    @property
    def _arrays(self) -> tuple[IntArray, IntArray, npt.NDArray[np.int32], IntArray]:
        return self.starts, self.offsets, self.edges, self.chosen

    def unsupported(self, structure: Structure) -> str | None:
        """Lattices with as many examples."""
        if not isinstance(structure, Lattice) or len(self.starts) != structure.n_examples + 1:
            return "the good paths belong to another batch; build them from this one's structure"
        return None

    def select(self, structure: Structure, examples: IntArray) -> Self:
        """See :meth:`GoodSets.select`."""
        first, last = self.starts[examples], self.starts[examples + 1]
        paths = ranges(first, last)
        begin, end = self.offsets[paths], self.offsets[paths + 1]
        starts = offsets_of(last - first)
        return replace(
            self,
            starts=starts,
            offsets=offsets_of(end - begin),
            edges=self.edges[ranges(begin, end)],
            chosen=self.chosen[examples] - first + starts[:-1] if len(self.chosen) else self.chosen,
        )

    def most_violated(
        self, structure: Structure, augmented: FloatArray, margin: FloatArray, first: int
    ) -> tuple[FloatArray, FloatArray]:
        """See :meth:`GoodOutputs.most_violated`."""
        assert isinstance(structure, Lattice)
        pairs, value = np.zeros(structure.n_parts), np.empty(structure.n_examples)
        structure._batch.most_violated_pairs(*self._arrays, augmented, pairs, value, _threads.current())
        return pairs, margin + value

    def pairs(self, structure: Structure, example: int) -> FloatArray:
        """See :meth:`GoodOutputs.pairs`."""
        one = structure.select([example])
        n = round(float(np.exp(one.log_outputs()[0])))
        outputs = np.stack([points.z for points in one.k_best(np.zeros(one.n_parts), n)])
        good = np.stack([np.asarray(one.encode([path])) for path in self._paths(example)])
        bad = outputs[[not (good == z).all(axis=1).any() for z in outputs]]
        if len(self.chosen):
            good = good[[int(self.chosen[example] - self.starts[example])]]
        return np.asarray((bad[:, None, :] - good[None, :, :]).reshape(len(bad) * len(good), one.n_parts))

    def _paths(self, example: int) -> list[npt.NDArray[np.int32]]:
        """The good paths of an example."""
        bounds = self.offsets[self.starts[example] : self.starts[example + 1] + 1].tolist()
        return [self.edges[a:b] for a, b in pairwise(bounds)]

    def best(self, structure: Structure, augmented: FloatArray) -> tuple[SparsePoint, Self]:
        """See :meth:`GoodSets.best`; of equal ones the first."""
        counts = np.diff(self.starts)
        owner = np.repeat(np.arange(len(counts)), counts)
        place = np.repeat(structure.blocks[0].offsets[owner], np.diff(self.offsets)) + self.edges
        score = sums_of(augmented[place], self.offsets)
        order = np.lexsort((np.arange(len(score)), -score, owner))
        chosen = order[self.starts[:-1]]
        taken = place[ranges(self.offsets[chosen], self.offsets[chosen + 1])]
        return SparsePoint.from_index(structure, taken), replace(self, chosen=chosen)

    def online_hinge(self, structure: Structure, gold: SparsePoint, costs: FloatArray | None, scale: FloatArray) -> Any:
        """See :meth:`GoodOutputs.online_hinge`."""
        assert isinstance(structure, Lattice)
        return _kernels.PathPairsHinge(
            structure._batch, *self._arrays, gold.starts[0], gold.index, np.zeros(0) if costs is None else costs, scale
        )

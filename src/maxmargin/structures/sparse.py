"""Sparse packed vectors: an output has a few non-zero parts per variable, however many states there are."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin.structures._arrays import offsets_of, ranges
from maxmargin.structures.base import FloatArray, IntArray, Structure


@dataclass(frozen=True, eq=False)
class SparsePoint:
    """A packed vector of a batch by its non-zeros, in packed order.

    Attributes:
        structure: the batch.
        starts: where the non-zeros of each example begin in ``index``, block by block; shape
            ``(n_blocks, n_examples + 1)``.
        index: positions in the packed vector, shape ``(n_nonzeros,)``.
        value: the entries there, shape ``(n_nonzeros,)``; not contiguous, but a single number, if all are 1.
    """

    structure: Structure
    starts: IntArray
    index: IntArray
    value: FloatArray

    @classmethod
    def of(cls, structure: Structure, z: FloatArray) -> SparsePoint:
        """The non-zeros of a packed vector."""
        index = np.flatnonzero(z)
        return cls._from_index(structure, index, z[index])

    @classmethod
    def feasible(cls, structure: Structure, z: FloatArray) -> SparsePoint:
        """The nonzeros of a packed vector that must lie in its polytopes; ValueError naming the example otherwise.

        An output that decoding and encoding leave unchanged is feasible; any other point must be its own projection.
        """
        with contextlib.suppress(ValueError, TypeError, LookupError):
            if np.array_equal(structure.encode(structure.decode(z)), z):
                return cls.of(structure, z)
        off = structure.by_example(np.abs(structure.project(z).z - z))
        if not (off <= 1e-6).all():
            raise ValueError(
                f"example {int(np.argmax(~(off <= 1e-6)))}: gold is not a feasible output; use structure.encode"
            )
        return cls.of(structure, z)

    @classmethod
    def from_index(cls, structure: Structure, index: IntArray, value: FloatArray | None = None) -> SparsePoint:
        """The vector with ``value`` (by default 1) at the distinct positions ``index``, in any order."""
        value = _ones(len(index)) if value is None else value
        if (index[1:] < index[:-1]).any():
            order = np.argsort(index, kind="stable")
            index, value = index[order], value[order]
        return cls._from_index(structure, index, value)

    @classmethod
    def counting(cls, structure: Structure, index: IntArray) -> SparsePoint:
        """The vector that counts how often each position is in ``index``."""
        at, counts = np.unique(index, return_counts=True)
        value = _ones(len(at)) if len(at) == len(index) else counts.astype(np.float64)
        return cls._from_index(structure, at, value)

    @classmethod
    def joined(cls, structure: Structure, pieces: list[tuple[IntArray, SparsePoint]]) -> SparsePoint:
        """Put together from pieces ``(examples, point of structure.select(examples))`` that cover the batch."""
        index = np.concatenate(
            [np.zeros(0, dtype=np.int64), *(point._moved(rows, structure) for rows, point in pieces)]
        )
        value = np.concatenate([np.zeros(0), *(point.value for _, point in pieces)])
        order = np.argsort(index, kind="stable")
        return cls._from_index(structure, index[order], value[order])

    @classmethod
    def _from_index(cls, structure: Structure, index: IntArray, value: FloatArray) -> SparsePoint:
        bounds = [block.offsets + start for block, start in zip(structure.blocks, structure.starts, strict=False)]
        return cls(structure, np.searchsorted(index, np.stack(bounds)), index, value)

    def _moved(self, examples: IntArray, structure: Structure) -> IntArray:
        """Positions of the non-zeros in a larger batch in which this one's examples have the numbers ``examples``."""
        moved = self.index.copy()
        for b, block in enumerate(self.structure.blocks):
            here = block.offsets[:-1] + self.structure.starts[b]
            there = structure.blocks[b].offsets[examples] + structure.starts[b]
            moved[self.starts[b, 0] : self.starts[b, -1]] += np.repeat(there - here, np.diff(self.starts[b]))
        return moved

    @property
    def shape(self) -> tuple[int]:
        """Shape of the packed vector."""
        return (self.structure.n_parts,)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self.dense().astype(dtype or np.float64, copy=False)

    def dense(self) -> FloatArray:
        """The packed vector, shape ``(n_parts,)``."""
        self.structure._require_memory()
        z = np.zeros(self.structure.n_parts)
        z[self.index] = self.value
        return z

    def dot(self, values: FloatArray) -> FloatArray:
        """``values_i'z_i`` of every example: a packed vector to shape ``(n_examples,)``."""
        sums = np.bincount(self.owner, self.value * values[self.index], self.structure.n_examples)
        return sums.astype(np.float64, copy=False)

    def dot_size(self, values: FloatArray) -> FloatArray:
        """``|values_i|'|z_i|`` of every example, which the rounding errors of :meth:`dot` are relative to."""
        sums = np.bincount(self.owner, np.abs(self.value * values[self.index]), self.structure.n_examples)
        return sums.astype(np.float64, copy=False)

    @property
    def owner(self) -> npt.NDArray[np.integer[Any]]:
        """The example of every non-zero, shape ``(n_nonzeros,)``."""
        narrow = np.int32 if self.structure.n_examples < 1 << 31 else np.int64
        examples = np.arange(self.structure.n_examples, dtype=narrow)
        return np.concatenate([np.repeat(examples, np.diff(starts)) for starts in self.starts])

    def select(self, examples: IntArray, structure: Structure) -> SparsePoint:
        """The point of ``structure``, which is ``self.structure.select(examples)``."""
        starts, index, taken, total = [], [], [], 0
        for b, block in enumerate(self.structure.blocks):
            first, last = self.starts[b, examples], self.starts[b, examples + 1]
            mine = ranges(first, last)
            there = structure.blocks[b].offsets[:-1] + structure.starts[b]
            here = block.offsets[examples] + self.structure.starts[b]
            index.append(self.index[mine] + np.repeat(there - here, last - first))
            taken.append(mine)
            starts.append(total + offsets_of(last - first))
            total += len(mine)
        value = _ones(total) if self.value.strides == (0,) else self.value[np.concatenate(taken)]
        return SparsePoint(structure, np.stack(starts), np.concatenate(index), value)


def _ones(n: int) -> FloatArray:
    """As many ones, in the memory of one."""
    return np.broadcast_to(1.0, n)

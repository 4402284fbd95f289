"""Pieces of a problem: consecutive examples that are processed one after the other, and where they come from."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from maxmargin._messages import FileContentError
from maxmargin.problem import Problem
from maxmargin.structures._arrays import pieces
from maxmargin.structures.base import IntArray


class ShardError(FileContentError):
    """A shard of the data is missing, damaged, or cannot be worked on; the message names it."""


@dataclass(frozen=True, eq=False)
class Piece:
    """A problem of consecutive examples.

    Attributes:
        problem: the problem of these examples alone.
        first: the number of the first one in the whole problem.
    """

    problem: Problem
    first: int = 0

    @property
    def numbers(self) -> slice:
        """Where the examples are among all examples."""
        return slice(self.first, self.first + self.problem.n_examples)


class PieceSource(ABC):
    """Where the pieces of a problem come from; small and picklable, as it goes to where the work is done.

    Attributes:
        examples: how many examples each piece has.
        parts: how many parts each piece has.
    """

    examples: Sequence[int]
    parts: Sequence[int]

    def __len__(self) -> int:
        return len(self.examples)

    @abstractmethod
    def open(self, number: int) -> Piece:
        """A piece by its number; its memory is released when it is dropped. ShardError if it cannot be read."""

    def none(self) -> Problem:
        """The problem of no examples with the settings of all pieces; by default the first piece is opened for it."""
        return self.open(0).problem.select([])

    def fingerprint(self) -> dict[str, str] | None:
        """What identifies the problem of all pieces, as its own fingerprint; None leaves it to a pass over them."""
        return None

    def between(self, first: int, last: int) -> PieceSource:
        """The source of some consecutive pieces."""
        return _Between(self, first, last)


class _Between(PieceSource):
    """Consecutive pieces of another source."""

    def __init__(self, source: PieceSource, first: int, last: int) -> None:
        self.source, self.first = source, first
        self.examples, self.parts = list(source.examples)[first:last], list(source.parts)[first:last]

    def open(self, number: int) -> Piece:
        """The piece of the other source."""
        return self.source.open(self.first + number)


class HeldPieces(PieceSource):
    """Pieces that are held in memory, in order."""

    def __init__(self, held: Sequence[Piece]) -> None:
        self.held = list(held)
        self.examples = [piece.problem.n_examples for piece in self.held]
        self.parts = [piece.problem.n_parts for piece in self.held]

    @classmethod
    def of(cls, problem: Problem, max_parts: int | None = None, shards: int = 1) -> HeldPieces:
        """A problem cut for so many shards, in pieces of at most ``max_parts`` parts (None: one a shard) or an example.

        Pieces share the memory of the problem; one piece is the problem itself.
        """
        sizes = problem.structure.sizes
        groups = cut(sizes, shards)
        chosen = [
            first + numbers
            for first, last in itertools.pairwise(groups)
            for numbers in pieces(sizes[first:last], max_parts or max(1, problem.n_parts))
        ]
        if len(chosen) <= 1:
            return cls([Piece(problem)])
        return cls([Piece(problem.select(numbers), int(numbers[0])) for numbers in chosen])

    def open(self, number: int) -> Piece:
        """The piece."""
        return self.held[number]

    def between(self, first: int, last: int) -> PieceSource:
        """Only these, so that no others go where they go."""
        return HeldPieces(self.held[first:last])


def cut(sizes: npt.ArrayLike, count: int) -> IntArray:
    """Cut a sequence of things of given sizes into ``count`` groups, or fewer, whose sums are nearly equal.

    Returns where the groups begin, and the end. Cutting whole groups again gives the same result.
    """
    ends = np.concatenate([[0], np.cumsum(np.asarray(sizes, dtype=np.int64))])
    aims = ends[-1] * np.arange(1, count) / count
    after = np.clip(np.searchsorted(ends, aims), 1, len(ends) - 1) if len(ends) > 1 else np.zeros(0, dtype=np.int64)
    nearest = np.where(aims - ends[after - 1] <= ends[after] - aims, after - 1, after) if len(after) else after
    return np.unique(np.concatenate([[0], nearest, [len(ends) - 1]])).astype(np.int64)

"""Work on the pieces of a problem, wherever they are, and what it keeps there between two calls.

*Work* is a function of a module, so that it can be named elsewhere: ``work(piece, memory, *args)`` returns a result and
the new memory of the piece, which is None at first. Memory is replaced, never changed in place: new memories count when
every shard has answered, so an interrupted call leaves the old ones whole.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from maxmargin import _checks
from maxmargin.execution.pieces import PieceSource, cut
from maxmargin.structures.base import IntArray

Work = Callable[..., tuple[Any, Any]]


class Total:
    """A sum of results, entry by entry: arrays and numbers are added, lists joined, None stays None."""

    def __init__(self) -> None:
        self.values: list[Any] | None = None
        self._own = False

    def add(self, result: Sequence[Any]) -> None:
        """One more result; those given are not changed."""
        if self.values is None:
            self.values = list(result)
            return
        for i, (old, new) in enumerate(zip(self.values, result, strict=True)):
            if self._own and isinstance(old, np.ndarray):
                old += new
            elif old is not None:
                self.values[i] = old + new
        self._own = True


class Shard:
    """Pieces that live in one place, and the memories of a run that are kept with them."""

    def __init__(self, source: PieceSource) -> None:
        self.source = source
        self.memories: list[Any] = [None] * len(source)
        self._fresh: list[Any] | None = None

    def each(self, work: Work, args: Sequence[Any], *, eager: bool = False, turn: int | None = None) -> Iterator[Any]:
        """The results of the pieces, one after the other; :meth:`commit` makes the new memories count.

        ``eager``: each new memory counts at once, so that the old one is released. ``turn``: the number of the piece
        whose turn it is; None for all.
        """
        self._fresh, fresh = None, list(self.memories)
        for number in range(len(self.source)) if turn is None else range(turn, min(turn + 1, len(self.source))):
            result, memory = work(self.source.open(number), self.memories[number], *args)
            if eager:
                self.memories[number] = memory
            fresh[number] = memory
            del memory
            yield result
            del result
        self._fresh = fresh

    def sums(self, work: Work, args: Sequence[Any], *, eager: bool = False) -> list[Any] | None:
        """The sum of the results, in order."""
        total = Total()
        for result in self.each(work, args, eager=eager):
            total.add(result)
            del result
        return total.values

    def commit(self) -> None:
        """Make the memories of the last call count."""
        if self._fresh is not None:
            self.memories, self._fresh = self._fresh, None

    def differs(self, before: Sequence[Any]) -> bool:
        """Whether the last call gave some piece another memory than it had."""
        return any(now is not then for now, then in zip(self._fresh or self.memories, before, strict=True))

    def restore(self, memories: Sequence[Any]) -> None:
        """Set the memories."""
        self.memories, self._fresh = list(memories), None


class Session(ABC):
    """One run's work on all shards, in the order of their examples.

    Attributes:
        source: where all pieces come from.
        n_shards: how many places there are; ``n_pieces``: how many pieces.
        shard_edges: where the pieces of each shard begin, and their number at the end.
        example_edges: where the examples of each piece begin, and their number at the end.
    """

    def __init__(self, source: PieceSource, shards: int) -> None:
        self.source = source
        self.shard_edges: IntArray = cut(source.parts, shards)
        self.example_edges: IntArray = np.concatenate([[0], np.cumsum(np.asarray(source.examples, dtype=np.int64))])
        self.n_shards, self.n_pieces = max(1, len(self.shard_edges) - 1), len(source)

    @abstractmethod
    def sums(self, work: Work, *args: Any, eager: bool = False) -> tuple[Any, ...]:
        """The sum of the results, tuples of equal length: in every shard piece after piece, then shard after shard.

        Which numbers are added in which order depends on the pieces and shards alone. The result is not to be changed.
        """

    @abstractmethod
    def each(self, work: Work, *args: Any, eager: bool = False, turn: int | None = None) -> Iterator[Any]:
        """The results of all pieces, in order; memories count when the last one is taken.

        ``turn``: only those of the piece with this number in every shard that has one.
        """

    @abstractmethod
    def snapshot(self) -> Callable[[], list[Any]]:
        """The memories of all pieces as they are now; the result brings them here, in order, when it is called."""

    def memories(self) -> list[Any]:
        """The memories of all pieces, in order."""
        return self.snapshot()()

    @abstractmethod
    def restore(self, memories: Sequence[Any]) -> None:
        """Set the memories of all pieces."""

    @abstractmethod
    def close(self) -> None:
        """Release the pieces and their memories."""


class Executor(ABC):
    """Where the work of a run is done: a setting, see :class:`Serial` and :class:`maxmargin.execution.Ray`."""

    shards: int

    @abstractmethod
    def open(self, source: PieceSource) -> Session:
        """Begin a run's work on the pieces."""


class Serial(Executor):
    """All work in this process, one shard after the other.

    Args:
        shards: how many shards the examples are cut into. The result depends on it, by rounding and by the methods that
            treat shards apart, in the same way wherever the shards are.
    """

    def __init__(self, shards: int = 1) -> None:
        self.shards = _checks.integer("shards", shards, least=1)

    def __repr__(self) -> str:
        return f"Serial(shards={self.shards})"

    def open(self, source: PieceSource) -> Session:
        """Shards in this process."""
        return _SerialSession(source, self.shards)


class _SerialSession(Session):
    def __init__(self, source: PieceSource, shards: int) -> None:
        super().__init__(source, shards)
        edges = self.shard_edges.tolist()
        pairs = list(itertools.pairwise(edges))
        self._shards = [Shard(source if len(pairs) == 1 else source.between(*pair)) for pair in pairs]

    def sums(self, work: Work, *args: Any, eager: bool = False) -> tuple[Any, ...]:
        """One shard after the other."""
        total = Total()
        for shard in self._shards:
            found = shard.sums(work, args, eager=eager)
            if found is not None:
                total.add(found)
        self._commit()
        return tuple(total.values or ())

    def each(self, work: Work, *args: Any, eager: bool = False, turn: int | None = None) -> Iterator[Any]:
        """Made as they are taken."""
        for shard in self._shards:
            yield from shard.each(work, args, eager=eager, turn=turn)
        self._commit()

    def _commit(self) -> None:
        for shard in self._shards:
            shard.commit()

    def snapshot(self) -> Callable[[], list[Any]]:
        """They are here, and replaced when they change."""
        found = [memory for shard in self._shards for memory in shard.memories]
        return lambda: found

    def restore(self, memories: Sequence[Any]) -> None:
        """In all shards."""
        given = iter(memories)
        for shard in self._shards:
            shard.restore([next(given) for _ in shard.memories])

    def close(self) -> None:
        """Forget the shards."""
        self._shards = []

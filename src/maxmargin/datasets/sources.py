"""Where the examples of a dataset come from: anything that can be gone through twice, a block at a time.

A *source* has two methods, as XGBoost's ``DataIter``: ``next()`` returns the next block of examples or None at the end,
``reset()`` goes back to the beginning. :func:`as_source` makes one of sequences, of functions that return iterators and
of tables with named columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin.datasets.columns import column_of, names_of
from maxmargin.structures.base import IntArray


class SourceError(ValueError):
    """A source gives what is not a block of examples, or can be gone through only once."""


BLOCK_EXAMPLES = 1024
"""Examples that are read together, unless a source has blocks of its own."""

_WANTED = (
    "a DataSource, a pair (X, y) of sequences, a list of pairs (x, y), or a function that returns an iterator of such "
    "pairs"
)


@dataclass(frozen=True, eq=False)
class DataBlock:
    """Some consecutive examples of a source.

    Attributes:
        X: inputs, one per example, as the encoder takes them.
        y: gold outputs, one per example.
        sample_weight: weight of each example, shape ``(n_examples,)``; None for 1.
        loss_weight: for each example, how much each of its variables counts in the loss; None for 1.
        costs: for each example, what each of its parts costs, in place of a loss; None for the loss.
        size: number of examples, where ``X`` is not a list.
    """

    X: Any
    y: Any
    sample_weight: Any = None
    loss_weight: Any = None
    costs: Any = None
    size: int | None = None

    def __len__(self) -> int:
        return len(self.X) if self.size is None else self.size

    def of(self, X: Any, y: Any, examples: IntArray) -> DataBlock:
        """Other inputs and outputs of some of the examples, with their weights."""

        def chosen(values: Any) -> Any:
            return None if values is None else [values[i] for i in examples.tolist()]

        sample_weight, loss_weight, costs = map(chosen, self.optional)
        return DataBlock(X, y, sample_weight, loss_weight, costs, len(examples))

    @property
    def optional(self) -> tuple[Any, Any, Any]:
        """What a block may have besides inputs and outputs."""
        return self.sample_weight, self.loss_weight, self.costs


class DataSource(ABC):
    """A source of examples. Yours needs only these two methods, not this base class."""

    @abstractmethod
    def next(self) -> DataBlock | tuple[Any, Any] | None:
        """The next examples: a :class:`DataBlock`, or a pair ``(X, y)`` of lists; None at the end."""

    @abstractmethod
    def reset(self) -> None:
        """Go back to the beginning: :meth:`next` then returns the same blocks once more."""


class IteratorSource(DataSource):
    """Examples of an iterator that can be made again.

    Args:
        restart: returns an iterator from the beginning, of pairs ``(x, y)`` with one example each, or of
            :class:`DataBlock`.
        block_examples: pairs that are put together in a block.
    """

    def __init__(self, restart: Callable[[], Iterable[Any]], block_examples: int = BLOCK_EXAMPLES) -> None:
        self._restart = restart
        self._size = _checks.integer("block_examples", block_examples, least=1)
        self._iterator: Iterator[Any] | None = None
        self._count = 0

    def next(self) -> DataBlock | None:
        """See :meth:`DataSource.next`."""
        if self._iterator is None:
            self._iterator, self._count = iter(self._restart()), 0
        pairs: list[tuple[Any, Any]] = []
        for item in islice(self._iterator, self._size):
            if isinstance(item, DataBlock):
                if pairs:
                    raise SourceError("a source gives either blocks or single examples, not both")
                return item
            if not isinstance(item, (tuple, list)) or len(item) != 2:
                table = "; of a table make a ColumnSource" if isinstance(item, dict) else ""
                raise SourceError(
                    f"example {self._count + len(pairs)}: a source must give pairs (x, y) of an input and its output, "
                    f"or DataBlock(X, y), got {shown(item)}{table}"
                )
            pairs.append((item[0], item[1]))
        self._count += len(pairs)
        return DataBlock([x for x, _ in pairs], [y for _, y in pairs]) if pairs else None

    def reset(self) -> None:
        """See :meth:`DataSource.reset`."""
        self._iterator = None


class SequenceSource(DataSource):
    """Examples of sequences that are already in memory, or that read their items from elsewhere when asked for them.

    Args:
        X: inputs; ``len(X)`` and ``X[i]`` are used.
        y: outputs.
        sample_weight, loss_weight, costs: as :meth:`maxmargin.StructuredSVM.fit` takes them.
        block_examples: examples of a block.
    """

    def __init__(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: Sequence[float] | None = None,
        *,
        loss_weight: Sequence[Any] | None = None,
        costs: Sequence[Any] | None = None,
        block_examples: int = BLOCK_EXAMPLES,
    ) -> None:
        given: dict[str, Any] = {
            "X": X,
            "y": y,
            "sample_weight": sample_weight,
            "loss_weight": loss_weight,
            "costs": costs,
        }
        for name, values in given.items():
            if values is not None and not (hasattr(values, "__len__") and hasattr(values, "__getitem__")):
                raise ValueError(f"{name} must be a sequence with one entry per example, got {shown(values)}")
            if values is not None and len(values) != len(X):
                raise ValueError(f"X has {len(X)} examples but {name} has {len(values)}: give one entry per example")
        self._given = given
        self._size = _checks.integer("block_examples", block_examples, least=1)
        self._at = 0

    def next(self) -> DataBlock | None:
        """See :meth:`DataSource.next`."""
        numbers = range(len(self._given["X"]))[self._at : self._at + self._size]
        self._at += len(numbers)
        if not numbers:
            return None
        lists: dict[str, Any] = {
            name: None if own is None else [own[i] for i in numbers] for name, own in self._given.items()
        }
        return DataBlock(**lists)

    def reset(self) -> None:
        """See :meth:`DataSource.reset`."""
        self._at = 0


Column = str | Callable[[dict[str, Any]], Any]
"""The name of a column, or a function of a row (a dictionary by names of columns)."""


class ColumnSource(DataSource):
    """Rows of a table: a Hugging Face dataset, Arrow tables and datasets, Ray Data, a data frame, a dictionary.

    Args:
        table: has ``iter(batch_size=...)`` (Hugging Face ``datasets``), ``iter_batches(batch_size=...)`` (Ray Data,
            ``pyarrow.parquet.ParquetFile``), ``to_batches()`` (Arrow tables and datasets), or columns by name.
        inputs: the column of inputs, or a function of a row that returns an input.
        outputs: the column of outputs, or such a function.
        sample_weight, loss_weight, costs: likewise; None if there are none.
        block_examples: rows of a block.
    """

    def __init__(
        self,
        table: Any,
        inputs: Column,
        outputs: Column,
        *,
        sample_weight: Column | None = None,
        loss_weight: Column | None = None,
        costs: Column | None = None,
        block_examples: int = BLOCK_EXAMPLES,
    ) -> None:
        self._table = table
        self._columns: dict[str, Column] = {"X": inputs, "y": outputs}
        optional = {"sample_weight": sample_weight, "loss_weight": loss_weight, "costs": costs}
        self._columns |= {name: column for name, column in optional.items() if column is not None}
        self._size = _checks.integer("block_examples", block_examples, least=1)
        self._batches: Iterator[Any] | None = None
        self._count = 0

    def next(self) -> DataBlock | None:
        """See :meth:`DataSource.next`."""
        if self._batches is None:
            self._batches, self._count = _batches_of(self._table, self._size), 0
        for batch in self._batches:
            columns = _columns_of(batch)
            count = len(next(iter(columns.values()))) if columns else 0
            if count:
                found: dict[str, Any] = {name: self._values(how, columns, count) for name, how in self._columns.items()}
                self._count += count
                return DataBlock(**found)
        return None

    def _values(self, how: Column, columns: dict[str, Sequence[Any]], count: int) -> list[Any]:
        if not isinstance(how, str):
            return [self._of_row(i, how, columns) for i in range(count)]
        if how not in columns:
            raise SourceError(f"the table has no column {how!r}; there are {', '.join(map(repr, columns))}")
        return [plain(value) for value in columns[how]]

    def _of_row(self, i: int, how: Callable[[dict[str, Any]], Any], columns: dict[str, Sequence[Any]]) -> Any:
        try:
            return how({name: column[i] for name, column in columns.items()})
        except ValueError as error:
            if type(error) is not ValueError:
                raise
            raise SourceError(f"row {self._count + i}: {error}") from error

    def reset(self) -> None:
        """See :meth:`DataSource.reset`."""
        self._batches = None


def parquet(path: str | Path, inputs: Column, outputs: Column, **options: Any) -> ColumnSource:
    """The rows of a Parquet file, or of all Parquet files of a folder; needs ``pyarrow``.

    Args:
        path: the file or folder.
        inputs, outputs, options: as for :class:`ColumnSource`. A column of lists of lists of numbers is read as
            matrices.
    """
    try:
        from pyarrow.dataset import dataset
    except ImportError:
        raise ImportError("Parquet files are read by pyarrow: pip install 'maxmargin[parquet]'") from None
    return ColumnSource(dataset(path, format="parquet"), inputs, outputs, **options)


def _batches_of(table: Any, size: int) -> Iterator[Any]:
    if hasattr(table, "iter_batches"):
        return iter(table.iter_batches(batch_size=size))
    if hasattr(table, "to_batches"):
        try:
            return iter(table.to_batches(batch_size=size))
        except TypeError:  # of a table in memory
            return iter(table.to_batches(max_chunksize=size))
    if callable(getattr(table, "iter", None)):
        return iter(table.iter(batch_size=size))
    return _sliced(_columns_of(table), size)


def _sliced(columns: dict[str, Sequence[Any]], size: int) -> Iterator[dict[str, Sequence[Any]]]:
    total = len(next(iter(columns.values()))) if columns else 0
    for first in range(0, total, size):
        yield {name: column[first : first + size] for name, column in columns.items()}


def _columns_of(batch: Any) -> dict[str, Sequence[Any]]:
    """The columns of some rows, by name."""
    names = names_of(batch)
    if names is None:
        raise SourceError(f"a table must have named columns, got {shown(batch)}")
    return {str(name): column_of(batch, name) for name in names}


def plain(value: Any) -> Any:
    """Lists of rows of numbers as a matrix, arrays of objects as lists; everything else as it is."""
    if isinstance(value, np.ndarray) and value.dtype.hasobject:  # lists in batches of NumPy arrays
        value = value.tolist()
    rows = isinstance(value, list) and value and isinstance(value[0], (list, np.ndarray)) and len(value[0])
    if rows and isinstance(value[0][0], (int, float, np.number)) and not isinstance(value[0][0], bool):
        return np.array(value, dtype=np.float64)
    return value


def as_source(given: Any, block_examples: int = BLOCK_EXAMPLES) -> DataSource:
    """A source of what a caller gave; ValueError for what can be gone through only once."""
    if isinstance(given, DataSource) or (callable(getattr(given, "next", None)) and hasattr(given, "reset")):
        return given  # type: ignore[no-any-return]
    if isinstance(given, tuple) and len(given) == 2:
        return SequenceSource(*given, block_examples=block_examples)
    if callable(given):
        return IteratorSource(given, block_examples)
    if isinstance(given, Iterator):
        raise SourceError(
            f"a source is gone through twice, and {shown(given)} ends after once; give a function that returns a new "
            "iterator"
        )
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes, dict)):
        return IteratorSource(lambda: given, block_examples)
    raise SourceError(f"the source must be {_WANTED}, got {shown(given)}")


class Blocks:
    """The blocks of a source as often as they are iterated over, and where the current one begins."""

    def __init__(self, source: DataSource) -> None:
        self.source = source
        self.first = 0

    def __iter__(self) -> Iterator[DataBlock]:
        self.source.reset()
        first = 0
        while (found := self.source.next()) is not None:
            block = found if isinstance(found, DataBlock) else self._of_pair(found)
            count = len(block)
            if not count:
                continue
            self.first = first
            if isinstance(block.y, list) and len(block.y) != count:
                raise SourceError(f"a block has {count} inputs but {len(block.y)} outputs: give one output per input")
            yield block
            first += count

    def _of_pair(self, found: Any) -> DataBlock:
        if isinstance(found, (tuple, list)) and len(found) == 2:
            return DataBlock(*found)
        raise SourceError(f"next() of a source must return DataBlock(X, y), (X, y) or None, got {shown(found)}")

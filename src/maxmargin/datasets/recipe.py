"""How blocks of data become the examples of a dataset: what is learned from all of them, then the examples of each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from maxmargin.datasets.examples import Examples
from maxmargin.datasets.sources import DataBlock
from maxmargin.encoders.base import Batch, Encoder
from maxmargin.problem import GoodOutputs

Good = Callable[[Encoder, Batch, Sequence[Any]], GoodOutputs | None]
"""Finds the good outputs of a block of examples, see :mod:`maxmargin.problem.good`."""


class Recipe(ABC):
    """How a task makes examples, where its encoder alone does not say; :class:`EncoderRecipe` is that of an encoder."""

    @property
    @abstractmethod
    def settings(self) -> str:
        """What decides what will be learned, as Python writes it."""

    @abstractmethod
    def learn(self, blocks: Iterable[tuple[Any, Any]]) -> Encoder:
        """Learn an encoder from blocks ``(X, y)``, which can be gone through several times."""

    def blocks(self, encoder: Encoder, blocks: Iterable[DataBlock]) -> Iterator[DataBlock]:
        """Yield what is encoded, from the blocks of the source: as :meth:`Encoder.training_blocks` says.

        Blocks of lists are put together, or cut, to shards of the wanted size.
        """
        return encoder.training_blocks(blocks)

    @abstractmethod
    def examples(self, encoder: Encoder, block: DataBlock) -> Examples:
        """Encode a block of :meth:`blocks`, one example for each of its items."""


@dataclass(frozen=True, eq=False)
class EncoderRecipe(Recipe):
    """The examples of an encoder.

    Attributes:
        encoder: has not been fitted.
        good: finds the good outputs where examples have several; None for one gold output each.
    """

    encoder: Encoder
    good: Good | None = None

    @property
    def settings(self) -> str:
        """Those of the encoder."""
        return self.encoder.settings

    def learn(self, blocks: Iterable[tuple[Any, Any]]) -> Encoder:
        """See :meth:`Encoder.learn_blocks`."""
        return self.encoder.learn_blocks(blocks)

    def examples(self, encoder: Encoder, block: DataBlock) -> Examples:
        """Encode inputs and outputs, with their weights and costs."""
        examples = Examples.encoded(encoder, block.X, block.y, *block.optional, listed=block.size is None)
        if self.good is None:
            return examples
        return replace(examples, good=self.good(encoder, examples.batch, block.y))

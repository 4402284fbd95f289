"""Encoded training examples, in memory or in files that are mapped as they are used."""

from maxmargin.datasets.dataset import Shard, ShardedDataset
from maxmargin.datasets.examples import Examples
from maxmargin.datasets.freezing import FrozenError
from maxmargin.datasets.recipe import EncoderRecipe, Recipe
from maxmargin.datasets.sources import ColumnSource, DataBlock, DataSource, IteratorSource, SequenceSource, parquet
from maxmargin.execution import ShardError

__all__ = [
    "ColumnSource",
    "DataBlock",
    "DataSource",
    "EncoderRecipe",
    "Examples",
    "FrozenError",
    "IteratorSource",
    "Recipe",
    "SequenceSource",
    "Shard",
    "ShardError",
    "ShardedDataset",
    "parquet",
]

"""Encoded training examples on disk: a folder with an index and one file per shard, which are mapped as they are used.

``index.json`` names the shards with their sizes and checksums; ``encoder.model`` holds the fitted encoder in the format
of model files; ``000000.shard`` and so on hold the examples (:mod:`maxmargin.datasets.shard_file`), ``none.shard`` no
example, for a process that needs to know their kind only. A folder without an index whose ``building.jsonl`` is there
was not completed (:mod:`maxmargin.datasets.build`).
"""

from __future__ import annotations

import copy
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from maxmargin import _checks, model_file
from maxmargin._digest import digest
from maxmargin._version import __version__
from maxmargin.datasets import index_file, shard_file
from maxmargin.datasets.examples import Examples, ProblemSettings
from maxmargin.datasets.freezing import FrozenError, freeze, thaw
from maxmargin.datasets.sources import BLOCK_EXAMPLES
from maxmargin.encoders.base import Batch, Encoder, stored_encoder
from maxmargin.execution import ShardedProblem, ShardError
from maxmargin.features.base import Features
from maxmargin.structures.base import SHARD_PARTS, FloatArray, Structure
from maxmargin.structures.sparse import SparsePoint

if TYPE_CHECKING:
    from maxmargin.datasets.recipe import Recipe

FORMAT = 3
_LONGEST = 600
"""Characters of an encoder's settings that are kept as they are."""
INDEX, ENCODER, JOURNAL, NONE = "index.json", "encoder.model", "building.jsonl", "none.shard"
_NAME = re.compile(r"([0-9]{6,9}|none)\.shard")
_AGAIN = "copy the folder again, or build the dataset anew"


class Change(Protocol):
    """What is done to the examples of a shard whenever it is opened; its attributes are its fingerprint."""

    def __call__(self, examples: Examples, shard: int) -> Examples:
        """Return the examples of the shard with this number as they are to be; of the same sizes."""


@dataclass(frozen=True)
class Shard:
    """One file of a dataset.

    Attributes:
        file: its name.
        first: number of its first example.
        examples: number of its examples.
        parts: number of their parts.
        variables: number of their variables, such as labeled positions.
        bytes: length of the file.
        digest: SHA-256 of its contents, in hexadecimal.
    """

    file: str
    first: int
    examples: int
    parts: int
    variables: int
    bytes: int
    digest: str

    @classmethod
    def parse(cls, given: Any) -> Shard:
        """Of an index; ValueError, KeyError or TypeError if it makes no sense."""
        names = "first", "examples", "parts", "variables", "bytes"
        numbers = {name: _checks.integer(name, given[name], least=0) for name in names}
        if not isinstance(given["file"], str) or not _NAME.fullmatch(given["file"]):
            raise ValueError("a shard has a name that is not one")
        if not isinstance(given["digest"], str):
            raise ValueError("a shard has no digest")
        return cls(file=given["file"], digest=given["digest"], **numbers)


class ShardedDataset:
    """Encoded training examples in a folder, of which only one shard at a time is in memory.

    ``fit`` of any estimator takes one in place of ``X`` and ``y``. Build it once with :meth:`build`.

    Args:
        folder: the folder.

    Attributes:
        folder: the folder.
        shards: its files, in order.
        n_weights: length of the weights of a model.
        settings: the encoder before it was fitted, as Python writes it.
        metadata: what was given when it was built, as plain JSON values.
        formulation: which good outputs the examples have; "gold" for one each.
        anchor: weights that the new ones are to stay close to, see :meth:`anchored`; None for 0.
        change: what is done to the examples when they are opened, see :meth:`changed`; None for nothing.

    Raises:
        ShardError: there is no dataset in the folder, or its index is damaged; later, where a shard is used, that its
            file is missing or damaged.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(_checks.path("folder", folder)).absolute()
        index = _read_index(self.folder)
        self._encoder: Encoder | None = None
        self.anchor: FloatArray | None = None
        self.change: Change | None = None
        try:
            self.shards, self._none = tuple(Shard.parse(one) for one in index["shards"]), Shard.parse(index["none"])
            self.n_weights = _checks.integer("n_weights", index["n_weights"], least=0)
            self.formulation, self.has_costs = str(index["formulation"]), bool(index["costs"])
            self.settings, self._remembered = str(index["settings"]), dict(index["remembered"])
            self.metadata = dict(index["metadata"])
            self._encoder_digest, self.digest = str(index["encoder"]), str(index["digest"])
            ends = [0, *(one.first + one.examples for one in self.shards)]
            if not self.shards or any(one.first != end for one, end in zip(self.shards, ends, strict=False)):
                raise ValueError("its shards do not follow each other")
        except (KeyError, TypeError, ValueError) as error:
            raise ShardError(f"{self.folder / INDEX} is damaged ({error}); {_AGAIN}") from None

    @classmethod
    def build(
        cls,
        folder: str | os.PathLike[str],
        encoder: Encoder | Recipe,
        source: Any,
        *,
        shard_parts: int = SHARD_PARTS,
        block_examples: int = BLOCK_EXAMPLES,
        metadata: dict[str, Any] | None = None,
        overwrite: bool = False,
        resume: bool = False,
    ) -> ShardedDataset:
        """Encode examples block by block into a folder: one pass to learn (labels, feature counts), one to encode.

        Args:
            folder: the folder, made if it does not exist.
            encoder: an encoder that has not been fitted, or the :class:`~maxmargin.datasets.Recipe` of a task.
            source: a :class:`~maxmargin.datasets.DataSource`, or anything else that has one: a pair ``(X, y)`` of
                sequences, a list of pairs ``(x, y)``, or a function that returns an iterator of such pairs.
            shard_parts: about how many parts a shard has; packed vectors of one shard are in memory during training.
            block_examples: examples that are read together, where the source does not say; memory is that of so many
                inputs, and of one shard.
            metadata: plain JSON values that are kept with it.
            overwrite: replace a dataset that is in the folder.
            resume: complete a dataset whose building was interrupted; the source must be the same.

        Returns:
            The dataset.

        Raises:
            ValueError: the data does not fit; the example is named.
            FrozenError: the encoder's batches are made of classes that are not the library's.
            OSError: a file cannot be written.
        """
        from maxmargin.datasets.build import build

        target = Path(_checks.path("folder", folder)).absolute()
        build(
            target,
            encoder,
            source,
            shard_parts=_checks.integer("shard_parts", shard_parts, least=1),
            block_examples=_checks.integer("block_examples", block_examples, least=1),
            metadata=metadata or {},
            overwrite=overwrite,
            resume=resume,
        )
        return cls(target)

    def problem(self, settings: ProblemSettings, C: float) -> ShardedProblem:
        """The training problem; its pieces are opened as they are used."""
        from maxmargin.datasets.pieces import problem_of

        return problem_of(self, settings, C)

    def weights_of(self, weights: FloatArray) -> FloatArray:
        """Weights of the model from those of :meth:`problem`."""
        return weights if self.anchor is None else weights + self.anchor

    def __reduce__(self) -> tuple[Any, ...]:
        return _opened, (self.folder, self.digest, self._encoder, self.anchor, self.change)

    def __copy__(self) -> ShardedDataset:
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other

    def __len__(self) -> int:
        """Number of examples."""
        return self.shards[-1].first + self.shards[-1].examples

    def __repr__(self) -> str:
        sizes = f"{len(self):,} examples, {self.n_parts:,} parts, {len(self.shards)} shards, {self.nbytes:,} bytes"
        return f"ShardedDataset({str(self.folder)!r}): {sizes}"

    @property
    def n_parts(self) -> int:
        """Number of parts of all examples."""
        return sum(one.parts for one in self.shards)

    @property
    def n_variables(self) -> int:
        """Number of variables of all examples, such as labeled positions."""
        return sum(one.variables for one in self.shards)

    @property
    def nbytes(self) -> int:
        """Length of all shard files."""
        return sum(one.bytes for one in self.shards)

    @property
    def encoder(self) -> Encoder:
        """The fitted encoder."""
        return self._stored if self._encoder is None else self._encoder

    def with_encoder(self, encoder: Encoder) -> ShardedDataset:
        """The same examples with an encoder whose weights are others, see :meth:`Encoder.rebatched`."""
        other = copy.copy(self)
        other._encoder, other.n_weights = encoder, encoder.n_weights
        return other

    def anchored(self, weights: FloatArray | None) -> ShardedDataset:
        """The same examples, whose model stays close to weights, see :attr:`Examples.anchor`."""
        other = copy.copy(self)
        other.anchor = weights
        return other

    def changed(self, change: Change | None) -> ShardedDataset:
        """The same examples with something done to them whenever they are opened; the files stay as they are."""
        other = copy.copy(self)
        other.change = change
        return other

    @property
    def identity(self) -> str:
        """A hash of all examples as :meth:`examples` returns them."""
        return digest(self.digest, *(one for one in (self.anchor, self.change) if one is not None))

    @cached_property
    def _stored(self) -> Encoder:
        path = self.folder / ENCODER
        try:
            if hashlib.sha256(path.read_bytes()).hexdigest() != self._encoder_digest:
                raise ValueError("its checksum is not the one in the dataset's index")
            return stored_encoder(*model_file.read(path)).recalled(self._remembered)
        except FileNotFoundError:
            raise ShardError(f"{path} is missing; {_AGAIN}") from None
        except (AttributeError, KeyError, OSError, OverflowError, TypeError, ValueError, RecursionError) as error:
            raise ShardError(f"{path} cannot be used ({error}); {_AGAIN}") from None

    def require(self, encoder: Encoder | Recipe) -> None:
        """ValueError unless the dataset was built with an encoder, or a recipe, of these settings."""
        if self.settings != settings_of(encoder):
            raise ValueError(
                f"{self.folder} was built with {self.settings}, and this is {settings_of(encoder)}; give the same "
                "settings, or build another dataset"
            )

    def examples(self, shard: int) -> Examples:
        """The examples of one shard, around memory that is mapped from its file.

        The first time a process opens a file its checksum is compared.
        """
        examples = self._examples(self.shards[shard])
        return examples if self.change is None else self.change(examples, shard)

    @property
    def no_examples(self) -> Examples:
        """None of the examples, but of their kind, from a file of their own; there is nothing to change."""
        return self._examples(self._none)

    def _examples(self, entry: Shard) -> Examples:
        path = self.folder / entry.file
        header, arrays = shard_file.read_once(path, entry.digest)
        try:
            found = _checked(thaw(header["examples"], arrays, self._stored.shared), entry, self._stored.n_weights)
            if self.encoder is not self._stored:
                found["batch"] = self.encoder.rebatched(found["batch"])
            return Examples(self.encoder, **found, anchor=self.anchor)
        except (KeyError, FrozenError) as error:
            raise ShardError(f"{path} cannot be used: {error}; {_AGAIN}") from None

    def __iter__(self) -> Iterator[Examples]:
        """The examples of every shard, one shard after the other."""
        return (self.examples(shard) for shard in range(len(self.shards)))

    def verify(self) -> None:
        """Compare the checksums of all files; ShardError naming the first that differs."""
        for entry in self.shards:
            shard_file.read(self.folder / entry.file, entry.digest, verify=True)


def _opened(
    folder: Path, wanted: str, encoder: Encoder | None, anchor: FloatArray | None, change: Change | None
) -> ShardedDataset:
    """A dataset in another process, which must be the same."""
    dataset = ShardedDataset(folder)
    if dataset.digest != wanted:
        raise ShardError(f"{folder} holds another dataset than before; {_AGAIN}")
    if encoder is not None:
        dataset = dataset.with_encoder(encoder)
    return dataset.anchored(anchor).changed(change)


def settings_of(encoder: Encoder | Recipe) -> str:
    """An encoder that has not been fitted, as Python writes it; shortened to a digest where that is long."""
    text = encoder.settings
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({digest(text)})"


_FIELDS = "batch", "gold", "example_weight", "loss_weight", "costs", "good"


def write_shard(path: Path, first: int, examples: Examples) -> Shard:
    """Write the file of some examples."""
    examples.batch.features.adjoint(examples.gold.dense())  # makes what a file keeps and takes time to make
    parts = {name: getattr(examples, name) for name in _FIELDS}
    description, arrays = freeze(parts, examples.encoder.shared)
    length, found = shard_file.write(path, {"examples": description}, arrays)
    structure = examples.batch.structure
    variables = int(structure.n_variables.sum())
    return Shard(path.name, first, structure.n_examples, structure.n_parts, variables, length, found)


def _checked(found: Any, entry: Shard, n_weights: int) -> dict[str, Any]:
    """The fields of a shard, if they are of the right kinds and sizes: all else is checked where it is used."""
    kinds = {"batch": Batch, "gold": SparsePoint}
    if not isinstance(found, dict) or set(found) != set(_FIELDS):
        raise FrozenError("it does not hold examples")
    if not all(isinstance(found[name], kind) for name, kind in kinds.items()):
        raise FrozenError("it does not hold examples")
    structure, features = found["batch"].structure, found["batch"].features
    if not isinstance(structure, Structure) or not isinstance(features, Features):
        raise FrozenError("its batch is not one")
    try:
        sizes = structure.n_examples, structure.n_parts, features.n_parts, features.n_weights
    except Exception as error:
        raise FrozenError(f"its structure makes no sense ({error})") from None
    if sizes != (entry.examples, entry.parts, entry.parts, n_weights):
        raise FrozenError("its sizes are not those of the index")
    if found["gold"].structure is not structure:
        raise FrozenError("its gold outputs belong to another batch")
    return found


def write_index(
    folder: Path, encoder: Encoder, described: dict[str, Any], shards: list[Shard], formulation: str, costs: bool
) -> None:
    """Write the index, which makes the folder a dataset; ``described``: entries of the encoder."""
    header, arrays = shard_file.read(folder / shards[0].file, shards[0].digest, verify=False)
    some = Examples(encoder, **thaw(header["examples"], arrays, encoder.shared))
    none = write_shard(folder / NONE, 0, some.select(np.zeros(0, dtype=np.int64)))
    index = {
        "format": FORMAT,
        "library": __version__,
        "kind": encoder.kind,
        **described,
        "remembered": encoder.remembered,
        "n_weights": encoder.n_weights,
        "examples": sum(one.examples for one in shards),
        "parts": sum(one.parts for one in shards),
        "bytes": sum(one.bytes for one in shards),
        "formulation": formulation,
        "costs": costs,
        "none": vars(none),
        "shards": [vars(one) for one in shards],
    }
    index_file.write_index(folder / INDEX, index)


def _read_index(folder: Path) -> dict[str, Any]:
    index = index_file.read_index(folder / INDEX, FORMAT, None, _AGAIN)
    if index is not None:
        return index
    if (folder / JOURNAL).exists():
        raise ShardError(
            f"{folder} holds a dataset that was not completed; build it again with resume=True, or with "
            "overwrite=True to start anew"
        )
    raise ShardError(
        f"{folder} holds no dataset ({INDEX} is missing); make one with ShardedDataset.build or the command shard, or "
        "give a file in place of the folder"
    )

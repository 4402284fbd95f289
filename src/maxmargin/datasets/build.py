"""The two passes that make a dataset: the encoder learns from all blocks, then encodes one after the other.

The sizes of shards follow from the examples: the first block tells how many parts an example has, and later ones take
as many examples as give the wanted number of parts. A journal names the shards that are complete; it is what a build
that was interrupted goes on from, and it is removed when the index is written.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maxmargin import _checks, _memory, model_file
from maxmargin._files import remove_leftovers
from maxmargin._locks import FileInUseError, FileLock
from maxmargin._messages import FileContentError
from maxmargin._version import __version__
from maxmargin.datasets.dataset import ENCODER, INDEX, JOURNAL, Shard, settings_of, write_index, write_shard
from maxmargin.datasets.recipe import EncoderRecipe, Recipe
from maxmargin.datasets.sources import Blocks, DataBlock, SourceError, as_source
from maxmargin.encoders.base import Encoder

_FIRST_EXAMPLES = 32
"""Examples of the first shard where a block has more: their parts are not known yet."""

_GROWTH = 8
"""How many times as many examples are encoded together as the time before, at most."""

_ROOM = 1.25
"""How many times its parts a shard may have before it is cut in two."""

_OURS = re.compile(r"([0-9]{6,9}|none)\.shard|\..*\.(part|lock)")
_EXAMPLE = re.compile(r"(example|sentence pair) (\d+)")


def build(
    folder: Path,
    encoder: Encoder | Recipe,
    source: Any,
    *,
    shard_parts: int,
    block_examples: int,
    metadata: dict[str, Any],
    overwrite: bool,
    resume: bool,
) -> None:
    """Make a dataset, see :meth:`maxmargin.datasets.ShardedDataset.build`."""
    if isinstance(encoder, Recipe):
        recipe = encoder
    else:
        _checks.instance("encoder", encoder, Encoder, "an encoder, for example mm.encoders.ChainEncoder()")
        recipe = EncoderRecipe(encoder)
    _checks.flag("overwrite", overwrite)
    _checks.flag("resume", resume)
    blocks = Blocks(as_source(source, block_examples))
    _check_folder(folder, overwrite, resume)
    fitted = _learned(recipe, blocks)
    _memory.require(8.0 * fitted.n_weights, f"a model of {fitted.n_weights} weights", "give fewer features or labels")
    folder.mkdir(parents=True, exist_ok=True)
    lock = _locked(folder)
    try:
        described = {"settings": settings_of(recipe), "metadata": metadata, "encoder": ""}
        builder = _Builder(folder, recipe, fitted, described, blocks, shard_parts)
        builder.begin(resume=resume)
        builder.run()
        builder.finish()
    finally:
        lock.release()


def _locked(folder: Path) -> FileLock:
    try:
        return FileLock(folder / INDEX)
    except FileInUseError as error:
        by = "" if error.pid is None else f" (process {error.pid})"
        raise OSError(f"{folder} is being built by another process{by}; wait for it, or give another folder") from None


def _check_folder(folder: Path, overwrite: bool, resume: bool) -> None:
    """Refuse folders with other things; what an earlier build left there is replaced or completed only if asked."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; give the name of a folder")
    names = {INDEX, ENCODER, JOURNAL}
    others = sorted(one.name for one in folder.iterdir() if one.name not in names and not _OURS.fullmatch(one.name))
    if others:
        raise ValueError(f"{folder} holds other files ({others[0]}); give a new folder for the dataset")
    if overwrite:
        return
    if (folder / INDEX).exists():
        raise ValueError(
            f"{folder} holds a dataset: open it with ShardedDataset(folder), give another folder, or overwrite=True"
        )
    if (folder / JOURNAL).exists() and not resume:
        raise ValueError(
            f"{folder} holds a dataset that was not completed; give resume=True to go on, or overwrite=True to start "
            "anew"
        )


@contextlib.contextmanager
def renumbered(first: Callable[[], int]) -> Iterator[None]:
    """Count examples in errors from the beginning of the source, not of a block."""
    try:
        yield
    except (FileContentError, SourceError):
        raise
    except ValueError as error:
        if type(error) is not ValueError or not first():
            raise
        text = _EXAMPLE.sub(lambda found: f"{found[1]} {int(found[2]) + first()}", str(error), count=1)
        raise ValueError(text) from None


class _Pairs:
    """Blocks as encoders learn from them."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return ((block.X, block.y) for block in self._blocks)


def _learned(recipe: Recipe, blocks: Blocks) -> Encoder:
    with renumbered(lambda: blocks.first):
        return recipe.learn(_Pairs(blocks))


@dataclass
class _Progress:
    """How far a build has come.

    Attributes:
        shards: those that are complete.
        together: examples that were encoded together the last time; 0 at the beginning.
        costs: whether examples have costs; None before the first.
        formulation: of the good outputs.
    """

    shards: list[Shard]
    together: int = 0
    costs: bool | None = None
    formulation: str = "gold"

    @property
    def done(self) -> int:
        """Number of examples that are encoded."""
        return self.shards[-1].first + self.shards[-1].examples if self.shards else 0

    def next_size(self, shard_parts: int) -> int:
        """Number of examples to encode together: a shard of them by what parts they had so far."""
        if not self.shards:
            return _FIRST_EXAMPLES
        parts = max(1, sum(one.parts for one in self.shards))
        return max(1, min(_GROWTH * self.together, int(shard_parts * self.done / parts)))


class _Builder:
    """The second pass."""

    def __init__(
        self,
        folder: Path,
        recipe: Recipe,
        encoder: Encoder,
        described: dict[str, Any],
        blocks: Blocks,
        shard_parts: int,
    ) -> None:
        self.folder, self.recipe, self.encoder = folder, recipe, encoder
        self.blocks, self.shard_parts = blocks, shard_parts
        self.progress = _Progress([])
        self.described = described

    def begin(self, *, resume: bool) -> None:
        """Write the encoder and begin the journal; or read what an earlier build has done."""
        header, arrays = self.encoder.stored()
        journal = self.folder / JOURNAL
        going_on = resume and journal.exists()
        if not going_on:
            for name in (INDEX, JOURNAL, ENCODER):
                (self.folder / name).unlink(missing_ok=True)
            for one in self.folder.glob("*.shard"):
                one.unlink()
        model_file.write(self.folder / ENCODER, header, arrays)
        self.described["encoder"] = hashlib.sha256((self.folder / ENCODER).read_bytes()).hexdigest()
        settings = {"library": __version__, **self.described, "shard_parts": self.shard_parts}
        if not going_on:
            self._record(settings)
            return
        lines = journal.read_text(encoding="ascii").split("\n")[:-1]  # the last line may be cut off
        if not lines or json.loads(lines[0]) != settings:
            raise ValueError(
                f"{self.folder} was begun with other data or settings, or by another version; give overwrite=True to "
                "start anew"
            )
        with open(journal, "w", encoding="ascii") as file:
            file.writelines(f"{line}\n" for line in lines)
        for line in lines[1:]:
            found = json.loads(line)
            self.progress.shards += [Shard.parse(one) for one in found.pop("shards")]
            self.progress = _Progress(self.progress.shards, **found)
        remove_leftovers(self._path())

    def _path(self) -> Path:
        return self.folder / f"{len(self.progress.shards):06d}.shard"

    def _record(self, line: dict[str, Any]) -> None:
        with open(self.folder / JOURNAL, "a", encoding="ascii") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def run(self) -> None:
        """Encode all examples that have not been encoded yet."""
        for block in self._groups():
            with renumbered(lambda: self.progress.done):
                self._encode(block)

    def _groups(self) -> Iterator[DataBlock]:
        """The remaining examples, as many at a time as are to be encoded together.

        Lists are put together and cut; blocks of other kinds stay what they are.
        """
        waiting: DataBlock | None = None
        seen = 0
        for block in self.recipe.blocks(self.encoder, self.blocks):
            begin, seen = seen, seen + len(block)
            if seen <= self.progress.done and waiting is None:
                continue
            if not _is_list(block):
                if waiting is not None:
                    yield waiting
                waiting = None
                if len(block):
                    yield block
                continue
            rest = _sliced(block, max(0, self.progress.done - begin), len(block.X)) if waiting is None else block
            if waiting is not None and not _alike(waiting, rest):
                yield waiting
                waiting = None
            waiting = rest if waiting is None else _joined(waiting, rest)
            while waiting is not None and len(waiting.X) >= (size := self.progress.next_size(self.shard_parts)):
                group, waiting = _sliced(waiting, 0, size), _rest(waiting, size)
                yield group
        if waiting is not None:
            yield waiting

    def _encode(self, block: DataBlock) -> None:
        """Write the shards of some examples, and record them together."""
        progress = self.progress
        examples = self.recipe.examples(self.encoder, block)
        has_costs = examples.has_costs
        if progress.costs not in (None, has_costs):
            raise ValueError("example 0: some examples have costs and others none; give them for all or for none")
        structure = examples.batch.structure
        whole = structure.n_parts <= _ROOM * self.shard_parts
        pieces = list(structure.consecutive(structure.n_parts if whole else self.shard_parts))
        before = len(progress.shards)
        for numbers in pieces:
            own = examples if len(pieces) == 1 else examples.select(numbers)
            progress.shards.append(write_shard(self._path(), progress.done, own))
        progress.together, progress.costs = structure.n_examples, has_costs
        progress.formulation = "gold" if examples.good is None else examples.good.formulation
        after = {"together": progress.together, "costs": has_costs, "formulation": progress.formulation}
        self._record({"shards": [vars(one) for one in progress.shards[before:]], **after})

    def finish(self) -> None:
        """Write the index; the dataset is complete."""
        progress = self.progress
        write_index(
            self.folder, self.encoder, self.described, progress.shards, progress.formulation, bool(progress.costs)
        )
        (self.folder / JOURNAL).unlink()


_LISTS = "X", "y", "sample_weight", "loss_weight", "costs"


def _is_list(block: DataBlock) -> bool:
    return isinstance(block.X, list) and isinstance(block.y, list)


def _alike(one: DataBlock, other: DataBlock) -> bool:
    """Whether two blocks have the same optional values."""
    return [value is None for value in one.optional] == [value is None for value in other.optional]


def _joined(one: DataBlock, other: DataBlock) -> DataBlock:
    pairs = [(getattr(one, name), getattr(other, name)) for name in _LISTS]
    values: list[Any] = [None if first is None else [*first, *second] for first, second in pairs]
    return DataBlock(*values)


def _sliced(block: DataBlock, first: int, last: int) -> DataBlock:
    if first == 0 and last >= len(block.X):
        return block
    values: list[Any] = [getattr(block, name) for name in _LISTS]
    return DataBlock(*[None if one is None else one[first:last] for one in values])


def _rest(block: DataBlock, first: int) -> DataBlock | None:
    return _sliced(block, first, len(block.X)) if first < len(block.X) else None

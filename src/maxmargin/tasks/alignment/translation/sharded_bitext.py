"""A bitext on disk: a folder with an index and one file per shard, of which one at a time is in memory.

``index.json`` names the shards with their sizes and checksums; ``words.shard`` holds the distinct words of both sides,
``000000.shard`` and so on sentence pairs as numbers of them (:mod:`maxmargin.datasets.shard_file`).
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _memory
from maxmargin._version import __version__
from maxmargin.datasets import index_file, shard_file
from maxmargin.execution import Executor, ShardError
from maxmargin.execution.pieces import cut
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.tasks.alignment.io.bitext import bitext_blocks
from maxmargin.tasks.alignment.io.compact import CompactPairs, CompactSentences, WordNumbers
from maxmargin.tasks.alignment.io.sentences import SentencePair
from maxmargin.tasks.alignment.translation.passes import (
    LONGEST_LEARNED,
    BitextPasses,
    HeldText,
    PairArrays,
    Text,
    TextSize,
)
from maxmargin.tasks.alignment.translation.words import DistinctWords, IndexedBitext, WordVocabulary, fingerprints
from maxmargin.tasks.common.files.text import AnyPath

FORMAT = 2
INDEX, WORDS = "index.json", "words.shard"
SHARD_PAIRS = 1 << 16
"""Sentence pairs of a shard: about 20 MB."""

_BLOCK = 1 << 10
"""Sentence pairs of a block, whose sizes the index has: shards of work may begin with any block of a file."""

ENTRY_BYTES = 40
"""What an entry of the co-occurrences takes while they are merged and models learn."""

_NAME = re.compile(r"\d{6,}\.shard")
_AGAIN = "make the folder anew with ShardedBitext.build or maxmargin align shard"


@dataclass(frozen=True)
class BitextShard:
    """The file of some sentence pairs.

    Attributes:
        file: its name.
        digest: its checksum.
        pairs: number of sentence pairs.
        blocks: the sizes of those that models learn from, block by block.
    """

    file: str
    digest: str
    pairs: int
    blocks: tuple[TextSize, ...]

    @classmethod
    def parse(cls, given: Any) -> BitextShard:
        """Of an index; ValueError, KeyError or TypeError if it makes no sense."""
        if not isinstance(given["file"], str) or not _NAME.fullmatch(given["file"]):
            raise ValueError("a shard has a name that is not one")
        blocks = [TextSize(*(_checks.integer("a size", one, least=0) for one in block)) for block in given["blocks"]]
        pairs = _checks.integer("pairs", given["pairs"], least=1)
        if len(blocks) != -(-pairs // _BLOCK):
            raise ValueError("the sizes of a shard are not those of its blocks")
        return cls(given["file"], str(given["digest"]), pairs, tuple(blocks))


class ShardText(Text):
    """The sentence pairs of some blocks of one shard that models learn from."""

    def __init__(self, folder: Path, shard: BitextShard, n_words: int, first: int, last: int) -> None:
        self._folder, self._shard, self._n_words = folder, shard, n_words
        self._pairs = first * _BLOCK, min(last * _BLOCK, shard.pairs)
        self.size = reduce(TextSize.plus, shard.blocks[first:last])

    def read(self) -> PairArrays:
        """Mapped from the file; a copy if some are too long to learn from."""
        found, _ = arrays_of(self._folder, self._shard, self._n_words)
        some = IndexedBitext(DistinctWords([]), *found).between(*self._pairs)
        if self.size.pairs < len(some):
            kept = np.maximum(np.diff(some.source_start), np.diff(some.target_start)) <= LONGEST_LEARNED
            some = some.select(np.flatnonzero(kept))
        return PairArrays(some.source_start, some.source, some.target_start, some.target)

    def fingerprints(self) -> IntArray:
        """Those of all pairs, also of those that are too long."""
        first, last = self._pairs
        return np.array(arrays_of(self._folder, self._shard, self._n_words)[1][first:last])


def arrays_of(folder: Path, shard: BitextShard, n_words: int) -> tuple[PairArrays, IntArray]:
    """Sentence pairs of a shard as numbers of words, and their fingerprints; ShardError if they cannot be read."""
    path = folder / shard.file
    _, arrays = shard_file.read_once(path, shard.digest)
    found = PairArrays(*arrays[:4])
    for start, tokens in (found[:2], found[2:]):
        good = start.dtype == np.int64 and tokens.dtype == np.int32 and start.shape == (shard.pairs + 1,)
        if not good or start[0] != 0 or start[-1] != len(tokens) or (len(tokens) and int(tokens.max()) >= n_words):
            raise ShardError(f"{path} is not of this bitext; {_AGAIN}")
    return found, arrays[4]


class ShardedBitext(Sequence[SentencePair]):
    """Sentence pairs in a folder, of which only some are in memory at a time. Make it once with :meth:`build`.

    It can be given where a bitext is expected (:meth:`WordAligner.bootstrap`, :meth:`WordAligner.fit`).

    Args:
        folder: the folder.

    Attributes:
        folder: the folder.
        shards: its files, in order.
        added: sentence pairs in memory that follow them.

    Raises:
        ShardError: there is no bitext in the folder, or its index is damaged; later, where a shard is used, that its
            file is missing or damaged.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(_checks.path("folder", folder)).absolute()
        index = _read_index(self.folder)
        try:
            self.shards = tuple(BitextShard.parse(one) for one in index["shards"])
            _, arrays = shard_file.read_once(self.folder / WORDS, str(index["words"]))
            counts = np.zeros(len(arrays[1]) - 1, dtype=np.int64)
            words = WordVocabulary.from_arrays({"text": arrays[0], "offsets": arrays[1], "counts": counts}).words
        except (IndexError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, ShardError):
                raise
            raise ShardError(f"{self.folder / INDEX} is damaged ({error}); {_AGAIN}") from None
        none = CompactSentences(words, np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32))
        self.added = CompactPairs(none, none)
        self._opened: tuple[int, CompactPairs] | None = None

    @classmethod
    def build(
        cls,
        folder: str | os.PathLike[str],
        source: AnyPath,
        target: AnyPath | None = None,
        *,
        shard_pairs: int = SHARD_PAIRS,
        overwrite: bool = False,
    ) -> ShardedBitext:
        """Read the files of a bitext once, in any format that others are read in, and write them into a folder.

        Memory is that of one shard and of the distinct words.

        Args:
            folder: the folder, made if it does not exist.
            source: source sentences, or lines ``source ||| target`` (or TAB) if ``target`` is None.
            target: target sentences.
            shard_pairs: how many sentence pairs a shard has.
            overwrite: replace a bitext that is in the folder.

        Raises:
            FileError: a file cannot be read; the line is named.
            OSError: a file cannot be written.
            ValueError: the folder is not empty.
        """
        place = Path(_checks.path("folder", folder)).absolute()
        writer = _Writer(place, _checks.integer("shard_pairs", shard_pairs, least=1), overwrite)
        for block in bitext_blocks(source, target):
            writer.add(block.source, block.target)
        writer.finish()
        return cls(place)

    @property
    def words(self) -> list[str]:
        """The distinct words of both sides."""
        return self.added.source.words

    @property
    def _ends(self) -> list[int]:
        return list(accumulate(one.pairs for one in self.shards))

    def __len__(self) -> int:
        return sum(one.pairs for one in self.shards) + len(self.added)

    def __repr__(self) -> str:
        return f"ShardedBitext({str(self.folder)!r}): {len(self):,} sentence pairs, {len(self.shards)} shards"

    def _shard(self, number: int) -> CompactPairs:
        """The pairs of a shard; the last one is kept."""
        if number == len(self.shards):
            return self.added
        if self._opened is None or self._opened[0] != number:
            found, _ = arrays_of(self.folder, self.shards[number], len(self.words))
            sides = (CompactSentences(self.words, *side) for side in (found[:2], found[2:]))
            self._opened = number, CompactPairs(*sides)
        return self._opened[1]

    def parts(self) -> Iterator[CompactPairs]:
        """Yield the pairs of one shard after the other."""
        return (self._shard(number) for number in range(len(self.shards) + bool(len(self.added))))

    @overload
    def __getitem__(self, at: int) -> SentencePair: ...
    @overload
    def __getitem__(self, at: slice) -> list[SentencePair]: ...
    def __getitem__(self, at: int | slice) -> SentencePair | list[SentencePair]:
        """A pair, or several."""
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        number, ends = range(len(self))[at], self._ends
        shard = bisect_right(ends, number)
        return self._shard(shard)[number - (ends[shard - 1] if shard else 0)]

    def __iter__(self) -> Iterator[SentencePair]:
        return chain.from_iterable(self._shard(number) for number in range(len(self.shards) + 1))

    @property
    def sizes(self) -> IntArray:
        """Numbers of source and target words, shape ``(n, 2)``."""
        return np.concatenate([self._shard(number).sizes.astype(np.int32) for number in range(len(self.shards) + 1)])

    @property
    def fingerprints(self) -> IntArray:
        """A hash of 64 bits for each sentence pair."""
        stored = [arrays_of(self.folder, shard, len(self.words))[1] for shard in self.shards]
        return np.concatenate([*stored, fingerprints(self.added.source, self.added.target)])

    def seen_by(self, passes: BitextPasses) -> IntArray:
        """The same, read from the files where passes over them are made."""
        return np.concatenate([passes.fingerprints(), fingerprints(self.added.source, self.added.target)])

    def extended(self, pairs: Iterable[SentencePair]) -> ShardedBitext:
        """These pairs and others, which stay in memory, without the extra columns of those."""
        found = type(self).__new__(type(self))
        found.__dict__.update(self.__dict__, added=self.added.extended(pairs), _opened=None)
        return found

    def passes(self, executor: Executor | None = None, max_entries: int | None = None) -> BitextPasses:
        """Passes over the pairs, to learn models from them.

        Args:
            executor: where the work is done; None for this process.
            max_entries: the most entries that co-occurrences may have; None for as many as half of the memory of this
                machine holds.
        """
        texts = self._texts(1 if executor is None else executor.shards)
        if len(self.added):
            texts.append(HeldText(IndexedBitext.of(self.added.source, self.added.target)))
        most = _memory.available() // 2 // ENTRY_BYTES if max_entries is None else max_entries
        return BitextPasses(DistinctWords(self.words), texts, executor, most)

    def _texts(self, count: int) -> list[Text]:
        """A text for each file, or several where one of ``count`` shards of nearly equal work ends within it."""
        edges = cut([block.work for shard in self.shards for block in shard.blocks], count).tolist()
        texts: list[Text] = []
        begin = 0
        for shard in self.shards:
            end = begin + len(shard.blocks)
            bounds = [begin, *(edge for edge in edges if begin < edge < end), end]
            texts += [
                ShardText(self.folder, shard, len(self.words), first - begin, last - begin)
                for first, last in pairwise(bounds)
            ]
            begin = end
        return texts


NumberedPairs = CompactPairs | ShardedBitext
"""Sentence pairs whose words are numbered."""


class _Writer:
    """Writes shards as sentence pairs come."""

    def __init__(self, folder: Path, shard_pairs: int, overwrite: bool) -> None:
        self._folder, self._size = folder, shard_pairs
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{folder} is not a folder; give the name of a folder")
        folder.mkdir(parents=True, exist_ok=True)
        there = sorted(one.name for one in folder.iterdir())
        own = [name for name in there if name in (INDEX, WORDS) or _NAME.fullmatch(name)]
        if len(own) < len(there) or (own and not overwrite):
            what = "a bitext, or a part of one" if own == there else "other files"
            remedy = "overwrite it (--overwrite) or give another folder" if own == there else "give an empty one"
            raise ValueError(f"{folder} has {what}; {remedy}")
        for name in own:  # the index first, so that no part looks whole
            (folder / name).unlink()
        self._numbers = WordNumbers()
        self._shards: list[BitextShard] = []
        self._sizes: list[list[IntArray]] = [[], []]
        self._tokens: list[list[npt.NDArray[np.int32]]] = [[], []]
        self._prints: list[IntArray] = []
        self._pending = 0

    def add(self, source: Sequence[Sequence[str]], target: Sequence[Sequence[str]]) -> None:
        """Add some pairs."""
        for side, sentences in enumerate((source, target)):
            sizes, tokens = self._numbers.of(sentences)
            self._sizes[side].append(sizes)
            self._tokens[side].append(tokens)
        self._prints.append(fingerprints(source, target))
        self._pending += len(source)
        if self._pending >= self._size:
            self._write(whole=False)

    def _write(self, *, whole: bool) -> None:
        """Write the pending pairs, as far as they fill shards, or all."""
        sizes = [np.concatenate(some) for some in self._sizes]
        tokens = [np.concatenate(some) for some in self._tokens]
        prints = np.concatenate(self._prints)
        first, starts = 0, [offsets_of(some) for some in sizes]
        while self._pending >= self._size or (whole and self._pending):
            last = first + min(self._size, self._pending)
            sides: list[Any] = []
            for start, numbers in zip(starts, tokens, strict=True):
                bounds = start[first : last + 1]
                sides += [bounds - bounds[0], numbers[bounds[0] : bounds[-1]]]
            name = f"{len(self._shards):06d}.shard"
            _, digest = shard_file.write(self._folder / name, {}, [*sides, prints[first:last]])
            blocks = [slice(at, min(at + _BLOCK, last)) for at in range(first, last, _BLOCK)]
            learned = tuple(TextSize.of(sizes[0][block], sizes[1][block]) for block in blocks)
            self._shards.append(BitextShard(name, digest, last - first, learned))
            self._pending -= last - first
            first = last
        self._sizes = [[some[first:]] for some in sizes]
        self._tokens = [[numbers[start[first] :].copy()] for start, numbers in zip(starts, tokens, strict=True)]
        self._prints = [prints[first:]]

    def finish(self) -> None:
        """Write the rest, the words, and the index, which makes the folder a bitext."""
        if self._pending:
            self._write(whole=True)
        found = self._numbers.words
        words = WordVocabulary(found, np.zeros(len(found), dtype=np.int64)).arrays()
        _, digest = shard_file.write(self._folder / WORDS, {}, [words["text"], words["offsets"]])
        index = {
            "format": FORMAT,
            "kind": "bitext",
            "library": __version__,
            "pairs": sum(one.pairs for one in self._shards),
            "words": digest,
            "shards": [vars(one) for one in self._shards],
        }
        index_file.write_index(self._folder / INDEX, index)


def _read_index(folder: Path) -> dict[str, Any]:
    index = index_file.read_index(folder / INDEX, FORMAT, "bitext", _AGAIN)
    if index is None:
        raise ShardError(f"{folder} holds no bitext, or one that was not completed; {_AGAIN}")
    return index

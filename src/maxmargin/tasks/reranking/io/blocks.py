"""Files of n-best lists read block by block, so that memory does not grow with the file.

Lists of the formats ``moses`` and ``jsonl``, and of ``plain`` with a given size, can be told apart without the rest of
the file. Files with a line per hypothesis (features, phrases) or per list (references, sources) are read alongside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

import numpy as np

from maxmargin._messages import quoted
from maxmargin.structures.base import IntArray
from maxmargin.tasks.common.files.blocks import Lines, TextBlocks
from maxmargin.tasks.common.files.text import STANDARD_INPUT, AnyPath, FileError, name_of, problem
from maxmargin.tasks.reranking.io.features import columns_of, feature_name
from maxmargin.tasks.reranking.io.files import phrases_of, recognize, with_columns
from maxmargin.tasks.reranking.io.list_formats import moses, plain, records
from maxmargin.tasks.reranking.io.lists import NBestLists

BLOCK = 1 << 24
"""Bytes of a block: some 100,000 hypotheses."""

_LINE = re.compile(r", line (\d+)")


@dataclass(frozen=True)
class NBestBlocks:
    """The lists of files, as often as they are iterated over, a block at a time.

    Attributes:
        path: the file of hypotheses; not standard input, which cannot be read twice.
        format: "moses", "jsonl" or "plain"; None recognizes it.
        features: more features, files with a line per hypothesis.
        references: files with a line per list.
        sources: the inputs, a line per list.
        segments: phrases, a line per hypothesis.
        list_size: lines of each list, in the plain format.
        size: bytes of a block.
    """

    path: AnyPath
    format: str | None = None
    features: tuple[AnyPath, ...] = ()
    references: tuple[AnyPath, ...] = ()
    sources: AnyPath | None = None
    segments: AnyPath | None = None
    list_size: int | None = None
    size: int = BLOCK

    def __post_init__(self) -> None:
        beside = [*self.features, *self.references, self.sources, self.segments]
        if any(str(path) == STANDARD_INPUT for path in (self.path, *beside)):
            raise ValueError("a dataset is built in several passes, and standard input can be read once; give files")

    def __iter__(self) -> Iterator[NBestLists]:
        with ExitStack() as stack:
            text = stack.enter_context(TextBlocks(self.path, self.size))
            form = self.format or recognize(self.path, text.head(lambda data: bool(data.strip())))
            if form not in ("moses", "jsonl") and (form != "plain" or self.list_size is None):
                raise problem(
                    self.path,
                    None,
                    f"lists of the format {form} cannot be read block by block; write them as moses or jsonl, or give "
                    "the list size of plain ones",
                )
            open_lines = {
                path: Lines(stack.enter_context(TextBlocks(path)))
                for path in (*self.features, *self.references, self.sources, self.segments)
                if path is not None
            }
            dense: set[str] | None = None
            for before, data in self._whole(text, form):
                with _counted_from(before):
                    lists, kept, n_lines = self._parsed(form, data)
                    dense = self._same(lists, before, dense)
                    yield self._joined(lists, kept, n_lines, open_lines)
            for path, lines in open_lines.items():
                if lines.take(1):
                    raise FileError(f"{name_of(path)} has more lines than belong to {name_of(self.path)}; give as many")

    def _whole(self, text: TextBlocks, form: str) -> Iterator[tuple[int, bytes]]:
        """Yield the number of lines before some whole lists, and their text."""
        data, before = b"", 0
        for _, block in text.blocks(paragraphs=False):
            # With something of the next block, so that the last list is never alone.
            if len(data) >= self.size and (end := _end(data, form, self.list_size or 1)):
                yield before, data[:end]
                before += data.count(b"\n", 0, end)
                data = data[end:]
            data += block
        if data.strip() or (form == "plain" and data):
            yield before, data

    def _parsed(self, form: str, data: bytes) -> tuple[NBestLists, IntArray | None, int]:
        if form == "plain":
            return plain.parse(self.path, data, self.list_size, None)
        lists = (moses.parse if form == "moses" else records.parse_json)(self.path, data, None)
        return lists, None, lists.n_hypotheses

    def _same(self, lists: NBestLists, before: int, dense: set[str] | None) -> set[str]:
        """Refuse dense features that come or go between blocks, as within one; an underscore lets a name be sparse."""
        own = {name for name in lists.names if "_" not in name}
        if dense is not None and own != dense:
            name = quoted(min(own ^ dense))
            raise problem(
                self.path,
                1,
                f"feature {name} is {'missing' if min(own ^ dense) in dense else 'new'} from here on; each hypothesis "
                "must have it, unless it is sparse and has an underscore in its name",
            )
        return own

    def _joined(
        self, lists: NBestLists, kept: IntArray | None, n_lines: int, open_lines: dict[AnyPath, Lines]
    ) -> NBestLists:
        """The lists of a block with what other files say of them."""

        def taken(path: AnyPath, count: int) -> list[bytes]:
            found = open_lines[path].take(count)
            if len(found) < count:
                raise FileError(
                    f"{name_of(path)} has {open_lines[path].count()} lines, fewer than belong to {name_of(self.path)}; "
                    "give as many"
                )
            return found

        def texts(path: AnyPath, count: int) -> list[str]:
            return [line.strip().decode("utf-8") for line in taken(path, count)]

        if self.references:
            golds = list(zip(*(texts(path, len(lists)) for path in self.references), strict=True))
            lists = replace(lists, references=golds)
        if self.sources is not None:
            lists = replace(lists, sources=texts(self.sources, len(lists)))
        if self.segments is not None:
            found = texts(self.segments, n_lines)
            lists = replace(lists, segments=phrases_of(self.segments, found, n_lines, kept, name_of(self.path)))
        columns = [
            columns_of(path, feature_name(path), b"".join(line + b"\n" for line in taken(path, n_lines)))
            for path in self.features
        ]
        return with_columns(self.path, lists, columns, n_lines, kept)


def _end(data: bytes, form: str, list_size: int) -> int:
    """Where the last list ends that is known to be whole."""
    if form == "jsonl":
        return len(data)
    if form == "plain":
        ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n"))
        whole = len(ends) // list_size * list_size
        return int(ends[whole - 1]) + 1 if whole else 0
    begin = data.rfind(b"\n", 0, len(data) - 1) + 1
    own = _id(data[begin:])
    while begin:
        before = data.rfind(b"\n", 0, begin - 1) + 1
        if _id(data[before:begin]) != own:
            return begin
        begin = before
    return 0


def _id(line: bytes) -> bytes:
    return line.split(b"|||", 1)[0].strip()


@contextmanager
def _counted_from(before: int) -> Iterator[None]:
    """Count lines in errors from the beginning of the file."""
    try:
        yield
    except FileError as error:
        raise FileError(_LINE.sub(lambda found: f", line {int(found[1]) + before}", str(error), count=1)) from None

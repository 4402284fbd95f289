"""Files of links.

Every path may be ``-`` for standard input, and every file may be compressed. Errors are
:class:`FileError`: ``FILE, line N: what is wrong; what to do``. :mod:`~maxmargin.tasks.alignment.io.link_formats`
describes the formats of links.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, repeat
from typing import TextIO

import numpy as np

from maxmargin import _memory
from maxmargin._callers import callers_level
from maxmargin._messages import shown
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.alignment.io.bitext import Bitext
from maxmargin.tasks.alignment.io.formats.a3 import format_pair
from maxmargin.tasks.alignment.io.link_formats import FIRST, FORMATS, Table, parse, recognize
from maxmargin.tasks.alignment.io.links import Prediction, Reference, link_keys, unpack
from maxmargin.tasks.common.files.text import (
    AnyPath,
    count_of,
    name_of,
    problem,
    read_text,
)
from maxmargin.tasks.common.files.text import FileError as FileError

_TELLING = 20
"""Number of links that are enough to tell from where positions count."""

_SENTENCES, _SENTENCES_PER_LINK = 100_000, 100
"""A file that does not say how many sentences it has may name so many, and so many more for each link."""


@dataclass(frozen=True, eq=False)
class LinkFile:
    """The links of a file, not yet matched with sentences.

    Attributes:
        path: the file.
        format: the format they were read in.
        table: the links in the order of the file.
        first: the number of the first word, 0 or 1, if that was told.
    """

    path: AnyPath
    format: str
    table: Table
    first: int | None = None

    @property
    def sentences(self) -> int:
        """Number of sentence pairs; for NAACL and A3 files, which do not say it, the largest number that occurs."""
        return self.table.count

    @property
    def counted(self) -> bool:
        """Whether the file says its number of pairs: all formats but NAACL and A3 do."""
        return self.format not in ("naacl", "a3")

    @property
    def numbered(self) -> tuple[int, int]:
        """The smallest and the largest number, from 1, of sentence pairs with links in a NAACL file."""
        return int(self.table.sentence.min(initial=max(self.sentences - 1, 0))) + 1, self.sentences

    def reversed(self) -> LinkFile:
        """The links with source and target swapped."""
        return replace(self, table=replace(self.table, links=np.ascontiguousarray(self.table.links[:, ::-1])))

    def inside(self, bitext: Bitext) -> tuple[LinkFile, IntArray]:
        """The links that lie inside the sentences, and the rising numbers of the pairs that have others, from 0."""
        table, lengths = self.table, _lengths(bitext)
        known = table.sentence < len(bitext)
        inside = known.copy()
        inside[known] = (table.links[known] < lengths[table.sentence[known]]).all(axis=1)
        if inside.all():
            return self, np.zeros(0, dtype=np.int64)
        kept = replace(table.select(np.flatnonzero(inside)), count=min(table.count, len(bitext)))
        return replace(self, table=kept), np.unique(table.sentence[~inside & known])

    def references(self, *, bitext: Bitext | None = None, sentences: int | None = None) -> list[Reference]:
        """The sure and possible links of each pair; a link given as both is sure.

        Args:
            bitext: the sentences; their number must be that of the file, and links must lie inside.
            sentences: number of pairs if there is no bitext.
        """
        table, start = self._checked(bitext, sentences)
        possible = unpack(start, table.links)
        sure = unpack(_offsets(table.sentence[table.sure], len(start) - 1), table.links[table.sure])
        return [Reference(one, two) for one, two in zip(sure, possible, strict=True)]

    def predictions(self, *, bitext: Bitext | None = None, sentences: int | None = None) -> list[Prediction]:
        """The links of each pair, sure or possible, and their confidences if the file has them."""
        table, start = self._checked(bitext, sentences)
        links = unpack(start, table.links)
        if table.confidence is None:
            return [Prediction(one) for one in links]
        ends = start.tolist()
        parts = [table.confidence[first:last] for first, last in pairwise(ends)]
        return [Prediction(one, part) for one, part in zip(links, parts, strict=True)]

    def _checked(self, bitext: Bitext | None, sentences: int | None) -> tuple[Table, IntArray]:
        """Sorted distinct links of the right number of pairs, and the offsets of the pairs."""
        count = len(bitext) if bitext is not None else self.sentences if sentences is None else sentences
        if bitext is None and sentences is None:
            self.check_numbers()
        self._check_count(count)
        lengths = None if bitext is None else _lengths(bitext)
        if lengths is not None:
            self._check_positions(lengths)
        self._warn_of_first(lengths)
        table = _distinct(self.table)
        return table, _offsets(table.sentence, count)

    def check_numbers(self) -> None:
        """Raise FileError if a NAACL file names sentences far beyond what its links can be of: each takes memory."""
        if self.counted or self.sentences <= _SENTENCES + _SENTENCES_PER_LINK * len(self.table.links):
            return
        at = int(np.argmax(self.table.sentence)) if len(self.table.sentence) else None
        raise problem(
            self.path,
            None if at is None else int(self.table.line[at]),
            f"sentence {self.sentences} in a file of {count_of(len(self.table.links), 'link')}; correct the number, or "
            "give the sentences that the links belong to",
        )

    def _check_count(self, count: int) -> None:
        if self.counted:
            if self.sentences != count:
                raise FileError(
                    f"{name_of(self.path)} has links of {count_of(self.sentences, 'sentence pair')} and there "
                    f"are {count}; it needs one line per pair, an empty one for a pair without links"
                )
            return
        if self.sentences <= count:
            return
        numbers = self.table.sentence
        first, last = self.numbered
        if first > count and last - first < count:
            raise FileError(
                f"{name_of(self.path)}: sentences are numbered {first} to {last} and there are {count}; number "
                f"them from 1, for example with awk '{{$1 -= {first - 1}; print}}'"
            )
        outside = self.table.line[numbers >= count]
        line = int(outside[0]) if len(outside) else None
        raise problem(
            self.path,
            line,
            f"sentence {self.sentences if line is None else int(numbers[numbers >= count][0]) + 1} of {count}; number "
            "sentences from 1, and give the sentences that the links belong to",
        )

    def _warn_of_first(self, lengths: IntArray | None) -> None:
        """Warn if positions may count from the other of 0 and 1: many links, but none of a first or of a last word."""
        links = self.table.links
        if self.first is not None or len(links) < _TELLING:
            return
        if self.format == "pharaoh" and bool((links > 0).all()):
            seen, other = "no position 0", 1
        elif self.format == "naacl" and lengths is not None and not (links == lengths[self.table.sentence] - 1).any():
            seen, other = "no link of the last word of a sentence", 0
        else:
            return
        warnings.warn(
            f"{name_of(self.path)} has {seen}; if it counts from {other}, give --first {other} (of gold "
            f"--gold-first {other}, in Python first={other})",
            UserWarning,
            stacklevel=callers_level(),
        )

    def _check_positions(self, lengths: IntArray) -> None:
        table = self.table
        outside = np.flatnonzero((table.links >= lengths[table.sentence]).any(axis=1))
        if not len(outside):
            return
        at = int(outside[0])
        sentence = int(table.sentence[at])
        source, target = lengths[sentence].tolist()
        base = FIRST[self.format] if self.first is None else self.first
        link = "-".join(str(word + base) for word in table.links[at].tolist())
        swapped = bool((table.links[:, ::-1] < lengths[table.sentence]).all())
        remedy = (
            "source and target seem to be swapped"
            if swapped
            else "check that links and sentences belong together and that positions count from "
            + ("0, or give --first 1 (of gold --gold-first 1)" if base == 0 else "1")
        )
        raise problem(
            self.path,
            int(table.line[at]) or None,
            f"link {link} lies outside sentence pair {sentence + 1}, which has {source} source and {target} target "
            f"words; {remedy}",
        )


def _lengths(bitext: Bitext) -> IntArray:
    """Numbers of source and target words, shape ``(n, 2)``."""
    sides = [[len(words) for words in side] for side in (bitext.source, bitext.target)]
    return np.array(sides, dtype=np.int64).T.reshape(-1, 2)


def _offsets(sentence: IntArray, count: int) -> IntArray:
    return offsets_of(np.bincount(sentence, minlength=count)) if count else np.zeros(1, dtype=np.int64)


def _distinct(table: Table) -> Table:
    """Sort links by (sentence, source, target) and merge repeated ones: sure if any is, the largest confidence."""
    keys = link_keys(table.sentence, table.links)
    sure, confidence, order = table.sure, table.confidence, None
    if not (keys[1:] >= keys[:-1]).all():
        order = np.argsort(keys, kind="stable")
        keys, sure = keys[order], sure[order]
        confidence = None if confidence is None else confidence[order]
    first = np.flatnonzero(np.concatenate([np.ones(min(len(keys), 1), dtype=bool), keys[1:] != keys[:-1]]))
    if order is None and len(first) == len(keys):
        return table
    return replace(
        table.select(first if order is None else order[first]),
        sure=np.logical_or.reduceat(sure, first),
        confidence=None if confidence is None else np.maximum.reduceat(confidence, first),
    )


def _check_format(format: str) -> None:
    if format not in FORMATS:
        raise ValueError(f"unknown format {format!r}; choose one of {', '.join(FORMATS)}")


def open_links(path: AnyPath, *, format: str | None = None, first: int | None = None) -> LinkFile:
    """Read a file of links.

    Args:
        path: the file.
        format: one of :data:`FORMATS`; None recognizes it, except TALP, which looks like Pharaoh but counts from 1.
        first: the number of the first word, 0 or 1; None for that of the format, which in NAACL files is 1, and a word
            0 is then refused. Given as 1, word 0 is the empty word, whose links are dropped.
    """
    if format is not None:
        _check_format(format)
    if first is not None and (isinstance(first, bool) or first not in (0, 1)):
        raise ValueError(f"first must be 0 or 1, the number of the first word, got {shown(first)}")
    data = read_text(path)
    form = recognize(path, data) if format is None else format
    told = 0 if first is None and format == "pharaoh" else first
    return LinkFile(path, form, parse(path, data, form, first), told)


def read_references(
    path: AnyPath,
    *,
    bitext: Bitext | None = None,
    sentences: int | None = None,
    format: str | None = None,
    first: int | None = None,
) -> list[Reference]:
    """Read the sure and possible links of each pair; see :func:`open_links` and :meth:`LinkFile.references`."""
    return open_links(path, format=format, first=first).references(bitext=bitext, sentences=sentences)


@_memory.without_collection()
def read_links(
    path: AnyPath,
    *,
    bitext: Bitext | None = None,
    sentences: int | None = None,
    format: str | None = None,
    first: int | None = None,
) -> list[Prediction]:
    """Read the links of each pair and their confidences; see :func:`open_links` and :meth:`LinkFile.predictions`."""
    return open_links(path, format=format, first=first).predictions(bitext=bitext, sentences=sentences)


def format_links(
    links: IntArray | Prediction | Reference,
    *,
    format: str = "pharaoh",
    confidence: FloatArray | None = None,
    sentence: int = 1,
    digits: int = 4,
    words: tuple[Sequence[str], Sequence[str]] | None = None,
) -> str:
    """Format the links of one pair, without an end of line.

    One line in all formats but NAACL, which has a line per link and none for a pair without links, and A3, which has
    three.

    Args:
        links: shape ``(k, 2)``, or a prediction with its confidences, or a reference, whose possible links are marked.
        format: one of :data:`FORMATS`.
        confidence: shape ``(k,)``, written with the links.
        sentence: number of the pair from 1, for NAACL and A3.
        digits: decimal places of confidences.
        words: the source and the target sentence, for A3, which has neither confidences nor marks of possible links.
    """
    _check_format(format)
    possible = None
    if isinstance(links, Reference):
        if confidence is not None:
            raise ValueError("references have no confidences; omit them")
        certain = set(map(tuple, links.sure.tolist()))
        rest = [link for link in links.possible.tolist() if tuple(link) not in certain]
        possible = np.array(rest, dtype=np.int64).reshape(-1, 2)
        links = links.sure
    elif isinstance(links, Prediction):
        confidence = links.confidence if confidence is None else confidence
        links = links.links
    if confidence is not None and (len(confidence) != len(links) or not np.isfinite(confidence).all()):
        raise ValueError(f"sentence {sentence}: confidence must have a finite number for each of {len(links)} links")
    if format == "a3":
        if words is None:
            raise ValueError("the format a3 repeats the sentences; give them (--source and --target)")
        every = links if possible is None else np.concatenate([links, possible])
        return format_pair(every[np.lexsort(every.T[::-1])], *words, sentence)
    linked, also = links.tolist(), [] if possible is None else possible.tolist()
    numbers = None if confidence is None else [f"{value:.{digits}f}" for value in confidence.tolist()]
    if format == "json":
        if possible is not None:
            return json.dumps({"sure": linked, "possible": also})
        if numbers is None:
            return json.dumps(linked)
        return f'{{"links": {json.dumps(linked)}, "confidence": [{", ".join(numbers)}]}}'
    tails = [""] * len(linked) if numbers is None else [(" " if format == "naacl" else ":") + one for one in numbers]
    if format == "naacl":
        rows = [f"{sentence} {i + 1} {j + 1} S{tail}" for (i, j), tail in zip(linked, tails, strict=True)]
        return "\n".join(rows + [f"{sentence} {i + 1} {j + 1} P" for i, j in also])
    base = 1 if format == "talp" else 0
    rows = [f"{i + base}-{j + base}{tail}" for (i, j), tail in zip(linked, tails, strict=True)]
    return " ".join(rows + [f"{i + base}p{j + base}" for i, j in also])


def write_links(
    stream: TextIO,
    predictions: Iterable[IntArray | Prediction | Reference] | Sequence[IntArray | Prediction | Reference],
    format: str = "pharaoh",
    *,
    first: int = 1,
    digits: int = 4,
    sentences: Iterable[tuple[Sequence[str], Sequence[str]]] | None = None,
) -> None:
    """Write the links of all pairs: exactly one line per pair, or for NAACL one line per link, for A3 three per pair.

    Args:
        stream: a text stream, such as ``sys.stdout``.
        predictions: links, predictions or references, one per pair.
        format: one of :data:`FORMATS`.
        first: number of the first pair, for NAACL and A3.
        digits: decimal places of confidences.
        sentences: the pairs ``(source, target)``, for A3.
    """
    every = repeat(None) if sentences is None else sentences
    for number, (one, words) in enumerate(zip(predictions, every, strict=False), start=first):
        text = format_links(one, format=format, sentence=number, digits=digits, words=words)
        if text or format != "naacl":
            stream.write(text + "\n")

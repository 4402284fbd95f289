"""Files of sentence pairs, read whole or in blocks.

Every path may be ``-`` for standard input, and every file may be compressed. Errors are
:class:`FileError`: ``FILE, line N: what is wrong; what to do``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import repeat

from maxmargin import _memory
from maxmargin.tasks.common.files.blocks import BLOCK, Lines, TextBlocks
from maxmargin.tasks.common.files.text import (
    AnyPath,
    FileError,
    count_of,
    name_of,
    problem,
    words_of,
)


@dataclass(frozen=True)
class Bitext:
    """Sentence pairs: ``source[i]`` and ``target[i]`` are the words of pair ``i``; either may be empty.

    Iterating gives the pairs ``(source, target)``, so that a bitext can be given where sentence pairs are expected.
    """

    source: list[list[str]]
    target: list[list[str]]

    def __len__(self) -> int:
        return len(self.source)

    def __iter__(self) -> Iterator[tuple[list[str], list[str]]]:
        return zip(self.source, self.target, strict=True)


@_memory.without_collection()
def read_bitext(source: AnyPath, target: AnyPath | None = None) -> Bitext:
    """Read sentence pairs from two files with a sentence per line, or from one with lines ``source ||| target``.

    In a file of both languages a TAB may stand between them instead of ``|||``.

    An empty line is a sentence without words; in a file of both languages, a pair of them.
    """
    whole = Bitext([], [])
    for part in bitext_blocks(source, target):
        whole.source.extend(part.source)
        whole.target.extend(part.target)
    return whole


def bitext_blocks(
    source: AnyPath, target: AnyPath | None = None, sizes: Iterable[int] | None = None
) -> Iterator[Bitext]:
    """Read sentence pairs as :func:`read_bitext` does, some at a time, so that memory does not grow with the files.

    Args:
        source: source sentences, or lines of both languages.
        target: target sentences.
        sizes: the number of pairs of each block, without end; None takes pairs as they come.
    """
    if target is not None and str(source) == str(target) == "-":
        raise FileError("standard input can be read only once; give the source or the target as a file")
    with ExitStack() as stack:
        first = Lines(stack.enter_context(TextBlocks(source, BLOCK)))
        second = None if target is None else Lines(stack.enter_context(TextBlocks(target, BLOCK)))
        between: _Between | None = None
        for size in repeat(None) if sizes is None else sizes:
            number = first.taken
            lines = first.take(size)
            if second is None:
                if not lines:
                    return
                between = between or _Between.of(lines)
                pairs = list((between or _Between(False)).split(source, lines, number + 1))
                yield Bitext([one for one, _ in pairs], [two for _, two in pairs])
                continue
            others = second.take(len(lines))
            if len(others) < len(lines) or (not lines and second.take(1)):
                raise FileError(
                    f"{name_of(source)} has {count_of(first.count(), 'line')} and {name_of(target or '')} has "
                    f"{second.count()}; line N of one must be the translation of line N of the other"
                )
            if not lines:
                return
            yield Bitext(_source_alone(source, lines, number + 1), [words_of(line) for line in others])


def _source_alone(path: AnyPath, lines: Iterable[bytes], first: int) -> list[list[str]]:
    """Split lines of source sentences, of which the first has number ``first``, and refuse those of both languages."""
    sentences = [words_of(line) for line in lines]
    for number, words in enumerate(sentences, start=first):
        if "|||" in words:
            raise problem(
                path,
                number,
                "has ' ||| ', so the file seems to have source and target; omit the target file (--target), or "
                "replace this word of the text",
            )
    return sentences


@dataclass(frozen=True)
class _Between:
    """What stands between source and target: |||, or a TAB if the first line with words has one and no |||."""

    tab: bool

    @classmethod
    def of(cls, lines: Sequence[bytes]) -> _Between | None:
        """Told by lines at the beginning of a file; None if they have no words."""
        first = next((line for line in lines if line.strip()), None)
        return None if first is None else cls(b"\t" in first.strip(b" \r") and b"|||" not in first.split())

    def split(self, path: AnyPath, lines: Iterable[bytes], first: int) -> Iterator[tuple[list[str], list[str]]]:
        """The pairs of lines, of which the first has number ``first``."""
        for number, line in enumerate(lines, start=first):
            if not line.strip():
                yield [], []
                continue
            parts = line.split(b"\t") if self.tab else _BETWEEN.split(b" " + line + b" ")
            if len(parts) != 2:
                between, n = "TAB" if self.tab else "' ||| '", len(parts) - 1
                raise problem(
                    path,
                    number,
                    f"{n or 'no'} {between} instead of one between source and target; write 'source ||| target', or "
                    "one TAB between them in all lines, or give the target as a second file",
                )
            yield words_of(parts[0]), words_of(parts[1])


_BETWEEN = re.compile(rb"(?<=[ \t\r\v\f])\|\|\|(?=[ \t\r\v\f])")

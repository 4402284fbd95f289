"""The project's own small English-French corpus, with sure and possible links for every pair.

The text is ``data/english-french.txt``; its header states the format and the guideline the links follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import resources

import numpy as np

from maxmargin.tasks.alignment.files import Bitext, LinkFile
from maxmargin.tasks.alignment.link_formats import parse
from maxmargin.tasks.alignment.links import Reference
from maxmargin.tasks.common.text import problem, words_of

FILE = "english-french.txt"


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sentence pairs with reference links; the three lists have the same length.

    Iterating gives the pairs ``(source, target)``, so that a corpus can be given where sentence pairs are wanted.

    Attributes:
        source: words of each source sentence.
        target: words of each target sentence.
        references: sure and possible links of each pair.
    """

    source: list[list[str]]
    target: list[list[str]]
    references: list[Reference]

    def __len__(self) -> int:
        return len(self.source)

    def __iter__(self) -> Iterator[tuple[list[str], list[str]]]:
        return zip(self.source, self.target, strict=True)

    def select(self, indices: Iterable[int]) -> Corpus:
        """The pairs at ``indices``, in that order."""
        chosen = list(indices)
        return Corpus(
            [self.source[i] for i in chosen], [self.target[i] for i in chosen], [self.references[i] for i in chosen]
        )

    def split(self, every: int = 4) -> tuple[Corpus, Corpus]:
        """A training and a test part: pairs ``every``, ``2 every``, ... (counted from 1) are test.

        The pairs of the built-in corpus stand topic by topic, so both parts hold every topic.
        """
        if every < 2:
            raise ValueError(f"every={every} leaves no pairs for training; give 2 or more")
        test = range(every - 1, len(self), every)
        return self.select(i for i in range(len(self)) if i not in test), self.select(test)


def load_corpus() -> Corpus:
    """The built-in English (source) and French (target) pairs."""
    text = resources.files("maxmargin.tasks.alignment").joinpath("data", FILE).read_text(encoding="utf-8")
    return parse_corpus(text, FILE)


def parse_corpus(text: str, name: str = "text") -> Corpus:
    """Pairs from lines ``source words ||| target words ||| links``; ``name`` is what errors call the text.

    Links are ``0-0`` (sure) or ``1p2`` (possible); empty lines and lines that start with ``#`` are skipped.
    """
    source: list[list[str]] = []
    target: list[list[str]] = []
    lines = text.split("\n")
    links, pair_of = [""] * len(lines), np.zeros(len(lines), dtype=np.int64)
    for number, line in enumerate(lines):
        if not line.strip() or line.startswith("#"):
            continue
        parts = line.split("|||")
        if len(parts) != 3:
            raise problem(name, number + 1, f"{len(parts)} fields; write 'source words ||| target words ||| links'")
        pair_of[number], links[number] = len(source), parts[2]
        source.append(words_of(parts[0]))
        target.append(words_of(parts[1]))
    table = parse(name, "\n".join(links).encode(), "pharaoh")  # its pairs are lines
    table = replace(table, sentence=pair_of[table.sentence], count=len(source))
    return Corpus(source, target, LinkFile(name, "pharaoh", table).references(bitext=Bitext(source, target)))

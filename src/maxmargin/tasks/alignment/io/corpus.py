"""The built-in small English-French corpus, with sure and possible links for every pair.

The text is ``data/english-french.txt``; its header states the format and the annotation guideline.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import resources
from typing import ClassVar

import numpy as np

from maxmargin.tasks.alignment.io.bitext import Bitext
from maxmargin.tasks.alignment.io.link_files import LinkFile
from maxmargin.tasks.alignment.io.link_formats import parse
from maxmargin.tasks.alignment.io.links import Reference
from maxmargin.tasks.common.corpus import AnnotatedCorpus
from maxmargin.tasks.common.files.text import problem, words_of

FILE = "english-french.txt"


@dataclass(frozen=True, eq=False)
class Corpus(AnnotatedCorpus):
    """Sentence pairs with reference links.

    Iterating gives the pairs ``(source, target)``, so that a corpus can be given where sentence pairs are expected.

    Attributes:
        source: words of each source sentence.
        target: words of each target sentence.
        references: sure and possible links of each pair.
    """

    test_every: ClassVar[int] = 4

    source: list[list[str]]
    target: list[list[str]]
    references: list[Reference]

    def __iter__(self) -> Iterator[tuple[list[str], list[str]]]:
        return zip(self.source, self.target, strict=True)


def load_corpus() -> Corpus:
    """Load the built-in English (source) and French (target) pairs."""
    text = resources.files("maxmargin.tasks.alignment").joinpath("data", FILE).read_text(encoding="utf-8")
    return parse_corpus(text, FILE)


def parse_corpus(text: str, name: str = "text") -> Corpus:
    """Parse pairs from lines ``source words ||| target words ||| links``; errors call the text ``name``.

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
    table = parse(name, "\n".join(links).encode(), "pharaoh")  # one pair per line
    table = replace(table, sentence=pair_of[table.sentence], count=len(source))
    return Corpus(source, target, LinkFile(name, "pharaoh", table).references(bitext=Bitext(source, target)))

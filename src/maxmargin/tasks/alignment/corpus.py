"""The project's own small English-French corpus, with sure and possible links for every pair.

The text is ``data/english-french.txt``; its header states the format and the guideline the links follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources

from maxmargin.tasks.alignment.links import Reference

FILE = "english-french.txt"
_LINK = re.compile(r"([0-9]+)([-p])([0-9]+)")


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sentence pairs with reference links; the three lists have the same length.

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
    corpus = Corpus([], [], [])
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        where = f"{name}, line {number}"
        fields = line.split("|||")
        if len(fields) != 3:
            raise ValueError(f"{where}: {len(fields)} fields; write 'source words ||| target words ||| links'")
        source, target = fields[0].split(), fields[1].split()
        corpus.source.append(source)
        corpus.target.append(target)
        corpus.references.append(_reference(fields[2].split(), len(source), len(target), where))
    return corpus


def _reference(items: list[str], n_source: int, n_target: int, where: str) -> Reference:
    links: dict[tuple[int, int], str] = {}
    for item in items:
        match = _LINK.fullmatch(item)
        if match is None:
            raise ValueError(f"{where}: {item!r} is no link; write 3-4 for a sure link, 3p4 for a possible one")
        link = int(match[1]), int(match[3])
        if link[0] >= n_source or link[1] >= n_target:
            raise ValueError(
                f"{where}: link {item} is outside the {n_source} source and {n_target} target words; count from 0"
            )
        if link in links:
            raise ValueError(f"{where}: link {item} repeats {link[0]}{links[link]}{link[1]}; keep one of them")
        links[link] = match[2]
    return Reference.of(*([link for link, kind in links.items() if kind == mark] for mark in "-p"))

"""Sentence pairs to draw.

With a reference every link is of one of five kinds, which differ in shape as well as in color: squares are sure and
diamonds possible, filled ones are predicted and hollow ones are not, a cross is predicted and wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import FloatArray
from maxmargin.tasks.alignment.io.bitext import Bitext, read_bitext
from maxmargin.tasks.alignment.io.link_files import open_links
from maxmargin.tasks.alignment.io.links import Prediction, Reference, as_links
from maxmargin.tasks.alignment.metrics.scores import evaluate
from maxmargin.tasks.common.files.text import AnyPath, name_of


class Kind(NamedTuple):
    """The drawing of a kind of link in the terminal, and its name in the legend."""

    glyph: str
    style: str
    words: str


KINDS = {
    "link": Kind("■", "bold blue", "link"),
    "sure": Kind("■", "bold blue", "right, sure"),
    "possible": Kind("◆", "bold cyan", "right, possible"),
    "wrong": Kind("✗", "bold red", "wrong"),
    "missed": Kind("□", "bold magenta", "missed, sure"),
    "open": Kind("◇", "bright_black", "possible, not predicted"),
}
"""Kinds of links; ``link`` is a predicted one without a reference."""


@dataclass(frozen=True, eq=False)
class ShownPair:
    """A sentence pair with its links, ready to be drawn.

    Attributes:
        source: source words.
        target: target words.
        links: predicted links, shape ``(k, 2)``.
        confidence: of each link, from 0 to 1, shape ``(k,)``.
        reference: links of annotators.
        number: position in its file, from 1.
    """

    source: Sequence[str]
    target: Sequence[str]
    links: npt.ArrayLike
    confidence: npt.ArrayLike | None = None
    reference: Reference | None = None
    number: int = 1

    def __post_init__(self) -> None:
        for name, words in (("source", self.source), ("target", self.target)):
            if isinstance(words, str) or not all(isinstance(word, str) for word in words):
                raise ValueError(f"sentence {self.number}: the {name} must be a list of words; split the text first")
        self._check("links", self.links)
        if self.reference is not None:
            self._check("reference links", self.reference.sure)
            self._check("reference links", self.reference.possible)
        if self.confidence is not None:
            values = _floats(self.confidence)
            k = len(np.asarray(self.links).reshape(-1, 2))
            if values is None or values.shape != (k,) or not np.all((values >= 0) & (values <= 1)):
                raise ValueError(f"sentence {self.number}: give one confidence from 0 to 1 for each of its {k} links")

    def _check(self, what: str, links: npt.ArrayLike) -> None:
        array = np.asarray(links)
        if array.size == 0:
            return
        if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
            raise ValueError(
                f"sentence {self.number}: {what} must be integers of shape (k, 2), one row (source, target) per link"
            )
        outside = np.any((array < 0) | (array >= (len(self.source), len(self.target))), axis=1)
        if outside.any():
            i, j = array[outside][0]
            raise ValueError(
                f"sentence {self.number}: of its {what}, {i}-{j} is outside a pair of {len(self.source)} and "
                f"{len(self.target)} words; positions count from 0, source first"
            )

    def drawn(self) -> dict[tuple[int, int], tuple[str, float | None]]:
        """Kind and confidence of every link that is predicted or in the reference, by (source, target), sorted."""
        predicted: dict[tuple[int, int], float | None] = dict.fromkeys(_pairs(self.links))
        if self.confidence is not None:
            values = np.asarray(self.confidence, dtype=np.float64)
            predicted = {link: float(value) for link, value in zip(_pairs(self.links), values, strict=True)}
        if self.reference is None:
            return {link: ("link", predicted[link]) for link in sorted(predicted)}
        sure, possible = set(_pairs(self.reference.sure)), set(_pairs(self.reference.possible))
        found: dict[tuple[int, int], tuple[str, float | None]] = {}
        for link in sorted(predicted.keys() | sure | possible):
            if link in predicted:
                found[link] = ("sure" if link in sure else "possible" if link in possible else "wrong", predicted[link])
            else:
                found[link] = ("missed" if link in sure else "open", None)
        return found

    def error_rate(self) -> float | None:
        """The AER; None without a reference."""
        return None if self.reference is None else evaluate([self.reference], [as_links(self.links)]).aer


def shown_pairs(
    bitext: Bitext, predictions: Sequence[Prediction], references: Sequence[Reference] | None = None
) -> list[ShownPair]:
    """The pairs of a bitext with their predictions and, if given, references, numbered from 1."""
    known = [None] * len(bitext) if references is None else references
    return [
        ShownPair(source, target, found.links, found.confidence, reference, number)
        for number, (source, target, found, reference) in enumerate(
            zip(bitext.source, bitext.target, predictions, known, strict=True), start=1
        )
    ]


def _pairs(links: npt.ArrayLike) -> list[tuple[int, int]]:
    return [(int(i), int(j)) for i, j in np.asarray(links).reshape(-1, 2)]


def _floats(values: npt.ArrayLike) -> FloatArray | None:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def read_shown(
    source: AnyPath,
    target: AnyPath | None,
    links: AnyPath,
    gold: AnyPath | None = None,
    *,
    format: str | None = None,
    gold_format: str | None = None,
    first: int | None = None,
    gold_first: int | None = None,
) -> list[ShownPair]:
    """Read sentence pairs with links and, if given, references.

    Args:
        source: source sentences, or lines ``source ||| target`` if ``target`` is None.
        target: target sentences.
        links: the links to draw.
        gold: the links to compare them with.
        format: the format of ``links``; None recognizes it.
        gold_format: the format of ``gold``; None recognizes it.
        first: the number of the first word in ``links``, 0 or 1; None for that of the format.
        gold_first: the same of ``gold``.
    """
    bitext = read_bitext(source, target)
    predictions = open_links(links, format=format, first=first).predictions(bitext=bitext)
    references = (
        None if gold is None else open_links(gold, format=gold_format, first=gold_first).references(bitext=bitext)
    )
    try:
        return shown_pairs(bitext, predictions, references)
    except ValueError as error:
        raise ValueError(f"{name_of(links)}: {error}") from None

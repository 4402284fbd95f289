"""Alignments to look at: a grid for the terminal, and one self-contained page for the browser.

With a reference every link is of one of five kinds, told apart by shape as well as by color: squares are sure and
diamonds possible, filled ones are predicted and hollow ones are not, a cross is predicted and wrong.

A grid costs O(source words * target words). A page embeds the data once and draws a pair when it scrolls into view.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import groupby
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rich.cells import cell_len
from rich.text import Text

from maxmargin._terminal import printable
from maxmargin.structures.base import FloatArray
from maxmargin.tasks.alignment.files import Bitext
from maxmargin.tasks.alignment.links import Prediction, Reference

_TITLE = "Word alignments"
_LABEL_CELLS = 24  # longest source word of a grid
_HEADING_ROWS = 14  # longest target word of a grid
_LEFT_TO_RIGHT = "\N{LEFT-TO-RIGHT MARK}"
_JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"
_SHADES = ((0.75, "█"), (0.5, "▓"), (0.25, "▒"), (-np.inf, "░"))


class Kind(NamedTuple):
    """How a kind of link is drawn in a terminal and called in a legend."""

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
"""Kinds of links; ``link`` is a predicted one where there is no reference."""


@dataclass(frozen=True, eq=False)
class ShownPair:
    """A sentence pair with its links, ready to be drawn.

    Attributes:
        source: source words.
        target: target words.
        links: predicted links, shape ``(k, 2)``.
        confidence: of each link, from 0 to 1, shape ``(k,)``.
        reference: what annotators say of the pair.
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
                f"sentence {self.number}: {what} must be whole numbers of shape (k, 2), one row (source, target) a link"
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
        """``1 - (|A & S| + |A & P|) / (|A| + |S|)``, nothing without a reference and 0 where both sets are empty."""
        if self.reference is None:
            return None
        kinds = [kind for kind, _ in self.drawn().values()]
        sure, possible, wrong, missed = (kinds.count(kind) for kind in ("sure", "possible", "wrong", "missed"))
        total = 2 * sure + possible + wrong + missed
        return 1 - (2 * sure + possible) / total if total else 0.0


def shown_pairs(
    bitext: Bitext, predictions: Sequence[Prediction], references: Sequence[Reference] | None = None
) -> list[ShownPair]:
    """All pairs of a bitext with what is predicted and, perhaps, known of each, numbered from 1."""
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


# --- the terminal ---


def grid(pair: ShownPair, *, width: int = 80, legend: bool = True) -> Text:
    """The links of a pair for a terminal of some width: source words as rows, target words as columns.

    Target words are written downwards, in columns of two cells, so that every script fits. A pair too wide for the
    terminal becomes a list of its links.

    Args:
        pair: what to draw.
        width: cells of the terminal.
        legend: whether the last lines explain the glyphs that occur.
    """
    links = pair.drawn()
    labels = [_shortened(word, _LABEL_CELLS) for word in pair.source]
    margin = max((cell_len(label) for label in labels), default=0)
    text = _headline(pair)
    if not pair.source or not pair.target or margin + 1 + 2 * len(pair.target) > width:
        text.append_text(_listed(pair, links))
    else:
        headings = [_downwards(word) for word in pair.target]
        depth = max(len(letters) for letters in headings)
        for row in range(depth):
            line = "".join(_padded(_letter(letters, row - depth + len(letters)), 2) for letters in headings)
            text.append(f"{' ' * (margin + 1)}{line.rstrip()}\n")
        for i, label in enumerate(labels):
            text.append(f"{' ' * (margin - cell_len(label))}{_isolated(label)} ")
            cells = [_mark(*links[i, j]) if (i, j) in links else ("·", "bright_black") for j in range(len(pair.target))]
            # Spans of one style instead of one for each cell: what is written to the terminal stays short.
            for style, run in groupby(cells, key=lambda cell: cell[1]):
                text.append(" ".join(glyph for glyph, _ in run) + " ", style)
            text.rstrip()
            text.append("\n")
    if legend and links:
        text.append_text(explain([pair], width=width))
    return text


def explain(pairs: Sequence[ShownPair], *, width: int = 80) -> Text:
    """The legend of the glyphs that occur in some pairs, in as few lines as fit."""
    shown = [link for pair in pairs for link in pair.drawn().values()]
    kinds = {kind for kind, _ in shown}
    entries = [(kind.glyph, kind.style, kind.words) for name, kind in KINDS.items() if name in kinds]
    if any(kind == "link" and confidence is not None for kind, confidence in shown):
        bounds = ("confidence 0.75 or more", "0.5 or more", "0.25 or more", "less")
        shades = [(shade, KINDS["link"].style, bound) for (_, shade), bound in zip(_SHADES, bounds, strict=True)]
        entries = shades + (entries if ("link", None) in shown or len(kinds) > 1 else [])
    text, used = Text(), 0
    for glyph, style, words in entries:
        entry = cell_len(glyph) + 1 + cell_len(words)
        if used:
            text.append("\n" if used + 3 + entry > width else "   ")
            used = 0 if used + 3 + entry > width else used + 3
        text.append(glyph, style).append(f" {words}", "bright_black")
        used += entry
    return text.append("\n") if entries else text


def _headline(pair: ShownPair) -> Text:
    text = Text().append(f"sentence {pair.number}", "bold")
    rate = pair.error_rate()
    kinds = [kind for kind, _ in pair.drawn().values()]
    if rate is not None:
        counts = [f"{kinds.count(kind)} {words}" for kind, words in _COUNTED if kinds.count(kind)]
        text.append(f"   AER {100 * rate:.1f}%", "bold")
        text.append(f"   {', '.join(counts)}" if counts else "   no links")
    else:
        text.append(f"   {len(kinds)} {'link' if len(kinds) == 1 else 'links'}")
    return text.append("\n")


_COUNTED = (("sure", "sure"), ("possible", "possible"), ("wrong", "wrong"), ("missed", "missed"))


def _mark(kind: str, confidence: float | None) -> tuple[str, str]:
    glyph, style, _ = KINDS[kind]
    if kind == "link" and confidence is not None:
        return next(shade for least, shade in _SHADES if confidence >= least), style
    return glyph, style if confidence is None or confidence >= 0.5 else f"{style} dim"


def _listed(pair: ShownPair, links: dict[tuple[int, int], tuple[str, float | None]]) -> Text:
    text = Text()
    for side, words in (("source", pair.source), ("target", pair.target)):
        text.append(f"{side}: ", "bright_black").append(" ".join(map(_isolated, map(_clean, words))) + "\n")
    for (i, j), (kind, confidence) in links.items():
        if kind == "open":
            continue
        text.append(*_mark(kind, confidence))
        text.append(f" {i}-{j} {_isolated(_clean(pair.source[i]))} {_isolated(_clean(pair.target[j]))}")
        text.append("" if confidence is None else f" {confidence:.2f}")
        text.append("" if kind == "link" else f" ({KINDS[kind].words})").append("\n")
    return text


def _clean(word: str) -> str:
    """A word without characters that move the cursor or turn the writing direction; one of blanks as a sign."""
    return "".join(c if c in _JOINERS else printable(c) for c in word) if word.strip() else "∅"


def _is_right_to_left(text: str) -> bool:
    return any(unicodedata.bidirectional(c) in ("R", "AL", "AN") for c in text)


def _isolated(text: str) -> str:
    """Followed by a mark where a terminal that reorders right-to-left text would else move what comes next."""
    return text + _LEFT_TO_RIGHT if _is_right_to_left(text) else text


def _letters(word: str) -> Iterator[str]:
    """The characters of a word as readers see them: a base with the marks that sit on it."""
    letter = ""
    for c in word:
        if letter and not (unicodedata.category(c) in ("Mn", "Me", "Mc", "Cf") or letter[-1] == _JOINERS[0]):
            yield letter
            letter = ""
        letter += c
    if letter:
        yield letter


def _shortened(word: str, cells: int) -> str:
    word = _clean(word)
    if cell_len(word) <= cells:
        return word
    kept = ""
    for letter in _letters(word):
        if cell_len(kept + letter) > cells - 1:
            break
        kept += letter
    return kept + "…"


def _downwards(word: str) -> list[str]:
    letters = list(_letters(_clean(word)))
    return letters if len(letters) <= _HEADING_ROWS else [*letters[: _HEADING_ROWS - 1], "⋮"]


def _letter(letters: list[str], row: int) -> str:
    return _isolated(letters[row]) if row >= 0 else ""


def _padded(text: str, cells: int) -> str:
    return text + " " * max(cells - cell_len(text), 0)


# --- the page ---


def page(
    pairs: Sequence[ShownPair], *, title: str = _TITLE, source_language: str = "", target_language: str = ""
) -> str:
    """One HTML page that needs no network: curves and matrices, search, sorting and a threshold on confidence.

    Every drawn link is an element of class ``link`` with ``data-sentence``, ``data-source``, ``data-target`` and
    ``data-kind`` (a key of :data:`KINDS`). Words reach the page as data only: the content security policy lets no
    script run but the page's own.

    Args:
        pairs: what to draw, in the order of the file.
        title: heading of the page.
        source_language: BCP 47 tag of the source, for hyphenation, fonts and screen readers.
        target_language: likewise of the target.
    """
    data = {"languages": [source_language, target_language], "pairs": [_record(pair) for pair in pairs]}
    folder = resources.files("maxmargin.tasks.alignment").joinpath("templates")
    layout, style, figures, controls = ((folder / name).read_text(encoding="utf-8") for name in _TEMPLATES)
    script = f'"use strict";\n{{\n{figures}\n{controls}}}\n'  # a block: no name leaks
    encoded = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    encoded = re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", encoded)  # halves that UTF-8 cannot hold
    # What could end the script element, as JSON escapes.
    encoded = re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", encoded)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    values = {
        "title": html.escape(printable(title)),
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        "style": style,
        "script": script,
        "data": encoded,
    }
    # In one pass, so that a word that looks like a place holder stays a word.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], layout)


_TEMPLATES = ("page.html", "page.css", "figures.js", "page.js")
_GOLD = {"link": 0, "wrong": 0, "possible": 1, "open": 1, "sure": 2, "missed": 2}


def _record(pair: ShownPair) -> dict[str, object]:
    """What the script needs: links as [source, target, predicted, 0 | 1 possible | 2 sure, confidence or null]."""
    return {
        "number": pair.number,
        "source": list(pair.source),
        "target": list(pair.target),
        "gold": pair.reference is not None,
        "links": [
            [i, j, int(kind not in ("missed", "open")), _GOLD[kind], confidence and round(confidence, 4)]
            for (i, j), (kind, confidence) in pair.drawn().items()
        ],
    }

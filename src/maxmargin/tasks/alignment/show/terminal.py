"""Grids of links for the terminal, at a cost of O(source words * target words)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from maxmargin._terminal import printable
from maxmargin.tasks.alignment.show.pairs import KINDS, ShownPair

_LABEL_CELLS = 24  # longest source word of a grid
_HEADING_ROWS = 14  # longest target word of a grid
_LEFT_TO_RIGHT = "\N{LEFT-TO-RIGHT MARK}"
_JOINERS = "\N{ZERO WIDTH JOINER}\N{ZERO WIDTH NON-JOINER}"
_SHADES = ((0.75, "█"), (0.5, "▓"), (0.25, "▒"), (-np.inf, "░"))
_COUNTED = ("sure", "possible", "wrong", "missed")


def grid(pair: ShownPair, *, width: int = 80, legend: bool = True) -> Text:
    """Draw the links of a pair for a terminal: source words as rows, target words as columns.

    Target words are written downwards, in columns of two cells, so that every script fits. A pair too wide for the
    terminal becomes a list of its links.

    Args:
        pair: the pair to draw.
        width: width of the terminal, in cells.
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
            # One span per run of a style, not per cell, keeps the output short.
            for style, run in groupby(cells, key=lambda cell: cell[1]):
                text.append(" ".join(glyph for glyph, _ in run) + " ", style)
            text.rstrip()
            text.append("\n")
    if legend and links:
        text.append_text(explain([pair], width=width))
    return text


def explain(pairs: Sequence[ShownPair], *, width: int = 80) -> Text:
    """The legend of the glyphs that occur in some pairs."""
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
        counts = [f"{kinds.count(kind)} {kind}" for kind in _COUNTED if kinds.count(kind)]
        text.append(f"   AER {100 * rate:.1f}%", "bold")
        text.append(f"   {', '.join(counts)}" if counts else "   no links")
    else:
        text.append(f"   {len(kinds)} {'link' if len(kinds) == 1 else 'links'}")
    return text.append("\n")


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
    """A word without characters that move the cursor or change the writing direction; blank words as a sign."""
    return "".join(c if c in _JOINERS else printable(c) for c in word) if word.strip() else "∅"


def _is_right_to_left(text: str) -> bool:
    return any(unicodedata.bidirectional(c) in ("R", "AL", "AN") for c in text)


def _isolated(text: str) -> str:
    """Append a mark to right-to-left text, so that terminals do not reorder what follows."""
    return text + _LEFT_TO_RIGHT if _is_right_to_left(text) else text


def _letters(word: str) -> Iterator[str]:
    """The characters of a word as readers see them: a base with its combining marks."""
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

"""Drawings of alignments: a grid for the terminal, and one self-contained page for the browser."""

from maxmargin.tasks.alignment.show.browser import page
from maxmargin.tasks.alignment.show.pairs import KINDS, Kind, ShownPair, read_shown, shown_pairs
from maxmargin.tasks.alignment.show.terminal import explain, grid

__all__ = ["KINDS", "Kind", "ShownPair", "explain", "grid", "page", "read_shown", "shown_pairs"]

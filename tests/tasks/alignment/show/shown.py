"""Pairs to draw, and files of them for the command."""

from __future__ import annotations

import json
import re

from hypothesis import strategies as st
from typer.testing import CliRunner

from maxmargin.cli import app
from maxmargin.tasks.alignment.io.links import Reference, as_links
from maxmargin.tasks.alignment.show import ShownPair

HOUSE = ShownPair(
    ["the", "white", "house"],
    ["la", "maison", "blanche"],
    [[0, 0], [1, 1], [2, 1], [0, 2]],
    reference=Reference.of([(0, 0), (1, 2)], [(2, 1), (2, 2)]),
)


@st.composite
def pairs(draw, tokens=None):
    tokens = st.text(max_size=20) if tokens is None else tokens
    source, target = draw(st.lists(tokens, max_size=8)), draw(st.lists(tokens, max_size=8))
    cells = [(i, j) for i in range(len(source)) for j in range(len(target))]
    chosen = st.lists(st.sampled_from(cells), unique=True) if cells else st.just([])
    links = as_links(draw(chosen))
    confidence = draw(st.none() | st.lists(st.floats(0, 1), min_size=len(links), max_size=len(links)))
    reference = draw(st.none() | st.builds(Reference.of, chosen, chosen))
    return ShownPair(source, target, links, confidence, reference, draw(st.integers(1, 10**6)))


def write_files(folder):
    """Files of 30 pairs; the second one is the worst."""
    for name, line in (("s", "a b"), ("t", "x y"), ("links", "0-0 1-1"), ("gold", "0-0 1-1"), ("scored", "0-0:0.9")):
        lines = [line] * 30
        if name == "links":
            lines[1] = "0-1 1-0"
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "both").write_text("a b ||| x y\n" * 30, encoding="utf-8")


def run(*arguments, code=0):
    result = CliRunner().invoke(app, ["align", "show", *arguments])
    assert result.exit_code == code, result.output
    return result.output


FILES = ("--source", "s", "--target", "t", "--links", "links")


def embedded(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])

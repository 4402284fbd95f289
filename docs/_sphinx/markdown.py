"""Sphinx extension: Markdown pages that are written for GitHub, with links and tables of contents for the site."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx

from . import sources


def for_the_site(app: Sphinx, name: str, content: list[str]) -> None:
    """Point the links of a page at the site, and give an index page tables of contents of the pages that it lists."""
    if name not in sources.pages():
        return
    text = content[0]
    content[0] = sources.on_the_site(name, text)
    if name.rsplit("/", 1)[-1] != "index":
        return
    contents = sources.listed(name, text)
    if name in sources.GENERATED:
        (caption, listed), *rest = contents
        contents = [(caption, {one: title for one, (title, _) in sources.GENERATED[name].items()} | listed), *rest]
    for caption, listed in contents:
        option = f":caption: {caption}\n" if caption and len(contents) > 1 and name != app.config.root_doc else ""
        lines = "\n".join(f"{title} </{one}>" if title else f"/{one}" for one, title in listed.items())
        content[0] += f"\n\n```{{toctree}}\n:hidden:\n{option}\n{lines}\n```\n"


def cards(app: Sphinx, document: nodes.document, name: str) -> None:
    """Make cards of the lists of the landing page whose items begin with a link, for its style, and drop the colons."""
    if name != app.config.root_doc:
        return
    for found in document.findall(nodes.bullet_list):
        starts = [item.next_node(nodes.paragraph) for item in found.children]
        if all(isinstance(start[0], nodes.reference) for start in starts):
            found["classes"].append("cards")
            for start in starts:
                words = start[1].astext().removeprefix(": ")
                start[1] = nodes.Text(words[:1].upper() + words[1:])


PHONE = 40
"""Characters in a line of a telephone."""

TALL = 12, 5
"""More lines of a cell than are read well: in tables that fit on a telephone, and in those that scroll anyway."""


def wide(app: Sphinx, document: nodes.document, name: str) -> None:
    """Mark tables of which a telephone would break cells into many short lines, for the style to lay them out."""
    for table in document.findall(nodes.table):
        columns = [*zip(*([_lengths(cell) for cell in row.children] for row in table.findall(nodes.row)), strict=True)]
        words = [max(word for word, _ in column) + 2 for column in columns]
        texts = [max(text for _, text in column) + 2 for column in columns]
        spare = max(0, PHONE - sum(words))
        lines = max(text / (word + spare * text / sum(texts)) for word, text in zip(words, texts, strict=True))
        if lines > TALL[sum(words) > PHONE]:
            table["classes"].append("wide" if len(columns) > 2 else "stacked")


LONG = 22
"""Characters of code in a table beyond which it may break after signs, as a column is at least as wide as its words."""


def breaks(app: Sphinx, document: nodes.document, name: str) -> None:
    """Let long code in tables break after its signs."""
    for table in document.findall(nodes.table):
        for code in [*table.findall(nodes.literal)]:
            text = code.astext()
            if max(map(len, text.split()), default=0) <= LONG:
                continue
            code.clear()
            for piece in re.findall(r".{4,}?[_(,.=/](?=.{4})|.+$", text, re.DOTALL):
                code += [nodes.Text(piece), nodes.raw("", "<wbr>", format="html")]


def _lengths(cell: nodes.Node) -> tuple[int, int]:
    """The characters of the longest word of a cell and of all its text."""
    text = cell.astext()
    return max(map(len, text.split()), default=0), len(text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", for_the_site)
    app.connect("doctree-resolved", cards)
    app.connect("doctree-resolved", wide)
    app.connect("doctree-resolved", breaks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

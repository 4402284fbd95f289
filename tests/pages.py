"""The Markdown pages of the project and their code blocks."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[1]
FOLDERS = ("docs", "benchmarks", "examples", ".github")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])
MARKDOWN = MarkdownIt("commonmark").enable("table")


class Block(NamedTuple):
    """A code block: its language, "" if it says none, its text, and the line of the page before the text."""

    language: str
    code: str
    line: int


@cache
def blocks(page: Path) -> list[Block]:
    """The code blocks of a page, fenced or indented, wherever Markdown sees one."""
    found = []
    for token in MARKDOWN.parse(page.read_text(encoding="utf-8")):
        if token.type in ("fence", "code_block"):
            assert token.map is not None
            fenced = token.type == "fence"
            found.append(Block(token.info.strip() if fenced else "", token.content, token.map[0] + fenced))
    return found


def name_of(page: Path) -> str:
    """The page's path in the project."""
    return page.relative_to(ROOT).as_posix()

"""Explanations as HTML: a page of its own, or a piece of one for notebooks.

Neither has a script, and all text is escaped; the page's content security policy allows its own styles and pictures
alone, so that no word of a user's data can load or run anything.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from importlib import resources
from typing import NamedTuple

from maxmargin._terminal import printable
from maxmargin.explanation.result import Explanation
from maxmargin.explanation.rows import Table, remarks, summary, tables


class Picture(NamedTuple):
    """A picture above the tables.

    Attributes:
        data: the file.
        kind: "png" or "jpeg".
        words: what it shows.
    """

    data: bytes
    kind: str
    words: str


Entry = tuple[str, Explanation] | tuple[str, Explanation, Sequence[Picture]]
"""A heading, an explanation and perhaps pictures."""

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def page(entries: Sequence[Entry], *, title: str, top: int = 30) -> str:
    """A page with explanations, one below the other."""
    inside = "\n".join(_article(entry, top) for entry in entries)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{_text(title)}</title>\n<style>\n{_style()}body {{ margin: 0; background: Canvas }}\n</style>\n"
        '</head>\n<body>\n<main class="mm-explanation">\n'
        f"<h1>{_text(title)}</h1>\n{inside}\n</main>\n</body>\n</html>\n"
    )


def fragment(found: Explanation, top: int = 10) -> str:
    """A piece of HTML for notebooks."""
    return f'<div class="mm-explanation"><style>{_style()}</style>{_article(("", found), top)}</div>'


def _style() -> str:
    return resources.files("maxmargin.explanation").joinpath("templates", "explanation.css").read_text(encoding="utf-8")


def _text(value: object) -> str:
    return html.escape(printable(value))


def _article(entry: Entry, top: int) -> str:
    heading, found, pictures = entry if len(entry) == 3 else (*entry, ())
    title = f"<h2>{_text(heading)}</h2>" if heading else ""
    facts = "".join(f"<div><dt>{_text(name)}</dt><dd>{_text(value)}</dd></div>" for name, value in summary(found))
    said = "".join(f'<p class="remark">{_text(one)}</p>' for one in remarks(found))
    shown = "".join(_table(one) for one in tables(found, top) if one.rows)
    drawn = f'<div class="pictures">{"".join(map(_picture, pictures))}</div>' if pictures else ""
    return f"<article>{title}<dl>{facts}</dl>{said}{drawn}{shown}</article>"


def _picture(picture: Picture) -> str:
    source = f"data:image/{picture.kind};base64,{base64.b64encode(picture.data).decode()}"
    return f'<figure><img src="{source}" alt=""><figcaption>{_text(picture.words)}</figcaption></figure>'


def _table(table: Table) -> str:
    heads = "".join(f'<th scope="col">{_text(head)}</th>' for head in ("contribution", *table.heads))
    largest = max(abs(row.total) for row in table.rows)
    rows = "".join(_row(row.cells, row.total, largest, table.heads) for row in table.rows)
    more = ""
    if table.rest:
        more = (
            f'<tr class="rest"><td class="total"><span class="number">{table.rest_total:+.4f}</span></td>'
            f'<td colspan="{len(table.heads)}">and {table.rest} more</td></tr>'
        )
    return (
        f'<section><h3>{_text(table.title)}</h3><table class="of-{len(table.heads)}"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}{more}</tbody></table></section>"
    )


def _row(cells: Sequence[str], total: float, largest: float, heads: Sequence[str]) -> str:
    width = 100.0 * (abs(total) / largest) if largest else 0.0
    side = "for" if total >= 0 else "against"
    bar = f'<span class="track"><span class="bar {side}" style="width:{width:.1f}%"></span></span>'
    texts = "".join(
        f'<td data-head="{_text(head)}">{_text(cell)}</td>' for head, cell in zip(heads, cells, strict=True)
    )
    return f'<tr><td class="total"><span class="number">{total:+.4f}</span>{bar}</td>{texts}</tr>'

"""One self-contained page for the browser: it embeds the data once and draws a pair when it scrolls into view."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Sequence
from importlib import resources

from maxmargin._terminal import printable
from maxmargin.tasks.alignment.show.pairs import ShownPair

_TITLE = "Word alignments"
_TEMPLATES = ("page.html", "page.css", "figures.js", "page.js")
_GOLD = {"link": 0, "wrong": 0, "possible": 1, "open": 1, "sure": 2, "missed": 2}


def page(
    pairs: Sequence[ShownPair], *, title: str = _TITLE, source_language: str = "", target_language: str = ""
) -> str:
    """Draw pairs on an HTML page that needs no network, with search, sorting and a threshold on confidence.

    Every drawn link is an element of class ``link`` with ``data-sentence``, ``data-source``, ``data-target`` and
    ``data-kind`` (a key of :data:`KINDS`). Words reach the page only as data: the content security policy allows only
    the script of the page.

    Args:
        pairs: the pairs to draw, in the order of the file.
        title: heading of the page.
        source_language: BCP 47 tag of the source, for hyphenation, fonts and screen readers.
        target_language: the same for the target.
    """
    data = {"languages": [source_language, target_language], "pairs": [_record(pair) for pair in pairs]}
    folder = resources.files("maxmargin.tasks.alignment.show").joinpath("templates")
    layout, style, figures, controls = ((folder / name).read_text(encoding="utf-8") for name in _TEMPLATES)
    script = f'"use strict";\n{{\n{figures}\n{controls}}}\n'  # a block, so that no name is global
    encoded = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    # UTF-8 cannot encode lone surrogates.
    encoded = re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", encoded)
    # Characters that could end the script element are written as JSON escapes.
    encoded = re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", encoded)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    values = {
        "title": html.escape(printable(title)),
        "policy": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        "style": style,
        "script": script,
        "data": encoded,
    }
    # In one pass, so that a word that looks like a placeholder stays a word.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: values[found[1]], layout)


def _record(pair: ShownPair) -> dict[str, object]:
    """The data of the script: links as [source, target, predicted, 0 | 1 possible | 2 sure, confidence or null]."""
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

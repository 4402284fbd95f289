"""Formats of links by name: recognized, and parsed by the file of each in :mod:`~maxmargin.tasks.alignment.io.formats`.

- ``pharaoh``: a line per pair of ``0-0 1p2``, from 0; ``-`` is sure, ``p`` possible; ``0-0:0.93`` has a confidence.
- ``talp``: the same from 1. Its files look like Pharaoh files, so it must be asked for.
- ``naacl``: a line per link of ``sentence source target [S|P] [confidence]``, all from 1; word 0 is the empty word.
- ``json``: a line per pair, or one document that is a list of pairs; a pair is a list of ``[0, 0]`` or ``[0, 0, "P"]``,
  or an object with ``links``, or ``sure`` and ``possible``, and optionally ``confidence``, one number per link.
- ``a3``: the alignments of GIZA++, three lines per pair.
"""

from __future__ import annotations

from enum import StrEnum

from maxmargin._messages import quoted
from maxmargin.tasks.alignment.io.formats import a3, json_pairs, naacl, pharaoh
from maxmargin.tasks.alignment.io.formats.table import NUMBER
from maxmargin.tasks.alignment.io.formats.table import Table as Table
from maxmargin.tasks.common.files.text import AnyPath, problem


class Format(StrEnum):
    """The formats by name."""

    pharaoh = "pharaoh"
    naacl = "naacl"
    talp = "talp"
    json = "json"
    a3 = "a3"


FORMATS = tuple(form.value for form in Format)

FIRST = {"pharaoh": 0, "naacl": 1, "talp": 1, "json": 0, "a3": 1}
"""The number of the first word in each format."""


def recognize(path: AnyPath, data: bytes) -> str:
    """The format of the first nonempty line; Pharaoh if there is none."""
    stripped = data.lstrip()
    if not stripped:
        return "pharaoh"
    if stripped[:1] in (b"[", b"{"):
        return "json"
    if a3.HEADER.match(stripped):
        return "a3"
    first = stripped.split(b"\n", 1)[0].split()
    if pharaoh.LINK.fullmatch(first[0]):
        return "pharaoh"
    if 3 <= len(first) <= 5 and all(NUMBER.fullmatch(part) for part in first[:3]):
        return "naacl"
    line = data.count(b"\n", 0, len(data) - len(stripped)) + 1
    raise problem(
        path,
        line,
        f"{quoted(b' '.join(first))} is neither Pharaoh (0-0 1p2), NAACL (1 1 1 S), JSON ([[0, 0]]) nor A3 (# Sentence "
        "pair (1)); check that this is a file of links",
    )


def parse(path: AnyPath, data: bytes, form: str, first: int | None = None) -> Table:
    """Parse the links of a file in the given format, one of :data:`FORMATS`.

    Args:
        path: the name of the file, for errors.
        data: its content.
        form: the format.
        first: the number of the first word, 0 or 1; None for that of the format.
    """
    if form == "naacl":
        return naacl.parse(path, data, first)
    if form == "a3":
        if first == 0:
            raise ValueError("the format a3 counts words from 1; omit --first (in Python first=)")
        return a3.parse(path, data)
    start = FIRST[form] if first is None else first
    return json_pairs.parse(path, data, start) if form == "json" else pharaoh.parse(path, data, start)

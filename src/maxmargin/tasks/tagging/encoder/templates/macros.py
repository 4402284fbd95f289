"""Macros of templates: the parts of a line that stand for functions of cells, see :mod:`.template`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from maxmargin._messages import shown
from maxmargin.tasks.tagging.encoder.templates.cell_functions import POSITIONS, change
from maxmargin.tasks.tagging.io.named_columns import place_of

REACH = 100
"""Largest distance of a row from the token."""

SEGMENT_PLACES = ("first", "last", "before", "after", "all")
"""Rows of macros in lines of segments: a token of the segment, one beside it, or all its tokens."""

_MACRO = re.compile(r"%([a-z_]+(?:\([^()]*\))?(?:\.[a-z_]+(?:\([^()]*\))?)*)\[([^\[\],]*),([^\[\],]*)\]")
_FUNCTION = re.compile(r"([a-z_]+)(?:\(([^()]*)\))?")


@dataclass(frozen=True)
class Macro:
    """A function of a cell.

    Attributes:
        functions: names with their arguments, in order of application.
        row: distance from the token; in lines of segments the number of a place, see :data:`SEGMENT_PLACES`.
        column: the name of the column; empty for functions of the position alone.
    """

    functions: tuple[tuple[str, str | None], ...]
    row: int
    column: str


Items = tuple[str | Macro, ...]
"""A line of a template: literal text and macros."""


def _macro(functions: str, row: str, column: str, columns: Sequence[str], segments: bool) -> Macro:
    """Parse a macro; ValueError says what is wrong."""
    found = tuple((match[1], match[2]) for match in _FUNCTION.finditer(functions))
    if segments:
        if row.strip() not in SEGMENT_PLACES:
            raise ValueError(f"row {shown(row)} of a line of segments must be one of {', '.join(SEGMENT_PLACES)}")
        row = str(SEGMENT_PLACES.index(row.strip()))
    elif not re.fullmatch(r"\s*[+-]?[0-9]{1,6}\s*", row) or abs(int(row)) > REACH:
        raise ValueError(f"row {shown(row)} is not an integer from -{REACH} to {REACH}")
    position = any(name == "is" and argument in POSITIONS for name, argument in found)
    if position and len(found) > 1:
        raise ValueError(f"is({found[-1][1]}) cannot be joined with other functions")
    if not position:
        for name, argument in found:
            change(name, argument)
    column = column.strip()
    if column.isascii() and column.isdigit():
        if len(column) > 6 or int(column) >= len(columns):
            raise ValueError(f"column {column} of {len(columns)}, counted from 0: {', '.join(columns)}")
        column = columns[int(column)]
    elif (place := place_of(column, columns)) is not None:
        column = columns[place]
    else:
        raise ValueError(f"no column {shown(column)}; there are {', '.join(columns)}")
    return Macro(found, int(row), "" if position else column)


def items_of(line: str, columns: Sequence[str], *, segments: bool = False) -> Items:
    """Parse a line, one of segments or not; ValueError says what is wrong."""
    items: list[str | Macro] = []
    literal, at = "", 0
    while at < len(line):
        if line[at] != "%":
            stop = line.find("%", at)
            stop = len(line) if stop < 0 else stop
            literal += line[at:stop]
            at = stop
        elif line.startswith("%%", at):
            literal += "%"
            at += 2
        elif match := _MACRO.match(line, at):
            if literal:
                items.append(literal)
            literal = ""
            items.append(_macro(match[1], match[2], match[3], columns, segments))
            at = match.end()
        else:
            raise ValueError(f"cannot read {shown(line[at : at + 30])}; write %x[row,column], or %% for a percent sign")
    return (*items, literal) if literal or not items else tuple(items)

"""Functions of cells that templates may use: case, affixes, shapes and tests, by Python's string functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from maxmargin._messages import shown

Pieces = list[str | None]
Change = Callable[[list[str]], Pieces]

POSITIONS = ("first", "last")
"""Tests of the position of a token, which need no cell."""
_DIGIT = re.compile(r"\d")
_RUN = re.compile(r"([^\0Xxd])\1+")
_HYPHENS = re.compile("[-\u2010-\u2015]")


class _ShapeTable(dict[int, str]):
    """Shapes of characters: ``X``, ``x`` or ``d`` for letters by case and digits; others stay as they are."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character.isupper() or character.istitle():
            found = "X"
        elif character.isalpha():
            found = "x"
        else:
            found = "d" if character.isdecimal() else character
        self[code] = found
        return found


_SHAPES = _ShapeTable()


def _whole(change: Callable[[str], str]) -> Change:
    """Apply a function of text that preserves NUL to all cells in one call."""

    def changed(cells: list[str]) -> Pieces:
        found: Pieces = list(change("\0".join(cells)).split("\0")) if cells else []
        return found if len(found) == len(cells) else [change(cell) for cell in cells]

    return changed


def _short_shape(text: str) -> str:
    shape = text.translate(_SHAPES)
    for letter in "Xxd":
        while letter * 2 in shape:
            shape = shape.replace(letter * 2, letter)
    return _RUN.sub(r"\1", shape)


def _prefix(size: int) -> Change:
    return lambda cells: [cell[:size] if len(cell) >= size else None for cell in cells]


def _suffix(size: int) -> Change:
    return lambda cells: [cell[-size:] if len(cell) >= size else None for cell in cells]


def _length(most: int | None) -> Change:
    return lambda cells: [str(len(cell) if most is None else min(len(cell), most)) for cell in cells]


def _test(name: str, holds: Callable[[str], Any]) -> Change:
    return lambda cells: [name if holds(cell) else None for cell in cells]


_IS: dict[str, Callable[[str], Any]] = {
    "alpha": str.isalpha,
    "ascii": str.isascii,
    "digit": str.isdecimal,
    "lower": str.islower,
    "punctuation": lambda cell: cell != "" and not any(character.isalnum() for character in cell),
    "title": str.istitle,
    "upper": str.isupper,
}
_HAS: dict[str, Callable[[str], Any]] = {
    "digit": _DIGIT.search,
    "hyphen": _HYPHENS.search,
    "letter": lambda cell: any(character.isalpha() for character in cell),
    "lower": lambda cell: any(character.islower() for character in cell),
    "upper": lambda cell: any(character.isupper() for character in cell),
}
_PLAIN: dict[str, Change] = {
    "x": lambda cells: list(cells),
    "lower": _whole(str.lower),
    "digits": _whole(lambda text: _DIGIT.sub("0", text)),
    "filled": lambda cells: [cell or None for cell in cells],
    "shape": _whole(lambda text: text.translate(_SHAPES)),
    "short_shape": _whole(_short_shape),
}

FUNCTIONS: dict[str, str] = {
    "x": "the cell",
    "filled": "the cell; no value if it is empty",
    "lower": "in lower case",
    "digits": "every digit as 0",
    "prefix(n)": "the first n characters; no value if there are fewer",
    "suffix(n)": "the last n characters; no value if there are fewer",
    "shape": "X for capitals, x for other letters, d for digits, other characters as they are",
    "short_shape": "the shape, each run of equal characters as one",
    "length": "the number of characters; length(n) is at most n",
    "is(test)": f"the name of the test if it holds, otherwise no value: {', '.join([*_IS, *POSITIONS])}",
    "has(test)": f"the same for any character of the cell: {', '.join(_HAS)}",
}
"""Functions that may stand between ``%`` and ``[row,column]``."""


def change(name: str, argument: str | None) -> Change:
    """A function by name; ValueError says what is wrong with it."""
    if name in _PLAIN:
        if argument is not None:
            raise ValueError(f"{name} takes no argument")
        return _PLAIN[name]
    if name in ("prefix", "suffix", "length"):
        if name == "length" and argument is None:
            return _length(None)
        if argument is None or not argument.isascii() or not argument.isdigit() or not 0 < int(argument) <= 1000:
            raise ValueError(f"{name} takes a number of characters from 1 to 1000, as {name}(3)")
        return {"prefix": _prefix, "suffix": _suffix, "length": _length}[name](int(argument))
    if name in ("is", "has"):
        tests = _IS if name == "is" else _HAS
        if argument not in tests:
            known = ", ".join([*tests, *(POSITIONS if name == "is" else ())])
            raise ValueError(f"{name} takes one of {known}")
        return _test(argument, tests[argument])
    raise ValueError(f"unknown function {shown(name)}; use one of {', '.join(FUNCTIONS)}")

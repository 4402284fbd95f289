"""Slow twins of what tagging does in compiled code: attributes of dictionaries and of templates, token by token.

Templates are taken by the names of their attributes; what is no literal text in a line is a macro.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

Row = dict[str, float]


def item_attributes(token: Any) -> list[tuple[str, float]]:
    """Names and values of one token's dictionary, list of names, or name, in order."""
    if isinstance(token, str):
        return [(token, 1.0)]
    if isinstance(token, (set, frozenset)):
        return [(name, 1.0) for name in sorted(token, key=lambda name: name.encode())]
    if not isinstance(token, dict):
        return [(name, 1.0) for name in token]
    found = []
    for key, value in token.items():
        if isinstance(value, str):
            found.append((f"{key}:{value}", 1.0))
        elif isinstance(value, (dict, list, tuple, set, frozenset)):
            found += [(f"{key}:{name}", weight) for name, weight in item_attributes(value)]
        elif value:
            found.append((key, float(value)))
    return found


def rows_of_items(sentences: Sequence[Sequence[Any]]) -> list[Row]:
    """The attributes of every token, those that come twice added up."""
    return [_summed(item_attributes(token)) for sentence in sentences for token in sentence]


def rows_of_template(template: Any, sentences: Sequence[Sequence[Sequence[str]]], *, edges: bool = False) -> list[Row]:
    """The attributes of every token, or of every token but the first; a token has a cell per column of the template."""
    lines = template.bigrams if edges else template.unigrams
    if edges:
        lines = tuple(line for line in lines if not all(isinstance(item, str) for item in line))
    rows = []
    for sentence in sentences:
        for token in range(1 if edges else 0, len(sentence)):
            names = [_name(line, template, sentence, token) for line in lines]
            rows.append(_summed([(name, 1.0) for name in names if name is not None]))
    return rows


def _summed(pairs: list[tuple[str, float]]) -> Row:
    row: Row = {}
    for name, value in pairs:
        row[name] = row.get(name, 0.0) + value
    return row


def _name(line: Sequence[Any], template: Any, sentence: Sequence[Sequence[str]], token: int) -> str | None:
    name = ""
    for item in line:
        piece = item if isinstance(item, str) else _piece(item, template, sentence, token + item.row)
        if piece is None:
            return None
        name += piece
    return name


def _piece(macro: Any, template: Any, sentence: Sequence[Sequence[str]], at: int) -> str | None:
    if not 0 <= at < len(sentence):
        if template.omit or any(name in ("is", "has") for name, _ in macro.functions):
            return None
        return f"_B{at}" if at < 0 else f"_B+{at - len(sentence) + 1}"
    if macro.functions == (("is", "first"),):
        return "first" if at == 0 else None
    if macro.functions == (("is", "last"),):
        return "last" if at == len(sentence) - 1 else None
    piece: str | None = sentence[at][template.columns.index(macro.column)]
    for name, argument in macro.functions:
        piece = None if piece is None else _function(name, argument, piece)
    return piece


def _function(name: str, argument: str | None, text: str) -> str | None:
    if name in ("prefix", "suffix"):
        size = int(argument or 0)
        if len(text) < size:
            return None
        return text[:size] if name == "prefix" else text[len(text) - size :]
    if name == "length":
        return str(min(len(text), int(argument)) if argument else len(text))
    if name in ("shape", "short_shape"):
        letters = [_letter(character) for character in text]
        if name == "short_shape":
            letters = [letter for i, letter in enumerate(letters) if i == 0 or letters[i - 1] != letter]
        return "".join(letters)
    if name in ("is", "has"):
        return argument if _holds(name, argument or "", text) else None
    return {"x": text, "lower": text.lower(), "digits": re.sub(r"\d", "0", text)}[name]


def _letter(character: str) -> str:
    if character.isupper() or character.istitle():
        return "X"
    if character.isalpha():
        return "x"
    return "d" if character.isdecimal() else character


def _holds(name: str, test: str, text: str) -> bool:
    if name == "is":
        if test == "punctuation":
            return text != "" and all(not character.isalnum() for character in text)
        whole = {"alpha": text.isalpha(), "ascii": text.isascii(), "digit": text.isdecimal(), "lower": text.islower()}
        return {**whole, "title": text.istitle(), "upper": text.isupper()}[test]
    if test == "hyphen":
        return any(character == "-" or "\u2010" <= character <= "\u2015" for character in text)
    tests = {"digit": str.isdecimal, "letter": str.isalpha, "lower": str.islower, "upper": str.isupper}
    return any(map(tests[test], text))

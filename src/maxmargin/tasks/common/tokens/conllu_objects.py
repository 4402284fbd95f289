"""Tables from sentences of the package ``conllu``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin.tasks.common.tokens.line_formats import CONLLU
from maxmargin.tasks.common.tokens.table import WORD, TokenTable

_FIELDS = tuple("form" if name == WORD else name for name in CONLLU)


def of_conllu(sentences: Iterable[Any]) -> TokenTable:
    """Return the table of ``conllu.TokenList`` objects, or of any lists of dictionaries with the same keys.

    Ranges of words and empty nodes, whose ``id`` is not an integer, are dropped. Cells are written as in a file.
    """
    rows: list[list[tuple[str, ...]]] = []
    for i, sentence in enumerate(sentences):
        row: list[tuple[str, ...]] = []
        for j, token in enumerate(_checks.listed(f"sentence {i}", sentence, "a list of tokens", sized=False)):
            if not hasattr(token, "get") or not isinstance(token.get("form"), str):
                raise ValueError(
                    f"sentence {i}, token {j}: expected a token of the package conllu with a 'form', got {token!r:.60}"
                )
            if isinstance(token.get("id", j + 1), int):
                row.append(tuple(_cell(token.get(field), f"sentence {i}, token {j}: {field}") for field in _FIELDS))
        rows.append(row)
    return TokenTable.of_lists(rows, CONLLU)


def _cell(value: Any, name: str) -> str:
    if value is None or value in ({}, []):
        return "_"
    if isinstance(value, Mapping):
        return "|".join(key if one == "" else f"{key}={'_' if one is None else one}" for key, one in value.items())
    if isinstance(value, (list, tuple)):  # DEPS
        if not all(isinstance(one, (list, tuple)) and len(one) == 2 for one in value):
            raise ValueError(f"{name} must be text, a dictionary or pairs (relation, head), got {shown(value)}")
        return "|".join(f"{_identifier(head)}:{relation}" for relation, head in value)
    return str(value)


def _identifier(value: Any) -> str:
    return "".join(map(str, value)) if isinstance(value, tuple) else str(value)

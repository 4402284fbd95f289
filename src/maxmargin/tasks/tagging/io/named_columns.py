"""Tokens whose columns have names: dictionaries, and data frames of pandas or polars, one per sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maxmargin._messages import shown
from maxmargin.datasets.columns import column_of, is_frame, names_of
from maxmargin.tasks.common.tokens.table import WORD

ALIASES = {"form": WORD, WORD: "form"}
"""Names of columns that mean the same."""


def place_of(name: str, columns: Sequence[str]) -> int | None:
    """Return the place of a column by its name or another one that means the same; None if there is none."""
    wanted = name if name in columns else ALIASES.get(name, name)
    return list(columns).index(wanted) if wanted in columns else None


def is_numeric(frame: Any) -> bool:
    """Return whether all columns of a data frame are numbers."""
    return bool(np.asarray(frame).dtype.kind in "biuf")


def matrix_of(index: int, frame: Any, names: Sequence[str] | None) -> np.ndarray[Any, Any]:
    """Return the numbers of a data frame, its columns in the order of ``names`` if these are given.

    ValueError names the sentence if its columns are others.
    """
    own = [str(name) for name in names_of(frame) or ()]
    if names is None or own == list(names):
        return np.asarray(frame)
    if sorted(own) != sorted(names) or len(set(own)) < len(own):
        missing, extra = sorted(set(names) - set(own)), sorted(set(own) - set(names))
        found = (
            f"lacks {', '.join(missing)}" if missing else f"also has {', '.join(extra)}" if extra else "has some twice"
        )
        raise ValueError(
            f"sentence {index}: its columns are not those of the first sentence in training: it {found}; give a frame "
            f"with the columns {', '.join(names)}"
        )
    return np.asarray(frame)[:, [own.index(name) for name in names]]


def refuse_frame(X: Any) -> None:
    """Raise ValueError if all sentences are one data frame."""
    if is_frame(X):
        raise ValueError(
            "X is one table; give a list of tables, one per sentence, as [part for _, part in X.groupby('sentence')]"
        )


def token_names(value: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a data frame or of a token that is a dictionary, words as ``word``.

    None for other values.
    """
    if not is_frame(value) and not isinstance(value, Mapping):
        return None
    names = tuple(map(str, names_of(value) or ()))
    return tuple(WORD if name == "form" and WORD not in names else name for name in names)


def cells_of(sentences: Sequence[Any], columns: Sequence[str]) -> list[list[tuple[Any, ...]]]:
    """Return the given columns of sentences that are data frames or lists of dictionaries, a tuple per token.

    ValueError names sentence and token if a column is missing.
    """
    return [
        _of_frame(i, sentence, columns) if is_frame(sentence) else _of_dictionaries(i, sentence, columns)
        for i, sentence in enumerate(sentences)
    ]


def dictionaries_of(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a data frame as dictionaries."""
    names = names_of(frame) or []
    rows = zip(*(column_of(frame, name) for name in names), strict=True)
    return [dict(zip(map(str, names), row, strict=True)) for row in rows]


def _of_frame(index: int, frame: Any, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    own = names_of(frame) or []
    names = [str(name) for name in own]
    at = [_place(f"sentence {index}", name, names) for name in columns]
    return list(zip(*(column_of(frame, own[place]) for place in at), strict=True))


def _of_dictionaries(index: int, sentence: Any, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    rows = []
    for j, token in enumerate(sentence):
        where = f"sentence {index}, token {j}"
        if not isinstance(token, Mapping):
            raise ValueError(f"{where}: expected a dictionary of columns, as other tokens are, got {shown(token)}")
        names = list(token)
        rows.append(tuple(token[names[_place(where, name, names)]] for name in columns))
    return rows


def _place(where: str, name: str, names: Sequence[str]) -> int:
    found = place_of(name, names)
    if found is None:
        there = ", ".join(map(str, names)) or "none"
        raise ValueError(f"{where}: no column {shown(name)}, which the template uses; there are {there}")
    return found

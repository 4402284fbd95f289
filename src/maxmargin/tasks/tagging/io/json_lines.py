"""JSON lines, one sentence per line: tokens or features of tokens, perhaps labels, and any other keys.

``{"tokens": ["The", "dog"], "labels": ["DT", "NN"]}``, where a token may also be a list of cells, or
``{"features": [{"word": "The"}, ["word=dog", "last"]], "labels": ["DT", "NN"]}``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from maxmargin.structures.base import FloatArray
from maxmargin.tasks.common.files.text import AnyPath, FileError, count_of, name_of, problem
from maxmargin.tasks.common.tokens.line_formats import lines_with_text, names_of_columns, no_tokens
from maxmargin.tasks.common.tokens.table import AttributeText, TokenTable

TOKENS, FEATURES, LABELS = "tokens", "features", "labels"
PREDICTED, SCORES, K_BEST = "predicted", "scores", "k_best"


@dataclass(frozen=True)
class Agreed:
    """What the first line of a file decides for all.

    Attributes:
        kind: the key of the tokens, ``tokens`` or ``features``.
        labeled: whether there are labels.
        line: number of the first line.
        width: cells of a token that is a list; 0 for strings.
        names: names of the columns; empty for features.
        label: name of the column of labels; None without labels or columns.
    """

    kind: str
    labeled: bool
    line: int
    width: int = 0
    names: tuple[str, ...] = ()
    label: str | None = None


@dataclass(frozen=True, eq=False)
class Sentences:
    """Lines of a file of JSON lines.

    Attributes:
        records: the objects, one per sentence.
        table: the tokens, with the labels as a column; or None.
        items: the features with the labels; or None.
        agreed: what these lines have in common.
    """

    records: tuple[dict[str, Any], ...]
    table: TokenTable | None
    items: AttributeText | None
    agreed: Agreed

    @property
    def label(self) -> str | None:
        """Name of the column of labels; None without labels or columns."""
        return self.agreed.label


def parse(
    path: AnyPath,
    data: bytes,
    columns: Sequence[str] | None,
    label: str | None,
    labeled: bool | None,
    before: int = 0,
    agreed: Agreed | None = None,
) -> Sentences:
    """Parse sentences; FileError names the line of an error.

    Args:
        path: the file, for errors.
        data: lines of it.
        columns: names of the columns.
        label: the column of labels.
        labeled: whether there must be labels.
        before: number of lines before these.
        agreed: what these lines must agree with; None if they are the first, and must have tokens.
    """
    records: list[dict[str, Any]] = []
    lines: list[int] = []
    for number, line in lines_with_text(data):
        records.append(_record(path, before + number, line))
        lines.append(before + number)
    first = agreed
    if agreed is None:
        if not records:
            raise no_tokens(path)
        with_labels = LABELS in records[0] if labeled is None else labeled
        agreed = Agreed(FEATURES if FEATURES in records[0] else TOKENS, with_labels, lines[0])
    kind = agreed.kind
    for number, record in zip(lines, records, strict=True):
        _check(path, number, record, kind, agreed.line)
        if agreed.labeled:
            _check_labels(path, number, record, kind)
        elif labeled is None and LABELS in record:
            raise problem(path, number, f"{LABELS}, and line {agreed.line} has none; give them in all lines or in none")
    sentences = [record[kind] for record in records]
    lengths = [len(sentence) for sentence in sentences]
    if first is None and not sum(lengths):
        raise no_tokens(path)
    places = np.repeat(np.array(lines, dtype=np.int64), lengths)
    labels = [record[LABELS] for record in records] if agreed.labeled else None
    if kind == FEATURES:
        source = name_of(path)
        try:
            items = AttributeText.of_lists(
                sentences, labels, where=lambda i, j: f"{source}, line {lines[i]}, token {j + 1}"
            )
        except ValueError as error:
            raise FileError(f"{error}") from None
        return Sentences(tuple(records), None, replace(items, lines=places, source=source), agreed)
    if first is None:
        token = _first(sentences)
        agreed = replace(agreed, width=len(token) if isinstance(token, list) else 0)
        strings = isinstance(token, str)
    else:
        strings = not agreed.width
    flat = [_flat(path, lines, sentences)] if strings else _cells(path, lines, sentences, agreed.width)
    if first is None:
        names, column = names_of_columns(path, lines[0], len(flat) + agreed.labeled, columns, label, agreed.labeled)
        agreed = replace(agreed, names=names, label=column if agreed.labeled else None)
    if labels is not None and agreed.label is not None:
        flat.insert(agreed.names.index(agreed.label), list(chain.from_iterable(labels)))
    cells = list(chain.from_iterable(zip(*flat, strict=True)))
    return Sentences(
        tuple(records), TokenTable.of_cells(cells, lengths, agreed.names, places, name_of(path)), None, agreed
    )


def _first(sentences: list[list[Any]]) -> Any:
    return next(token for sentence in sentences for token in sentence)


def _flat(path: AnyPath, lines: list[int], sentences: list[list[Any]]) -> list[str]:
    """Return the tokens of all sentences, which must be strings."""
    flat = list(chain.from_iterable(sentences))
    if set(map(type, flat)) != {str}:
        _refuse(path, lines, sentences, "strings", lambda token: isinstance(token, str))
    return flat


def _cells(path: AnyPath, lines: list[int], sentences: list[list[Any]], width: int) -> list[list[str]]:
    """Return the columns of the tokens of all sentences, which must be lists of ``width`` strings."""
    kind = f"lists of {width} strings" if width else "strings"

    def right(token: Any) -> bool:
        return isinstance(token, list) and len(token) == width > 0 and all(isinstance(cell, str) for cell in token)

    _refuse(path, lines, sentences, kind, right)
    return [[token[c] for sentence in sentences for token in sentence] for c in range(width)]


def _refuse(
    path: AnyPath, lines: list[int], sentences: list[list[Any]], kind: str, right: Callable[[Any], bool]
) -> None:
    """Raise FileError for the first token that is not right."""
    for number, sentence in zip(lines, sentences, strict=True):
        for j, token in enumerate(sentence):
            if not right(token):
                shown = f"token {j + 1} is {json.dumps(token):.60}"
                raise problem(
                    path, number, f"{shown}, and others are {kind}; give strings, or the same columns for all"
                )


def _record(path: AnyPath, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise problem(
            path, number, f"not JSON at column {error.colno} ({error.msg}); write one object per line"
        ) from None
    except (ValueError, RecursionError):  # a number with thousands of digits, or deeply nested lists
        raise problem(path, number, "JSON that is too large to read; write one object per line") from None
    if not isinstance(record, dict):
        raise problem(path, number, f'not a JSON object; write {{"{TOKENS}": [...], "{LABELS}": [...]}}, one per line')
    if b"\\ud" in line.lower():
        try:
            _line(record)
        except UnicodeEncodeError:
            raise problem(path, number, r"an escape such as \ud800 alone; write both halves of the character") from None
    return record


def _check(path: AnyPath, number: int, record: dict[str, Any], kind: str, first: int) -> None:
    if kind not in record:
        other = FEATURES if kind == TOKENS else TOKENS
        there = ", ".join(map(repr, record)) or "nothing"
        if other in record:
            raise problem(path, number, f"'{other}', and line {first} has '{kind}'; give the same in all lines")
        raise problem(path, number, f"no '{kind}', only {there:.200}; give the tokens of a sentence as '{TOKENS}'")
    if not isinstance(record[kind], list):
        raise problem(path, number, f"'{kind}' is {json.dumps(record[kind]):.60}; give a list, one entry per token")


def _check_labels(path: AnyPath, number: int, record: dict[str, Any], kind: str) -> None:
    labels = record.get(LABELS)
    if labels is None:
        raise problem(path, number, f"no '{LABELS}'; give the label of each token, in all lines")
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise problem(path, number, f"'{LABELS}' is {json.dumps(labels):.60}; give a list of strings, one per token")
    if len(labels) != len(record[kind]):
        raise problem(
            path,
            number,
            f"{count_of(len(labels), 'label')} for {count_of(len(record[kind]), 'token')}; give each token one",
        )


def with_labels(record: dict[str, Any], labels: list[str], scores: FloatArray | None) -> bytes:
    """Return the line of a sentence with predicted labels."""
    more: dict[str, Any] = {PREDICTED: labels}
    if scores is not None:
        more[SCORES] = [_number(score) for score in scores.tolist()]
    return _line({**record, **more})


def with_k_best(record: dict[str, Any], best: list[tuple[list[str], float]]) -> bytes:
    """Return the line of a sentence with its best labelings."""
    return _line({**record, K_BEST: [{LABELS: labels, "score": _number(score)} for labels, score in best]})


def _number(value: float) -> float | None:
    """Return None for infinity, which JSON lacks."""
    return value if math.isfinite(value) else None


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"

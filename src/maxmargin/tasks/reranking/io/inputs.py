"""What there is one of for each input: the place of its list in a file, references, sources."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxmargin._messages import quoted
from maxmargin.structures.base import IntArray
from maxmargin.tasks.common.files.text import (
    AnyPath,
    FileError,
    count_of,
    lines_of,
    name_of,
    paths_of,
    problem,
    read_text,
)

_NUMBER = re.compile(r"[0-9]{1,18}")


def reads_as_number(value: Any) -> bool:
    """Whether a piece of a file is a number, or text that says one."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def read_lines(path: AnyPath, encoding: str = "utf-8") -> list[str]:
    """Read the lines of a file without white space at their ends."""
    return [line.strip().decode("utf-8") for line in lines_of(read_text(path, encoding))]


def read_references(paths: AnyPath | Sequence[AnyPath], encoding: str = "utf-8") -> list[tuple[str, ...]]:
    """Read the references of each input from files with a line per input: one tuple per input, one string per file."""
    files = paths_of(paths)
    if not files:
        raise ValueError("no files of references; give at least one")
    columns = [read_lines(path, encoding) for path in files]
    for path, column in zip(files, columns, strict=True):
        if not column:
            raise problem(path, None, "no references; give a line per input")
        if len(column) != len(columns[0]):
            raise FileError(
                f"{name_of(files[0])} has {count_of(len(columns[0]), 'line')} and {name_of(path)} has {len(column)}; "
                "line N of each must be a reference of input N"
            )
    return list(zip(*columns, strict=True))


def check_count(path: AnyPath, ids: Sequence[str], found: int, what: str, where: str, *, things: str = "list") -> None:
    """As many lists, or other ``things``, as references or sources; the error says which one seems to be missing."""
    if found == len(ids):
        return
    message = f"{name_of(path)} has {count_of(len(ids), things)} and {where} has {count_of(found, what)}; "
    numbers = [int(one) for one in ids] if all(map(_NUMBER.fullmatch, ids)) else []
    if numbers and len(ids) < found:
        missing = next((want for want, one in enumerate(numbers, numbers[0]) if one != want), numbers[-1] + 1)
        message += f"there is no {things} with id {missing}; "
    raise FileError(message + f"give one {what} per {things}, in their order")


def lists_of_ids(path: AnyPath, ids: Sequence[str], lines: IntArray) -> tuple[IntArray, list[str]]:
    """Return where lists begin, shape ``(n_lists + 1,)``, and their ids, from the id of each hypothesis.

    FileError where an id comes again after another one, or where numbers decrease.
    """
    begins = [0, *(at for at in range(1, len(ids)) if ids[at] != ids[at - 1])]
    names = [ids[at] for at in begins]
    remedy = "keep the hypotheses of an input together, for example with sort -s -n -k 1,1"
    if len(set(names)) < len(names):
        seen: dict[str, int] = {}
        for at, one in zip(begins, names, strict=True):
            if (before := seen.setdefault(one, at)) != at:
                message = f"id {quoted(one)} comes again, after line {lines[before]} and other ids; {remedy}"
                raise problem(path, int(lines[at]), message)
    if all(map(_NUMBER.fullmatch, names)):
        numbers = np.array([int(one) for one in names])
        if (numbers[1:] < numbers[:-1]).any():
            at = int(np.argmax(numbers[1:] < numbers[:-1])) + 1
            raise problem(
                path,
                int(lines[begins[at]]),
                f"id {names[at]} after id {names[at - 1]}; sort the lists by id, as references go by their order",
            )
    return np.array([*begins, len(ids)], dtype=np.int64), names

"""What there is one of for each input: the place of its list in a file, references, sources."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from maxmargin._terminal import printable
from maxmargin.structures.base import IntArray
from maxmargin.tasks.common.text import AnyPath, FileError, count_of, name_of, problem, read_lines

_NUMBER = re.compile(r"[0-9]{1,18}")


def quoted(text: str | bytes) -> str:
    """Return a piece of a file for a message, in quotes and not too long."""
    words = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return repr(printable(words if len(words) <= 40 else words[:37] + "..."))


def read_references(paths: AnyPath | Sequence[AnyPath], encoding: str | None = None) -> list[tuple[str, ...]]:
    """Return the references of each input, one from each file.

    Args:
        paths: one or more files with one reference a line; all have the same number of lines.
        encoding: of the files; None takes UTF-8 alone.
    """
    files = [paths] if not isinstance(paths, Sequence) or isinstance(paths, str) else list(paths)
    if not files:
        raise ValueError("no references; give at least one file")
    columns = [read_lines(path, encoding) for path in files]
    for path, column in zip(files, columns, strict=True):
        check_lines(files[0], len(columns[0]), path, len(column))
        if not column:
            raise problem(path, None, "no lines; give a file with a reference a line")
    return list(zip(*columns, strict=True))


def check_lines(one: AnyPath, lines: int, other: AnyPath, other_lines: int) -> None:
    """Raise FileError if two files do not have the same number of lines."""
    if lines != other_lines:
        counts = f"{name_of(one)} has {count_of(lines, 'line')} and {name_of(other)} has {other_lines}"
        raise FileError(f"{counts}; give files with one line per sentence, empty ones too")


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

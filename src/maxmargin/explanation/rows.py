"""Tables of an explanation with few rows: what the terminal and the page show alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maxmargin._messages import shortened
from maxmargin._terminal import printable
from maxmargin.explanation.result import MOST_SHOWN, Contribution, Explanation, plain_output

_LONGEST = 400
"""Characters of an output."""


class Sum(NamedTuple):
    """A row of a table of sums: texts of its cells, and the sum."""

    cells: tuple[str, ...]
    total: float


class Table(NamedTuple):
    """A table.

    Attributes:
        title: above it.
        heads: of the columns of texts, beside which the contribution has a column of its own.
        rows: its first rows.
        rest: how many rows are left out.
        rest_total: their sum.
    """

    title: str
    heads: tuple[str, ...]
    rows: list[Sum]
    rest: int
    rest_total: float


def tables(found: Explanation, top: int) -> list[Table]:
    """The differences, the features, and the single contributions, the ``top`` first of each."""
    differences = [Sum((one.place, one.output, one.rival), one.contribution) for one in found.differences]
    features = [Sum((name,), total) for name, total in found.by_feature()]
    singles = [_single(one) for one in found.contributions]
    alone = found.rival_score is None
    heads = ("place", "output") if alone else ("place", "output", _short(found.compared_with))
    if alone:
        differences = [Sum(one.cells[:2], one.total) for one in differences]
    return [
        _table("The parts of the output" if alone else "Where they differ", heads, differences, top),
        _table("Features, over all places", ("feature",), features, top),
        _table("Contributions", ("part", "feature", "weight", "value", "change"), singles, top),
    ]


def _single(one: Contribution) -> Sum:
    feature = one.feature.what
    if one.feature.state and one.feature.state != one.part.state:
        feature = str(one.feature)
    numbers = ["" if number is None else f"{number:.4g}" for number in (one.weight, one.value)]
    return Sum((str(one.part), feature, *numbers, f"{one.change:+g}"), one.contribution)


def _table(title: str, heads: tuple[str, ...], rows: Sequence[Sum], top: int) -> Table:
    rest = rows[top:]
    return Table(title, heads, list(rows[:top]), len(rest), math.fsum(one.total for one in rest))


def output_text(output: Any) -> str:
    """An output in one line, shortened."""
    plain = plain_output(output)
    if isinstance(plain, list) and plain and all(isinstance(one, str) for one in plain):
        plain = " ".join(plain)
    return shortened(printable(plain), _LONGEST)


def summary(found: Explanation) -> list[tuple[str, str]]:
    """Names and values above the tables."""
    lines = []
    if not isinstance(found.output, np.ndarray) or found.output.size <= MOST_SHOWN:  # not labels of all pixels
        lines.append(("output", output_text(found.output)))
        if found.rival_score is not None:
            lines.append((found.compared_with, output_text(found.rival)))
    lines.append(("score of the output", f"{found.score:.6g}"))
    if found.rival_score is not None:
        lines.append((f"score of the {_short(found.compared_with)}", f"{found.rival_score:.6g}"))
        lines.append(("margin, the sum of all contributions", f"{found.margin:+.6g}"))
    return lines


def _short(compared_with: str) -> str:
    return compared_with if len(compared_with) < 15 else "other one"


def remarks(found: Explanation) -> list[str]:
    """What must be said of the result."""
    said = []
    if found.rival_score is None:
        said.append("There is no other output to compare with: contributions add up to the score.")
    if not found.exact:
        said.append(
            "Inference is approximate here: a better output, or a better runner-up, may exist. Contributions to this "
            "margin are exact."
        )
    if found.rival_score is not None and not found.parts:
        said.append("The two outputs are the same.")
    return said

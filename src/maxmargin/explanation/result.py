"""An explanation: contributions of parts and features that add up to the margin between two outputs.

Lists of contributions and of their sums are in order of absolute value: what speaks most for the output, or most
against it, comes first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from maxmargin import _checks
from maxmargin._files import replacing
from maxmargin._messages import shown
from maxmargin.encoders.data.names import Name

RUNNER_UP, GIVEN, ELSEWHERE, ALONE = "runner-up", "given output", "best output that differs there", "no other output"
"""What an output is compared with."""


MOST_SHOWN = 1000
"""Entries of arrays that are written out, as those of images are not."""


class Contribution(NamedTuple):
    """What one feature of one part contributes to the margin.

    Attributes:
        part: the part.
        feature: the feature; of a kernel, all support rows together.
        weight: its weight; None for a kernel.
        value: its value at the part; None for a kernel.
        change: how often the output has the part, less how often the rival has it.
        contribution: ``weight * value * change``.
    """

    part: Name
    feature: Name
    weight: float | None
    value: float | None
    change: float
    contribution: float


class Difference(NamedTuple):
    """A place where the two outputs differ.

    Attributes:
        place: a token, a node, a link.
        output: what the output has there.
        rival: what the rival has there.
        contribution: the sum over all parts of the place.
    """

    place: str
    output: str
    rival: str
    contribution: float


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why an output scores more than another one.

    Features are linear in the parts: of outputs ``y`` and ``y'`` with parts ``z`` and ``z'``,

        margin = w'f(x, y) - w'f(x, y') = sum_p sum_k w_k F_kp (z_p - z'_p),

    and the terms of the sum that are not zero are the contributions.

    Attributes:
        output: the predicted output.
        rival: what it is compared with: the runner-up, or the output given as ``against``; None if there is no other
            output: contributions then add up to the score of the output.
        compared_with: what the rival is: "runner-up", "given output", "best output that differs there" or
            "no other output".
        score: ``w'f(x, output)``.
        rival_score: ``w'f(x, rival)``; None without a rival.
        parts: the parts in which the two outputs differ, each with how often the output has it, less how often the
            rival does.
        exact: whether the output is known to be the best one, and the rival (unless it is given) the best of the
            others; False where inference is approximate, as in general graphs and large cuts.
        contributions: largest absolute value first.
    """

    output: Any
    rival: Any
    compared_with: str
    score: float
    rival_score: float | None
    exact: bool
    parts: tuple[tuple[Name, float], ...]
    contributions: tuple[Contribution, ...]

    @cached_property
    def margin(self) -> float:
        """The sum of the contributions, correctly rounded: ``score - rival_score`` but for the rounding of these."""
        return math.fsum(one.contribution for one in self.contributions)

    def by_part(self) -> list[tuple[Name, float]]:
        """The sum of the contributions of each part, largest absolute value first."""
        return _sums(self.contributions, lambda one: one.part)

    def by_feature(self) -> list[tuple[str, float]]:
        """The sum of the contributions of each feature, over all parts and states, largest absolute value first."""
        return _sums(self.contributions, lambda one: one.feature.what)

    def by_place(self) -> list[tuple[str, float]]:
        """The sum of the contributions of all parts of each place (a token, a node), largest absolute one first."""
        return _sums(self.contributions, lambda one: one.part.what)

    def by_place_and_feature(self) -> list[tuple[tuple[str, str], float]]:
        """The sum of the contributions of each feature at each place, over its states, largest absolute value first."""
        return _sums(self.contributions, lambda one: (one.part.what, one.feature.what))

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """The places where the two outputs differ, largest absolute contribution first."""
        sides: dict[str, tuple[list[str], list[str]]] = {}
        for name, change in self.parts:
            times = f" x {abs(change):g}" if abs(change) != 1.0 else ""
            sides.setdefault(name.what, ([], []))[change < 0].append(f"{name.state or 'yes'}{times}")
        totals = dict(self.by_place())
        found = [
            Difference(place, "; ".join(own) or "-", "; ".join(other) or "-", totals.get(place, 0.0))
            for place, (own, other) in sides.items()
        ]
        return tuple(sorted(found, key=lambda one: -abs(one.contribution)))

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """The explanation as plain JSON values.

        Args:
            top: only so many differences, features and contributions; None for all. Sums are always those of all.
        """
        few = slice(None if top is None else _checks.integer("top", top, least=1))
        return {
            "output": plain_output(self.output),
            "rival": plain_output(self.rival),
            "compared_with": self.compared_with,
            "exact": self.exact,
            "score": self.score,
            "rival_score": self.rival_score,
            "margin": self.margin,
            "n_contributions": len(self.contributions),
            "differences": [one._asdict() for one in self.differences[few]],
            "features": [{"feature": name, "contribution": total} for name, total in self.by_feature()[few]],
            "contributions": self.rows()[few],
        }

    def rows(self) -> list[dict[str, Any]]:
        """The contributions as dictionaries, for example for ``pandas.DataFrame``."""
        return [{**one._asdict(), "part": str(one.part), "feature": str(one.feature)} for one in self.contributions]

    def to_text(self, top: int = 10, width: int | None = 100) -> str:
        """Tables for a terminal without colors.

        Args:
            top: rows of each table.
            width: of a line in characters, at least 20; None for lines of any length.
        """
        width = None if width is None else _checks.integer("width", width, least=20)
        from maxmargin.explanation.terminal import text

        return text(self, _checks.integer("top", top, least=1), width)

    def to_html(self, top: int = 30, *, title: str = "Explanation of a prediction") -> str:
        """A page for a browser, which needs no network and no script.

        Args:
            top: rows of each table.
            title: its heading.
        """
        from maxmargin.explanation.page import page

        _checks.instance("title", title, str, "a string")
        return page([("", self)], title=title, top=_checks.integer("top", top, least=1))

    def save_html(self, path: str | Path, top: int = 30, *, title: str = "Explanation of a prediction") -> None:
        """Write the page of :meth:`to_html` to a file."""
        text = self.to_html(top, title=title)
        with replacing(_checks.path("path", path)) as file:
            file.write(text.encode())

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        words = "the score" if self.rival_score is None else f"the margin over the {self.compared_with}"
        return f"Explanation({len(self.contributions)} contributions to {words}, {self.margin:.4g})"

    def _repr_html_(self) -> str:
        from maxmargin.explanation.page import fragment

        return fragment(self)


def _sums(found: Sequence[Contribution], key: Callable[[Contribution], Any]) -> list[tuple[Any, float]]:
    """Correctly rounded sums of contributions by a key, largest absolute value first."""
    groups: dict[Any, list[float]] = {}
    for one in found:
        groups.setdefault(key(one), []).append(one.contribution)
    sums = [(name, math.fsum(own)) for name, own in groups.items()]
    return sorted(sums, key=lambda pair: -abs(pair[1]))


def plain_output(output: Any) -> Any:
    """An output as plain JSON values; what has no such form, as Python writes it."""
    if output is None or isinstance(output, (bool, int, float, str)):
        return output
    if isinstance(output, np.generic):
        return plain_output(output.item())
    if isinstance(output, np.ndarray):
        return plain_output(output.tolist()) if output.size <= MOST_SHOWN else f"array of shape {output.shape}"
    if isinstance(output, (list, tuple)):
        return [plain_output(one) for one in output]
    return shown(output)

"""Checks of settings: each returns the value as a plain number, or raises a ValueError that says what was given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np


def number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
    infinite: bool = False,
    hint: str = "",
) -> float:
    """A real number within bounds, as a float.

    Args:
        name: the setting's name, for the error.
        value: what the caller gave.
        least: the smallest value allowed; ``above``: instead, a bound that the value must exceed.
        most: the largest value allowed; ``below``: instead, a bound that the value must stay under.
        infinite: whether infinity is allowed.
        hint: what to do instead, appended to the error.
    """
    fits = _is(Real, value) and not math.isnan(value) and (infinite or math.isfinite(value))
    bounds = ((">=", least), (">", above), ("<=", most), ("<", below))
    given = [(sign, bound) for sign, bound in bounds if bound is not None]
    compare = {">=": np.greater_equal, ">": np.greater, "<=": np.less_equal, "<": np.less}
    if fits and all(compare[sign](float(value), bound) for sign, bound in given):
        return float(value)
    kind = "a finite number" if not infinite and most is None and below is None else "a number"
    wanted = " and ".join(f"{sign} {bound:g}" for sign, bound in given)
    raise _error(name, f"{kind} {wanted}".rstrip() + (" or infinity" if infinite else ""), value, hint)


def positive(name: str, value: Any, *, infinite: bool = False, hint: str = "") -> float:
    """A number above 0, as a float."""
    return number(name, value, above=0, infinite=infinite, hint=hint)


def integer(name: str, value: Any, *, least: int, hint: str = "") -> int:
    """An integer of at least ``least``, as an int."""
    if _is(Integral, value) and value >= least:
        return int(value)
    raise _error(name, f"an integer >= {least}", value, hint)


def one_of(name: str, value: Any, options: Sequence[str]) -> str:
    """One of several strings."""
    if isinstance(value, str) and value in options:
        return value
    raise _error(name, f"one of {', '.join(map(repr, options))}", value)


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise _error(name, "True or False", value)


def _is(kind: type, value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _error(name: str, wanted: str, value: Any, hint: str = "") -> ValueError:
    return ValueError(f"{name} must be {wanted}, got {value!r}" + (f"; {hint}" if hint else ""))

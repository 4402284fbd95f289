"""Checks of settings: each returns the value as a plain number, or raises a ValueError that says what was given."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import _memory
from maxmargin._messages import shown
from maxmargin._sparse import sp

MOST_INTEGER = (1 << 63) - 1
"""The largest integer that kernels take."""


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
    found = _float(value) if _is(Real, value) else math.nan
    fits = not math.isnan(found) and (infinite or math.isfinite(found))
    bounds = ((">=", least), (">", above), ("<=", most), ("<", below))
    given = [(sign, bound) for sign, bound in bounds if bound is not None]
    compare = {">=": np.greater_equal, ">": np.greater, "<=": np.less_equal, "<": np.less}
    if fits and all(compare[sign](found, bound) for sign, bound in given):
        return found
    kind = "a finite number" if not infinite and most is None and below is None else "a number"
    wanted = " and ".join(f"{sign} {bound:g}" for sign, bound in given)
    raise _error(name, f"{kind} {wanted}".rstrip() + (" or infinity" if infinite else ""), value, hint)


def positive(name: str, value: Any, *, infinite: bool = False, hint: str = "") -> float:
    """A number above 0, as a float."""
    return number(name, value, above=0, infinite=infinite, hint=hint)


def integer(name: str, value: Any, *, least: int, most: int = MOST_INTEGER, hint: str = "") -> int:
    """An integer within bounds, as an int."""
    if _is(Integral, value) and least <= int(value) <= most:
        return int(value)
    above = f" and <= {most}" if most != MOST_INTEGER or (_is(Integral, value) and value > most) else ""
    raise _error(name, f"an integer >= {least}{above}", value, hint)


def listed(name: str, value: Any, wanted: str, *, sized: bool = True) -> list[Any]:
    """The items of a list, tuple, array or another sequence; ``sized``: whether iterables without a length are refused.

    Strings, dictionaries, sets and sparse matrices are not lists. Nothing is read before its claimed length is found to
    fit into memory.
    """
    odd = isinstance(value, (str, bytes, bytearray, memoryview, dict, set, frozenset)) or sp.issparse(value)
    try:
        count = len(value) if sized or hasattr(value, "__len__") else 0
        count = max(count, value.size if isinstance(value, np.ndarray) else 0)
    except Exception:  # the caller's code
        odd, count = True, 0
    _memory.require(8.0 * count, name, "give the items themselves, or fewer of them")
    try:
        if odd or not hasattr(value, "__iter__"):
            raise TypeError
        return list(value)
    except Exception:  # the caller's code
        raise _error(name, wanted, value) from None


def one_of(name: str, value: Any, options: Sequence[str]) -> str:
    """One of several strings."""
    if is_one_of(value, *options):
        return str(value)
    raise _error(name, f"one of {', '.join(map(repr, options))}", value)


def is_one_of(value: Any, *options: str) -> bool:
    """Whether the value is one of several strings; values of other kinds, even arrays, are not."""
    return isinstance(value, str) and value in options


def instance(name: str, value: Any, kind: type | tuple[type, ...], wanted: str) -> None:
    """ValueError unless the value is of a class."""
    if not isinstance(value, kind):
        raise _error(name, wanted, value)


def plain(value: Any) -> Any:
    """Numbers of any kind as Python's own, which kernels take; other values as they are."""
    if isinstance(value, bool) or not _is(Real, value):
        return bool(value) if isinstance(value, np.bool_) else value
    return int(value) if isinstance(value, Integral) else _float(value)


def path(name: str, value: Any) -> Path:
    """The name of a file, as a Path."""
    text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else ""
    odd = not isinstance(text, str) or "\0" in text or any("\ud800" <= letter <= "\udbff" for letter in text)
    if text and not odd:
        return Path(text)
    raise _error(name, "the name of a file", value)


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise _error(name, "True or False", value)


def _is(kind: type, value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, (bool, np.timedelta64))


def _float(value: Any) -> float:
    """As a float, infinite if it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _error(name: str, wanted: str, value: Any, hint: str = "") -> ValueError:
    return ValueError(f"{name} must be {wanted}, got {shown(value)}" + (f"; {hint}" if hint else ""))

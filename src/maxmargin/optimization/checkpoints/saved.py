"""Values of a checkpoint, checked as they are taken: each function raises a ValueError that says what is wrong.

A checkpoint may be damaged or made to deceive, and a run that resumes from it trusts what it has taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from maxmargin._messages import quoted
from maxmargin.structures.base import FloatArray

StateDict = dict[str, Any]
"""Arrays (float64, float32, int64, int32 or uint8) and numbers by name: the state of a solver or of a callback, as a
checkpoint stores it."""

MOST = 1 << 53
"""Counters stay below this: larger ones are not exact in the history."""


def value_of(saved: Mapping[str, Any], name: str) -> Any:
    """The value of a name."""
    if name not in saved:
        raise ValueError(f"{name} is missing")
    return saved[name]


def count(saved: Mapping[str, Any], name: str, *, most: int = MOST) -> int:
    """A number of things, from 0 to ``most``."""
    value = value_of(saved, name)
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"{name} must be a whole number from 0 to {most}, got {quoted(value)}")
    return int(value)


def number(saved: Mapping[str, Any], name: str, *, least: float = -math.inf, infinite: bool = False) -> float:
    """A number that is not NaN, finite unless ``infinite``, and at least ``least``."""
    value = value_of(saved, name)
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(f"{name} must be a number, got {quoted(value)}")
    try:
        found = float(value)
    except OverflowError:
        found = math.inf
    if math.isnan(found) or found < least or (math.isinf(found) and not infinite):
        wanted = "a number" if infinite else "a finite number"
        raise ValueError(f"{name} must be {wanted}{f' >= {least:g}' if least > -math.inf else ''}, got {found}")
    return found


def array(
    saved: Mapping[str, Any], name: str, dtype: Any, shape: tuple[int | None, ...], *, infinite: bool = False
) -> Any:
    """A copy of an array of a type and shape, in which None stands for any length; without NaN, finite as numbers."""
    value = value_of(saved, name)
    fits = isinstance(value, np.ndarray) and value.dtype == dtype and value.ndim == len(shape)
    if not fits or any(side is not None and side != found for side, found in zip(shape, value.shape, strict=True)):
        spelled = ", ".join("any" if side is None else str(side) for side in shape)
        given = f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else quoted(value)
        raise ValueError(f"{name} must be {np.dtype(dtype)} of shape ({spelled}), got {given}")
    if value.dtype.kind == "f" and not (~np.isnan(value) if infinite else np.isfinite(value)).all():
        raise ValueError(f"{name} has {'NaN' if infinite else 'numbers that are not finite'}")
    return np.array(value)


def vector(saved: Mapping[str, Any], name: str, length: int) -> FloatArray:
    """A copy of a vector of finite numbers."""
    found: FloatArray = array(saved, name, np.float64, (length,))
    return found


def part_of(saved: Mapping[str, Any], prefix: str) -> StateDict:
    """The entries whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in saved.items() if name.startswith(prefix)}


def require(holds: Any, message: str) -> None:
    """ValueError with the message unless a condition holds."""
    if not holds:
        raise ValueError(message)

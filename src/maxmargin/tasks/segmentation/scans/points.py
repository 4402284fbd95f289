"""Scans as given: points and attributes, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from maxmargin._messages import shown
from maxmargin.structures._arrays import array_of
from maxmargin.structures.base import FloatArray


@runtime_checkable
class HasPoints(Protocol):
    """A scan with ``points`` and named ``attributes`` per point, as the readers return it."""

    @property
    def points(self) -> Any:
        """Coordinates, shape ``(n, 3)``."""

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Values per point by name, shapes ``(n,)`` or ``(n, k)``."""


@dataclass(frozen=True, eq=False)
class CheckedPoints:
    """Points and attributes of one scan.

    Attributes:
        points: coordinates from the scan's lowest corner, so that large offsets cost no precision, shape ``(n, 3)``.
        attributes: finite values per point by name, shape ``(n, k)`` each.
    """

    points: FloatArray
    attributes: dict[str, FloatArray]


def checked_points(scan: Any, names: Sequence[str] | None = None, where: str = "") -> CheckedPoints:
    """Check one scan: an array of points, a pair of points and attributes, or an object with both.

    ``names``: the attributes wanted, None for all; others are left unread. ``where`` starts the errors.
    """
    points, attributes = _parts(scan)
    found = array_of(points, f"{where}points", "biufcOUSmMV", "numbers of shape (n, 3) with n >= 1")
    if found.ndim != 2 or found.shape[1] != 3 or not len(found) or found.dtype.kind not in "fiu":
        raise ValueError(f"{where}points must be numbers of shape (n, 3) with n >= 1, got {_described(found)}")
    coordinates = found.astype(np.float64)
    _require_finite(coordinates, where, "coordinates")
    coordinates -= coordinates.min(axis=0)
    missing = [name for name in names or () if name not in attributes]
    if missing:
        raise ValueError(
            f"{where}the scan has no attribute {shown(missing[0])}, which the training scans had; it has "
            f"{', '.join(map(repr, attributes)) or 'none'}; add it, or train without it"
        )
    wanted = sorted(attributes) if names is None else names
    return CheckedPoints(coordinates, {name: _values(name, attributes[name], len(found), where) for name in wanted})


def _parts(scan: Any) -> tuple[Any, Mapping[str, Any]]:
    if isinstance(scan, HasPoints):
        return scan.points, scan.attributes or {}
    if isinstance(scan, tuple) and len(scan) == 2 and (scan[1] is None or isinstance(scan[1], Mapping)):
        return scan[0], scan[1] or {}
    return scan, {}


def _values(name: str, values: Any, n: int, where: str) -> FloatArray:
    found = np.asarray(values)
    if found.ndim not in (1, 2) or len(found) != n or found.dtype.kind not in "fiub":
        raise ValueError(
            f"{where}attribute {shown(name)} must be numbers of shape ({n},) or ({n}, k), one row per point, "
            f"got {_described(found)}"
        )
    columns = found.reshape(n, -1).astype(np.float64)
    _require_finite(columns, where, f"attribute {shown(name)}")
    return columns


def _require_finite(values: FloatArray, where: str, what: str) -> None:
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        raise ValueError(
            f"{where}point {bad[0]}: {what} {values[bad[0]].tolist()} are not finite "
            f"({len(bad)} such points); remove these points or repair the values"
        )


def _described(found: np.ndarray[Any, Any]) -> str:
    return f"{found.dtype} of shape {found.shape}"

"""What the figures of 2005 and 2006 have in common: styles of the methods, panels, and observations to check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.papers.page import table
from benchmarks.papers.runs import Curve

STYLES: dict[str, dict[str, Any]] = {
    "dual-ex": {"color": "#1f77b4", "marker": ".", "markersize": 4},
    "reg-path": {"color": "#d62728", "marker": "o", "markersize": 4, "linestyle": "--"},
    "proj-grad": {"color": "#2ca02c", "marker": "x", "markersize": 4},
    "ave-perc": {"color": "#9467bd", "marker": "^", "markersize": 3},
}


class Claim(NamedTuple):
    """What the report observes, whether it is so here, and the numbers."""

    report: str
    holds: bool
    numbers: str

    def plain(self) -> dict[str, object]:
        """As JSON values."""
        return {**self._asdict(), "holds": bool(self.holds)}


def claims(rows: Sequence[Claim], paper: str = "the report") -> str:
    return table([paper, "here", "numbers"], [(row.report, "yes" if row.holds else "no", row.numbers) for row in rows])


def figure(width: float, height: float, rows: int, columns: int) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height), layout="constrained")
    panels = drawn.subplots(rows, columns, squeeze=False)
    for axes in panels.flat:
        axes.grid(True, alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
    return drawn, panels


def finish(axes: Any, letter: str, title: str, x: str, y: str) -> None:
    axes.set_title(f"({letter}) {title}", loc="left", fontsize=10)
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.legend(frameon=False, fontsize=7.5)


def excess(run: Curve, path: Curve) -> np.ndarray:
    """How far the run's hinge loss is above the exact points', in percent of that of zero weights."""
    return 100 * (run.at(path.norm, run.hinge) - path.hinge) / run.hinge[0]


def hump(run: Curve, path: Curve) -> Claim:
    above = excess(run, path)
    return Claim(
        "dual-ex's loss is close to reg-path's at small and at large norms, above it in between",
        bool(above[-1] < 0.6 * np.nanmax(above) and above[0] < 0.6 * np.nanmax(above)),
        f"above it by {above[0]:.2f}% of H(0) at norm {path.norm[0]:.2g}, {np.nanmax(above):.2f}% at norm "
        f"{path.norm[np.nanargmax(above)]:.2g}, {above[-1]:.2f}% at norm {path.norm[-1]:.3g}",
    )

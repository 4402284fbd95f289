"""Plots of runs; matplotlib is imported only here (``pip install maxmargin[plot]``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from maxmargin.solvers import Solution


def _figure(width: float, height: float) -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'maxmargin[plot]'") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def plot_convergence(solutions: Mapping[str, Solution], *, axes: Any = None, against: str = "seconds") -> Any:
    """Draw the certified relative gap of one or more runs.

    Args:
        solutions: name to solution; one line each.
        axes: matplotlib axes to draw on; a new figure by default.
        against: horizontal axis, "seconds", "iteration" or "projections".

    Returns:
        The matplotlib figure (``figure.savefig("gap.png")``).
    """
    if against not in ("seconds", "iteration", "projections"):
        raise ValueError(f'against must be "seconds", "iteration" or "projections", got {against!r}')
    if axes is None:
        _, axes = _figure(7.0, 4.5)
    for name, solution in solutions.items():
        x = np.array([getattr(record, against) for record in solution.history], dtype=np.float64)
        y = np.array([record.certificate.relative_gap for record in solution.history])
        shown = (y > 0) & np.isfinite(y)
        axes.plot(x[shown], y[shown], label=name, linewidth=1.8)
    axes.set_yscale("log")
    axes.set_xlabel(against)
    axes.set_ylabel("certified relative gap")
    axes.grid(True, which="major", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    if len(solutions) > 1:
        axes.legend(frameon=False)
    return axes.figure

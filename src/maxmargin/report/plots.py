"""Plots of runs and of errors; matplotlib is imported only here (``pip install maxmargin[plot]``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin.path import RegularizationPath
from maxmargin.solvers import Solution
from maxmargin.structures._arrays import integers
from maxmargin.structures.base import IntArray

EXACT, ITERATES = "#D55E00", "#0072B2"
"""Vermilion and blue, which people with any kind of color vision can tell apart; markers differ as well."""


def _figure(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'maxmargin[plot]'") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns)


def plot_convergence(solutions: Mapping[str, Solution], *, axes: Any = None, against: str = "seconds") -> Any:
    """Draw the certified relative gap of one or more runs.

    Args:
        solutions: name to solution; one line each.
        axes: matplotlib axes to draw on; a new figure by default.
        against: horizontal axis, "seconds", "iteration" or "projections".

    Returns:
        The matplotlib figure (``figure.savefig("gap.png")``).
    """
    if not isinstance(solutions, Mapping) or not all(isinstance(found, Solution) for found in solutions.values()):
        raise ValueError("solutions must map names to solutions, for example {'C = 1': model.solution_}")
    _checks.one_of("against", against, ("seconds", "iteration", "projections"))
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


def _text(name: str, value: Any) -> str:
    """A line of text for a picture."""
    if not isinstance(value, str) or len(value) > 1000 or not value.isprintable():
        raise ValueError(f"{name} must be a line of text of at most 1000 characters, got {shown(value)}")
    return value


def _spread(*panels: Any) -> None:
    """Logarithmic vertical axes, of all panels or of none, where the largest number is far above the smallest."""
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator

    lines = [np.asarray(line.get_ydata(), dtype=np.float64) for axes in panels for line in axes.lines]
    values = np.concatenate([np.zeros(0), *lines])
    if values.size and 0 < 8 * values.min() < values.max():
        for axes in panels:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.yaxis.set_minor_locator(NullLocator())
            axes.yaxis.set_major_formatter(FormatStrFormatter("%g"))


def plot_path(
    path: RegularizationPath,
    *,
    figure: Any = None,
    against: str = "norm",
    scale: str = "linear",
    error: str = "error",
    title: str = "",
) -> Any:
    """Draw the four panels of the 2005 report's Figure 6.

    Training hinge loss against the norm of the weights; that norm against the iterations of the dual-extragradient
    run; dev error and test error against the norm, without the zero weights at the start of the run, both on a
    logarithmic scale if errors differ widely. Stars mark the points that the dev data choose.

    Args:
        path: what :func:`maxmargin.regularization_path` returned.
        figure: an empty matplotlib figure to draw on; a new one by default.
        against: which norm, "norm" (Euclidean) or "l1_norm".
        scale: of the horizontal axes, "linear" or "log" (which leaves the zero weights out everywhere).
        error: the word for the errors, for example "alignment error rate".
        title: a line above the panels.

    Returns:
        The matplotlib figure (``figure.savefig("path.png")``).
    """
    if not isinstance(path, RegularizationPath):
        raise ValueError(f"path must be what mm.regularization_path returns, got a {type(path).__name__}")
    _checks.one_of("against", against, ("norm", "l1_norm"))
    _checks.one_of("scale", scale, ("linear", "log"))
    text, error = _text("title", title), _text("error", error)
    if figure is None:
        figure, panels = _figure(9.0, 7.0, 2, 2)
    else:
        panels = figure.subplots(2, 2)
    (loss, growth), (dev, test) = panels
    length = "norm of the weights" if against == "norm" else "sum of the absolute weights"
    kinds: list[tuple[Any, str, dict[str, Any]]] = [
        ("iterates", "dual-extragradient path", {"color": ITERATES, "marker": ".", "markersize": 5}),
        ("exact", "regularization path, exact points", {"color": EXACT, "marker": "o", "linestyle": "--"}),
    ]
    star: dict[str, Any] = {"marker": "*", "markersize": 12, "markeredgecolor": "black", "linestyle": "none"}
    judged = False
    for which, label, style in kinds:
        if not path.points(which):
            continue
        values = path.arrays(which)
        style = {"linewidth": 1.6, "label": label, **style}
        # Weights of rounding size predict by ties: such errors say nothing and would set the scale.
        left_zero = values[against] > 1e-6 * values[against].max()
        shown = left_zero if scale == "log" else np.ones_like(left_zero)
        loss.plot(values[against][shown], values["hinge"][shown], **style)
        if which == "iterates":
            growth.plot(values["iteration"][shown], values[against][shown], **style)
        for axes, name in ((dev, "dev_error"), (test, "test_error")):
            if not np.isfinite(values[name]).any():
                continue
            axes.plot(values[against][left_zero], 100 * values[name][left_zero], **style)
            if np.isfinite(values["dev_error"]).any():
                chosen, judged = path.best(which), True
                point = getattr(chosen, against), 100 * getattr(chosen, name)
                axes.plot(*point, color=style["color"], zorder=5, **star)
    for axes, letter, across, up in (
        (loss, "a", length, "training hinge loss"),
        (growth, "b", "iteration", length),
        (dev, "c", length, f"dev {error} (%)"),
        (test, "d", length, f"test {error} (%)"),
    ):
        if axes.lines:
            axes.set_xscale(scale)
        else:
            axes.text(0.5, 0.5, "no such data given", transform=axes.transAxes, ha="center", color="0.4")
        axes.set_title(f"({letter})", loc="left", fontsize=11)
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        axes.grid(True, which="major", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    _spread(dev, test)
    if judged:
        loss.plot([], [], color="white", label="chosen on the dev data", **star)
    handles, labels = loss.get_legend_handles_labels()
    if handles:
        columns = max(1, min(3, int(figure.bbox.width / figure.dpi / 2.5)))  # an entry is 2.5 inches wide
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
    if text:
        figure.suptitle(text)
    return figure


def plot_confusion(counts: IntArray, labels: Sequence[str], *, axes: Any = None, title: str = "") -> Any:
    """Draw a table of confusions: shades by share of the gold label, numbers in the cells.

    Args:
        counts: by gold label (rows) and predicted label (columns), shape ``(K, K)``.
        labels: their names.
        axes: matplotlib axes to draw on; those of a new figure by default.
        title: a line above the table.

    Returns:
        The matplotlib figure (``figure.savefig("confusions.png")``).
    """
    text = _text("title", title)
    labels = [_text("labels", label) for label in _checks.listed("labels", labels, "a list of names")]
    k, counts = len(labels), integers(counts, "counts")
    if not k or counts.shape != (k, k) or (counts < 0).any():
        raise ValueError(f"counts must have a row and a column for each of the {k} labels, got shape {counts.shape}")
    if axes is None:
        side = 2.2 + 0.42 * max(k, 4)
        _, axes = _figure(side, side)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    # The square root shows rare errors beside a diagonal near 1.
    axes.imshow(np.sqrt(shares), cmap="Blues", vmin=0.0, vmax=1.0)
    for row, column in zip(*np.nonzero(counts), strict=True):
        color = "white" if shares[row, column] > 0.4 else "black"
        axes.text(column, row, _short(int(counts[row, column])), ha="center", va="center", fontsize=7, color=color)
    axes.set_xticks(range(k), labels, rotation=90, fontsize=8, parse_math=False)
    axes.set_yticks(range(k), labels, fontsize=8, parse_math=False)
    axes.set_xlabel("predicted")
    axes.set_ylabel("gold")
    axes.set_xticks(np.arange(k + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(k + 1) - 0.5, minor=True)
    axes.grid(True, which="minor", color="white", linewidth=0.8)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    if text:
        axes.set_title(text, fontsize=10, parse_math=False)
    return axes.figure


def _short(count: int) -> str:
    """A count in at most four characters, for a small cell."""
    for limit, unit, suffix in ((10_000, 1, ""), (1_000_000, 1_000, "k"), (1_000_000_000, 1_000_000, "M")):
        if count < limit:
            return f"{count // unit}{suffix}"
    return f"{count / 1e9:.2g}G"

"""Plots of runs and of errors."""

from maxmargin.report.plots import plot_confusion, plot_convergence, plot_path

__all__ = ["plot_confusion", "plot_convergence", "plot_path"]

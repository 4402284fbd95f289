"""Plots of runs."""

from maxmargin.report.plots import plot_convergence, plot_path

__all__ = ["plot_convergence", "plot_path"]

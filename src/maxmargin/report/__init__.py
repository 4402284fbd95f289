"""Plots of runs."""

from maxmargin.report.plots import plot_convergence

__all__ = ["plot_convergence"]

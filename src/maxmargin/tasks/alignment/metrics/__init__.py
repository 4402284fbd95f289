"""Metrics of predicted links, and the symmetrization of directed ones."""

from maxmargin.tasks.alignment.metrics.files import evaluate_files, symmetrize_files
from maxmargin.tasks.alignment.metrics.scores import Scores, compare_scores, evaluate, interval_of
from maxmargin.tasks.alignment.metrics.symmetrization import METHODS, symmetrize

__all__ = [
    "METHODS",
    "Scores",
    "compare_scores",
    "evaluate",
    "evaluate_files",
    "interval_of",
    "symmetrize",
    "symmetrize_files",
]

"""The training problem, and the hinges that turn violated margins into numbers."""

from maxmargin.problem.good import CandidateSets, GoodOutputs
from maxmargin.problem.good_paths import PathSets
from maxmargin.problem.hinges import RESCALINGS, SLACKS, InexactError, MostViolated
from maxmargin.problem.problem import Problem

__all__ = [
    "RESCALINGS",
    "SLACKS",
    "CandidateSets",
    "GoodOutputs",
    "InexactError",
    "MostViolated",
    "PathSets",
    "Problem",
]

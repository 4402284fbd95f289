"""The training problem, and the hinges that turn violated margins into numbers."""

from maxmargin.problem.base import BaseProblem
from maxmargin.problem.good import CandidateSets, GoodOutputs, GoodSets
from maxmargin.problem.good_paths import PathSets
from maxmargin.problem.hinges import RESCALINGS, ROUNDING, SLACKS, Hinge, InexactError, MostViolated
from maxmargin.problem.partial import PartialOutputs
from maxmargin.problem.problem import Problem

__all__ = [
    "RESCALINGS",
    "ROUNDING",
    "SLACKS",
    "BaseProblem",
    "CandidateSets",
    "GoodOutputs",
    "GoodSets",
    "Hinge",
    "InexactError",
    "MostViolated",
    "PartialOutputs",
    "PathSets",
    "Problem",
]

"""Algorithms that minimise ``penalty(w) + H(w)``, one file each, and the one loop that runs them."""

from maxmargin.solvers.auto import choose
from maxmargin.solvers.base import Counters, Solver, Start
from maxmargin.solvers.callbacks import JsonLines, Progress, Record, Validation
from maxmargin.solvers.certificate import Certificate, Proposal, certify
from maxmargin.solvers.column_generation import ColumnGeneration
from maxmargin.solvers.dual_extragradient import DualExtragradient
from maxmargin.solvers.exact import Exact
from maxmargin.solvers.extragradient import Extragradient
from maxmargin.solvers.geometry import Entropic, Euclidean, Geometry
from maxmargin.solvers.loop import Solution, Status, Stop, solve

__all__ = [
    "Certificate",
    "ColumnGeneration",
    "Counters",
    "DualExtragradient",
    "Entropic",
    "Euclidean",
    "Exact",
    "Extragradient",
    "Geometry",
    "JsonLines",
    "Progress",
    "Proposal",
    "Record",
    "Solution",
    "Solver",
    "Start",
    "Status",
    "Stop",
    "Validation",
    "certify",
    "choose",
    "solve",
]

"""Algorithms that minimise ``penalty(w) + H(w)``, one file each, and the one loop that runs them."""

from maxmargin.solvers.auto import choose
from maxmargin.solvers.base import Counters, Solver, Start
from maxmargin.solvers.block_frank_wolfe import BlockFrankWolfe
from maxmargin.solvers.callbacks import JsonLines, Progress, Record, Validation
from maxmargin.solvers.certificate import Certificate, Proposal, certify
from maxmargin.solvers.checkpoint import Checkpoint, CheckpointError
from maxmargin.solvers.column_generation import ColumnGeneration
from maxmargin.solvers.cutting_plane import CuttingPlane
from maxmargin.solvers.dual_extragradient import DualExtragradient
from maxmargin.solvers.exact import Exact
from maxmargin.solvers.exponentiated_gradient import ExponentiatedGradient
from maxmargin.solvers.extragradient import Extragradient
from maxmargin.solvers.geometry import Entropic, Euclidean, Geometry
from maxmargin.solvers.loop import Solution, Status, Stop, solve
from maxmargin.solvers.masses import Masses
from maxmargin.solvers.mira import Mira
from maxmargin.solvers.perceptron import AveragedPerceptron
from maxmargin.solvers.projected_gradient import ProjectedGradient
from maxmargin.solvers.simplicial_decomposition import SimplicialDecomposition
from maxmargin.solvers.subgradient import Subgradient

__all__ = [
    "AveragedPerceptron",
    "BlockFrankWolfe",
    "Certificate",
    "Checkpoint",
    "CheckpointError",
    "ColumnGeneration",
    "Counters",
    "CuttingPlane",
    "DualExtragradient",
    "Entropic",
    "Euclidean",
    "Exact",
    "ExponentiatedGradient",
    "Extragradient",
    "Geometry",
    "JsonLines",
    "Masses",
    "Mira",
    "Progress",
    "ProjectedGradient",
    "Proposal",
    "Record",
    "SimplicialDecomposition",
    "Solution",
    "Solver",
    "Start",
    "Status",
    "Stop",
    "Subgradient",
    "Validation",
    "certify",
    "choose",
    "solve",
]

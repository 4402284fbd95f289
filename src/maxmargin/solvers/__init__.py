"""Algorithms that minimize ``penalty(w) + H(w)``, one file each, and the one loop that runs them."""

from maxmargin.optimization.active_set import ActiveSet
from maxmargin.optimization.base import Counters, Solver, Start
from maxmargin.optimization.callbacks import JsonLines, ProgressBar, Record, Validation
from maxmargin.optimization.certificate import Certificate, Proposal, certify
from maxmargin.optimization.checkpoint import Checkpoint, CheckpointError
from maxmargin.optimization.loop import solve
from maxmargin.optimization.solution import Solution
from maxmargin.optimization.stopping import Status, Stop
from maxmargin.solvers.auto import choose
from maxmargin.solvers.decomposition.column_generation import ColumnGeneration
from maxmargin.solvers.decomposition.cutting_plane import CuttingPlane
from maxmargin.solvers.decomposition.simplicial_decomposition import SimplicialDecomposition
from maxmargin.solvers.first_order.dual_extragradient import DualExtragradient
from maxmargin.solvers.first_order.exponentiated_gradient import ExponentiatedGradient
from maxmargin.solvers.first_order.extragradient import Extragradient
from maxmargin.solvers.first_order.geometry import Entropic, Euclidean, Geometry
from maxmargin.solvers.first_order.projected_gradient import ProjectedGradient
from maxmargin.solvers.online.block_frank_wolfe import BlockFrankWolfe
from maxmargin.solvers.online.mira import Mira
from maxmargin.solvers.online.perceptron import AveragedPerceptron
from maxmargin.solvers.online.subgradient import Subgradient
from maxmargin.solvers.reference.exact import Exact

__all__ = [
    "ActiveSet",
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
    "Mira",
    "ProgressBar",
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

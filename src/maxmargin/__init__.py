"""Large-margin structured prediction with certified duality gaps."""

from maxmargin import features, losses, packing, regions, report, solvers, structures
from maxmargin._threads import threads
from maxmargin._version import __version__
from maxmargin.estimators import AssociativeSVM, ChainSVM, CutSVM, GraphSVM, MatchingSVM, StructuredSVM
from maxmargin.model import Model, Relaxation, load
from maxmargin.model_file import ModelFileError
from maxmargin.packing import Bipartite, Graph, Sequence
from maxmargin.problem import Problem
from maxmargin.solvers import DualExtragradient, Exact, Extragradient, Solution, Stop, solve

__all__ = [
    "AssociativeSVM",
    "Bipartite",
    "ChainSVM",
    "CutSVM",
    "DualExtragradient",
    "Exact",
    "Extragradient",
    "Graph",
    "GraphSVM",
    "MatchingSVM",
    "Model",
    "ModelFileError",
    "Problem",
    "Relaxation",
    "Sequence",
    "Solution",
    "Stop",
    "StructuredSVM",
    "__version__",
    "features",
    "load",
    "losses",
    "packing",
    "regions",
    "report",
    "solve",
    "solvers",
    "structures",
    "threads",
]

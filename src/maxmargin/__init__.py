"""Large-margin structured prediction with certified duality gaps."""

from maxmargin import features, losses, packing, regions, report, solvers, structures
from maxmargin._threads import threads
from maxmargin._version import __version__
from maxmargin.estimators import ChainSVM, CutSVM, MatchingSVM, StructuredSVM, TreeSVM
from maxmargin.model import Model, load
from maxmargin.model_file import ModelFileError
from maxmargin.packing import Bipartite, Graph, Sequence
from maxmargin.problem import Problem
from maxmargin.solvers import DualExtragradient, Exact, Extragradient, Solution, Stop, solve

__all__ = [
    "Bipartite",
    "ChainSVM",
    "CutSVM",
    "DualExtragradient",
    "Exact",
    "Extragradient",
    "Graph",
    "MatchingSVM",
    "Model",
    "ModelFileError",
    "Problem",
    "Sequence",
    "Solution",
    "Stop",
    "StructuredSVM",
    "TreeSVM",
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

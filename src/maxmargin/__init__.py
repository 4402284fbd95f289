"""Large-margin structured prediction with certified duality gaps."""

from maxmargin import features, losses, packing, regions, report, solvers, structures
from maxmargin._threads import threads
from maxmargin._version import __version__
from maxmargin.estimators import (
    AssociativeSVM,
    CandidatesSVM,
    ChainSVM,
    CutSVM,
    GraphSVM,
    MatchingSVM,
    ProgramSVM,
    StructuredSVM,
    TreeSVM,
)
from maxmargin.model import Model, Relaxation, load
from maxmargin.model_file import ModelFileError
from maxmargin.packing import Bipartite, Graph, Program, Sequence
from maxmargin.path import PathPoint, RegularizationPath, regularization_path
from maxmargin.problem import Problem
from maxmargin.solvers import (
    ColumnGeneration,
    DualExtragradient,
    Entropic,
    Euclidean,
    Exact,
    Extragradient,
    Solution,
    Stop,
    solve,
)

__all__ = [
    "AssociativeSVM",
    "Bipartite",
    "CandidatesSVM",
    "ChainSVM",
    "ColumnGeneration",
    "CutSVM",
    "DualExtragradient",
    "Entropic",
    "Euclidean",
    "Exact",
    "Extragradient",
    "Graph",
    "GraphSVM",
    "MatchingSVM",
    "Model",
    "ModelFileError",
    "PathPoint",
    "Problem",
    "Program",
    "ProgramSVM",
    "RegularizationPath",
    "Relaxation",
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
    "regularization_path",
    "report",
    "solve",
    "solvers",
    "structures",
    "threads",
]

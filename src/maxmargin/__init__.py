"""Large-margin structured prediction with certified duality gaps."""

from maxmargin import features, losses, packing, regions, report, solvers, structures
from maxmargin._threads import threads
from maxmargin._version import __version__
from maxmargin.estimators import (
    AssociativeSVM,
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
    AveragedPerceptron,
    BlockFrankWolfe,
    CuttingPlane,
    DualExtragradient,
    Entropic,
    Euclidean,
    Exact,
    ExponentiatedGradient,
    Extragradient,
    Mira,
    ProjectedGradient,
    SimplicialDecomposition,
    Solution,
    Stop,
    Subgradient,
    solve,
)

__all__ = [
    "AssociativeSVM",
    "AveragedPerceptron",
    "Bipartite",
    "BlockFrankWolfe",
    "ChainSVM",
    "CutSVM",
    "CuttingPlane",
    "DualExtragradient",
    "Entropic",
    "Euclidean",
    "Exact",
    "ExponentiatedGradient",
    "Extragradient",
    "Graph",
    "GraphSVM",
    "MatchingSVM",
    "Mira",
    "Model",
    "ModelFileError",
    "PathPoint",
    "Problem",
    "Program",
    "ProgramSVM",
    "ProjectedGradient",
    "RegularizationPath",
    "Relaxation",
    "Sequence",
    "SimplicialDecomposition",
    "Solution",
    "Stop",
    "StructuredSVM",
    "Subgradient",
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

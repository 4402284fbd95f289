"""scikit-learn manners over the library: ``fit``, ``predict``, ``score``, ``clone``, ``GridSearchCV``."""

from maxmargin.estimators.associative import AssociativeSVM
from maxmargin.estimators.base import StructuredSVM
from maxmargin.estimators.candidates import CandidatesSVM
from maxmargin.estimators.chain import ChainSVM
from maxmargin.estimators.cut import CutSVM
from maxmargin.estimators.graph import GraphSVM
from maxmargin.estimators.matching import MatchingSVM
from maxmargin.estimators.program import ProgramSVM
from maxmargin.estimators.tree import TreeSVM

__all__ = [
    "AssociativeSVM",
    "CandidatesSVM",
    "ChainSVM",
    "CutSVM",
    "GraphSVM",
    "MatchingSVM",
    "ProgramSVM",
    "StructuredSVM",
    "TreeSVM",
]

"""scikit-learn manners over the library: ``fit``, ``predict``, ``score``, ``clone``, ``GridSearchCV``."""

from maxmargin.estimators.base import StructuredSVM
from maxmargin.estimators.chain import ChainSVM
from maxmargin.estimators.cut import CutSVM
from maxmargin.estimators.matching import MatchingSVM
from maxmargin.estimators.program import ProgramSVM
from maxmargin.estimators.tree import TreeSVM

__all__ = ["ChainSVM", "CutSVM", "MatchingSVM", "ProgramSVM", "StructuredSVM", "TreeSVM"]

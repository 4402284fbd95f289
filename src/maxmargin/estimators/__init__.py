"""scikit-learn manners over the library: ``fit``, ``predict``, ``score``, ``clone``, ``GridSearchCV``."""

from maxmargin.estimators.associative import AssociativeSVM
from maxmargin.estimators.base import StructuredSVM
from maxmargin.estimators.chain import ChainSVM
from maxmargin.estimators.cut import CutSVM
from maxmargin.estimators.graph import GraphSVM
from maxmargin.estimators.matching import MatchingSVM

__all__ = ["AssociativeSVM", "ChainSVM", "CutSVM", "GraphSVM", "MatchingSVM", "StructuredSVM"]

"""Estimators for scikit-learn: ``fit``, ``predict``, ``score``, ``clone``, ``GridSearchCV``."""

from maxmargin.estimators.associative import AssociativeSVM as AssociativeSVM
from maxmargin.estimators.base import StructuredSVM as StructuredSVM
from maxmargin.estimators.candidates import CandidatesSVM as CandidatesSVM
from maxmargin.estimators.chain import ChainSVM as ChainSVM
from maxmargin.estimators.cut import CutSVM as CutSVM
from maxmargin.estimators.dependency import DependencySVM as DependencySVM
from maxmargin.estimators.edits import EditSVM as EditSVM
from maxmargin.estimators.grammar import GrammarSVM as GrammarSVM
from maxmargin.estimators.graph import GraphSVM as GraphSVM
from maxmargin.estimators.latent import LatentSVM as LatentSVM
from maxmargin.estimators.lattice import LatticeSVM as LatticeSVM
from maxmargin.estimators.matching import MatchingSVM as MatchingSVM
from maxmargin.estimators.pairing import PairingSVM as PairingSVM
from maxmargin.estimators.program import ProgramSVM as ProgramSVM
from maxmargin.estimators.segments import SegmentSVM as SegmentSVM
from maxmargin.estimators.tree import TreeSVM as TreeSVM

"""Estimators for scikit-learn: ``fit``, ``predict``, ``score``, ``clone``, ``GridSearchCV``."""

from maxmargin.estimators.base import StructuredSVM as StructuredSVM
from maxmargin.estimators.candidates import CandidatesSVM as CandidatesSVM
from maxmargin.estimators.cut import CutSVM as CutSVM
from maxmargin.estimators.deductions.edits import EditSVM as EditSVM
from maxmargin.estimators.deductions.grammar import GrammarSVM as GrammarSVM
from maxmargin.estimators.deductions.segments import SegmentSVM as SegmentSVM
from maxmargin.estimators.dependency import DependencySVM as DependencySVM
from maxmargin.estimators.labelings.associative import AssociativeSVM as AssociativeSVM
from maxmargin.estimators.labelings.chain import ChainSVM as ChainSVM
from maxmargin.estimators.labelings.graph import GraphSVM as GraphSVM
from maxmargin.estimators.labelings.tree import TreeSVM as TreeSVM
from maxmargin.estimators.latent import LatentSVM as LatentSVM
from maxmargin.estimators.lattice import LatticeSVM as LatticeSVM
from maxmargin.estimators.matchings.matching import MatchingSVM as MatchingSVM
from maxmargin.estimators.matchings.pairing import PairingSVM as PairingSVM
from maxmargin.estimators.program import ProgramSVM as ProgramSVM

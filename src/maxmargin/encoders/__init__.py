"""From lists of user data to packed batches and back."""

from maxmargin.encoders.associative import AssociativeEncoder
from maxmargin.encoders.base import Batch, Encoder
from maxmargin.encoders.candidates import CandidatesEncoder
from maxmargin.encoders.chain import ChainEncoder
from maxmargin.encoders.cut import CutEncoder
from maxmargin.encoders.graph import GraphEncoder
from maxmargin.encoders.inputs import Bipartite, FeatureSequence, Graph, Program
from maxmargin.encoders.matching import MatchingEncoder
from maxmargin.encoders.parts import PartsEncoder
from maxmargin.encoders.program import ProgramEncoder
from maxmargin.encoders.tree import TreeEncoder

__all__ = [
    "AssociativeEncoder",
    "Batch",
    "Bipartite",
    "CandidatesEncoder",
    "ChainEncoder",
    "CutEncoder",
    "Encoder",
    "FeatureSequence",
    "Graph",
    "GraphEncoder",
    "MatchingEncoder",
    "PartsEncoder",
    "Program",
    "ProgramEncoder",
    "TreeEncoder",
]

"""Output spaces: the polytopes whose vertices are the outputs of a batch."""

from maxmargin.structures.associative import Associative
from maxmargin.structures.base import Block, Labeling, Points, PointStatus, Polytope, Structure
from maxmargin.structures.candidates import Candidates
from maxmargin.structures.chain import Chain
from maxmargin.structures.cut import Cut
from maxmargin.structures.graph import PairwiseGraph
from maxmargin.structures.junction import JunctionTree
from maxmargin.structures.linear_program import LinearProgram
from maxmargin.structures.matching import Matching
from maxmargin.structures.second_order import SecondOrderChain
from maxmargin.structures.transitions import TransitionConstraints
from maxmargin.structures.tree import Tree

__all__ = [
    "Associative",
    "Block",
    "Candidates",
    "Chain",
    "Cut",
    "JunctionTree",
    "Labeling",
    "LinearProgram",
    "Matching",
    "PairwiseGraph",
    "PointStatus",
    "Points",
    "Polytope",
    "SecondOrderChain",
    "Structure",
    "TransitionConstraints",
    "Tree",
]

"""What outputs are legal."""

from maxmargin.structures.associative import Associative
from maxmargin.structures.base import Block, Labelling, Points, PointStatus, Polytope, Structure
from maxmargin.structures.candidates import Candidates
from maxmargin.structures.chain import Chain
from maxmargin.structures.cut import Cut
from maxmargin.structures.graph import Graph
from maxmargin.structures.junction import JunctionTree
from maxmargin.structures.legality import Legality
from maxmargin.structures.linear_program import LinearProgram
from maxmargin.structures.matching import Matching
from maxmargin.structures.second_order import SecondOrderChain
from maxmargin.structures.tree import Tree

__all__ = [
    "Associative",
    "Block",
    "Candidates",
    "Chain",
    "Cut",
    "Graph",
    "JunctionTree",
    "Labelling",
    "Legality",
    "LinearProgram",
    "Matching",
    "PointStatus",
    "Points",
    "Polytope",
    "SecondOrderChain",
    "Structure",
    "Tree",
]

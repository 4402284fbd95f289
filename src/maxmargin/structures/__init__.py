"""What outputs are legal."""

from maxmargin.structures.associative import Associative
from maxmargin.structures.base import Block, Points, PointStatus, Polytope, Structure
from maxmargin.structures.chain import Chain
from maxmargin.structures.cut import Cut
from maxmargin.structures.graph import Graph
from maxmargin.structures.matching import Matching

__all__ = [
    "Associative",
    "Block",
    "Chain",
    "Cut",
    "Graph",
    "Matching",
    "PointStatus",
    "Points",
    "Polytope",
    "Structure",
]

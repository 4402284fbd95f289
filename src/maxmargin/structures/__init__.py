"""What outputs are legal."""

from maxmargin.structures.base import Block, Points, PointStatus, Polytope, Structure
from maxmargin.structures.chain import Chain
from maxmargin.structures.cut import Cut
from maxmargin.structures.linear_program import LinearProgram
from maxmargin.structures.matching import Matching

__all__ = ["Block", "Chain", "Cut", "LinearProgram", "Matching", "PointStatus", "Points", "Polytope", "Structure"]

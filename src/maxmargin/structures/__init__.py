"""What outputs are legal."""

from maxmargin.structures.base import Block, Points, PointStatus, Polytope, Structure

__all__ = ["Block", "PointStatus", "Points", "Polytope", "Structure"]

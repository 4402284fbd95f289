"""From lists of user data to packed batches and back."""

from maxmargin.packing.associative import AssociativePacker
from maxmargin.packing.base import Packed, Packer
from maxmargin.packing.chain import ChainPacker
from maxmargin.packing.cut import CutPacker
from maxmargin.packing.graph import GraphPacker
from maxmargin.packing.inputs import Bipartite, Graph, Sequence
from maxmargin.packing.matching import MatchingPacker
from maxmargin.packing.parts import PartsPacker

PACKERS: dict[str, type[Packer]] = {
    packer.kind: packer for packer in (AssociativePacker, ChainPacker, CutPacker, GraphPacker, MatchingPacker)
}
"""The packers that a model file can name."""

__all__ = [
    "PACKERS",
    "AssociativePacker",
    "Bipartite",
    "ChainPacker",
    "CutPacker",
    "Graph",
    "GraphPacker",
    "MatchingPacker",
    "Packed",
    "Packer",
    "PartsPacker",
    "Sequence",
]

"""From lists of user data to packed batches and back."""

from maxmargin.packing.associative import AssociativePacker
from maxmargin.packing.base import Packed, Packer
from maxmargin.packing.candidates import CandidatesPacker
from maxmargin.packing.chain import ChainPacker
from maxmargin.packing.cut import CutPacker
from maxmargin.packing.graph import GraphPacker
from maxmargin.packing.inputs import Bipartite, Graph, Program, Sequence
from maxmargin.packing.matching import MatchingPacker
from maxmargin.packing.parts import PartsPacker
from maxmargin.packing.program import ProgramPacker
from maxmargin.packing.tree import TreePacker

PACKERS: dict[str, type[Packer]] = {
    packer.kind: packer
    for packer in (
        AssociativePacker,
        CandidatesPacker,
        ChainPacker,
        CutPacker,
        GraphPacker,
        MatchingPacker,
        ProgramPacker,
        TreePacker,
    )
}
"""The packers that a model file can name."""

__all__ = [
    "PACKERS",
    "AssociativePacker",
    "Bipartite",
    "CandidatesPacker",
    "ChainPacker",
    "CutPacker",
    "Graph",
    "GraphPacker",
    "MatchingPacker",
    "Packed",
    "Packer",
    "PartsPacker",
    "Program",
    "ProgramPacker",
    "Sequence",
    "TreePacker",
]

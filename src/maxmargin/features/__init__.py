"""Linear maps between weights and the packed parts of a batch."""

from maxmargin.features.base import Features, operator_norm
from maxmargin.features.graph import TiedRows
from maxmargin.features.kernel import Kernel
from maxmargin.features.parts import Beside, PartFeatures, Stacked
from maxmargin.features.tied import ChainFeatures
from maxmargin.features.tree import TreeFeatures

__all__ = [
    "Beside",
    "ChainFeatures",
    "Features",
    "Kernel",
    "PartFeatures",
    "Stacked",
    "TiedRows",
    "TreeFeatures",
    "operator_norm",
]

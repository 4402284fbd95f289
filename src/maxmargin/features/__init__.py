"""Linear maps between weights and the packed parts of a batch."""

from maxmargin.features.base import Features, operator_norm
from maxmargin.features.cliques import CliqueFeatures
from maxmargin.features.kernel import Kernel
from maxmargin.features.parts import Beside, PartFeatures, Stacked
from maxmargin.features.supported import Support, SupportedRows
from maxmargin.features.tied import ChainFeatures, PairwiseFeatures, SecondOrderFeatures, TiedRows
from maxmargin.features.tree import TreeFeatures

__all__ = [
    "Beside",
    "ChainFeatures",
    "CliqueFeatures",
    "Features",
    "Kernel",
    "PairwiseFeatures",
    "PartFeatures",
    "SecondOrderFeatures",
    "Stacked",
    "Support",
    "SupportedRows",
    "TiedRows",
    "TreeFeatures",
    "operator_norm",
]

"""Linear maps between weights and the packed parts of a batch."""

from maxmargin.features.base import Features, operator_norm
from maxmargin.features.parts import PartFeatures, Stacked
from maxmargin.features.tied import ChainFeatures
from maxmargin.features.tree import TreeFeatures

__all__ = ["ChainFeatures", "Features", "PartFeatures", "Stacked", "TreeFeatures", "operator_norm"]

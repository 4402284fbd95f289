"""Linear maps between weights and the packed parts of a batch."""

from maxmargin.features.base import Features, operator_norm
from maxmargin.features.graph import TiedRows
from maxmargin.features.parts import PartFeatures, Stacked
from maxmargin.features.tied import ChainFeatures

__all__ = ["ChainFeatures", "Features", "PartFeatures", "Stacked", "TiedRows", "operator_norm"]

"""Linear maps between weights and the packed parts of a batch."""

from maxmargin.features.base import Features as Features
from maxmargin.features.base import operator_norm as operator_norm
from maxmargin.features.cliques import CliqueFeatures as CliqueFeatures
from maxmargin.features.kernel import Kernel as Kernel
from maxmargin.features.parts import Beside as Beside
from maxmargin.features.parts import PartFeatures as PartFeatures
from maxmargin.features.parts import Stacked as Stacked
from maxmargin.features.supported import Support as Support
from maxmargin.features.supported import SupportedRows as SupportedRows
from maxmargin.features.tied import ChainFeatures as ChainFeatures
from maxmargin.features.tied import PairwiseFeatures as PairwiseFeatures
from maxmargin.features.tied import SecondOrderFeatures as SecondOrderFeatures
from maxmargin.features.tied import TiedRows as TiedRows
from maxmargin.features.tree import TreeFeatures as TreeFeatures

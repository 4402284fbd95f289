"""One way from encoded examples to a model: settings, training, and the choice of settings on held-out data."""

from maxmargin.datasets.examples import Examples
from maxmargin.training.good import BestGood
from maxmargin.training.hooks import Hooks
from maxmargin.training.settings import Settings
from maxmargin.training.train import train, train_examples

__all__ = ["BestGood", "Examples", "Hooks", "Settings", "train", "train_examples"]

"""Reranking: choose the best of n hypotheses, or the best path of a lattice, by weights tuned to a metric."""

import lazy_loader

# Prediction must not import training or scikit-learn: names are imported when they are first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

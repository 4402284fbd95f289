"""Explanations of predictions: what parts and features contribute to the margin of an output over its runner-up."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

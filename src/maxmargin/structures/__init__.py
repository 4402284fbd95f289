"""Output spaces: the polytopes whose vertices are the outputs of a batch."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

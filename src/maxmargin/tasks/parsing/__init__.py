"""Dependency parsing: treebanks in CoNLL-U, large-margin parsers, attachment scores.

The public names are listed in ``__init__.pyi`` and imported when they are first used: prediction must not import
training or scikit-learn.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

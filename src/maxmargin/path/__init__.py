"""The regularization path: :func:`regularization_path` and what it returns."""

from maxmargin.path.compute import regularization_path
from maxmargin.path.result import PathPoint, RegularizationPath

__all__ = ["PathPoint", "RegularizationPath", "regularization_path"]

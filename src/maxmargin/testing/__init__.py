"""Checks for authors of structures and feature maps."""

from maxmargin.testing.check import check_structure
from maxmargin.testing.features import check_features

__all__ = ["check_features", "check_structure"]

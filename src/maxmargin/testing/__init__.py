"""Enumeration oracles, slow twins of the kernels, reference solvers: for tests and for adding a structure."""

from maxmargin.testing.check import check_structure

__all__ = ["check_structure"]

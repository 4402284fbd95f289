"""Enumeration oracles, slow twins of the kernels, reference solvers: for tests and for adding a structure."""

"""Enumeration oracles, slow twins of the kernels and reference solvers: for tests, and for people who add a structure."""

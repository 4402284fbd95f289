"""Enumeration of outputs, slow twins of kernels and metrics, and reference solvers: independent answers for tests."""

"""Enumeration of the outputs of each structure, and slow twins of its kernels."""

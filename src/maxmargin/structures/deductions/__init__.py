"""Structures whose outputs are derivations of a dynamic program: one set of kernels for all of them."""

"""Formats of lattices: PLF, HTK SLF and JSON lines."""

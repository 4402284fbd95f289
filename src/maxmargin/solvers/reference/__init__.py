"""Exact solutions by conic programs, for small problems and for tests."""

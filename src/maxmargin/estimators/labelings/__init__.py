"""Estimators of labelings: a class for each node of a chain, a tree or a graph."""

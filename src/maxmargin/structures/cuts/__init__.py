"""Cuts: a yes or no for each node, attracted to its neighbors, pairwise or in cliques."""

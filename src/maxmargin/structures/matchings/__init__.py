"""Matchings: links between two sides, pairs in any graph."""

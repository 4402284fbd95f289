"""Estimators of matchings: links between two sides, pairs in any graph."""

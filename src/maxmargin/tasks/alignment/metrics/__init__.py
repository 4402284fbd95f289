"""Metrics of predicted links, and the symmetrization of directed ones."""

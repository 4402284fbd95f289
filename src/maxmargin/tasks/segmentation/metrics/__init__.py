"""Metrics of predicted labels of pixels and points."""

"""Projections, k-best lists and slack rescaling of any structure, by its argmax alone."""

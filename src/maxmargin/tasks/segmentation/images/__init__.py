"""Extraction of graphs and features from images and stacks of images."""

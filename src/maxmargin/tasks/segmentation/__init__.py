"""Segmentation of images and 3-D scans by learned graph cuts."""

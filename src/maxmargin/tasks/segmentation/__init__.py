"""Segmentation of images and of 3-D scans by learned graph cuts."""

"""Outputs that are the 0/1 solutions of linear constraints."""

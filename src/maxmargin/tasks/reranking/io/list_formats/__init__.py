"""Formats of n-best lists: Moses, tables, JSON lines and Parquet, and plain lines."""

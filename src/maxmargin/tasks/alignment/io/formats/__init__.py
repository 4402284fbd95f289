"""Formats of links, one file each."""

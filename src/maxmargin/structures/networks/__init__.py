"""Graphs with cycles: associative and general networks, by linear relaxation."""

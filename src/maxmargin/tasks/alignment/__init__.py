"""Word alignment: which words of a sentence pair translate each other."""

from maxmargin.tasks.alignment.links import Reference

__all__ = ["Reference"]

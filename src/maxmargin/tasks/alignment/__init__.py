"""Word alignment: which words of a sentence pair translate each other."""

from maxmargin.tasks.alignment.corpus import Corpus, load_corpus
from maxmargin.tasks.alignment.links import Reference

__all__ = ["Corpus", "Reference", "load_corpus"]

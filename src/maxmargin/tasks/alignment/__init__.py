"""Word alignment: which words of a sentence pair translate each other."""

from maxmargin.tasks.alignment.aligner import WordAligner, load_aligner
from maxmargin.tasks.alignment.corpus import Corpus, load_corpus
from maxmargin.tasks.alignment.files import (
    Bitext,
    FileError,
    read_bitext,
    read_links,
    read_references,
    write_links,
)
from maxmargin.tasks.alignment.links import Prediction, Reference, as_links
from maxmargin.tasks.alignment.metrics import Scores, evaluate
from maxmargin.tasks.alignment.opinions import BitextModels
from maxmargin.tasks.alignment.sentences import SentencePair

__all__ = [
    "Bitext",
    "BitextModels",
    "Corpus",
    "FileError",
    "Prediction",
    "Reference",
    "Scores",
    "SentencePair",
    "WordAligner",
    "as_links",
    "evaluate",
    "load_aligner",
    "load_corpus",
    "read_bitext",
    "read_links",
    "read_references",
    "write_links",
]

"""Word alignment: which words of a sentence pair translate each other."""

from maxmargin.tasks.alignment.estimator import WordAligner, load_aligner
from maxmargin.tasks.alignment.io.corpus import Corpus, load_corpus
from maxmargin.tasks.alignment.io.files import (
    Bitext,
    FileError,
    read_bitext,
    read_links,
    read_references,
    write_links,
)
from maxmargin.tasks.alignment.io.links import Prediction, Reference, as_links
from maxmargin.tasks.alignment.io.sentences import SentencePair
from maxmargin.tasks.alignment.metrics.scores import Scores, evaluate
from maxmargin.tasks.alignment.translation.bitext_models import BitextModels

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

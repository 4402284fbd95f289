"""Sequence tagging: parts of speech, chunks, names, or any other labels of tokens."""

from typing import TYPE_CHECKING

from maxmargin import _lazy

if TYPE_CHECKING:
    from maxmargin.tasks.common.text import FileError
    from maxmargin.tasks.tagging.crf import CRF
    from maxmargin.tasks.tagging.encoder.presets import PRESETS, preset_text
    from maxmargin.tasks.tagging.encoder.tagging import TaggingEncoder
    from maxmargin.tasks.tagging.encoder.templates import Template
    from maxmargin.tasks.tagging.estimator import SequenceTagger
    from maxmargin.tasks.tagging.io.conllu_objects import of_conllu
    from maxmargin.tasks.tagging.io.corpus import TaggedCorpus, load_corpus
    from maxmargin.tasks.tagging.io.files import TaggedText, read_tagged, write_k_best, write_tagged
    from maxmargin.tasks.tagging.io.table import AttributeText, TokenTable
    from maxmargin.tasks.tagging.metrics.scores import TagScores, compare_scores, evaluate, interval_of
    from maxmargin.tasks.tagging.model import TaggerModel
    from maxmargin.tasks.tagging.training import train_tagger
else:
    # Prediction must not import training or scikit-learn.
    __getattr__, __dir__ = _lazy.names(
        __name__,
        {
            "maxmargin.tasks.common.text": ("FileError",),
            f"{__name__}.io.conllu_objects": ("of_conllu",),
            f"{__name__}.io.corpus": ("TaggedCorpus", "load_corpus"),
            f"{__name__}.crf": ("CRF",),
            f"{__name__}.io.files": ("TaggedText", "read_tagged", "write_k_best", "write_tagged"),
            f"{__name__}.metrics.scores": ("TagScores", "compare_scores", "evaluate", "interval_of"),
            f"{__name__}.model": ("TaggerModel",),
            f"{__name__}.encoder.presets": ("PRESETS", "preset_text"),
            f"{__name__}.io.table": ("AttributeText", "TokenTable"),
            f"{__name__}.estimator": ("SequenceTagger",),
            f"{__name__}.encoder.tagging": ("TaggingEncoder",),
            f"{__name__}.encoder.templates": ("Template",),
            f"{__name__}.training": ("train_tagger",),
        },
    )

__all__ = [
    "CRF",
    "PRESETS",
    "AttributeText",
    "FileError",
    "SequenceTagger",
    "TagScores",
    "TaggedCorpus",
    "TaggedText",
    "TaggerModel",
    "TaggingEncoder",
    "Template",
    "TokenTable",
    "compare_scores",
    "evaluate",
    "interval_of",
    "load_corpus",
    "of_conllu",
    "preset_text",
    "read_tagged",
    "train_tagger",
    "write_k_best",
    "write_tagged",
]

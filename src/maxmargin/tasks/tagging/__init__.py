"""Labels of sequences: parts of speech, chunks, names, or anything else that tokens are labeled with."""

from typing import TYPE_CHECKING

from maxmargin import _lazy

if TYPE_CHECKING:
    from maxmargin.tasks.tagging.conllu_objects import of_conllu
    from maxmargin.tasks.tagging.corpus import TaggedCorpus, load_corpus
    from maxmargin.tasks.tagging.crf import CRF
    from maxmargin.tasks.tagging.files import FileError, TaggedText, read_tagged, write_k_best, write_tagged
    from maxmargin.tasks.tagging.metrics import TagScores, compare_scores, evaluate, interval_of
    from maxmargin.tasks.tagging.model import TaggerModel, load_tagger
    from maxmargin.tasks.tagging.presets import PRESETS, preset_text
    from maxmargin.tasks.tagging.table import AttributeText, TokenTable
    from maxmargin.tasks.tagging.tagger import SequenceTagger
    from maxmargin.tasks.tagging.templates import Template
else:
    # What predicts is imported without what learns.
    __getattr__, __dir__ = _lazy.names(
        __name__,
        {
            f"{__name__}.conllu_objects": ("of_conllu",),
            f"{__name__}.corpus": ("TaggedCorpus", "load_corpus"),
            f"{__name__}.crf": ("CRF",),
            f"{__name__}.files": ("FileError", "TaggedText", "read_tagged", "write_k_best", "write_tagged"),
            f"{__name__}.metrics": ("TagScores", "compare_scores", "evaluate", "interval_of"),
            f"{__name__}.model": ("TaggerModel", "load_tagger"),
            f"{__name__}.presets": ("PRESETS", "preset_text"),
            f"{__name__}.table": ("AttributeText", "TokenTable"),
            f"{__name__}.tagger": ("SequenceTagger",),
            f"{__name__}.templates": ("Template",),
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
    "Template",
    "TokenTable",
    "compare_scores",
    "evaluate",
    "interval_of",
    "load_corpus",
    "load_tagger",
    "of_conllu",
    "preset_text",
    "read_tagged",
    "write_k_best",
    "write_tagged",
]

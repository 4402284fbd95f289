"""TER (Snover et al. 2006), by sacrebleu's own search for shifts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.reranking.metrics import sacre
from maxmargin.tasks.reranking.metrics.base import Formula, Metric
from maxmargin.tasks.reranking.metrics.lists import TextLists


@dataclass(frozen=True)
class Ter(Metric):
    """Translation edit rate: insertions, deletions, substitutions and shifts of blocks of words.

    Statistics: edits to the nearest reference, and the mean length of the references. sacrebleu searches in Python, so
    long lists take a while; equal hypotheses of a list are searched once.

    Attributes:
        normalized: whether sacrebleu separates punctuation.
        no_punct: whether punctuation is removed.
        asian_support: whether the two treat Chinese, Japanese and Korean characters too.
        case_sensitive: whether case counts.
    """

    normalized: bool = False
    no_punct: bool = False
    asian_support: bool = False
    case_sensitive: bool = False

    name = "TER"
    n_statistics = 2
    formula = Formula.ERROR_RATE
    lower_is_better = True

    def statistics(self, texts: Sequence[str], references: Sequence[Sequence[str]], owner: IntArray) -> FloatArray:
        """Return edits and reference length, shape ``(len(texts), 2)``; arguments as for :class:`Metric`."""
        lists = TextLists.of(texts, references, owner)
        metric = sacre.twin("TER", **asdict(self))
        out = np.empty((len(texts), 2))
        for at, some in enumerate(references):
            found: dict[str, tuple[int, float]] = {}
            for row in range(int(lists.offsets[at]), int(lists.offsets[at + 1])):
                text = texts[row]
                if text not in found:
                    score = metric.sentence_score(text, list(some))
                    found[text] = score.num_edits, score.ref_length
                out[row] = found[text]
        return out

    @property
    def signature(self) -> str:
        """The signature of sacrebleu."""
        return sacre.signature("TER", "", **asdict(self))

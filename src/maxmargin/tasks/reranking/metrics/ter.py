"""TER (Snover et al. 2006), as sacrebleu computes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from maxmargin import _threads
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks import _kernels
from maxmargin.tasks.reranking.metrics import sacre
from maxmargin.tasks.reranking.metrics.base import Formula, Metric
from maxmargin.tasks.reranking.metrics.lists import TextLists


@dataclass(frozen=True)
class Ter(Metric):
    """Translation edit rate: insertions, deletions, substitutions and shifts of blocks of words.

    Statistics: edits to the nearest reference, and the mean length of the references. Words are the pieces between
    white space; ``normalized`` and ``no_punct`` are sacrebleu's tokenizer and need that package.

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

    def __post_init__(self) -> None:
        if self._plain:
            return
        _ = self._tokenizer  # a missing package is an error here, not after the data was read

    @property
    def _plain(self) -> bool:
        return not (self.normalized or self.no_punct)

    @cached_property
    def _tokenizer(self) -> Any:
        return sacre.twin("TER", **asdict(self)).tokenizer

    def statistics(self, texts: Sequence[str], references: Sequence[Sequence[str]], owner: IntArray) -> FloatArray:
        """Return edits and reference length, shape ``(len(texts), 2)``; arguments as for :class:`Metric`."""
        out = np.empty((len(texts), 2))
        for rows, block in TextLists.of(texts, references, owner).blocks():
            tokens = self._tokenized(block).words()
            _kernels.ter_statistics(*tokens, *block.of_lists, out[rows], _threads.current())
        return out

    def _tokenized(self, lists: TextLists) -> TextLists:
        if self._plain:
            return lists if self.case_sensitive else lists.mapped(str.lower)
        tokenizer = self._tokenizer  # changes case too
        once = lists.mapped(lambda text: tokenizer(text.rstrip()))
        # sacrebleu does this twice to references, which matters for "cat's" before white space other than a blank.
        return replace(once, references=[tokenizer(text) for text in once.references])

    @property
    def signature(self) -> str:
        """The signature of sacrebleu."""
        case = "mixed" if self.case_sensitive else "lc"
        norm, punct, asian = (
            "yes" if one else "no" for one in (self.normalized, not self.no_punct, self.asian_support)
        )
        own = f"case:{case}|tok:tercom|norm:{norm}|punct:{punct}|asian:{asian}"
        return sacre.signature("TER", own, **asdict(self))

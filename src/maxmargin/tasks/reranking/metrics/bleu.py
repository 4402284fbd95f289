"""BLEU (Papineni et al. 2002), as sacrebleu computes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from maxmargin import _threads
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks import _kernels
from maxmargin.tasks.reranking.metrics import sacre
from maxmargin.tasks.reranking.metrics.base import Formula, Metric
from maxmargin.tasks.reranking.metrics.lists import TextLists

_ORDER = 4


@dataclass(frozen=True)
class Bleu(Metric):
    """BLEU of orders 1 to 4.

    Statistics: matches of each order, clipped at the largest count of one reference; n-grams of each order; length of
    the hypothesis; length of the closest reference, the shorter of two equally close ones.

    Attributes:
        tokenize: "none" splits at white space, as tokenized text needs; "13a", "intl", "zh", "char", ... are
            sacrebleu's tokenizers, for plain text.
        lowercase: whether case is ignored.
    """

    tokenize: str = "none"
    lowercase: bool = False

    name = "BLEU"
    n_statistics = 2 * _ORDER + 2
    formula = Formula.BLEU

    def __post_init__(self) -> None:
        if self.tokenize != "none":
            _ = self._tokenizer  # an unknown name is an error here, not after the data was read

    @cached_property
    def _tokenizer(self) -> Any:
        return sacre.tokenizer(self.tokenize)

    def statistics(self, texts: Sequence[str], references: Sequence[Sequence[str]], owner: IntArray) -> FloatArray:
        """Return matches, n-grams and lengths, shape ``(len(texts), 10)``; arguments as for :class:`Metric`."""
        out = np.empty((len(texts), self.n_statistics))
        for rows, block in TextLists.of(texts, references, owner).blocks():
            tokens = self._tokenized(block).words()
            _kernels.bleu_statistics(*tokens, *block.of_lists, _ORDER, out[rows], _threads.current())
        return out

    def _tokenized(self, lists: TextLists) -> TextLists:
        if self.lowercase:
            lists = lists.mapped(str.lower)
        if self.tokenize != "none":
            tokenizer = self._tokenizer
            lists = lists.mapped(lambda text: tokenizer(text.rstrip()))
        return lists

    def sentence_quality(self, statistics: FloatArray) -> FloatArray:
        """Return smoothed BLEU: one is added to matches and n-grams of orders 2 to 4 (Lin and Och 2004).

        A sentence without a matching word has 0; the brevity penalty is that of the corpus formula.
        """
        found = np.array(statistics, dtype=np.float64)
        matches, totals = found[..., :_ORDER], found[..., _ORDER : 2 * _ORDER]
        matches[..., 1:] += 1.0
        totals[..., 1:] += 1.0
        length, reference = found[..., -2], found[..., -1]
        some = (matches[..., 0] > 0.0) & (length > 0.0)
        logs = np.log(np.where(some[..., None], matches / np.maximum(totals, 1.0), 1.0)).mean(axis=-1)
        brevity = np.minimum(1.0 - reference / np.where(some, length, 1.0), 0.0)
        return np.where(some, np.exp(logs + brevity), 0.0)

    @property
    def signature(self) -> str:
        """The signature of sacrebleu."""
        case = "lc" if self.lowercase else "mixed"
        own = f"case:{case}|eff:no|tok:{self.tokenize}|smooth:exp"
        return sacre.signature("BLEU", own, tokenize=self.tokenize, lowercase=self.lowercase)

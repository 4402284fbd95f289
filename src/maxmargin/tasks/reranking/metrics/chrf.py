"""chrF (Popovic 2015) and chrF++ (Popovic 2017), as sacrebleu computes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from maxmargin import _checks, _threads
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks import _kernels
from maxmargin.tasks.reranking.metrics import sacre
from maxmargin.tasks.reranking.metrics.base import Formula, Metric
from maxmargin.tasks.reranking.metrics.lists import TextLists, Tokens

_MOST = 64  # the largest order that kernels take


@dataclass(frozen=True)
class ChrF(Metric):
    """F score of character n-grams, white space removed, and of word n-grams.

    Statistics: for each order of characters, then of words, the n-grams of the hypothesis, those of the reference and
    the matches, from the reference with the largest chrF of the sentence.

    Attributes:
        char_order: largest order of characters.
        word_order: largest order of words; 0 for chrF, 2 for chrF++.
        beta: how many times recall counts as much as precision.
        lowercase: whether case is ignored.
    """

    char_order: int = 6
    word_order: int = 0
    beta: float = 2
    lowercase: bool = False
    name: str = field(init=False)
    n_statistics: int = field(init=False)

    formula = Formula.CHRF

    def __post_init__(self) -> None:
        orders = [_checks.integer(name, getattr(self, name), least=0) for name in ("char_order", "word_order")]
        if not sum(orders) > 0 or max(orders) > _MOST:
            raise ValueError(f"char_order and word_order must lie in 0..{_MOST}, one of them above 0, got {orders}")
        _checks.positive("beta", self.beta)
        object.__setattr__(self, "name", f"chrF{self.beta:g}" + "+" * self.word_order)
        object.__setattr__(self, "n_statistics", 3 * sum(orders))

    def statistics(self, texts: Sequence[str], references: Sequence[Sequence[str]], owner: IntArray) -> FloatArray:
        """Return n-grams and matches, shape ``(len(texts), n_statistics)``; arguments as for :class:`Metric`."""
        out = np.empty((len(texts), self.n_statistics))
        for rows, given in TextLists.of(texts, references, owner).blocks():
            block = given.mapped(str.lower) if self.lowercase else given
            characters = block.characters(blanks=False)
            words = block.words(punctuation=True) if self.word_order else _NO_WORDS
            _kernels.chrf_statistics(
                *characters,
                *words,
                *block.of_lists,
                self.char_order,
                self.word_order,
                self.beta,
                out[rows],
                _threads.current(),
            )
        return out

    @property
    def signature(self) -> str:
        """The signature of sacrebleu."""
        case = "lc" if self.lowercase else "mixed"
        own = f"case:{case}|eff:yes|nc:{self.char_order}|nw:{self.word_order}|space:no"
        settings = {name: getattr(self, name) for name in ("char_order", "word_order", "beta", "lowercase")}
        return sacre.signature("CHRF", own, **settings)


_EMPTY = np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
_NO_WORDS: Tokens = (*_EMPTY, *_EMPTY)

"""Whether a text is in the languages, and in the tokenization, of the bitext that translation models have seen."""

from __future__ import annotations

import numpy as np

from maxmargin.tasks.alignment.translation.cooccurrences import Cooccurrences
from maxmargin.tasks.alignment.translation.words import IndexedBitext, WordVocabulary


class UnknownWordsWarning(UserWarning):
    """A text has many words that the translation models do not know."""


ENOUGH = 50
"""Words of a side that are needed to judge it."""

SWAPPED = 0.3
"""By so much the shares of known words must rise together if the sides are swapped."""

TIMES, MORE = 3.0, 0.1
"""Unknown words are as many as expected up to so many times their expected share, and this share more."""


def doubt(counts: Cooccurrences, text: IndexedBitext) -> str | None:
    """A sentence on swapped sides, or on words that the bitext does not have; None if there are not too many.

    A share of about (words that occur once) / (all words) of a bitext is unknown in more text like it (Good 1953).
    """
    if min(len(text.source), len(text.target)) < ENOUGH:
        return None
    sides = (("source", counts.source, text.source), ("target", counts.target, text.target))

    def known(vocabulary: WordVocabulary, tokens: np.ndarray) -> float:
        return float((text.words.numbers_in(vocabulary, counts.letters)[tokens] >= 0).mean())

    shares = [known(vocabulary, tokens) for _, vocabulary, tokens in sides]
    fewest = [
        1 - TIMES * float((vocabulary.counts == 1).sum()) / max(float(vocabulary.counts.sum()), 1.0) - MORE
        for _, vocabulary, _ in sides
    ]
    low = [at for at in (0, 1) if shares[at] < fewest[at]]
    swapped = [known(sides[1 - at][1], tokens) for at, (_, _, tokens) in enumerate(sides)]
    if sum(swapped) > sum(shares) + SWAPPED:
        return (
            f"the translation models know {100 * shares[0]:.0f} % of the source and {100 * shares[1]:.0f} % of the "
            f"target words, but {100 * swapped[0]:.0f} and {100 * swapped[1]:.0f} % if the sides are swapped; check "
            "which is the source"
        )
    if low:
        which = " and ".join(f"{100 * shares[at]:.0f} % of the {sides[at][0]} words" for at in low)
        return (
            f"the translation models know only {which}; check that the text is in the same languages as their bitext, "
            "and split into words in the same way"
        )
    return None

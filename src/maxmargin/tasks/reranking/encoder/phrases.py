"""Phrase pairs of hypotheses as named sparse features."""

from __future__ import annotations

import re

import numpy as np

from maxmargin._messages import shown
from maxmargin.tasks.reranking.encoder.named import NamedRows
from maxmargin.tasks.reranking.io.lists import NBestLists

_SPAN = re.compile(r"(\d+)-(\d+):(\d+)-(\d+)")


def phrase_pairs(lists: NBestLists) -> NamedRows:
    """Return the phrase pairs of each hypothesis, ``source words ||| target words``; each counts 1.

    Without sources, pairs are named by their target words alone.
    """
    if lists.segments is None:
        raise ValueError("the lists have no phrase segments; give a file that has them, or leave phrase pairs out")
    number: dict[str, int] = {}
    which: list[int] = []
    starts = np.zeros(lists.n_hypotheses + 1, dtype=np.int64)
    sources = None if lists.sources is None else [source.split() for source in lists.sources]
    for at, (text, segments, owner) in enumerate(zip(lists.texts, lists.segments, lists.owner.tolist(), strict=True)):
        words = text.split()
        for a, b, c, d in _SPAN.findall(segments):
            if int(d) >= len(words) or (sources is not None and int(b) >= len(sources[owner])):
                raise ValueError(
                    f"list {lists.ids[owner]}: the phrase {a}-{b}:{c}-{d} goes beyond the words of the source or of "
                    f"{shown(text)}; give the segments of these hypotheses"
                )
            name = " ".join(words[int(c) : int(d) + 1])
            if sources is not None:
                name = f"{' '.join(sources[owner][int(a) : int(b) + 1])} ||| {name}"
            which.append(number.setdefault(name, len(number)))
        starts[at + 1] = len(which)
    return NamedRows(list(number), starts, np.array(which, dtype=np.int64), np.ones(len(which)))

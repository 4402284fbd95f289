"""The templates of all features of parsers, in one place.

Trees: a line names what is seen of each node of a part, nodes separated by ``|``. What is seen of a node is a list of
attributes, with a shift for those of neighbors (``upos-1`` is the tag of the word before); nothing is written for a
node that is not seen. Arcs have head and modifier, and after them perhaps a circumstance of
:data:`maxmargin.features.hashed.CIRCUMSTANCES`.

Relations: a line names attributes of nodes near an arc of a tree (``m.upos h.lemma``), and circumstances.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

import numpy as np
import numpy.typing as npt

from maxmargin.features.hashed import Templates
from maxmargin.structures._arrays import offsets_of

ATTRIBUTES = ("word", "lemma", "upos", "xpos", "feats", "suffix", "prefix", "shape")
"""Attributes of tokens: columns of CoNLL-U (words in lower case), and three that are made of the word."""

_ARCS = """
    word xpos |
    word |
    xpos |
    upos |
    | word xpos
    | word
    | xpos
    | upos
    word xpos | word xpos
    xpos | word xpos
    word | word xpos
    word xpos | xpos
    word xpos | word
    word | word
    xpos | xpos
    upos | upos
    lemma | upos
    upos | lemma
    lemma | lemma
    lemma | xpos
    xpos | lemma
    xpos xpos+1 | xpos-1 xpos
    xpos-1 xpos | xpos-1 xpos
    xpos xpos+1 | xpos xpos+1
    xpos-1 xpos | xpos xpos+1
    xpos xpos+1 | xpos
    xpos | xpos-1 xpos
    xpos-1 xpos | xpos
    xpos | xpos xpos+1
    upos-1 upos upos+1 | upos-1 upos upos+1
    upos | upos-1 upos upos+1
    upos-1 upos upos+1 | upos
    upos | upos upos+1 upos+2
    upos | upos-2 upos-1 upos
    upos upos+1 upos+2 | upos
    upos-2 upos-1 upos | upos
    feats | feats
    upos | feats
    feats | upos
    upos | suffix
    suffix | upos
    upos | word-1 upos
    upos | word+1 upos
    word+1 upos | upos
    word-1 upos | upos
    upos | lemma upos-1
    upos | lemma upos+1
    lemma upos+1 | upos
    upos | prefix
    upos | shape
    shape | upos
    xpos-1 xpos xpos+1 | xpos
    xpos | xpos-1 xpos xpos+1
    xpos | feats xpos
    feats xpos | xpos
    lemma | feats
    feats | lemma
    lemma upos-1 | upos
    lemma upos-1 | lemma upos-1
    lemma upos-1 | lemma upos+1
    upos | upos | same as head
    xpos | xpos | same as head
    lemma | upos | same as head
    upos | lemma | same as head
    upos | upos | same as modifier
    xpos | xpos | same as modifier
    upos | lemma | same as modifier
    xpos | xpos | kinds between
    upos | lemma | kinds between
    lemma | upos | kinds between
    upos | upos | both same
    xpos | xpos | both same
    upos | upos | edge
    upos | upos | place
    upos | xpos | place
"""

_SIBLINGS = """
    upos | upos | upos
    xpos | xpos | xpos
    | upos | upos
    | xpos | xpos
    | word | upos
    | upos | word
    | word | word
    | lemma | xpos
    | xpos | lemma
    lemma | upos | upos
    upos | lemma | upos
    upos | upos | lemma
    | lemma | lemma
    lemma | lemma | upos
    lemma | upos | lemma
    upos | lemma | lemma
    word | xpos | xpos
    xpos | word | xpos
    xpos | xpos | word
    upos | feats | feats
    feats | upos | upos
    upos | feats | upos
    upos | upos | feats
    upos | upos-1 upos upos+1 | upos
    upos | upos | upos-1 upos upos+1
    upos-1 upos upos+1 | upos | upos
"""

_GRANDPARENTS = """
    upos | upos | upos
    xpos | xpos | xpos
    upos | | upos
    xpos | | xpos
    lemma | | upos
    upos | | lemma
    lemma | | lemma
    lemma | upos | upos
    upos | lemma | upos
    upos | upos | lemma
    lemma | lemma | upos
    lemma | upos | lemma
    upos | lemma | lemma
    lemma | lemma | lemma
    word | xpos | xpos
    xpos | word | xpos
    xpos | xpos | word
    feats | upos | upos
    upos | feats | upos
    upos | upos | feats
    upos-1 upos upos+1 | upos | upos
    upos | upos-1 upos upos+1 | upos
    upos | upos | upos-1 upos upos+1
"""

ROLES = (
    "m",
    "h",
    "g",
    "m-1",
    "m+1",
    "h-1",
    "h+1",
    "left",
    "right",
    "first",
    "last",
    "begin",
    "end",
    "child",
    "sibling",
)
"""Nodes near an arc from ``h`` to ``m``: ``g`` the head of ``h``, words beside the two, the nearest siblings of ``m``
to its left and right, its first and last child, the first and last token. A template is a feature for each child, and
for each sibling, that it names."""

SEEN = ("distance", "siblings", "children", "between", "side", "top")
"""Circumstances: how far ``m`` is from ``h``; how many siblings are on either side of ``m``; how many children it has;
what kinds of words are between; on which side of ``m`` and ``h`` the child or sibling is; whether ``g`` or ``h`` is the
root. All features know the side of ``h`` on which ``m`` is."""

_RELATIONS = """
    m.xpos
    m.word
    m.xpos h.xpos
    m.xpos h.word
    m.word h.xpos
    m.word h.word
    m.lemma h.upos
    m.upos h.lemma
    m-1.xpos m.xpos m+1.xpos
    m-1.xpos m.xpos h.xpos
    m.xpos m+1.xpos h.xpos
    m.xpos h.xpos h+1.xpos
    m.xpos h-1.xpos h.xpos
    m.feats h.upos
    m.feats h.feats
    m-1.word m.upos h.upos
    m+1.word m.upos h.upos
    m.lemma h.lemma
    m.suffix h.upos
    m.upos h.upos between
    m.lemma m+1.upos
    m.upos h.upos distance
    m.xpos h.word distance
    m.word h.xpos distance
    m.upos h.suffix
    m-1.upos m.upos m+1.upos h.upos
    m.upos h-1.upos h.upos h+1.upos
    m.feats h.lemma
    m.shape h.upos
    m.lemma m-1.upos h.lemma
    m.upos h.upos g.upos
    m.lemma h.upos g.upos
    m.xpos h.xpos g.xpos
    m.upos h.lemma g.lemma
    m.upos h.upos left.upos right.upos
    m.upos h.upos left.xpos
    m.upos h.upos right.xpos
    m.lemma h.upos left.lemma
    m.lemma h.upos right.lemma
    m.xpos h.xpos left.xpos right.xpos
    m.upos h.upos left.lemma
    m.upos h.upos right.lemma
    m.upos h.upos siblings
    m.xpos h.xpos siblings
    m.upos h.upos first.upos last.upos
    m.upos h.upos children
    m.xpos h.xpos first.xpos
    m.xpos h.xpos last.xpos
    m.upos h.upos first.lemma
    m.upos h.upos last.lemma
    m.upos h.lemma first.lemma
    m.lemma h.upos first.lemma
    m.upos h.lemma first.upos
    m.xpos h.lemma first.lemma
    m.upos h.upos child.upos side
    m.xpos h.xpos child.xpos side
    m.upos h.upos child.lemma side
    m.upos h.lemma child.lemma side
    m.upos child.lemma side
    m.xpos child.xpos side
    m.upos h.upos sibling.upos side
    m.xpos h.xpos sibling.xpos side
    m.upos h.upos sibling.lemma side
    m.lemma h.upos sibling.upos side
    m-1.lemma m.lemma m+1.upos
    m.upos h-1.upos h.lemma h+1.upos
    m.upos h.upos children top
    m.upos h.upos top
    m.upos first.upos top
    m.feats h.feats h.upos
    m.feats h.upos first.upos
    m.lemma m.upos h.feats h.xpos
    m.upos begin.lemma top
    m.upos end.lemma top
"""


def _lines(text: str) -> list[list[str]]:
    """What is seen of each node, for each line."""
    return [[part.strip() for part in line.split("|")] for line in text.strip().splitlines()]


def _key(text: str) -> tuple[tuple[int, int], ...]:
    """Attributes and shifts of a key: ``upos-1 upos``."""
    found = [re.fullmatch(r"([a-z]+)([-+]\d)?", one) for one in text.split()]
    return tuple((ATTRIBUTES.index(one[1]), int(one[2] or 0)) for one in found if one)


@cache
def tree_templates(order: int) -> Templates:
    """The templates of trees of first or second order."""
    arcs = [(*line, "")[:3] for line in _lines(_ARCS)]
    triples = [_lines(text) if order == 2 else [] for text in (_SIBLINGS, _GRANDPARENTS)]
    seen: Iterable[str] = (name for one in (*(line[:2] for line in arcs), *triples[0], *triples[1]) for name in one)
    keys = {name: _key(name) for name in dict.fromkeys(seen) if name}
    siblings, grandparents = (tuple(map(tuple, some)) for some in triples)
    return Templates(keys, tuple(map(tuple, arcs)), siblings, grandparents, "xpos")


def relation_texts() -> list[str]:
    """The templates of relations as they are written above."""
    return [" ".join(line.split()) for line in _RELATIONS.strip().splitlines()]


@cache
def relation_templates() -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Where the templates of relations begin, and their terms ``(role, attribute)``; role -1 for a circumstance."""
    lines = [line.split() for line in _RELATIONS.strip().splitlines()]
    terms = []
    for term in (one for line in lines for one in line):
        role, _, attribute = term.rpartition(".")
        terms.append((ROLES.index(role), ATTRIBUTES.index(attribute)) if role else (-1, SEEN.index(term)))
    return offsets_of([len(line) for line in lines]).astype(np.int32), np.array(terms, dtype=np.int32)

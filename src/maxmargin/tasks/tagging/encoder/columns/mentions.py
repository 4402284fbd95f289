"""Other mentions of names: how a capitalized word occurs elsewhere in the text, as columns for templates.

A text names things in full, ``President Bill Clinton``, and then in short, ``Clinton``. The words around the other
mention say what the name is. A capitalized word gets four cells from another mention, the capitalized occurrence of the
word (in any case) in the longest run of capitalized words within :data:`WINDOW` sentences before and after: the first
and the last word of this run, if it has several, and the words before and after the word there. Cells are empty if
there is no such word, which also tells something. A kernel finds the mentions (``mentions.hpp``).

The cells depend on the sentences around, so texts must be given in order, and texts that are read in blocks need
:data:`WINDOW` sentences on both sides of a block (:func:`in_context`). Bounds of documents are not needed. Where they
are known, whole documents might do a little better: in a prototype, on names of CoNLL-2003, by 0.5 points of F1 after
200 training documents, and by 0.1 after 500 and 946.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import numpy as np

from maxmargin.tasks import _kernels
from maxmargin.tasks.common.tokens.table import TokenTable
from maxmargin.tasks.tagging.encoder.attributes import AttributeVocabulary, decoded, numbers_of
from maxmargin.tasks.tagging.encoder.templates.plan import numbered
from maxmargin.tasks.tagging.encoder.templates.template import MENTION, Added, Template

WINDOW = 20
"""Sentences before and after one in which other mentions count."""


def reach_of(template: Template) -> int:
    """Return how many sentences before and after one the attributes of its tokens depend on."""
    return WINDOW if MENTION in template.added else 0


def in_context(
    blocks: Iterable[TokenTable], reach: int
) -> Iterator[tuple[list[TokenTable], TokenTable, list[TokenTable]]]:
    """Yield each block of a text between the sentences before and after it, at most ``reach`` of each.

    A block is given out when the sentences after it have been read.
    """
    before: list[TokenTable] = []
    held: deque[TokenTable] = deque()
    after = 0  # sentences of all held blocks but the first

    def given_out() -> tuple[list[TokenTable], TokenTable, list[TokenTable]]:
        nonlocal before, after
        block = held.popleft()
        found = before, block, _nearest(held, reach, last=False)
        before = _nearest([*before, block], reach, last=True)
        after -= held[0].n_sentences if held else 0
        return found

    for block in blocks:
        after += block.n_sentences if held else 0
        held.append(block)
        while held and after >= reach:
            yield given_out()
    while held:
        yield given_out()


def _nearest(tables: Iterable[TokenTable], count: int, *, last: bool) -> list[TokenTable]:
    """Return the first or the last sentences of tables."""
    found: list[TokenTable] = []
    for table in reversed(list(tables)) if last else tables:
        if not count:
            break
        n = min(count, table.n_sentences)
        count -= n
        if n:
            found.append(table.part(table.n_sentences - n, table.n_sentences) if last else table.part(0, n))
    return found[::-1] if last else found


def with_mentions(table: TokenTable, added: Added) -> TokenTable:
    """Return the table with the columns of a line ``!mention``."""
    numbers, (text, ends) = numbered(table, added.source)
    words = decoded(text, ends)
    lower = AttributeVocabulary()
    word = numbers_of(lower, [cell.lower() for cell in words], grow=True)
    capital = np.array([cell[:1].isupper() for cell in words], dtype=np.bool_)
    token, first, last = (np.empty(table.n_tokens, dtype=np.int64) for _ in range(3))
    sentences = np.ascontiguousarray(table.sentences, dtype=np.int64)
    _kernels.other_mentions(sentences, word[numbers], capital[numbers], len(lower), WINDOW, token, first, last)
    filled, several = table.lengths > 0, first < last
    found = (
        np.where(several, first, -1),
        np.where(several, last, -1),
        np.where((token < 0) | np.isin(token, sentences[:-1][filled]), -1, token - 1),
        np.where((token < 0) | np.isin(token, sentences[1:][filled] - 1), -1, token + 1),
    )
    for name, tokens in zip(added.columns, found, strict=True):
        table = table.with_copied(name, added.source, tokens)
    return table

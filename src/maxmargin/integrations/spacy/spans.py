"""Chunks in labels of tokens as spans of documents."""

from __future__ import annotations

from collections.abc import Sequence

from spacy.tokens import Span, Token

from maxmargin.structures.base import IntArray
from maxmargin.tasks.tagging.metrics.chunks import chunk_edges, tag_and_type

UNTYPED = "ENTITY"
"""The label of spans whose type the labels do not tell, as B and I without one."""


def chunk_spans(tokens: list[Token], codes: IntArray, offsets: IntArray, labels: Sequence[str]) -> list[Span]:
    """Return the chunks of sentences, as conlleval reads labels.

    Args:
        tokens: the tokens of all sentences, of one document or several.
        codes: indices into ``labels``, shape ``(n_tokens,)``.
        offsets: sentence ``i`` has the tokens ``offsets[i]:offsets[i + 1]``.
        labels: all labels.
    """
    begins, ends = chunk_edges(codes, offsets, labels)
    found, first = [], 0
    for at, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
        first = at if begin else first
        if end:
            label = tag_and_type(labels[codes[first]])[1] or UNTYPED
            found.append(Span(tokens[at].doc, tokens[first].i, tokens[at].i + 1, label=label))
    return found


def joined(first: Sequence[Span], second: Sequence[Span]) -> list[Span]:
    """Return spans, and those of others that do not overlap them."""
    taken = {at for span in first for at in range(span.start, span.end)}
    return [*first, *(span for span in second if taken.isdisjoint(range(span.start, span.end)))]

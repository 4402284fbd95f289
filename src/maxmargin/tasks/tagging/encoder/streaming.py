"""What a tagging encoder learns from text that is read in blocks, and how it encodes the blocks for training.

Several passes over the blocks: labels, word classes, attributes, constraints and the support of the weights; each keeps
counts, not sentences. Encoder and attributes are those that the whole text in memory gives.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin.encoders.data.labels import Labels
from maxmargin.features.supported import GrowingSupport, Support
from maxmargin.structures.base import IntArray
from maxmargin.tasks.common.tokens.table import Codes, TokenTable
from maxmargin.tasks.tagging.encoder.attributes import Attributes, AttributeVocabulary
from maxmargin.tasks.tagging.encoder.columns.mentions import in_context, reach_of
from maxmargin.tasks.tagging.encoder.columns.word_classes import ClassCounts, CrossedClasses
from maxmargin.tasks.tagging.encoder.extraction import Extractor, TokenRows
from maxmargin.tasks.tagging.encoder.extractors import ItemExtractor, MatrixExtractor, TemplateExtractor
from maxmargin.tasks.tagging.encoder.labels.constraints import transition_constraints, without_odd
from maxmargin.tasks.tagging.encoder.labels.gold import GoldLabels, LabeledRows
from maxmargin.tasks.tagging.encoder.layout import WeightLayout, pair_codes

Pairs = Iterable[tuple[Any, Any]]
"""Blocks of sentences and labels, which can be gone through several times."""


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """The labels of a text.

    Attributes:
        labels: all of them.
        count: tokens of each, shape ``(n_labels,)``.
        n_sentences: sentences of the text.
        first: the sentences of the first block.
    """

    labels: tuple[Hashable, ...]
    count: IntArray
    n_sentences: int
    first: Any

    @classmethod
    def of(
        cls, blocks: Pairs, gold: Callable[[Any, Any], GoldLabels], classes: tuple[Hashable, ...] | None
    ) -> LabelCounts:
        """Count the labels of blocks; ValueError if one is unknown, or if there are none."""
        counts: dict[Hashable, int] = {}
        first, sentences = None, 0
        for X, y in blocks:
            given = gold(X, y)
            if (given.numbers < 0).any():
                raise ValueError(
                    "some labels are unknown, and completing them needs all sentences in memory; leave out these "
                    "sentences, or train in memory"
                )
            for name, count in zip(given.names, np.bincount(given.numbers, minlength=len(given.names)), strict=True):
                counts[name] = counts.get(name, 0) + int(count)
            first = X if first is None else first
            sentences += len(sentence_lengths(X, given))
        if first is None or not counts:
            raise ValueError("no label is known; label at least some tokens")
        labels = Labels(list(counts), np.zeros(1, dtype=np.int64)).vocabulary() if classes is None else classes
        return cls(labels, np.array([counts.get(label, 0) for label in labels], dtype=np.int64), sentences, first)


def sentence_lengths(X: Any, given: GoldLabels) -> IntArray:
    """Return the tokens of each sentence of a block."""
    found = given.lengths if given.lengths is not None else getattr(X, "lengths", None)
    if found is None:
        raise ValueError("labels without sentences; give a list of labels per sentence")
    return np.asarray(found, dtype=np.int64)


def clustered(extractor: Extractor, blocks: Iterable[Any]) -> Extractor:
    """Learn the clusters of words of a template, from its text and the words of all blocks, 4 bytes for each."""
    if not isinstance(extractor, TemplateExtractor):
        return extractor
    tables = map(extractor.prepared, blocks)
    return replace(extractor, added=extractor.added.clustered(tables, extractor.template))


def crossed_classes(
    extractor: Extractor, blocks: Iterable[tuple[Any, Codes]], labels: tuple[Hashable, ...], n_sentences: int
) -> tuple[Extractor, CrossedClasses | None]:
    """Learn the word classes of a template, and those that training sentences get from the others."""
    if not isinstance(extractor, TemplateExtractor) or extractor.template.learned is None:
        return extractor, None
    source = extractor.template.learned[1]
    counts = ClassCounts([str(label) for label in labels], n_sentences, source)
    for X, codes in blocks:
        counts.add(extractor.prepared(X), codes)
    classes, crossed = counts.classes()
    return replace(extractor, added=replace(extractor.added, classes=classes)), crossed


def training_rows(extractor: Extractor, blocks: Iterable[Any], crossed: CrossedClasses | None) -> Iterator[TokenRows]:
    """Yield the attributes of training sentences, block after block; later blocks may be read before."""
    if isinstance(extractor, TemplateExtractor):
        for table in _tables(extractor, blocks, crossed):
            yield extractor.rows_of_table(table)
    else:
        for X in blocks:
            yield extractor.rows(extractor.prepared(X))


def _tables(
    extractor: TemplateExtractor, blocks: Iterable[Any], crossed: CrossedClasses | None
) -> Iterator[TokenTable]:
    """Yield the tables of training sentences with all columns of the template."""
    template, added, start = extractor.template, replace(extractor.added, classes=None), 0
    for before, table, after in in_context(map(extractor.prepared, blocks), reach_of(template)):
        first = sum(one.n_sentences for one in before)
        whole = table
        if before or after:
            whole = TokenTable.joined([one.only(template.columns_used) for one in (*before, table, *after)])
        if crossed is not None and template.learned is not None:
            whole = crossed.columns(whole, start - first, name=template.learned[0])
        whole = added.columns(whole, template)
        yield whole.part(first, first + table.n_sentences)
        start += table.n_sentences


def with_vocabulary(
    extractor: Extractor, blocks: Iterable[Any], crossed: CrossedClasses | None, min_count: int
) -> Extractor:
    """Return the extractor with the attributes of at least ``min_count`` rows."""
    if isinstance(extractor, MatrixExtractor):
        for X in blocks:
            return extractor.learn(X)[0]  # the others must have as many columns
    if isinstance(extractor, TemplateExtractor):
        tokens = _Counted()
        edges = None if extractor.edges is None else _Counted()
        for table in _tables(extractor, blocks, crossed):
            tokens.add(extractor.template.apply(table, tokens.vocabulary, grow=True))
            if edges is not None:
                edges.add(extractor.template.apply_edges(table, edges.vocabulary, grow=True))
        return replace(extractor, tokens=tokens.cut(min_count), edges=None if edges is None else edges.cut(min_count))
    assert isinstance(extractor, ItemExtractor)
    tokens = _Counted()
    for X in blocks:
        tokens.add(extractor.grown(X, tokens.vocabulary))
    return replace(extractor, tokens=tokens.cut(min_count))


class _Counted:
    """A vocabulary that grows, and how many rows have each attribute."""

    def __init__(self) -> None:
        self.vocabulary = AttributeVocabulary()
        self._count = np.zeros(0, dtype=np.int64)

    def add(self, rows: Attributes) -> None:
        found = rows.counts()
        found[: len(self._count)] += self._count
        self._count = found

    def cut(self, least: int) -> AttributeVocabulary:
        return self.vocabulary if least <= 1 else self.vocabulary.only(self._count >= least)


def labeled_rows(
    extractor: Extractor, blocks: Iterable[tuple[Any, Codes]], crossed: CrossedClasses | None
) -> Iterator[LabeledRows]:
    """Yield the labeled sentences of blocks."""
    waiting: deque[Codes] = deque()

    def inputs() -> Iterator[Any]:
        for X, codes in blocks:
            waiting.append(codes)
            yield X

    for rows in training_rows(extractor, inputs(), crossed):
        yield LabeledRows(rows, waiting.popleft())


def observed_layout(
    layout: WeightLayout, blocks: Iterable[LabeledRows], extractor: Extractor, full: bool
) -> WeightLayout:
    """Return the layout with weights for the pairs that occur in blocks, or if ``full`` for all pairs."""
    k, d, of_edges = layout.n_labels, extractor.n_attributes, layout.edge_support is not None
    if full:
        edges = Support.full(extractor.n_edge_attributes, k**2) if of_edges else None
        return replace(layout, support=Support.full(d, k), edge_support=edges)
    support = GrowingSupport(d, k)
    edge_support = GrowingSupport(extractor.n_edge_attributes, k**2) if of_edges else None
    for data in blocks:
        data = without_odd(layout.constraints, data)[0]
        support.add(data.rows.tokens.entries, data.codes.astype(np.int64))
        if edge_support is not None and data.rows.edges is not None:
            edge_support.add(data.rows.edges.entries, pair_codes(data, k))
    edges = None if edge_support is None else edge_support.support()
    return replace(layout, support=support.support(), edge_support=edges)


def learned_constraints(
    given: Any,
    forbidden: Any,
    labels: tuple[Hashable, ...],
    blocks: Callable[[], Iterable[tuple[Any, Codes, IntArray]]],
) -> Any:
    """Return the constraints for labels, as :func:`transition_constraints` does for all data."""

    def data() -> Iterator[tuple[LabeledRows, Any]]:
        for X, codes, lengths in blocks():
            nothing = Attributes(
                np.zeros(len(codes) + 1, dtype=np.int64), np.zeros(0, dtype=np.int32), None, 0, lengths
            )
            yield LabeledRows(TokenRows(nothing), codes), X

    return transition_constraints(given, forbidden, labels, data)

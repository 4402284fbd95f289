"""The kinds of extractors: by a template, from feature dictionaries, and from matrices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin._sparse import sp
from maxmargin.datasets.columns import is_frame
from maxmargin.encoders.base import State
from maxmargin.encoders.data import checks
from maxmargin.encoders.data.inputs import FeatureSequence
from maxmargin.tasks.common.tokens.table import AttributeText, TokenTable
from maxmargin.tasks.tagging.encoder.attributes import Attributes, AttributeVocabulary
from maxmargin.tasks.tagging.encoder.columns.added_columns import AddedColumns
from maxmargin.tasks.tagging.encoder.columns.gazetteers import Gazetteers
from maxmargin.tasks.tagging.encoder.columns.mentions import in_context, reach_of
from maxmargin.tasks.tagging.encoder.columns.word_classes import Coded
from maxmargin.tasks.tagging.encoder.extraction import (
    Extractor,
    SegmentAttributes,
    TokenRows,
    first_token,
    sentences_of,
)
from maxmargin.tasks.tagging.encoder.templates.template import Template
from maxmargin.tasks.tagging.io.named_columns import (
    cells_of,
    dictionaries_of,
    matrix_of,
    token_names,
)


def _grown(vocabulary: AttributeVocabulary) -> AttributeVocabulary:
    """Return a copy, which may grow while the original stays as it is."""
    return AttributeVocabulary.from_arrays(vocabulary.to_arrays()) if len(vocabulary) else AttributeVocabulary()


def _named(prefix: str, state: State) -> State:
    return {f"{prefix}_{name}": value for name, value in state.items()}


def _vocabulary(prefix: str, state: State) -> AttributeVocabulary:
    return AttributeVocabulary.from_arrays({name: state[f"{prefix}_{name}"] for name in ("text", "ends")})


@dataclass(frozen=True, eq=False)
class _NamedExtractor(Extractor):
    """Base class of extractors whose attributes have names.

    Attributes:
        tokens: attributes of tokens.
        edges: attributes of pairs of neighbors; None if there are none.
    """

    tokens: AttributeVocabulary = field(default_factory=AttributeVocabulary)
    edges: AttributeVocabulary | None = None
    segments: SegmentAttributes | None = field(default=None, kw_only=True)

    can_forget = True

    def without(self, attributes: npt.NDArray[np.bool_]) -> Self:
        """See :meth:`Extractor.without`."""
        return replace(self, tokens=self.tokens.only(~attributes))

    def name(self, number: int) -> str:
        """See :meth:`Extractor.name`."""
        return self.tokens.name(number)

    def edge_name(self, number: int) -> str:
        """See :meth:`Extractor.edge_name`."""
        assert self.edges is not None
        return self.edges.name(number)

    @property
    def n_attributes(self) -> int:
        """Number of attributes of tokens."""
        return len(self.tokens)

    @property
    def n_edge_attributes(self) -> int:
        """Number of attributes of pairs of neighbors."""
        return 0 if self.edges is None else len(self.edges)

    @property
    def sees_pairs(self) -> bool:
        """Whether there are attributes of pairs."""
        return self.edges is not None


@dataclass(frozen=True, eq=False, kw_only=True)
class TemplateExtractor(_NamedExtractor):
    """Tokens with columns of text, by a template.

    Attributes:
        template: defines the attributes.
        added: columns that are added to the tokens.
    """

    template: Template
    added: AddedColumns = field(default_factory=AddedColumns)

    kind = "template"

    @classmethod
    def of(cls, template: Template, gazetteers: Gazetteers | None = None, text: Any = None) -> Self:
        """Return an extractor that knows no attributes yet; it will learn clusters of words from ``text``."""
        edges = AttributeVocabulary() if template.edges else None
        return cls(template=template, edges=edges, added=AddedColumns(gazetteers=gazetteers, text=text))

    @property
    def columns(self) -> tuple[str, ...]:
        """See :attr:`Extractor.columns`."""
        return tuple(name for name in self.template.columns if name in self.template.columns_used)

    @property
    def reach(self) -> int:
        """See :attr:`Extractor.reach`."""
        return reach_of(self.template)

    def prepared(self, X: Any) -> TokenTable:
        """Return sentences as a table with the template's columns; ValueError if one is missing."""
        if isinstance(X, AttributeText):
            where = f"{X.source}: " if X.source else ""
            raise ValueError(f"{where}this model takes columns of text, not attributes of tokens")
        table = X if isinstance(X, TokenTable) else self._table(sentences_of(X))
        for name in self.template.columns_used:
            if name not in table.columns:
                where = f"{table.source}: " if table.source else ""
                raise ValueError(
                    f"{where}no column {shown(name)}, which the template uses; there are {', '.join(table.columns)}"
                )
        return table

    def _table(self, sentences: list[Any]) -> TokenTable:
        """Return Python data as a table.

        Tokens that are not dictionaries have the first columns of the template, or if these are not the ones that it
        uses, exactly those that it uses.
        """
        first, columns, used = first_token(sentences), self.template.columns, self.columns
        if any(map(is_frame, sentences)) or token_names(first) is not None:
            return TokenTable.of_lists(cells_of(sentences, used), used)
        width = len(columns) if first is None else len(first) if isinstance(first, (tuple, list)) else 1
        if width == len(used) and not set(used) <= set(columns[:width]):
            return TokenTable.of_lists(sentences, used)
        if width <= len(columns):
            return TokenTable.of_lists(sentences, columns[:width])
        table = TokenTable.of_lists(sentences)
        if table.columns[: len(columns)] != tuple(columns):
            raise ValueError(
                f"tokens have {width} columns, and this model has {len(columns)}: {', '.join(columns)}; give tokens "
                "with these, or dictionaries with the names of columns"
            )
        return table

    def rows(self, X: Any) -> TokenRows:
        """See :meth:`Extractor.rows`."""
        return self.rows_of_table(self.added.columns(self.prepared(X), self.template))

    def in_context(self, blocks: Iterable[Any]) -> Iterator[Any]:
        """See :meth:`Extractor.in_context`."""
        return in_context(map(self.prepared, blocks), self.reach)

    def rows_in_context(self, block: Any) -> TokenRows:
        """See :meth:`Extractor.rows_in_context`."""
        before, table, after = block
        if not before and not after:
            return self.rows(table)
        some = [one.only(self.template.columns_used) for one in (*before, table, *after)]
        first = sum(one.n_sentences for one in before)
        whole = self.added.columns(TokenTable.joined(some), self.template)
        return self.rows_of_table(whole.part(first, first + table.n_sentences))

    def rows_of_table(self, table: TokenTable) -> TokenRows:
        """Return the rows of a table that has all columns of the template."""
        edges = None if self.edges is None else self.template.apply_edges(table, self.edges)
        return TokenRows(self.template.apply(table, self.tokens), edges, self._segment_rows(table))

    def _segment_rows(self, table: TokenTable) -> Attributes | None:
        template, segments = self.template, self.segments
        return None if segments is None else segments.rows(table, template.segment_plan, template.omit)

    def learn(self, X: Any, min_count: int = 1, labels: Coded | None = None) -> tuple[Self, TokenRows]:
        """See :meth:`Extractor.learn`."""
        added, table = self.added.learned(self.prepared(X), self.template, labels)
        tokens, rows = self.template.learn(table, _grown(self.tokens), min_count=min_count)
        if self.segments is not None:
            template = self.template
            known = self.segments.learned(table, template.segment_plan, template.omit, min_count)
            found = replace(self, tokens=tokens, added=added, segments=known)
            return found, TokenRows(rows, segments=found._segment_rows(table))
        if self.edges is None:
            return replace(self, tokens=tokens, added=added), TokenRows(rows)
        edges, of_edges = self.template.learn(table, _grown(self.edges), edges=True, min_count=min_count)
        return replace(self, tokens=tokens, edges=edges, added=added), TokenRows(rows, of_edges)

    def state(self) -> State:
        """See :meth:`Extractor.state`."""
        state: State = {"template": str(self.template), "columns": list(self.template.columns)}
        state |= self.added.state()
        edges = {} if self.edges is None else _named("edge_attributes", self.edges.to_arrays())
        return state | _named("attributes", self.tokens.to_arrays()) | edges

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Extractor.from_state`."""
        columns = state["columns"]
        if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
            raise ValueError("its columns are damaged")
        names = state.get("gazetteer_names", [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("its gazetteers are damaged")
        template = Template.parse(state["template"], columns, "its template", names, "cluster_paths" in state)
        edges = _vocabulary("edge_attributes", state) if template.edges else None
        added = AddedColumns.from_state(state, template)
        return cls(_vocabulary("attributes", state), edges, template=template, added=added)


@dataclass(frozen=True, eq=False)
class ItemExtractor(_NamedExtractor):
    """Feature dictionaries or lists of attributes per token, as in python-crfsuite, and CRFsuite files."""

    kind = "attributes"

    def _rows(self, X: Any, vocabulary: AttributeVocabulary, grow: bool) -> Attributes:
        if isinstance(X, TokenTable):
            where = f"{X.source}: " if X.source else ""
            raise ValueError(f"{where}this model takes attributes of tokens, not columns of text")
        if isinstance(X, AttributeText):
            return vocabulary.of_text(X, grow=grow)
        sentences = [dictionaries_of(one) if is_frame(one) else one for one in sentences_of(X)]
        return vocabulary.of_items(sentences, grow=grow)

    def rows(self, X: Any) -> TokenRows:
        """See :meth:`Extractor.rows`."""
        return self._with_segments(TokenRows(self._rows(X, self.tokens, False)))

    def grown(self, X: Any, vocabulary: AttributeVocabulary) -> Attributes:
        """Return the rows of a batch, whose new attributes are added to a vocabulary."""
        return self._rows(X, vocabulary, True)

    def learn(self, X: Any, min_count: int = 1, labels: Coded | None = None) -> tuple[Self, TokenRows]:
        """See :meth:`Extractor.learn`."""
        vocabulary = _grown(self.tokens)
        rows = self._rows(X, vocabulary, True)
        vocabulary, rows = vocabulary.cut(rows, min_count, len(self.tokens))
        found = replace(self, tokens=vocabulary, segments=self._learned_segments(TokenRows(rows)))
        return found, found._with_segments(TokenRows(rows))

    def state(self) -> State:
        """See :meth:`Extractor.state`."""
        return _named("attributes", self.tokens.to_arrays())

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Extractor.from_state`."""
        return cls(_vocabulary("attributes", state))


@dataclass(frozen=True, eq=False)
class MatrixExtractor(Extractor):
    """A dense or sparse matrix per sentence with a row per token, or :class:`maxmargin.FeatureSequence`.

    Attributes:
        n_features: columns of the matrices; None before training.
        n_edge_features: columns of the edge features; 0 without edge features.
        names: names of the columns, if training sentences were data frames; None if they were not.
    """

    n_features: int | None = None
    n_edge_features: int = 0
    names: tuple[str, ...] | None = None
    segments: SegmentAttributes | None = None

    kind = "matrix"

    def rows(self, X: Any) -> TokenRows:
        """See :meth:`Extractor.rows`."""
        return self._with_segments(self._rows(X))

    def _rows(self, X: Any) -> TokenRows:
        if isinstance(X, (TokenTable, AttributeText)):
            raise ValueError("this model takes a matrix of features per sentence, not tokens of text")
        sentences = [matrix_of(i, x, self.names) if is_frame(x) else x for i, x in enumerate(sentences_of(X))]
        given = [x if isinstance(x, FeatureSequence) else FeatureSequence(x) for x in sentences]
        tokens = _stacked([x.features for x in given], self.n_features, "features")
        edges = [x.edge_features for x in given]
        if not self.n_edge_features and all(edge is None for edge in edges):
            return TokenRows(tokens)
        if self.n_features is not None and not self.n_edge_features:
            index = next(i for i, edge in enumerate(edges) if edge is not None)
            raise ValueError(f"example {index}: this model was trained without edge features; leave them out")
        if any(edge is None for edge in edges):
            index = next(i for i, edge in enumerate(edges) if edge is None)
            raise ValueError(f"example {index}: no edge features; give them for all sentences or for none")
        pairs = _stacked(edges, self.n_edge_features or None, "edge features")
        if not pairs.n_columns:
            raise ValueError("the edge features have no columns; give some, or leave them out")
        wrong = np.flatnonzero(pairs.lengths != np.maximum(tokens.lengths - 1, 0))
        if wrong.size:
            i = int(wrong[0])
            raise ValueError(
                f"example {i}: {pairs.lengths[i]} rows of edge features for {tokens.lengths[i]} tokens; give one row "
                "per pair of neighbors"
            )
        return TokenRows(tokens, pairs)

    def learn(self, X: Any, min_count: int = 1, labels: Coded | None = None) -> tuple[Self, TokenRows]:
        """See :meth:`Extractor.learn`."""
        text = isinstance(X, (TokenTable, AttributeText))  # which _rows refuses
        new = self.n_features is None and not text
        first = next((x for x in sentences_of(X) if is_frame(x)), None) if new else None
        named = self if first is None else replace(self, names=tuple(str(name) for name in first.columns))
        rows = named._rows(X)
        n_edges = 0 if rows.edges is None else rows.edges.n_columns
        found = replace(
            named,
            n_features=rows.tokens.n_columns,
            n_edge_features=n_edges,
            segments=self._learned_segments(rows),
        )
        return found, found._with_segments(rows)

    def name(self, number: int) -> str:
        """See :meth:`Extractor.name`."""
        return f"feature {number}" if self.names is None else self.names[number]

    def edge_name(self, number: int) -> str:
        """See :meth:`Extractor.edge_name`."""
        return f"edge feature {number}"

    @property
    def n_attributes(self) -> int:
        """Number of attributes of tokens."""
        return self.n_features or 0

    @property
    def n_edge_attributes(self) -> int:
        """Number of attributes of pairs of neighbors."""
        return self.n_edge_features

    def state(self) -> State:
        """See :meth:`Extractor.state`."""
        names: State = {} if self.names is None else {"names": list(self.names)}
        return {"n_features": self.n_features, "n_edge_features": self.n_edge_features, **names}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Extractor.from_state`."""
        widths = [_checks.integer(name, state[name], least=0) for name in ("n_features", "n_edge_features")]
        names = state.get("names")
        if names is None:
            return cls(widths[0], widths[1])
        if not isinstance(names, list) or len(names) != widths[0] or not all(isinstance(one, str) for one in names):
            raise ValueError("the names of its columns are damaged")
        return cls(widths[0], widths[1], tuple(names))


def _stacked(matrices: Sequence[Any], width: int | None, what: str) -> Attributes:
    if not matrices:
        return Attributes(np.zeros(1, np.int64), np.zeros(0, np.int32), None, width or 0, np.zeros(0, np.int64))
    found = checks.rows(matrices, what)
    found.require(found.width if width is None else width)
    rows = sp.csr_array(found.matrix)
    values = None if (rows.data == 1.0).all() else rows.data
    columns = rows.indices.astype(np.int32, copy=False)
    return Attributes(rows.indptr.astype(np.int64), columns, values, rows.shape[1], np.diff(found.offsets))


EXTRACTORS: dict[str, type[Extractor]] = {one.kind: one for one in (TemplateExtractor, ItemExtractor, MatrixExtractor)}

"""Names of the tokens and weights of a tagger, for explanations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from maxmargin.encoders.data.names import ColumnNames, Name, Namer, WeightTable, joined, table
from maxmargin.encoders.labelings.chain import chain_namers
from maxmargin.features.supported import Support
from maxmargin.structures.base import Structure
from maxmargin.structures.deductions.segments import TaggedSegments, candidate_segments
from maxmargin.tasks.common.tokens.table import WORD, AttributeText, TokenTable
from maxmargin.tasks.tagging.encoder.extraction import Extractor
from maxmargin.tasks.tagging.encoder.extractors import MatrixExtractor, TemplateExtractor

if TYPE_CHECKING:
    from maxmargin.tasks.tagging.encoder.tagging import TaggingEncoder


_WORDS = WORD, "form", "token", "text", "w"
"""Names that the column of words has, the likeliest first."""


def words_of(sentence: Any, extractor: Extractor) -> list[str]:
    """Return the words of one sentence in any form that a tagger takes; none where it has no text.

    Where tokens are tuples, ``extractor`` says what their columns are; if none is called so the first has the words.
    """
    if isinstance(extractor, TemplateExtractor) and _has_tuples(sentence):
        sentence = extractor.prepared([sentence])
    if isinstance(sentence, TokenTable):
        return sentence.cells(next((sentence.columns.index(name) for name in _WORDS if name in sentence.columns), 0))
    if isinstance(sentence, AttributeText) or not isinstance(sentence, (list, tuple)):
        return []
    return [_word(token) for token in sentence]


def _has_tuples(sentence: Any) -> bool:
    tuples = list, tuple
    return isinstance(sentence, tuples) and bool(sentence) and isinstance(sentence[0], tuples)


def _word(token: Any) -> str:
    if isinstance(token, Mapping):
        return next((str(token[name]) for name in _WORDS if name in token), "")
    return token if isinstance(token, str) else ""


def token_namer(words: Sequence[str]) -> Callable[[int], str]:
    """Return a function that names tokens, which are counted from 0 there and from 1 in names, by their words."""

    def named(at: int) -> str:
        word = words[at] if at < len(words) else ""
        return f"token {at + 1} {word!r}" if word else f"token {at + 1}"

    return named


def part_namers(encoder: TaggingEncoder, structure: Structure, words: Sequence[str]) -> list[Namer]:
    """Return functions that name the labels of tokens, the transitions, and the segments of one sentence."""
    names = [str(label) for label in encoder.classes or ()]
    token = token_namer(words)
    if not isinstance(structure, TaggedSegments):
        return chain_namers(structure, names.__getitem__, token)
    layout = encoder.weight_layout
    assert layout.chunks is not None
    types, k, states = layout.chunks.types, len(layout.chunks.types), structure.n_states_each
    segments = candidate_segments(int(structure.lengths[0]), structure.most)
    pair = joined(types.__getitem__, k)

    def segment(at: int) -> Name:
        begin, end = (int(one) for one in segments[at // k])
        text = " ".join(words[begin:end])
        return Name(f"segment {begin + 1}-{end}{f' {text!r}' if text else ''}", types[at % k])

    return [
        lambda at: Name(token(at // states), names[at % states]),
        lambda at: Name("transition", pair(at)),
        segment,
    ]


def weight_tables(encoder: TaggingEncoder, columns: ColumnNames) -> list[WeightTable]:
    """Return the names of all weights: attributes with their labels, transitions, and what comes after them."""
    layout, extractor = encoder.weight_layout, encoder.extractor
    labels = [str(label) for label in encoder.classes or ()]
    ends = labels if layout.chunks is None else list(layout.chunks.types)
    k, end = len(ends), ends.__getitem__
    attribute: Callable[[int], str] = extractor.name
    of_pair: Callable[[int], str] = extractor.edge_name
    if isinstance(extractor, MatrixExtractor):
        attribute = columns.of("features", extractor.n_attributes)
        if extractor.n_edge_attributes:
            of_pair = columns.of("edge_features", extractor.n_edge_attributes)
    found = [_of_support(layout.support, attribute, labels.__getitem__)]
    found.append(table(1, lambda at: "transition", k**2, joined(end, k)))
    if layout.order == 2:
        found.append(table(1, lambda at: "transition", k**3, joined(end, k, 3)))
    if layout.edge_support is not None:
        found.append(_of_support(layout.edge_support, of_pair, joined(end, k)))
    if layout.segment_support is not None and extractor.segments is not None:
        known = extractor.segments.names
        found.append(_of_support(layout.segment_support, lambda at: f"segment {known.name(at)}", end))
    return found


def _of_support(support: Support, attribute: Callable[[int], str], state: Callable[[int], str]) -> WeightTable:
    """The names of the weights of a support: one for each pair of an attribute and a column."""
    features, columns = support.features, support.columns
    return WeightTable(support.n_weights, lambda at: Name(attribute(int(features[at])), state(int(columns[at]))))

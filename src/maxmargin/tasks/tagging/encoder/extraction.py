"""Extraction of attributes: rows of numbered attributes of tokens, and what every extractor does.

An extractor belongs to a model: it knows the attributes of the training data and drops all others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from maxmargin.encoders.base import State
from maxmargin.encoders.data import checks
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.tasks.common.tokens.table import TokenTable
from maxmargin.tasks.tagging.encoder.attributes import Attributes, AttributeVocabulary
from maxmargin.tasks.tagging.encoder.columns.word_classes import Coded
from maxmargin.tasks.tagging.encoder.templates.plan import SegmentPlan
from maxmargin.tasks.tagging.io.named_columns import (
    refuse_frame,
)


@dataclass(frozen=True, eq=False)
class TokenRows:
    """The attributes of a batch of sentences.

    Attributes:
        tokens: a row per token.
        edges: a row per pair of neighbors; None without edge attributes.
        segments: a row per candidate segment; None if segments are not scored.
    """

    tokens: Attributes
    edges: Attributes | None = None
    segments: Attributes | None = None

    @property
    def lengths(self) -> IntArray:
        """Tokens per sentence, shape ``(n_sentences,)``."""
        return self.tokens.lengths

    @property
    def offsets(self) -> IntArray:
        """Sentence ``i`` has the rows ``offsets[i]:offsets[i + 1]``, shape ``(n_sentences + 1,)``."""
        return offsets_of(self.tokens.lengths)

    @property
    def edge_offsets(self) -> IntArray:
        """The same for pairs of neighbors."""
        return offsets_of(np.maximum(self.tokens.lengths - 1, 0))

    def narrow(self) -> TokenRows:
        """Return the rows without the columns of attributes that none of them has."""
        edges, segments = (None if one is None else one.narrow() for one in (self.edges, self.segments))
        return TokenRows(self.tokens.narrow(), edges, segments)


@dataclass(frozen=True, eq=False)
class SegmentAttributes:
    """Attributes of segments that an extractor knows.

    Attributes:
        longest: the most tokens of a segment.
        names: the attributes.
        chosen: before training, the candidates of the training sentences whose attributes are learned.
    """

    longest: int
    names: AttributeVocabulary = field(default_factory=AttributeVocabulary)
    chosen: npt.NDArray[np.bool_] | None = None

    def learned(self, table: TokenTable | IntArray, plan: SegmentPlan, omit: bool, min_count: int) -> Self:
        """Return a copy that knows the attributes of the chosen candidates."""
        names = AttributeVocabulary()
        _, keep = plan.of_segments(table, names, self.longest, omit, chosen=self.chosen, min_count=min_count)
        return replace(self, names=names if keep is None else names.only(keep), chosen=None)

    def rows(self, table: TokenTable | IntArray, plan: SegmentPlan, omit: bool) -> Attributes:
        """Return the known attributes of all candidates."""
        return plan.of_segments(table, self.names, self.longest, omit)[0]


_LENGTHS = SegmentPlan([])
"""Attributes of segments of tokens that are not text: their lengths."""


class Extractor(ABC):
    """Base class: turns inputs of some kind into :class:`TokenRows`."""

    kind: ClassVar[str]
    """The name of the kind of inputs, in model files."""

    segments: SegmentAttributes | None = None
    """Attributes of segments; None if segments are not scored."""

    def _with_segments(self, rows: TokenRows) -> TokenRows:
        """Return rows with those of segments, by their lengths alone."""
        if self.segments is None:
            return rows
        return replace(rows, segments=self.segments.rows(rows.lengths, _LENGTHS, False))

    def _learned_segments(self, rows: TokenRows) -> SegmentAttributes | None:
        """Return what is learned of segments, by their lengths alone."""
        return None if self.segments is None else self.segments.learned(rows.lengths, _LENGTHS, False, 1)

    def prepared(self, X: Any) -> Any:
        """Convert a batch to the form that the other methods use, so that this is done once."""
        return X

    @abstractmethod
    def rows(self, X: Any) -> TokenRows:
        """Return the rows of a batch without unknown attributes."""

    def in_context(self, blocks: Iterable[Any]) -> Iterator[Any]:
        """Yield each block of a text with all that its rows depend on; later blocks may be read before."""
        yield from blocks

    def rows_in_context(self, block: Any) -> TokenRows:
        """Return the rows of a block of :meth:`in_context`, as if the text were one batch."""
        return self.rows(block)

    @abstractmethod
    def learn(self, X: Any, min_count: int = 1, labels: Coded | None = None) -> tuple[Self, TokenRows]:
        """Return an extractor that also knows the attributes of a batch, and the rows of the batch.

        Args:
            X: the batch.
            min_count: new attributes of fewer rows are dropped.
            labels: labels of all tokens, for templates with word classes.
        """

    @abstractmethod
    def name(self, number: int) -> str:
        """Return the name of an attribute of tokens."""

    @abstractmethod
    def edge_name(self, number: int) -> str:
        """Return the name of an attribute of pairs of neighbors."""

    @property
    @abstractmethod
    def n_attributes(self) -> int:
        """Number of attributes of tokens."""

    @property
    def n_edge_attributes(self) -> int:
        """Number of attributes of pairs of neighbors."""
        return 0

    @property
    def sees_pairs(self) -> bool:
        """Whether there are attributes of pairs of neighbors, known or not."""
        return self.n_edge_attributes > 0

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns of text that tokens must have; None if tokens are not made of columns."""
        return None

    @property
    def reach(self) -> int:
        """How many sentences before and after one its rows depend on."""
        return 0

    can_forget: ClassVar[bool] = False
    """Whether attributes can be left out."""

    def without(self, attributes: npt.NDArray[np.bool_]) -> Self:
        """Return an extractor that does not know some attributes of tokens; the others are numbered anew in order."""
        raise NotImplementedError(f"{type(self).__name__} keeps all attributes; see can_forget")

    @abstractmethod
    def state(self) -> State:
        """Return the entries of a model file, for :meth:`from_state`."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State) -> Self:
        """Restore from a model file; ValueError, TypeError or KeyError if it is damaged."""


def read_whole(given: Any) -> Any:
    """Return sentences, or sequences of labels, that were given as generators as lists; everything else as it is."""
    found = list(given) if isinstance(given, Iterator) else given
    if isinstance(found, list) and any(isinstance(one, Iterator) for one in found):
        return [list(one) if isinstance(one, Iterator) else one for one in found]
    return found


def sentences_of(X: Any) -> list[Any]:
    """Return Python data as a list of sentences, perhaps empty."""
    refuse_frame(X)
    return [] if isinstance(X, (list, tuple)) and not X else checks.examples(X)


def first_token(sentences: Sequence[Any]) -> Any:
    """Return the first token; None if there is none."""
    for index, sentence in enumerate(sentences):
        try:
            for token in sentence:
                return token
        except Exception:  # the caller's code, and what has no items
            raise ValueError(
                f"sentence {index}: expected a list of tokens or a matrix, got {type(sentence).__name__}"
            ) from None
    return None

"""The encoder of sequence tagging: sentences to attributes, attributes and labels to packed batches, and back."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self, cast

import numpy as np

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin.encoders.base import Batch, Encoder, State
from maxmargin.encoders.data.labels import distinct, label_from_json, label_to_json, sequence
from maxmargin.encoders.data.names import ColumnNames, Namer, WeightTable
from maxmargin.encoders.data.partial import PartialLabels, has_unknown
from maxmargin.encoders.labelings.labeled import given_labels
from maxmargin.features.parts import Stacked
from maxmargin.features.supported import Support, SupportedRows
from maxmargin.structures._arrays import Ragged, offsets_of
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.chains.transitions import TransitionConstraints
from maxmargin.structures.deductions.segments import n_candidate_segments
from maxmargin.structures.fallbacks.given import Given as Parts
from maxmargin.structures.sparse import SparsePoint
from maxmargin.tasks.common.tokens.table import Codes, TokenTable
from maxmargin.tasks.tagging.encoder import streaming
from maxmargin.tasks.tagging.encoder.attributes import AttributeVocabulary
from maxmargin.tasks.tagging.encoder.chunks import ChunkLayout
from maxmargin.tasks.tagging.encoder.columns.gazetteers import Given
from maxmargin.tasks.tagging.encoder.columns.word_classes import CrossedClasses
from maxmargin.tasks.tagging.encoder.extraction import Extractor, SegmentAttributes, TokenRows
from maxmargin.tasks.tagging.encoder.extractors import EXTRACTORS, MatrixExtractor, TemplateExtractor
from maxmargin.tasks.tagging.encoder.inputs import new_extractor, text_columns
from maxmargin.tasks.tagging.encoder.labels.constraints import (
    check_gold,
    check_unchanged,
    transition_constraints,
    without_odd,
)
from maxmargin.tasks.tagging.encoder.labels.gold import GoldLabels, LabeledRows
from maxmargin.tasks.tagging.encoder.labels.repair import repaired
from maxmargin.tasks.tagging.encoder.layout import WeightLayout
from maxmargin.tasks.tagging.encoder.names import part_namers, weight_tables, words_of
from maxmargin.tasks.tagging.encoder.presets import Defaults, defaults
from maxmargin.tasks.tagging.encoder.presets.choice import chosen_preset
from maxmargin.tasks.tagging.encoder.templates.template import Template

SUPPORTS = ("negative", "observed", "all")


@dataclass(frozen=True, eq=False)
class TaggingEncoder(Encoder):
    """Encodes sentences whose tokens have labels.

    :class:`~maxmargin.tasks.tagging.SequenceTagger` describes inputs and settings. A fitted encoder that is fitted
    again keeps its labels and attributes, and learns further attributes.

    Attributes:
        preset: a built-in template, and so on: settings, see :class:`~maxmargin.tasks.tagging.SequenceTagger`.
        classes: all labels, in the order of their codes; None to take those of the training data.
        extractor: turns inputs into attributes.
        weight_layout: meaning of the weights; without labels before :meth:`fit`.
        gazetteers: lists of names, and ``text``: text without labels; settings, too. None in a fitted encoder.
        pieces: whether examples are runs of known labels, which may begin and end with any label.
        preset_reason: why the preset was chosen; empty if it was given.
        crossed: word classes of the sentences that it was fitted to, if these came in blocks; not in files.
    """

    preset: str | None = None
    template: str | Template | None = None
    columns: Sequence[str] | str | None = None
    order: int = 1
    constraints: str | TransitionConstraints | None = "auto"
    forbidden: Iterable[tuple[Hashable, Hashable]] = ()
    classes: tuple[Hashable, ...] | None = None
    unknown: Hashable = None
    min_count: int | None = None
    support: str = "negative"
    gazetteers: Given | None = None
    text: Any = None
    repair: bool = False
    segments: bool = False
    extractor: Extractor = field(default_factory=MatrixExtractor)
    weight_layout: WeightLayout = field(default_factory=lambda: WeightLayout(0, 1, None, Support.empty(0)))
    pieces: bool = False
    preset_reason: str = ""
    crossed: CrossedClasses | None = None

    kind = "sequence tagging"
    model_class = "maxmargin.tasks.tagging.model:TaggerModel"
    metrics = ("auto", "accuracy", "f1", "sentence_accuracy")

    def __post_init__(self) -> None:
        if self.preset is not None and self.template is not None:
            raise ValueError("give a preset or a template, not both")
        _checks.one_of("support", self.support, SUPPORTS)
        _checks.flag("repair", self.repair)
        _checks.flag("segments", self.segments)
        if self.template is not None and not isinstance(self.template, (str, Template)):
            raise ValueError(f"template must be the text of a template or a Template, got {shown(self.template)}")
        if self.columns is not None and not hasattr(self.columns, "__iter__"):
            raise ValueError(f"columns must be names of columns, got {shown(self.columns)}")
        if self.min_count is not None:
            _checks.integer("min_count", self.min_count, least=1)
        if self.classes is not None:
            object.__setattr__(self, "classes", distinct(self.classes))

    @property
    def fitted(self) -> bool:
        """Whether labels and attributes are known."""
        return self.weight_layout.n_labels > 0

    def after(self, before: TaggingEncoder) -> TaggingEncoder:
        """Return these settings with what another encoder has learned; ValueError if they contradict it."""
        layout, labels = before.weight_layout, before.classes or ()
        if self.segments or layout.chunks is not None:
            raise ValueError(
                "a tagger that scores segments cannot be trained further, as its longest segments are those of the "
                "first training; train a new model with fit"
            )
        if self.order != layout.order:
            raise ValueError(
                f"order={self.order}, and the model was trained with order={layout.order}; keep that order, or train a "
                "new model with fit"
            )
        check_unchanged(layout.constraints, self.constraints, self.forbidden, labels)
        for name, given in (("gazetteers", self.gazetteers), ("text", self.text)):
            if given is not None:
                raise ValueError(
                    f"{name} cannot be added to a trained model, whose weights are of the columns it has learned; "
                    f"leave {name} out, or train a new model with fit"
                )
        return replace(self, classes=labels, extractor=before.extractor, weight_layout=layout)

    # From data to batches.

    def fit(self, X: Any, y: Any) -> tuple[Self, Batch, SparsePoint]:
        """See :meth:`Encoder.fit`; refuses what only :func:`~maxmargin.tasks.tagging.train_tagger` can train."""
        fitted, data = self.learned(X, y)
        if fitted.weight_layout.constraints is not None:
            check_gold(fitted.weight_layout.constraints, data, X, fitted.classes or ())
        if self.support == "negative":
            raise ValueError('support="negative" is found by training: use train_tagger, or give support="observed"')
        if data.incomplete:
            raise ValueError("some labels are unknown: use train_tagger, which completes them")
        return fitted.encoded(data)

    def transform(self, X: Any) -> Batch:
        """See :meth:`Encoder.transform`; also of attributes."""
        return self.batch_of(X) if isinstance(X, TokenRows) else self.batch(self.parse(X))

    def parse(self, X: Any) -> Any:
        """Return the inputs as extractors take them: tokens with columns as a table."""
        if not self.fitted and self.preset is None and self.template is None and text_columns(self, X) is not None:
            return X  # their template is chosen when the labels are known
        return self._extractor_of(X).prepared(X)

    def learn(self, parsed: Any, y: Any) -> Self:
        """See :meth:`Encoder.learn`."""
        return self.fit(parsed, y)[0]

    def learned(self, X: Any, y: Any) -> tuple[Self, LabeledRows]:
        """Return a copy that knows labels, attributes and constraints, and the labeled sentences."""
        given, mended = self.gold(X, y)
        if not self.fitted and self.classes is not None:
            for label in self.classes:
                if label in (None, self.unknown):
                    raise ValueError(f"classes holds {shown(label)}, which stands for an unknown label; leave it out")
        labels = given.vocabulary() if self.classes is None else self.classes
        codes = given.codes(labels)
        if not (codes >= 0).any():
            raise ValueError("no label is known; label at least some tokens")
        chosen = self._with_preset(X, labels, np.bincount(codes[codes >= 0], minlength=len(labels)))
        extractor = chosen._extractor_of(X)
        X = extractor.prepared(X)
        if isinstance(X, TokenTable):
            given.check_lengths(X.lengths)  # before word classes are learned
        least = 1 if self.fitted else chosen._defaults(extractor).min_count
        chunks = None
        if self.segments:
            chunks, extractor = self._chunks(extractor, X, given, labels, codes)
        extractor, rows = extractor.learn(X, self.min_count or least, (codes, [str(label) for label in labels]))
        given.check_lengths(rows.lengths)
        data, k, layout = LabeledRows(rows, codes, repaired=mended), len(labels), self.weight_layout
        if not self.fitted:
            constraints = transition_constraints(self.constraints, self.forbidden, labels, lambda: [(data, X)])
            edges = None if rows.edges is None else Support.empty(k**2)
            layout = WeightLayout(k, self.order, constraints, Support.empty(k), edges)
            if chunks is not None:
                layout = replace(layout, chunks=chunks, segment_support=Support.empty(len(chunks.types)))
                _ = layout.type_constraints  # which checks that there are some
        elif layout.constraints is not None:
            check_gold(layout.constraints, data, X, labels, "the model", "train a new model with fit")
        # The extractor has what gazetteers and text teach; large text must not stay in models.
        found = replace(chosen, classes=labels, extractor=extractor, weight_layout=layout, gazetteers=None, text=None)
        return found, data

    def _chunks(
        self, extractor: Extractor, X: Any, given: GoldLabels, labels: tuple[Hashable, ...], codes: Codes
    ) -> tuple[ChunkLayout, Extractor]:
        """Return the segments of labeled sentences, and an extractor that will learn their attributes."""
        if (codes < 0).any():
            raise ValueError(
                "some labels are unknown, and segments must be known as wholes; leave such sentences out, or train "
                "without segments"
            )
        if getattr(extractor, "edges", None) is not None:
            raise ValueError("segments cannot be combined with attributes of pairs (B lines); leave out one of the two")
        lengths = given.lengths if given.lengths is not None else getattr(X, "lengths", None)
        if lengths is None:
            raise ValueError("labels without sentences; give a list of labels per sentence")
        given.check_lengths(np.asarray(lengths, dtype=np.int64))
        numbers, counts = codes.astype(np.int64), np.asarray(lengths, dtype=np.int64)
        chunks = ChunkLayout.of_labels(labels).fitted(numbers, counts)
        chosen = np.zeros(int(n_candidate_segments(counts, chunks.most).sum()), dtype=bool)
        chosen[chunks.candidates(numbers, counts)[0]] = True
        return chunks, replace(cast(Any, extractor), segments=SegmentAttributes(chunks.most, chosen=chosen))

    def learn_blocks(self, blocks: Iterable[tuple[Any, Any]]) -> Self:
        """See :meth:`Encoder.learn_blocks`; all labels must be known."""
        if self.segments:
            raise ValueError("segments need all sentences in memory; train in memory, or leave segments out")
        if self.fitted:
            raise ValueError("this encoder has learned already; give one that has not been fitted")

        def coded() -> Iterator[tuple[Any, Codes, IntArray]]:
            for X, y in blocks:
                given = self.gold(X, y)[0]
                yield X, given.codes(labels), streaming.sentence_lengths(X, given)

        def without_lengths() -> Iterator[tuple[Any, Codes]]:
            return ((X, codes) for X, codes, _ in coded())

        found = streaming.LabelCounts.of(blocks, lambda X, y: self.gold(X, y)[0], self.classes)
        labels, k = found.labels, len(found.labels)
        chosen = self._with_preset(found.first, labels, found.count)
        extractor = chosen._extractor_of(found.first)
        extractor = streaming.clustered(extractor, (X for X, _ in blocks))
        extractor, crossed = streaming.crossed_classes(extractor, without_lengths(), labels, found.n_sentences)
        least = self.min_count or chosen._defaults(extractor).min_count
        extractor = streaming.with_vocabulary(extractor, (X for X, _ in blocks), crossed, least)
        constraints = streaming.learned_constraints(self.constraints, self.forbidden, labels, coded)
        edges = Support.empty(k**2) if extractor.sees_pairs else None
        layout = WeightLayout(k, self.order, constraints, Support.empty(k), edges)
        rows = streaming.labeled_rows(extractor, without_lengths(), crossed)
        layout = streaming.observed_layout(layout, rows, extractor, self.support == "all")
        return replace(
            chosen,
            classes=labels,
            extractor=extractor,
            weight_layout=layout,
            gazetteers=None,
            text=None,
            crossed=crossed,
        )

    def training_blocks(self, blocks: Iterable[Any]) -> Iterator[Any]:
        """See :meth:`Encoder.training_blocks`: attributes and codes, without sentences that break the constraints."""
        waiting: deque[Any] = deque()

        def coded() -> Iterator[tuple[Any, Codes]]:
            for block in blocks:
                given = self.gold(block.X, block.y)[0]
                given.check_lengths(streaming.sentence_lengths(block.X, given))
                waiting.append(block)
                yield block.X, given.codes(self.classes or ())

        for data in streaming.labeled_rows(self.extractor, coded(), self.crossed):
            if len(data.codes) != int(data.lengths.sum()):
                raise ValueError(f"{len(data.codes)} labels for {int(data.lengths.sum())} tokens; give each token one")
            data, kept = without_odd(self.weight_layout.constraints, data)
            yield waiting.popleft().of(data.rows, (data.codes, [str(one) for one in self.classes or ()]), kept)

    @property
    def shared(self) -> tuple[Any, ...]:
        """The supports and the constraints."""
        layout = self.weight_layout
        return tuple(one for one in (layout.support, layout.edge_support, layout.constraints) if one is not None)

    def rebatched(self, batch: Batch) -> Batch:
        """See :meth:`Encoder.rebatched`: features of the same attributes with the support of this encoder."""
        assert isinstance(batch.features, Stacked)
        tokens, *others = batch.features.features
        assert isinstance(tokens, SupportedRows)
        own = SupportedRows(tokens.rows, tokens.offsets, self.weight_layout.support)
        return Batch(batch.structure, Stacked(own, *others))

    @property
    def remembered(self) -> dict[str, Any]:
        """See :attr:`Encoder.remembered`."""
        unknown = None if self.unknown is None else label_to_json(self.unknown)
        names = "preset", "preset_reason", "support", "repair"
        return {"unknown": unknown, **{name: getattr(self, name) for name in names}}

    def recalled(self, remembered: dict[str, Any]) -> Self:
        """See :meth:`Encoder.recalled`."""
        unknown = None if remembered["unknown"] is None else label_from_json(remembered["unknown"])
        names = "preset", "preset_reason", "support", "repair"
        return replace(self, unknown=unknown, **{name: remembered[name] for name in names})

    @property
    def settings(self) -> str:
        """The settings that decide what is learned."""
        names = "preset", "columns", "order", "constraints", "forbidden", "classes", "unknown", "min_count", "support"
        given = {name: getattr(self, name) for name in (*names, "repair", *["segments"] * self.segments)}
        template = None if self.template is None else str(self.template)
        return f"TaggingEncoder({ {**given, 'template': template} })"

    def gold(self, X: Any, y: Any) -> tuple[GoldLabels, int]:
        """Return the labels of sentences, mended if this is a setting, and how many were mended."""
        given = GoldLabels.parse(y, self.unknown)
        if not self.repair:
            return given, 0
        lengths = given.lengths if isinstance(X, list) else getattr(X, "lengths", given.lengths)
        if lengths is None:
            raise ValueError("repair needs the labels of each sentence; give lists of labels, not codes")
        given.check_lengths(lengths)
        return repaired(given, lengths)

    def encoded(self, data: LabeledRows, *, pieces: bool = False, grow: bool = True) -> tuple[Self, Batch, SparsePoint]:
        """Return the encoder with the support of sentences, their batch and their gold outputs; all labels are known.

        ``pieces`` says that these are runs of known labels, ``grow`` whether pairs that occur in them get weights.
        """
        layout = self.weight_layout
        layout = layout.with_observed(data, full=self.support == "all") if grow else layout
        encoder = replace(self, weight_layout=layout, pieces=pieces)
        batch = encoder.batch_of(data.rows)
        return encoder, batch, batch.structure.encode(Ragged(data.codes.astype(np.int64), data.rows.offsets))

    def batch(self, parsed: Any) -> Batch:
        """See :meth:`Encoder.batch`."""
        return self.batch_of(self.extractor.rows(parsed))

    def batch_of(self, rows: TokenRows) -> Batch:
        """Return the batch of sentences with these attributes."""
        layout = self.weight_layout
        if self.pieces and layout.constraints is not None:
            layout = replace(layout, constraints=layout.constraints.inside)
        return Batch(layout.structure(rows.lengths), layout.features(rows))

    def encode(self, batch: Batch, y: Any) -> SparsePoint:
        """See :meth:`Encoder.encode`."""
        given, lengths = GoldLabels.parse(y, self.unknown), batch.structure.n_variables
        given.check_lengths(lengths)
        codes = given.codes(self.classes or ()).astype(np.int64)
        return batch.structure.encode(Ragged(codes, offsets_of(lengths)))

    def is_partial(self, output: Any) -> bool:
        """Labels some of which are None or sets."""
        return has_unknown(output, self._index)

    def given(self, batch: Batch, y: Sequence[Any]) -> Parts:
        """Labels, None for an unknown one, a set for one of several."""
        labels = PartialLabels.parse(y)
        return given_labels(batch.structure, labels, labels.table(self._index))

    def decode(self, batch: Batch, outputs: Sequence[Any]) -> list[list[Hashable]]:
        """Return lists of labels."""
        return self.named(np.concatenate([np.zeros(0, dtype=np.int64), *outputs]), offsets_of([*map(len, outputs)]))

    def named(self, codes: Any, offsets: Any) -> list[list[Hashable]]:
        """Return the labels of each sentence from the codes of all tokens."""
        names = np.empty(self.weight_layout.n_labels, dtype=object)
        names[:] = self.classes or ()
        flat = names[codes].tolist()
        return [flat[first:last] for first, last in pairwise(offsets.tolist())]

    def name_parts(self, batch: Batch, x: Any) -> list[Namer]:
        """Return functions that name the parts of one sentence."""
        return part_namers(self, batch.structure, words_of(x, self.extractor))

    def name_weights(self, columns: ColumnNames) -> list[WeightTable]:
        """Return the names of all weights."""
        return weight_tables(self, columns)

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Return right labels out of tokens."""
        return float(sum(a == b for a, b in zip(sequence(gold, 0), predicted, strict=True))), float(len(predicted))

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return self.weight_layout.n_weights

    def to_model(self, weights: FloatArray) -> tuple[Encoder, FloatArray]:
        """The encoder of whole sentences, with the same weights."""
        return replace(self, pieces=False), weights

    # Inputs.

    def _extractor_of(self, X: Any) -> Extractor:
        """Return the extractor, or before :meth:`fit` one for inputs of this kind and the settings."""
        return self.extractor if self.fitted else new_extractor(self, X)

    def _with_preset(self, X: Any, labels: tuple[Hashable, ...], counts: IntArray) -> Self:
        """Return the encoder with a preset for its labels, unless it has a template, or the inputs need none."""
        if self.fitted or self.preset is not None or self.template is not None:
            return self
        columns = text_columns(self, X)
        if columns is None:
            return self
        found = chosen_preset(labels, counts, columns)
        return replace(self, preset=found.preset, preset_reason=found.reason)

    def _defaults(self, extractor: Extractor) -> Defaults:
        if not isinstance(extractor, TemplateExtractor) or self.template is not None:
            return defaults(None)
        return defaults(self.preset)

    @property
    def has_default_C(self) -> bool:
        """Whether attributes are those of a preset, whose C is known to suit them."""
        return isinstance(self.extractor, TemplateExtractor) and self.template is None

    @property
    def default_C(self) -> float:
        """The regularization that suits the preset in use, if there is one."""
        return self._defaults(self.extractor).C

    # The file.

    def describe(self) -> dict[str, Any]:
        """Return a summary as plain JSON values."""
        extractor, template = self.extractor, getattr(self.extractor, "template", None)
        return {
            "labels": self.weight_layout.n_labels,
            "order": self.weight_layout.order,
            "constraints": self.weight_layout.constraints_text,
            "input": extractor.kind,
            "attributes": extractor.n_attributes,
            "attributes_of_pairs": extractor.n_edge_attributes,
            **self._described_segments(),
            "columns_needed": [] if template is None else list(template.columns_used),
        }

    def _described_segments(self) -> dict[str, Any]:
        chunks, known = self.weight_layout.chunks, self.extractor.segments
        if chunks is None or known is None:
            return {}
        return {"attributes_of_segments": len(known.names), "longest_segment": chunks.most}

    def state(self) -> State:
        """Return labels, constraints, supports and what the extractor has learned."""
        layout, constraints = self.weight_layout, self.weight_layout.constraints
        state: State = {
            "labels": [label_to_json(label) for label in self.classes or ()],
            "input": self.extractor.kind,
            **self.extractor.state(),
            "order": layout.order,
            "constraints": constraints is not None,
        }
        supports = {name: getattr(layout, name) for name in ("support", "edge_support", "segment_support")}
        for name, support in supports.items():
            if support is not None:
                state |= {f"{name}_starts": support.starts, f"{name}_columns": support.columns}
        if layout.chunks is not None and self.extractor.segments is not None:
            known = self.extractor.segments.names.to_arrays()
            state |= {"segment_longest": layout.chunks.longest}
            state |= {f"segment_attributes_{name}": value for name, value in known.items()}
        if constraints is not None:
            flags = constraints.pairs, constraints.first, constraints.last
            state["allowed"] = np.vstack(flags).astype(np.uint8)
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        if state["input"] not in EXTRACTORS:
            raise ValueError(f"it takes inputs of kind {shown(state['input'])}, which this version does not know")
        if not isinstance(state["labels"], list) or not isinstance(state["constraints"], bool):
            raise ValueError("its labels or constraints are damaged")
        labels = distinct([label_from_json(label) for label in state["labels"]])
        extractor, k, constraints = EXTRACTORS[state["input"]].from_state(state), len(labels), None
        if state["constraints"]:
            allowed = state["allowed"]
            if allowed.dtype != np.uint8 or allowed.shape != (k + 2, k) or (allowed > 1).any():
                raise ValueError("its constraints are damaged")
            constraints = TransitionConstraints(allowed[:k] > 0, allowed[k] > 0, allowed[k + 1] > 0)
        edges = _support("edge_support", state, k**2, extractor.n_edge_attributes) if extractor.sees_pairs else None
        support, order = _support("support", state, k, extractor.n_attributes), state["order"]
        layout = WeightLayout(k, order, constraints, support, edges)
        found = cls(order=order, classes=labels, extractor=extractor, weight_layout=layout)
        return found._with_segments(state) if "segment_longest" in state else found

    def _with_segments(self, state: State) -> Self:
        """Return a copy with what a file has of segments."""
        chunks, longest = ChunkLayout.of_labels(self.classes or ()), state["segment_longest"]
        if longest.dtype != np.int64 or longest.shape != chunks.longest.shape or (longest < 1).any():
            raise ValueError("its longest segments are damaged")
        if (longest > chunks.longest).any():
            raise ValueError("its longest segments are too long")
        chunks = replace(chunks, longest=longest)
        names = {name: state[f"segment_attributes_{name}"] for name in ("text", "ends")}
        known = SegmentAttributes(chunks.most, AttributeVocabulary.from_arrays(names))
        support = _support("segment_support", state, len(chunks.types), len(known.names))
        layout = replace(self.weight_layout, chunks=chunks, segment_support=support)
        _ = layout.type_constraints
        extractor = replace(cast(Any, self.extractor), segments=known)
        return replace(self, segments=True, extractor=extractor, weight_layout=layout)


def _support(name: str, state: State, m: int, n_features: int) -> Support:
    starts, columns = state[f"{name}_starts"], state[f"{name}_columns"]
    if starts.dtype != np.int32 or columns.dtype != np.int32 or starts.shape != (n_features + 1,):
        raise ValueError(f"its {name} does not fit its {n_features} attributes")
    support = Support(starts, columns, m)
    if support.compiled is None:  # which checks the arrays
        raise ValueError(f"its {name} is damaged")
    return support

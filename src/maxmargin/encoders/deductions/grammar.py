"""Trees over sentences: X is a list of :class:`SpanChart` or of their features, y a list of trees.

Without a grammar the outputs are any trees of labeled spans, :class:`~maxmargin.structures.Spans`; chains of nodes over
the same tokens become one node with a joined label, ``S+VP``. With a grammar they are its derivations,
:class:`~maxmargin.structures.Derivations`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any, NamedTuple, Self

import numpy as np

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin.encoders.base import Batch, State
from maxmargin.encoders.data import checks
from maxmargin.encoders.data.inputs import SpanChart
from maxmargin.encoders.data.labels import Labels, distinct, known, label_from_json, label_to_json
from maxmargin.encoders.data.names import ColumnNames, Name, Namer, WeightTable, table
from maxmargin.encoders.data.partial import PartialTree, numbered
from maxmargin.encoders.deductions.bracketed import Nodes, common, joined, nodes_of, separated, tree_of
from maxmargin.encoders.deductions.grammar_rules import Grammar, rule_text
from maxmargin.encoders.deductions.known_nodes import known_nodes, known_spans
from maxmargin.encoders.rows import KernelEncoder, kernel_from_state
from maxmargin.features.base import Features
from maxmargin.features.kernel import Kernel, KernelMap
from maxmargin.features.parts import PartFeatures, Stacked
from maxmargin.features.tied import TiedRows
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray, Structure
from maxmargin.structures.deductions.charts import Chart, spans_of, splits_of
from maxmargin.structures.deductions.derivations import Derivations
from maxmargin.structures.deductions.spans import Spans
from maxmargin.structures.fallbacks.given import Given
from maxmargin.structures.sparse import SparsePoint


class Charts(NamedTuple):
    """Sentences, checked.

    Attributes:
        rows: features of spans.
        splits: features of splits, or None.
        lengths: numbers of tokens.
    """

    rows: checks.Rows
    splits: checks.Rows | None
    lengths: IntArray


@dataclass(frozen=True, eq=False)
class GrammarEncoder(KernelEncoder):
    """Encodes sentences and their trees.

    Attributes:
        labels: without a grammar all labels, chains joined, in the order of the weights' columns; None: those of the
            training data.
        grammar: the grammar whose derivations are the outputs, or None.
        rooted: without a grammar, whether the whole sentence must be a node.
        n_features: columns of the spans' features.
        n_split_features: columns of the splits' features; 0 where there are none.
        kernel: a kernel in place of explicit features of spans, or None.
        support: with a kernel, the rows that it compares others with.
    """

    labels: tuple[Hashable, ...] | None = None
    grammar: Grammar | None = None
    rooted: bool = True
    n_features: int | None = None
    n_split_features: int | None = None
    kernel: Kernel | None = None
    support: KernelMap | None = None

    kind = "grammar"

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.flag("rooted", self.rooted)
        if self.grammar is not None and not isinstance(self.grammar, Grammar):
            raise ValueError(f"grammar must be None or a mm.Grammar(rules), got {shown(self.grammar)}")
        if self.grammar is not None and self.labels is not None:
            raise ValueError("give classes or a grammar, not both: the labels of a grammar are its symbols")

    @property
    def classes(self) -> tuple[Hashable, ...] | None:  # type: ignore[override]
        """Labels, or the rules of the grammar."""
        return self.labels if self.grammar is None else self.grammar.rules

    @property
    def _columns(self) -> int:
        """One per label or rule."""
        return len(self.classes or ())

    def parse(self, X: list[Any]) -> Charts:
        """The features of spans and splits, and the numbers of tokens."""
        given = [x if isinstance(x, SpanChart) else SpanChart(x) for x in X]
        rows = checks.rows([x.features for x in given], "features", "a sentence without tokens has no tree")
        counts = np.diff(rows.offsets)
        lengths = ((np.sqrt(8.0 * counts + 1.0) - 1.0) / 2.0).round().astype(np.int64)
        wrong = np.flatnonzero(lengths * (lengths + 1) // 2 != counts)
        if wrong.size:
            raise ValueError(
                f"example {int(wrong[0])}: {int(counts[wrong[0]])} rows of features cannot be one for each span; a "
                "sentence of n tokens has n (n + 1) / 2 spans, see mm.spans_of"
            )
        return Charts(rows, self._split_rows(given, lengths), lengths)

    def _split_rows(self, given: list[SpanChart], lengths: IntArray) -> checks.Rows | None:
        """The features of splits, one row each, or None where there are none."""
        with_splits = [index for index, x in enumerate(given) if x.split_features is not None]
        if not with_splits:
            return None
        if self.grammar is not None:
            raise ValueError(
                f"example {with_splits[0]}: a grammar has no split features, as a part of its derivations is a rule "
                "over a span; leave them out, or leave the grammar out"
            )
        if len(with_splits) < len(given):
            without = next(index for index, x in enumerate(given) if x.split_features is None)
            raise ValueError(
                f"example {without}: no split features, but {len(with_splits)} of {len(given)} sentences have them; "
                "give them for all or for none"
            )
        rows = checks.rows([x.split_features for x in given], "split features")
        wanted = (lengths + 1) * lengths * (lengths - 1) // 6
        wrong = np.flatnonzero(np.diff(rows.offsets) != wanted)
        if wrong.size:
            i = int(wrong[0])
            raise ValueError(
                f"example {i}: {int(np.diff(rows.offsets)[i])} rows of split features for {int(lengths[i])} tokens, "
                f"expected {int(wanted[i])}, one for each split, see mm.splits_of"
            )
        return rows

    def parse_outputs(self, y: list[Any]) -> list[Nodes]:
        """The nodes of all trees; chains over the same tokens joined, unless there is a grammar."""
        return [self._parsed(tree, f"example {index}: y") for index, tree in enumerate(y)]

    def _parsed(self, tree: Any, where: str) -> Nodes:
        if isinstance(tree, Nodes):
            return tree
        found = nodes_of(tree, where)
        for begin, end, label in found.nodes:
            known(label, f"{where}: the node over tokens {begin} to {end}")
        return found if self.grammar is not None else Nodes(found.n_tokens, joined(found.nodes, where))

    def learn(self, parsed: Charts, y: Sequence[Any]) -> Self:
        """Labels (sorted where they can be) and widths, and with a kernel the training rows."""
        return replace(
            self,
            labels=_vocabulary(_labels(y)) if self.labels is None and self.grammar is None else self.labels,
            n_features=parsed.rows.width,
            n_split_features=0 if parsed.splits is None else parsed.splits.width,
            support=self._support(parsed.rows),
        )

    def learn_blocks(self, blocks: Iterable[tuple[Any, Any]]) -> Self:
        """Widths are those of the first block, labels those of all."""
        learned = super().learn_blocks(blocks)
        if self.labels is not None or self.grammar is not None:
            return learned
        seen: dict[Hashable, None] = {}
        for _, y in blocks:
            seen |= dict.fromkeys(_labels(self.parse_outputs(checks.examples(y, "y"))).flat)
        return replace(learned, labels=_vocabulary(Labels(list(seen), np.zeros(1, dtype=np.int64))))

    def learn_partial(self, parsed: Charts, y: Sequence[Any]) -> Self:
        """Labels are those of whole trees and of nodes that are known."""
        if self.labels is not None or self.grammar is not None:
            return self.learn(parsed, [])
        whole = np.array([index for index, one in enumerate(y) if not self.is_partial(one)], dtype=np.int64)
        with numbered(whole):
            seen = dict.fromkeys(_labels(self.parse_outputs([y[index] for index in whole.tolist()])).flat)
        for index, one in enumerate(y):
            if isinstance(one, PartialTree):
                seen |= dict.fromkeys(label for _, _, label in known_nodes(one, index))
        vocabulary = _vocabulary(Labels(list(seen), np.zeros(1, dtype=np.int64)))
        return replace(self, labels=vocabulary).learn(parsed, [])

    def is_partial(self, output: Any) -> bool:
        """:class:`PartialTree` and :class:`PartialParts`."""
        return isinstance(output, PartialTree) or super().is_partial(output)

    def known_parts(self, structure: Structure, output: Any, index: int) -> Given:
        """See :meth:`Encoder.known_parts`: nodes that are there, and without what cannot be beside them."""
        if not isinstance(output, PartialTree):
            return super().known_parts(structure, output, index)
        assert isinstance(structure, Chart)
        n = int(structure.lengths[index])
        nodes = known_nodes(output, index, with_chains=self.grammar is not None)
        whole = known_spans(output, nodes, index, n)
        spans, (begins, first) = spans_of(n), structure.parts_of_spans(index)
        (begin, end), crossed = spans.T, np.zeros(len(spans), dtype=bool)
        for b, e in whole:
            crossed |= ((begin < b) & (b < end) & (end < e)) | ((b < begin) & (begin < e) & (e < end))
        found = np.where(np.repeat(crossed, np.diff(begins)), -1, 0).astype(np.int8)
        for b, e, label in nodes:
            row = int(np.flatnonzero((begin == b) & (end == e))[0])
            numbers = range(int(first[row]), int(first[row] + begins[row + 1] - begins[row]))
            where = f"example {index}: the known node {shown((b, e, label))}"
            if self.grammar is not None:
                number = self.grammar.only_rule(label, numbers, where)
            else:
                if label not in self._index:
                    raise ValueError(
                        f"{where}: the label was not seen in training; give all labels with classes=[...] or remove it"
                    )
                number = self._index[label]
                found[begins[row] : begins[row + 1]] = -1
            found[begins[row] + number - first[row]] = 1
        return found

    def batch(self, parsed: Charts) -> Batch:
        """The charts of all sentences."""
        rows, splits, lengths = parsed
        rows.require(self.n_features)
        if (splits is not None) != bool(self.n_split_features):
            raise ValueError("example 0: split features must be given in training and in prediction, or in neither")
        structure: Chart
        kept = None
        if self.grammar is None:
            structure = Spans(lengths, self._columns, rooted=self.rooted, splits=splits is not None)
        else:
            structure = self.grammar.structure(lengths)
            kept = structure.columns
        features: Features = TiedRows(self._row_matrix(rows), rows.offsets, self._columns, kept=kept)
        if splits is not None:
            splits.require(self.n_split_features)
            features = Stacked(features, PartFeatures(splits.matrix, splits.offsets))
        return Batch(structure, features)

    def encode(self, batch: Batch, y: Sequence[Any]) -> SparsePoint:
        """Trees to their nodes or rules, then to vertices."""
        structure = batch.structure
        assert isinstance(structure, Chart)
        trees = self.parse_outputs(checks.examples(y, "y"))
        checks.same_length(structure.lengths.tolist(), trees)
        for index, (tree, length) in enumerate(zip(trees, structure.lengths.tolist(), strict=True)):
            if tree.n_tokens != length:
                raise ValueError(
                    f"example {index}: y has {tree.n_tokens} tokens, and X has the spans of {length}; every token of "
                    "the sentence must be a leaf of the tree"
                )
        if self.grammar is not None:
            rows = [self.grammar.derivation(tree, f"example {index}: y") for index, tree in enumerate(trees)]
            return structure.encode(rows)
        codes = _labels(trees).codes(self._index)
        spans = [np.array([node[:2] for node in tree.nodes], dtype=np.int64).reshape(-1, 2) for tree in trees]
        return structure.encode([np.column_stack(pair) for pair in zip(spans, codes, strict=True)])

    def decode(self, batch: Batch, outputs: Sequence[Any]) -> list[Any]:
        """Trees as nested tuples, with tokens by their numbers; lists of trees and tokens where ``rooted`` is False."""
        assert isinstance(batch.structure, Chart)
        pairs = zip(outputs, batch.structure.lengths.tolist(), strict=True)
        return [self._tree(rows.tolist(), length) for rows, length in pairs]

    def _tree(self, rows: list[list[int]], length: int) -> Any:
        classes = self.classes or ()
        if self.grammar is not None:
            forest = tree_of([(begin, end, self.grammar.rules[rule][0]) for begin, end, rule in rows], length)
        else:
            forest = tree_of(separated((begin, end, classes[label]) for begin, end, label in rows), length)
        whole = self.rooted or self.grammar is not None
        return forest[0] if whole and len(forest) == 1 else forest

    def _label_text(self, number: int) -> str:
        """A label or a rule in names."""
        own = (self.classes or ())[number]
        return str(own) if self.grammar is None else rule_text(own)  # type: ignore[arg-type]

    def name_parts(self, batch: Batch, x: Any) -> list[Namer]:
        """Spans with their labels or rules, and splits."""
        structure, k = batch.structure, self._columns
        assert isinstance(structure, Chart)
        n = int(structure.lengths[0])
        spans = spans_of(n)
        kept = structure.columns if isinstance(structure, Derivations) else None

        def of_span(at: int) -> Name:
            row, number = divmod(at if kept is None else int(kept[at]), k)
            return Name("tokens {} to {}".format(*(spans[row] - (0, 1))), self._label_text(number))

        if len(structure.blocks) == 1:
            return [of_span]
        splits = splits_of(n)
        return [of_span, lambda at: Name("tokens {0} to {2}, split before {1}".format(*(splits[at] - (0, 0, 1))))]

    def name_weights(self, columns: ColumnNames) -> list[WeightTable]:
        """Those of spans by label or rule, then of splits."""
        wide = self.n_split_features or 0
        splits = columns.of("split_features", wide) if wide else str
        return [self._row_names(columns, self.n_features, "features", self._label_text), table(wide, splits)]

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Twice the common nodes out of all nodes on both sides: the score is labeled F1."""
        return common(nodes_of(gold, "example 0: y"), nodes_of(predicted, "a prediction"))

    @property
    def n_weights(self) -> int:
        """One per feature of spans and label or rule, then one per feature of splits."""
        return self._n_row_weights(self.n_features) + (self.n_split_features or 0)

    @property
    def layout(self) -> tuple[Any, ...]:
        """Both widths, the labels or rules in order, the kernel and its training rows."""
        return self.kind, self.n_features, self.n_split_features, self.classes, self._kernel_layout

    def state(self) -> State:
        """Labels or grammar, widths and the kernel."""
        return {
            "labels": None if self.labels is None else [label_to_json(label) for label in self.labels],
            "grammar": None if self.grammar is None else self.grammar.header(),
            "rooted": self.rooted,
            "n_features": self.n_features,
            "n_split_features": self.n_split_features,
            **self._kernel_state(),
        }

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        n_features = _checks.integer("n_features", state["n_features"], least=0)
        kernel, support = kernel_from_state(state, n_features)
        labels, grammar = state["labels"], state["grammar"]
        if (labels is None) == (grammar is None) or not isinstance(labels, (list, NoneType)):
            raise ValueError("it needs a list of labels, or a grammar")
        return cls(
            labels=None if labels is None else distinct([label_from_json(label) for label in labels]),
            grammar=None if grammar is None else Grammar.from_header(grammar),
            rooted=_checks.flag("rooted", state["rooted"]),
            n_features=n_features,
            n_split_features=_checks.integer("n_split_features", state["n_split_features"], least=0),
            kernel=kernel,
            support=support,
        )


def _labels(trees: Sequence[Any]) -> Labels:
    """The labels of the nodes of all trees."""
    return Labels([node[2] for tree in trees for node in tree.nodes], offsets_of([len(tree.nodes) for tree in trees]))


def _vocabulary(labels: Labels) -> tuple[Hashable, ...]:
    """All labels, sorted where they can be; ValueError if there is none."""
    if not labels.flat:
        raise ValueError("no tree has a node, so there are no labels; give classes=[...], or trees with nodes")
    return labels.vocabulary()

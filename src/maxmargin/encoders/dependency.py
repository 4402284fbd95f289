"""Dependency trees: X is a list of :class:`Sentence`, y of heads, or of heads and labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin.encoders.base import Batch, Encoder, State
from maxmargin.encoders.data import checks
from maxmargin.encoders.data.heads import Trees, heads_and_labels, is_partial, known_arcs, partial_labels
from maxmargin.encoders.data.inputs import Sentence
from maxmargin.encoders.data.labels import Labels, distinct, label_from_json, label_to_json, sequence
from maxmargin.encoders.data.names import ColumnNames, Name, Namer, WeightTable, table
from maxmargin.encoders.data.partial import PartialParts, numbered
from maxmargin.encoders.rows import KernelEncoder, kernel_from_state
from maxmargin.features.base import Features
from maxmargin.features.kernel import Kernel, KernelMap
from maxmargin.features.parts import Beside, PartFeatures, Stacked
from maxmargin.features.tied import TiedRows
from maxmargin.structures.base import FloatArray, IntArray, Structure
from maxmargin.structures.dependencies.base import DependencyTrees
from maxmargin.structures.dependencies.nonprojective import NonProjectiveTrees
from maxmargin.structures.dependencies.projective import ProjectiveTrees
from maxmargin.structures.fallbacks.given import Given
from maxmargin.structures.sparse import SparsePoint

BLOCKS = "siblings", "grandparents"
"""The blocks of second order."""


@dataclass(frozen=True, eq=False)
class Parsed:
    """Checked inputs: the candidates of each sentence in the order of the parts, and their features.

    Attributes:
        n_tokens: of each sentence.
        arcs: of each sentence, shape ``(n_arcs, 2)``; None where all sentences have all arcs.
        rows: features of the arcs.
        triples: for each block of second order its triples, and features, None where there are none.
    """

    n_tokens: list[int]
    arcs: list[IntArray] | None
    rows: checks.Rows
    triples: dict[str, tuple[list[IntArray], checks.Rows] | None]


@dataclass(frozen=True, eq=False)
class DependencyEncoder(KernelEncoder):
    """Encodes sentences. Weights: of the arcs' features, then with ``K > 1`` labels ``(d, K)`` of each label besides;
    then those of siblings and grandparents.

    Attributes:
        projective: whether arcs must not cross.
        single_root: whether exactly one token is below the root.
        order: 1 for arcs, 2 for siblings and grandparents too.
        classes: all labels, in the order of the weights' columns; None for those of the training data, or no labels.
        n_features: columns of the arcs' features.
        widths: columns of the features of siblings and of grandparents, None where there are none.
        kernel: a kernel in place of explicit features of arcs, or None.
        support: with a kernel, the rows that it compares others with.
    """

    projective: bool = True
    single_root: bool = True
    order: int = 1
    classes: tuple[Hashable, ...] | None = None
    n_features: int | None = None
    widths: tuple[int | None, int | None] = (None, None)
    kernel: Kernel | None = None
    support: KernelMap | None = None

    kind = "dependency"

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.flag("projective", self.projective)
        _checks.flag("single_root", self.single_root)
        if isinstance(self.order, bool) or not isinstance(self.order, (int, np.integer)) or self.order not in (1, 2):
            raise ValueError(f"order must be 1 or 2, got {shown(self.order)}")
        if self.order == 2 and not self.projective:
            raise ValueError(
                "order=2 needs projective=True: to find the best non-projective tree with scores of siblings or "
                "grandparents is NP-hard; use order=1"
            )

    @property
    def n_labels(self) -> int:
        """How many labels there are, 1 where there are none."""
        return len(self.classes or (None,))

    @property
    def _columns(self) -> int:
        """With several labels one weight per feature for all of them and one for each."""
        return 1 if self.n_labels == 1 else 1 + self.n_labels

    def parse(self, X: list[Any]) -> Parsed:
        """Candidates and features of all sentences, sorted; forbidden arcs and rivals of forced ones left out."""
        given = [x if isinstance(x, Sentence) else Sentence(x) for x in X]
        rows = checks.rows([x.features for x in given], "features", "a sentence without arcs has no tree")
        n_tokens, arcs, matrices, every = [], [], [], True
        for index, (x, matrix) in enumerate(zip(given, rows.matrices, strict=True)):
            n, own = _arcs(x, index, matrix.shape[0])
            order = _allowed(x, index, own)
            unchanged = len(order) == len(own) and (np.diff(order) == 1).all()
            every = every and unchanged and len(own) == n * n
            n_tokens.append(n)
            arcs.append(own[order])
            matrices.append(matrix if unchanged else matrix[order])
        triples = {name: self._triples(given, name, n_tokens) for name in BLOCKS}
        return Parsed(n_tokens, None if every else arcs, checks.Rows(matrices, "features"), triples)

    def _triples(
        self, given: list[Sentence], name: str, n_tokens: list[int]
    ) -> tuple[list[IntArray], checks.Rows] | None:
        """The triples of all sentences in the order of the parts, and their features; None where there are none."""
        what = f"{name[:-1]}_features"
        matrices = [getattr(x, what) for x in given]
        has = [matrix is not None for matrix in matrices]
        for index, x in enumerate(given):
            if not has[index] and getattr(x, name) is not None:
                raise ValueError(f"example {index}: {name} without {what}; give one row of features per triple")
        if not any(has):
            return None
        if not all(has):
            raise ValueError(f"example {has.index(False)}: no {what}, but other sentences have them; give all or none")
        if self.order == 1:
            raise ValueError(f"example 0: {what} need order=2; leave them out, or use order=2")
        rows = checks.rows(matrices, what.replace("_", " "))
        found, sorted_rows = [], []
        for index, (x, matrix) in enumerate(zip(given, rows.matrices, strict=True)):
            nodes = checks.array(() if getattr(x, name) is None else getattr(x, name), index, name, "iu", "integers")
            nodes = np.zeros((0, 3), dtype=np.int64) if nodes.size == 0 else nodes.astype(np.int64)
            if nodes.ndim != 2 or nodes.shape[1] != 3:
                raise ValueError(f"example {index}: {name} must have three columns, got shape {nodes.shape}")
            if len(nodes) != matrix.shape[0]:
                raise ValueError(
                    f"example {index}: {len(nodes)} {name} but {matrix.shape[0]} rows of {what}; give one row each"
                )
            head, other = nodes[:, :2].T if name == "siblings" else nodes[:, 1::-1].T
            third = np.abs(other - head) if name == "siblings" else other
            order = np.lexsort((third, head, nodes[:, 2]))
            found.append(nodes[order])
            sorted_rows.append(matrix if (np.diff(order) == 1).all() else matrix[order])
        return found, checks.Rows(sorted_rows, rows.what)

    def parse_outputs(self, y: list[Any]) -> Trees:
        """Heads, and labels if there are any."""
        return Trees.parse(y)

    def learn(self, parsed: Parsed, y: Sequence[Any]) -> Self:
        """Widths, labels (sorted where they can be), and with a kernel the training arcs."""
        labels = Trees.parse(y).labels
        if labels is None and self.classes is not None:
            raise ValueError("classes were given, but y has no labels; give pairs (heads, labels), or leave them out")
        if self.classes is not None:
            return self._learned(parsed, distinct(self.classes))
        return self._learned(parsed, None if labels is None else labels.vocabulary())

    def learn_partial(self, parsed: Parsed, y: Sequence[Any]) -> Self:
        """Labels are those that are given somewhere, alone or as one of several."""
        labeled = [
            i for i, one in enumerate(y) if not isinstance(one, PartialParts) and heads_and_labels(one)[1] is not None
        ]
        if self.classes is not None or not labeled:
            return self._learned(parsed, None if self.classes is None else distinct(self.classes))
        return self._learned(parsed, partial_labels([y[i] for i in labeled], labeled).vocabulary())

    def _learned(self, parsed: Parsed, classes: tuple[Hashable, ...] | None) -> Self:
        """A copy that knows the labels, and the widths of the training data."""
        triples = [parsed.triples[name] for name in BLOCKS]
        if self.order == 2 and not any(triples):
            raise ValueError(
                "order=2 needs features of second order: give sibling_features or grandparent_features to mm.Sentence, "
                "or use order=1"
            )
        siblings, grandparents = (None if own is None else own[1].width for own in triples)
        return replace(
            self,
            classes=classes,
            n_features=parsed.rows.width,
            widths=(siblings, grandparents),
            support=self._support(parsed.rows),
        )

    def learn_blocks(self, blocks: Iterable[tuple[Any, Any]]) -> Self:
        """Widths are those of the first block, labels those of all."""
        learned = super().learn_blocks(blocks)
        if self.classes is not None or learned.classes is None:
            return learned
        seen: dict[Hashable, None] = {}
        for _, y in blocks:
            labels = Trees.parse(checks.examples(y, "y")).labels
            seen |= dict.fromkeys(labels.flat if labels is not None else ())
        return replace(learned, classes=Labels(list(seen), np.zeros(1, dtype=np.int64)).vocabulary())

    def batch(self, parsed: Parsed) -> Batch:
        """Candidates of all sentences, and triples of those that were seen in training."""
        parsed.rows.require(self.n_features)
        arcs = None if parsed.arcs is None else np.concatenate(parsed.arcs)
        offsets = parsed.rows.offsets
        settings: dict[str, Any] = {"n_labels": self.n_labels, "single_root": bool(self.single_root)}
        features = [self._arc_features(parsed.rows, offsets)]
        for name, width in zip(BLOCKS, self.widths, strict=True):
            given = parsed.triples[name]
            if (given is None) != (width is None):
                held = "no" if given is None else "has"
                raise ValueError(
                    f"example 0: {held} {name[:-1]}_features, other than in training; give them in both or in neither"
                )
            if given is not None:
                nodes, rows = given
                rows.require(width)
                settings[name] = np.concatenate(nodes), rows.offsets
                features.append(PartFeatures(rows.matrix, rows.offsets))
        trees = ProjectiveTrees if self.projective else NonProjectiveTrees
        structure = trees(parsed.n_tokens, arcs, None if arcs is None else offsets, **settings)
        return Batch(structure, features[0] if len(features) == 1 else Stacked(*features))

    def _arc_features(self, rows: checks.Rows, offsets: IntArray) -> Features:
        if self.n_labels == 1:
            return self._row_features(rows, offsets)
        matrix = self._row_matrix(rows)
        shared = TiedRows(matrix, offsets, self.n_labels, alike=True)
        return Beside(shared, TiedRows(shared.rows, offsets, self.n_labels))

    def encode(self, batch: Batch, y: Sequence[Any]) -> SparsePoint:
        """Trees to vertices."""
        trees = Trees.parse(y)
        if (trees.labels is None) != (self.classes is None):
            has, had = ("no labels", "had") if trees.labels is None else ("labels", "had none")
            raise ValueError(f"example 0: y has {has}, but the training data {had}")
        assert isinstance(batch.structure, DependencyTrees)
        for index, (own, n) in enumerate(zip(trees.heads, batch.structure.n_tokens.tolist(), strict=True)):
            if len(own) != n:
                raise ValueError(f"example {index}: {len(own)} heads for {n} tokens; give one head per token")
        if trees.labels is None:
            return batch.structure.encode(trees.heads)
        codes = trees.labels.codes(self._index)
        if self.n_labels == 1:
            return batch.structure.encode(trees.heads)
        return batch.structure.encode([np.stack(both) for both in zip(trees.heads, codes, strict=True)])

    def is_partial(self, output: Any) -> bool:
        """Trees with heads or labels that are None or sets, trees without labels where others have some, and
        :class:`PartialParts`."""
        if super().is_partial(output):
            return True
        heads, labels = heads_and_labels(output)
        return is_partial(heads) or (self.classes is not None if labels is None else is_partial(labels))

    def known_parts(self, structure: Structure, output: Any, index: int) -> Given:
        """See :meth:`Encoder.known_parts`."""
        if super().is_partial(output):
            return super().known_parts(structure, output, index)
        assert isinstance(structure, DependencyTrees)
        if self.classes is None:
            if heads_and_labels(output)[1] is not None:
                raise ValueError(f"example {index}: y has labels, but the training data had none; give heads alone")
            return known_arcs(structure, output, index, None)
        labels = partial_labels([output], [index])
        with numbered(np.array([index])):
            said = labels.table(self._index)[labels.codes]
        return known_arcs(structure, output, index, said)

    def decode(self, batch: Batch, outputs: Sequence[Any]) -> list[Any]:
        """Heads, or pairs of heads and lists of labels."""
        if self.classes is None:
            return list(outputs)
        if self.n_labels == 1:
            return [(heads, [self.classes[0]] * len(heads)) for heads in outputs]
        return [(heads, [self.classes[k] for k in labels.tolist()]) for heads, labels in outputs]

    def name_parts(self, batch: Batch, x: Any) -> list[Namer]:
        """Arcs by their tokens with heads and labels, and triples."""
        return tree_namers(batch.structure, lambda at: f"token {at}" if at else "root", self.classes)

    def name_weights(self, columns: ColumnNames) -> list[WeightTable]:
        """Those of arcs, with labels for all of them and for each, then of siblings and grandparents."""
        arcs = self._row_names(columns, self.n_features)
        names = [arcs]
        if self.n_labels > 1:
            n = arcs.size // self._columns
            names = [
                arcs._replace(size=n, name=lambda at: Name(arcs.name(at * self._columns).what, "any label")),
                arcs._replace(
                    size=n * self.n_labels,
                    name=lambda at: Name(
                        arcs.name(at // self.n_labels * self._columns).what,
                        str((self.classes or ())[at % self.n_labels]),
                    ),
                ),
            ]
        for name, width in zip(BLOCKS, self.widths, strict=True):
            if width:
                names.append(table(width, columns.of(f"{name[:-1]}_features", width)))
        return names

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Tokens with the right head (and label) out of all: attachment score, with labels if there are any."""
        right_heads, right_labels = heads_and_labels(gold)
        heads, labels = heads_and_labels(predicted)
        right = np.asarray(right_heads) == np.asarray(heads)
        if labels is not None:
            right &= np.array([a == b for a, b in zip(sequence(right_labels, 0), labels, strict=True)], dtype=bool)
        return float(right.sum()), float(len(heads))

    @property
    def n_weights(self) -> int:
        """Those of arcs, for all labels and for each, of siblings and of grandparents."""
        return self._n_row_weights(self.n_features) + sum(width or 0 for width in self.widths)

    @property
    def layout(self) -> tuple[Any, ...]:
        """Widths, the labels in order, the kernel and its training rows."""
        return self.kind, self.n_features, self.widths, self.classes, self._kernel_layout

    def _by_row(self, weights: FloatArray, n: int, *, back: bool = False) -> FloatArray:
        """The weights with those of one of ``n`` features side by side, as kernels need them; or ``back``."""
        own = weights[: n * self._columns]
        if self.n_labels > 1 and not back:
            own = np.hstack([own[:n, None], own[n:].reshape(n, -1)]).ravel()
        elif self.n_labels > 1:
            table = own.reshape(n, -1)
            own = np.concatenate([table[:, 0], table[:, 1:].ravel()])
        return np.concatenate([own, weights[n * self._columns :]])

    def to_model(self, weights: FloatArray) -> tuple[Encoder, FloatArray]:
        """See :meth:`KernelEncoder.to_model`."""
        if self.support is None:
            return self, weights
        encoder, own = super().to_model(self._by_row(weights, self.support.n_weights))
        assert isinstance(encoder, DependencyEncoder)
        assert encoder.support is not None
        return encoder, self._by_row(own, encoder.support.n_weights, back=True)

    def to_training(self, trained: Encoder, weights: FloatArray) -> FloatArray:
        """See :meth:`Encoder.to_training`."""
        assert isinstance(trained, DependencyEncoder)
        if self.support is None or trained.support is None:
            return weights
        own = super().to_training(trained, self._by_row(weights, trained.support.n_weights))
        return self._by_row(own, self.support.n_weights, back=True)

    def state(self) -> State:
        """Settings, widths, labels and the kernel."""
        return {
            "projective": bool(self.projective),
            "single_root": bool(self.single_root),
            "order": int(self.order),
            "classes": None if self.classes is None else [label_to_json(label) for label in self.classes],
            "n_features": self.n_features,
            "widths": list(self.widths),
            **self._kernel_state(),
        }

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        classes, widths = state["classes"], state["widths"]
        if classes is not None and not isinstance(classes, list):
            raise ValueError("its labels are not a list")
        if not isinstance(widths, list) or len(widths) != 2:
            raise ValueError("its widths are not a list of two")
        siblings, grandparents = (None if w is None else _checks.integer("widths", w, least=0) for w in widths)
        n_features = _checks.integer("n_features", state["n_features"], least=0)
        kernel, support = kernel_from_state(state, n_features)
        return cls(
            _checks.flag("projective", state["projective"]),
            _checks.flag("single_root", state["single_root"]),
            state["order"],
            None if classes is None else distinct([label_from_json(label) for label in classes]),
            n_features,
            (siblings, grandparents),
            kernel,
            support,
        )


def _arcs(x: Sentence, index: int, n_rows: int) -> tuple[int, IntArray]:
    """The number of tokens of a sentence, and its candidates as given."""
    if x.arcs is None:
        n = math.isqrt(n_rows)
        if n * n != n_rows:
            raise ValueError(
                f"example {index}: {n_rows} rows of features are not those of all arcs, n^2 for n tokens; list the arcs"
            )
        modifier, place = np.divmod(np.arange(n_rows), n)
        return n, np.stack([place + (place > modifier), modifier + 1], axis=1)
    arcs = checks.pairs(x.arcs, index, "arcs", "(n_arcs, 2)")
    if len(arcs) != n_rows:
        raise ValueError(f"example {index}: {len(arcs)} arcs but {n_rows} rows of features; give one row per arc")
    return int(arcs[:, 1].max(initial=0)), arcs


def _allowed(x: Sentence, index: int, arcs: IntArray) -> IntArray:
    """Numbers of the arcs that may be used, by modifier and then by head."""
    order = np.lexsort((arcs[:, 0], arcs[:, 1]))
    ordered = arcs[order]
    twice = np.flatnonzero((ordered[1:] == ordered[:-1]).all(axis=1))
    if twice.size:
        raise ValueError(f"example {index}: arc {tuple(ordered[twice[0]].tolist())} is listed twice; list it once")
    kept = np.ones(len(order), dtype=bool)
    for name in ("forbidden", "forced"):
        given = getattr(x, name)
        if given is None:
            continue
        wanted = {tuple(arc) for arc in checks.pairs(given, index, name, "(k, 2) of heads and modifiers").tolist()}
        found = np.array([tuple(arc) in wanted for arc in ordered.tolist()], dtype=bool)
        if name == "forbidden":
            kept &= ~found
            continue
        missing = wanted - {tuple(arc) for arc in ordered[found].tolist()}
        if missing:
            raise ValueError(f"example {index}: forced arc {min(missing)} is not a candidate; list it among the arcs")
        modifiers = ordered[found, 1]
        if len(set(modifiers.tolist())) != len(modifiers):
            raise ValueError(f"example {index}: two arcs to one token are forced; a token has one head")
        kept &= found | ~np.isin(ordered[:, 1], modifiers)
    return order[kept]


def tree_namers(structure: Any, token: Callable[[int], str], classes: Sequence[Hashable] | None = None) -> list[Namer]:
    """Names of the parts of one tree; ``token`` names a token, counted from 1, or the root, 0."""
    owner = np.repeat(np.arange(1, int(structure.n_tokens[0]) + 1), structure.n_states)

    def arc(at: int) -> Name:
        head, label = (int(one[0]) for one in structure.heads_of(np.array([at])))
        text = f"head {token(head)}"
        return Name(token(int(owner[at])), text if structure.n_labels == 1 else f"{text}, {(classes or ())[label]}")

    def sibling(at: int) -> Name:
        head, other, modifier = map(int, structure.triples_of("siblings", np.array([at]))[0])
        before = "first" if other == head else f"next to {token(other)}"
        return Name(token(modifier), f"{before} below {token(head)}")

    def grandparent(at: int) -> Name:
        above, head, modifier = map(int, structure.triples_of("grandparents", np.array([at]))[0])
        return Name(token(modifier), f"below {token(head)} below {token(above)}")

    namers = {"arcs": arc, "siblings": sibling, "grandparents": grandparent}
    return [namers[block.name] for block in structure.blocks]

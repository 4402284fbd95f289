"""Encoders: from lists of user data to packed batches, and from outputs back to what users read.

An encoder is a small immutable object: its settings, and what :meth:`Encoder.fit` learned from the training data
(numbers of features, label vocabulary). With the weights it is all a model needs, and all a model file stores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _memory
from maxmargin.encoders.data import checks
from maxmargin.encoders.data.names import ColumnNames, FeatureNamer, Namer, WeightNames, WeightTable, by_number, table
from maxmargin.encoders.data.partial import PartialParts, numbered, partial_parts
from maxmargin.features.base import Features
from maxmargin.structures._arrays import ranges
from maxmargin.structures.base import FloatArray, IntArray, Points, Structure
from maxmargin.structures.fallbacks.given import Given
from maxmargin.structures.sparse import SparsePoint

State = dict[str, Any]
"""The part of a model file that belongs to an encoder, by name: NumPy arrays and plain JSON values."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Encoded inputs: what outputs are legal, and the features of their parts."""

    structure: Structure
    features: Features

    def select(self, examples: IntArray) -> Batch:
        """The batch of the given examples."""
        return Batch(self.structure.select(examples), self.features.select(examples))

    def pieces(self) -> Iterator[tuple[IntArray, Batch]]:
        """Numbers and batch of consecutive examples, piece by piece, small enough for packed vectors."""
        pieces = list(self.structure.consecutive())
        for examples in pieces:
            yield examples, self if len(pieces) == 1 else self.select(examples)


_KINDS: dict[str, type[Encoder]] = {}
_HOMES = {
    "associative": "maxmargin.encoders.labelings.associative",
    "candidates": "maxmargin.encoders.candidates",
    "chain": "maxmargin.encoders.labelings.chain",
    "cut": "maxmargin.encoders.cut",
    "dependency": "maxmargin.encoders.dependency",
    "edits": "maxmargin.encoders.deductions.edits",
    "grammar": "maxmargin.encoders.deductions.grammar",
    "graph": "maxmargin.encoders.labelings.graph",
    "lattice": "maxmargin.encoders.lattice",
    "matching": "maxmargin.encoders.matchings.matching",
    "pairing": "maxmargin.encoders.matchings.pairing",
    "parts": "maxmargin.encoders.parts",
    "program": "maxmargin.encoders.program",
    "segments": "maxmargin.encoders.deductions.segments",
    "sublabels": "maxmargin.encoders.labelings.sublabels",
    "tree": "maxmargin.encoders.labelings.tree",
    "sequence tagging": "maxmargin.tasks.tagging.encoder.tagging",
    "dependency parsing": "maxmargin.tasks.parsing.encoder.parsing",
    "dependency relations": "maxmargin.tasks.parsing.encoder.relations",
    "dependency trees": "maxmargin.tasks.parsing.encoder.heads",
    "word alignment": "maxmargin.tasks.alignment.encoder.alignment",
    "image segmentation": "maxmargin.tasks.segmentation.encoder.images",
    "reranking": "maxmargin.tasks.reranking.encoder.reranking",
    "scan segmentation": "maxmargin.tasks.segmentation.encoder.scans",
}
"""The modules that define the library's own kinds, imported when a file of that kind is loaded."""


def encoder_of_kind(kind: Any) -> type[Encoder]:
    """The encoder class of a kind of model; ValueError if there is none."""
    if isinstance(kind, str) and kind in _HOMES:
        import_module(_HOMES[kind])
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"it holds an unknown kind of model, {kind!r}; import the module that defines it, or update")
    return _KINDS[kind]


def kinds_in(package: str) -> list[str]:
    """Return the library's own kinds of models whose encoders a package defines."""
    return [kind for kind, home in _HOMES.items() if home.startswith(f"{package}.")]


class Encoder(ABC):
    """Translates between user data and packed batches.

    A subclass gives :meth:`parse`, :meth:`learn`, :meth:`batch`, :meth:`encode`, :meth:`agreement`, :attr:`n_weights`,
    :meth:`state` and :meth:`from_state`; :meth:`fit` and :meth:`transform` put them together, so that inputs are
    parsed once.
    """

    kind: ClassVar[str]
    """The word for this encoder in model files, by which :func:`maxmargin.load` finds it."""

    version: ClassVar[int] = 1
    """Version of its part of model files: raised if a file that was written before would load, but mean something else.

    Such files are refused. A file that does not say its version has 1.
    """

    model_class: ClassVar[str] = "maxmargin.models.base:Model"
    """Where the class of its models is defined, as ``module:class``; by name, as models stand above encoders."""

    metrics: ClassVar[tuple[str, ...]] = ()
    """Names of dev scores that its models know, besides functions of gold and predicted outputs."""

    decodes_datasets: ClassVar[bool] = True
    """Whether a batch of a dataset on disk has all that outputs are decoded with."""

    classes: tuple[Hashable, ...] | None = None
    """Where outputs choose among labels: all of them, in the order of the weights' columns."""

    @cached_property
    def _index(self) -> dict[Hashable, int]:
        """The number of each label."""
        return {label: k for k, label in enumerate(self.classes or ())}

    @property
    def n_labels(self) -> int:
        """How many labels there are; 0 where outputs have none."""
        return len(self.classes or ())

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if "kind" in vars(cls):
            _KINDS[cls.kind] = cls

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> tuple[Self, Batch, SparsePoint]:
        """An encoder that knows the training data's feature counts and labels, their batch, and the gold outputs."""
        X, y = checks.examples(X), self.parse_outputs(checks.examples(y, "y"))
        checks.same_length(X, y)
        parsed = self.parse(X)
        fitted = self.learn(parsed, y)
        _memory.require(
            8.0 * fitted.n_weights, f"a model of {fitted.n_weights} weights", "give fewer features or labels"
        )
        batch = fitted.batch(parsed)
        return fitted, batch, fitted.encode(batch, y)

    def fit_partial(self, X: Sequence[Any], y: Sequence[Any]) -> tuple[Self, Batch, Given]:
        """As :meth:`fit`, with outputs that are known in part, and what is known of the parts in their place."""
        X, y = checks.examples(X), checks.examples(y, "y")
        checks.same_length(X, y)
        parsed = self.parse(X)
        fitted = self.learn_partial(parsed, y)
        batch = fitted.batch(parsed)
        return fitted, batch, fitted.given(batch, y)

    def learn_partial(self, parsed: Any, y: Sequence[Any]) -> Self:
        """As :meth:`learn`, from outputs that are known in part: here from the whole ones among them."""
        whole = [one for one in y if not self.is_partial(one)]
        return self.learn(parsed, self.parse_outputs(whole))

    def is_partial(self, output: Any) -> bool:
        """Whether an output is known in part: :class:`PartialParts`, unless an encoder knows other forms."""
        return isinstance(output, PartialParts)

    def known_parts(self, structure: Structure, output: Any, index: int) -> Given:
        """What is known of the variable parts of one output that is known in part, that of example ``index``."""
        first, last = structure.blocks[0].offsets[index : index + 2].tolist()
        return partial_parts(output, index, last - first)

    def given(self, batch: Batch, y: Sequence[Any]) -> Given:
        """What is known of the variable parts of outputs: 1 for parts that they have, -1 for others, 0 if unknown."""
        structure = batch.structure
        offsets = structure.blocks[0].offsets
        found = np.zeros(structure.starts[1], dtype=np.int8)
        partial = np.array([self.is_partial(one) for one in y], dtype=bool)
        for index in np.flatnonzero(partial).tolist():
            first, last = offsets[index : index + 2].tolist()
            found[first:last] = self.known_parts(structure, y[index], index)
        whole = np.flatnonzero(~partial)
        if len(whole):
            with numbered(whole):
                own = batch if len(whole) == len(y) else batch.select(whole)
                gold = self.encode(own, self.parse_outputs([y[index] for index in whole.tolist()])).dense()
            known = np.where(gold[own.structure.variable_parts] > 0.5, 1, -1)
            found[ranges(offsets[whole], offsets[whole + 1])] = known
        return found

    def first_given(self, batch: Batch, given: Given, random: np.random.Generator) -> Given:
        """What the first round of training takes as given: more, where hidden parts that are all alike must differ."""
        return given

    def transform(self, X: Sequence[Any]) -> Batch:
        """Check the inputs and pack them; ValueError naming the example if one does not fit."""
        return self.batch(self.parse(checks.examples(X)))

    @abstractmethod
    def parse(self, X: list[Any]) -> Any:
        """The inputs as checked arrays, in a form that :meth:`learn` and :meth:`batch` share."""

    def parse_outputs(self, y: list[Any]) -> Sequence[Any]:
        """The outputs in a form that :meth:`learn` and :meth:`encode` share; as given unless overridden."""
        return y

    @abstractmethod
    def learn(self, parsed: Any, y: Sequence[Any]) -> Self:
        """A copy that knows the feature counts and labels of parsed training data."""

    def learn_blocks(self, blocks: Iterable[tuple[Any, Any]]) -> Self:
        """A copy that knows what :meth:`learn` would learn from all data, which come in blocks ``(X, y)``.

        ``blocks`` can be gone through several times, and only one of them needs to be in memory. An encoder without
        this method learns from all data at once.
        """
        raise ValueError(
            f"{type(self).__name__} learns from all data at once and cannot learn from blocks; train in memory"
        )

    def training_blocks(self, blocks: Iterable[Any]) -> Iterator[Any]:
        """The blocks that it was fitted to, as a dataset encodes them; as they are unless overridden.

        A block has attributes ``X``, ``y`` and weights, and a method ``of(X, y, examples)``: other inputs and outputs
        of some of its examples.
        """
        return iter(blocks)

    def rebatched(self, batch: Batch) -> Batch:
        """A batch that was packed with other weights, for the weights of this encoder; itself unless overridden."""
        return batch

    @property
    def remembered(self) -> dict[str, Any]:
        """What training on a dataset needs to know and :meth:`state` does not have, as plain JSON values."""
        return {}

    def recalled(self, remembered: dict[str, Any]) -> Self:
        """The encoder of a file with :attr:`remembered`; ValueError or KeyError if it makes no sense."""
        return self

    @property
    def settings(self) -> str:
        """Before it is fitted: what decides what it will learn, as Python writes it."""
        return repr(self)

    @property
    def shared(self) -> tuple[Any, ...]:
        """Objects that all batches refer to, such as a pattern of the weights: a dataset on disk keeps them once."""
        return ()

    @abstractmethod
    def batch(self, parsed: Any) -> Batch:
        """Pack parsed inputs."""

    @abstractmethod
    def encode(self, batch: Batch, y: Sequence[Any]) -> SparsePoint:
        """Outputs as vertices of the batch; ValueError naming the example if one is not legal."""

    def check(self, batch: Batch, y: Sequence[Any]) -> None:
        """Refuse outputs that predictions cannot be compared with: by default those that are not legal."""
        self.encode(batch, y)

    def decode(self, batch: Batch, outputs: Sequence[Any]) -> list[Any]:
        """Outputs of the structure, one per example, as users write them."""
        return list(outputs)

    def k_best(self, structure: Structure, scores: FloatArray, k: int) -> list[Points]:
        """The ``k`` best vertices whose outputs differ for users; see :meth:`Structure.k_best`."""
        return structure.k_best(scores, k)

    def vertex_of(self, batch: Batch, y: Sequence[Any], scores: FloatArray) -> FloatArray:
        """The vertices of outputs as users write them, packed; of outputs known in part the best ones that agree."""
        y = checks.examples(y, "y")
        if any(map(self.is_partial, y)):
            return self._best_agreeing(batch, y, scores)
        return self.encode(batch, self.parse_outputs(y)).dense()

    def _best_agreeing(self, batch: Batch, y: Sequence[Any], scores: FloatArray) -> FloatArray:
        """The best vertices among those that agree with what is known of outputs."""
        from maxmargin.problem.partial import PartialOutputs

        known = PartialOutputs.build(batch.structure, self.given(batch, y))
        return known.best(batch.structure, scores)[0].dense()

    def name_parts(self, batch: Batch, x: Any) -> list[Namer]:
        """For each block of the parts of one input a function that names them; ``batch`` holds ``x`` alone."""
        return [by_number(block.name.removesuffix("s")) for block in batch.structure.blocks]

    def name_weights(self, columns: ColumnNames) -> list[WeightTable]:
        """Names of all weights, table after table."""
        return [table(self.n_weights, columns.of("features", self.n_weights))]

    def name_features(self, batch: Batch, x: Any, columns: ColumnNames) -> FeatureNamer:
        """A function that names the features of the parts of one input: by default those of their weights."""
        return WeightNames(self.name_weights(columns))

    @abstractmethod
    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """``(right, out of)`` for one example; a model's score is the ratio of the (weighted) sums."""

    @property
    @abstractmethod
    def n_weights(self) -> int:
        """How many weights a model of these feature counts and labels has."""

    @property
    def layout(self) -> tuple[Any, ...]:
        """The meaning of the weights: models with equal layouts can start from each other's weights."""
        return self.kind, self.n_weights

    def nonnegative(self) -> npt.NDArray[np.bool_] | None:
        """Weights that must be >= 0 for the outputs to stay tractable, as a mask, or None."""
        return None

    @property
    def l1_unsupported(self) -> str:
        """Why an L1 norm of the weights is refused, and what to use instead; empty if it is supported."""
        return ""

    @property
    def signs_unsupported(self) -> str:
        """Why ``nonnegative`` weights of the caller's choice are refused; empty if they are supported."""
        return ""

    def to_model(self, weights: FloatArray) -> tuple[Encoder, FloatArray]:
        """The encoder and weights of the trained model, where training uses other coordinates (kernels)."""
        return self, weights

    def to_training(self, trained: Encoder, weights: FloatArray) -> FloatArray:
        """Training weights from those of a trained model of the same layout: the inverse of :meth:`to_model`."""
        return weights

    def describe(self) -> dict[str, Any]:
        """A summary for users, as plain JSON values."""
        state = {name: value for name, value in self.state().items() if not isinstance(value, (np.ndarray, list, dict))}
        return state | ({} if self.classes is None else {"labels": len(self.classes)})

    @abstractmethod
    def state(self) -> State:
        """Settings and what was learned, for :meth:`from_state`."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State) -> Self:
        """The encoder of a model file; ValueError, KeyError or TypeError if the state makes no sense."""

    def stored(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Its part of a file's header, as plain JSON values, and its arrays, for :func:`stored_encoder`."""
        state = self.state()
        arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
        plain = {name: value for name, value in state.items() if name not in arrays}
        return {"kind": self.kind, "version": self.version, "encoder": plain}, arrays


def stored_encoder(header: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Encoder:
    """The encoder of a file; ValueError, KeyError or TypeError if its state makes no sense."""
    found, version = encoder_of_kind(header["kind"]), header.get("version", 1)
    if isinstance(version, bool) or not isinstance(version, int):
        raise ValueError("the version in its header is not a whole number")
    if version != found.version:
        remedy = "train the model again" if version < found.version else "update maxmargin"
        raise ValueError(
            f"its {found.kind} model has version {version}, this maxmargin reads {found.version}; {remedy}"
        )
    return found.from_state({**header["encoder"], **arrays})

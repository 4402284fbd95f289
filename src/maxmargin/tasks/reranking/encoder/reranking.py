"""The encoder of rerankers: lists of hypotheses to rows of dense and sparse features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from maxmargin import _checks
from maxmargin._messages import quoted, shortened
from maxmargin._sparse import sp
from maxmargin.encoders.base import Batch, Encoder, State
from maxmargin.encoders.data.names import ColumnNames, Name, Namer, WeightTable, table
from maxmargin.features.parts import PartFeatures
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.candidates import Candidates
from maxmargin.structures.sparse import SparsePoint
from maxmargin.tasks.reranking.encoder.named import (
    LARGEST,
    NamedFeatures,
    NamedLearner,
    NamedRows,
    sparse_of_file,
    too_large,
)
from maxmargin.tasks.reranking.encoder.ngrams import NgramFeatures, NgramLearner
from maxmargin.tasks.reranking.encoder.phrases import phrase_pairs
from maxmargin.tasks.reranking.io.forms import as_lists
from maxmargin.tasks.reranking.io.lists import NBestLists

NORMALIZATIONS = ("spread", "list", "none")
LENGTH = "length"


@dataclass(frozen=True, eq=False)
class RerankingEncoder(Encoder):
    """Rows of features: dense ones in comparable units, then sparse ones.

    Args:
        normalize: units of dense features: "spread" divides each by its standard deviation within training lists, so
            that weights can be given back to a decoder; "list" makes mean 0 and standard deviation 1 within each list;
            "none" takes features as they are.
        length: whether the number of words is a dense feature.
        ngrams: the longest word n-grams that are features; 0 for none.
        phrases: whether phrase pairs are features; lists need segments.
        min_lists: sparse features must tell hypotheses apart in so many training lists.

    Attributes:
        names: the dense features.
        scale: what each dense feature is divided by, shape ``(len(names),)``.
        sparse: the sparse features by kind: "file", "ngrams" and "phrases", as far as there are any.
    """

    normalize: str = "spread"
    length: bool = False
    ngrams: int = 0
    phrases: bool = False
    min_lists: int = 1
    names: tuple[str, ...] = ()
    scale: FloatArray = field(default_factory=lambda: np.zeros(0))
    sparse: dict[str, NamedFeatures | NgramFeatures] = field(default_factory=dict)

    kind = "reranking"
    model_class = "maxmargin.tasks.reranking.model:RerankerModel"
    decodes_datasets = False  # whose columns may have another sign

    def __post_init__(self) -> None:
        _checks.one_of("normalize", self.normalize, NORMALIZATIONS)
        _checks.flag("length", self.length)
        _checks.flag("phrases", self.phrases)
        _checks.integer("ngrams", self.ngrams, least=0)
        _checks.integer("min_lists", self.min_lists, least=1)

    # From lists to rows.

    def fit_rows(self, lists: NBestLists) -> tuple[Self, Any]:
        """Return an encoder that knows the features of training lists, and their rows as :meth:`rows` returns them."""
        names = (*lists.names, *((LENGTH,) if self.length and LENGTH not in lists.names else ()))
        fitted = replace(self, names=names, scale=np.ones(len(names)), sparse={})
        dense = fitted._dense(lists)
        if self.normalize == "spread":
            spread = _Spread()
            spread.add(dense, lists.offsets)
            fitted, dense = replace(fitted, scale=spread.scale), dense / spread.scale
        sparse: dict[str, Any] = {}
        blocks = []
        for kind in self._kinds(lists):
            if kind == "ngrams":
                sparse[kind], rows = NgramFeatures.learn(lists.texts, lists.offsets, self.ngrams, self.min_lists)
            else:
                sparse[kind], rows = NamedFeatures.learn(_named(kind, lists, names), lists.offsets, self.min_lists)
            blocks.append(rows)
        fitted = replace(fitted, sparse=sparse)
        fitted._require_features()
        return fitted, _joined(dense, blocks)

    def _require_features(self) -> None:
        if not self.names and not any(found.n_features for found in self.sparse.values()):
            raise ValueError("the lists have no features; give feature files, or ngrams or length")

    def rows(self, lists: NBestLists) -> Any:
        """Return the features of hypotheses, shape ``(n_hypotheses, n_weights)``: an array, CSR if any are sparse."""
        numbered = tuple(f"x{column}" for column in range(len(lists.names)))  # columns of matrices have no other names
        known = [name for name in self.names if name in numbered]
        if lists.names == numbered and not self.sparse and 0 < len(known) < len(numbered):
            raise ValueError(
                f"features have {len(numbered)} columns, expected {len(known)}; give the same features in the same "
                "columns in training and in prediction"
            )
        blocks = [
            found.transform(lists.texts)
            if isinstance(found, NgramFeatures)
            else found.transform(_named(kind, lists, self.names))
            for kind, found in self.sparse.items()
        ]
        return _joined(self._dense(lists) / self.scale, blocks)

    def _kinds(self, lists: NBestLists) -> list[str]:
        wanted = {"file": lists.sparse is not None, "ngrams": self.ngrams > 0, "phrases": self.phrases}
        return [kind for kind, there in wanted.items() if there]

    def _dense(self, lists: NBestLists) -> FloatArray:
        """Dense features in the order of :attr:`names`, normalized within lists if that is asked for."""
        columns = dict(zip(lists.names, lists.values.T, strict=True))
        if self.length and LENGTH not in columns:
            columns[LENGTH] = np.array([len(text.split()) for text in lists.texts], dtype=np.float64)
        missing = [name for name in self.names if name not in columns]
        if missing and lists.sparse is not None:  # a feature that training lists never lacked, and these do
            place = {name: at for at, name in enumerate(lists.sparse_names)}
            columns |= {name: lists.sparse[:, [place[name]]].toarray()[:, 0] for name in missing if name in place}
            missing = [name for name in missing if name not in place]
        if missing:
            raise ValueError(
                f"the lists lack the feature {quoted(missing[0])} that the model was trained with"
                + (f" (and {len(missing) - 1} more)" if len(missing) > 1 else "")
                + f"; they have {shortened(', '.join(lists.names), 300) or 'none'}"
            )
        found = [columns[name] for name in self.names]
        dense = np.stack(found, axis=1) if found else np.zeros((lists.n_hypotheses, 0))
        if (np.abs(dense) > LARGEST).any():
            row, column = (int(at) for at in np.argwhere(np.abs(dense) > LARGEST)[0])
            raise too_large(lists, row, self.names[column], dense[row, column])
        if self.normalize == "list":
            dense = _within_lists(dense, lists.offsets)
        return np.ascontiguousarray(dense)

    # The contract of encoders.

    def parse(self, X: Any) -> NBestLists:
        """The lists of any form that :func:`as_lists` takes."""
        return as_lists(X)

    def transform(self, X: Any) -> Batch:
        """See :meth:`Encoder.transform`."""
        return self.batch(self.parse(X))

    def learn(self, parsed: NBestLists, y: Sequence[Any]) -> Self:
        """A copy that knows the features of training lists."""
        return self.fit_rows(parsed)[0]

    def learn_blocks(self, blocks: Iterable[tuple[Any, Any]]) -> Self:
        """What all lists together teach: features that every hypothesis has are dense; scales are the same but for
        rounding, sparse features of files may stand in another order."""
        names: tuple[str, ...] | None = None
        kinds: dict[str, None] = {}
        for X, _ in blocks:
            lists = as_lists(X)
            own = (*lists.names, *((LENGTH,) if self.length and LENGTH not in lists.names else ()))
            names = own if names is None else tuple(name for name in names if name in set(own))
            kinds |= dict.fromkeys(self._kinds(lists))
        if names is None:
            raise ValueError("there are no lists: give at least one")
        fitted = replace(self, names=names, scale=np.ones(len(names)), sparse={})
        if any(set(as_lists(X).names) - set(names) for X, _ in blocks):
            kinds = {"file": None, **kinds}  # some hypotheses lack features that are dense elsewhere
        spread = _Spread()
        learners: dict[str, Any] = {
            kind: NgramLearner(self.ngrams) if kind == "ngrams" else NamedLearner()
            for kind in ("file", "ngrams", "phrases")
            if kind in kinds
        }
        if self.normalize == "spread" or learners:
            for X, _ in blocks:
                lists = as_lists(X)
                spread.add(fitted._dense(lists), lists.offsets)
                for kind, learner in learners.items():
                    learner.add(lists.texts if kind == "ngrams" else _named(kind, lists, names), lists.offsets)
        if self.normalize == "spread":
            fitted = replace(fitted, scale=spread.scale)
        sparse = {kind: learner.features(self.min_lists)[0] for kind, learner in learners.items()}
        fitted = replace(fitted, sparse=sparse)
        fitted._require_features()
        return fitted

    def batch(self, parsed: NBestLists) -> Batch:
        """Lists of candidates with rows of features."""
        return Batch(Candidates(parsed.sizes), PartFeatures(self.rows(parsed), parsed.offsets))

    def encode(self, batch: Batch, y: Sequence[Any]) -> SparsePoint:
        """The chosen hypotheses, counted from 0 in each list."""
        return batch.structure.encode(y)

    def agreement(self, gold: Any, predicted: Any) -> tuple[float, float]:
        """Whether the same hypothesis was chosen."""
        return float(gold == predicted), 1.0

    @property
    def n_weights(self) -> int:
        """A weight per dense feature, then those of the sparse ones."""
        return len(self.names) + sum(found.n_features for found in self.sparse.values())

    def feature_names(self) -> list[str]:
        """Return a readable name for every weight; those of n-grams and phrase pairs begin with their kind."""
        kinds = {"ngrams": "ngram ", "phrases": "phrase "}
        sparse = (f"{kinds.get(kind, '')}{name}" for kind, found in self.sparse.items() for name in found.names())
        return [*self.names, *sparse]

    # The file.

    def name_parts(self, batch: Batch, x: Any) -> list[Namer]:
        """Return a function that names hypotheses by their numbers, from 1, and texts."""
        texts = as_lists([x]).texts if not isinstance(x, NBestLists) else x.texts
        return [lambda at: Name(f"hypothesis {at + 1}{f' {texts[at]!r}' if texts[at] else ''}")]

    def name_weights(self, columns: ColumnNames) -> list[WeightTable]:
        """Return the names of all weights."""
        names = self.feature_names()
        return [table(len(names), names.__getitem__)]

    def describe(self) -> dict[str, Any]:
        """Return a summary as plain JSON values."""
        counts = {f"sparse_{kind}": found.n_features for kind, found in self.sparse.items()}
        return {"dense": list(self.names), **counts, "normalize": self.normalize}

    def state(self) -> State:
        """Return settings, names and scales, and the sparse features."""
        settings = {name: getattr(self, name) for name in ("normalize", "length", "ngrams", "phrases", "min_lists")}
        arrays: State = {"scale": self.scale}
        for kind, found in self.sparse.items():
            arrays |= {f"{kind}_{name}": value for name, value in found.state().items()}
        return {**settings, "names": list(self.names), "sparse": list(self.sparse), **arrays}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """See :meth:`Encoder.from_state`."""
        names, scale, kinds = state["names"], state["scale"], state["sparse"]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("its names of features are damaged")
        if scale.dtype != np.float64 or scale.shape != (len(names),) or not (scale > 0).all():
            raise ValueError("its scales of features are damaged")
        if not isinstance(kinds, list) or not set(kinds) <= {"file", "ngrams", "phrases"}:
            raise ValueError("its kinds of sparse features are unknown")
        sparse: dict[str, Any] = {}
        for kind in kinds:
            own = {name.removeprefix(f"{kind}_"): value for name, value in state.items() if name.startswith(f"{kind}_")}
            sparse[kind] = (NgramFeatures if kind == "ngrams" else NamedFeatures).from_state(own)
        settings = {name: state[name] for name in ("normalize", "length", "ngrams", "phrases", "min_lists")}
        return cls(**settings, names=tuple(names), scale=scale, sparse=sparse)


def _named(kind: str, lists: NBestLists, dense: Sequence[str]) -> NamedRows:
    return sparse_of_file(lists, dense) if kind == "file" else phrase_pairs(lists)


def _joined(dense: FloatArray, blocks: list[Any]) -> Any:
    if not blocks:
        return np.ascontiguousarray(dense)
    return sp.csr_array(sp.hstack([*([sp.csr_array(dense)] if dense.shape[1] else []), *blocks], format="csr"))


def _moments(values: FloatArray, offsets: IntArray) -> tuple[FloatArray, FloatArray]:
    """Each column less its mean within each list, and its standard deviation there, repeated for the rows."""
    sizes = np.diff(offsets)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    # Around the first row of the list: large numbers with a small spread lose nothing.
    shifted = values - values[offsets[:-1]][owner]
    mean = np.add.reduceat(shifted, offsets[:-1], axis=0) / sizes[:, None]
    centered = shifted - mean[owner]
    deviation = np.sqrt(np.add.reduceat(np.square(centered), offsets[:-1], axis=0) / sizes[:, None])
    return centered, deviation[owner]


class _Spread:
    """The standard deviation of each column within lists, over all lists, which may come in blocks."""

    def __init__(self) -> None:
        self._squares: Any = 0.0
        self._largest: Any = 0.0
        self._rows = 0

    def add(self, values: FloatArray, offsets: IntArray) -> None:
        """Add lists."""
        centered, _ = _moments(values, offsets)
        self._squares = self._squares + np.square(centered).sum(axis=0)
        self._largest = np.maximum(self._largest, np.abs(values).max(axis=0, initial=0.0))
        self._rows += len(values)

    @property
    def scale(self) -> FloatArray:
        """It, or 1 for columns that never vary."""
        spread = np.sqrt(self._squares / max(self._rows, 1))
        return np.where(spread > 1e-12 * self._largest, spread, 1.0)


def _within_lists(values: FloatArray, offsets: IntArray) -> FloatArray:
    """Each column with mean 0 and standard deviation 1 within each list; 0 where it does not vary."""
    centered, deviation = _moments(values, offsets)
    return np.where(
        deviation > 1e-12 * (1.0 + np.abs(values)), centered / np.where(deviation > 0.0, deviation, 1.0), 0.0
    )

"""A trained model: weights and a packer. Predicts, lists the best outputs, scores, saves and loads."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _threads, model_file
from maxmargin._callers import callers_level
from maxmargin._version import __version__
from maxmargin.encoders import ENCODERS, checks
from maxmargin.encoders.base import Batch, Encoder
from maxmargin.encoders.parts import PartsEncoder
from maxmargin.optimization.checkpoint import CHECKPOINT
from maxmargin.structures.base import FloatArray, IntArray, Points, PointStatus, Structure
from maxmargin.structures.network import Network

_WHOLE = 1e-6
"""Marginals nearer than this to 0 or 1 count as whole."""


@dataclass(frozen=True, eq=False)
class Relaxation:
    """What a linear relaxation says of one example's predicted labels.

    Attributes:
        labels: the prediction, one label per node.
        marginals: node parts of the relaxed maximum, shape ``(n_nodes, n_labels)``, columns as in ``classes_``.
        fractional: nodes whose marginals are not 0 or 1, shape ``(n_nodes,)``, bool.
        score: ``w'f(x, labels)``.
        bound: the relaxed maximum: no labels have a larger score.
        exact: whether the score meets the bound, so that the labels are known to be the best.
    """

    labels: list[Hashable]
    marginals: FloatArray
    fractional: npt.NDArray[np.bool_]
    score: float
    bound: float
    exact: bool


@dataclass(frozen=True, eq=False)
class Model:
    """Weights plus what is needed to apply them.

    Attributes:
        weights: shape ``(n_weights,)``; of kernel features, the dual coefficients of the support rows.
        packer: turns inputs into packed batches and outputs back.
        facts: how the model was trained (certificate, status, settings), as plain JSON values.
        n_jobs: threads for prediction, as scikit-learn reads it.
    """

    weights: FloatArray
    encoder: Encoder
    metadata: dict[str, Any] = field(default_factory=dict)
    n_jobs: int | None = None

    @property
    def coef_(self) -> FloatArray:
        """The weights, by the name they have on an estimator."""
        return self.weights

    @property
    def classes_(self) -> tuple[Hashable, ...]:
        """Where a model chooses among labels: all of them, in the order of the weights' columns."""
        if self.encoder.classes is None:
            raise AttributeError(f"a {self.encoder.kind} model has no classes_")
        return self.encoder.classes

    def predict(self, X: Sequence[Any]) -> list[Any]:
        """The best output of each example, ``argmax_y w'f(x, y)``."""
        with _threads.threads(self.n_jobs):
            return self._outputs(self.encoder.pack(X))

    def k_best(self, X: Sequence[Any], k: int) -> list[list[tuple[Any, float]]]:
        """The ``k`` best outputs of each example with their scores, best first; fewer where there are fewer."""
        k = checks.integer(k, "k", at_least=1)
        lists: list[list[tuple[Any, float]]] = []
        with _threads.threads(self.n_jobs):
            for examples, piece in self.encoder.pack(X).pieces():
                ranks = piece.structure.k_best(self._scores(piece), k)
                _finite(ranks[0], examples)
                found: list[list[tuple[Any, float]]] = [[] for _ in examples]
                for points in ranks:
                    outputs = self.encoder.decode(piece, points.z)
                    for i, output in enumerate(outputs):
                        if points.status[i] != PointStatus.ABSENT:
                            found[i].append((output, float(points.value[i])))
                lists += found
        return lists

    def decision_function(self, X: Sequence[Any]) -> FloatArray:
        """The score ``max_y w'f(x, y)`` of the best output of each example, shape ``(n_examples,)``."""
        with _threads.threads(self.n_jobs):
            packed = self.encoder.pack(X)
            return np.concatenate([points.value for _, points in self._best(packed)])

    def relaxation(self, X: Sequence[Any]) -> list[Relaxation]:
        """For each example the predicted labels, and what the relaxation of its graph says of them.

        For models of general graphs and associative networks; predictions of others are exact.
        """
        found: list[Relaxation] = []
        with _threads.threads(self.n_jobs):
            for examples, piece in self.encoder.pack(X).pieces():
                structure = piece.structure
                if not isinstance(structure, Network):
                    raise ValueError(f"relaxation is for graphs and associative networks, not for {structure.called}")
                relaxed, best = structure.relax(self._scores(piece))
                _finite(best, examples)
                marginals = relaxed.z[structure.variable_parts].reshape(-1, structure.n_labels)
                by_example = np.split(marginals, np.cumsum(structure.n_nodes)[:-1])
                found += [
                    Relaxation(
                        labels,
                        own,
                        np.asarray(((own > _WHOLE) & (own < 1.0 - _WHOLE)).any(axis=1)),
                        float(best.value[i]),
                        float(relaxed.value[i]),
                        bool(best.status[i] == PointStatus.OK),
                    )
                    for i, (labels, own) in enumerate(zip(self.encoder.decode(piece, best.z), by_example, strict=True))
                ]
        return found

    def score(self, X: Sequence[Any], y: Sequence[Any], sample_weight: npt.ArrayLike | None = None) -> float:
        """How much of the outputs is right, in [0, 1].

        Where positions or nodes have labels (chains, trees, cuts, graphs): the share of right labels; matchings and
        linear programs: F1 over the links or parts; structures of one's own: the share of outputs right as a whole.
        """
        X, y = checks.examples(X), checks.examples(y, "y")
        checks.same_length(X, y)
        weight = checks.weights(sample_weight, len(X))
        with _threads.threads(self.n_jobs):
            packed = self.encoder.pack(X)
            self.encoder.gold(packed, y)  # refuses outputs that are not legal
            return self._agreement(packed, y, weight)

    def scorer(self, X: Sequence[Any], y: Sequence[Any]) -> Callable[[FloatArray], float]:
        """A function of weights that is their :meth:`score` on these data, which are checked and packed only once."""
        X, y = checks.examples(X), checks.examples(y, "y")
        checks.same_length(X, y)
        packed = self.encoder.pack(X)
        self.encoder.gold(packed, y)

        def score(weights: FloatArray) -> float:
            with _threads.threads(self.n_jobs):
                return Model(weights, self.encoder)._agreement(packed, y, None)

        return score

    def _agreement(self, packed: Batch, y: Sequence[Any], weight: FloatArray | None) -> float:
        predicted = self._outputs(packed)
        counts = np.array([self.encoder.agreement(gold, found) for gold, found in zip(y, predicted, strict=True)])
        right, total = counts.T @ (np.ones(len(counts)) if weight is None else weight)
        return float(right / total) if total > 0 else 1.0

    def _best(self, packed: Batch) -> Iterator[tuple[Batch, Points]]:
        """The best outputs, a piece of the batch at a time."""
        for examples, piece in packed.pieces():
            points = _finite(piece.structure.predict(self._scores(piece)), examples)
            _warn_of_fractions(piece.structure, points, examples)
            yield piece, points

    def _outputs(self, packed: Batch) -> list[Any]:
        return [output for piece, points in self._best(packed) for output in self.encoder.decode(piece, points.z)]

    def _scores(self, packed: Batch) -> FloatArray:
        if packed.features.n_weights != self.weights.shape[0]:
            raise ValueError(f"the inputs need {packed.features.n_weights} weights, the model has {len(self.weights)}")
        return packed.features.scores(self.weights)

    def save(self, path: str | Path) -> None:
        """Write the model to a file (see docs/model-format.md); the file is replaced only when complete."""
        header = {
            "kind": self.encoder.kind,
            "encoder": self.encoder.header(),
            "metadata": self.metadata,
            "library": __version__,
        }
        model_file.write(path, header, {**_stored(self.weights), **self.encoder.arrays()})


def _finite(points: Points, examples: IntArray) -> Points:
    """Finite features and weights may still have infinite products; then no output is best."""
    wrong = points.status == PointStatus.NONFINITE
    if wrong.any():
        index = examples[np.argmax(wrong)]
        raise ValueError(f"example {index}: its scores are not finite, as its features are too large; scale them")
    return points


def _warn_of_fractions(structure: Structure, points: Points, examples: IntArray) -> None:
    """Outputs that are not whole must not come in silence: a linear program may have fractional vertices."""
    inexact = points.status == PointStatus.INEXACT
    if not inexact.any():
        return
    parts = points.z[structure.variable_parts]
    packed = np.zeros(structure.n_parts)
    packed[structure.variable_parts] = np.abs(parts - np.rint(parts)) > _WHOLE
    odd = inexact & (structure.by_example(packed) > 0)
    if odd.any():
        remedy = "no whole output was found" if structure.relaxed else "train and predict with relaxed=True"
        warnings.warn(
            f"example {examples[np.argmax(odd)]}: its output has fractions ({int(odd.sum())} such examples); {remedy}",
            UserWarning,
            stacklevel=callers_level(),
        )


SPARSE_SHARE = 0.5
"""Weights of which no more than this share differ from zero are stored by position and value."""

SPARSE_LIMIT = 1_000_000
"""A file that stores weights by position may stand for at most this many weights per stored one."""


def _stored(weights: FloatArray) -> dict[str, npt.NDArray[Any]]:
    """The weights as arrays of a model file: all of them, or where most are zero, the others with their positions."""
    at = np.flatnonzero(weights)
    if len(at) > SPARSE_SHARE * len(weights) or len(weights) > SPARSE_LIMIT * (len(at) + 1):
        return {"weights": weights}
    return {"weights": weights[at], "positions": at.astype(np.int64)}


def _restored(arrays: dict[str, npt.NDArray[Any]], n_weights: int) -> FloatArray:
    """The inverse of :func:`_stored`; ValueError if the arrays make no sense or do not fit."""
    values = arrays["weights"]
    if values.dtype != np.float64 or values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError("its weights are not a vector of finite numbers")
    if "positions" not in arrays:
        if values.shape != (n_weights,):
            raise ValueError(f"it has {len(values)} weights, its feature counts need {n_weights}")
        return values
    at = arrays["positions"]
    rising = at.dtype == np.int64 and at.shape == values.shape and (np.diff(at) > 0).all()
    if not rising or (len(at) and (at[0] < 0 or at[-1] >= n_weights)):
        raise ValueError(f"the positions of its weights are not increasing numbers below {n_weights}")
    if n_weights > SPARSE_LIMIT * (len(values) + 1):
        raise ValueError(f"its feature counts need {n_weights} weights, too many for the {len(values)} it has")
    weights = np.zeros(n_weights)
    weights[at] = values
    return weights


def _named_loader(header: dict[str, Any]) -> str | None:
    """What a file of a task's own kind says that loads it: words with dots, which may be quoted; never called."""
    name = header.get("loader")
    if not isinstance(name, str) or len(name) > 100 or not name.isascii():
        return None
    return name if all(part.isidentifier() for part in name.split(".")) else None


def load(
    path: str | Path,
    *,
    structure: Callable[[IntArray], Structure] | None = None,
    n_jobs: int | None = None,
) -> Model:
    """Load a model that was written by ``save``. Nothing in the file is ever executed.

    Args:
        path: the file.
        structure: for models of a structure of one's own, the structure again (its code is not in the file).
        n_jobs: threads for prediction, as scikit-learn reads it.

    Raises:
        ModelFileError: the file is not a model file, is damaged, or needs ``structure``.
    """
    header, arrays = model_file.read(path)
    try:
        kind, metadata = header["kind"], header.get("metadata", {})
        if kind == CHECKPOINT:
            raise ValueError("it is the checkpoint of a run and no model; name it as checkpoint= of a fit to go on")
        if kind != PartsEncoder.kind and kind not in ENCODERS:
            loader = _named_loader(header)
            if loader is not None:
                raise ValueError(f"it holds a model of kind {kind!r}; load it with {loader}(path)")
            raise ValueError(f"it holds an unknown kind of model, {kind!r}; update maxmargin")
        if not isinstance(metadata, dict) or not isinstance(header["encoder"], dict):
            raise ValueError("its header is incomplete")
        if kind == PartsEncoder.kind:
            if structure is None:
                raise ValueError("it was trained with a structure of your own: load(path, structure=...)")
            encoder: Encoder = PartsEncoder(structure, checks.integer(header["encoder"]["n_features"], "n_features"))
        else:
            encoder = ENCODERS[kind].from_header(header["encoder"]).with_arrays(arrays)
        weights = _restored(arrays, encoder.n_weights)
        signed = encoder.nonnegative()
        if signed is not None and (weights[signed] < 0).any():
            raise ValueError(f"a {kind} model's weights of edges must be >= 0")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        reason = f"{error} is missing from its header" if isinstance(error, KeyError) else str(error)
        raise model_file.ModelFileError(f"{path} cannot be loaded: {reason}") from None
    return Model(weights, encoder, metadata, n_jobs)

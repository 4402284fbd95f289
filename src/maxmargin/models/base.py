"""A trained model: weights and an encoder. Predicts, lists the best outputs, scores, saves and loads."""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _threads, model_file
from maxmargin._callers import callers_level
from maxmargin._digest import digest
from maxmargin._vectors import rises
from maxmargin._version import __version__
from maxmargin.datasets import Examples, ShardedDataset
from maxmargin.encoders.base import Batch, Encoder, encoder_of_kind, kinds_in, stored_encoder
from maxmargin.encoders.data import checks
from maxmargin.encoders.parts import PartsEncoder
from maxmargin.explanation.compute import explain
from maxmargin.explanation.result import Explanation
from maxmargin.structures.base import FloatArray, IntArray, Labeling, Points, PointStatus, Structure
from maxmargin.structures.lattice import Lattice
from maxmargin.structures.networks.network import Network

if TYPE_CHECKING:
    from maxmargin.optimization.checkpoints.files import Checkpoint
    from maxmargin.optimization.solution import Solution

Metric = Callable[[list[Any], list[Any]], float]
"""A score of predicted outputs against gold outputs, both one per example: ``metric(gold, predicted)``."""

_WHOLE = 1e-6
"""Marginals nearer than this to 0 or 1 count as whole."""


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The verdict of a linear relaxation on one example's predicted labels.

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
class Training:
    """How training went; not part of a model file.

    Attributes:
        solution: the run that the weights are from: certificate, status, history and counters.
        C: its regularization.
        dev_scores: pairs of iteration and dev score; empty without dev data.
        tried: each C with its score, on dev data or across folds; empty if there was no choice.
        interrupted: whether Ctrl-C ended training, perhaps before other values of C or rounds of completion.
        checkpoints: the checkpoints of all runs. Their files are removed, unless a larger budget or another try after
            Ctrl-C could resume from them, or they are to be kept.
    """

    solution: Solution
    C: float
    dev_scores: tuple[tuple[int, float], ...] = ()
    tried: tuple[tuple[float, float], ...] = ()
    interrupted: bool = False
    checkpoints: tuple[Checkpoint, ...] = ()

    @property
    def best_dev_score(self) -> float:
        """The dev score of the weights that were kept; minus infinity without dev data."""
        return max((score for _, score in self.dev_scores), default=-np.inf)


@dataclass(frozen=True, eq=False)
class Model:
    """Weights plus what is needed to apply them.

    Attributes:
        weights: shape ``(n_weights,)``; of kernel features, the dual coefficients of the support rows.
        encoder: turns inputs into packed batches and outputs back.
        metadata: how the model was trained (certificate, status, settings), as plain JSON values.
        n_jobs: threads for prediction, as scikit-learn reads it.
        calibration: numbers that turn scores into probabilities, by name; empty if nothing was calibrated.
        training: the record of training; None for a model from a file.
    """

    weights: FloatArray
    encoder: Encoder
    metadata: dict[str, Any] = field(default_factory=dict)
    n_jobs: int | None = None
    calibration: dict[str, float] = field(default_factory=dict)
    training: Training | None = None

    @staticmethod
    def of(encoder: Encoder, n_jobs: int | None = None) -> Model:
        """A model of the encoder's class that has no weights yet."""
        return _class_of(type(encoder))(np.zeros(0), encoder, n_jobs=n_jobs)

    @classmethod
    def load(cls, path: str | Path, *, n_jobs: int | None = None) -> Self:
        """:func:`load` a model that must be of this class; ModelFileError if it is another."""
        found = load(path, n_jobs=n_jobs)
        if not isinstance(found, cls):
            near = kinds_in(cls.__module__.rpartition(".")[0])
            kinds = [kind for kind in near if issubclass(_class_of(encoder_of_kind(kind)), cls)]
            wanted = f"kind {' or '.join(map(repr, kinds))}" if kinds else f"class {cls.__name__}"
            reason = f"it holds a model of kind {found.encoder.kind!r}; give the file of one of {wanted}"
            raise model_file.ModelFileError(f"{path} cannot be loaded: {reason}")
        return found

    @property
    def coef_(self) -> FloatArray:
        """The weights, by the name they have on an estimator."""
        return self.weights

    @property
    def classes_(self) -> tuple[Hashable, ...]:
        """All labels, in the order of the weights' columns; AttributeError if outputs are not made of labels."""
        if self.encoder.classes is None:
            raise AttributeError(f"a {self.encoder.kind} model has no classes_")
        return self.encoder.classes

    def predict(self, X: Sequence[Any] | ShardedDataset) -> list[Any]:
        """The best output of each example, ``argmax_y w'f(x, y)``; see also :meth:`predict_iter`."""
        if isinstance(X, ShardedDataset):
            return list(self.predict_iter(X))
        with _threads.threads(self.n_jobs):
            return self.outputs(self.encoder.transform(X))

    def predict_iter(self, X: Iterable[Any] | ShardedDataset, *, size: int = 256) -> Iterator[Any]:
        """Yield the best output of each example in constant memory.

        Args:
            X: a dataset, whose shards are opened one after the other, or any iterable of inputs, such as a generator.
            size: number of inputs that are taken at a time.
        """
        size = _checks.integer("size", size, least=1)
        if isinstance(X, ShardedDataset):
            for examples in self._shards(X):
                with _threads.threads(self.n_jobs):
                    found = self.outputs(examples.batch)
                yield from found
            return
        rest = iter(X)
        while block := list(itertools.islice(rest, size)):
            yield from self.predict(block)

    def _shards(self, dataset: ShardedDataset) -> Iterator[Examples]:
        """The shards of a dataset, which must have been built with this encoder: the same labels and features."""
        if not self.encoder.decodes_datasets:
            raise ValueError(
                f"a dataset of {self.encoder.kind} is for training, and lacks what outputs are made of; give the inputs"
            )
        if digest(*_described(dataset.encoder)) != digest(*_described(self.encoder)):
            raise ValueError(
                f"{dataset.folder} was built with another encoder than this model's (kind, settings, labels or "
                "features differ); give the dataset that it was trained on, or inputs"
            )
        return iter(dataset)

    def k_best(self, X: Sequence[Any], k: int) -> list[list[tuple[Any, float]]]:
        """The ``k`` best outputs of each example with their scores, best first; fewer where there are fewer."""
        return self._k_best(X, k, self.encoder.k_best)

    def k_best_words(self, X: Sequence[Any], k: int) -> list[list[tuple[Any, float]]]:
        """The ``k`` best sequences of words of each lattice, each by its best path, with their scores, best first."""
        return self._k_best(X, k, _best_words)

    def _k_best(
        self, X: Sequence[Any], k: int, best: Callable[[Structure, FloatArray, int], list[Points]]
    ) -> list[list[tuple[Any, float]]]:
        k = _checks.integer("k", k, least=1)
        lists: list[list[tuple[Any, float]]] = []
        with _threads.threads(self.n_jobs):
            for examples, piece in self.encoder.transform(X).pieces():
                ranks = best(piece.structure, self._scores(piece), k)
                _check_found(ranks[0].status, examples)
                found: list[list[tuple[Any, float]]] = [[] for _ in examples]
                for points in ranks:
                    outputs = self.encoder.decode(piece, piece.structure.decode(points.z))
                    for i, output in enumerate(outputs):
                        if points.status[i] != PointStatus.ABSENT:
                            found[i].append((output, float(points.value[i])))
                lists += found
        return lists

    def explain(
        self,
        x: Any,
        *,
        against: Any = None,
        at: int | None = None,
        feature_names: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    ) -> Explanation:
        """Explain the prediction for one input: what parts and features contribute to its margin over another output.

        The contributions ``w_k F_kp (z_p - z'_p)`` of parts ``p`` and weights ``k`` add up to the difference of the two
        outputs' scores. Of kernels, which are not linear in the features, a part's contribution is shown as one.

        Args:
            x: one input, as :meth:`predict` takes a list of them.
            against: the other output, for example the gold one; None for the runner-up, the second best output.
            at: instead, the number from 0 of a position, node or link: the best output that differs there.
            feature_names: names of the columns of the input's matrix of features, or of its first one; or a mapping of
                names of its matrices (``"edge_features"``) to lists of names. Others are numbered.
        """
        with _threads.threads(self.n_jobs):
            return explain(self.encoder, self.weights, x, against=against, at=at, feature_names=feature_names)

    def decision_function(self, X: Sequence[Any]) -> FloatArray:
        """The score ``max_y w'f(x, y)`` of the best output of each example, shape ``(n_examples,)``."""
        with _threads.threads(self.n_jobs):
            return np.concatenate([found.value for _, found in self._labelings(self.encoder.transform(X))])

    def relaxation(self, X: Sequence[Any]) -> list[Relaxation]:
        """For each example the predicted labels, and what the relaxation of its graph says of them.

        For models of general graphs and associative networks; predictions of others are exact.
        """
        found: list[Relaxation] = []
        with _threads.threads(self.n_jobs):
            for examples, piece in self.encoder.transform(X).pieces():
                structure = piece.structure
                if not isinstance(structure, Network):
                    raise ValueError(f"relaxation is for graphs and associative networks, not for {structure.called}")
                relaxed, best = structure.relax(self._scores(piece))
                _check_found(best.status, examples)
                marginals = relaxed.z[structure.variable_parts].reshape(-1, structure.n_labels)
                outputs = self.encoder.decode(piece, structure.decode(best.z))
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
                    for i, (labels, own) in enumerate(zip(outputs, by_example, strict=True))
                ]
        return found

    def score(
        self,
        X: Sequence[Any] | ShardedDataset,
        y: Sequence[Any] | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """How much of the outputs is right, in [0, 1].

        Where positions or nodes have labels (chains, trees, cuts, graphs): the share of right labels; matchings and
        linear programs: F1 over the links or parts; your own structures: the share of outputs that are entirely right.
        A dataset, in place of ``X``, ``y`` and ``sample_weight``, is read one shard at a time.
        """
        if isinstance(X, ShardedDataset):
            if y is not None or sample_weight is not None:
                raise ValueError("a ShardedDataset has its outputs and weights; leave y and sample_weight out")
            return self._score(X)
        if y is None:
            raise ValueError("y is missing: give one output per example, or a ShardedDataset in place of X and y")
        with _threads.threads(self.n_jobs):
            return self.scorer(X, y, sample_weight)(self)

    def scorer(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: npt.ArrayLike | None = None,
        metric: Metric | None = None,
    ) -> Callable[[Model], float]:
        """A function of models with this encoder: their :meth:`score`, or ``metric``, on data encoded only once."""
        X, y = checks.examples(X), checks.examples(y, "y")
        checks.same_length(X, y)
        weight = checks.weights(sample_weight, len(X))
        batch = self.encoder.transform(X)
        self.encoder.check(batch, y)

        def score(model: Model) -> float:
            with _threads.threads(model.n_jobs):
                if metric is None:
                    return model.agreement(batch, y, weight)
                return _checks.number("the dev score", metric(y, model.outputs(batch)), infinite=True)

        return score

    def agreement(self, batch: Batch, y: Sequence[Any], weight: FloatArray | None = None) -> float:
        """The score of the predictions for encoded inputs against gold outputs."""
        right, total = self._agreement(batch, y, weight)
        return right / total if total > 0 else 1.0

    def _agreement(self, batch: Batch, y: Sequence[Any], weight: FloatArray | None) -> tuple[float, float]:
        pairs = zip(y, self.outputs(batch), strict=True)
        counts = np.array([self.encoder.agreement(gold, found) for gold, found in pairs])
        right, total = counts.T @ (np.ones(len(counts)) if weight is None else weight)
        return float(right), float(total)

    def _score(self, dataset: ShardedDataset) -> float:
        """The score of the predictions for a dataset against its gold outputs, shard by shard."""
        right, total = 0.0, 0.0
        for examples in self._shards(dataset):
            with _threads.threads(self.n_jobs):
                batch = examples.batch
                gold = self.encoder.decode(batch, batch.structure.decode(examples.gold.dense()))
                some = self._agreement(batch, gold, examples.example_weight)
            right, total = right + some[0], total + some[1]
        return right / total if total > 0 else 1.0

    def _labelings(self, batch: Batch) -> Iterator[tuple[Batch, Labeling]]:
        """The predicted outputs, a piece of the batch at a time."""
        for examples, piece in batch.pieces():
            found = piece.structure.labels(self._scores(piece))
            _check_found(found.status, examples)
            _warn_of_fractions(piece.structure, found, examples)
            yield piece, found

    def outputs(self, batch: Batch) -> list[Any]:
        """The best output of each example of encoded inputs."""
        pieces = self._labelings(batch)
        return [output for piece, found in pieces for output in self.encoder.decode(piece, found.outputs)]

    def _scores(self, batch: Batch) -> FloatArray:
        if batch.features.n_weights != self.weights.shape[0]:
            raise ValueError(f"the inputs need {batch.features.n_weights} weights, the model has {len(self.weights)}")
        return batch.features.scores(self.weights)

    def save(self, path: str | Path) -> None:
        """Write the model to a file (see docs/reference/model-format.md); the file is replaced only when complete."""
        target = _checks.path("path", path)
        header, arrays = self.encoder.stored()
        header |= {"calibration": self.calibration, "metadata": self.metadata, "library": __version__}
        model_file.write(target, header, {**_stored(self.weights), **arrays})

    def describe(self) -> dict[str, Any]:
        """A summary of the model, as plain JSON values."""
        return {
            "kind": self.encoder.kind,
            "weights": len(self.weights),
            "nonzero": int((self.weights != 0).sum()),
            **self.encoder.describe(),
            **self.calibration,
            **{f"trained_{key}": value for key, value in self.metadata.items()},
        }


def _described(encoder: Encoder) -> tuple[Any, ...]:
    """What an encoder keeps in files, for a digest."""
    header, arrays = encoder.stored()
    return json.dumps(header, sort_keys=True), *(part for name in sorted(arrays) for part in (name, arrays[name]))


def _best_words(structure: Structure, scores: FloatArray, k: int) -> list[Points]:
    if not isinstance(structure, Lattice):
        raise ValueError(f"k_best_words is for lattices, not for {structure.called}; use k_best")
    return structure.k_best_words(scores, k)


def _check_found(status: npt.NDArray[np.int8], examples: IntArray) -> None:
    """Refuse examples without a best output: products of features and weights may be infinite, or all be forbidden."""
    wrong = status == PointStatus.NONFINITE
    if wrong.any():
        index = examples[np.argmax(wrong)]
        raise ValueError(f"example {index}: its scores are not finite, as its features are too large; scale them")
    absent = status == PointStatus.ABSENT
    if absent.any():
        raise ValueError(
            f"example {examples[np.argmax(absent)]}: it has no legal output; change it, or allow what is forbidden"
        )


def _warn_of_fractions(structure: Structure, found: Labeling, examples: IntArray) -> None:
    """Warn of outputs that are not whole: a linear program may have fractional vertices."""
    inexact = found.status == PointStatus.INEXACT
    if found.z is None or not inexact.any():
        return
    parts = found.z[structure.variable_parts]
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

SPARSE_LIMIT, SPARSE_FLOOR = 1000, 1 << 23
"""A file that stores weights by position may stand for this many weights per stored one, or for so many at least: its
header alone must not decide how much memory is taken."""


_OWN = ("weights", "positions")
"""The arrays of a model file that hold the weights; the others are the encoder's."""


def _most_weights(stored: int) -> int:
    return max(SPARSE_FLOOR, SPARSE_LIMIT * stored)


def _stored(weights: FloatArray) -> dict[str, npt.NDArray[Any]]:
    """The weights as arrays of a model file: all of them, or where most are zero, the others with their positions."""
    at = np.flatnonzero(weights)
    if len(at) > SPARSE_SHARE * len(weights) or len(weights) > _most_weights(len(at)):
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
    rising = at.dtype == np.int64 and at.shape == values.shape and rises(at, strictly=True)
    if not rising or (len(at) and (at[0] < 0 or at[-1] >= n_weights)):
        raise ValueError(f"the positions of its weights are not increasing numbers below {n_weights}")
    if n_weights > _most_weights(len(values)):
        raise ValueError(f"its feature counts need {n_weights} weights, too many for the {len(values)} it has")
    weights = np.zeros(n_weights)
    weights[at] = values
    return weights


def _class_of(encoder: type[Encoder]) -> type[Model]:
    """Return the class of the models of an encoder."""
    module, _, name = encoder.model_class.partition(":")
    found: type[Model] = getattr(import_module(module), name)
    return found


def load(
    path: str | Path,
    *,
    structure: Callable[[IntArray], Structure] | None = None,
    n_jobs: int | None = None,
) -> Model:
    """Load a model that was written by ``save``. Nothing in the file is ever executed.

    Args:
        path: the file.
        structure: for models of your own structure, the structure again (its code is not in the file).
        n_jobs: threads for prediction, as scikit-learn reads it.

    Raises:
        ModelFileError: the file is not a model file, is damaged, or needs ``structure``.
    """
    header, arrays = model_file.read(_checks.path("path", path))
    try:
        kind = header["kind"]
        if kind == model_file.CHECKPOINT:
            raise ValueError("it is the checkpoint of a run, not a model; name it as checkpoint= of a fit to resume it")
        metadata, calibration = header["metadata"], header["calibration"]
        if not all(isinstance(value, dict) for value in (metadata, calibration, header["encoder"])):
            raise ValueError("its header is incomplete")
        if not all(isinstance(value, float) and np.isfinite(value) for value in calibration.values()):
            raise ValueError("its calibration is not made of finite numbers")
        others = {name: array for name, array in arrays.items() if name not in _OWN}
        if kind == PartsEncoder.kind:
            if structure is None:
                raise ValueError("it was trained with a structure of your own: load(path, structure=...)")
            n_features = _checks.integer("n_features", header["encoder"]["n_features"], least=0)
            encoder: Encoder = PartsEncoder(structure, n_features)
        else:
            encoder = stored_encoder(header, others)
        weights = _restored(arrays, encoder.n_weights)
        signed = encoder.nonnegative()
        if signed is not None and (weights[signed] < 0).any():
            raise ValueError(f"a {kind} model's weights of edges must be >= 0")
        return replace(Model.of(encoder, n_jobs), weights=weights, metadata=metadata, calibration=calibration)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError, RecursionError) as error:
        reason = f"{error} is missing from its header" if isinstance(error, KeyError) else str(error)
        raise model_file.ModelFileError(f"{path} cannot be loaded: {reason}") from None

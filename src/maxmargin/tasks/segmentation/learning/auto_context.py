"""Auto-context: a sequence of node classifiers, each of which sees the class probabilities of the one before.

The first stage classifies nodes by their features; every further stage also sees the previous probabilities in a wide
neighborhood (Tu and Bai 2010, *Auto-context and its application to high-level vision tasks*). Probabilities of training
nodes are always *out of fold*, from classifiers that have not seen their image: in-sample ones would be far too good,
and the next stage would trust them. At prediction a stage is the mean of its fold classifiers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _threads
from maxmargin.encoders.base import State
from maxmargin.optimization.checkpoints.saved import array
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.common.finished import Finished
from maxmargin.tasks.segmentation.learning.classifiers import (
    Mean,
    NodeClassifier,
    Rows,
    classifier_from_state,
    state_of_all,
    states_of_all,
)
from maxmargin.tasks.segmentation.sites import Sites

MOST_STAGES = 100
"""More stages than this are refused."""


MOST_ROWS = 100_000
"""Of more nodes, so many drawn at random train a classifier."""


@dataclass(frozen=True, eq=False)
class AutoContext:
    """Trained stages.

    Attributes:
        stages: the classifier of each stage.
    """

    stages: tuple[NodeClassifier, ...]

    def probabilities(self, sites: Sites) -> FloatArray:
        """Class probabilities of the nodes after the last stage, shape ``(n_nodes, n_classes)``."""
        found: FloatArray | None = None
        for stage in self.stages:
            rows = stage_rows(sites, found)
            if rows.shape[1] != stage.n_features:
                raise ValueError(
                    f"nodes have {rows.shape[1]} features, and the model was trained on {stage.n_features}"
                )
            found = stage.probabilities(rows)
        assert found is not None
        return found

    def state(self) -> State:
        """The state of each stage under names of its own."""
        return state_of_all("stage", self.stages)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The inverse of :meth:`state`; ValueError, KeyError or TypeError if it makes no sense."""
        stages = [classifier_from_state(own) for own in states_of_all("stage", state, MOST_STAGES)]
        if len({stage.n_classes for stage in stages}) > 1 or len({stage.n_features for stage in stages[1:]}) > 1:
            raise ValueError("its stages do not fit each other")
        return cls(tuple(stages))


def stage_rows(sites: Sites, probabilities: FloatArray | None) -> Rows:
    """The features of nodes that a stage sees."""
    if probabilities is None:
        return sites.features
    return np.hstack([sites.features, sites.context(probabilities)])


def fit_auto_context(
    sites: Sequence[Sites],
    counts: Sequence[FloatArray],
    *,
    classifier: Any,
    stages: int,
    folds: int,
    seed: int,
    class_weight: FloatArray,
    advance: Callable[[], None] = lambda: None,
    finished: Finished | None = None,
) -> tuple[AutoContext, list[FloatArray]]:
    """Train the stages.

    Args:
        sites: one per training image or scan.
        counts: for each, how many pixels or points of each class a node has, shape ``(n_nodes, n_classes)``.
        classifier: a name or a classifier of scikit-learn.
        stages: number of stages, at least 1.
        folds: number of folds, at least 2.
        seed: random seed of folds and classifiers.
        class_weight: how much a pixel or point of each class counts, shape ``(n_classes,)``.
        advance: called after each classifier.
        finished: keeps each stage, unless the classifier is one of scikit-learn.

    Returns:
        The stages, and the out-of-fold probabilities of the last stage for all nodes.
    """
    from maxmargin.tasks.segmentation.learning.fitting import TrainingRows  # prediction needs no scikit-learn

    nodes = offsets_of([len(own) for own in counts])
    table = np.concatenate(counts) * class_weight
    labels, weight = table.argmax(axis=1), _row_weight(table)
    fold = _folds(nodes, weight > 0, folds, seed)
    found: list[FloatArray] | None = None
    classifiers: list[NodeClassifier] = []
    for stage in range(stages):
        rows = np.concatenate([stage_rows(one, None if found is None else found[i]) for i, one in enumerate(sites)])
        prepared = TrainingRows.of(classifier, rows)

        def fitted(number: int, prepared: TrainingRows = prepared, stage: int = stage) -> NodeClassifier:
            chosen = np.flatnonzero((fold != number) & (weight > 0))
            if len(chosen) > MOST_ROWS:
                drawn = np.random.default_rng(seed + number).choice(len(chosen), MOST_ROWS, replace=False)
                chosen = chosen[np.sort(drawn)]
            return prepared.fit(chosen, labels, weight, table.shape[1], seed=seed + 1000 * stage + number)

        def whole(rows: Rows = rows, fitted: Callable[[int], NodeClassifier] = fitted) -> tuple[Mean, FloatArray]:
            members: list[NodeClassifier] = []
            out_of_fold = np.empty((len(rows), table.shape[1]))
            # Folds run side by side, each on one thread: within a fold threads would wait for each other at every split
            for number, own in enumerate(_threads.mapped(fitted, range(int(fold.max()) + 1))):
                held_out = fold == number
                out_of_fold[held_out] = own.probabilities(rows[held_out])
                members.append(own)
                advance()
            return Mean(tuple(members)), out_of_fold

        if finished is None or not isinstance(classifier, str):
            trained: NodeClassifier
            trained, out_of_fold = whole()
        else:

            def stored(whole: Callable[[], tuple[Mean, FloatArray]] = whole) -> State:
                mean, out_of_fold = whole()
                return {"out_of_fold": out_of_fold, **mean.state()}

            kept = finished.once("stage", stored, stage, rows, labels, weight, fold, classifier, seed)
            out_of_fold = array(kept, "out_of_fold", np.float64, (len(rows), table.shape[1]))
            trained = classifier_from_state(kept)
        classifiers.append(trained)
        found = np.split(out_of_fold, nodes[1:-1])
    assert found is not None
    return AutoContext(tuple(classifiers)), found


def _row_weight(table: FloatArray) -> FloatArray:
    """Weights of nodes by their labeled pixels, 1 on average; a mixed node counts by the lead of its first class."""
    ordered = np.sort(table, axis=1)
    lead = ordered[:, -1] - (ordered[:, :-1].sum(axis=1) if table.shape[1] > 1 else 0.0)
    weight = np.maximum(lead, 0.0)
    mean = float(weight[weight > 0].mean()) if (weight > 0).any() else 1.0
    return np.asarray(weight / mean)


def _folds(nodes: IntArray, labeled: npt.NDArray[np.bool_], folds: int, seed: int) -> IntArray:
    """The fold of every node: whole examples, or if only one has labels, stretches with equally many labeled nodes.

    ValueError if a fold would leave nothing to learn from.
    """
    if labeled.sum() < 2:
        raise ValueError(f"{int(labeled.sum())} labeled nodes; label more pixels or points, of every class")
    n = len(nodes) - 1
    with_labels = np.flatnonzero(np.add.reduceat(labeled, nodes[:-1]) > 0) if n else np.zeros(0, dtype=np.int64)
    if len(with_labels) == 1:
        count = min(folds, int(labeled.sum()))
        rank: IntArray = np.cumsum(labeled) - labeled
        return np.asarray(np.minimum(rank * count // int(labeled.sum()), count - 1))
    rng = np.random.default_rng(seed)
    fold = rng.integers(0, min(folds, len(with_labels)), n)  # examples without labels go anywhere
    fold[rng.permutation(with_labels)] = np.arange(len(with_labels)) % min(folds, len(with_labels))
    return np.repeat(fold, np.diff(nodes))

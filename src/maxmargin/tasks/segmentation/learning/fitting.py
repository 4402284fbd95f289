"""Fits node classifiers, and turns those of scikit-learn and LightGBM into arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from maxmargin import _threads
from maxmargin._messages import shown
from maxmargin._quiet import quiet
from maxmargin._sparse import sp
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.segmentation.learning.classifiers import (
    ABSENT,
    CodedLinear,
    Estimator,
    NodeClassifier,
    Rows,
    Trees,
    coded,
    quantile_bounds,
)

NAMES = ("auto", "boosting", "lightgbm", "linear")
"""Node classifiers by name: LightGBM if it is installed, else gradient boosting of scikit-learn; these two; logistic
regression on bins of features."""

N_BINS = {"linear": 12, "boosting": 64, "lightgbm": 64}
"""Bins of a feature. Boosting would find bins itself, but once per fold, and scikit-learn takes longer for bins of
weighted rows than for the trees."""


_FEW = 60
"""Fewer features than this are seen by every classifier."""

_LINEAR_C = 150.0
"""C of logistic regression, divided by the number of rows."""


def check_classifier(given: Any) -> None:
    """ValueError unless a node classifier was given."""
    if isinstance(given, str):
        if given not in NAMES:
            raise ValueError(
                f"classifier must be one of {', '.join(map(repr, NAMES))}, or a classifier, got {shown(given)}"
            )
    elif not (hasattr(given, "fit") and hasattr(given, "predict_proba") and hasattr(given, "get_params")):
        raise ValueError(
            f"classifier must be one of {', '.join(map(repr, NAMES))}, or a scikit-learn classifier with "
            f"predict_proba, got {shown(given)}"
        )


def resolved(given: Any) -> Any:
    """The classifier that "auto" stands for here; others as they are."""
    if not isinstance(given, str) or given != "auto":
        return given
    return "boosting" if find_spec("lightgbm") is None else "lightgbm"


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows of a stage as a classifier sees them, prepared once for all folds.

    Attributes:
        classifier: a name of :data:`NAMES` but "auto", or a classifier of scikit-learn.
        rows: features, shape ``(n, d)``.
        bounds: upper bounds of the bins of features; None if the classifier takes features as they are.
        seen: what it is fitted to: features, their bins, or one-hot codes of these.
    """

    classifier: Any
    rows: Rows
    bounds: FloatArray | None
    seen: Any

    @classmethod
    def of(cls, classifier: Any, rows: Rows) -> TrainingRows:
        """Prepare rows for a classifier."""
        if not isinstance(classifier, str):
            return cls(classifier, rows, None, rows)
        bounds = quantile_bounds(rows, N_BINS[classifier])
        codes = coded(rows, bounds)
        if classifier != "linear":
            return cls(classifier, rows, bounds, codes.astype(np.float32))
        n, d = codes.shape
        columns = codes + N_BINS["linear"] * np.arange(d)
        starts, shape = np.arange(n + 1) * d, (n, N_BINS["linear"] * d)
        return cls(classifier, rows, bounds, sp.csr_matrix((np.ones(n * d), columns.ravel(), starts), shape=shape))

    def fit(
        self, chosen: IntArray, labels: IntArray, weight: FloatArray, n_classes: int, *, seed: int
    ) -> NodeClassifier:
        """Train on some of the rows.

        Args:
            chosen: their numbers.
            labels: classes of all rows, 0 to ``n_classes - 1``.
            weight: how much each row counts.
            n_classes: number of classes.
            seed: random seed.
        """
        present, codes = np.unique(labels[chosen], return_inverse=True)
        if len(present) == 1:
            return self._constant(int(present[0]), n_classes)
        seen = self.seen[chosen]
        if isinstance(self.classifier, str) and self.classifier == "linear":
            assert self.bounds is not None
            return _fit_linear(seen, codes, weight[chosen], present, n_classes, self.bounds)
        estimator = _estimator(self.classifier, len(chosen), seed)
        columns = self._columns(seed)
        seen = seen if columns is None else seen[:, columns]
        # The limit belongs to the thread that sets it.
        with threadpool_limits(_threads.current(), user_api="openmp"):
            if has_fit_parameter(estimator, "sample_weight"):
                estimator.fit(seen, codes, sample_weight=weight[chosen])
            else:
                drawn = _drawn(codes, weight[chosen], seed)
                estimator.fit(seen[drawn], codes[drawn])
        found = _frozen(estimator, present, n_classes, seen)
        if self.bounds is None:
            return found
        if not isinstance(found, Trees):
            raise RuntimeError(f"the trees of {type(estimator).__name__} cannot be read; use another classifier")
        if columns is not None:
            inner = np.where(found.feature >= 0, columns[found.feature], -1).astype(np.int32)
            found = replace(found, feature=inner, width=self.rows.shape[1])
        return _unbinned(found, self.bounds)

    def _columns(self, seed: int) -> IntArray | None:
        """The features that a fold's classifier sees, None for all.

        Scikit-learn reads all features for every split, also where it may only choose among a few: with a third of them
        for each fold it is three times faster, and the mean of five folds sees most of them.
        """
        d = self.rows.shape[1]
        if not isinstance(self.classifier, str) or self.classifier != "boosting" or d < _FEW:
            return None
        return np.sort(np.random.default_rng(seed).choice(d, -(-d // 3), replace=False))

    def _constant(self, label: int, n_classes: int) -> NodeClassifier:
        """The classifier of rows of one class."""
        baseline = np.full(n_classes, ABSENT)
        baseline[label] = 0.0
        if isinstance(self.classifier, str) and self.classifier == "linear":
            assert self.bounds is not None
            d, n_bounds = self.bounds.shape
            return CodedLinear(self.bounds, np.zeros((d, n_bounds + 1, n_classes)), baseline)
        return Trees.constant(baseline, self.rows.shape[1])


def _drawn(codes: IntArray, weight: FloatArray, seed: int) -> IntArray:
    """Rows in proportion to their weights, for classifiers that take none; every class keeps one."""
    rng = np.random.default_rng(seed)
    drawn = rng.choice(len(codes), len(codes), p=weight / weight.sum())
    return np.sort(np.concatenate([drawn, np.unique(codes, return_index=True)[1]]))


def _unbinned(trees: Trees, bounds: FloatArray) -> Trees:
    """Trees of features from trees of their bins: a bin is at most b if the feature is at most its upper bound."""
    inner = trees.feature >= 0
    threshold = trees.threshold.copy()
    threshold[inner] = bounds[trees.feature[inner], np.floor(threshold[inner]).astype(np.int64)]
    return replace(trees, threshold=threshold)


def _estimator(given: Any, n_rows: int, seed: int) -> Any:
    """A classifier that has not been fitted."""
    least = min(200, max(5, n_rows // 200))  # rows of a leaf
    if isinstance(given, str) and given == "boosting":
        from sklearn.ensemble import HistGradientBoostingClassifier

        return HistGradientBoostingClassifier(
            max_iter=100,
            learning_rate=0.08,
            max_leaf_nodes=31,
            min_samples_leaf=least,
            l2_regularization=5.0,
            max_features=0.5,
            max_bins=N_BINS["boosting"],
            early_stopping=False,
            random_state=seed,
        )
    if isinstance(given, str):
        try:
            from lightgbm import LGBMClassifier
        except ImportError:
            raise ValueError('classifier="lightgbm" needs LightGBM: pip install lightgbm, or use "boosting"') from None
        return LGBMClassifier(
            n_estimators=100,
            learning_rate=0.08,
            num_leaves=31,
            min_child_samples=least,
            reg_lambda=5.0,
            colsample_bytree=0.25,
            subsample=0.7,
            subsample_freq=1,
            max_bin=N_BINS["lightgbm"] - 1,
            n_jobs=_threads.current(),
            random_state=seed,
            deterministic=True,
            force_row_wise=True,
            verbose=-1,
        )
    from sklearn.base import clone

    estimator = clone(given)
    if "random_state" in estimator.get_params() and estimator.get_params()["random_state"] is None:
        estimator.set_params(random_state=seed)
    return estimator


def _fit_linear(
    one_hot: Any, codes: IntArray, weight: FloatArray, present: IntArray, n_classes: int, bounds: FloatArray
) -> CodedLinear:
    """Logistic regression on one-hot codes."""
    from sklearn.linear_model import LogisticRegression

    n_bins = bounds.shape[1] + 1
    with quiet(ConvergenceWarning):
        # A few dozen iterations are enough for probabilities, though not for the optimizer's own test.
        model = LogisticRegression(C=_LINEAR_C / len(codes), max_iter=60).fit(one_hot, codes, sample_weight=weight)
    weights, intercept = np.zeros((one_hot.shape[1], n_classes)), np.full(n_classes, ABSENT)
    if len(present) == 2:
        weights[:, present[1]], intercept[present] = model.coef_[0], (0.0, model.intercept_[0])
    else:
        weights[:, present], intercept[present] = model.coef_.T, model.intercept_
    return CodedLinear(bounds, weights.reshape(len(bounds), n_bins, n_classes), intercept)


def _frozen(estimator: Any, present: IntArray, n_classes: int, rows: Rows) -> NodeClassifier:
    """A fitted classifier as arrays where that is possible, else the classifier itself."""
    kept = Estimator(estimator, present, n_classes, rows.shape[1])
    read = _READERS.get(type(estimator).__name__)
    if read is None:
        return kept
    try:
        found: NodeClassifier = read(estimator, present, n_classes)
        # The readers look inside other libraries; what they make of it must predict the same.
        some = rows[:: max(1, len(rows) // 1000)]
        same = np.allclose(found.probabilities(some), kept.probabilities(some), atol=1e-4)
    except (AttributeError, KeyError, TypeError, ValueError):
        return kept
    return found if same else kept


def _trees(link: str, baseline: FloatArray, members: list[tuple[dict[str, Any], int]], width: int) -> Trees:
    """Trees from the arrays of each and the class that it adds to."""
    first = np.cumsum([0, *(len(tree["feature"]) for tree, _ in members)])

    def joined(name: str, dtype: type) -> Any:
        parts = [tree[name] for tree, _ in members]
        if name in ("left", "right"):
            parts = [np.asarray(part, dtype=np.int64) + at for part, at in zip(parts, first, strict=False)]
        return np.ascontiguousarray(np.concatenate(parts), dtype=dtype)

    leaf = joined("feature", np.int32) < 0
    value = joined("value", np.float64)
    return Trees(
        link=link,
        baseline=baseline,
        feature=joined("feature", np.int32),
        threshold=np.where(leaf, 0.0, joined("threshold", np.float64)),
        left=joined("left", np.int32),
        right=joined("right", np.int32),
        value=value.reshape(len(leaf), -1) * leaf[:, None],
        root=first[:-1].astype(np.int32),
        column=np.array([column for _, column in members], dtype=np.int32),
        width=width,
    )


def _baseline(values: FloatArray, present: IntArray, n_classes: int) -> FloatArray:
    """Scores before any tree: of two classes only the second has one."""
    baseline = np.full(n_classes, ABSENT)
    baseline[present] = [0.0, values[0]] if len(values) == 1 else values
    return baseline


def _read_boosting(estimator: Any, present: IntArray, n_classes: int) -> Trees:
    """HistGradientBoostingClassifier."""
    start = np.asarray(estimator._baseline_prediction, dtype=np.float64).ravel()
    members = []
    for turn in estimator._predictors:
        for at, predictor in enumerate(turn):
            nodes = predictor.nodes
            leaf = nodes["is_leaf"].astype(bool)
            tree = {
                "feature": np.where(leaf, -1, nodes["feature_idx"]),
                "threshold": nodes["num_threshold"],
                "left": nodes["left"],
                "right": nodes["right"],
                "value": nodes["value"],
            }
            members.append((tree, int(present[at + (len(turn) == 1)])))
    return _trees("scores", _baseline(start, present, n_classes), members, estimator.n_features_in_)


def _read_lightgbm(estimator: Any, present: IntArray, n_classes: int) -> Trees:
    """LGBMClassifier."""
    model = estimator.booster_.dump_model()
    turn = model["num_tree_per_iteration"]
    members = []
    for number, info in enumerate(model["tree_info"]):
        tree: dict[str, list[Any]] = {name: [] for name in ("feature", "threshold", "left", "right", "value")}
        waiting = [(info["tree_structure"], -1, "")]
        while waiting:
            node, parent, side = waiting.pop()
            at, inner = len(tree["feature"]), "split_feature" in node
            if parent >= 0:
                tree[side][parent] = at
            if inner and node["decision_type"] != "<=":
                raise ValueError("a split that is not by a threshold")
            own = (
                (node["split_feature"], node["threshold"], 0, 0, 0.0) if inner else (-1, 0.0, 0, 0, node["leaf_value"])
            )
            for name, value in zip(tree, own, strict=True):
                tree[name].append(value)
            if inner:
                waiting += [(node["right_child"], at, "right"), (node["left_child"], at, "left")]
        members.append((tree, int(present[number % turn + (turn == 1)])))
    start = np.zeros(turn)
    return _trees("scores", _baseline(start, present, n_classes), members, estimator.n_features_in_)


def _read_forest(estimator: Any, present: IntArray, n_classes: int) -> Trees:
    """RandomForestClassifier and ExtraTreesClassifier: the mean of the leaves' class shares."""
    members = []
    for one in estimator.estimators_:
        tree = one.tree_
        shares = tree.value[:, 0, :]
        value = np.zeros((tree.node_count, n_classes))
        value[:, present] = shares / shares.sum(axis=1, keepdims=True) / len(estimator.estimators_)
        inner = tree.children_left >= 0
        members.append(
            (
                {
                    "feature": np.where(inner, tree.feature, -1),
                    "threshold": tree.threshold,
                    "left": np.where(inner, tree.children_left, 0),
                    "right": np.where(inner, tree.children_right, 0),
                    "value": value,
                },
                0,
            )
        )
    return _trees("probabilities", np.zeros(n_classes), members, estimator.n_features_in_)


_READERS = {
    "HistGradientBoostingClassifier": _read_boosting,
    "LGBMClassifier": _read_lightgbm,
    "RandomForestClassifier": _read_forest,
    "ExtraTreesClassifier": _read_forest,
}

"""scikit-learn: its checks of estimators as far as they apply, routed metadata, pipelines, tags, representations."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks
from sklearn.utils.fixes import parse_version
from sklearn.utils.validation import check_is_fitted

import maxmargin as mm
from maxmargin.tasks import alignment, parsing, reranking, segmentation, tagging

ESTIMATORS = [
    *(getattr(mm, name)() for name in dir(mm) if name.endswith("SVM") and name != "LatentSVM"),
    mm.LatentSVM(mm.ChainSVM()),
    *(tagging.SequenceTagger(), tagging.CRF(), parsing.DependencyParser(), alignment.WordAligner()),
    *(reranking.Reranker(), segmentation.Segmenter(), segmentation.ScanSegmenter()),
]

WITHOUT_DATA = [
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
]
"""Checks that need no examples: they hold for every estimator."""

WITH_DATA = [
    "check_all_zero_sample_weights_error",
    "check_classifier_data_not_an_array",
    "check_classifiers_one_label_sample_weights",
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_estimators_dtypes",
    "check_estimators_fit_returns_self",
    "check_estimators_nan_inf",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_fit1d",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_fit_score_takes_y",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input",
    "check_sample_weights_list",
    "check_sample_weights_not_an_array",
    "check_sample_weights_not_overwritten",
    "check_sample_weights_pandas_series",
    "check_sample_weights_shape",
]
"""Checks that make a matrix with a row per example, which :class:`OneTokenChains` reads as chains of one token."""


def check(name: str):
    """A check of this version of scikit-learn; older and newer ones lack some."""
    found = getattr(estimator_checks, name, None)
    if found is None:
        pytest.skip(f"scikit-learn {sklearn.__version__} has no {name}")
    return found


class OneTokenChains(mm.ChainSVM):
    """A chain whose examples are rows of a matrix, so that checks of scikit-learn can fit it."""

    def fit(self, X, y, sample_weight=None):
        return super().fit([x[None] for x in np.asarray(X)], [[one] for one in np.asarray(y).tolist()], sample_weight)

    def predict(self, X):
        return np.array([labels[0] for labels in super().predict([x[None] for x in np.asarray(X)])])

    def decision_function(self, X):
        return super().decision_function([x[None] for x in np.asarray(X)])

    def score(self, X, y, sample_weight=None):
        own = [x[None] for x in np.asarray(X)], [[one] for one in np.asarray(y).tolist()]
        return super().score(*own, sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_checks_without_data(name):
    for estimator in ESTIMATORS:
        check(name)(type(estimator).__name__, clone(estimator))


@pytest.mark.parametrize("name", WITH_DATA)
def test_checks_with_data(name):
    check(name)("OneTokenChains", OneTokenChains(C=1.0, tol=1e-3))


@pytest.fixture(scope="module")
def chains():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(int(rng.integers(2, 6)), 4)) for _ in range(30)]
    y = [(x[:, :3] + 0.5 * rng.normal(size=(len(x), 3))).argmax(axis=1).tolist() for x in X]
    weights = {"sample_weight": rng.uniform(0.1, 2.0, size=30), "loss_weight": [rng.uniform(size=len(x)) for x in X]}
    return X, y, weights


def routed(estimator):
    return estimator.set_fit_request(sample_weight=True, loss_weight=True, dev=True).set_score_request(
        sample_weight=True
    )


@pytest.mark.parametrize("piped", [False, True], ids=["alone", "in a pipeline"])
def test_metadata_reach_fit_and_score(chains, piped):
    """Folds get their part of the weights, per example and per token, and all of the dev data."""
    if piped and parse_version(sklearn.__version__) < parse_version("1.8"):
        pytest.skip("searches hand weights to the score of a pipeline from scikit-learn 1.8 on")
    X, y, weights = chains
    dev = X[:8], y[:8]
    with sklearn.config_context(enable_metadata_routing=True):
        model = routed(mm.ChainSVM(tol=0.01))
        scaled = FunctionTransformer(lambda X: [x / 2 for x in X])
        whole = Pipeline([("scale", scaled), ("chain", model)]) if piped else model
        grid = {"chain__C" if piped else "C": [0.1, 1.0]}
        search = GridSearchCV(whole, grid, cv=KFold(3), error_score="raise").fit(X, y, **weights, dev=dev)
    if piped:
        X = [x / 2 for x in X]
    for at, C in enumerate(grid.popitem()[1]):
        for number, (train, test) in enumerate(KFold(3).split(X)):
            own = {name: [values[i] for i in train] for name, values in weights.items()}
            # The transformer sees X alone: dev data reach the last step as they are.
            fitted = mm.ChainSVM(C=C, tol=0.01).fit([X[i] for i in train], [y[i] for i in train], **own, dev=dev)
            held = [X[i] for i in test], [y[i] for i in test], weights["sample_weight"][test]
            assert search.cv_results_[f"split{number}_test_score"][at] == fitted.score(*held)


def test_costs_are_routed(chains):
    X, y, _ = chains
    rng = np.random.default_rng(1)
    costs = [rng.uniform(size=(len(x), 3)) for x in X]
    with sklearn.config_context(enable_metadata_routing=True):
        model = mm.ChainSVM(tol=0.01).set_fit_request(costs=True)
        found = cross_validate(model, X, y, params={"costs": costs}, cv=KFold(3), return_estimator=True)
    train = next(KFold(3).split(X))[0]
    plain = mm.ChainSVM(tol=0.01).fit([X[i] for i in train], [y[i] for i in train], costs=[costs[i] for i in train])
    assert np.array_equal(found["estimator"][0].coef_, plain.coef_)
    with pytest.raises(ValueError, match="costs"), sklearn.config_context(enable_metadata_routing=True):
        cross_validate(mm.ChainSVM(tol=0.01), X, y, params={"costs": costs})


def test_taggers_are_searched_with_weights():
    corpus = tagging.load_corpus().select(range(40))
    weight = np.linspace(0.5, 1.5, 40)
    with sklearn.config_context(enable_metadata_routing=True):
        tagger = tagging.SequenceTagger(preset="pos", tol=0.1, folds=0)
        tagger.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(tagger, {"C": [0.01, 0.1]}, cv=2).fit(corpus.tokens, corpus.upos, sample_weight=weight)
    again = clone(search.best_estimator_).fit(corpus.tokens, corpus.upos, sample_weight=weight)
    assert np.array_equal(again.coef_, search.best_estimator_.coef_)


def test_predictions_across_folds(chains):
    """Each output is that of the model whose training data lack its example, whatever the lengths."""
    X, y, _ = chains
    train, test = list(KFold(3).split(X))[1]
    for model in (mm.ChainSVM(tol=0.1), tagging.SequenceTagger(C=0.1, tol=0.1, folds=0)):
        found = cross_val_predict(model, X, y, cv=KFold(3))
        assert found.shape == (30,)
        model.fit([X[i] for i in train], [y[i] for i in train])
        assert [list(found[i]) for i in test] == [list(one) for one in model.predict([X[i] for i in test])]
    alike = [x[:2] for x in X], [labels[:2] for labels in y]
    assert cross_val_predict(mm.ChainSVM(tol=0.1), *alike, cv=KFold(3)).shape == (30,)
    pairs = [x[:2, None] * x[None, :2] for x in X]
    links = cross_val_predict(mm.MatchingSVM(tol=0.1), pairs, [[(0, 0)], [(0, 1), (1, 0)]] * 15, cv=KFold(3))
    assert links.dtype == object
    assert {one.shape[1] for one in links} == {2}
    chosen = cross_val_predict(mm.CandidatesSVM(tol=0.1), X, [int(x[:, 0].argmax()) for x in X], cv=KFold(3))
    assert chosen.dtype.kind == "i"


def test_tags():
    for estimator in ESTIMATORS:
        assert not is_classifier(estimator)
        assert not is_regressor(estimator)
        if hasattr(sklearn.utils, "get_tags"):  # 1.6
            tags = sklearn.utils.get_tags(estimator)
            assert tags.requires_fit
            assert not tags.input_tags.two_d_array
            assert tags.target_tags.required == (not isinstance(estimator, parsing.DependencyParser))


def test_fitted_or_not(chains):
    X, y, _ = chains
    model = mm.ChainSVM(tol=0.1)
    whole = Pipeline([("same", FunctionTransformer()), ("chain", model)])
    for one in (model, whole):
        with pytest.raises(NotFittedError):
            check_is_fitted(one)
    whole.fit(X, y)
    check_is_fitted(whole)
    check_is_fitted(model)


def test_pages_of_notebooks(chains):
    X, y, _ = chains
    for estimator in ESTIMATORS:
        assert type(estimator).__name__ in estimator._repr_html_()
    model = mm.ChainSVM(C=0.5, solver=mm.BlockFrankWolfe(), tol=0.1)
    assert "0.5" in model._repr_html_()
    assert "ChainSVM" in Pipeline([("same", FunctionTransformer()), ("chain", model)]).fit(X, y)._repr_html_()
    assert set(model.fit(X, y)._repr_mimebundle_()) == {"text/plain", "text/html"}


def test_outputs_are_lists_whatever_the_output_of_transformers(chains):
    """``set_output`` is for transformers: predictions of a pipeline are the same lists with it."""
    X, y, _ = chains
    assert not any(hasattr(estimator, "set_output") for estimator in ESTIMATORS)
    whole = Pipeline([("same", FunctionTransformer()), ("chain", mm.ChainSVM(tol=0.1))]).fit(X, y)
    expected = whole.predict(X)
    with sklearn.config_context(transform_output="default"):
        assert whole.set_output(transform="default").predict(X) == expected

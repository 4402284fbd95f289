"""Training and prediction of segmenters on drawn pictures and scans."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin.solvers import Checkpoint
from maxmargin.tasks.segmentation import (
    ImageSegmenterModel,
    Presegmented,
    ScanSegmenter,
    Segmenter,
    SegmenterModel,
    training,
)
from maxmargin.tasks.segmentation.drawings import drawn_pictures, drawn_scans
from maxmargin.training import train_examples

SIZE = (48, 64)
QUICK = {"n_regions": 60, "stages": 2, "folds": 2, "classifier": "linear", "tol": 1e-2}


@pytest.fixture(scope="module")
def pictures():
    return drawn_pictures(10, seed=0, size=SIZE)


@pytest.fixture(scope="module")
def segmenter(pictures):
    X, y = pictures
    return Segmenter(**QUICK).fit(X[:8], y[:8])


@pytest.fixture(scope="module")
def scans():
    X, y = drawn_scans(5, seed=0, points=1200)
    return [one.points for one in X], y


@pytest.fixture(scope="module")
def scan_segmenter(scans):
    X, y = scans
    return ScanSegmenter(stages=2, folds=2, classifier="linear", voxel=0.4, tol=1e-2).fit(X[:4], y[:4])


def majority(y):
    values, counts = np.unique(np.concatenate([one.ravel() for one in y]), return_counts=True)
    return counts.max() / counts.sum(), values


def test_a_model_that_is_interrupted_in_its_second_cut_says_so(pictures, monkeypatch):
    def interrupted(examples, settings, **given):
        trained = train_examples(examples, settings, **given)
        cut_of_pixels = settings.patience is None and not given
        return replace(trained, training=replace(trained.training, interrupted=cut_of_pixels))

    monkeypatch.setattr(training, "train_examples", interrupted)
    X, y = pictures
    model = Segmenter(**QUICK).fit(X[:4], y[:4]).model_
    assert model.training.interrupted
    assert model.metadata["status"] == "interrupted"


def test_pictures_are_segmented_to_a_certified_gap(pictures, segmenter):
    X, y = pictures
    assert segmenter.score(X[8:], y[8:]) > majority(y[8:])[0] + 0.05
    assert segmenter.solution_.certificate.relative_gap <= 1e-2
    assert (segmenter.coef_[segmenter.model_.encoder.nonnegative()] >= 0).all()
    for image, labels, p in zip(X[8:], segmenter.predict(X[8:]), segmenter.predict_proba(X[8:]), strict=True):
        assert labels.shape == image.shape[:2]
        assert p.shape == (*image.shape[:2], 2)
        np.testing.assert_allclose(p.sum(axis=-1), 1.0)


def test_scores_of_regions_are_refused(pictures, segmenter):
    for call in (segmenter.model_.decision_function, segmenter.model_.relaxation):
        with pytest.raises(ValueError, match="a segmenter has no"):
            call(pictures[0][:1])
    with pytest.raises(ValueError, match="no k_best"):
        segmenter.model_.k_best(pictures[0][:1], 2)


def test_scans_are_segmented(scans, scan_segmenter):
    X, y = scans
    assert scan_segmenter.score(X[4:], y[4:]) > majority(y[4:])[0] + 0.05
    assert scan_segmenter.predict(X[4:])[0].shape == (len(X[4]),)
    assert scan_segmenter.classes_ == majority(y)[1].tolist()


@pytest.mark.parametrize("kind", ["pictures", "scans"])
def test_a_model_file_predicts_the_same(kind, request, tmp_path):
    X, _ = request.getfixturevalue(kind)
    trained = request.getfixturevalue({"pictures": "segmenter", "scans": "scan_segmenter"}[kind])
    trained.save(tmp_path / "model.mm")
    loaded = mm.load(tmp_path / "model.mm")
    assert isinstance(loaded, ImageSegmenterModel if kind == "pictures" else SegmenterModel)
    for a, b in zip(loaded.predict(X[-2:]), trained.predict(X[-2:]), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(loaded.predict_proba(X[-1:])[0], trained.predict_proba(X[-1:])[0])
    assert loaded.describe()["stages"] == 2


def test_the_number_of_threads_changes_nothing(pictures):
    X, y = pictures
    both = [Segmenter(**QUICK, n_jobs=jobs).fit(X[:4], y[:4]) for jobs in (1, 2)]
    np.testing.assert_array_equal(both[0].coef_, both[1].coef_)
    for a, b in zip(both[0].predict(X[8:]), both[1].predict(X[8:]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_seeds_are_respected_exactly_and_spread(pictures, segmenter):
    X, _ = pictures
    plain = segmenter.predict(X[9:])[0]
    seeds = np.full(plain.shape, -1)
    seeds[20:24, 5:60] = 1 - plain[20:24, 5:60]
    seeds[0, 0] = 1
    found = segmenter.predict(X[9:], seeds=[seeds])[0]
    np.testing.assert_array_equal(found[seeds >= 0], seeds[seeds >= 0])
    assert ((found != plain) & (seeds < 0)).any()
    np.testing.assert_array_equal(segmenter.predict(X[9:], seeds=[None])[0], plain)
    with pytest.raises(ValueError, match=r"example 0: seeds of shape \(2, 2\), expected \(48, 64\)"):
        segmenter.predict(X[9:], seeds=[np.zeros((2, 2), dtype=int)])
    with pytest.raises(ValueError, match="example 1: label 7"):
        segmenter.predict([X[9], X[9]], seeds=[None, np.full(plain.shape, 7)])


def test_interactive_segmentation_is_prediction_with_seeds(pictures, segmenter, scans, scan_segmenter):
    rng = np.random.default_rng(0)
    for trained, given in ((segmenter, pictures[0][9]), (scan_segmenter, scans[0][4])):
        session = trained.interactive(given)
        plain = trained.predict([given])[0]
        np.testing.assert_array_equal(session.segment(), plain)
        seeds = np.full(plain.shape, -1)
        for _ in range(4):
            at = rng.choice(plain.size, 8, replace=False)
            seeds.ravel()[at] = rng.choice(trained.classes_, 8)
            np.testing.assert_array_equal(session.segment(seeds), trained.predict([given], seeds=[seeds])[0])
        np.testing.assert_array_equal(session.segment(), plain)


def test_three_classes_with_void_and_other_labels():
    X, y = drawn_pictures(8, seed=1, size=SIZE, classes=3)
    renamed = [np.array([10, 3, 77])[one] for one in y]
    hidden = [one.copy() for one in renamed]
    for one in hidden:
        one[:10, :20] = 200
    trained = Segmenter(**{**QUICK, "stages": 1}, void=200, class_weight="balanced").fit(X[:6], hidden[:6])
    assert trained.classes_ == [3, 10, 77]
    found = trained.predict(X[6:])
    assert set(np.unique(np.concatenate(found))) <= {3, 10, 77}
    assert trained.score(X[6:], renamed[6:]) > 0.7
    assert trained.solution_.certificate.relaxed


def test_void_pixels_change_nothing_where_all_is_void():
    X, y = drawn_pictures(5, seed=2, size=SIZE)
    blank = [*y[:4], np.full(SIZE, -1)]
    trained = Segmenter(**{**QUICK, "stages": 1}).fit(X, blank)
    assert np.isfinite(trained.coef_).all()


def test_class_weights_trade_one_error_for_another(pictures):
    X, y = pictures
    shares = []
    for weight in (0.05, 20.0):
        trained = Segmenter(**{**QUICK, "stages": 1}, class_weight={1: weight}).fit(X[:6], y[:6])
        shares.append(np.mean([labels.mean() for labels in trained.predict(X[6:])]))
    assert shares[0] < shares[1]


def test_dev_data_choose_C(pictures):
    X, y = pictures
    trained = Segmenter(**{**QUICK, "C": [1e-4, 1.0]}).fit(X[:6], y[:6], dev=(X[6:], y[6:]))
    assert trained.dev_scores_
    assert trained.model_.training.C in (1e-4, 1.0)
    assert len(trained.model_.metadata["tried"]) == 2


def test_stacks_and_pixels_and_regions_of_the_user():
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(4):
        place = np.indices((6, 16, 16)).astype(float)
        ball = ((place - np.array([3, *rng.uniform(5, 11, 2)]).reshape(3, 1, 1, 1)) ** 2).sum(axis=0) < 16
        X.append((100 * ball + rng.normal(60, 20, ball.shape)).clip(0, 255).astype(np.uint8))
        y.append(ball.astype(int))
    trained = Segmenter(**{**QUICK, "stages": 1, "n_regions": 80}).fit(X[:3], y[:3])
    assert trained.score(X[3:], y[3:]) > 0.93
    flat, flat_y = [one[3] for one in X], [one[3] for one in y]
    for graph in ("pixels", "superpixels"):
        trained = Segmenter(**{**QUICK, "stages": 1, "n_regions": 30}, graph=graph).fit(flat[:3], flat_y[:3])
        assert trained.score(flat[3:], flat_y[3:]) > 0.85
    squares = np.add.outer(np.arange(16) // 2 * 8, np.arange(16) // 2)
    own = [Presegmented(one, squares) for one in flat]
    trained = Segmenter(**{**QUICK, "stages": 1}, refine=False).fit(own[:3], flat_y[:3])
    found = trained.predict(own[3:])[0]
    assert all(len(np.unique(found[squares == number])) == 1 for number in np.unique(squares))


def test_other_classifiers_are_used_but_not_saved(pictures, tmp_path):
    X, y = pictures
    trained = Segmenter(**{**QUICK, "classifier": GaussianNB(), "stages": 1}).fit(X[:6], y[:6])
    assert trained.score(X[6:], y[6:]) > 0.5
    with pytest.raises(ValueError, match="GaussianNB cannot be saved"):
        trained.save(tmp_path / "model.mm")
    assert not (tmp_path / "model.mm").exists()


def test_any_solver_learns_the_cut(pictures):
    X, y = pictures
    for solver in (mm.Extragradient(), mm.DualExtragradient(), mm.AveragedPerceptron()):
        settings = {**QUICK, "stages": 1, "refine": False, "tol": 0.5, "max_iter": 300}
        trained = Segmenter(**settings, solver=solver).fit(X[:4], y[:4])
        assert np.isfinite(trained.coef_).all()
        assert trained.score(X[8:], y[8:]) > 0.5


def test_estimators_are_cloned_and_refuse_nonsense(pictures):
    X, y = pictures
    assert clone(Segmenter(n_regions=50)).get_params()["n_regions"] == 50
    assert clone(ScanSegmenter(voxel=0.5)).voxel == 0.5
    for wrong, message in (
        ({"stages": 0}, "stages"),
        ({"folds": 1}, "folds"),
        ({"classifier": "forest"}, "classifier"),
        ({"class_weight": "equal"}, "balanced"),
        ({"class_weight": {9: 2.0}}, "names 9"),
        ({"class_weight": [1, 2]}, "balanced"),
        ({"class_weight": {0: 0.0}}, "class_weight is 0"),
        ({"graph": "voxels"}, "graph"),
        ({"refine": "no"}, "refine"),
        ({"void": None}, "void"),
    ):
        with pytest.raises(ValueError, match=message):
            Segmenter(**{**QUICK, **wrong}).fit(X[:4], y[:4])
    with pytest.raises(ValueError, match="only the class 0"):
        Segmenter(**QUICK).fit(X[:4], [np.zeros(SIZE, dtype=int)] * 4)
    with pytest.raises(ValueError, match=r"example 1: labels of shape \(3, 3\)"):
        Segmenter(**QUICK).fit(X[:2], [y[0], np.zeros((3, 3), dtype=int)])
    with pytest.raises(ValueError, match="must be a list of names, got 'intensity'"):
        ScanSegmenter(attributes="intensity").fit([np.zeros((3, 3))], [np.array([0, 1, 1])])
    with pytest.raises(ValueError, match="integers"):
        Segmenter(**QUICK).fit(X[:2], [y[0], y[1].astype(float)])


def test_sparse_labels(pictures):
    X, y = pictures
    quick = {**QUICK, "stages": 1}
    only = [np.where(np.arange(SIZE[0])[:, None] < 30, y[0], -1), *(np.full(SIZE, -1) for _ in range(3))]
    for classifier in ("linear", "boosting"):
        trained = Segmenter(**{**quick, "classifier": classifier}).fit(X[:4], only)
        assert set(np.unique(trained.predict(X[8:9])[0])) <= {0, 1}
    dots = np.full(SIZE, -1)
    dots[0, 0], dots[0, 1] = 0, 1
    with pytest.raises(ValueError, match="labeled nodes; label more"):
        Segmenter(**quick).fit([X[0]], [dots])
    with pytest.raises(ValueError, match="dev data: no pixel or point has a label"):
        Segmenter(**quick).fit(X[:4], y[:4], dev=(X[4:5], [np.full(SIZE, -1)]))


def test_classifiers_without_sample_weights(pictures):
    X, y = pictures
    for classifier in (KNeighborsClassifier(3), make_pipeline(StandardScaler(), LogisticRegression())):
        trained = Segmenter(**{**QUICK, "classifier": classifier, "stages": 1}).fit(X[:4], y[:4])
        assert trained.score(X[8:], y[8:]) > 0.6


def test_images_that_show_nothing(segmenter):
    for image in (np.zeros((*SIZE, 3), dtype=np.uint8), np.full((1, 1, 3), 200, dtype=np.uint8)):
        found = segmenter.predict([image])[0]
        assert found.shape == image.shape[:2]
    gray = segmenter.predict([np.random.default_rng(0).integers(0, 255, SIZE, dtype=np.uint8)])[0]
    assert gray.shape == SIZE


def test_large_images_are_reduced_for_features(pictures, segmenter):
    X, _ = pictures
    large = np.kron(X[9], np.ones((8, 8, 1), dtype=np.uint8))
    settings = replace(segmenter.model_.encoder.extractor, working_pixels=SIZE[0] * SIZE[1])
    sites = settings.sites(large)
    assert sites.node_of.shape == large.shape[:2]
    assert sites.size.sum() == large.shape[0] * large.shape[1]
    assert sites.regions.labels.shape == SIZE


def test_few_and_odd_points(scan_segmenter):
    assert scan_segmenter.predict([np.zeros((3, 3))])[0].shape == (3,)
    with pytest.raises(ValueError, match=r"example 0: .*point 1"):
        scan_segmenter.predict([np.array([[0.0, 0, 0], [0, np.nan, 0], [1, 1, 1]])])


def test_regular_potentials(pictures, tmp_path):
    X, y = pictures
    trained = Segmenter(**{**QUICK, "stages": 1}, potentials="regular").fit(X[:6], y[:6])
    assert len(trained.coef_) > len(Segmenter(**{**QUICK, "stages": 1}).fit(X[:6], y[:6]).coef_)
    trained.save(tmp_path / "model.mm")
    np.testing.assert_array_equal(mm.load(tmp_path / "model.mm").predict(X[9:])[0], trained.predict(X[9:])[0])
    three, labels = drawn_pictures(4, seed=1, size=SIZE, classes=3)
    with pytest.raises(ValueError, match="is for two classes, and there are 3"):
        Segmenter(**{**QUICK, "stages": 1}, potentials="regular").fit(three, labels)


def test_training_that_is_cut_resumes(tmp_path, monkeypatch):
    """Once the stages are done, and in the cut of pixels."""

    class Killed(Exception):
        pass

    def killed(record):
        counts[0] += 1
        if counts[0] == counts[1]:
            raise Killed

    X, y = drawn_pictures(4, size=(40, 48))
    given = {**QUICK, "stages": 1, "n_regions": 40}
    counts = [0, 0]
    whole = Segmenter(**given, callbacks=[killed]).fit(X, y)
    for at in (2, counts[0] - 1):
        counts = [0, at]
        checkpoint = Checkpoint(tmp_path / "run", every=0.0)
        with pytest.raises(Killed):
            Segmenter(**given, callbacks=[killed], checkpoint=checkpoint).fit(X, y)
        assert list(tmp_path.iterdir())
    again = Segmenter(**given, callbacks=[lambda record: None], checkpoint=checkpoint).fit(X, y)
    np.testing.assert_array_equal(again.coef_, whole.coef_)
    np.testing.assert_array_equal(again.model_.encoder.pixel_cut.weights, whole.model_.encoder.pixel_cut.weights)
    assert not list(tmp_path.iterdir())

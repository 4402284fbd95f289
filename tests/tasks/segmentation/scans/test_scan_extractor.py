"""The extractor of scans: invariance, tiny and bad scans, attributes, spin images, its state, threads."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from maxmargin import _threads
from maxmargin.tasks.segmentation.scans.extractor import ScanExtractor
from maxmargin.tasks.segmentation.scans.spin import Components, spin_images


def street(seed: int = 0, n: int = 4000) -> np.ndarray:
    """Ground, a wall, a pole and a bush."""
    rng = np.random.default_rng(seed)
    ground = np.column_stack([rng.uniform(0, 12, (n // 2, 2)), np.zeros(n // 2)])
    wall = np.column_stack([rng.uniform(0, 12, n // 4), np.full(n // 4, 11.0), rng.uniform(0, 5, n // 4)])
    pole = np.column_stack([np.full((n // 16, 2), 3.0), rng.uniform(0, 5, n // 16)])
    bush = rng.normal(loc=(8, 4, 1.5), scale=0.7, size=(n // 4, 3))
    bush[:, 2] = np.abs(bush[:, 2])
    return np.concatenate([ground, wall, pole, bush]) + rng.normal(
        scale=0.01, size=(n // 2 + 2 * (n // 4) + n // 16, 3)
    )


POINTS = street()
EXTRACTOR = ScanExtractor().fit([POINTS])


def test_sites_of_a_street():
    sites = EXTRACTOR.sites(POINTS)
    n = len(sites.size)
    assert sites.features.shape == (n, EXTRACTOR.n_features)
    assert sites.features.dtype == np.float32
    assert np.isfinite(sites.features).all()
    assert sites.node_of.shape == (len(POINTS),)
    assert np.array_equal(np.bincount(sites.node_of), sites.size)
    assert (sites.edges[:, 0] < sites.edges[:, 1]).all()
    assert sites.edge_features.shape == (len(sites.edges), len(EXTRACTOR.edge_feature_names))
    assert sites.edge_features.min() >= 0
    height = sites.features[sites.node_of, EXTRACTOR.feature_names.index("height over ground")]
    assert np.abs(height - POINTS[:, 2]).max() < 0.5


def test_what_shapes_say():
    sites = EXTRACTOR.sites(POINTS)
    quarter = len(POINTS) // 17  # the street's parts are 8, 4, 1 and 4 parts of 17
    ground, wall, pole, bush = (
        sites.features[np.unique(sites.node_of[a * quarter : b * quarter])]
        for a, b in ((0, 8), (8, 12), (12, 13), (13, 17))
    )
    column = {name: i for i, name in enumerate(EXTRACTOR.feature_names)}
    median = lambda rows, name: np.median(rows[:, column[name]])  # noqa: E731
    assert median(ground, "verticality at 0.8") < 0.1 < 0.8 < median(wall, "verticality at 0.8")
    assert min(median(part, "planarity at 0.8") for part in (ground, wall)) > 0.6 > median(pole, "planarity at 0.8")
    assert median(pole, "main direction upwards at 0.8") > 0.9
    assert median(bush, "scattering at 0.8") > 0.3 > median(wall, "scattering at 0.8")


@pytest.mark.parametrize("shift", [(100.0, -50.0, 3.0), (4.5e5, 5.1e6, 250.0)])
def test_shifted_scans_have_the_same_features(shift):
    given, moved = EXTRACTOR.sites(POINTS), EXTRACTOR.sites(POINTS + shift)
    assert np.mean(given.node_of != moved.node_of) < 1e-3  # points within rounding of a voxel's side may change
    if len(given.size) == len(moved.size):
        assert np.mean(np.abs(given.features - moved.features) > 1e-3) < 1e-2


def test_quarter_turns_change_little():
    turned = np.column_stack([-POINTS[:, 1], POINTS[:, 0], POINTS[:, 2]])
    given, moved = EXTRACTOR.sites(POINTS), EXTRACTOR.sites(turned)
    # Voxels begin at the scan's lowest corner, so they are others; features per point are nearly the same.
    one, two = given.features[given.node_of].astype(float), moved.features[moved.node_of].astype(float)
    spread = one.std(axis=0) + 1e-6
    assert np.median(np.abs(one - two) / spread) < 0.1
    skipped = {"log size"}
    for i, name in enumerate(EXTRACTOR.feature_names):
        if name not in skipped and one[:, i].std() > 0.05:
            assert np.corrcoef(one[:, i], two[:, i])[0, 1] > 0.8, name


@pytest.mark.parametrize("points", [np.zeros((1, 3)), np.zeros((50, 3)), np.eye(3), np.eye(3)[:2] + 1e6])
@pytest.mark.parametrize("reaches", [(), (0.6, 1.8)])
def test_tiny_scans(points, reaches):
    sites = ScanExtractor(spin_reaches=reaches).fit([POINTS]).sites(points)
    assert np.isfinite(sites.features).all()
    assert np.isfinite(sites.edge_features).all()
    assert np.isfinite(sites.context(np.full((len(sites.size), 2), 0.5))).all()
    assert len(sites.node_of) == len(points)


def test_context_of_certain_probabilities():
    sites = EXTRACTOR.sites(POINTS)
    n = len(sites.size)
    certain = np.tile([0.0, 1.0, 0.0], (n, 1))
    found = sites.context(certain).reshape(n, -1, 3)
    # Nothing above or below is told apart from probabilities of 0.
    assert set(np.unique(found.round(5))) <= {-1.0, 0.0, 1.0}
    assert (found[:, 0] == [0, 1, 0]).all()
    assert found[:, [0, 1, 4, 7], 1] == pytest.approx(np.ones((n, 4)))
    assert sites.context(certain[:, :2]).shape == (n, found.shape[1])


def test_bad_points():
    bad = POINTS.copy()
    bad[7, 1] = np.nan
    with pytest.raises(ValueError, match="point 7: coordinates"):
        EXTRACTOR.sites(bad)
    for wrong in (np.zeros((0, 3)), np.zeros((4, 2)), np.zeros(3), np.array([["a", "b", "c"]])):
        with pytest.raises(ValueError, match=r"points must be numbers of shape \(n, 3\)"):
            EXTRACTOR.sites(wrong)
    with pytest.raises(ValueError, match="example 1: point 7"):
        ScanExtractor().fit([POINTS, bad])
    with pytest.raises(ValueError, match="call fit first"):
        ScanExtractor().sites(POINTS)
    with pytest.raises(ValueError, match="no scans"):
        ScanExtractor().fit([])


def test_attributes_are_features():
    intensity = np.where(POINTS[:, 2] > 1, 1.0, 0.0)
    scan = (POINTS, {"intensity": intensity, "color": np.ones((len(POINTS), 3))})
    fitted = ScanExtractor().fit([scan])
    sites = fitted.sites(scan)
    names = fitted.feature_names
    assert [n for n in names if " at " not in n][2:6] == ["color 0", "color 1", "color 2", "intensity"]
    assert len(names) == sites.features.shape[1] == fitted.n_features
    own = sites.features[:, names.index("intensity")]
    assert own == pytest.approx(np.bincount(sites.node_of, intensity) / sites.size, abs=1e-6)
    assert sites.features[:, names.index("color 0 around 0.8")] == pytest.approx(1.0)
    more = SimpleNamespace(points=POINTS, attributes={**scan[1], "time": np.zeros(len(POINTS))})
    assert np.array_equal(fitted.sites(more).features, sites.features)
    assert "intensity" not in ScanExtractor(attributes=("color",)).fit([scan]).feature_names
    with pytest.raises(ValueError, match="no attribute 'color', which the training scans had; it has 'intensity'"):
        fitted.sites((POINTS, {"intensity": intensity}))
    with pytest.raises(ValueError, match="no attribute 'color'"):
        fitted.sites(POINTS)
    with pytest.raises(ValueError, match="columns"):
        fitted.sites((POINTS, {"intensity": intensity, "color": intensity}))
    with pytest.raises(ValueError, match="one row per point"):
        fitted.sites((POINTS, {"intensity": intensity[1:], "color": intensity}))
    broken = intensity.copy()
    broken[5] = np.inf
    with pytest.raises(ValueError, match="point 5: attribute 'intensity'"):
        fitted.sites((POINTS, {**scan[1], "intensity": broken}))
    with pytest.raises(ValueError, match="example 1: the scan has no attribute"):
        ScanExtractor().fit([scan, POINTS])


def by_loops(points: np.ndarray, reach: float) -> np.ndarray:
    """Spin images point by point."""
    images = []
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    for i, point in enumerate(points):
        near = points[np.argsort(distance[i], kind="stable")[:15]]
        normal = np.linalg.eigh(np.cov(near.T))[1][:, 0]
        normal *= np.sign(normal[2])
        image = np.zeros((10, 5))
        for j in np.flatnonzero((distance[i] <= reach) & (np.arange(len(points)) != i)):
            height = (points[j] - point) @ normal
            across = np.linalg.norm(points[j] - point - height * normal)
            image[min(int(across / reach * 10), 9), min(int((height / reach + 1) / 2 * 5), 4)] += 1
        images.append(image.ravel() / max(image.sum(), 1))
    return np.array(images)


def test_spin_images_point_by_point():
    points = np.random.default_rng(0).normal(size=(150, 3))
    found = spin_images(points, (0.6, 1.8))
    assert found[:, :50] == pytest.approx(by_loops(points, 0.6))
    assert found[:, 50:] == pytest.approx(by_loops(points, 1.8))


def test_components_are_those_of_scikit_learn():
    from sklearn.decomposition import PCA

    rows = np.random.default_rng(0).normal(size=(300, 12)) @ np.random.default_rng(1).normal(size=(12, 12))
    learned = Components.fit([rows[:100], rows[100:]], 4)
    expected = PCA(4, svd_solver="full").fit_transform((rows - learned.mean) / learned.spread) / 2
    found = learned(rows)
    assert np.abs(np.sum(found * expected, axis=0)) == pytest.approx(np.sum(expected**2, axis=0))


@pytest.mark.parametrize("reaches", [(), (0.6, 1.8)])
def test_state_round_trip(reaches):
    scan = (POINTS, {"intensity": POINTS[:, 2]})
    fitted = ScanExtractor(spin_reaches=reaches, edge_radius=0.5).fit([scan])
    state = fitted.state()
    json.dumps({name: value for name, value in state.items() if not isinstance(value, np.ndarray)})
    again = ScanExtractor.from_state(state)
    assert again == fitted
    one, two = fitted.sites(scan), again.sites(scan)
    assert np.array_equal(one.features, two.features)
    assert np.array_equal(one.edges, two.edges)
    assert ("spin 44" in fitted.feature_names) == bool(reaches)


@pytest.mark.parametrize(
    "change",
    [
        {"voxel": "large"},
        {"voxel": -1.0},
        {"radii": [1.0, 0.5]},
        {"radii": []},
        {"radii": 3},
        {"neighbors": 2.5},
        {"attributes": [3]},
        {"attribute_widths": [1, 2]},
        {"strange": 1},
        {"spin_mean": np.zeros(100)},
        {"spin_axes": np.full((45, 100), np.nan)},
        {"spin_axes": np.zeros((45, 99))},
        {"spin_reaches": [1.0]},
    ],
)
def test_bad_states(change):
    state = ScanExtractor(spin_reaches=(0.6, 1.8)).fit([POINTS]).state() | change
    if "spin_mean" in change:
        del state["spin_axes"]
    with pytest.raises(ValueError):
        ScanExtractor.from_state(state)


def test_a_state_with_something_missing():
    state = EXTRACTOR.state()
    del state["voxel"]
    with pytest.raises(ValueError, match="'voxel' is missing"):
        ScanExtractor.from_state(state)


def test_edges_by_radius_are_added():
    none = replace(EXTRACTOR, neighbors=0).sites(POINTS)
    assert none.edges.shape == (0, 2)
    both = replace(EXTRACTOR, edge_radius=0.4).sites(POINTS)
    near = EXTRACTOR.sites(POINTS)
    found, few = set(map(tuple, both.edges.tolist())), set(map(tuple, near.edges.tolist()))
    assert few < found
    lengths = np.linalg.norm(both.points[both.edges[:, 0]] - both.points[both.edges[:, 1]], axis=1)
    assert all(tuple(edge) in few for edge in both.edges[lengths > 0.4].tolist())


def test_the_same_bits_for_any_number_of_threads():
    one = EXTRACTOR.sites(POINTS)
    probabilities = np.random.default_rng(0).dirichlet(np.ones(3), len(one.size))
    context = one.context(probabilities)
    with _threads.threads(3):
        two = EXTRACTOR.sites(POINTS)
        assert np.array_equal(context, two.context(probabilities))
    assert np.array_equal(one.features, two.features)
    assert np.array_equal(one.edges, two.edges)
    assert np.array_equal(one.edge_features, two.edge_features)

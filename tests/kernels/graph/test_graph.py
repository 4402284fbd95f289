from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import certificate, grid, one, random_batch
from oracles import reference
from oracles.enumeration import vertices
from oracles.structures import network as twin

from maxmargin import _kernels
from maxmargin.structures import Associative, Chain, Cut, PairwiseGraph, PointStatus
from maxmargin.structures.networks import network

SETTINGS = settings(deadline=None, derandomize=True, max_examples=40)
KINDS = (Associative, PairwiseGraph)
kinds = pytest.mark.parametrize("kind", KINDS)


def scores_of(rng: np.random.Generator, structure: network.Network, style: int) -> np.ndarray:
    scores = rng.normal(size=structure.n_parts)
    if style == 1:
        scores = np.round(scores)
    elif style == 2:
        scores[: structure.starts[1]] = 0.0
    elif style == 3:
        scores[structure.starts[1] :] *= 4.0
    if isinstance(structure, Associative):
        scores[structure.starts[1] :] = np.abs(scores[structure.starts[1] :])
    return scores


# --- maxima ------------------------------------------------------------------------------------------------------


@settings(SETTINGS, max_examples=80)
@given(
    kind=st.sampled_from(KINDS), seed=st.integers(0, 10**6), labels=st.integers(1, 4), style=st.integers(0, 3),
    solver=st.sampled_from(["own", "own alone", "simplex"]),
)  # fmt: skip
def test_argmax_equals_linear_program(
    kind: type[network.Network], seed: int, labels: int, style: int, solver: str
) -> None:
    rng = np.random.default_rng(seed)
    structure = random_batch(rng, kind, 3, labels)
    scores = scores_of(rng, structure, style)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(network, "HIGHS_PARTS", 0 if solver == "own alone" else network.HIGHS_PARTS)
        patch.setattr(network, "_STEP_LIMIT", 0 if solver == "simplex" else network._STEP_LIMIT)
        points = structure.argmax(scores)
    slack = 1e-6 if solver == "own alone" else 1e-9
    size = 1.0 + structure.by_example(np.abs(scores))
    assert not points.status.any()
    assert twin.feasibility(structure, points.z) <= 1e-12
    worth = structure.by_example(scores * points.z)
    assert np.all(worth <= points.value + 1e-12 * size)
    assert np.all(points.value - worth <= slack * size)
    if structure.n_parts:
        maximum = reference.maximum(structure, scores)
        assert points.value.sum() >= maximum - 1e-9 * size.sum()
        assert points.value.sum() <= maximum + slack * size.sum()
    again = structure.argmax(scores, warm=points.warm)
    np.testing.assert_allclose(again.value, points.value, atol=1e-6 * size.max(initial=1.0))


@settings(SETTINGS, max_examples=60)
@given(
    kind=st.sampled_from(KINDS), seed=st.integers(0, 10**6), labels=st.integers(1, 4), style=st.integers(0, 3),
    tol=st.sampled_from([1e-6, 1e-3, 0.1, 1.0, 100.0]), warm=st.booleans(),
)  # fmt: skip
def test_argmax_within_a_tolerance(
    kind: type[network.Network], seed: int, labels: int, style: int, tol: float, warm: bool
) -> None:
    """Values bound the maxima, and points are worth no less than the tolerance allows."""
    rng = np.random.default_rng(seed)
    structure = random_batch(rng, kind, 3, labels)
    scores = scores_of(rng, structure, style)
    start = structure.argmax(scores + 0.1 * rng.normal(size=structure.n_parts)).warm if warm else None
    points = structure.argmax_within(scores, tol, warm=start)
    exact, size = structure.argmax(scores).value, 1.0 + structure.by_example(np.abs(scores))
    assert not points.status.any()
    assert twin.feasibility(structure, points.z) <= 1e-12
    assert np.all(points.value >= exact - 1e-9 * size)
    assert points.value.sum() - scores @ points.z <= tol + 1e-8 * size.sum()


def test_a_tolerance_saves_the_search_for_fractions() -> None:
    """A labeling is enough where its score is near the bound; the maximum itself is fractional."""
    structure = one(PairwiseGraph, 3, np.array([[0, 1], [1, 2], [2, 0]]), 2)
    scores = np.concatenate([np.zeros(6), np.tile([0.0, 1.0, 1.0, 0.0], 3)])
    assert structure.argmax(scores).value[0] == pytest.approx(3.0)
    points = structure.argmax_within(scores, 1.5)
    assert points.value[0] >= 3.0 - 1e-9
    assert set(points.z.tolist()) == {0.0, 1.0}
    assert scores @ points.z == pytest.approx(2.0)
    with pytest.raises(ValueError, match="tol"):
        structure.argmax_within(scores, -1.0)


@SETTINGS
@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 10**6), labels=st.integers(1, 3), style=st.integers(0, 3))
def test_labelings_against_enumeration(kind: type[network.Network], seed: int, labels: int, style: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_batch(rng, kind, 3, labels, most=5)
    scores = scores_of(rng, structure, style)
    relaxed, points = structure.relax(scores)
    np.testing.assert_array_equal(structure.encode(structure.decode(points.z)), points.z)
    np.testing.assert_allclose(points.value, structure.by_example(scores * points.z), atol=1e-9)
    for i, outputs in enumerate(vertices(structure)):
        best = (outputs @ scores[structure.parts_of([i])]).max()
        assert relaxed.value[i] >= best - 1e-9
        if points.status[i] == PointStatus.OK:
            assert points.value[i] == pytest.approx(best, abs=1e-7)
    np.testing.assert_array_equal(structure.predict(scores).z, points.z)


@pytest.mark.parametrize("strength", [1.0, 3.0])
def test_predictions_where_the_relaxation_is_fractional(strength: float) -> None:
    rng = np.random.default_rng(0)
    edges, n = grid(4, 3), 8
    structure = PairwiseGraph([12] * n, np.tile(edges, (n, 1)), np.arange(n + 1) * len(edges), 2)
    couplings = rng.normal(size=(n * len(edges), 1)) * [[1.0, -1.0, -1.0, 1.0]]
    scores = np.concatenate([rng.normal(size=structure.starts[1]), strength * couplings.ravel()])
    relaxed, points = structure.relax(scores)
    assert (relaxed.z[structure.variable_parts] == 0.5).any()
    outputs = vertices(structure.select([0]))[0]
    best = np.array([(outputs @ scores[structure.parts_of([i])]).max() for i in range(n)])
    assert np.all(points.value <= best + 1e-9)
    assert np.sum(points.value >= best - 1e-9) >= n - 1  # by search, not by proof
    np.testing.assert_array_equal(structure.predict(scores).z, points.z)


def test_a_frustrated_cycle_is_fractional() -> None:
    structure = one(PairwiseGraph, 3, np.array([[0, 1], [1, 2], [2, 0]]), 2)
    scores = np.concatenate([np.zeros(6), np.tile([0.0, 1.0, 1.0, 0.0], 3)])
    relaxed, points = structure.relax(scores)
    assert relaxed.value[0] == pytest.approx(3.0)
    np.testing.assert_allclose(relaxed.z[:6], 0.5)
    assert points.status[0] == PointStatus.INEXACT
    assert points.value[0] == 2.0
    scores[0] = 10.0  # with one label fixed the others are on a tree
    assert structure.predict(scores).status[0] == PointStatus.OK


@pytest.mark.parametrize("labels", [2, 5])
@pytest.mark.parametrize("nodes", [2, 40, 400])
def test_argmax_on_trees_is_exact(labels: int, nodes: int) -> None:
    rng = np.random.default_rng(nodes + labels)
    parents = np.array([rng.integers(0, child) for child in range(1, nodes)])
    edges = np.stack([parents, np.arange(1, nodes)], axis=1)
    edges = rng.permutation(np.where(rng.random((nodes - 1, 1)) < 0.5, edges, edges[:, ::-1]))
    structure = one(PairwiseGraph, nodes, rng.permutation(nodes)[edges], labels)
    scores = rng.normal(size=structure.n_parts)
    relaxed, points = structure.relax(scores)
    best = twin.best_on_tree(structure, scores)  # type: ignore[arg-type]
    assert relaxed.value[0] == pytest.approx(best, rel=1e-9)
    assert points.value[0] == pytest.approx(best, rel=1e-9)
    assert points.status[0] == PointStatus.OK


def test_chains_agree() -> None:
    rng = np.random.default_rng(0)
    lengths = np.array([1, 4, 9])
    chain = Chain(lengths, 3, transitions="each")
    edges = np.concatenate([np.stack([np.arange(n - 1), np.arange(1, n)], axis=1) for n in lengths])
    structure = PairwiseGraph(lengths, edges, np.cumsum([0, *(lengths - 1)]), 3)
    scores = rng.normal(size=chain.n_parts)
    np.testing.assert_allclose(structure.argmax(scores).value, chain.argmax(scores).value, atol=1e-12)
    np.testing.assert_allclose(structure.project(scores).z, chain.project(scores, tol=1e-9).z, atol=1e-6)


@kinds
def test_two_attracting_labels_are_a_minimum_cut(kind: type[network.Network]) -> None:
    """Equal labels score ``c`` more than unequal ones: ``c - c |x_j - x_k|`` on top of the node scores."""
    rng = np.random.default_rng(5)
    edges = grid(14, 14)
    nodes, reward = rng.normal(size=(196, 2)), rng.random(len(edges))
    tables = np.stack([reward, np.zeros_like(reward), np.zeros_like(reward), reward], axis=1)
    structure = one(kind, 196, edges, 2)
    second = tables if kind is PairwiseGraph else np.stack([reward, reward], axis=1)
    scores = np.concatenate([nodes.ravel(), second.ravel()])
    cut = Cut([196], edges, [0, len(edges)]).argmax(np.concatenate([nodes[:, 1] - nodes[:, 0], -reward]))
    relaxed, points = structure.relax(scores)
    assert relaxed.value[0] == pytest.approx(cut.value[0] + nodes[:, 0].sum() + reward.sum(), rel=1e-9)
    assert points.value[0] == pytest.approx(relaxed.value[0], rel=1e-9)
    assert points.status[0] == PointStatus.OK


@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0, 4.0, 1e8])
def test_two_labels_of_any_sign_are_one_cut(strength: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_STEP_LIMIT", 0)
    monkeypatch.setattr(network, "_solve", lambda *_: None)
    rng = np.random.default_rng(int(strength))
    structure = one(PairwiseGraph, 400, rng.permutation(grid(20, 20)), 2)
    for style in range(3):
        scores = scores_of(rng, structure, style)
        scores[structure.starts[1] :] *= strength
        points = structure.argmax(scores)
        assert not points.status.any()
        assert np.isin(points.z, [0.0, 0.5, 1.0]).all()
        assert twin.feasibility(structure, points.z) == 0.0
        size = 1.0 + np.abs(scores).sum()
        assert points.value[0] == pytest.approx(scores @ points.z, abs=1e-12 * size)
        assert points.value[0] == pytest.approx(reference.maximum(structure, scores), abs=1e-9 * size)


@kinds
@pytest.mark.parametrize("own", [True, False])
def test_large_maxima_are_certified(kind: type[network.Network], own: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "HIGHS_PARTS", 0 if own else 10**9)
    rng = np.random.default_rng(1)
    edges = grid(12, 12)
    structure = one(kind, 144, edges, 3)
    scores = scores_of(rng, structure, 0)
    points = structure.argmax(scores)
    assert not points.status.any()
    assert twin.feasibility(structure, points.z) <= 1e-12
    assert -1e-9 <= points.value[0] - scores @ points.z <= 1e-6 * structure._range(scores)[0]


@kinds
def test_interior_points_finish_what_steps_cannot(kind: type[network.Network], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    structure = one(kind, 49, grid(7, 7), 3)
    scores = scores_of(rng, structure, 3)
    expected = structure.argmax(scores)
    monkeypatch.setattr(network, "HIGHS_PARTS", 0)
    monkeypatch.setattr(network, "_STEP_LIMIT", 0)
    points = structure.argmax(scores)
    assert not points.status.any()
    assert points.value[0] == pytest.approx(expected.value[0], rel=1e-7)


@kinds
def test_without_highs_the_answer_says_that_it_is_not_exact(
    kind: type[network.Network], monkeypatch: pytest.MonkeyPatch
) -> None:
    structure = one(PairwiseGraph, 3, np.array([[0, 1], [1, 2], [2, 0]]), 3)
    differ = np.array([0.0, 1.0, -9.0, 1.0, 0.0, -9.0, -9.0, -9.0, -9.0])  # label 2 is of no use
    scores = np.concatenate([np.tile([0.0, 0.0, -9.0], 3), np.tile(differ, 3)])
    monkeypatch.setattr(network, "_STEP_LIMIT", 0)
    monkeypatch.setattr(network, "_solve", lambda *_: None)
    points = structure.argmax(scores)
    assert points.status[0] == PointStatus.INEXACT
    assert points.value[0] >= 3.0 - 1e-12
    assert twin.feasibility(structure, points.z) == 0.0


# --- projections -------------------------------------------------------------------------------------------------


@SETTINGS
@given(
    kind=st.sampled_from(KINDS), seed=st.integers(0, 10**6), labels=st.integers(1, 4),
    scale=st.sampled_from([0.1, 1.0, 5.0]),
)  # fmt: skip
def test_projection_equals_interior_point(kind: type[network.Network], seed: int, labels: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    structure = random_batch(rng, kind, 3, labels, most=5)
    point = scale * rng.normal(size=structure.n_parts)
    points = structure.project(point, tol=1e-9)
    assert not points.status.any()
    assert twin.feasibility(structure, points.z) <= 1e-12
    np.testing.assert_allclose(points.value, 0.5 * structure.by_example((points.z - point) ** 2), atol=1e-12)
    if structure.n_parts:
        np.testing.assert_allclose(points.z, reference.project(structure, point), atol=5e-6)
    assert np.all(certificate(structure, point, points.z) <= 1e-6 * (1 + scale))
    warm = structure.project(point, tol=1e-9, warm=rng.normal(size=points.warm.shape))
    np.testing.assert_allclose(points.z, warm.z, atol=1e-6)


@kinds
@pytest.mark.parametrize("tol", [1e-3, 1e-6, 0.0])
def test_large_projections_are_certified(kind: type[network.Network], tol: float) -> None:
    rng = np.random.default_rng(2)
    structure = one(kind, 225, grid(15, 15), 4)
    gold = structure.encode([rng.integers(0, 4, size=225)]).dense()
    point = gold + 0.3 * rng.normal(size=structure.n_parts)
    points = structure.project(point, tol=tol)
    assert not points.status.any()
    assert twin.feasibility(structure, points.z) <= 1e-12
    exact = structure.project(point, tol=1e-9, warm=points.warm)
    assert np.linalg.norm(exact.z - points.z) <= max(tol, 1e-5)


@kinds
def test_projection_keeps_points_of_the_polytope(kind: type[network.Network]) -> None:
    rng = np.random.default_rng(4)
    structure = random_batch(rng, kind, 6, 3)
    inner = structure.project(rng.normal(size=structure.n_parts)).z
    for point in (inner, structure.predict(scores_of(rng, structure, 0)).z):
        np.testing.assert_allclose(structure.project(point, tol=1e-9).z, point, atol=1e-7)


@kinds
@pytest.mark.parametrize("labels", [2, 3, 7, 18])
def test_newton_systems_and_conjugate_gradients_agree(kind: type[network.Network], labels: int) -> None:
    """Points around the middle of the polytope, where all nodes are fractional; tables of 18 labels go another way."""
    rng = np.random.default_rng(labels)
    structure = one(kind, 30, grid(5, 6), labels)
    for scale in (0.02, 0.3, 3.0):
        point = scale * rng.normal(size=structure.n_parts)
        points = structure.project(point, tol=1e-8)
        assert not points.status.any()
        assert twin.feasibility(structure, points.z) <= 1e-12
        assert np.all(certificate(structure, point, points.z) <= 1e-6 * (1 + scale))


@kinds
def test_a_slowly_moving_point_is_followed(kind: type[network.Network]) -> None:
    rng = np.random.default_rng(6)
    structure = kind([64, 36], np.concatenate([grid(8, 8), grid(6, 6)]), [0, 112, 172], 3)
    scores = scores_of(rng, structure, 0)
    z, warm = structure.predict(scores).z, None
    for step in range(30):
        point = z + 0.1 * (scores + rng.normal(size=structure.n_parts))
        tol = max(1e-8, 1e-2 / (step + 1) ** 3)
        points = structure.project(point, tol=tol, warm=warm)
        assert not points.status.any()
        assert np.linalg.norm(points.z - structure.project(point, tol=1e-9).z) <= 2 * tol + 1e-7
        z, warm = points.z, points.warm


# --- degenerate input --------------------------------------------------------------------------------------------


@kinds
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e8])
def test_huge_and_tiny_scores(kind: type[network.Network], scale: float) -> None:
    rng = np.random.default_rng(7)
    structure = random_batch(rng, kind, 8, 3, most=4)
    scores = scores_of(rng, structure, 0)
    points, scaled = structure.argmax(scores), structure.argmax(scale * scores)
    assert not scaled.status.any()
    np.testing.assert_allclose(scaled.value, scale * points.value, atol=1e-9 * scale)
    near = structure.project(scale * scores)
    assert twin.feasibility(structure, near.z) <= 1e-12
    assert not near.status.any()
    if scale > 1.0:  # far away the nearest point is a maximum
        worth = structure.by_example(scores * near.z)
        np.testing.assert_allclose(worth, points.value, atol=1e-6)


@kinds
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_ties_and_equal_scores(kind: type[network.Network], value: float) -> None:
    structure = one(kind, 9, grid(3, 3), 3)
    points = structure.argmax(np.full(structure.n_parts, value))
    assert points.value[0] == pytest.approx((9 + 12) * value)
    assert not points.status.any()


@kinds
def test_examples_without_nodes_edges_or_choice(kind: type[network.Network]) -> None:
    assert repr(kind([], np.zeros((0, 2), dtype=np.int64), [0], 3)) == f"{kind.__name__}(0 examples, n_labels=3)"
    few = kind([0, 1, 2], [[0, 1]], [0, 0, 0, 1], 2)
    scores = np.arange(few.n_parts, dtype=np.float64)
    assert not few.argmax(scores).status.any()
    assert few.argmax(scores).value[:2].tolist() == [0.0, 1.0]
    assert not few.project(scores).status.any()
    single = kind([2], [[0, 1]], [0, 1], 1)
    np.testing.assert_array_equal(single.argmax(-np.ones(3)).z[:2], 1.0)
    np.testing.assert_allclose(single.project(-np.ones(3)).z[:2], 1.0)


@kinds
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_warm_starts_that_are_not_finite(kind: type[network.Network], bad: float) -> None:
    structure = kind([3, 2, 3], [[0, 1], [1, 2], [0, 1], [0, 1]], [0, 2, 3, 4], 2)
    clean = np.random.default_rng(0).random(structure.n_parts)
    start = structure.argmax(clean).warm
    start[0] = bad
    np.testing.assert_allclose(structure.argmax(clean, warm=start).value, structure.argmax(clean).value, atol=1e-9)
    np.testing.assert_allclose(structure.project(clean, warm=start).z, structure.project(clean).z, atol=1e-7)


# --- the rest of the contract ------------------------------------------------------------------------------------


@kinds
def test_encode_and_decode(kind: type[network.Network]) -> None:
    structure = kind([3, 0, 2], [[0, 1], [2, 1], [1, 0]], [0, 2, 2, 3], 3)
    labels = [np.array([0, 2, 2]), np.zeros(0, dtype=np.int64), np.array([1, 1])]
    z = structure.encode(labels).dense()
    for given_labels, found in zip(labels, structure.decode(z), strict=True):
        np.testing.assert_array_equal(given_labels, found)
    assert twin.feasibility(structure, z) == 0.0
    edge = z[structure.starts[1] :].reshape(3, -1)
    assert edge[1].reshape(-1)[8 if kind is PairwiseGraph else 2] == 1.0
    assert edge[0].sum() == (1.0 if kind is PairwiseGraph else 0.0)
    for wrong, message in (
        (labels[:2], "2 labelings for 3 examples"),
        ([labels[0], labels[1], [1]], r"example 2 has 2 nodes but its labels have shape \(1,\); give one label"),
        ([[0, 3, 1], labels[1], labels[2]], r"example 0 has label 3; labels must lie in 0..2"),
        ([labels[0], labels[1], [0.5, 1.0]], "example 2: labels must be integers"),
    ):
        with pytest.raises(ValueError, match=message):
            structure.encode(wrong)


@kinds
def test_what_is_refused(kind: type[network.Network]) -> None:
    with pytest.raises(ValueError, match=r"example 1.* has more than once the edge"):
        kind([2, 2], [[0, 1], [0, 1], [1, 0]], [0, 1, 3], 2)
    with pytest.raises(ValueError, match=r"example 0.* self-loop"):
        kind([2], [[1, 1]], [0, 1], 2)
    with pytest.raises(ValueError, match="n_labels must be an integer >= 1 and <= 4096"):
        kind([2], [[0, 1]], [0, 1], 0)
    structure = kind([2], [[0, 1]], [0, 1], 3)
    with pytest.raises(ValueError, match=r"k best labelings of an? .* use predict"):
        structure.k_best(np.zeros(structure.n_parts), 2)
    with pytest.raises(ValueError, match="#P-hard"):
        structure.marginals(np.zeros(structure.n_parts))
    with pytest.raises(ValueError, match="warm has shape"):
        structure.argmax(np.zeros(structure.n_parts), warm=np.zeros(3))


def test_bindings_check_lengths() -> None:
    structure = one(PairwiseGraph, 2, np.array([[0, 1]]), 2)
    n = structure.n_parts
    m, z, value, status = np.zeros(4), np.zeros(n), np.zeros(1), np.zeros(1, dtype=np.int8)
    layout, tol, last = structure._layout, 0.0, np.zeros(1, dtype=np.int8)
    for arguments in (
        (np.zeros(n + 1), tol, last, 1, 1, m, z, value, status, 1),
        (np.zeros(n), tol - 1.0, last, 1, 1, m, z, value, status, 1),
        (np.zeros(n), tol + np.inf, last, 1, 1, m, z, value, status, 1),
        (np.zeros(n), tol, last[:0], 1, 1, m, z, value, status, 1),
        (np.zeros(n), tol, last, 1, 1, m[:3], z, value, status, 1),
        (np.zeros(n), tol, last, 1, 1, m, z[1:], value, status, 1),
        (np.zeros(n), tol, last, 1, 1, m, z, value[:0], status, 1),
        (np.zeros(n), tol, last, 0, 1, m, z, value, status, 1),
    ):
        with pytest.raises(ValueError):
            _kernels.graph_argmax(*layout, *arguments)
    with pytest.raises(ValueError):
        _kernels.graph_project(*layout, np.zeros(n), np.nan, 1, False, m, z, value, value, status, 1)
    with pytest.raises(ValueError):
        _kernels.graph_certify(layout[0], 5000, True, np.zeros(n), m, z, value, status, 1)
    with pytest.raises(TypeError):
        _kernels.graph_round(*layout, np.zeros(n, dtype=np.float32), m, z, value, status, 1)


def test_networks_too_large_for_the_interior_point_method_stay_inexact(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    structure = one(PairwiseGraph, 100, grid(10, 10), 3)
    scores = rng.normal(size=structure.n_parts)
    exact = structure.argmax(scores)
    monkeypatch.setattr(network, "_STEP_LIMIT", 0)
    monkeypatch.setattr(network, "HIGHS_PARTS", 0)
    monkeypatch.setattr(network, "INTERIOR_POINT_PARTS", 0)
    points = structure.argmax(scores)
    assert points.status[0] == PointStatus.INEXACT
    assert points.value[0] >= exact.value[0] >= scores @ points.z

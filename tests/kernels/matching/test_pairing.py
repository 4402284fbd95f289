"""Pairings: against enumeration, by duality at any size, and against networkx."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.structures.pairing import random_graphs, vertices
from scipy.optimize import linprog

import maxmargin as mm
from maxmargin.structures import Pairing, PointStatus
from maxmargin.testing import check_structure

KINDS = ("normal", "rounded", "negative", "equal", "clusters")


def scores_of(rng, structure, kind):
    """Random scores; "clusters" makes triangles whose edges score highest, which only odd sets can explain."""
    scores = rng.normal(size=structure.n_parts)
    if kind == "clusters":
        near = structure.edges[:, 0] // 3 == structure.edges[:, 1] // 3
        return rng.random(structure.n_parts) + 5.0 * near
    chosen = {
        "normal": scores,
        "rounded": np.round(scores),
        "negative": -np.abs(scores),
        "equal": np.full_like(scores, 0.7),
    }
    return chosen[kind]


def certified(structure, scores):
    """Check the argmax by its duals: they cover every edge, and their sum is its score."""
    best, duals = structure.argmax(scores), structure.duals(scores)
    found = best.status == PointStatus.OK
    size = np.abs(scores).max(initial=1.0)
    cover = np.zeros(structure.n_parts)
    first = np.concatenate([[0], np.cumsum(structure.n_nodes)])
    for i in range(structure.n_examples):
        own = slice(*structure.blocks[0].offsets[i : i + 2])
        cover[own] = duals.nodes[first[i] + structure.edges[own]].sum(axis=1)
        for s in range(duals.set_offsets[i], duals.set_offsets[i + 1]):
            members = duals.members[duals.member_offsets[s] : duals.member_offsets[s + 1]]
            assert len(members) % 2 == 1
            assert duals.sets[s] > 0
            cover[own] += duals.sets[s] * np.isin(structure.edges[own], members).all(axis=1)
    allowed = np.isfinite(scores) & found[structure._example]
    assert (cover[allowed] >= scores[allowed] - 1e-12 * size).all()
    if not structure.perfect:
        assert (duals.nodes >= 0).all()
    np.testing.assert_allclose(duals.value[found], best.value[found], rtol=1e-12, atol=1e-12 * size)
    assert np.isnan(duals.value[~found]).all()
    with np.errstate(invalid="ignore"):
        value = structure.by_example(np.where(best.z > 0, scores, 0.0))
    np.testing.assert_allclose(value[found], best.value[found], rtol=1e-12, atol=1e-12 * size)
    structure.encode(structure.decode(best.z)) if found.all() else None
    return duals


@pytest.mark.parametrize("perfect", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("density", [1.0, 0.5])
def test_all_ranks_of_small_graphs(kind, density, perfect):
    rng = np.random.default_rng(7)
    structure = random_graphs(rng, [0, 1, 2, 3, 4, 5, 6, 4, 6], density=density, perfect=perfect)
    scores = scores_of(rng, structure, kind)
    certified(structure, scores)
    ranks = structure.k_best(scores, 1000)
    assert np.array_equal(ranks[0].value, structure.argmax(scores).value)
    offsets = structure.blocks[0].offsets
    for i, every in enumerate(vertices(structure)):
        own = slice(offsets[i], offsets[i + 1])
        found = [points for points in ranks if points.status[i] == PointStatus.OK]
        assert len(found) == len(every)
        assert len({tuple(points.z[own]) for points in found}) == len(every)
        values = np.array([points.value[i] for points in found])
        np.testing.assert_allclose(values, np.sort(every @ scores[own])[::-1], atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(0, 24), st.sampled_from(KINDS), st.booleans(), st.floats(-300, 300))
def test_duals_prove_the_maximum(seed, n, kind, perfect, exponent):
    rng = np.random.default_rng(seed)
    structure = random_graphs(rng, [n, n // 2], density=float(rng.choice([1.0, 0.4])), perfect=perfect)
    certified(structure, scores_of(rng, structure, kind) * 10.0**exponent)


@pytest.mark.parametrize("perfect", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_large_graphs(kind, perfect):
    rng = np.random.default_rng(3)
    structure = random_graphs(rng, [120, 61, 90], density=0.3, perfect=perfect)
    duals = certified(structure, scores_of(rng, structure, kind))
    if kind == "clusters":
        assert len(duals.sets) > 20


def by_networkx(edges, scores, perfect):
    networkx = pytest.importorskip("networkx", reason="networkx is not installed")
    graph = networkx.Graph()
    graph.add_weighted_edges_from((*edge, score) for edge, score in zip(edges, scores, strict=True))
    return networkx.max_weight_matching(graph, maxcardinality=perfect)


def by_rustworkx(edges, scores, perfect):
    rustworkx = pytest.importorskip("rustworkx", reason="rustworkx is not installed")
    graph = rustworkx.PyGraph()
    graph.add_nodes_from(range(12))
    graph.add_edges_from([(*edge, score) for edge, score in zip(edges, scores, strict=True)])
    return rustworkx.max_weight_matching(graph, max_cardinality=perfect, weight_fn=int)


@pytest.mark.parametrize("perfect", [False, True])
@pytest.mark.parametrize("other", [by_networkx, by_rustworkx])
def test_another_program_agrees(other, perfect):
    rng = np.random.default_rng(5)
    for seed in range(20):
        structure = random_graphs(np.random.default_rng(seed), [12], density=0.6, perfect=perfect)
        scores = np.round(10.0 * rng.normal(size=structure.n_parts))
        edges = [tuple(edge) for edge in structure.edges.tolist()]
        pairs = [tuple(sorted(pair)) for pair in other(edges, scores.tolist(), perfect)]
        best = structure.argmax(scores)
        if perfect and len(pairs) < 6:
            assert best.status[0] == PointStatus.ABSENT
        else:
            assert best.value[0] == sum(dict(zip(edges, scores.tolist(), strict=True))[pair] for pair in pairs)


@pytest.mark.parametrize("perfect", [False, True])
def test_the_linear_description(perfect):
    rng = np.random.default_rng(8)
    structure = random_graphs(rng, [6, 4, 5, 0] if not perfect else [6, 4, 2, 0], density=1.0, perfect=perfect)
    polytope, scores = structure.polytope(), scores_of(rng, structure, "clusters")
    found = linprog(
        -scores, polytope.ub, polytope.ub_rhs, *((polytope.eq, polytope.eq_rhs) if perfect else ()), bounds=(0, None)
    )
    np.testing.assert_allclose(-found.fun, structure.argmax(scores).value.sum())
    assert Pairing.dense([13]).polytope() is None
    with pytest.raises(ValueError, match="only where its examples are small"):
        mm.PairingSVM(solver=mm.Exact()).fit([np.zeros((13, 13, 1))], [[[0, 1]]])


@pytest.mark.parametrize("perfect", [False, True])
def test_the_contract(perfect):
    check_structure(Pairing.dense([4, 0, 6, 2], perfect=perfect), np.random.default_rng(2))
    check_structure(random_graphs(np.random.default_rng(4), [5, 3, 1, 6], density=0.8), np.random.default_rng(2))


def test_threads_do_not_matter():
    rng = np.random.default_rng(0)
    structure = random_graphs(rng, rng.integers(0, 20, size=60), density=0.7)
    scores = rng.normal(size=structure.n_parts)
    found = []
    for threads in (1, 2, 5):
        with mm.threads(threads):
            ranks = structure.k_best(scores, 3)
            found.append([structure.argmax(scores).z, *(points.z for points in ranks), *structure.duals(scores)])
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            assert np.array_equal(one, two)


def test_forbidden_edges_and_missing_pairings():
    structure = Pairing.dense([4, 4, 4], perfect=True)
    scores = np.ones(18)
    scores[:6] = -np.inf
    scores[6:12] = [-np.inf, 1.0, -np.inf, -np.inf, 2.0, -np.inf]  # 0-2 and 1-3 remain
    scores[12] = np.nan
    best = structure.argmax(scores)
    assert best.status.tolist() == [PointStatus.ABSENT, PointStatus.OK, PointStatus.NONFINITE]
    assert best.value[:2].tolist() == [-np.inf, 3.0]
    assert structure.decode(best.z)[1].tolist() == [[0, 2], [1, 3]]
    assert len(structure.k_best(scores, 5)) == 1
    some = Pairing.dense([4])
    assert some.argmax(np.full(6, -np.inf)).value.tolist() == [0.0]


def test_one_example_at_a_time():
    rng = np.random.default_rng(1)
    structure = random_graphs(rng, [5, 0, 7, 6], density=0.8)
    features = mm.features.PartFeatures(rng.normal(size=(structure.n_parts, 3)), structure.blocks[0].offsets)
    gold = structure.argmax(rng.normal(size=structure.n_parts)).z
    problem = mm.Problem.build(structure, features, gold, mm.losses.Hamming(), mm.regions.L2(C=1.0))
    for solver in (mm.BlockFrankWolfe(), mm.Mira(k=3)):
        solution = mm.solve(problem, solver, stop=mm.Stop(tol=1e-3, max_iter=200))
        assert np.isfinite(solution.certificate.primal)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([3], [[0, 3]], [0, 1]), "number its nodes from 0"),
        (([3], [[1, 1]], [0, 1]), "cannot be paired with itself"),
        (([3], [[0, 1], [1, 0]], [0, 2]), "list every edge once"),
        (([2**15 + 1], [[0, 1]], [0, 1]), "give at most 32768"),
    ],
)
def test_graphs_that_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Pairing(*arguments)


@pytest.mark.parametrize(
    ("perfect", "pairs", "message"),
    [
        (False, [[0, 1], [1, 2]], "example 1: node 1 has 2 partners"),
        (False, [[0, 4]], r"example 1: pair \(0, 4\) is not an edge of its graph of 4 nodes"),
        (True, [[0, 1]], "example 1: node 2 has no partner"),
    ],
)
def test_outputs_that_are_refused(perfect, pairs, message):
    structure = Pairing.dense([4, 4], perfect=perfect)
    with pytest.raises(ValueError, match=message):
        structure.encode([[[0, 1], [2, 3]], pairs])

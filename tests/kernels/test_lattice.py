"""Lattices: every kernel against enumeration, general solvers and itself with other threads; what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import reference, slack
from oracles.enumeration import gibbs, scores_of, vertices, worth
from oracles.structures.lattice import best_sequences, paths, random_lattice
from problems import make, rebuilt

import maxmargin as mm
from maxmargin import _kernels, threads
from maxmargin.problem.good_paths import PathSets
from maxmargin.solvers import Stop, solve
from maxmargin.structures import Lattice, PointStatus
from maxmargin.structures.fallbacks import generic
from maxmargin.testing import check_structure

OK, INEXACT, NONFINITE, ABSENT = PointStatus.OK, PointStatus.INEXACT, PointStatus.NONFINITE, PointStatus.ABSENT
RULES = settings(deadline=None, derandomize=True, max_examples=60)
seeds = st.integers(0, 2**32 - 1)
scales = st.sampled_from([0.0, 0.1, 1.0, 30.0])


def large(rng: np.random.Generator, n_nodes: int, degree: int, n: int = 3) -> Lattice:
    """Long narrow lattices, as speech recognizers make them."""
    edges = []
    for _ in range(n):
        head = np.repeat(np.arange(1, n_nodes), degree)
        tail = np.maximum(head - rng.integers(1, 7, size=len(head)), 0)
        tail[::degree] = head[::degree] - 1
        edges.append(np.stack([tail, head], axis=1))
    return Lattice([n_nodes] * n, np.concatenate(edges), np.cumsum([0, *map(len, edges)]))


# --- best paths -------------------------------------------------------------------------------------------------------


@RULES
@given(seed=seeds, k=st.sampled_from([1, 2, 3, 10, 10**6]))
def test_k_best_equals_enumeration(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_lattice(rng, 4, nodes=6)
    scores = scores_of(rng, structure)
    best, ranks = structure.argmax(scores), structure.k_best(scores, k)
    np.testing.assert_array_equal(best.z, ranks[0].z)
    np.testing.assert_array_equal(best.value, ranks[0].value)
    np.testing.assert_array_equal(best.status, ranks[0].status)
    found = [structure.decode(points.z) for points in ranks]
    for i, (outputs, own) in enumerate(zip(vertices(structure), paths(structure), strict=True)):
        values = worth(outputs, scores[structure.parts_of([i])])
        wanted = np.sort(values[values > -np.inf])[::-1][:k]
        there = [points.status[i] == OK for points in ranks]
        assert there == [r < len(wanted) for r in range(len(ranks))]
        np.testing.assert_allclose([points.value[i] for points in ranks][: len(wanted)], wanted, atol=1e-12)
        assert all(points.value[i] == -np.inf for points in ranks[len(wanted) :])
        listed = [tuple(rank[i].tolist()) for rank in found[: len(wanted)]]
        assert len(set(listed)) == len(listed)
        assert set(listed) <= {tuple(path.tolist()) for path in own}


def test_ties_go_to_the_first_edges_from_the_end() -> None:
    structure = Lattice([3], [[0, 1], [1, 2], [0, 1], [1, 2], [0, 2]], [0, 5])
    assert structure.decode(structure.argmax(np.array([1.0, 1, 1, 1, 2])).z)[0].tolist() == [0, 1]
    assert structure.decode(structure.argmax(np.array([1.0, 0, 1, 0, 1])).z)[0].tolist() == [0, 1]
    assert structure.decode(structure.argmax(np.array([0.0, 1, 1, 1, 1])).z)[0].tolist() == [2, 1]


@RULES
@given(seed=seeds, words=st.integers(1, 4), k=st.sampled_from([1, 2, 5, 1000]))
def test_distinct_words_equal_enumeration(seed: int, words: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_lattice(rng, 4, nodes=7, words=words)
    scores = scores_of(rng, structure)
    ranks = structure.k_best_words(scores, k)
    begin = structure.blocks[0].offsets
    found = [structure.decode(points.z) for points in ranks]
    for i, best in enumerate(best_sequences(structure, scores)):
        allowed = {words: value for words, value in best.items() if value > -np.inf}
        wanted = sorted(allowed.values(), reverse=True)[:k]
        assert [points.status[i] == OK for points in ranks] == [r < len(wanted) for r in range(len(ranks))]
        np.testing.assert_allclose([points.value[i] for points in ranks][: len(wanted)], wanted, atol=1e-12)
        sequences = []
        for rank in found[: len(wanted)]:
            numbers = structure.words[begin[i] + rank[i]]
            sequences.append(tuple(numbers[numbers >= 0].tolist()))
        assert len(set(sequences)) == len(sequences)
        assert all(
            allowed[words] == pytest.approx(points.value[i], abs=1e-12)
            for words, points in zip(sequences, ranks, strict=False)
        )


def test_words_do_not_depend_on_the_number_of_paths() -> None:
    """2^40 paths, of two words each and one of silence, have 41 sequences."""
    n = 40
    edges = np.repeat(np.stack([np.arange(n), np.arange(1, n + 1)], axis=1), 2, axis=0)
    structure = Lattice([n + 1], edges, [0, 2 * n], words=np.tile([0, -1], n))
    ranks = structure.k_best_words(np.tile([1.0, 0.0], n), 100)
    found = [points.value[0] for points in ranks if points.status[0] == OK]
    assert found == list(range(n, -1, -1))
    same = Lattice([n + 1], edges, [0, 2 * n], words=np.zeros(2 * n, dtype=int))
    values = same.k_best_words(np.tile([1.0, 0.0], n), 3)
    assert [points.status[0] for points in values] == [OK, ABSENT, ABSENT][: len(values)]
    assert values[0].value[0] == n


def test_k_best_at_size() -> None:
    rng = np.random.default_rng(0)
    structure = large(rng, 60, 4)
    scores = rng.normal(size=structure.n_parts)
    ranks, slow = structure.k_best(scores, 12), generic.k_best(structure, scores, 4)
    for points in ranks:
        np.testing.assert_allclose(points.value, structure.by_example(scores * points.z), atol=1e-10)
        np.testing.assert_array_equal(structure.encode(structure.decode(points.z)), points.z)
    assert (np.diff([points.value for points in ranks], axis=0) <= 0.0).all()
    for one, two in zip(slow, ranks, strict=False):
        np.testing.assert_allclose(one.value, two.value, atol=1e-10)
    deep = large(rng, 20_000, 2, n=1)
    chain = deep.k_best(rng.normal(size=deep.n_parts), 50)
    assert len({points.z.tobytes() for points in chain}) == 50


# --- sums and projections ---------------------------------------------------------------------------------------------


@RULES
@given(seed=seeds, scale=scales)
def test_marginals_equal_enumeration(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    structure = random_lattice(rng, 4, nodes=6)
    potentials = scale * rng.normal(size=structure.n_parts)
    potentials[rng.random(structure.n_parts) < 0.1] = -np.inf
    points = structure.marginals(potentials)
    for i, outputs in enumerate(vertices(structure)):
        own = structure.parts_of([i])
        if (worth(outputs, potentials[own]) == -np.inf).all():
            assert points.status[i] == ABSENT
            assert points.value[i] == -np.inf
            assert not points.z[own].any()
            continue
        mean, log_sum = gibbs(outputs, potentials[own])
        np.testing.assert_allclose(points.z[own], mean, atol=1e-12)
        assert points.value[i] == pytest.approx(log_sum, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(np.exp(structure.log_outputs()), [len(own) for own in paths(structure)])


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, 1e9])
def test_marginals_are_a_flow_at_any_size(scale: float) -> None:
    rng = np.random.default_rng(1)
    structure = large(rng, 300, 5)
    points = structure.marginals(scale * rng.normal(size=structure.n_parts))
    polytope = structure.polytope()
    np.testing.assert_allclose(polytope.eq @ points.z, polytope.eq_rhs, atol=1e-13)
    assert (points.z >= 0.0).all()
    assert (points.status == OK).all()


@RULES
@given(seed=seeds, scale=scales, rounded=st.booleans())
def test_projection_equals_the_interior_point_method(seed: int, scale: float, rounded: bool) -> None:
    rng = np.random.default_rng(seed)
    structure = random_lattice(rng, 4, nodes=7)
    point = scale * rng.normal(size=structure.n_parts)
    point = np.round(point) if rounded else point
    points = structure.project(point)
    assert (points.status == OK).all()
    if structure.on_path.any():
        np.testing.assert_allclose(points.z, reference.project(structure, point), atol=1e-5)
    np.testing.assert_allclose(points.value, 0.5 * structure.by_example((points.z - point) ** 2), atol=1e-12)
    certified(structure, point, points.z)
    slow = generic.project(structure, point)
    np.testing.assert_allclose(points.z, slow.z, atol=1e-7)
    moved = point + 0.1 * rng.normal(size=structure.n_parts)
    np.testing.assert_allclose(
        structure.project(moved, warm=points.warm).z, structure.project(moved).z, rtol=0, atol=1e-9
    )


def certified(structure: Lattice, point: np.ndarray, z: np.ndarray) -> None:
    """A unit flow to rounding, on which no path improves by more than rounding."""
    polytope = structure.polytope()
    kept = polytope.lift.T @ z
    np.testing.assert_allclose(polytope.eq @ kept, polytope.eq_rhs, atol=1e-13)
    assert z.min(initial=0.0) >= 0.0
    assert not z[~structure.on_path].any()
    residual = point - z
    gap = structure.argmax(residual).value - structure.by_example(residual * z)
    size = structure.by_example((np.abs(point) + z) * structure.on_path)
    assert (gap <= 1e-13 * (1.0 + size)).all()


@pytest.mark.parametrize("scale", [1e-8, 0.01, 1.0, 100.0, 1e8])
@pytest.mark.parametrize("shape", [(15, 3), (300, 4), (4, 200)])
def test_projection_at_any_size(shape: tuple[int, int], scale: float) -> None:
    rng = np.random.default_rng(2)
    structure = large(rng, *shape)
    point = scale * rng.normal(size=structure.n_parts)
    points = structure.project(point)
    assert (points.status == OK).all()
    certified(structure, point, points.z)
    inside = structure.marginals(rng.normal(size=structure.n_parts)).z
    np.testing.assert_allclose(structure.project(inside).z, inside, atol=1e-9)
    vertex = structure.argmax(point).z
    np.testing.assert_allclose(structure.project(vertex).z, vertex, atol=1e-9)
    # Any numbers are a start.
    wild = structure.project(point, warm=1e3 * rng.normal(size=len(points.warm)))
    assert (wild.status == OK).all()
    np.testing.assert_allclose(wild.z, points.z, rtol=0, atol=1e-9 * max(1.0, scale))


# --- slack rescaling --------------------------------------------------------------------------------------------------


@RULES
@given(seed=seeds, units=st.booleans())
def test_slack_equals_enumeration(seed: int, units: bool) -> None:
    rng = np.random.default_rng(seed)
    structure = random_lattice(rng, 4, nodes=6)
    scores, margin = scores_of(rng, structure), rng.normal(size=4)
    gold = structure.argmax(rng.normal(size=structure.n_parts)).z
    costs = rng.integers(0, 3, structure.n_parts) if units else rng.random(structure.n_parts)
    costs = np.where(gold > 0, -1.0, 1.0) * costs
    constants = -structure.by_example(costs * gold)
    points = structure.slack_argmax(scores, margin, costs, constants)
    for i, outputs in enumerate(vertices(structure)):
        own = structure.parts_of([i])
        losses, good = slack.pairs(outputs, scores[own], margin[i], costs[own], constants[i])
        if not len(losses):
            assert points.status[i] == ABSENT
            continue
        assert points.status[i] == OK
        assert points.value[i] == pytest.approx(slack.best_output(losses, good), abs=1e-12)
        if points.value[i] == 0.0:
            best = worth(points.z[own][None], scores[own])[0]
            assert margin[i] + best == pytest.approx(good.max(), abs=1e-12)


def test_slack_of_many_sums_is_a_bound() -> None:
    rng = np.random.default_rng(3)
    structure = large(rng, 300, 4, n=2)
    costs = rng.random(structure.n_parts)
    scores = rng.normal(size=structure.n_parts) - 3.0 * costs
    points = structure.slack_argmax(scores, np.full(2, 300.0), costs, np.zeros(2))
    assert (points.status == INEXACT).all()
    product = structure.by_example(costs * points.z) * (300.0 + structure.by_example(scores * points.z))
    assert (product <= points.value + 1e-9).all()
    for rank in structure.k_best(scores, 20):
        product = structure.by_example(costs * rank.z) * (300.0 + rank.value)
        assert (product <= points.value + 1e-9).all()
    whole = structure.slack_argmax(scores, np.full(2, 300.0), np.ones(structure.n_parts), np.zeros(2))
    assert (whole.status == OK).all()


# --- all of them ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_promises(seed: int) -> None:
    rng = np.random.default_rng(seed)
    check_structure(random_lattice(rng, 5, nodes=8), rng)


def test_same_bits_with_any_number_of_threads() -> None:
    rng = np.random.default_rng(5)
    structure = random_lattice(rng, 200, nodes=9, words=3)
    scores, n = rng.normal(size=structure.n_parts), structure.n_examples
    calls = {
        "argmax": lambda: [structure.argmax(scores)],
        "k_best": lambda: structure.k_best(scores, 4),
        "words": lambda: structure.k_best_words(scores, 4),
        "marginals": lambda: [structure.marginals(scores)],
        "project": lambda: [structure.project(scores)],
        "slack": lambda: [structure.slack_argmax(scores, np.ones(n), np.abs(scores), np.zeros(n))],
    }
    for name, call in calls.items():
        with threads(1):
            one = call()
        with threads(3):
            several = call()
        for a, b in zip(one, several, strict=True):
            np.testing.assert_array_equal(a.z, b.z, err_msg=name)
            np.testing.assert_array_equal(a.value, b.value, err_msg=name)
    slopes, good = rng.normal(size=structure.n_parts), structure.decode(structure.argmax(scores).z)
    paths = PathSets.build(structure, [[path] for path in good], "all")
    several_arrays = {
        "envelopes": lambda: structure.envelopes(scores, slopes),
        "pairs": lambda: paths.most_violated(structure, scores, np.ones(n), 0),
    }
    for name, many in several_arrays.items():
        with threads(1):
            first = many()
        with threads(4):
            for a, b in zip(first, many(), strict=True):
                np.testing.assert_array_equal(a, b, err_msg=name)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite(value: float) -> None:
    rng = np.random.default_rng(6)
    structure = large(rng, 6, 2)
    scores = rng.normal(size=structure.n_parts)
    structure.words = rng.integers(0, 3, structure.n_parts)
    clean = structure.argmax(scores)
    bad = scores.copy()
    bad[structure.blocks[0].offsets[1]] = value
    ones, zeros = np.ones(3), np.zeros(3)
    for call in (
        structure.argmax,
        structure.marginals,
        structure.project,
        lambda s: structure.k_best(s, 2)[1],
        lambda s: structure.k_best_words(s, 2)[1],
        lambda s: structure.slack_argmax(s, ones, np.abs(scores), zeros),
        lambda s: structure.slack_argmax(scores, ones, np.abs(s), zeros),
    ):
        points = call(bad)
        assert points.status.tolist() == [OK, NONFINITE, OK]
        assert not points.z[structure.parts_of([1])].any()
        assert np.isnan(points.value[1])
    np.testing.assert_array_equal(structure.argmax(bad).value[[0, 2]], clean.value[[0, 2]])
    forbidden = scores.copy()
    forbidden[structure.parts_of([1])] = -np.inf
    for call in (structure.argmax, structure.marginals, lambda s: structure.k_best(s, 2)[0]):
        points = call(forbidden)
        assert points.status.tolist() == [OK, ABSENT, OK]
        assert points.value[1] == -np.inf
    assert structure.argmax(np.full(structure.n_parts, 1e308)).status.tolist() == [NONFINITE] * 3


@pytest.mark.filterwarnings("ignore:stopped at the budget")
@pytest.mark.parametrize("rescaling", ["margin", "none", "slack"])
def test_the_compiled_view_of_one_example(rescaling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = rebuilt(make("lattice", n=12), rescaling=rescaling)
    solvers = [mm.BlockFrankWolfe(), mm.AveragedPerceptron(), *([mm.Mira(k=3)] if rescaling == "margin" else [])]
    stop = Stop(tol=1e-9, max_iter=6)
    compiled = [solve(problem, solver, stop=stop, random_state=3).weights for solver in solvers]
    with pytest.raises(ValueError, match="ranks must be an integer >= 1"):
        problem.structure.oracle(0)
    monkeypatch.setattr(Lattice, "oracle", lambda self, ranks=1: generic.oracle(self))
    for solver, weights in zip(solvers, compiled, strict=True):
        np.testing.assert_array_equal(solve(problem, solver, stop=stop, random_state=3).weights, weights)


# --- structure --------------------------------------------------------------------------------------------------------


def test_empty_batches_and_empty_paths() -> None:
    none = Lattice(np.zeros(0, dtype=int), np.zeros((0, 2), dtype=int), [0])
    assert none.n_examples == 0
    assert none.argmax(np.zeros(0)).z.shape == (0,)
    assert none.decode(np.zeros(0)) == []
    assert len(none.k_best(np.zeros(0), 3)) == 1
    one = Lattice([1, 3], [[0, 1], [1, 2]], [0, 0, 2], 0, [0, 1])
    assert [path.tolist() for path in one.decode(one.argmax(np.ones(2)).z)] == [[], [0]]
    assert one.on_path.tolist() == [True, False]
    assert one.part_bound.tolist() == [1.0, 0.0]
    assert one.project(np.array([0.3, 5.0])).z.tolist() == [1.0, 0.0]
    assert one.marginals(np.zeros(2)).value.tolist() == [0.0, 0.0]
    assert [points.status.tolist() for points in one.k_best(np.zeros(2), 5)] == [[OK, OK]]
    assert np.asarray(one.encode([[], [0]])).tolist() == [1.0, 0.0]
    assert repr(one) == "Lattice(2 examples, 4 nodes, 2 edges)"


def test_confusion_networks() -> None:
    structure = Lattice.confusion_network([2, 3, 1, 4], [0, 2, 2, 4])
    np.testing.assert_allclose(np.exp(structure.log_outputs()), [6, 1, 4])
    scores = np.arange(10.0)
    assert [path.tolist() for path in structure.decode(structure.argmax(scores).z)] == [[1, 4], [], [0, 4]]
    points = structure.project(scores)
    np.testing.assert_allclose(points.z[:2], [0.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(points.z[2:5], [0.0, 0.0, 1.0], atol=1e-12)
    for wrong in ([0, 1], [0, 3], [1, 2], [[0, 2]]):
        with pytest.raises(ValueError, match="slot_offsets must rise from 0"):
            Lattice.confusion_network([1, 2], wrong)
    with pytest.raises(ValueError, match="every slot needs an alternative"):
        Lattice.confusion_network([1, 0], [0, 2])


EDGES = [[0, 1], [1, 2], [0, 2]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([2, 3], [*EDGES, [0, 1], [1, 2], [2, 1]], [0, 1, 6]), "example 0: edge .* out of range|example 1: .*cycle"),
        (([3, 3], [*EDGES, [0, 1], [1, 2], [2, 1]], [0, 3, 6]), "example 1: its edges form a cycle"),
        (([3], [[0, 0], *EDGES], [0, 4]), "example 0: its edges form a cycle"),
        (([3, 3], [*EDGES, [0, 1]], [0, 3, 4]), "example 1: there is no path from node 0 to node 2; add edges"),
        (([3], EDGES, [0, 3], 2, 0), "example 0: there is no path from node 2 to node 0"),
        (([3], EDGES, [0, 3], 3), "example 0: start 3 is out of range for 3 nodes"),
        (([3], EDGES, [0, 3], 0, [-1]), "example 0: end -1 is out of range"),
        (([3], EDGES, [0, 3], [0, 0]), "start must be one node or one per example"),
        (([3], EDGES, [0, 3], 0.5), "start must be integers"),
        (([2], EDGES, [0, 3]), "example 0: edge .1, 2. is out of range for 2 nodes"),
        (([3, 0], EDGES, [0, 3, 3]), "example 1 has no nodes"),
        (([3], EDGES, [0, 2]), "edge_offsets must rise"),
        (([3], np.zeros((3, 3), dtype=int), [0, 3]), "edges must have two columns"),
    ],
)
def test_refused_lattices(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Lattice(*arguments)


def test_refused_words() -> None:
    for words in ([0, 1], [0, 1, -2], [0.5, 1.0, 2.0]):
        with pytest.raises(ValueError, match="words must be"):
            Lattice([3], EDGES, [0, 3], words=words)
    with pytest.raises(ValueError, match="the lattices have no words"):
        Lattice([3], EDGES, [0, 3]).k_best_words(np.zeros(3), 1)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([[2]], "1 paths for 2 examples"),
        ([[2], [3]], "example 1: edge 3 is out of range for 3 edges"),
        ([[2], [-1]], "example 1: edge -1 is out of range"),
        ([[2], [0, 1, 1]], "example 1: .* not a path from node 0 to node 2: before entry 2 it is at node 2"),
        ([[2], [1, 0]], "example 1: .* before entry 0 it is at node 0 and should be at node 1"),
        ([[0], [2]], "example 0: .* after the last entry it is at node 1 and should be at node 2"),
        ([[], [2]], "example 0: .* after the last entry"),
        ([[2], [[0, 1]]], r"example 1: a path must be a vector of edge numbers, got shape \(1, 2\)"),
        ([[2], [0.5]], "example 1: a path must be integers"),
    ],
)
def test_refused_paths(labels: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Lattice([3, 3], EDGES * 2, [0, 3, 6]).encode(labels)


def test_refused_arguments() -> None:
    structure = Lattice([3], EDGES, [0, 3])
    with pytest.raises(ValueError, match="warm has shape"):
        structure.project(np.zeros(3), warm=np.zeros(4))
    wide = large(np.random.default_rng(0), 60, 5, n=1)
    with pytest.raises(ValueError, match="k must be below"):
        wide.k_best(np.zeros(wide.n_parts), 1 << 40)
    with pytest.raises(ValueError, match="scores must have shape"):
        structure.argmax(np.zeros(2))


def test_bindings_check_what_they_are_given() -> None:
    def of(nodes: list, edges: list, ends: list, start: list, end: list) -> object:
        arrays = (np.array(one, dtype=np.int64) for one in (nodes, edges))
        return _kernels.LatticeBatch(*arrays, *(np.array(one, dtype=np.int32) for one in (ends, start, end)), 1)

    for wrong in (
        ([0, 3], [0, 2], [0, 1], [0], [2]),
        ([0, 3], [0, 1], [0, 3], [0], [2]),
        ([0, 3], [0, 1], [0, 2], [0], [3]),
        ([0, 3], [0, 1], [0, 2], [0, 0], [2]),
        ([1, 3], [0, 1], [0, 2], [0], [1]),
        ([], [], [], [], []),
    ):
        with pytest.raises(ValueError, match="must"):
            of(*wrong)
    faulty = of([0, 3], [0, 1], [0, 1], [0], [2])
    assert faulty.fault() == (0, 2)
    z, value, status = np.zeros(1), np.zeros(1), np.zeros(1, dtype=np.int8)
    with pytest.raises(ValueError, match="a cycle or no path"):
        faulty.argmax(z, z.copy(), value, status, 1)
    batch = of([0, 3], [0, 1], [0, 2], [0], [2])
    for sizes in ((2, 1, 1, 1), (1, 2, 1, 1), (1, 1, 2, 1), (1, 1, 1, 2)):
        scores, z, value, status = (np.zeros(n) for n in sizes)
        with pytest.raises(ValueError, match=r"entry per part|fit the batch"):
            batch.argmax(scores, z, value, status.astype(np.int8), 1)
    i64, i32 = np.int64, np.int32
    good = [np.array([0, 1], i64), np.array([0, 1], i64), np.array([0], i32), np.zeros(0, i64)]
    batch.most_violated_pairs(*good, np.zeros(1), np.zeros(1), np.zeros(1), 1)
    for at, wrong in (
        (0, np.array([0], i64)),
        (0, np.array([0, 0], i64)),
        (1, np.array([0, 2], i64)),
        (2, np.array([1], i32)),
        (3, np.array([1], i64)),
        (3, np.array([0, 0], i64)),
    ):
        with pytest.raises(ValueError, match=r"must|out of range|one chosen path"):
            batch.most_violated_pairs(*good[:at], wrong, *good[at + 1 :], np.zeros(1), np.zeros(1), np.zeros(1), 1)

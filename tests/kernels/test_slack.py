"""Slack rescaled maxima against enumeration, exact and relaxed; degenerate input, threads, thinned fronts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import reference
from oracles.enumeration import vertices
from oracles.slack import best_mix, best_output, pairs
from problems import DEDUCTIONS, RELAXED, STRUCTURES, make
from scipy.optimize import minimize_scalar

from maxmargin.structures import Chain, JunctionTree, LinearProgram, Matching, PointStatus, Tree
from maxmargin.structures.fallbacks import relaxed_slack

EXACT = (*DEDUCTIONS, "candidates", "chain", "chain-edges", "cliques", "junction", "lattice", "tree")


def at_weights(kind, seed, size):
    """A problem, and what its slack argmax is asked with at random weights of some size."""
    problem = make(kind, seed=seed)
    w = problem.region.project(size * np.random.default_rng(seed).normal(size=problem.n_weights))
    scores = problem.features.scores(w)
    return problem, (scores, 1.0 - problem.gold_point.dot(scores), problem.costs, problem.constants)


def hamming(structure, rng, price=1.0):
    """Random scores with Hamming losses of a random gold output, and that output."""
    scores, gold = rng.normal(size=structure.n_parts), structure.argmax(rng.normal(size=structure.n_parts)).z
    costs = np.zeros(structure.n_parts)
    costs[structure.variable_parts] = price * (1.0 - gold[structure.variable_parts])
    return (scores, 1.0 - structure.by_example(scores * gold), costs, np.zeros(structure.n_examples)), gold


def assert_worth(structure, points, scores, margin, costs, constants):
    """Values are the products at z, and 0 where these are not positive."""
    finite = np.where(scores == -np.inf, 0.0, scores)
    assert (points.status == PointStatus.OK).all()
    assert structure.by_example(np.where(scores == -np.inf, points.z, 0.0)).max(initial=0.0) == 0.0
    loss, score = structure.by_example(costs * points.z) + constants, structure.by_example(finite * points.z) + margin
    size = 1e-12 * (1.0 + structure.by_example(np.abs(finite) * points.z) + np.abs(margin)) * (1.0 + np.abs(loss))
    assert (np.abs(np.maximum(loss, 0.0) * np.maximum(score, 0.0) - points.value) <= size).all()


def listed(structure, scores, margin, costs, constants):
    """Per example the losses and scores of all outputs."""
    for i, outputs in enumerate(vertices(structure)):
        at = structure.parts_of([i])
        yield pairs(outputs, scores[at], margin[i], costs[at], constants[i])


def assert_best(structure, points, *asked):
    """Equal to enumeration, over outputs or their hull."""
    assert_worth(structure, points, *asked)
    best = best_mix if structure.slack_relaxed else best_output
    wanted = np.array([best(*own) for own in listed(structure, *asked)])
    np.testing.assert_allclose(points.value, wanted, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("size", [0.0, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("kind", [kind for kind in STRUCTURES if kind not in RELAXED])
def test_every_structure_by_enumeration(kind, size):
    for seed in range(4):
        problem, asked = at_weights(kind, seed, size)
        structure = problem.structure
        assert structure.slack_relaxed == (kind not in EXACT)
        points = structure.slack_argmax(*asked)
        assert_best(structure, points, *asked)
        outputs = listed(structure, *asked)
        assert (points.value >= [best_output(*own) - 1e-9 for own in outputs]).all()


@pytest.mark.parametrize("kind", EXACT)
def test_relaxation_of_exact_structures(kind):
    """The fallback is the maximum over the hull, also where a structure has better; never below the exact one."""
    problem, asked = at_weights(kind, 1, 1.0)
    points = relaxed_slack.slack_argmax(problem.structure, *asked)
    assert_worth(problem.structure, points, *asked)
    wanted = [best_mix(*own) for own in listed(problem.structure, *asked)]
    np.testing.assert_allclose(points.value, wanted, rtol=1e-11)
    assert (points.value >= problem.structure.slack_argmax(*asked).value - 1e-12).all()


def dual(log, one, scores, margin, costs, constant):
    t = np.exp(log)
    return (reference.maximum(one, costs + t * scores) + constant + t * margin) ** 2 / (4.0 * t)


@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("kind", RELAXED)
def test_relaxed_structures_by_the_dual(kind, size):
    """``min_t max_z (loss + t score)^2 / (4 t)`` with maxima by HiGHS."""
    for seed in range(3):
        problem, asked = at_weights(kind, seed, size)
        scores, margin, costs, constants = asked
        points = problem.structure.slack_argmax(*asked)
        assert (points.status <= PointStatus.INEXACT).all()
        for i in range(problem.structure.n_examples):
            one, at = problem.structure.select([i]), problem.structure.parts_of([i])

            own = one, scores[at], margin[i], costs[at], constants[i]
            bound = minimize_scalar(dual, args=own, bounds=(-6.0, 8.0), method="bounded", options={"xatol": 1e-9}).fun
            # HiGHS stops at reduced costs of 1e-7, so the bound may be too low by that much.
            assert bound * (1 - 1e-9) - 1e-9 <= points.value[i] <= bound * (1 + 1e-6) + 1e-7
        truth = [best_output(*own) for own in listed(problem.structure, *asked)]
        assert (points.value >= np.array(truth) - 1e-9).all()


def chain_case(seed, kind, transitions, forbid=0.0):
    """Random chains with costs of some kind, gold outputs of loss zero and margin one."""
    rng = np.random.default_rng(seed)
    n_labels = int(rng.integers(1, 5))
    structure = Chain(rng.integers(0, 5, size=4), n_labels, transitions=transitions)
    scores = rng.normal(size=structure.n_parts) * rng.choice([0.1, 1.0, 5.0])
    if kind == "ties":
        scores = rng.integers(-1, 2, size=structure.n_parts).astype(float)
    gold = structure.argmax(rng.normal(size=structure.n_parts)).z
    costs = np.zeros(structure.n_parts)
    nodes = slice(0, structure.starts[1])
    wrong = 1.0 - gold[nodes]
    draws = {
        "hamming": 1.0,
        "ties": 1.0,
        "weighted": 0.3,
        "whole": rng.integers(0, 4, size=len(wrong)),
        "real": rng.random(len(wrong)),
        "pairs": rng.random(len(wrong)),
    }
    costs[nodes] = draws[kind] * wrong
    constants = np.zeros(structure.n_examples)
    if kind == "pairs":
        costs[structure.starts[1] :] = rng.random(structure.n_parts - structure.starts[1])
    if kind == "whole":  # another constant, as costs of some losses are negative at the gold output
        shift = gold[nodes] * rng.integers(0, 3, size=len(wrong))
        costs[nodes] -= shift
        constants = structure.by_variables(shift.astype(float))
    margin = 1.0 - structure.by_example(scores * gold)
    if forbid:
        scores[(rng.random(structure.n_parts) < forbid) & (gold == 0.0)] = -np.inf
    return structure, (scores, margin, costs, constants)


KINDS = ["hamming", "ties", "weighted", "whole", "real", "pairs"]


@given(st.integers(0, 10_000), st.sampled_from(KINDS), st.sampled_from(["shared", "each"]), st.sampled_from([0.0, 0.3]))
@settings(max_examples=150)
def test_chains_by_enumeration(seed, kind, transitions, forbid):
    structure, asked = chain_case(seed, kind, transitions, forbid)
    points = structure.slack_argmax(*asked)
    assert_best(structure, points, *asked)
    assert set(np.unique(points.z[: structure.starts[1]])) <= {0.0, 1.0}
    if not forbid:
        np.testing.assert_allclose(points.value, structure._slack_as_tree(*asked).value, rtol=1e-12, atol=1e-14)


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", ["shared", "each"])
def test_chains_with_every_vector_length(transitions):
    for n_labels in (1, 2, 5, 9, 17, 30, 50):
        rng = np.random.default_rng(n_labels)
        structure = Chain([7, 3, 1, 12], n_labels, transitions=transitions)
        asked, _ = hamming(structure, rng)
        points = structure.slack_argmax(*asked)
        assert_worth(structure, points, *asked)
        np.testing.assert_allclose(points.value, structure._slack_as_tree(*asked).value, rtol=1e-12)
        relaxed = relaxed_slack.slack_argmax(structure, *asked).value
        assert (points.value <= relaxed * (1 + 1e-12)).all()


def test_two_methods_agree_on_long_chains():
    rng = np.random.default_rng(3)
    structure = Chain([60, 150], 6)
    asked, _ = hamming(structure, rng, price=0.1)
    points = structure.slack_argmax(*asked)
    assert_worth(structure, points, *asked)
    other = structure._slack_as_tree(*asked)
    assert (other.status == PointStatus.OK).all()
    np.testing.assert_allclose(points.value, other.value, rtol=1e-11)


@given(st.integers(0, 10_000), st.sampled_from(["forest", "ring", "cliques"]), st.sampled_from(["one", "real", "all"]))
@settings(max_examples=80)
def test_trees_by_enumeration(seed, shape, kind):
    rng = np.random.default_rng(seed)
    sizes, edges, starts, cliques = rng.integers(0, 6, size=3), [], [0], []
    for size in sizes.tolist():
        edges += [(v, int(rng.integers(0, v))) for v in range(1, size) if rng.random() < 0.8]
        if shape != "forest":
            edges += [(u, v) for u in range(size) for v in range(u) if rng.random() < 0.3 and (u, v) not in edges]
        edges[starts[-1] :] = sorted(set(edges[starts[-1] :]))
        starts.append(len(edges))
        cliques.append([rng.permutation(size)[: min(size, 3)].tolist(), [0]] if size > 1 else [])
    labels = rng.integers(1, 4, size=int(sizes.sum()))
    graph = sizes, labels, np.array(edges).reshape(-1, 2), starts
    if shape == "forest":
        structure = Tree(*graph)
    else:
        structure = JunctionTree(*graph, cliques=cliques if shape == "cliques" else None)
    scores = rng.normal(size=structure.n_parts) * rng.choice([0.2, 2.0])
    gold = structure.argmax(rng.normal(size=structure.n_parts)).z
    costs = np.zeros(structure.n_parts)
    costs[structure.variable_parts] = 1.0 if kind == "one" else rng.random(structure.starts[1])
    if kind == "all":
        costs = rng.random(structure.n_parts)
    costs *= 1.0 - gold
    asked = scores, 1.0 - structure.by_example(scores * gold), costs, np.zeros(3)
    scores[(rng.random(structure.n_parts) < 0.1) & (gold == 0.0)] = -np.inf
    assert_best(structure, structure.slack_argmax(*asked), *asked)


def test_many_trees_of_one_node_and_a_star():
    """Forests of single nodes join roots; a star joins many children."""
    rng = np.random.default_rng(0)
    for edges in (np.zeros((0, 2), int), np.stack([np.zeros(39, int), np.arange(1, 40)], axis=1)):
        structure = Tree([40], 3, edges, [0, len(edges)])
        asked, gold = hamming(structure, rng)
        scores = asked[0]
        points = structure.slack_argmax(*asked)
        assert_worth(structure, points, *asked)
        # By errors: with t of them fixed the score is a sum of the t best changes, given the center's label.
        table = scores[: structure.starts[1]].reshape(40, 3)
        right = gold[: structure.starts[1]].reshape(40, 3).argmax(axis=1)
        best = 0.0
        for center in range(3) if len(edges) else [0]:
            own = table.copy()
            if len(edges):
                own[1:] += scores[structure.starts[1] :].reshape(39, 3, 3)[:, center]
            free = np.arange(40)[1:] if len(edges) else np.arange(40)
            gold_scores = own[free, right[free]]
            other = own.copy()
            other[np.arange(40), right] = -np.inf
            gains = np.sort(other[free].max(axis=1) - gold_scores)[::-1]
            start = gold_scores.sum() + (own[0, center] if len(edges) else 0.0)
            errors = float(center != right[0]) if len(edges) else 0.0
            for t in range(len(free) + 1):
                best = max(best, (errors + t) * (asked[1][0] + start + gains[:t].sum()))
        np.testing.assert_allclose(points.value, [best], rtol=1e-12)


def test_fronts_that_are_too_long_give_bounds():
    """Real costs on a long chain: the value bounds the product from above, closely, and the output is legal."""
    rng = np.random.default_rng(0)
    structure = Chain([120], 4)
    asked, _ = hamming(structure, rng, price=rng.random(structure.starts[1]))
    scores, _, costs, _ = asked
    points = structure.slack_argmax(*asked)
    assert points.status[0] == PointStatus.INEXACT
    assert structure.value_bounds
    assert (structure.encode(structure.decode(points.z)) == points.z).all()
    product = (costs @ points.z) * (asked[1][0] + scores @ points.z)
    # The relaxation bounds the maximum as well, and rounding its mix gives outputs that are nearly as good.
    relaxed = relaxed_slack.slack_argmax(structure, *asked).value[0]
    assert product <= relaxed * (1 + 1e-12)
    assert product <= points.value[0] <= 1.1 * relaxed
    assert product >= 0.9 * relaxed


@pytest.mark.parametrize("size", [1e-12, 1e8])
@pytest.mark.parametrize("kind", [kind for kind in STRUCTURES if kind not in RELAXED])
def test_tiny_and_huge_scores(kind, size):
    problem, asked = at_weights(kind, 0, size)
    points = problem.structure.slack_argmax(*asked)
    best = best_mix if problem.structure.slack_relaxed else best_output
    wanted = np.array([best(*own) for own in listed(problem.structure, *asked)])
    np.testing.assert_allclose(points.value, wanted, rtol=1e-9, atol=1e-6 if size > 1 else 1e-13)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_zero_losses_and_all_equal_scores(kind):
    structure = make(kind).structure
    n, zeros = structure.n_examples, np.zeros(structure.n_parts)
    nothing = structure.slack_argmax(zeros, np.ones(n), zeros, np.zeros(n))
    assert (nothing.value == 0.0).all()
    assert (nothing.status == PointStatus.OK).all()
    costs = zeros.copy()
    costs[structure.variable_parts] = 1.0
    asked = zeros, np.full(n, 2.0), costs, np.zeros(n)
    np.testing.assert_allclose(structure.slack_argmax(*asked).value, 2.0 * structure.argmax(costs).value, rtol=1e-12)
    # No margin anywhere: nothing is positive.
    none = structure.slack_argmax(zeros, np.full(n, -1.0), costs, np.zeros(n))
    assert (none.value == 0.0).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("kind", STRUCTURES)
def test_numbers_that_are_not_finite(kind, bad):
    problem, (scores, margin, costs, constants) = at_weights(kind, 0, 1.0)
    structure = problem.structure
    sick = int(np.argmax(structure.sizes))
    at = structure.parts_of([sick])
    spoiled = scores.copy()
    spoiled[at[0]] = bad
    wrong_margin, wrong_constants = margin.copy(), constants.copy()
    wrong_margin[sick] = wrong_constants[sick] = bad
    for asked in (
        (spoiled, margin, costs, constants),
        (scores, wrong_margin, costs, constants),
        (scores, margin, costs, wrong_constants),
    ):
        points = structure.slack_argmax(*asked)
        assert points.status[sick] == PointStatus.NONFINITE
        assert np.isnan(points.value[sick])
        assert (points.z[at] == 0.0).all()
        others = np.arange(structure.n_examples) != sick
        assert np.isfinite(points.value[others]).all()


@pytest.mark.parametrize("where", ["nodes", "pairs"])
@pytest.mark.parametrize(
    "structure", [Chain([2, 0], 2), Chain([2, 0], 2, transitions="each"), Tree([2], 2, [[0, 1]], [0, 1])]
)
def test_costs_that_are_not_finite(structure, where):
    n = structure.n_examples
    costs = np.zeros(structure.n_parts)
    costs[0 if where == "nodes" else structure.starts[1]] = np.nan
    points = structure.slack_argmax(np.zeros(structure.n_parts), np.ones(n), costs, np.zeros(n))
    assert points.status[0] == PointStatus.NONFINITE
    assert (points.status[1:] == PointStatus.OK).all()


def test_empty_batches_and_empty_examples():
    for structure in (
        Chain([], 3),
        Tree([], 1, np.zeros((0, 2), int), [0]),
        Matching.dense(np.zeros((0, 2), dtype=np.int64)),
    ):
        points = structure.slack_argmax(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0))
        assert points.value.shape == (0,)
    for structure in (Chain([0], 3, transitions="each"), Tree([0], 1, np.zeros((0, 2), int), [0, 0])):
        points = structure.slack_argmax(np.zeros(0), np.array([2.0]), np.zeros(0), np.array([3.0]))
        assert points.value.tolist() == [6.0]
        assert structure.slack_argmax(np.zeros(0), np.array([2.0]), np.zeros(0), np.zeros(1)).value.tolist() == [0.0]


@pytest.mark.parametrize("relaxed", [False, True])
def test_all_outputs_forbidden(relaxed):
    structure = Chain([2, 1], 2)
    scores = np.zeros(structure.n_parts)
    scores[:2] = -np.inf
    costs = np.zeros(structure.n_parts)
    costs[structure.variable_parts] = 1.0
    asked = scores, np.ones(2), costs, np.zeros(2)
    points = relaxed_slack.slack_argmax(structure, *asked) if relaxed else structure.slack_argmax(*asked)
    assert points.status.tolist() == [PointStatus.ABSENT, PointStatus.OK]
    assert points.value.tolist() == [-np.inf, 1.0]
    tree = structure._slack_as_tree(*asked)
    assert tree.status.tolist() == [PointStatus.ABSENT, PointStatus.OK]


def test_linear_programs():
    rng = np.random.default_rng(0)
    sides = np.zeros((6, 9))
    for j in range(9):
        sides[[j // 3, 3 + j % 3], j] = 1.0
    structure = LinearProgram([sides] * 3, [np.ones(6)] * 3)
    gold = structure.argmax(rng.normal(size=27)).z
    scores, costs = rng.normal(size=27), 1.0 - 2.0 * gold
    asked = scores, 1.0 - structure.by_example(scores * gold), costs, structure.by_example(gold)
    points = structure.slack_argmax(*asked)
    assert_worth(structure, points, *asked)
    assert_best(Matching.dense([(3, 3)] * 3), points, *asked)


class Doubtful(Matching):
    """An argmax that is never sure, with a value half a point too high."""

    value_bounds = True

    def argmax(self, scores, *, warm=None):
        points = super().argmax(scores)
        return type(points)(points.z, points.value + 0.5, np.ones(self.n_examples, dtype=np.int8))


def test_inexact_maxima_give_bounds():
    rng = np.random.default_rng(0)
    structure, sure = Doubtful.dense([(3, 3), (2, 4)]), Matching.dense([(3, 3), (2, 4)])
    gold = sure.argmax(rng.normal(size=17)).z
    scores, costs = rng.normal(size=17), 1.0 - 2.0 * gold
    asked = scores, 1.0 - sure.by_example(scores * gold), costs, sure.by_example(gold)
    points, exact = structure.slack_argmax(*asked), sure.slack_argmax(*asked)
    assert (points.status == PointStatus.INEXACT).all()
    assert (points.value > exact.value).all()
    assert (points.value < 2.0 * exact.value + 1.0).all()


@pytest.mark.parametrize("kind", ["cut", "matching", "associative"])
def test_warm_starts_change_nothing(kind):
    problem, asked = at_weights(kind, 0, 1.0)
    first = problem.structure.slack_argmax(*asked)
    scores, margin, costs, constants = asked
    for factor in (1.0, 2.0):
        again = 0.5 * scores, 1.0 - problem.gold_point.dot(0.5 * scores), factor * costs, factor * constants
        warm = problem.structure.slack_argmax(*again, warm=first.warm)
        cold = problem.structure.slack_argmax(*again)
        np.testing.assert_allclose(warm.value, cold.value, rtol=1e-12)
    chosen = [1, 0]
    part, at = problem.structure.select(chosen), problem.structure.parts_of(chosen)
    fewer = part.slack_argmax(scores[at], margin[chosen], costs[at], constants[chosen], warm=first.warm)
    np.testing.assert_allclose(fewer.value, first.value[chosen], rtol=1e-9)


def test_wrong_shapes_are_refused():
    for structure in (Chain([2], 2), Tree([2], 2, [[0, 1]], [0, 1]), Matching.dense([(2, 2)])):
        good = np.zeros(structure.n_parts), np.ones(1), np.zeros(structure.n_parts), np.zeros(1)
        structure.slack_argmax(*good)
        for at, name in enumerate(("scores", "margin", "costs", "constants")):
            with pytest.raises(ValueError, match=name):
                structure.slack_argmax(*good[:at], np.zeros(99), *good[at + 1 :])

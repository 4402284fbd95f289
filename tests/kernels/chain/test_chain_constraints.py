"""Chains with transition constraints: sequences that violate them do not exist, for any method."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import reference, slack
from oracles.enumeration import vertices
from oracles.structures.chain import gibbs
from problems import visit
from sequences import MODES, at_one_width, own_parts

import maxmargin as mm
from maxmargin import _kernels
from maxmargin.features.tied import ChainFeatures
from maxmargin.losses import Hamming
from maxmargin.optimization.active_set import ActiveSet
from maxmargin.optimization.loop import solve
from maxmargin.optimization.stopping import Stop
from maxmargin.problem import Problem
from maxmargin.regions import L2
from maxmargin.structures import Chain, TransitionConstraints
from maxmargin.structures.base import PointStatus

OK, NONFINITE, ABSENT = PointStatus.OK, PointStatus.NONFINITE, PointStatus.ABSENT
BIO = ("B-X", "B-Y", "I-X", "I-Y", "O")


def drawn_rules(rng, k, share):
    return TransitionConstraints(rng.random((k, k)) < share, rng.random(k) < share, rng.random(k) < share)


@st.composite
def legal_chains(draw, longest=4, labels=3):
    """A tiny batch with rules, under which some examples may have no output."""
    lengths = draw(st.lists(st.integers(0, longest), max_size=4))
    k = draw(st.integers(1, labels))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rules = drawn_rules(rng, k, draw(st.sampled_from([0.4, 0.7, 0.9])))
    chain = Chain(lengths, k, transitions=draw(st.sampled_from(MODES)), constraints=rules)
    scale = draw(st.sampled_from([1e-12, 1.0, 30.0]))
    scores = rng.normal(size=chain.n_parts) if draw(st.booleans()) else rng.integers(-2, 3, size=chain.n_parts)
    return chain, scale * scores.astype(float), rng


def by_kind(transitions):
    """A batch of BIO sequences, without an output in no example."""
    return Chain([4, 0, 1, 6, 2], 5, transitions=transitions, constraints=TransitionConstraints.bio(BIO))


@pytest.mark.usefixtures("every_vector_length")
@at_one_width(max_examples=60)
@given(legal_chains())
def test_best_outputs_are_the_best_legal_ones(case):
    chain, scores, _ = case
    best, found, ranks = chain.argmax(scores), chain.labels(scores), chain.k_best(scores, 7)
    assert found.value.tobytes() == best.value.tobytes()
    assert found.status.tobytes() == best.status.tobytes()
    labels = np.split(found.outputs.flat, np.cumsum(chain.lengths)[:-1])
    for i, outputs in enumerate(vertices(chain)):
        own = own_parts(chain, scores, i)
        tolerance = 1e-13 * (np.abs(own).sum() + 1e-300)
        expected = np.sort(outputs @ own)[::-1]
        listed = [points.value[i] for points in ranks if points.status[i] == OK]
        assert len(listed) == min(7, len(expected))
        np.testing.assert_allclose(listed, expected[:7], atol=tolerance)
        if not len(outputs):
            assert best.status[i] == ABSENT
            assert best.value[i] == -np.inf
            assert not own_parts(chain, best.z, i).any()
            assert (labels[i] == -1).all()
            continue
        assert best.status[i] == OK
        assert best.value[i] == pytest.approx(expected[0], abs=tolerance)
        one = chain.select([i])
        for z in (own_parts(chain, best.z, i), *(own_parts(chain, r.z, i) for r in ranks if r.status[i] == OK)):
            np.testing.assert_array_equal(one.encode(one.decode(z)), z)
        np.testing.assert_array_equal(one.decode(own_parts(chain, best.z, i))[0], labels[i])


@pytest.mark.usefixtures("every_vector_length")
@at_one_width(max_examples=50)
@given(legal_chains())
def test_distributions_are_over_legal_outputs(case):
    chain, potentials, _ = case
    points = chain.marginals(potentials)
    _, means, value = gibbs(chain, potentials)
    np.testing.assert_allclose(points.value, value, atol=1e-9)
    for i, expected in enumerate(means):
        assert points.status[i] == (OK if value[i] > -np.inf else ABSENT)
        np.testing.assert_allclose(own_parts(chain, points.z, i), expected, atol=1e-9)
    edges = chain.edge_marginals(potentials)
    assert not edges[:, ~chain.constraints.pairs].any()
    if chain.transitions == "shared" and chain.n_examples:
        owner = np.repeat(np.arange(chain.n_examples), np.maximum(chain.lengths - 1, 0))
        sums = np.zeros((chain.n_examples, chain.n_labels, chain.n_labels))
        np.add.at(sums, owner, edges)
        np.testing.assert_allclose(sums.ravel(), points.z[chain.starts[1] :], atol=1e-9)


@pytest.mark.usefixtures("every_vector_length")
@at_one_width(max_examples=40)
@given(legal_chains())
def test_projections_are_onto_the_hull_of_legal_outputs(case):
    chain, point, _ = case
    points = chain.project(point)
    outputs = vertices(chain)
    for i in range(chain.n_examples):
        if not len(outputs[i]):
            assert points.status[i] == ABSENT
            assert points.value[i] == np.inf
            assert not own_parts(chain, points.z, i).any()
            continue
        assert points.status[i] == OK
        z, residual = own_parts(chain, points.z, i), own_parts(chain, point - points.z, i)
        assert (z <= outputs[i].max(axis=0) + 1e-12).all()
        scale = 1.0 + np.abs(own_parts(chain, point, i)).sum()
        assert ((outputs[i] - z) @ residual).max() <= 1e-8 * scale
    there = np.flatnonzero([len(own) > 0 for own in outputs])
    if there.size and np.abs(point).max(initial=0.0) < 10:
        part, at = chain.select(there), chain.parts_of(there)
        if part.lengths.any():
            np.testing.assert_allclose(points.z[at], reference.project(part, point[at]), atol=1e-6)
    again = chain.project(point, warm=points.warm)
    np.testing.assert_allclose(again.z, points.z, atol=1e-10)


@pytest.mark.usefixtures("every_vector_length")
@at_one_width(max_examples=40)
@given(legal_chains(), st.booleans())
def test_slack_rescaling_is_over_legal_outputs(case, units):
    chain, scores, rng = case
    costs = np.zeros(chain.n_parts)
    costs[chain.variable_parts] = rng.integers(0, 2, size=chain.starts[1]) if units else rng.random(chain.starts[1])
    margin = rng.normal(size=chain.n_examples)
    points = chain.slack_argmax(scores, margin, costs, np.zeros(chain.n_examples))
    for i, outputs in enumerate(vertices(chain)):
        assert points.status[i] == (OK if len(outputs) else ABSENT)
        if len(outputs):
            own, charged = own_parts(chain, scores, i), own_parts(chain, costs, i)
            loss, score = slack.pairs(outputs, own, margin[i], charged, 0.0)
            assert points.value[i] == pytest.approx(slack.best_output(loss, score), rel=1e-9, abs=1e-9)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(legal_chains())
def test_bounds_and_the_polytope_are_those_of_legal_outputs(case):
    chain, scores, _ = case
    outputs = vertices(chain)
    for i, own in enumerate(outputs):
        bound = own_parts(chain, chain.part_bound, i)
        most, nodes = own.max(axis=0, initial=0.0), int(chain.lengths[i]) * chain.n_labels
        assert (most <= bound).all()
        exact = slice(None) if chain.transitions == "each" else slice(nodes)
        np.testing.assert_array_equal(most[exact], bound[exact])
    there = np.flatnonzero([len(own) > 0 for own in outputs])
    part, at = chain.select(there), chain.parts_of(there)
    if part.lengths.any():
        total = part.argmax(scores[at]).value.sum()
        assert reference.maximum(part, scores[at]) == pytest.approx(total, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("transitions", MODES)
def test_bounds_of_long_chains_with_a_period(transitions):
    turn = np.roll(np.eye(3, dtype=bool), 1, axis=1)
    rules = TransitionConstraints(turn, np.array([True, False, False]), np.array([False, True, False]))
    chain = Chain([50, 51, 2], 3, transitions=transitions, constraints=rules)
    nodes = chain.part_bound[: chain.starts[1]].reshape(-1, 3)
    assert not nodes[50:101].any()  # 51 steps do not end in label 1
    np.testing.assert_array_equal(nodes[:50].argmax(axis=1), np.arange(50) % 3)
    np.testing.assert_array_equal(nodes[:50].sum(axis=1), 1.0)
    assert chain.argmax(np.zeros(chain.n_parts)).status.tolist() == [OK, ABSENT, OK]


@pytest.mark.parametrize("transitions", MODES)
def test_rules_that_allow_everything_change_no_bit(transitions):
    lengths = np.arange(12)
    plain = Chain(lengths, 7, transitions=transitions)
    ruled = Chain(lengths, 7, transitions=transitions, constraints=TransitionConstraints.anything(7))
    rng = np.random.default_rng(1)
    scores = rng.normal(size=plain.n_parts)
    scores[rng.random(plain.n_parts) < 0.1] = -0.0
    warm = plain.project(scores).warm
    for call in (
        lambda chain: chain.argmax(scores),
        lambda chain: chain.k_best(scores, 3)[2],
        lambda chain: chain.marginals(scores),
        lambda chain: chain.project(scores + 0.1, warm=warm),
    ):
        one, two = call(plain), call(ruled)
        assert one.z.tobytes() == two.z.tobytes()
        assert one.value.tobytes() == two.value.tobytes()
    assert plain.part_bound.tobytes() == ruled.part_bound.tobytes()
    assert plain.polytope().eq.shape == ruled.polytope().eq.shape


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", MODES)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_scores_are_refused_also_where_the_rules_forbid(transitions, bad):
    chain = by_kind(transitions)
    offsets = [block.offsets + start for block, start in zip(chain.blocks, chain.starts, strict=False)]
    for at in (offsets[0][3] + 2, offsets[1][3] + 2):  # I-X first, and I-X after B-X or O
        scores = np.random.default_rng(0).normal(size=chain.n_parts)
        scores[at] = bad
        zeros = np.zeros(chain.n_examples)
        for status in (
            chain.argmax(scores).status,
            chain.labels(scores).status,
            chain.k_best(scores, 2)[0].status,
            chain.marginals(scores).status,
            chain.project(scores).status,
            chain.slack_argmax(scores, zeros, np.zeros(chain.n_parts), zeros).status,
        ):
            assert status.tolist() == [OK, OK, OK, NONFINITE, OK]
    pairs = np.zeros((5, 5))
    pairs[4, 2] = bad
    assert (chain.labels(np.zeros(chain.starts[1]), pairs).status == NONFINITE).all()


def test_select_and_repr_keep_the_rules():
    chain = by_kind("shared")
    assert chain.select([3, 0, 3]).constraints == chain.constraints
    assert "constraints=TransitionConstraints(5 labels; forbidden: 6 pairs, 2 first, 0 last)" in repr(chain)


def test_warm_starts_of_other_rules_are_ignored():
    chain = by_kind("shared")
    point = np.random.default_rng(0).normal(size=chain.n_parts)
    free = Chain(chain.lengths, 5)
    other = Chain(chain.lengths, 5, constraints=TransitionConstraints.forbid(BIO, [("O", "O")]))
    cold = chain.project(point)
    for warm in (free.project(point).warm, other.project(point).warm):
        assert chain.project(point, warm=warm).z.tobytes() == cold.z.tobytes()


def test_rules_that_do_not_fit_are_refused():
    few = np.zeros(4)
    with pytest.raises(ValueError, match="constraints do not fit the labels"):
        _kernels.ChainOracle(np.array([2]), 3, True, few, few, few, 1)


def test_masses_keep_only_legal_outputs():
    free = Chain([3, 2], 5)
    sequences = [[[0, 2, 2], [4, 4]], [[4, 2, 2], [0, 2]], [[0, 0, 0], [2, 4]]]  # two illegal ones
    rows = [free.encode(labels).dense() for labels in sequences]
    outputs = [own_parts(free, z, i) for i in (0, 1) for z in rows]
    parts = [np.flatnonzero(z) for z in outputs]
    active_set = ActiveSet(
        np.array([0, 3, 6]),
        np.full(6, 1 / 3),
        np.cumsum([0, *map(len, parts)]),
        np.concatenate(parts).astype(np.int32),
        np.concatenate([z[at] for z, at in zip(outputs, parts, strict=True)]),
    )
    kept = active_set.feasible(Chain([3, 2], 5, constraints=TransitionConstraints.bio(BIO)))
    assert kept.starts.tolist() == [0, 2, 4]
    assert active_set.feasible(free).starts.tolist() == [0, 3, 6]


def problem_of(transitions, rescaling="margin"):
    """BIO sequences whose best unconstrained outputs are often illegal."""
    rng = np.random.default_rng(3)
    lengths = np.array([3, 1, 4, 2, 3])
    edges = rng.normal(size=(int((lengths - 1).sum()), 2)) if transitions == "each" else None
    chain = Chain(lengths, 5, transitions=transitions, constraints=TransitionConstraints.bio(BIO))
    features = ChainFeatures(rng.normal(size=(int(lengths.sum()), 3)), lengths, 5, edge_features=edges)
    gold = chain.argmax(rng.normal(size=chain.n_parts)).z
    return Problem.build(chain, features, gold, Hamming(), L2(C=1.0), rescaling=rescaling)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("transitions", MODES)
def test_training_agrees_with_the_referee(transitions, rescaling):
    problem = problem_of(transitions, rescaling)
    block = solve(problem, mm.BlockFrankWolfe(), stop=Stop(tol=1e-5, max_iter=3000), random_state=0).certificate
    assert block.relative_gap <= 1e-5
    if rescaling == "margin":
        exact = solve(problem, mm.Exact(), stop=Stop(tol=1e-6)).certificate
        assert block.primal == pytest.approx(exact.primal, rel=3e-5)
        free = Problem.build(
            Chain(problem.structure.lengths, 5, transitions=transitions),
            problem.features,
            problem.gold_point,
            Hamming(),
            L2(C=1.0),
        )
        assert solve(free, mm.Exact(), stop=Stop(tol=1e-6)).certificate.primal > exact.primal * 1.001


@pytest.mark.parametrize("rescaling", ["margin", "slack", "none"])
@pytest.mark.parametrize("transitions", MODES)
def test_one_example_sees_what_the_batch_sees(transitions, rescaling):
    problem = problem_of(transitions, rescaling)
    weights = np.random.default_rng(1).normal(size=problem.n_weights)
    worst = problem.most_violated(weights)
    for i, labels in enumerate(problem.structure.decode(worst.z)):
        change, loss = visit(problem, i, weights)
        assert change @ weights + loss == pytest.approx(worst.value[i], abs=1e-9)
        rules = problem.structure.constraints
        assert all(rules.pairs[a, b] for a, b in pairwise(labels))

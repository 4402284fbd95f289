"""Losses against direct counting of wrong decisions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from data import PickOne, chains, cuts, matchings, picks
from hypothesis import given
from hypothesis import strategies as st
from problems import STRUCTURES, make
from sklearn.base import clone

from maxmargin import CandidatesSVM, ChainSVM, StructuredSVM
from maxmargin.encoders import CandidatesEncoder, ChainEncoder, CutEncoder, MatchingEncoder, PartsEncoder
from maxmargin.losses import Hamming, LabelCost, Loss
from maxmargin.problem import Problem
from maxmargin.regions import L2
from maxmargin.training import Examples

seeds = st.integers(0, 10_000)
prices = st.sampled_from([0.0, 0.5, 1.0, 3.0])


def packed_of(encoder, X, y):
    encoder = encoder.fit(X, y)[0]
    packed = encoder.transform(X)
    return encoder, packed, encoder.encode(packed, y).dense()


def problem_of(packed, gold, loss, **weights) -> Problem:
    return Problem.build(packed.structure, packed.features, gold, loss, L2(C=1.0), **weights)


def random_output(packed, seed):
    """A random vertex, as z and as outputs."""
    scores = np.random.default_rng(seed).standard_normal(packed.structure.n_parts)
    if packed.structure.name == "cut":
        scores[packed.structure.starts[1] :] = 0.0
    z = packed.structure.argmax(scores).z
    return z, packed.structure.decode(z)


def links(pairs) -> set[tuple[int, int]]:
    return {tuple(pair) for pair in np.asarray(pairs).reshape(-1, 2).tolist()}


@pytest.mark.parametrize("pruned", [False, True])
@given(seed=seeds, plus=prices, minus=prices)
def test_hamming_counts_wrong_and_missed_links(pruned, seed, plus, minus):
    X, y = matchings(4, seed=seed, pruned=pruned)
    _, packed, gold = packed_of(MatchingEncoder(), X, y)
    problem = problem_of(packed, gold, Hamming(plus, minus))
    z, found = random_output(packed, seed)
    counted = sum(
        plus * len(links(f) - links(g)) + minus * len(links(g) - links(f)) for f, g in zip(found, y, strict=True)
    )
    assert problem.loss(z) == pytest.approx(counted, abs=1e-9)
    assert problem.loss(gold) == pytest.approx(0.0, abs=1e-12)


@given(seed=seeds, plus=prices, minus=prices)
def test_hamming_counts_wrong_nodes_of_cuts(seed, plus, minus):
    X, y = cuts(4, seed=seed)
    _, packed, gold = packed_of(CutEncoder(), X, y)
    problem = problem_of(packed, gold, Hamming(plus, minus))
    z, found = random_output(packed, seed)
    f, g = np.concatenate(found), np.concatenate(y)
    assert problem.loss(z) == pytest.approx(plus * np.sum(f > g) + minus * np.sum(f < g), abs=1e-9)
    assert problem.loss(gold) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("edges", [False, True])
@given(seed=seeds, price=prices)
def test_hamming_counts_wrong_labels(edges, seed, price):
    X, y = chains(4, seed=seed, edges=edges)
    encoder, packed, gold = packed_of(ChainEncoder(), X, y)
    problem = problem_of(packed, gold, Hamming(price, price))
    z, _ = random_output(packed, seed)
    wrong = sum(
        a != b
        for f, g in zip(encoder.decode(packed, packed.structure.decode(z)), y, strict=True)
        for a, b in zip(f, g, strict=True)
    )
    assert problem.loss(z) == pytest.approx(price * wrong, abs=1e-9)
    assert problem.loss(gold) == 0.0


@given(seed=seeds)
def test_label_costs_example_weights_and_loss_weights(seed):
    rng = np.random.default_rng(seed)
    X, y = chains(4, seed=seed, labels=("a", "b", "c"))
    encoder, packed, gold = packed_of(ChainEncoder(("a", "b", "c")), X, y)
    matrix = rng.random((3, 3)) * (1 - np.eye(3))
    per_example = rng.integers(0, 3, size=4).astype(float)
    per_position = [rng.random(len(labels)) for labels in y]
    problem = problem_of(
        packed,
        gold,
        LabelCost(matrix.tolist()),
        example_weight=per_example,
        loss_weight=np.repeat(np.concatenate(per_position), 3),
    )
    z, _ = random_output(packed, seed)
    counted = 0.0
    for s, weights, f, g in zip(
        per_example, per_position, encoder.decode(packed, packed.structure.decode(z)), y, strict=True
    ):
        counted += s * sum(w * matrix["abc".index(b), "abc".index(a)] for w, a, b in zip(weights, f, g, strict=True))
    assert problem.loss(z) == pytest.approx(counted, abs=1e-9)
    assert problem.loss(gold) == pytest.approx(0.0, abs=1e-12)


@given(seed=seeds)
def test_weights_scale_the_loss_of_matchings(seed):
    rng = np.random.default_rng(seed)
    X, y = matchings(3, seed=seed)
    _, packed, gold = packed_of(MatchingEncoder(), X, y)
    per_example, per_link = rng.random(3), rng.random(packed.structure.n_parts)
    problem = problem_of(packed, gold, Hamming(1, 2), example_weight=per_example, loss_weight=per_link)
    z, _ = random_output(packed, seed)
    price = np.where(gold == 1, 2.0 * (z == 0), 1.0 * (z == 1))
    counted = packed.structure.by_example(per_link * price) @ per_example
    assert problem.loss(z) == pytest.approx(counted, abs=1e-9)
    assert problem.loss(gold) == pytest.approx(0.0, abs=1e-9)


def test_a_shard_has_its_share_of_the_loss():
    X, y = matchings(5)
    _, packed, gold = packed_of(MatchingEncoder(), X, y)
    problem = problem_of(packed, gold, Hamming(1, 3), example_weight=np.arange(5.0))
    z, _ = random_output(packed, 1)
    shards = [(problem.select(i), z[packed.structure.parts_of(i)]) for i in ([0, 3], [1, 2, 4])]
    assert sum(shard.loss(part) for shard, part in shards) == pytest.approx(problem.loss(z))


def test_hamming_on_a_structure_of_ones_own():
    X, y = picks()
    _, packed, gold = packed_of(PartsEncoder(PickOne), X, y)
    problem = problem_of(packed, gold, Hamming())
    z, found = random_output(packed, 3)
    assert problem.loss(z) == pytest.approx(sum(a != b for a, b in zip(found, y, strict=True)))


@pytest.mark.filterwarnings("ignore:all weights of the model are zero")
def test_states_of_a_structure_of_ones_own():
    X = [np.eye(3) for _ in range(4)]
    y = [0, 1, 2, 1]
    matrix = np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0]], dtype=float)
    _, packed, gold = packed_of(PartsEncoder(PickOne), X, y)
    z, found = random_output(packed, 3)
    problem = problem_of(packed, gold, LabelCost(matrix))
    assert problem.loss(z) == pytest.approx(sum(matrix[a, b] for a, b in zip(y, found, strict=True)))
    model = StructuredSVM(PickOne).fit(X, y, loss_weight=[[1.0], [0.0], [1.0], [0.0]])
    assert model.predict(X[:1]) in ([0], [2])  # the examples of 1 do not count
    with pytest.raises(ValueError, match=r"example 0: loss_weight must be 1 finite numbers"):
        StructuredSVM(PickOne).fit(X, y, loss_weight=[[1.0] * 3] * 4)
    _, chain, _ = packed_of(ChainEncoder(), *chains(3))
    _, cut, _ = packed_of(CutEncoder(), *cuts(3))
    assert (chain.structure.states_per_variable, cut.structure.states_per_variable) == (3, 1)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, "1", None, True, [1.0]])
@pytest.mark.parametrize("name", ["false_positive", "false_negative"])
def test_refused_prices(name, value):
    X, y = matchings(2)
    _, packed, gold = packed_of(MatchingEncoder(), X, y)
    with pytest.raises(ValueError, match=f"{name} must be a finite number >= 0"):
        Hamming(**{name: value}).costs(packed.structure, gold)


def test_refused_combinations():
    X, y = chains(3)
    _, chain, gold = packed_of(ChainEncoder(), X, y)
    with pytest.raises(ValueError, match=r"false_positive == false_negative.*LabelCost"):
        Hamming(1, 3).costs(chain.structure, gold)
    for matrix, message in (
        (np.zeros((2, 2)), r"\(3, 3\) matrix"),
        (np.eye(3), "zero diagonal"),
        (-np.ones((3, 3)) + np.eye(3), ">= 0"),
        (np.full((3, 3), np.nan), "finite"),
        ("abc", "matrix of numbers"),
        ([[0, 1], [0]], "matrix of numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            LabelCost(matrix).costs(chain.structure, gold)
    _, cut, labels = packed_of(CutEncoder(), *cuts(2))
    with pytest.raises(ValueError, match=r"not for a cut; use losses\.Hamming"):
        LabelCost(np.zeros((2, 2))).costs(cut.structure, labels)


@dataclass(frozen=True)
class Own(Loss):
    """A user's loss: fixed costs and offsets, as far as a test wants them wrong."""

    cost: object
    offset: object

    def costs(self, structure, gold):
        return self.cost(structure, gold), self.offset(structure, gold)


def nothing(structure, gold):
    return np.zeros(structure.n_parts)


def test_a_loss_of_ones_own():
    X, y = matchings(3)
    _, packed, gold = packed_of(MatchingEncoder(), X, y)
    missed = Own(lambda s, y: -2.0 * y, lambda s, y: 2.0 * y)
    problem = problem_of(packed, gold, missed)
    z, found = random_output(packed, 5)
    assert problem.loss(z) == pytest.approx(2 * sum(len(links(g) - links(f)) for f, g in zip(found, y, strict=True)))


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (Own(lambda s, y: y, nothing), "example 0: the loss of the gold output must be zero.*offset"),
        (Own(lambda s, y: np.full(s.n_parts, np.nan), nothing), "infinite or NaN costs"),
        (Own(lambda s, y: np.zeros(3), nothing), "one entry per part"),
        (Own(lambda s, y: np.zeros((s.n_parts, 1)), nothing), "one entry per part"),
    ],
)
def test_refused_losses_of_ones_own(loss, message):
    X, y = matchings(3)
    _, packed, gold = packed_of(MatchingEncoder(), X, y)
    with pytest.raises(ValueError, match=message):
        problem_of(packed, gold, loss)


def test_offsets_that_only_cancel_over_the_batch_are_refused():
    X, y = matchings(2)
    _, packed, gold = packed_of(MatchingEncoder(), X, y)
    sign = packed.structure.to_parts(np.array([1.0, -1.0]))
    first = packed.structure.by_example(np.ones(packed.structure.n_parts))
    loss = Own(nothing, lambda s, y: sign / s.to_parts(first))
    with pytest.raises(ValueError, match="example 0"):
        problem_of(packed, gold, loss)


def test_a_loss_on_the_edges_of_a_cut_is_refused():
    X, y = cuts(2)
    _, packed, gold = packed_of(CutEncoder(), X, y)
    on_edges = Own(lambda s, y: np.where(np.arange(s.n_parts) >= s.starts[1], 1.0 - y, 0.0), nothing)
    with pytest.raises(ValueError, match="put the cost on the nodes"):
        problem_of(packed, gold, on_edges)


def test_problems_refuse_parts_that_do_not_match():
    _, first, gold = packed_of(MatchingEncoder(), *matchings(2))
    _, second, _ = packed_of(MatchingEncoder(), *matchings(3))
    with pytest.raises(ValueError, match="features have"):
        Problem.build(first.structure, second.features, gold, Hamming(), L2(C=1.0))
    with pytest.raises(ValueError, match="mask of shape"):
        Problem.build(first.structure, first.features, gold, Hamming(), L2(nonnegative=np.array([True])))


# Costs given with the examples.


@dataclass(frozen=True, eq=False)
class Known(Loss):
    """The costs of a whole batch as a loss: asked for a batch of one shard, it knows which."""

    values: np.ndarray

    def costs(self, structure, gold):
        assert len(self.values) in (structure.starts[1], structure.n_parts)
        return self.values, -self.values * gold[: len(self.values)]


KINDS = {"matching": (MatchingEncoder, matchings), "cut": (CutEncoder, cuts), "chain": (ChainEncoder, chains)}


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("kind", KINDS)
@given(seed=seeds)
def test_given_costs_are_those_of_a_loss_with_these_numbers(kind, rescaling, seed):
    encoder, make = KINDS[kind]
    X, y = make(4, seed=seed)
    _, packed, gold = packed_of(encoder(), X, y)
    rng = np.random.default_rng(seed)
    variables = kind == "cut" or rescaling == "slack" or seed % 2
    n = packed.structure.starts[1] if variables else packed.structure.n_parts
    costs = rng.normal(size=n)
    if rescaling == "slack":  # no output may cost less than the gold one
        costs = np.abs(costs) * np.where(gold[:n] > 0, -1.0, 1.0)
    weights = {"example_weight": rng.random(4), "loss_weight": rng.random(packed.structure.starts[1])}
    one = problem_of(packed, gold, costs, rescaling=rescaling, **weights)
    other = problem_of(packed, gold, Known(costs), rescaling=rescaling, **weights)
    np.testing.assert_array_equal(one.costs, other.costs)
    assert one.constant == other.constant
    assert one.fingerprint() == other.fingerprint()
    w = np.abs(rng.normal(size=one.n_weights))
    np.testing.assert_array_equal(one.most_violated(w).value, other.most_violated(w).value)
    z, _ = random_output(packed, seed)
    plain = problem_of(packed, gold, costs)
    assert plain.loss(z) == pytest.approx(costs @ (z - gold)[:n], abs=1e-9)
    assert plain.loss(gold) == pytest.approx(0.0, abs=1e-9)


def test_given_costs_are_cut_into_pieces_with_the_batch(monkeypatch):
    X, y = chains(6, edges=True)
    _, packed, gold = packed_of(ChainEncoder(), X, y)
    rng = np.random.default_rng(0)
    for n in (packed.structure.starts[1], packed.structure.n_parts):
        costs = rng.normal(size=n)
        whole = problem_of(packed, gold, costs)
        monkeypatch.setattr("maxmargin.problem.costs._PIECE", 10)
        pieces = problem_of(packed, gold, costs)
        monkeypatch.undo()
        np.testing.assert_array_equal(pieces.costs, whole.costs)
        assert pieces.constant == pytest.approx(whole.constant)
        some = whole.select([4, 1])
        z, _ = random_output(packed, 2)
        at = packed.structure.parts_of([4, 1])
        padded = np.concatenate([costs, np.zeros(packed.structure.n_parts - n)])
        assert some.loss(z[at]) == pytest.approx(padded[at] @ (z - gold)[at])


def test_candidates_with_costs_by_enumeration():
    rng = np.random.default_rng(5)
    X = [rng.normal(size=(n, 3)) for n in (4, 1, 7, 5)]
    costs = [rng.random(len(x)).round(2) for x in X]
    y = [int(c.argmin()) for c in costs]
    weight = np.array([1.0, 2.0, 0.5, 1.5])
    model = CandidatesSVM(C=2.0, tol=1e-8).fit(X, y, weight, costs=costs)
    w = model.coef_
    hinges = [max(x @ w - x[g] @ w + c - c[g]) for x, c, g in zip(X, costs, y, strict=True)]
    certificate = model.solution_.certificate
    assert certificate.primal == pytest.approx(w @ w / 4.0 + weight @ hinges)
    assert certificate.relative_gap <= 1e-8
    assert model.model_.metadata["loss"] == "given costs"
    some = Examples.fit(CandidatesEncoder(), X, y, None, None, costs).select(np.array([3, 0]))
    np.testing.assert_array_equal(some.costs, np.concatenate([costs[3], costs[0]]))
    shifted = CandidatesSVM(C=2.0, tol=1e-8).fit(X, y, weight, costs=[c - 7.0 for c in costs])
    np.testing.assert_allclose(shifted.coef_, w, atol=1e-6)
    zero_one = [np.arange(len(x)) != g for x, g in zip(X, y, strict=True)]
    for rescaling in ("margin", "slack"):
        base = CandidatesSVM(C=2.0, rescaling=rescaling, tol=1e-8)
        hamming = base.fit(X, y).solution_.certificate.primal
        assert base.fit(X, y, costs=zero_one).solution_.certificate.primal == pytest.approx(hamming, rel=1e-6)


def test_labels_have_a_table_of_costs():
    X, y = chains(5, labels=("a", "b", "c"))
    matrix = np.array([[0.0, 1.0, 3.0], [2.0, 0.0, 1.0], [1.0, 4.0, 0.0]])
    tables = [matrix[["abc".index(label) for label in labels]] for labels in y]
    base = ChainSVM(C=0.5, classes=("a", "b", "c"), tol=1e-6)
    expected = clone(base).set_params(loss=LabelCost(matrix)).fit(X, y)
    found = clone(base).fit(X, y, costs=tables)
    np.testing.assert_array_equal(found.coef_, expected.coef_)


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ([[0.0, 1.0]], "costs must have 2 entries, one per example, got 1"),
        ([[0.0, 1.0], [1.0]], r"example 1: costs must be 3 finite numbers, one per candidate.* got shape \(1,\)"),
        ([[0.0, 1.0], [1.0, np.nan, 0.0]], r"example 1: costs must be 3 finite numbers.* with NaN or infinity"),
        ([["a", "b"], [1.0, 2.0, 0.0]], "example 0: costs must be 2 finite numbers"),
    ],
)
def test_costs_that_do_not_fit(costs, message):
    X = [np.eye(2), np.ones((3, 2))]
    with pytest.raises(ValueError, match=message):
        CandidatesSVM().fit(X, [0, 0], costs=costs)


def test_costs_are_refused_beside_a_loss_and_with_slack_if_negative():
    X, costs = [np.eye(2), np.eye(3)[:, :2]], [[0.0, 1.0], [1.0, 2.0, 0.5]]
    with pytest.raises(ValueError, match="costs take the place of the loss; give loss or costs, not both"):
        CandidatesSVM(loss=Hamming()).fit(X, [0, 0], costs=costs)
    with pytest.raises(ValueError, match=r"example 1: the loss of some output is -0.5"):
        CandidatesSVM(rescaling="slack").fit(X, [0, 0], costs=costs)
    _, packed, gold = packed_of(CandidatesEncoder(), X, [0, 0])
    with pytest.raises(ValueError, match=r"costs must be a packed vector of shape \(5,\)"):
        problem_of(packed, gold, np.ones(4))
    with pytest.raises(ValueError, match="costs must be finite numbers, got NaN or infinity"):
        problem_of(packed, gold, np.full(5, np.inf))


@pytest.mark.parametrize("kind", STRUCTURES)
def test_quick_costs_are_the_same(kind: str) -> None:
    """Of a problem that is made again, with the same bits and types."""
    problem = make(kind)
    losses = [Hamming(), Hamming(2.0, 2.0)] if problem.structure.categorical else [Hamming(), Hamming(1.0, 3.0)]
    for loss in (*losses, Hamming(0.5, 0.5)):
        args = problem.structure, problem.features, problem.gold_point, loss, problem.region
        for options in ({}, {"example_weight": np.arange(1.0, 5.0)}):
            one, other = Problem.build(*args, **options), Problem.again(*args, **options)
            assert one.constant == other.constant
            assert one.leading_costs.dtype == other.leading_costs.dtype
            assert np.array_equal(one.leading_costs, other.leading_costs)

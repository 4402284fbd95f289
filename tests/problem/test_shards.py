"""Batches treated piece by piece: the same problem, the same model, the same predictions, less memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from data import KINDS, made, same
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import STRUCTURES, make

import maxmargin as mm
from maxmargin.problem import Problem
from maxmargin.structures import Structure
from maxmargin.structures.sparse import SparsePoint

kinds = pytest.mark.parametrize("kind", list(KINDS))


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of a few parts where they would be of a million."""
    consecutive = Structure.consecutive
    monkeypatch.setattr(Structure, "consecutive", lambda self, max_parts=20: consecutive(self, min(max_parts, 20)))


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(STRUCTURES),
    seed=st.integers(0, 10_000),
    picks=st.lists(st.integers(0, 5), min_size=1, max_size=8),
)
def test_sparse_points(kind: str, seed: int, picks: list[int]) -> None:
    structure = make(kind, seed=seed, n=6).structure
    rng = np.random.default_rng(seed)
    z = np.where(rng.random(structure.n_parts) < 0.3, rng.normal(size=structure.n_parts), 0.0)
    point = SparsePoint.of(structure, z)
    np.testing.assert_array_equal(point.dense(), z)
    chosen = np.array(picks)
    np.testing.assert_array_equal(point.select(chosen, structure.select(chosen)).dense(), z[structure.parts_of(chosen)])
    cut = int(rng.integers(0, 7))
    pieces = [np.arange(cut), np.arange(cut, 6)]
    again = SparsePoint.joined(
        structure, [(rows, point.select(rows, structure.select(rows))) for rows in pieces if len(rows)]
    )
    np.testing.assert_array_equal(again.dense(), z)
    np.testing.assert_array_equal(again.starts, point.starts)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(kind=st.sampled_from(STRUCTURES), seed=st.integers(0, 10_000), most=st.integers(1, 200))
def test_pieces_cover_the_batch_in_order(kind: str, seed: int, most: int) -> None:
    structure = make(kind, seed=seed, n=5).structure
    pieces = list(structure.consecutive(most))
    np.testing.assert_array_equal(np.concatenate(pieces), np.arange(5))
    assert all(len(piece) == 1 or structure.sizes[piece].sum() <= most for piece in pieces)
    assert structure.sizes.sum() == structure.n_parts


@pytest.mark.parametrize("kind", STRUCTURES)
def test_a_problem_built_in_pieces_is_the_same(kind: str, small_pieces: None) -> None:
    problem = make(kind, n=7)
    assert len(list(problem.structure.consecutive())) > 1
    w = np.abs(np.random.default_rng(0).normal(size=problem.n_weights))
    scores = problem.structure.argmax(problem.augmented(w))
    direct = float(scores.value.sum()) + problem.constant - float(w @ problem.gold_features)
    assert problem.hinge(w) == pytest.approx(direct)
    np.testing.assert_allclose(problem.gold_features, problem.features.adjoint(problem.gold))
    assert problem.norm == pytest.approx(problem.features.norm(), rel=5e-3)
    assert problem.loss(problem.gold) == pytest.approx(0.0, abs=1e-12)
    assert problem.costs @ problem.gold + problem.constant == pytest.approx(0.0, abs=1e-12)


@kinds
def test_training_and_prediction_in_pieces(kind: str, small_pieces: None) -> None:
    model, (X, y), (X_new, y_new) = made(kind, tol=1e-2)
    model.fit(X, y)
    in_pieces = (
        model.predict(X_new),
        model.decision_function(X_new),
        model.k_best(X_new, 3),
        model.score(X_new, y_new),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Structure, "consecutive", lambda self, max_parts=0: iter([np.arange(self.n_examples)]))
        assert same(in_pieces[0], model.predict(X_new))
        np.testing.assert_allclose(in_pieces[1], model.decision_function(X_new), rtol=1e-12)
        for mine, whole in zip(in_pieces[2], model.k_best(X_new, 3), strict=True):
            assert [score for _, score in mine] == pytest.approx([score for _, score in whole])
        assert in_pieces[3] == model.score(X_new, y_new)


def test_errors_name_examples_of_the_whole_batch(small_pieces: None) -> None:
    model, (X, y), _ = made("chain")
    wrong = [*y[:-1], [*y[-1], "a"]]
    with pytest.raises(ValueError, match=f"example {len(y) - 1}"):
        model.fit(X, wrong)
    model.fit(X, y)
    with pytest.raises(ValueError, match=f"example {len(y) - 1}: label 'unseen'"):
        model.score(X, [*y[:-1], ["unseen"] * len(y[-1])])


def test_a_loss_outside_the_decisions_is_kept(small_pieces: None) -> None:
    class Everywhere(mm.losses.Loss):
        def costs(self, structure, gold):  # type: ignore[no-untyped-def]
            return 1.0 - gold, (gold - 1.0) * gold

    base = make("chain-edges", n=6)
    problem = Problem.build(base.structure, base.features, base.gold, Everywhere(), base.region)
    np.testing.assert_array_equal(problem.costs, 1.0 - base.gold)
    shards = list(problem.shards())
    assert len(shards) > 1
    w = np.zeros(problem.n_weights)
    assert sum(shard.hinge(w) for shard in shards) == pytest.approx(problem.hinge(w))


@pytest.mark.filterwarnings("ignore:all weights of the model are zero")
def test_a_memory_efficient_run_makes_no_packed_vector_of_the_batch() -> None:
    rng = np.random.default_rng(0)
    n, length, labels = 8000, 6, 30
    X = [rng.normal(size=(length, 4)) for _ in range(n)]
    y = [rng.integers(labels, size=length).tolist() for _ in range(n)]
    solver = mm.DualExtragradient(store_duals=False, shard_parts=200_000)
    model = mm.ChainSVM(C=1e-3, classes=list(range(labels)), solver=solver, tol=0.5, max_iter=2)
    tracemalloc.start()
    try:
        model.fit(X, y)
        model.predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    packed_vector = 8 * n * (length * labels + labels**2)
    # The costs of the node parts, a sixth of a packed vector, and pieces of a million parts while building.
    assert peak < packed_vector


def test_gold_outputs_of_ones_take_no_memory_for_their_values() -> None:
    problem = make("chain", seed=3)
    shard = problem.select(np.arange(2))
    whole = SparsePoint.counting(problem.structure, problem.gold_point.index)
    some = whole.select(np.arange(2), shard.structure)
    assert whole.value.strides == some.value.strides == (0,)
    np.testing.assert_array_equal(whole.dense(), problem.gold)
    np.testing.assert_array_equal(some.dense(), shard.gold)

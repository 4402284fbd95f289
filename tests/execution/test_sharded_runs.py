"""Runs over several shards: the same optimum as in one piece, and the same bits wherever the pieces come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from problems import STRUCTURES, FilePieces, make, rebuilt, run

import maxmargin as mm
from maxmargin.execution import HeldPieces, Piece, Serial, ShardedProblem
from maxmargin.execution.pieces import cut
from maxmargin.solvers import Checkpoint, Solver, solve
from maxmargin.structures import Structure
from maxmargin.structures.chains.chain import Chain
from maxmargin.structures.fallbacks import generic

SOLVERS: dict[str, Solver] = {
    "subgradient": mm.ProjectedSubgradient(),
    "dual extragradient without memory": mm.DualExtragradient(store_duals=False),
    "dual extragradient": mm.DualExtragradient(),
    "extragradient": mm.Extragradient(),
    "Euclidean extragradient": mm.Extragradient(geometry=mm.Euclidean()),
    "projected gradient": mm.ProjectedGradient(),
    "simplicial decomposition": mm.SimplicialDecomposition(),
    "sums of all": mm.SimplicialDecomposition(master="one"),
    "cyclic working sets": mm.SimplicialDecomposition(working_set="cyclic", working_set_size=2),
    "cutting planes": mm.CuttingPlane(),
    "one slack": mm.CuttingPlane(slacks="one"),
}


def _closes(solution: Any, optimum: float, slow: bool) -> None:
    certificate = solution.certificate
    near = (1e-1 if slow else 1e-5) * abs(optimum) + 1e-9
    assert certificate.dual - 1e-7 * abs(optimum) <= optimum <= certificate.primal + 1e-7 * abs(optimum)
    assert certificate.primal - optimum <= near


@pytest.mark.parametrize(
    ("kind", "name"), [*(("chain", name) for name in SOLVERS), ("matching", "extragradient"), ("cut", "one slack")]
)
def test_optimum_and_bits_do_not_depend_on_where_the_pieces_are(kind: str, name: str) -> None:
    problem, solver = make(kind, n=5), SOLVERS[name]
    optimum = run(problem, mm.Exact()).certificate.primal
    slow = name in ("subgradient", "projected gradient") or "extragradient" in name
    budget = {"tol": 1e-3 if slow else 1e-7, "max_iter": 80 if slow else 150}
    for shards in (1, 3):
        executor = Serial(shards=shards)
        here = run(problem, solver, executor=executor, **budget)
        _closes(here, optimum, slow)
        source = FilePieces(problem, solver.shard_size or 10**9, shards)
        there = run(ShardedProblem(source), solver, executor=executor, **budget)
        np.testing.assert_array_equal(here.weights, there.weights)
        assert here.certificate == there.certificate
        assert here.counters == there.counters


@pytest.mark.parametrize("kind", STRUCTURES)
def test_every_structure_in_shards(kind: str) -> None:
    problem = make(kind, n=5)
    whole = run(problem, mm.SimplicialDecomposition(), tol=1e-7)
    cut_up = run(problem, mm.SimplicialDecomposition(), tol=1e-7, executor=Serial(shards=3))
    np.testing.assert_allclose(cut_up.certificate.primal, whole.certificate.primal, rtol=1e-6)
    extragradient = mm.DualExtragradient(store_duals=False, shard_parts=20)
    source = ShardedProblem(FilePieces(problem, 20, 2))
    there = run(source, extragradient, max_iter=40, executor=Serial(shards=2))
    here = run(problem, extragradient, max_iter=40, executor=Serial(shards=2))
    np.testing.assert_array_equal(here.weights, there.weights)
    assert here.certificate.dual <= whole.certificate.primal * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("options", [{"slack": "quadratic"}, {"rescaling": "slack"}, {"rescaling": "none"}])
def test_other_hinges_in_shards(options: dict[str, str]) -> None:
    problem = rebuilt(make("chain", n=6), **options)
    weighted = rebuilt(problem, example_weight=np.arange(1.0, 7.0))
    for one in (problem, weighted):
        for solver in (mm.SimplicialDecomposition(), mm.CuttingPlane(), mm.SimplicialDecomposition(rays="unit")):
            whole = run(one, solver, tol=1e-6)
            parts = run(one, solver, tol=1e-6, executor=Serial(shards=3))
            np.testing.assert_allclose(parts.certificate.primal, whole.certificate.primal, rtol=1e-5)


@pytest.mark.parametrize(
    "solver", [mm.ColumnGeneration(), mm.ColumnGeneration(k_best=2), mm.ColumnGeneration.plain(master="highs")]
)
@pytest.mark.parametrize("rescaling", ["margin", "none"])
def test_column_generation_in_shards(solver: Solver, rescaling: str) -> None:
    problem = rebuilt(make("chain", n=6, region={"l1": np.inf, "C": 0.5}), rescaling=rescaling)
    whole = run(problem, solver, tol=1e-5, max_iter=100)
    executor = Serial(shards=3)
    parts = run(problem, solver, tol=1e-5, max_iter=100, executor=executor)
    there = run(ShardedProblem(FilePieces(problem, 10**6, 3)), solver, tol=1e-5, max_iter=100, executor=executor)
    np.testing.assert_allclose(parts.certificate.primal, whole.certificate.primal, rtol=1e-4)
    np.testing.assert_array_equal(parts.weights, there.weights)


class OwnChain(Chain):
    """A structure of the user's own, projected by its argmax alone."""

    project = Structure.project


def test_warm_starts_of_projections_by_argmax_survive_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """They belong to the piece, not to the structure that was read for one pass over it."""
    problem = make("chain", n=6, region={"C": 5.0})
    object.__setattr__(problem.structure, "__class__", OwnChain)
    warm: list[bool] = []
    plain = generic.open_hull

    def counted(structure: Any, tol: float, given: Any, key: object) -> Any:
        warm.append(given is not None and given.key is key)
        return plain(structure, tol, given, key)

    monkeypatch.setattr(generic, "open_hull", counted)
    source = ShardedProblem(FilePieces(problem, 10**9, 2))
    there = run(source, mm.ProjectedGradient(), max_iter=8, tol=1e-9, executor=Serial(shards=2))
    assert sum(warm) >= 14
    here = run(problem, mm.ProjectedGradient(), max_iter=8, tol=1e-9, executor=Serial(shards=2))
    np.testing.assert_array_equal(here.weights, there.weights)


SAVED = (*SOLVERS, "block Frank-Wolfe", "perceptron", "MIRA", "column generation")
OTHERS: dict[str, Solver] = {
    "block Frank-Wolfe": mm.BlockFrankWolfe(),
    "perceptron": mm.AveragedPerceptron(),
    "MIRA": mm.Mira(),
    "column generation": mm.ColumnGeneration(),
}


@pytest.mark.parametrize("name", SAVED)
def test_saved_on_shards(name: str, tmp_path: Path) -> None:
    """In memory and in files, a run that was cut goes on from its checkpoint and ends with the same bits."""
    solver = (SOLVERS | OTHERS)[name]
    problem = make("chain", n=8, region={"l1": np.inf, "C": 0.5} if name == "column generation" else {"C": 5.0})
    held = HeldPieces.of(problem, 40, 2)
    for at, one in enumerate((problem, ShardedProblem(FilePieces(problem, 40, 2)), ShardedProblem(held))):

        def cut_at(limit: int, path: str, one: Any = one) -> Any:
            checkpoint = Checkpoint(tmp_path / path, every=0.0)
            budget = {"tol": 1e-9, "max_iter": limit, "random_state": 0, "checkpoint": checkpoint}
            return run(one, solver, executor=Serial(shards=2), **budget)

        whole = cut_at(14, f"whole{at}")
        for limit in (3, 9):
            cut_at(limit, f"cut{at}")
        again = cut_at(14, f"cut{at}")
        np.testing.assert_array_equal(again.weights, whole.weights)
        assert again.certificate == whole.certificate
        assert again.counters.iterations == whole.counters.iterations


def test_sums_of_a_sharded_problem() -> None:
    problem = rebuilt(make("tree", n=6), example_weight=np.arange(1.0, 7.0))
    sharded = ShardedProblem(FilePieces(problem, 10, 1))
    assert (sharded.n_examples, sharded.n_parts, sharded.n_weights) == (6, problem.n_parts, problem.n_weights)
    assert sharded.kind.called == problem.structure.called
    np.testing.assert_allclose(sharded.gold_features, problem.gold_features, rtol=1e-12)
    np.testing.assert_allclose(sharded.constant, problem.constant, rtol=1e-12)
    np.testing.assert_array_equal(sharded.scale, problem.scale)
    np.testing.assert_allclose(sharded.norm, problem.norm, rtol=1e-6)
    np.testing.assert_allclose(
        sharded.evaluate(np.ones(problem.n_weights)).value, problem.hinge(np.ones(problem.n_weights))
    )
    other = ShardedProblem(FilePieces(make("tree", n=6, seed=1), 10, 1))
    assert sharded.fingerprint() == ShardedProblem(FilePieces(problem, 10, 1)).fingerprint()
    assert sharded.fingerprint()["features"] != other.fingerprint()["features"]


def test_cutting_whole_groups_again_gives_the_same_groups() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        sizes, count = rng.integers(0, 30, size=rng.integers(1, 12)), int(rng.integers(1, 6))
        edges = cut(sizes, count)
        assert edges[0] == 0
        assert edges[-1] == len(sizes)
        assert len(edges) <= count + 1
        assert (np.diff(edges) > 0).all()
        finer = np.concatenate([np.add.reduceat(sizes, edges[:-1])])
        np.testing.assert_array_equal(cut(finer, count), np.arange(len(edges)))


def test_solvers_that_need_all_examples_in_one_place_refuse() -> None:
    problem = make("chain", n=6)
    with pytest.raises(ValueError, match=r"Subgradient cannot solve this problem: .*; use Simplicial.*executor"):
        solve(problem, mm.Subgradient(), Serial(shards=2))
    with pytest.raises(ValueError, match=r"Subgradient cannot .*give a problem in memory"):
        solve(ShardedProblem(FilePieces(problem, 10, 1)), mm.Subgradient())
    with pytest.raises(ValueError, match="executor must be an executor such as"):
        solve(problem, mm.CuttingPlane(), "ray")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="shards must be an integer >= 1, got 0"):
        Serial(shards=0)


def test_an_interrupted_call_leaves_the_memories_whole() -> None:
    session = Serial(shards=2).open(HeldPieces.of(make("chain", n=6), None, 2))
    session.sums(_counting, None)
    with pytest.raises(KeyboardInterrupt):
        session.sums(_counting, 4)
    assert session.memories() == [1, 1]
    taken = session.each(_counting, None)
    next(taken)
    taken.close()
    assert session.memories() == [1, 1]
    session.restore([5, 6])
    assert session.sums(_counting, None) == (13,)


def _counting(piece: Piece, memory: int | None, interrupted: int | None) -> tuple[tuple[int], int]:
    if interrupted is not None and piece.first + piece.problem.n_examples > interrupted:
        raise KeyboardInterrupt
    return ((memory or 0) + 1,), (memory or 0) + 1

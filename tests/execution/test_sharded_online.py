"""Online methods on several shards: block Frank-Wolfe by changes combined, perceptron and MIRA by mixing."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from problems import STRUCTURES, FilePieces, make, rebuilt, run

import maxmargin as mm
from maxmargin import _kernels
from maxmargin import _scratch as scratch
from maxmargin.execution import Piece, Serial, ShardedProblem
from maxmargin.optimization.run import Run
from maxmargin.optimization.solver import Start
from maxmargin.solvers import Checkpoint, Solver
from maxmargin.solvers.online import sharded_blocks


@pytest.mark.parametrize("kind", STRUCTURES)
def test_block_frank_wolfe_reaches_the_optimum(kind: str) -> None:
    problem = make(kind, n=6, region={"C": 0.5})
    whole = run(problem, mm.BlockFrankWolfe(), tol=1e-6, random_state=0)
    for shards in (2, 3):
        found = run(problem, mm.BlockFrankWolfe(), tol=1e-3, max_iter=2000, random_state=0, executor=Serial(shards))
        assert found.certificate.relative_gap <= 1e-3
        assert found.certificate.dual <= whole.certificate.primal * (1 + 1e-9)
        assert found.certificate.primal >= whole.certificate.dual * (1 - 1e-9)
        assert found.active_set is None


@pytest.mark.parametrize("options", [{"rescaling": "slack"}, {"rescaling": "none"}, {}])
@pytest.mark.parametrize("region", [{"C": 0.5}, {"C": 0.5, "radius": 0.3}])
def test_the_dual_never_falls(options: dict[str, str], region: dict[str, float], monkeypatch: Any) -> None:
    monkeypatch.setattr(sharded_blocks, "ROUND_EXAMPLES", 2)
    problem = rebuilt(make("chain", n=14, region=region, signs="radius" in region), **options)
    for solver in (
        mm.BlockFrankWolfe(outputs=3, group=3),
        mm.BlockFrankWolfe(sampling="gap", cache=0.3, direction="away"),
    ):
        own = Run.of(problem, np.random.default_rng(0), None, executor=Serial(3), sharded=True)
        state, values = solver.init(own, Start()), [0.0]
        for _ in range(25):
            state = solver.step(own, state)
            values.append(problem.region.dual(state.g, state.loss))
        assert (np.diff(values) >= -1e-9 * (1 + abs(values[-1]))).all()
        best = run(problem, mm.BlockFrankWolfe(), tol=1e-6, random_state=0).certificate
        assert values[-1] <= best.primal * (1 + 1e-9)
        if "radius" not in region:  # where the dual bends less than steps assume, they are short
            assert values[-1] == pytest.approx(best.dual, rel=0.1)
        assert state.rounds > 25  # several rounds a pass
        g, loss = own.sums(sharded_blocks._refresh, solver, sharded_blocks._shares(state), False)
        np.testing.assert_allclose(g, state.g, atol=1e-9)
        assert loss == pytest.approx(state.loss, abs=1e-9)


SOLVERS: dict[str, Solver] = {
    "block": mm.BlockFrankWolfe(),
    "gap": mm.BlockFrankWolfe(sampling="gap", outputs=3),
    "perceptron": mm.AveragedPerceptron(),
    "batch": mm.AveragedPerceptron(batch=True),
    "mira": mm.Mira(k=2),
}


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("kind", ["chain", "cut"])
def test_bits_do_not_depend_on_where_the_pieces_are(kind: str, name: str, monkeypatch: Any) -> None:
    """In memory, from files, and with memories that have been somewhere else after each call."""
    monkeypatch.setattr(sharded_blocks, "ROUND_EXAMPLES", 2)
    problem, solver = make(kind, n=9, region={"C": 0.5}), SOLVERS[name]
    budget = {"tol": 1e-7, "max_iter": 22, "random_state": 0, "executor": Serial(3)}
    here = run(problem, solver, **budget)
    there = run(ShardedProblem(FilePieces(problem, 10**9, 3)), solver, **budget)
    np.testing.assert_array_equal(here.weights, there.weights)

    original = sharded_blocks._visit

    def traveled(piece: Piece, memory: Any, *args: Any) -> tuple[Any, Any]:
        return original(piece, pickle.loads(pickle.dumps(memory)), *args)

    monkeypatch.setattr(sharded_blocks, "_visit", traveled)
    again = run(problem, solver, **budget)
    np.testing.assert_array_equal(here.weights, again.weights)


def test_pieces_of_one_shard_have_their_turns() -> None:
    """Without others at the same time nothing of a change is lost."""
    problem = make("chain", n=12, region={"C": 0.5})
    sharded = ShardedProblem(FilePieces(problem, problem.n_parts // 4, 1))
    assert len(sharded.source) > 3
    found = run(sharded, mm.BlockFrankWolfe(), tol=1e-5, max_iter=300, random_state=0)
    whole = run(problem, mm.BlockFrankWolfe(), tol=1e-5, max_iter=300, random_state=0)
    assert found.certificate.relative_gap <= 1e-5
    assert found.certificate.primal == pytest.approx(whole.certificate.primal, rel=2e-5)
    assert found.counters.iterations <= 4 * whole.counters.iterations


def test_pieces_are_opened_in_their_turn_and_let_go(monkeypatch: Any) -> None:
    """A round opens one piece of every shard, and nothing that refers to its data stays."""
    monkeypatch.setattr(sharded_blocks, "ROUND_EXAMPLES", 2)
    problem, solver = make("chain", n=16, region={"C": 0.5}), mm.BlockFrankWolfe()
    for shards in (1, 2):
        source = FilePieces(problem, problem.n_parts // 4, 4)
        own = Run.of(ShardedProblem(source), np.random.default_rng(0), executor=Serial(shards))
        state = solver.init(own, Start())
        opened: list[int] = []
        monkeypatch.setattr(source, "open", lambda i, s=source, o=opened: (o.append(i), FilePieces.open(s, i))[1])
        state = solver.step(own, state)
        assert set(opened) == set(range(len(source)))
        assert len(opened) == shards * state.rounds
        assert all(memory.blocks is None for memory in own.memories())
        state = solver.step(own, state)
        g, loss = own.sums(sharded_blocks._refresh, solver, sharded_blocks._shares(state), True)
        np.testing.assert_allclose(g, state.g, atol=1e-12)
        assert loss == pytest.approx(state.loss, abs=1e-12)


@pytest.mark.parametrize("name", SOLVERS)
def test_saved_states_go_on_with_the_same_bits(name: str) -> None:
    problem, solver = make("chain", n=9, region={"C": 0.5}), SOLVERS[name]
    runs = [Run.of(problem, np.random.default_rng(3), None, executor=Serial(3), sharded=True) for _ in range(2)]
    state = solver.init(runs[0], Start())
    for _ in range(4):
        state = solver.step(runs[0], state)
    saved = {
        key: np.array(one) if isinstance(one, np.ndarray) else one for key, one in solver.state_dict(state).items()
    }
    runs[1].counters.iterations = 4
    other = solver.load_state_dict(runs[1], saved)
    runs[1].random.bit_generator.state = runs[0].random.bit_generator.state
    for _ in range(3):
        state, other = solver.step(runs[0], state), solver.step(runs[1], other)
    (one,), (two,) = solver.propose(runs[0], state), solver.propose(runs[1], other)
    np.testing.assert_array_equal(one.weights, two.weights)
    assert one.loss == two.loss


@pytest.mark.parametrize("shards", [1, 2])
def test_checkpoints_of_shards(shards: int, tmp_path: Path) -> None:
    problem = make("chain", n=9, region={"C": 0.5})
    budget = {"random_state": 0, "executor": Serial(shards)}
    for number, solver in enumerate(SOLVERS.values()):
        whole = run(problem, solver, tol=1e-9, max_iter=12, **budget)
        file = tmp_path / f"run{number}"
        run(problem, solver, tol=1e-9, max_iter=5, checkpoint=Checkpoint(file, keep=True), **budget)
        again = run(problem, solver, tol=1e-9, max_iter=12, checkpoint=Checkpoint(file, keep=True), **budget)
        np.testing.assert_array_equal(again.weights, whole.weights)


def test_damaged_states_are_refused() -> None:
    problem, solver = make("chain", n=9, region={"C": 0.5}), mm.BlockFrankWolfe()
    own = Run.of(problem, np.random.default_rng(3), None, executor=Serial(3), sharded=True)
    state = solver.step(own, solver.init(own, Start()))
    saved, own.counters.iterations = solver.state_dict(state), 1
    for name, value in {"g": state.g + 1.0, "loss": state.loss + 1.0, "spread": 9.0}.items():
        with pytest.raises(ValueError, match=r"sums|loss|spread"):
            solver.load_state_dict(own, {**saved, name: value})
    masses = np.array(saved["piece1.alpha"])
    with pytest.raises(ValueError, match="do not sum to 1"):
        solver.load_state_dict(own, {**saved, "piece1.alpha": masses * 1.5})
    with pytest.raises(ValueError, match="missing"):
        solver.load_state_dict(own, {key: one for key, one in saved.items() if key != "piece2.part"})


def test_best_shares_solve_their_program() -> None:
    random = np.random.default_rng(0)
    for _ in range(50):
        k = int(random.integers(1, 6))
        rows, slope = random.normal(size=(k, 3)), random.normal(size=k)
        bend = rows @ rows.T
        share = sharded_blocks.best_shares(slope, bend)
        assert ((share >= 0.0) & (share <= 1.0)).all()
        gradient = slope - bend @ share
        assert (gradient[share < 1.0] <= 1e-6).all()
        assert (gradient[share > 0.0] >= -1e-6).all()
    np.testing.assert_array_equal(sharded_blocks.best_shares(np.zeros(2), np.zeros((2, 2))), [0.0, 0.0])


def test_arrays_on_disk_are_replaced_and_their_room_is_used_again() -> None:
    before = scratch._file.end
    first, second = scratch.Slot(), scratch.Slot()
    for size in (3, 0, 70, 7):
        arrays = [np.arange(size, dtype=kind) for kind in (np.float64, np.int8, np.int64, np.uint8)]
        first.write(arrays)
        second.write(arrays[:1])
        for one, two in zip(first.read(), arrays, strict=True):
            assert one.dtype == two.dtype
            np.testing.assert_array_equal(one, two)
        np.testing.assert_array_equal(second.read()[0], arrays[0])
    taken = scratch._file.end - before
    del first, second
    for _ in range(5):
        scratch.Slot().write(arrays)
    assert scratch._file.end - before == taken


# --- mixing ----------------------------------------------------------------------------------------------------------


def test_mixed_weights_are_those_of_the_shards_by_their_examples() -> None:
    problem = make("chain", n=9)
    solver = mm.AveragedPerceptron(shuffle=False)
    own = Run.of(problem, np.random.default_rng(0), None, executor=Serial(2), sharded=True)
    state = solver.init(own, Start())
    sums, visits = np.zeros(problem.n_weights), 0
    weights = np.zeros(problem.n_weights)
    parts = [own.session.source.open(i).problem for i in range(2)]
    for _ in range(3):
        state = solver.step(own, state)
        after = np.zeros_like(weights)
        for part in parts:
            n, w, view = part.n_examples, weights.copy(), part.examples()
            for i in range(n):
                _kernels.perceptron_pass(view, np.array([i]), np.zeros(0, dtype=np.uint8), w, np.zeros_like(w), 0.0)
                sums += w
                visits += 1
            after += n / 9 * w
        # Averages of the shards count by their examples, too: visits of all shards alike.
        weights = after
        np.testing.assert_allclose(state.total, weights, atol=1e-12)
        (proposal,) = solver.propose(own, state)
        np.testing.assert_allclose(proposal.weights, sums / visits, atol=1e-12)


@pytest.mark.parametrize("solver", [mm.AveragedPerceptron(), mm.Mira()])
def test_messages_say_that_weights_were_mixed(solver: Solver) -> None:
    problem = make("chain", n=9)
    found = run(problem, solver, max_iter=5, executor=Serial(3), random_state=0)
    assert "weights of 3 shards were mixed" in found.message
    assert "mixed" not in run(problem, solver, max_iter=5, random_state=0).message


def test_the_perceptron_in_batch_form_adds_up() -> None:
    problem, solver = make("tree", n=9), mm.AveragedPerceptron(batch=True)
    one, three = (run(problem, solver, max_iter=6, executor=Serial(k), random_state=0) for k in (1, 3))
    np.testing.assert_allclose(one.weights, three.weights, atol=1e-12)
    assert "mixed" not in three.message


def test_subgradients_of_single_examples_refuse_shards() -> None:
    with pytest.raises(ValueError, match="one place"):
        run(make("chain", n=9), mm.Subgradient(), executor=Serial(3))

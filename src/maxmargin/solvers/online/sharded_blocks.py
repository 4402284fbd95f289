"""Block-coordinate Frank-Wolfe on several shards.

Every shard keeps the blocks of its own examples. In a round each visits some of them, beginning at the weights of all
shards, and sends the change that this makes of ``g`` and the loss. A quadratic program finds how much of each change,
from nothing to all, together increase the dual most: it never falls, as nothing of all changes leaves it as it is.
Shards are told their shares with the next round.

Changes of shards that are alike add up to more than is good for the dual. In a shard the dual is therefore taken to
bend ``spread`` times as much (Ma, Smith, Jaggi, Jordan, Richtarik and Takac 2015): as much more as the changes of the
last round were together than apart, from 1 to the number of shards.

An iteration is a pass in up to :data:`ROUNDS` rounds: the more, the less shards do without knowing of each other. Of
several pieces in a shard, one after the other has its rounds. More shards need more passes for the same gap, as visits
see the weights of other shards only once a round: with a few dense features many more, see docs/choosing-a-solver.md.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from maxmargin import _threads
from maxmargin.execution import Piece
from maxmargin.optimization.checkpoints.saved import StateDict, array, number, require, vector
from maxmargin.optimization.run import Run
from maxmargin.solvers.online import blocks
from maxmargin.solvers.online.base import finite_pass, ridge_of
from maxmargin.structures.base import FloatArray

ROUNDS, ROUND_EXAMPLES = 16, 128
"""Rounds of a pass: as many, but of no fewer examples of a shard than this."""

_SWEEPS, _SMALL = 1000, 1e-12
"""Sweeps of the quadratic program at most, and the change at which they end."""


@dataclass(frozen=True, eq=False)
class Mean:
    """Sums over passes, of which the t-th counts t times: of ``g``, the loss, and the counts."""

    g: FloatArray
    loss: float = 0.0
    weight: float = 0.0


@dataclass(frozen=True, eq=False)
class ShardedState:
    """What the driver knows; the blocks are with the data.

    Attributes:
        run: where they are.
        g, loss: sums over all shards.
        shares: of the changes of each piece in the last round, those that count.
        rounds: how many there were.
        spread: how much more the dual bends in a shard.
        passes: how many there were.
        total, older, newer: sums for the average: of all passes, and at two marks.
    """

    run: Run
    g: FloatArray
    loss: float
    shares: FloatArray
    total: Mean
    older: Mean
    newer: Mean
    rounds: int = 0
    spread: float = 1.0
    passes: int = 0

    @classmethod
    def first(cls, run: Run) -> ShardedState:
        """All weight on the gold outputs."""
        none = Mean(np.zeros(run.problem.n_weights))
        return cls(run, none.g, 0.0, np.zeros(run.session.n_pieces), none, none, none)

    def average(self) -> tuple[FloatArray, float]:
        """``g`` and the loss, averaged over the passes since the mark before the last."""
        weight = self.total.weight - self.older.weight
        if self.passes < 2 or weight <= 0.0:
            return self.g, self.loss
        return (self.total.g - self.older.g) / weight, (self.total.loss - self.older.loss) / weight


@dataclass(frozen=True, eq=False)
class Round:
    """What a round is about: see :func:`_visit`."""

    solver: Any
    number: int
    pieces: frozenset[int]
    seed: int
    chunk: int
    chunks: int
    passes: int
    g: FloatArray
    loss: float
    spread: float
    settle: dict[int, float]


@dataclass(eq=False)
class _Held:
    """Compiled blocks and the last round that they took part in, changed in place."""

    blocks: Any
    number: int = -1


@dataclass(eq=False)
class PieceBlocks:
    """The memory of a piece: blocks, or the arrays from which they are made where they come to."""

    held: _Held | None = None
    saved: StateDict = field(default_factory=dict)

    def of(self, solver: Any, piece: Piece) -> _Held:
        """The blocks."""
        if self.held is None:
            problem = piece.problem
            if not self.saved:
                return _Held(blocks.made(solver, problem))
            made = blocks.made(solver, problem)
            made.examples.remember(self.saved["memory"])
            made.restore(*(self._array(name) for name in blocks.ARRAYS))
            if len(self.saved["begun"]):
                made.resume(self.saved["begun"], self.saved["before"])
            self.held = _Held(made, self.saved["number"])
        return self.held

    def _array(self, name: str) -> Any:
        value = np.asarray(self.saved[name])
        return value.astype(np.float64) if name == "change" else value

    def __getstate__(self) -> StateDict:
        """The arrays."""
        if self.held is None:
            return {"held": None, "saved": self.saved}
        begun, before = self.held.blocks.begun()
        copied = {name: np.array(value) for name, value in blocks.saved(self.held.blocks).items()}
        return {"held": None, "saved": {**copied, "begun": begun, "before": before, "number": self.held.number}}


def _visit(piece: Piece, memory: PieceBlocks | None, task: Round) -> tuple[Any, PieceBlocks]:
    """Settle the last round; if it is the turn of the piece, visit some examples: changes of g and loss, and calls.

    A round that is asked for again, as an interruption came before its end, begins where it began.
    """
    held = (memory or PieceBlocks()).of(task.solver, piece)
    own, solver, problem = held.blocks, task.solver, piece.problem
    own.end(0.0 if held.number == task.number else task.settle[piece.first])  # nothing if it has been settled
    held.number = task.number
    if piece.first not in task.pieces:
        return None, PieceBlocks(held)
    random, n, threads = np.random.default_rng([task.seed, piece.first]), problem.n_examples, _threads.current()
    own.begin(task.g, task.loss, task.spread)
    orders = [blocks.order(solver, own, task.passes, n, random)]
    orders += [random.permutation(n) for _ in range(solver.kept_passes)]
    calls = 0
    for kept, order in enumerate(orders):
        chunk = np.ascontiguousarray(np.array_split(order, task.chunks)[task.chunk])
        calls += finite_pass(own.pass_over, chunk, kept > 0, threads)[0]
    change = (np.asarray(own.g) - task.g) / task.spread
    return (change, own.loss - task.loss, calls), PieceBlocks(held)


def _settle(piece: Piece, memory: PieceBlocks | None, solver: Any, shares: dict[int, float], saves: bool) -> Any:
    """Settle the last round, and return the sums of the piece's outputs alone, or what a file holds of the blocks."""
    held = (memory or PieceBlocks()).of(solver, piece)
    held.blocks.end(shares[piece.first])
    if saves:
        return blocks.saved(held.blocks), PieceBlocks(held)
    held.blocks.refresh()
    return (np.array(held.blocks.g), held.blocks.loss), PieceBlocks(held)


def _restore(piece: Piece, memory: Any, solver: Any, rounds: int, saved: dict[int, StateDict]) -> Any:
    """Check what a file holds of a piece, and return the sums of its outputs."""
    made = blocks.restored(solver, piece.problem, saved[piece.first], whole=False)
    arrays = made.state()
    made.refresh()
    sums = np.array(made.g), made.loss
    made.restore(*(np.asarray(one, dtype=np.float64) if j == 5 else one for j, one in enumerate(arrays)))
    return sums, PieceBlocks(_Held(made, rounds))


def step(solver: Any, run: Run, state: ShardedState) -> ShardedState:
    """One pass, in rounds."""
    session = run.session
    firsts = session.example_edges[:-1].tolist()
    turns = list(itertools.zip_longest(*(firsts[a:b] for a, b in itertools.pairwise(session.shard_edges.tolist()))))
    seed = int(run.random.integers(1 << 62))
    sizes = dict(zip(firsts, np.diff(session.example_edges).tolist(), strict=True))
    for turn in turns:
        pieces = frozenset(first for first in turn if first is not None)
        chunks = max(1, min(ROUNDS if len(pieces) > 1 else 1, min(map(sizes.__getitem__, pieces)) // ROUND_EXAMPLES))
        for chunk in range(chunks):
            state = _round(solver, run, state, firsts, pieces, (seed, chunk, chunks))
    passes = state.passes + 1
    if passes % blocks.REFRESH == 0:
        state = _refreshed(solver, run, state, firsts)
    total, t = state.total, float(passes)
    total = Mean(total.g + t * state.g, total.loss + t * state.loss, total.weight + t)
    state = replace(state, passes=passes, total=total)
    return replace(state, older=state.newer, newer=total) if blocks.is_mark(passes) else state


def _round(
    solver: Any, run: Run, state: ShardedState, firsts: list[int], pieces: frozenset[int], chunk: tuple[int, int, int]
) -> ShardedState:
    """One round of some pieces."""
    settle = dict(zip(firsts, state.shares.tolist(), strict=True))
    task = Round(solver, state.rounds, pieces, *chunk, state.passes, state.g, state.loss, state.spread, settle)
    found = list(run.each(_visit, task))
    at = [i for i, one in enumerate(found) if one is not None]
    changes, losses = np.array([found[i][0] for i in at]), np.array([found[i][1] for i in at])
    run.counters.argmax += sum(found[i][2] for i in at) / max(1, run.problem.n_examples)
    weights = run.problem.region.best_response(state.g)
    assert weights is not None
    slope, bend = losses + changes @ weights, ridge_of(run.problem).C * (changes @ changes.T)
    own = best_shares(slope, bend)
    shares = np.zeros(len(firsts))
    shares[at] = own
    apart = float(np.trace(bend))
    spread = float(np.clip(bend.sum() / apart, 1.0, len(at))) if apart > 0.0 else 1.0
    return replace(
        state,
        g=state.g + own @ changes,
        loss=state.loss + float(own @ losses),
        shares=shares,
        rounds=state.rounds + 1,
        spread=spread,
    )


def best_shares(slope: FloatArray, bend: FloatArray) -> FloatArray:
    """Maximize ``slope'a - 1/2 a'bend a`` over shares from 0 to 1: coordinate ascent from the best equal ones."""
    whole = float(bend.sum())
    share = np.full(len(slope), np.clip(slope.sum() / whole, 0.0, 1.0) if whole > 0.0 else 1.0)
    for _ in range(_SWEEPS):
        before = share.copy()
        for s in range(len(share)):
            rest = slope[s] - bend[s] @ share + bend[s, s] * share[s]
            share[s] = float(rest > 0.0) if rest >= bend[s, s] or rest <= 0.0 else rest / bend[s, s]
        if np.abs(share - before).max(initial=0.0) <= _SMALL:
            break
    return share


def _refreshed(solver: Any, run: Run, state: ShardedState, firsts: list[int]) -> ShardedState:
    """``g`` and the loss from the outputs themselves: sums of changes drift by rounding."""
    settle = dict(zip(firsts, state.shares.tolist(), strict=True))
    g, loss = run.sums(_settle, solver, settle, False)
    return replace(state, g=np.array(g), loss=float(loss))


_VECTORS = ("total", "older", "newer")


def state_dict(solver: Any, state: ShardedState) -> StateDict:
    """The sums, and the blocks of every piece."""
    session, firsts = state.run.session, state.run.session.example_edges[:-1].tolist()
    settle = dict(zip(firsts, state.shares.tolist(), strict=True))
    pieces = list(state.run.each(_settle, solver, settle, True))
    assert len(pieces) == session.n_pieces
    saved: StateDict = {"g": np.array(state.g), "loss": state.loss, "rounds": state.rounds, "spread": state.spread}
    for name in _VECTORS:
        mean = getattr(state, name)
        saved |= {f"{name}.g": mean.g, f"{name}.loss": mean.loss, f"{name}.weight": mean.weight}
    for i, one in enumerate(pieces):
        saved |= {f"piece{i}.{name}": np.array(value) for name, value in one.items()}
    return {**saved, "passes": state.passes}


def load_state_dict(solver: Any, run: Run, passes: int, saved: StateDict) -> ShardedState:
    """The same blocks with their pieces, once their outputs are found legal and the sums true."""
    n, firsts = run.problem.n_weights, run.session.example_edges[:-1].tolist()
    means = {
        name: Mean(vector(saved, f"{name}.g", n), number(saved, f"{name}.loss"), number(saved, f"{name}.weight"))
        for name in _VECTORS
    }
    rounds = int(number(saved, "rounds", least=0))
    spread = number(saved, "spread", least=1)
    g, loss = vector(saved, "g", n), number(saved, "loss")
    names = (*blocks.ARRAYS, "memory")
    pieces = {
        first: {name: array(saved, f"piece{i}.{name}", _kind(saved, f"piece{i}.{name}"), (None,)) for name in names}
        for i, first in enumerate(firsts)
    }
    own_g, own_loss = run.sums(_restore, solver, rounds, pieces)
    blocks.check_sums(g, loss, np.asarray(own_g), float(own_loss))
    require(spread <= max(1, len(firsts)), f"a spread of {spread:g} for {len(firsts)} shards")
    return ShardedState(run, g, loss, np.zeros(len(firsts)), **means, rounds=rounds, spread=spread, passes=passes)


def _kind(saved: StateDict, name: str) -> Any:
    value = saved.get(name)
    return value.dtype if isinstance(value, np.ndarray) else np.float64

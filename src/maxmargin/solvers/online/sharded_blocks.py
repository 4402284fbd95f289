"""Block-coordinate Frank-Wolfe on several shards.

Every shard keeps the blocks of its own examples. In a round each visits some of them, beginning at the weights of all
shards, and sends the change that this makes of ``g`` and the loss. A quadratic program finds how much of each change,
from nothing to all, together increase the dual most: it never falls, as nothing of all changes leaves it as it is.
Shards are told their shares with the next round.

Changes of shards that are alike add up to more than is good for the dual. In a shard the dual is therefore taken to
bend ``spread`` times as much (Ma, Smith, Jaggi, Jordan, Richtarik and Takac 2015): as much more as the changes of the
last round were together than apart, from 1 to the number of shards.

An iteration is a pass in up to :data:`ROUNDS` rounds: the more, the less shards do without knowing of each other. More
shards need more passes for the same gap, as visits see the weights of other shards only once a round. Of several pieces
in a shard, one after the other has its turn, alone in memory: between turns the blocks are arrays on disk. Visits to
kept outputs come when all pieces have had their turn. With one shard all changes count, and passes are those of one
process, but for the order of visits.

The weights proposed are those of the average of ``g`` over the visits, later rounds counting more.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin import _threads
from maxmargin._scratch import Slot
from maxmargin.execution import Piece
from maxmargin.optimization.active_set import ActiveSet
from maxmargin.optimization.checkpoints.saved import StateDict, number, require, value_of, vector
from maxmargin.optimization.run import Run
from maxmargin.solvers.online import blocks
from maxmargin.solvers.online.base import finite_pass, ridge_of
from maxmargin.structures.base import FloatArray, IntArray

ROUNDS, ROUND_EXAMPLES = 64, 32
"""Rounds of a pass: as many, but of no fewer examples of a shard than this. On the OCR letters, where one process alone
needs 11 passes, 16, 32 and 64 rounds need 22, 18 and 15 of them in 2 shards, 60, 33 and 24 in 4."""

_SWEEPS, _SMALL = 1000, 1e-12
"""Sweeps of the quadratic program at most, and the change at which they end."""


@dataclass(frozen=True, eq=False)
class Mean:
    """Sums over rounds, of which the t-th counts t times: of ``g``, the loss, and the counts."""

    g: FloatArray
    loss: float = 0.0
    weight: float = 0.0


@dataclass(frozen=True, eq=False)
class ShardedState:
    """What the driver knows; the blocks are with the data.

    Attributes:
        run: where they are.
        g, loss: sums over all shards.
        shares: how much counts of the changes of each piece in its last round.
        rounds: how many there were.
        spread: how much more the dual bends in a shard.
        passes: how many there were.
        total, older, newer: sums for the average: of all rounds, and at two marks.
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
        return cls(run, none.g, 0.0, np.ones(run.session.n_pieces), none, none, none)

    def average(self) -> tuple[FloatArray, float]:
        """``g`` and the loss, averaged over the rounds since the mark before the last."""
        weight = self.total.weight - self.older.weight
        if self.passes < 2 or weight <= 0.0:
            return self.g, self.loss
        return (self.total.g - self.older.g) / weight, (self.total.loss - self.older.loss) / weight


@dataclass(frozen=True, eq=False)
class Round:
    """What a round is about: see :func:`_visit`.

    Attributes:
        solver: the settings.
        seed: of the order of visits in a pass; ``chunk`` of ``chunks`` of them are those of this round.
        sweep: 0 for visits that ask for new outputs, more for those to the kept ones alone; None for all.
        passes: how many there were.
        g, loss, spread: those of the state.
        settle: the share that counts of the changes in the last round of each piece.
        alone: whether no other shard has a round now, so that all changes count.
        leaves: whether the piece is not needed in the next round.
    """

    solver: Any
    seed: int
    chunk: int
    chunks: int
    sweep: int | None
    passes: int
    g: FloatArray
    loss: float
    spread: float
    settle: dict[int, float]
    alone: bool
    leaves: bool


class PieceBlocks:
    """The memory of a piece: compiled blocks, changed in place, or the arrays from which they are made, on disk.

    Args:
        blocks: compiled blocks; None for those of the arrays, or new ones if there are none.
        slot: holds the arrays of blocks that were packed; None if they never were.
        mean_gap: the number among the arrays.
    """

    def __init__(self, blocks: Any = None, slot: Slot | None = None, mean_gap: float = 0.0) -> None:
        self.blocks, self.slot, self.mean_gap = blocks, slot, mean_gap

    def of(self, solver: Any, piece: Piece) -> Any:
        """The compiled blocks."""
        if self.blocks is not None:
            return self.blocks
        made = blocks.made(solver, piece.problem)
        if self.slot is not None:
            *arrays, memory = self.slot.read()
            made.unpack(*arrays[:_MEAN_GAP], self.mean_gap, *arrays[_MEAN_GAP:])
            made.examples.remember(memory)
        return made

    def holding(self, made: Any, several: bool) -> PieceBlocks:
        """The memory of blocks that have changed; packed where a shard has ``several`` pieces.

        Then nothing that belongs to the data stays, neither examples nor vectors of the length of the weights.
        """
        return PieceBlocks(made, self.slot).packed() if several else PieceBlocks(made)

    def packed(self) -> PieceBlocks:
        """The same as arrays on disk."""
        if self.blocks is None:
            return self
        arrays, mean_gap = _arrays(self.blocks)
        slot = self.slot or Slot()
        slot.write(arrays)
        return PieceBlocks(None, slot, mean_gap)

    def active_set(self, solver: Any, piece: Piece) -> ActiveSet:
        """The outputs with weight, of rounds that are settled."""
        return blocks.active_set(self.of(solver, piece))

    def __reduce__(self) -> tuple[Any, ...]:
        if self.blocks is None:
            return _unpickled, ([] if self.slot is None else self.slot.read(), self.mean_gap)
        return _unpickled, _arrays(self.blocks)


_MEAN_GAP = blocks.PACKED.index("mean_gap")


def _arrays(made: Any) -> tuple[list[Any], float]:
    """What blocks are made from again: arrays, with the oracle's memory, and the mean gap."""
    found = [*made.packed(), np.array(made.examples.memory())]
    mean_gap = float(found.pop(_MEAN_GAP))
    return found, mean_gap


def _unpickled(arrays: list[Any], mean_gap: float) -> PieceBlocks:
    if not arrays:
        return PieceBlocks()
    slot = Slot()
    slot.write(arrays)
    return PieceBlocks(None, slot, mean_gap)


def _visit(piece: Piece, memory: PieceBlocks | None, task: Round) -> tuple[Any, PieceBlocks]:
    """Settle the last round, and visit some examples.

    Returns ``g`` and its average over the visits, the same of the loss, and calls of the oracle; of several shards only
    the changes, which are to be combined.
    """
    solver, n, threads = task.solver, piece.problem.n_examples, _threads.current()
    memory = memory or PieceBlocks()
    own = memory.of(solver, piece)
    own.end(task.settle[piece.first])
    random = np.random.default_rng([task.seed, piece.first])
    own.begin(task.g, task.loss, task.spread)
    orders = [blocks.order(solver, own, task.passes, n, random)]
    orders += [random.permutation(n) for _ in range(solver.kept_passes)]
    calls = 0
    first, last = n * task.chunk // task.chunks, n * (task.chunk + 1) // task.chunks
    for kept, order in enumerate(orders):
        if task.sweep in (None, kept):
            calls += finite_pass(own.pass_over, order[first:last], kept > 0, threads)[0]
    g, mean = np.array(own.g), np.empty(len(task.g))
    found = g, mean, own.loss, own.average(mean), calls
    if task.alone:
        own.end(1.0)
        return found, memory.holding(own, task.leaves)
    for one in (g, mean):
        one -= task.g
        one /= task.spread
    return (g, mean, found[2] - task.loss, found[3] - task.loss, calls), memory.holding(own, task.leaves)


def _refresh(piece: Piece, memory: PieceBlocks | None, solver: Any, shares: dict[int, float], several: bool) -> Any:
    """Settle the last round, and return the sums of the piece's outputs alone."""
    memory = memory or PieceBlocks()
    own = memory.of(solver, piece)
    own.end(shares[piece.first])
    own.refresh()
    return (np.array(own.g), own.loss), memory.holding(own, several)


def _saved(piece: Piece, memory: PieceBlocks | None, solver: Any, shares: dict[int, float], several: bool) -> Any:
    """Settle the last round, and return what a file holds of the blocks."""
    memory = memory or PieceBlocks()
    own = memory.of(solver, piece)
    own.end(shares[piece.first])
    return blocks.saved_piece(own), memory.holding(own, several)


def _restore(piece: Piece, memory: Any, solver: Any, saved: dict[int, StateDict], several: bool) -> Any:
    """Check what a file holds of a piece, and return the sums of its outputs."""
    made = blocks.restored_piece(solver, piece.problem, saved[piece.first])
    held = PieceBlocks(made).packed()
    made.refresh()
    sums = np.array(made.g), made.loss
    return sums, held if several else PieceBlocks(held.of(solver, piece))


def _several(run: Run) -> bool:
    """Whether shards have several pieces, of which one at a time is in memory."""
    return run.session.n_pieces > run.session.n_shards


def _shares(state: ShardedState) -> dict[int, float]:
    """The share that counts of the changes in the last round of each piece, by its first example."""
    return dict(zip(state.run.session.example_edges[:-1].tolist(), state.shares.tolist(), strict=True))


def step(solver: Any, run: Run, state: ShardedState) -> ShardedState:
    """One pass, in rounds."""
    session = run.session
    starts, sizes = session.shard_edges[:-1], np.diff(session.shard_edges)
    examples, seed = np.diff(session.example_edges), int(run.random.integers(1 << 62))
    # Visits to kept outputs that came at once after those to the same piece would find little to do.
    sweeps = range(1 + solver.kept_passes) if _several(run) else [None]
    turns = np.random.default_rng(seed).permutation(int(sizes.max(initial=0))).tolist()
    for sweep, turn in itertools.product(sweeps, turns):
        pieces = (starts + turn)[sizes > turn]
        chunks = 1 if len(pieces) == 1 else max(1, min(ROUNDS, int(examples[pieces].min()) // ROUND_EXAMPLES))
        for chunk in range(chunks):
            task = Round(
                solver,
                seed,
                chunk,
                chunks,
                sweep,
                state.passes,
                state.g,
                state.loss,
                state.spread if len(pieces) > 1 else 1.0,
                _shares(state),
                alone=len(pieces) == 1,
                leaves=_several(run) and chunk == chunks - 1,
            )
            state = _combined(run, state, pieces, run.turn(turn, _visit, task))
    passes = state.passes + 1
    if passes % blocks.REFRESH == 0:
        # From the outputs themselves, as sums of changes drift by rounding.
        g, loss = run.sums(_refresh, solver, _shares(state), _several(run))
        state = replace(state, g=np.array(g), loss=float(loss))
    state = replace(state, passes=passes)
    return replace(state, older=state.newer, newer=state.total) if blocks.is_mark(passes) else state


def _combined(run: Run, state: ShardedState, pieces: IntArray, found: list[Any]) -> ShardedState:
    """The state after a round of some pieces, by the changes that they found."""
    run.counters.argmax += sum(one[4] for one in found) / max(1, run.problem.n_examples)
    shares, spread = np.array(state.shares), state.spread
    if len(found) == 1:
        shares[pieces] = 1.0
        g, mean, loss, mean_loss, _ = found[0]
    else:
        changes, means, losses, mean_losses, _ = (np.array(one) for one in zip(*found, strict=True))
        weights = run.problem.region.best_response(state.g)
        assert weights is not None
        slope, bend = losses + changes @ weights, ridge_of(run.problem).C * (changes @ changes.T)
        shares[pieces] = own = best_shares(slope, bend)
        apart = float(np.trace(bend))
        spread = float(np.clip(bend.sum() / apart, 1.0, len(found))) if apart > 0.0 else 1.0
        g, loss = state.g + own @ changes, state.loss + float(own @ losses)
        mean, mean_loss = state.g + own @ means, state.loss + float(own @ mean_losses)
    t, total = float(state.rounds + 1), state.total
    mean = t * mean  # which may be read-only
    mean += total.g
    total = Mean(mean, total.loss + t * mean_loss, total.weight + t)
    return replace(state, g=g, loss=loss, shares=shares, rounds=state.rounds + 1, spread=spread, total=total)


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


_VECTORS = ("total", "older", "newer")


def state_dict(solver: Any, state: ShardedState) -> StateDict:
    """The sums, and the blocks of every piece."""
    pieces = state.run.each(_saved, solver, _shares(state), _several(state.run))
    saved: StateDict = {"g": np.array(state.g), "loss": state.loss, "rounds": state.rounds, "spread": state.spread}
    for name in _VECTORS:
        mean = getattr(state, name)
        saved |= {f"{name}.g": mean.g, f"{name}.loss": mean.loss, f"{name}.weight": mean.weight}
    for i, one in enumerate(pieces):
        saved |= {f"piece{i}.{name}": value for name, value in one.items()}
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
    pieces = {
        first: {name: value_of(saved, f"piece{i}.{name}") for name in (*blocks.PIECE, "mean_gap")}
        for i, first in enumerate(firsts)
    }
    own_g, own_loss = run.sums(_restore, solver, pieces, _several(run))
    blocks.check_sums(g, loss, np.asarray(own_g), float(own_loss))
    require(spread <= max(1, run.session.n_shards), f"a spread of {spread:g} for {run.session.n_shards} shards")
    return ShardedState(run, g, loss, np.ones(len(firsts)), **means, rounds=rounds, spread=spread, passes=passes)

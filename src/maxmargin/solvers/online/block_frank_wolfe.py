"""Block-coordinate Frank-Wolfe (Lacoste-Julien, Jaggi, Schmidt and Pletscher 2013), with extensions from later work.

The dual of the penalty form, ``max_z sum_i loss_i(z_i) - C/2 ||P(-g(z))||^2``, is a maximum over a product of
polytopes. One iteration is a pass: it visits the examples one by one, finds the output that violates the margin most at
the current weights ``w = -C P(g)`` and moves the example's dual variables toward it, at once for the next example to
see. No step size is chosen, and the dual variables are a feasible point of the other player: certificates are free.

* *Caching* (Shah, Kolmogorov and Lampert 2015; Osokin and others 2016): every example keeps the outputs it has met,
  with their inner products. ``kept_passes`` passes over these alone follow each pass with new outputs, and with
  ``cache > 0`` a visit asks for no new output where a kept one has a gap of that share of the last one seen.
* *Steps* between kept outputs: toward the best ("frank-wolfe"), or from the least active one where that promises
  more ("away"), or from the least to the best ("pairwise", Lacoste-Julien and Jaggi 2015): up to ``steps`` of them a
  visit, so that a visit nearly solves its example.
* *Sampling* by gap (Osokin and others 2016): examples are drawn with probability growing with the gap last seen there;
  every tenth pass visits all.
* *Averaging*: the weights proposed are those of the average of ``g`` over the visits of the last eighth to quarter of
  the passes, but at least the last two, later ones counting more.

*Warm starts*: a run ends with an :class:`ActiveSet`, outputs and their dual variables, from which another run may
start, whatever its penalty, example weights or loss: outputs that are feasible for its problem are kept, the gold
outputs get the remaining weight.

Cost of a pass: one argmax of every example, its scores once, where a new output differs its features twice; a kept pass
a fifth of that. Memory: the parts in which kept outputs (``outputs`` per example at most) differ from the gold one,
five weight-sized vectors, and one more for each further thread.

*Threads*: with ``group > 1`` so many examples at a time are visited at the same weights, by all threads: each finds its
most violated output and where its dual variables should go. Then one after the other moves as far along that way as
increases the dual most; where that is less than half of the way, the example looks once more among its kept outputs. So
the dual never falls, and weights have the same bits for any number of threads. It costs passes, a tenth to a fifth with
16 of several thousand examples, and threads wait for each other every few visits: only for cores that nobody else uses.
With ``group=1``, and where the argmax is written in Python, one thread does all. Deterministic given ``random_state``.

*Shards*: each passes over its own examples from the weights of all, see
:mod:`maxmargin.solvers.online.sharded_blocks`. A warm start from an active set is not used then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin import _checks, _threads
from maxmargin.optimization.active_set import ActiveSet
from maxmargin.optimization.certificate import Proposal
from maxmargin.optimization.checkpoints.saved import StateDict, count, require
from maxmargin.optimization.run import Run
from maxmargin.optimization.solver import Start
from maxmargin.solvers.online import blocks, sharded_blocks
from maxmargin.solvers.online.base import OnlineSolver, finite_pass, in_one_place
from maxmargin.solvers.online.sharded_blocks import ShardedState
from maxmargin.structures.base import FloatArray

_MOST = (1 << 31) - 1
"""Kernels count steps and outputs in 32 bits."""

SAMPLINGS = ("uniform", "gap")


@dataclass(frozen=True, eq=False)
class BlockState:
    """The compiled blocks, which a pass changes in place, the weights of a warm start and the number of passes."""

    blocks: Any
    start: FloatArray | None = None
    passes: int = 0


@dataclass(frozen=True, kw_only=True)
class BlockFrankWolfe(OnlineSolver):
    """Settings of block-coordinate Frank-Wolfe.

    Attributes:
        direction: "pairwise", "away" or "frank-wolfe".
        steps: how many of them a visit may take.
        sampling: "uniform" (every example once a pass, in random order) or "gap".
        kept_passes: passes over the kept outputs alone after each pass.
        cache: ask for no new output where a kept one has at least this share of the example's last gap; 0 always asks.
        outputs: how many outputs an example keeps.
        average: whether the weights of the average are proposed, or those of the last point.
        group: how many examples are visited at the same weights, by several threads; 1 visits them one by one.
    """

    direction: str = "pairwise"
    steps: int = 10
    sampling: str = "uniform"
    kept_passes: int = 2
    cache: float = 0.0
    outputs: int = 30
    average: bool = True
    group: int = 1
    max_iter: int = 10_000
    needs = ("ridge",)
    takes_slack = ("linear",)
    shards_unsupported = ""
    whole_shards = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.one_of("direction", self.direction, blocks.DIRECTIONS)
        _checks.one_of("sampling", self.sampling, SAMPLINGS)
        _checks.integer("steps", self.steps, least=1, most=1_000_000)
        _checks.integer("kept_passes", self.kept_passes, least=0, most=_MOST)
        _checks.integer("outputs", self.outputs, least=2, most=_MOST)
        _checks.integer("group", self.group, least=1, most=1 << 16)
        _checks.number("cache", self.cache, least=0, most=1)

    def init(self, run: Run, start: Start) -> BlockState | ShardedState:
        """The gold outputs with weight 1 and zero weights; or the feasible outputs of the given active set."""
        weights = start.weights_for(run.problem)  # checked, but an active set cannot be found from weights
        if not in_one_place(run):
            return ShardedState.first(run)
        made = blocks.made(self, run.whole)
        # Of several good outputs the set holds pairs, and which pairs count depends on the good sets.
        given = None if run.whole.good is not None else start.active_set
        active_set = None if given is None else given.feasible(run.whole.structure)
        if active_set is None:
            return BlockState(made)
        finite_pass(made.seed, *active_set.arrays())
        return BlockState(made, None if start.weights is None else weights)

    def state_dict(self, state: BlockState | ShardedState) -> StateDict:
        """The kept outputs by the parts in which they differ from the gold ones, and the sums."""
        if isinstance(state, ShardedState):
            return sharded_blocks.state_dict(self, state)
        return {**blocks.saved(state.blocks), "passes": state.passes}

    def load_state_dict(self, run: Run, saved: StateDict) -> BlockState | ShardedState:
        """The same blocks over a new view, once their outputs are found legal and their sums true."""
        passes = count(saved, "passes")
        require(passes == run.counters.iterations, f"{passes} passes in {run.counters.iterations} iterations")
        if not in_one_place(run):
            return sharded_blocks.load_state_dict(self, run, passes, saved)
        return BlockState(blocks.restored(self, run.whole, saved), None, passes)

    def step(self, run: Run, state: BlockState | ShardedState) -> BlockState | ShardedState:
        """One pass, and those over the kept outputs."""
        if isinstance(state, ShardedState):
            return sharded_blocks.step(self, run, state)
        own, n, threads = state.blocks, run.whole.n_examples, _threads.current()
        order = blocks.order(self, own, state.passes, n, run.random)
        calls, _ = finite_pass(own.pass_over, order, False, threads)
        run.counters.argmax += calls / max(n, 1)
        for _ in range(self.kept_passes):
            finite_pass(own.pass_over, run.random.permutation(n), True, threads)
        passes = state.passes + 1
        if passes % blocks.REFRESH == 0:
            own.refresh()
        if self.average and blocks.is_mark(passes):
            own.mark()
        return replace(state, passes=passes)

    def active_set(self, state: BlockState | ShardedState) -> ActiveSet | None:
        """The active outputs of every example; None if they are in several shards."""
        return None if isinstance(state, ShardedState) else blocks.active_set(state.blocks)

    def propose(self, run: Run, state: BlockState | ShardedState) -> Sequence[Proposal]:
        """The weights of the average (or the last point), with the dual point that gives the better bound.

        Before the first pass also those of a warm start, which may be such an average.
        """
        region, started = run.problem.region, None
        if isinstance(state, ShardedState):
            g, loss = state.g, state.loss
            mean, mean_loss = state.average() if self.average else (g, loss)
        else:
            loss, started = state.blocks.loss, state.start if state.passes == 0 else None
            g = np.asarray(state.blocks.g)  # as it stands: the certificate comes before the next pass
            mean, mean_loss = g, loss
            if self.average and state.passes > 1:
                mean = np.empty(len(g))
                mean_loss = state.blocks.average(mean)
        weights = region.best_response(mean)
        assert weights is not None
        # The bound instead of the average itself, which would lie beside the weights while these are certified.
        dual = max(region.dual(g, loss), region.dual(mean, mean_loss))
        return [Proposal(w, g, loss, dual=dual) for w in (weights, *([] if started is None else [started]))]

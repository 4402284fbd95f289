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

*Threads*: of many examples, :data:`GROUP` at a time are visited at the same weights, by all threads: each finds its
most violated output and where its dual variables should go. Then one after the other moves as far along that way as
increases the dual most; where that is less than half of the way, the example looks once more among its kept outputs. So
the dual never falls, and weights have the same bits for any number of threads. Below ``2 GROUP_SHARE`` examples, and
where the argmax is written in Python, one thread does all. Deterministic given ``random_state``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maxmargin import _checks, _kernels, _threads
from maxmargin.optimization.active_set import ActiveSet
from maxmargin.optimization.base import Run, Start, StateDict
from maxmargin.optimization.certificate import Proposal
from maxmargin.optimization.saved import array, count, require, value_of
from maxmargin.solvers.online.base import OnlineSolver, finite_pass, ridge_of, signs_of, with_memory
from maxmargin.structures._arrays import as_bytes
from maxmargin.structures.base import FloatArray, IntArray

DIRECTIONS = ("frank-wolfe", "away", "pairwise")
_MOST = (1 << 31) - 1
"""Kernels count steps and outputs in 32 bits."""

SAMPLINGS = ("uniform", "gap")
REFRESH = 20
"""Passes after which ``g`` is recomputed, as sums of changes drift by rounding."""
SWEEP = 10
"""With sampling by gap, one pass in this many visits all examples: gaps not seen for long are out of date."""


GROUP, GROUP_SHARE = 16, 512
"""Examples visited at the same weights: as many, but at most one in so many of all."""


def group_of(n_examples: int) -> int:
    """How many examples are visited at the same weights."""
    return max(1, min(GROUP, n_examples // GROUP_SHARE))


def _is_mark(passes: int) -> bool:
    """Whether an average may begin after this number of passes: after each at first, then at growing distances."""
    at = 1
    while at < passes:
        at += max(1, at // 8)
    return at == passes


_BLOCKS = {
    **{"starts": np.int64, "alpha": np.float64, "idle": np.int32, "part_starts": np.int64, "part": np.int32},
    **dict.fromkeys(("change", "g", "late", "w", "gap"), np.float64),
    **{"asked": np.uint8, "older": np.float64, "newer": np.float64, "numbers": np.float64},
}
"""The arrays of the compiled blocks and their types, in the order of their ``state`` and ``restore``."""

_ROOM = 1 << 24
"""Bytes of inner products that any file may ask for."""

_SUMS = 1e-6
"""Relative error of sums of changes: they drift by rounding between two refreshes."""


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
    """

    direction: str = "pairwise"
    steps: int = 10
    sampling: str = "uniform"
    kept_passes: int = 2
    cache: float = 0.0
    outputs: int = 30
    average: bool = True
    max_iter: int = 10_000
    needs = ("ridge",)
    takes_slack = ("linear",)

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.one_of("direction", self.direction, DIRECTIONS)
        _checks.one_of("sampling", self.sampling, SAMPLINGS)
        _checks.integer("steps", self.steps, least=1, most=1_000_000)
        _checks.integer("kept_passes", self.kept_passes, least=0, most=_MOST)
        _checks.integer("outputs", self.outputs, least=2, most=_MOST)
        _checks.number("cache", self.cache, least=0, most=1)

    def init(self, run: Run, start: Start) -> BlockState:
        """The gold outputs with weight 1 and zero weights; or the feasible outputs of the given active set."""
        weights = start.weights_for(run.whole)  # checked, but an active set cannot be found from weights
        blocks = self._blocks(run, run.whole.examples())
        # Of several good outputs the set holds pairs, and which pairs count depends on the good sets.
        given = None if run.whole.good is not None else start.active_set
        active_set = None if given is None else given.feasible(run.whole.structure)
        if active_set is None:
            return BlockState(blocks)
        finite_pass(blocks.seed, *active_set.arrays())
        return BlockState(blocks, None if start.weights is None else weights)

    def _blocks(self, run: Run, examples: Any) -> Any:
        return _kernels.BlockFrankWolfe(
            examples,
            *ridge_of(run.whole),
            signs_of(run.whole),
            DIRECTIONS.index(self.direction),
            self.steps,
            self.outputs,
            float(self.cache),
            0.01 if self.cache else 0.0,
            group_of(run.whole.n_examples),
        )

    def state_dict(self, state: BlockState) -> StateDict:
        """The kept outputs by the parts in which they differ from the gold ones, and the sums."""
        return {
            **dict(zip(_BLOCKS, state.blocks.state(), strict=True)),
            "memory": np.asarray(state.blocks.examples.memory()),
            "passes": state.passes,
        }

    def load_state_dict(self, run: Run, saved: StateDict) -> BlockState:
        """The same blocks over a new view, once their outputs are found legal and their sums true."""
        passes = count(saved, "passes")
        require(passes == run.counters.iterations, f"{passes} passes in {run.counters.iterations} iterations")
        arrays = self._checked_arrays(run, saved)
        blocks = self._blocks(run, with_memory(run.whole.examples(), array(saved, "memory", np.float64, (None,))))
        try:
            blocks.restore(*arrays.values())
            self._check_sums(run, blocks)
            blocks.restore(*arrays.values())  # the check has moved them by rounding
        except (ArithmeticError, LookupError, TypeError) as error:
            raise ValueError(str(error)) from None
        return BlockState(blocks, None, passes)

    def _checked_arrays(self, run: Run, saved: StateDict) -> StateDict:
        """The arrays of the blocks, finite, and no more outputs than are ever kept."""
        n = run.whole.structure.n_examples
        values = {**saved, "change": np.asarray(value_of(saved, "change"), dtype=np.float64)}
        arrays = {
            name: array(values, name, kind, ((n + 1 if name == "starts" else None),)) for name, kind in _BLOCKS.items()
        }
        starts, alpha = arrays["starts"], arrays["alpha"]
        kept = np.diff(starts)
        require(starts[0] == 0 and starts[-1] == len(alpha) and (kept > 0).all(), "an example has no output")
        # Beyond the limit only outputs with mass are kept: their inner products must not take more than the file would.
        many = kept[kept > self.outputs].astype(np.float64)
        room = 10 * sum(one.nbytes for one in arrays.values()) + _ROOM
        require(4.0 * (many**2).sum() <= room, f"an example has {int(many.max(initial=0))} outputs")
        total = np.add.reduceat(alpha, starts[:-1]) if n else np.ones(0)
        require((np.abs(total - 1.0) <= _SUMS).all(), "the dual variables of an example do not sum to 1")
        require((arrays["change"] != 0.0).all(), "an output has a part without a change")
        require((arrays["gap"] >= 0.0).all(), "a gap is negative")
        return arrays

    def _check_sums(self, run: Run, blocks: Any) -> None:
        """ValueError unless the outputs are legal, so that bounds hold, and the sums over them are theirs."""
        problem = run.whole
        # Of several good outputs the set holds pairs, and points of a relaxation are not outputs.
        if problem.good is None and not problem.relaxed and problem.rescaling != "slack":
            held = self.active_set(BlockState(blocks))
            legal = held.feasible(problem.structure)
            require(legal is not None and len(legal.alpha) == len(held.alpha), "an output that it keeps is not legal")
        g, loss = np.array(blocks.g), blocks.loss
        blocks.refresh()
        again = np.asarray(blocks.g)
        scale = 1.0 + np.abs(again).max(initial=0.0)
        require((np.abs(g - again) <= _SUMS * scale).all(), "its feature sums are not those of its outputs")
        require(abs(loss - blocks.loss) <= _SUMS * (1.0 + abs(loss)), "its loss is not that of its outputs")

    def _order(self, run: Run, state: BlockState) -> IntArray:
        """The examples of the next pass."""
        n = run.whole.structure.n_examples
        if self.sampling == "gap" and state.passes % SWEEP:
            gaps = np.array(state.blocks.gap)
            if gaps.sum() > 0.0:
                share = 0.9 * gaps / gaps.sum() + 0.1 / n
                return run.random.choice(n, size=n, p=share / share.sum()).astype(np.int64)
        return run.random.permutation(n)

    def step(self, run: Run, state: BlockState) -> BlockState:
        """One pass, and those over the kept outputs."""
        blocks, n = state.blocks, run.whole.structure.n_examples
        calls, _ = finite_pass(blocks.pass_over, self._order(run, state), False, _threads.current())
        run.counters.argmax += calls / max(n, 1)
        for _ in range(self.kept_passes):
            finite_pass(blocks.pass_over, run.random.permutation(n), True, _threads.current())
        passes = state.passes + 1
        if passes % REFRESH == 0:
            blocks.refresh()
        if self.average and _is_mark(passes):
            blocks.mark()
        return replace(state, passes=passes)

    def active_set(self, state: BlockState) -> ActiveSet:
        """The active outputs of every example."""
        starts, alpha, part_starts, part, value = state.blocks.active_set()
        # Small numbers as bytes: a fitted estimator keeps the active set, also when it is pickled.
        return ActiveSet(starts, alpha, part_starts, part, as_bytes(value))

    def propose(self, run: Run, state: BlockState) -> Sequence[Proposal]:
        """The weights of the average (or the last point), with the dual point that gives the better bound.

        Before the first pass also those of a warm start, which may be such an average.
        """
        region, loss = run.whole.region, state.blocks.loss
        g = np.asarray(state.blocks.g)  # as it stands: the certificate comes before the next pass
        mean, mean_loss = g, loss
        if self.average and state.passes > 1:
            mean = np.empty(len(g))
            mean_loss = state.blocks.average(mean)
        weights = region.best_response(mean)
        assert weights is not None
        # The bound instead of the average itself, which would lie beside the weights while these are certified.
        dual = max(region.dual(g, loss), region.dual(mean, mean_loss))
        started = [state.start] if state.start is not None and state.passes == 0 else []
        return [Proposal(w, g, loss, dual=dual) for w in (weights, *started)]

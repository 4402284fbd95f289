"""A solver: a frozen record of settings with a few methods.

``solve`` (in :mod:`maxmargin.optimization.loop`) owns the loop, the clock, the certificate and the best weights so far;
a solver only says what it needs of a problem, how to start, how to step and what to propose for certification.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, cast

import numpy as np

from maxmargin import _checks
from maxmargin.optimization.active_set import ActiveSet
from maxmargin.optimization.certificate import Certificate, Proposal
from maxmargin.optimization.checkpoints.saved import StateDict
from maxmargin.optimization.run import Run
from maxmargin.problem import RESCALINGS, SLACKS, BaseProblem
from maxmargin.regions import CAPABILITIES
from maxmargin.structures._arrays import array_of
from maxmargin.structures.base import FloatArray, PointStatus


@dataclass(frozen=True)
class Start:
    """Where a run starts.

    Attributes:
        weights: the weights; None for zeros.
        z: a packed feasible point of the structures player, for Euclidean geometry; None for the gold outputs.
        potentials: those of its distributions, for entropic geometry; None for the geometry's center.
        active_set: outputs and their weights, for solvers over outputs; None for the gold outputs.
        spent: whether the run may drop all of these once it has started, as nobody else needs them.
    """

    weights: FloatArray | None = None
    z: FloatArray | None = None
    potentials: FloatArray | None = None
    active_set: ActiveSet | None = None
    spent: bool = False

    def __post_init__(self) -> None:
        if self.active_set is not None:
            _checks.instance("active_set", self.active_set, ActiveSet, "an ActiveSet or None")
        if self.potentials is not None:
            given = array_of(self.potentials, "potentials", "fiub", "a packed vector of numbers")
            object.__setattr__(self, "potentials", given)

    def spend(self) -> None:
        """Drop what is not needed any more, if that is allowed."""
        if self.spent:
            for name in ("weights", "z", "potentials", "active_set"):
                object.__setattr__(self, name, None)

    def weights_for(self, problem: BaseProblem) -> FloatArray:
        """The start weights, moved into the region; zeros by default."""
        if self.weights is None:
            return np.zeros(problem.n_weights)
        given = array_of(self.weights, "start weights", "fiub", f"{problem.n_weights} finite numbers")
        if given.shape != (problem.n_weights,):
            raise ValueError(
                f"start weights have shape {given.shape}, the problem needs ({problem.n_weights},); "
                "fit without warm_start when the features or the labels change"
            )
        return problem.region.project(np.array(given, dtype=np.float64))

    def packed(self, name: str) -> FloatArray | None:
        """The given ``z`` or ``potentials`` as an array of numbers; None if there are none."""
        given = getattr(self, name)
        if given is None:
            return None
        called = "the start point z" if name == "z" else name
        return np.asarray(array_of(given, called, "fiub", "a packed vector of numbers"), dtype=np.float64)

    def z_for(self, run: Run) -> FloatArray:
        """The start point of the structures player if it fits, else the gold outputs; the data in this process.

        It may come from other data with as many parts; a point that is not feasible for these would spoil the
        certificate, so it is projected.
        """
        problem, given = run.whole, self.packed("z")
        if given is None or given.shape != (problem.n_parts,):
            return problem.gold
        run.counters.projections += problem.n_examples
        points = problem.structure.project(given)
        return points.z if (points.status == PointStatus.OK).all() else problem.gold


class Solver(ABC):
    """An algorithm's settings. Subclasses are frozen dataclasses with keyword-only fields."""

    max_iter = 1000
    """Iteration limit when the caller gives none."""

    direct = False
    """Whether the first step is also the last, whatever the limit."""

    minimizes = True
    """Whether the method minimizes the objective; one that does not keeps its last weights and ends when it is done."""

    takes_rescaling: tuple[str, ...] = RESCALINGS
    takes_slack: tuple[str, ...] = SLACKS
    takes_good = True
    """The hinges that the method can handle; whether several outputs of an example may be good."""

    needs: tuple[str, ...] = ()
    """The capabilities that the method needs of the region: names in :data:`maxmargin.regions.CAPABILITIES`."""

    def __post_init__(self) -> None:
        """Make numbers plain, check ``max_iter`` and all flags; a subclass with more settings extends it."""
        for one in fields(cast(Any, self)):
            object.__setattr__(self, one.name, _checks.plain(getattr(self, one.name)))
        _checks.integer("max_iter", self.max_iter, least=1)
        for one in fields(cast(Any, self)):
            if one.type in ("bool", bool):
                _checks.flag(one.name, getattr(self, one.name))

    remedy = "raise max_iter or max_seconds, raise tol, or regularize more (smaller C or radius)"
    """The advice when the gap did not close."""

    def stalled_remedy(self, problem: BaseProblem) -> str:
        """The advice when the gap stopped shrinking."""
        return "raise tol, scale the features, or try another solver"

    def remark(self, run: Run) -> str:
        """What else the message at the end says of the method, after a semicolon; empty for nothing."""
        return ""

    def unsupported(self, problem: BaseProblem) -> str | None:
        """The reason why this solver cannot solve the problem, or None."""
        return self.unsupported_hinge(problem) or self.missing(problem, *self.needs)

    @property
    def shards_unsupported(self) -> str:
        """The reason why it cannot run on several shards, or on data elsewhere; empty if its work is sent there."""
        return "it works on all examples in one place"

    def unsupported_hinge(self, problem: BaseProblem) -> str | None:
        """The reason why this solver cannot handle the problem's rescaling and slack, or None."""
        wanted = []
        if problem.rescaling not in self.takes_rescaling:
            wanted.append(f'rescaling="{self.takes_rescaling[0]}", not "{problem.rescaling}"')
        if problem.slack not in self.takes_slack:
            wanted.append(f'slack="{self.takes_slack[0]}", not "{problem.slack}"')
        if problem.good is not None and not self.takes_good:
            wanted.append("one gold output per example, not several good ones")
        return f"it needs {' and '.join(wanted)}; use {alternatives(problem)}" if wanted else None

    def missing(self, problem: BaseProblem, *needs: str) -> str | None:
        """The first of some capabilities that the problem's region lacks, as a sentence, or None."""
        region = problem.region
        for name in needs:
            if getattr(region, name) in (None, False):
                return (
                    f"it needs {CAPABILITIES[name]}, which {type(region).__name__} does not offer with these settings; "
                    f"use {alternatives(problem)}"
                )
        return None

    @property
    def checkpoint_unsupported(self) -> str:
        """The reason why a run cannot be saved in a checkpoint, and what to use instead.

        Empty for solvers with :meth:`state_dict` and :meth:`load_state_dict`.
        """
        return "it has no state_dict; leave the checkpoint out, or use SimplicialDecomposition or DualExtragradient"

    def settled(self, state: Any) -> Any:
        """The state without what no file holds, such as warm starts that are not arrays: itself if it has none.

        With a checkpoint, a run goes on from this state after each certificate, so that a resumed run matches an
        uninterrupted one; between certificates a state that is not settled cannot be saved.
        """
        return state

    def settled_memory(self, memory: Any) -> Any:
        """What the solver keeps with a piece, without what no file holds: itself if it has none of that.

        With a checkpoint, a run goes on from this after each step.
        """
        return memory

    def memory_dict(self, state: Any, memory: Any) -> StateDict:
        """What the solver keeps with a piece, settled, as arrays and numbers.

        A checkpoint holds it for every piece; :meth:`load_state_dict` finds it again as the memories of the run.
        """
        return {}

    def state_dict(self, state: Any) -> StateDict:
        """The state as arrays and numbers, valid until the next step: they are written before it."""
        raise TypeError(f"a run of {type(self).__name__} cannot be saved: {self.checkpoint_unsupported}")

    def load_state_dict(self, run: Run, saved: StateDict) -> Any:
        """The state again, in place of :meth:`init`; the run continues with the same bits as an uninterrupted one.

        Arrays are read-only, and nothing about them is known: the file may be damaged, or made to deceive. ValueError
        with a reason if they do not fit the problem (:mod:`maxmargin.optimization.checkpoints.saved` has the checks).
        """
        raise TypeError(f"a run of {type(self).__name__} cannot be saved: {self.checkpoint_unsupported}")

    @property
    def shard_size(self) -> int | None:
        """Parts of a shard; None for solvers that store packed vectors of all examples."""
        return None

    whole_shards = False
    """Whether each of several shards of a problem in memory is one piece, whatever its size."""

    @property
    def keeps_warm_starts(self) -> bool | Literal["auto"]:
        """Whether the next argmax or projection starts from the last one; "auto" if that takes no more than a packed z.

        What they start from is kept between iterations for every example.
        """
        return True

    @abstractmethod
    def init(self, run: Run, start: Start) -> Any:
        """The state before the first step."""

    @abstractmethod
    def step(self, run: Run, state: Any) -> Any:
        """One iteration: a new state."""

    @abstractmethod
    def propose(self, run: Run, state: Any) -> Sequence[Proposal]:
        """Candidates for certification, most promising first; each costs one argmax pass."""

    def observe(self, run: Run, state: Any, certificates: Sequence[Certificate]) -> Any:
        """Learn from the certificates of the last proposals (restarts); by default nothing."""
        return state

    def claims(self, run: Run, state: Any) -> bool:
        """Whether the method knows weights within the run's tolerance: then a certificate of these is due at once."""
        return False

    def done(self, state: Any) -> bool:
        """Whether a method that does not minimize the objective has nothing left to do."""
        return False

    def duals(self, run: Run, state: Any) -> FloatArray | None:
        """The packed feasible point of the structures player, if the state holds one: for a later warm start."""
        return None

    def potentials(self, run: Run, state: Any) -> FloatArray | None:
        """In entropic geometry, the potentials of that point: for a later warm start."""
        return None

    def active_set(self, state: Any) -> ActiveSet | None:
        """The outputs with their weights, if the state holds them: for a later warm start."""
        return None


def alternatives(problem: BaseProblem) -> str:
    """Solvers that take a problem which another one has refused."""
    region, linear = problem.region, problem.slack == "linear"
    if region.lasso is not None:
        return "ColumnGeneration or SimplicialDecomposition" if linear else "SimplicialDecomposition"
    if region.ridge is not None:
        return "SimplicialDecomposition or CuttingPlane" + (" or BlockFrankWolfe" if linear else "")
    saddle = "Extragradient" + (" or DualExtragradient" if region.smooth else "") if problem.bilinear else ""
    if region.norms is not None:
        return "SimplicialDecomposition" + (f" or {saddle}" if saddle else "")
    return saddle or "ProjectedSubgradient, or give C or a radius, which faster solvers need"


def sharded_alternatives(problem: BaseProblem) -> str:
    """Solvers that take a problem in several shards which another one has refused."""
    region, linear = problem.region, problem.slack == "linear"
    if region.lasso is not None:
        return "ColumnGeneration or SimplicialDecomposition" if linear else "SimplicialDecomposition"
    if region.norms is not None:
        return "SimplicialDecomposition" + (" or CuttingPlane" if region.ridge is not None else "")
    return "DualExtragradient" if problem.bilinear and region.smooth else "ProjectedSubgradient"

"""The settings of training, checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _threads
from maxmargin._messages import shown
from maxmargin.encoders.base import Encoder
from maxmargin.execution import Executor
from maxmargin.losses import Hamming, Loss
from maxmargin.models.base import Metric
from maxmargin.optimization.callbacks import Callback, ProgressBar, Validation, checked_callbacks
from maxmargin.optimization.checkpoints.files import Checkpoint
from maxmargin.optimization.loop import generator, shards_unsupported, whole_and_here
from maxmargin.optimization.solver import Solver
from maxmargin.optimization.stopping import Stop
from maxmargin.problem import RESCALINGS, SLACKS, BaseProblem
from maxmargin.regions import L1, L2, Region
from maxmargin.solvers import BlockFrankWolfe, DualExtragradient, choose
from maxmargin.structures._arrays import array_of


@dataclass(frozen=True, kw_only=True, eq=False)
class Settings:
    """How to train: objective, solver, budgets, and what is watched on the way.

    Attributes:
        C: penalty form, ``1/(2C) ||w||^2`` beside the sum of hinge losses; larger means less regularization, ``inf``
            none. Several values: the one with the best dev score is taken. None: 1, or ``inf`` if there is a radius.
            "auto": chosen by folds of the training data, by tasks that do so.
        radius: ball form ``||w|| <= radius``; None for no ball.
        norm: "l2", or "l1" for the penalty ``1/C ||w||_1`` and the ball ``||w||_1 <= radius``.
        loss: a loss of :mod:`maxmargin.losses`; None for Hamming.
        rescaling: "margin", "slack" or "none" (docs/how-to/slack-rescaling.md).
        slack: "linear" or "quadratic".
        solver: a solver object, or "auto".
        nonnegative: indices or mask of weights that must be >= 0, True for all, besides those the encoder demands.
        tol: relative duality gap to reach.
        max_iter: iteration limit of a run; None takes the solver's own.
        max_seconds: time limit of a run.
        metric: the dev score, a function of the gold outputs and the predicted ones, larger is better, or a name
            among those of the encoder; None for that of :meth:`maxmargin.Model.score`.
        patience: certificates without a better dev score after which a run ends; None never ends it early.
        n_jobs: threads, as scikit-learn reads it; never changes the result.
        executor: where the work on the examples is done, in shards: an executor of :mod:`maxmargin.execution`; None for
            this process, in one shard (docs/how-to/scaling.md).
        random_state: seed for solvers that draw random numbers.
        callbacks: functions of a :class:`maxmargin.solvers.Record`; a true result stops the run.
        checkpoint: a file name or :class:`maxmargin.solvers.Checkpoint`; a run resumes from that file if it exists.
        verbose: whether to draw a progress bar on a terminal.
    """

    C: float | Sequence[float] | str | None = None
    radius: float | None = None
    norm: str = "l2"
    loss: Loss | None = None
    rescaling: str = "margin"
    slack: str = "linear"
    solver: Solver | str = "auto"
    nonnegative: npt.ArrayLike | bool | None = None
    tol: float = 1e-3
    max_iter: int | None = None
    max_seconds: float | None = None
    metric: Metric | str | None = None
    patience: int | None = None
    n_jobs: int | None = None
    executor: Executor | None = None
    random_state: int | None = None
    callbacks: Sequence[Callback] = field(default=())
    checkpoint: str | Path | Checkpoint | None = None
    verbose: bool = False

    def __post_init__(self) -> None:
        _checks.flag("verbose", self.verbose)
        _checks.one_of("norm", self.norm, ("l2", "l1"))
        _checks.one_of("rescaling", self.rescaling, RESCALINGS)
        _checks.one_of("slack", self.slack, SLACKS)
        if self.radius is not None:
            _checks.positive("radius", self.radius, infinite=True, hint="a larger radius means less regularization")
        if not _checks.is_one_of(self.C, "auto"):
            _ = self.grid
        _ = self.stop, generator(self.random_state), _threads.resolve(self.n_jobs)
        if self.loss is not None and not isinstance(self.loss, Loss):
            raise ValueError(f"loss must be a loss of maxmargin.losses, for example Hamming(), got {shown(self.loss)}")
        given: Any = self.solver
        if isinstance(given, type) and issubclass(given, Solver):
            raise ValueError(f"solver must be an object, not a class: write mm.{given.__name__}()")
        if not isinstance(given, Solver) and not (isinstance(given, str) and given == "auto"):
            raise ValueError(
                f'solver must be "auto" or a solver object such as mm.BlockFrankWolfe(), got {shown(given)}'
            )
        if self.executor is not None:
            wanted = "an executor such as mm.execution.Serial(shards=2), or None"
            _checks.instance("executor", self.executor, Executor, wanted)
        if self.metric is not None and not isinstance(self.metric, str) and not callable(self.metric):
            raise ValueError(f"metric must be a function of gold and predicted outputs, got {shown(self.metric)}")
        if self.patience is not None:
            _checks.integer("patience", self.patience, least=1)
        object.__setattr__(self, "callbacks", checked_callbacks(self.callbacks))
        Checkpoint.of(self.checkpoint)

    @cached_property
    def stop(self) -> Stop:
        """Tolerance and budgets of a run."""
        return Stop(tol=self.tol, max_iter=self.max_iter, max_seconds=self.max_seconds)

    @cached_property
    def grid(self) -> tuple[float, ...]:
        """The values of C, one or several."""
        if _checks.is_one_of(self.C, "auto"):
            raise ValueError('C="auto" is for sequence tagging, which chooses C by folds; give numbers')
        if self.C is None:
            return (1.0 if self.radius is None else np.inf,)
        given: Any = self.C
        several = isinstance(given, (list, tuple)) or (isinstance(given, np.ndarray) and given.ndim)
        grid = tuple(_checks.listed("C", given, "a number, or a list of numbers")) if several else (given,)
        if not grid:
            raise ValueError("C is empty; give at least one number")
        hint = "a larger C means less regularization"
        return tuple(_checks.positive("C", value, infinite=True, hint=hint) for value in grid)

    def watchers(self, C: float, chooser: Validation | None = None) -> list[Callback]:
        """The callbacks of the run for one C, with the one that chooses by dev scores."""
        watchers: list[Callback] = [*self.callbacks, *([] if chooser is None else [chooser])]
        if not self.verbose:
            return watchers
        number = f" ({self.grid.index(C) + 1}/{len(self.grid)})" if len(self.grid) > 1 and C in self.grid else ""
        phase = f"training C={C:g}{number}" if np.isfinite(C) else "training"
        return [*watchers, ProgressBar(phase=phase, validation=chooser)]

    def checkpoint_of(self, run: str) -> Checkpoint | None:
        """The checkpoint of one of several runs, whose file name ends with ``run``."""
        given = Checkpoint.of(self.checkpoint)
        return None if given is None else given.beside(run)

    def loss_used(self) -> Loss:
        """The loss; Hamming by default."""
        return Hamming() if self.loss is None else self.loss

    def region(self, encoder: Encoder, n_weights: int, C: float) -> Region:
        """The set and penalty of the weights."""
        mask = encoder.nonnegative()
        if self.nonnegative is not None:
            if encoder.signs_unsupported:
                raise ValueError(f"nonnegative is refused: {encoder.signs_unsupported}")
            chosen = _mask(self.nonnegative, n_weights)
            mask = chosen if mask is None else mask | chosen
        if self.norm == "l1" and encoder.l1_unsupported:
            raise ValueError(f'norm="l1" is not possible here: {encoder.l1_unsupported}')
        kind = L1 if self.norm == "l1" else L2
        return kind(C=C, radius=np.inf if self.radius is None else self.radius, nonnegative=mask)

    def solver_for(self, problem: BaseProblem) -> tuple[Solver, str]:
        """The solver, and why it was chosen."""
        if isinstance(self.solver, Solver):
            return self.solver, "chosen by the caller"
        solver, why = choose(problem, in_shards=not whole_and_here(problem, self.executor))
        if self.checkpoint is not None and solver.checkpoint_unsupported:
            savable: dict[str, Solver] = {
                "block-coordinate Frank-Wolfe": BlockFrankWolfe(),
                "dual extragradient": DualExtragradient(store_duals=False, warm_starts=False),
            }
            for name, saved in savable.items():
                if not (saved.unsupported(problem) or shards_unsupported(problem, saved, self.executor)):
                    return saved, f"{why}; for a checkpoint {name}, as it can be saved"
        return solver, why


def _mask(given: npt.ArrayLike | bool, n_weights: int) -> npt.NDArray[np.bool_]:
    """Indices, a mask, or True for all weights, as a mask."""
    wanted = f"a list of indices from 0, a mask of the {n_weights} weights, or True for all"
    chosen = np.ones(n_weights, dtype=bool) if given is True else array_of(given, "nonnegative", "biu", wanted)
    if chosen.dtype.kind == "b" and chosen.shape == (n_weights,):
        return np.array(chosen)
    inside = not chosen.size or 0 <= chosen.min() <= chosen.max() < n_weights
    if chosen.ndim != 1 or (chosen.dtype.kind == "b" and chosen.size) or not inside:
        raise ValueError(f"nonnegative must be {wanted}, got shape {chosen.shape} of {chosen.dtype}")
    mask = np.zeros(n_weights, dtype=bool)
    mask[chosen.astype(np.int64)] = True
    return mask

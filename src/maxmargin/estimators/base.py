"""The estimator of any structure, and what the named ones share.

A named estimator sets its packer and its own settings; :func:`takes_settings` gives it those of :class:`StructuredSVM`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from maxmargin import _checks, _threads
from maxmargin.encoders import PartsEncoder, ProgramEncoder, checks
from maxmargin.encoders.base import Encoder
from maxmargin.losses import Hamming, Loss
from maxmargin.model import Model
from maxmargin.optimization.callbacks import Callback
from maxmargin.problem import Problem
from maxmargin.regions import L1, L2, Region
from maxmargin.solvers import (
    BlockFrankWolfe,
    Checkpoint,
    ProgressBar,
    Solution,
    Solver,
    Start,
    Status,
    Stop,
    Validation,
    choose,
    solve,
)
from maxmargin.structures.base import FloatArray, Structure
from maxmargin.structures.linear_program import LinearProgram


class StructuredSVM(BaseEstimator):  # type: ignore[misc]
    """Large-margin training of any structure to a certified duality gap.

    Minimizes ``1/(2C) ||w||^2 + sum_i s_i max_y [loss(y_i, y) + w'f(x_i, y) - w'f(x_i, y_i)]``, inside
    ``||w|| <= radius`` if a radius is given; with ``norm="l1"``, ``1/C ||w||_1`` in place of the ridge and the ball
    ``||w||_1 <= radius``.

    Args:
        structure: what outputs are legal: a :class:`maxmargin.structures.Structure` subclass whose constructor takes
            the number of parts of each example (docs/adding-a-structure.md), or a packer.
        C: penalty form; larger means less regularization; ``inf`` for none. Default 1 if no radius is given.
        radius: ball form ``||w|| <= radius``; may be combined with ``C``.
        norm: "l2", or "l1" for the penalty ``1/C ||w||_1`` and the ball ``||w||_1 <= radius``, with which few weights
            differ from zero.
        loss: a loss of :mod:`maxmargin.losses`; Hamming by default.
        rescaling: how the loss scales the margin: "margin" (a margin as large as the loss), "slack" (a margin of 1,
            violations weighed by the loss) or "none" (a margin of 1 to every wrong output); docs/slack-rescaling.md.
        slack: whether a violation counts as it is ("linear") or half its square ("quadratic").
        solver: a solver object of :mod:`maxmargin.solvers`, or "auto".
        nonnegative: indices or mask of weights that must be >= 0, True for all (besides those the structure demands).
        tol: relative duality gap aimed at.
        max_iter: iteration limit; None takes the solver's own.
        max_seconds: time limit.
        n_jobs: threads inside fit and predict, as scikit-learn reads it (None: 1 or what :func:`maxmargin.threads`
            says, -1: all cores); never changes the result.
        random_state: seed for solvers that draw random numbers.
        warm_start: start the next ``fit`` from this one's solution; its features and labels must be the same, its
            settings and examples need not.
        verbose: draw a progress bar on a terminal.
        callbacks: functions of a :class:`maxmargin.solvers.Record`; a true result stops the run.
        checkpoint: a file name or :class:`maxmargin.solvers.Checkpoint`: ``fit`` saves its run there as it goes, goes
            on from that file if it exists, with the same bits, and removes it when it is done, unless a budget or
            Ctrl-C ended it (docs/training.md).

    Attributes:
        coef_: the weights, shape ``(n_weights,)``; of kernel features, dual coefficients (docs/kernels.md).
        solution_: certificate, status, history and counters of the run.
        model_: the trained :class:`maxmargin.Model`.
    """

    def __init__(
        self,
        structure: Any = None,
        *,
        C: float | None = None,
        radius: float | None = None,
        norm: str = "l2",
        loss: Loss | None = None,
        rescaling: str = "margin",
        slack: str = "linear",
        solver: Solver | str = "auto",
        nonnegative: npt.ArrayLike | bool | None = None,
        tol: float = 1e-3,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
        warm_start: bool = False,
        verbose: bool = False,
        callbacks: Sequence[Callback] = (),
        checkpoint: str | Path | Checkpoint | None = None,
    ) -> None:
        self.structure = structure
        self.C = C
        self.radius = radius
        self.norm = norm
        self.loss = loss
        self.rescaling = rescaling
        self.slack = slack
        self.solver = solver
        self.nonnegative = nonnegative
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.callbacks = callbacks
        self.checkpoint = checkpoint

    def _encoder(self) -> Encoder:
        if isinstance(self.structure, Encoder):
            return self.structure
        if self.structure is LinearProgram:
            return ProgramEncoder()
        built_in = getattr(self.structure, "__module__", "").startswith(Structure.__module__.rpartition(".")[0])
        if callable(self.structure) and not built_in:
            return PartsEncoder(self.structure)
        raise ValueError(
            "structure must be a Structure class of your own (see docs/adding-a-structure.md) or a packer; for the "
            "built-in structures use ChainSVM, TreeSVM, MatchingSVM, CutSVM, AssociativeSVM, GraphSVM or ProgramSVM"
        )

    def fit(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: npt.ArrayLike | None = None,
        *,
        loss_weight: Sequence[npt.ArrayLike] | None = None,
        validation: tuple[Sequence[Any], Sequence[Any]] | None = None,
        patience: int | None = None,
    ) -> Self:
        """Train.

        Args:
            X: inputs, one per example.
            y: gold outputs, one per example.
            sample_weight: weight of each example, shape ``(n_examples,)``.
            loss_weight: for each example, how much each of its decisions counts in the loss (positions of a chain,
                nodes of a cut or tree, links of a matching in the order of its features' rows).
            validation: inputs and outputs on which the stopping point is chosen: the weights with the best score at
                any certificate are kept (the usual way with ``C=inf``).
            patience: stop after this many certificates without a better validation score; None never stops early.

        Returns:
            The estimator. Warns with ConvergenceWarning if the gap did not close.
        """
        _checks.flag("warm_start", self.warm_start)
        _checks.flag("verbose", self.verbose)
        with _threads.threads(self.n_jobs):
            encoder, problem = self._problem(X, y, sample_weight, loss_weight)
            solver, why = self._solver(problem)
            stop = Stop(tol=self.tol, max_iter=self.max_iter, max_seconds=self.max_seconds)
            callbacks, checkpoint = self._callbacks(), self._checkpoint()
            chooser = _validation(encoder, validation, patience, self.n_jobs)
            if chooser is not None:
                callbacks.append(chooser)
            if self.verbose:
                callbacks.append(ProgressBar())
            solution = solve(
                problem,
                solver,
                stop=stop,
                callbacks=callbacks,
                start=self._start(encoder),
                n_jobs=self.n_jobs,
                random_state=self.random_state,
                why=why,
                checkpoint=checkpoint,
            )
        weights, metadata = solution.weights, _metadata(self, problem, solution)
        if chooser is not None and chooser.best_weights is not None:
            weights = chooser.best_weights
            del metadata["primal"], metadata["dual"]  # which certify the run's own best weights, not these
            metadata |= {"validation_iteration": chooser.best_iteration, "validation_score": chooser.best_score}
        encoder, weights = encoder.finish(weights)
        model = Model(weights, encoder, metadata, self.n_jobs)
        # Nothing can fail from here on: an estimator is fitted as a whole or stays as it was.
        self.solution_, self.coef_, self.model_ = solution, weights, model
        self.validation_ = chooser.history if chooser is not None else None
        may_go_on = solution.status in (Status.BUDGET, Status.INTERRUPTED)
        if checkpoint is not None and not checkpoint.keep and not may_go_on:
            checkpoint.remove()
        return self

    def _checkpoint(self) -> Checkpoint | None:
        given = self.checkpoint
        if given is None or isinstance(given, Checkpoint):
            return given
        if isinstance(given, (str, Path)):
            return Checkpoint(given)
        raise ValueError(f"checkpoint must be the name of a file or a Checkpoint, got {given!r}")

    def _callbacks(self) -> list[Callback]:
        if callable(self.callbacks) or not hasattr(self.callbacks, "__iter__"):
            raise ValueError(f"callbacks must be a list of functions of a record, got {self.callbacks!r}")
        found = list(self.callbacks)
        for callback in found:
            if not callable(callback):
                raise ValueError(f"callbacks must be functions of a record, got {callback!r}")
        return found

    def _problem(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: npt.ArrayLike | None,
        loss_weight: Sequence[npt.ArrayLike] | None,
    ) -> tuple[Encoder, Problem]:
        X, y = checks.examples(X), checks.examples(y, "y")
        checks.same_length(X, y)
        encoder = self._encoder().learn(X, y)
        packed = encoder.pack(X)
        gold = encoder.gold(packed, y)
        region = self._region(encoder, packed.features.n_weights)
        problem = Problem.build(
            packed.structure,
            packed.features,
            gold,
            self._loss(),
            region,
            example_weight=checks.weights(sample_weight, len(X)),
            loss_weight=_loss_weight(loss_weight, packed.structure),
            rescaling=self.rescaling,
            slack=self.slack,
        )
        return encoder, problem

    def _loss(self) -> Loss:
        if self.loss is None:
            return Hamming()
        if not isinstance(self.loss, Loss):
            raise ValueError(f"loss must be a loss of maxmargin.losses, for example Hamming(), got {self.loss!r}")
        return self.loss

    def _region(self, encoder: Encoder, n_weights: int) -> Region:
        mask = encoder.nonnegative()
        if self.nonnegative is not None:
            if encoder.no_signs:
                raise ValueError(f"nonnegative is refused: {encoder.no_signs}")
            extra = np.zeros(n_weights, dtype=bool)
            try:
                chosen = np.ones(n_weights, dtype=bool) if self.nonnegative is True else np.asarray(self.nonnegative)
                if chosen.ndim != 1 or (chosen.dtype.kind == "i" and (chosen < 0).any()):
                    raise ValueError
                extra[chosen if chosen.size else np.zeros(0, dtype=np.int64)] = True
            except (IndexError, ValueError):
                raise ValueError(
                    f"nonnegative must be a list of indices from 0, a mask of the {n_weights} weights, or True for all"
                ) from None
            mask = extra if mask is None else mask | extra
        if self.norm == "l1":
            if encoder.no_l1:
                raise ValueError(f'norm="l1" is not possible here: {encoder.no_l1}')
        elif self.norm != "l2":
            raise ValueError(f'norm must be "l2" or "l1", got {self.norm!r}')
        C = self.C if self.C is not None else (1.0 if self.radius is None else np.inf)
        kind = L1 if self.norm == "l1" else L2
        return kind(C=C, radius=self.radius if self.radius is not None else np.inf, nonnegative=mask)

    def _solver(self, problem: Problem) -> tuple[Solver, str]:
        if isinstance(self.solver, Solver):
            return self.solver, "chosen by the caller"
        if isinstance(self.solver, str) and self.solver == "auto":
            solver, why = choose(problem)
            if (
                self.checkpoint is not None
                and solver.checkpoint_unsupported
                and not BlockFrankWolfe().unsupported(problem)
            ):
                return BlockFrankWolfe(), f"{why}; for a checkpoint block-coordinate Frank-Wolfe, as it can be saved"
            return solver, why
        given: Any = self.solver
        if isinstance(given, type) and issubclass(given, Solver):
            raise ValueError(f"solver must be an object, not a class: write mm.{given.__name__}()")
        raise ValueError(f'solver must be "auto" or a solver object such as mm.BlockFrankWolfe(), got {self.solver!r}')

    def _start(self, encoder: Encoder) -> Start:
        if not self.warm_start or not hasattr(self, "solution_"):
            return Start()
        # Weights could be moved to other labels, but without a matching point of the structures player they are a
        # worse start than zero (more iterations in nearly all cases tried).
        if encoder.layout != self.model_.encoder.layout:
            labels = ", or name all labels in advance with classes=[...]" if encoder.classes is not None else ""
            raise ValueError(
                f"warm_start: the features or labels are not those of the last fit; fit without warm_start{labels}"
            )
        weights = encoder.resume(self.model_.encoder, self.coef_)
        before = self.solution_
        return Start(weights, before.duals, before.potentials, before.active_set)

    def _model(self) -> Model:
        """The trained model with the number of threads that is set now."""
        check_is_fitted(self, "model_")
        return replace(self.model_, n_jobs=self.n_jobs)

    def predict(self, X: Sequence[Any]) -> list[Any]:
        """The best output of each example."""
        return self._model().predict(X)

    def k_best(self, X: Sequence[Any], k: int) -> list[list[tuple[Any, float]]]:
        """The ``k`` best outputs of each example with their scores, best first."""
        return self._model().k_best(X, k)

    def decision_function(self, X: Sequence[Any]) -> FloatArray:
        """The score of the best output of each example, shape ``(n_examples,)``."""
        return self._model().decision_function(X)

    def score(self, X: Sequence[Any], y: Sequence[Any], sample_weight: npt.ArrayLike | None = None) -> float:
        """How much of the outputs is right; see :meth:`maxmargin.Model.score`."""
        return self._model().score(X, y, sample_weight)

    def save(self, path: str | Path) -> None:
        """Write the trained model to a file that :func:`maxmargin.load` reads."""
        self._model().save(path)


def takes_settings(init: Callable[..., None]) -> Callable[..., None]:
    """Show a subclass's ``**settings`` as the named settings of :class:`StructuredSVM` that they are; refuse others.

    scikit-learn (``get_params``, ``clone``, ``repr``) and ``help`` read the signature. A subclass knows its structure
    and hands None to ``super().__init__``: giving one is an error.
    """
    own = inspect.signature(init).parameters
    inherited = inspect.signature(StructuredSVM.__init__).parameters
    kept = [p for p in own.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    settings = [p for p in inherited.values() if p.kind is inspect.Parameter.KEYWORD_ONLY]
    signature = inspect.Signature([*kept, *settings])
    names = [name for name in signature.parameters if name != "self"]

    @wraps(init)
    def checked(self: StructuredSVM, *positional: Any, **given: Any) -> None:
        if positional:
            count = 1 + len(positional)
            raise TypeError(f"{type(self).__name__}.__init__() takes 1 positional argument but {count} were given")
        for name in given:
            if name not in names:
                raise TypeError(_unknown(type(self).__name__, name, names))
        init(self, **given)

    checked.__signature__ = signature  # type: ignore[attr-defined]
    return checked


def _unknown(estimator: str, name: str, names: list[str]) -> str:
    if name == "structure":
        return f"{estimator}() takes no structure, as it has its own; use StructuredSVM(structure=...)"
    by_folded = {known.casefold(): known for known in names}
    close = [by_folded[found] for found in get_close_matches(name.casefold(), by_folded)]
    hint = f"did you mean {' or '.join(close)}?" if close else f"it takes {', '.join(names)}"
    return f"{estimator}() got an unexpected keyword argument {name!r}; {hint}"


def _loss_weight(value: Sequence[npt.ArrayLike] | None, structure: Structure) -> FloatArray | None:
    """One number per decision, repeated over its alternatives."""
    if value is None:
        return None
    return np.repeat(checks.per_variable(value, structure.n_variables), structure.n_states)


def _validation(
    encoder: Encoder,
    validation: tuple[Sequence[Any], Sequence[Any]] | None,
    patience: int | None,
    n_jobs: int | None,
) -> Validation | None:
    if patience is not None:
        checks.integer(patience, "patience", at_least=1)
    if validation is None:
        if patience is not None:
            raise ValueError("patience counts validation scores: give validation=(X, y) as well")
        return None
    if not isinstance(validation, (tuple, list)) or len(validation) != 2:
        raise ValueError("validation must be a pair (X, y) of inputs and outputs")
    try:
        return Validation(Model(np.zeros(0), encoder, n_jobs=n_jobs).scorer(*validation), patience)
    except ValueError as error:
        raise ValueError(f"validation data: {error}") from None


def _metadata(estimator: StructuredSVM, problem: Problem, solution: Solution) -> dict[str, Any]:
    """How the model was trained, as plain JSON values."""
    loss, certificate = estimator._loss(), solution.certificate
    return {
        "estimator": type(estimator).__name__,
        **{name: _number(value) for name, value in problem.region.metadata().items()},
        "loss": repr(loss) if isinstance(loss, Hamming) else type(loss).__name__,
        **({"rescaling": problem.rescaling} if problem.rescaling != "margin" else {}),
        **({"slack": problem.slack} if problem.slack != "linear" else {}),
        "solver": type(solution.solver).__name__,
        "status": str(solution.status),
        "primal": _number(certificate.primal),
        "dual": _number(certificate.dual),
        **({"relaxed": True} if certificate.relaxed else {}),
        "iterations": solution.counters.iterations,
        "seconds": solution.seconds,
    }


def _number(value: float | str) -> float | str:
    """JSON has no infinity."""
    if isinstance(value, str):
        return value
    return float(value) if np.isfinite(value) else str(float(value))

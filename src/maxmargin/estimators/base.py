"""The estimator of any structure, and what the named ones share.

A named estimator names its encoder and its own settings; the others are those of
:class:`maxmargin.training.Settings`, which :func:`takes_settings` puts into its signature.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from functools import wraps
from pathlib import Path
from typing import Any, Self, TypedDict, TypeVar, Unpack, cast

import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from maxmargin import _checks, _threads
from maxmargin._estimator import Estimator, Outputs
from maxmargin.datasets import EncoderRecipe, ShardedDataset
from maxmargin.datasets.recipe import Good
from maxmargin.encoders import PartsEncoder, ProgramEncoder
from maxmargin.encoders.base import Encoder
from maxmargin.execution import Executor
from maxmargin.explanation import Explanation
from maxmargin.losses import Loss
from maxmargin.models.base import Metric, Model
from maxmargin.optimization.callbacks import Callback
from maxmargin.optimization.checkpoints.files import Checkpoint
from maxmargin.optimization.solver import Solver, Start
from maxmargin.structures.base import FloatArray, Structure
from maxmargin.structures.programs.linear_program import LinearProgram
from maxmargin.training import Examples, Hooks, Settings, train_examples
from maxmargin.training.train import dev_score

Init = TypeVar("Init", bound=Callable[..., None])


class SettingsArguments(TypedDict, total=False):
    """The keyword arguments that all estimators share, for type checkers."""

    C: float | Sequence[float] | None
    radius: float | None
    norm: str
    loss: Loss | None
    rescaling: str
    slack: str
    solver: Solver | str
    nonnegative: npt.ArrayLike | bool | None
    tol: float
    max_iter: int | None
    max_seconds: float | None
    metric: Metric | str | None
    patience: int | None
    n_jobs: int | None
    executor: Executor | None
    random_state: int | None
    callbacks: Sequence[Callback]
    checkpoint: str | Path | Checkpoint | None
    verbose: bool
    warm_start: bool


def takes_settings(init: Init) -> Init:
    """Show ``**settings`` of a constructor as the named settings that they are; store them, refuse others.

    scikit-learn (``get_params``, ``clone``, ``repr``) and ``help`` read the signature.
    """
    own = [p for p in inspect.signature(init).parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    keyword = inspect.Parameter.KEYWORD_ONLY
    shared = [inspect.Parameter(f.name, keyword, default=f.default, annotation=f.type) for f in fields(Settings)]
    shared.append(inspect.Parameter("warm_start", keyword, default=False, annotation="bool"))
    signature = inspect.Signature([*own, *shared])
    names = [name for name in signature.parameters if name != "self"]

    @wraps(init)
    def checked(self: StructuredSVM, *positional: Any, **given: Any) -> None:
        for name in given:
            if name not in names:
                raise TypeError(_unknown(type(self).__name__, name, names))
        init(self, *positional, **{name: value for name, value in given.items() if name in own_names})
        for parameter in shared:
            setattr(self, parameter.name, given.get(parameter.name, parameter.default))

    own_names = {p.name for p in own}
    checked.__signature__ = signature  # type: ignore[attr-defined]
    return cast(Init, checked)


def _unknown(estimator: str, name: str, names: list[str]) -> str:
    if name == "structure":
        return f"{estimator}() takes no structure, as it has its own; use StructuredSVM(structure=...)"
    by_folded = {known.casefold(): known for known in names}
    close = [by_folded[found] for found in get_close_matches(name.casefold(), by_folded)]
    hint = f"did you mean {' or '.join(close)}?" if close else f"it takes {', '.join(names)}"
    return f"{estimator}() got an unexpected keyword argument {name!r}; {hint}"


class StructuredSVM(Estimator):
    """Large-margin training of any structure to a certified duality gap.

    Minimizes ``1/(2C) ||w||^2 + sum_i s_i max_y [loss(y_i, y) + w'f(x_i, y) - w'f(x_i, y_i)]``, inside
    ``||w|| <= radius`` if a radius is given; with ``norm="l1"``, ``1/C ||w||_1`` in place of the ridge and the ball
    ``||w||_1 <= radius``.

    Args:
        structure: what outputs are legal: a :class:`maxmargin.structures.Structure` subclass whose constructor takes
            the number of parts of each example (docs/extending/adding-a-structure.md), or an encoder.
        C: penalty form; larger means less regularization; ``inf`` for none. Several values: the one with the best dev
            score is taken. Default 1 if no radius is given.
        radius: ball form ``||w|| <= radius``; may be combined with ``C``.
        norm: "l2", or "l1" for the penalty ``1/C ||w||_1`` and the ball ``||w||_1 <= radius``, with which few weights
            differ from zero.
        loss: a loss of :mod:`maxmargin.losses`; Hamming by default.
        rescaling: how the loss scales the margin: "margin" (a margin as large as the loss), "slack" (a margin of 1,
            violations weighed by the loss) or "none" (a margin of 1 to every wrong output);
            see docs/how-to/slack-rescaling.md.
        slack: whether a violation counts as it is ("linear") or half its square ("quadratic").
        solver: a solver object of :mod:`maxmargin.solvers`, or "auto".
        nonnegative: indices or mask of weights that must be >= 0, True for all (besides those the structure demands).
        tol: relative duality gap to reach.
        max_iter: iteration limit; None takes the solver's own.
        max_seconds: time limit.
        metric: the dev score, a function ``metric(gold, predicted)`` of two lists of outputs, larger is better; None
            for that of :meth:`score`.
        patience: with dev data, stop after this many certificates without a better dev score; None never stops early.
        n_jobs: threads inside fit and predict, as scikit-learn reads it (None: 1 or what :func:`maxmargin.threads`
            says, -1: all cores); never changes the result.
        executor: where the work of fit on the examples is done, in shards: ``mm.execution.Serial(shards=2)`` or
            ``mm.execution.Ray(workers=2)``; None for this process, in one shard (docs/how-to/scaling.md).
        random_state: seed for solvers that draw random numbers.
        callbacks: functions of a :class:`maxmargin.solvers.Record`; a true result stops the run.
        checkpoint: a file name or :class:`maxmargin.solvers.Checkpoint`: ``fit`` saves its run there as it goes,
            resumes from that file if it exists, with the same bits, and removes it when it is done, unless a budget or
            Ctrl-C ended it (docs/how-to/training.md).
        verbose: draw a progress bar on a terminal.
        warm_start: start the next ``fit`` from this one's solution; its features and labels must be the same, its
            settings and examples need not.

    Attributes:
        coef_: the weights, shape ``(n_weights,)``; of kernel features, dual coefficients (docs/how-to/kernels.md).
        solution_: certificate, status, history and counters of the run.
        model_: the trained :class:`maxmargin.Model`.
        dev_scores_: pairs of iteration and dev score; empty without dev data.
        choices_: pairs ``({"C": C}, score)`` of the values of C that were compared; empty if there was one.
    """

    n_jobs: int | None
    warm_start: bool

    @takes_settings
    def __init__(self, structure: Any = None, **settings: Unpack[SettingsArguments]) -> None:
        self.structure = structure

    def _encoder(self) -> Encoder:
        if isinstance(self.structure, Encoder):
            return self.structure
        if self.structure is LinearProgram:
            return ProgramEncoder()
        built_in = getattr(self.structure, "__module__", "").startswith(Structure.__module__.rpartition(".")[0])
        if callable(self.structure) and not built_in:
            return PartsEncoder(self.structure)
        raise ValueError(
            "structure must be a Structure class of your own (see docs/extending/adding-a-structure.md) or an encoder; "
            "for the built-in structures use ChainSVM, SegmentSVM, TreeSVM, MatchingSVM, PairingSVM, LatticeSVM, "
            "EditSVM, DependencySVM, CutSVM, AssociativeSVM, GraphSVM, GrammarSVM or ProgramSVM"
        )

    def _settings(self) -> Settings:
        return Settings(**{field.name: getattr(self, field.name) for field in fields(Settings)})

    def fit(
        self,
        X: Sequence[Any] | ShardedDataset,
        y: Sequence[Any] | None = None,
        sample_weight: npt.ArrayLike | None = None,
        *,
        loss_weight: Sequence[npt.ArrayLike] | None = None,
        costs: Sequence[npt.ArrayLike] | None = None,
        dev: tuple[Sequence[Any], Sequence[Any]] | None = None,
    ) -> Self:
        """Train.

        Args:
            X: inputs, one per example; or a dataset on disk (:meth:`build_dataset`), which has the outputs, weights and
                costs of its examples.
            y: gold outputs, one per example.
            sample_weight: weight of each example, shape ``(n_examples,)``.
            loss_weight: for each example, how much each of its variables counts in the loss (positions of a chain,
                nodes of a cut or tree, links of a matching in the order of its features' rows).
            costs: for each example, what each of its parts costs, in place of the loss: candidates, links or nodes of a
                cut, or an array of nodes by labels in the order of ``classes_``. The loss of an output is the cost of
                its parts less that of the gold output's (docs/extending/adding-a-loss.md).
            dev: inputs and outputs ``(X, y)`` on which the stopping point, and C if there are several, are chosen: the
                weights with the best score at any certificate are kept (the usual way with ``C=inf``).

        Returns:
            The estimator. Warns with ConvergenceWarning if the gap did not close.
        """
        if isinstance(X, ShardedDataset):
            return self._fit_dataset(X, dev, y=y, sample_weight=sample_weight, loss_weight=loss_weight, costs=costs)
        return self._fit(lambda: self._examples(X, given_outputs(y), sample_weight, loss_weight, costs), dev)

    def build_dataset(self, folder: str | Path, source: Any, **options: Any) -> ShardedDataset:
        """Encode examples for this estimator into a folder, from which :meth:`fit` trains in the memory of one shard.

        Args:
            folder: the folder.
            source: the examples, see :meth:`maxmargin.ShardedDataset.build`.
            options: further options of :meth:`maxmargin.ShardedDataset.build`.
        """
        with _threads.threads(self.n_jobs):
            return ShardedDataset.build(folder, EncoderRecipe(self._encoder(), self._good_finder()), source, **options)

    def _good_finder(self) -> Good | None:
        """What finds the good outputs of a block of a dataset; None for one gold output each."""
        return None

    def _fit_dataset(
        self, dataset: ShardedDataset, dev: tuple[Sequence[Any], Sequence[Any]] | None, **given: Any
    ) -> Self:
        """Train on a dataset, which has all that could be given beside it."""
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"a dataset has its own {name}; leave it out, or give it to build_dataset")
        dataset.require(self._encoder())
        formulation = getattr(self, "formulation", "gold")
        if dataset.formulation != formulation:
            raise ValueError(
                f'{dataset.folder} was built with formulation="{dataset.formulation}", not "{formulation}"; build it '
                "with build_dataset of this estimator"
            )
        return self._fit(lambda: dataset, dev)

    def _fit(
        self, prepare: Callable[[], Examples | ShardedDataset], dev: tuple[Sequence[Any], Sequence[Any]] | None
    ) -> Self:
        """Train on the examples that ``prepare`` makes, with the estimator's threads."""
        _checks.flag("warm_start", self.warm_start)
        settings, hooks = self._settings(), self._hooks()
        with _threads.threads(self.n_jobs):
            examples = prepare()
            score = dev_score(examples.encoder, dev, settings)
            model = train_examples(examples, settings, score=score, start=self._start(examples.encoder), hooks=hooks)
        training = model.training
        assert training is not None
        # Nothing can fail from here on: an estimator is fitted as a whole or stays as it was.
        self.model_ = replace(model, metadata={"estimator": type(self).__name__, **model.metadata})
        self.solution_, self.coef_, self.dev_scores_ = training.solution, model.weights, training.dev_scores
        self.choices_ = tuple(({"C": C}, score) for C, score in training.tried)
        self._trained(hooks)
        return self

    def _trained(self, hooks: Hooks | None) -> None:
        """Keep what the additions know of a training that has ended well."""

    def _examples(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: npt.ArrayLike | None,
        loss_weight: Sequence[npt.ArrayLike] | None,
        costs: Sequence[npt.ArrayLike] | None = None,
    ) -> Examples:
        return Examples.fit(self._encoder(), X, y, sample_weight, loss_weight, costs)

    def _hooks(self) -> Hooks | None:
        """Additions to training; none by default."""
        return None

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
        weights = encoder.to_training(self.model_.encoder, self.coef_)
        before = self.solution_
        return Start(weights, before.duals, before.potentials, before.active_set)

    def _model(self) -> Model:
        """The trained model with the number of threads that is set now."""
        check_is_fitted(self, "model_")
        return replace(self.model_, n_jobs=self.n_jobs)

    def predict(self, X: Sequence[Any] | ShardedDataset) -> list[Any]:
        """The best output of each example."""
        return Outputs(self._model().predict(X))

    def k_best(self, X: Sequence[Any], k: int) -> list[list[tuple[Any, float]]]:
        """The ``k`` best outputs of each example with their scores, best first."""
        return self._model().k_best(X, k)

    def explain(
        self,
        x: Any,
        *,
        against: Any = None,
        at: int | None = None,
        feature_names: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    ) -> Explanation:
        """Explain the prediction for one input: contributions to its margin; see :meth:`maxmargin.Model.explain`."""
        return self._model().explain(x, against=against, at=at, feature_names=feature_names)

    def decision_function(self, X: Sequence[Any]) -> FloatArray:
        """The score of the best output of each example, shape ``(n_examples,)``."""
        return self._model().decision_function(X)

    def score(
        self,
        X: Sequence[Any] | ShardedDataset,
        y: Sequence[Any] | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """How much of the outputs is right; see :meth:`maxmargin.Model.score`."""
        return self._model().score(X, y, sample_weight)

    def save(self, path: str | Path) -> None:
        """Write the trained model to a file that :func:`maxmargin.load` reads."""
        self._model().save(path)


def given_outputs(y: Sequence[Any] | None) -> Sequence[Any]:
    """The outputs beside inputs; ValueError if there are none."""
    if y is None:
        raise ValueError("y is missing: give one output per example, or a ShardedDataset in place of X and y")
    return y

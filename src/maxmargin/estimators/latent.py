"""Outputs that are known in part, and labels with hidden sub-labels."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _threads
from maxmargin._messages import shown
from maxmargin.datasets import ShardedDataset
from maxmargin.encoders.base import Encoder
from maxmargin.encoders.candidates import CandidatesEncoder
from maxmargin.encoders.data import checks
from maxmargin.encoders.labelings.associative import AssociativeEncoder
from maxmargin.encoders.labelings.labeled import LabeledEncoder
from maxmargin.encoders.labelings.sublabels import SublabelEncoder
from maxmargin.estimators.base import StructuredSVM
from maxmargin.losses import LabelCost
from maxmargin.optimization.loop import generator
from maxmargin.problem import PartialOutputs
from maxmargin.problem.partial import FORMULATIONS
from maxmargin.training import BestGood, Examples, Hooks, Settings


class LatentSVM(StructuredSVM):
    """Trains another estimator where gold outputs are known in part, or labels have hidden sub-labels.

    Minimizes ``penalty(w) + sum_i s_i (max_y [loss_i(y) + w'f(x_i, y)] - max_{g in G_i} w'f(x_i, g))`` over rounds of
    convex problems, with the outputs ``G_i`` that agree with what is given, and a loss of what is given alone
    (:mod:`maxmargin.problem.partial`). The objective never rises from round to round.

    X is that of the base; y as well, or with less in it: a label or the head of a token may be None (unknown) or a set
    (one of them is right), the label of a cut's node None, the links of a matching or pairing
    :class:`maxmargin.PartialLinks`, segments :class:`maxmargin.PartialSegments`, trees over spans
    :class:`maxmargin.PartialTree`, and the output of any structure :class:`maxmargin.PartialParts`.

    Args:
        base: the estimator: structure, regularization, loss, solver and all other settings. Any but CandidatesSVM.
        n_sublabels: split each label of a chain, tree or graph into so many hidden ones, with weights of their own; 1
            for none. The first ones are clusters of the features of each label, drawn by the base's ``random_state``.
        formulation: "best" compares with the good output of the largest score, in rounds; "mean" with a mean of the
            good outputs: convex, and certified as a whole.
        rounds: for "best", at most so many rounds; they end when no good output changes.

    Attributes:
        objectives_: for each round the objective of its convex problem, which bounds that above.
        settled_: whether the rounds ended by themselves; True with "mean".

    The other attributes are those of :class:`StructuredSVM`; ``solution_`` is that of the last round.
    """

    def __init__(
        self, base: StructuredSVM | None = None, *, n_sublabels: int = 1, formulation: str = "best", rounds: int = 10
    ) -> None:
        self.base = base
        self.n_sublabels = n_sublabels
        self.formulation = formulation
        self.rounds = rounds

    @property
    def n_jobs(self) -> int | None:  # type: ignore[override]
        """Threads of the base."""
        return self._base().n_jobs

    @property
    def warm_start(self) -> bool:  # type: ignore[override]
        """Whether the next fit starts from this one's solution, as the base says."""
        return self._base().warm_start

    def _base(self) -> StructuredSVM:
        if not isinstance(self.base, StructuredSVM) or isinstance(self.base, LatentSVM):
            raise ValueError(f"base must be an estimator such as ChainSVM(C=1), got {shown(self.base)}")
        return self.base

    def _encoder(self) -> Encoder:
        encoder, k = self._base()._encoder(), _checks.integer("n_sublabels", self.n_sublabels, least=1)
        if isinstance(encoder, CandidatesEncoder):
            raise ValueError('CandidatesSVM has lists of good candidates of its own; use its formulation="best"')
        if k == 1:
            return encoder
        if isinstance(encoder, AssociativeEncoder):
            raise ValueError(
                "AssociativeSVM rewards equal labels, and sub-labels of one label differ; use GraphSVM, or "
                "n_sublabels=1"
            )
        if not isinstance(encoder, LabeledEncoder):
            raise ValueError(
                f"sub-labels are those of labels, which {type(self.base).__name__} does not have; use n_sublabels=1, "
                "or ChainSVM, TreeSVM or GraphSVM"
            )
        if self.formulation == "mean":
            raise ValueError('on average the sub-labels of a label are all alike; use formulation="best"')
        return SublabelEncoder(encoder, k)

    def _settings(self) -> Settings:
        settings, k = self._base()._settings(), self.n_sublabels
        if k == 1 or not isinstance(settings.loss, LabelCost):
            return settings
        matrix = np.asarray(settings.loss.matrix)
        return replace(settings, loss=LabelCost(np.kron(matrix, np.ones((k, k))) if matrix.ndim == 2 else matrix))

    def _hooks(self) -> Hooks | None:
        hooks = BestGood(self.rounds)
        return hooks if _checks.is_one_of(self.formulation, "best") else None

    def _examples(
        self,
        X: Sequence[Any],
        y: Sequence[Any],
        sample_weight: npt.ArrayLike | None,
        loss_weight: Sequence[npt.ArrayLike] | None,
        costs: Sequence[npt.ArrayLike] | None = None,
    ) -> Examples:
        _checks.one_of("formulation", self.formulation, FORMULATIONS)
        if costs is not None:
            raise ValueError("costs of hidden parts would depend on what is hidden; use the base's loss")
        random = generator(self._settings().random_state)
        return Examples.fit_partial(self._encoder(), X, y, self.formulation, random, sample_weight, loss_weight)

    def _trained(self, hooks: Hooks | None) -> None:
        self.objectives_: tuple[float, ...] = (self.solution_.certificate.primal,)
        self.settled_ = True
        if isinstance(hooks, BestGood):
            self.objectives_, self.settled_ = tuple(hooks.objectives), hooks.settled

    def build_dataset(self, *given: Any, **options: Any) -> NoReturn:
        """Refuse: what is known of outputs is read in memory."""
        raise ValueError("LatentSVM trains in memory; give fit X and y")

    def _fit_dataset(self, dataset: ShardedDataset, dev: Any, **given: Any) -> NoReturn:
        raise ValueError("LatentSVM trains in memory; give fit X and y, not a dataset")

    @property
    def classes_(self) -> tuple[Hashable, ...]:
        """All labels, without sub-labels."""
        return self._model().classes_

    def complete(self, X: Sequence[Any], y: Sequence[Any]) -> list[Any]:
        """The best output of each example that agrees with what is given in ``y``, as :meth:`predict` returns them."""
        model = self._model()
        encoder = model.encoder
        with _threads.threads(self.n_jobs):
            batch, y = encoder.transform(X), checks.examples(y, "y")
            checks.same_length(checks.examples(X), y)
            structure = batch.structure
            known = PartialOutputs.build(structure, encoder.given(batch, y))
            best, _ = known.best(structure, batch.features.scores(model.weights))
            return encoder.decode(batch, structure.decode(best.dense()))

    def predict_sublabels(self, X: Sequence[Any]) -> list[list[tuple[Hashable, int]]]:
        """The best pairs of a label and a sub-label of each position or node."""
        model = self._model()
        if not isinstance(model.encoder, SublabelEncoder):
            raise ValueError("the labels have no sub-labels; train with n_sublabels=2 or more")
        return replace(model, encoder=model.encoder.base).predict(X)

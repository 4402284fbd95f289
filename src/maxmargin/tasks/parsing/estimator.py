"""DependencyParser: a scikit-learn estimator that parses sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from maxmargin._estimator import Estimator, Outputs
from maxmargin.explanation.result import Explanation
from maxmargin.optimization.callbacks import Callback
from maxmargin.optimization.checkpoints.files import Checkpoint
from maxmargin.optimization.solver import Solver
from maxmargin.structures.base import FloatArray
from maxmargin.tasks.parsing.defaults import AGGRESSIVENESS, BITS, ORDER
from maxmargin.tasks.parsing.io.treebank import Tree, Treebank
from maxmargin.tasks.parsing.metrics.attachment import AttachmentScores
from maxmargin.tasks.parsing.model import ParserModel, with_trees
from maxmargin.tasks.parsing.training import ParserSettings, train_parser
from maxmargin.training import Settings


class DependencyParser(Estimator):
    """Large-margin parser: the best projective tree of each sentence, then the relation of each arc.

    X is a :class:`Treebank`, as :func:`read_treebank` reads it from CoNLL-U, or a list of sentences of the package
    ``conllu``, or of lists of dictionaries with its keys (``form``, ``lemma``, ``upos``, ``xpos``, ``feats``; those of
    tokens that have none may be missing). y is a list of pairs of heads, counted from 1 with 0 for the root, and
    relations; without y the trees are those of X.

    Args:
        order: 1 to score arcs alone, 2 for neighboring arcs, too: siblings and grandparents.
        bits: features are hashed to ``2^bits`` weights.
        aggressiveness: how far MIRA goes to mend an error.
        single_root: whether exactly one token of a sentence is below the root. Training trees with more are refused;
            with False every sentence may have several.
        labeled: whether arcs have relations; with False heads alone are learned, and predicted relations are ``_``.
        partial: whether training trees may be known in part: heads and relations that are None in y, or ``_`` in X, are
            unknown; with False they are refused.
        solver: "auto" for MIRA, or a solver object of :mod:`maxmargin.solvers`, for example ``mm.BlockFrankWolfe()``,
            whose result comes with a certified duality gap.
        C: regularization of solvers that minimize the objective, larger means less; MIRA has none.
        tol: relative duality gap at which those stop.
        max_iter: passes over the sentences; None for 10 of MIRA, or the solver's own limit.
        max_seconds: time limit of each of the runs, one for trees of each order and one for relations.
        patience: with dev data, certificates without a better dev score after which a run of trees ends.
        n_jobs: threads, as scikit-learn reads it; never changes the result.
        random_state: the seed; equal seeds give the same model, bit for bit.
        checkpoint: a file or a :class:`maxmargin.solvers.Checkpoint`, from which interrupted training resumes.
        verbose: draw a progress bar on a terminal.
        callbacks: functions of a :class:`maxmargin.solvers.Record`; a true result stops a run.

    Attributes:
        coef_: the weights.
        classes_: the relations.
        model_: the trained :class:`ParserModel`.
        solution_: the run of its trees: status, certificate and history.
    """

    model_: ParserModel

    def __init__(
        self,
        *,
        order: int = ORDER,
        bits: int = BITS,
        aggressiveness: float = AGGRESSIVENESS,
        single_root: bool = True,
        labeled: bool = True,
        partial: bool = False,
        solver: Solver | str = "auto",
        C: float = 1.0,
        tol: float = 1e-2,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        patience: int | None = None,
        n_jobs: int | None = None,
        random_state: int | None = 0,
        checkpoint: str | Path | Checkpoint | None = None,
        verbose: bool = False,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.order, self.bits, self.aggressiveness, self.solver = order, bits, aggressiveness, solver
        self.single_root, self.labeled, self.partial = single_root, labeled, partial
        self.C, self.tol, self.max_iter, self.max_seconds, self.patience = C, tol, max_iter, max_seconds, patience
        self.n_jobs, self.random_state, self.checkpoint = n_jobs, random_state, checkpoint
        self.verbose, self.callbacks = verbose, callbacks

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn: trees may be those of X."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags

    def fit(self, X: Any, y: Sequence[Tree] | None = None, *, dev: Any = None) -> Self:
        """Train.

        Args:
            X: sentences.
            y: their trees; None for those of X.
            dev: held-out sentences, or a pair of them and their trees, that choose the number of passes.
        """
        names = "C", "tol", "max_iter", "max_seconds", "patience", "n_jobs", "random_state", "checkpoint"
        own = {name: getattr(self, name) for name in (*names, "verbose", "callbacks", "solver")}
        settings = ParserSettings(
            order=self.order,
            bits=self.bits,
            aggressiveness=self.aggressiveness,
            single_root=self.single_root,
            labeled=self.labeled,
            partial=self.partial,
            training=Settings(**own),
        )
        held = None if dev is None else with_trees(_bank(dev[0]), dev[1]) if _is_pair(dev) else _bank(dev)
        model = train_parser(with_trees(_bank(X), y), settings, dev=held)
        self.model_, training = model, model.training
        self.solution_ = None if training is None else training.solution
        return self

    def _model(self) -> ParserModel:
        check_is_fitted(self, "model_")
        return replace(self.model_, n_jobs=self.n_jobs)

    @property
    def coef_(self) -> FloatArray:
        """The weights."""
        return self._model().weights

    @property
    def classes_(self) -> tuple[str, ...]:
        """The relations."""
        return self._model().encoder.classes

    def predict(self, X: Any) -> list[Tree]:
        """Return the tree of each sentence: heads, counted from 1 with 0 for the root, and relations."""
        return Outputs(self._model().predict(X))

    def explain(self, x: Any, *, against: Any = None, at: int | None = None, relation: bool = False) -> Explanation:
        """Explain the prediction for one sentence; see :meth:`ParserModel.explain`."""
        return self._model().explain(x, against=against, at=at, relation=relation)

    def k_best(self, X: Any, k: int) -> list[list[tuple[Any, float]]]:
        """Return the ``k`` best trees of each sentence with their scores, best first."""
        return self._model().k_best(X, k)

    def evaluate(self, X: Any, y: Sequence[Tree] | None = None) -> AttachmentScores:
        """Return the attachment scores of CoNLL 2018; without ``y`` gold trees are those of ``X``."""
        return self._model().evaluate(X, y)

    def score(self, X: Any, y: Sequence[Tree] | None = None) -> float:
        """Return the labeled attachment score."""
        return self._model().score(X, y)

    def save(self, path: str | Path) -> None:
        """Write the trained model to a file that :func:`maxmargin.load` reads."""
        self._model().save(path)

    @classmethod
    def load(cls, path: str | Path, **settings: Any) -> Self:
        """Return a parser with the model of a file; settings are those of the constructor."""
        model = ParserModel.load(path)
        trees = model.encoder.trees
        own = {"order": trees.order, "bits": trees.bits, "single_root": trees.single_root}
        parser = cls(**{**own, "labeled": model.encoder.labeled, **settings})
        parser.model_ = model
        return parser


def _bank(X: Any) -> Treebank:
    return X if isinstance(X, Treebank) else Treebank.of(X)


def _is_pair(dev: Any) -> bool:
    """Whether dev data is a pair of sentences and trees."""
    return isinstance(dev, tuple) and len(dev) == 2

"""SequenceTagger: a scikit-learn estimator for sequence tagging."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from maxmargin import _threads
from maxmargin._estimator import Estimator, Outputs
from maxmargin.datasets import ShardedDataset
from maxmargin.encoders.data import checks
from maxmargin.execution import Executor
from maxmargin.explanation.result import Explanation
from maxmargin.models.base import Metric
from maxmargin.optimization.callbacks import Callback
from maxmargin.optimization.checkpoints.files import Checkpoint
from maxmargin.optimization.solver import Solver
from maxmargin.structures.base import FloatArray
from maxmargin.structures.chains.transitions import TransitionConstraints
from maxmargin.tasks.tagging.encoder.columns.gazetteers import Given
from maxmargin.tasks.tagging.encoder.tagging import TaggingEncoder
from maxmargin.tasks.tagging.encoder.templates.template import Template
from maxmargin.tasks.tagging.folds import FOLDS
from maxmargin.tasks.tagging.metrics.scores import TagScores, evaluate
from maxmargin.tasks.tagging.model import TaggerModel, TrainingLog
from maxmargin.tasks.tagging.sharding import TaggedSource, train_tagger_on
from maxmargin.tasks.tagging.training import TagLoss, train_tagger
from maxmargin.training import Settings


class Predictor(Estimator, ABC):
    """The predictions and attributes of estimators that have a :class:`TaggerModel`."""

    @abstractmethod
    def _model(self) -> TaggerModel:
        """Return the trained model with the number of threads that is set now."""

    @property
    def classes_(self) -> list[Hashable]:
        """All labels, in the order of the columns of probabilities."""
        return list(self._model().labels)

    @property
    def coef_(self) -> FloatArray:
        """The weights, shape ``(n_weights,)``."""
        return self._model().weights

    def predict(self, X: Any, *, known: Sequence[Sequence[Any]] | None = None) -> Any:
        """Return the best labels of each sentence, a list of lists; see :meth:`TaggerModel.predict`."""
        return Outputs(self._model().predict(X, known=known))

    def predict_iter(self, sentences: Iterable[Any], *, size: int = 256) -> Iterator[list[Hashable]]:
        """Yield the best labels of each sentence of any iterable; see :meth:`TaggerModel.predict_iter`."""
        return self._model().predict_iter(sentences, size=size)

    def predict_single(self, sentence: Any) -> list[Hashable]:
        """Return the best labels of one sentence."""
        return self._model().predict_single(sentence)

    def k_best(self, X: Any, k: int, *, known: Sequence[Sequence[Any]] | None = None) -> list[list[Any]]:
        """Return the ``k`` best labelings of each sentence with their scores, best first."""
        return self._model().k_best(X, k, known=known)

    def explain(
        self,
        x: Any,
        *,
        against: Any = None,
        at: int | None = None,
        feature_names: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    ) -> Explanation:
        """Explain the prediction for one sentence; see :meth:`TaggerModel.explain`."""
        return self._model().explain(x, against=against, at=at, feature_names=feature_names)

    def margins(self, X: Any) -> list[FloatArray]:
        """Return the margins of labels, an array per sentence; see :meth:`TaggerModel.margins`."""
        return self._model().margins(X)

    def predict_proba(self, X: Any, *, known: Sequence[Sequence[Any]] | None = None) -> list[FloatArray]:
        """Return the probability of each label at each token; see :meth:`TaggerModel.predict_proba`."""
        return self._model().predict_proba(X, known=known)

    def predict_marginals(self, X: Any) -> list[list[dict[Hashable, float]]]:
        """Return the probabilities as dictionaries, one per token, as sklearn-crfsuite does."""
        return self._model().predict_marginals(X)

    def predict_marginals_single(self, sentence: Any) -> list[dict[Hashable, float]]:
        """Return :meth:`predict_marginals` of one sentence."""
        return self._model().predict_marginals_single(sentence)

    def evaluate(self, X: Any, y: Any) -> TagScores:
        """Return all scores of the predictions; gold labels unseen in training count as errors."""
        return evaluate(checks.examples(y, "y"), self.predict(X), known=self._model().labels)

    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the token accuracy; gold labels unseen in training count as errors."""
        return self.evaluate(X, y).accuracy if sample_weight is None else self._model().score(X, y, sample_weight)

    @property
    def attributes_(self) -> list[str]:
        """All attributes, in the order of their numbers."""
        return self._model().attributes_

    @property
    def feature_names_in_(self) -> npt.NDArray[Any]:
        """Names of the columns of features, if sentences were data frames of numbers; AttributeError otherwise."""
        names = getattr(self._model().extractor, "names", None)
        if names is None:
            raise AttributeError(f"this {type(self).__name__} was not trained on data frames of numbers")
        return np.array(names, dtype=object)

    @property
    def state_features_(self) -> dict[tuple[str, Hashable], float]:
        """Weights of pairs of an attribute and a label, except those that are 0."""
        return self._model().state_features_

    @property
    def transition_features_(self) -> dict[tuple[Hashable, Hashable], float]:
        """Weights of allowed transitions."""
        return self._model().transition_features_

    @property
    def training_log_(self) -> TrainingLog | None:
        """How training went, certificate by certificate; None for a model from a file."""
        return self._model().training_log_

    @property
    def calibrated_on(self) -> str | None:
        """What probabilities were calibrated on, "dev data" or "folds"; None if they are not calibrated."""
        return self._model().calibrated_on

    def save(self, path: str | Path) -> None:
        """Write the trained model to a file that :func:`maxmargin.load` reads."""
        self._model().save(path)


class SequenceTagger(Predictor):
    """Large-margin chain for labels of sequences, trained to a certified duality gap.

    X is a list of sentences. A sentence is a list of tokens, each a string or one string per column (with ``preset`` or
    ``template``), or a feature dictionary or list of attributes as in sklearn-crfsuite; or it is a matrix with a row
    per token (dense, CSR, or :class:`maxmargin.FeatureSequence` with edge features). y is a list of label sequences;
    labels are any hashable values, None (or ``unknown``) for unknown ones.

    Args:
        preset: "pos", "chunking" or "ner": a built-in template (docs/tasks/tagging-presets.md); None chooses one by
            what the labels of tokens of text mark, ``model_.metadata["preset_reason"]`` says why.
        template: a template text in CRF++'s syntax, or a :class:`Template`; instead of a preset.
        columns: names of the columns of tokens, if there are several.
        order: order of the chain, 1 or 2.
        constraints: "auto" (BIO or IOBES if the labels look like it and nearly all training sentences satisfy it; the
            others are left out with a warning), "bio", "iobes", None for none, or a
            :class:`maxmargin.structures.TransitionConstraints`.
        forbidden: pairs of labels that may not follow each other, ``("O", "I-NP")``; ``(None, "I-NP")`` forbids a label
            at the beginning, ``("B-NP", None)`` at the end.
        classes: all labels, if the training data may lack some.
        unknown: the label that stands for an unknown one in y, besides None.
        min_count: attributes of fewer tokens are dropped; None for the default of the preset, or 1.
        support: which pairs of attributes and labels have weights: "negative" (those that occur, and wrong ones that
            the first passes predict), "observed" (those that occur) or "all".
        segments: score whole chunks (names, phrases) and not only their tokens: their length, and attributes of all
            their tokens by the ``S`` lines of a template; needs BIO or IOBES labels (docs/tasks/tagging.md).
        gazetteers: lists of names for tokens of text: files with an entry per line, as ``FILE`` or ``NAME=FILE``, or a
            dictionary from names to files or to lists of entries; a TAB and a label may follow an entry.
        text: text without labels, from which clusters of words are learned: files with a sentence per line, or
            sentences as lists of words.
        C: larger means less regularization; of a list, the best on the dev data or else across folds is chosen; "auto"
            searches 0.01 to 10 across folds; None for the default of the preset, and without one "auto".
        folds: parts of the training sentences (of a sample, if there are many) that choose C and, without dev data,
            calibrate probabilities; 0 for none, and with fewer than 20 sentences there are none.
        prune: for small models: weights whose absolute value times the square root of the number of tokens with their
            attribute is smaller are dropped, with the attributes that are left without any, and the others are
            trained once more. 0.2 leaves about half to a third of them, at about the same scores.
        repair: mend labels, of dev data too, that break the rules of their scheme: I-NP after O becomes B-NP.
        loss: cost of errors: None for 1 each; a dictionary from labels to the cost of missing them; a ``(K, K)`` matrix
            with gold labels as rows; or a loss of :mod:`maxmargin.losses`.
        solver: a solver object of :mod:`maxmargin.solvers`, or "auto" for block-coordinate Frank-Wolfe.
        tol: relative duality gap at which training stops.
        max_iter: maximal number of passes; None for the default of the solver.
        max_seconds: time limit of training with a C; folds share it.
        metric: the dev score: "accuracy", "f1" (of chunks), "sentence_accuracy", "auto", or a function of gold and
            predicted labels, lists of one list per sentence.
        patience: training stops after this many certificates without a better dev score; None never stops it early.
        n_jobs: threads, as in scikit-learn; never changes the result.
        executor: where the work on the examples is done, in shards: an executor of :mod:`maxmargin.execution`; None for
            this process.
        random_state: the seed; equal seeds give the same model, bit for bit.
        checkpoint: a file or a :class:`maxmargin.solvers.Checkpoint`, from which interrupted training resumes.
        verbose: draw a progress bar on a terminal.
        callbacks: functions of a :class:`maxmargin.solvers.Record`; a true result stops the run.

    Attributes:
        coef_: the weights, shape ``(n_weights,)``.
        model_: the trained :class:`TaggerModel`.
        solution_: certificate, status, history and counters of the run.
        dev_scores_: pairs of iteration and dev score; empty without dev data.
        choices_: pairs ``({"C": C}, score)`` of the values of C that were compared; empty if there was one.
    """

    model_: TaggerModel
    _learned_from: tuple[Any, Any] = (None, None)
    """The gazetteers and the text of :meth:`fit`; not known of a model from a file."""

    def __init__(
        self,
        *,
        preset: str | None = None,
        template: str | Template | None = None,
        columns: Sequence[str] | str | None = None,
        order: int = 1,
        constraints: str | TransitionConstraints | None = "auto",
        forbidden: Iterable[tuple[Hashable, Hashable]] = (),
        classes: Sequence[Hashable] | None = None,
        unknown: Hashable = None,
        min_count: int | None = None,
        support: str = "negative",
        segments: bool = False,
        gazetteers: Given | None = None,
        text: Any = None,
        repair: bool = False,
        C: float | Sequence[float] | str | None = None,
        folds: int = FOLDS,
        prune: float = 0.0,
        loss: TagLoss | None = None,
        solver: Solver | str = "auto",
        tol: float = 1e-2,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        metric: Metric | str = "auto",
        patience: int | None = 5,
        n_jobs: int | None = None,
        executor: Executor | None = None,
        random_state: int | None = 0,
        checkpoint: str | Path | Checkpoint | None = None,
        verbose: bool = False,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.preset, self.template, self.columns, self.order = preset, template, columns, order
        self.constraints, self.forbidden, self.classes, self.unknown = constraints, forbidden, classes, unknown
        self.min_count, self.support, self.gazetteers, self.text = min_count, support, gazetteers, text
        self.C, self.folds, self.prune, self.loss, self.repair = C, folds, prune, loss, repair
        self.segments = segments
        self.solver, self.tol, self.max_iter, self.max_seconds = solver, tol, max_iter, max_seconds
        self.metric, self.patience, self.n_jobs, self.random_state = metric, patience, n_jobs, random_state
        self.checkpoint, self.verbose, self.callbacks, self.executor = checkpoint, verbose, callbacks, executor

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        dev: tuple[Any, Any] | None = None,
        sample_weight: npt.ArrayLike | None = None,
        loss_weight: Sequence[npt.ArrayLike] | None = None,
    ) -> Self:
        """Train.

        Args:
            X: sentences; or a :class:`TokenTable` or :class:`AttributeText` of a file; or, without ``y``, a
                :class:`maxmargin.ShardedDataset` of :meth:`build_dataset`.
            y: their labels, a sequence per sentence; for tables also flat codes, as ``(codes, labels)``.
            dev: held-out sentences and labels ``(X, y)`` that choose the stopping point (and C, if there are several)
                and calibrate probabilities.
            sample_weight: weight of each sentence, shape ``(n_sentences,)``.
            loss_weight: cost of an error at each token, an array per sentence.

        Returns:
            The tagger. Issues a ConvergenceWarning if the gap is not closed.
        """
        if isinstance(X, ShardedDataset):
            return self._fit_dataset(X, dev, y=y, sample_weight=sample_weight, loss_weight=loss_weight)
        data = {"dev": dev, "sample_weight": sample_weight, "loss_weight": loss_weight}
        return self._fit(self._chosen(TaggingEncoder), X, y, None, **data)

    def build_dataset(self, folder: str | Path, source: Any, **options: Any) -> ShardedDataset:
        """Encode labeled sentences into a folder, from which :meth:`fit` trains in the memory of one shard.

        Args:
            folder: the folder.
            source: sentences and labels, see :meth:`maxmargin.ShardedDataset.build`; or the name of a labeled file.
            options: further options of :meth:`maxmargin.ShardedDataset.build`.
        """
        source = TaggedSource(source) if isinstance(source, (str, Path)) else source
        with _threads.threads(self.n_jobs):
            return ShardedDataset.build(folder, self._chosen(TaggingEncoder), source, **options)

    def _fit_dataset(self, dataset: ShardedDataset, dev: tuple[Any, Any] | None, **given: Any) -> Self:
        for name, value in given.items():
            if value is not None:
                raise ValueError(f"a dataset has its own {name}; leave it out, or give it to build_dataset")
        dataset.require(self._chosen(TaggingEncoder))
        settings = self._chosen(Settings, loss=None)
        model = train_tagger_on(dataset, settings, dev=dev, loss=self.loss, folds=self.folds, prune=self.prune)
        return self._trained(model)

    def partial_fit(
        self,
        X: Any,
        y: Any,
        *,
        dev: tuple[Any, Any] | None = None,
        classes: Sequence[Hashable] | None = None,
        sample_weight: npt.ArrayLike | None = None,
        loss_weight: Sequence[npt.ArrayLike] | None = None,
    ) -> Self:
        """Continue training with further sentences, close to the current weights.

        Minimizes ``1/(2C) ||w - w_before||^2`` plus the hinge losses of the new sentences, to a certified gap. New
        attributes get weights; new labels are an error unless the first call named them in ``classes``. The first call
        is a :meth:`fit`. Order and constraints must be those of the model; other gazetteers or text than those of the
        first call are an error.
        """
        if isinstance(X, ShardedDataset):
            raise ValueError(
                "a dataset has attributes and weights of its own, not those of a model; give sentences and labels, or "
                "train anew on a dataset of all text with fit"
            )
        encoder, before = self._chosen(TaggingEncoder), getattr(self, "model_", None)
        if before is not None:
            gazetteers, text = self._learned_from
            encoder = replace(
                encoder,
                gazetteers=None if self.gazetteers is gazetteers else self.gazetteers,
                text=None if self.text is text else self.text,
            )
        if classes is not None and before is None:
            encoder = replace(encoder, classes=tuple(classes))
        return self._fit(encoder, X, y, before, dev=dev, sample_weight=sample_weight, loss_weight=loss_weight)

    def _chosen(self, kind: Any, **given: Any) -> Any:
        """Return the settings of a kind: those given, and others that this estimator has."""
        own = {field.name: getattr(self, field.name) for field in fields(kind) if hasattr(self, field.name)}
        return kind(**{**own, **given})

    def _fit(self, encoder: TaggingEncoder, X: Any, y: Any, before: TaggerModel | None, **data: Any) -> Self:
        settings = self._chosen(Settings, loss=None)  # a dictionary becomes a loss when the labels are known
        data |= {"folds": self.folds, "prune": self.prune}
        model = train_tagger(encoder, X, y, settings, loss=self.loss, before=before, **data)
        return self._trained(model, new=before is None)

    def _trained(self, model: TaggerModel, *, new: bool = True) -> Self:
        training = model.training
        assert training is not None
        # Nothing can fail from here on: an estimator is fitted completely or not changed.
        self.model_, self.solution_, self.dev_scores_ = model, training.solution, training.dev_scores
        if new:
            self._learned_from = self.gazetteers, self.text
        self.choices_ = tuple(({"C": C}, score) for C, score in training.tried)
        return self

    def _model(self) -> TaggerModel:
        check_is_fitted(self, "model_")
        return replace(self.model_, n_jobs=self.n_jobs)

    @classmethod
    def load(cls, path: str | Path, **settings: Any) -> Self:
        """Return a tagger with the model of a file, for predictions and :meth:`partial_fit`.

        Settings are those of the constructor; the order defaults to that of the model.
        """
        model = TaggerModel.load(path)
        tagger = cls(**{"order": model.weight_layout.order, **settings})
        tagger.model_ = model
        return tagger

"""The word aligner for scikit-learn: settings, and a trained model that it delegates to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from maxmargin import _threads
from maxmargin._estimator import Estimator, Outputs
from maxmargin.datasets import ShardedDataset
from maxmargin.explanation.result import Explanation
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.alignment.bootstrap import bootstrap_aligner
from maxmargin.tasks.alignment.io.links import Prediction
from maxmargin.tasks.alignment.model import AlignerModel
from maxmargin.tasks.alignment.sharding import BLOCK_PAIRS, AlignmentRecipe, train_aligner_on
from maxmargin.tasks.alignment.training import AlignerSettings, train_aligner


class WordAligner(Estimator, AlignerSettings):
    """Word alignment by maximum-weight matchings with learned scores.

    Translation models (:mod:`~maxmargin.tasks.alignment.translation.bitext_models`) are learned from a bitext without
    annotations; a max-margin model over their posteriors, positions, spelling and frequencies is learned from a few
    annotated pairs. Words may have up to ``fertility`` links, at a learned cost for each one beyond the first.

    Args:
        fertility: maximum number of links of a word.
        features: groups of link features, of :data:`~maxmargin.tasks.alignment.encoder.features.GROUPS`; None for all.
        frequent_pairs: number of frequent word pairs that have a weight of their own.
        C: regularization, ``1/(2C) ||w - start||^2`` against the sum of hinge losses; one number, or several to choose
            from.
        false_negative: cost of a missed sure link, relative to a wrong link; one number, or several to choose from.
        rounds: number of times that possible links are imputed (see :mod:`~maxmargin.tasks.alignment.training`).
        folds: number of folds of the annotated pairs for choosing and calibrating without dev pairs.
        solver: "auto", or a solver of :mod:`maxmargin.solvers`.
        tol: relative duality gap of the training runs.
        models: translation models of another aligner (``aligner.models_``); None to learn them in ``fit``.
        start: weights to stay close to, by the names of features: "packaged" for those of the package
            (:mod:`~maxmargin.tasks.alignment.start`), a model of any language pair (``aligner.model_``), or None for
            zeros.
        random_state: seed of the folds and of randomized solvers.
        n_jobs: number of threads, as in scikit-learn; None for one.
        executor: where translation models learn and the work on the examples is done, in shards: an executor of
            :mod:`maxmargin.execution`; None for this process.
        verbose: whether to draw a progress bar on a terminal.
        checkpoint: a file or a :class:`maxmargin.solvers.Checkpoint`, from which interrupted training resumes; tables
            of translation models and choices of settings are saved beside it.
        max_entries: the most word pairs that translation models learn from a :class:`ShardedBitext`; None for what fits
            into half of the memory.

    Attributes:
        model_: the trained :class:`~maxmargin.tasks.alignment.model.AlignerModel`, which :func:`maxmargin.load` reads
            from a file; its metadata has the settings used.
        models_: the translation models.
        coef_: the weights, shape ``(n_weights,)``, named by ``feature_names_``.
        choices_: the settings that were tried, each with its AER on held-out pairs.
        solution_: certificate, status and history of the last training run.
        held_out_: :class:`~maxmargin.tasks.alignment.metrics.scores.Scores` of held-out pairs, or None.
    """

    def fit(
        self,
        X: Iterable[Any] | ShardedDataset,
        y: Sequence[Any] | None = None,
        *,
        bitext: Iterable[Any] = (),
        dev: tuple[Iterable[Any], Sequence[Any]] | None = None,
    ) -> Self:
        """Learn from annotated sentence pairs.

        If there are no held-out pairs to choose settings by (no ``dev``, and ``folds`` below 2 or a single pair), the
        middle one of several ``C``, and of several ``false_negative``, is used, with a warning unless they are the
        defaults.

        Args:
            X: sentence pairs: a list or another iterable, such as a
                :class:`~maxmargin.tasks.alignment.io.bitext.Bitext`. Each is a :class:`SentencePair`, or a tuple
                ``(source, target)`` of lists of words or of strings, which are split at ASCII white space. Or, without
                ``y`` and ``bitext``, a dataset of :meth:`build_dataset`, which has the translation models.
            y: for each pair a :class:`Reference`, or its links ``(source, target)``, which are then all sure.
            bitext: further sentence pairs without annotations, given like ``X``, for the translation models: the more
                the better. They may include pairs that will be aligned later. A :class:`ShardedBitext` stays on disk.
                Not allowed together with ``models``.
            dev: annotated pairs ``(X, y)`` for choosing settings and calibrating; without them, ``X`` is
                cross-validated, unless it is a dataset.
        """
        if isinstance(X, ShardedDataset):
            for name, given in (("y", y), ("bitext", None if isinstance(bitext, tuple) and not bitext else bitext)):
                if given is not None:
                    raise ValueError(f"a dataset has its own {name}; leave it out, or give it to build_dataset")
            if self.models is not None:
                raise ValueError(
                    "a dataset has its own translation models; leave models out, or give them to the "
                    "aligner that builds it"
                )
            X.require(AlignmentRecipe(self))
            return self._set(train_aligner_on(X, self, dev=dev))
        if y is None:
            raise ValueError("y is missing: give links for each pair, or a ShardedDataset in place of X and y")
        return self._set(train_aligner(X, y, self, bitext=bitext, dev=dev))

    def build_dataset(
        self, folder: str | Path, source: Any, *, bitext: Iterable[Any] = (), **options: Any
    ) -> ShardedDataset:
        """Encode annotated pairs into a folder, from which :meth:`fit` trains in the memory of one shard.

        Translation models are learned first, from all words of the pairs and the bitext, unless ``models`` has some.

        Args:
            folder: the folder.
            source: pairs and references ``(x, y)`` as :meth:`fit` takes them; see
                :meth:`maxmargin.ShardedDataset.build`.
            bitext: as in :meth:`fit`.
            options: further options of :meth:`maxmargin.ShardedDataset.build`.
        """
        options.setdefault("block_examples", BLOCK_PAIRS)
        with _threads.threads(self.n_jobs):
            return ShardedDataset.build(folder, AlignmentRecipe(self, bitext), source, **options)

    def bootstrap(self, bitext: Iterable[Any], *, n_pairs: int = 1000) -> Self:
        """Learn from a bitext alone, see :mod:`~maxmargin.tasks.alignment.bootstrap`.

        The weights of ``start`` (of the package if that is None) label a part of the bitext. Settings are not chosen,
        as there are no annotations to choose by: ``C`` and ``false_negative`` are used if they are single numbers,
        otherwise those of the module, with a warning unless they are the defaults. ``choices_`` is empty. Confidences
        are estimates from other languages (``model_.calibrated`` is False).

        Args:
            bitext: sentence pairs without annotations, given like ``X`` in :meth:`fit`, or a :class:`ShardedBitext`.
            n_pairs: number of pairs, drawn at random, whose links are learned from; of long ones fewer, with
                60,000 word pairs together.
        """
        return self._set(bootstrap_aligner(bitext, self, n_pairs=n_pairs))

    def _set(self, model: AlignerModel) -> Self:
        training = model.training
        if training is None:  # interrupted before the first weights
            self.models_ = model.encoder.models
            raise KeyboardInterrupt
        self.model_, self.models_, self.coef_ = model, model.encoder.models, model.weights
        self.feature_names_ = model.feature_names
        self.solution_, self.choices_, self.held_out_ = training.solution, training.choices, training.held_out
        return self

    def _model(self) -> AlignerModel:
        """The trained model with the number of threads that is set now."""
        check_is_fitted(self)
        return replace(self.model_, n_jobs=self.n_jobs, verbose=self.verbose)

    def predict(self, X: Iterable[Any], *, adapt: bool = True) -> list[IntArray]:
        """The links of each pair; see :meth:`AlignerModel.predict`."""
        return Outputs(self._model().predict(X, adapt=adapt))

    def explain(
        self, x: Any, *, against: Any = None, at: tuple[int, int] | None = None, adapt: bool = True
    ) -> Explanation:
        """Explain the prediction for one sentence pair; see :meth:`AlignerModel.explain`."""
        return self._model().explain(x, against=against, at=at, adapt=adapt)

    def align(self, X: Iterable[Any], *, threshold: float | None = None, adapt: bool = True) -> list[Prediction]:
        """The links of each pair with confidences; see :meth:`AlignerModel.align`."""
        return self._model().align(X, threshold=threshold, adapt=adapt)

    def align_hmm(self, X: Iterable[Any], *, method: str = "intersection", adapt: bool = True) -> list[IntArray]:
        """The symmetrized links of hidden Markov models, a baseline; see :meth:`AlignerModel.align_hmm`."""
        return self._model().align_hmm(X, method=method, adapt=adapt)

    def score_pairs(self, X: Iterable[Any], *, adapt: bool = False) -> FloatArray:
        """How well the sentences of each pair translate each other; see :meth:`AlignerModel.score_pairs`."""
        return self._model().score_pairs(X, adapt=adapt)

    def score(self, X: Iterable[Any], y: Sequence[Any]) -> float:
        """``1 - AER``."""
        return self._model().score(X, y)

    def save(self, path: str | Path, *, min_probability: float = 1e-4) -> None:
        """Write the model to a file that :func:`maxmargin.load` reads; see :meth:`AlignerModel.save`."""
        self._model().save(path, min_probability=min_probability)

"""SequenceTagger: train and use a tagger in scikit-learn's manner, in place of sklearn_crfsuite.CRF."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from maxmargin.structures.base import FloatArray
from maxmargin.tasks.tagging.fitting import TagTrainer
from maxmargin.tasks.tagging.metrics import TagScores, evaluate
from maxmargin.tasks.tagging.model import TaggerModel, load_tagger


class SequenceTagger(TagTrainer, BaseEstimator):  # type: ignore[misc]
    """Labels of sequences by a large-margin chain, trained to a certified duality gap.

    X is a list of sentences. A sentence is a list of tokens, each a string or one string per column (with ``preset`` or
    ``template``), or a feature dictionary or list of attributes as sklearn-crfsuite takes them, or the sentence is a
    matrix with a row per token (dense, CSR, or :class:`maxmargin.FeatureSequence` with edge features). y is a list of label
    sequences; labels are any hashable values, None (or ``unknown``) where a label is not known.

    Args:
        preset: "pos", "chunking" or "ner": a template that comes with the library (docs/tagging-presets.md).
        template: a template text in CRF++'s syntax, or a :class:`Template`; instead of a preset.
        columns: names of the columns of tokens, where they have several.
        order: 1, or 2 where scores see three labels in a row.
        legal: "auto" (rules of BIO or IOBES where the labels look like that and all training sentences keep them),
            "bio", "iobes", a :class:`maxmargin.structures.TransitionConstraints`, or None for no rules.
        forbidden: pairs of labels that may not follow each other, ``("O", "I-NP")``; ``(None, "I-NP")`` forbids a label
            at the beginning, ``("B-NP", None)`` at the end.
        classes: all labels, where the training data may lack some.
        unknown: the label that stands for "not known" in y, besides None.
        min_count: attributes that are in fewer tokens are left out; None for what suits the preset, or 1.
        states: which pairs of attributes and labels have weights: "rivals" (those that occur and those that the first
            passes take for right), "observed" (those that occur) or "all".
        C: larger means less regularization; a list: the best on the dev data is taken; None for what suits the preset,
            or 0.1.
        cost: what errors cost: None for 1 each; a dictionary from labels to the cost of missing them; a ``(K, K)``
            matrix of costs, rows are right labels; or a loss of :mod:`maxmargin.losses`.
        solver: a solver object of :mod:`maxmargin.solvers`, or "auto" for block-coordinate Frank-Wolfe.
        tol: relative duality gap aimed at.
        max_iter: passes at most; None takes the solver's own limit.
        max_seconds: time limit of a run.
        metric: the dev score: "accuracy", "f1" (of chunks), "sentence_accuracy", or "auto".
        patience: certificates without a better dev score after which training ends; None never ends it early.
        n_jobs: threads, as scikit-learn reads it; never changes the result.
        random_state: the seed; the same seed gives the same model, bit for bit.
        checkpoint: a file, or a :class:`maxmargin.solvers.Checkpoint`: training that was killed goes on from there.
        verbose: draw a progress bar on a terminal.
        callbacks: functions of a :class:`maxmargin.solvers.Record`; a true result stops the run.

    Attributes:
        model_: the trained :class:`TaggerModel`.
        solution_: certificate, status, history and counters of the run.
        dev_scores_: pairs of iteration and dev score; empty without dev data.
    """

    def _model(self) -> TaggerModel:
        check_is_fitted(self, "model_")
        return replace(self.model_, n_jobs=self.n_jobs)

    @property
    def classes_(self) -> list[Hashable]:
        """All labels, in the order of the columns of probabilities."""
        return list(self._model().labels)

    def predict(self, X: Any, *, known: Sequence[Sequence[Any]] | None = None) -> list[list[Hashable]]:
        """The best labels of each sentence; see :meth:`TaggerModel.predict`."""
        return self._model().predict(X, known=known)

    def predict_single(self, sentence: Any) -> list[Hashable]:
        """The best labels of one sentence."""
        return self._model().predict([sentence])[0]

    def k_best(self, X: Any, k: int, *, known: Sequence[Sequence[Any]] | None = None) -> list[list[Any]]:
        """The ``k`` best labelings of each sentence with their scores, best first."""
        return self._model().k_best(X, k, known=known)

    def margins(self, X: Any) -> list[FloatArray]:
        """By how much the best labeling beats the best one with another label at a token, an array per sentence."""
        return self._model().margins(X)

    def predict_proba(self, X: Any, *, known: Sequence[Sequence[Any]] | None = None) -> list[FloatArray]:
        """The probability of each label at each token; see :meth:`TaggerModel.predict_proba`."""
        return self._model().predict_proba(X, known=known)

    def predict_marginals(self, X: Any) -> list[list[dict[Hashable, float]]]:
        """The same as dictionaries, one per token, as sklearn-crfsuite gives them."""
        labels = self.classes_
        return [[dict(zip(labels, row, strict=True)) for row in found.tolist()] for found in self.predict_proba(X)]

    def predict_marginals_single(self, sentence: Any) -> list[dict[Hashable, float]]:
        """:meth:`predict_marginals` of one sentence."""
        return self.predict_marginals([sentence])[0]

    def evaluate(self, X: Any, y: Any) -> TagScores:
        """All scores of the predictions against gold labels; labels unseen in training count as errors."""
        return evaluate(list(y), self.predict(X), known=self._model().labels)

    def score(self, X: Any, y: Any) -> float:
        """Token accuracy."""
        return self.evaluate(X, y).accuracy

    @property
    def attributes_(self) -> list[str]:
        """All attributes, in the order of their numbers."""
        extractor = self._model().extractor
        return [extractor.name(number) for number in range(extractor.n_attributes)]

    @property
    def state_features_(self) -> dict[tuple[str, Hashable], float]:
        """The weight of each pair of an attribute and a label that has one."""
        model = self._model()
        support, names, labels = model.layout.support, self.attributes_, model.labels
        weights = model.layout.split(model.weights)[0]
        pairs = zip(support.features.tolist(), support.columns.tolist(), weights.tolist(), strict=True)
        return {(names[f], labels[c]): w for f, c, w in pairs}

    @property
    def transition_features_(self) -> dict[tuple[Hashable, Hashable], float]:
        """The weight of each legal pair of neighboring labels."""
        model = self._model()
        pairs, constraints = model.layout.split(model.weights)[1], model.layout.constraints
        return {
            (a, b): float(pairs[i, j])
            for i, a in enumerate(model.labels)
            for j, b in enumerate(model.labels)
            if constraints is None or constraints.pairs[i, j]
        }

    def save(self, path: str | Path) -> None:
        """Write the trained model to a file that :func:`load_tagger` reads."""
        self._model().save(path)

    @classmethod
    def load(cls, path: str | Path, **settings: Any) -> Self:
        """A tagger around a model file, for predictions and :meth:`partial_fit`; settings as for a new one.

        The order is that of the model unless it is given.
        """
        model = load_tagger(path)
        tagger = cls(**{"order": model.layout.order, **settings})
        tagger.model_ = model
        return tagger

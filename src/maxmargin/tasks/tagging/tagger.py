"""SequenceTagger: train and use a tagger in scikit-learn's manner, in place of sklearn_crfsuite.CRF."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from maxmargin import _threads
from maxmargin.features.supported import Support
from maxmargin.losses import Hamming, LabelCost, Loss
from maxmargin.packing import checks
from maxmargin.packing.inputs import Sequence as FeatureSequence
from maxmargin.packing.labels import distinct, sequence, vocabulary
from maxmargin.solvers import Checkpoint, Progress, Solver, Status, Stop
from maxmargin.solvers.callbacks import Callback
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.legality import Legality
from maxmargin.tasks.tagging.attributes import Attributes, Vocabulary
from maxmargin.tasks.tagging.calibration import fitted_temperature
from maxmargin.tasks.tagging.chunks import look_like_chunks
from maxmargin.tasks.tagging.extraction import (
    Extractor,
    ItemExtractor,
    MatrixExtractor,
    TemplateExtractor,
    TokenRows,
    first_token,
)
from maxmargin.tasks.tagging.layout import WeightLayout
from maxmargin.tasks.tagging.metrics import TagScores, evaluate, evaluate_codes
from maxmargin.tasks.tagging.model import UNKNOWN, Codes, TaggerModel, load_tagger
from maxmargin.tasks.tagging.presets import preset as preset_named
from maxmargin.tasks.tagging.table import AttributeText, TokenTable
from maxmargin.tasks.tagging.templates import Template
from maxmargin.tasks.tagging.training import STATES, TagData, Trained, Training, train

LEGAL = ("auto", "bio", "iobes")
METRICS = ("auto", "accuracy", "f1", "sentence_accuracy")
PLAIN = "pos"
"""The preset for plain tokens where none is chosen."""


class SequenceTagger(BaseEstimator):  # type: ignore[misc]
    """Labels of sequences by a large-margin chain, trained to a certified duality gap.

    X is a list of sentences. A sentence is a list of tokens, each a string or one string per column (with ``preset`` or
    ``template``), or a feature dictionary or list of attributes as sklearn-crfsuite takes them, or the sentence is a
    matrix with a row per token (dense, CSR, or :class:`maxmargin.Sequence` with edge features). y is a list of label
    sequences; labels are any hashable values, None (or ``unknown``) where a label is not known.

    Args:
        preset: "pos", "chunking" or "ner": a template that comes with the library (docs/tagging-presets.md).
        template: a template text in CRF++'s syntax, or a :class:`Template`; instead of a preset.
        columns: names of the columns of tokens, where they have several.
        order: 1, or 2 where scores see three labels in a row.
        legal: "auto" (rules of BIO or IOBES where the labels look like that and all training sentences keep them),
            "bio", "iobes", a :class:`maxmargin.structures.Legality`, or None for no rules.
        forbidden: pairs of labels that may not follow each other, ``("O", "I-NP")``; ``(None, "I-NP")`` forbids a label
            at the beginning, ``("B-NP", None)`` at the end.
        classes: all labels, where the training data may lack some.
        unknown: the label that stands for "not known" in y, besides None.
        min_count: attributes that are in fewer tokens are left out.
        states: which pairs of attributes and labels have weights: "rivals" (those that occur and those that a first
            pass takes for right), "observed" (those that occur) or "all".
        C: larger means less regularisation; a list: the best on the dev data is taken.
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

    def __init__(
        self,
        *,
        preset: str | None = None,
        template: str | Template | None = None,
        columns: Sequence[str] | str | None = None,
        order: int = 1,
        legal: str | Legality | None = "auto",
        forbidden: Iterable[tuple[Hashable, Hashable]] = (),
        classes: Sequence[Hashable] | None = None,
        unknown: Hashable = None,
        min_count: int = 1,
        states: str = "rivals",
        C: float | Sequence[float] = 0.1,
        cost: Mapping[Hashable, float] | npt.ArrayLike | Loss | None = None,
        solver: Solver | str = "auto",
        tol: float = 1e-2,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        metric: str = "auto",
        patience: int | None = 5,
        n_jobs: int | None = None,
        random_state: int | None = 0,
        checkpoint: str | Path | Checkpoint | None = None,
        verbose: bool = False,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.preset = preset
        self.template = template
        self.columns = columns
        self.order = order
        self.legal = legal
        self.forbidden = forbidden
        self.classes = classes
        self.unknown = unknown
        self.min_count = min_count
        self.states = states
        self.C = C
        self.cost = cost
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.metric = metric
        self.patience = patience
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.callbacks = callbacks

    def fit(
        self,
        X: Any,
        y: Any,
        X_dev: Any = None,
        y_dev: Any = None,
        *,
        sample_weight: npt.ArrayLike | None = None,
        token_weight: Sequence[npt.ArrayLike] | None = None,
    ) -> Self:
        """Train.

        Args:
            X: sentences; or a :class:`TokenTable` or :class:`AttributeText` of a file.
            y: their labels, a sequence per sentence; for tables also flat codes by ``(codes, labels)``.
            X_dev: sentences on which the stopping point (and C, if several are given) is chosen and probabilities are
                calibrated.
            y_dev: their labels.
            sample_weight: how much each sentence counts, shape ``(n_sentences,)``.
            token_weight: for each sentence how much an error at each token costs.

        Returns:
            The tagger. Warns with ConvergenceWarning if the gap did not close.
        """
        self._check()
        return self._fit(X, y, (X_dev, y_dev), self.classes, sample_weight, token_weight)

    def _fit(self, X: Any, y: Any, dev: tuple[Any, Any], classes: Any, sample_weight: Any, token_weight: Any) -> Self:
        labels, codes = self._codes(y, None if classes is None else self._classes(classes))
        with _threads.threads(self.n_jobs):
            extractor = self._extractor(X)
            X = extractor.prepared(X)
            if isinstance(X, TokenTable):
                _check_lengths(codes, X.lengths)  # before labels are learned from
            least = checks.integer(self.min_count, "min_count", at_least=1)
            extractor, rows = extractor.learn(X, least, (codes[0], [str(label) for label in labels]))
            data = self._data(rows, codes, sample_weight, token_weight)
            k = len(labels)
            if self.order == 2 and extractor.n_edge_attributes:
                raise ValueError("with order=2, pairs of labels cannot see the input; leave out one of the two")
            edges = _nothing(k**2) if rows.edges is not None else None
            layout = WeightLayout(k, self.order, self._legality(labels, data, X), _nothing(k), edges)
            self._train(labels, extractor, layout, data, dev, None)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        X_dev: Any = None,
        y_dev: Any = None,
        *,
        classes: Sequence[Hashable] | None = None,
        sample_weight: npt.ArrayLike | None = None,
        token_weight: Sequence[npt.ArrayLike] | None = None,
    ) -> Self:
        """Go on with further sentences: the weights that fit these and stay close to those there are.

        Minimises ``1/(2C) ||w - w_before||^2`` plus the hinge losses of the new sentences, to a certified gap. New
        attributes get weights; new labels are refused unless the first call named them in ``classes``. The first call
        is a :meth:`fit`.
        """
        if not hasattr(self, "model_"):
            self._check()
            return self._fit(
                X, y, (X_dev, y_dev), self.classes if classes is None else classes, sample_weight, token_weight
            )
        self._check()
        before = self.model_
        _, codes = self._codes(y, before.labels)
        with _threads.threads(self.n_jobs):
            extractor, rows = before.extractor.learn(X, checks.integer(self.min_count, "min_count", at_least=1))
            data = self._data(rows, codes, sample_weight, token_weight)
            if before.layout.legal is not None:
                _refuse(before.layout.legal, data, X, before.labels)
            support, edge_support = before.layout.support, before.layout.edge_support
            layout = replace(
                before.layout,
                support=support.extended(extractor.n_attributes),
                edge_support=None if edge_support is None else edge_support.extended(extractor.n_edge_attributes),
            )
            self._train(before.labels, extractor, layout, data, (X_dev, y_dev), before.weights)
        return self

    def _train(
        self,
        labels: tuple[Hashable, ...],
        extractor: Extractor,
        layout: WeightLayout,
        data: TagData,
        dev: tuple[Any, Any],
        start: FloatArray | None,
    ) -> None:
        began = time.perf_counter()
        score, dev_rows, dev_codes = self._dev(labels, extractor, *dev)
        callbacks: list[Callback] = [*self.callbacks, *([Progress()] if self.verbose else [])]
        how = Training(
            C=self._grid(score is not None),
            loss=self._loss(labels),
            states=self.states,
            solver=None if isinstance(self.solver, str) else self.solver,
            stop=Stop(tol=self.tol, max_iter=self.max_iter, max_seconds=self.max_seconds),
            patience=self.patience,
            random_state=self.random_state,
            callbacks=callbacks,
            checkpoint=self._checkpoint(),
        )
        trained = train(layout, data, how, score, start)
        model = TaggerModel(labels, extractor, trained.layout, trained.weights, None, {}, self.n_jobs)
        if dev_rows is not None and dev_codes is not None:
            model = replace(model, temperature=fitted_temperature(model, dev_rows, dev_codes))
        facts = self._facts(trained, data, time.perf_counter() - began)
        # Nothing can fail from here on: an estimator is fitted as a whole or stays as it was.
        self.model_, self.solution_ = replace(model, facts=facts), trained.solution
        self.dev_scores_, self.saves_ = trained.dev, trained.saves
        may_go_on = trained.interrupted or trained.solution.status is Status.BUDGET
        if how.checkpoint is not None and not how.checkpoint.keep and not may_go_on:
            for save in trained.saves:
                save.remove()

    # Settings, checked.

    def _check(self) -> None:
        if self.preset is not None and self.template is not None:
            raise ValueError("give a preset or a template, not both")
        if type(self.order) is not int or self.order not in (1, 2):
            raise ValueError(f"order must be 1 or 2, got {self.order!r}")
        if self.states not in STATES:
            raise ValueError(f"states must be one of {', '.join(map(repr, STATES))}, got {self.states!r}")
        if self.metric not in METRICS:
            raise ValueError(f"metric must be one of {', '.join(map(repr, METRICS))}, got {self.metric!r}")
        if not isinstance(self.solver, Solver) and self.solver != "auto":
            raise ValueError(
                f'solver must be "auto" or a solver object such as mm.BlockFrankWolfe(), got {self.solver!r}'
            )
        if self.template is not None and not isinstance(self.template, (str, Template)):
            raise ValueError(f"template must be the text of a template or a Template, got {self.template!r}")
        if callable(self.callbacks) or not hasattr(self.callbacks, "__iter__"):
            raise ValueError(f"callbacks must be a list of functions of a record, got {self.callbacks!r}")
        for callback in self.callbacks:
            if not callable(callback):
                raise ValueError(f"callbacks must be functions of a record, got {callback!r}")
        if self.patience is not None:
            checks.integer(self.patience, "patience", at_least=1)
        if self.random_state is not None:
            checks.integer(self.random_state, "random_state")
        if self.columns is not None and not hasattr(self.columns, "__iter__"):
            raise ValueError(f"columns must be names of columns, got {self.columns!r}")

    def _grid(self, dev: bool) -> tuple[float, ...]:
        given: Any = self.C
        grid = tuple(given) if isinstance(given, (list, tuple, np.ndarray)) else (given,)
        for value in grid:
            number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
            if not number or not np.isfinite(value) or not value > 0:
                raise ValueError(f"C must be a finite number > 0 or a list of such, got {given!r}")
        if not grid or (len(grid) > 1 and not dev):
            raise ValueError("several values of C are compared on dev data; give X_dev and y_dev, or one C")
        return tuple(float(value) for value in grid)

    def _loss(self, labels: tuple[Hashable, ...]) -> Loss:
        if self.cost is None:
            return Hamming()
        if isinstance(self.cost, Loss):
            return self.cost
        if isinstance(self.cost, Mapping):
            unknown = [label for label in self.cost if label not in labels]
            if unknown:
                raise ValueError(
                    f"cost names {unknown[0]!r}, which is no label; there are {', '.join(map(str, labels))}"
                )
            row = np.array([float(self.cost.get(label, 1.0)) for label in labels])
            return LabelCost(row[:, None] * (1.0 - np.eye(len(labels))))
        return LabelCost(self.cost)

    def _checkpoint(self) -> Checkpoint | None:
        if self.checkpoint is None or isinstance(self.checkpoint, Checkpoint):
            return self.checkpoint
        return Checkpoint(self.checkpoint)

    def _extractor(self, X: Any) -> Extractor:
        """How the sentences become attributes, by what they are and the settings."""
        if isinstance(X, AttributeText):
            return self._without_template("attributes of tokens", ItemExtractor(Vocabulary()))
        if isinstance(X, TokenTable):
            return TemplateExtractor.of(self._template(X.columns))
        sentences = checks.examples(X)
        first = sentences[0]
        if sp.issparse(first) or (isinstance(first, (np.ndarray, FeatureSequence)) and not _of_text(first)):
            return self._without_template("matrices", MatrixExtractor())
        token = first_token(sentences)
        if self.preset is None and self.template is None and not isinstance(token, str) and self.columns is None:
            return ItemExtractor(Vocabulary())
        width = len(token) if isinstance(token, (list, tuple)) else 1
        names = self._columns() or (("word",) if width == 1 else ("word", "pos")[:width])
        if len(names) < width:
            names = (*names, *(f"column{c}" for c in range(len(names), width)))
        return TemplateExtractor.of(self._template(names[:width]))

    def _columns(self) -> tuple[str, ...] | None:
        from maxmargin.tasks.tagging.files import column_names

        return column_names(self.columns)

    def _without_template(self, what: str, extractor: Extractor) -> Extractor:
        if self.preset is not None or self.template is not None:
            raise ValueError(f"{what} need no template or preset; leave it out, or give tokens of text")
        return extractor

    def _template(self, columns: Sequence[str]) -> Template:
        if isinstance(self.template, Template):
            return self.template
        if self.template is not None:
            return Template.parse(self.template, columns)
        return preset_named(self.preset or PLAIN, columns)

    # Labels.

    def _codes(self, y: Any, known: tuple[Hashable, ...] | None = None) -> tuple[tuple[Hashable, ...], Any]:
        """All labels, and those of the sentences as flat codes with lengths."""
        if _are_codes(y):
            return self._given_codes(y[0], y[1], known)
        given = [sequence(labels, index) for index, labels in enumerate(checks.examples(y, "y"))]
        classes = known
        if classes is None:
            seen = [[label for label in labels if not self._is_unknown(label)] for labels in given]
            classes = vocabulary(seen)
            if not classes:
                raise ValueError("no label is known; label at least some tokens")
        place: dict[Hashable, int] = {label: code for code, label in enumerate(classes)}
        flat = []
        for i, labels in enumerate(given):
            for label in labels:
                code = UNKNOWN if self._is_unknown(label) else place.get(label)
                if code is None:
                    raise ValueError(
                        f"sentence {i}: label {label!r} was not seen before; give all labels with classes=[...] at the "
                        "first training"
                    )
                flat.append(code)
        lengths = np.array([len(labels) for labels in given], dtype=np.int64)
        return classes, (np.array(flat, dtype=np.int32), lengths)

    def _given_codes(self, numbers: Codes, names: Sequence[str], known: tuple[Hashable, ...] | None) -> tuple[Any, Any]:
        """Codes of a file, whose labels come in the order of their first appearance."""
        used = [name for name in names if not self._is_unknown(name)]
        classes = known or tuple(sorted(used))
        if not classes:
            raise ValueError("no label is known; label at least some tokens")
        place = {label: code for code, label in enumerate(classes)}
        for name in used:
            if name not in place:
                raise ValueError(f"label {name!r} was not seen before; give all labels at the first training")
        if numbers.size and not (numbers.min() >= UNKNOWN and numbers.max() < len(names)):
            raise ValueError(f"codes of labels must be places in the list of {len(names)} labels, or {UNKNOWN}")
        moved = np.array([*(place.get(name, UNKNOWN) for name in names), UNKNOWN], dtype=np.int32)
        return classes, (moved[numbers], None)

    def _classes(self, given: Any) -> tuple[Hashable, ...]:
        classes = distinct(given)
        for label in classes:
            if self._is_unknown(label):
                raise ValueError(f"classes holds {label!r}, which stands for a label that is not known; leave it out")
        return classes

    def _is_unknown(self, label: Hashable) -> bool:
        return label is None or (self.unknown is not None and label == self.unknown)

    def _data(self, rows: Any, codes: Any, sample_weight: Any, token_weight: Any) -> TagData:
        _check_lengths(codes, rows.lengths)
        weight = checks.weights(sample_weight, len(rows.lengths))
        per_token = None if token_weight is None else checks.per_decision(token_weight, rows.lengths, "token_weight")
        return TagData(rows, codes[0], weight, per_token)

    def _legality(self, labels: tuple[Hashable, ...], data: TagData, X: Any) -> Legality | None:
        legal, names = None, [str(label) for label in labels]
        given: Any = self.legal
        if isinstance(given, Legality):
            if given.n_labels != len(labels):
                raise ValueError(f"legal is for {given.n_labels} labels, there are {len(labels)}")
            legal = given
        elif given in ("bio", "iobes"):
            legal = Legality.bio(names) if given == "bio" else Legality.iobes(names)
        elif given == "auto":
            legal = self._recognised(names, data) if len(set(names)) == len(names) else None
        elif given is not None:
            raise ValueError(f"legal must be None, a Legality or one of {', '.join(map(repr, LEGAL))}, got {given!r}")
        if forbidden := _pairs(self.forbidden):
            pairs: Any = [tuple(None if name is None else str(name) for name in pair) for pair in forbidden]
            more = Legality.forbid(names, pairs)
            legal = more if legal is None else legal & more
        if legal is not None:
            _refuse(legal, data, X, labels)
        return None if legal is None or legal.allows_all else legal

    def _recognised(self, names: list[str], data: TagData) -> Legality | None:
        """Rules that labels look like and that all sentences keep."""
        if not look_like_chunks(names):
            return None
        strict = any(name.startswith(("E-", "S-", "L-", "U-")) for name in names)
        legal = Legality.iobes(names) if strict else Legality.bio(names)
        return None if _broken(legal, data).size or _cannot_be_completed(legal, data) else legal

    # Dev data.

    def _dev(self, labels: tuple[Hashable, ...], extractor: Extractor, X: Any, y: Any) -> tuple[Any, Any, Any]:
        if X is None and y is None:
            return None, None, None
        if X is None or y is None:
            raise ValueError("give both X_dev and y_dev")
        rows = extractor.rows(X)
        codes, names = self._dev_codes(y, labels, rows.lengths)
        chunks = look_like_chunks(names) if self.metric == "auto" else self.metric == "f1"
        metric = self.metric if self.metric != "auto" else ("f1" if chunks else "accuracy")

        def score(layout: WeightLayout, weights: FloatArray) -> float:
            model = TaggerModel(labels, extractor, layout, weights)
            found = evaluate_codes(codes, model.best(rows).astype(np.int64), rows.offsets, names, chunks=metric == "f1")
            return float(getattr(found, metric))

        return score, rows, codes

    def _dev_codes(self, y: Any, labels: tuple[Hashable, ...], lengths: IntArray) -> tuple[IntArray, list[Hashable]]:
        """Gold labels as codes; those that the model does not know get codes behind its own."""
        names: list[Hashable] = list(labels)
        place = {label: code for code, label in enumerate(names)}

        def code(label: Hashable) -> int:
            if self._is_unknown(label):
                raise ValueError("the dev data have labels that are not known; leave such sentences out")
            if label not in place:
                place[label] = len(names)
                names.append(label)
            return place[label]

        if _are_codes(y):
            if y[0].size and not (y[0].min() >= 0 and y[0].max() < len(y[1])):
                raise ValueError("the dev data have labels that are not known; leave such sentences out")
            codes = np.array([code(name) for name in y[1]], dtype=np.int64)[y[0]]
        else:
            given = [sequence(some, i) for i, some in enumerate(checks.examples(y, "y_dev"))]
            if len(given) != len(lengths):
                raise ValueError(f"the dev data have {len(lengths)} sentences and {len(given)} label sequences")
            for i, (some, length) in enumerate(zip(given, lengths.tolist(), strict=True)):
                if len(some) != length:
                    raise ValueError(f"dev sentence {i}: {len(some)} labels for {length} tokens; give each token one")
            codes = np.array([code(label) for some in given for label in some], dtype=np.int64)
        if len(codes) != int(lengths.sum()):
            raise ValueError(f"the dev data have {len(codes)} labels for {int(lengths.sum())} tokens")
        return codes, names

    def _facts(self, trained: Trained, data: TagData, seconds: float) -> dict[str, Any]:
        solution = trained.solution
        dev = max(trained.dev, key=lambda pair: pair[1], default=None)
        return {
            "sentences": len(data.lengths),
            "tokens": len(data.codes),
            "C": trained.C,
            "states": self.states,
            "preset": self.preset,
            "solver": type(solution.solver).__name__,
            "status": str(Status.INTERRUPTED if trained.interrupted else solution.status),
            "primal": trained.primal,
            "dual": trained.dual,
            "relative_gap": max(trained.primal - trained.dual, 0.0) / abs(trained.primal) if trained.primal else 0.0,
            "iterations": solution.counters.iterations,
            **({} if dev is None else {"dev_iteration": dev[0], "dev_score": dev[1]}),
            "seconds": seconds,
        }

    # Use.

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
        """The ``k`` best labellings of each sentence with their scores, best first."""
        return self._model().k_best(X, k, known=known)

    def margins(self, X: Any) -> list[FloatArray]:
        """By how much the best labelling beats the best one with another label at a token, an array per sentence."""
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
        """The weight of each legal pair of neighbouring labels."""
        model = self._model()
        pairs, legal = model.layout.split(model.weights)[1], model.layout.legal
        return {
            (a, b): float(pairs[i, j])
            for i, a in enumerate(model.labels)
            for j, b in enumerate(model.labels)
            if legal is None or legal.pairs[i, j]
        }

    def save(self, path: str | Path) -> None:
        """Write the trained model to a file that :func:`load_tagger` reads."""
        self._model().save(path)

    @classmethod
    def load(cls, path: str | Path, **settings: Any) -> Self:
        """A tagger around a model file, for predictions and :meth:`partial_fit`; settings as for a new one."""
        tagger = cls(**settings)
        tagger.model_ = load_tagger(path)
        return tagger


def _nothing(m: int) -> Support:
    return Support(np.zeros(1, dtype=np.int32), np.zeros(0, dtype=np.int32), m)


def _check_lengths(codes: tuple[Codes, IntArray | None], wanted: IntArray) -> None:
    """One label per token: flat codes, with the lengths of the label sequences where these are known."""
    flat, lengths = codes
    if lengths is not None and len(lengths) != len(wanted):
        raise ValueError(f"{len(wanted)} sentences and {len(lengths)} label sequences; give one for each")
    if lengths is not None and not np.array_equal(lengths, wanted):
        i = int(np.flatnonzero(lengths != wanted)[0])
        raise ValueError(f"sentence {i}: {lengths[i]} labels for {wanted[i]} tokens; give each token one")
    if len(flat) != int(wanted.sum()):
        raise ValueError(f"{len(flat)} labels for {int(wanted.sum())} tokens; give each token one")


def _of_text(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "OUS" and value.ndim == 1


def _broken(legal: Legality, data: TagData) -> IntArray:
    """Tokens whose labels break a rule, where they and their neighbours are known."""
    if (data.codes >= 0).all():
        return np.flatnonzero(legal.broken(data.codes, data.lengths))
    runs, known = data.runs(), data.codes >= 0
    wrong = np.zeros(len(known), dtype=bool)
    wrong[known] = legal.inside.broken(runs.codes, runs.lengths)
    bounds, some = data.rows.offsets, data.lengths > 0
    for at, allowed in ((bounds[:-1][some], legal.first), (bounds[1:][some] - 1, legal.last)):
        at = at[known[at]]
        wrong[at] |= ~allowed[data.codes[at]]
    return np.flatnonzero(wrong)


def _cannot_be_completed(legal: Legality, data: TagData) -> str:
    """Why no legal labels can stand for the unknown ones; empty where some can."""
    k, offsets = legal.n_labels, data.rows.offsets
    if (data.codes >= 0).all():
        return ""
    starts, nothing = np.zeros(int(offsets[-1]) + 1, dtype=np.int64), np.zeros(0, dtype=np.int32)
    rows = TokenRows(Attributes(starts, nothing, None, 0, data.lengths))
    layout = WeightLayout(k, 1, legal, _nothing(k))
    try:
        TaggerModel(tuple(range(k)), MatrixExtractor(), layout, np.zeros(layout.n_weights)).best(rows, data.codes)
    except ValueError as error:
        return str(error)
    return ""


def _refuse(legal: Legality, data: TagData, X: Any, labels: tuple[Hashable, ...]) -> None:
    wrong = _broken(legal, data)
    if not wrong.size:
        if reason := _cannot_be_completed(legal, data):
            raise ValueError(reason)
        return
    token = int(wrong[0])
    sentence = int(np.searchsorted(data.rows.offsets, token, side="right")) - 1
    place = token - int(data.rows.offsets[sentence])
    where = X.where(token) if isinstance(X, (TokenTable, AttributeText)) else f"sentence {sentence}, token {place}"
    before = f"after {labels[data.codes[token - 1]]!r} " if place else ""
    raise ValueError(
        f"{where}: the label {labels[data.codes[token]]!r} {before}breaks the rules of legal=...; correct the data, or "
        "train with legal=None"
    )


def _are_codes(y: Any) -> bool:
    """Whether labels are given as flat codes with their names, and not as two sequences of labels."""
    if not (isinstance(y, tuple) and len(y) == 2 and isinstance(y[0], np.ndarray) and y[0].dtype.kind in "iu"):
        return False
    return isinstance(y[1], (list, tuple)) and all(isinstance(name, str) for name in y[1])


def _pairs(forbidden: Any) -> list[Any]:
    pairs = list(forbidden) if hasattr(forbidden, "__iter__") else [forbidden]
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ValueError(f"forbidden must be a list of pairs of labels, got {pair!r}")
    return pairs

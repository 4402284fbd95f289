"""Settings of a tagger and its training: settings are checked, inputs recognized, a model is trained.

This module does not import scikit-learn, so that ``maxmargin tag train`` starts quickly and takes little memory;
:class:`~maxmargin.tasks.tagging.estimator.SequenceTagger` adds scikit-learn's interface.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _threads
from maxmargin._sparse import sp
from maxmargin.encoders import checks
from maxmargin.encoders.inputs import FeatureSequence
from maxmargin.features.supported import Support
from maxmargin.losses import Hamming, LabelCost, Loss
from maxmargin.optimization.base import NonFiniteError
from maxmargin.optimization.callbacks import Callback
from maxmargin.solvers import Checkpoint, ProgressBar, Solution, Solver, Status, Stop
from maxmargin.structures.base import FloatArray
from maxmargin.structures.transitions import TransitionConstraints
from maxmargin.tasks.tagging.calibration import fitted_temperature
from maxmargin.tasks.tagging.decoding import Decoder
from maxmargin.tasks.tagging.encoder.attributes import AttributeVocabulary
from maxmargin.tasks.tagging.encoder.constraints import check_gold, check_unchanged, transition_constraints
from maxmargin.tasks.tagging.encoder.extraction import (
    Extractor,
    ItemExtractor,
    MatrixExtractor,
    TemplateExtractor,
    first_token,
)
from maxmargin.tasks.tagging.encoder.gold import GoldLabels, LabeledRows, check_lengths
from maxmargin.tasks.tagging.encoder.layout import WeightLayout
from maxmargin.tasks.tagging.encoder.presets import Defaults, default_preset, defaults
from maxmargin.tasks.tagging.encoder.presets import preset as preset_named
from maxmargin.tasks.tagging.encoder.templates import Template
from maxmargin.tasks.tagging.io.table import AttributeText, TokenTable
from maxmargin.tasks.tagging.metrics.chunks import look_like_chunks
from maxmargin.tasks.tagging.metrics.scores import evaluate_codes
from maxmargin.tasks.tagging.model import TaggerModel
from maxmargin.tasks.tagging.training import SUPPORTS, Trained, Training, train

METRICS = ("auto", "accuracy", "f1", "sentence_accuracy")


class BaseTagger:
    """Settings and training of a tagger; :class:`~maxmargin.tasks.tagging.estimator.SequenceTagger` describes them."""

    model_: TaggerModel
    solution_: Solution

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
        C: float | Sequence[float] | None = None,
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
        self.constraints = constraints
        self.forbidden = forbidden
        self.classes = classes
        self.unknown = unknown
        self.min_count = min_count
        self.support = support
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
            y: their labels, a sequence per sentence; for tables also flat codes, as ``(codes, labels)``.
            X_dev: held-out sentences that choose the stopping point (and C, if there are several) and calibrate
                probabilities.
            y_dev: their labels.
            sample_weight: weight of each sentence, shape ``(n_sentences,)``.
            token_weight: cost of an error at each token, an array per sentence.

        Returns:
            The tagger. Issues a ConvergenceWarning if the gap is not closed.
        """
        self._check()
        return self._fit(X, y, (X_dev, y_dev), self.classes, sample_weight, token_weight)

    def _fit(self, X: Any, y: Any, dev: tuple[Any, Any], classes: Any, sample_weight: Any, token_weight: Any) -> Self:
        labels, codes = GoldLabels(self.unknown).codes(
            y, None if classes is None else GoldLabels(self.unknown).classes(classes)
        )
        with _threads.threads(self.n_jobs):
            extractor = self._extractor(X)
            X = extractor.prepared(X)
            if isinstance(X, TokenTable):
                check_lengths(codes, X.lengths)  # before word classes are learned
            preset = self._defaults(extractor)
            extractor, rows = extractor.learn(
                X, self._min_count(preset.min_count), (codes[0], [str(label) for label in labels])
            )
            data = self._data(rows, codes, sample_weight, token_weight)
            k = len(labels)
            if self.order == 2 and extractor.n_edge_attributes:
                raise ValueError("order=2 cannot be combined with attributes of pairs; leave out one of the two")
            edges = Support.empty(k**2) if rows.edges is not None else None
            layout = WeightLayout(
                k,
                self.order,
                transition_constraints(self.constraints, self.forbidden, labels, data, X),
                Support.empty(k),
                edges,
            )
            self._train(labels, extractor, layout, data, dev, None, preset.C)
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
        """Continue training with further sentences, close to the current weights.

        Minimizes ``1/(2C) ||w - w_before||^2`` plus the hinge losses of the new sentences, to a certified gap. New
        attributes get weights; new labels are an error unless the first call named them in ``classes``. The first call
        is a :meth:`fit`. Order and constraints must be those of the model.
        """
        if not hasattr(self, "model_"):
            self._check()
            return self._fit(
                X, y, (X_dev, y_dev), self.classes if classes is None else classes, sample_weight, token_weight
            )
        self._check()
        before = self.model_
        if self.order != before.layout.order:
            raise ValueError(
                f"order={self.order}, and the model was trained with order={before.layout.order}; keep that order, or "
                "train a new model with fit"
            )
        check_unchanged(before.layout.constraints, self.constraints, self.forbidden, before.labels)
        _, codes = GoldLabels(self.unknown).codes(y, before.labels)
        with _threads.threads(self.n_jobs):
            extractor, rows = before.extractor.learn(X, self._min_count(1))
            data = self._data(rows, codes, sample_weight, token_weight)
            if before.layout.constraints is not None:
                check_gold(before.layout.constraints, data, X, before.labels, "the model", "train a new model with fit")
            support, edge_support = before.layout.support, before.layout.edge_support
            layout = replace(
                before.layout,
                support=support.extended(extractor.n_attributes),
                edge_support=None if edge_support is None else edge_support.extended(extractor.n_edge_attributes),
            )
            default_C = float(before.metadata.get("C", defaults(None).C))
            self._train(before.labels, extractor, layout, data, (X_dev, y_dev), before.weights, default_C)
        return self

    def _train(
        self,
        labels: tuple[Hashable, ...],
        extractor: Extractor,
        layout: WeightLayout,
        data: LabeledRows,
        dev: tuple[Any, Any],
        start: FloatArray | None,
        default_C: float,
    ) -> None:
        began = time.perf_counter()
        score, dev_rows, dev_codes = self._dev(labels, extractor, *dev)
        callbacks: list[Callback] = [*self.callbacks, *([ProgressBar()] if self.verbose else [])]
        how = Training(
            C=self._grid(score is not None, default_C),
            loss=self._loss(labels),
            support=self.support,
            solver=None if isinstance(self.solver, str) else self.solver,
            stop=Stop(tol=self.tol, max_iter=self.max_iter, max_seconds=self.max_seconds),
            patience=self.patience,
            random_state=self.random_state,
            callbacks=callbacks,
            checkpoint=self._checkpoint(),
        )
        try:
            trained = train(layout, data, how, score, start)
        except NonFiniteError:
            raise ValueError("values of attributes are too large; scale them down") from None
        model = TaggerModel(labels, extractor, trained.layout, trained.weights, None, {}, self.n_jobs)
        if dev_rows is not None and dev_codes is not None:
            model = replace(model, temperature=fitted_temperature(model, dev_rows, dev_codes))
        metadata = self._metadata(trained, data, time.perf_counter() - began)
        # Nothing can fail from here on: an estimator is fitted completely or not changed.
        self.model_, self.solution_ = replace(model, metadata=metadata), trained.solution
        self.dev_scores_, self.saves_ = trained.dev, trained.saves
        resumable = trained.interrupted or trained.solution.status is Status.BUDGET
        if how.checkpoint is not None and not how.checkpoint.keep and not resumable:
            for save in trained.saves:
                save.remove()

    # Settings, checked.

    def _check(self) -> None:
        if self.preset is not None and self.template is not None:
            raise ValueError("give a preset or a template, not both")
        if type(self.order) is not int or self.order not in (1, 2):
            raise ValueError(f"order must be 1 or 2, got {self.order!r}")
        if self.support not in SUPPORTS:
            raise ValueError(f"support must be one of {', '.join(map(repr, SUPPORTS))}, got {self.support!r}")
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

    def _defaults(self, extractor: Extractor) -> Defaults:
        """Return the default settings of the preset in use, if there is one."""
        if not isinstance(extractor, TemplateExtractor) or self.template is not None:
            return defaults(None)
        return defaults(self.preset or default_preset(extractor.template.columns))

    def _min_count(self, default: int) -> int:
        return default if self.min_count is None else checks.integer(self.min_count, "min_count", at_least=1)

    def _grid(self, dev: bool, default: float) -> tuple[float, ...]:
        given: Any = default if self.C is None else self.C
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
                    f"cost names {unknown[0]!r}, which is not a label; there are {', '.join(map(str, labels))}"
                )
            row = np.array([float(self.cost.get(label, 1.0)) for label in labels])
            return LabelCost(row[:, None] * (1.0 - np.eye(len(labels))))
        return LabelCost(self.cost)

    def _checkpoint(self) -> Checkpoint | None:
        if self.checkpoint is None or isinstance(self.checkpoint, Checkpoint):
            return self.checkpoint
        return Checkpoint(self.checkpoint)

    def _extractor(self, X: Any) -> Extractor:
        """Return the extractor for inputs of this kind and the settings."""
        if isinstance(X, AttributeText):
            return self._without_template("attributes of tokens", ItemExtractor(AttributeVocabulary()))
        if isinstance(X, TokenTable):
            return TemplateExtractor.of(self._template(X.columns))
        sentences = checks.examples(X)
        first = sentences[0]
        if sp.issparse(first) or (isinstance(first, (np.ndarray, FeatureSequence)) and not _of_text(first)):
            return self._without_template("matrices", MatrixExtractor())
        token = first_token(sentences)
        if self.preset is None and self.template is None and not isinstance(token, str) and self.columns is None:
            return ItemExtractor(AttributeVocabulary())
        width = len(token) if isinstance(token, (list, tuple)) else 1
        names = self._columns() or (("word",) if width == 1 else ("word", "pos")[:width])
        if len(names) < width:
            names = (*names, *(f"column{c}" for c in range(len(names), width)))
        return TemplateExtractor.of(self._template(names[:width]))

    def _columns(self) -> tuple[str, ...] | None:
        from maxmargin.tasks.tagging.io.files import column_names

        return column_names(self.columns)

    def _without_template(self, what: str, extractor: Extractor) -> Extractor:
        if self.preset is not None or self.template is not None:
            raise ValueError(f"{what} need no template or preset; leave it out, or give tokens of text")
        return extractor

    def _template(self, columns: Sequence[str]) -> Template:
        if isinstance(self.template, Template):
            return self.template
        if self.template is not None:
            if "\n" not in self.template and not self.template.startswith(("U", "B", "#", "!")):
                raise ValueError(
                    f"template must be the text of a template, got {self.template!r}; read a file with "
                    "template=Path(...).read_text()"
                )
            return Template.parse(self.template, columns)
        return preset_named(self.preset or default_preset(columns), columns)

    # Data.

    def _data(self, rows: Any, codes: Any, sample_weight: Any, token_weight: Any) -> LabeledRows:
        check_lengths(codes, rows.lengths)
        weight = checks.weights(sample_weight, len(rows.lengths))
        per_token = None if token_weight is None else checks.per_variable(token_weight, rows.lengths, "token_weight")
        return LabeledRows(rows, codes[0], weight, per_token)

    def _dev(self, labels: tuple[Hashable, ...], extractor: Extractor, X: Any, y: Any) -> tuple[Any, Any, Any]:
        if X is None and y is None:
            return None, None, None
        if X is None or y is None:
            raise ValueError("give both X_dev and y_dev")
        rows = extractor.rows(X)
        codes, names = GoldLabels(self.unknown).dev_codes(y, labels, rows.lengths)
        if not len(codes):
            raise ValueError("the dev data have no tokens; give sentences with tokens, or no dev data")
        chunks = look_like_chunks(names) if self.metric == "auto" else self.metric == "f1"
        metric = self.metric if self.metric != "auto" else ("f1" if chunks else "accuracy")

        def score(layout: WeightLayout, weights: FloatArray) -> float:
            best = Decoder(layout, weights).best(rows).astype(np.int64)
            found = evaluate_codes(codes, best, rows.offsets, names, chunks=metric == "f1")
            return float(getattr(found, metric))

        return score, rows, codes

    def _metadata(self, trained: Trained, data: LabeledRows, seconds: float) -> dict[str, Any]:
        solution = trained.solution
        dev = max(trained.dev, key=lambda pair: pair[1], default=None)
        # With dev data, the relative gap is that of the chosen weights; that of the run may be smaller.
        more: dict[str, Any] = {}
        if dev is not None:
            run_gap = solution.certificate.relative_gap
            more = {"run_relative_gap": run_gap, "dev_iteration": dev[0], "dev_score": dev[1]}
        return {
            "sentences": len(data.lengths),
            "tokens": len(data.codes),
            "C": trained.C,
            "support": self.support,
            "preset": self.preset,
            **({"tried": [list(pair) for pair in trained.tried]} if len(trained.tried) > 1 else {}),
            "solver": type(solution.solver).__name__,
            "status": str(Status.INTERRUPTED if trained.interrupted else solution.status),
            "primal": trained.primal,
            "dual": trained.dual,
            "relative_gap": max(trained.primal - trained.dual, 0.0) / abs(trained.primal) if trained.primal else 0.0,
            "iterations": solution.counters.iterations,
            **more,
            "seconds": seconds,
        }


def _of_text(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "OUS" and value.ndim == 1

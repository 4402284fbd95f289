"""Training of an aligner: a max-margin problem over matchings with fertility, in which possible links are free.

The loss of an alignment is ``false_negative`` for each missed sure link and 1 for each link that is not possible;
possible links have no loss either way. Which of them the gold output has is unknown, so it is imputed: after a first
run on sure links alone, ``rounds`` times, the gold output becomes the best output under the current weights that has
all sure links and otherwise only possible ones (the concave-convex procedure; Yu and Joachims 2009). Each run is convex
and ends with a certificate.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import _checks, _threads
from maxmargin._callers import callers_level
from maxmargin._digest import digest
from maxmargin._messages import shown
from maxmargin.datasets import ShardedDataset
from maxmargin.execution import Executor
from maxmargin.losses import Hamming
from maxmargin.models.base import Model
from maxmargin.optimization.checkpoints.files import Checkpoint
from maxmargin.optimization.checkpoints.saved import vector
from maxmargin.optimization.loop import ConvergenceWarning, convergence_warning
from maxmargin.optimization.solver import Solver
from maxmargin.optimization.stopping import Status
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.alignment.annotated import AnnotatedPairs, Imputation, Pairs
from maxmargin.tasks.alignment.confidence import CALIBRATED, UNCALIBRATED, Calibration
from maxmargin.tasks.alignment.encoder.alignment import AlignmentEncoder
from maxmargin.tasks.alignment.encoder.evidence import indexed
from maxmargin.tasks.alignment.encoder.features import GROUPS, require_columns
from maxmargin.tasks.alignment.io.compact import CompactPairs
from maxmargin.tasks.alignment.io.links import Reference
from maxmargin.tasks.alignment.io.sentences import (
    SentencePair,
    alignable,
    as_pairs,
    as_references,
    extra_names,
    learnable,
    require_inside,
    warn_of_long,
)
from maxmargin.tasks.alignment.model import AlignerModel, AlignerTraining
from maxmargin.tasks.alignment.start import StartWeights
from maxmargin.tasks.alignment.translation.bitext_models import BitextModels, remove_saved
from maxmargin.tasks.alignment.translation.cooccurrences import LARGE
from maxmargin.tasks.alignment.translation.passes import BitextPasses
from maxmargin.tasks.alignment.translation.sharded_bitext import NumberedPairs, ShardedBitext
from maxmargin.tasks.alignment.translation.words import IndexedBitext, fingerprints
from maxmargin.tasks.common.finished import Finished
from maxmargin.tasks.common.progress import Stages
from maxmargin.training import Settings, train_examples
from maxmargin.training.selection import Candidate, coordinate_search, edge, folds

_ROUGH = 1e-2
"""Relative gap of the runs that compare settings."""

_MODELS = "-models"
"""The end of the names of checkpoints of translation models."""

_ITERATIONS = 5
"""Iterations of Model 1, and of the hidden Markov models, of each translation model."""


@dataclass(kw_only=True, eq=False)
class AlignerSettings:
    """How to train an aligner; :class:`~maxmargin.tasks.alignment.WordAligner` describes each setting."""

    fertility: int = 2
    features: Sequence[str] | None = None
    frequent_pairs: int = 300
    C: float | Sequence[float] = (0.03, 0.1, 0.3)
    false_negative: float | Sequence[float] = (1.0, 1.5, 2.0, 4.0, 8.0)
    rounds: int = 2
    folds: int = 5
    solver: Solver | str = "auto"
    tol: float = 1e-3
    models: BitextModels | None = None
    start: AlignerModel | StartWeights | str | None = "packaged"
    random_state: int = 0
    n_jobs: int | None = None
    executor: Executor | None = None
    verbose: bool = False
    checkpoint: str | Path | Checkpoint | None = None
    max_entries: int | None = None

    def check(self) -> None:
        """ValueError if a setting makes no sense."""
        for name, least in (("fertility", 1), ("frequent_pairs", 0), ("rounds", 0), ("folds", 0), ("random_state", 0)):
            _checks.integer(name, getattr(self, name), least=least)
        _checks.flag("verbose", self.verbose)
        Checkpoint.of(self.checkpoint)
        if self.max_entries is not None:
            _checks.integer("max_entries", self.max_entries, least=1)
        if self.models is not None and not isinstance(self.models, BitextModels):
            raise ValueError(f"models must be the models_ of an aligner, or None, got {type(self.models).__name__}")
        if not (self.start in (None, "packaged") or isinstance(self.start, AlignerModel | StartWeights)):
            raise ValueError(f"start must be 'packaged', an AlignerModel or None, got {shown(self.start)}")
        if not isinstance(self.features, Sequence | None) or isinstance(self.features, str):
            raise ValueError(f"features must be a list of groups, or None for all, got {shown(self.features)}")
        self.of_run(self.middle, self.tol)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of link features."""
        return tuple(GROUPS if self.features is None else self.features)

    def checkpoint_of(self, stage: str) -> Checkpoint | None:
        """The checkpoint of one stage of training, whose file name ends with ``stage``."""
        given = Checkpoint.of(self.checkpoint)
        return None if given is None else given.beside(stage)

    def finished(self, model: AlignerModel) -> AlignerModel:
        """The model, after its training; checkpoints of its translation models are removed unless they are kept."""
        saved = self.checkpoint_of(_MODELS)
        assert model.training is not None
        if saved is not None and not saved.keep and not model.training.interrupted:
            remove_saved(saved)
        return model

    @property
    def grid(self) -> dict[str, tuple[float, ...]]:
        """The settings to choose, in the order in which they are searched."""
        return {name: _several(name, getattr(self, name)) for name in ("false_negative", "C")}

    @property
    def middle(self) -> Candidate:
        """The middle one of the values of each setting."""
        return {name: values[len(values) // 2] for name, values in self.grid.items()}

    def start_weights(self) -> StartWeights | None:
        """The weights to stay close to; None for zeros."""
        if isinstance(self.start, AlignerModel):
            if not self.start.trained:
                raise ValueError("start has no weights, as its training was interrupted; give another model")
            return StartWeights.of(self.start.feature_names, self.start.weights)
        return StartWeights.packaged() if isinstance(self.start, str) else self.start

    def of_run(self, chosen: Candidate, tol: float) -> Settings:
        """The settings of one run."""
        return Settings(
            C=chosen["C"],
            loss=Hamming(false_positive=1.0, false_negative=chosen["false_negative"]),
            solver=self.solver,
            tol=tol,
            n_jobs=self.n_jobs,
            executor=self.executor,
            random_state=self.random_state,
        )

    def warn_unchosen(self, used: Candidate) -> None:
        """Warn if several settings other than the defaults were given and there are no held-out pairs to choose by."""
        if any(len(values) > 1 and values != getattr(AlignerSettings, name) for name, values in self.grid.items()):
            warnings.warn(
                f"there are no held-out pairs to choose settings by: C={used['C']:g} and "
                f"false_negative={used['false_negative']:g} are used; give single numbers, dev pairs or two folds",
                UserWarning,
                stacklevel=callers_level(),
            )

    def encoder(
        self,
        pairs: Sequence[SentencePair],
        groups: Sequence[str],
        extra: Sequence[str],
        stages: Stages,
        *,
        words_only: bool = False,
    ) -> AlignmentEncoder:
        """The encoder of the translation models that were given, or that are learned from ``pairs``."""
        models = self.models
        if models is None:
            stages.begin("translation models", (2 if words_only else 5 if len(pairs) > LARGE else 6) * _ITERATIONS)
            if not isinstance(pairs, NumberedPairs):
                pairs = CompactPairs.of([[(pair.source, pair.target) for pair in pairs]])
            if isinstance(pairs, ShardedBitext):
                passes = pairs.passes(self.executor, self.max_entries)
                seen = pairs.seen_by(passes)
            else:
                passes = BitextPasses.of(IndexedBitext.of(pairs.source, pairs.target), self.executor)
                seen = fingerprints(pairs.source, pairs.target)
            models = BitextModels.of(
                passes,
                seen,
                _ITERATIONS,
                _ITERATIONS,
                on_iteration=lambda model, iteration: stages.advance(),
                checkpoint=self.checkpoint_of(_MODELS),
                words_only=words_only,
            )
        lexical = models.words.frequent(self.frequent_pairs)
        return AlignmentEncoder.of(models, lexical, groups=groups, extra_names=extra, fertility=self.fertility)


def _several(name: str, value: Any) -> tuple[float, ...]:
    """One number, or several, rising: their order must not matter."""
    several = isinstance(value, Sequence) or (isinstance(value, np.ndarray) and value.ndim > 0)
    values = value if several and not isinstance(value, str) else [value]
    if not len(values):
        raise ValueError(f"{name} is empty; give at least one number")
    return tuple(sorted({_checks.positive(name, number, hint="give one number or several") for number in values}))


def train_aligner(
    X: Iterable[Any],
    y: Sequence[Any],
    settings: AlignerSettings | None = None,
    *,
    bitext: Iterable[Any] = (),
    dev: tuple[Iterable[Any], Sequence[Any]] | None = None,
) -> AlignerModel:
    """Train an aligner on annotated sentence pairs and a bitext, as :meth:`WordAligner.fit` describes."""
    settings = settings or AlignerSettings()
    settings.check()
    pairs = as_pairs(X)
    references = as_references(y, len(pairs))
    if not pairs:
        raise ValueError("no sentence pairs to learn from; give some, or use bootstrap() on a bitext alone")
    dev_pairs, dev_references = held_out_pairs(dev)
    further = bitext if isinstance(bitext, NumberedPairs) else as_pairs(bitext, "bitext pair")
    if settings.models is not None and further:
        raise ValueError("bitext is not used, as models has translation models already; give one of them")
    require_inside(pairs, references)
    extra = extra_names(pairs, dev_pairs)
    require_columns(settings.groups, extra, settings.frequent_pairs)
    warn_of_long(pairs, "is not learned from")
    gold = learnable([*pairs, *dev_pairs], [*references, *dev_references])
    with _threads.threads(settings.n_jobs), Stages(settings.verbose) as stages:
        encoder = settings.encoder(counted_once(further, [*pairs, *dev_pairs]), settings.groups, extra, stages)
        every = alignable([*pairs, *dev_pairs])
        whole = indexed(every)
        # Models that were given may not have seen these pairs: then they adapt, as they will in prediction.
        translation = encoder.translation(whole if encoder.unseen(every).any() else None)
        found = []
        for part in np.split(np.arange(len(every)), [len(pairs)]):
            evidence = encoder.evidence([every[at] for at in part], whole.select(part), translation)
            found.append(AnnotatedPairs.annotated(encoder, encoder.pack(evidence), [gold[at] for at in part]))
        start = settings.start_weights()
        if start is not None:
            found[0] = replace(found[0], anchor=start.carried(encoder.link_model))
        try:
            return settings.finished(choose_and_train(found[0], found[1] if dev_pairs else None, settings, stages))
        except KeyboardInterrupt:  # before the first weights: the translation models can be used again
            return untrained(encoder, settings, "interrupted")


def held_out_pairs(dev: Any) -> tuple[list[SentencePair], list[Reference]]:
    """The annotated pairs to choose settings by, checked; none if ``dev`` is None."""
    given = [[], []] if dev is None else _checks.listed("dev", dev, "a pair (X, y)")
    if len(given) != 2:
        raise ValueError(f"dev must be a pair (X, y), got {len(given)} values")
    pairs = as_pairs(given[0], "dev pair")
    references = as_references(given[1], len(pairs), "dev pair")
    require_inside(pairs, references, "dev pair")
    warn_of_long(pairs, "is not learned from", "dev pair")
    return pairs, references


def counted_once(bitext: Sequence[SentencePair], more: Sequence[SentencePair]) -> Sequence[SentencePair]:
    """The pairs of a bitext and of those to add to it that it does not have."""
    if isinstance(bitext, ShardedBitext):
        first = bitext.fingerprints
    elif isinstance(bitext, CompactPairs):
        first = fingerprints(bitext.source, bitext.target)
    else:
        first = fingerprints([pair.source for pair in bitext], [pair.target for pair in bitext])
    if isinstance(more, CompactPairs):
        if not len(bitext):
            return more
        second = fingerprints(more.source, more.target)
    else:
        second = fingerprints([pair.source for pair in more], [pair.target for pair in more])
    known = np.isin(second, first)
    new = (pair for pair, there in zip(more, known.tolist(), strict=True) if not there)
    if isinstance(bitext, NumberedPairs):
        return bitext if known.all() else bitext.extended(new)
    return [*bitext, *new]


def untrained(encoder: AlignmentEncoder, settings: AlignerSettings, status: str) -> AlignerModel:
    """An aligner that has translation models, but no weights: all are zero."""
    metadata = {"status": status, "confidences": UNCALIBRATED}
    return AlignerModel(np.zeros(encoder.n_weights), encoder, metadata, settings.n_jobs, verbose=settings.verbose)


def choose_and_train(
    pairs: Pairs, held: AnnotatedPairs | None, settings: AlignerSettings, stages: Stages
) -> AlignerModel:
    """Choose settings by the AER on ``held``, or if that is None by cross-validation; calibrate there; train.

    Without pairs to choose by the middle settings are used, and confidences are not calibrated. Pairs of a dataset are
    not cross-validated.
    """
    n = len(pairs)
    folded = pairs if isinstance(pairs, AnnotatedPairs) and held is None and n > 1 else None
    parts = [] if folded is None else folds(n, settings.folds, settings.random_state)
    judge = folded if held is None else held
    margins: dict[tuple[float, ...], FloatArray] = {}
    several = any(len(values) > 1 for values in settings.grid.values())
    tol = max(settings.tol, _ROUGH) if several else settings.tol

    done: list[tuple[Candidate, Model]] = []
    saved = settings.checkpoint_of("")
    finished = Finished(settings.checkpoint_of("-folds"))
    data = "" if saved is None else _identity(pairs)

    def solved(
        some: AnnotatedPairs | ShardedDataset, chosen: Candidate, left_out: IntArray | None = None
    ) -> FloatArray:
        """The weights of a run on some pairs, all but those left out; not repeated by training that resumes."""
        made_from = data, tuple(chosen.values()), left_out, tol, settings.rounds, str(settings.solver)
        found = finished.once("fold", lambda: {"weights": run(some, chosen)}, *made_from, settings.random_state)
        return vector(found, "weights", pairs.encoder.n_weights)

    def run(some: Pairs, chosen: Candidate) -> FloatArray:
        with said_of(f"while choosing settings, at C={chosen['C']:g} and false_negative={chosen['false_negative']:g}"):
            model = train_examples(some, settings.of_run(chosen, tol), hooks=Imputation(settings.rounds))
        assert model.training is not None
        if model.weights.any():
            done.append((chosen, model))
        if model.training.interrupted:  # it cannot be compared with the others
            raise KeyboardInterrupt
        return model.weights

    def error(chosen: Candidate) -> float:
        assert judge is not None
        found = np.empty(len(judge.sure))
        if held is not None:
            found[:] = held.margins(solved(pairs, chosen))
            stages.advance()
        for part in parts:
            assert folded is not None
            weights = solved(folded.select(np.setdiff1d(np.arange(n), part)), chosen, part)
            found[folded.batch.matchings.grid_of(part)] = folded.select(part).margins(weights)
            stages.advance()
        margins[tuple(chosen.values())] = found
        return judge.evaluate(found > 0).aer

    best = settings.middle
    tried: list[tuple[Candidate, float]] = []
    calibration: dict[str, float] = {}
    scores, edges = None, list[str]()
    if judge is None or (held is None and len(parts) < 2):
        settings.warn_unchosen(best)
    else:
        stages.begin("choosing settings", sum(map(len, settings.grid.values())) * max(len(parts), 1))
        try:
            with finished:
                best, tried = coordinate_search(settings.grid, error)
        except KeyboardInterrupt:
            if not done:
                raise
            return stopped(*done[-1], settings)
        edges = [said for name in best if (said := edge(_line(tried, best, name), name))]
        found = margins[tuple(best.values())]
        calibration, scores = asdict(Calibration.fit(found, judge.possible)), judge.evaluate(found > 0)
    stages.begin("training", 1)
    with said_of("in a round before the last", only_if=lambda: model.metadata.get("status") == Status.CONVERGED):
        how = replace(settings.of_run(best, settings.tol), checkpoint=saved)
        model = train_examples(pairs, how, hooks=Imputation(settings.rounds))
    stages.advance()
    assert isinstance(model, AlignerModel)
    assert model.training is not None
    if not model.training.interrupted:
        finished.remove()
    return replace(
        model,
        # Without seconds: the same data gives the same file.
        metadata={
            **{name: value for name, value in model.metadata.items() if name != "seconds"},
            "false_negative": best["false_negative"],
            "held_out_aer": None if scores is None else scores.aer,
            "confidences": CALIBRATED if calibration else UNCALIBRATED,
            **({"note": "; ".join(edges)} if edges else {}),
        },
        calibration=calibration,
        training=AlignerTraining(**vars(model.training), choices=tuple(tried), held_out=scores),
        verbose=settings.verbose,
    )


def _identity(pairs: Pairs) -> str:
    """A hash of the examples of the first round."""
    if isinstance(pairs, ShardedDataset):
        return pairs.identity
    return digest(pairs.batch.structure, pairs.batch.features, pairs.sure, pairs.possible, pairs.anchor)


def _line(tried: Sequence[tuple[Candidate, float]], best: Candidate, name: str) -> list[tuple[float, float]]:
    """The values of one setting that were tried with the best ones of the others, and their scores."""
    return [(one[name], -error) for one, error in tried if {**one, name: best[name]} == best]


def stopped(chosen: Candidate, model: Model, settings: AlignerSettings) -> AlignerModel:
    """The aligner of the last run before Ctrl-C ended the choice of settings; not calibrated."""
    assert isinstance(model, AlignerModel)
    assert model.training is not None
    warnings.warn(
        f"interrupted while choosing settings: the weights are those of the last run, with C={chosen['C']:g} and "
        f"false_negative={chosen['false_negative']:g}, perhaps without one fold of the annotated pairs",
        convergence_warning(),
        stacklevel=callers_level(),
    )
    kept = {name: value for name, value in model.metadata.items() if name != "seconds"}
    return replace(
        model,
        metadata={
            **kept,
            "status": str(Status.INTERRUPTED),
            "false_negative": chosen["false_negative"],
            "confidences": UNCALIBRATED,
        },
        training=AlignerTraining(**{**vars(model.training), "interrupted": True}),
        verbose=settings.verbose,
    )


@contextmanager
def said_of(which: str, only_if: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Let warnings that a run did not converge say which run, so that they are not taken for one of the last run.

    Args:
        which: the run.
        only_if: whether they are of that run; asked afterwards.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    other = only_if()
    for one in caught:
        unsettled = one.category.__name__ == ConvergenceWarning.__name__
        message = f"{which}: {one.message}" if unsettled and other else one.message
        warnings.warn(message, one.category, stacklevel=callers_level())

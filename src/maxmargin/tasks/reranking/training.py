"""Training of rerankers: a tuning method, its settings chosen on held-out lists, and an honest account of the gain.

Lists are split into folds. Every setting of the method is tuned on all folds but one and chooses the hypotheses of
that one, so that all lists are chosen for by weights that did not see them. The setting with the best quality on these
choices is taken. Being the best of several, its own quality flatters; reported is the quality of the choices that each
fold gets from the setting that the *other* folds prefer. The final weights are tuned on all lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _threads
from maxmargin._digest import digest
from maxmargin._messages import shown
from maxmargin.execution import Executor
from maxmargin.models.base import Training
from maxmargin.optimization.checkpoints.files import Checkpoint
from maxmargin.optimization.checkpoints.saved import array, require
from maxmargin.solvers import Status
from maxmargin.structures._arrays import ranges
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.structures.candidates import Candidates
from maxmargin.tasks.common.finished import Finished
from maxmargin.tasks.common.progress import Stages
from maxmargin.tasks.reranking.encoder.reranking import RerankingEncoder
from maxmargin.tasks.reranking.io.lists import NBestLists
from maxmargin.tasks.reranking.metrics.base import Metric
from maxmargin.tasks.reranking.model import RerankerModel
from maxmargin.tasks.reranking.report import HeldOut, Report
from maxmargin.tasks.reranking.tuning.base import Method, Tuned, TuningLists
from maxmargin.tasks.reranking.tuning.decoder import decoder_weights, sized
from maxmargin.tasks.reranking.tuning.methods import method_named
from maxmargin.training.selection import folds


@dataclass(frozen=True, kw_only=True, eq=False)
class RerankerSettings:
    """How to train a reranker.

    Attributes:
        method: a name among :data:`~maxmargin.tasks.reranking.tuning.methods.METHODS`, or a method with its settings.
        C: strengths of a regularized method to choose from, larger means less regularization; None for the method's.
        encoder: which features there are, and in which units.
        positive: names of dense features whose weights must be >= 0.
        negative: names of dense features whose weights must be <= 0.
        folds: number of folds of held-out lists; fewer if there are fewer lists; 0 holds nothing out.
        level: confidence level of intervals and verdicts.
        random_state: seed of folds, methods and resampling.
        n_jobs: threads, as scikit-learn reads it; never changes the result.
        verbose: whether to draw a progress bar on a terminal.
        checkpoint: where choices on held-out lists and the last run of a solver are saved; training resumes from these
            files if they exist. None for nowhere.
        executor: where max-margin, lp7 and lp8 work on the lists, in shards; None for this process.
    """

    method: str | Method = "max-margin"
    C: Sequence[float] | None = None
    encoder: RerankingEncoder = field(default_factory=RerankingEncoder)
    positive: Sequence[str] = ()
    negative: Sequence[str] = ()
    folds: int = 5
    level: float = 0.95
    random_state: int = 0
    n_jobs: int | None = None
    verbose: bool = False
    checkpoint: Checkpoint | None = None
    executor: Executor | None = None

    def __post_init__(self) -> None:
        _checks.integer("folds", self.folds, least=0, hint="0 holds nothing out")
        if self.folds == 1:
            raise ValueError("folds must be 0, for nothing held out, or 2 and more; got 1")
        _checks.number("level", self.level, above=0, below=1)
        _checks.integer("random_state", self.random_state, least=0)
        _ = self.variants
        for name in ("positive", "negative"):
            given = _checks.listed(name, getattr(self, name), "a list of names of features", sized=False)
            if not all(isinstance(one, str) for one in given):
                raise ValueError(f"{name} must be names of features, got {shown(given)}")
            object.__setattr__(self, name, tuple(given))
        if both := set(self.positive) & set(self.negative):
            raise ValueError(f"{shown(sorted(both)[0])} is among the positive and the negative features; name it once")

    @cached_property
    def variants(self) -> Sequence[Method]:
        """The method with each of the settings that held-out lists choose from."""
        method: Any = self.method if isinstance(self.method, Method) else method_named(self.method)
        if self.executor is not None:
            if not hasattr(method, "executor"):
                raise ValueError(
                    f"{method.name} tunes all lists in this process, and takes no executor; leave it out, or take "
                    "max-margin, lp7 or lp8"
                )
            method = replace(method, executor=self.executor)
        if self.C is None:
            return method.candidates()  # type: ignore[no-any-return]
        if not hasattr(method, "C"):
            raise ValueError(f"{method.name} has no C; leave it out")
        if not len(self.C):
            raise ValueError("C is empty; give at least one number")
        return tuple(replace(method, C=one) for one in self.C)

    def signs(self, names: Sequence[str], n_weights: int) -> npt.NDArray[np.int8]:
        """Return the sign of each weight, 0 for any; ValueError if a name is not that of a dense feature."""
        signs, place = np.zeros(n_weights, dtype=np.int8), {name: at for at, name in enumerate(names)}
        for sign, chosen in ((1, self.positive), (-1, self.negative)):
            for name in chosen:
                if name not in place:
                    raise ValueError(
                        f"no dense feature is called {shown(name)}; there are {', '.join(names) or 'none'}"
                    )
                signs[place[name]] = sign
        return signs


@dataclass(frozen=True, eq=False)
class Judged:
    """Lists with the statistics of their hypotheses under the metric to tune, then under others.

    Attributes:
        lists: the lists.
        metrics: the metric to tune, then those that are only shown.
        statistics: one array for each metric, shape ``(n_hypotheses, n_statistics)``.
    """

    lists: NBestLists
    metrics: tuple[Metric, ...]
    statistics: tuple[FloatArray, ...]

    @classmethod
    def of(cls, lists: NBestLists, references: Sequence[Sequence[str]], metrics: Sequence[Metric]) -> Judged:
        """Judge all hypotheses by references, one or more for each list."""
        if len(references) != len(lists):
            raise ValueError(f"there are {len(lists)} lists and {len(references)} references; give them for each list")
        found = tuple(metric.statistics(lists.texts, references, lists.owner) for metric in metrics)
        return cls(lists, tuple(metrics), found)

    def __len__(self) -> int:
        return len(self.lists)

    def select(self, lists: IntArray) -> Judged:
        """Return some of the lists."""
        rows = ranges(self.lists.offsets[lists], self.lists.offsets[lists + 1])
        return Judged(self.lists.select(lists), self.metrics, tuple(one[rows] for one in self.statistics))

    def tuning_lists(self, rows: Any, signs: npt.NDArray[np.int8]) -> TuningLists:
        """What a tuning method sees."""
        lists = self.lists
        texts = lists.texts if any(lists.texts) else None
        return TuningLists(lists.offsets, rows, self.statistics[0], self.metrics[0], signs, texts)


def train_reranker(
    judged: Judged, settings: RerankerSettings | None = None, *, dev: Judged | None = None
) -> RerankerModel:
    """Train a reranker.

    Args:
        judged: training lists with the quality of their hypotheses.
        settings: how to train.
        dev: lists that the settings of the method are chosen by, in place of folds. The reported gain is then that of
            the chosen setting on these lists, which flatters where there was a choice.

    Returns:
        The model; ``model.report`` says how its settings were chosen and what it gains.
    """
    settings = settings or RerankerSettings()
    variants = settings.variants
    parts = _parts(judged, settings, dev)
    finished = Finished(None if settings.checkpoint is None else settings.checkpoint.beside("-folds"))
    with _threads.threads(settings.n_jobs), Stages(settings.verbose) as stages, finished:
        stages.begin("tuning", len(parts) * len(variants) + 1)
        chosen = []
        for train, test in parts:
            fitted, lists = _prepared(train, settings)
            held = test.tuning_lists(fitted.rows(test.lists), lists.signs)
            start, rows = decoder_start(train, len(fitted.names), lists), []
            data = digest(lists.offsets, lists.rows, lists.statistics, lists.signs, held.offsets, held.rows, start)
            for variant in variants:

                def tuned_rows(
                    variant: Method = variant, lists: TuningLists = lists, held: TuningLists = held, start: Any = start
                ) -> dict[str, Any]:
                    held_out = variant.tune(lists, start=start, seed=settings.random_state)
                    if held_out.interrupted:
                        raise KeyboardInterrupt  # it cannot be compared with the others
                    return {"rows": held.choose(held_out.weights)}

                made_from = data, repr(variant), settings.random_state, lists.metric, lists.texts
                kept = finished.once("fold", tuned_rows, *made_from)
                rows.append(_checked_rows(kept, held.offsets))
                stages.advance()
            chosen.append(rows)
        best, report = selected(parts, chosen, variants, settings, from_dev=dev is not None)
        fitted, lists = _prepared(judged, settings)
        start = decoder_start(judged, len(fitted.names), lists)
        last: Any = variants[best]
        if settings.checkpoint is not None and hasattr(last, "checkpoint"):
            last = replace(last, checkpoint=settings.checkpoint)
        tuned = last.tune(lists, start=start, seed=settings.random_state)
        stages.advance()
    if not tuned.interrupted:
        finished.remove()
    sizes = {"lists": len(judged), "hypotheses": judged.lists.n_hypotheses}
    return model_of(fitted, tuned, replace(report, details=tuned.details), sizes, settings.n_jobs)


def model_of(
    encoder: RerankingEncoder, tuned: Tuned, report: Report, sizes: dict[str, int], n_jobs: int | None
) -> RerankerModel:
    """The reranker of tuned weights, with the sizes of what they were tuned on."""
    training = None
    if tuned.solution is not None:
        C = float(report.variant.describe().get("C", np.nan))
        training = Training(tuned.solution, C, interrupted=tuned.interrupted)
    metadata = {**sizes, **report.as_dict(), **_certificate(tuned)}
    if tuned.interrupted:
        metadata["status"] = str(Status.INTERRUPTED)
    return RerankerModel(tuned.weights, encoder, metadata, n_jobs, training=training, report=report)


def _checked_rows(kept: dict[str, Any], offsets: IntArray) -> IntArray:
    """The rows that were chosen, one of each list."""
    rows: IntArray = array(kept, "rows", np.int64, (len(offsets) - 1,))
    require((rows >= offsets[:-1]).all() and (rows < offsets[1:]).all(), "chosen rows are not those of their lists")
    return rows


def _parts(judged: Judged, settings: RerankerSettings, dev: Judged | None) -> list[tuple[Judged, Judged]]:
    """Pairs of lists to tune on and lists held out."""
    if dev is not None:
        return [(judged, dev)]
    if not settings.folds or len(judged) < 2:
        return []
    every = np.arange(len(judged))
    parts = folds(len(judged), settings.folds, settings.random_state)
    return [(judged.select(np.setdiff1d(every, part)), judged.select(part)) for part in parts]


def _prepared(judged: Judged, settings: RerankerSettings) -> tuple[RerankingEncoder, TuningLists]:
    """The features of training lists."""
    fitted, rows = settings.encoder.fit_rows(judged.lists)
    return fitted, judged.tuning_lists(rows, settings.signs(fitted.names, fitted.n_weights))


def decoder_start(judged: Judged, n_dense: int, lists: TuningLists) -> FloatArray | None:
    """Return the decoder's own weights, as far as its scores or the order of the lists tell them; None if they do not.

    Args:
        judged: the lists.
        n_dense: number of dense features.
        lists: the same lists with their rows of features, dense ones first.
    """
    rows = lists.rows[:, :n_dense]
    dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
    found = decoder_weights(dense, lists.offsets, judged.lists.totals)
    if found is None:
        return None
    return sized(np.concatenate([found, np.zeros(lists.n_features - n_dense)]), lists)


def selected(
    parts: list[tuple[Judged, Judged]],
    chosen: list[list[IntArray]],
    variants: Sequence[Method],
    settings: RerankerSettings,
    *,
    from_dev: bool,
) -> tuple[int, Report]:
    """The number of the best setting, and the account of it.

    ``chosen[part][variant]`` are the rows of the hypotheses that a setting chose in the held-out lists of a part.
    """
    if not parts:
        best = len(variants) // 2
        return best, Report(variants[best], (), 0, (), {})
    metric = parts[0][1].metrics[0]
    sums = np.array(
        [[test.statistics[0][rows].sum(axis=0) for rows in own] for (_, test), own in zip(parts, chosen, strict=True)]
    )  # parts x variants x statistics
    quality = metric.quality(sums.sum(axis=0))
    best = int(np.argmax(quality))
    # Each fold takes the setting that the others prefer.
    taken = [best] if from_dev else [int(np.argmax(metric.quality(sums.sum(axis=0) - own))) for own in sums]
    held_out = []
    for number, one in enumerate(parts[0][1].metrics):
        first, reranked, oracle = [], [], []
        for (_, test), own, variant in zip(parts, chosen, taken, strict=True):
            statistics = test.statistics[number]
            first.append(statistics[test.lists.offsets[:-1]])
            reranked.append(statistics[own[variant]])
            oracle.append(statistics[Candidates(test.lists.sizes).first_largest(one.sentence_quality(statistics))[0]])
        held_out.append(
            HeldOut.of(
                one,
                *map(np.concatenate, (first, reranked, oracle)),
                tuned=number == 0,
                level=settings.level,
                seed=settings.random_state,
            )
        )
    tried = tuple((one.describe(), float(metric.shown(q))) for one, q in zip(variants, quality, strict=True))
    return best, Report(variants[best], tried, 0 if from_dev else len(parts), tuple(held_out), {})


def _certificate(tuned: Tuned) -> dict[str, Any]:
    """What is known of the objective of a convex method, as plain JSON values."""
    if tuned.solution is None:
        return {}
    certificate = tuned.solution.certificate
    return {
        "solver": type(tuned.solution.solver).__name__,
        "status": str(tuned.solution.status),
        "primal": float(certificate.primal),
        "dual": float(certificate.dual),
        "relative_gap": float(certificate.relative_gap),
    }

"""The word aligner: learns from hand-aligned sentence pairs and a bitext, or from the bitext alone."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from maxmargin import _threads
from maxmargin._callers import callers_level
from maxmargin.optimization.base import Solver
from maxmargin.solvers import Solution, Status, Stop
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.alignment import aligner_file, bootstrap
from maxmargin.tasks.alignment.adaptation import adapt as adapted_to
from maxmargin.tasks.alignment.aligner_file import Parts
from maxmargin.tasks.alignment.confidence import Calibration
from maxmargin.tasks.alignment.evidence import Evidence, best_links
from maxmargin.tasks.alignment.features import GROUPS, LinkFeatures, require_columns
from maxmargin.tasks.alignment.fertility import FertileBatch
from maxmargin.tasks.alignment.links import Prediction, Reference
from maxmargin.tasks.alignment.metrics import Scores, evaluate
from maxmargin.tasks.alignment.opinions import OPINION_NAMES, BitextModels
from maxmargin.tasks.alignment.selection import folds, select
from maxmargin.tasks.alignment.sentences import (
    LONGEST_ALIGNED,
    SentencePair,
    alignable,
    as_pairs,
    as_references,
    extra_column,
    extra_names,
    learnable,
    pieces,
    require_extra,
    require_inside,
    warn_of_long,
)
from maxmargin.tasks.alignment.symmetrize import symmetrize
from maxmargin.tasks.alignment.training import BoolArray, Choice, GoldBatch, LinkModel, train
from maxmargin.tasks.alignment.translation import LONGEST_LEARNED
from maxmargin.tasks.common.progress import Stages

_ROUGH = 1e-2
"""The relative gap of the runs that only serve to compare settings."""


class _View(NamedTuple):
    """Translation models, and the number of a frequent word pair, or -1, for each slot of their lexicon of words."""

    models: BitextModels
    numbers: npt.NDArray[np.int32]


class WordAligner(BaseEstimator):  # type: ignore[misc]
    """Word alignment by maximum-weight matchings with learned scores.

    Translation models (:mod:`~maxmargin.tasks.alignment.opinions`) are learned from a bitext without annotations; a
    max-margin model over their opinions, positions, spelling and frequencies from few annotated pairs. Words may have
    up to ``fertility`` links, at a learned cost for all beyond the first.

    Args:
        fertility: how many links a word may have.
        features: groups of link features, of :data:`~maxmargin.tasks.alignment.features.GROUPS`; None for all.
        frequent_pairs: how many frequent word pairs have a weight of their own.
        C: regularization, ``1/(2C) ||w||^2`` against the sum of hinge losses; one number, or several to choose from.
        false_negative: cost of a missed sure link, a wrong one costing 1; one number, or several to choose from.
        rounds: how often possible links are imputed (see :mod:`~maxmargin.tasks.alignment.training`).
        folds: parts of the annotated pairs for choosing and calibrating where no others are given for that.
        solver: "auto", or a solver of :mod:`maxmargin.solvers`.
        tol: relative duality gap of the training runs.
        models: translation models learned before (``aligner.models_``); None to learn them in ``fit``.
        random_state: seed of the folds and of solvers that draw random numbers.
        n_jobs: threads, as scikit-learn reads it; None for one.
        verbose: whether to draw a progress bar on a terminal.

    Attributes:
        models_: the translation models.
        coef_: the weights, shape ``(n_weights,)``, named by ``feature_names_``.
        choice_: the settings used, and ``choices_``: the AER of all that were tried.
        solution_: certificate, status and history of the last training run.
        calibration_: the curve from margins to confidences.
        metadata_: how it was trained, plain values that a saved model keeps.
        held_out_: :class:`~maxmargin.tasks.alignment.metrics.Scores` of pairs that were not trained on, or None.
    """

    held_out_: Scores | None
    choices_: dict[Choice, float]

    def __init__(
        self,
        *,
        fertility: int = 2,
        features: Sequence[str] | None = None,
        frequent_pairs: int = 300,
        C: float | Sequence[float] = (0.03, 0.1, 0.3),
        false_negative: float | Sequence[float] = (1.0, 2.0, 3.0),
        rounds: int = 2,
        folds: int = 5,
        solver: Solver | str = "auto",
        tol: float = 1e-3,
        models: BitextModels | None = None,
        random_state: int = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.fertility = fertility
        self.features = features
        self.frequent_pairs = frequent_pairs
        self.C = C
        self.false_negative = false_negative
        self.rounds = rounds
        self.folds = folds
        self.solver = solver
        self.tol = tol
        self.models = models
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: Iterable[Any],
        y: Sequence[Any],
        *,
        bitext: Iterable[Any] = (),
        dev: tuple[Iterable[Any], Sequence[Any]] | None = None,
    ) -> Self:
        """Learn from annotated sentence pairs.

        Where there is nothing to choose settings by (no ``dev``, and ``folds`` below 2 or a single pair), the middle
        one of several ``C``, and of several ``false_negative``, is used; a warning says so unless they are the
        defaults.

        Args:
            X: sentence pairs: a list, or anything of a length that gives one after the other, such as a
                :class:`~maxmargin.tasks.alignment.files.Bitext`. Each is a :class:`SentencePair`, or a tuple
                ``(source, target)`` of lists of words or of strings, which are split at ASCII white space.
            y: for each pair a :class:`Reference`, or its links, which are then all sure, as ``(source, target)``.
            bitext: further sentence pairs without annotations, given like ``X``, for the translation models: the more
                the better. Pairs that will be aligned later may be among them. Refused beside ``models``.
            dev: annotated pairs ``(X, y)`` for choosing settings and calibrating; without them parts of ``X`` are held
                out in turn.
        """
        Cs, costs = self._check()
        pairs = as_pairs(X)
        references = as_references(y, len(pairs))
        if not pairs:
            raise ValueError("no sentence pairs to learn from; give some, or use bootstrap() on a bitext alone")
        dev_pairs = [] if dev is None else as_pairs(dev[0], "dev pair")
        dev_references = [] if dev is None else as_references(dev[1], len(dev_pairs), "dev pair")
        further = as_pairs(bitext, "bitext pair")
        if self.models is not None and further:
            raise ValueError(
                "bitext would be ignored, as models holds translation models that are learned already; give one of them"
            )
        require_inside(pairs, references)
        require_inside(dev_pairs, dev_references, "dev pair")
        extra = extra_names(pairs, dev_pairs)
        groups = self._groups()
        require_columns(groups, extra, int(self.frequent_pairs))
        warn_of_long(pairs, "is not learned from")
        warn_of_long(dev_pairs, "is not learned from", "dev pair")
        with _threads.threads(self.n_jobs), Stages(self.verbose) as stages:
            self._learn_models([*further, *pairs, *dev_pairs], stages)
            self._begin(groups, extra)
            # Models that were given may not know these pairs: then they adapt, as they will in prediction.
            known = [*alignable(pairs), *alignable(dev_pairs)]
            view = self._view(known if self._fresh(known).any() else None)
            gold = self._gold(pairs, references, view)
            held = self._gold(dev_pairs, dev_references, view) if dev_pairs else None
            choice = self._choose(gold, held, Cs, costs, stages)
            self._finish(gold, choice, stages)
        return self

    def bootstrap(self, bitext: Iterable[Any], *, n_pairs: int = 1000) -> Self:
        """Learn from a bitext alone, see :mod:`~maxmargin.tasks.alignment.bootstrap`.

        Settings are not chosen, as nothing is there to choose by: ``C`` and ``false_negative`` are taken if they are
        single numbers, else those of the module; a warning says so unless they are the defaults. ``choices_`` is empty.
        Confidences say how likely a link is among the labels.

        Args:
            bitext: sentence pairs without annotations, given like ``X`` in :meth:`fit`.
            n_pairs: how many of them, at random, links are taken from to learn.
        """
        Cs, costs = self._check()
        if isinstance(n_pairs, bool) or not isinstance(n_pairs, int) or n_pairs < 1:
            raise ValueError(f"n_pairs must be a positive integer, got {n_pairs!r}")
        pairs = as_pairs(bitext)
        extra, wanted = extra_names(pairs), self._groups()
        groups = bootstrap.groups(wanted)
        withheld = [group for group in wanted if group not in groups]
        require_columns(groups, extra, int(self.frequent_pairs), withheld)
        n_source = np.array([len(pair.source) for pair in pairs], dtype=np.int64)
        n_target = np.array([len(pair.target) for pair in pairs], dtype=np.int64)
        held_out = int(np.ceil(bootstrap.HELD_OUT * n_pairs))
        chosen = bootstrap.sample(n_source, n_target, n_pairs + held_out, self.random_state)
        if not len(chosen):
            raise ValueError(
                f"the bitext has no pair with 1 to {LONGEST_ALIGNED} words on both sides; "
                "give sentence pairs to learn from"
            )
        parts = np.split(chosen, [max(len(chosen) - held_out, (len(chosen) + 1) // 2)])
        with _threads.threads(self.n_jobs), Stages(self.verbose) as stages:
            self._learn_models(pairs, stages)
            self._begin(groups, extra)
            view = self._view()
            labeled = []
            for part in parts:
                evidence = self._evidence([pairs[at] for at in part], view)
                labeled.append(GoldBatch.labeled(self.link_model_, evidence, bootstrap.labels(evidence)))
            gold, held = labeled
            choice = Choice(
                Cs[0] if len(Cs) == 1 else bootstrap.STRENGTH / len(gold),
                costs[0] if len(costs) == 1 else bootstrap.FALSE_NEGATIVE,
            )
            self._warn_unchosen(choice, Cs, costs)
            self._choose(gold, held if len(held) else None, (choice.C,), (choice.false_negative,), stages)
            # What was measured there is against the labels, not against annotators.
            self.held_out_, self.choices_ = None, {}
            self._finish(gold, choice, stages)
        return self

    def predict(self, X: Iterable[Any], *, adapt: bool = True) -> list[IntArray]:
        """The links of each pair, ``(k, 2)`` arrays of positions from 0; none for pairs with an empty side.

        Args:
            X: sentence pairs.
            adapt: whether the translation models learn from the pairs that were not among the bitext before these are
                aligned (see :mod:`~maxmargin.tasks.alignment.adaptation`). It makes such pairs like those trained on,
                whose text the models know, and so aligns them better; but their links then depend on each other.
        """
        check_is_fitted(self)
        found: dict[int, IntArray] = {}
        with _threads.threads(self.n_jobs):
            for numbers, evidence in self._pieces(as_pairs(X), adapt):
                batch, scores = self._scores(evidence)
                cells = np.flatnonzero(batch.structure.argmax(scores).z[batch.cells] > 0.5)
                found.update(zip(numbers, _links(evidence, cells), strict=True))
        return [found[number] for number in range(len(found))]

    def align(self, X: Iterable[Any], *, threshold: float | None = None, adapt: bool = True) -> list[Prediction]:
        """The links of each pair with confidences.

        Args:
            X: sentence pairs.
            threshold: the least confidence of a link, in [0, 1]: a high one for few links that are sure, a low one for
                more links, never beyond the fertility. Links are then worth less by the margin of that confidence, and
                those below it are left out. None for the best alignment, whose links may be of any confidence.
            adapt: as in :meth:`predict`.
        """
        number = isinstance(threshold, int | float | np.number)
        if threshold is not None and not (number and 0 <= threshold <= 1):
            raise ValueError(f"threshold must be a number in [0, 1], got {threshold!r}")
        check_is_fitted(self)
        found: dict[int, Prediction] = {}
        with _threads.threads(self.n_jobs):
            for numbers, evidence in self._pieces(as_pairs(X), adapt):
                batch, scores = self._scores(evidence)
                confidence = self.calibration_(batch.structure.margins(scores)[batch.cells])
                if threshold is not None:
                    scores[batch.cells] -= self.calibration_.margin(float(threshold))
                chosen = batch.structure.argmax(scores).z[batch.cells] > 0.5
                cells = np.flatnonzero(chosen if threshold is None else chosen & (confidence >= threshold))
                values = np.split(confidence[cells], np.searchsorted(cells, evidence.grid_start[1:-1]))
                found.update(zip(numbers, map(Prediction, _links(evidence, cells), values), strict=True))
        return [found[number] for number in range(len(found))]

    def align_hmm(self, X: Iterable[Any], *, method: str = "intersection", adapt: bool = True) -> list[IntArray]:
        """The links of the hidden Markov models of words, without anything learned from annotations: a baseline.

        ``method`` is one of :data:`~maxmargin.tasks.alignment.symmetrize.METHODS`.
        """
        check_is_fitted(self)
        found: dict[int, IntArray] = {}
        with _threads.threads(self.n_jobs):
            for numbers, evidence in self._pieces(as_pairs(X), adapt):
                forward, backward = (_links(evidence, np.flatnonzero(grid)) for grid in best_links(evidence))
                found.update(zip(numbers, symmetrize(forward, backward, method), strict=True))
        return [found[number] for number in range(len(found))]

    def score(self, X: Iterable[Any], y: Sequence[Any]) -> float:
        """``1 - AER``."""
        pairs = as_pairs(X)
        return 1.0 - evaluate(as_references(y, len(pairs)), self.predict(pairs)).aer

    def _check(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The settings to choose from, all of them checked."""
        whole = ("fertility", 1), ("frequent_pairs", 0), ("rounds", 0), ("folds", 0), ("random_state", 0)
        for name, least in whole:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise ValueError(f"{name} must be an integer >= {least}, got {value!r}")
        if not (isinstance(self.solver, Solver) or self.solver == "auto"):
            raise ValueError(f'solver must be "auto" or a solver, such as mm.BlockFrankWolfe(), got {self.solver!r}')
        if not isinstance(self.tol, int | float | np.number) or not (np.isfinite(self.tol) and self.tol >= 0):
            raise ValueError(f"tol must be a finite number >= 0, got {self.tol!r}; 1e-3 is a good choice")
        if self.models is not None and not isinstance(self.models, BitextModels):
            raise ValueError(f"models must be the models_ of an aligner, or None, got {type(self.models).__name__}")
        if not isinstance(self.features, Sequence | None) or isinstance(self.features, str):
            raise ValueError(f"features must be a list of groups, or None for all, got {self.features!r}")
        return _positive(self.C, "C"), _positive(self.false_negative, "false_negative")

    def _groups(self) -> tuple[str, ...]:
        return tuple(GROUPS if self.features is None else self.features)

    def _learn_models(self, pairs: Sequence[SentencePair], stages: Stages) -> None:
        if self.models is not None:
            self.models_ = self.models
            return
        iterations = 5
        stages.begin("translation models", 3 * 2 * iterations)
        self.models_ = BitextModels.learn(
            [pair.source for pair in pairs],
            [pair.target for pair in pairs],
            model1_iterations=iterations,
            hmm_iterations=iterations,
            on_iteration=lambda model, progress: stages.advance(),
        )

    def _begin(self, groups: Sequence[str], extra: tuple[str, ...]) -> None:
        """The layout of the weights."""
        self.identity_ = self.models_.words.frequent(self.frequent_pairs)
        features = LinkFeatures(
            groups=groups,
            n_identity=len(self.identity_),
            opinion_names=OPINION_NAMES,
            user_names=extra,
            identity_names=self.models_.words.lexicon.names(self.identity_),
        )
        self.link_model_ = LinkModel(features, int(self.fertility))

    def _view(self, pairs: Sequence[SentencePair] | None = None) -> _View:
        """The translation models, adapted to pairs if they are given."""
        numbers = self.models_.words.numbered(self.identity_)
        if pairs is None:
            return _View(self.models_, numbers)
        models, slots = adapted_to(self.models_, [pair.source for pair in pairs], [pair.target for pair in pairs])
        return _View(models, np.append(numbers, np.int32(-1))[slots])

    def _evidence(self, pairs: Sequence[SentencePair], view: _View) -> Evidence:
        names = self.link_model_.links.user_names
        user = np.stack([extra_column(pairs, name) for name in names], axis=1) if names else None
        return view.models.evidence(
            [pair.source for pair in pairs], [pair.target for pair in pairs], identity=view.numbers, user=user
        )

    def _gold(self, pairs: Sequence[SentencePair], references: Sequence[Reference], view: _View) -> GoldBatch:
        return GoldBatch.build(self.link_model_, self._evidence(alignable(pairs), view), learnable(pairs, references))

    def _solve(self, gold: GoldBatch, choice: Choice, tol: float) -> Solution:
        solver = self.solver if isinstance(self.solver, Solver) else None
        return train(gold, choice, rounds=int(self.rounds), solver=solver, stop=Stop(tol=tol), seed=self.random_state)

    def _choose(
        self,
        gold: GoldBatch,
        held: GoldBatch | None,
        Cs: tuple[float, ...],
        costs: tuple[float, ...],
        stages: Stages,
    ) -> Choice:
        """The settings of smallest AER on held-out pairs, and the calibration there."""
        n = len(gold)
        parts = [] if held is not None else folds(n, int(self.folds), self.random_state) if n > 1 else []
        self.choices_, self.held_out_, self.calibration_ = {}, None, Calibration()
        if held is None and len(parts) < 2:
            middle = Choice(Cs[len(Cs) // 2], costs[len(costs) // 2])
            self._warn_unchosen(middle, Cs, costs)
            return middle
        stages.begin("choosing settings", (len(Cs) + len(costs)) * max(len(parts), 1))
        tol = max(float(self.tol), _ROUGH) if len(Cs) * len(costs) > 1 else float(self.tol)

        def solved(pairs: GoldBatch, choice: Choice) -> FloatArray:
            solution = self._solve(pairs, choice, tol)
            if solution.status is Status.INTERRUPTED:  # nothing that it says should be compared with the others
                raise KeyboardInterrupt
            stages.advance()
            return solution.weights

        found = select(gold, held, parts, Cs, costs, solved)
        self.choices_, self.held_out_, self.calibration_ = found.tried, found.held_out, found.calibration
        return found.choice

    def _warn_unchosen(self, used: Choice, Cs: tuple[float, ...], costs: tuple[float, ...]) -> None:
        """Say so where several settings were asked for and there is nothing to choose by."""
        usual = WordAligner()
        if (len(Cs) > 1 and Cs != usual.C) or (len(costs) > 1 and costs != usual.false_negative):
            warnings.warn(
                f"there is nothing to choose settings by: C={used.C:g} and false_negative={used.false_negative:g} are "
                "used; give single numbers, or annotated pairs for dev or for two or more folds",
                UserWarning,
                stacklevel=callers_level(),
            )

    def _finish(self, gold: GoldBatch, choice: Choice, stages: Stages) -> None:
        stages.begin("training", 1)
        self.choice_ = choice
        self.solution_ = self._solve(gold, choice, float(self.tol))
        self.coef_ = self.solution_.weights
        self.feature_names_ = self.link_model_.names
        self.metadata_ = {
            "C": choice.C,
            "false_negative": choice.false_negative,
            "held-out AER": None if self.held_out_ is None else self.held_out_.aer,
            "weights": len(self.coef_),
            "solver": type(self.solution_.solver).__name__,
            "status": str(self.solution_.status),
            "relative gap": float(self.solution_.certificate.relative_gap),
        }
        stages.advance()

    def _pieces(self, pairs: list[SentencePair], adapt: bool) -> Iterator[tuple[list[int], Evidence]]:
        """The evidence of the pairs, a piece at a time, with the numbers of its pairs."""
        require_extra(pairs, self.link_model_.links.user_names)
        warn_of_long(pairs)
        pairs = alignable(pairs)
        fresh = self._fresh(pairs) if adapt else np.zeros(len(pairs), dtype=bool)
        with Stages(self.verbose) as stages:
            for is_fresh in (False, True):
                chosen = np.flatnonzero(fresh == is_fresh).tolist()
                if not chosen:
                    continue
                stages.begin("new pairs" if is_fresh else "aligning", len(chosen))
                view = self._view([pairs[number] for number in chosen] if is_fresh else None)
                for numbers in pieces(pairs, chosen):
                    yield numbers, self._evidence([pairs[number] for number in numbers], view)
                    stages.advance(len(numbers))

    def _fresh(self, pairs: Sequence[SentencePair]) -> BoolArray:
        """Pairs that the translation models were not learned from, though they could learn from them."""
        sizes = np.array([(len(pair.source), len(pair.target)) for pair in pairs], dtype=np.int64).reshape(-1, 2)
        useful = (sizes.min(axis=1) > 0) & (sizes.max(axis=1) <= LONGEST_LEARNED)
        known = self.models_.knows([pair.source for pair in pairs], [pair.target for pair in pairs])
        return np.asarray(useful & ~known)

    def _scores(self, evidence: Evidence) -> tuple[FertileBatch, FloatArray]:
        batch = self.link_model_.batch(evidence)
        return batch, self.link_model_.scores(evidence, batch, self.coef_)

    def save(self, path: str | Path, *, least: float = 1e-4) -> None:
        """Write the model to a file, which is replaced only when complete; nothing in it can execute.

        Args:
            path: the file.
            least: word pairs of smaller probability in all translation models are left out; 0 keeps all.
        """
        check_is_fitted(self)
        models, identity = self.models_.pruned(least, keep=self.identity_)
        parts = Parts(self.link_model_, models, identity, self.coef_, self.calibration_, self.metadata_)
        aligner_file.write(path, parts)


def load_aligner(path: str | Path, *, n_jobs: int | None = None, verbose: bool = False) -> WordAligner:
    """Load an aligner that was written by ``save``. Nothing in the file is ever executed.

    Raises:
        ModelFileError: the file is not one, or is damaged.
    """
    parts = aligner_file.read(path)
    aligner = WordAligner(fertility=parts.link_model.fertility, n_jobs=n_jobs, verbose=verbose)
    aligner.link_model_, aligner.models_, aligner.identity_ = parts.link_model, parts.models, parts.identity
    aligner.coef_, aligner.calibration_, aligner.metadata_ = parts.weights, parts.calibration, parts.metadata
    aligner.feature_names_ = parts.link_model.names
    return aligner


def _positive(value: Any, name: str) -> tuple[float, ...]:
    listed = tuple(value) if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) else (value,)
    for number in listed:
        good = isinstance(number, int | float | np.number) and not isinstance(number, bool)
        if not good or not np.isfinite(number) or not number > 0:
            raise ValueError(f"{name} must be a positive number or several, got {value!r}")
    if not listed:
        raise ValueError(f"{name} is empty; give at least one number")
    return tuple(float(number) for number in listed)


def _links(evidence: Evidence, cells: IntArray) -> list[IntArray]:
    """The links of each pair from the numbers of their cells, rising."""
    pair = np.searchsorted(evidence.grid_start, cells, side="right") - 1
    width = np.diff(evidence.target_start)[pair]
    links = np.stack(np.divmod(cells - evidence.grid_start[pair], width), axis=1)
    return np.split(links, np.searchsorted(cells, evidence.grid_start[1:-1])) if evidence.n_examples else []

"""The word aligner, which learns from annotated sentence pairs and a bitext, or from the bitext alone."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from maxmargin import _checks, _threads
from maxmargin._callers import callers_level
from maxmargin.optimization.base import Solver
from maxmargin.solvers import Solution, Status, Stop
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.alignment import aligner_file, bootstrap
from maxmargin.tasks.alignment.aligner_file import AlignerState
from maxmargin.tasks.alignment.confidence import Calibration
from maxmargin.tasks.alignment.encoder.evidence import POSTERIOR_NAMES, Evidence, best_links
from maxmargin.tasks.alignment.encoder.features import GROUPS, LinkFeatures, require_columns
from maxmargin.tasks.alignment.encoder.fertility import FertilityBatch
from maxmargin.tasks.alignment.io.links import Prediction
from maxmargin.tasks.alignment.io.sentences import (
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
from maxmargin.tasks.alignment.metrics.scores import Scores, evaluate
from maxmargin.tasks.alignment.metrics.symmetrization import symmetrize
from maxmargin.tasks.alignment.selection import folds, select
from maxmargin.tasks.alignment.training import BoolArray, Choice, GoldBatch, LinkModel, train
from maxmargin.tasks.alignment.translation.adaptation import adapt as adapted_to
from maxmargin.tasks.alignment.translation.bitext_models import BitextModels
from maxmargin.tasks.alignment.translation.cooccurrences import LONGEST_LEARNED, values_at
from maxmargin.tasks.alignment.translation.words import IndexedBitext, Int32Array
from maxmargin.tasks.common.progress import Stages

_ROUGH = 1e-2
"""Relative gap of the runs that compare settings."""


class _Translation(NamedTuple):
    """Translation models, and for each entry of their words the number of a frequent word pair, or -1."""

    models: BitextModels
    lexical: Int32Array


def _indexed(pairs: Sequence[SentencePair]) -> IndexedBitext:
    return IndexedBitext.of([pair.source for pair in pairs], [pair.target for pair in pairs])


class WordAligner(BaseEstimator):  # type: ignore[misc]
    """Word alignment by maximum-weight matchings with learned scores.

    Translation models (:mod:`~maxmargin.tasks.alignment.translation.bitext_models`) are learned from a bitext without
    annotations; a max-margin model over their posteriors, positions, spelling and frequencies is learned from a few
    annotated pairs. Words may have up to ``fertility`` links, at a learned cost for each one beyond the first.

    Args:
        fertility: maximum number of links of a word.
        features: groups of link features, of :data:`~maxmargin.tasks.alignment.encoder.features.GROUPS`; None for all.
        frequent_pairs: number of frequent word pairs that have a weight of their own.
        C: regularization, ``1/(2C) ||w||^2`` against the sum of hinge losses; one number, or several to choose from.
        false_negative: cost of a missed sure link, relative to a wrong link; one number, or several to choose from.
        rounds: number of times that possible links are imputed (see :mod:`~maxmargin.tasks.alignment.training`).
        folds: number of folds of the annotated pairs for choosing and calibrating without dev pairs.
        solver: "auto", or a solver of :mod:`maxmargin.solvers`.
        tol: relative duality gap of the training runs.
        models: translation models of another aligner (``aligner.models_``); None to learn them in ``fit``.
        random_state: seed of the folds and of randomized solvers.
        n_jobs: number of threads, as in scikit-learn; None for one.
        verbose: whether to draw a progress bar on a terminal.

    Attributes:
        models_: the translation models.
        coef_: the weights, shape ``(n_weights,)``, named by ``feature_names_``.
        choice_: the settings used; ``choices_`` has the AER of all that were tried.
        solution_: certificate, status and history of the last training run.
        calibration_: the curve from margins to confidences.
        metadata_: how it was trained, plain values that a saved model keeps.
        held_out_: :class:`~maxmargin.tasks.alignment.metrics.scores.Scores` of held-out pairs, or None.
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

        If there are no held-out pairs to choose settings by (no ``dev``, and ``folds`` below 2 or a single pair), the
        middle one of several ``C``, and of several ``false_negative``, is used, with a warning unless they are the
        defaults.

        Args:
            X: sentence pairs: a list or another iterable, such as a
                :class:`~maxmargin.tasks.alignment.io.files.Bitext`. Each is a :class:`SentencePair`, or a tuple
                ``(source, target)`` of lists of words or of strings, which are split at ASCII white space.
            y: for each pair a :class:`Reference`, or its links ``(source, target)``, which are then all sure.
            bitext: further sentence pairs without annotations, given like ``X``, for the translation models: the more
                the better. They may include pairs that will be aligned later. Not allowed together with ``models``.
            dev: annotated pairs ``(X, y)`` for choosing settings and calibrating; without them, ``X`` is
                cross-validated.
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
            raise ValueError("bitext is not used, as models has translation models already; give one of them")
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
            annotated, held_out = alignable(pairs), alignable(dev_pairs)
            whole = _indexed([*annotated, *held_out])
            # Models that were given may not have seen these pairs: then they adapt, as they will in prediction.
            translation = self._translation(whole if self._unseen([*annotated, *held_out]).any() else None)
            build, parts = partial(GoldBatch.build, self.link_model_), np.split(np.arange(len(whole)), [len(pairs)])
            evidence = self._evidence(annotated, whole.select(parts[0]), translation)
            gold, held = build(evidence, learnable(pairs, references)), None
            if dev_pairs:
                evidence = self._evidence(held_out, whole.select(parts[1]), translation)
                held = build(evidence, learnable(dev_pairs, dev_references))
            choice = self._choose(gold, held, Cs, costs, stages)
            self._finish(gold, choice, stages)
        return self

    def bootstrap(self, bitext: Iterable[Any], *, n_pairs: int = 1000) -> Self:
        """Learn from a bitext alone, see :mod:`~maxmargin.tasks.alignment.bootstrap`.

        Settings are not chosen, as there are no annotations to choose by: ``C`` and ``false_negative`` are used if
        they are single numbers, otherwise those of the module, with a warning unless they are the defaults.
        ``choices_`` is empty. Confidences are probabilities that the link is among the labels.

        Args:
            bitext: sentence pairs without annotations, given like ``X`` in :meth:`fit`.
            n_pairs: number of pairs, drawn at random, whose links are learned from.
        """
        Cs, costs = self._check()
        _checks.integer("n_pairs", n_pairs, least=1)
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
            translation = self._translation()
            labeled = []
            for part in parts:
                some = [pairs[at] for at in part]
                evidence = self._evidence(some, _indexed(some), translation)
                labeled.append(GoldBatch.labeled(self.link_model_, evidence, bootstrap.labels(evidence)))
            gold, held = labeled
            choice = Choice(
                Cs[0] if len(Cs) == 1 else bootstrap.STRENGTH / len(gold),
                costs[0] if len(costs) == 1 else bootstrap.FALSE_NEGATIVE,
            )
            self._warn_unchosen(choice, Cs, costs)
            self._choose(gold, held if len(held) else None, (choice.C,), (choice.false_negative,), stages)
            # These scores are relative to the labels, not to annotators.
            self.held_out_, self.choices_ = None, {}
            self._finish(gold, choice, stages)
        return self

    def predict(self, X: Iterable[Any], *, adapt: bool = True) -> list[IntArray]:
        """The links of each pair, ``(k, 2)`` arrays of positions from 0; none for pairs with an empty side.

        Args:
            X: sentence pairs.
            adapt: whether the translation models adapt to the pairs that were not in the bitext before aligning them
                (see :mod:`~maxmargin.tasks.alignment.translation.adaptation`). Adapted models have seen the pairs, as
                in training, and align them better; but the links of the pairs then depend on each other.
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
            threshold: the minimum confidence of a link, in [0, 1]: high for few reliable links, low for more links,
                within the fertility. The scores of links are lowered by the margin of that confidence, and links below
                it are dropped. None for the best alignment, whose links may have any confidence.
            adapt: as in :meth:`predict`.
        """
        if threshold is not None:
            _checks.number("threshold", threshold, least=0, most=1)
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
        """The symmetrized links of the hidden Markov models of words, a baseline that needs no annotations.

        ``method`` is one of :data:`~maxmargin.tasks.alignment.metrics.symmetrization.METHODS`.
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
        """Check all settings, and return those to choose from."""
        for name, least in (("fertility", 1), ("frequent_pairs", 0), ("rounds", 0), ("folds", 0), ("random_state", 0)):
            _checks.integer(name, getattr(self, name), least=least)
        if not (isinstance(self.solver, Solver) or self.solver == "auto"):
            raise ValueError(f'solver must be "auto" or a solver, such as mm.BlockFrankWolfe(), got {self.solver!r}')
        _checks.number("tol", self.tol, least=0, hint="1e-3 is a good choice")
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
            on_iteration=lambda model, iteration: stages.advance(),
        )

    def _begin(self, groups: Sequence[str], extra: tuple[str, ...]) -> None:
        """Set the layout of the weights."""
        self.lexical_ = self.models_.words.frequent(self.frequent_pairs)
        features = LinkFeatures(
            groups=groups,
            n_lexical=len(self.lexical_),
            posterior_names=POSTERIOR_NAMES,
            extra_names=extra,
            lexical_names=self.models_.words.cooccurrences.names(self.lexical_),
        )
        self.link_model_ = LinkModel(features, int(self.fertility))

    def _translation(self, bitext: IndexedBitext | None = None) -> _Translation:
        """The translation models, adapted to sentence pairs if they are given."""
        numbers = self.models_.words.numbered(self.lexical_)
        if bitext is None:
            return _Translation(self.models_, numbers)
        models, entries = adapted_to(self.models_, bitext)
        return _Translation(models, values_at(numbers, entries, -1))

    def _evidence(self, pairs: Sequence[SentencePair], bitext: IndexedBitext, translation: _Translation) -> Evidence:
        names = self.link_model_.links.extra_names
        extra = np.stack([extra_column(pairs, name) for name in names], axis=1) if names else None
        return Evidence.of(translation.models, bitext, lexical=translation.lexical, extra=extra)

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
        """Choose the settings of smallest AER on held-out pairs, and calibrate there."""
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
            if solution.status is Status.INTERRUPTED:  # it cannot be compared with the others
                raise KeyboardInterrupt
            stages.advance()
            return solution.weights

        found = select(gold, held, parts, Cs, costs, solved)
        self.choices_, self.held_out_, self.calibration_ = found.tried, found.held_out, found.calibration
        return found.choice

    def _warn_unchosen(self, used: Choice, Cs: tuple[float, ...], costs: tuple[float, ...]) -> None:
        """Warn if several settings were given and there are no held-out pairs to choose by."""
        usual = WordAligner()
        if (len(Cs) > 1 and Cs != usual.C) or (len(costs) > 1 and costs != usual.false_negative):
            warnings.warn(
                f"there are no held-out pairs to choose settings by: C={used.C:g} and "
                f"false_negative={used.false_negative:g} are used; give single numbers, dev pairs or two folds",
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
            "held_out_aer": None if self.held_out_ is None else self.held_out_.aer,
            "weights": len(self.coef_),
            "solver": type(self.solution_.solver).__name__,
            "status": str(self.solution_.status),
            "relative_gap": float(self.solution_.certificate.relative_gap),
        }
        stages.advance()

    def _pieces(self, pairs: list[SentencePair], adapt: bool) -> Iterator[tuple[list[int], Evidence]]:
        """The numbers and the evidence of pairs, a piece at a time."""
        require_extra(pairs, self.link_model_.links.extra_names)
        warn_of_long(pairs)
        pairs = alignable(pairs)
        bitext = _indexed(pairs)
        unseen = self._unseen(pairs) if adapt else np.zeros(len(pairs), dtype=bool)
        with Stages(self.verbose) as stages:
            for is_unseen in (False, True):
                chosen = np.flatnonzero(unseen == is_unseen).tolist()
                if not chosen:
                    continue
                stages.begin("new pairs" if is_unseen else "aligning", len(chosen))
                translation = self._translation(bitext.select(chosen) if is_unseen else None)
                for numbers in pieces(pairs, chosen):
                    some = [pairs[number] for number in numbers]
                    yield numbers, self._evidence(some, bitext.select(numbers), translation)
                    stages.advance(len(numbers))

    def _unseen(self, pairs: Sequence[SentencePair]) -> BoolArray:
        """Which pairs the translation models can learn from, but have not learned from."""
        sizes = np.array([(len(pair.source), len(pair.target)) for pair in pairs], dtype=np.int64).reshape(-1, 2)
        usable = (sizes.min(axis=1) > 0) & (sizes.max(axis=1) <= LONGEST_LEARNED)
        seen = self.models_.contains([pair.source for pair in pairs], [pair.target for pair in pairs])
        return np.asarray(usable & ~seen)

    def _scores(self, evidence: Evidence) -> tuple[FertilityBatch, FloatArray]:
        batch = self.link_model_.batch(evidence)
        return batch, self.link_model_.scores(evidence, batch, self.coef_)

    def save(self, path: str | Path, *, min_probability: float = 1e-4) -> None:
        """Write the model to a file, which is replaced only when complete; nothing in it can execute.

        Args:
            path: the file.
            min_probability: word pairs of smaller probability in all translation models are left out; 0 keeps all.
        """
        check_is_fitted(self)
        models, lexical = self.models_.pruned(min_probability, keep=self.lexical_)
        state = AlignerState(self.link_model_, models, lexical, self.coef_, self.calibration_, self.metadata_)
        aligner_file.write(path, state)


def load_aligner(path: str | Path, *, n_jobs: int | None = None, verbose: bool = False) -> WordAligner:
    """Load an aligner that was written by ``save``. Nothing in the file is executed.

    Raises:
        ModelFileError: the file is not a model of an aligner, or is damaged.
    """
    state = aligner_file.read(path)
    aligner = WordAligner(fertility=state.link_model.fertility, n_jobs=n_jobs, verbose=verbose)
    aligner.link_model_, aligner.models_, aligner.lexical_ = state.link_model, state.models, state.lexical
    aligner.coef_, aligner.calibration_, aligner.metadata_ = state.weights, state.calibration, state.metadata
    aligner.feature_names_ = state.link_model.names
    return aligner


def _positive(value: Any, name: str) -> tuple[float, ...]:
    several = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
    if several and not len(value):
        raise ValueError(f"{name} is empty; give at least one number")
    return tuple(
        _checks.positive(name, number, hint="give one number or several") for number in (value if several else [value])
    )


def _links(evidence: Evidence, cells: IntArray) -> list[IntArray]:
    """The links of each pair from the numbers of their cells, which rise."""
    pair = np.searchsorted(evidence.grid_start, cells, side="right") - 1
    width = np.diff(evidence.target_start)[pair]
    links = np.stack(np.divmod(cells - evidence.grid_start[pair], width), axis=1)
    return np.split(links, np.searchsorted(cells, evidence.grid_start[1:-1])) if evidence.n_examples else []

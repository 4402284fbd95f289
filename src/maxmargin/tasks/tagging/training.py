"""Training of taggers: unknown labels, further data, pruning and calibration.

The objective is that of :class:`maxmargin.ChainSVM`, ``1/(2C) ||w||^2 + sum_i s_i max_y [loss + w'f(y) - w'f(y_i)]``,
over the pairs of an attribute and a label that have a weight (:mod:`maxmargin.tasks.tagging.support`).

Unknown labels are completed by the best labels at the current weights, and errors there cost nothing
(:mod:`maxmargin.problem.partial`): each round completes and trains again. The first round trains only on the runs of
known labels, each as a sequence of its own, which is convex.

This module does not import scikit-learn, so that ``maxmargin tag train`` starts quickly and takes little memory.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from maxmargin import _checks, _memory, _threads
from maxmargin._callers import callers_level
from maxmargin._messages import shown
from maxmargin.datasets import ShardedDataset
from maxmargin.encoders.base import Batch
from maxmargin.encoders.data import checks
from maxmargin.features.supported import Support
from maxmargin.losses import LabelCost, Loss
from maxmargin.models.base import Model
from maxmargin.optimization.callbacks import ProgressBar
from maxmargin.optimization.run import NonFiniteError
from maxmargin.optimization.solver import Solver, Start
from maxmargin.problem import BaseProblem, PartialOutputs, Problem
from maxmargin.solvers import BlockFrankWolfe
from maxmargin.structures.base import Structure
from maxmargin.tasks.common.tokens.table import Codes
from maxmargin.tasks.tagging.dev import DevSentences
from maxmargin.tasks.tagging.encoder.extraction import read_whole
from maxmargin.tasks.tagging.encoder.labels.constraints import without_odd
from maxmargin.tasks.tagging.encoder.labels.gold import LabeledRows
from maxmargin.tasks.tagging.encoder.tagging import TaggingEncoder
from maxmargin.tasks.tagging.folds import FOLDS, LEAST_SENTENCES, Folds
from maxmargin.tasks.tagging.folds import TOL as FOLD_TOL
from maxmargin.tasks.tagging.model import TaggerModel
from maxmargin.tasks.tagging.support import first_passes, large_pairs, with_negatives, with_used_attributes
from maxmargin.training import BestGood, Examples, Settings, selection, train_examples
from maxmargin.training.train import dev_score

SETTINGS = Settings(tol=1e-2, patience=5, random_state=0, metric="auto")
"""The default settings; C is that of the preset, or chosen by folds."""
LARGE = 1_000_000
"""Tokens from which on it is worth the time to return memory to the system between phases."""
FOLD_SHARE = 0.25
"""Share of the time limit after which folds try no further C, and which the folds of one C may take."""
ROUNDS = 4
"""Maximal number of rounds that complete unknown labels."""

DEV, FOLDED = "dev data", "folds"
"""What C was chosen on, and probabilities were calibrated on, in the metadata of a model."""

TagLoss = Mapping[Hashable, float] | npt.ArrayLike | Loss
"""A loss, as :class:`~maxmargin.tasks.tagging.SequenceTagger` takes it."""


def train_tagger(
    encoder: TaggingEncoder,
    X: Any,
    y: Any = None,
    settings: Settings = SETTINGS,
    *,
    dev: tuple[Any, Any] | None = None,
    sample_weight: npt.ArrayLike | None = None,
    loss_weight: Sequence[npt.ArrayLike] | None = None,
    loss: TagLoss | None = None,
    before: TaggerModel | None = None,
    folds: int = FOLDS,
    prune: float = 0.0,
) -> TaggerModel:
    """Train a tagger.

    Args:
        encoder: an encoder that has not been fitted, for example ``TaggingEncoder(preset="chunking")``.
        X: sentences, as :class:`~maxmargin.tasks.tagging.SequenceTagger` takes them; or, with a fitted encoder and
            without ``y``, what :func:`learned` returned, so that the sentences themselves need not be kept.
        y: their labels; unknown ones are completed.
        settings: how to train; the solver "auto" is block-coordinate Frank-Wolfe. ``C=None`` is the default of the
            preset, and without a preset chosen by folds, as is ``C="auto"``.
        dev: sentences and labels that choose the stopping point and, of several, C, and calibrate probabilities.
        sample_weight: weight of each sentence, shape ``(n_sentences,)``.
        loss_weight: cost of an error at each token, an array per sentence.
        loss: cost of errors, as SequenceTagger takes it; None for the loss of the settings.
        before: a model to stay close to: the penalty is then ``1/(2C) ||w - w_before||^2``, and the certificate is
            that of this objective. Its labels, order and constraints are kept.
        folds: folds of the training sentences (:mod:`~maxmargin.tasks.tagging.folds`) that choose C and, without dev
            data, calibrate probabilities; 0 for none.
        prune: drop small weights, and train the others once more, as SequenceTagger takes it.

    Returns:
        The model; ``model.training`` says how training went.
    """
    prune = _checks.number("prune", prune, least=0)
    dev = tuple(map(read_whole, dev)) if isinstance(dev, (tuple, list)) else dev
    with _threads.threads(settings.n_jobs):
        encoder, data = (encoder, X) if isinstance(X, LabeledRows) else learned(encoder, X, y, settings, before)
        del X, y
        weight = checks.weights(sample_weight, len(data.lengths))
        per_token = None if loss_weight is None else checks.per_variable(loss_weight, data.lengths)
        data = replace(data, sentence_weight=weight, loss_weight=per_token)
        given = len(data.lengths)
        data, _ = without_odd(encoder.weight_layout.constraints, data)  # as their labels are not among the outputs
        left_out = given - len(data.lengths)
        if dev is not None and encoder.repair and isinstance(dev, (tuple, list)) and len(dev) == 2:
            dev = dev[0], encoder.gold(*dev)[0]
        began = time.perf_counter()
        dev_sentences = cast(DevSentences | None, dev_score(encoder, dev, settings))
        if dev_sentences is not None and not len(dev_sentences.codes):
            raise ValueError("dev data: no tokens; give sentences with tokens, or no dev data")
        settings = replace(
            settings,
            loss=settings.loss if loss is None else named_loss(loss, encoder.classes or ()),
            patience=None if dev is None else settings.patience,
        )
        try:
            settings, choice, by = by_folds(encoder, data, settings, dev is not None, before, folds, prune)
            hooks = TaggingHooks(encoder, data, settings, dev_sentences, before, by)
            model = train_examples(hooks.first, settings, score=dev_sentences, hooks=hooks)
            choice |= {name: value for name, value in model.metadata.items() if name in ("tried", "chosen_on")}
            if prune > 0 and model.training is not None and not model.training.interrupted:
                hooks = hooks.pruned(cast(TaggerModel, model), prune)
                model = train_examples(hooks.first, hooks.settings, score=hooks.dev, hooks=hooks)
        except NonFiniteError:
            raise ValueError("values of attributes are too large; scale them down") from None
    metadata = {
        "sentences": len(data.lengths),
        "tokens": len(data.codes),
        **({"left_out": left_out} if left_out else {}),
        **({"repaired": data.repaired} if encoder.repair else {}),
        "support": encoder.support,
        "preset": encoder.preset,
        "preset_reason": encoder.preset_reason,
        **model.metadata,
        **choice,
        "calibrated_on": calibrated_on(model, before, dev is not None, by is not None),
        "seconds": time.perf_counter() - began,  # with the search for the support, and of all runs
    }
    return with_metadata(model, metadata)


def with_metadata(model: Model, metadata: dict[str, Any]) -> TaggerModel:
    """Return a model with its metadata, and the choice of C among what is known of its training."""
    assert model.training is not None
    tried = tuple((C, score) for C, score in metadata.get("tried", ()))
    return cast(TaggerModel, replace(model, metadata=metadata, training=replace(model.training, tried=tried)))


def learned(
    encoder: TaggingEncoder, X: Any, y: Any, settings: Settings = SETTINGS, before: TaggerModel | None = None
) -> tuple[TaggingEncoder, LabeledRows]:
    """Return an encoder that knows labels and attributes, and the labeled sentences, for :func:`train_tagger`."""
    X, y = read_whole(X), read_whole(y)
    with _threads.threads(settings.n_jobs), phase("attributes", settings):
        found = (encoder if before is None else encoder.after(before.encoder)).learned(X, y)
    _memory.give_back()  # of the strings and tables from which attributes were made
    return found


def by_folds(
    encoder: TaggingEncoder,
    data: Any,
    settings: Settings,
    dev: bool,
    before: TaggerModel | None,
    k: int,
    prune: float,
) -> tuple[Settings, dict[str, Any], Folds | None]:
    """Choose C by folds, if that is wanted and possible.

    Args:
        encoder: knows labels and attributes, but no support.
        data: labeled sentences, of which folds select some: :class:`LabeledRows`, or those of a dataset.
        settings: how to train.
        dev: whether there are dev data.
        before: a model to stay close to; None for none.
        k: number of folds.
        prune: see :func:`train_tagger`.

    Returns:
        The settings with the C, what was done, for the metadata of the model, and the folds to calibrate on; None to
        calibrate on dev data or not at all.
    """
    _checks.integer("folds", k, least=0)
    own = None if settings.C is None or isinstance(settings.C, str) else settings.grid
    default = encoder.default_C if before is None else float(before.metadata.get("C", encoder.default_C))
    labeled = data.labeled
    possible = k > 1 and len(labeled) >= max(LEAST_SENTENCES, 2 * k)
    minimizes = not isinstance(settings.solver, Solver) or settings.solver.minimizes
    several = own is not None and len(own) > 1
    if several and not dev and not (possible and minimizes):
        raise ValueError(
            f"several values of C are compared on dev data, or by folds of {LEAST_SENTENCES} sentences or more; give "
            "dev data, or one C"
        )
    wanted = several and not dev
    if own is None:
        wanted = settings.C == "auto" or (before is None and not encoder.has_default_C)
        settings = replace(settings, C=default)
    choosing = wanted and possible and minimizes
    if not possible or (dev and not choosing):
        return settings, {}, None
    one = replace(
        settings,
        tol=max(settings.tol, FOLD_TOL),
        solver="auto" if minimizes and settings.norm == "l2" and settings.radius is None else settings.solver,
        max_seconds=None if settings.max_seconds is None else settings.max_seconds * FOLD_SHARE / k,
        patience=None,
        callbacks=(),
        checkpoint=None,
        executor=None,
        verbose=False,
    )

    def fit(some: LabeledRows, C: float) -> Model:
        of_fold = replace(one, C=C)
        hooks = TaggingHooks(encoder, some, of_fold, None, before, rounds=0)
        with warnings.catch_warnings():  # the run on all sentences says what matters
            warnings.simplefilter("ignore")
            model = train_examples(hooks.first, of_fold, hooks=hooks)
            if prune > 0:
                hooks = hooks.pruned(cast(TaggerModel, model), prune, forget=False)
                model = train_examples(hooks.first, of_fold, hooks=hooks)
        if model.training is not None and model.training.interrupted:
            raise KeyboardInterrupt
        return model

    some = data if len(labeled) == len(data.lengths) else data.select(labeled)
    began, limit = time.perf_counter(), settings.max_seconds
    seconds = None if limit is None else limit * FOLD_SHARE
    by = Folds(some, encoder.classes or (), settings.metric or "auto", fit, k, seconds, narrow=before is None)
    found: dict[str, Any] = {"folds": k}
    if choosing:
        try:
            chosen, tried = by.choose(default, own or ())
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_untrained(by.scores)) from None
        settings = replace(settings, C=chosen)
        found |= {"tried": [list(pair) for pair in tried], "chosen_on": FOLDED}
        if own is not None and (at_edge := selection.edge(tried)):
            warnings.warn(at_edge, UserWarning, stacklevel=callers_level())
    if limit is not None:
        later = 0.0 if dev or settings.grid[0] == by.C else limit * FOLD_SHARE  # for the folds that calibrate
        left = limit - (time.perf_counter() - began) - later
        settings = replace(settings, max_seconds=max(left, limit * FOLD_SHARE))
    return settings, found, None if dev else by


def _untrained(scores: Mapping[float, float]) -> str:
    """Return what an interruption says while folds choose C, by the scores so far."""
    said = "C was being chosen by folds, so that there are no weights yet"
    if not scores:
        return said
    best = selection.best([*scores.items()])
    return (
        f"{said}; the best C so far is {best:g} (score {scores[best]:.4f}), and a C that is given is not searched for"
    )


def calibrated_on(model: Model, before: TaggerModel | None, dev: bool, folds: bool) -> str | None:
    """Return what probabilities were calibrated on, perhaps by the model before; None if they were not."""
    if not model.calibration:
        return None
    if dev or folds:
        return DEV if dev else FOLDED
    return None if before is None else before.metadata.get("calibrated_on")


class TaggingHooks(BestGood):
    """The negative support, completion of unknown labels, and calibration.

    Args:
        encoder: knows labels and attributes; its layout has the weights that must exist.
        data: labeled sentences.
        settings: how to train.
        dev: dev data to calibrate on; None for none.
        before: a model to stay close to; None for none.
        folds: folds to calibrate on without dev data; None to keep the calibration of the model before.
        rounds: maximal number of rounds that complete unknown labels.
        fixed: whether the weights of the encoder's layout are all that there are.
        known: the labels that were given, where ``data`` has completed unknown ones; None if all labels are known.
    """

    def __init__(
        self,
        encoder: TaggingEncoder,
        data: LabeledRows,
        settings: Settings,
        dev: DevSentences | None = None,
        before: TaggerModel | None = None,
        folds: Folds | None = None,
        rounds: int = ROUNDS,
        fixed: bool = False,
        known: Codes | None = None,
    ) -> None:
        super().__init__(rounds + 1)
        self.encoder, self.given, self.settings, self.dev, self.before = encoder, data, settings, dev, before
        self.folds, self.fixed, self.known = folds, fixed, known
        self.data = data.runs() if data.incomplete else data

    @property
    def first(self) -> Examples:
        """The examples of the first round."""
        return self._built(pieces=self.given.incomplete)

    def _built(self, *, pieces: bool) -> Examples:
        encoder, batch, gold = self.encoder.encoded(self.data, pieces=pieces, grow=not self.fixed)
        weight = self.data.loss_weight
        per_part = None if weight is None else np.repeat(weight, encoder.weight_layout.n_labels)
        good = None if self.known is None else known_labels(batch.structure, self.known)
        examples = Examples(encoder, batch, gold, self.data.sentence_weight, per_part, good=good)
        return self._anchored(examples, encoder)

    def _anchored(self, examples: Examples, encoder: TaggingEncoder) -> Examples:
        if self.before is None:
            return examples
        anchor = self.before.weight_layout.carried(self.before.weights, encoder.weight_layout)
        return replace(examples, anchor=anchor)

    def solver(self, problem: BaseProblem) -> tuple[Solver, str]:
        """Block-coordinate Frank-Wolfe."""
        return BlockFrankWolfe(), "the default for sequence tagging"

    def begin(
        self, examples: Examples, problem: Problem, previous: Model | None
    ) -> tuple[Examples, Problem, Start | None]:
        """Find the negative support by the first passes of block-coordinate Frank-Wolfe, where the runs then start."""
        encoder = cast(TaggingEncoder, examples.encoder)
        self._examples = examples
        if encoder.support != "negative" or self.fixed:
            return examples, problem, None
        with phase("first passes", self.settings):
            active_set = first_passes(problem, self.settings.random_state)
            layout = with_negatives(encoder.weight_layout, self.data, active_set)
        if len(self.data.codes) >= LARGE:
            _memory.give_back()
        encoder = replace(encoder, weight_layout=layout)
        batch = Batch(examples.batch.structure, layout.features(self.data.rows))
        examples = self._anchored(replace(examples, encoder=encoder, batch=batch), encoder)
        if examples.anchor is None:
            problem = replace(problem, features=batch.features)
        else:
            problem = examples.problem(self.settings, float(problem.region.metadata()["C"]))
        return examples, problem, Start(active_set=active_set, spent=True)

    def pruned(self, model: TaggerModel, least: float, *, forget: bool = True) -> TaggingHooks:
        """Return hooks for the same sentences without small weights of a model, and attributes that have no others.

        ``forget`` says whether attributes go.
        """
        layout, rows = model.weight_layout, self.data.rows
        pairs = large_pairs(model, rows.tokens.counts(), least)
        extractor, dev = model.extractor, self.dev
        if forget and self.before is None and extractor.can_forget:
            keep, support = with_used_attributes(pairs, rows.tokens.n_columns, layout.n_labels)
            extractor = extractor.without(~keep)
            dev = None if dev is None else replace(dev, rows=replace(dev.rows, tokens=dev.rows.tokens.only(keep)))
            rows = replace(rows, tokens=rows.tokens.only(keep))
        else:
            support = Support.of_pairs(pairs, rows.tokens.n_columns, layout.n_labels)
        encoder = replace(model.encoder, extractor=extractor, weight_layout=replace(layout, support=support))
        settings = replace(self.settings, C=float(model.metadata["C"]), checkpoint=None)
        data = replace(self.data, rows=rows)
        return TaggingHooks(encoder, data, settings, dev, self.before, self.folds, fixed=True, known=self.known)

    def complete(self, model: Model, turn: int) -> Examples | ShardedDataset | None:
        """Complete the unknown labels; None if there are none, or if they are those of the round before."""
        return super().complete(model, turn) if self.given.incomplete and turn + 1 < self.rounds else None

    def _completed(self, examples: Examples, model: Model) -> Examples:
        """The sentences with the best labels, whose attributes get weights."""
        encoder = replace(cast(TaggerModel, model).encoder, pieces=False)
        self.known = self.given.codes
        batch = encoder.batch_of(self.given.rows)
        known = known_labels(batch.structure, self.known)
        best = known.completed(batch.structure, batch.features, model.weights)
        nodes = best.index[: best.starts[0, -1]]
        codes = (nodes % encoder.weight_layout.n_labels).astype(np.int32)
        self.data = replace(self.given, codes=codes)
        return self._built(pieces=False)

    def calibrate(self, model: Model) -> dict[str, float]:
        """Fit the temperature to the dev data; without them by folds, unless the user waits for the end."""
        if self.dev is None and self.folds is None and self.before is not None:
            return dict(self.before.calibration)
        return calibration(model, self.dev, self.folds, self.settings)


def known_labels(structure: Structure, codes: Codes) -> PartialOutputs:
    """Return what the labels of all tokens, of which some are unknown, say of the outputs of a batch."""
    k = int(structure.states_per_variable)
    given = np.full((len(codes), k), -1, dtype=np.int8)
    given[codes < 0] = 0
    at = np.flatnonzero(codes >= 0)
    given[at, codes[at]] = 1
    return PartialOutputs(given.ravel())


def calibration(model: Model, dev: DevSentences | None, folds: Folds | None, settings: Settings) -> dict[str, float]:
    """Return the temperature that suits the dev data, or without them the folds; nothing if neither is there.

    Nor is there one by folds if training was interrupted, as the user waits for the end.
    """
    found = None
    if dev is not None:
        found = dev.temperature(model)
    elif folds is not None and not (model.training is not None and model.training.interrupted):
        with phase("calibration", settings):
            found = folds.temperature(float(model.metadata["C"]))
    return {} if found is None else {"temperature": found}


@contextlib.contextmanager
def phase(name: str, settings: Settings) -> Iterator[None]:
    """Show what is being done where training shows its progress."""
    with contextlib.closing(ProgressBar()) as bar:
        if settings.verbose:
            bar.show(name, 0, None)
        yield


def named_loss(given: TagLoss, labels: tuple[Hashable, ...]) -> Loss:
    """Return the loss that a user has given for these labels."""
    if isinstance(given, Loss):
        return given
    if isinstance(given, Mapping):
        for label in given:
            if label not in labels:
                raise ValueError(
                    f"loss names {shown(label)}, which is not a label; there are {', '.join(map(str, labels))}"
                )
        row = np.array([float(given.get(label, 1.0)) for label in labels])
        return LabelCost(row[:, None] * (1.0 - np.eye(len(labels))))
    return LabelCost(given)

"""Training of taggers: the support of the weights, unknown labels, further data and calibration.

The objective is that of :class:`maxmargin.ChainSVM`, ``1/(2C) ||w||^2 + sum_i s_i max_y [loss + w'f(y) - w'f(y_i)]``,
over the support: the pairs of an attribute and a label that occur together in the training data ("observed") and, with
``support="negative"``, the pairs of attributes and wrong labels that the first passes predict. This negative support
adds few weights and scores as well as all pairs.

Unknown labels are completed by the best labels at the current weights, and errors there cost nothing (Yu and Joachims,
*Learning structural SVMs with latent variables*, 2009): each round completes and trains again. The first round trains
only on the runs of known labels, each as a sequence of its own, which is convex.

This module does not import scikit-learn, so that ``maxmargin tag train`` starts quickly and takes little memory.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from maxmargin import _threads
from maxmargin._messages import shown
from maxmargin.encoders.base import Batch
from maxmargin.encoders.data import checks
from maxmargin.losses import LabelCost, Loss
from maxmargin.model import Model
from maxmargin.optimization.active_set import ActiveSet
from maxmargin.optimization.base import NonFiniteError, Run, Solver, Start
from maxmargin.optimization.callbacks import ProgressBar
from maxmargin.optimization.loop import generator
from maxmargin.problem import Problem
from maxmargin.solvers import BlockFrankWolfe
from maxmargin.tasks.tagging.dev import DevSentences
from maxmargin.tasks.tagging.encoder.constraints import odd_sentences
from maxmargin.tasks.tagging.encoder.gold import LabeledRows
from maxmargin.tasks.tagging.encoder.layout import WeightLayout
from maxmargin.tasks.tagging.encoder.tagging import TaggingEncoder
from maxmargin.tasks.tagging.io.table import Codes
from maxmargin.tasks.tagging.model import TaggerModel
from maxmargin.training import Examples, Hooks, Settings, train_examples
from maxmargin.training.train import dev_score

SETTINGS = Settings(tol=1e-2, patience=5, random_state=0, metric="auto")
"""The default settings; C is that of the preset, or 0.1."""
NEGATIVE_PASSES = 2
"""Passes that find the negative support: on CoNLL-2000 a second pass gains 0.07 of F1, a third nothing."""
NEGATIVE_PIECE = 256
"""Sentences whose active outputs are expanded together."""
ROUNDS = 4
"""Maximal number of rounds that complete unknown labels."""

TagLoss = Mapping[Hashable, float] | npt.ArrayLike | Loss
"""A loss, as :class:`~maxmargin.tasks.tagging.SequenceTagger` takes it."""


def train_tagger(
    encoder: TaggingEncoder,
    X: Any,
    y: Any,
    settings: Settings = SETTINGS,
    *,
    dev: tuple[Any, Any] | None = None,
    sample_weight: npt.ArrayLike | None = None,
    loss_weight: Sequence[npt.ArrayLike] | None = None,
    loss: TagLoss | None = None,
    before: TaggerModel | None = None,
) -> TaggerModel:
    """Train a tagger.

    Args:
        encoder: an encoder that has not been fitted, for example ``TaggingEncoder(preset="chunking")``.
        X: sentences, as :class:`~maxmargin.tasks.tagging.SequenceTagger` takes them.
        y: their labels; unknown ones are completed.
        settings: how to train; the solver "auto" is block-coordinate Frank-Wolfe.
        dev: sentences and labels that choose the stopping point and C, and calibrate probabilities.
        sample_weight: weight of each sentence, shape ``(n_sentences,)``.
        loss_weight: cost of an error at each token, an array per sentence.
        loss: cost of errors, as SequenceTagger takes it; None for the loss of the settings.
        before: a model to stay close to: the penalty is then ``1/(2C) ||w - w_before||^2``, and the certificate is
            that of this objective. Its labels, order and constraints are kept.

    Returns:
        The model; ``model.training`` says how training went.
    """
    with _threads.threads(settings.n_jobs):
        with _phase("attributes", settings):
            encoder, data = (encoder if before is None else encoder.after(before.encoder)).learned(X, y)
        weight = checks.weights(sample_weight, len(data.lengths))
        per_token = None if loss_weight is None else checks.per_variable(loss_weight, data.lengths)
        data = replace(data, sentence_weight=weight, loss_weight=per_token)
        odd = odd_sentences(encoder.weight_layout.constraints, data)
        if odd.size:  # their labels are not among the outputs
            data = data.select(np.setdiff1d(np.arange(len(data.lengths)), odd))
        if dev is not None and encoder.repair and isinstance(dev, (tuple, list)) and len(dev) == 2:
            dev = dev[0], encoder.gold(*dev)[0]
        began = time.perf_counter()
        default_C = encoder.default_C if before is None else float(before.metadata.get("C", encoder.default_C))
        dev_sentences = cast(DevSentences | None, dev_score(encoder, dev, settings))
        if dev_sentences is not None and not len(dev_sentences.codes):
            raise ValueError("dev data: no tokens; give sentences with tokens, or no dev data")
        settings = replace(
            settings,
            C=default_C if settings.C is None else settings.C,
            loss=settings.loss if loss is None else _loss(loss, encoder.classes or ()),
            patience=None if dev is None else settings.patience,
        )
        hooks = TaggingHooks(encoder, data, settings, dev_sentences, before)
        try:
            model = train_examples(hooks.first, settings, score=dev_sentences, hooks=hooks)
        except NonFiniteError:
            raise ValueError("values of attributes are too large; scale them down") from None
    metadata = {
        "sentences": len(data.lengths),
        "tokens": len(data.codes),
        **({"left_out": len(odd)} if odd.size else {}),
        **({"repaired": data.repaired} if encoder.repair else {}),
        "support": encoder.support,
        "preset": encoder.preset,
        "preset_reason": encoder.preset_reason,
        **model.metadata,
        "seconds": time.perf_counter() - began,  # with the search for the support, and of all runs
    }
    return cast(TaggerModel, replace(model, metadata=metadata))


class TaggingHooks(Hooks):
    """The negative support, completion of unknown labels, and calibration.

    Args:
        encoder: knows labels and attributes; its layout has the weights that must exist.
        data: labeled sentences.
        settings: how to train.
        dev: dev data to calibrate on; None for none.
        before: a model to stay close to; None for none.
    """

    def __init__(
        self,
        encoder: TaggingEncoder,
        data: LabeledRows,
        settings: Settings,
        dev: DevSentences | None = None,
        before: TaggerModel | None = None,
    ) -> None:
        self.encoder, self.given, self.settings, self.dev, self.before = encoder, data, settings, dev, before
        self.data = data.runs() if data.incomplete else data
        self.completed: Codes | None = None

    @property
    def first(self) -> Examples:
        """The examples of the first round."""
        return self._examples(pieces=self.given.incomplete)

    def _examples(self, *, pieces: bool) -> Examples:
        encoder, batch, gold = self.encoder.encoded(self.data, pieces=pieces)
        weight = self.data.loss_weight
        per_part = None if weight is None else np.repeat(weight, encoder.weight_layout.n_labels)
        return self._anchored(Examples(encoder, batch, gold, self.data.sentence_weight, per_part), encoder)

    def _anchored(self, examples: Examples, encoder: TaggingEncoder) -> Examples:
        if self.before is None:
            return examples
        anchor = self.before.weight_layout.carried(self.before.weights, encoder.weight_layout)
        return replace(examples, anchor=anchor)

    def solver(self, problem: Problem) -> tuple[Solver, str]:
        """Block-coordinate Frank-Wolfe."""
        return BlockFrankWolfe(), "the default for sequence tagging"

    def begin(
        self, examples: Examples, problem: Problem, previous: Model | None
    ) -> tuple[Examples, Problem, Start | None]:
        """Find the negative support by the first passes of block-coordinate Frank-Wolfe, where the runs then start."""
        encoder = cast(TaggingEncoder, examples.encoder)
        if encoder.support != "negative":
            return examples, problem, None
        with _phase("first passes", self.settings):
            active_set = first_passes(problem, self.settings.random_state)
            layout = with_negatives(encoder.weight_layout, self.data, active_set)
        encoder = replace(encoder, weight_layout=layout)
        batch = Batch(examples.batch.structure, layout.features(self.data.rows))
        examples = self._anchored(replace(examples, encoder=encoder, batch=batch), encoder)
        if examples.anchor is None:
            problem = replace(problem, features=batch.features)
        else:
            problem = examples.problem(self.settings, float(problem.region.metadata()["C"]))
        return examples, problem, Start(active_set=active_set)

    def complete(self, model: Model, turn: int) -> Examples | None:
        """Complete the unknown labels; None if they are those of the round before."""
        if not self.given.incomplete or turn == ROUNDS:
            return None
        codes = cast(TaggerModel, model).best(self.given.rows, self.given.codes)
        if self.completed is not None and np.array_equal(codes, self.completed):
            return None
        self.completed = codes
        weight = np.ones(len(codes)) if self.given.loss_weight is None else self.given.loss_weight
        self.data = replace(self.given, codes=codes, loss_weight=np.where(self.given.codes >= 0, weight, 0.0))
        return self._examples(pieces=False)

    def calibrate(self, model: Model) -> dict[str, float]:
        """Fit the temperature to the dev data."""
        found = None if self.dev is None else self.dev.temperature(model)
        return {} if found is None else {"temperature": found}


@contextlib.contextmanager
def _phase(name: str, settings: Settings) -> Iterator[None]:
    """Show what is being done where training shows its progress."""
    with contextlib.closing(ProgressBar()) as bar:
        if settings.verbose:
            bar.show(name, 0, None)
        yield


def _loss(given: TagLoss, labels: tuple[Hashable, ...]) -> Loss:
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


def first_passes(problem: Problem, random_state: int | None) -> ActiveSet:
    """Return the active set after the first passes of block-coordinate Frank-Wolfe."""
    solver = BlockFrankWolfe(kept_passes=0, average=False)
    if reason := solver.unsupported(problem):
        raise ValueError(f'support="negative" is not possible, as {reason}; or give another support')
    run = Run.of(problem, generator(random_state), solver.shard_size)
    state = solver.init(run, Start())
    for _ in range(NEGATIVE_PASSES):
        state = solver.step(run, state)
    return solver.active_set(state)


def with_negatives(layout: WeightLayout, data: LabeledRows, active_set: ActiveSet) -> WeightLayout:
    """Extend the support by attributes of tokens and the wrong labels that active outputs give them."""
    k, offsets = layout.n_labels, data.rows.offsets
    tokens, labels = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for first in range(0, len(data.lengths), NEGATIVE_PIECE):  # expanding all at once would set the peak of memory
        starts = active_set.starts[first : first + NEGATIVE_PIECE + 1]
        bounds = active_set.part_starts[starts[0] : starts[-1] + 1]
        sentence = np.repeat(np.arange(first, first + len(starts) - 1), np.diff(starts))
        owner = np.repeat(sentence, np.diff(bounds))
        part = active_set.part[bounds[0] : bounds[-1]].astype(np.int64)
        nodes = part < data.lengths[owner] * k
        pairs = np.unique(offsets[owner[nodes]] * k + part[nodes])
        token, label = pairs // k, pairs % k
        wrong = label != data.codes[token]
        tokens.append(token[wrong])
        labels.append(label[wrong])
    support = layout.support.with_pairs(data.rows.tokens.entries, np.concatenate(tokens), np.concatenate(labels))
    return replace(layout, support=support)

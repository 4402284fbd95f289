"""Weights from labeled sentences: the problem, which weights exist, labels that are unknown, and the choice of C.

The objective is that of :class:`maxmargin.ChainSVM`, ``1/(2C) ||w||^2 + sum_i s_i max_y [loss + w'f(y) - w'f(y_i)]``,
over the weights that exist. These are the pairs of an attribute and a label that occur together in the training data
and, with ``states="rivals"``, those of attributes and the wrong labels that the first passes meet: a few more weights,
and what all pairs would give.

Where some labels are unknown the best completion at the current weights stands for them, and costs nothing
(Yu and Joachims, *Learning structural SVMs with latent variables*, 2009): each round completes and trains again. The
first round trains on the runs of known labels alone, each a sequence of its own, which is convex.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin.features.supported import Support
from maxmargin.losses import Loss
from maxmargin.optimization.active_set import ActiveSet
from maxmargin.optimization.base import Run
from maxmargin.optimization.callbacks import Callback
from maxmargin.problem import Problem
from maxmargin.regions import L2
from maxmargin.solvers import BlockFrankWolfe, Checkpoint, Solution, Solver, Start, Status, Stop, Validation, solve
from maxmargin.structures.base import FloatArray, IntArray, Structure
from maxmargin.structures.sparse import SparsePoint
from maxmargin.tasks.tagging.decoding import Decoder
from maxmargin.tasks.tagging.extraction import TokenRows
from maxmargin.tasks.tagging.layout import WeightLayout
from maxmargin.tasks.tagging.table import Codes

STATES = ("rivals", "observed", "all")
RIVAL_PASSES = 2
"""Passes that look for rivals: on CoNLL-2000 a second one is worth 0.07 of F1, a third one nothing."""
RIVAL_PIECE = 256
"""Sentences whose outputs are looked at together."""
ROUNDS = 4
"""Rounds of completing unknown labels at most."""


@dataclass(frozen=True, eq=False)
class TagData:
    """Labeled sentences.

    Attributes:
        rows: their attributes.
        codes: labels of all tokens, :data:`~maxmargin.tasks.tagging.model.UNKNOWN` for none, shape ``(n_tokens,)``.
        sentence_weight: how much each sentence counts, shape ``(n_sentences,)``; None for 1.
        token_weight: how much a wrong label costs at each token, shape ``(n_tokens,)``; None for 1.
    """

    rows: TokenRows
    codes: Codes
    sentence_weight: FloatArray | None = None
    token_weight: FloatArray | None = None

    @property
    def lengths(self) -> IntArray:
        """Tokens per sentence."""
        return self.rows.lengths

    def runs(self) -> TagData:
        """The runs of known labels, each a sentence of its own."""
        known, offsets = self.codes >= 0, self.rows.offsets
        begins = known.copy()
        begins[1:] &= ~known[:-1]
        first = offsets[:-1][self.lengths > 0]
        begins[first] = known[first]
        lengths = np.diff(np.append(np.flatnonzero(begins[known]), known.sum()))
        sentence = np.repeat(np.arange(len(self.lengths)), self.lengths)
        edges = None
        if self.rows.edges is not None:
            # The edge of token t belongs to it and the one before; row numbers count without the first tokens.
            inner = np.ones(len(known), dtype=bool)
            inner[first] = False
            chosen = np.flatnonzero((known & ~begins)[inner])
            edges = self.rows.edges.select(chosen, np.maximum(lengths - 1, 0))
        rows = TokenRows(self.rows.tokens.select(np.flatnonzero(known), lengths), edges)
        weight = None if self.sentence_weight is None else self.sentence_weight[sentence[np.flatnonzero(begins)]]
        return TagData(rows, self.codes[known], weight, None if self.token_weight is None else self.token_weight[known])


@dataclass(frozen=True, eq=False)
class Training:
    """How to train.

    Attributes:
        C: regularization, see above; several: the best on the dev data is taken.
        states: which weights exist: "rivals", "observed" or "all".
        loss: what errors cost.
        solver: an algorithm; None for block-coordinate Frank-Wolfe.
        stop: tolerance and budgets of each run.
        patience: certificates without a better dev score after which a run ends; None for no such end.
        random_state: the seed.
        callbacks: told of every certificate.
        checkpoint: where runs are saved; None for nowhere.
        tell: told what begins, for a progress bar.
    """

    C: Sequence[float]
    loss: Loss
    states: str = "rivals"
    solver: Solver | None = None
    stop: Stop = field(default_factory=lambda: Stop(tol=1e-2))
    patience: int | None = None
    random_state: int | None = 0
    callbacks: Sequence[Callback] = ()
    checkpoint: Checkpoint | None = None
    tell: Callable[[str], None] = lambda stage: None


@dataclass(frozen=True, eq=False)
class Trained:
    """What training ends with.

    Attributes:
        layout: which weights there are.
        weights: those with the best dev score, or with the smallest objective where there are no dev data.
        solution: the run they are from.
        C: its regularization.
        primal: the objective of the weights.
        dual: a lower bound of the smallest objective.
        dev: the dev scores of the run by iteration; empty without dev data.
        saves: checkpoints of the runs, to be removed once the model is stored.
        tried: each C with its best dev score.
        interrupted: whether Ctrl-C ended it, perhaps before other values of C or rounds of unknown labels.
    """

    layout: WeightLayout
    weights: FloatArray
    solution: Solution
    C: float
    primal: float
    dual: float
    dev: tuple[tuple[int, float], ...] = ()
    saves: tuple[Checkpoint, ...] = ()
    interrupted: bool = False
    tried: tuple[tuple[float, float], ...] = ()


Score = Callable[[WeightLayout, FloatArray], float]


def train(
    layout: WeightLayout, data: TagData, how: Training, score: Score | None = None, start: FloatArray | None = None
) -> Trained:
    """Train weights.

    Args:
        layout: labels, order, rules, and weights that there must be: an empty support at first, or that of ``start``.
        data: labeled sentences; where labels are unknown they are completed.
        how: settings.
        score: the dev score of weights, larger is better; None without dev data.
        start: weights that the new ones are to stay close to (``partial_fit``): the penalty is then
            ``1/(2C) ||w - start||^2``, and the certificate is about that objective.
    """
    if len(data.codes) and (data.codes >= 0).all():
        return _train_known(layout, data, how, score, start, "")
    known = data.runs()
    if not len(known.codes):
        raise ValueError("no label is known; label at least some tokens")
    # A run may begin and end with any label: it is a piece of a sentence.
    pieces = layout if layout.constraints is None else replace(layout, constraints=layout.constraints.inside)
    whole_score = None if score is None else _with_rules(score, layout)
    trained = _train_known(pieces, known, how, whole_score, start, "-runs")
    trained = replace(trained, layout=replace(trained.layout, constraints=layout.constraints))
    best, saves = trained, trained.saves
    before: Codes | None = None
    weight = np.ones(len(data.codes)) if data.token_weight is None else data.token_weight
    for turn in range(ROUNDS):
        if trained.interrupted:
            break
        codes = complete(trained, data)
        if before is not None and np.array_equal(codes, before):
            break
        how.tell(f"unknown labels, round {turn + 1}")
        whole = replace(data, codes=codes, token_weight=np.where(data.codes >= 0, weight, 0.0))
        again = replace(how, C=(trained.C,))
        trained = _train_known(layout, whole, again, score, start, f"-{turn}")
        before, saves = codes, (*saves, *trained.saves)
        if score is None or _dev(trained) >= _dev(best):
            best = trained
    return replace(best, saves=saves, interrupted=trained.interrupted)


def complete(trained: Trained, data: TagData) -> Codes:
    """The best labels that agree with the known ones."""
    return Decoder(trained.layout, trained.weights).best(data.rows, data.codes)


def _train_known(
    layout: WeightLayout, data: TagData, how: Training, score: Score | None, start: FloatArray | None, stage: str
) -> Trained:
    """Train on sentences whose labels are all known: for each C, the weights and the best of them."""
    how.tell("the problem")
    old = layout
    layout = _with_observed(layout, data, how.states)
    problem = _problem(layout, data, how, how.C[0])
    active_set = None
    if how.states == "rivals":
        how.tell("rivals")
        active_set = _first_passes(problem if start is None else problem.around(carried(start, old, layout)), how)
        layout = _with_rivals(layout, data, active_set)
        problem = replace(problem, features=layout.features(data.rows))
    anchor = None if start is None else carried(start, old, layout)
    if anchor is not None:
        problem = problem.around(anchor)
    best: Trained | None = None
    tried: list[tuple[float, float]] = []
    saves: list[Checkpoint] = []
    interrupted = False
    for number, C in enumerate(how.C):
        how.tell("training" if len(how.C) == 1 else f"C = {C:g}")
        here = replace(problem, region=L2(C=C))
        chooser = None
        if score is not None:
            chooser = Validation(_scorer(score, layout, anchor), how.patience)
        checkpoint = None
        if how.checkpoint is not None:
            checkpoint = replace(how.checkpoint, path=Path(f"{how.checkpoint.path}{stage}-{number}"))
            saves.append(checkpoint)
        solution = solve(
            here,
            how.solver or BlockFrankWolfe(),
            stop=how.stop,
            callbacks=[*how.callbacks, *([chooser] if chooser is not None else [])],
            start=Start(active_set=active_set),
            random_state=how.random_state,
            checkpoint=checkpoint,
            why="the default for sequence tagging" if how.solver is None else "chosen by the caller",
        )
        # The next C begins as this one did: from its solution, dev scores would begin with those of this one.
        found = _chosen(layout, solution, C, chooser, anchor)
        tried.append((C, _dev(found)))
        if best is None or (score is not None and _dev(found) > _dev(best)):
            best = found
        interrupted = solution.status is Status.INTERRUPTED
        if interrupted:
            break
    assert best is not None
    return replace(best, saves=tuple(saves), interrupted=interrupted, tried=tuple(tried))


def _dev(trained: Trained) -> float:
    return max((value for _, value in trained.dev), default=-np.inf)


def _with_rules(score: Score, layout: WeightLayout) -> Score:
    return lambda found, weights: score(replace(found, constraints=layout.constraints), weights)


def _scorer(score: Score, layout: WeightLayout, anchor: FloatArray | None) -> Callable[[FloatArray], float]:
    return lambda weights: score(layout, weights if anchor is None else weights + anchor)


def _chosen(
    layout: WeightLayout, solution: Solution, C: float, chooser: Validation | None, anchor: FloatArray | None
) -> Trained:
    weights, primal = solution.weights, solution.certificate.primal
    dev: tuple[tuple[int, float], ...] = ()
    if chooser is not None and chooser.best_weights is not None:
        weights, dev = chooser.best_weights, tuple(chooser.history)
        # Its objective was taken when it was proposed; the bound from below is the best of the whole run.
        primal = next(r.primal for r in solution.history if r.iteration == chooser.best_iteration)
    weights = weights if anchor is None else weights + anchor
    return Trained(layout, weights, solution, C, primal, solution.certificate.dual, dev)


def carried(weights: FloatArray, old: WeightLayout, new: WeightLayout) -> FloatArray:
    """Weights of a layout as those of one that has all of its weights and perhaps more, which are zero."""
    tokens, pairs, rest = old.split(weights)
    if old.edge_support is not None and new.edge_support is not None:
        rest = old.edge_support.carried(rest, new.edge_support)
    return np.concatenate([old.support.carried(tokens, new.support), pairs.ravel(), rest.ravel()])


def _with_observed(layout: WeightLayout, data: TagData, states: str) -> WeightLayout:
    """The layout with weights for the pairs that occur, or for all, besides those it has."""
    k, rows = layout.n_labels, data.rows

    def grown(support: Support, attributes: Any, columns: IntArray) -> Support:
        d = attributes.n_columns
        found = (
            Support.full(d, support.m) if states == "all" else Support.observed(attributes.entries, columns, support.m)
        )
        return support.extended(d).union(found)

    codes = data.codes.astype(np.int64)
    support = grown(layout.support, rows.tokens, codes)
    edge_support = None
    if layout.edge_support is not None and rows.edges is not None:
        later = np.ones(len(codes), dtype=bool)
        later[rows.offsets[:-1][rows.lengths > 0]] = False
        at = np.flatnonzero(later)
        edge_support = grown(layout.edge_support, rows.edges, codes[at - 1] * k + codes[at])
    return replace(layout, support=support, edge_support=edge_support)


def _gold(structure: Structure, codes: Codes, offsets: IntArray) -> SparsePoint:
    """Labels as the non-zeros of outputs, piece by piece."""
    pieces = []
    for examples in structure.consecutive():
        batch = structure.select(examples)
        labels = [codes[offsets[i] : offsets[i + 1]].astype(np.int64) for i in examples.tolist()]
        pieces.append((examples, batch.encode(labels)))
    return SparsePoint.joined(structure, pieces)


def _problem(layout: WeightLayout, data: TagData, how: Training, C: float) -> Problem:
    structure = layout.structure(data.lengths)
    weight = None if data.token_weight is None else np.repeat(data.token_weight, layout.n_labels)
    return Problem.build(
        structure,
        layout.features(data.rows),
        _gold(structure, data.codes, data.rows.offsets),
        how.loss,
        L2(C=C),
        example_weight=data.sentence_weight,
        loss_weight=weight,
    )


def _first_passes(problem: Problem, how: Training) -> ActiveSet:
    """The outputs that have mass after the first passes of block-coordinate Frank-Wolfe."""
    solver = BlockFrankWolfe(kept_passes=0, average=False)
    run = Run.of(problem, np.random.default_rng(how.random_state), solver.shard_size)
    state = solver.init(run, Start())
    for _ in range(RIVAL_PASSES):
        state = solver.step(run, state)
    return solver.active_set(state)


def _with_rivals(layout: WeightLayout, data: TagData, active_set: ActiveSet) -> WeightLayout:
    """The layout with weights for attributes of tokens and the labels that the outputs wrongly give them."""
    k, offsets = layout.n_labels, data.rows.offsets
    tokens, labels = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for first in range(0, len(data.lengths), RIVAL_PIECE):  # arrays of all parts would be the largest of all
        starts = active_set.starts[first : first + RIVAL_PIECE + 1]
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

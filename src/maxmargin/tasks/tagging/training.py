"""Training of weights: the problem, the support of the weights, unknown labels, and the choice of C.

The objective is that of :class:`maxmargin.ChainSVM`, ``1/(2C) ||w||^2 + sum_i s_i max_y [loss + w'f(y) - w'f(y_i)]``,
over the support: the pairs of an attribute and a label that occur together in the training data ("observed") and, with
``support="negative"``, the pairs of attributes and wrong labels that the first passes predict. This negative support
adds few weights and scores as well as all pairs.

Unknown labels are completed by the best labels at the current weights, and errors there cost nothing (Yu and Joachims,
*Learning structural SVMs with latent variables*, 2009): each round completes and trains again. The first round trains
only on the runs of known labels, each as a sequence of its own, which is convex.
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
from maxmargin.tasks.tagging.encoder.gold import LabeledRows
from maxmargin.tasks.tagging.encoder.layout import WeightLayout
from maxmargin.tasks.tagging.io.table import Codes

SUPPORTS = ("negative", "observed", "all")
NEGATIVE_PASSES = 2
"""Passes that find the negative support: on CoNLL-2000 a second pass gains 0.07 of F1, a third nothing."""
NEGATIVE_PIECE = 256
"""Sentences whose active outputs are expanded together."""
ROUNDS = 4
"""Maximal number of rounds that complete unknown labels."""


@dataclass(frozen=True, eq=False)
class Training:
    """Settings of training.

    Attributes:
        C: regularization, see above; of several values, the best on the dev data is chosen.
        support: which weights exist: "negative", "observed" or "all".
        loss: cost of errors.
        solver: None for block-coordinate Frank-Wolfe.
        stop: tolerance and budgets of each run.
        patience: a run stops after this many certificates without a better dev score; None never stops it.
        random_state: the seed.
        callbacks: called with every certificate.
        checkpoint: where runs are saved; None for nowhere.
    """

    C: Sequence[float]
    loss: Loss
    support: str = "negative"
    solver: Solver | None = None
    stop: Stop = field(default_factory=lambda: Stop(tol=1e-2))
    patience: int | None = None
    random_state: int | None = 0
    callbacks: Sequence[Callback] = ()
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True, eq=False)
class Trained:
    """Result of training.

    Attributes:
        layout: meaning of the weights.
        weights: those with the best dev score, or with the smallest objective without dev data.
        solution: the run that found them.
        C: its regularization.
        primal: objective of the weights.
        dual: lower bound of the smallest objective.
        dev: dev scores of the run by iteration; empty without dev data.
        saves: checkpoints of the runs, to be removed once the model is stored.
        tried: each C with its best dev score.
        interrupted: whether Ctrl-C stopped training, perhaps before all values of C or rounds were tried.
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
    layout: WeightLayout, data: LabeledRows, how: Training, score: Score | None = None, start: FloatArray | None = None
) -> Trained:
    """Train weights.

    Args:
        layout: labels, order, constraints, and weights that must exist: an empty support, or that of ``start``.
        data: labeled sentences; unknown labels are completed.
        how: settings.
        score: dev score of weights, larger is better; None without dev data.
        start: weights to stay close to (``partial_fit``): the penalty is then ``1/(2C) ||w - start||^2``, and the
            certificate is that of this objective.
    """
    if len(data.codes) and (data.codes >= 0).all():
        return _train_known(layout, data, how, score, start, "")
    known = data.runs()
    if not len(known.codes):
        raise ValueError("no label is known; label at least some tokens")
    # A run is a piece of a sentence, so it may begin and end with any label.
    pieces = layout if layout.constraints is None else replace(layout, constraints=layout.constraints.inside)
    whole_score = None if score is None else _with_constraints(score, layout)
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
        whole = replace(data, codes=codes, token_weight=np.where(data.codes >= 0, weight, 0.0))
        again = replace(how, C=(trained.C,))
        trained = _train_known(layout, whole, again, score, start, f"-{turn}")
        before, saves = codes, (*saves, *trained.saves)
        if score is None or _dev(trained) >= _dev(best):
            best = trained
    return replace(best, saves=saves, interrupted=trained.interrupted)


def complete(trained: Trained, data: LabeledRows) -> Codes:
    """Return the best labels that agree with the known ones."""
    return Decoder(trained.layout, trained.weights).best(data.rows, data.codes)


def _train_known(
    layout: WeightLayout, data: LabeledRows, how: Training, score: Score | None, start: FloatArray | None, stage: str
) -> Trained:
    """Train on sentences whose labels are all known, for each C, and return the best result."""
    old = layout
    layout = _with_observed(layout, data, how.support)
    problem = _problem(layout, data, how, how.C[0])
    active_set = None
    if how.support == "negative":
        active_set = _first_passes(problem if start is None else problem.around(carried(start, old, layout)), how)
        layout = _with_negatives(layout, data, active_set)
        problem = replace(problem, features=layout.features(data.rows))
    anchor = None if start is None else carried(start, old, layout)
    if anchor is not None:
        problem = problem.around(anchor)
    best: Trained | None = None
    tried: list[tuple[float, float]] = []
    saves: list[Checkpoint] = []
    interrupted = False
    for number, C in enumerate(how.C):
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
        # Each C starts from the same active set: from this solution, the next dev scores would start with these.
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


def _with_constraints(score: Score, layout: WeightLayout) -> Score:
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
        # Its primal is from its own iteration; the dual bound is the best of the whole run.
        primal = next(r.primal for r in solution.history if r.iteration == chooser.best_iteration)
    weights = weights if anchor is None else weights + anchor
    return Trained(layout, weights, solution, C, primal, solution.certificate.dual, dev)


def carried(weights: FloatArray, old: WeightLayout, new: WeightLayout) -> FloatArray:
    """Carry weights over to a layout with the same weights and perhaps more, which are zero."""
    tokens, pairs, rest = old.split(weights)
    if old.edge_support is not None and new.edge_support is not None:
        rest = old.edge_support.carried(rest, new.edge_support)
    return np.concatenate([old.support.carried(tokens, new.support), pairs.ravel(), rest.ravel()])


def _with_observed(layout: WeightLayout, data: LabeledRows, which: str) -> WeightLayout:
    """Extend the support by the pairs that occur, or by all pairs."""
    k, rows = layout.n_labels, data.rows

    def grown(support: Support, attributes: Any, columns: IntArray) -> Support:
        d = attributes.n_columns
        found = (
            Support.full(d, support.m) if which == "all" else Support.observed(attributes.entries, columns, support.m)
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
    """Encode labels as sparse outputs, shard by shard."""
    pieces = []
    for examples in structure.consecutive():
        batch = structure.select(examples)
        labels = [codes[offsets[i] : offsets[i + 1]].astype(np.int64) for i in examples.tolist()]
        pieces.append((examples, batch.encode(labels)))
    return SparsePoint.joined(structure, pieces)


def _problem(layout: WeightLayout, data: LabeledRows, how: Training, C: float) -> Problem:
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
    """Return the active set after the first passes of block-coordinate Frank-Wolfe."""
    solver = BlockFrankWolfe(kept_passes=0, average=False)
    run = Run.of(problem, np.random.default_rng(how.random_state), solver.shard_size)
    state = solver.init(run, Start())
    for _ in range(NEGATIVE_PASSES):
        state = solver.step(run, state)
    return solver.active_set(state)


def _with_negatives(layout: WeightLayout, data: LabeledRows, active_set: ActiveSet) -> WeightLayout:
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

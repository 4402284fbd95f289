"""The support of a tagger's weights: pairs of attributes and labels, found by first passes and pruned by size.

The negative support holds the pairs of attributes and wrong labels that active outputs have after the first passes of
block-coordinate Frank-Wolfe. Pruning drops pairs whose weights are small, and attributes without pairs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from maxmargin.features.supported import Support
from maxmargin.optimization.active_set import ActiveSet
from maxmargin.optimization.loop import generator
from maxmargin.optimization.run import Run
from maxmargin.optimization.solver import Start
from maxmargin.problem import BaseProblem, Problem
from maxmargin.solvers import BlockFrankWolfe
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.tasks.common.tokens.table import Codes
from maxmargin.tasks.tagging.encoder.labels.gold import LabeledRows
from maxmargin.tasks.tagging.encoder.layout import WeightLayout
from maxmargin.tasks.tagging.encoder.tagging import TaggingEncoder
from maxmargin.tasks.tagging.model import TaggerModel

NEGATIVE_PASSES = 2
"""Passes that find the negative support: on CoNLL-2000 a second pass gains 0.07 of F1, a third nothing."""
NEGATIVE_PIECE = 256
"""Sentences whose active outputs are expanded together."""


def first_solver(problem: BaseProblem) -> BlockFrankWolfe:
    """Return the solver whose first passes find the negative support; ValueError if the problem does not suit it."""
    solver = BlockFrankWolfe(kept_passes=0, average=False)
    if reason := solver.unsupported(problem):
        raise ValueError(f'support="negative" is not possible, as {reason}; or give another support')
    return solver


def first_passes(problem: Problem, random_state: int | None) -> ActiveSet:
    """Return the active set after the first passes of block-coordinate Frank-Wolfe."""
    solver = first_solver(problem)
    run = Run.of(problem, generator(random_state), solver.shard_size)
    state = solver.init(run, Start())
    for _ in range(NEGATIVE_PASSES):
        state = solver.step(run, state)
    found = solver.active_set(state)
    assert found is not None  # as all examples are in one place
    return found


def with_negatives(layout: WeightLayout, data: LabeledRows, active_set: ActiveSet) -> WeightLayout:
    """Extend the support by attributes of tokens and the wrong labels that active outputs give them."""
    tokens, labels = wrong_labels(layout.n_labels, data.lengths, data.codes, active_set)
    layout = replace(layout, support=layout.support.with_pairs(data.rows.tokens.entries, tokens, labels))
    if layout.segment_support is None or data.rows.segments is None:
        return layout
    rows, types = active_segments(layout, data.lengths, data.rows.segments.lengths, active_set)
    support = layout.segment_support.with_pairs(data.rows.segments.entries, rows, types)
    return replace(layout, segment_support=support)


def active_segments(
    layout: WeightLayout, lengths: IntArray, candidates: IntArray, active_set: ActiveSet
) -> tuple[IntArray, IntArray]:
    """Return candidate segments and the types that active outputs give them.

    Args:
        layout: meaning of the weights.
        lengths: tokens of each sentence.
        candidates: candidate segments of each sentence.
        active_set: outputs of each sentence.
    """
    k = layout.n_pair_labels
    owner = np.repeat(np.repeat(np.arange(len(lengths)), np.diff(active_set.starts)), np.diff(active_set.part_starts))
    part = active_set.part - lengths[owner] * layout.n_labels - k**2
    pairs = np.unique((offsets_of(candidates)[owner] * k + part)[part >= 0])
    return pairs // k, pairs % k


def wrong_labels(k: int, lengths: IntArray, codes: Codes, active_set: ActiveSet) -> tuple[IntArray, IntArray]:
    """Return tokens and the wrong labels that active outputs give them.

    Args:
        k: number of labels.
        lengths: tokens of each sentence.
        codes: gold labels of all tokens.
        active_set: outputs of each sentence.
    """
    offsets = offsets_of(lengths)
    tokens, labels = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for first in range(0, len(lengths), NEGATIVE_PIECE):  # expanding all at once would set the peak of memory
        starts = active_set.starts[first : first + NEGATIVE_PIECE + 1]
        bounds = active_set.part_starts[starts[0] : starts[-1] + 1]
        sentence = np.repeat(np.arange(first, first + len(starts) - 1), np.diff(starts))
        owner = np.repeat(sentence, np.diff(bounds))
        part = active_set.part[bounds[0] : bounds[-1]].astype(np.int64)
        nodes = part < lengths[owner] * k
        pairs = np.unique(offsets[owner[nodes]] * k + part[nodes])
        token, label = pairs // k, pairs % k
        wrong = label != codes[token]
        tokens.append(token[wrong])
        labels.append(label[wrong])
    return np.concatenate(tokens), np.concatenate(labels)


def without_support(encoder: TaggingEncoder) -> TaggingEncoder:
    """Return an encoder that knows labels and attributes, but not which of them occur together."""
    layout = encoder.weight_layout
    k = layout.n_labels
    edges = None if layout.edge_support is None else Support.empty(k**2)
    return replace(encoder, weight_layout=replace(layout, support=Support.empty(k), edge_support=edges))


def large_pairs(model: TaggerModel, counts: IntArray, least: float) -> IntArray:
    """Return the pairs of the support whose weights are not small.

    A weight is small if its absolute value times the square root of its attribute's tokens (``counts``) is below
    ``least``: that is the size of its part in the scores of all tokens.
    """
    layout = model.weight_layout
    size = np.abs(layout.split(model.weights)[0]) * np.sqrt(counts)[layout.support.features]
    return layout.support.pairs()[size >= max(least, np.finfo(float).tiny)]


def with_used_attributes(pairs: IntArray, n_attributes: int, k: int) -> tuple[npt.NDArray[np.bool_], Support]:
    """Return which attributes have pairs, shape ``(n_attributes,)``, and the support over these attributes alone.

    The order of pairs, and so that of weights, stays the same.

    Args:
        pairs: pairs of the support, as :meth:`Support.pairs` has them.
        n_attributes: number of attributes.
        k: number of labels.
    """
    keep = np.zeros(n_attributes, dtype=np.bool_)
    keep[pairs // k] = True
    place = np.cumsum(keep) - 1
    return keep, Support.of_pairs(place[pairs // k] * k + pairs % k, int(keep.sum()), k)


def forgetful(model: TaggerModel) -> TaggerModel:
    """Return the same model without attributes that have no weights, if its extractor can do without them."""
    layout, extractor = model.weight_layout, model.extractor
    if not extractor.can_forget:
        return model
    keep, support = with_used_attributes(layout.support.pairs(), layout.support.n_features, layout.n_labels)
    encoder = replace(model.encoder, extractor=extractor.without(~keep), weight_layout=replace(layout, support=support))
    return replace(model, encoder=encoder)

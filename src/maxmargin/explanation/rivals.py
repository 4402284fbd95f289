"""The outputs that a prediction is compared with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin import _checks
from maxmargin.encoders.base import Batch, Encoder
from maxmargin.structures.base import FloatArray, IntArray, Points, PointStatus, Structure
from maxmargin.structures.cuts.cut import Cut
from maxmargin.structures.fallbacks.generic import spread_of
from maxmargin.structures.networks.network import Network

MOST_NODES = 1000
"""Of a graph whose second best labeling is found exactly: that takes a maximum for each node."""

NOT_FINITE = "the scores are not finite, as features are too large; scale them"

_TRIED = 24
"""Nodes of other graphs at which another label is tried."""

_MOST_PARTS = 5000
"""Of a network where that is done: to solve the relaxation of larger ones again and again takes minutes."""


@dataclass(frozen=True, eq=False)
class Pair:
    """The parts of an output and of its rival, both of one example.

    Attributes:
        z: of the output.
        rival: of the rival; None if there is no other output.
        exact: whether both are known to be what they are said to be.
    """

    z: FloatArray
    rival: FloatArray | None
    exact: bool


def best(structure: Structure, scores: FloatArray) -> Points:
    """The predicted output."""
    found = structure.predict(scores)
    if found.status[0] > PointStatus.INEXACT:
        raise ValueError(
            NOT_FINITE
            if found.status[0] == PointStatus.NONFINITE
            else "the input has no legal output; change it, or allow what is forbidden"
        )
    return found


def with_runner_up(encoder: Encoder, batch: Batch, scores: FloatArray) -> Pair:
    """The predicted output and the best other one."""
    structure = batch.structure
    if isinstance(structure, (Network, Cut)) and (structure.relaxed or structure.n_variables[0] > MOST_NODES):
        return _near(structure, scores)
    predicted = best(structure, scores)
    ranks = encoder.k_best(structure, scores, 2)
    exact = ranks[0].status[0] == PointStatus.OK
    if len(ranks) < 2 or ranks[1].status[0] > PointStatus.INEXACT:
        return Pair(predicted.z, None, exact)
    # Among outputs of equal score the prediction need not come first.
    second = ranks[0].z if np.array_equal(predicted.z, ranks[1].z) else ranks[1].z
    return Pair(predicted.z, second, exact and ranks[1].status[0] == PointStatus.OK)


def with_other_at(structure: Structure, scores: FloatArray, at: int) -> Pair:
    """The predicted output and the best one that differs in variable ``at``: a position, a node, a link."""
    count = int(structure.n_variables[0])
    at = _checks.integer("at", at, least=0, most=count - 1, hint=f"there are {count} positions, nodes or links")
    predicted = best(structure, scores)
    found = _forced(structure, scores, predicted.z, np.array([at]))
    if found.status[0] > PointStatus.INEXACT or not _differs(structure, predicted.z, found.z, at):
        return Pair(predicted.z, None, predicted.status[0] == PointStatus.OK)
    return Pair(predicted.z, found.z, bool(predicted.status[0] == found.status[0] == PointStatus.OK))


def _differs(structure: Structure, one: FloatArray, two: FloatArray, at: int) -> bool:
    own = _parts(structure, at)
    return not np.array_equal(one[own], two[own])


def _parts(structure: Structure, at: int) -> slice:
    ends = np.cumsum(structure.n_states[: at + 1])
    return slice(int(ends[-1] - structure.n_states[at]), int(ends[-1]))


def _forced(structure: Structure, scores: FloatArray, z: FloatArray, variables: IntArray) -> Points:
    """For each of some variables, an example each, the best output that differs from ``z`` there."""
    n = len(variables)
    copies = structure.select(np.zeros(n, dtype=np.int64))
    asked = scores[structure.parts_of(np.zeros(n, dtype=np.int64))]
    big = float(spread_of(structure, scores)[0])
    width = structure.starts[1]
    for row, at in enumerate(variables.tolist()):
        own = _parts(structure, at)
        taken = z[own] > 0.5
        asked[row * width + own.start : row * width + own.stop] += big * np.where(taken, -1.0, 0.0)
        if not taken.any() and not structure.categorical:
            asked[row * width + own.start : row * width + own.stop] += big
    return copies.predict(asked)


def _near(structure: Network | Cut, scores: FloatArray) -> Pair:
    """The predicted labeling, and the best one found with another label somewhere.

    That is the one with another label at a single node, or where inference is not too slow a better one with another
    label at one of the few nodes that lose least by it.
    """
    predicted = best(structure, scores)
    gain = structure.flips(scores, predicted.z)
    labels = structure.decode(predicted.z)[0]
    if gain.ndim == 1:
        other = 1 - labels
    else:
        gain[np.arange(len(labels)), labels] = -np.inf
        other, gain = gain.argmax(axis=1), gain.max(axis=1, initial=-np.inf)
    if not len(gain) or not np.isfinite(gain.max()):
        return Pair(predicted.z, None, predicted.status[0] == PointStatus.OK)
    nodes = np.argsort(-gain, kind="stable")[:_TRIED]
    labels[nodes[0]] = other[nodes[0]]
    rivals = [structure.encode([labels]).dense()]
    if isinstance(structure, Cut) or structure.n_parts <= _MOST_PARTS:
        found = _forced(structure, scores, predicted.z, nodes)
        copies = structure.select(np.zeros(len(nodes), dtype=np.int64))
        tried = [(at, found.z[copies.parts_of([row])]) for row, at in enumerate(nodes.tolist())]
        rivals += [z for at, z in tried if _differs(structure, predicted.z, z, at)]
    return Pair(predicted.z, max(rivals, key=lambda z: float(scores @ z)), False)

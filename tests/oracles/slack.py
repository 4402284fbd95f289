"""Slack rescaling by enumeration: the best product over all outputs, and over their hull."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np

from maxmargin.structures.base import FloatArray, Structure
from maxmargin.structures.candidates import Candidates
from maxmargin.structures.chain import Chain
from maxmargin.structures.cut import Cut
from maxmargin.structures.linear_program import LinearProgram
from maxmargin.structures.matching import Matching
from maxmargin.structures.network import Network
from maxmargin.structures.second_order import SecondOrderChain
from maxmargin.structures.tree import Tree
from oracles import candidates, chain, cut, linear_program, matching, network, second_order


def vertices(structure: Structure) -> list[FloatArray]:
    """All outputs of each example of any structure of the library, as rows of its parts; for tiny examples only."""
    if isinstance(structure, Tree):
        found = []
        for i in range(structure.n_examples):
            one = structure.select([i])
            begin = one._node_begin.tolist()
            labels = [one.part_states[a:b] for a, b in pairwise(begin)]
            found.append(np.array([one.encode([np.array(y, dtype=np.int64)]) for y in product(*labels)]))
        return found
    if isinstance(structure, Chain):
        return chain.vertices(structure)
    if isinstance(structure, SecondOrderChain):
        return second_order.vertices(structure)
    if isinstance(structure, Cut):
        return cut.vertices(structure)
    if isinstance(structure, Matching):
        return matching.vertices(structure)
    if isinstance(structure, Network):
        return network.vertices(structure)
    if isinstance(structure, Candidates):
        return candidates.vertices(structure)
    if isinstance(structure, LinearProgram):
        return linear_program.vertices(structure)
    raise ValueError(f"the outputs of {structure.called} cannot be listed")


def pairs(
    outputs: FloatArray, scores: FloatArray, margin: float, costs: FloatArray, constant: float
) -> tuple[FloatArray, FloatArray]:
    """Loss and margin plus score of each output (a row) of one example; outputs with a score of -inf are left out."""
    allowed = ~((outputs > 0.0) & (scores == -np.inf)).any(axis=1)
    finite = np.where(scores == -np.inf, 0.0, scores)
    return outputs[allowed] @ costs + constant, outputs[allowed] @ finite + margin


def best_output(loss: FloatArray, score: FloatArray) -> float:
    """``max(0, max_y loss(y) score(y))`` over outputs where both are positive."""
    return float(np.where((loss > 0.0) & (score > 0.0), loss * score, 0.0).max(initial=0.0))


def best_mix(loss: FloatArray, score: FloatArray) -> float:
    """The same over the hull: the maximum lies on a segment between two outputs, so all pairs of them are tried."""
    dl, ds = loss[None, :] - loss[:, None], score[None, :] - score[:, None]
    slope, curve = dl * score[:, None] + ds * loss[:, None], -dl * ds
    share = np.where(curve > 0.0, slope / np.where(curve > 0.0, 2.0 * curve, 1.0), 1.0).clip(0.0, 1.0)
    mixed = (loss[:, None] + share * dl).clip(min=0.0), score[:, None] + share * ds
    return float(np.where(mixed[1] > 0.0, mixed[0] * mixed[1], 0.0).max(initial=0.0))

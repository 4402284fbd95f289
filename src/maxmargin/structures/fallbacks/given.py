"""Outputs that agree with given parts, by the argmax of any structure.

``given`` holds a number for each variable part: 1 for a part that the output has, -1 for one that it lacks, 0 for one
that is free. Where a score of ``-inf`` forbids a part (:attr:`Structure.forbids`), parts that are out have that score;
elsewhere more than the spread of all scores of the example is taken off. Parts that are in get as much on top, unless
variables are categorical: then their other states are out. Values are those of the true scores.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maxmargin.structures.base import FloatArray, Points, PointStatus, Structure
from maxmargin.structures.fallbacks.generic import spread_of

Given = npt.NDArray[np.int8]
"""1 in, -1 out, 0 free for each variable part, shape ``(starts[1],)``."""

WHOLE = 1e-6
"""How far a part may be from 0 or 1, where an argmax is relaxed or inexact, to count as such."""


def argmax_given(structure: Structure, scores: FloatArray, given: Given) -> Points:
    """The best output of each example that agrees with the given parts; status ABSENT where there is none."""
    n, into, out = len(given), given > 0, given < 0
    asked = np.array(scores, dtype=np.float64)
    far = np.zeros(0)
    if not (structure.forbids and structure.categorical):
        far = np.repeat(spread_of(structure, scores), np.diff(structure.blocks[0].offsets))
    if structure.forbids:
        asked[:n][out] = -np.inf
    else:
        asked[:n][out] -= far[out]
    if not structure.categorical:
        asked[:n][into] += far[into]
    found = structure.argmax(asked)
    chosen = found.z != 0.0
    value = structure.by_example(np.where(chosen, scores, 0.0) * found.z)
    wrong = (into & (found.z[:n] < 1.0 - WHOLE)) | (out & (found.z[:n] > WHOLE))
    absent = (found.status <= PointStatus.INEXACT) & (structure.by_variables(wrong.astype(np.float64)) > 0.0)
    status = np.where(absent, PointStatus.ABSENT, found.status).astype(np.int8)
    fine = status <= PointStatus.INEXACT
    return Points(found.z, np.where(fine, value, np.where(absent, -np.inf, found.value)), status)


def mean_given(structure: Structure, given: Given) -> FloatArray:
    """A point amid the outputs of each example that agree with the given parts, packed, shape ``(n_parts,)``.

    The mean of all of them where the structure has marginals. Elsewhere the mean of a few: with categorical variables,
    of those that prefer each state in turn; otherwise of the one with as many and the one with as few free parts as
    possible. Where variables do not depend on each other that is the mean of all.
    """
    n = len(given)
    if not structure.marginals_unsupported and (structure.categorical or not (given > 0).any()):
        potentials = np.zeros(structure.n_parts)
        potentials[:n][given < 0] = -np.inf
        mean = structure.marginals(potentials).z
        whole = structure.by_variables((given == 0).astype(np.float64)) == 0.0
        if not whole.any():
            return mean
        # An output that is wholly given is that output, to the last bit.
        known = argmax_given(structure, np.zeros(structure.n_parts), given).z
        return np.where(structure.to_parts(whole.astype(np.float64)) > 0.0, known, mean)
    wanted = [-1.0, 1.0]
    if structure.categorical:
        wanted = [float(state) for state in range(int(structure.part_states.max(initial=-1)) + 1)]
    total, scores = np.zeros(structure.n_parts), np.zeros(structure.n_parts)
    for one in wanted:
        scores[:n] = structure.part_states == one if structure.categorical else one
        total += argmax_given(structure, scores, given).z
    return total / max(len(wanted), 1)

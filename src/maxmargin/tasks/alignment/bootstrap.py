"""Learning without annotations, from the links that one translation model is sure of.

The labels are the links on which the hidden Markov models of *words* agree in both directions (the report of 2005 does
the same with GIZA++). Groups of features that restate this model are withheld, as the weights would only learn to copy
it: stems, Model 1, spelling and positions learn from its correct links and can correct its errors. (Products of its
posteriors with positions and frequencies, and word features for the cost of a second link, are kept.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maxmargin.structures.base import IntArray
from maxmargin.tasks.alignment.encoder.evidence import Evidence, best_links
from maxmargin.tasks.alignment.io.sentences import LONGEST_ALIGNED
from maxmargin.tasks.alignment.training import BoolArray

WITHHELD = ("hmm", "neighbors", "null")
"""Groups of features that are computed from the model of the labels."""

STRENGTH = 10.0
"""``C`` times the number of training pairs, as hinge losses are summed."""

FALSE_NEGATIVE = 1.0
HELD_OUT = 0.2
"""Number of held-out pairs for calibration, relative to the training pairs."""

LENGTHS = (3, 40)
"""Pairs with fewer or more words on a side are not used unless there are no others."""
LONG = 20
"""Number of pairs that are used if all are longer."""


def groups(wanted: Sequence[str]) -> tuple[str, ...]:
    """The wanted groups of features that are not withheld."""
    return tuple(group for group in wanted if group not in WITHHELD)


def sample(n_source: IntArray, n_target: IntArray, n_pairs: int, seed: int) -> IntArray:
    """Numbers of the pairs to take labels from, in rising order."""
    shorter, longer = np.minimum(n_source, n_target), np.maximum(n_source, n_target)
    usual = np.flatnonzero((shorter >= LENGTHS[0]) & (longer <= LENGTHS[1]))
    if not len(usual):
        usual = np.flatnonzero((shorter > 0) & (longer <= LENGTHS[1]))
    if not len(usual):  # the shortest ones, as the cost grows with the cube of the length
        usual = np.flatnonzero((shorter > 0) & (longer <= LONGEST_ALIGNED))
        return np.sort(usual[np.argsort(longer[usual], kind="stable")[: min(n_pairs, LONG)]])
    if len(usual) > n_pairs:
        usual = np.random.default_rng(seed).choice(usual, n_pairs, replace=False)
    return np.sort(usual).astype(np.int64)


def labels(evidence: Evidence) -> BoolArray:
    """The intersection of both directions of the models of words, a 0/1 grid."""
    forward, backward = best_links(evidence)
    return forward & backward

"""Learning without annotations: the links that one translation model is sure of teach the features of the others.

The labels are the links on which the hidden Markov models of *words* agree in both directions (the report of 2005 has
the same setting with GIZA++). The groups of features that restate that very model are withheld, or the weights would
only learn to copy it: so stems, Model 1, spelling and positions learn from it where it is right, and correct it where
it is not. (Products of its posteriors with positions and frequencies, and those that tell the cost of a second link,
stay.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maxmargin.structures.base import IntArray
from maxmargin.tasks.alignment.encoder.evidence import Evidence, best_links
from maxmargin.tasks.alignment.io.sentences import LONGEST_ALIGNED
from maxmargin.tasks.alignment.training import BoolArray

WITHHELD = ("hmm", "neighbors", "null")
"""Groups of features that are made of the labels' own model."""

STRENGTH = 10.0
"""``C`` times the number of pairs that are learned from: the hinge losses are summed, and labels are all alike."""

FALSE_NEGATIVE = 1.0
HELD_OUT = 0.2
"""For so many pairs per pair learned from, the confidences are calibrated."""

LENGTHS = (3, 40)
"""Pairs with fewer or more words than this on a side are not used, unless there are no others."""
LONG = 20
"""So many pairs are used where all are longer than that."""


def groups(wanted: Sequence[str]) -> tuple[str, ...]:
    """The groups of features that may be used."""
    return tuple(group for group in wanted if group not in WITHHELD)


def sample(n_source: IntArray, n_target: IntArray, n_pairs: int, seed: int) -> IntArray:
    """Numbers of the pairs to take labels from, rising."""
    shorter, longer = np.minimum(n_source, n_target), np.maximum(n_source, n_target)
    usual = np.flatnonzero((shorter >= LENGTHS[0]) & (longer <= LENGTHS[1]))
    if not len(usual):
        usual = np.flatnonzero((shorter > 0) & (longer <= LENGTHS[1]))
    if not len(usual):  # the shortest of long ones, for their cost grows with the cube of the length
        usual = np.flatnonzero((shorter > 0) & (longer <= LONGEST_ALIGNED))
        return np.sort(usual[np.argsort(longer[usual], kind="stable")[: min(n_pairs, LONG)]])
    if len(usual) > n_pairs:
        usual = np.random.default_rng(seed).choice(usual, n_pairs, replace=False)
    return np.sort(usual).astype(np.int64)


def labels(evidence: Evidence) -> BoolArray:
    """The intersected links of the models of words, a 0/1 grid."""
    forward, backward = best_links(evidence)
    return forward & backward

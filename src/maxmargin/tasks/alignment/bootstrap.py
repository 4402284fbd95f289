"""Learning without annotations, from the links that one translation model is sure of.

The labels are the links on which the hidden Markov models of *words* agree in both directions (the report of 2005 does
the same with GIZA++). Groups of features that restate this model are withheld, as the weights would only learn to copy
it: stems, Model 1, spelling and positions learn from its correct links and can correct its errors. (Products of its
posteriors with positions and frequencies, and word features for the cost of a second link, are kept.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from maxmargin import _checks, _threads
from maxmargin.structures.base import IntArray
from maxmargin.tasks.alignment.encoder.evidence import best_links, indexed
from maxmargin.tasks.alignment.encoder.features import require_columns
from maxmargin.tasks.alignment.io.sentences import LONGEST_ALIGNED, as_pairs, extra_names, sizes_of
from maxmargin.tasks.alignment.model import AlignerModel, AlignerTraining
from maxmargin.tasks.alignment.training import AlignerSettings, AnnotatedPairs, choose_and_train
from maxmargin.tasks.common.progress import Stages

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


def bootstrap_aligner(
    bitext: Iterable[Any], settings: AlignerSettings | None = None, *, n_pairs: int = 1000
) -> AlignerModel:
    """Train an aligner on a bitext alone, as :meth:`WordAligner.bootstrap` describes."""
    settings = settings or AlignerSettings()
    settings.check()
    _checks.integer("n_pairs", n_pairs, least=1)
    pairs = as_pairs(bitext)
    groups = [group for group in settings.groups if group not in WITHHELD]
    withheld = [group for group in settings.groups if group in WITHHELD]
    extra = extra_names(pairs)
    require_columns(groups, extra, settings.frequent_pairs, withheld)
    held_out = int(np.ceil(HELD_OUT * n_pairs))
    chosen = sample(sizes_of(pairs), n_pairs + held_out, settings.random_state)
    if not len(chosen):
        raise ValueError(
            f"the bitext has no pair with 1 to {LONGEST_ALIGNED} words on both sides; give sentence pairs to learn from"
        )
    with _threads.threads(settings.n_jobs), Stages(settings.verbose) as stages:
        encoder = settings.encoder(pairs, groups, extra, stages)
        translation, labeled = encoder.translation(), []
        for part in np.split(chosen, [max(len(chosen) - held_out, (len(chosen) + 1) // 2)]):
            some = [pairs[at] for at in part]
            evidence = encoder.evidence(some, indexed(some), translation)
            forward, backward = best_links(evidence)
            labels = forward & backward
            labeled.append(AnnotatedPairs.of(encoder, encoder.pack(evidence), labels, labels))
        gold, held = labeled
        usual = {"C": STRENGTH / len(gold), "false_negative": FALSE_NEGATIVE}
        used = {name: values[0] if len(values) == 1 else usual[name] for name, values in settings.grid.items()}
        settings.warn_unchosen(used)
        fixed = replace(settings, C=used["C"], false_negative=used["false_negative"])
        model = choose_and_train(gold, held if len(held) else None, fixed, stages)
    # Scores of held-out pairs are relative to the labels, not to annotators.
    assert isinstance(model.training, AlignerTraining)
    training = replace(model.training, choices=(), held_out=None)
    return replace(model, metadata={**model.metadata, "held_out_aer": None}, training=training)


def sample(sizes: IntArray, n_pairs: int, seed: int) -> IntArray:
    """Numbers of the pairs to take labels from, in rising order; ``sizes`` are numbers of words, shape ``(n, 2)``."""
    shorter, longer = sizes.min(axis=1), sizes.max(axis=1)
    usual = np.flatnonzero((shorter >= LENGTHS[0]) & (longer <= LENGTHS[1]))
    if not len(usual):
        usual = np.flatnonzero((shorter > 0) & (longer <= LENGTHS[1]))
    if not len(usual):  # the shortest ones, as the cost grows with the cube of the length
        usual = np.flatnonzero((shorter > 0) & (longer <= LONGEST_ALIGNED))
        return np.sort(usual[np.argsort(longer[usual], kind="stable")[: min(n_pairs, LONG)]])
    if len(usual) > n_pairs:
        usual = np.random.default_rng(seed).choice(usual, n_pairs, replace=False)
    return np.sort(usual).astype(np.int64)

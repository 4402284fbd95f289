"""Learning without annotations: weights that travel, and what the bitext says about them.

The weights of the package (:mod:`~maxmargin.tasks.alignment.start`), or of a model that is given, align a sample of
the bitext. Links with a clear margin become labels, those near the boundary are left open, and weights are learned that
stay close to the first ones: frequent word pairs get weights of their own, and the others adapt to the language pair
and to the size of the bitext. (The labels of the 2005 report are the intersected links of one translation model; they
miss what that model misses, most on small bitexts and between distant languages.)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from maxmargin import _checks, _threads
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.alignment.annotated import AnnotatedPairs
from maxmargin.tasks.alignment.confidence import ESTIMATED, Calibration
from maxmargin.tasks.alignment.encoder.evidence import Evidence, best_links, indexed
from maxmargin.tasks.alignment.encoder.features import require_columns
from maxmargin.tasks.alignment.io.sentences import LONGEST_ALIGNED, as_pairs, extra_names, sizes_of
from maxmargin.tasks.alignment.model import AlignerModel
from maxmargin.tasks.alignment.start import StartWeights, traveling_model
from maxmargin.tasks.alignment.training import AlignerSettings, choose_and_train, untrained
from maxmargin.tasks.alignment.translation.sharded_bitext import NumberedPairs
from maxmargin.tasks.common.progress import Stages

STRENGTH = 1.0
"""``C`` times the number of training pairs, as hinge losses are summed."""

FALSE_NEGATIVE = 1.0

OPEN = 0.25
"""Links with margins within this share of the median positive margin are neither right nor wrong."""

LENGTHS = (3, 40)
"""Pairs with fewer or more words on a side are not used unless there are no others."""
LONG = 20
"""Number of pairs that are used if all are longer, and in any case."""

CELLS = 60_000
"""Word pairs of the sentence pairs that are used, or as many in proportion if more than 1,000 pairs are asked for."""


def bootstrap_aligner(
    bitext: Iterable[Any], settings: AlignerSettings | None = None, *, n_pairs: int = 1000
) -> AlignerModel:
    """Train an aligner on a bitext alone, as :meth:`WordAligner.bootstrap` describes."""
    settings = settings or AlignerSettings()
    settings.check()
    _checks.integer("n_pairs", n_pairs, least=1)
    pairs = bitext if isinstance(bitext, NumberedPairs) else as_pairs(bitext)
    extra = () if isinstance(pairs, NumberedPairs) else extra_names(pairs)
    require_columns(settings.groups, extra, settings.frequent_pairs)
    start = settings.start_weights() or StartWeights.packaged()
    sizes = pairs.sizes if isinstance(pairs, NumberedPairs) else sizes_of(pairs)
    chosen = sample(sizes, n_pairs, settings.random_state)
    if not len(chosen):
        raise ValueError(
            f"the bitext has no pair with 1 to {LONGEST_ALIGNED} words on both sides; give sentence pairs to learn from"
        )
    with _threads.threads(settings.n_jobs), Stages(settings.verbose) as stages:
        encoder = settings.encoder(pairs, settings.groups, extra, stages)
        some = [pairs[at] for at in chosen]
        evidence = encoder.evidence(some, indexed(some), encoder.translation())
        margins = traveling_margins(evidence, start, settings.fertility)
        usual_margin = _median(margins)
        near = OPEN * usual_margin
        scale = 1.0  # margins of other weights are of another size than those that confidences are estimated for
        if settings.start not in (None, "packaged") and usual_margin > 0:
            scale = _median(traveling_margins(evidence, StartWeights.packaged(), settings.fertility)) / usual_margin
        forward, backward = best_links(evidence)
        agreement = (forward & backward).sum() / max((forward | backward).sum(), 1)
        gold = AnnotatedPairs.of(encoder, encoder.pack(evidence), margins > near, margins > -near)
        del some, evidence, margins, forward, backward  # the features have what is needed of them
        gold = replace(gold, anchor=start.carried(encoder.link_model))
        usual = {"C": STRENGTH / len(gold), "false_negative": FALSE_NEGATIVE}
        used = {name: values[0] if len(values) == 1 else usual[name] for name, values in settings.grid.items()}
        settings.warn_unchosen(used)
        fixed = replace(settings, C=used["C"], false_negative=used["false_negative"], rounds=0, folds=0)
        try:
            model = settings.finished(choose_and_train(gold, None, fixed, stages))
        except KeyboardInterrupt:
            return untrained(encoder, settings, "interrupted")
    return replace(
        model,
        calibration=asdict(Calibration.estimated(agreement, scale or 1.0)),
        metadata={**model.metadata, "confidences": ESTIMATED},
    )


def _median(margins: FloatArray) -> float:
    """The median positive margin, 0 if there is none."""
    return float(np.median(margins[margins > 0])) if (margins > 0).any() else 0.0


def traveling_margins(evidence: Evidence, start: StartWeights, fertility: int) -> FloatArray:
    """The margin of each cell, a grid, under weights that travel."""
    link_model = traveling_model(fertility)
    batch = link_model.batch(evidence)
    scores = link_model.scores(replace(evidence, extra=None), batch, start.carried(link_model))
    return batch.structure.margins(scores)[batch.cells]


def translation_aligner(bitext: Iterable[Any], settings: AlignerSettings | None = None) -> AlignerModel:
    """An aligner without weights, with models of words alone: ``align_hmm`` needs no more."""
    settings = settings or AlignerSettings()
    settings.check()
    pairs = bitext if isinstance(bitext, NumberedPairs) else as_pairs(bitext)
    with _threads.threads(settings.n_jobs), Stages(settings.verbose) as stages:
        encoder = settings.encoder(pairs, ("bias",), (), stages, words_only=True)
        return untrained(encoder, settings, "untrained")


def sample(sizes: IntArray, n_pairs: int, seed: int) -> IntArray:
    """Numbers of the pairs to take labels from, in rising order; ``sizes`` are numbers of words, shape ``(n, 2)``."""
    shorter, longer = sizes.min(axis=1), sizes.max(axis=1)
    usual = np.flatnonzero((shorter >= LENGTHS[0]) & (longer <= LENGTHS[1]))
    if not len(usual):
        usual = np.flatnonzero((shorter > 0) & (longer <= LENGTHS[1]))
    if not len(usual):  # the shortest ones, as the cost grows with the cube of the length
        usual = np.flatnonzero((shorter > 0) & (longer <= LONGEST_ALIGNED))
        return np.sort(usual[np.argsort(longer[usual], kind="stable")[: min(n_pairs, LONG)]])
    drawn = np.random.default_rng(seed).permutation(usual)[:n_pairs]
    cells = np.cumsum(sizes[drawn].prod(axis=1))
    n_used = max(int(np.searchsorted(cells, CELLS * max(n_pairs / 1000, 1), side="right")), LONG)
    return np.sort(drawn[:n_used]).astype(np.int64)

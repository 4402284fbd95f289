"""Training of rerankers on lattices.

Methods that tune lists get those of the best paths. The lists begin with the best texts under the first weights and
under random changes of these, which need no references, so that held-out lists stay honest; they grow by the best texts
under the tuned weights until these are known. MERT then goes on over the lattices themselves, where its line searches
are exact over all paths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from maxmargin import _threads
from maxmargin._messages import shown
from maxmargin.structures.base import FloatArray
from maxmargin.tasks.reranking.encoder.lattices import EdgeRows, merged
from maxmargin.tasks.reranking.io.lattices import Lattices
from maxmargin.tasks.reranking.metrics.base import Metric
from maxmargin.tasks.reranking.model import RerankerModel
from maxmargin.tasks.reranking.training import Judged, RerankerSettings, train_reranker
from maxmargin.tasks.reranking.tuning.base import Tuned
from maxmargin.tasks.reranking.tuning.lattices import TuningLattices
from maxmargin.tasks.reranking.tuning.mert import Mert

CHANGES = 8
"""Random changes of the first weights that the first lists come from, too."""


def train_on_lattices(
    lattices: Lattices,
    metrics: Sequence[Metric],
    settings: RerankerSettings | None = None,
    *,
    weights: Mapping[str, float] | None = None,
    k: int = 100,
    rounds: int = 5,
) -> RerankerModel:
    """Train a reranker on lattices.

    Args:
        lattices: with references.
        metrics: the metric to tune, then those that are only shown.
        settings: how to train.
        weights: the decoder's weights, by the names of features; None for 1 each. Their best paths are what the gain is
            reported against.
        k: different texts of each lattice that are added at a time.
        rounds: at most so often texts are added after tuning.
    """
    settings = settings or RerankerSettings()
    if lattices.references is None:
        raise ValueError("the lattices have no references; give references")
    with _threads.threads(settings.n_jobs):
        edges = EdgeRows.of(lattices, settings.encoder)
        first = _first_weights(edges, weights)
        lists = edges.best_lists(first, k)
        random = np.random.default_rng(settings.random_state)
        for _ in range(CHANGES):
            lists = merged(lists, edges.best_lists(first * np.exp(random.normal(size=len(first))), k))
        model = train_reranker(Judged.of(lists, lattices.references, metrics), settings)
        report = model.report
        assert report is not None
        chosen = replace(settings, method=report.variant, C=None, folds=0, verbose=False)
        for turn in range(rounds):
            if model.training is not None and model.training.interrupted:
                break
            more = merged(lists, edges.best_lists(_raw(model), k))
            if more.n_hypotheses == lists.n_hypotheses:
                break
            lists = more
            if settings.checkpoint is not None:
                chosen = replace(chosen, checkpoint=settings.checkpoint.beside(f"-{turn}"))
            model = train_reranker(Judged.of(lists, lattices.references, metrics), chosen)
        details = report.details if model.report is None else model.report.details
        if isinstance(report.variant, Mert):
            tuned = _on_all_paths(edges, metrics[0], model, report.variant, settings)
            model, details = replace(model, weights=tuned.weights), tuned.details
    decoder = f"the best paths under {'weights of 1' if weights is None else 'the given weights'}"
    held_out = tuple(replace(one, baseline=decoder) for one in report.held_out)
    report = replace(report, held_out=held_out, details=details)  # these of the last run, those of the held-out lists
    return replace(model, report=report, metadata={**model.metadata, **report.as_dict(), "lattices": len(lattices)})


def _first_weights(edges: EdgeRows, weights: Mapping[str, float] | None) -> FloatArray:
    if weights is None:
        return np.ones(len(edges.names))
    for name in weights:
        if name not in edges.names:
            raise ValueError(f"no feature of the lattices is called {shown(name)}; there are {', '.join(edges.names)}")
    return np.array([float(weights.get(name, 0.0)) for name in edges.names])


def _raw(model: RerankerModel) -> FloatArray:
    """The weights in the units of the features."""
    return np.array(list(model.dense_weights.values()))


def _on_all_paths(
    edges: EdgeRows, metric: Metric, model: RerankerModel, method: Mert, settings: RerankerSettings
) -> Tuned:
    """Go on with MERT from the weights of the lists, over all paths."""
    encoder, references = model.encoder, edges.lattices.references
    assert references is not None
    signs = settings.signs(encoder.names, encoder.n_weights)
    lattices = TuningLattices(edges.structure, edges.values / encoder.scale, edges.words, references, metric, signs)
    return replace(method, restarts=1).tune_lattices(lattices, start=model.weights, seed=settings.random_state)

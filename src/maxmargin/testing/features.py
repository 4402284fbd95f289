"""Checks that a feature map keeps its contract: for authors of feature maps, and for tests of the built-in ones."""

from __future__ import annotations

import numpy as np

from maxmargin import _checks
from maxmargin.features.base import Features
from maxmargin.structures.base import Structure


def check_features(features: Features, structure: Structure | None = None, *, seed: int = 0) -> None:
    """Raise AssertionError unless scores, adjoint, pairs, ``to_sparse``, ``part_rows``, norms and ``select`` agree.

    For small batches: makes the explicit matrix. With a ``structure``, ``select`` must match its packed order.
    """
    _checks.instance("features", features, Features, "a feature map")
    if structure is not None:
        _checks.instance("structure", structure, Structure, "a Structure or None")
    rng = np.random.default_rng(_checks.integer("seed", seed, least=0))
    matrix = features.to_sparse()
    assert matrix.shape == (features.n_parts, features.n_weights), "to_sparse has another shape"
    w1, w2 = rng.standard_normal((2, features.n_weights))
    z1, z2 = rng.standard_normal((2, features.n_parts))
    size = 1e-12 * (1.0 + abs(matrix).sum())
    s1, a1 = features.scores(w1), features.adjoint(z1)
    assert np.allclose(s1, matrix @ w1, rtol=0, atol=size), "scores differ from the explicit matrix"
    assert np.allclose(a1, matrix.T @ z1, rtol=0, atol=size), "adjoint differs from the explicit matrix"
    for got, want in zip(features.scores_pair(w1, w2), (s1, features.scores(w2)), strict=True):
        assert np.allclose(got, want, rtol=0, atol=size), "scores_pair differs from scores"
    for got, want in zip(features.adjoint_pair(z1, z2), (a1, features.adjoint(z2)), strict=True):
        assert np.allclose(got, want, rtol=0, atol=size), "adjoint_pair differs from adjoint"
    scale = rng.random(features.n_parts)
    for order in (2.0, np.inf):
        got, want = features.part_norms(order), Features.part_norms(features, order)
        assert np.allclose(got, want, rtol=1e-9, atol=1e-12), "part_norms differ from those of the explicit matrix"
    for given in (None, scale):
        got, want = features.weight_norms(given), Features.weight_norms(features, given)
        assert np.allclose(got, want, rtol=1e-9, atol=1e-12), "weight_norms differ from those of the explicit matrix"
    if features.n_parts:
        some = rng.integers(features.n_parts, size=min(features.n_parts, 50))
        off = abs(features.part_rows(some) - matrix[some]).sum()
        assert off <= size, "part_rows differ from rows of the explicit matrix"
    exact = float(np.linalg.norm(matrix.toarray(), 2)) if min(matrix.shape) else 0.0
    assert 0.995 * exact <= features.norm() <= 1.005 * exact, "norm is not close"
    if features.n_examples == 0:
        return
    chosen = rng.integers(features.n_examples, size=features.n_examples + 1)
    selected = features.select(chosen)
    assert selected.n_examples == len(chosen), "select has another number of examples"
    assert selected.n_weights == features.n_weights, "select has another number of weights"
    assert abs(selected.to_sparse() @ w1 - selected.scores(w1)).max(initial=0.0) <= size
    if structure is not None:
        assert structure.n_parts == features.n_parts, "the structure has another number of parts"
        assert np.array_equal(selected.scores(w1), s1[structure.parts_of(chosen)]), "select has another order of parts"

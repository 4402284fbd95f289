"""Feature sums of gold outputs: the same however the examples are cut, and certificates keep little more than them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from problems import STRUCTURES, make

from maxmargin.execution import HeldPieces, ShardedProblem
from maxmargin.features import Support, SupportedRows
from maxmargin.optimization.certificate import Proposal, certify
from maxmargin.problem import Problem
from maxmargin.problem.base import nonzeros, with_zeros
from maxmargin.regions import L2
from maxmargin.structures import Candidates


@pytest.mark.parametrize("kind", STRUCTURES)
def test_sums_of_pieces(kind):
    problem = make(kind)
    whole = problem.feature_sum(problem.gold)
    np.testing.assert_allclose(problem.gold_features, whole, rtol=1e-12, atol=1e-12)
    for most in (1, None):
        pieces = ShardedProblem(HeldPieces.of(problem, most))
        np.testing.assert_allclose(pieces.gold_features, whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("vector", [[], [0.0, 0.0], [1.0, -2.0], [0.0, 3.0, 0.0, 0.0], [0.0, 1.0, 0.0, -0.5]])
def test_vectors_by_their_nonzeros(vector):
    given = np.array(vector)
    at, values = nonzeros(given)
    assert np.array_equal(given[at], values)
    assert np.array_equal(with_zeros((at, values), len(given)), given)


def many_attributes(n_examples: int, d: int) -> Problem:
    """Lists of two outputs whose rows have one of very many attributes, each with a weight of its own."""
    own = np.random.default_rng(0).integers(0, d, size=2 * n_examples).astype(np.int32)
    matrix = np.arange(len(own) + 1, dtype=np.int32), own
    structure = Candidates(np.full(n_examples, 2))
    features = SupportedRows(matrix, 2 * np.arange(n_examples + 1), Support.full(d, 1))
    gold = np.tile([1.0, 0.0], n_examples)
    return Problem.build(structure, features, gold, 1.0 - gold, L2(C=1.0))


def test_certificates_keep_no_matrices_of_pieces():
    problem = many_attributes(100, 100_000)
    pieces = ShardedProblem(HeldPieces.of(problem, 4))  # 50 of them
    vector = 8 * problem.n_weights
    z = np.tile([0.5, 0.5], problem.n_examples)
    proposal = Proposal(-problem.gradient(z), problem.gradient(z), problem.loss(z))
    expected = certify(problem, proposal)
    tracemalloc.start()
    try:
        found = certify(pieces, proposal)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.dual > 0.0
    assert found.dual_rounding == pytest.approx(expected.dual_rounding)
    assert kept < 0.5 * vector  # few weights belong to gold outputs
    assert peak < 6 * vector

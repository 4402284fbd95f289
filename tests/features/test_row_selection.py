"""Rows of chosen examples of a sparse matrix: the right ones, and without numbers of all their non-zeros in memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.features import rows as module
from maxmargin.features.rows import Rows


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("chosen", [[], [2], [1, 2, 3], [3, 0], [0, 2, 2, 4], [4, 4, 1]])
def test_chosen_examples(monkeypatch, chosen, index):
    monkeypatch.setattr(module, "_ENTRIES", 7)
    matrix = sp.random_array((20, 9), density=0.3, random_state=np.random.default_rng(0), format="csr")
    matrix.indptr, matrix.indices = matrix.indptr.astype(index), matrix.indices.astype(index)
    offsets = np.array([0, 4, 4, 11, 13, 20])
    found = Rows(matrix, "it").select(offsets, np.array(chosen, dtype=np.int64))
    assert found.starts.dtype == found.columns.dtype == index
    expected = np.concatenate([np.zeros((0, 9)), *(matrix.toarray()[offsets[i] : offsets[i + 1]] for i in chosen)])
    np.testing.assert_array_equal(found.to_sparse().toarray(), expected)


def test_memory_is_that_of_the_copy():
    n = 40_000
    starts = np.arange(0, 50 * n + 1, 50, dtype=np.int32)
    matrix = sp.csr_array((np.ones(50 * n), np.tile(np.arange(50, dtype=np.int32), n), starts))
    whole = Rows(matrix, "it")
    tracemalloc.start()
    found = whole.select(np.arange(0, n + 1, 40), np.arange(0, n // 40, 2))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.6 * (found.starts.nbytes + found.columns.nbytes + found.values.nbytes)

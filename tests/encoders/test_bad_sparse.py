"""Sparse features of every format, good and damaged: a damaged matrix is refused before it is converted."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from data import chains, matchings
from refusals import BAD, EVERY, refused, spoiled

import maxmargin as mm


def test_sparse_features(fitted):
    model, X, y = fitted["chain"]
    sparse = [sp.csr_array(x) for x in X]
    n = len(y[BAD])
    holes = sparse[BAD].copy()
    holes.data[-1] = np.nan
    refused(model, spoiled(sparse, holes), y, rf"example {BAD}: features hold NaN or infinity in row {n - 1}", at=EVERY)
    refused(model, spoiled(X, holes), y, rf"example {BAD}: features hold NaN", at=EVERY)
    refused(model, spoiled(sparse, sparse[BAD].astype(complex)), y, rf"example {BAD}: .*real numbers", at=EVERY)
    refused(model, spoiled(sparse, sp.csr_array((n, 7))), y, rf"example {BAD}: .*7 columns", at=("predict",))
    refused(model, spoiled(sparse, sp.coo_array(np.ones(3))), y, rf"example {BAD}: .*2-D", at=EVERY)
    outside = sp.csr_array(np.ones((n, 3)))
    outside.indices[-1] = 1000
    refused(model, spoiled(sparse, outside), y, rf"example {BAD}: .*not a valid CSR matrix", at=EVERY)
    negative = sp.csr_array(np.ones((n, 3)))
    negative.indices[0] = -1
    refused(model, spoiled(sparse, negative), y, rf"example {BAD}: .*not a valid CSR matrix", at=EVERY)
    falling = sp.csr_array(np.ones((n, 3)))
    falling.indptr[1] = 3 * n
    refused(model, spoiled(sparse, falling), y, rf"example {BAD}: .*not a valid CSR matrix", at=EVERY)


FORMATS = ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"]


def damaged(form, name, change):
    """A (4, 3) matrix of a format whose array ``name`` was changed in place or replaced."""
    value = sp.csr_array(np.arange(12.0).reshape(4, 3)).asformat(form)
    setattr(value, name, change(getattr(value, name).copy()))
    return value


def put(position, number):
    def change(array):
        array[position] = number
        return array

    return change


@pytest.mark.parametrize("form", FORMATS)
def test_all_sparse_formats_are_taken(form):
    X, y = chains(4)
    sparse = [sp.csr_array(x).asformat(form) for x in X]
    wide = [sp.csr_matrix(x).asformat(form) for x in X]
    plain = mm.ChainSVM().fit(X, y)
    for given in (sparse, wide):
        np.testing.assert_allclose(mm.ChainSVM().fit(given, y).coef_, plain.coef_, atol=1e-9)
        assert plain.predict(given) == plain.predict(X)
    empty = sp.csr_array((3, 3)).asformat(form)
    assert plain.predict([empty]) == plain.predict([np.zeros((3, 3))])


def short(array):
    return array[:-1]


def beside(array):
    return array[:, None]


DAMAGES = {
    "csr": {
        "indices": [short, lambda a: a.astype(float)],
        "indptr": [short, put(-1, -5), put(-1, 10**6), put(0, 1)],
        "data": [short],
    },
    "csc": {
        "indices": [put(0, 10**8), put(-1, 4), put(3, -1), short, lambda a: a.astype(float), beside],
        "indptr": [put(1, 10**8), put(1, -3), put(0, 1), put(-1, 10**8), put(-1, 0), short],
        "data": [short, beside],
    },
    "coo": {"row": [put(0, 10**8), put(0, -1)], "col": [put(-1, 3), short], "data": [short]},
    "bsr": {
        "indices": [put(0, 10**8), put(0, -1)],
        "indptr": [put(1, 10**8), put(-1, 10**8)],
        "data": [short, lambda a: np.ones((len(a), 3, 3)), lambda a: np.ones((len(a), 0, 1))],
    },
    "dia": {
        "offsets": [put(0, 2**31 - 1), put(0, -100), put(0, 0), short],
        "data": [short, lambda a: a[0]],
    },
    "lil": {
        "rows": [
            *(put(1, row) for row in ([0, 10**8, 2], [-1, 1, 2], [0, 1], [0, 1, "x"], None)),
            short,
        ],
        "data": [put(1, [1.0] * 1000), put(1, ["x", 1.0, 1.0])],
    },
    "dok": {
        "_dict": [
            *(lambda d, at=at: d | {at: 1.0} for at in ((0, 10**8), (-1, 0), (0, 1.5), 7)),
            lambda d: d | {(0, 0): "x"},
        ],
    },
}


@pytest.mark.parametrize(
    ("form", "name", "change"),
    [(form, name, change) for form, names in DAMAGES.items() for name, found in names.items() for change in found],
)
def test_damaged_sparse_matrices_never_reach_a_conversion(fitted, form, name, change):
    model, X, y = fitted["chain"]
    bad = damaged(form, name, change)
    labels = spoiled(y, ["a"] * 4)
    refused(model, spoiled(X, bad), labels, f"example {BAD}: features are not a valid {form.upper()} matrix", at=EVERY)
    graphs, links = matchings(3)
    rows = mm.Bipartite(bad, [[0, 0], [0, 1], [1, 0], [1, 1]], (2, 2))
    refused(
        fitted["matching"][0], [*graphs, rows], [*links, []], "example 3: features are not a valid", at=("predict",)
    )


def test_sparse_input_for_dense_graphs(fitted):
    model, X, y = fitted["matching"]
    refused(model, spoiled(X, sp.csr_array(np.ones((3, 3)))), y, rf"example {BAD}: .*mm\.Bipartite", at=EVERY)

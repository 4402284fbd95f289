"""Sizes that no memory holds are refused before anything is allocated."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from refusals import BAD, CLAIMED, EVERY, Unreadable, features_of, kinds, refused, spoiled
from sklearn.base import clone

import maxmargin as mm


class Long:
    """A sequence that claims more items than it has."""

    def __len__(self):
        return 2**50

    def __getitem__(self, index):
        raise IndexError(index)


NEEDS = r"would need [\d.]+ [TPE]B of memory, there are [\d.]+ \w+; "


@kinds
def test_views_larger_than_memory(fitted, kind):
    model, X, y = fitted[kind]
    array, put = features_of(kind, X[BAD])
    claimed = np.broadcast_to(0.0, (10**6, 10**6, 3)[-array.ndim :] if array.ndim == 3 else (10**6, 10**6))
    refused(model, spoiled(X, put(claimed)), y, f"example {BAD}: .*{NEEDS}", at=EVERY)
    refused(model, CLAIMED, y, f"X {NEEDS}", at=EVERY)
    refused(model, X, CLAIMED, f"y {NEEDS}", at=("fit", "score"))
    refused(model, Long(), y, f"X {NEEDS}", at=EVERY)


@kinds
def test_objects_that_cannot_be_read(fitted, kind):
    model, X, y = fitted[kind]
    _, put = features_of(kind, X[BAD])
    refused(model, spoiled(X, put(Unreadable())), y, rf"example {BAD}: .* of unequal or odd entries", at=EVERY)
    refused(model, X, spoiled(y, Unreadable()), f"example {BAD}", at=("fit", "score"))
    with pytest.raises(ValueError, match="sample_weight must be numbers"):
        clone(model).fit(X, y, Unreadable())


def test_matrices_of_more_columns_than_weights_fit(fitted):
    model, X, y = fitted["chain"]
    wide = [sp.csr_array((x.shape[0], 2**45)) for x in X]
    refused(model, wide, y, f"a model of .* weights {NEEDS}", at=("fit",))
    tall = spoiled(X, sp.coo_array((2**45, X[0].shape[1])))
    refused(model, tall, y, f"example {BAD}: .*{NEEDS}", at=EVERY)


@pytest.mark.parametrize(
    "make",
    [
        lambda: mm.structures.Chain([2**40], 3),
        lambda: mm.structures.Chain([2**62, 2**62], 3),
        lambda: mm.structures.Chain([2**20], 2**15, transitions="each"),
        lambda: mm.structures.SecondOrderChain([2**40], 3),
        lambda: mm.structures.Candidates([3, 2**45]),
        lambda: mm.structures.Cut([2**45], [], [0, 0]),
        lambda: mm.structures.Tree([2**45], 2, [], [0, 0]),
        lambda: mm.structures.Associative([2**45], [], [0, 0], 2),
        lambda: mm.structures.Matching.dense([[2**25, 2**25]]),
        lambda: mm.structures.Lattice([2**45], [[0, 1]], [0, 1]),
        lambda: mm.structures.TransitionConstraints.anything(2**30),
        lambda: mm.WordLattice.confusion_network(np.ones((2, 1)), [2**45, 1]),
        lambda: mm.features.TiedRows(np.ones((2, 2)), [0, 2], 2**50),
        lambda: mm.features.PartFeatures(sp.csr_array((2, 2**50)), [0, 2]),
        lambda: mm.features.ChainFeatures(np.ones((2, 2)), [2], 2**30),
    ],
)
def test_sizes_that_no_memory_holds(make):
    with pytest.raises(ValueError, match=NEEDS):
        make()


@pytest.mark.parametrize("asked", ["n_states", "n_variables", "part_states", "part_bound"])
def test_parts_that_no_memory_holds(asked):
    spans = mm.structures.Spans([3, 1], 2**60)
    with pytest.raises(ValueError, match=NEEDS):
        getattr(spans, asked)


def test_more_ranks_than_fit_into_memory():
    structure = mm.structures.Chain([40], 3)
    with pytest.raises(ValueError, match=r"^\d+ outputs per example \(k\) would need .* smaller k"):
        structure.k_best(np.zeros(structure.n_parts), 10**9 // 2)
    cut = mm.structures.Cut([40], [[0, 1]], [0, 1])
    with pytest.raises(ValueError, match=r"^\d+ outputs per example \(k\) would need .* smaller k"):
        cut.k_best(np.ones(cut.n_parts), 10**12)
    assert len(mm.structures.Chain([2], 2).k_best(np.zeros(8), 10**12)) == 4

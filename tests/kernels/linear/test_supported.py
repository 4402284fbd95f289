"""Weights for some pairs of features and columns only: against explicit matrices, and against weights for all pairs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from problems import visit

from maxmargin import _kernels, threads
from maxmargin._digest import digest
from maxmargin.features import ChainFeatures, SecondOrderFeatures, Support, SupportedRows, TiedRows
from maxmargin.features.entries import Entries
from maxmargin.losses import Hamming
from maxmargin.problem import Problem
from maxmargin.regions import L2
from maxmargin.structures import Chain, SecondOrderChain
from maxmargin.testing import check_features

RULES = settings(
    deadline=None, derandomize=True, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
FREE = np.zeros(0, dtype=np.uint8)
WIDTHS = [1, 2, 7, 8, 9, 16, 17, 22, 24, 32, 33, 40, 48, 49, 64, 65, 70]


def matrix_of(rng, n, d, *, ones=False, wide=False, density=0.3):
    """A random CSR matrix; some rows and columns have nothing."""
    full = np.where(rng.random((n, d)) < density, 1.0 if ones else rng.standard_normal((n, d)), 0.0)
    full[rng.random(n) < 0.1] = 0.0
    full[:, rng.random(d) < 0.1] = 0.0
    matrix = sp.csr_array(full)
    if wide:
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


def support_of(rng, d, m, share=0.5):
    """Random pairs; some features have none, some all."""
    flags = rng.random((d, m)) < share * 2 * rng.random((d, 1))
    return Support.of_pairs(np.flatnonzero(flags.ravel()), d, m)


def bounds_of(rng, n, count=3):
    return np.concatenate([[0], np.sort(rng.integers(0, n + 1, size=count - 1)), [n]])


def made(seed, m, *, n=None, ones=False, wide=False, constant=False):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 12)) if n is None else n
    d = int(rng.integers(0, 10))
    matrix = matrix_of(rng, n, d, ones=ones, wide=wide)
    return SupportedRows(matrix, bounds_of(rng, n), support_of(rng, d, m), constant=constant)


@RULES
@given(
    seed=st.integers(0, 2**32 - 1), m=st.sampled_from([1, 3, 9, 22, 33, 66]), ones=st.booleans(), wide=st.booleans(),
    constant=st.booleans(),
)  # fmt: skip
def test_it_keeps_the_promises_of_features(seed, m, ones, wide, constant):
    features = made(seed, m, ones=ones, wide=wide, constant=constant)
    assert features.rows.columns.dtype == (np.int64 if wide else np.int32)
    assert len(features.rows.values) == 0 or not ones
    check_features(features)


@pytest.mark.parametrize("m", WIDTHS)
def test_every_number_of_columns_and_vector_length(m, every_vector_length):
    for seed in range(8):
        features = made(seed, m, n=30, ones=seed % 2 == 0, wide=seed % 3 == 0, constant=seed % 4 < 2)
        rng = np.random.default_rng(seed)
        w, z = rng.standard_normal(features.n_weights), rng.standard_normal(features.n_parts)
        explicit = features.to_sparse()
        np.testing.assert_allclose(features.scores(w), explicit @ w, atol=1e-12)
        np.testing.assert_allclose(features.adjoint(z), explicit.T @ z, atol=1e-12)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("m", [1, 5, 22, 40, 80])
def test_all_pairs_are_tied_rows(m, constant):
    rng = np.random.default_rng(m)
    matrix, bounds = matrix_of(rng, 50, 13), bounds_of(rng, 50)
    some = SupportedRows(matrix, bounds, Support.full(13, m), constant=constant)
    tied = TiedRows(matrix, bounds, m, constant=constant)
    assert (some.n_weights, some.n_parts, some.n_examples) == (tied.n_weights, tied.n_parts, tied.n_examples)
    w, z, scale = rng.standard_normal(tied.n_weights), rng.standard_normal(tied.n_parts), rng.random(tied.n_parts)
    np.testing.assert_allclose(some.scores(w), tied.scores(w), atol=1e-12)
    np.testing.assert_allclose(some.adjoint(z), tied.adjoint(z), atol=1e-12)
    for order in (2.0, np.inf):
        np.testing.assert_allclose(some.part_norms(order), tied.part_norms(order), atol=1e-12)
    for given_scale in (None, scale):
        np.testing.assert_allclose(some.weight_norms(given_scale), tied.weight_norms(given_scale), atol=1e-12)


@pytest.mark.parametrize("ones", [False, True])
@pytest.mark.parametrize("m", [6, 22, 50, 100])
def test_same_bits_for_any_number_of_threads(m, ones):
    rng = np.random.default_rng(m)
    features = SupportedRows(
        matrix_of(rng, 3000, 200, ones=ones, density=0.05), bounds_of(rng, 3000, 40), support_of(rng, 200, m)
    )
    w, z = rng.standard_normal(features.n_weights), rng.standard_normal(features.n_parts)

    def all_of():
        norms = [features.part_norms(2.0), features.part_norms(np.inf), features.weight_norms()]
        return [features.scores(w), features.adjoint(z), *norms]

    with threads(1):
        alone = all_of()
    np.testing.assert_allclose(alone[0], features.to_sparse() @ w, atol=1e-11)
    np.testing.assert_allclose(alone[1], features.to_sparse().T @ z, atol=1e-11)
    for count in (2, 3):
        with threads(count):
            assert all(map(np.array_equal, alone, all_of()))


@pytest.mark.parametrize("ones", [False, True])
@pytest.mark.parametrize("m", [1, 5, 22, 70])
def test_features_of_very_many_rows(m, ones, every_vector_length):
    rng = np.random.default_rng(m)
    matrix = matrix_of(rng, 1500, 5, ones=ones, density=0.7)
    for share in (0.1, 0.9):
        features = SupportedRows(matrix, [0, 1500], support_of(rng, 5, m, share), constant=True)
        z = rng.standard_normal(features.n_parts)
        np.testing.assert_allclose(features.adjoint(z), features.to_sparse().T @ z, atol=1e-10)


def test_a_row_has_the_same_bits_in_every_batch(every_vector_length):
    features = made(5, 22, n=40, constant=True)
    w = np.random.default_rng(0).standard_normal(features.n_weights)
    whole = features.scores(w)
    for i in range(features.n_examples):
        part = slice(features.offsets[i] * 22, features.offsets[i + 1] * 22)
        assert np.array_equal(features.select([i]).scores(w), whole[part])


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e8, 1e-12])
def test_values_reach_no_column_without_a_weight(value, every_vector_length):
    support = Support.of_pairs(np.array([1, 5]), 2, 4)
    features = SupportedRows(sp.csr_array(np.array([[value, 2.0]])), [0, 1], support)
    np.testing.assert_array_equal(features.scores(np.array([3.0, 4.0])), [0.0, 3.0 * value + 8.0, 0.0, 0.0])
    weights_alone = SupportedRows((np.array([0, 2]), np.array([0, 1])), [0, 1], support)
    np.testing.assert_array_equal(weights_alone.scores(np.array([value, 0.0])), [0.0, value, 0.0, 0.0])


@pytest.mark.parametrize(("n", "d", "m"), [(0, 0, 1), (0, 4, 22), (5, 0, 22), (5, 3, 22), (5, 3, 100)])
@pytest.mark.parametrize("constant", [False, True])
def test_nothing_at_all(n, d, m, constant, every_vector_length):
    """No rows, no features, no non-zeros, no weights, empty examples, no examples."""
    for support in (Support.of_pairs(np.zeros(0, np.int64), d, m), Support.full(d, m)):
        for bounds in ([0, 0, n, n], *([[0]] if n == 0 else [])):
            features = SupportedRows(sp.csr_array((n, d)), bounds, support, constant=constant)
            w = np.ones(features.n_weights)
            np.testing.assert_array_equal(features.scores(w), np.full(n * m, float(constant)))
            sums = np.r_[np.full(m if constant else 0, n), np.zeros(support.n_weights)]
            np.testing.assert_array_equal(features.adjoint(np.ones(n * m)), sums)
            check_features(features)
            features.per_example([features.offsets * m])


def test_select_with_repeats():
    features = made(3, 22, n=30, constant=True)
    w = np.random.default_rng(1).standard_normal(features.n_weights)
    scores, bounds = features.scores(w), features.offsets * 22
    for chosen in ([2, 0, 0, 1], [0, 1, 2], [1, 2], [1], []):
        part = features.select(chosen)
        want = [scores[bounds[i] : bounds[i + 1]] for i in chosen]
        np.testing.assert_array_equal(part.scores(w), np.concatenate([*want, np.zeros(0)]))
        assert part.n_examples == len(chosen)
        np.testing.assert_allclose(part.adjoint(part.scores(w)), part.to_sparse().T @ part.scores(w), atol=1e-10)
    with pytest.raises(ValueError, match="indices must lie in"):
        features.select([3])


# Patterns of ones


@pytest.mark.parametrize("ones", [False, True])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("n", "d"), [(40, 9), (3, 500), (0, 4), (5, 0)])
def test_transposed_matrices_are_those_of_scipy(n, d, wide, ones):
    matrix = matrix_of(np.random.default_rng(0), n, d, ones=ones, wide=wide)
    turned, expected = Entries.of(matrix).transposed, matrix.tocsc()
    assert (turned.n, turned.d) == (d, n)
    assert turned.starts.dtype == turned.columns.dtype == (np.int64 if wide else np.int32)
    np.testing.assert_array_equal(turned.starts, expected.indptr)
    np.testing.assert_array_equal(turned.columns, expected.indices)
    np.testing.assert_array_equal(turned.to_sparse().data, expected.data)


def test_ones_are_kept_by_their_places():
    rng = np.random.default_rng(0)
    matrix = matrix_of(rng, 40, 9, ones=True)
    support, bounds = support_of(rng, 9, 22), [0, 40]
    given_values = SupportedRows(matrix, bounds, support)
    places = SupportedRows((matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)), bounds, support)
    for one in (given_values, places):
        assert one.rows.values.size == one.rows.transposed.values.size == one.select([0, 0]).rows.values.size == 0
        assert one.rows.starts.dtype == one.rows.columns.dtype == np.int32
        assert (one.to_sparse() != given_values.to_sparse()).nnz == 0
    assert np.shares_memory(given_values.rows.columns, matrix.indices)
    w = rng.standard_normal(support.n_weights)
    np.testing.assert_array_equal(given_values.scores(w), places.scores(w))
    doubled = SupportedRows(matrix * 2.0, bounds, support)
    assert doubled.rows.values.size == matrix.nnz
    np.testing.assert_allclose(doubled.scores(w), 2.0 * places.scores(w), atol=1e-12)
    assert Entries.of(places.rows) is places.rows


# Single examples


def problem_of(kind, seed, ones, wide=False):
    rng = np.random.default_rng(seed)
    lengths, k = rng.integers(0, 6, size=4), int(rng.choice([2, 3, 9]))
    n, edges = int(lengths.sum()), int(np.maximum(lengths - 1, 0).sum())
    tokens, support = matrix_of(rng, n, 12, ones=ones, wide=wide), support_of(rng, 12, k)
    if kind == "second":
        structure = SecondOrderChain(lengths, k)
        features = SecondOrderFeatures(tokens, lengths, k, support=support)
    elif kind == "edges":
        structure = Chain(lengths, k, transitions="each")
        rows, edge_support = matrix_of(rng, edges, 5, ones=ones, wide=wide), support_of(rng, 5, k * k)
        features = ChainFeatures(tokens, lengths, k, edge_features=rows, support=support, edge_support=edge_support)
    else:
        structure = Chain(lengths, k)
        features = ChainFeatures(tokens, lengths, k, support=support)
    gold = structure.argmax(rng.normal(size=structure.n_parts)).z
    return Problem.build(structure, features, gold, Hamming(), L2(C=0.7))


@pytest.mark.parametrize("kind", ["nodes", "edges", "second"])
@RULES
@given(seed=st.integers(0, 10**6), ones=st.booleans(), wide=st.booleans())
def test_one_example_sees_what_the_batch_sees(every_vector_length, kind, seed, ones, wide):
    problem = problem_of(kind, seed, ones, wide)
    weights = np.random.default_rng(seed).normal(size=problem.n_weights)
    worst = problem.most_violated(weights)
    rows = problem.differences(worst.z).toarray()
    for i in range(problem.structure.n_examples):
        change, loss = visit(problem, i, weights)
        assert change @ weights + loss == pytest.approx(worst.value[i], abs=1e-9)
        if worst.value[i] > 1e-9:
            np.testing.assert_allclose(change, worst.factor[i] * rows[i], atol=1e-9)


@pytest.mark.parametrize("kind", ["nodes", "edges", "second"])
def test_chains_with_supports_keep_the_promises(kind):
    for seed in range(4):
        problem = problem_of(kind, seed, seed % 2 == 0)
        check_features(problem.features, problem.structure)


def test_chains_with_all_pairs_have_the_weights_of_chains_without_support():
    rng = np.random.default_rng(0)
    tokens, edges = matrix_of(rng, 9, 4), matrix_of(rng, 6, 3)
    plain = ChainFeatures(tokens, [5, 1, 3], 3, edge_features=edges)
    full = ChainFeatures(
        tokens, [5, 1, 3], 3, edge_features=edges, support=Support.full(4, 3), edge_support=Support.full(3, 9)
    )
    w = rng.standard_normal(plain.n_weights)
    np.testing.assert_allclose(full.scores(w), plain.scores(w), atol=1e-12)
    second = SecondOrderFeatures(tokens, [5, 1, 3], 3, support=Support.full(4, 3))
    v = rng.standard_normal(second.n_weights)
    np.testing.assert_allclose(second.scores(v), SecondOrderFeatures(tokens, [5, 1, 3], 3).scores(v), atol=1e-12)
    assert isinstance(second.select([0, 2, 2]).features[0], SupportedRows)


def test_chains_refuse_supports_that_do_not_fit():
    tokens = sp.csr_array(np.eye(3))
    edges, support = sp.csr_array(np.ones((2, 1))), Support.full(3, 2)
    for arguments, message in (
        ({"support": Support.full(3, 3)}, "the support of tokens has 3 columns, but there must be 2"),
        ({"support": Support.full(4, 2)}, "the matrix has 3 columns, the support 4 features"),
        ({"edge_support": Support.full(1, 4)}, "edge_support needs edge_features"),
        ({"edge_features": edges, "edge_support": Support.full(1, 2)}, "the support of edge_features has 2 columns"),
        ({"edge_features": sp.csr_array((3, 1)), "edge_support": Support.full(1, 4)}, "edge_features has 3 rows"),
    ):
        with pytest.raises(ValueError, match=message):
            ChainFeatures(tokens, [3], 2, **arguments)
    with pytest.raises(ValueError, match="tokens has 3 rows"):
        ChainFeatures(tokens, [4], 2, support=support)
    with pytest.raises(ValueError, match="need a CSR matrix"):
        ChainFeatures(np.eye(3), [3], 2, support=support)
    with pytest.raises(ValueError, match="need a support"):
        ChainFeatures((tokens.indptr, tokens.indices), [3], 2)


# Supports


def pairs_in_python(matrix, rows, columns):
    found = set()
    for r, c in zip(rows, columns, strict=True):
        found |= {(int(f), int(c)) for f in matrix.indices[matrix.indptr[r] : matrix.indptr[r + 1]] if c >= 0}
    return found


def as_set(support):
    return set(zip(support.features.tolist(), support.columns.tolist(), strict=True))


@RULES
@given(
    seed=st.integers(0, 2**32 - 1), m=st.sampled_from([1, 22, 64, 65, 200, 1024, 1025, 5000]), wide=st.booleans(),
    places=st.booleans(),
)  # fmt: skip
def test_observed_and_added_pairs_are_those_of_sets(seed, m, wide, places):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(0, 15, size=2).tolist()
    matrix = matrix_of(rng, n, d, wide=wide)
    matrix_given = (matrix.indptr, matrix.indices) if places else matrix
    labels = rng.integers(-1, m, size=n)
    support = Support.observed(matrix_given, labels, m, n_features=d)
    own = pairs_in_python(matrix, range(n), labels)
    assert (support.n_features, support.m, as_set(support)) == (d, m, own)
    assert support.starts.dtype == support.columns.dtype == np.int32
    assert support.compiled is not None  # columns rise
    rows = rng.integers(0, n, size=8) if n else np.zeros(0, int)
    more = rng.integers(-1, m, size=len(rows))
    added = own | pairs_in_python(matrix, rows, more)
    larger = support.with_pairs(matrix_given, rows, more)
    assert as_set(larger) == added
    other = support_of(rng, d, m, 0.1)
    both = larger.union(other)
    assert as_set(both) == added | as_set(other)
    assert both.compiled is not None
    weights = rng.standard_normal(support.n_weights)
    carried = support.carried(weights, both.extended(d + 3))
    want = dict(zip(support.pairs().tolist(), weights, strict=True))
    np.testing.assert_array_equal(carried, [want.get(pair, 0.0) for pair in both.pairs().tolist()])


def test_supports_that_cannot_be_joined():
    small, large = Support.of_pairs(np.array([0, 3]), 2, 2), Support.full(2, 2)
    np.testing.assert_array_equal(small.carried(np.array([1.0, 2.0]), large), [1.0, 0.0, 0.0, 2.0])
    for other in (small, Support.full(2, 3), Support.full(1, 2), Support.of_pairs(np.zeros(0, int), 2, 2)):
        with pytest.raises(ValueError, match="some pairs of this support are not in the other"):
            large.carried(np.ones(4), other)
    with pytest.raises(ValueError, match="weights must have shape"):
        small.carried(np.ones(3), large)
    for other in (Support.full(3, 2), Support.full(2, 3)):
        with pytest.raises(ValueError, match=r"add features with extended\(\)"):
            small.union(other)
    with pytest.raises(ValueError, match="has 2 features already, more than 1"):
        small.extended(1)
    assert as_set(small.extended(2)) == as_set(small)
    assert small.extended(4).n_features == 4


def test_bad_pairs_are_refused():
    matrix, support = sp.csr_array(np.eye(3)), Support.full(3, 2)
    for columns, message in (
        ([0, 1], "give one column per row"),
        ([0, 1, 2], r"columns must lie in 0\.\.1, or be -1"),
        ([0, -2, 0], r"columns must lie in 0\.\.1, or be -1"),
        ([0.0, 1.0, 0.0], "columns must be integers"),
        ([[0, 1, 0]], "give one column per row"),
    ):
        with pytest.raises(ValueError, match=message):
            Support.observed(matrix, columns, 2)
    for rows in ([3], [-1]):
        with pytest.raises(ValueError, match=r"rows must lie in 0\.\.2"):
            support.with_pairs(matrix, rows, [0])
    with pytest.raises(ValueError, match="the matrix has 2 columns, the support 3 features"):
        support.with_pairs(sp.csr_array(np.eye(2)), [0], [0])
    with pytest.raises(ValueError, match="n_features"):
        Support.observed((matrix.indptr, matrix.indices), [0, 1, 0], 2)
    with pytest.raises(ValueError, match="out of range"):
        Support.observed((matrix.indptr, matrix.indices), [0, 1, 0], 2, n_features=2)


@pytest.mark.parametrize(
    ("starts", "columns", "m"),
    [
        ([], [], 2),
        ([1, 2], [0, 1], 2),
        ([0, 1], [0, 1], 2),
        ([0, 2, 1, 3], [0, 1, 0], 2),
        ([0, 9, 2], [0, 1], 2),
        ([0, -1, 2], [0, 1], 2),
        ([0, 2], [1, 0], 2),
        ([0, 2], [0, 0], 2),
        ([0, 2], [0, 2], 2),
        ([0, 2], [-1, 0], 2),
        ([0, 0], [], 0),
    ],
)
def test_arrays_that_are_no_pattern_are_refused(starts, columns, m):
    with pytest.raises(ValueError):
        _ = Support(np.array(starts, dtype=np.int32), np.array(columns, dtype=np.int32), m).compiled


def test_bad_maps_are_refused():
    matrix, support = sp.csr_array(np.eye(3)), Support.full(3, 2)
    for offsets in ([0, 2], [1, 3], [], [[0, 3]], [0, 4, 3]):
        with pytest.raises(ValueError, match="offsets must rise from 0 to the number of rows, 3"):
            SupportedRows(matrix, offsets, support)
    with pytest.raises(ValueError, match="the matrix has 3 columns, the support 2 features"):
        SupportedRows(matrix, [0, 3], Support.full(2, 2))
    with pytest.raises(ValueError, match="need a CSR matrix"):
        SupportedRows(np.eye(3), [0, 3], support)
    with pytest.raises(ValueError, match="must hold float64 values"):
        SupportedRows(matrix.astype(np.float32), [0, 3], support)
    for places in (
        (np.array([0, 2]), np.array([0])),
        (np.array([], dtype=int), np.array([0])),
        (np.array([[0, 1]]), np.array([0])),
        (np.array([0, 1]), np.array([0.0])),
    ):
        with pytest.raises(ValueError, match="of a sparse matrix"):
            SupportedRows(places, [0, 1], support)
    outside = SupportedRows((np.array([0, 1]), np.array([3])), [0, 1], support)
    for call in (lambda: outside.scores(np.ones(6)), lambda: outside.part_norms(2.0), lambda: outside.per_example([])):
        with pytest.raises(ValueError, match="out of range"):
            call()
    good = SupportedRows(matrix, [0, 3], support)
    with pytest.raises(ValueError, match="weights must have shape"):
        good.scores(np.ones(5))
    with pytest.raises(ValueError, match="z must have shape"):
        good.adjoint(np.ones(5))


def test_adjoint_with_more_threads_than_features():
    support = Support.full(2, 3).compiled
    turned = np.array([0, 1, 2], np.int32), np.array([0, 1], np.int32), np.zeros(0)
    z, found = np.arange(6.0), np.empty(6)
    _kernels.supported_adjoint(support, *turned, z, found, 1024)
    np.testing.assert_array_equal(found, z)


def test_kernels_check_lengths():
    support, floats = Support.full(2, 3).compiled, np.zeros
    starts, columns = np.array([0, 1, 2], np.int32), np.array([0, 1], np.int32)
    matrix = starts, columns, floats(0)
    for call, arguments in (
        (_kernels.supported_forward, (*matrix, floats(5), floats(0), floats(6), 1)),
        (_kernels.supported_forward, (*matrix, floats(6), floats(2), floats(6), 1)),
        (_kernels.supported_forward, (*matrix, floats(6), floats(0), floats(5), 1)),
        (_kernels.supported_forward, (starts, columns, floats(1), floats(6), floats(0), floats(6), 1)),
        (_kernels.supported_forward, (starts[::-1].copy(), columns, floats(2), floats(6), floats(0), floats(6), 1)),
        (_kernels.supported_adjoint, (*matrix, floats(5), floats(6), 1)),
        (_kernels.supported_adjoint, (*matrix, floats(3), floats(6), 1)),
        (_kernels.supported_adjoint, (*matrix, floats(6), floats(5), 1)),
        (_kernels.supported_adjoint, (starts[:2], columns[:1], floats(0), floats(6), floats(6), 1)),
        (_kernels.supported_part_norms, (*matrix, False, floats(5), 1)),
        (_kernels.supported_map, (*matrix, np.array([0, 1]), False)),
        (_kernels.supported_map, (*matrix, np.array([0, 3, 2]), False)),
        (_kernels.supported_map, (*matrix, np.zeros(0, int), False)),
    ):
        with pytest.raises(ValueError):
            call(support, *arguments)
    pairs = _kernels.PairSet(2, 3)
    for arguments in (
        (np.array([2]), np.array([0])),
        (np.array([0]), np.array([3])),
        (np.array([0]), np.zeros(0, int)),
    ):
        with pytest.raises(ValueError):
            pairs.add_rows(starts, columns, *arguments)
    with pytest.raises(ValueError, match="more features or columns"):
        _kernels.PairSet(1, 3).add_support(support)
    with pytest.raises(ValueError, match="one count per feature"):
        pairs.count(np.zeros(3, int))
    pairs.add_support(support)
    with pytest.raises(ValueError, match="after count"):
        pairs.write(np.zeros(6, np.int32))
    pairs.count(np.zeros(2, int))
    with pytest.raises(ValueError, match="after count"):
        pairs.write(np.zeros(5, np.int32))
    for d, m in ((-1, 3), (2, 0), (2, 1 << 31)):
        with pytest.raises(ValueError, match="too many features or no column"):
            _kernels.PairSet(d, m)


def test_too_many_weights_are_refused():
    with pytest.raises(ValueError, match="2,147,483,648 weights are too many"):
        Support.of_pairs(np.broadcast_to(np.int64(0), 1 << 31), 1, 1)


def test_pickling_and_fingerprints():
    features = made(7, 22, n=30, constant=True)
    w = np.random.default_rng(0).standard_normal(features.n_weights)
    before, name = features.scores(w), digest(features)
    assert features.adjoint(before).shape == (features.n_weights,)
    again = pickle.loads(pickle.dumps(features))
    assert np.array_equal(again.scores(w), before)
    assert digest(features) == name == digest(again) == digest(features.select([0, 1, 2]))
    others = [
        features.select([0, 1, 1]),
        SupportedRows(features.rows, features.offsets, features.support),
        SupportedRows(features.rows, features.offsets, Support.full(features.rows.d, 22), constant=True),
        made(7, 22, n=30, constant=True, ones=True),
    ]
    assert len({name, *map(digest, others)}) == len(others) + 1

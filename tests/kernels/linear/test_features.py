"""Feature maps against dense algebra, in all widths, index types and thread counts."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.structures.edits import indicator_rows

from maxmargin import _kernels, threads
from maxmargin.features import ChainFeatures, Features, PartFeatures, Stacked, operator_norm
from maxmargin.features import rows as rows_module
from maxmargin.features.rows import Rows
from maxmargin.testing import check_features

KINDS = ["dense", "csr32", "csr64"]
careful = settings(deadline=None, derandomize=True, max_examples=60)


def matrix_of(kind: str, n: int, d: int, rng: np.random.Generator, density: float = 0.3):
    """A random matrix of the given kind and the same one dense."""
    full = rng.standard_normal((n, d))
    if kind == "dense":
        return full, full
    full = np.where(rng.random((n, d)) < density, full, 0.0)
    full[rng.random((n, d)) < density / 2] = 1.0
    sparse = sp.csr_array(full)
    if kind == "csr64":
        sparse.indices, sparse.indptr = sparse.indices.astype(np.int64), sparse.indptr.astype(np.int64)
    return sparse, full


def offsets_of(n: int, rng: np.random.Generator, n_examples: int | None = None) -> np.ndarray:
    """Random offsets of n rows, some examples empty."""
    count = int(rng.integers(1, 6)) if n_examples is None else n_examples
    return np.concatenate([[0], np.sort(rng.integers(0, n + 1, size=count - 1)), [n]])


def close(got: np.ndarray, want: np.ndarray, size: float = 1.0) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11 * size)


def products(rows: Rows, k: int, w: np.ndarray, z: np.ndarray, initial: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    forward, adjoint = np.full((rows.n, k), np.nan), np.full((rows.d, k), np.nan)
    rows.times(w, k, forward, initial)
    rows.transpose_times(z, k, adjoint)
    return forward, adjoint


# Products


@careful
@given(
    kind=st.sampled_from(KINDS),
    n=st.integers(0, 90),
    d=st.integers(0, 75),
    k=st.integers(1, 45),
    scatter=st.booleans(),
    with_initial=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_products_equal_dense_algebra(kind, n, d, k, scatter, with_initial, seed):
    rng = np.random.default_rng(seed)
    matrix, full = matrix_of(kind, n, d, rng)
    w, z = rng.standard_normal((d, k)), rng.standard_normal((n, k))
    initial = rng.standard_normal(k) if with_initial else np.zeros(0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_module, "SCATTER_LIMIT", 1 << 40 if scatter else -1)
        forward, adjoint = products(Rows(matrix, "X"), k, w, z, initial)
    close(forward, full @ w + (initial if with_initial else 0.0))
    close(adjoint, full.T @ z)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("d", [*range(0, 13), 16, 17, 24, 25, 30, 32, 33, 40, 64, 100])
def test_vectors_and_pairs_at_every_width(kind, d):
    rng = np.random.default_rng(d)
    for n in (0, 1, 2, 3, 4, 5, 9, 64, 1001):
        matrix, full = matrix_of(kind, n, d, rng)
        features = PartFeatures(matrix, offsets_of(n, rng), sign=-1.0)
        w, z = rng.standard_normal((2, d)), rng.standard_normal((2, n))
        for limit in (1 << 40, -1):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(rows_module, "SCATTER_LIMIT", limit)
                close(features.scores(w[0]), -full @ w[0])
                close(features.adjoint(z[0]), -full.T @ z[0], 10)
                for p, scores in enumerate(features.scores_pair(*w)):
                    assert scores.flags.c_contiguous
                    close(scores, -full @ w[p])
                for p, sums in enumerate(features.adjoint_pair(*z)):
                    assert sums.flags.c_contiguous
                    close(sums, -full.T @ z[p], 10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 2, 3, 8, 26, 35])
@pytest.mark.parametrize("scatter", [True, False])
def test_many_rows_same_bits_for_any_number_of_threads(kind, k, scatter, monkeypatch):
    monkeypatch.setattr(rows_module, "SCATTER_LIMIT", 1 << 40 if scatter else -1)
    rng = np.random.default_rng(k)
    n, d = 9000, 37
    matrix, full = matrix_of(kind, n, d, rng)
    w, z = rng.standard_normal((d, k)), rng.standard_normal((n, k))
    rows = Rows(matrix, "X")
    with threads(1):
        forward, adjoint = products(rows, k, w, z, np.ones(k))
        pairs = [*rows.times_pair(w[:, 0].copy(), w[:, -1].copy())]
        pairs += rows.transpose_times_pair(z[:, 0].copy(), z[:, -1].copy())
    close(forward, full @ w + 1.0, 10)
    close(adjoint, full.T @ z, 100)
    for count in (2, 3, 7):
        with threads(count):
            again, sums = products(rows, k, w, z, np.ones(k))
            repeated = [*rows.times_pair(w[:, 0].copy(), w[:, -1].copy())]
            repeated += rows.transpose_times_pair(z[:, 0].copy(), z[:, -1].copy())
        assert np.array_equal(again, forward)
        assert np.array_equal(sums, adjoint)
        assert all(np.array_equal(one, two) for one, two in zip(repeated, pairs, strict=True))


@pytest.mark.parametrize("k", [1, 2, 9])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_very_long_rows_are_cut_and_keep_their_bits(k, index):
    rng = np.random.default_rng(3)
    d = 150_000
    counts = np.array([0, 3, d, 0, 5, d, 70_000, 0, 1])
    columns = np.concatenate([np.sort(rng.permutation(d)[:count]) for count in counts]).astype(index)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(index)
    matrix = sp.csr_array((rng.standard_normal(len(columns)), columns, starts), shape=(len(counts), d))
    matrix.indices, matrix.indptr = columns, starts
    rows = Rows(matrix, "X")
    w, initial = rng.standard_normal((d, k)), rng.standard_normal(k)
    results = []
    for count in (1, 2, 3):
        with threads(count):
            out = np.full((rows.n, k), np.nan)
            rows.times(w, k, out, initial)
            pair = rows.times_pair(w[:, 0].copy(), w[:, -1].copy())
        results.append((out, *pair))
        for one, two in zip(results[0], results[-1], strict=True):
            assert np.array_equal(one, two)
    close(results[0][0], matrix @ w + initial, 1e3)
    close(results[0][1], matrix @ w[:, 0], 1e3)
    close(results[0][2], matrix @ w[:, -1], 1e3)
    alone = rows.select(np.arange(rows.n + 1), np.array([5, 1]))
    out = np.empty((2, k))
    alone.times(w, k, out, initial)
    assert np.array_equal(out, results[0][0][[5, 1]])


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("kind", KINDS)
def test_products_at_every_number_of_columns(kind):
    rng = np.random.default_rng(12)
    for k in [*range(1, 42), 63, 64, 65]:
        n, d = int(rng.integers(1, 20)), int(rng.integers(1, 20))
        matrix, full = matrix_of(kind, n, d, rng)
        w, z, initial = rng.standard_normal((d, k)), rng.standard_normal((n, k)), rng.standard_normal(k)
        for limit in (1 << 40, -1):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(rows_module, "SCATTER_LIMIT", limit)
                forward, adjoint = products(Rows(matrix, "X"), k, w, z, initial)
            close(forward, full @ w + initial, 10)
            close(adjoint, full.T @ z, 10)


def test_wide_and_deep_products_cross_every_panel():
    rng = np.random.default_rng(4)
    for n, d, k in ((70, 600, 50), (600, 70, 101), (1030, 9, 676), (5, 1000, 2)):
        full = rng.standard_normal((n, d))
        w, z = rng.standard_normal((d, k)), rng.standard_normal((n, k))
        for matrix in (full, sp.csr_array(full)):
            forward, adjoint = products(Rows(matrix, "X"), k, w, z, np.zeros(0))
            close(forward, full @ w, 100)
            close(adjoint, full.T @ z, 100)


@pytest.mark.parametrize("scale", [1e8, 1e-12, 1e150])
@pytest.mark.parametrize("kind", KINDS)
def test_huge_and_tiny_numbers(kind, scale):
    rng = np.random.default_rng(5)
    matrix, full = matrix_of(kind, 50, 20, rng)
    features = PartFeatures(matrix * scale, [0, 50])
    w, z = rng.standard_normal(20), rng.standard_normal(50)
    np.testing.assert_allclose(features.scores(w), (full * scale) @ w, rtol=1e-10, atol=1e-12 * scale)
    np.testing.assert_allclose(features.adjoint(z), (full * scale).T @ z, rtol=1e-10, atol=1e-12 * scale)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_weights_reach_the_scores_and_nothing_else(kind, bad):
    rng = np.random.default_rng(6)
    matrix, full = matrix_of(kind, 40, 11, rng)
    features = PartFeatures(matrix, [0, 40])
    w = np.ones(11)
    w[3] = bad
    touched = np.ones(40, dtype=bool) if kind == "dense" else full[:, 3] != 0
    scores = features.scores(w)
    assert not np.isfinite(scores[touched]).any()
    close(scores[~touched], full[~touched] @ np.ones(11))


def test_unsorted_and_repeated_indices_add_up():
    matrix = sp.csr_array((np.array([1.0, 2.0, 4.0, 8.0]), np.array([2, 0, 2, 2]), np.array([0, 3, 4])), shape=(2, 3))
    features = PartFeatures(matrix, [0, 1, 2])
    close(features.scores(np.array([1.0, 10.0, 100.0])), np.array([502.0, 800.0]))
    close(features.adjoint(np.array([1.0, 2.0])), np.array([2.0, 0.0, 21.0]))
    check_features(features)


# The kernels' own guards


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("wrong", [-1, 4, 2**31 - 1])
def test_kernels_refuse_column_indices_out_of_range(index, wrong):
    starts, values = np.array([0, 1, 3], dtype=index), np.ones(3)
    columns = np.array([0, wrong, 1], dtype=index)
    with pytest.raises(ValueError, match="out of range"):
        _kernels.linear_sparse_forward(starts, columns, values, 4, np.ones(4), 1, np.zeros(0), np.zeros(2), 1)
    with pytest.raises(ValueError, match="out of range"):
        _kernels.linear_sparse_forward_pair(starts, columns, values, 4, np.ones(8), np.zeros(2), np.zeros(2), 1)
    with pytest.raises(ValueError, match="out of range"):
        _kernels.linear_sparse_adjoint(starts, columns, values, 4, np.ones(2), 1, np.zeros(4), 1)
    with pytest.raises(ValueError, match="out of range"):
        _kernels.linear_sparse_adjoint(starts, columns, values, 0, np.ones(2), 1, np.zeros(0), 1)


@pytest.mark.parametrize("starts", [[1, 2, 3], [0, 2, 1, 3], [0, 1, 2], [0, 4, 3], [-1, 3]])
def test_kernels_refuse_starts_that_do_not_rise(starts):
    bounds = np.array(starts, dtype=np.int64)
    n = len(bounds) - 1
    with pytest.raises(ValueError, match="must rise"):
        _kernels.linear_sparse_forward(
            bounds, np.zeros(3, dtype=np.int64), np.ones(3), 4, np.ones(4), 1, np.zeros(0), np.zeros(n), 1
        )


def test_kernels_refuse_wrong_lengths_and_never_convert():
    x, none = np.ones((3, 2)), np.zeros(0)
    with pytest.raises(ValueError, match="rows"):
        _kernels.linear_dense_forward(x, np.ones(2), 1, none, np.zeros(4), 1)
    with pytest.raises(ValueError, match="columns"):
        _kernels.linear_dense_forward(x, np.ones(3), 1, none, np.zeros(3), 1)
    with pytest.raises(ValueError, match="initial"):
        _kernels.linear_dense_forward(x, np.ones(4), 2, np.ones(1), np.zeros(6), 1)
    with pytest.raises(ValueError, match="k must be between 1"):
        _kernels.linear_dense_adjoint(x, np.ones(3), 0, np.zeros(2), 1)
    with pytest.raises(ValueError, match="two dimensions"):
        _kernels.linear_dense_adjoint(np.ones(3), np.ones(3), 1, np.zeros(1), 1)
    with pytest.raises(ValueError, match="entries"):
        _kernels.linear_dense_adjoint_pair(x, np.ones(3), np.ones(2), np.zeros(4), 1)
    with pytest.raises(TypeError):
        _kernels.linear_dense_forward(x, np.ones(2), 1, none, np.zeros(3, dtype=np.float32), 1)
    with pytest.raises(TypeError):
        _kernels.linear_dense_forward(x, np.ones(2), 1, none, np.zeros(6)[::2], 1)


# Maps


def chain(kind: str, edge_kind: str | None, lengths: list[int], n_labels: int, seed: int) -> ChainFeatures:
    rng = np.random.default_rng(seed)
    tokens, _ = matrix_of(kind, sum(lengths), 5, rng)
    n_edges = sum(max(length - 1, 0) for length in lengths)
    edges = None if edge_kind is None else matrix_of(edge_kind, n_edges, 3, rng)[0]
    return ChainFeatures(tokens, lengths, n_labels, edge_features=edges)


@careful
@given(
    kind=st.sampled_from(KINDS),
    edge_kind=st.sampled_from([None, *KINDS]),
    lengths=st.lists(st.integers(0, 6), max_size=6),
    n_labels=st.integers(1, 6),
    seed=st.integers(0, 2**32 - 1),
)
def test_chain_features_keep_the_contract(kind, edge_kind, lengths, n_labels, seed):
    check_features(chain(kind, edge_kind, lengths, n_labels, seed), seed=seed)


@careful
@given(
    kind=st.sampled_from(KINDS),
    n=st.integers(0, 30),
    d=st.integers(0, 9),
    sign=st.sampled_from([1.0, -1.0, 2.5]),
    seed=st.integers(0, 2**32 - 1),
)
def test_part_and_stacked_features_keep_the_contract(kind, n, d, sign, seed):
    rng = np.random.default_rng(seed)
    first = PartFeatures(matrix_of(kind, n, d, rng)[0], offsets_of(n, rng, 4), sign=sign)
    second = PartFeatures(matrix_of("dense", 2 * n, 3, rng)[0], offsets_of(2 * n, rng, 4), sign=-1.0)
    check_features(first, seed=seed)
    check_features(Stacked(first, second), seed=seed)
    check_features(Stacked(Stacked(first), second, first), seed=seed)


@pytest.mark.parametrize("edge_kind", [None, *KINDS])
def test_chain_scores_by_their_definition(edge_kind):
    lengths, n_labels = [3, 0, 1, 2], 4
    features = chain("dense", edge_kind, lengths, n_labels, 7)
    rng = np.random.default_rng(8)
    weights = rng.standard_normal(features.n_weights)
    node_weights = weights[: 5 * n_labels].reshape(5, n_labels)
    pair_weights = weights[5 * n_labels :][: n_labels**2].reshape(n_labels, n_labels)
    scores = features.scores(weights)
    close(scores[: 6 * n_labels].reshape(6, n_labels), features.features[0].rows.to_sparse() @ node_weights)
    rest = scores[6 * n_labels :].reshape(-1, n_labels, n_labels)
    if edge_kind is None:
        assert rest.shape[0] == 4
        assert (rest == pair_weights).all()
    else:
        edge_weights = weights[5 * n_labels + n_labels**2 :].reshape(3, n_labels, n_labels)
        assert rest.shape[0] == 3
        rows = features.features[1].rows.to_sparse().toarray()
        close(rest, pair_weights + np.einsum("ed,dab->eab", rows, edge_weights))


def parts_of(offsets: list[np.ndarray], chosen: list[int]) -> np.ndarray:
    """Positions of the selected examples in a packed vector with the given block offsets."""
    pieces, start = [np.zeros(0, dtype=np.int64)], 0
    for block in offsets:
        pieces += [start + np.arange(block[i], block[i + 1]) for i in chosen]
        start += block[-1]
    return np.concatenate(pieces)


@pytest.mark.parametrize("chosen", [[], [0], [3], [1, 2], [0, 1, 2, 3], [2, 2, 0], [3, 1, 1, 3, 0], [2, 3]])
@pytest.mark.parametrize("kind", KINDS)
def test_select_follows_the_packed_order_with_repeats(kind, chosen):
    lengths = np.array([3, 0, 1, 4])
    rng = np.random.default_rng(9)
    tokens = np.concatenate([[0], np.cumsum(lengths)])
    edges = np.concatenate([[0], np.cumsum(np.maximum(lengths - 1, 0))])
    cases: list[tuple[Features, list[np.ndarray]]] = [
        (chain(kind, None, [3, 0, 1, 4], 3, 1), [tokens * 3, np.arange(5) * 9]),
        (chain(kind, kind, [3, 0, 1, 4], 3, 1), [tokens * 3, edges * 9]),
        (PartFeatures(matrix_of(kind, 8, 6, rng)[0], tokens), [tokens]),
    ]
    cases.append((Stacked(cases[2][0], cases[2][0]), [tokens, tokens]))
    for features, offsets in cases:
        where = parts_of(offsets, chosen)
        picked = features.select(chosen)
        weights, z = rng.standard_normal(features.n_weights), rng.standard_normal(len(where))
        assert picked.n_examples == len(chosen)
        assert picked.n_parts == len(where)
        assert np.array_equal(picked.scores(weights), features.scores(weights)[where])
        spread = np.bincount(where, z, features.n_parts) if len(where) else np.zeros(features.n_parts)
        close(picked.adjoint(z), features.adjoint(spread))
        again = picked.select(np.arange(len(chosen))[::-1])
        assert np.array_equal(again.scores(weights), features.scores(weights)[parts_of(offsets, chosen[::-1])])


def test_select_of_consecutive_examples_shares_memory():
    matrix = np.arange(20.0).reshape(10, 2)
    sparse = sp.csr_array(matrix)
    offsets = np.array([0, 2, 5, 10])
    assert np.shares_memory(PartFeatures(matrix, offsets).select([1, 2]).rows.dense, matrix)
    assert np.shares_memory(PartFeatures(sparse, offsets).select([1, 2]).rows.values, sparse.data)
    assert np.shares_memory(PartFeatures(sparse, offsets).rows.columns, sparse.indices)


def test_empty_batches():
    for features in (
        ChainFeatures(np.zeros((0, 4)), [], 3),
        ChainFeatures(sp.csr_array((0, 4)), [], 3, edge_features=np.zeros((0, 2))),
        ChainFeatures(np.zeros((0, 4)), [0, 0], 3),
        PartFeatures(np.zeros((0, 4)), [0]),
        PartFeatures(np.zeros((0, 0)), [0, 0, 0]),
        PartFeatures(sp.csr_array((3, 0)), [0, 3]),
    ):
        check_features(features)
        assert features.select([]).n_examples == 0
        assert np.array_equal(features.adjoint(np.zeros(features.n_parts)), np.zeros(features.n_weights))


def test_read_only_and_strided_input():
    matrix = np.asfortranarray(np.arange(12.0).reshape(4, 3))
    matrix.flags.writeable = False
    features = PartFeatures(matrix, [0, 4])
    weights = np.arange(6.0)[::2]
    weights.flags.writeable = False
    close(features.scores(weights), matrix @ weights)


# The norm


@pytest.mark.parametrize("kind", KINDS)
def test_norm_is_a_close_upper_bound(kind):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        matrix, full = matrix_of(kind, 60, 25, rng)
        norm = PartFeatures(matrix, [0, 60]).norm()
        exact = np.linalg.norm(full, 2)
        assert exact * (1 - 1e-12) <= norm <= 1.003 * exact


def test_norm_with_a_clustered_top_and_with_repeated_values():
    for values in (np.linspace(0.99, 1.0, 300), np.ones(50), np.r_[1.0, np.full(80, 1e-9)], np.array([3.0])):
        norm = PartFeatures(np.diag(values), [0, len(values)]).norm()
        assert 1.0 - 1e-12 <= norm / values.max() <= 1.003


def test_norm_of_zero_and_empty_maps():
    assert PartFeatures(np.zeros((4, 3)), [0, 4]).norm() == 0.0
    assert PartFeatures(np.zeros((4, 0)), [0, 4]).norm() == 0.0
    assert PartFeatures(np.zeros((0, 3)), [0]).norm() == 0.0
    assert operator_norm(lambda w: w, 0) == 0.0


@pytest.mark.parametrize("scale", [1e8, 1e-12])
def test_norm_scales(scale):
    full = np.random.default_rng(1).standard_normal((20, 6))
    assert np.isclose(PartFeatures(full * scale, [0, 20]).norm(), scale * PartFeatures(full, [0, 20]).norm())


def test_norm_with_example_weights_and_same_bits():
    rng = np.random.default_rng(2)
    features = PartFeatures(rng.standard_normal((30, 8)), np.arange(0, 31, 3))
    factor = np.repeat(rng.random(10), 3)
    norms = []
    for count in (1, 2):
        with threads(count):
            norms.append(operator_norm(lambda w: features.adjoint(factor**2 * features.scores(w)), 8))
    exact = np.linalg.norm(factor[:, None] * features.rows.dense, 2)
    assert norms[0] == norms[1]
    assert exact <= norms[0] <= 1.003 * exact


def test_norm_refuses_bad_features():
    with pytest.raises(ValueError, match="not finite"):
        PartFeatures(np.array([[np.nan, 1.0]]), [0, 1]).norm()


# What constructors refuse


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PartFeatures(np.zeros(3), [0, 3]), "two-dimensional"),
        (lambda: PartFeatures(np.zeros((3, 2), dtype=np.float32), [0, 3]), "float64"),
        (lambda: PartFeatures(sp.csr_array(np.eye(3, dtype=np.float32)), [0, 3]), "float64"),
        (lambda: PartFeatures(sp.csc_array(np.eye(3)), [0, 3]), "tocsr"),
        (lambda: PartFeatures(np.zeros((3, 2)), [0, 2]), "number of rows, 3"),
        (lambda: PartFeatures(np.zeros((3, 2)), [0, 4, 3]), "must rise"),
        (lambda: PartFeatures(np.zeros((3, 2)), []), "offsets must rise from 0"),
        (lambda: PartFeatures(np.zeros((3, 2)), [0, 3], sign=np.nan), "finite"),
        (lambda: Stacked(), "at least one"),
        (
            lambda: Stacked(PartFeatures(np.zeros((3, 2)), [0, 3]), PartFeatures(np.zeros((3, 2)), [0, 1, 3])),
            "same number of examples",
        ),
        (lambda: ChainFeatures(np.zeros((3, 2)), [2], 2), "add up to 2"),
        (lambda: ChainFeatures(np.zeros((3, 2)), [4, -1], 2), "lengths must be at least 0, got -1"),
        (lambda: ChainFeatures(np.zeros((3, 2)), [3.0], 2), "integers"),
        (lambda: ChainFeatures(np.zeros((3, 2)), [3], 0), "n_labels"),
        (lambda: ChainFeatures(np.zeros((3, 2)), [3], 2, edge_features=np.zeros((3, 1))), "2 edges"),
        (lambda: PartFeatures(np.zeros((3, 2)), [0, 3]).scores(np.zeros(3)), r"shape \(2,\)"),
        (lambda: PartFeatures(np.zeros((3, 2)), [0, 3]).adjoint(np.zeros(2)), r"shape \(3,\)"),
        (lambda: PartFeatures(np.zeros((3, 2)), [0, 3]).select([0.5]), "integers"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("wrong", [-1, 1])
def test_select_refuses_examples_out_of_range(wrong):
    with pytest.raises(ValueError, match=r"0\.\.0"):
        PartFeatures(np.zeros((3, 2)), [0, 3]).select([wrong])


@careful
@given(n=st.integers(0, 40), n_lists=st.integers(0, 8), width=st.integers(1, 30), seed=st.integers(0, 99))
def test_rows_of_listed_features(n, n_lists, width, seed):
    lists = np.random.default_rng(seed).integers(-2, width, size=(n_lists, n))
    want = indicator_rows(lists, width)
    for index in (np.int32, np.int64):
        starts = np.empty(n + 1, dtype=index)
        chosen = _kernels.indicator_rows(lists, width, starts)
        assert chosen.dtype == index
        np.testing.assert_array_equal(starts, want.indptr)
        np.testing.assert_array_equal(chosen, want.indices)


def test_listed_features_are_checked():
    lists, starts = np.array([[0, 2, 1]]), np.zeros(4, dtype=np.int32)
    for given_lists, width, given_starts in (
        (lists, 2, starts),
        (lists, -1, starts),
        (lists, 3, starts[:3]),
        (lists[0], 3, starts),
    ):
        with pytest.raises(ValueError, match=r"out of range|must be between|an entry per row"):
            _kernels.indicator_rows(given_lists, width, given_starts)

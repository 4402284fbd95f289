from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracles import reference
from oracles.enumeration import vertices

import maxmargin
from maxmargin import _kernels
from maxmargin.structures.base import Block, Points, PointStatus, Polytope, Structure
from maxmargin.structures.chains.chain import Chain
from maxmargin.structures.fallbacks import generic

OK, INEXACT, NONFINITE, ABSENT = PointStatus.OK, PointStatus.INEXACT, PointStatus.NONFINITE, PointStatus.ABSENT


class Listed(Structure):
    """Any finite list of outputs per example, each a real vector; the first ``heads[i]`` parts are block one."""

    name = "listed"
    categorical = False

    def __init__(self, outputs, heads):
        self.outputs = [np.asarray(v, dtype=float) for v in outputs]
        self.heads = list(heads)
        first = np.cumsum([0, *self.heads])
        second = np.cumsum([0, *(v.shape[1] - h for v, h in zip(self.outputs, self.heads, strict=True))])
        self.blocks = (Block("first", first), Block("second", second))
        self.calls = 0
        self.asked = 0
        self.code = OK

    def argmax(self, scores, *, warm=None):
        self.calls += 1
        self.asked += self.n_examples
        z, value = np.zeros(self.n_parts), np.zeros(self.n_examples)
        status = np.full(self.n_examples, self.code, dtype=np.int8)
        for i, outputs in enumerate(self.outputs):
            own = self.parts_of([i])
            totals = outputs @ scores[own]
            if not np.isfinite(scores[own]).all():
                status[i] = NONFINITE
                continue
            best = int(totals.argmax())
            z[own], value[i] = outputs[best], totals[best]
        return Points(z, value, status)

    def select(self, indices):
        part = type(self)([self.outputs[i] for i in indices], [self.heads[i] for i in indices])
        part.code = self.code
        return part

    def encode(self, labels):
        raise AssertionError("not needed here")

    def decode(self, z):
        raise AssertionError("not needed here")

    def polytope(self):
        n = sum(len(v) for v in self.outputs)
        lift, eq = np.zeros((self.n_parts, n)), np.zeros((self.n_examples, n))
        at = 0
        for i, outputs in enumerate(self.outputs):
            lift[self.parts_of([i]), at : at + len(outputs)] = outputs.T
            eq[i, at : at + len(outputs)] = 1.0
            at += len(outputs)
        return Polytope(
            lift=sp.csr_array(lift),
            ub=sp.csr_array((0, n)),
            ub_rhs=np.zeros(0),
            eq=sp.csr_array(eq),
            eq_rhs=np.ones(self.n_examples),
        )


class TopK(Structure):
    """Exactly ``take[i]`` of ``sizes[i]`` parts; -inf forbids a part."""

    name = "top k"
    categorical = False

    def __init__(self, sizes, take):
        self.sizes, self.take = np.asarray(sizes, dtype=int), np.asarray(take, dtype=int)
        self.blocks = (Block("parts", np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)),)

    def argmax(self, scores, *, warm=None):
        z, value = np.zeros(self.n_parts), np.zeros(self.n_examples)
        status = np.zeros(self.n_examples, dtype=np.int8)
        for i, offset in enumerate(self.blocks[0].offsets[:-1]):
            chosen = offset + np.argsort(-scores[offset : offset + self.sizes[i]], kind="stable")[: self.take[i]]
            value[i] = scores[chosen].sum()
            if value[i] == -np.inf:
                status[i] = ABSENT
            else:
                z[chosen] = 1.0
        return Points(z, value, status)

    def select(self, indices):
        chosen = np.asarray(indices, dtype=int)
        return TopK(self.sizes[chosen], self.take[chosen])

    def encode(self, labels):
        raise AssertionError("not needed here")

    def decode(self, z):
        raise AssertionError("not needed here")


def capped_simplex(point, total):
    """Projection onto {0 <= z <= 1, sum z = total} by bisection on the multiplier."""
    low, high = point.min() - 2.0, point.max() + 2.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.clip(point - middle, 0, 1).sum() > total else (low, middle)
    return np.clip(point - low, 0, 1)


def subsets(n):
    return np.array(
        [[int(j in chosen) for j in range(n)] for r in range(n + 1) for chosen in combinations(range(n), r)]
    )


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("scale", [1e-12, 0.1, 1.0, 30.0])
def test_projection_onto_capped_simplexes(scale):
    structure = TopK([1, 6, 40, 12, 5, 100], [1, 2, 13, 0, 5, 7])
    point = scale * np.random.default_rng(0).normal(size=structure.n_parts)
    projected = structure.project(point)
    assert (projected.status == OK).all()
    for i, take in enumerate(structure.take):
        own = structure.parts_of([i])
        np.testing.assert_allclose(projected.z[own], capped_simplex(point[own], take), atol=1e-9)
        assert projected.z[own].sum() == pytest.approx(take, abs=1e-12)
        assert projected.value[i] == pytest.approx(0.5 * np.sum((projected.z[own] - point[own]) ** 2))


@pytest.mark.usefixtures("every_vector_length")
@settings(
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # the vector length is the same for all
)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-8, 0.2, 1.0, 20.0]), st.booleans())
def test_projection_onto_real_vertices_equals_the_interior_point_solver(seed, scale, whole):
    rng = np.random.default_rng(seed)
    outputs, heads = [], []
    for _ in range(rng.integers(1, 5)):
        size = rng.integers(1, 6)
        drawn = rng.normal(size=(rng.integers(1, 12), size))
        outputs.append(np.round(drawn) if whole else drawn)
        heads.append(rng.integers(0, size + 1))
    structure = Listed(outputs, heads)
    point = scale * rng.normal(size=structure.n_parts)
    projected = structure.project(point)
    assert (projected.status == OK).all()
    np.testing.assert_allclose(projected.z, reference.project(structure, point), atol=2e-6)
    residual = point - projected.z
    gap = structure.argmax(residual).value - structure.by_example(residual * projected.z)
    assert (gap <= 1e-12 * (1 + scale)).all()
    moved = point + 0.1 * rng.normal(size=structure.n_parts)
    warm = structure.project(moved, warm=projected.warm)
    np.testing.assert_allclose(warm.z, structure.project(moved).z, atol=1e-8)


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("transitions", ["shared", "each"])
def test_chains_by_argmax_alone_equal_their_kernels(transitions):
    chain = Chain([12, 0, 1, 7, 2], 5, transitions=transitions)
    rng = np.random.default_rng(1)
    scores = rng.normal(size=chain.n_parts)
    slow, fast = generic.project(chain, scores), chain.project(scores)
    np.testing.assert_allclose(slow.z, fast.z, atol=1e-10)
    np.testing.assert_allclose(slow.value, fast.value, rtol=1e-12)
    for one, two in zip(generic.k_best(chain, scores, 12), chain.k_best(scores, 12), strict=True):
        np.testing.assert_array_equal(one.z, two.z)
        np.testing.assert_array_equal(one.status, two.status)
        np.testing.assert_allclose(one.value, two.value, rtol=1e-12)


@pytest.mark.usefixtures("every_vector_length")
def test_projection_has_the_same_bits_for_any_number_of_threads():
    structure = TopK(np.arange(1, 30), np.arange(1, 30) // 2)
    point = np.random.default_rng(0).normal(size=structure.n_parts)
    results = []
    for n in (1, 2, 3):
        with maxmargin.threads(n):
            results.append(structure.project(point))
    assert all(points.z.tobytes() == results[0].z.tobytes() for points in results)
    assert all(points.value.tobytes() == results[0].value.tobytes() for points in results)


def test_warm_starts_save_calls_and_strangers_are_ignored():
    rng = np.random.default_rng(0)
    structure = Listed([rng.normal(size=(200, 12))], [5])
    point = 0.1 * rng.normal(size=structure.n_parts)
    cold = structure.project(point)
    calls, structure.calls = structure.calls, 0
    warm = structure.project(point, warm=cold.warm)
    assert structure.calls == 1 < calls
    np.testing.assert_allclose(warm.z, cold.z, atol=1e-12)
    stranger = Listed([rng.normal(size=(200, 12))], [5])
    ignored = stranger.project(point, warm=cold.warm)
    assert ignored.z.tobytes() == stranger.project(point).z.tobytes()
    assert structure.project(point, warm=object()).z.tobytes() == cold.z.tobytes()


def test_finished_examples_leave_the_batch():
    rng = np.random.default_rng(0)
    easy = [rng.normal(size=(1, 3)) for _ in range(30)]
    structure = Listed([*easy, rng.normal(size=(300, 20))], [0] * 31)
    structure.project(0.01 * rng.normal(size=structure.n_parts))
    assert structure.calls == 2


@pytest.mark.parametrize(("code", "expected"), [(INEXACT, INEXACT), (NONFINITE, NONFINITE), (ABSENT, ABSENT)])
def test_the_status_of_the_argmax_is_passed_on(code, expected):
    structure = Listed([np.eye(3), np.eye(2)], [3, 2])
    structure.code = code
    projected = structure.project(np.full(5, 0.2))
    assert (projected.status == expected).all()
    if code == INEXACT:
        np.testing.assert_allclose(projected.z, [1 / 3] * 3 + [1 / 2] * 2)
    else:
        assert not projected.z.any()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_bad_points_spoil_only_their_example(bad):
    structure = TopK([3, 4], [1, 2])
    point = np.random.default_rng(0).normal(size=7)
    clean = structure.project(point)
    point[1] = bad
    spoilt = structure.project(point)
    np.testing.assert_array_equal(spoilt.status, [NONFINITE, OK])
    assert not spoilt.z[:3].any()
    np.testing.assert_array_equal(spoilt.z[3:], clean.z[3:])


def test_degenerate_batches():
    none = TopK([], [])
    assert none.project(np.zeros(0)).z.shape == (0,)
    assert [points.z.shape for points in none.k_best(np.zeros(0), 3)] == [(0,)]
    blank = TopK([0, 2], [0, 1])
    np.testing.assert_allclose(blank.project(np.zeros(2)).z, [0.5, 0.5])
    first, second = blank.k_best(np.array([1.0, 2.0]), 3)
    np.testing.assert_array_equal(first.status, [OK, OK])
    np.testing.assert_array_equal(second.status, [ABSENT, OK])
    repeated = Listed([np.ones((4, 3))], [3])
    np.testing.assert_allclose(repeated.project(np.zeros(3)).z, 1.0)
    origin = Listed([np.zeros((2, 3))], [3])
    np.testing.assert_array_equal(origin.project(np.ones(3)).z, np.zeros(3))


@pytest.mark.usefixtures("every_vector_length")
def test_huge_points_and_far_vertices():
    rng = np.random.default_rng(0)
    structure = TopK([20], [7])
    far = 1e8 * rng.normal(size=20)
    np.testing.assert_allclose(structure.project(far).z, structure.argmax(far).z, atol=1e-6)
    vertices = Listed([1e6 * rng.normal(size=(30, 4))], [2])
    point = rng.normal(size=4)
    projected = vertices.project(point)
    assert projected.status[0] == OK
    np.testing.assert_allclose(projected.z, point, atol=1e-4)


def test_wrong_arguments_are_refused():
    structure = TopK([3], [1])
    with pytest.raises(ValueError, match="point must have shape"):
        structure.project(np.zeros(2))
    with pytest.raises(ValueError, match="scores must have shape"):
        structure.k_best(np.zeros(2), 1)
    with pytest.raises(ValueError, match="tol must be a finite number >= 0"):
        structure.project(np.zeros(3), tol=float("nan"))
    with pytest.raises(ValueError, match="k must be an integer >= 1"):
        structure.k_best(np.zeros(3), 0)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.sampled_from([1e-12, 1.0, 1e8]), st.booleans())
def test_k_best_equals_enumeration(seed, k, scale, tied):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, size=3)
    outputs = [subsets(n)[rng.random(2**n) < 0.7] for n in sizes]
    outputs = [v if len(v) else np.ones((1, n), dtype=int) for v, n in zip(outputs, sizes, strict=True)]
    structure = Listed(outputs, sizes)
    scores = scale * (rng.integers(-2, 3, size=structure.n_parts) if tied else rng.normal(size=structure.n_parts))
    ranks = structure.k_best(scores, k)
    assert len(ranks) == min(k, max(len(v) for v in outputs))
    for i, v in enumerate(outputs):
        own = structure.parts_of([i])
        expected = np.sort(v @ scores[own])[::-1][:k]
        found = np.array([points.value[i] for points in ranks])
        np.testing.assert_allclose(found[: len(expected)], expected, atol=1e-12 * scale)
        assert (found[len(expected) :] == -np.inf).all()
        absent = len(ranks) - len(expected)
        assert [points.status[i] for points in ranks] == [OK] * len(expected) + [ABSENT] * absent
        assert len({points.z[own].tobytes() for points in ranks[: len(expected)]}) == len(expected)


def test_k_best_with_forbidden_parts_and_small_batches(monkeypatch):
    structure = TopK([5, 4, 3], [2, 2, 3])
    scores = np.random.default_rng(0).normal(size=12)
    scores[[0, 5, 6, 7]] = -np.inf
    whole = structure.k_best(scores, 8)
    monkeypatch.setattr(generic, "MOST_PARTS", 1)
    for one, two in zip(whole, structure.k_best(scores, 8), strict=True):
        np.testing.assert_array_equal(one.z, two.z)
    np.testing.assert_array_equal([points.status[0] for points in whole], [OK] * 6)
    assert all(points.status[1] == ABSENT for points in whole)
    np.testing.assert_array_equal([points.status[2] for points in whole], [OK] + [ABSENT] * 5)


def test_k_best_of_chains_equals_enumeration_under_near_ties():
    chain = Chain([4, 3], 3)
    rng = np.random.default_rng(0)
    scores = 1e6 + 1e-6 * rng.normal(size=chain.n_parts)
    ranks = generic.k_best(chain, scores, 10)
    for i, outputs in enumerate(vertices(chain)):
        expected = np.sort(outputs @ scores[chain.parts_of([i])])[::-1][:10]
        np.testing.assert_allclose([points.value[i] for points in ranks], expected, rtol=0, atol=1e-7)


def test_kernels_check_what_they_are_given():
    hull = _kernels.HullBatch(np.array([2, 3]), 1e-8)
    offsets, point = np.array([[0, 2, 5]]), np.zeros(5)
    with pytest.raises(ValueError, match="span"):
        hull.begin(offsets, np.zeros(4), np.zeros(4), 1)
    with pytest.raises(ValueError, match="do not fit the batch"):
        hull.begin(np.array([[0, 1, 5]]), point, np.zeros(5), 1)
    twice, codes, done = np.array([0, 0]), np.zeros(2, dtype=np.int8), np.zeros(2, dtype=bool)
    begun = _kernels.HullBatch(np.array([2, 3]), 1e-8)
    begun.begin(offsets, point, np.zeros(5), 1)
    with pytest.raises(ValueError, match="distinct"):
        begun.absorb(np.array([[0, 2, 4]]), twice, np.zeros(4), np.zeros(4), codes, np.zeros(4), done, 1)
    ends, weights = np.array([0, 1, 1]), np.ones(1)
    for index, value in ((2, 1.0), (-1, 1.0), (0, np.nan)):
        with pytest.raises(ValueError, match="does not fit its example"):
            hull.load(ends, weights, np.array([0, 1]), np.array([index], dtype=np.int32), np.array([value]))
    with pytest.raises(ValueError, match="negative"):
        hull.load(ends, -weights, np.array([0, 1]), np.zeros(1, dtype=np.int32), np.ones(1))
    z, value, status = np.zeros(8), np.zeros(1), np.zeros(1, dtype=np.int8)
    for nodes, pairs in (([0, 3], [3, 7]), ([0, 4], [4, 7]), ([0, 4], [3, 8]), ([0, 4], [4])):
        with pytest.raises(ValueError, match=r"must|do not"):
            _kernels.chain_argmax(np.array(nodes), np.array(pairs), 2, True, np.zeros(8), z, value, status, 1)

"""Quadratic programs over simplexes and orthants, and the masters built on them, against Clarabel and by optimality."""

from dataclasses import replace
from itertools import pairwise

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.reference import conic

from maxmargin import _kernels
from maxmargin.regions import L1, L2
from maxmargin.solvers.reference.conic import minimize
from maxmargin.structures.base import PointStatus

OK, INEXACT, NONFINITE = (int(s) for s in (PointStatus.OK, PointStatus.INEXACT, PointStatus.NONFINITE))
NO_SIGNS = np.zeros(0, dtype=np.bool_)


def reference(h, linear, offsets, cone):
    """The optimal value by Clarabel."""
    m = len(linear)
    rows, rhs, cones = [-sp.eye_array(m)], [np.zeros(m)], [clarabel.NonnegativeConeT(m)]
    if not cone:
        n = len(offsets) - 1
        sums = sp.csr_array((np.ones(m), (np.repeat(np.arange(n), np.diff(offsets)), np.arange(m))), shape=(n, m))
        rows, rhs, cones = [sums, *rows], [np.ones(n), *rhs], [clarabel.ZeroConeT(n), *cones]
    return conic(h, linear, sp.vstack(rows), np.concatenate(rhs), cones, tol=1e-12)[1]


def newton(h, linear, offsets, cone=False, q=None, tol=1e-12, limit=200):
    offsets = np.asarray(offsets, dtype=np.int64)
    if q is None:
        q = np.zeros(len(linear))
        if not cone and len(linear):
            q[offsets[:-1]] = 1.0
    status, gap = _kernels.simplex_newton(h, linear, offsets, cone, q, tol, limit)
    return status, gap, q


@st.composite
def programs(draw):
    """Gram matrices of any rank, with points that come twice."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    m = sum(sizes)
    rows = rng.normal(size=(m, draw(st.integers(1, 8)))) * draw(st.sampled_from([1e-3, 1.0, 1e2]))
    linear = rng.normal(size=m)
    if m > 2 and draw(st.booleans()):
        rows[-1], linear[-1] = rows[0], linear[0]
    if draw(st.booleans()):
        rows[rng.integers(m)] = 0.0
    return rows, linear, np.cumsum([0, *sizes])


@settings(max_examples=150, deadline=None, derandomize=True)
@given(programs(), st.booleans())
def test_newton_finds_the_minimum(program, cone):
    rows, linear, offsets = program
    h = rows @ rows.T + (0.1 * np.eye(len(linear)) if cone else 0.0)
    status, _, q = newton(h, linear, offsets, cone, tol=0.0 if cone else 1e-12)
    value = 0.5 * q @ h @ q + linear @ q
    best = reference(h, linear, offsets, cone)
    assert status in (OK, INEXACT)
    assert (q >= 0.0).all()
    if not cone:
        np.testing.assert_allclose(np.add.reduceat(q, offsets[:-1]), 1.0, atol=1e-12)
    assert value <= best + 1e-8 * (1.0 + abs(best))


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e8])
def test_newton_at_all_scales_and_sizes(size):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 40)) * size
    h, linear = rows @ rows.T, rng.normal(size=300) * size * size
    offsets = np.arange(0, 301, 10)
    status, gap, q = newton(h, linear, offsets, tol=1e-10 * size * size)
    assert status == OK
    p = (h @ q + linear) / size**2
    slack = sum((p[a:b] - p[a:b].min()) @ q[a:b] for a, b in pairwise(offsets))
    assert slack <= 1e-9
    assert gap <= 1e-10 * size * size


def test_degenerate_programs():
    assert newton(np.zeros((0, 0)), np.zeros(0), [0])[0] == OK
    assert newton(np.zeros((1, 1)), np.ones(1), [0, 1])[2] == [1.0]
    status, _, q = newton(np.zeros((3, 3)), np.zeros(3), [0, 3])  # all equal: any point will do
    assert status == OK
    assert q.sum() == 1.0
    status, _, q = newton(np.zeros((4, 4)), np.array([3.0, 1.0, 2.0, 1.0]), [0, 4])  # linear: a vertex
    assert status == OK
    assert q @ [3.0, 1.0, 2.0, 1.0] == pytest.approx(1.0, abs=1e-12)
    assert newton(np.eye(2), np.ones(2), [0, 2], cone=True)[2].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite(bad):
    for m in (2, 4):
        status, _, q = newton(np.eye(m), np.array([bad, *np.zeros(m - 1)]), [0, m])
        assert status == NONFINITE
        assert not q.any()


def test_the_limit_leaves_a_feasible_point():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(40, 30))
    status, _, q = newton(rows @ rows.T, rng.normal(size=40), [0, 20, 40], limit=1, tol=0.0)
    assert status == INEXACT
    assert (q >= 0.0).all()
    np.testing.assert_allclose([q[:20].sum(), q[20:].sum()], 1.0)


def test_bindings_check_what_they_are_given():
    with pytest.raises(ValueError, match="do not fit"):
        _kernels.simplex_newton(np.eye(2), np.ones(3), np.array([0, 3]), False, np.ones(3), 0.0, 1)
    with pytest.raises(ValueError, match="every block must have a point"):
        newton(np.eye(2), np.ones(2), [0, 0, 2], q=np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match="mask"):
        _kernels.Masters(1, 3, 0, 1.0, np.inf, np.ones(2, dtype=np.bool_), False)
    with pytest.raises(ValueError, match="C must be finite"):
        _kernels.Masters(1, 3, 0, np.inf, 1.0, NO_SIGNS, False)
    masters = _kernels.Masters(2, 3, 0, 1.0, np.inf, NO_SIGNS, False)
    with pytest.raises(ValueError, match="outside the weights"):
        put(masters, [0], sp.csr_array([[0.0, 0.0, 0.0, 1.0]]), [1.0])
    with pytest.raises(ValueError, match="distinct"):
        put(masters, [1, 1], sp.csr_array(np.ones((2, 3))), [1.0, 1.0])
    with pytest.raises(ValueError, match="distinct"):
        masters.sweep(np.array([2]), 0.0, np.zeros(1))


def put(masters, blocks, rows, loss, limit=0):
    rows = sp.csr_array(rows)
    added = np.zeros(len(blocks), dtype=np.bool_)
    masters.add(
        np.array(blocks, dtype=np.int64),
        np.arange(len(blocks)),
        rows.indptr.astype(np.int64),
        rows.indices.astype(np.int32),
        rows.data.astype(np.float64),
        np.ones(len(blocks)),
        np.array(loss, dtype=np.float64),
        limit,
        added,
    )
    return added


class Random:
    """Random points in blocks, in a kernel's master and as a dense program."""

    def __init__(self, seed, *, n_blocks=4, points=5, n=6, signs=False, radius=np.inf, cone=False, C=0.7):
        rng = np.random.default_rng(seed)
        mask = np.arange(n) % 2 == 0 if signs else NO_SIGNS
        self.mask, self.radius, self.cone, self.C, self.n, self.n_blocks = mask, radius, cone, C, n, n_blocks
        self.kernel = _kernels.Masters(n_blocks, n, n_blocks if cone else 0, C, radius, mask, cone)
        self.rows = np.zeros((0, n + (n_blocks if cone else 0)))
        self.loss, self.owner = np.zeros(0), np.zeros(0, dtype=int)
        if not cone:
            self.keep(range(n_blocks), np.zeros((n_blocks, n)), np.zeros(n_blocks))
        for _ in range(points):
            rows = rng.normal(size=(n_blocks, n)) * (rng.random(size=(n_blocks, n)) < 0.6)
            if cone:
                rows = np.hstack([rows, np.eye(n_blocks) / np.sqrt(C)])
            loss = rng.random(n_blocks) * 2.0
            assert put(self.kernel, range(n_blocks), rows, loss).all()
            self.keep(range(n_blocks), rows, loss)
        self.blocks = np.arange(n_blocks)

    def keep(self, blocks, rows, loss):
        self.rows = np.vstack([self.rows, rows])
        self.loss, self.owner = np.append(self.loss, loss), np.append(self.owner, list(blocks))

    def g(self):
        out = np.empty(self.rows.shape[1])
        self.kernel.g(out)
        return out

    def response(self, g):
        u = -g[: self.n]
        if len(self.mask):
            u = np.where(self.mask, np.maximum(u, 0.0), u)
        w = self.C * u
        length = np.linalg.norm(w)
        return w * (self.radius / length) if length > self.radius else w

    def dual(self):
        g, active_set = self.g(), self.g()[self.n :]
        w = self.response(g)
        value = w @ g[: self.n] + 0.5 / self.C * w @ w
        return self.kernel.loss() + value - 0.5 * self.C * active_set @ active_set

    def optimum(self):
        """``min_w 1/(2C) ||w||^2 + sum of the blocks' hinges`` by Clarabel, with slacks."""
        n, k, m = self.n, self.n_blocks, len(self.loss)
        quadratic = sp.diags_array(np.append(np.full(n, 1 / self.C), np.full(k, 1.0 if self.cone else 0.0)))
        linear = np.append(np.zeros(n), np.zeros(k) if self.cone else np.ones(k))
        slack = sp.csr_array((np.ones(m), (np.arange(m), self.owner)), shape=(m, k))
        rows, rhs = [sp.hstack([sp.csr_array(self.rows[:, :n]), -slack])], [-self.loss]
        rows.append(sp.hstack([sp.csr_array((k, n)), -sp.eye_array(k)]))
        rhs.append(np.zeros(k))
        if len(self.mask):
            signed = np.flatnonzero(self.mask)
            rows.append(-sp.eye_array(n + k, format="csr")[signed])
            rhs.append(np.zeros(len(signed)))
        cones = [clarabel.NonnegativeConeT(sum(block.shape[0] for block in rows))]
        if np.isfinite(self.radius):
            rows.append(sp.vstack([sp.csr_array((1, n + k)), -sp.eye_array(n + k, format="csr")[:n]]))
            rhs.append(np.append(self.radius, np.zeros(n)))
            cones.append(clarabel.SecondOrderConeT(n + 1))
        return conic(quadratic, linear, sp.vstack(rows), np.concatenate(rhs), cones, tol=1e-12)[1]


SHAPES = {
    "plain": {},
    "signs": {"signs": True},
    "ball": {"radius": 0.6},
    "signs and ball": {"signs": True, "radius": 0.6},
    "cone": {"cone": True},
    "cone, signs": {"cone": True, "signs": True},
    "cone, signs and ball": {"cone": True, "signs": True, "radius": 0.6},
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(6))
def test_joint_masters_equal_clarabel(shape, seed):
    case = Random(seed, **SHAPES[shape])
    status, gap, _ = case.kernel.joint(case.blocks, 1e-11, 200)
    optimum = case.optimum()
    assert status == OK or gap < 1e-7  # rounding may end it early
    assert case.dual() == pytest.approx(optimum, abs=1e-8)
    case.kernel.settle(0)
    assert case.dual() == pytest.approx(optimum, abs=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_sweeps_never_lower_the_dual_and_reach_the_optimum(shape, seed):
    case = Random(seed, **SHAPES[shape])
    before, gaps = case.dual(), np.empty(case.n_blocks)
    for _ in range(600):
        status, gap, _ = case.kernel.sweep(case.blocks, 0.0, gaps)
        after = case.dual()
        assert status == OK
        assert after >= before - 1e-12 * (1 + abs(before))
        before = after
        if gap < 1e-12:
            break
    assert before == pytest.approx(case.optimum(), abs=1e-6)


def test_blocks_that_are_not_chosen_stay():
    case = Random(1)
    case.kernel.joint(np.array([0, 2]), 1e-12, 100)
    out = np.empty(6)
    case.kernel.weights(1, out)
    np.testing.assert_array_equal(out, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    case.kernel.weights(2, out)
    assert out.sum() == pytest.approx(1.0)


def test_points_come_once_and_go_when_old():
    case = Random(0, n_blocks=1, points=3)
    assert not put(case.kernel, [0], case.rows[1:2], case.loss[1:2]).any()
    case.kernel.joint(case.blocks, 1e-12, 100)
    weights = np.empty(4)
    case.kernel.weights(0, weights)
    dual = case.dual()
    case.kernel.settle(1)
    kept = [True, *(weights[1:] > 0.0)]  # the gold output stays
    assert case.kernel.n_points() == sum(kept)
    assert case.dual() == pytest.approx(dual, abs=1e-12)


def test_a_limit_keeps_the_iterate():
    case = Random(4, n_blocks=2, points=4, n=5)
    case.kernel.joint(case.blocks, 1e-12, 100)
    dual, rng = case.dual(), np.random.default_rng(0)
    for _ in range(6):
        put(case.kernel, [0, 1], rng.normal(size=(2, 5)), [1.0, 1.0], limit=2)
        assert case.dual() == pytest.approx(dual, abs=1e-12)
        case.kernel.joint(case.blocks, 1e-12, 100)
        assert case.dual() >= dual - 1e-12
        dual = case.dual()
    sizes = np.empty(2, dtype=np.int64)
    case.kernel.sizes(sizes)
    assert (sizes <= 5).all()


def test_values_have_the_same_bits_for_any_number_of_threads():
    case = Random(2, n_blocks=100, n=20)
    w = np.random.default_rng(0).normal(size=20)
    results = []
    for threads in (1, 2, 3):
        results.append([np.empty(100) for _ in range(2)])
        case.kernel.values(w, *results[-1], threads)
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)
    values = case.rows[:, :20] @ w + case.loss
    np.testing.assert_allclose(results[0][0], [max(0.0, values[case.owner == b].max()) for b in range(100)])


@pytest.mark.parametrize("shape", SHAPES)
def test_restored_masters_continue_with_the_same_bits(shape):
    case, again = Random(5, **SHAPES[shape]), Random(5, points=0, **SHAPES[shape])
    case.kernel.joint(case.blocks, 1e-8, 100)
    case.kernel.settle(2)
    again.kernel.restore(*case.kernel.state())
    rows, loss = np.random.default_rng(0).normal(size=(2, case.rows.shape[1])), [0.5, 2.0]
    for one in (case, again):
        assert put(one.kernel, [0, 3], rows, loss).all()
        one.kernel.joint(one.blocks, 1e-11, 100)
    for one, two in zip(case.kernel.state(), again.kernel.state(), strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(case.g(), again.g())


def test_masters_without_blocks_or_points():
    empty = _kernels.Masters(0, 3, 0, 1.0, np.inf, NO_SIGNS, False)
    assert empty.joint(np.zeros(0, dtype=np.int64), 0.0, 5)[0] == OK
    assert empty.sweep(np.zeros(0, dtype=np.int64), 0.0, np.zeros(0))[0] == OK
    bare = _kernels.Masters(2, 3, 2, 1.0, np.inf, NO_SIGNS, True)
    assert bare.joint(np.arange(2), 0.0, 5)[0] == OK
    assert bare.sweep(np.arange(2), 0.0, np.zeros(2))[0] == OK


@pytest.mark.parametrize("cone", [False, True])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_masters_say_when_numbers_are_not_finite(bad, cone):
    for method in ("joint", "sweep"):
        masters = _kernels.Masters(1, 2, 1 if cone else 0, 1.0, np.inf, NO_SIGNS, cone)
        rows = np.eye(3, 3 if cone else 2)
        for row, loss in zip(rows, [1.0, bad, 1.0], strict=True):
            put(masters, [0], row[None] + 0.5, [loss])
        last = (0.0, 5) if method == "joint" else (0.0, np.zeros(1))
        assert getattr(masters, method)(np.zeros(1, dtype=np.int64), *last)[0] == NONFINITE


PROXIMAL = {
    "L2 ball": (L2(radius=0.8), {}),
    "L2 ball and ridge": (L2(radius=0.8, C=2.0), {}),
    "L1 penalty": (L1(C=4.0), {"price": 0.25}),
    "L1 ball": (L1(radius=0.9), {"l1_radius": 0.9}),
    "L1 ball and penalty": (L1(radius=0.9, C=4.0), {"price": 0.25, "l1_radius": 0.9}),
}


@pytest.mark.parametrize("cone", [False, True])
@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.parametrize("name", PROXIMAL)
def test_proximal_masters(name, signs, cone):
    """The best response is the region's proximal step, and Newton steps and sweeps find the same solution."""
    rng, n, n_blocks, reach = np.random.default_rng(3), 6, 4, 0.6
    region, norms = PROXIMAL[name]
    mask = np.arange(n) % 2 == 0
    region = replace(region, nonnegative=mask if signs else None)
    radius, ridge_c = (np.inf, np.inf) if region.lasso else (region.radius, region.C)
    center, found = region.project(rng.normal(size=n)), []
    points = [(rng.normal(size=(n_blocks, n)), 2.0 * rng.random(n_blocks)) for _ in range(5)]
    for method in ("joint", "sweep"):
        masters = _kernels.Masters(
            n_blocks, n, n_blocks if cone else 0, 1.0, radius, mask if signs else NO_SIGNS, cone, **norms
        )
        for rows, loss in points:
            put(masters, range(n_blocks), np.hstack([rows, np.eye(n_blocks)]) if cone else rows, loss)
        masters.recenter(center, reach, ridge_c)
        for _ in range(1 if method == "joint" else 3000):
            last = (1e-11, 200) if method == "joint" else (0.0, np.empty(n_blocks))
            status, gap, _ = getattr(masters, method)(np.arange(n_blocks), *last)
        assert status == OK
        assert gap <= 1e-8
        masters.settle(0)
        g, w = np.empty(n + (n_blocks if cone else 0)), np.empty(n)
        masters.g(g)
        masters.response(w)
        np.testing.assert_allclose(w, region.prox(center - reach * g[:n], reach), atol=1e-12)
        found.append(w)
        # Without the force of the term the weights are a best response of the region itself, or the points say no.
        where, out = np.arange(n), np.empty(len(g))
        wanted = g[:n] + (w - center) / reach
        loss = masters.release(where, wanted, out)
        released = region.dual(out[:n], loss, float((out[n:] ** 2).sum()))
        exact = _optimum(points, region, cone)
        assert released <= exact + 1e-6
    np.testing.assert_allclose(found[0], found[1], atol=1e-4)


def _optimum(points, region, cone):
    """The optimum of the problem over the points alone, by the interior-point method."""
    n, m = points[0][0].shape[1], len(points[0][1])
    rows = np.vstack([np.hstack([one, -np.eye(m)]) for one, _ in points] + [np.hstack([np.zeros((m, n)), -np.eye(m)])])
    rhs = np.concatenate([-loss for _, loss in points] + [np.zeros(m)])
    linear = np.append(np.zeros(n), np.zeros(m) if cone else np.ones(m))
    w, _ = minimize(region, linear, np.full(m, float(cone)), sp.csr_array(rows), rhs, 1e-9)
    slack = np.maximum(np.max([one @ w + loss for one, loss in points], axis=0), 0.0)
    return region.penalty(w) + float((0.5 * slack**2 if cone else slack).sum())

"""The weights player's region against brute numerical optimization."""

from __future__ import annotations

from dataclasses import dataclass, replace

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.reference import conic
from problems import make

import maxmargin as mm
from maxmargin.regions import L1, L2, ConicForm, Region
from maxmargin.solvers import Status, Stop, solve

SIZE = 4
SETTINGS = [
    (C, radius, signs)
    for C in (np.inf, 0.3, 5.0)
    for radius in (np.inf, 0.7, 4.0)
    for signs in (None, (True, False, True, False), (True,) * 4, (False,) * 4)
]
combined = pytest.mark.parametrize(("C", "radius", "signs"), SETTINGS)
vectors = st.lists(st.floats(-4, 4).map(lambda x: round(x, 3)), min_size=SIZE, max_size=SIZE).map(np.array)


def region_of(C, radius, signs) -> L2:
    return L2(C=C, radius=radius, nonnegative=None if signs is None else np.array(signs))


def brute(region: L2, linear: np.ndarray, curvature: float) -> tuple[np.ndarray, float]:
    """``min_{w in W} linear'w + curvature/2 ||w||^2`` by an interior-point method."""
    signed = np.flatnonzero(region.nonnegative) if region.nonnegative is not None else np.zeros(0, dtype=int)
    rows = [sp.csr_array((-np.ones(len(signed)), (np.arange(len(signed)), signed)), shape=(len(signed), SIZE))]
    rhs, cones = [np.zeros(len(signed))], [clarabel.NonnegativeConeT(len(signed))]
    if np.isfinite(region.radius):
        rows.append(sp.vstack([sp.csr_array((1, SIZE)), -sp.eye_array(SIZE)]))
        rhs.append(np.concatenate([[region.radius], np.zeros(SIZE)]))
        cones.append(clarabel.SecondOrderConeT(SIZE + 1))
    w, _ = conic(curvature * np.eye(SIZE), linear, sp.vstack(rows), np.concatenate(rhs), cones, tol=1e-12)
    return w, float(linear @ w + 0.5 * curvature * w @ w)


def inside(region: L2, w: np.ndarray) -> bool:
    signs_hold = region.nonnegative is None or bool((w[region.nonnegative] >= 0).all())
    return signs_hold and np.linalg.norm(w) <= region.radius * (1 + 1e-12)


@combined
def test_projection_and_prox_are_the_nearest_points(C, radius, signs):
    region = region_of(C, radius, signs)
    rng = np.random.default_rng(1)
    for scale, step in ((0.3, 0.5), (1.0, 0.1), (5.0, 3.0)):
        a = scale * rng.standard_normal(SIZE)
        kept = a.copy()
        found, shrunk = region.project(a), region.prox(a, step)
        assert np.array_equal(a, kept)
        assert inside(region, found)
        assert inside(region, shrunk)
        np.testing.assert_allclose(found, brute(region, -a, 1.0)[0], atol=2e-5)
        np.testing.assert_allclose(shrunk, brute(region, -a / step, region.curvature + 1 / step)[0], atol=2e-5)


@combined
@settings(max_examples=15)
@given(a=vectors, b=vectors)
def test_projection_satisfies_its_variational_inequality(C, radius, signs, a, b):
    region = region_of(C, radius, signs)
    p, v = region.project(a), region.project(b)
    assert (a - p) @ (v - p) <= 1e-9
    np.testing.assert_allclose(region.project(p), p, atol=1e-12)


@combined
def test_best_response_attains_the_minimum(C, radius, signs):
    region = region_of(C, radius, signs)
    rng = np.random.default_rng(2)
    for scale in (0.01, 1.0, 5.0):
        g = scale * rng.standard_normal(SIZE)
        best = region.best_response(g)
        if not region.certifies:
            assert best is None
            continue
        if best is None:  # nothing pulls: the minimum is 0 and w = 0 one of many that attain it
            assert np.isinf(C)
            assert not region._reduced(g).any()
            continue
        assert inside(region, best)
        value = float(best @ g) + region.penalty(best)
        assert value == pytest.approx(brute(region, g, region.curvature)[1], abs=1e-7)


@combined
@settings(max_examples=15)
@given(g=vectors, loss=st.floats(-2, 10))
def test_dual_is_the_best_mixture_with_the_gold_output(C, radius, signs, g, loss):
    region = region_of(C, radius, signs)
    found = region.dual(g, loss)

    def at(theta: float) -> float:
        response = region.best_response(theta * g)
        if response is not None:
            return theta * loss + theta * float(response @ g) + region.penalty(response)
        return -np.inf if region._reduced(theta * g).any() else theta * loss

    grid = max(at(theta) for theta in np.linspace(0.0, 1.0, 101))
    assert found >= grid - 1e-9 * (1 + abs(grid))
    # Between two grid points the concave function gains at most its largest slope times half their distance.
    slope = abs(loss) + float(np.linalg.norm(g)) * min(region.radius, region.C * float(np.linalg.norm(g)) + 1e-12)
    assert found <= grid + (slope / 100 if region.certifies else 1e-9) + 1e-9


@pytest.mark.parametrize(("C", "radius"), [(0.5, 1.0), (2.0, 0.4), (1.0, np.inf), (np.inf, 0.8)])
def test_dual_without_mixing_equals_the_brute_minimum(C, radius):
    region = L2(C=C, radius=radius, nonnegative=np.array([True, True, False, False]))
    g = np.array([0.3, -0.2, 0.5, -0.1])
    loss = 50.0  # large enough that theta = 1 is best
    expected = loss + brute(region, g, region.curvature)[1]
    assert region.dual(g, loss) == pytest.approx(expected, abs=1e-8)


def test_dual_bounds_every_objective_and_is_never_negative():
    region = L2(C=1.0, radius=2.0)
    assert region.dual(np.ones(3), -1.0) == 0.0
    assert region.dual(np.zeros(3), 4.0) == 4.0
    assert L2().dual(np.ones(3), 4.0) == 0.0
    assert L2().dual(np.zeros(3), 4.0) == 4.0
    assert L2(C=1e-300).dual(np.full(3, 1e-200), 1.0) == pytest.approx(1.0)
    assert L2(C=1e300).dual(np.full(3, 1e10), 1.0) >= 0.0


def test_facts_of_a_region():
    assert not L2().certifies
    assert L2(C=2).certifies
    assert L2(radius=np.float32(2)).certifies
    assert L2(C=4).curvature == 0.25
    assert L2().penalty(np.ones(3)) == 0.0
    assert L2(C=2).penalty(np.array([3.0, 4.0])) == 6.25
    assert L2(C=2.0, radius=9.0).norm_bound(4.0) == 4.0
    assert L2(C=2.0, radius=3.0).norm_bound(4.0) == 3.0
    assert L2().norm_bound(4.0) == np.inf
    assert L2(C=2.0).norm_bound(-1.0) == 0.0


@pytest.mark.parametrize("name", ["C", "radius"])
@pytest.mark.parametrize("value", [-1.0, 0, 0.0, np.nan, -np.inf, True, np.True_, "1", None, [1.0], 1j])
def test_refused_settings(name, value):
    with pytest.raises(ValueError, match=f"{name} must be a number > 0 or infinity"):
        L2(**{name: value})


@pytest.mark.parametrize("mask", [[0, 2], [1.0, 0.0], "ab", [[True]], True])
def test_refused_masks(mask):
    with pytest.raises(ValueError, match="boolean mask"):
        L2(nonnegative=mask)


def test_mask_of_another_length():
    region = L2(nonnegative=[True, False])
    assert region.unsupported(2) is None
    assert "shape (3,)" in region.unsupported(3)


# --- regions of the user's own --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ElasticNet(Region):
    """``1/(2C) ||w||^2 + price ||w||_1``, written as a user would."""

    C: float
    price: float
    nonnegative = None
    smooth = False  # type: ignore[assignment]
    sparse = certifies = strongly_convex = True  # type: ignore[assignment]

    @property
    def curvature(self):
        return 1.0 / self.C

    def metadata(self):
        return {"norm": "elastic net", "C": self.C}

    def project(self, weights):
        return weights

    def penalty(self, weights):
        return 0.5 * self.curvature * float(weights @ weights) + self.price * float(np.abs(weights).sum())

    def prox(self, weights, step):
        shrunk = np.maximum(np.abs(weights) - step * self.price, 0.0) / (1.0 + step * self.curvature)
        return np.copysign(shrunk, weights)

    def best_response(self, g):
        return self.C * np.copysign(np.maximum(np.abs(g) - self.price, 0.0), -g)

    def dual(self, g, loss, squares=0.0):
        thetas = np.linspace(0.0, 1.0, 21)
        w = [self.best_response(theta * g) for theta in thetas]
        values = [t * (loss + v @ g) - 0.5 * t * t * squares + self.penalty(v) for t, v in zip(thetas, w, strict=True)]
        return float(max(values))

    def norm_bound(self, hinge_at_zero):
        return float(np.sqrt(2.0 * self.C * hinge_at_zero))

    def conic_form(self, n_weights):
        one = sp.eye_array(n_weights, format="csr")
        rows = sp.csr_array(sp.vstack([sp.hstack([one, -one]), sp.hstack([-one, -one])]))
        return ConicForm(self.curvature, np.full(n_weights, self.price), rows, np.zeros(2 * n_weights))


class Borrowed(Region):
    """A region that is not an L2 but offers the same capabilities."""

    def __init__(self, inner: L2) -> None:
        self.inner = inner
        self.nonnegative = inner.nonnegative

    ridge = property(lambda self: self.inner.ridge)
    curvature = property(lambda self: self.inner.curvature)  # type: ignore[assignment]
    certifies = True  # type: ignore[assignment]

    def metadata(self):
        return {}

    def project(self, weights):
        return self.inner.project(weights)

    def penalty(self, weights):
        return self.inner.penalty(weights)

    def prox(self, weights, step):
        return self.inner.prox(weights, step)

    def dual(self, g, loss, squares=0.0):
        return self.inner.dual(g, loss, squares)

    def best_response(self, g):
        return self.inner.best_response(g)

    def norm_bound(self, hinge_at_zero):
        return self.inner.norm_bound(hinge_at_zero)


@pytest.mark.parametrize(
    ("solver", "tol"),
    [(mm.ExponentiatedGradient(), 1e-3), (mm.Extragradient(), 1e-2), (mm.ProjectedSubgradient(), 3e-2)],
    ids=["exponentiated gradient", "extragradient", "projected subgradient"],
)
def test_a_penalty_of_your_own(solver, tol):
    problem = replace(make("chain", n=6), region=ElasticNet(0.5, 0.3))
    exact = solve(problem, mm.Exact(), stop=Stop(tol=1e-5))
    assert exact.status is Status.CONVERGED
    assert 0 < (exact.weights == 0.0).sum() < problem.n_weights
    assert exact.certificate.primal > solve(replace(problem, region=L2(C=0.5)), mm.Exact()).certificate.primal
    solution = solve(problem, solver, stop=Stop(tol=tol, max_iter=5000), random_state=0)
    assert solution.status is Status.CONVERGED
    assert solution.certificate.dual <= exact.certificate.primal * (1 + 1e-8)
    assert solution.certificate.primal == pytest.approx(exact.certificate.primal, rel=tol)


@pytest.mark.parametrize(
    "solver",
    [mm.BlockFrankWolfe(), mm.SimplicialDecomposition(), mm.CuttingPlane(), mm.Subgradient(), mm.DualExtragradient()],
    ids=lambda solver: type(solver).__name__,
)
def test_a_region_that_offers_a_ridge_is_as_good_as_an_l2_region(solver):
    problem = make("matching", n=5)
    stop = Stop(tol=1e-2, max_iter=2000)
    known = solve(problem, solver, stop=stop, random_state=0)
    own = solve(replace(problem, region=Borrowed(problem.region)), solver, stop=stop, random_state=0)
    np.testing.assert_array_equal(own.weights, known.weights)


@pytest.mark.parametrize(
    ("solver", "region", "message"),
    [
        (
            mm.BlockFrankWolfe(),
            ElasticNet(0.5, 0.3),
            "a ridge penalty, .* ElasticNet does not offer .* Extragradient$",
        ),
        (mm.ColumnGeneration(), ElasticNet(0.5, 0.3), "needs sums of absolute weights, .* use Extragradient$"),
        (mm.DualExtragradient(), ElasticNet(0.5, 0.3), "needs a penalty with the gradient .* use Extragradient$"),
        (
            mm.ExponentiatedGradient(),
            L1(C=1.0),
            "needs a strongly convex penalty, .* use ColumnGeneration or SimplicialDecomposition$",
        ),
        (mm.Exact(), Borrowed(L2(C=1.0)), "needs a conic form of the penalty, .* use SimplicialDecomposition"),
    ],
)
def test_a_missing_capability_is_named(solver, region, message):
    with pytest.raises(ValueError, match=message):
        solve(replace(make("chain"), region=region), solver)

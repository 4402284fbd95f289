import numpy as np
import pytest
from sequences import MODES

from maxmargin.structures.base import PointStatus
from maxmargin.structures.chains.chain import Chain

OK, INEXACT, NONFINITE, ABSENT = PointStatus.OK, PointStatus.INEXACT, PointStatus.NONFINITE, PointStatus.ABSENT


@pytest.mark.parametrize("transitions", MODES)
def test_projection_of_points_of_the_polytope(transitions):
    chain = Chain([5, 1, 8], 4, transitions=transitions)
    rng = np.random.default_rng(0)
    drawn = [chain.encode([rng.integers(0, 4, size=n) for n in chain.lengths]).dense() for _ in range(6)]
    for point in (drawn[0], np.mean(drawn, axis=0), 0.999 * drawn[0] + 0.001 * drawn[1]):
        projected = chain.project(point)
        assert (projected.status == OK).all()
        np.testing.assert_allclose(projected.z, point, atol=1e-10)


def test_projection_at_a_loose_tolerance_is_feasible_and_close():
    chain = Chain([20, 15], 8)
    point = np.random.default_rng(0).normal(size=chain.n_parts)
    exact = chain.project(point).z
    rough = chain.project(point, tol=0.1)
    assert np.abs(chain.by_example((rough.z - exact) ** 2)).max() <= 0.1**2
    assert len(rough.warm.arrays[1]) < len(chain.project(point).warm.arrays[1])


def test_warm_starts_that_do_not_fit_are_ignored():
    chain = Chain([3, 4], 3)
    point = np.random.default_rng(0).normal(size=chain.n_parts)
    expected = chain.project(point)
    others = [Chain([4, 3], 3), Chain([3], 3), Chain([3, 4], 3, transitions="each"), Chain([3, 4], 4)]
    strange = [other.project(np.zeros(other.n_parts)).warm for other in others]
    for warm in [*strange, "something", np.zeros(3)]:
        assert chain.project(point, warm=warm).z.tobytes() == expected.z.tobytes()
    same = Chain([3, 4], 3).project(point).warm
    np.testing.assert_allclose(chain.project(point, warm=same).z, expected.z, atol=1e-12)


def test_illegal_transitions_are_refused():
    with pytest.raises(ValueError, match="transitions must be"):
        Chain([1], 2, transitions="some")

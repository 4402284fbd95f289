"""``ProjectedGradient.plain()`` is eq. (16) of Taskar, Lacoste-Julien and Jordan (2005), to the letter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from games import KINDS, by_example, game, iterates, project_z

import maxmargin as mm
from maxmargin.optimization.run import Run


def twin(examples: list[Any], gamma: float, nonnegative: Any, eta: float, iterations: int) -> list[Any]:
    """Both players' points and averages after each iteration in the ball ||w|| <= gamma."""

    def project_w(w: Any) -> Any:
        w = np.where(nonnegative, np.maximum(w, 0.0), w)
        return w * min(1.0, gamma / max(np.linalg.norm(w), 1e-300))

    w, z = np.zeros(len(examples[0][0])), [y for _, _, y, _ in examples]
    points = [(w, *z)]
    path = []
    for _ in range(iterations):
        gradient = sum(F @ z_i - F @ y for (F, _, y, _), z_i in zip(examples, z, strict=True))
        z = [project_z(z_i + eta * (F.T @ w + c), V) for (F, c, _, V), z_i in zip(examples, z, strict=True)]
        w = project_w(w - eta * gradient)
        points.append((w, *z))
        path.append((w, z, [np.mean(player, axis=0) for player in zip(*points, strict=True)]))
    return path


@pytest.mark.parametrize("radius", [0.3, 2.0, np.inf])
@pytest.mark.parametrize("kind", KINDS)
def test_iterates_are_those_of_the_report(kind: str, radius: float) -> None:
    problem, examples = game(kind, seed=4, radius=radius)
    signs = False if problem.region.nonnegative is None else problem.region.nonnegative
    largest = np.linalg.norm(np.hstack([F for F, *_ in examples]), 2)
    assert largest <= problem.norm <= 1.003 * largest  # by Lanczos iteration, rounded up
    tol = 1e-10
    for solver in (mm.ProjectedGradient.plain(), mm.ProjectedGradient.plain(step_size=0.1)):
        eta = 1.0 / problem.norm if solver.step_size == "constant" else 0.1
        path = twin(examples, radius, signs, eta, 25)
        for (state, memory), (w, z, (mean_w, *mean_z)) in zip(iterates(problem, solver, 25), path, strict=True):
            np.testing.assert_allclose(state.weights.weights, w, atol=tol, rtol=tol)
            np.testing.assert_allclose(state.average.weights, mean_w, atol=tol, rtol=tol)
            for packed, theirs in ((memory["now"].z, z), (memory["average"], mean_z)):
                for one, other in zip(by_example(problem, packed), theirs, strict=True):
                    np.testing.assert_allclose(one, other, atol=tol)
            (proposal,) = solver.propose(Run.of(problem, np.random.default_rng(0)), state)
            np.testing.assert_array_equal(proposal.weights, state.average.weights)

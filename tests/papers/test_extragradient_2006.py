"""``Extragradient.plain()`` takes the steps of Taskar, Lacoste-Julien and Jordan (2006), section 4, to the letter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from games import KINDS, by_example, game, iterates, project_z

import maxmargin as mm
from maxmargin.optimization.run import Run


def twin(examples: list[Any], C: float, nonnegative: Any, nu: float, iterations: int) -> list[Any]:
    """Weights, all z and the step size after each iteration; eqs. (5), (6) and the rule after them."""

    def project_w(w: Any) -> Any:
        return np.where(nonnegative, np.maximum(w, 0.0), w)

    def gradients(w: Any, z: list[Any]) -> tuple[Any, list[Any]]:
        of_w = w / C + sum(F @ z_i - F @ y for (F, _, y, _), z_i in zip(examples, z, strict=True))
        return of_w, [F.T @ w + c for F, c, _, _ in examples]

    w, z, beta, path = np.zeros(len(examples[0][0])), [y for _, _, y, _ in examples], 1.0, []
    for _ in range(iterations):
        (of_w, of_z), r = gradients(w, z), np.inf
        while r > nu:
            beta = beta if np.isinf(r) else 2 / 3 * beta * min(1, 1 / r)
            w_p = project_w(w - beta * of_w)
            z_p = [project_z(z_i + beta * g, e[3]) for z_i, g, e in zip(z, of_z, examples, strict=True)]
            p_w, p_z = gradients(w_p, z_p)
            turned = np.linalg.norm(np.concatenate([of_w - p_w, *map(np.subtract, of_z, p_z)]))
            far_z = np.linalg.norm(np.concatenate([*map(np.subtract, z, z_p)]))
            r = beta * turned / max(np.linalg.norm(w - w_p) + far_z, 1e-9)  # shorter: u_p = u up to rounding
        w = project_w(w - beta * p_w)
        z = [project_z(z_i + beta * g, e[3]) for z_i, g, e in zip(z, p_z, examples, strict=True)]
        path.append((w, z, beta))
    return path


@pytest.mark.parametrize("C", [0.05, 1.0, np.inf])
@pytest.mark.parametrize("kind", KINDS)
def test_iterates_are_those_of_the_paper(kind: str, C: float) -> None:
    problem, examples = game(kind, seed=3, C=C)
    solver = mm.Extragradient.plain()
    signs = False if problem.region.nonnegative is None else problem.region.nonnegative
    path = twin(examples, C, signs, solver.nu, 25)
    for (state, memory), (w, z, beta) in zip(iterates(problem, solver, 25), path, strict=True):
        np.testing.assert_allclose(state.weights.weights, w, atol=1e-10)
        for ours, theirs in zip(by_example(problem, memory["points"][state.now].z), z, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-10)
        assert state.beta == pytest.approx(beta, rel=1e-10)
        (proposal,) = solver.propose(Run.of(problem, np.random.default_rng(0)), state)
        np.testing.assert_array_equal(proposal.weights, state.weights.weights)

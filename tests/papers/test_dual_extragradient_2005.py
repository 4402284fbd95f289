"""``DualExtragradient.plain()`` takes the steps of Taskar, Lacoste-Julien and Jordan (2005), Figures 2 and 5."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from games import KINDS, by_example, game, iterates, project_z

import maxmargin as mm

RADIUS, ITERATIONS = 0.8, 25


def project_w(w: Any, nonnegative: Any) -> Any:
    """Onto the 2-norm ball, negative values of signed weights clipped before (section 4.1)."""
    w = np.where(nonnegative, np.maximum(w, 0.0), w)
    return RADIUS * w / max(RADIUS, np.linalg.norm(w))


def stored(examples: list[Any], signs: Any, eta: float) -> list[Any]:
    """Figure 2, its step as expanded below it: ``u_w``, average ``u_w``, ``s_w`` and average ``u_z``."""
    s_w, s_z = np.zeros(len(examples[0][0])), [0.0 * y for _, _, y, _ in examples]
    sum_w, sum_z, path = 0.0, [0.0 * y for _, _, y, _ in examples], []
    for t in range(ITERATIONS):
        v_w = project_w(eta * s_w, signs)
        v_z = [project_z(y + eta * s, corners) for (_, _, y, corners), s in zip(examples, s_z, strict=True)]
        u_w = project_w(v_w - eta * sum(F @ v - F @ y for (F, _, y, _), v in zip(examples, v_z, strict=True)), signs)
        u_z = [project_z(v + eta * (F.T @ v_w + c), Z) for (F, c, _, Z), v in zip(examples, v_z, strict=True)]
        s_w = s_w - sum(F @ u - F @ y for (F, _, y, _), u in zip(examples, u_z, strict=True))
        s_z = [s + F.T @ u_w + c for (F, c, _, _), s in zip(examples, s_z, strict=True)]
        sum_w, sum_z = sum_w + u_w, [total + u for total, u in zip(sum_z, u_z, strict=True)]
        path.append((u_w, sum_w / (t + 1), s_w, [total / (t + 1) for total in sum_z]))
    return path


def memory_efficient(examples: list[Any], signs: Any, eta: float) -> list[Any]:
    """Figure 5: ``u_w``, average ``u_w`` and ``s_w``; between iterations only the last two are kept."""
    s_w, average, path = np.zeros(len(examples[0][0])), np.zeros(len(examples[0][0])), []
    for t in range(ITERATIONS):
        v_w, r_w = project_w(eta * s_w, signs), 0.0
        for F, c, y, corners in examples:
            v_z = project_z(y + eta * t * (F.T @ average + c), corners)
            r_w = r_w - F @ v_z + F @ y
            u_z = project_z(v_z + eta * (F.T @ v_w + c), corners)
            s_w = s_w - F @ u_z + F @ y
        u_w = project_w(v_w + eta * r_w, signs)
        average = (t * average + u_w) / (t + 1)
        path.append((u_w, average, s_w))
    return path


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_iterates_are_those_of_the_report(kind: str, seed: int) -> None:
    problem, examples = game(kind, seed=seed, radius=RADIUS)
    signs = False if problem.region.nonnegative is None else problem.region.nonnegative
    eta = 1.0 / problem.norm
    assert problem.norm == pytest.approx(np.linalg.norm(np.hstack([F for F, _, _, _ in examples]), 2), rel=2e-3)
    figure_2, figure_5 = stored(examples, signs, eta), memory_efficient(examples, signs, eta)
    forms: list[dict[str, Any]] = [{}, {"store_duals": False}, {"store_duals": False, "warm_starts": False}]
    forms.append({"store_duals": False, "shard_parts": 1})
    if signs is False:
        forms.append({"store_weights": False})  # the closing remark of section 5, which needs a ball alone
    for settings in forms:
        solver = mm.DualExtragradient.plain(**settings)
        states = list(iterates(problem, solver, ITERATIONS))
        for (state, memory), two, five in zip(states, figure_2, figure_5, strict=True):
            close(five[0], two[0])
            last, average = (state.vectors.explicit(one) for one in (state.last.proposal, state.average.proposal()))
            close(last.weights, two[0])
            close(average.weights, two[1])
            close(five[1], two[1])
            close(five[2], two[2])
            close(average.g, -two[2] / state.iteration)
            assert state.average.total == pytest.approx(state.iteration * eta, rel=1e-12)
            if solver.store_duals:
                average_z = memory["steps"][state.now].average
                for ours, theirs in zip(by_example(problem, average_z), two[3], strict=True):
                    close(ours, theirs)
        assert np.linalg.norm(figure_2[-1][1]) > 0.1 * RADIUS  # the weights have moved

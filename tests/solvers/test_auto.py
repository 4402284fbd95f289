"""``solver="auto"`` arrives: for every combination that estimators accept, at the default tolerance and budget."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from problems import STRUCTURES, honest, make

import maxmargin as mm
from maxmargin.problem import RESCALINGS, SLACKS, hinges
from maxmargin.solvers import Status, choose, solve

REGIONS = {
    "ridge": ({"C": 0.5}, False),
    "ball": ({"radius": 0.7}, False),
    "ball and signs": ({"radius": 0.7}, True),
    "wide ball": ({"radius": 20.0}, False),
    "huge ball": ({"radius": 1e8}, False),
    "ball and ridge": ({"C": 1.0, "radius": 0.5}, True),
    "ball and weak ridge": ({"C": 1e4, "radius": 30.0}, False),
    "L1 ball": ({"l1": 1.0}, True),
    "huge L1 ball": ({"l1": 1e8}, False),
    "L1 penalty": ({"l1": np.inf, "C": 0.5}, False),
    "weak L1 penalty": ({"l1": np.inf, "C": 1e4}, True),
    "L1 ball and penalty": ({"l1": 2.0, "C": 5.0}, True),
}
HINGES = tuple(product(RESCALINGS, SLACKS))


@pytest.mark.parametrize("kind", STRUCTURES)
def test_auto_arrives(kind: str) -> None:
    """A warning that the gap did not close would be an error here; each region meets all hinges on some structure."""
    for number, ((region, (settings, signs)), hinge) in enumerate(product(REGIONS.items(), HINGES)):
        if (number + number // len(HINGES) + STRUCTURES.index(kind)) % 3:
            continue
        problem = replace(make(kind, n=4, region=settings, signs=signs), rescaling=hinge[0], slack=hinge[1])
        if hinges.unsupported(problem):
            continue
        solution = solve(problem, choose(problem)[0], stop=mm.Stop(max_iter=300), random_state=0)
        assert solution.status is Status.CONVERGED, f"{region}, {hinge}: {solution.message}"
        honest(solution, 1e-3)

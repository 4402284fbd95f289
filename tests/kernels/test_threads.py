"""Calls from several Python threads at once: on the same read-only objects, and each on its own.

``make sanitize-threads`` runs these tests under ThreadSanitizer, and all other tests of kernels with four threads.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from problems import STRUCTURES, make

import maxmargin as mm
from maxmargin.solvers import Stop, solve

CALLERS = 3
SOLVERS = [mm.BlockFrankWolfe(), mm.Extragradient(), mm.SimplicialDecomposition(), mm.AveragedPerceptron(), mm.Mira()]


def at_once(call: Callable[[], Any]) -> list[Any]:
    """What a call returns in several threads that start together, each with two threads of kernels."""
    ready = Barrier(CALLERS)

    def one(_: int) -> Any:
        ready.wait()
        with mm.threads(2):
            return call()

    with ThreadPoolExecutor(CALLERS) as pool:
        return list(pool.map(one, range(CALLERS)))


def same(values: list[Any]) -> None:
    for other in values[1:]:
        for one, two in zip(values[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_one_problem(kind):
    """Inference, projection and features of the same batch."""
    problem = make(kind, n=24)
    weights = np.random.default_rng(0).normal(size=problem.n_weights)
    scores = problem.features.scores(weights)

    def call() -> list[Any]:
        best, near = problem.structure.argmax(scores), problem.structure.project(scores)
        return [best.z, near.z, problem.features.adjoint(near.z), problem.structure.labels(scores).value]

    same([*at_once(call), call()])


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
@pytest.mark.parametrize("kind", ["chain", "matching", "lattice"])
def test_runs_of_the_same_problem(kind, solver):
    problem = make(kind, n=12, region={"radius": 1.0} if isinstance(solver, mm.Extragradient) else None)

    def call() -> list[Any]:
        return [solve(problem, solver, stop=Stop(tol=0.0, max_iter=4), random_state=0).weights]

    with warnings.catch_warnings():  # the filters belong to the process, not to a thread
        warnings.simplefilter("ignore")
        same([*at_once(call), call()])


def test_one_tagger():
    """Predictions number words in a table that callers share."""
    from maxmargin.tasks.tagging import SequenceTagger, load_corpus

    train, rest = load_corpus().split()
    train, rest = train.select(range(30)), rest.select(range(20))
    tagger = SequenceTagger(tol=0.1).fit(train.tokens, train.upos)
    found = at_once(lambda: tagger.predict(rest.tokens))
    assert found == [tagger.predict(rest.tokens)] * CALLERS

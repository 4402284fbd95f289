"""Every estimator on a dataset: the same bits as on the same pieces in memory, whatever the number of shards."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.datasets import FrozenError
from maxmargin.execution import HeldPieces, Serial, ShardedProblem
from maxmargin.solvers import solve

Data = tuple[Any, list[Any], list[Any]]
N = 12


def rows(rng: np.random.Generator, n: int, d: int = 3) -> Any:
    return rng.normal(size=(n, d))


def labels(x: Any) -> list[str]:
    return ["ab"[int(row[0] > 0)] for row in x]


def graph(rng: np.random.Generator, edges: list[tuple[int, int]], n: int = 4, **more: Any) -> mm.Graph:
    return mm.Graph(rows(rng, n), edges, np.abs(rows(rng, len(edges), 2)), **more)


def chains(rng: np.random.Generator, order: int = 1) -> Data:
    X = [rows(rng, int(rng.integers(2, 5))) for _ in range(N)]
    return mm.ChainSVM(order=order), X, [labels(x) for x in X]


def graphs(svm: Any, edges: list[tuple[int, int]], numbers: bool = False, **more: Any) -> Callable[..., Data]:
    def made(rng: np.random.Generator) -> Data:
        X = [graph(rng, edges, **more) for _ in range(N)]
        named = [labels(x.node_features) for x in X]
        return svm, X, [[int(one == "b") for one in own] for own in named] if numbers else named

    return made


def matchings(rng: np.random.Generator) -> Data:
    X = [rng.normal(size=(2, 3, 2)) for _ in range(N)]
    return mm.MatchingSVM(), X, [[(0, int(x[0, :, 0].argmax()))] for x in X]


def candidates(formulation: str = "gold") -> Callable[..., Data]:
    def made(rng: np.random.Generator) -> Data:
        X = [rows(rng, int(rng.integers(2, 5))) for _ in range(N)]
        best = [int(x[:, 0].argmax()) for x in X]
        if formulation == "gold":
            return mm.CandidatesSVM(), X, best
        svm = mm.CandidatesSVM(formulation=formulation, rescaling="none", solver=mm.CuttingPlane())
        return svm, X, [sorted({0, at}) for at in best]

    return made


def lattices(rng: np.random.Generator) -> Data:
    X = [mm.WordLattice(rows(rng, 3, 2), [(0, 1), (1, 2), (0, 2)]) for _ in range(N)]
    return mm.LatticeSVM(), X, [[0, 1] if i % 3 else [2] for i in range(N)]


def edits(rng: np.random.Generator) -> Data:
    """Words and the same with their last letter changed, inserted or dropped."""
    words = ["".join(rng.choice(list("abc"), size=3).tolist()) for _ in range(N)]
    others = [word[:2] + ("", "b", "ab")[i % 3] for i, word in enumerate(words)]
    return mm.EditSVM(), list(zip(words, others, strict=True)), [[(0, 0), (1, 1)] for _ in words]


def pairings(rng: np.random.Generator) -> Data:
    X = [rng.normal(size=(4, 4, 2)) for _ in range(N)]
    return mm.PairingSVM(perfect=True), X, [[[0, 1], [2, 3]] if x[0, 1, 0] > 0 else [[0, 2], [1, 3]] for x in X]


def programs(rng: np.random.Generator) -> Data:
    """One of three parts, as a linear program."""
    X = [mm.Program(rows(rng, 3, 2), A_eq=np.ones((1, 3)), b_eq=np.ones(1)) for _ in range(N)]
    return mm.ProgramSVM(), X, [np.eye(3)[int(np.asarray(x.features)[:, 0].argmax())] for x in X]


def segments(rng: np.random.Generator) -> Data:
    X = [rows(rng, 3, 2) for _ in range(N)]
    return mm.SegmentSVM(), X, [[(0, 2, "a"), (2, 3, "b")] if i % 3 else [(0, 3, "b")] for i in range(N)]


PATH, CYCLE = [(0, 1), (1, 2), (2, 3)], [(0, 1), (1, 2), (2, 3), (3, 0)]
ESTIMATORS: dict[str, Callable[[np.random.Generator], Data]] = {
    "chain": chains,
    "second order": lambda rng: chains(rng, 2),
    "matching": matchings,
    "cut": graphs(mm.CutSVM(), CYCLE, numbers=True),
    "regular cut": graphs(mm.CutSVM(potentials="regular"), CYCLE, numbers=True),
    "cut with cliques": graphs(mm.CutSVM(), PATH, numbers=True, cliques=[(0, 1, 2)]),
    "tree": graphs(mm.TreeSVM(), PATH),
    "junction tree": graphs(mm.TreeSVM(), CYCLE),
    "tree with cliques": graphs(mm.TreeSVM(), PATH, cliques=[(0, 1, 2)]),
    "graph": graphs(mm.GraphSVM(), CYCLE),
    "associative": graphs(mm.AssociativeSVM(), CYCLE),
    "tied network with cliques": graphs(mm.AssociativeSVM(per_label=False), PATH, cliques=[(0, 1, 2)]),
    "edits": edits,
    "lattice": lattices,
    "candidates": candidates(),
    "all candidates": candidates("all"),
    "nearest candidates": candidates("nearest"),
    "pairing": pairings,
    "program": programs,
    "segments": segments,
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_same_bits_as_in_memory(name: str, tmp_path: Path) -> None:
    svm, X, y = ESTIMATORS[name](np.random.default_rng(0))
    svm.set_params(C=0.5, max_iter=4)
    dataset = svm.build_dataset(tmp_path / "data", (X, y), shard_parts=12, block_examples=5)
    assert len(dataset.shards) > 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = svm.fit(dataset)
        settings = svm._settings()
        pieces = dataset.problem(settings, 0.5).source
        held = HeldPieces([pieces.open(number) for number in range(len(dataset.shards))])
        solver, _ = settings.solver_for(ShardedProblem(held))
        one = solve(ShardedProblem(held), solver, stop=settings.stop, random_state=settings.random_state)
        np.testing.assert_array_equal(found.coef_, one.weights)
        executor = Serial(shards=2)
        two = solve(ShardedProblem(held), solver, executor, stop=settings.stop, random_state=settings.random_state)
        np.testing.assert_array_equal(svm.set_params(executor=executor).fit(dataset).coef_, two.weights)


def test_structures_of_others_are_refused(tmp_path: Path) -> None:
    class Mine(mm.structures.candidates.Candidates):
        """A structure of a user's own."""

    svm = mm.StructuredSVM(Mine)
    with pytest.raises((FrozenError, ValueError), match=r"train (on it )?in memory"):
        svm.build_dataset(tmp_path / "data", ([np.ones((2, 1))] * 3, [0, 1, 0]))

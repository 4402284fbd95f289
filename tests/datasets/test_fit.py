"""Estimators train on datasets as they do in memory on the same pieces."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data import charts, pairings, segmented, sentences, spellings
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.datasets import SequenceSource, ShardedDataset, ShardError
from maxmargin.datasets.pieces import DatasetPieces
from maxmargin.encoders import ChainEncoder
from maxmargin.execution import HeldPieces, Piece, ShardedProblem
from maxmargin.losses import LabelCost
from maxmargin.solvers import solve
from maxmargin.training import Settings

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:all weights of the model are zero"),
]


def chains(n: int = 80) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(int(rng.integers(1, 7)), 4)) for _ in range(n)]
    return X, [["abc"[int((row[:3] + rng.normal(size=3)).argmax())] for row in x] for x in X]


SOLVERS = {
    "dual extragradient": mm.DualExtragradient(store_duals=False, warm_starts=False),
    "stored dual extragradient": mm.DualExtragradient(),
    "extragradient": mm.Extragradient(),
    "projected gradient": mm.ProjectedGradient(),
    "projected subgradient": mm.ProjectedSubgradient(),
    "cutting plane": mm.CuttingPlane(),
    "simplicial decomposition": mm.SimplicialDecomposition(),
    "auto": "auto",
}


@pytest.mark.parametrize("name", SOLVERS)
def test_same_bits_as_pieces_in_memory(name: str, tmp_path: Path) -> None:
    X, y = chains()
    svm = mm.ChainSVM(C=0.5, solver=SOLVERS[name], max_iter=8)
    dataset = svm.build_dataset(tmp_path / "data", (X, y), shard_parts=300)
    assert len(dataset.shards) > 3
    svm.fit(dataset)
    settings = Settings(C=0.5, solver=SOLVERS[name], max_iter=8)
    whole = dataset.problem(settings, 0.5)
    held = HeldPieces(
        [Piece(whole.source.open(i).problem, whole.source.open(i).first) for i in range(len(dataset.shards))]
    )
    solver, _ = settings.solver_for(ShardedProblem(held))
    in_memory = solve(ShardedProblem(held), solver, stop=settings.stop)
    assert np.array_equal(svm.coef_, in_memory.weights)
    again = mm.ChainSVM(C=0.5, solver=SOLVERS[name], max_iter=8).fit(X, y)
    assert np.allclose(svm.coef_, again.coef_, atol=1e-6)
    assert svm.predict(X[:3]) == again.predict(X[:3])


def test_other_structures(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lists = [rng.normal(size=(int(rng.integers(2, 5)), 3)) for _ in range(40)]
    good = [[int(x[:, 0].argmax()), 0] for x in lists]
    full = [rng.normal(size=(2, 3, 2)) for _ in range(20)]
    links = [[(0, int(x[0, :, 0].argmax()))] for x in full]
    lattices = [mm.WordLattice(rng.normal(size=(3, 2)), [(0, 1), (1, 2), (0, 2)]) for _ in range(20)]
    paths = [[[0, 1], [2]] if i % 3 else [[2]] for i in range(20)]
    for svm, X, y in (
        (mm.MatchingSVM(C=1.0), full, links),
        (mm.CandidatesSVM(C=1.0, formulation="all", rescaling="none"), lists, good),
        (mm.CandidatesSVM(C=1.0, formulation="nearest", rescaling="none", solver=mm.CuttingPlane()), lists, good),
        (mm.PairingSVM(C=1.0), *pairings(20)),
        (mm.EditSVM(C=1.0, nonmatches=True), *spellings(20, nonmatches=True)),
        (mm.SegmentSVM(C=1.0), *segmented(20)),
        (mm.DependencySVM(C=1.0, order=2), *sentences(20, second=True)),
        (mm.GrammarSVM(C=1.0), *charts(20)),
        (mm.LatticeSVM(C=1.0), lattices, [own[0] for own in paths]),
    ):
        folder = tmp_path / f"{type(svm).__name__}{getattr(svm, 'formulation', '')}"
        dataset = svm.build_dataset(folder, (X, y), shard_parts=25)
        assert len(dataset.shards) > 2
        found = svm.fit(dataset).solution_.certificate.primal
        assert found == pytest.approx(svm.fit(X, y).solution_.certificate.primal, rel=2e-3)


def test_weights_costs_losses_and_dev(tmp_path: Path) -> None:
    X, y = chains()
    weight = np.random.default_rng(1).random(len(X))
    per_token = [np.arange(1.0, len(x) + 1) for x in X]
    costs = [np.random.default_rng(i).random((len(x), 3)) for i, x in enumerate(X)]
    for number, (given, options) in enumerate(
        (
            ({"sample_weight": weight}, {}),
            ({"loss_weight": per_token}, {}),
            ({"costs": costs}, {}),
            ({}, {"loss": LabelCost(2.0 * (1.0 - np.eye(3)))}),
            ({}, {"rescaling": "slack", "solver": mm.CuttingPlane()}),
        )
    ):
        svm = mm.ChainSVM(C=1.0, tol=1e-4, **options)
        dataset = svm.build_dataset(tmp_path / str(number), SequenceSource(X, y, **given), shard_parts=300)
        one = svm.fit(dataset, dev=(X[:9], y[:9]))
        assert len(one.dev_scores_)
        primal = one.solution_.certificate.primal
        assert primal == pytest.approx(svm.fit(X, y, **given).solution_.certificate.primal, rel=1e-3)
    with pytest.raises(ValueError, match="costs take the place of the loss"):
        mm.ChainSVM(loss=mm.losses.Hamming()).fit(ShardedDataset(tmp_path / "2"))
    grid = mm.ChainSVM(C=[0.1, 1.0]).fit(ShardedDataset(tmp_path / "4"), dev=(X[:9], y[:9]))
    assert len(grid.choices_) == 2


def test_refusals(tmp_path: Path) -> None:
    X, y = chains(20)
    dataset = mm.ChainSVM().build_dataset(tmp_path / "chain", (X, y))
    with pytest.raises(ValueError, match="a dataset has its own y"):
        mm.ChainSVM().fit(dataset, y)
    with pytest.raises(ValueError, match="was built with ChainEncoder"):
        mm.ChainSVM(order=2).fit(dataset)
    with pytest.raises(ValueError, match="was built with ChainEncoder"):
        mm.MatchingSVM().fit(dataset)
    with pytest.raises(ValueError, match="y is missing"):
        mm.ChainSVM().fit(X)
    with pytest.raises(ValueError, match="ExponentiatedGradient cannot solve this problem"):
        mm.ChainSVM(solver=mm.ExponentiatedGradient()).fit(dataset)
    lists, good = [np.ones((2, 1))] * 4, [[0, 1]] * 4
    best = mm.CandidatesSVM(formulation="best", rescaling="none")
    candidates = best.build_dataset(tmp_path / "candidates", (lists, good))
    with pytest.raises(ValueError, match='built with formulation="best"'):
        mm.CandidatesSVM().fit(candidates)
    with pytest.raises(ValueError, match='formulation="best" chooses'):
        best.fit(candidates)
    with pytest.raises(ValueError, match="example 1: several candidates are good"):
        mm.CandidatesSVM().build_dataset(tmp_path / "several", (lists[:2], [[0], [0, 1]]))


def test_missing_and_damaged_shards_end_training(tmp_path: Path) -> None:
    X, y = chains()
    svm = mm.ChainSVM(C=1.0)
    dataset = svm.build_dataset(tmp_path / "data", (X, y), shard_parts=300)
    path = dataset.folder / dataset.shards[2].file
    data = path.read_bytes()
    path.write_bytes(data[:-1] + b"\x07")
    with pytest.raises(ShardError, match=path.name):
        svm.fit(dataset)
    path.unlink()
    with pytest.raises(ShardError, match=f"{path.name} is missing"):
        svm.fit(dataset)
    path.write_bytes(data)
    svm.fit(dataset)


def test_checkpoints(tmp_path: Path) -> None:
    """A run on files resumes with the same bits, and a checkpoint of other files is refused."""
    X, y = chains()
    solver = mm.DualExtragradient(store_duals=False, warm_starts=False)
    settings = {"C": 1.0, "solver": solver, "tol": 1e-9}
    dataset = mm.ChainSVM().build_dataset(tmp_path / "a", (X, y), shard_parts=300)
    other = mm.ChainSVM().build_dataset(tmp_path / "b", (X, y[::-1][:0] + y), shard_parts=200)
    whole = mm.ChainSVM(**settings, max_iter=20).fit(dataset)
    saved = mm.solvers.Checkpoint(tmp_path / "run", every=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mm.ChainSVM(**settings, max_iter=7, checkpoint=saved).fit(dataset)
        with pytest.raises(mm.solvers.CheckpointError, match="dataset"):
            mm.ChainSVM(**settings, max_iter=20, checkpoint=saved).fit(other)
        resumed = mm.ChainSVM(**settings, max_iter=20, checkpoint=saved).fit(dataset)
    assert np.array_equal(resumed.coef_, whole.coef_)


def test_sources_of_pieces_travel(tmp_path: Path) -> None:
    X, y = chains()
    dataset = ShardedDataset.build(tmp_path / "data", ChainEncoder(), (X, y), shard_parts=300)
    source = DatasetPieces(dataset, Settings(), 1.0)
    first = source.open(1)
    text = pickle.dumps(source)
    assert len(text) < 5000 + 200 * len(dataset.shards)
    there = pickle.loads(text)
    again = there.open(1)
    assert again.first == first.first
    assert np.array_equal(again.problem.leading_costs, first.problem.leading_costs)
    assert np.array_equal(there.open(1).problem.leading_costs, first.problem.leading_costs)
    ShardedDataset.build(tmp_path / "data", ChainEncoder(), (X[:9], y[:9]), overwrite=True)
    with pytest.raises(ShardError, match="another dataset"):
        pickle.loads(text)

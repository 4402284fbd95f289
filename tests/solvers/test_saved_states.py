"""The states of all solvers in checkpoints: a run that is cut anywhere and resumed ends with the same bits."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import os
import pkgutil
import signal
from typing import Any

import numpy as np
import pytest
from problems import make
from saving import figures, refused, resumed_from_each, run

from maxmargin import model_file, solvers
from maxmargin.problem import Problem
from maxmargin.regions import L1
from maxmargin.solvers import (
    AveragedPerceptron,
    BlockFrankWolfe,
    ColumnGeneration,
    CuttingPlane,
    DualExtragradient,
    Euclidean,
    Exact,
    ExponentiatedGradient,
    Extragradient,
    Mira,
    ProjectedGradient,
    ProjectedSubgradient,
    SimplicialDecomposition,
    Solver,
    Status,
    Stop,
    Subgradient,
)
from maxmargin.structures.chains.chain import Chain

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """Hundreds of small files, none of which has to outlive the machine."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


SOLVERS: dict[str, Solver] = {
    "block": BlockFrankWolfe(),
    "block-gap-cache": BlockFrankWolfe(sampling="gap", cache=0.3, outputs=3, direction="away"),
    "block-plain": BlockFrankWolfe(kept_passes=0, average=False, outputs=2, direction="frank-wolfe", steps=1),
    "subgradient": Subgradient(),
    "perceptron": AveragedPerceptron(),
    "perceptron-batch": AveragedPerceptron(batch=True, average=False),
    "mira": Mira(k=2),
    "dual-extragradient": DualExtragradient(store_duals=False, warm_starts=False, shard_parts=40),
    "dual-extragradient-euclidean": DualExtragradient(
        store_duals=False, warm_starts=False, geometry=Euclidean(), shard_parts=40
    ),
}
Case = tuple[Solver, str, dict[str, Any]]
MASTERS: dict[str, Case] = {
    "simplicial": (SimplicialDecomposition(), "chain", {}),
    "simplicial-cut": (SimplicialDecomposition(), "cut", {"C": 5.0}),
    "simplicial-ball": (SimplicialDecomposition(), "matching", {"radius": 0.7}),
    "simplicial-l1-ball": (SimplicialDecomposition(), "chain", {"l1": 1.0}),
    "simplicial-relaxed": (SimplicialDecomposition(), "graph", {}),
    "simplicial-one": (SimplicialDecomposition(master="one"), "matching", {}),
    "simplicial-plain": (SimplicialDecomposition.plain(r=3), "chain", {"C": 5.0}),
    "simplicial-cyclic": (SimplicialDecomposition(working_set="cyclic", working_set_size=3), "chain", {}),
    "simplicial-groups": (
        SimplicialDecomposition(master="one", working_set="violation", working_set_size=3),
        "chain",
        {},
    ),
    "cutting-plane": (CuttingPlane(), "chain", {"C": 5.0}),
    "cutting-plane-one": (CuttingPlane(slacks="one"), "matching", {"C": 5.0}),
}
EXPONENTIATED: dict[str, Case] = {
    "exponentiated": (ExponentiatedGradient(block_size=3), "chain", {"C": 5.0}),
    "exponentiated-batch": (ExponentiatedGradient(online=False), "tree", {}),
    "exponentiated-implicit": (ExponentiatedGradient(implicit=True), "chain", {"C": 5.0}),
    "exponentiated-ball": (ExponentiatedGradient(eta=0.1), "lattice", {"C": 1.0, "radius": 0.5}),
}
COLUMNS: dict[str, Case] = {
    "columns": (ColumnGeneration(master="highs"), "chain", {"C": 2.0}),
    "columns-newton": (ColumnGeneration(master="newton"), "matching", {"C": 2.0}),
    "columns-proximal": (ColumnGeneration(master="proximal"), "chain", {"C": 2.0}),
    "columns-ball": (ColumnGeneration(), "cut", {"radius": 1.0}),
    "columns-plain": (ColumnGeneration.plain(max_steps=20), "matching", {"C": 2.0}),
    "columns-plain-highs": (ColumnGeneration.plain(master="highs"), "candidates", {"C": 2.0}),
}
FIRST_ORDER: dict[str, Case] = {
    "dual": (DualExtragradient(), "chain", {}),
    "dual-matching": (DualExtragradient(), "matching", {"C": 5.0}),
    "dual-vertices": (DualExtragradient(geometry=Euclidean()), "tree", {"C": 5.0}),
    "dual-l1": (DualExtragradient(), "cut", {"l1": 1.0}),
    "dual-l1-chain": (DualExtragradient(), "chain", {"l1": 1.0}),
    "dual-plain": (DualExtragradient.plain(), "lattice", {"radius": 0.7}),
    "dual-few-parts": (DualExtragradient(store_weights=False), "matching", {"radius": 0.7}),
    "dual-warm": (DualExtragradient(store_duals=False, warm_starts=True, shard_parts=20), "matching", {"C": 5.0}),
    "dual-warm-vertices": (
        DualExtragradient(store_duals=False, warm_starts=True, geometry=Euclidean(), shard_parts=20),
        "chain",
        {},
    ),
    "extragradient": (Extragradient(), "chain", {"C": 5.0}),
    "extragradient-matching": (Extragradient(), "matching", {"C": 5.0}),
    "extragradient-vertices": (Extragradient(geometry=Euclidean()), "second-order", {"C": 5.0}),
    "extragradient-l1": (Extragradient(), "chain", {"l1": 1.0}),
    "extragradient-plain": (Extragradient.plain(), "graph", {"C": 5.0}),
    "projected-gradient": (ProjectedGradient(), "chain", {"C": 5.0}),
    "projected-gradient-matching": (ProjectedGradient.plain(), "matching", {"radius": 0.7}),
    "projected-subgradient": (ProjectedSubgradient(), "chain", {"C": 5.0}),
    "projected-subgradient-ball": (ProjectedSubgradient(step_size=0.3), "matching", {"radius": 0.7}),
}
CASES = MASTERS | EXPONENTIATED | COLUMNS | FIRST_ORDER
"""Solvers with a kind of problem and its region."""


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("kind", ["chain", "matching"])
def test_resumed_from_every_certificate(kind, name, tmp_path):
    problem = make(kind, n=8, seed=1)
    assert resumed_from_each(problem, SOLVERS[name], tmp_path) >= 3


def problem_of(name: str, rescaling: str = "margin") -> Problem:
    _, kind, region = CASES[name]
    if name not in COLUMNS:
        return make(kind, n=8, seed=1, region=region or None)
    return dataclasses.replace(make(kind, n=8, seed=1), region=L1(**region), rescaling=rescaling)


def test_columns_after_a_warm_up(tmp_path):
    problem = problem_of("columns", "none")
    assert resumed_from_each(problem, CASES["columns"][0], tmp_path, skip=2, same=False, stop=Stop(1e-9, 24)) >= 5


@pytest.mark.parametrize("name", ["columns", "columns-proximal", "columns-plain-highs"])
def test_a_state_that_is_not_settled_is_not_saved(name, tmp_path):
    """Ctrl-C between two certificates leaves the run of the first, as a model of HiGHS is not in files."""
    solver, problem, path = CASES[name][0], problem_of(name), tmp_path / "run"
    stop = Stop(1e-12, 40)
    whole = run(problem, solver, tmp_path / "whole", stop=stop, every=1e9)
    at = whole.counters.iterations - 2
    plain = type(solver).step

    def step(self: Any, run: Any, state: Any) -> Any:
        if run.counters.iterations == at:
            signal.raise_signal(signal.SIGINT)
        return plain(self, run, state)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(solver), "step", step)
        assert run(problem, solver, path, stop=stop, every=1e9).status is Status.INTERRUPTED
    assert model_file.read(path)[0]["counters"]["iterations"] <= at + 1
    assert figures(run(problem, solver, path, stop=stop, every=1e9)) == figures(whole)


@pytest.mark.parametrize("name", CASES)
def test_states_resumed_from_certificates(name, tmp_path):
    solver, problem = CASES[name][0], problem_of(name)
    same = name in EXPONENTIATED | FIRST_ORDER
    assert resumed_from_each(problem, solver, tmp_path, skip=3, same=same, stop=Stop(1e-9, 24)) >= 3
    if name in MASTERS and not problem.relaxed:  # only the number of passes differs
        whole = run(problem, solver, stop=Stop(1e-9, 24))
        assert run(problem, solver, tmp_path / "run", stop=Stop(1e-9, 24)).weights.tobytes() == whole.weights.tobytes()


@pytest.mark.parametrize("name", ["simplicial", "simplicial-one", "simplicial-cyclic", "cutting-plane"])
def test_masters_with_quadratic_slack(name, tmp_path):
    problem = dataclasses.replace(make("chain", n=8, seed=1, region={"C": 2.0}), slack="quadratic")
    assert resumed_from_each(problem, CASES[name][0], tmp_path, skip=4, same=False) >= 5


NO_SENSE = (
    *("simplicial-ball", "cutting-plane", "exponentiated", "exponentiated-implicit", "columns", "columns-plain"),
    *("dual", "dual-vertices", "extragradient-matching", "projected-gradient", "projected-subgradient"),
)


@pytest.mark.parametrize("name", NO_SENSE)
def test_states_that_make_no_sense(name, tmp_path):
    """Each number and array of the solver's state, changed in several ways."""
    solver, problem, path = CASES[name][0], problem_of(name), tmp_path / "run"
    run(problem, solver, path, stop=Stop(1e-9, 6), every=1e9)
    header, arrays = model_file.read(path)
    header.pop("arrays")
    for array_name in [one for one in arrays if one.startswith(("state.", "piece."))]:
        good, own = arrays[array_name], array_name.split(".")[-1]
        others = {other: one for other, one in arrays.items() if other != array_name}
        wrong = [good.astype(np.float32), good.reshape(1, -1)]
        # Of pairs and gaps there are any number, and a basis may be missing.
        wrong += [good[:-1]] if own not in ("pairs", "gaps") and good.size else []
        if good.size and own in ("starts", "entry_starts", "index", "age", "iterate", "eta", "gaps", "q"):
            wrong += [-1.0 - good if good.dtype == np.float64 else ~good]
        for changed in wrong:
            model_file.write(path, header, {**others, array_name: changed})
            refused(problem, path, "damaged: .*; name another file", solver)
        if own == "total" or "warm" in array_name:  # there may be none
            continue
        model_file.write(path, header, others)
        refused(problem, path, "damaged: .*; name another file", solver)
    for number_name in header["state"]:
        for odd in (None, "nan", [], "-inf"):
            model_file.write(path, {**header, "state": {**header["state"], number_name: odd}}, arrays)
            refused(problem, path, "damaged: .*; name another file", solver)


@pytest.mark.parametrize(
    "name", ["dual", "extragradient-matching", "projected-gradient", "projected-subgradient", "simplicial", "columns"]
)
def test_a_damaged_save_a_full_disk_and_a_second_run(name, tmp_path, monkeypatch):
    """The save before the last is taken, with a warning; a save that fails changes nothing; two runs never share."""
    solver, problem, path, stop = CASES[name][0], problem_of(name), tmp_path / "run", Stop(1e-9, 9)

    def second(record: Any) -> None:
        refused(problem, path, f"process {os.getpid()} uses this checkpoint; wait until it ends", solver)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    whole = run(problem, solver, path, stop=stop, callbacks=[second])
    path.unlink()
    run(problem, solver, path, stop=Stop(1e-9, 5))
    path.write_bytes(path.read_bytes()[:-9])
    with monkeypatch.context() as patch:
        patch.setattr(model_file, "replacing", full)
        with pytest.warns(RuntimeWarning) as said:
            again = run(problem, solver, path, stop=stop)
    assert "training resumes from the checkpoint before it" in str(said[0].message)
    assert "No space left on device; training continues" in str(said[1].message)
    assert again.weights.tobytes() == whole.weights.tobytes()
    with pytest.warns(RuntimeWarning, match="training resumes from the checkpoint before it"):
        assert run(problem, solver, path, stop=stop).weights.tobytes() == whole.weights.tobytes()


def test_points_that_are_no_outputs(tmp_path):
    problem, path = make("chain", n=6, seed=1), tmp_path / "run"
    run(problem, SimplicialDecomposition(), path, stop=Stop(1e-9, 6), every=1e9)
    header, arrays = model_file.read(path)
    header.pop("arrays")
    model_file.write(path, header, {**arrays, "state.loss": arrays["state.loss"] + 9.0})
    refused(problem, path, "damaged: a point is above the most violated output", SimplicialDecomposition())
    lower = {**header["state"], "center_hinge": (0.0).hex(), "center_value": (0.0).hex()}
    model_file.write(path, {**header, "state": lower}, arrays)
    refused(problem, path, "damaged: the objective of its center is not", SimplicialDecomposition())


@pytest.mark.parametrize("kind", ["chain", "cut"])
def test_dual_extragradient_in_an_l1_ball(kind, tmp_path):
    problem = make(kind, n=5, region={"l1": 1.0})
    assert resumed_from_each(problem, SOLVERS["dual-extragradient"], tmp_path) >= 3


def test_every_solver_that_iterates_can_be_saved():
    """A new solver needs a state_dict, and a case here."""
    modules = pkgutil.walk_packages(solvers.__path__, "maxmargin.solvers.")
    found = [one for module in modules for one in vars(importlib.import_module(module.name)).values()]
    kinds = {one for one in found if isinstance(one, type) and issubclass(one, Solver) and not inspect.isabstract(one)}
    iterating = {one for one in kinds if not one.direct}
    assert kinds - iterating == {Exact}
    assert [one.__name__ for one in iterating if one().checkpoint_unsupported] == []
    tried = {type(one) for one in (*SOLVERS.values(), *(case[0] for case in CASES.values()))}
    assert iterating - tried == set()


def test_warm_starts_that_no_file_holds(tmp_path):
    """With a checkpoint they are dropped after every step, so that a resumed run is the same."""

    class Opaque:
        nbytes = 0

    class Forgetful(Chain):
        def project(self, point: Any, *, tol: float = 1e-8, warm: Any = None) -> Any:
            assert not isinstance(warm, Opaque)
            return dataclasses.replace(super().project(point, tol=tol), warm=Opaque())

    problem = make("chain", n=5, seed=1)
    object.__setattr__(problem.structure, "__class__", Forgetful)
    for number, solver in enumerate((ProjectedGradient(), DualExtragradient(geometry=Euclidean()))):
        (tmp_path / str(number)).mkdir()
        checkpoint = tmp_path / str(number) / "run"
        whole = run(problem, solver, checkpoint, stop=Stop(1e-9, 12))
        run(problem, solver, tmp_path / str(number) / "other", stop=Stop(1e-9, 5))
        again = run(problem, solver, tmp_path / str(number) / "other", stop=Stop(1e-9, 12))
        assert again.weights.tobytes() == whole.weights.tobytes()

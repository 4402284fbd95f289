"""Files of checkpoints: those that do not suit the run, are damaged or cannot be written; how many are kept."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import problems
import pytest
from problems import STRUCTURES, make
from saving import figures, refused, run

import maxmargin as mm
from maxmargin import model_file
from maxmargin.losses import Hamming
from maxmargin.optimization.callbacks import Record
from maxmargin.problem import Problem
from maxmargin.solvers import (
    BlockFrankWolfe,
    Checkpoint,
    CheckpointError,
    Exact,
    Mira,
    Solution,
    Stop,
    solve,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def saved(folder: Path) -> tuple[Problem, Path]:
    problem = make("chain", n=6, seed=1)
    path = folder / "run"
    run(problem, BlockFrankWolfe(), path, stop=Stop(1e-9, 4), every=1e9)  # one save
    return problem, path


def test_other_runs(tmp_path):
    problem, path = saved(tmp_path)
    before = path.read_bytes()
    other = "this checkpoint is of another run: "
    refused(problem, path, f"{other}the solver was BlockFrankWolfe there and is Mira here; remove it", Mira())
    refused(problem, path, f"{other}it has steps=10, this one 3; remove it", BlockFrankWolfe(steps=3))
    refused(problem, path, f"{other}random_state was 3 there and is 4 here", random_state=4)
    refused(make("chain", n=7, seed=1), path, f"{other}it has 6 examples, this one 7")
    region = dataclasses.replace(problem.region, C=2.0)
    refused(dataclasses.replace(problem, region=region), path, f"{other}C, radius or norm differ")
    costs = problem.leading_costs.copy()
    costs[0] += 1.0
    refused(dataclasses.replace(problem, leading_costs=costs), path, f"{other}the loss differ")
    weights = np.full(6, 2.0)
    refused(dataclasses.replace(problem, example_weight=weights), path, f"{other}the sample weights differ")
    tokens = problem.features.features[0].rows.dense
    tokens[-1, -1] = np.nextafter(tokens[-1, -1], 9.0)
    refused(problem, path, f"{other}the features differ")
    tokens[-1, -1] = np.nextafter(tokens[-1, -1], -9.0)
    worst = problem.most_violated(np.zeros(problem.n_weights)).z
    relabeled = Problem.build(problem.structure, problem.features, worst, Hamming(), problem.region)
    refused(relabeled, path, f"{other}the gold outputs differ")
    with pytest.raises(CheckpointError, match="it was made for '', this one is for 'b'; remove it"):
        solve(problem, BlockFrankWolfe(), checkpoint=Checkpoint(path, fingerprint="b"), random_state=3)
    assert path.read_bytes() == before
    assert run(problem, BlockFrankWolfe(), path).counters.iterations > 4


NONE = "is not a checkpoint, or it is truncated or damaged; name another file, or remove it to start over"


def test_damaged_files(tmp_path):
    problem, path = saved(tmp_path)
    data = path.read_bytes()
    for cut in (20, 60, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:cut])
        refused(problem, path, NONE)
    for content in (b"", b"words", b"\x00" * 100):
        path.write_bytes(content)
        refused(problem, path, NONE)
    flipped = bytearray(data)
    flipped[-100] ^= 1
    path.write_bytes(bytes(flipped))
    refused(problem, path, NONE)
    model_file.write(path, {"kind": "chain"}, {})
    refused(problem, path, "holds a model, not a checkpoint; name another file")


def test_files_that_make_no_sense(tmp_path):
    problem, path = saved(tmp_path)
    header, arrays = model_file.read(path)
    header.pop("arrays")
    n = problem.n_weights
    higher = arrays["history"].copy()
    higher[:, 9] += 1.0  # lower bounds
    wrong: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"random": {}}, {}),
        ({"random": {**header["random"], "state": {"state": 2**300, "inc": 1}}}, {}),
        ({"counters": {"iterations": "many"}}, {}),
        ({"bounds": []}, {}),
        ({"state": {}}, {}),
        ({"callbacks": 3}, {}),
        ({"next_check": None}, {}),
        ({}, {"history": np.zeros((2, 3))}),
        ({}, {"history": np.full((1, 11), np.nan)}),
        ({}, {"best": np.zeros(n + 1)}),
        ({}, {"state.g": np.zeros(n + 1)}),
        ({}, {"state.g": np.zeros(n, dtype=np.float32)}),
        ({}, {"state.alpha": -arrays["state.alpha"]}),
        ({}, {"state.idle": -1 - arrays["state.idle"]}),
        ({}, {"state.part": arrays["state.part"] + 10_000}),
        ({}, {"state.part": -1 - arrays["state.part"]}),
        ({}, {"state.starts": arrays["state.starts"] + 1}),
        ({}, {"state.part_starts": arrays["state.part_starts"][:-1]}),
        ({}, {"state.numbers": np.zeros(3)}),
        ({}, {"state.memory": np.zeros(3)}),
        ({"random": {**header["random"], "state": {"state": 4, "inc": 2}}}, {}),
        ({"counters": {**header["counters"], "iterations": -(2**31)}}, {}),
        ({"counters": {**header["counters"], "iterations": 2**31}}, {}),
        ({"counters": []}, {}),
        ({"state": "passes"}, {}),
        ({"state": {"passes": 3}}, {}),
        ({"bounds": [header["bounds"][0], (-1.0).hex(), *header["bounds"][2:]]}, {}),
        ({"bounds": [(0.5).hex(), *header["bounds"][1:]]}, {}),
        ({"shards": 2**31}, {}),
        ({"next_check": 2**62}, {}),
        ({"seconds": "-0x1p+9"}, {}),
        ({"seconds": "nan"}, {}),
        ({"asked": 3}, {}),
        ({}, {"history": arrays["history"][::-1]}),
        ({}, {"history": np.vstack([arrays["history"]] * 9)}),
        ({}, {"history": higher}),
        ({}, {"best": arrays["best"] * 2}),
        ({}, {"best": np.full(n, np.nan)}),
        ({}, {"state.g": arrays["state.g"] + 1.0}),
        ({}, {"state.alpha": arrays["state.alpha"] * 0.5}),
        ({}, {"state.change": arrays["state.change"] * np.float32(3)}),
        ({}, {"state.gap": arrays["state.gap"] - 1e9}),
        ({}, {"state.numbers": arrays["state.numbers"] + 1.0}),
        ({}, {"warm.0": np.full(3, np.nan)}),
        ({}, {"warm.9": np.zeros(3)}),
        ({}, {"responses": -np.ones((1, 3))}),
    ]
    for changed, replaced in wrong:
        model_file.write(path, {**header, **changed}, {**arrays, **replaced})
        refused(problem, path, "this checkpoint is damaged: .*; name another file, or remove it to start over")
    model_file.write(path, {**header, "run": None}, arrays)
    refused(problem, path, "it does not say which")
    model_file.write(path, {**header, "run": {**header["run"], "version": "0"}}, arrays)
    refused(problem, path, "maxmargin was 0 there and is")
    model_file.write(path, {**header, "run": {**header["run"], "shape": 3}}, arrays)
    refused(problem, path, "it does not say its shape")
    for name in arrays:
        model_file.write(path, header, {other: one for other, one in arrays.items() if other != name})
        refused(problem, path, "damaged: .*; name another")


def test_the_previous_checkpoint(tmp_path):
    problem = make("chain", n=6, seed=1)
    whole = run(problem, BlockFrankWolfe(), stop=Stop(1e-9, 12))
    checkpoint = Checkpoint(tmp_path / "run")
    path, previous = Path(checkpoint.path), checkpoint.previous

    def short() -> None:
        run(problem, BlockFrankWolfe(), path, stop=Stop(1e-9, 4))

    def resumed() -> Solution:
        return run(problem, BlockFrankWolfe(), path, stop=Stop(1e-9, 12))

    short()
    good, before = path.read_bytes(), previous.read_bytes()
    assert model_file.read(previous)[0]["counters"]["iterations"] == 3
    for damaged in (good[:99], b"", good[:-1] + b"x"):
        path.write_bytes(damaged)
        previous.write_bytes(before)
        with pytest.warns(RuntimeWarning, match=r"damaged; training resumes from .*run\.previous, at iteration 3"):
            solution = resumed()
        assert solution.weights.tobytes() == whole.weights.tobytes()
        assert solution.certificate == whole.certificate
        assert model_file.read(previous)  # never the damaged one
    header, arrays = model_file.read(path)
    del header["arrays"]
    model_file.write(path, {**header, "shards": -1}, arrays)
    previous.write_bytes(before)
    with pytest.warns(RuntimeWarning, match="this checkpoint is damaged: shards must be .*; training resumes from"):
        assert resumed().weights.tobytes() == whole.weights.tobytes()
    path.write_bytes(b"words")
    previous.write_bytes(b"more words")
    refused(problem, path, r"run is not .*run\.previous is not .*; name another file, or remove them to start over")
    previous.write_bytes(before)
    refused(problem, path, "or remove it to start over", BlockFrankWolfe(steps=3))  # both are of no use to another run
    path.write_bytes(good)
    refused(problem, path, "this checkpoint is of another run", BlockFrankWolfe(steps=3))
    path.unlink()  # to start over
    assert figures(resumed()) == figures(whole)
    assert path.exists()
    assert previous.exists()
    checkpoint.remove()
    assert not list(tmp_path.iterdir())


def test_files_are_kept_in_number(tmp_path):
    problem = make("chain", n=6, seed=1)
    whole = run(problem, BlockFrankWolfe(), stop=Stop(1e-9, 12))

    def kept(count: int, stop: Stop) -> Solution:
        checkpoint = Checkpoint(tmp_path / "run", every=0.0, keep_files=count)
        return solve(problem, BlockFrankWolfe(), stop=stop, random_state=3, checkpoint=checkpoint)

    kept(1, Stop(1e-9, 6))
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    kept(4, Stop(1e-9, 9))
    names = ["run", "run.previous", "run.previous-2", "run.previous-3"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    saved = [model_file.read(tmp_path / name)[0]["counters"]["iterations"] for name in names]
    assert saved == [9, 8, 7, 6]
    (tmp_path / "run").write_bytes(b"words")
    (tmp_path / "run.previous").write_bytes((tmp_path / "run.previous").read_bytes()[:-1])
    with pytest.warns(
        RuntimeWarning, match=r"run is not .*run\.previous is not .* before it, .*previous-2, at iteration 7"
    ):
        assert kept(4, Stop(1e-9, 8)).counters.iterations == 8
    # The damaged ones are gone, and those before them stay.
    found = {path.name: model_file.read(path)[0]["counters"]["iterations"] for path in tmp_path.iterdir()}
    assert found == {"run": 8, "run.previous-2": 7, "run.previous-3": 6}
    assert kept(4, Stop(1e-9, 12)).weights.tobytes() == whole.weights.tobytes()
    assert len(list(tmp_path.iterdir())) == 4
    Checkpoint(tmp_path / "run").remove()  # older ones, too, however many are kept now
    assert not list(tmp_path.iterdir())


def test_one_run_at_a_time(tmp_path):
    problem, path, tried = make("chain", n=4, seed=1), tmp_path / "run", []

    def again(record: Record) -> None:
        if not tried:
            tried.append(1)
            refused(problem, path, f"run: process {os.getpid()} uses this checkpoint; wait until it ends, or name")

    whole = run(problem, BlockFrankWolfe(), stop=Stop(1e-9, 4))
    assert run(problem, BlockFrankWolfe(), path, stop=Stop(1e-9, 4), callbacks=[again]).weights.tobytes() == (
        whole.weights.tobytes()
    )
    assert tried
    run(problem, BlockFrankWolfe(), path, stop=Stop(1e-9, 6))  # the first one has ended
    assert sorted(one.name for one in tmp_path.iterdir()) == ["run", "run.previous"]


LIMITED = """
import resource, sys, warnings
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from maxmargin.solvers import BlockFrankWolfe, Stop
from problems import make
from saving import run
problem = make("chain", n=6, seed=1)
run(problem, BlockFrankWolfe(), Path(sys.argv[1]), stop=Stop(1e-9, 4), every=1e9)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, resource.RLIM_INFINITY))
    run(problem, BlockFrankWolfe(), Path(sys.argv[1]), stop=Stop(1e-9, 9))
print([str(one.message) for one in caught if "checkpoint" in str(one.message)][0])
"""


def test_a_disk_without_room(tmp_path):
    """Files may not grow beyond 300 bytes: the last checkpoint stays, the run goes on."""
    path = tmp_path / "run"
    command = [sys.executable, "-c", LIMITED, str(path), str(Path(problems.__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "the checkpoint could not be written: File too large; training continues, and if it is" in done.stdout
    assert [one.name for one in tmp_path.iterdir()] == ["run"]
    problem = make("chain", n=6, seed=1)
    again = run(problem, BlockFrankWolfe(), path, stop=Stop(1e-9, 12))
    assert again.weights.tobytes() == run(problem, BlockFrankWolfe(), stop=Stop(1e-9, 12)).weights.tobytes()


def test_where_files_have_one_name_only(tmp_path, monkeypatch):
    def one_name(*_: Any) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", one_name)
    run(make("chain", n=4), BlockFrankWolfe(), tmp_path / "run", stop=Stop(1e-9, 4))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "run.previous"]
    assert model_file.read(tmp_path / "run.previous")


def test_bounds_that_the_run_contradicts(tmp_path):
    problem, path = saved(tmp_path)
    header, arrays = model_file.read(path)
    del header["arrays"]
    history = arrays["history"].copy()
    history[-1, 9] += 0.9 * (history[-1, 8] - history[-1, 9])  # a lower bound above the optimum
    bounds = [header["bounds"][0], history[-1, 9].hex(), *header["bounds"][2:]]
    model_file.write(path, {**header, "bounds": bounds}, {**arrays, "history": history})
    refused(problem, path, "run that resumed .* contradicts its bounds; remove it to start over", stop=Stop(0.0, 40))


def test_a_checkpoint_is_no_model(tmp_path):
    _, path = saved(tmp_path)
    with pytest.raises(mm.ModelFileError, match="it is the checkpoint of a run, not a model; name it as checkpoint="):
        mm.load(path)


def test_places_that_cannot_be_written(tmp_path, monkeypatch):
    problem = make("chain", n=3)
    refused(problem, tmp_path, "is a folder; name a file for the checkpoint")
    refused(problem, tmp_path / "none" / "run", "the folder of the checkpoint does not exist; create it, or")
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        refused(problem, tmp_path / "run", "the folder of the checkpoint is not writable; name another")

    def read_only(*_: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "open", read_only)
    refused(problem, tmp_path / "run", "run: no file can be written in the folder .*: Read-only file system; name ano")


def test_a_disk_that_is_full_later(tmp_path, monkeypatch):
    problem = make("chain", n=3)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(model_file, "replacing", full)
    with pytest.warns(RuntimeWarning, match="run: the checkpoint could not be written: No space left on device; train"):
        solution = run(problem, BlockFrankWolfe(), tmp_path / "run", every=1e9)
    assert figures(solution) == figures(run(problem, BlockFrankWolfe()))


def test_solvers_that_cannot_be_saved(tmp_path):
    refused(make("chain", n=3), tmp_path / "run", "a run of Exact cannot be saved: it takes one step only; le", Exact())
    refused(make("chain", n=3), tmp_path / "run", "random_state must be None or", random_state=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": ""}, "the name of a file, got ''"),
        ({"path": 3}, "the name of a file, got 3"),
        ({"path": "a", "every": -1}, "every must be a number >= 0 or infinity, got -1; .*30 is"),
        ({"path": "a", "every": float("nan")}, ">= 0 or infinity, got nan"),
        ({"path": "a", "every": "often"}, ">= 0 or infinity, got 'often'"),
        ({"path": "a", "keep": 3}, "keep must be True or False, got 3"),
        ({"path": "a", "keep_files": 0}, "keep_files must be an integer >= 1 and <= 1000, got 0"),
        ({"path": "a", "fingerprint": 3}, "fingerprint must be a string, got 3"),
    ],
)
def test_bad_settings(options, message):
    with pytest.raises(ValueError, match=message):
        Checkpoint(**options)


def test_saves_are_spaced_in_time(tmp_path, monkeypatch):
    writes = []
    plain = model_file.write
    monkeypatch.setattr(model_file, "write", lambda *given: (writes.append(1), plain(*given)))
    problem = make("chain", n=3)
    run(problem, BlockFrankWolfe(), tmp_path / "run", every=1e9)
    assert len(writes) == 1  # that of the end


@pytest.mark.parametrize("kind", STRUCTURES)
def test_fingerprints(kind):
    one, same, other = make(kind, seed=1), make(kind, seed=1), make(kind, seed=2)
    first = one.fingerprint()
    run(one, BlockFrankWolfe(), stop=Stop(max_iter=2))  # what is worked out when first needed does not count
    assert first == one.fingerprint() == same.fingerprint()
    assert first["features"] != other.fingerprint()["features"]
    assert first == one.select(np.arange(4)).fingerprint()
    assert first["structure"] != other.fingerprint()["structure"]
    assert first["features"] != one.select([0, 1, 2, 2]).fingerprint()["features"]

"""Training that is cut anywhere and started again ends with the same bits."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import problems
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import STRUCTURES, make
from saving import Copier, figures, refused, resumed_from_each, run

import maxmargin as mm
from maxmargin import model_file
from maxmargin._interrupts import defer_interrupts
from maxmargin.losses import Hamming
from maxmargin.optimization import loop
from maxmargin.optimization.callbacks import Record
from maxmargin.problem import Problem
from maxmargin.solvers import (
    AveragedPerceptron,
    BlockFrankWolfe,
    Checkpoint,
    CheckpointError,
    Exact,
    Mira,
    Solution,
    Status,
    Stop,
    Subgradient,
    Validation,
    solve,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# Where processes that the tests start find the modules of the tests.
FOLDERS = [str(Path(module).parent) for module in (problems.__file__, __file__)]


@pytest.fixture(autouse=True)
def ctrl_c_interrupts():
    """Processes that were started in the background ignore Ctrl-C from the beginning."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """Hundreds of small files, none of which has to outlive the machine."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_every_structure(kind, tmp_path):
    resumed_from_each(make(kind, n=5, seed=2), BlockFrankWolfe(outputs=3), tmp_path, stop=Stop(1e-9, 12))


@pytest.mark.parametrize("region", [{"C": 1.0, "radius": 0.5}, {"C": 10.0}])
def test_signs_and_balls(region, tmp_path):
    resumed_from_each(make("chain", n=6, region=region, signs=True), BlockFrankWolfe(), tmp_path)


@pytest.mark.parametrize("rescaling", ["slack", "none"])
@pytest.mark.parametrize("kind", ["chain", "cut", "matching"])
def test_rescalings(kind, rescaling, tmp_path):
    problem = dataclasses.replace(make(kind, n=4, seed=4), rescaling=rescaling)
    resumed_from_each(problem, BlockFrankWolfe(), tmp_path, stop=Stop(1e-6, 12))


def test_gram_matrices_are_those_of_before(tmp_path):
    # Few outputs are kept, so that atoms come and go; tiny differences of inner products would grow over 300 passes.
    problem = make("chain", n=20, seed=5, region={"C": 100.0})
    solver = BlockFrankWolfe(outputs=4)
    long = Stop(tol=0.0, max_iter=300)
    whole = run(problem, solver, stop=long)
    run(problem, solver, tmp_path / "run", stop=Stop(tol=0.0, max_iter=151))
    assert run(problem, solver, tmp_path / "run", stop=long).weights.tobytes() == whole.weights.tobytes()


@settings(deadline=None, derandomize=True, max_examples=15)
@given(
    kind=st.sampled_from(["chain", "chain-edges", "matching", "tree", "cut"]),
    seed=st.integers(0, 1000),
    n=st.integers(0, 6),
    cut=st.integers(1, 12),
    threads=st.sampled_from([1, 2, 3]),
)
def test_cut_anywhere_with_other_threads(kind, seed, n, cut, threads, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cut")
    problem = make(kind, seed=seed, n=n)
    whole = run(problem, BlockFrankWolfe(), stop=Stop(1e-5, 30), n_jobs=1)

    class Killed(Exception):
        pass

    def kill(record: Record) -> None:
        if record.iteration >= cut:
            raise Killed

    with contextlib.suppress(Killed):
        run(problem, BlockFrankWolfe(), folder / "run", stop=Stop(1e-5, 30), callbacks=[kill], n_jobs=threads)
    again = run(problem, BlockFrankWolfe(), folder / "run", stop=Stop(1e-5, 30), n_jobs=4 - threads)
    assert figures(again) == figures(whole)


def test_dev_scores_and_patience(tmp_path):
    problem = make("chain", n=10, seed=6)

    def fresh() -> Validation:
        return Validation(lambda w: -abs(float(np.abs(w).sum()) - 1.5), patience=4)

    chosen = fresh()
    whole = run(problem, BlockFrankWolfe(), callbacks=[chosen])
    assert whole.status is Status.STOPPED
    copier = Copier(tmp_path / "run", tmp_path)
    run(problem, BlockFrankWolfe(), tmp_path / "run", callbacks=[fresh(), copier])
    assert copier.copies
    for copy in [*copier.copies, tmp_path / "run"]:
        again = fresh()
        solution = run(problem, BlockFrankWolfe(), copy, callbacks=[again])
        assert figures(solution) == figures(whole)
        assert solution.message.split(" after ")[0] == whole.message.split(" after ")[0]
        assert again.history == chosen.history
        assert again.best_weights is not None
        assert chosen.best_weights is not None
        assert again.best_weights.tobytes() == chosen.best_weights.tobytes()
        assert (again.best_score, again.best_iteration) == (chosen.best_score, chosen.best_iteration)
    with pytest.raises(CheckpointError, match=r"stateful callbacks Validation, this run has none; give the same"):
        run(problem, BlockFrankWolfe(), tmp_path / "run")


def test_without_callbacks_passes_are_saved_too(tmp_path):
    # The perceptron is certified only at the end, but saved on the way.
    problem = make("chain", n=8, seed=1)
    whole = run(problem, AveragedPerceptron(), stop=Stop(max_iter=9))
    half = run(problem, AveragedPerceptron(), tmp_path / "run", stop=Stop(max_iter=4))
    assert half.counters.iterations == 4
    again = run(problem, AveragedPerceptron(), tmp_path / "run", stop=Stop(max_iter=9))
    assert again.weights.tobytes() == whole.weights.tobytes()
    assert again.status is whole.status


def test_an_ended_run_returns_at_once(tmp_path):
    problem = make("matching", n=6, seed=1)
    first = run(problem, BlockFrankWolfe(), tmp_path / "run", stop=Stop(1e-3))
    assert first.status is Status.CONVERGED
    steps: list[Record] = []
    again = run(problem, BlockFrankWolfe(), tmp_path / "run", stop=Stop(1e-3), callbacks=[steps.append])
    assert figures(again) == figures(first)
    assert not steps


def test_a_budget_may_be_raised(tmp_path):
    problem = make("chain", n=6, seed=1, region={"C": 10.0})
    short = run(problem, BlockFrankWolfe(), tmp_path / "run", stop=Stop(1e-9, 5), every=1e9)
    assert short.status is Status.BUDGET
    long = run(problem, BlockFrankWolfe(), tmp_path / "run", stop=Stop(1e-9, 40), every=1e9)
    assert long.weights.tobytes() == run(problem, BlockFrankWolfe(), stop=Stop(1e-9, 40)).weights.tobytes()
    assert long.counters.iterations > 5


def test_seconds_add_up(tmp_path):
    problem = make("chain", n=6, seed=1, region={"C": 10.0})

    def slow(record: Record) -> None:
        time.sleep(0.02)

    first = run(problem, BlockFrankWolfe(), tmp_path / "run", stop=Stop(0.0, 10), callbacks=[slow])
    again = run(problem, BlockFrankWolfe(), tmp_path / "run", stop=Stop(0.0, 20))
    assert len(again.history) > len(first.history)
    spent = [record.seconds for record in again.history]
    assert spent == sorted(spent)
    assert spent[: len(first.history)] == [record.seconds for record in first.history]
    over = run(problem, BlockFrankWolfe(), tmp_path / "run", stop=Stop(0.0, 10_000, max_seconds=0.02))
    assert over.status is Status.BUDGET
    assert over.counters.iterations == 20


class Interrupted(BlockFrankWolfe):
    """Ctrl-C within the step after so many iterations, once the blocks have moved."""

    at = 0
    seen = 0

    def step(self, run, state):
        after = super().step(run, state)
        if run.counters.iterations == self.at:
            self.interrupt()
        type(self).seen = run.counters.iterations + 1  # the rest of the step is done, if it may be
        return after

    def interrupt(self) -> None:
        signal.raise_signal(signal.SIGINT)


class Broken(Interrupted):
    """An interruption that comes by other means than the signal."""

    def interrupt(self) -> None:
        raise KeyboardInterrupt


def interrupted(kind: type[Interrupted], at: int) -> Interrupted:
    return type("BlockFrankWolfe", (kind,), {"at": at})()


@pytest.mark.parametrize("at", [0, 3, 9, 12])  # 9 and 12: no certificate is due after these
def test_interrupted(at, tmp_path):
    problem = make("chain", n=8, seed=1, region={"C": 10.0})
    whole = run(problem, BlockFrankWolfe())
    handler = signal.getsignal(signal.SIGINT)
    solver = interrupted(Interrupted, at)
    cut = run(problem, solver, tmp_path / "run", every=1e9)
    assert cut.status is Status.INTERRUPTED
    assert cut.counters.iterations == at + 1 == solver.seen
    assert signal.getsignal(signal.SIGINT) is handler
    header, _ = model_file.read(tmp_path / "run")
    assert header["counters"]["iterations"] == at + 1
    assert figures(run(problem, BlockFrankWolfe(), tmp_path / "run", every=1e9)) == figures(whole)


def test_interrupted_in_the_last_step(tmp_path):
    # The certificate of the end, which the schedule does not ask for, is taken by the run that goes on.
    problem = make("chain", n=8, seed=1, region={"C": 10.0})
    stop = Stop(1e-9, 18)
    whole = run(problem, BlockFrankWolfe(), stop=stop)
    cut = run(problem, interrupted(Interrupted, 17), tmp_path / "run", every=1e9, stop=stop)
    assert len(cut.history) == len(whole.history) - 1
    assert figures(run(problem, BlockFrankWolfe(), tmp_path / "run", every=1e9, stop=stop)) == figures(whole)


@pytest.mark.parametrize("solver", [AveragedPerceptron(), Mira(k=2), Subgradient()])
def test_interrupted_passes(solver, tmp_path, monkeypatch):
    problem = make("chain", n=8, seed=1)
    stop = Stop(1e-9, 9)
    whole = run(problem, solver, stop=stop)
    plain = type(solver).step

    def step(self, run, state):
        if run.counters.iterations == 4:
            signal.raise_signal(signal.SIGINT)
        return plain(self, run, state)

    with monkeypatch.context() as patch:
        patch.setattr(type(solver), "step", step)
        cut = run(problem, solver, tmp_path / "run", every=1e9, stop=stop)
    assert (cut.status, cut.counters.iterations) == (Status.INTERRUPTED, 5)
    assert figures(run(problem, solver, tmp_path / "run", every=1e9, stop=stop)) == figures(whole)


def test_a_step_that_is_broken_off_is_not_saved(tmp_path):
    problem = make("chain", n=8, seed=1, region={"C": 10.0})
    whole = run(problem, BlockFrankWolfe())
    cut = run(problem, interrupted(Broken, 3), tmp_path / "none", every=1e9)
    assert cut.status is Status.INTERRUPTED
    assert not (tmp_path / "none").exists()
    assert run(problem, interrupted(Broken, 3), tmp_path / "run").status is Status.INTERRUPTED
    header, _ = model_file.read(tmp_path / "run")
    assert header["counters"]["iterations"] == 3
    assert figures(run(problem, BlockFrankWolfe(), tmp_path / "run")) == figures(whole)


@pytest.mark.parametrize("where", ["certificate", "callback"])
@pytest.mark.parametrize("kind", ["chain", "cut"])
@pytest.mark.parametrize("at", [1, 5, 12])
def test_interrupted_between_steps(at, kind, where, tmp_path, monkeypatch):
    problem = make(kind, n=8, seed=1, region={"C": 10.0})
    left = [at]

    def scorer(w: np.ndarray) -> float:
        return -abs(float(np.abs(w).sum()) - 1.5)

    def interrupt(record: Record) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    def certify(*given: Any) -> Any:
        interrupt(given[0])
        return plain(*given)

    plain = loop.certify
    chosen, first, again = (Validation(scorer) for _ in range(3))
    whole = run(problem, BlockFrankWolfe(), callbacks=[chosen])
    with monkeypatch.context() as patch:
        if where == "certificate":
            patch.setattr(loop, "certify", certify)
        callbacks = [first] if where == "certificate" else [first, interrupt]
        if where == "certificate" and at == 1:
            patch.setattr(loop, "certify", lambda *given: signal.raise_signal(signal.SIGINT))
            with pytest.raises(KeyboardInterrupt, match="before the first certificate"):
                run(problem, BlockFrankWolfe(), tmp_path / "run", every=1e9, callbacks=callbacks)
        else:
            cut = run(problem, BlockFrankWolfe(), tmp_path / "run", every=1e9, callbacks=callbacks)
            assert cut.status is Status.INTERRUPTED
    solution = run(problem, BlockFrankWolfe(), tmp_path / "run", every=1e9, callbacks=[again])
    assert figures(solution) == figures(whole)
    assert again.history == chosen.history


def test_interruptions_elsewhere_than_in_the_main_thread(tmp_path):
    problem = make("chain", n=4, seed=1)
    found: list[Solution] = []
    thread = threading.Thread(target=lambda: found.append(run(problem, BlockFrankWolfe(), tmp_path / "run")))
    thread.start()
    thread.join()
    assert figures(found[0]) == figures(run(problem, BlockFrankWolfe()))


def test_ctrl_c_waits_for_the_end_of_the_block():
    done = []

    def work() -> None:
        with defer_interrupts():
            signal.raise_signal(signal.SIGINT)
            done.append(1)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with defer_interrupts():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_states_are_made_plain_for_writing_only(tmp_path, monkeypatch):
    frozen = []
    plain = BlockFrankWolfe.state_dict
    monkeypatch.setattr(BlockFrankWolfe, "state_dict", lambda self, state: (frozen.append(1), plain(self, state))[1])
    run(make("chain", n=3), BlockFrankWolfe(), tmp_path / "run", every=1e9)
    assert len(frozen) == 1


KILLED = """
import sys, time
sys.path[:0] = sys.argv[2:]
from test_checkpoint import estimator, data
X, y = data()
def tell(record):
    print(record.iteration, flush=True)
    time.sleep(0.02)
estimator(sys.argv[1], callbacks=[tell]).fit(X, y, dev=(X[:5], y[:5]))
"""


def data() -> tuple[list[np.ndarray], list[list[str]]]:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(int(rng.integers(2, 9)), 5)) for _ in range(30)]
    return X, [["up" if row[0] + rng.normal() > row[1] else "down" for row in x] for x in X]


def estimator(path: str | None, **options: Any) -> mm.ChainSVM:
    checkpoint = None if path is None else Checkpoint(path, every=0.0)
    return mm.ChainSVM(
        C=1.0, solver=BlockFrankWolfe(), tol=1e-7, max_iter=60, random_state=0, checkpoint=checkpoint, **options
    )


def test_killed_process(tmp_path):
    path = str(tmp_path / "run")
    X, y = data()
    whole = estimator(None).fit(X, y, dev=(X[:5], y[:5]))
    command = [sys.executable, "-c", KILLED, path, *FOLDERS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= 5:
                os.kill(process.pid, signal.SIGKILL)
                break
        process.wait()
    assert process.returncode == -signal.SIGKILL
    assert Path(path).exists()
    again = estimator(path).fit(X, y, dev=(X[:5], y[:5]))
    assert again.coef_.tobytes() == whole.coef_.tobytes()
    assert again.dev_scores_ == whole.dev_scores_
    assert figures(again.solution_) == figures(whole.solution_)


def test_estimators_remove_it_when_done(tmp_path):
    X, y = data()
    path = tmp_path / "run"
    model = mm.ChainSVM(C=0.1, checkpoint=path).fit(X, y)
    assert model.solution_.solver == mm.ChainSVM(C=0.1).fit(X, y).solution_.solver
    assert not path.exists()
    kept = Checkpoint(path, keep=True)
    mm.ChainSVM(C=0.1, checkpoint=kept).fit(X, y)
    assert path.exists()
    kept.remove()
    kept.remove()
    mm.ChainSVM(C=10.0, checkpoint=str(path), max_iter=2).fit(X, y)
    assert path.exists()  # for a larger budget
    with pytest.raises(CheckpointError, match="run: C, radius or norm differ; remove it to start over"):
        mm.ChainSVM(C=1.0, checkpoint=str(path)).fit(X, y)
    with pytest.raises(ValueError, match="checkpoint must be the name of a file or a Checkpoint, got 3"):
        mm.ChainSVM(checkpoint=3).fit(X, y)


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
sys.path[:0] = sys.argv[2:]
from test_checkpoint import BlockFrankWolfe, Path, Stop, make, run
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
    command = [sys.executable, "-c", LIMITED, str(path), *FOLDERS]
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

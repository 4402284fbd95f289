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
from saving import Copier, figures, resumed_from_each, run

import maxmargin as mm
from maxmargin import model_file
from maxmargin._interrupts import defer_interrupts
from maxmargin.optimization import loop
from maxmargin.optimization.callbacks import Record
from maxmargin.solvers import (
    AveragedPerceptron,
    BlockFrankWolfe,
    Checkpoint,
    CheckpointError,
    Mira,
    Solution,
    Status,
    Stop,
    Subgradient,
    Validation,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# Where processes that the tests start find the modules of the tests.
FOLDERS = [str(Path(module).parent) for module in (problems.__file__, __file__)]


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

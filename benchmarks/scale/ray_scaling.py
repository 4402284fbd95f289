"""What a round of Ray costs, and what two workers gain over one, on machine-aligned pairs as in the 2005 report.

    python -m benchmarks.scale.ray_scaling [--data FOLDER] [--pairs 5000] [--iterations 30]

Prints one JSON object. First milliseconds, least and median, of a round of two actors that do nothing, and of a call of
a session with two workers that send back the weights they are given, for several lengths of these; and milliseconds of
CPU time of this process in a call with a thousand weights, for one, two and four workers. Then, for iterations
of dual extragradient on one worker and on two of one thread each, which take turns: seconds of wall time; CPU seconds
of this process, and of each worker's work; and the critical path, which is this process and the slowest worker. And the
same without Ray, in this process.
``ideal`` is the critical path of two workers whose shards take what they took one worker, one after the other: what is
lost against it is the cost of working at the same time (memory, caches, other processes). Medians. ``spread`` is the
standard deviation of the CPU time of a worker's iterations over their mean. Without the data of the Hansards, two
synthetic languages.
"""

from __future__ import annotations

import argparse
import itertools
import json
import pickle
import resource
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks.papers import alignment_workloads as alignment
from maxmargin import _threads
from maxmargin.execution import Executor, HeldPieces, Piece, Ray, Serial, Session, ShardedProblem
from maxmargin.execution.ray import connected
from maxmargin.optimization.run import Run
from maxmargin.optimization.solver import Start
from maxmargin.training import Settings

LENGTHS = (380, 10_000, 100_000, 1_000_000, 10_000_000)
"""Of weights in messages."""


def milliseconds(call: Callable[[], Any], times: int) -> list[float]:
    """The least and the median time of a call."""
    call()
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return [1e3 * min(seconds), 1e3 * float(np.median(seconds))]


def calling_cpu(problem: Any, workers: int, times: int = 100) -> float:
    """Milliseconds of CPU time of this process in a call with a thousand weights to so many workers."""
    session = Ray(workers=workers, threads=1).open(HeldPieces.of(problem, None, workers))
    call = partial(session.sums, nothing, np.zeros(1000))
    call()
    began = time.process_time()
    for _ in range(times):
        call()
    took = time.process_time() - began
    session.close()
    return 1e3 * took / times


def nothing(piece: Piece, memory: Any, weights: Any) -> tuple[tuple[Any], Any]:
    return (weights,), memory


def timed(piece: Any, memory: Any, work: Any, *args: Any) -> tuple[Any, Any]:
    """Work, and the CPU seconds that it took: those of its thread, as there is only one."""
    began = time.thread_time()
    found, memory = work(piece, memory, *args)
    return (*found, [time.thread_time() - began]), memory


def peak(piece: Any, memory: Any) -> tuple[tuple[list[float]], Any]:
    """The largest memory of the process, mapped pages of Ray's store included."""
    return ([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024],), memory


class Watched:
    """A session whose sums are timed where they are made, shard by shard."""

    def __init__(self, session: Session) -> None:
        self.session, self.cpu = session, np.zeros(session.n_shards)
        self.pieces: list[float] = []
        self._sums = session.sums
        session.sums = self.sums  # type: ignore[method-assign]

    def sums(self, work: Any, *args: Any, eager: bool = False) -> tuple[Any, ...]:
        """The sums of the session."""
        *found, self.pieces = self._sums(timed, work, *args, eager=eager)
        edges = self.session.shard_edges.tolist()
        self.cpu = np.array([sum(self.pieces[first:last]) for first, last in itertools.pairwise(edges)])
        return tuple(found)


class Steps:
    """Iterations of a solver, timed one by one."""

    def __init__(self, problem: Any, executor: Executor, pieces: int, threads: int = 1) -> None:
        self.executor, self.threads = executor, threads
        self.solver = mm.DualExtragradient(store_duals=False, warm_starts=False)
        source = HeldPieces.of(problem, self.solver.shard_size, pieces)
        session = executor.open(source)
        whole = ShardedProblem(source, like=problem.select([])).over(session)
        self.run = Run(whole, np.random.default_rng(0), session, problem, warm_starts=False)
        self.state = self.solver.init(self.run, Start())
        self.watched = Watched(session)
        self.step()
        self.wall, self.driver, self.workers, self.pieces = [], [], [], []

    def step(self) -> None:
        """One iteration."""
        with _threads.threads(self.threads):
            self.state = self.solver.step(self.run, self.state)

    def measure(self) -> None:
        """One iteration, timed."""
        wall, cpu = time.perf_counter(), time.process_time()
        self.step()
        self.driver.append(time.process_time() - cpu)
        self.wall.append(time.perf_counter() - wall)
        self.workers.append(self.watched.cpu)
        self.pieces.append(self.watched.pieces)

    def found(self) -> dict[str, Any]:
        """Seconds of an iteration."""
        workers = np.array(self.workers)
        if isinstance(self.executor, Serial):
            return {"wall": float(np.median(self.wall)), "CPU": float(np.median(self.driver))}
        return {
            "wall": float(np.median(self.wall)),
            "driver CPU": float(np.median(self.driver)),
            "worker CPU": np.median(workers, axis=0).tolist(),
            "critical path": float(np.median(np.array(self.driver) + workers.max(axis=1))),
            "spread": float(np.median(workers.std(axis=0) / workers.mean(axis=0))),
            "worker MB": self.run.session.sums(peak)[0],
        }


class Idle:
    """An actor that does nothing."""

    def call(self) -> int:
        """Nothing."""
        return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="Folder of the Hansards.")
    parser.add_argument("--pairs", type=int, default=5000)
    parser.add_argument("--iterations", type=int, default=30)
    options = parser.parse_args()
    text = alignment.synthetic(40, options.pairs) if options.data is None else alignment.hansards(options.data)
    encoder = text.encoder(withheld=alignment.WITHHELD)
    problem = text.machine_aligned(encoder, options.pairs).problem(Settings(C=0.01, loss=alignment.LOSS), 0.01)
    one, two, alone = Ray(workers=1, threads=1), Ray(workers=2, threads=1), Ray(workers=1, threads=1)
    ray = connected(two)
    actors = [ray.remote(Idle).remote() for _ in range(2)]
    found: dict[str, Any] = {"parts": problem.n_parts, "weights": problem.n_weights}
    found["bytes a part"] = len(pickle.dumps(problem, 5)) / problem.n_parts
    found["no-op Ray round, ms"] = milliseconds(lambda: ray.get([actor.call.remote() for actor in actors]), 200)
    session = Ray(workers=2, threads=1).open(HeldPieces.of(problem, None, 2))
    found["call with so many weights, ms"] = {
        length: milliseconds(partial(session.sums, nothing, np.zeros(length)), 200 if length < 10**6 else 10)
        for length in LENGTHS
    }
    session.close()
    del session
    found["CPU ms of this process in a call"] = {workers: calling_cpu(problem, workers) for workers in (1, 2, 4)}
    here = {
        "here, one thread": Steps(problem, Serial(), 1),
        "here, two threads": Steps(problem, Serial(), 1, threads=2),
    }
    runs = {**here, "one worker": Steps(problem, one, 1), "two workers": Steps(problem, two, 2)}
    halves = Steps(problem, alone, 2)  # the shards of two workers, one after the other
    for _ in range(options.iterations):
        for steps in (*runs.values(), halves):
            steps.measure()
    found |= {f"seconds an iteration, {name}": steps.found() for name, steps in runs.items()}
    separate = [np.median(own) for own in np.array(halves.pieces).T]
    slow, fast = (found[f"seconds an iteration, {name}"] for name in ("one worker", "two workers"))
    ideal = fast["driver CPU"] + max(separate)
    found |= {
        "speedup, wall": slow["wall"] / fast["wall"],
        "speedup, critical path": slow["critical path"] / fast["critical path"],
        "ideal": {"critical path": ideal, "speedup": slow["critical path"] / ideal, "shards": separate},
        "CPU of two workers over one": sum(fast["worker CPU"]) / sum(slow["worker CPU"]),
    }
    for steps in (*runs.values(), halves):
        steps.run.session.close()
    print(json.dumps(found))


if __name__ == "__main__":
    main()

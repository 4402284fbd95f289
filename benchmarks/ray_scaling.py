"""What a round of Ray costs, and what two workers gain over one, on machine-aligned pairs as in the 2005 report.

    python benchmarks/ray_scaling.py [--data FOLDER] [--pairs 5000] [--iterations 20]

Prints one JSON object: milliseconds of a round of two actors that do nothing, of a call of a session that does nothing
with messages as long as the weights, and seconds of an iteration of dual extragradient with one and two workers of one
thread each. Without the data of the Hansards, two synthetic languages.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "papers"))
import alignment_workloads as alignment

import maxmargin as mm
from maxmargin.execution import HeldPieces, Piece, Ray
from maxmargin.execution.ray import connected
from maxmargin.optimization.run import Run
from maxmargin.optimization.solver import Start
from maxmargin.training import Settings


def median(call: Callable[[], Any], times: int) -> float:
    call()
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds))


def nothing(piece: Piece, memory: Any, weights: Any) -> tuple[tuple[Any], Any]:
    return (weights,), memory


class Idle:
    """An actor that does nothing."""

    def call(self) -> int:
        """Nothing."""
        return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="Folder of the Hansards.")
    parser.add_argument("--pairs", type=int, default=5000)
    parser.add_argument("--iterations", type=int, default=20)
    options = parser.parse_args()
    text = alignment.synthetic(40, options.pairs) if options.data is None else alignment.hansards(options.data)
    encoder = text.encoder(withheld=alignment.WITHHELD)
    pairs = text.machine_aligned(encoder, options.pairs)
    problem = pairs.problem(Settings(C=0.01, loss=alignment.LOSS), 0.01)
    solver = mm.DualExtragradient(store_duals=False, warm_starts=False)
    executors = {workers: Ray(workers=workers, threads=1) for workers in (1, 2)}
    ray = connected(executors[2])
    actors = [ray.remote(Idle).remote() for _ in range(2)]
    found: dict[str, Any] = {"parts": problem.n_parts, "weights": problem.n_weights}
    found["no-op Ray round, ms"] = 1e3 * median(lambda: ray.get([actor.call.remote() for actor in actors]), 200)
    session = executors[2].open(HeldPieces.of(problem, None, 2))
    found["no-op session call, ms"] = 1e3 * median(lambda: session.sums(nothing, np.zeros(problem.n_weights)), 200)
    session.close()
    for workers, executor in executors.items():
        run = Run.of(problem, np.random.default_rng(0), solver.shard_size, executor=executor, sharded=True)
        run.warm_starts = False
        states = [solver.init(run, Start())]

        def step(run: Run = run, states: list[Any] = states) -> None:
            states[0] = solver.step(run, states[0])

        found[f"seconds an iteration, {workers} workers"] = median(step, options.iterations)
        run.session.close()
    one, two = (found[f"seconds an iteration, {workers} workers"] for workers in (1, 2))
    print(json.dumps({**found, "speedup": one / two}))


if __name__ == "__main__":
    main()

"""Peak memory of training on a ShardedDataset as the data grow tenfold, and its time against training in memory.

    python -m benchmarks.scale.out_of_core [--gigabytes 10] [--folder FOLDER] [--iterations 3]

Made-up words of 5 to 11 letters, 128 dense features per letter, 26 labels: about nine bytes of features per part, so
that ten gigabytes of packed parts take about twelve gigabytes of files. Memory: a dataset of a tenth of the size and
one of the whole size are built and trained on (memory-efficient dual extragradient), each in a process of its own; its
peak is ``ru_maxrss``, which counts mapped pages of files as well, beside the largest anonymous memory, sampled. Time:
CPU seconds and wall time of the same solvers on a dataset that the page cache holds, and on the same pieces in memory,
in one process, after one pass over each. Files are removed afterwards. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm
from maxmargin.datasets import DataBlock
from maxmargin.encoders import ChainEncoder, MatchingEncoder
from maxmargin.encoders.base import Encoder

LABELS, WIDTH, BLOCK = 26, 128, 1000
PARTS_OF_A_WORD = 8 * LABELS + LABELS**2


def words(count: int) -> Iterator[DataBlock]:
    """Blocks of random words; the labels are those of a hidden model, mostly."""
    hidden = np.random.default_rng(0).normal(size=(WIDTH, LABELS))
    for first in range(0, count, BLOCK):
        rng = np.random.default_rng([1, first])
        lengths = rng.integers(5, 12, size=min(BLOCK, count - first))
        rows = rng.normal(size=(int(lengths.sum()), WIDTH))
        labels = (rows @ hidden + 8.0 * rng.normal(size=(len(rows), LABELS))).argmax(1)
        cuts = np.cumsum(lengths)[:-1]
        yield DataBlock(np.split(rows, cuts), [own.tolist() for own in np.split(labels, cuts)])


def pairs(count: int) -> Iterator[DataBlock]:
    """Blocks of sentence pairs whose links have twenty features; the first is larger for gold links."""
    for first in range(0, count, 100):
        rng, X, y = np.random.default_rng([2, first]), [], []
        for left, right in rng.integers(10, 31, size=(min(100, count - first), 2)):
            common = min(left, right)
            links = np.stack([rng.permutation(left)[:common], rng.permutation(right)[:common]], axis=1)
            x = rng.normal(size=(left, right, 20))
            x[links[:, 0], links[:, 1], 0] += 1.5
            X.append(x)
            y.append(links)
        yield DataBlock(X, y)


def chain_encoder() -> Encoder:
    return ChainEncoder(classes=tuple(range(LABELS)))


class Peak:
    """The largest anonymous memory of this process, sampled, and its largest memory by the system's own account."""

    def __enter__(self) -> Peak:
        self.anonymous, self._stop = 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._stop.wait(0.01):
            lines = Path("/proc/self/status").read_text().splitlines()
            own = next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
            self.anonymous = max(self.anonymous, own)

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def megabytes(self) -> dict[str, float]:
        """Both peaks."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return {"peak_mb": round(peak / 1024, 1), "anonymous_mb": round(self.anonymous / 1024, 1)}


def build(folder: Path, count: int) -> dict[str, Any]:
    with Peak() as peak:
        began = time.process_time(), time.perf_counter()
        dataset = mm.ShardedDataset.build(folder, chain_encoder(), lambda: words(count))
        seconds = time.process_time() - began[0], time.perf_counter() - began[1]
    sizes = {"examples": len(dataset), "parts": dataset.n_parts, "packed_gb": round(8e-9 * dataset.n_parts, 2)}
    files = {"shards": len(dataset.shards), "files_gb": round(1e-9 * dataset.nbytes, 2)}
    return {**sizes, **files, "cpu_s": round(seconds[0], 1), "wall_s": round(seconds[1], 1), **peak.megabytes()}


def estimator(solver: mm.solvers.Solver, iterations: int, kind: Any = mm.ChainSVM, **settings: Any) -> Any:
    return kind(C=1e-3, solver=solver, max_iter=iterations, tol=1e-9, **settings)


def train(folder: Path, iterations: int) -> dict[str, Any]:
    solver = mm.DualExtragradient(store_duals=False, warm_starts=False)
    with Peak() as peak:
        began = time.process_time(), time.perf_counter()
        model = estimator(solver, iterations, classes=tuple(range(LABELS))).fit(mm.ShardedDataset(folder))
        seconds = time.process_time() - began[0], time.perf_counter() - began[1]
    found = {"primal": model.solution_.certificate.primal, "iterations": model.solution_.counters.iterations}
    return {**found, "cpu_s": round(seconds[0], 1), "wall_s": round(seconds[1], 1), **peak.megabytes()}


def timed(fit: Any) -> dict[str, float]:
    """Seconds of the second of two calls, the first of which has made everything warm."""
    fit()
    began = time.process_time(), time.perf_counter()
    fit()
    return {"cpu_s": time.process_time() - began[0], "wall_s": time.perf_counter() - began[1]}


def compared(folder: Path, iterations: int) -> dict[str, Any]:
    """Time of training from files, and in memory on the same examples."""
    tasks: dict[str, Any] = {
        "words": (mm.ChainSVM, {"classes": tuple(range(LABELS))}, chain_encoder(), lambda: words(50_000)),
        "sentence pairs": (mm.MatchingSVM, {}, MatchingEncoder(), lambda: pairs(5_000)),
    }
    solvers = {
        "dual extragradient": mm.DualExtragradient(store_duals=False, warm_starts=False),
        "projected subgradient": mm.ProjectedSubgradient(),
    }
    found: dict[str, Any] = {}
    for task, (kind, settings, encoder, source) in tasks.items():
        dataset = mm.ShardedDataset.build(folder / task.replace(" ", "-"), encoder, source)
        X = [x for block in source() for x in block.X]
        y = [one for block in source() for one in block.y]
        for name, solver in solvers.items():
            model = estimator(solver, iterations, kind, **settings)
            examples = model._examples(X, y, None, None)
            files = timed(lambda model=model, dataset=dataset: model.fit(dataset))
            memory = timed(lambda model=model, examples=examples: model._fit(lambda: examples, None))
            found[f"{task}, {name}"] = {
                "files_gb": round(1e-9 * dataset.nbytes, 2),
                **{f"files_{unit}": round(value, 2) for unit, value in files.items()},
                **{f"memory_{unit}": round(value, 2) for unit, value in memory.items()},
                **{f"ratio_{unit[:-2]}": round(files[unit] / memory[unit], 3) for unit in files},
            }
        shutil.rmtree(dataset.folder)
    return found


def in_process(*arguments: Any) -> dict[str, Any]:
    """One part of the benchmark in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scale.out_of_core", "--part", *map(str, arguments)]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=10.0, help="packed parts of the large dataset")
    parser.add_argument("--folder", type=Path, default=None, help="where files are made; a temporary folder by default")
    parser.add_argument("--iterations", type=int, default=3)
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.part:
        name, folder, number = given.part
        part = {"build": build, "train": train, "compare": compared}[name]
        print(json.dumps(part(Path(folder), int(number))))
        return
    folder = Path(tempfile.mkdtemp(dir=given.folder))
    count = int(given.gigabytes * 1e9 / 8 / PARTS_OF_A_WORD)
    found: dict[str, Any] = {}
    try:
        for name, size in (("tenth", count // 10), ("whole", count)):
            found[name] = {"build": in_process("build", folder / name, size)}
            found[name]["train"] = in_process("train", folder / name, given.iterations)
            shutil.rmtree(folder / name)
        for part in ("build", "train"):
            peaks = [found[name][part]["peak_mb"] for name in ("tenth", "whole")]
            found[f"{part}_peak_growth"] = round(peaks[1] / peaks[0] - 1.0, 4)
        found["time"] = in_process("compare", folder, given.iterations)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()

"""Translation models learned from a bitext on disk: two workers of Ray against one, and memory as the text grows.

    python -m benchmarks.scale.translation_ray [--data FOLDER] [--pairs 100000] [--iterations 5] [--only time|memory]

Prints one JSON object. *Time*: the models of words of the bitext of the Hansards (``--data``), or of ``--pairs``
made-up sentence pairs, so many iterations of Model 1 and as many of the hidden Markov models, by one worker and by two,
of one thread each; this process has as many threads as there are workers, which wait while it works. Seconds of wall
time; CPU seconds of this process and of the workers; and the critical path: this process and, in every call, the
slowest worker. ``ideal`` would share all work of one worker evenly. Preparation, which counts words and finds those
that co-occur, is listed apart. *Memory*: made-up texts of a tenth of ``--pairs`` and of all, with a limit on the tables
that both meet; peaks in megabytes (``ru_maxrss``, mapped files included) of a process that learns from the files, and
of the process and the workers of a run on Ray. Files are removed afterwards.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import workloads
from maxmargin import _threads
from maxmargin.execution import Ray
from maxmargin.tasks.alignment import ShardedBitext
from maxmargin.tasks.alignment.translation.cooccurrences import PreparedBitext
from maxmargin.tasks.alignment.translation.models import learn

WORDS = 20_000
"""Distinct words of a made-up language."""
MAX_ENTRIES = 1_000_000
"""Word pairs of the tables where memory is measured."""
SHARD_PAIRS = 5000
"""Sentence pairs of a file where memory is measured."""


def write_text(folder: Path, pairs: int) -> tuple[Path, Path]:
    """Sentences of 4 to 36 words by Zipf's law, translated word by word, with some noise and another order."""
    files = folder / f"{pairs}.source", folder / f"{pairs}.target"
    share = np.cumsum(1.0 / (10.0 + np.arange(WORDS)))
    rng = np.random.default_rng(0)
    translation = rng.permutation(WORDS)

    def drawn(count: int) -> Any:
        return np.searchsorted(share, share[-1] * rng.random(count))

    with open(files[0], "w", encoding="ascii") as source, open(files[1], "w", encoding="ascii") as target:
        for length in rng.integers(4, 37, size=pairs).tolist():
            words = drawn(length)
            other = np.where(rng.random(length) < 0.2, drawn(length), translation[words])
            other = other[np.argsort(np.arange(length) + rng.normal(scale=1.5, size=length))]
            source.write(" ".join([f"s{word}" for word in words.tolist()]) + "\n")
            target.write(" ".join([f"t{word}" for word in other.tolist()]) + "\n")
    return files


def timed(piece: Any, memory: Any, work: Any, *args: Any) -> tuple[Any, Any]:
    """Work; its CPU seconds, those of its thread, as there is only one; and the peak of memory of its process."""
    began = time.thread_time()
    found, memory = work(piece, memory, *args)
    return (found, time.thread_time() - began, _peak()), memory


def timed_sums(piece: Any, memory: Any, work: Any, *args: Any) -> tuple[Any, Any]:
    """The same for results that are added."""
    (found, seconds, peak), memory = timed(piece, memory, work, *args)
    return (*found, [seconds], [peak]), memory


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Watched:
    """Passes over a bitext whose work is timed where it is done: a piece a worker."""

    def __init__(self, passes: Any) -> None:
        session, self.seconds, self.peaks = passes._session, [], []
        self._each, self._sums = session.each, session.sums
        session.each, session.sums = self.each, self.sums

    def each(self, work: Any, *args: Any, eager: bool = False) -> Iterator[Any]:
        """The results of the session."""
        self.seconds.append([])
        for result, seconds, peak in self._each(timed, work, *args, eager=eager):
            self.seconds[-1].append(seconds)
            self.peaks.append(peak)
            yield result

    def sums(self, work: Any, *args: Any, eager: bool = False) -> tuple[Any, ...]:
        """The sums of the session."""
        *found, seconds, peaks = self._sums(timed_sums, work, *args, eager=eager)
        self.seconds.append(seconds)
        self.peaks += peaks
        return tuple(found)

    def take(self) -> dict[str, float]:
        """CPU seconds of the workers since the last time, and those of the slowest one of each call."""
        taken, self.seconds = self.seconds, []
        return {"worker CPU": sum(map(sum, taken)), "slowest": sum(map(max, taken))}


def learned(folder: Path, workers: int, iterations: int, max_entries: int | None = None) -> dict[str, Any]:
    """Learn the models of words by workers or, for 0, in this process: seconds, and megabytes."""
    passes = ShardedBitext(folder).passes(Ray(workers=workers, threads=1) if workers else None, max_entries)
    watched, found = Watched(passes), {}
    list(passes._session.each(_nothing))  # workers have started and imported what they need
    watched.take()
    clocks = time.perf_counter(), time.process_time()

    def took() -> dict[str, float]:
        nonlocal clocks
        now = time.perf_counter(), time.process_time()
        wall, cpu = now[0] - clocks[0], now[1] - clocks[1]
        clocks = now
        return {"wall": wall, "driver CPU": cpu, **watched.take()}

    with _threads.threads(max(1, workers)):
        prepared = PreparedBitext(passes)
        found["preparation"] = took()
        model = learn(prepared, model1_iterations=iterations, hmm_iterations=iterations)
        found["iterations"] = took()
    entries = model.cooccurrences.n_entries
    found |= {"word pairs": entries, "driver MB": _peak(), "worker MB": max(watched.peaks)}
    passes.close()
    return found


def _nothing(piece: Any, memory: Any) -> tuple[None, Any]:
    return None, memory


def compared(folder: Path, iterations: int) -> dict[str, Any]:
    """One worker and two."""
    one, two = (learned(folder, workers, iterations) for workers in (1, 2))
    found: dict[str, Any] = {"one worker": one, "two workers": two}
    for part in ("preparation", "iterations"):
        slow, fast = one[part], two[part]
        paths = [own["driver CPU"] + own["slowest"] for own in (slow, fast)]
        found[f"speedup of {part}"] = {
            "wall": slow["wall"] / fast["wall"],
            "critical path": paths[0] / paths[1],
            "ideal": paths[0] / (fast["driver CPU"] + slow["worker CPU"] / 2),
        }
    return found


def peaks(folder: Path, pairs: int, workers: int) -> dict[str, float]:
    """Peaks of a process of its own."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.scale.translation_ray",
        "--folder",
        str(folder),
        "--workers",
        str(workers),
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    return {"pairs": pairs, **{name: found[name] for name in ("word pairs", "driver MB", "worker MB")}}


def memory(folder: Path, pairs: int) -> dict[str, Any]:
    """Peaks for a tenth of the pairs and for all."""
    found: dict[str, Any] = {"in this process": [], "Ray, two workers": []}
    for count in (pairs // 10, pairs):
        ShardedBitext.build(folder / str(count), *write_text(folder, count), shard_pairs=SHARD_PAIRS)
        for name, workers in (("in this process", 0), ("Ray, two workers", 2)):
            found[name].append(peaks(folder / str(count), count, workers))
    for own in list(found.values()):
        own.append({name: own[1][name] / own[0][name] for name in ("driver MB", "worker MB")})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="Folder of the Hansards.")
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--only", choices=["time", "memory"])
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder is not None:
        print(json.dumps(learned(options.folder, options.workers, 2, MAX_ENTRIES)))
        return
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        if options.only != "memory":
            if options.data is None:
                files = write_text(place, options.pairs)
            else:
                base = workloads.need(options.data / "alignment/hansards")
                files = base / "bitext.e.gz", base / "bitext.f.gz"
            bitext = ShardedBitext.build(place / "time", *files)
            found["time"] = {"pairs": len(bitext), **compared(place / "time", options.iterations)}
        if options.only != "time":
            found["memory"] = memory(place, options.pairs)
    print(json.dumps(found))


if __name__ == "__main__":
    main()

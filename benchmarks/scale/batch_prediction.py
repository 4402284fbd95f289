"""Batch prediction: speed of tag predict and align predict with one and two workers, and memory at two sizes.

    python -m benchmarks.scale.batch_prediction

prints one JSON object. The text is the package's corpora, repeated: sizes are ten times apart. Each command is a
process of its own, with one thread per worker, so that two workers can be twice as fast as one on two free cores;
outputs must be the same to the byte. CPU seconds include those of the workers, and starting and loading. Peak memory is
that of the largest process.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import typer

MEASURED = """
import json, resource, subprocess, sys, time
began = time.perf_counter()
subprocess.run(sys.argv[1:], check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""


def measured(*command: str) -> dict[str, float]:
    found = subprocess.run([sys.executable, "-c", MEASURED, *command], capture_output=True, text=True, check=True)
    seconds, cpu, megabytes = json.loads(found.stdout.splitlines()[-1])
    return {"seconds": round(seconds, 2), "cpu_seconds": round(cpu, 2), "peak_megabytes": round(megabytes, 1)}


def command(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "maxmargin", *words)


def runs(words: tuple[str, ...], text: Any, units: str, per_copy: int, copies: int, folder: Path) -> dict[str, Any]:
    """Run a command on a text and one ten times as long, with one and two workers."""
    found: dict[str, Any] = {}
    for size, times in (("small", copies), ("large", 10 * copies)):
        text(times)
        digests = set()
        for workers in (1, 2):
            out = folder / "out"
            jobs = str(workers)  # one thread each
            one = measured(*command(*words, "--out", str(out), "--workers", str(workers), "--jobs", jobs))
            count = per_copy * times
            one |= {units: count, f"{units}_per_second": round(count / one["seconds"])}
            one[f"{units}_per_cpu_second"] = round(count / one["cpu_seconds"])
            found[f"{size}_{workers}_workers"] = one
            digests.add(hashlib.sha256(out.read_bytes()).hexdigest())
        assert len(digests) == 1, "the outputs differ"
    found["speedup_of_2_workers"] = round(found["large_1_workers"]["seconds"] / found["large_2_workers"]["seconds"], 2)
    for workers in (1, 2):
        large, small = (found[f"{size}_{workers}_workers"]["peak_megabytes"] for size in ("large", "small"))
        found[f"memory_of_ten_times_the_text_{workers}_workers"] = round(large / small, 3)
    return found


def main(copies: int = 10) -> None:
    """Measure.

    Args:
        copies: how often the corpus of tokens is repeated in the smaller text; twice as often the one of pairs.
    """
    from maxmargin.tasks import alignment, tagging

    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        corpus = tagging.load_corpus()
        corpus.write(folder / "train")
        options = ("--columns", "word,pos,label,_", "--label", "label", "--C", "0.1", "--folds", "0")
        model = str(folder / "tagger")
        train = command("tag", "train", str(folder / "train"), *options, "--out", model)
        subprocess.run(train, check=True, capture_output=True)
        data = (folder / "train").read_bytes().rstrip(b"\n") + b"\n\n"
        tokens = sum(map(len, corpus.tokens))

        def text(times: int) -> None:
            with open(folder / "text", "wb") as file:
                for _ in range(times):
                    file.write(data)

        found: dict[str, Any] = {
            "date": time.strftime("%Y-%m-%d"),
            "cores": os.cpu_count(),
            "load": round(os.getloadavg()[0], 1),
        }
        words = ("tag", "predict", model, str(folder / "text"))
        found["tag_predict"] = runs(words, text, "tokens", tokens, copies, folder)
        pairs = alignment.load_corpus()
        joined = "".join(
            f"{' '.join(e)} ||| {' '.join(f)}\n" for e, f in zip(pairs.source, pairs.target, strict=True)
        ).encode()
        (folder / "text").write_bytes(joined)
        with open(folder / "links", "w", encoding="utf-8") as file:
            alignment.write_links(file, pairs.references)
        model = str(folder / "aligner")
        fitted = ("--C", "0.1", "--false-negative", "2", "--tol", "1e-2")
        given = ("--source", str(folder / "text"), "--gold", str(folder / "links"))
        subprocess.run(command("align", "train", *given, *fitted, "--out", model), check=True, capture_output=True)
        data = joined
        words = ("align", "predict", model, "--source", str(folder / "text"), "--no-adapt")
        found["align_predict"] = runs(words, text, "pairs", len(pairs.source), 2 * copies, folder)
    print(json.dumps(found))


if __name__ == "__main__":
    typer.run(main)

"""Sequence tagging beside CRFsuite (and Wapiti where it is installed) on the same attributes: chunks, parts of speech.

    python -m benchmarks.tagging.trainers [--data ../shared/data] [--only chunking ewt genia command threads] [--quick]

Every trainer runs on one thread in a process of its own (workers.py): CPU and wall seconds, peak memory, scores
on the test (or dev) file, tokens decoded per second from prepared attributes. `command` times the whole
`maxmargin tag predict`, `threads` compares models of one and two threads, and of a run that was killed and resumed.
`--quick` leaves CRFsuite's L-BFGS and Wapiti out, which take a minute or two each.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.workloads import DATA, need

CERTIFIED = {"C": 0.1, "tol": 0.02}
QUICK = {"C": 0.1, "tol": 0.3}
"""Settings for chunking: one with a small certified gap, one that stops early."""


def run(trainer: str, dataset: str, folder: Path, **settings: Any) -> dict[str, Any]:
    """One trainer in its own process."""
    print(f"{dataset}: {trainer} {settings}", file=sys.stderr)
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "benchmarks.tagging.workers",
        trainer,
        dataset,
        str(folder),
        json.dumps(settings),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return {"trainer": trainer, "settings": settings, "failed": done.stderr.strip().splitlines()[-1:]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def cpu(row: dict[str, Any]) -> float:
    """CPU seconds of training with its features."""
    return float(row.get("attributes and training", row.get("training", [float("nan")]))[0])


def chunking(folder: Path, quick: bool) -> dict[str, Any]:
    need(folder / "tagging/conll2000/train.txt.gz")
    rows = {
        "CRFsuite averaged perceptron": run("crfsuite", "chunking", folder, algorithm="ap", max_iterations=10),
        "maxmargin, early": run("maxmargin", "chunking", folder, **QUICK),
        "maxmargin, certified": run("maxmargin", "chunking", folder, **CERTIFIED),
        "maxmargin, all pairs": run("maxmargin", "chunking", folder, **CERTIFIED, support="all"),
    }
    ratios = {"early / perceptron": round(cpu(rows["maxmargin, early"]) / cpu(rows["CRFsuite averaged perceptron"]), 2)}
    if not quick:
        rows["CRFsuite passive-aggressive"] = run("crfsuite", "chunking", folder, algorithm="pa", max_iterations=10)
        slow = rows["CRFsuite L-BFGS"] = run("crfsuite", "chunking", folder, algorithm="lbfgs")
        ratios["certified / L-BFGS"] = round(cpu(rows["maxmargin, certified"]) / cpu(slow), 3)
        ratios["memory / L-BFGS"] = round(rows["maxmargin, certified"]["peak MB"] / slow["peak MB"], 2)
        if importlib.util.find_spec("wapiti"):
            rows["Wapiti"] = run("wapiti", "chunking", folder, maxiter=100)
    return {"rows": rows, "CPU ratios": ratios}


def ewt(folder: Path, quick: bool) -> dict[str, Any]:
    need(folder / "tagging/ewt/train.conllu.gz")
    rows = {
        "CRFsuite averaged perceptron": run("crfsuite", "ewt", folder, algorithm="ap", max_iterations=10),
        "maxmargin": run("maxmargin", "ewt", folder, C=0.3, tol=0.05),
        "maxmargin, preset pos": run("maxmargin", "ewt", folder, preset="pos"),
        "maxmargin, preset pos, order 2": run("maxmargin", "ewt", folder, preset="pos", order=2),
    }
    if not quick:
        rows["CRFsuite L-BFGS"] = run("crfsuite", "ewt", folder, algorithm="lbfgs")
    return {"rows": rows}


def genia(folder: Path, quick: bool) -> dict[str, Any]:
    need(folder / "tagging/genia/train.pos.gz")
    rows = {"maxmargin, preset pos": run("maxmargin", "genia", folder, preset="pos")}
    if not quick:
        rows["CRFsuite averaged perceptron"] = run("crfsuite", "genia", folder, algorithm="ap", max_iterations=10)
    return {"rows": rows}


def _tag(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    program = "from maxmargin.cli import app; app()"
    command = [sys.executable, "-W", "ignore", "-c", program, "tag", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def command(folder: Path, quick: bool) -> dict[str, Any]:
    """The whole `tag predict`, file in, file out, on the test file and on twenty of it."""
    source = gzip.decompress(need(folder / "tagging/conll2000/test.txt.gz").read_bytes())
    lines = [line.rsplit(b" ", 1)[0] if line.strip() else b"" for line in source.splitlines()]
    text = b"\n".join(lines) + b"\n"
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as there:
        model = Path(there) / "chunks.mm"
        train = folder / "tagging/conll2000/train.txt.gz"
        _tag("train", train, "--preset", "chunking", "--tol", "0.1", "--out", model, "--json")
        for times in (1, 20):
            file = Path(there) / f"{times}.txt"
            file.write_bytes((text.rstrip() + b"\n\n") * times)
            tokens = times * sum(1 for line in lines if line)
            seconds, busy = [], []
            for _ in range(3):
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                began = time.perf_counter()
                _tag("predict", model, file, "--out", Path(there) / "out.txt")
                seconds.append(time.perf_counter() - began)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                busy.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            found[f"{tokens} tokens"] = {
                "wall s": round(min(seconds), 3),
                "CPU s": round(min(busy), 3),
                "tokens/s": round(tokens / min(seconds)),
                "tokens/CPU s": round(tokens / min(busy)),
            }
    return found


def threads(folder: Path, quick: bool) -> dict[str, Any]:
    """Whether one and two threads, and a run that was killed and resumed, give the same weights."""
    import maxmargin as mm

    train = need(folder / "tagging/conll2000/train.txt.gz")
    options = ["--preset", "chunking", "--tol", "0.005", "--save-every", "0", "--json"]
    with tempfile.TemporaryDirectory() as there:
        models = [Path(there) / name for name in ("one.mm", "two.mm", "killed.mm")]
        _tag("train", train, "--out", models[0], "--jobs", "1", *options)
        _tag("train", train, "--out", models[1], "--jobs", "2", *options)
        program = [sys.executable, "-c", "from maxmargin.cli import app; app()", "tag", "train", str(train)]
        started = subprocess.Popen([*program, "--out", str(models[2]), *options], stdout=subprocess.DEVNULL)
        while started.poll() is None and not list(Path(there).glob("killed.mm.checkpoint*")):
            time.sleep(0.1)
        time.sleep(1)
        started.kill()
        started.wait()
        saved = [file.name for file in Path(there).glob("killed.mm*")]
        _tag("train", train, "--out", models[2], "--resume", *options)
        weights = [mm.load(model).weights.tobytes() for model in models]
    return {
        "two threads: same bits": weights[0] == weights[1],
        "killed and resumed: same bits": weights[0] == weights[2],
        "files when killed": saved,
    }


PARTS = {"chunking": chunking, "ewt": ewt, "genia": genia, "command": command, "threads": threads}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder with tagging/")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="some of the parts")
    parser.add_argument("--quick", action="store_true", help="without L-BFGS and Wapiti")
    options = parser.parse_args()
    print(json.dumps({name: PARTS[name](options.data, options.quick) for name in options.only}, indent=1))


if __name__ == "__main__":
    main()

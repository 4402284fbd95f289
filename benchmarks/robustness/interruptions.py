"""Signals at random moments of every command, and what became of the command and its files.

    python -m benchmarks.robustness.interruptions [--moments 5] [--only "tag train"] [--signals INT,TERM,HUP,KILL] ...

Each command is first run to its end. Then it is started again and again in an empty folder, and gets a signal after a
time drawn from the length of its run. What a user may expect: SIGINT, SIGTERM and SIGHUP end the command with the exit
code 130, 143 or 129 and one line, without a traceback; its output is whole or not there, or a model is the best so
far; nothing else is left but what ``--resume`` goes on from: the checkpoints of commands that train, and what ``tag
predict`` has written. With it the command gets the files of the first run, bit for bit. SIGKILL, for these commands
only, may leave a temporary file or a lock, which ``--resume`` removes. In its first hundredths of a second the process
is Python's, which starts; what it says then is counted apart.
Prints one JSON object; ``bad`` holds what else was seen. What a command said then, which may have paths of the machine,
goes to standard error alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.robustness import command_inputs
from maxmargin import model_file
from maxmargin.model_file import ModelFileError
from maxmargin.models.base import load

PROMPT = 2.0
"""Seconds within which a command should end."""

UNFINISHED = ("with the best weights so far", "with translation models, but without weights")
"""What commands say that have written a model although they were interrupted."""

_IN_MAIN = re.compile(r'maxmargin.__main__\.py", line \d+, in main\n')

LONGEST = 60.0
"""Seconds after which a command that goes on is killed."""


@dataclass(frozen=True)
class Command:
    """A command line with the files of :func:`write_inputs` as ``{name}``; it is run in a folder of its own."""

    line: str

    @property
    def name(self) -> str:
        """The verb, such as ``tag train``."""
        return " ".join(self.line.split()[:2])

    @property
    def resumes(self) -> tuple[str, ...]:
        """What the names of files begin with from which ``--resume`` goes on; empty if it has no such option."""
        if self.name.endswith(("train", "bootstrap")):
            return ("model.checkpoint",)
        return ("labeled.partial", "labeled.journal") if self.name == "tag predict" and "--out" in self.line else ()

    def started(self, inputs: Path, folder: Path, *more: str) -> subprocess.Popen[str]:
        """Start it."""
        words = [word.replace("{", f"{inputs}/").replace("}", "") for word in self.line.split()]
        return subprocess.Popen(
            [sys.executable, "-m", "maxmargin", *words, *more],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


TAG = "--tol 1e-6 --max-iter 60 --columns word,pos,label,_ --label label --save-every 0 --jobs 1"
PAIRS = "--source {en} --target {fr}"
COMMANDS = [
    Command("version"),
    Command("inspect {tagger}"),
    Command(f"tag train {{tokens}} --dev {{dev}} --out model {TAG}"),
    Command("tag predict {tagger} {tokens} --out labeled"),
    Command("tag predict {tagger} {tokens} --k-best 5"),
    Command("tag evaluate {tagger} {dev} --confusion confusions.png"),
    Command("tag explain {tagger} {dev} --html page.html"),
    Command("tag inspect {tagger}"),
    Command("align train --source {en} --target {fr} --gold {links} --out model --jobs 1"),
    Command("align bootstrap --bitext-source {en} --bitext-target {fr} --out model --jobs 1"),
    Command(f"align predict {{aligner}} {PAIRS} --confidence"),
    Command(f"align evaluate --gold {{links}} --predicted {{links}} {PAIRS}"),
    Command(f"align symmetrize --forward {{links}} --backward {{links}} {PAIRS}"),
    Command(f"align explain {{aligner}} {PAIRS} --html page.html"),
    Command(f"align show {PAIRS} --links {{links}} --html page.html"),
    Command("align inspect {aligner}"),
    Command(
        "segment train --images {images} --masks {masks} --classes ground,leaf --stages 2 --folds 2 --regions 100 "
        "--out model --jobs 2"
    ),
    Command("segment train --scans {scans} --classes ground,tree,wall --stages 1 --folds 2 --out model --jobs 1"),
    Command("segment predict {segmenter} {images} --out labeled --overlay --probabilities --jobs 2"),
    Command("segment explain {segmenter} {image} --html page.html"),
    Command("segment evaluate --predicted {masks} --masks {masks}"),
    Command("segment report {segmenter} --images {images} --masks {masks} --html page.html"),
    Command("rerank train --nbest {nbest} --references {ref0} {ref1} --C 0.1,1 --ngrams 2 --out model --jobs 1"),
    Command("rerank train --nbest {nbest} --references {ref0} {ref1} --method mert --out model --jobs 1"),
    Command("rerank train --lattices {lattices} --metric wer --out model --jobs 1"),
    Command("rerank predict {reranker} --nbest {nbest} --out best"),
    Command("rerank explain {reranker} --nbest {nbest} --html page.html"),
    Command("rerank evaluate --hypotheses {first} --references {ref0} {ref1} --tokenize none"),
    Command("rerank export {reranker} --json --out weights"),
    Command("rerank inspect {reranker}"),
    Command("parse train {trees} --out model --jobs 1"),
    Command("parse predict {parser} {trees} --out labeled"),
    Command("parse evaluate {parser} {trees}"),
    Command("parse explain {parser} {trees} --html page.html"),
]


def write_inputs(folder: Path) -> None:
    """Write the files that commands read, from the corpora and drawings of the package, and a model of each task."""
    from maxmargin.tasks import reranking, segmentation
    from maxmargin.tasks.segmentation.drawings import drawn_scans

    command_inputs.write_inputs(folder, sentences=150, pictures=8, lists=120)
    (folder / "scans").mkdir()
    for at, (scan, labels) in enumerate(zip(*drawn_scans(3, points=800), strict=True)):
        segmentation.write_scan(folder / "scans" / f"{at}.ply", scan, labels)
    reranking.write_lattices(reranking.made_lattices(20, seed=1), folder / "lattices")
    shutil.copy(folder / "ref0", folder / "first")
    shutil.copy(folder / "images" / "0.png", folder / "image")
    for name, line in {
        "tagger": "tag train {tokens} --out model --columns word,pos,label,_ --label label",
        "aligner": next(one.line for one in COMMANDS if one.name == "align train"),
        "segmenter": next(one.line for one in COMMANDS if one.name == "segment train"),
        "reranker": next(one.line for one in COMMANDS if one.name == "rerank train"),
        "parser": next(one.line for one in COMMANDS if one.name == "parse train"),
    }.items():
        process = Command(line).started(folder, folder)
        _, errors = process.communicate()
        if process.returncode:
            raise RuntimeError(f"{line}: {errors}")
        (folder / "model").rename(folder / name)


def contents(folder: Path) -> dict[str, str]:
    """A digest of each file, without the times in model files."""
    return {str(path.relative_to(folder)): _digest(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def _digest(path: Path) -> str:
    data = path.read_bytes()
    if data.startswith(model_file.MAGIC):
        with suppress(ModelFileError):  # as of a temporary file that SIGKILL left
            header, arrays = command_inputs.contents(path)
            data = b"".join([json.dumps(header, sort_keys=True).encode(), *arrays.values()])
    return hashlib.sha256(data).hexdigest()


def interrupted(
    command: Command, inputs: Path, number: int, delay: float, length: float, whole: dict[str, str]
) -> dict[str, Any]:
    """Run a command, send it a signal after so many seconds, and say what was seen."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        process = command.started(inputs, folder)
        time.sleep(delay)
        process.send_signal(number)
        sent = time.perf_counter()
        hung = False
        try:
            _, errors = process.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            process.kill()
            _, errors = process.communicate()
            hung = True
        waited = time.perf_counter() - sent
        left = contents(folder)
        faults = []
        if hung:
            faults.append("goes on")
        code, kill = process.returncode, number == signal.SIGKILL
        starting = "Traceback" in errors and not _IN_MAIN.search(errors)  # the program has not had its first line
        if not starting and ("Traceback" in errors or "Exception ignored" in errors):
            faults.append("traceback")
        if starting:
            outcome = "in the start of Python"
        elif code == 0:
            outcome = "done before"
            if left != whole:
                faults.append("differs")
        elif code == -number:
            outcome = "killed" if kill else "killed at its start or end"
        elif code == 128 + number:
            outcome = "interrupted"
            if not errors.splitlines()[-1:] or not errors.splitlines()[-1].startswith("interrupted"):
                faults.append("says nothing")
        else:
            outcome = f"exit code {code}"
            faults.append("exit code")
        saved = {name for name in left if name.startswith(command.resumes)}
        for name in left.keys() - saved:
            if name not in whole:
                if not (kill and name.endswith((".part", ".lock"))):
                    faults.append(f"leaves {name if not name.startswith('.') else 'a temporary file'}")
            elif left[name] != whole[name]:
                if any(said in errors for said in UNFINISHED) and is_model(folder / name):
                    outcome += ", with the best model so far"
                else:
                    faults.append(f"{name} is half-written")
        if command.resumes and outcome != "done before":
            outcome += ", to be resumed" if saved else ""
            again = command.started(inputs, folder, "--resume")
            _, more = again.communicate(timeout=LONGEST + 20 * length)
            if again.returncode or contents(folder) != whole:
                faults.append("differs after --resume")
                errors += more
    return {"outcome": outcome, "faults": faults, "delay": delay, "waited": waited, "errors": errors[-2000:]}


def is_model(path: Path) -> bool:
    """Whether a file is a model of training that was interrupted."""
    try:
        return load(path).metadata["status"] in ("interrupted", "untrained")
    except ModelFileError:
        return False


def tried(command: Command, inputs: Path, signals: list[int], moments: int, rng: np.random.Generator) -> dict[str, Any]:
    """All interruptions of a command, counted."""
    with tempfile.TemporaryDirectory() as temporary:
        began = time.perf_counter()
        process = command.started(inputs, Path(temporary))
        _, errors = process.communicate()
        if process.returncode:
            raise RuntimeError(f"{command.line}: {errors}")
        length, whole = time.perf_counter() - began, contents(Path(temporary))
    outcomes: Counter[str] = Counter()
    bad, slowest = [], 0.0
    for number in signals:
        if number == signal.SIGKILL and not command.resumes:
            continue
        for delay in rng.uniform(0, length, size=moments):
            found = interrupted(command, inputs, number, float(delay), length, whole)
            name = signal.Signals(number).name
            outcomes[f"{name}: {found['outcome']}"] += 1
            slowest = max(slowest, found["waited"])
            if found["faults"]:
                print(json.dumps({"signal": name, **found}), file=sys.stderr, flush=True)
                bad.append({"signal": name, **{key: value for key, value in found.items() if key != "errors"}})
    faults = Counter(fault for one in bad for fault in one["faults"])
    return {
        "command": command.line,
        "seconds": round(length, 2),
        "outcomes": dict(outcomes),
        "slowest_end": round(slowest, 2),
        "faults": dict(faults),
        "bad": bad,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Signals at random moments of every command.")
    parser.add_argument("--moments", type=int, default=5, help="moments for each command and signal")
    parser.add_argument("--only", default="", help="only commands whose line begins so")
    parser.add_argument("--signals", default="INT,TERM,HUP,KILL", help="names, separated by commas")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    signals = [int(signal.Signals[f"SIG{name}"]) for name in given.signals.split(",")]
    for number in (signal.SIGINT, signal.SIGHUP):  # a shell lets its jobs in the background ignore them
        signal.signal(number, signal.default_int_handler)
    rng = np.random.default_rng(given.seed)
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        inputs = Path(temporary)
        write_inputs(inputs)
        for command in COMMANDS:
            if command.line.startswith(given.only):
                results.append(tried(command, inputs, signals, given.moments, rng))
                print(f"{command.line[:60]}: {results[-1]['outcomes']} {results[-1]['faults']}", file=sys.stderr)
    faults: Counter[str] = Counter()
    for one in results:
        faults.update(one["faults"])
    slow = [one["command"] for one in results if one["slowest_end"] > PROMPT]
    runs = sum(sum(one["outcomes"].values()) for one in results)
    print(json.dumps({"runs": runs, "faults": dict(faults), "slow": slow, "commands": results}))


if __name__ == "__main__":
    main()

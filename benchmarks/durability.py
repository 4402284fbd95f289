"""SIGKILL at random moments of training, and whether training that resumes ends with the bits of an uninterrupted one.

    python benchmarks/durability.py [--kills 20] [--only NAME ...] [--seed 0]

Each training is first run to its end, with checkpoints. Then, for each kill, it is started in an empty folder, killed
after a time drawn from the length of the first run, and started again until it ends: the model file must hold the same
arrays, calibration and metadata as that of the first run, but for seconds, and no checkpoint may be left. Fits run in
memory, on data in files (``ShardedDataset``) and on two workers of Ray (if that is installed). Prints one JSON object;
``different`` lists kills after which something differed, and the exit code is 1 if there are any.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import model_file

FIT = """
import sys, time
import numpy as np
import maxmargin as mm
folder, place, solver = sys.argv[1:]
rng = np.random.default_rng(0)
X = [rng.normal(size=(int(rng.integers(3, 12)), 6)) for _ in range(120)]
y = [["up" if row[0] + rng.normal() > row[1] else "down" for row in x] for x in X]
checkpoint = mm.solvers.Checkpoint("model.checkpoint", every=0.0, keep=True)
given = {"C": 10.0, "tol": 1e-9, "max_iter": 150, "random_state": 0, "checkpoint": checkpoint}
estimator = mm.ChainSVM(solver=getattr(mm.solvers, solver)(), callbacks=[lambda record: time.sleep(0.01)], **given)
if place == "files":
    from pathlib import Path
    if not Path(folder, "data", "index.json").exists():
        mm.ShardedDataset.build(Path(folder, "data"), estimator._encoder(), (X, y), shard_parts=400)
    model = estimator.fit(mm.ShardedDataset(Path(folder, "data")))
else:
    if place == "ray":
        estimator.set_params(executor=mm.execution.Ray(workers=2))
    model = estimator.fit(X, y)
model.save("model")
checkpoint.remove()
"""


@dataclass(frozen=True)
class Training:
    """A training: the words of its command line, with ``{name}`` for files of :func:`write_inputs`."""

    name: str
    words: tuple[str, ...]
    resume: tuple[str, ...] = ("--resume",)

    def start(self, inputs: Path, folder: Path, again: bool) -> subprocess.Popen[str]:
        """Start it in a folder."""
        words = [word.replace("{inputs}", str(inputs)) for word in self.words]
        more = list(self.resume) if again else []
        return subprocess.Popen(
            [sys.executable, *words, *more],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # so that processes which it has started are killed with it
        )


def command(line: str) -> tuple[str, ...]:
    """A command of maxmargin that writes ``model``, with a save at every chance."""
    return ("-m", "maxmargin", *line.split(), "--out", "model", "--jobs", "1", "--save-every", "0", "--quiet")


TRAININGS = [
    Training(
        "tag train",
        command("tag train {inputs}/tokens --dev {inputs}/dev --columns word,pos,label,_ --label label --tol 1e-6"),
    ),
    Training(
        "tag train, folds",
        command("tag train {inputs}/tokens --columns word,pos,label,_ --label label --C 0.05,0.2 --folds 2"),
    ),
    Training(
        "align train",
        command("align train --source {inputs}/en --target {inputs}/fr --gold {inputs}/links --C 0.1,0.3"),
    ),
    Training(
        "align bootstrap", command("align bootstrap --bitext-source {inputs}/en --bitext-target {inputs}/fr --pairs 20")
    ),
    Training(
        "segment train",
        command(
            "segment train --images {inputs}/images --masks {inputs}/masks --classes ground,leaf --classifier linear "
            "--stages 2 --folds 2 --regions 60"
        ),
    ),
    Training(
        "rerank train",
        command("rerank train --nbest {inputs}/nbest --references {inputs}/ref --folds 2 --C 0.1,1"),
    ),
    Training("fit", ("-c", FIT, "{inputs}", "memory", "BlockFrankWolfe"), ()),
    Training("fit, simplicial", ("-c", FIT, "{inputs}", "memory", "SimplicialDecomposition"), ()),
    Training("fit, files", ("-c", FIT, "{inputs}", "files", "SimplicialDecomposition"), ()),
    Training("fit, Ray", ("-c", FIT, "{inputs}", "ray", "SimplicialDecomposition"), ()),
]


def write_inputs(folder: Path) -> None:
    """Small inputs of all commands."""
    from maxmargin.tasks import alignment, reranking, segmentation, tagging
    from maxmargin.tasks.segmentation.drawings import drawn_pictures

    train, rest = tagging.load_corpus().split()
    train.select(range(60)).write(folder / "tokens")
    rest.select(range(15)).write(folder / "dev")
    part = alignment.load_corpus().select(range(0, 240, 8))
    for side, sentences in (("en", part.source), ("fr", part.target)):
        (folder / side).write_text("".join(" ".join(words) + "\n" for words in sentences), encoding="utf-8")
    with open(folder / "links", "w", encoding="utf-8") as file:
        alignment.write_links(file, part.references)
    codes = segmentation.parse_classes("ground=0 leaf=255").codes()
    for name in ("images", "masks"):
        (folder / name).mkdir()
    for at, (image, mask) in enumerate(zip(*drawn_pictures(4, size=(40, 48)), strict=True)):
        segmentation.write_image(folder / "images" / f"{at}.png", image)
        segmentation.write_mask(folder / "masks" / f"{at}.png", mask, codes)
    lists = reranking.made_lists(30, seed=1, size=10)
    reranking.write_nbest(lists, folder / "nbest")
    (folder / "ref").write_text("".join(f"{texts[0]}\n" for texts in lists.references), encoding="utf-8")


def contents(path: Path) -> tuple[Any, dict[str, bytes]]:
    """What two model files must share: all but times."""
    header, arrays = model_file.read(path)
    return without_times(header), {name: one.tobytes() for name, one in arrays.items()}


def without_times(value: Any) -> Any:
    """Plain JSON without entries of seconds."""
    if isinstance(value, dict):
        return {name: without_times(one) for name, one in value.items() if not name.startswith("seconds")}
    return [without_times(one) for one in value] if isinstance(value, list) else value


def ended(process: subprocess.Popen[str]) -> None:
    """Wait for a training; RuntimeError with what it said if it failed."""
    _, said = process.communicate()
    if process.returncode:
        raise RuntimeError(f"it ended with {process.returncode}: {said[-600:]}")


def killed(process: subprocess.Popen[str], after: float) -> bool:
    """Whether a training was killed after a time, with all processes that it has started; it may have ended before."""
    try:
        process.communicate(timeout=after)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return True
    return False


def measure(training: Training, inputs: Path, kills: int, random: np.random.Generator) -> dict[str, Any]:
    """Kill a training and let it resume, so many times."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        ended(training.start(inputs, Path(folder), again=False))
        seconds = time.perf_counter() - began
        whole = contents(Path(folder, "model"))
    different: list[dict[str, Any]] = []
    found = {"kills": 0, "ended before": 0, "with a checkpoint": 0}
    for _ in range(kills):
        after = float(random.uniform(0.05, 1.0)) * seconds
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            hit = killed(training.start(inputs, folder, again=False), after)
            found["kills" if hit else "ended before"] += 1
            found["with a checkpoint"] += hit and any("checkpoint" in one.name for one in folder.iterdir())
            wrong = ""
            try:
                if hit:
                    ended(training.start(inputs, folder, again=True))
                header, arrays = contents(folder / "model")
                wrong = ", ".join(one for one in whole[1] if arrays.get(one) != whole[1][one])
                wrong = wrong or ("" if header == whole[0] else "the header")
            except (RuntimeError, OSError) as error:
                wrong = str(error)
            left = [one.name for one in folder.iterdir() if "checkpoint" in one.name]
            if wrong or left:
                different.append({"after": after, "different": wrong, "left": left})
    return {"training": training.name, "seconds": seconds, **found, "different": different}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="trainings whose names begin so")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chosen = [one for one in TRAININGS if not options.only or one.name.startswith(tuple(options.only))]
    if find_spec("ray") is None:
        chosen = [one for one in chosen if not one.name.endswith("Ray")]
    random = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as inputs:
        write_inputs(Path(inputs))
        results = [measure(one, Path(inputs), options.kills, random) for one in chosen]
    print(json.dumps({"kills": options.kills, "trainings": results}, indent=1))
    sys.exit(any(one["different"] for one in results))


if __name__ == "__main__":
    main()

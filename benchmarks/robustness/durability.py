"""SIGKILL at random moments of training, and whether training that resumes ends with the bits of an uninterrupted one.

    python -m benchmarks.robustness.durability [--kills 20] [--only NAME ...] [--seed 0]

Each training is first run to its end, with a checkpoint at every chance. Then, for each kill, it is started in an empty
folder, killed, and started again until it ends: the model file must hold the same arrays, calibration and metadata as
that of the first run, but for seconds, and no checkpoint may be left. A fifth of the kills come before the first
checkpoint is there; the others are spread over the time from there to the end, one in each of as many equal parts.
Trainings are in memory, on data in files (folders of shards) and on two workers of a Ray cluster of this process (if
that is installed), which outlives them. Prints one JSON object; ``different`` lists kills after which something
differed, and the exit code is 1 if there are any.
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

from benchmarks.robustness.command_inputs import contents, write_inputs

EARLY = 0.2
"""Share of the kills before the first checkpoint."""

FIT = """
import sys, time
import numpy as np
import maxmargin as mm
folder, place, solver = sys.argv[1:4]
rng = np.random.default_rng(0)
X = [rng.normal(size=(int(rng.integers(3, 12)), 6)) for _ in range(120)]
y = [["up" if row[0] + rng.normal() > row[1] else "down" for row in x] for x in X]
checkpoint = mm.solvers.Checkpoint("model.checkpoint", every=0.0, keep=True)
given = {"C": 10.0, "tol": 1e-9, "max_iter": 60, "random_state": 0, "checkpoint": checkpoint}
estimator = mm.ChainSVM(solver=getattr(mm.solvers, solver)(), callbacks=[lambda record: time.sleep(0.02)], **given)
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
    """A training: the words of its command line, with ``{inputs}`` for a folder and ``{ray}`` for a cluster."""

    name: str
    words: tuple[str, ...]
    resume: tuple[str, ...] = ("--resume",)
    before: tuple[str, ...] = ()
    """A command that prepares its input."""

    @property
    def on_ray(self) -> bool:
        """Whether it needs a cluster."""
        return self.name.endswith("Ray")

    def start(self, inputs: Path, folder: Path, again: bool) -> subprocess.Popen[str]:
        """Start it in a folder."""
        return _started([*self.words, *(self.resume if again else ())], inputs, folder)

    def prepare(self, inputs: Path) -> None:
        """Write the input that only this training has."""
        if self.before:
            ended(_started(list(self.before), inputs, inputs))


def _started(words: list[str], inputs: Path, folder: Path) -> subprocess.Popen[str]:
    places = {"{inputs}": str(inputs), "{ray}": os.environ.get("RAY_ADDRESS", "local")}
    for name, place in places.items():
        words = [word.replace(name, place) for word in words]
    return subprocess.Popen(
        [sys.executable, *words],
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


def fit(place: str, solver: str) -> tuple[str, ...]:
    """An estimator's fit."""
    return ("-c", FIT, "{inputs}", place, solver)


RAY = " --ray {ray} --workers 2"
TEXT = "--columns word,pos,label,_ --label label"
TAG = f"tag train {{inputs}}/tokens --dev {{inputs}}/dev {TEXT} --tol 1e-4"
BITEXT = "--bitext-source {inputs}/en --bitext-target {inputs}/fr"
ALIGN = "align train --source {inputs}/en --target {inputs}/fr --gold {inputs}/links --C 0.1,0.3 --false-negative 2"
PICTURES = (
    "--images {inputs}/images --masks {inputs}/masks --classes ground,leaf --classifier linear --stages 2 --folds 2 "
    "--regions 60"
)
SEGMENT = f"segment train {PICTURES}"
RERANK = "--nbest {inputs}/nbest --references {inputs}/ref0"


def shard(line: str, out: str) -> tuple[str, ...]:
    """A command that writes a folder among the inputs."""
    return ("-m", "maxmargin", *line.split(), "--overwrite", "--out", out)


SHARD_TEXT = shard(f"tag shard {{inputs}}/tokens {TEXT}", "text")
SHARD_BITEXT = shard(f"align shard {BITEXT} --shard-pairs 8", "bitext")
SOLVERS = ("SimplicialDecomposition", "ProjectedSubgradient", "ProjectedGradient", "Extragradient", "DualExtragradient")
TRAININGS = [
    Training("tag train", command(TAG)),
    Training("tag train, folds", command(f"tag train {{inputs}}/tokens {TEXT} --C 0.05,0.2 --folds 2")),
    Training("tag train, files", command("tag train {inputs}/text --tol 1e-4 --C 0.1 --folds 0"), before=SHARD_TEXT),
    Training("tag train, Ray", command(TAG + RAY)),
    Training("align train", command(ALIGN)),
    Training("align train, files", command(f"{ALIGN} --bitext-source {{inputs}}/bitext"), before=SHARD_BITEXT),
    Training(
        "align train, shards",
        command("align train --shards {inputs}/pairs --C 0.1 --false-negative 2 --tol 1e-5"),
        before=shard("align shard --source {inputs}/en --target {inputs}/fr --gold {inputs}/links", "pairs"),
    ),
    Training("align train, Ray", command(ALIGN + RAY)),
    Training("align bootstrap", command(f"align bootstrap {BITEXT} --pairs 20")),
    Training(
        "align bootstrap, files",
        command("align bootstrap --bitext-source {inputs}/bitext --pairs 20"),
        before=SHARD_BITEXT,
    ),
    Training("segment train", command(SEGMENT)),
    Training(
        "segment train, files",
        command("segment train --shards {inputs}/sites --tol 1e-5"),
        before=shard(f"segment shard {PICTURES}", "sites"),
    ),
    Training("segment train, Ray", command(SEGMENT + RAY)),
    Training("rerank train", command(f"rerank train {RERANK} --folds 2 --C 0.1,1")),
    Training(
        "rerank train, files",
        command("rerank train --shards {inputs}/lists --C 0.1 --folds 0"),
        before=shard(f"rerank shard {RERANK}", "lists"),
    ),
    Training("fit", fit("memory", "BlockFrankWolfe"), ()),
    *(
        Training(f"fit, {solver}{'' if place == 'memory' else f', {named}'}", fit(place, solver), ())
        for solver in SOLVERS
        for place, named in (("memory", ""), ("files", "files"), ("ray", "Ray"))
    ),
]


def ended(process: subprocess.Popen[str]) -> None:
    """Wait for a training; RuntimeError with what it said if it failed."""
    _, said = process.communicate()
    if process.returncode:
        raise RuntimeError(f"it ended with {process.returncode}: {said[-600:]}")


def saved(folder: Path) -> list[str]:
    """The checkpoints in a folder."""
    return [one.name for one in folder.iterdir() if "checkpoint" in one.name and not one.name.endswith(".lock")]


def first_save(process: subprocess.Popen[str], folder: Path) -> bool:
    """Wait for the first checkpoint; False if the training ends without one."""
    while not saved(folder):
        if process.poll() is not None:
            return False
        time.sleep(0.002)
    return True


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
    training.prepare(inputs)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        process = training.start(inputs, Path(folder), again=False)
        first_save(process, Path(folder))
        until_save = time.perf_counter() - began
        ended(process)
        after_save = time.perf_counter() - began - until_save
        whole = contents(Path(folder, "model"))
    different: list[dict[str, Any]] = []
    found = {"kills": 0, "ended before": 0, "with a checkpoint": 0, "with the model": 0}
    early = int(EARLY * kills)
    for number in range(kills):
        part = (number - early + float(random.uniform())) / (kills - early)
        after = part * after_save if number >= early else float(random.uniform(0.05, 1.0)) * until_save
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            process = training.start(inputs, folder, again=False)
            hit = (number < early or first_save(process, folder)) and killed(process, after)
            found["kills" if hit else "ended before"] += 1
            found["with a checkpoint"] += hit and bool(saved(folder))
            found["with the model"] += hit and not saved(folder) and (folder / "model").exists()
            wrong = ""
            try:
                ended(training.start(inputs, folder, again=True) if hit else process)
                header, arrays = contents(folder / "model")
                wrong = ", ".join(one for one in whole[1] if arrays.get(one) != whole[1][one])
                wrong = wrong or ("" if header == whole[0] else "the header")
            except (RuntimeError, OSError) as error:
                wrong = str(error)
            left = saved(folder)
            if wrong or left:
                different.append({"kill": number, "after": after, "different": wrong, "left": left})
    seconds = {"seconds": until_save + after_save, "until the first checkpoint": until_save}
    return {"training": training.name, **seconds, **found, "different": different}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="trainings of these names")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chosen = [one for one in TRAININGS if not options.only or one.name in options.only]
    if any(one.on_ray for one in chosen):
        if find_spec("ray") is None:
            chosen = [one for one in chosen if not one.on_ray]
        else:
            import ray

            ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
            os.environ["RAY_ADDRESS"] = ray.get_runtime_context().gcs_address
    random, results = np.random.default_rng(options.seed), []
    with tempfile.TemporaryDirectory() as inputs:
        write_inputs(Path(inputs))
        for one in chosen:
            results.append(measure(one, Path(inputs), options.kills, random))
            print(json.dumps(results[-1]), file=sys.stderr, flush=True)
    print(json.dumps({"kills": options.kills, "trainings": results}, indent=1))
    sys.exit(any(one["different"] for one in results))


if __name__ == "__main__":
    main()

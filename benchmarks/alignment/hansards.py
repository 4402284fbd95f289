"""Word alignment on the Hansards: error of every configuration with seconds, throughput, memory and calibration.

    python -m benchmarks.alignment.hansards [--quick] [--peers] [--jobs 2] [--data ../shared/data]
        [--out out/alignment_hansards.png] [--only programs throughput bootstrap solvers supervised] [--redraw]

AER over the 137 annotated pairs (``train`` and ``dev``), cross-validated in ten folds. In the first row C and the cost
of missed links are chosen inside each training part by the aligner's own folds, so nothing is tuned on what is
measured; configurations are compared at fixed settings. Intervals are of 95%, sentences resampled. Translation models
are learned once, from the unlabeled pairs and the text (not the links) of the annotated ones, as the peers' were.
Solvers are compared on sure links alone (no rounds: one convex problem per fold), each with a limit of CPU seconds;
``Exact``, the referee, is not among them.

Prints one JSON object; iteration and a table go to standard error. Every result is written to a ``.jsonl`` file beside
the plot as soon as it is there: --redraw draws it again without measuring, --only measures some parts and keeps the
rest. --quick takes a small part of the bitext and fixed settings: two minutes, other figures. --peers also runs eflomal
if its command is there (``pip install eflomal``).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks.alignment.drawing import Records, draw, table
from benchmarks.alignment.measures import (
    FIXED,
    N_TRAIN,
    SEED,
    STEPS,
    Task,
    annotated_pairs,
    bootstrap_row,
    bootstrap_samples,
    calibration,
    child,
    clock,
    crossed,
    directed,
    eflomal,
    learning_curve,
    one_way,
    parts,
    solver_row,
    speed,
)
from benchmarks.solvers.comparison import MINIMIZERS
from benchmarks.workloads import DATA, need
from maxmargin import _threads
from maxmargin.tasks.alignment import BitextModels, WordAligner, evaluate
from maxmargin.tasks.alignment.metrics.symmetrization import symmetrize
from maxmargin.tasks.alignment.translation.cooccurrences import PreparedBitext
from maxmargin.tasks.alignment.translation.models import TranslationModel, learn
from maxmargin.tasks.alignment.translation.words import IndexedBitext

FOLDS = 10

PEERS = (
    # AER % on train100 and dev37, CPU seconds: measured once for this project on another machine, with the same pairs.
    ("fast_align, intersection", 12.7, 15.5, 42),
    ("fast_align, grow-diag-final-and", 17.8, 16.1, 42),
    ("GIZA++ Model 4, intersection", 10.4, 12.4, 600),
    ("GIZA++ Model 4, grow-diag-final-and", 14.5, 15.0, 600),
)

LEARNERS: dict[str, mm.solvers.Solver | str] = {
    "chosen by the library": "auto",
    **MINIMIZERS,
    "column generation": mm.ColumnGeneration(),
    "averaged perceptron": mm.AveragedPerceptron(),
    "MIRA": mm.Mira(),
}

PARTS = ["programs", "throughput", "bootstrap", "solvers", "supervised"]
PROGRAM = [sys.executable, "-c", "from maxmargin.cli import app; app()", "align"]


class Results:
    """Records of named sections, in a file as soon as they are there; ``earlier`` ones stay until they are measured."""

    def __init__(self, file: Path, earlier: Records) -> None:
        self.file, self.records = file, earlier
        file.parent.mkdir(parents=True, exist_ok=True)

    def add(self, section: str, name: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Do the work and keep what it finds, or why it failed: an hour of other results must not be lost with it."""
        print(f"{section}: {name} ...", file=sys.stderr, flush=True)
        began, cpu = time.perf_counter(), time.process_time()
        try:
            found = work()
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        seconds = {
            "seconds": round(time.perf_counter() - began, 1),
            "CPU seconds": round(time.process_time() - cpu, 1),
        }
        record = {"section": section, "name": name, **seconds, **found}
        place = [at for at, old in enumerate(self.records) if (old["section"], old["name"]) == (section, name)]
        if place:
            self.records[place[0]] = record
        else:
            self.records.append(record)
        self.file.write_text("".join(json.dumps(one) + "\n" for one in self.records))
        return record


def commands(results: Results, options: argparse.Namespace, n_bitext: int | None, n_predict: int) -> None:
    """``align train`` and ``align predict`` as programs. To be called first: Linux counts what this process holds."""
    data = options.data / "alignment/hansards"
    with TemporaryDirectory() as name:
        folder = Path(name)
        for side in "ef":
            with gzip.open(data / f"bitext.{side}.gz", "rt", encoding="utf-8") as stream:
                lines = stream.readlines()
            (folder / f"bitext.{side}").write_text("".join(lines[:n_bitext]), encoding="utf-8")
            (folder / f"predict.{side}").write_text("".join(lines[:n_predict]), encoding="utf-8")
        del lines
        model = folder / "model"
        training = [*PROGRAM, "train", "--out", model, "--jobs", options.jobs]
        for option, part in (("", data / "train"), ("bitext-", folder / "bitext")):
            training += [f"--{option}source", f"{part}.e", f"--{option}target", f"{part}.f"]
        training += ["--gold", data / "train.wa"]
        if options.quick:
            training += ["--C", FIXED["C"], "--false-negative", FIXED["false_negative"]]
        results.add("programs", "align train", lambda: {"pairs": N_TRAIN, **child(list(map(str, training)))})
        if not model.exists():
            return
        prediction = [*PROGRAM, "predict", model, "--jobs", options.jobs]
        prediction += ["--source", folder / "predict.e", "--target", folder / "predict.f"]

        def predict(*more: str) -> dict[str, Any]:
            found = child([*map(str, prediction), *more], folder / "links")
            return {"pairs": n_predict, "pairs/s": round(n_predict / found["seconds"]), **found}

        results.add("programs", "align predict", predict)
        results.add("programs", "align predict --confidence", lambda: predict("--confidence"))

        def load() -> dict[str, Any]:
            with clock() as elapsed:
                mm.load(model)
                return {"MB": round(model.stat().st_size / 1e6, 1), "load seconds": elapsed()}

        results.add("programs", "model file", load)


def peers(results: Results, task: Task, *, run: bool) -> None:
    for name, train100, dev37, cpu in PEERS:
        published = {"train100 %": train100, "dev37 %": dev37, "seconds": None, "CPU seconds": cpu}
        results.add("peers, as measured before", name, lambda published=published: published)
    if not run:
        return
    found: dict[str, Any] = {}

    def work() -> dict[str, Any]:
        with TemporaryDirectory() as folder:
            links, usage = eflomal(task, Path(folder))
        found.update({method: parts(evaluate(task.references, links[method])) | usage for method in links})
        return usage

    results.add("peers, same run", "eflomal", work)
    for method, row in found.items():
        results.add("peers, same run", f"eflomal, {method}", lambda row=row: row)


def translation(results: Results, task: Task, jobs: int) -> tuple[BitextModels, TranslationModel]:
    """The aligner's models, and those of words that train without regard to each other."""
    source, target = [pair.source for pair in task.text], [pair.target for pair in task.text]
    learned: list[Any] = []

    def ours() -> dict[str, Any]:
        ends: dict[str, float] = {}
        with _threads.threads(jobs), clock() as elapsed:
            learned.append(
                BitextModels.learn(source, target, on_iteration=lambda model, _: ends.update({model: elapsed()}))
            )
        return {"pairs": len(source), "threads": jobs, "seconds until each is there": ends}

    def plain() -> dict[str, Any]:
        with _threads.threads(jobs):
            model = learn(PreparedBitext(IndexedBitext.of(source, target)), agreement=False)
        learned.append(model)
        rising = all(b.forward >= a.forward and b.backward >= a.backward for a, b in pairwise(model.history))
        return {"pairs": len(source), "threads": jobs, "log-likelihoods never fall": rising}

    results.add("throughput", "translation models, 5 + 5 iterations", ours)
    results.add("throughput", "words alone, no agreement, 5 + 5 iterations", plain)
    models, model = learned
    return models, model


def baselines(results: Results, task: Task, models: BitextModels, plain: TranslationModel) -> None:
    for name, model, kind, methods in (
        ("Model 1", models.words, "model1", ["intersection"]),
        ("HMM, no agreement", plain, "hmm", ["intersection"]),
        ("HMM", models.words, "hmm", ["forward", "backward", "union", "grow-diag-final-and", "intersection"]),
    ):
        both = directed(task, models, model, kind)
        for method in methods:
            row = parts(evaluate(task.references, symmetrize(*both, method)))
            results.add("own models, no training", f"{name}, {method}", lambda row=row: row)


def throughput(results: Results, task: Task, base: dict[str, Any], n: int) -> None:
    fitted: list[WordAligner] = []
    most = base["n_jobs"]

    def fit() -> dict[str, Any]:
        fitted.append(WordAligner(**base).fit(task.pairs[:N_TRAIN], task.references[:N_TRAIN]))
        return {"pairs": N_TRAIN, "threads": most}

    results.add("throughput", "fit with choice of settings", fit)
    for jobs in sorted({1, most}):
        for confidence in (False, True):
            name = f"prediction{', confidences' if confidence else ''}, {jobs} thread{'s' if jobs > 1 else ''}"
            results.add("throughput", name, lambda jobs=jobs, c=confidence: speed(task, fitted[0], jobs, n, c))


def supervised(results: Results, task: Task, base: dict[str, Any], *, quick: bool) -> None:
    k = 5 if quick else FOLDS
    fixed = {**base, **FIXED, "folds": 0}
    chosen = fixed if quick else base
    kept: list[Any] = []
    calibrated = {**base, **FIXED, "folds": 2} if quick else base
    results.add("all features", "settings chosen inside", lambda: crossed(task, calibrated, k, kept))
    results.add("calibration", "out of fold", lambda: calibration(task, *kept))
    both = np.arange(N_TRAIN), np.arange(N_TRAIN, len(task.pairs))
    results.add("one way", "train100, tested on dev37", lambda: one_way(task, chosen, *both))
    results.add("one way", "dev37, tested on train100", lambda: one_way(task, chosen, *both[::-1]))
    for name, settings in {
        "fertility 2, 2 rounds": {},
        "one-to-one": {"fertility": 1},
        "fertility 3": {"fertility": 3},
        "0 rounds": {"rounds": 0},
    }.items():
        if not quick or name == "one-to-one":
            results.add("all features", name, lambda settings=settings: crossed(task, fixed | settings, k))
    for n in range(1, len(STEPS) + 1):
        if not quick or STEPS[n - 1] in ("association", "hmm"):
            settings = {**fixed, "features": ("bias", *STEPS[:n])}
            name = "bias, association" if n == 1 else f"+ {STEPS[n - 1]}"
            results.add("features", name, lambda settings=settings: crossed(task, settings, k))
    for size in (10, 100) if quick else (10, 25, 50, 100):
        results.add(
            "learning curve",
            f"{size} annotated pairs",
            lambda size=size: learning_curve(task, fixed, size, 2 if quick else 5),
        )


def measure(options: argparse.Namespace, results: Results) -> None:
    quick, jobs, wanted = options.quick, options.jobs, options.only
    n_bitext, n_predict = (5_000, 2_000) if quick else (None, 20_000)
    load = [round(one, 1) for one in os.getloadavg()]
    results.add("run", "quick" if quick else "whole", lambda: {"parts": wanted, "machine's load before": load})
    if "programs" in wanted:
        commands(results, options, n_bitext, n_predict)
    task = Task.read(options.data, n_bitext)
    peers(results, task, run=options.peers)
    models, plain = translation(results, task, jobs)
    baselines(results, task, models, plain)
    base: dict[str, Any] = {"models": models, "n_jobs": jobs, "random_state": SEED}
    if "throughput" in wanted:
        throughput(results, task, base | FIXED if quick else base, n_predict)
    if "bootstrap" in wanted:
        for size in [500] if quick else [1000, 5000]:
            results.add(
                "no annotations", f"bootstrap, {size:,} pairs", lambda size=size: bootstrap_row(task, base, size)
            )
        seeds = range(2 if quick else 5)
        size = 500 if quick else 1000
        name = f"bootstrap, {len(seeds)} samples of {size:,} pairs"
        results.add("samples", name, lambda: bootstrap_samples(task, base, size, seeds))
    if "solvers" in wanted:
        compare_solvers(results, task, models, options)
    if "supervised" in wanted:
        supervised(results, task, base, quick=quick)


def compare_solvers(results: Results, task: Task, models: BitextModels, options: argparse.Namespace) -> None:
    k = 5 if options.quick else FOLDS
    with _threads.threads(options.jobs):
        pairs = annotated_pairs(task, models)
        for name, solver in LEARNERS.items():
            if not options.quick or name in ("chosen by the library", "MIRA"):
                results.add("solvers", name, lambda solver=solver: solver_row(pairs, solver, options.seconds, k))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=Path("out/alignment_hansards.png"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="of CPU time, after which a solver that is compared ends"
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="measure these, keep the other results")
    parser.add_argument("--redraw", action="store_true", help="draw the results of the last run again")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    file = options.out.with_suffix(".jsonl")
    if options.redraw and not file.exists():
        parser.error(f"--redraw: there are no results in {file}; measure first")
    again = options.redraw or (options.only != PARTS and file.exists())
    records: Records = [json.loads(line) for line in file.read_text().splitlines()] if again else []
    if not options.redraw:
        need(options.data / "alignment/hansards")
        measure(options, Results(file, records))
    table(records)
    draw(records).savefig(options.out, dpi=130)
    sections: dict[str, dict[str, Any]] = {}
    for record in records:
        rest = {key: value for key, value in record.items() if key not in ("section", "name")}
        sections.setdefault(record["section"], {})[record["name"]] = rest
    print(json.dumps(sections, indent=1))
    if any("error" in record for record in records):
        sys.exit(1)


if __name__ == "__main__":
    main()

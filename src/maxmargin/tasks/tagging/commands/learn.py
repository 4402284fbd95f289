"""The verb ``train``."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxmargin._terminal import fail, printable, report
from maxmargin.tasks.common.commands import errors_as_lines, once, writable
from maxmargin.tasks.tagging.commands.options import (
    AsJson,
    Columns,
    FormatOption,
    Jobs,
    Join,
    Label,
    Reading,
    file_facts,
    labels_of,
)

if TYPE_CHECKING:
    from maxmargin.solvers import Solver
    from maxmargin.tasks.tagging.files import TaggedText
    from maxmargin.tasks.tagging.fitting import TagTrainer
    from maxmargin.tasks.tagging.templates import Template

SOLVERS = {
    "block-frank-wolfe": "BlockFrankWolfe",
    "perceptron": "AveragedPerceptron",
    "mira": "Mira",
    "subgradient": "Subgradient",
    "cutting-plane": "CuttingPlane",
    "exponentiated-gradient": "ExponentiatedGradient",
    "simplicial-decomposition": "SimplicialDecomposition",
}
"""Names of ``--solver`` and the classes they stand for."""

INTERRUPTED = 130
"""The exit code of commands that Ctrl-C has ended."""


def train(
    train: Annotated[str, typer.Argument(help="A file of labeled tokens; - for standard input.")],
    out: Annotated[Path, typer.Option("--out", help="The model file to write.")],
    dev: Annotated[
        str | None, typer.Option("--dev", help="Labeled tokens to choose by, and to calibrate probabilities on.")
    ] = None,
    columns: Columns = None,
    label: Label = None,
    form: FormatOption = None,
    join: Join = False,
    template: Annotated[
        str | None, typer.Option("--template", metavar="FILE", help="Attributes of tokens, in CRF++'s syntax.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            help="A template of the library: chunking, ner or pos.",
            show_default="chunking if there is a pos",
        ),
    ] = None,
    order: Annotated[int, typer.Option("--order", min=1, max=2, help="How many labels before it a label sees.")] = 1,
    constraints: Annotated[
        str, typer.Option("--legal", help="Rules of labels: auto (those that the data keep), bio, iobes or none.")
    ] = "auto",
    min_count: Annotated[
        int | None, typer.Option("--min-count", min=1, help="Leave out attributes of fewer tokens; by preset, or 1.")
    ] = None,
    states: Annotated[
        str, typer.Option("--states", help="Which attributes have weights for which labels: rivals, observed or all.")
    ] = "rivals",
    C: Annotated[
        str | None,
        typer.Option("--C", help="Larger fits closer; by preset, or 0.1. Several, as 0.1,0.3,1, are tried on --dev."),
    ] = None,
    solver: Annotated[str, typer.Option("--solver", help=f"One of {', '.join(SOLVERS)}.")] = "block-frank-wolfe",
    tol: Annotated[float, typer.Option("--tol", min=0.0, help="Relative duality gap to reach.")] = 1e-2,
    max_iter: Annotated[
        int | None, typer.Option("--max-iter", min=1, help="Passes at most.", show_default="the solver's own limit")
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option("--max-seconds", min=0.0, help="Seconds of a run at most.")
    ] = None,
    metric: Annotated[
        str, typer.Option("--metric", help="The dev score: accuracy, f1 (of chunks), sentence_accuracy, or auto.")
    ] = "auto",
    patience: Annotated[
        int, typer.Option("--patience", min=1, help="End after so many dev scores that are not better.")
    ] = 5,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")] = 0,
    jobs: Jobs = -1,
    unknown: Annotated[
        str | None, typer.Option("--unknown", metavar="LABEL", help="The label of tokens whose label is not known.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with training that was interrupted or killed.")
    ] = False,
    save_every: Annotated[float, typer.Option("--save-every", min=0.0, hidden=True)] = 30.0,
    as_json: AsJson = False,
) -> None:
    """Learn from labeled sentences, and write a model."""
    began = time.perf_counter()
    writable(out, keep=[train, dev, template])
    saves = _Saves(out)
    try:
        with errors_as_lines():
            once([train, dev, template])
            algorithm = _solver(solver)
            grid = _grid(C, dev)
            if constraints not in ("auto", "bio", "iobes", "none"):
                fail(f"no rules {constraints!r} for --legal; choose one of auto, bio, iobes, none")
            reading = Reading(form, columns, label, join)
            texts = [reading.read(path, labeled=True) for path in (train, dev) if path is not None]
            labels = [labels_of(text, unknown) for text in texts]
            features = _features(texts[0], template, preset)
            read = time.perf_counter() - began
        with errors_as_lines():
            from maxmargin.solvers import Checkpoint
            from maxmargin.tasks.tagging.fitting import TagTrainer

            settings: dict[str, Any] = {
                **features,
                "order": order,
                "constraints": None if constraints == "none" else constraints,
                "unknown": unknown,
                "min_count": min_count,
                "states": states,
                "C": grid,
                "metric": metric,
                "patience": patience,
                "random_state": seed,
            }
            checkpoint = None
            if not algorithm.checkpoint_unsupported:
                fingerprint = _fingerprint(texts, settings)
                checkpoint = Checkpoint(saves.path, every=save_every, fingerprint=fingerprint, keep=True)
            elif resume:
                fail(f"--solver {solver} keeps no checkpoints, so there is nothing to go on from; leave --resume out")
            saves.begin(resume)
            limits: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "max_seconds": max_seconds}
            tagger = TagTrainer(
                **settings, **limits, solver=algorithm, n_jobs=jobs, checkpoint=checkpoint, verbose=True
            )
            pairs = zip(texts, labels, strict=True)
            fitting = time.perf_counter()
            tagger.fit(*(part for text, codes in pairs for part in (text.tokens, codes)))
            fitted = time.perf_counter() - fitting
            if tagger.model_.metadata["status"] == "interrupted":
                raise KeyboardInterrupt
            model = replace(tagger.model_, metadata={**tagger.model_.metadata, "file": file_facts(texts[0], join)})
            model.save(out)
            saves.remove()
            report(_metadata(tagger, out, {"reading": read, "fitting": fitted}, began), as_json=as_json)
    except KeyboardInterrupt:
        print(f"interrupted; {saves.summary()}", file=sys.stderr)
        raise typer.Exit(code=INTERRUPTED) from None


class _Saves:
    """The checkpoints of a model that is being trained, in files beside it."""

    def __init__(self, out: Path) -> None:
        self.path = out.with_name(f"{out.name}.checkpoint")
        self._own = re.compile(re.escape(self.path.name) + r"(-runs|-[0-9]+)?-[0-9]+")

    def found(self) -> list[Path]:
        """Those that are there, the newest last."""
        there = [path for path in self.path.parent.iterdir() if self._own.fullmatch(path.name)]
        return sorted(there, key=lambda path: (path.stat().st_mtime_ns, path.name))

    def begin(self, resume: bool) -> None:
        """Say what training begins with; old checkpoints are removed if it begins afresh."""
        there = self.found()
        if resume:
            what = f"goes on from {there[-1]}" if there else f"starts afresh: there is no {self.path}-0"
            print(f"note: training {printable(what)}", file=sys.stderr)
        elif there:
            what = f"{there[-1]} of a run that was not finished is removed; --resume would have gone on from it"
            print(f"note: {printable(what)}", file=sys.stderr)
            self.remove()

    def remove(self) -> None:
        for path in self.found():
            path.unlink(missing_ok=True)

    def summary(self) -> str:
        """What there is to go on from."""
        there = self.found()
        if not there:
            return "nothing was saved yet"
        return printable(f"{there[-1]} is kept: the same command with --resume goes on from it")


def _solver(name: str) -> Solver:
    from maxmargin import solvers

    if name not in SOLVERS:
        fail(f"no solver {name!r}; choose one of {', '.join(SOLVERS)}")
    found: Solver = getattr(solvers, SOLVERS[name])()
    return found


def _grid(given: str | None, dev: str | None) -> tuple[float, ...] | None:
    if given is None:
        return None
    try:
        grid = tuple(float(value) for value in given.split(","))
    except ValueError:
        fail(f"--C {given}: give a number, or several with commas between them, as 0.1,0.3,1")
    if len(grid) > 1 and dev is None:
        fail("several values of --C are compared on dev data; give --dev, or one value")
    return grid


def _features(text: TaggedText, template: str | None, preset: str | None) -> dict[str, Any]:
    """The template or preset for a file, as settings of a tagger."""
    from maxmargin.tasks.common.text import read_text
    from maxmargin.tasks.tagging.presets import preset as preset_named
    from maxmargin.tasks.tagging.presets import usual
    from maxmargin.tasks.tagging.templates import Template

    if template is not None and preset is not None:
        fail("give --template or --preset, not both")
    if text.table is None:
        if template is not None or preset is not None:
            option = "--preset" if template is None else "--template"
            fail(f"{text.source}: its tokens have attributes already, and need no template; leave {option} out")
        return {}
    if template is not None:
        parsed = Template.parse(read_text(template).decode("utf-8"), text.columns, template)
        _check_columns(text, parsed, template)
        return {"template": parsed}
    inputs = [name for name in text.columns if name != text.label]
    chosen = preset or usual(inputs)
    needed = preset_named(chosen, _ALL).columns_used
    missing = [name for name in needed if name in _ALL and name not in inputs]
    if missing:
        fail(
            f"{text.source}: the preset {chosen} needs the column {missing[0]!r} beside that of labels, and there are "
            f"{', '.join(inputs) or 'none'}; name them with --columns, or give a --template"
        )
    return {"preset": chosen}


_ALL = ("word", "pos")
"""The columns that presets may use."""


def _check_columns(text: TaggedText, template: Template, name: str) -> None:
    if text.label in template.columns_used:
        fail(
            f"{printable(name)}: it uses the column {text.label!r}, which holds the labels; use the others: "
            f"{', '.join(column for column in text.columns if column != text.label)}"
        )


def _fingerprint(texts: list[TaggedText], settings: dict[str, Any]) -> str:
    """What a checkpoint belongs to: the files and the settings that decide the weights, not where training ends."""
    plain = {name: str(value) for name, value in settings.items()}
    parts = [text.data for text in texts] + [json.dumps([plain, [text.label for text in texts]]).encode()]
    names = [*("train", "dev")[: len(texts)], "settings"]
    return ", ".join(f"{name} {hashlib.sha256(part).hexdigest()[:12]}" for name, part in zip(names, parts, strict=True))


def _metadata(tagger: TagTrainer, out: Path, spent: dict[str, float], began: float) -> dict[str, Any]:
    model, metadata = tagger.model_, tagger.model_.metadata
    total = time.perf_counter() - began
    extractor = model.extractor
    more = {"attributes of pairs": extractor.n_edge_attributes} if extractor.n_edge_attributes else {}
    of_dev = {"relative gap of the run": "run_relative_gap", "dev score": "dev_score", "dev iteration": "dev_iteration"}
    scores = {name: metadata[key] for name, key in of_dev.items() if key in metadata}
    return {
        "model": str(out),
        "megabytes": out.stat().st_size / 1e6,
        "sentences": metadata["sentences"],
        "tokens": metadata["tokens"],
        "labels": len(model.labels),
        "attributes": extractor.n_attributes,
        **more,
        "weights": len(model.weights),
        "rules": "none"
        if model.layout.constraints is None
        else f"{int((~model.layout.constraints.pairs).sum())} forbidden pairs",
        "preset": metadata["preset"],
        "C": metadata["C"],
        "solver": metadata["solver"],
        "status": metadata["status"],
        "iterations": metadata["iterations"],
        "relative gap": metadata["relative_gap"],
        **scores,
        "temperature": model.temperature,
        "seconds reading": spent["reading"],
        "seconds features": spent["fitting"] - metadata["seconds"],
        "seconds training": metadata["seconds"],
        "seconds": total,
    }

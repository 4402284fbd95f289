"""The command ``train``."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxmargin import _memory
from maxmargin._terminal import console, fail, report
from maxmargin.tasks.common.cli.checkpoints import Checkpoints
from maxmargin.tasks.common.cli.commands import errors_as_lines, once, reserve
from maxmargin.tasks.common.cli.options import (
    AsJson,
    Jobs,
    ModelOut,
    RayAddress,
    Resume,
    SaveEvery,
    Seed,
    Tol,
    TrainingWorkers,
    executor_of,
    numbers,
    numbers_option,
    refuse_with_shards,
)
from maxmargin.tasks.tagging.cli.options import (
    Columns,
    Constraints,
    Format,
    GazetteerFiles,
    Join,
    Label,
    MinCount,
    Order,
    Preset,
    Repair,
    Segments,
    SupportName,
    TemplateFile,
    TextFiles,
    Unknown,
)

if TYPE_CHECKING:
    from maxmargin.solvers import Solver
    from maxmargin.tasks.tagging.io.files import TaggedText
    from maxmargin.tasks.tagging.model import TaggerModel

DEFAULT = "block-frank-wolfe"
"""The solver of a run on files whose command names none."""

SOLVERS = {
    DEFAULT: "BlockFrankWolfe",
    "perceptron": "AveragedPerceptron",
    "mira": "Mira",
    "subgradient": "Subgradient",
    "cutting-plane": "CuttingPlane",
    "exponentiated-gradient": "ExponentiatedGradient",
    "simplicial-decomposition": "SimplicialDecomposition",
}
"""Names of ``--solver`` and their classes."""

CONSTRAINTS = ("auto", "bio", "iobes", "none")


def train(
    train: Annotated[
        str, typer.Argument(help="A file of labeled tokens, - for standard input; or a folder of tag shard.")
    ],
    out: ModelOut,
    dev: Annotated[
        str | None,
        typer.Option("--dev", help="Held-out labeled tokens: choose the stopping point, calibrate probabilities."),
    ] = None,
    columns: Columns = None,
    label: Label = None,
    form: Format = None,
    join: Join = None,
    template: TemplateFile = None,
    preset: Preset = None,
    order: Order = 1,
    constraints: Constraints = "auto",
    repair: Repair = False,
    segments: Segments = False,
    min_count: MinCount = None,
    support: SupportName = "negative",
    text: TextFiles = None,
    gazetteer: GazetteerFiles = None,
    C: Annotated[
        str | None,
        numbers_option(
            "--C",
            "Larger means less regularization. Of several, the best on --dev or else across folds is chosen; auto "
            "searches 0.01 to 10 across folds.",
            "by preset, or auto",
        ),
    ] = None,
    folds: Annotated[
        int,
        typer.Option(
            "--folds",
            min=0,
            help="Parts of the training sentences that choose C and, without --dev, calibrate probabilities.",
        ),
    ] = 3,
    solver: Annotated[
        str | None,
        typer.Option("--solver", help=f"One of {', '.join(SOLVERS)}.", show_default=DEFAULT),
    ] = None,
    tol: Tol = 1e-2,
    max_iter: Annotated[
        int | None, typer.Option("--max-iter", min=1, help="Maximal number of passes.", show_default="by solver")
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option("--max-seconds", min=0.0, help="Time limit of training with a C, with its folds.")
    ] = None,
    metric: Annotated[
        str, typer.Option("--metric", help="The dev score: accuracy, f1 (of chunks), sentence_accuracy, or auto.")
    ] = "auto",
    patience: Annotated[
        int, typer.Option("--patience", min=1, help="Stop after this many dev scores without an improvement.")
    ] = 5,
    seed: Seed = 0,
    jobs: Jobs = -1,
    ray: RayAddress = None,
    workers: TrainingWorkers = None,
    unknown: Unknown = None,
    resume: Resume = False,
    save_every: SaveEvery = 30.0,
    as_json: AsJson = False,
) -> None:
    """Train a model on labeled sentences."""
    began = time.perf_counter()
    _memory.return_arrays()
    from maxmargin.tasks.tagging.encoder.columns.gazetteers import named_file

    files = [train, dev, template, *(text or []), *(str(named_file(one)[1]) for one in gazetteer or [])]
    reserve(out, keep=files)
    checkpoints = Checkpoints(out)
    with errors_as_lines(checkpoints.summary):
        once(files)
        executor = executor_of(ray, workers)
        if Path(train).is_dir():
            refuse_with_shards(
                {
                    "--columns": columns,
                    "--label": label,
                    "--format": form,
                    "--join": join,
                    "--template": template,
                    "--preset": preset,
                    "--order": None if order == 1 else order,
                    "--constraints": None if constraints == "auto" else constraints,
                    "--repair": repair,
                    "--segments": segments,
                    "--min-count": min_count,
                    "--support": None if support == "negative" else support,
                    "--text": text,
                    "--gazetteer": gazetteer,
                    "--unknown": unknown,
                }
            )
            limits: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "max_seconds": max_seconds, "metric": metric}
            limits |= {"patience": patience, "n_jobs": jobs, "random_state": seed, "verbose": True}
            limits |= {"executor": executor}
            _train_folder(train, out, dev, C, folds, solver, limits, checkpoints, resume, save_every, as_json, began)
            return
        solver = solver or DEFAULT
        algorithm = _solver(solver)
        grid = _grid(C, folds, dev)
        if constraints not in CONSTRAINTS:
            fail(f"no constraints {constraints!r}; choose one of {', '.join(CONSTRAINTS)}")
        from maxmargin.tasks.tagging.reading import ReadOptions, file_metadata, labels_of, warn_of_words

        options = ReadOptions(form, columns, label, join)
        texts = [options.read(path, labeled=True) for path in (train, dev) if path is not None]
        data = [(text.tokens, labels_of(text, unknown)) for text in texts]
        _, (_, names) = data[0]
        warn_of_words(texts[0], names)
        features = features_of(texts[0], template, preset) | given_columns(gazetteer, text)
        reading = time.perf_counter() - began
    with errors_as_lines(checkpoints.summary):
        from maxmargin.tasks.tagging.encoder.tagging import TaggingEncoder
        from maxmargin.tasks.tagging.training import learned, train_tagger
        from maxmargin.training import Settings

        encoding: dict[str, Any] = {
            **features,
            "order": order,
            "constraints": None if constraints == "none" else constraints,
            "unknown": unknown,
            "min_count": min_count,
            "support": support,
            "repair": repair,
            **({"segments": True} if segments else {}),  # as checkpoints of runs without it know nothing of it
        }
        checkpoint = None
        if not algorithm.checkpoint_unsupported:
            choices = {
                **encoding,
                "C": grid,
                "folds": folds,
                "metric": metric,
                "patience": patience,
                "random_state": seed,
            }
            fingerprint = _fingerprint(texts, choices)
            checkpoint = checkpoints.checkpoint(save_every, fingerprint)
        elif resume:
            fail(f"--solver {solver} saves no checkpoints, so training cannot be resumed; leave --resume out")
        settings = Settings(
            C=grid,
            solver=algorithm,
            tol=tol,
            max_iter=max_iter,
            max_seconds=max_seconds,
            metric=metric,
            patience=patience,
            n_jobs=jobs,
            executor=executor,
            random_state=seed,
            checkpoint=checkpoint,
            verbose=True,
        )
        encoder = TaggingEncoder(**encoding)
        checkpoints.begin(resume)
        fitting = time.perf_counter()
        described = file_metadata(texts[0], bool(join))
        encoder, rows = learned(encoder, *data[0], settings)
        dev_data = data[1] if dev is not None else None
        del texts, data  # the text is not needed any more, the attributes of its tokens are
        model = train_tagger(encoder, rows, None, settings, dev=dev_data, folds=folds)
        fitted = time.perf_counter() - fitting
        model = replace(model, metadata={**model.metadata, "file": described})
        checkpoints.save(model)
        _report(model, out, reading, fitted, began, as_json)


def _grid(C: str | None, folds: int, dev: str | None) -> Any:
    """Return the values of C; fails if there are several, and nothing to compare them on."""
    grid = "auto" if C == "auto" else numbers("--C", C)
    if folds < 2 and dev is None and (grid == "auto" or (grid is not None and len(grid) > 1)):
        fail(f"--C {C} needs --dev or --folds 2 or more; give one of them, or one value")
    return grid


def _train_folder(
    folder: str,
    out: Path,
    dev: str | None,
    C: str | None,
    folds: int,
    solver: str | None,
    settings: dict[str, Any],
    checkpoints: Checkpoints,
    resume: bool,
    save_every: float,
    as_json: bool,
    began: float,
) -> None:
    """Train on the folder of a dataset."""
    from maxmargin.datasets import ShardedDataset
    from maxmargin.tasks.tagging.reading import ReadOptions, labels_of
    from maxmargin.tasks.tagging.sharding import train_tagger_on
    from maxmargin.training import Settings

    grid = _grid(C, folds, dev)
    dataset = ShardedDataset(folder)
    file = dataset.metadata.get("file", {})
    columns = None if file.get("format") == "conllu" else ",".join(file.get("columns") or []) or None
    options = ReadOptions(file.get("format"), columns, file.get("label"), file.get("join"))
    texts = [] if dev is None else [options.read(dev, labeled=True)]
    data = [(text.tokens, labels_of(text)) for text in texts]
    deciding = {name: settings[name] for name in ("metric", "patience", "random_state")}
    fingerprint = f"{_fingerprint(texts, {**deciding, 'C': C, 'folds': folds})}, dataset {dataset.digest[:12]}"
    checkpoint = checkpoints.checkpoint(save_every, fingerprint)
    chosen = Settings(C=grid, solver="auto" if solver is None else _solver(solver), checkpoint=checkpoint, **settings)
    checkpoints.begin(resume)
    fitting = time.perf_counter()
    model = train_tagger_on(dataset, chosen, dev=data[0] if data else None, folds=folds)
    fitted = time.perf_counter() - fitting
    model = replace(model, metadata={**model.metadata, **({"file": file} if file else {})})
    checkpoints.save(model)
    _report(model, out, fitting - began, fitted, began, as_json)


def _solver(name: str) -> Solver:
    from maxmargin import solvers

    if name not in SOLVERS:
        fail(f"no solver {name!r}; choose one of {', '.join(SOLVERS)}")
    found: Solver = getattr(solvers, SOLVERS[name])()
    return found


def given_columns(gazetteer: list[str] | None, text: list[str] | None) -> dict[str, Any]:
    """Return lists of names and text without labels, as settings of a tagger."""
    found: dict[str, Any] = {}
    if gazetteer:
        from maxmargin.tasks.tagging.encoder.columns.gazetteers import Gazetteers

        found["gazetteers"] = Gazetteers.read(gazetteer)
    if text:
        from maxmargin.tasks.tagging.encoder.columns.word_clusters import PlainText

        found["text"] = PlainText.of([], text)
    return found


def features_of(text: TaggedText, template: str | None, preset: str | None) -> dict[str, Any]:
    """Return the template or preset for a file, as settings of a tagger; ValueError if the file lacks columns."""
    from maxmargin.tasks.common.files.text import read_text
    from maxmargin.tasks.tagging.encoder.presets import columns_needed
    from maxmargin.tasks.tagging.encoder.templates.template import Template

    if template is not None and preset is not None:
        raise ValueError("give --template or --preset, not both")
    if text.table is None:
        if template is not None or preset is not None:
            option = "--preset" if template is None else "--template"
            raise ValueError(f"{text.source}: its tokens already have attributes; leave {option} out")
        return {}
    inputs = [name for name in text.columns if name != text.label]
    if template is not None:
        parsed = Template.parse(read_text(template).decode("utf-8"), text.columns, template)
        if text.label in parsed.columns_used:
            raise ValueError(
                f"{template}: it uses the column {text.label!r} of the labels; use the others: {', '.join(inputs)}"
            )
        return {"template": parsed}
    needed = ("word",) if preset is None else columns_needed(preset)
    missing = [name for name in needed if name not in inputs]
    if missing:
        whose = "a preset needs" if preset is None else f"the preset {preset} needs"
        raise ValueError(
            f"{text.source}: {whose} the column {missing[0]!r} besides the labels, and there are "
            f"{', '.join(inputs) or 'none'}; name them with --columns, or give a --template"
        )
    # The place of the labels stays, without a name, so that whole lines of the file are tokens in Python, too.
    return {"preset": preset, "columns": ["_" if name == text.label else name for name in text.columns]}


def _fingerprint(texts: list[TaggedText], settings: dict[str, Any]) -> str:
    """Return a hash of the files and of the settings that decide the weights, but not of the limits of training."""
    plain = {name: str(value) for name, value in settings.items()}
    parts = [text.data for text in texts] + [json.dumps([plain, [text.label for text in texts]]).encode()]
    names = [*("train", "dev")[: len(texts)], "settings"]
    return ", ".join(f"{name} {hashlib.sha256(part).hexdigest()[:12]}" for name, part in zip(names, parts, strict=True))


def _report(model: TaggerModel, out: Path, reading: float, fitted: float, began: float, as_json: bool) -> None:
    """Print what was trained, and the values of C that were compared."""
    metadata = _metadata(model, out, reading, fitted, began)
    tried = None if as_json else metadata.pop("tried", None)
    report(metadata, as_json=as_json)
    if tried:
        _print_tried(tried, metadata["C"])


def _print_tried(tried: list[dict[str, float]], chosen: float) -> None:
    """Print the values of C that were compared, in order, with their scores."""
    from maxmargin.tasks.common.tables import numbers_table, percent

    table = numbers_table("C tried", "score", "")
    for one in sorted(tried, key=lambda one: one["C"]):
        table.add_row(f"{one['C']:g}", percent(one["score"]), "chosen" if one["C"] == chosen else "")
    console().print()
    console().print(table)


def _metadata(model: TaggerModel, out: Path, reading: float, fitting: float, began: float) -> dict[str, Any]:
    metadata, described = model.metadata, model.describe()
    reason = {"preset_reason": metadata["preset_reason"]} if metadata.get("preset_reason") else {}
    names = "C", "solver", "status", "iterations", "relative_gap"
    of_dev = "run_relative_gap", "dev_score", "dev_iteration"
    more = ["attributes_of_pairs"] if described["attributes_of_pairs"] else []
    return {
        "model": str(out),
        "megabytes": out.stat().st_size / 1e6,
        "sentences": metadata["sentences"],
        "tokens": metadata["tokens"],
        **{name: described[name] for name in ("labels", "attributes", *more, "weights", "constraints")},
        "preset": metadata["preset"],
        **reason,
        **{name: metadata[name] for name in names},
        **{name: metadata[name] for name in of_dev if name in metadata},
        **{name: metadata[name] for name in ("left_out", "repaired") if name in metadata},
        "temperature": model.temperature,
        "calibrated_on": model.calibrated_on,
        **({"chosen_on": metadata["chosen_on"]} if "chosen_on" in metadata else {}),
        **({"tried": [{"C": C, "score": score} for C, score in metadata["tried"]]} if "tried" in metadata else {}),
        "seconds_reading": reading,
        "seconds_features": fitting - metadata["seconds"],
        "seconds_training": metadata["seconds"],
        "seconds": time.perf_counter() - began,
    }

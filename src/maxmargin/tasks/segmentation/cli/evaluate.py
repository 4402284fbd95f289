"""The command ``evaluate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from maxmargin._terminal import console
from maxmargin.tasks.common.cli.commands import errors_as_lines
from maxmargin.tasks.common.cli.options import AsJson, Level, ResamplingSeed
from maxmargin.tasks.common.files.text import name_of
from maxmargin.tasks.segmentation.cli.options import Classes, ClassFile, LabelColumn, Void


def evaluate(
    predicted: Annotated[list[str], typer.Option("--predicted", help="Folder of predicted masks or scans, or files.")],
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PREDICTED]...", help="More folders, compared with the first; or more files."),
    ] = None,
    masks: Annotated[str | None, typer.Option("--masks", help="Folder of the annotators' masks.")] = None,
    scans: Annotated[
        list[str] | None,
        typer.Option("--scans", metavar="FILES", help="The annotators' scans, instead: folder or files."),
    ] = None,
    label_column: LabelColumn = None,
    classes: Classes = None,
    class_file: ClassFile = None,
    void: Void = None,
    details: Annotated[bool, typer.Option("--details", help="Also print the scores of each image or scan.")] = False,
    as_json: AsJson = False,
    level: Level = 0.95,
    seed: ResamplingSeed = 0,
) -> None:
    """Evaluate predictions: error, IoU of classes, boundary F; further folders are compared with the first."""
    from maxmargin.tasks.segmentation.io.classes import parse_classes
    from maxmargin.tasks.segmentation.metrics import tables
    from maxmargin.tasks.segmentation.metrics.files import evaluate_masks, evaluate_scans

    with errors_as_lines():
        if (masks is None) == (scans is None):
            raise ValueError("give either --masks or --scans, the labels of annotators")
        if masks is not None and label_column is not None:
            raise ValueError("--label-column belongs to --scans; masks have none")
        definition = parse_classes(classes, file=class_file, void=void)
        systems = _systems([*predicted, *(more or [])])
        if scans is None:
            assert masks is not None
            scores = [evaluate_masks(files, masks, definition) for _, files in systems]
        else:
            scores = [evaluate_scans(files, scans, definition, label_column=label_column) for _, files in systems]
    names = [name for name, _ in systems]
    found = tables.summary(names, scores, level=level, seed=seed)
    if as_json:
        if not details:
            for one in found["systems"]:
                del one["per_image"]
        print(json.dumps(found), flush=True)
        return
    terminal = console()
    terminal.print(tables.scores_table(names, found))
    for at, one in enumerate(found["systems"]):
        titles = [one["predicted"]] if len(systems) > 1 else []
        for table in (tables.class_table(one), tables.confusion_table(one)) if not at else (tables.class_table(one),):
            print("", *titles, sep="\n")
            terminal.print(table)
        if details:
            print("", *titles, sep="\n")
            terminal.print(tables.image_table(one))


def _systems(paths: list[str]) -> list[tuple[str, list[str]]]:
    """Name and files of each system: a folder is one, and files are one together."""
    files = [path for path in paths if not Path(path).is_dir()]
    if not files:
        return [(name_of(path), [path]) for path in paths]
    if len(files) < len(paths):
        folder = next(path for path in paths if Path(path).is_dir())
        raise ValueError(f"{name_of(folder)} is a folder and {name_of(files[0])} is not; give folders, or files")
    name = name_of(files[0]) if len(files) == 1 else f"{name_of(files[0])} and {len(files) - 1} more"
    return [(name, files)]

"""The command ``train``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from maxmargin._interrupts import defer_interrupts
from maxmargin._terminal import report
from maxmargin.tasks.common.cli.checkpoints import Checkpoints
from maxmargin.tasks.common.cli.commands import errors_as_lines, reserve, saving
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
)
from maxmargin.tasks.segmentation.cli.options import Classes, ClassFile, LabelColumn, Void
from maxmargin.tasks.segmentation.io.classes import parse_classes
from maxmargin.tasks.segmentation.io.images import SUFFIXES


def train(
    out: ModelOut,
    images: Annotated[str | None, typer.Option("--images", help="Folder of images: PNG, JPEG, TIFF or npz.")] = None,
    masks: Annotated[str | None, typer.Option("--masks", help="Folder of their masks, with the same names.")] = None,
    dev_images: Annotated[
        str | None, typer.Option("--dev-images", help="Images that choose C and when to stop.")
    ] = None,
    dev_masks: Annotated[str | None, typer.Option("--dev-masks", help="Masks of --dev-images.")] = None,
    scans: Annotated[
        list[str] | None, typer.Option("--scans", metavar="FILES", help="Labeled scans: text, PLY, LAS, LAZ or npz.")
    ] = None,
    more: Annotated[list[str] | None, typer.Argument(metavar="[SCAN]...", help="More scans.")] = None,
    dev_scans: Annotated[
        list[str] | None, typer.Option("--dev-scans", metavar="FILES", help="Scans that choose C and when to stop.")
    ] = None,
    label_column: LabelColumn = None,
    classes: Classes = None,
    class_file: ClassFile = None,
    void: Void = None,
    stages: Annotated[
        int | None, typer.Option("--stages", min=1, help="Stages of auto-context.", show_default="3, for scans 2")
    ] = None,
    folds: Annotated[int, typer.Option("--folds", min=2, help="Folds of images or scans for the stages.")] = 5,
    classifier: Annotated[
        str,
        typer.Option("--classifier", help="Node classifier: auto, lightgbm, boosting or linear."),
    ] = "auto",
    regions: Annotated[
        int | None, typer.Option("--regions", min=2, help="Superpixels of an image, about.", show_default="600")
    ] = None,
    graph: Annotated[
        str | None, typer.Option("--graph", help="Nodes of images: superpixels or pixels.", show_default="superpixels")
    ] = None,
    refine: Annotated[
        bool | None,
        typer.Option(
            "--refine/--no-refine", help="Label pixels near boundaries by a second cut, or not.", show_default="refine"
        ),
    ] = None,
    voxel: Annotated[
        float | None, typer.Option("--voxel", min=0.0, help="Size of the voxels that thin scans.", show_default="0.2")
    ] = None,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Give rare classes the weight of frequent ones.")
    ] = False,
    C: Annotated[
        str | None,
        numbers_option(
            "--C", "Larger means less regularization. Of several, the best on dev data.", "1, for scans 0.01"
        ),
    ] = None,
    tol: Tol = 1e-3,
    seed: Seed = 0,
    jobs: Jobs = -1,
    ray: RayAddress = None,
    workers: TrainingWorkers = None,
    resume: Resume = False,
    save_every: SaveEvery = 30.0,
    as_json: AsJson = False,
) -> None:
    """Learn to segment images from masks, or scans from a column of labels."""
    from maxmargin.tasks.segmentation.training import (  # the other verbs do not need it
        SCAN_SETTINGS,
        SETTINGS,
        StageSettings,
    )
    from maxmargin.training import Settings

    began = time.perf_counter()
    inputs = (images, masks, dev_images, dev_masks, class_file, *(scans or ()), *(more or ()), *(dev_scans or ()))
    reserve(out, keep=_inputs([one for one in inputs if one is not None]))
    checkpoints = Checkpoints(out)
    with errors_as_lines(checkpoints.summary):
        _one_kind(images, masks, dev_images, dev_masks, scans, dev_scans, more)
        definition = parse_classes(classes, file=class_file, void=void)
        grid = numbers("--C", C)
        default = SETTINGS if scans is None else SCAN_SETTINGS
        settings = Settings(
            C=default.C if grid is None else grid,
            tol=tol,
            random_state=seed,
            n_jobs=jobs,
            executor=executor_of(ray, workers),
            checkpoint=checkpoints.checkpoint(save_every),
        )
        _belongs("scans", scans is None, {"--label-column": label_column, "--voxel": voxel})
        _belongs("images", images is None, {"--regions": regions, "--graph": graph, "--refine": refine})
        how = StageSettings(
            classifier=classifier,
            stages=stages or (3 if scans is None else 2),
            folds=folds,
            class_weight="balanced" if balanced else None,
        )
        checkpoints.begin(resume)
        trained: Any
        if scans is not None:
            from maxmargin.tasks.segmentation.files.train import train_on_scans
            from maxmargin.tasks.segmentation.scans.extractor import ScanExtractor

            given, points = [*scans, *(more or [])], ScanExtractor() if voxel is None else ScanExtractor(voxel=voxel)
            trained = train_on_scans(
                given,
                definition,
                settings,
                how,
                label_column=label_column,
                dev=dev_scans,
                extractor=points,
                verbose=True,
            )
        else:
            from maxmargin.tasks.segmentation.files.train import train_on_images
            from maxmargin.tasks.segmentation.images.extractor import ImageExtractor

            assert images is not None
            assert masks is not None
            refined = refine is not False
            chosen: dict[str, Any] = {"graph": graph, "n_regions": regions}
            extractor = ImageExtractor(**{name: value for name, value in chosen.items() if value is not None})
            dev = None if dev_images is None or dev_masks is None else (dev_images, dev_masks)
            trained = train_on_images(
                images,
                masks,
                definition,
                settings,
                how,
                dev=dev,
                extractor=extractor,
                refine=refined,
                verbose=True,
            )
        with saving(trained) as complete, defer_interrupts():
            trained.save(out)
            if complete:
                checkpoints.remove()
        _summary(trained, out, began, as_json)


def _belongs(kind: str, absent: bool, options: dict[str, Any]) -> None:
    """ValueError if an option of images or scans is given without them."""
    for name, value in options.items():
        if absent and value is not None:
            raise ValueError(f"{name} is for {kind}; leave it out, or give --{kind}")


def _inputs(given: Sequence[str | Path]) -> list[str]:
    """The files that are given, and the images, masks and scans in folders that are given."""
    from maxmargin.tasks.segmentation.io.scans import SUFFIXES as SCANS  # images are trained on without them

    found: list[Path] = []
    for path in map(Path, given):
        inside = path.iterdir() if path.is_dir() else ()
        found += [path, *(one for one in inside if one.name.lower().endswith((*SUFFIXES, *SCANS)))]
    return [str(one) for one in found]


def _one_kind(
    images: str | None,
    masks: str | None,
    dev_images: str | None,
    dev_masks: str | None,
    scans: list[str] | None,
    dev_scans: list[str] | None,
    more: list[str] | None,
) -> None:
    """ValueError unless there are either images with masks, or scans."""
    for first, second, names in ((images, masks, ""), (dev_images, dev_masks, "dev-")):
        if (first is None) != (second is None):
            raise ValueError(f"--{names}images and --{names}masks belong together; give both, or neither")
    if (images is None) == (scans is None):
        raise ValueError("give either --images and --masks, or --scans")
    if images is None and dev_images is not None:
        raise ValueError("--dev-images belongs to --images; give --dev-scans for scans")
    if scans is None and dev_scans is not None:
        raise ValueError("--dev-scans belongs to --scans; give --dev-images and --dev-masks for images")
    if more and scans is None:
        raise ValueError(f"unexpected argument {more[0]}; further files belong to --scans")


def _summary(model: Any, out: Path, began: float, as_json: bool) -> None:
    metadata = {
        "model": str(out),
        "megabytes": out.stat().st_size / 1e6,
        "classes": list(model.encoder.class_names),
        "weights": len(model.weights),
        **{key: value for key, value in model.metadata.items() if value is not None},
        "seconds": time.perf_counter() - began,
    }
    report(metadata, as_json=as_json)

"""The command ``train``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxmargin._terminal import report
from maxmargin.tasks.common.cli.checkpoints import Checkpoints
from maxmargin.tasks.common.cli.commands import errors_as_lines, reserve
from maxmargin.tasks.common.cli.options import (
    AsJson,
    Jobs,
    ModelOut,
    RayAddress,
    Resume,
    SaveEvery,
    Seed,
    Shards,
    Tol,
    TrainingWorkers,
    executor_of,
    numbers,
    numbers_option,
    refuse_with_shards,
)
from maxmargin.tasks.segmentation.cli.options import (
    Balanced,
    Classes,
    ClassFile,
    Classifier,
    Folds,
    GraphNodes,
    Images,
    LabelColumn,
    Masks,
    MoreScans,
    Regions,
    Scans,
    StageCount,
    Void,
    Voxel,
    belongs,
    image_extractor,
    one_kind,
    scan_extractor,
    stage_settings,
)
from maxmargin.tasks.segmentation.io.classes import parse_classes
from maxmargin.tasks.segmentation.io.images import SUFFIXES

if TYPE_CHECKING:
    from maxmargin.datasets import ShardedDataset
    from maxmargin.training import Settings


def train(
    out: ModelOut,
    images: Images = None,
    masks: Masks = None,
    shards: Shards = None,
    dev_images: Annotated[
        str | None, typer.Option("--dev-images", help="Images that choose C and when to stop.")
    ] = None,
    dev_masks: Annotated[str | None, typer.Option("--dev-masks", help="Masks of --dev-images.")] = None,
    scans: Scans = None,
    more: MoreScans = None,
    dev_scans: Annotated[
        list[str] | None, typer.Option("--dev-scans", metavar="FILES", help="Scans that choose C and when to stop.")
    ] = None,
    label_column: LabelColumn = None,
    classes: Classes = None,
    class_file: ClassFile = None,
    void: Void = None,
    stages: StageCount = None,
    folds: Folds = 5,
    classifier: Classifier = "auto",
    regions: Regions = None,
    graph: GraphNodes = None,
    refine: Annotated[
        bool | None,
        typer.Option(
            "--refine/--no-refine", help="Label pixels near boundaries by a second cut, or not.", show_default="refine"
        ),
    ] = None,
    voxel: Voxel = None,
    balanced: Balanced = False,
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
    from maxmargin.tasks.segmentation.training import SCAN_SETTINGS, SETTINGS  # the other verbs do not need it
    from maxmargin.training import Settings

    began = time.perf_counter()
    inputs = (images, masks, dev_images, dev_masks, class_file, *(scans or ()), *(more or ()), *(dev_scans or ()))
    reserve(out, keep=_inputs([one for one in inputs if one is not None]))
    checkpoints = Checkpoints(out)
    with errors_as_lines(checkpoints.summary):
        dataset = None
        if shards is not None:
            refuse_with_shards(
                {
                    **{"--images": images, "--masks": masks, "--scans": scans, "--classes": classes, "--void": void},
                    **{"--class-file": class_file, "--stages": stages, "--regions": regions, "--graph": graph},
                    **{"--voxel": voxel, "--balanced": balanced, "--refine": refine or None},
                }
            )
            from maxmargin.datasets import ShardedDataset

            dataset = ShardedDataset(shards)
        else:
            one_kind(images, masks, scans, more, dev_images, dev_masks, dev_scans)
        definition = parse_classes(classes, file=class_file, void=void)
        grid = numbers("--C", C)
        of_scans = scans is not None if dataset is None else dataset.encoder.kind.startswith("scan")
        default = SCAN_SETTINGS if of_scans else SETTINGS
        settings = Settings(
            C=default.C if grid is None else grid,
            tol=tol,
            random_state=seed,
            n_jobs=jobs,
            executor=executor_of(ray, workers),
            checkpoint=checkpoints.checkpoint(save_every),
        )
        checkpoints.begin(resume)
        trained: Any
        if dataset is not None:
            trained = _train_on(dataset, settings, dev_images, dev_masks, dev_scans, label_column)
        else:
            belongs("scans", scans is None, {"--label-column": label_column, "--voxel": voxel})
            belongs("images", images is None, {"--regions": regions, "--graph": graph, "--refine": refine})
            how = stage_settings(stages, folds, classifier, balanced, of_scans=of_scans)
            trained = _train_files(
                images, masks, dev_images, dev_masks, [*(scans or ()), *(more or ())], dev_scans, definition, settings,
                how, label_column=label_column, refine=refine is not False,
                extractor=scan_extractor(voxel) if of_scans else image_extractor(graph, regions),
            )  # fmt: skip
        checkpoints.save(trained)
        _summary(trained, out, began, as_json)


def _train_files(
    images: str | None,
    masks: str | None,
    dev_images: str | None,
    dev_masks: str | None,
    scans: list[str],
    dev_scans: list[str] | None,
    *given: Any,
    label_column: str | None,
    refine: bool,
    extractor: Any,
) -> Any:
    """Train on files; ``given`` are classes, settings and stages."""
    from maxmargin.tasks.segmentation.files.train import train_on_images, train_on_scans

    common = {"extractor": extractor, "verbose": True}
    if scans:
        return train_on_scans(scans, *given, label_column=label_column, dev=dev_scans, **common)
    assert images is not None
    assert masks is not None
    dev = None if dev_images is None or dev_masks is None else (dev_images, dev_masks)
    return train_on_images(images, masks, *given, dev=dev, refine=refine, **common)


def _train_on(
    dataset: ShardedDataset,
    settings: Settings,
    dev_images: str | None,
    dev_masks: str | None,
    dev_scans: list[str] | None,
    label_column: str | None,
) -> Any:
    """Train on a folder; dev data has its classes."""
    from maxmargin.tasks.common.sharding import require_kind
    from maxmargin.tasks.segmentation.encoder.segmentation import SegmentationEncoder
    from maxmargin.tasks.segmentation.files.train import read_images, read_scans
    from maxmargin.tasks.segmentation.io.folders import LabeledImages
    from maxmargin.tasks.segmentation.sharding import train_segmenter_on

    encoder = require_kind(dataset, SegmentationEncoder, "images or scans")
    if (dev_images is None) != (dev_masks is None):
        raise ValueError("--dev-images and --dev-masks belong together; give both, or neither")
    of_scans = encoder.kind.startswith("scan")
    if of_scans if dev_images is not None else (dev_scans is not None and not of_scans):
        raise ValueError(f"{dataset.folder} is of {encoder.extractor.inputs}; give dev data of the same kind")
    dev: Any = None
    if dev_scans is not None:
        dev = read_scans(encoder, dev_scans, label_column)
    elif dev_images is not None and dev_masks is not None:
        dev = read_images(LabeledImages.of(dev_images, dev_masks, encoder.file_codes))
    return train_segmenter_on(dataset, settings, dev=dev, verbose=True)


def _inputs(given: Sequence[str | Path]) -> list[str]:
    """The files that are given, and the images, masks and scans in folders that are given."""
    from maxmargin.tasks.segmentation.io.scans import SUFFIXES as SCANS  # images are trained on without them

    found: list[Path] = []
    for path in map(Path, given):
        inside = path.iterdir() if path.is_dir() else ()
        found += [path, *(one for one in inside if one.name.lower().endswith((*SUFFIXES, *SCANS)))]
    return [str(one) for one in found]


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

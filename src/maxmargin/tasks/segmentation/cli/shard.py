"""The command ``shard``."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from maxmargin.tasks.common.cli.commands import errors_as_lines
from maxmargin.tasks.common.cli.options import AsJson, Jobs, Overwrite, ResumeBuilding, Seed, ShardsOut
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


def shard(
    out: ShardsOut,
    images: Images = None,
    masks: Masks = None,
    scans: Scans = None,
    more: MoreScans = None,
    label_column: LabelColumn = None,
    classes: Classes = None,
    class_file: ClassFile = None,
    void: Void = None,
    sample: Annotated[
        int | None,
        typer.Option(
            "--sample", min=2, help="Images or scans, drawn at random, that teach the stages.", show_default="500"
        ),
    ] = None,
    stages: StageCount = None,
    folds: Folds = 5,
    classifier: Classifier = "auto",
    regions: Regions = None,
    graph: GraphNodes = None,
    voxel: Voxel = None,
    balanced: Balanced = False,
    seed: Seed = 0,
    resume: ResumeBuilding = False,
    overwrite: Overwrite = False,
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Train the stages on a sample and encode all images or scans, for train --shards in little memory."""
    began = time.perf_counter()
    with errors_as_lines():
        from maxmargin.tasks.common.sharding import build
        from maxmargin.tasks.segmentation.encoder.segmentation import SegmentationEncoder
        from maxmargin.tasks.segmentation.files.shard import FileSource
        from maxmargin.tasks.segmentation.files.train import ScanFiles, file_names, image_files, scan_encoder
        from maxmargin.tasks.segmentation.io.folders import LabeledImages
        from maxmargin.tasks.segmentation.sharding import SAMPLE, SegmentationRecipe

        one_kind(images, masks, scans, more)
        belongs("scans", scans is None, {"--label-column": label_column, "--voxel": voxel})
        belongs("images", images is None, {"--regions": regions, "--graph": graph})
        definition = parse_classes(classes, file=class_file, void=void)
        files: LabeledImages | ScanFiles
        encoder: SegmentationEncoder
        if images is not None and masks is not None:
            files, encoder = image_files(images, masks, definition, image_extractor(graph, regions))
        else:
            files = ScanFiles.of([*(scans or ()), *(more or ())], label_column)
            encoder = scan_encoder(files, definition, scan_extractor(voxel))
        how = stage_settings(stages, folds, classifier, balanced, of_scans=scans is not None)
        recipe = SegmentationRecipe(encoder, how, sample=sample or SAMPLE, seed=seed, verbose=True)
        names = [image for image, _ in files.pairs] if isinstance(files, LabeledImages) else files.paths
        with file_names(names):
            build(
                out, recipe, FileSource(files, encoder.file_codes), called="graphs", began=began, jobs=jobs,
                overwrite=overwrite, resume=resume, as_json=as_json, metadata={"sample": sample or SAMPLE},
            )  # fmt: skip

"""Options that the verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from maxmargin.tasks.segmentation.images.extractor import ImageExtractor
    from maxmargin.tasks.segmentation.scans.extractor import ScanExtractor
    from maxmargin.tasks.segmentation.training import StageSettings

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="Model written by segment train.")]
Classes = Annotated[
    str | None,
    typer.Option(
        "--classes",
        help="Names of classes in the order of their values, or with values: 'ground=1200-1206 tree=1300 void=0'.",
        show_default="the values that occur",
    ),
]
ClassFile = Annotated[
    Path | None, typer.Option("--class-file", help="File with a line 'name=values' for each class, instead.")
]
Void = Annotated[
    str | None, typer.Option("--void", help="Value or color (#rrggbb) of pixels or points without a class.")
]
LabelColumn = Annotated[
    str | None,
    typer.Option("--label-column", help="Column of the labels of scans, by name or number from 1."),
]
Images = Annotated[str | None, typer.Option("--images", help="Folder of images: PNG, JPEG, TIFF or npz.")]
Masks = Annotated[str | None, typer.Option("--masks", help="Folder of their masks, with the same names.")]
Scans = Annotated[
    list[str] | None, typer.Option("--scans", metavar="FILES", help="Labeled scans: text, PLY, LAS, LAZ or npz.")
]
MoreScans = Annotated[list[str] | None, typer.Argument(metavar="[SCAN]...", help="More scans.")]
StageCount = Annotated[
    int | None, typer.Option("--stages", min=1, help="Stages of auto-context.", show_default="3, for scans 2")
]
Folds = Annotated[int, typer.Option("--folds", min=2, help="Folds of images or scans for the stages.")]
Classifier = Annotated[str, typer.Option("--classifier", help="Node classifier: auto, lightgbm, boosting or linear.")]
Regions = Annotated[
    int | None, typer.Option("--regions", min=2, help="Superpixels of an image, about.", show_default="600")
]
GraphNodes = Annotated[
    str | None, typer.Option("--graph", help="Nodes of images: superpixels or pixels.", show_default="superpixels")
]
Voxel = Annotated[
    float | None, typer.Option("--voxel", min=0.0, help="Size of the voxels that thin scans.", show_default="0.2")
]
Balanced = Annotated[bool, typer.Option("--balanced", help="Give rare classes the weight of frequent ones.")]


def belongs(kind: str, absent: bool, options: dict[str, Any]) -> None:
    """ValueError if an option of images or scans is given without them."""
    for name, value in options.items():
        if absent and value is not None:
            raise ValueError(f"{name} is for {kind}; leave it out, or give --{kind}")


def one_kind(
    images: str | None,
    masks: str | None,
    scans: list[str] | None,
    more: list[str] | None,
    dev_images: str | None = None,
    dev_masks: str | None = None,
    dev_scans: list[str] | None = None,
) -> None:
    """ValueError unless there are either images with masks, or scans, and dev data of the same kind or none."""
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


def stage_settings(stages: int | None, folds: int, classifier: str, balanced: bool, *, of_scans: bool) -> StageSettings:
    """How to train the stages."""
    from maxmargin.tasks.segmentation.training import StageSettings  # the verbs that do not train need none

    return StageSettings(
        classifier=classifier,
        stages=stages or (2 if of_scans else 3),
        folds=folds,
        class_weight="balanced" if balanced else None,
    )


def image_extractor(graph: str | None, regions: int | None) -> ImageExtractor:
    """How to make graphs of images."""
    from maxmargin.tasks.segmentation.images.extractor import ImageExtractor

    chosen: dict[str, Any] = {"graph": graph, "n_regions": regions}
    return ImageExtractor(**{name: value for name, value in chosen.items() if value is not None})


def scan_extractor(voxel: float | None) -> ScanExtractor:
    """How to make graphs of scans."""
    from maxmargin.tasks.segmentation.scans.extractor import ScanExtractor

    return ScanExtractor() if voxel is None else ScanExtractor(voxel=voxel)

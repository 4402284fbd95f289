"""The command ``report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maxmargin._terminal import printable
from maxmargin.tasks.common.cli.commands import errors_as_lines, writable
from maxmargin.tasks.common.cli.options import Jobs
from maxmargin.tasks.common.files.text import open_output
from maxmargin.tasks.common.progress import Stages
from maxmargin.tasks.segmentation.cli.options import LabelColumn, ModelFile


def report(
    model: ModelFile,
    html: Annotated[Path, typer.Option("--html", help="Page to write.")],
    images: Annotated[str | None, typer.Option("--images", help="Folder of images.")] = None,
    masks: Annotated[str | None, typer.Option("--masks", help="Folder of their masks, with the same names.")] = None,
    scans: Annotated[
        list[str] | None, typer.Option("--scans", metavar="FILES", help="Labeled scans, instead: folder or files.")
    ] = None,
    more: Annotated[list[str] | None, typer.Argument(metavar="[SCAN]...", help="More scans.")] = None,
    label_column: LabelColumn = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Images or scans to show, of the worst.")] = 200,
    jobs: Jobs = -1,
) -> None:
    """Label images or scans whose labels are known, and write a page for the browser: side by side, worst first."""
    from maxmargin.tasks.segmentation.files.report import report_on_images, report_on_scans
    from maxmargin.tasks.segmentation.model import SegmenterModel

    writable(html, option="--html")
    with errors_as_lines():
        segmenter = SegmenterModel.load(model, n_jobs=jobs)
        title = f"Segmentation by {printable(model.name)}"
        if (images is None) != (masks is None):
            raise ValueError("--images and --masks belong together; give both, or --scans")
        if (images is None) == (scans is None):
            raise ValueError("give either --images and --masks, or --scans")
        if more and scans is None:
            raise ValueError(f"unexpected argument {more[0]}; further files belong to --scans")
        with Stages() as bar:
            if scans is not None:
                text = report_on_scans(
                    segmenter, [*scans, *(more or [])], label_column=label_column, title=title, limit=limit, bar=bar
                )
            else:
                assert images is not None
                assert masks is not None
                text = report_on_images(segmenter, images, masks, title=title, limit=limit, bar=bar)
        with open_output(html) as file:
            file.write(text.encode())
    print(f"wrote {printable(html)}: {html.stat().st_size / 1e6:.2f} MB")

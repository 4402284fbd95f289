"""The command ``predict``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maxmargin._terminal import printable
from maxmargin.tasks.common.cli.commands import errors_as_lines, writable_folder
from maxmargin.tasks.common.cli.options import Jobs
from maxmargin.tasks.common.files.text import count_of
from maxmargin.tasks.common.progress import Stages
from maxmargin.tasks.segmentation.cli.options import LabelColumn, ModelFile


def predict(
    model: ModelFile,
    inputs: Annotated[list[str], typer.Argument(metavar="INPUT...", help="Images or scans: files and folders.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write to; it is made if there is none.")],
    overlay: Annotated[
        bool, typer.Option("--overlay", help="Also write images with tinted classes, to OUT/overlays.")
    ] = False,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities", help="Also write class probabilities: to OUT/probabilities, of scans as columns."
        ),
    ] = False,
    seeds: Annotated[
        str | None,
        typer.Option("--seeds", help="Folder of known labels, with the names of the inputs; predictions keep them."),
    ] = None,
    label_column: LabelColumn = None,
    jobs: Jobs = -1,
) -> None:
    """Label the pixels of images, or the points of scans: a mask, or a scan with labels, for each input."""
    from maxmargin.tasks.segmentation.files.predict import Output, list_inputs, list_seeds, predict_files, takes_scans
    from maxmargin.tasks.segmentation.model import SegmenterModel

    written = 0
    with errors_as_lines():
        segmenter = SegmenterModel.load(model, n_jobs=jobs)
        if overlay and takes_scans(segmenter):
            raise ValueError("--overlay draws on images, and this model labels scans; leave it out")
        files = list_inputs(segmenter, list(inputs))
        known = None if seeds is None else list_seeds(segmenter, files, seeds)
        writable_folder(out, [*files, *(known or {}).values()])
        with Stages() as bar:
            bar.begin("scans" if takes_scans(segmenter) else "images", len(files))
            for _ in predict_files(
                segmenter, files, Output(out, overlay, probabilities), seeds=known, label_column=label_column
            ):
                written += 1
                bar.advance()
    noun = "scan" if takes_scans(segmenter) else "mask"
    more = [what for what, wanted in (("overlays", overlay), ("probabilities", probabilities)) if wanted]
    print(f"wrote {printable(out)}: {count_of(written, noun)}" + (f", with {' and '.join(more)}" if more else ""))

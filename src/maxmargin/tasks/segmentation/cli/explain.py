"""The command ``explain``."""

from __future__ import annotations

from typing import Annotated

import typer

from maxmargin.tasks.common.cli.commands import errors_as_lines
from maxmargin.tasks.common.cli.explain import Html, Rows, check_html, write_explanation
from maxmargin.tasks.common.cli.options import AsJson
from maxmargin.tasks.common.files.text import name_of
from maxmargin.tasks.segmentation.cli.options import LabelColumn, ModelFile


def explain(
    model: ModelFile,
    input: Annotated[str, typer.Argument(help="An image or a scan.")],
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="PLACE",
            help="Compare with the best labels that differ at a pixel, 'row,column' from 0, or a point's number.",
        ),
    ] = None,
    gold: Annotated[
        str | None, typer.Option("--gold", metavar="FILE", help="Compare with the labels of a mask or labeled scan.")
    ] = None,
    label_column: LabelColumn = None,
    top: Rows = None,
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """Show why regions of an image, or points of a scan, get their labels: contributions to a margin over others.

    The page of --html shows the image with the places where the other labels differ.
    """
    check_html(html, [str(model), input, gold])
    with errors_as_lines():
        if at is not None and gold is not None:
            raise ValueError("--at and --gold exclude each other; give one of them")
        from maxmargin.tasks.segmentation.files.explain import explain_file
        from maxmargin.tasks.segmentation.model import SegmenterModel

        segmenter = SegmenterModel.load(model)
        found, pictures = explain_file(
            segmenter, input, at=at, gold=gold, label_column=label_column, drawn=html is not None
        )
        write_explanation(found, name_of(input), top=top, html=html, as_json=as_json, pictures=pictures)

"""The command ``shard``."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from maxmargin._terminal import fail
from maxmargin.tasks.common.cli.commands import errors_as_lines
from maxmargin.tasks.common.cli.options import AsJson, Jobs, Overwrite, ResumeBuilding, ShardsOut
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
    SupportName,
    TemplateFile,
    TextFiles,
)
from maxmargin.tasks.tagging.cli.train import CONSTRAINTS, features_of, given_columns


def shard(
    file: Annotated[str, typer.Argument(help="A file of labeled tokens, which is read several times.")],
    out: ShardsOut,
    columns: Columns = None,
    label: Label = None,
    form: Format = None,
    join: Join = None,
    template: TemplateFile = None,
    preset: Preset = None,
    order: Order = 1,
    constraints: Constraints = "auto",
    repair: Repair = False,
    min_count: MinCount = None,
    support: SupportName = "negative",
    text: TextFiles = None,
    gazetteer: GazetteerFiles = None,
    resume: ResumeBuilding = False,
    overwrite: Overwrite = False,
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Encode labeled sentences for training in little memory: tag train takes the folder in place of a file."""
    began = time.perf_counter()
    if constraints not in CONSTRAINTS:
        fail(f"no constraints {constraints!r}; choose one of {', '.join(CONSTRAINTS)}")
    with errors_as_lines():
        from maxmargin.tasks.common.sharding import build
        from maxmargin.tasks.tagging.encoder.tagging import TaggingEncoder
        from maxmargin.tasks.tagging.reading import ReadOptions, file_metadata
        from maxmargin.tasks.tagging.sharding import TaggedSource

        source = TaggedSource(file, ReadOptions(form, columns, label, join))
        first = source.first
        features = features_of(first, template, preset) | given_columns(gazetteer, text)
        encoder = TaggingEncoder(
            **features,
            order=order,
            constraints=None if constraints == "none" else constraints,
            min_count=min_count,
            support=support,
            repair=repair,
        )
        described = {"file": file_metadata(first, bool(join))}
        build(
            out, encoder, source, called="sentences", began=began, jobs=jobs, overwrite=overwrite, resume=resume,
            as_json=as_json, metadata=described,
            shown=lambda made: {"tokens": made.n_variables, "labels": len(made.encoder.classes or ())},
        )  # fmt: skip

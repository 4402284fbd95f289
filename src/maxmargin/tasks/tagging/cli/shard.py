"""The command ``shard``."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from maxmargin._terminal import fail, report
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
        from maxmargin import threads
        from maxmargin.datasets import ShardedDataset
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
        with threads(jobs):
            dataset = ShardedDataset.build(out, encoder, source, metadata=described, overwrite=overwrite, resume=resume)
        found = {
            "folder": str(out),
            "sentences": len(dataset),
            "tokens": dataset.n_variables,
            "labels": len(dataset.encoder.classes or ()),
            "shards": len(dataset.shards),
            "megabytes": dataset.nbytes / 1e6,
            "seconds": time.perf_counter() - began,
        }
        report(found, as_json=as_json)

"""The command ``inspect``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from maxmargin._terminal import report
from maxmargin.tasks.common.cli.commands import errors_as_lines
from maxmargin.tasks.common.cli.options import AsJson, Top
from maxmargin.tasks.common.tables import print_weights


def inspect(
    model: Annotated[Path, typer.Argument(help="A model written by tag train.")],
    top: Top = 10,
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="LABEL", help="Only this label; may be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the strongest attributes of each label, the strongest transitions, and how the model was trained."""
    with errors_as_lines():
        from maxmargin.tasks.tagging.model import TaggerModel

        tagger = TaggerModel.load(model)
        found = {"metadata": tagger.describe(), **tagger.strongest(top, label or ())}
    if as_json:
        print(json.dumps(found), flush=True)
        return
    report(found["metadata"], as_json=False)
    for one in found["labels"]:
        print_weights(one["label"], one, lambda entry: str(entry["attribute"]))
    print_weights("transitions", found["transitions"], lambda entry: f"{entry['from']} {entry['to']}")
    if "triples" in found:
        print_weights("three labels", found["triples"], lambda entry: " ".join(entry["labels"]))
    if pairs := found.get("attributes_of_pairs"):
        print_weights("attributes of pairs", pairs, lambda entry: "{from} {to}  {attribute}".format_map(entry))

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
    model: Annotated[Path, typer.Argument(help="A model written by rerank train.")],
    top: Top = 20,
    as_json: AsJson = False,
) -> None:
    """Show the strongest weights, how the model was trained, and what held-out lists said of it."""
    with errors_as_lines():
        from maxmargin.tasks.reranking.model import RerankerModel

        reranker = RerankerModel.load(model)
        found = {"metadata": reranker.describe(), "weights": reranker.strongest(top)}
    if as_json:
        print(json.dumps(found), flush=True)
        return
    metadata = {name: value for name, value in found["metadata"].items() if not _nested(value) and value != []}
    report(metadata, as_json=False)
    for one in found["metadata"].get("trained_held_out", []):
        print(f"held out: {one['metric']} {one['first']:.4g} -> {one['reranked']:.4g}; {one['verdict']}")
    print_weights("weights, in units of scaled features", found["weights"], lambda entry: str(entry["feature"]))


def _nested(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(one, dict) for one in value))

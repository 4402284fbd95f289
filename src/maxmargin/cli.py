"""The command line: ``maxmargin VERB``, one thin function per verb."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import maxmargin
from maxmargin import model_file
from maxmargin._terminal import fail, report
from maxmargin.model import Model, load
from maxmargin.model_file import ModelFileError
from maxmargin.structures.base import IntArray, Structure
from maxmargin.tasks.alignment.aligner_file import KIND as ALIGNMENT
from maxmargin.tasks.alignment.commands import app as align
from maxmargin.tasks.alignment.commands.describe import describe as describe_aligner

app = typer.Typer(help="Large-margin structured prediction.", no_args_is_help=True, add_completion=False)
app.add_typer(align, name="align")

TASKS: dict[str, Callable[[Path], dict[str, Any]]] = {ALIGNMENT: describe_aligner}
"""Kinds of models that belong to tasks, and what describes their files."""


def _never_applied(sizes: IntArray) -> Structure:
    raise TypeError("a model that is only described has no structure")


def describe(model: Model) -> dict[str, Any]:
    """What a model file says about its model, as plain JSON values."""
    return {
        "kind": model.packer.kind,
        "weights": len(model.weights),
        "nonzero": int((model.weights != 0).sum()),
        **{f"trained {key}": value for key, value in model.facts.items()},
        **{key: value for key, value in model.packer.header().items() if key != "classes"},
        **({"labels": len(model.packer.header()["classes"])} if "classes" in model.packer.header() else {}),
    }


def describe_file(path: Path) -> dict[str, Any]:
    """What a model file of any kind says about its model."""
    kind = model_file.read(path)[0].get("kind")
    if isinstance(kind, str) and kind in TASKS:
        return TASKS[kind](path)
    # The structure of a model of one's own is not needed to describe it.
    return describe(load(path, structure=_never_applied))


@app.command()
def inspect(
    path: Annotated[Path, typer.Argument(help="A model file written by save().")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show what a model file holds: kind, size, how it was trained and its certificate."""
    try:
        facts = describe_file(path)
    except ModelFileError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{path}: {error.strerror or error}; check the name of the file")
    report(facts, as_json=as_json)


@app.command()
def version() -> None:
    """Print the version."""
    print(maxmargin.__version__)

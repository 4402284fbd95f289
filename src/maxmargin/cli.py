"""The command line: ``maxmargin VERB``, one thin function per verb."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

import maxmargin
from maxmargin.model import Model, load
from maxmargin.model_file import ModelFileError
from maxmargin.structures.base import IntArray, Structure

app = typer.Typer(help="Large-margin structured prediction.", no_args_is_help=True, add_completion=False)


def _fail(message: str) -> NoReturn:
    print(f"error: {_printable(message)}", file=sys.stderr)
    raise typer.Exit(code=2)


def _printable(value: object) -> str:
    """One line without control characters: a file's text must not move the cursor."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))


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


@app.command()
def inspect(
    path: Annotated[Path, typer.Argument(help="A model file written by save().")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show what a model file holds: kind, size, how it was trained and its certificate."""
    try:
        # The structure of a model of one's own is not needed to describe it.
        facts = describe(load(path, structure=_never_applied))
    except ModelFileError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{path}: {error.strerror or error}")
    if as_json:
        print(json.dumps(facts))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=False, box=None)
    for key, value in facts.items():
        table.add_row(Text(key), Text(_printable(value)))
    Console().print(table)


@app.command()
def version() -> None:
    """Print the version."""
    print(maxmargin.__version__)

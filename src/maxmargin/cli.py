"""The command line: ``maxmargin VERB``, one thin function per verb."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperGroup

import maxmargin
from maxmargin._terminal import fail, report

if TYPE_CHECKING:
    from maxmargin.model import Model
    from maxmargin.structures.base import IntArray, Structure

app = typer.Typer(help="Large-margin structured prediction.", no_args_is_help=True, add_completion=False)

TASKS = {
    "sequence tagging": "maxmargin.tasks.tagging.commands.describe",
    "word alignment": "maxmargin.tasks.alignment.inspection",
}
"""Kinds of models that belong to tasks, and the modules whose ``describe`` describes their files."""


def _add_task(name: str, module: str, help: str) -> None:
    """Name the commands of a task, whose ``app`` is imported when one of them, or the help on them, is asked for."""

    class Task(TyperGroup):
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            self._verbs: Any = None

        @property
        def commands(self) -> Any:
            if self._verbs is None:
                group = cast(TyperGroup, typer.main.get_command(import_module(module).app))
                self._verbs = group.commands
            return self._verbs

        @commands.setter
        def commands(self, none: Any) -> None:
            """Those known before the import: none."""

    app.add_typer(typer.Typer(cls=Task, help=help, no_args_is_help=True), name=name)


_add_task("align", "maxmargin.tasks.alignment.cli", "Word alignment: learn, predict, evaluate and look at links.")
_add_task("tag", "maxmargin.tasks.tagging.commands", "Sequence tagging: learn it, predict it, measure it, look at it.")


def _never_applied(sizes: IntArray) -> Structure:
    raise TypeError("a model that is only described has no structure")


def describe(model: Model) -> dict[str, Any]:
    """What a model file says about its model, as plain JSON values."""
    return {
        "kind": model.encoder.kind,
        "weights": len(model.weights),
        "nonzero": int((model.weights != 0).sum()),
        **{f"trained {key}": value for key, value in model.metadata.items()},
        **{key: value for key, value in model.encoder.header().items() if key != "classes"},
        **({"labels": len(model.encoder.header()["classes"])} if "classes" in model.encoder.header() else {}),
    }


def describe_file(path: Path) -> dict[str, Any]:
    """What a model file of any kind says about its model."""
    from maxmargin import model_file

    kind = model_file.read(path)[0].get("kind")
    if isinstance(kind, str) and kind in TASKS:
        of_task: Callable[[Path], dict[str, Any]] = import_module(TASKS[kind]).describe
        return of_task(path)
    from maxmargin.model import load

    # The structure of a model of one's own is not needed to describe it.
    return describe(load(path, structure=_never_applied))


@app.command()
def inspect(
    path: Annotated[Path, typer.Argument(help="A model file written by save().")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show what a model file holds: kind, size, how it was trained and its certificate."""
    from maxmargin.model_file import ModelFileError

    try:
        metadata = describe_file(path)
    except ModelFileError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{path}: {error.strerror or error}; check the name of the file")
    report(metadata, as_json=as_json)


@app.command()
def version() -> None:
    """Print the version."""
    print(maxmargin.__version__)

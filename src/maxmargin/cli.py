"""The command line: ``maxmargin VERB``, one thin function per verb."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperGroup

import maxmargin
from maxmargin._interrupts import drop_output, received
from maxmargin._locks import release_all
from maxmargin._terminal import fail, interrupted, report, set_quiet

if TYPE_CHECKING:
    from maxmargin.structures.base import IntArray, Structure

_CLOSED_PIPE = 141
"""The exit code where the reader of standard output has gone, as of programs that SIGPIPE ends."""


class _Commands(TyperGroup):
    """Ends a command in one line if it is interrupted, and silently if the reader of its output has gone."""

    def invoke(self, ctx: Any) -> Any:
        try:
            done = super().invoke(ctx)
            sys.stdout.flush()
            return done
        except BrokenPipeError:  # as after ``| head``
            drop_output()
            raise typer.Exit(code=_CLOSED_PIPE) from None
        except KeyboardInterrupt:
            interrupted()
        except typer.Exit:
            raise
        except Exception:  # what an import raises that was interrupted
            if received() is None:
                raise
            interrupted()
        finally:
            release_all()
            set_quiet(False)


app = typer.Typer(cls=_Commands, help="Large-margin structured prediction.", no_args_is_help=True, add_completion=False)


_Quiet = Annotated[
    bool,
    typer.Option("--quiet", help="Leave out notes and progress bars; warnings and errors stay.", callback=set_quiet),
]


def _quiet_option() -> Any:
    """The option ``--quiet``, which every command of a task has; typer makes it from the signature of a function."""

    def with_option(quiet: _Quiet = False) -> None:
        """A command with nothing but the option."""

    maker = typer.Typer(add_completion=False)
    maker.command()(with_option)
    option: Any = next(one for one in typer.main.get_command(maker).params if one.name == "quiet")
    option.expose_value = False
    return option


def _print_version(asked: bool) -> None:
    if asked:
        print(maxmargin.__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Large-margin structured prediction."""


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
                for verb in self._verbs.values():
                    verb.params.append(_quiet_option())
            return self._verbs

        @commands.setter
        def commands(self, none: Any) -> None:
            """Those known before the import: none."""

    app.add_typer(typer.Typer(cls=Task, help=help, no_args_is_help=True), name=name)


_add_task(
    "align",
    "maxmargin.tasks.alignment.cli",
    "Word alignment: train, predict, evaluate, explain, inspect, look at links.",
)
_add_task("parse", "maxmargin.tasks.parsing.cli", "Dependency parsing: train, predict, evaluate, explain.")
_add_task(
    "rerank",
    "maxmargin.tasks.reranking.cli",
    "Reranking of n-best lists and lattices: train, predict, evaluate, explain, inspect, export.",
)
_add_task(
    "segment",
    "maxmargin.tasks.segmentation.cli",
    "Segmentation of images and scans: train, predict, evaluate, explain, report.",
)
_add_task("tag", "maxmargin.tasks.tagging.cli", "Sequence tagging: train, shard, predict, evaluate, explain, inspect.")


def _never_applied(sizes: IntArray) -> Structure:
    raise TypeError("a model that is only described has no structure")


@app.command()
def inspect(
    path: Annotated[Path, typer.Argument(help="A model file written by save().")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show what a model file holds: kind, size, how it was trained and its certificate."""
    from maxmargin.model_file import ModelFileError
    from maxmargin.models.base import load

    try:
        # A user's own structure is not needed to describe its model.
        metadata = load(path, structure=_never_applied).describe()
    except ModelFileError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{path}: {error.strerror or error}; check the name of the file")
    report(metadata, as_json=as_json)


@app.command()
def version() -> None:
    """Print the version."""
    print(maxmargin.__version__)

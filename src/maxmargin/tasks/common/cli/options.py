"""Command-line options that several tasks share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from maxmargin.execution import Executor

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Jobs = Annotated[int, typer.Option("--jobs", help="Number of threads; -1 uses all cores.")]
RayAddress = Annotated[
    str | None,
    typer.Option("--ray", metavar="ADDRESS", help="Run the workers on this Ray cluster; 'local' starts one here."),
]
Level = Annotated[float, typer.Option("--level", min=0.01, max=0.999, help="Confidence level of the intervals.")]
ModelOut = Annotated[Path, typer.Option("--out", help="Model file to write.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is in the folder.")]
ResamplingSeed = Annotated[int, typer.Option("--seed", min=0, help="Random seed of the bootstrap.")]
TrainingWorkers = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="Workers of --ray, each with a shard of the examples.", show_default="2"),
]
Resume = Annotated[bool, typer.Option("--resume", help="Resume training that was interrupted or killed.")]
ResumeBuilding = Annotated[
    bool, typer.Option("--resume", help="Complete a folder whose building was interrupted or killed.")
]
ResumeOutput = Annotated[
    bool, typer.Option("--resume", help="Resume writing --out where the same command was interrupted or killed.")
]
SaveEvery = Annotated[
    float, typer.Option("--save-every", min=0.0, help="Seconds between checkpoints of training, for --resume.")
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Random seed.")]
Shards = Annotated[
    str | None,
    typer.Option("--shards", metavar="FOLDER", help="In place of files, the folder of the command shard."),
]
ShardsOut = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Folder to write.")]
Top = Annotated[int, typer.Option("--top", min=1, help="Number of the strongest weights of each sign.")]
Tol = Annotated[float, typer.Option("--tol", min=0.0, help="Relative duality gap at which training stops.")]

WorkerCount = Annotated[
    int, typer.Option("--workers", min=1, max=1024, help="Number of processes that share the threads of --jobs.")
]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose", help="Where there is no terminal for a progress bar, print a line a minute and on every stage."
    ),
]


def numbers_option(name: str, help: str, default: str) -> Any:
    """Return the option of a number, or of several to choose from; :func:`numbers` reads its value."""
    return typer.Option(name, metavar="NUMBERS", help=help, show_default=default)


def numbers(name: str, given: str | None) -> tuple[float, ...] | None:
    """Return the numbers that were given for an option; None if it was not given."""
    try:
        return None if given is None else tuple(map(float, given.split(",")))
    except ValueError:
        raise ValueError(f"{name} {given}: give a number, or several separated by commas, as 0.1,0.3,1") from None


def executor_of(address: str | None, workers: int | None) -> Executor | None:
    """Return where to train, from the options ``--ray`` and ``--workers``; None for this process."""
    if address is None:
        if workers is not None:
            raise ValueError("--workers needs --ray; give --ray local for workers on this machine")
        return None
    from maxmargin.execution import Ray

    return Ray(workers=workers or 2, address=None if address == "local" else address)


def refuse_with_shards(given: dict[str, Any]) -> None:
    """ValueError if options are given with a folder that decide what is in it; those not given are None or empty."""
    for name, value in given.items():
        if value is not None and value != [] and value is not False:
            raise ValueError(
                f"{name} is for files: the examples of a folder are read and encoded already, so {name} has no use "
                "here; leave it out, or give it to the command shard and make another folder"
            )

"""Command-line options that several tasks share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Jobs = Annotated[int, typer.Option("--jobs", help="Number of threads; -1 uses all cores.")]
Level = Annotated[float, typer.Option("--level", min=0.01, max=0.999, help="Confidence level of the intervals.")]
ModelOut = Annotated[Path, typer.Option("--out", help="Model file to write.")]
ResamplingSeed = Annotated[int, typer.Option("--seed", min=0, help="Random seed of the bootstrap.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Random seed.")]
Tol = Annotated[float, typer.Option("--tol", min=0.0, help="Relative duality gap at which training stops.")]

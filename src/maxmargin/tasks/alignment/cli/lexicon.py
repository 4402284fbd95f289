"""The command ``lexicon``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from maxmargin.tasks.alignment.model import AlignerModel
from maxmargin.tasks.alignment.translation.lexicon import Lexicon
from maxmargin.tasks.common.cli.commands import PART_WRITTEN, errors_as_lines, writable
from maxmargin.tasks.common.files.text import count_of, open_output


def lexicon(
    model: Annotated[Path, typer.Argument(help="Model written by align train, align bootstrap or align update.")],
    source: Annotated[str | None, typer.Option("--source-word", help="Only translations of this source word.")] = None,
    target: Annotated[str | None, typer.Option("--target-word", help="Only translations of this target word.")] = None,
    top: Annotated[int | None, typer.Option("--top", min=1, help="Number of translations of a word.")] = None,
    least: Annotated[
        float, typer.Option("--min-probability", min=0.0, max=1.0, help="Smallest probability in either direction.")
    ] = 0.01,
    moses: Annotated[
        Path | None,
        typer.Option("--moses", metavar="PREFIX", help="Write PREFIX.f2e and PREFIX.e2f for Moses instead."),
    ] = None,
) -> None:
    """Write translation probabilities, tab-separated: source, target, p(target|source), p(source|target), links."""
    if moses is not None:
        paths = [moses.with_name(f"{moses.name}.{end}") for end in ("f2e", "e2f")]
        for path in paths:
            writable(path, keep=[str(model)], option="--moses")
    with errors_as_lines():
        words = AlignerModel.load(model).encoder.models.words
        found = Lexicon.of(words, min_probability=least, top=top, source=source, target=target)
        if moses is not None:
            for path, lines in zip(paths, found.moses(least), strict=True):
                _write(path, lines)
                print(f"wrote {path}: {count_of(len(lines), 'line')}")
            return
        if (source is not None or target is not None) and not len(found):
            raise ValueError(f"no translation of {source or target!r} has a probability of at least {least:g}")
    with errors_as_lines(PART_WRITTEN):
        sys.stdout.writelines(
            f"{one.source}\t{one.target}\t{one.forward:.6f}\t{one.backward:.6f}\t{one.links:.2f}\n"
            for one in found.entries()
        )
        sys.stdout.flush()


def _write(path: Path, lines: Sequence[str]) -> None:
    with open_output(path) as file:
        file.writelines(line.encode("utf-8", "surrogatepass") + b"\n" for line in lines)

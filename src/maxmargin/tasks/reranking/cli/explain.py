"""The command ``explain``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from maxmargin.tasks.common.cli.commands import errors_as_lines, once
from maxmargin.tasks.common.cli.explain import Html, Rows, check_html, write_explanation
from maxmargin.tasks.common.cli.options import AsJson
from maxmargin.tasks.common.files.text import count_of, name_of
from maxmargin.tasks.reranking.cli.options import Encoding, Features, Format, ListSize, Segments, Sources


def explain(
    model: Annotated[Path, typer.Argument(help="A model written by rerank train.")],
    nbest: Annotated[
        str, typer.Option("--nbest", metavar="FILE", help="Lists of hypotheses with features; - for standard input.")
    ],
    number: Annotated[int, typer.Option("--list", min=1, help="Number of the list in its file, from 1.")] = 1,
    against: Annotated[
        int | None,
        typer.Option("--against", min=1, help="Compare with this hypothesis of the list, from 1, not the runner-up."),
    ] = None,
    top: Rows = None,
    html: Html = None,
    as_json: AsJson = False,
    features: Features = None,
    form: Format = None,
    list_size: ListSize = None,
    segments: Segments = None,
    sources: Sources = None,
    encoding: Encoding = None,
) -> None:
    """Show why a hypothesis is chosen from a list: what features contribute to its margin over another one."""
    inputs = [nbest, *(features or []), segments, sources]
    check_html(html, [str(model), *inputs])
    with errors_as_lines():
        from maxmargin.tasks.reranking.files import Reading
        from maxmargin.tasks.reranking.model import RerankerModel

        once(inputs)
        reranker = RerankerModel.load(model)
        reading = Reading(form, list_size, encoding).or_else(reranker.metadata.get("reading"))
        lists = reading.read(nbest, features=features or [], sources=sources, segments=segments)
        if number > len(lists):
            raise ValueError(
                f"--list {number}: {name_of(nbest)} has {count_of(len(lists), 'list')}; give a smaller number"
            )
        one = lists.select([number - 1])
        if against is not None and against > one.n_hypotheses:
            count = "1 hypothesis" if one.n_hypotheses == 1 else f"{one.n_hypotheses} hypotheses"
            raise ValueError(f"--against {against}: list {number} has {count}; give a smaller number")
        found = reranker.explain(one, against=None if against is None else against - 1)
        write_explanation(
            found,
            f"list {number} of {name_of(nbest)}",
            top=top,
            html=html,
            as_json=as_json,
            readable=replace(found, output=_counted_from_1(found.output), rival=_counted_from_1(found.rival)),
        )


def _counted_from_1(output: Any) -> str | None:
    return None if output is None else f"hypothesis {int(output) + 1}"

"""The command ``export``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from maxmargin._terminal import fail
from maxmargin.tasks.common.cli.commands import errors_as_lines, writable
from maxmargin.tasks.common.files.text import STANDARD_INPUT, open_output


def export(
    model: Annotated[Path, typer.Argument(help="A model written by rerank train.")],
    moses_ini: Annotated[
        bool, typer.Option("--moses-ini", help="The weights as lines of a Moses configuration, moses.ini.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object from names of features to weights.")] = False,
    sparse: Annotated[
        str | None,
        typer.Option("--sparse", metavar="FILE", help="With --moses-ini, write the weights of sparse features there."),
    ] = None,
    out: Annotated[str, typer.Option("--out", help="File to write, compressed if it ends in .gz.")] = STANDARD_INPUT,
) -> None:
    """Write the weights in the units of the features, as a decoder takes them."""
    if moses_ini == as_json:
        fail("give --moses-ini or --json, one of them")
    if sparse is not None and not moses_ini:
        fail("--sparse goes with --moses-ini; --json has the weights of sparse features anyway")
    for option, path in (("--out", out), ("--sparse", sparse)):
        if path not in (None, STANDARD_INPUT):
            writable(Path(str(path)), keep=[str(model)], option=option, streams=True)
    if sparse is not None and STANDARD_INPUT not in (out, sparse) and Path(out).resolve() == Path(sparse).resolve():
        fail(f"--out and --sparse are both {out}; give two files")
    with errors_as_lines():
        from maxmargin.tasks.reranking.io.weights import moses_section
        from maxmargin.tasks.reranking.model import RerankerModel

        reranker = RerankerModel.load(model)
        dense, others = reranker.dense_weights, reranker.sparse_weights()
        if as_json:
            with open_output(out) as stream:
                stream.write(json.dumps({**dense, **others}, ensure_ascii=False).encode() + b"\n")
            return
        if any(name.split() != [name] for name in others):
            raise ValueError("n-grams and phrase pairs are no features of Moses; give --json, or train without them")
        if others and sparse is None:
            raise ValueError(
                f"{len(others)} sparse features have weights, which Moses keeps in another file; give --sparse FILE"
            )
        with open_output(out) as stream:
            stream.write(moses_section(dense, sparse).encode())
        if sparse is not None:
            with open_output(sparse) as stream:
                stream.writelines(f"{name} {weight!r}\n".encode() for name, weight in others.items())

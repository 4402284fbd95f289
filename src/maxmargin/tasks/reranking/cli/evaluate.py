"""The command ``evaluate``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from maxmargin._terminal import console, printable
from maxmargin.tasks.common.cli.commands import errors_as_lines, once
from maxmargin.tasks.common.cli.options import AsJson, Level, ResamplingSeed
from maxmargin.tasks.common.files.text import name_of
from maxmargin.tasks.reranking.cli.options import Encoding


def evaluate(
    hypotheses: Annotated[str, typer.Option("--hypotheses", help="Hypotheses, one a line.")],
    references: Annotated[
        list[str], typer.Option("--references", metavar="FILE...", help="References: files with one a line.")
    ],
    against: Annotated[
        str | None, typer.Option("--against", help="Hypotheses of another system, to compare with.")
    ] = None,
    metric: Annotated[
        str, typer.Option("--metric", metavar="NAMES", help="bleu, chrf, chrf++, ter, wer, cer; separated by commas.")
    ] = "bleu,chrf,ter,wer,cer",
    tokenize: Annotated[
        str, typer.Option("--tokenize", help="sacrebleu's tokenizer for BLEU; 'none' for text that is tokenized.")
    ] = "13a",
    encoding: Encoding = None,
    as_json: AsJson = False,
    level: Level = 0.95,
    seed: ResamplingSeed = 0,
) -> None:
    """Evaluate hypotheses by corpus metrics with intervals; significance of the difference from another system."""
    from maxmargin.tasks.reranking.metrics import tables
    from maxmargin.tasks.reranking.metrics.files import evaluate_files
    from maxmargin.tasks.reranking.metrics.names import metric_named

    systems = [hypotheses] if against is None else [hypotheses, against]
    with errors_as_lines():
        once([*systems, *references])
        metrics = [metric_named(name.strip(), tokenize=tokenize) for name in metric.split(",")]
        scores = evaluate_files(systems, references, metrics, encoding=encoding or "utf-8")
        names = [name_of(path) for path in systems]
        found = tables.summary(names, scores, level=level, seed=seed)
    if as_json:
        print(json.dumps(found), flush=True)
        return
    console().print(tables.scores_table(names, found))
    for lines in (tables.verdict_lines(names, found), tables.signature_lines(found)):
        if lines:
            print("", *map(printable, lines), sep="\n", flush=True)

"""The command ``train``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from maxmargin._terminal import console, printable
from maxmargin.tasks.common.commands import errors_as_lines, once, uninterrupted, writable
from maxmargin.tasks.common.options import AsJson, Jobs, Level, ModelOut, Seed, numbers, numbers_option
from maxmargin.tasks.reranking.cli.options import (
    Encoding,
    Features,
    Format,
    ListSize,
    NBest,
    References,
    Segments,
    Sources,
)


def train(
    nbest: NBest,
    out: ModelOut,
    references: References = None,
    features: Features = None,
    method: Annotated[
        str, typer.Option("--method", help="max-margin, lp7, lp8, mert, pro, mira or perceptron.")
    ] = "max-margin",
    metric: Annotated[
        str,
        typer.Option(
            "--metric", help="bleu, chrf, chrf++, ter, wer or cer; or a file with a gain per hypothesis, a line each."
        ),
    ] = "bleu",
    C: Annotated[
        str | None,
        numbers_option("--C", "Larger means less regularization. Of several, held-out lists choose.", "the method's"),
    ] = None,
    ngrams: Annotated[int, typer.Option("--ngrams", min=0, help="The longest word n-grams that are features.")] = 0,
    phrases: Annotated[bool, typer.Option("--phrases", help="Phrase pairs are features.")] = False,
    length: Annotated[bool, typer.Option("--length", help="The number of words is a feature.")] = False,
    min_lists: Annotated[
        int, typer.Option("--min-lists", min=1, help="Sparse features must tell hypotheses apart in so many lists.")
    ] = 1,
    normalize: Annotated[
        str, typer.Option("--normalize", help="Units of dense features: spread, list (within each list) or none.")
    ] = "spread",
    positive: Annotated[
        list[str] | None, typer.Option("--positive", metavar="NAME...", help="Dense features with weights >= 0.")
    ] = None,
    negative: Annotated[
        list[str] | None, typer.Option("--negative", metavar="NAME...", help="Dense features with weights <= 0.")
    ] = None,
    folds: Annotated[
        int, typer.Option("--folds", min=0, help="Folds of held-out lists, which choose settings; 0 for none.")
    ] = 5,
    form: Format = None,
    list_size: ListSize = None,
    segments: Segments = None,
    sources: Sources = None,
    encoding: Encoding = None,
    level: Level = 0.95,
    seed: Seed = 0,
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Tune the weights of features of hypotheses, and say what they gain on held-out lists."""
    inputs = [nbest, *(features or []), *(references or []), segments, sources]
    writable(out, keep=inputs)
    with errors_as_lines():
        from maxmargin.tasks.reranking.encoder.reranking import RerankingEncoder
        from maxmargin.tasks.reranking.files import Reading, read_judged
        from maxmargin.tasks.reranking.training import RerankerSettings, train_reranker

        once(inputs)
        settings = RerankerSettings(
            method=method,
            C=numbers("--C", C),
            encoder=RerankingEncoder(normalize, length, ngrams, phrases, min_lists),
            positive=positive or (),
            negative=negative or (),
            folds=folds,
            level=level,
            random_state=seed,
            n_jobs=jobs,
            verbose=True,
        )
        reading = Reading(form, list_size, encoding)
        judged = read_judged(
            reading,
            nbest,
            metric=metric,
            features=features or [],
            references=references or [],
            sources=sources,
            segments=segments,
        )
        model = uninterrupted(train_reranker(judged, settings))
        model.metadata["reading"] = vars(reading)
        model.save(out)
    assert model.report is not None
    if as_json:
        print(json.dumps({"model": str(out), **model.describe()}), flush=True)
        return
    from maxmargin.tasks.reranking.report import report_tables

    for table in report_tables(model.report):
        console().print(table)
    print(*(printable(one.verdict) for one in model.report.held_out[:1]), sep="\n")

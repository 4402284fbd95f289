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
    Lattices,
    ListSize,
    NBest,
    Reading,
    References,
    Segments,
    Sources,
    names_of,
)


def train(
    out: ModelOut,
    nbest: NBest = None,
    references: References = None,
    features: Features = None,
    lattices: Lattices = None,
    method: Annotated[
        str, typer.Option("--method", help="max-margin, lp7, lp8, mert, pro, mira or perceptron.")
    ] = "max-margin",
    metric: Annotated[
        str,
        typer.Option(
            "--metric", help="bleu, chrf, ter, wer or cer; or a file with a gain for each hypothesis, a line each."
        ),
    ] = "bleu",
    C: Annotated[
        str | None,
        numbers_option(
            "--C", "Larger means less regularization. Of several, the best on held-out lists is chosen.", "the method's"
        ),
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
        str | None, typer.Option("--positive", metavar="NAMES", help="Features with weights >= 0, with commas between.")
    ] = None,
    negative: Annotated[
        str | None, typer.Option("--negative", metavar="NAMES", help="Features with weights <= 0, with commas between.")
    ] = None,
    folds: Annotated[
        int, typer.Option("--folds", min=0, help="Folds of held-out lists, which choose settings; 0 for none.")
    ] = 5,
    form: Format = None,
    list_size: ListSize = None,
    segments: Segments = None,
    sources: Sources = None,
    encoding: Encoding = "utf-8",
    level: Level = 0.95,
    seed: Seed = 0,
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Tune the weights of features of hypotheses, and say what they gain on held-out lists."""
    writable(out, keep=[nbest, *(features or []), *(references or []), *(lattices or [])])
    with errors_as_lines():
        from maxmargin.tasks.reranking.encoder.reranking import RerankingEncoder
        from maxmargin.tasks.reranking.files import judged_files
        from maxmargin.tasks.reranking.training import RerankerSettings, train_reranker
        from maxmargin.tasks.reranking.tuning.methods import method_named

        once([nbest, *(features or []), *(references or []), *(lattices or [])])
        settings = RerankerSettings(
            method=method_named(method, C=numbers("--C", C)),
            encoder=RerankingEncoder(normalize, length, ngrams, phrases, min_lists),
            positive=names_of(positive),
            negative=names_of(negative),
            folds=folds,
            level=level,
            random_state=seed,
            n_jobs=jobs,
            verbose=True,
        )
        reading = Reading(form, list_size, encoding, segments, sources)
        judged = judged_files(reading, nbest, features or [], references or [], metric, lattices or [])
        model = uninterrupted(train_reranker(judged, settings))
        model.metadata["reading"] = reading.kept()
        model.save(out)
    assert model.report is not None
    if as_json:
        print(json.dumps({"model": str(out), **model.describe()}), flush=True)
        return
    from maxmargin.tasks.reranking.metrics.tables import report_table

    console().print(report_table(model.report))
    for one in model.report.held_out[:1]:
        print(printable(one.verdict))

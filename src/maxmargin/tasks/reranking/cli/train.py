"""The command ``train``."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Any

import typer

from maxmargin._interrupts import defer_interrupts
from maxmargin._terminal import console, printable
from maxmargin.tasks.common.cli.checkpoints import Checkpoints
from maxmargin.tasks.common.cli.commands import errors_as_lines, once, reserve, saving
from maxmargin.tasks.common.cli.options import (
    AsJson,
    Jobs,
    Level,
    ModelOut,
    Resume,
    SaveEvery,
    Seed,
    numbers,
    numbers_option,
)
from maxmargin.tasks.reranking.cli.options import (
    Encoding,
    Features,
    Format,
    LatticeFiles,
    ListSize,
    NBest,
    References,
    Segments,
    Sources,
    one_input,
)


def train(
    out: ModelOut,
    nbest: NBest = None,
    lattices: LatticeFiles = None,
    references: References = None,
    features: Features = None,
    method: Annotated[
        str, typer.Option("--method", help="max-margin, lp7, lp8, mert, pro, mira or perceptron.")
    ] = "max-margin",
    metric: Annotated[
        str,
        typer.Option(
            "--metric", help="bleu, chrf, chrf++, ter, wer or cer; or a file of gains, a line per hypothesis."
        ),
    ] = "bleu",
    C: Annotated[
        str | None,
        numbers_option("--C", "Larger means less regularization. Of several, held-out lists choose.", "the method's"),
    ] = None,
    norm: Annotated[
        str | None, typer.Option("--norm", help="Of max-margin: l2, or l1 for sparse weights.", show_default="l2")
    ] = None,
    levels: Annotated[
        int | None,
        typer.Option(
            "--levels",
            min=1,
            help="Of lp7 and lp8: good are the hypotheses with one of so many highest qualities of a list.",
            show_default="1",
        ),
    ] = None,
    within: Annotated[
        float | None,
        typer.Option(
            "--within",
            min=0.0,
            help="In place of --levels: good are those at most so much worse than the best, in [0, 1].",
        ),
    ] = None,
    restarts: Annotated[
        int | None, typer.Option("--restarts", min=1, help="Starting points of mert.", show_default="20")
    ] = None,
    ngrams: Annotated[int, typer.Option("--ngrams", min=0, help="The longest word n-grams that are features.")] = 0,
    phrases: Annotated[bool, typer.Option("--phrases", help="Phrase pairs are features; see --segments.")] = False,
    length: Annotated[bool, typer.Option("--length", help="The number of words is a feature.")] = False,
    min_lists: Annotated[
        int,
        typer.Option("--min-lists", min=1, help="Keep sparse features that tell hypotheses apart in so many lists."),
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
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights", metavar="FILE", help="With --lattices, the decoder's weights: JSON, names to numbers."
        ),
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
    resume: Resume = False,
    save_every: SaveEvery = 30.0,
    as_json: AsJson = False,
) -> None:
    """Tune the weights of features of hypotheses, and say what they gain on held-out lists."""
    inputs = [nbest, *(lattices or []), *(features or []), *(references or []), segments, sources, weights]
    reserve(out, keep=[*inputs, metric])  # which may be a file of gains
    checkpoints = Checkpoints(out)
    with errors_as_lines(checkpoints.summary):
        from maxmargin.tasks.reranking.encoder.reranking import RerankingEncoder
        from maxmargin.tasks.reranking.files import Reading, read_judged, read_judged_lattices
        from maxmargin.tasks.reranking.io.weights import read_weights
        from maxmargin.tasks.reranking.lattice_training import train_on_lattices
        from maxmargin.tasks.reranking.training import RerankerSettings, train_reranker
        from maxmargin.tasks.reranking.tuning.methods import method_named

        once(inputs)
        of_lists = {"features": features, "segments": segments, "sources": sources, "list_size": list_size}
        one_input(nbest, lattices, **of_lists, ngrams=ngrams, phrases=phrases)
        if nbest is not None and weights is not None:
            raise ValueError("--weights is for lattices: lists tell the decoder's weights by their order; leave it out")
        settings = RerankerSettings(
            method=method_named(method, norm=norm, levels=levels, within=within, restarts=restarts),
            C=numbers("--C", C),
            encoder=RerankingEncoder(normalize, length, ngrams, phrases, min_lists),
            positive=positive or (),
            negative=negative or (),
            folds=folds,
            level=level,
            random_state=seed,
            n_jobs=jobs,
            verbose=True,
            checkpoint=checkpoints.checkpoint(save_every),
        )
        checkpoints.begin(resume)
        reading = Reading(form, list_size, encoding)
        gold: dict[str, Any] = {"metric": metric, "references": references or []}
        if nbest is not None:
            more: dict[str, Any] = {"features": features or [], "sources": sources, "segments": segments}
            judged = read_judged(reading, nbest, **gold, **more)
            reading = replace(reading, usual_size=judged.lists.list_size)
            model = train_reranker(judged, settings)
        else:
            decoder = None if weights is None else read_weights(weights)
            found, metrics = read_judged_lattices(lattices or [], reading, **gold)
            model = train_on_lattices(found, metrics, settings, weights=decoder)
        model.metadata["reading"] = vars(reading)
        with saving(model) as complete, defer_interrupts():
            model.save(out)
            if complete:
                checkpoints.remove()
    assert model.report is not None
    if as_json:
        print(json.dumps({"model": str(out), **model.describe()}), flush=True)
        return
    from maxmargin.tasks.reranking.report import conclusions, report_tables

    for table in report_tables(model.report):
        console().print(table)
    for line in conclusions(model.report):
        print(printable(line), flush=True)

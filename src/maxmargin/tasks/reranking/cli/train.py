"""The command ``train``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxmargin._terminal import console, printable
from maxmargin.tasks.common.cli.checkpoints import Checkpoints
from maxmargin.tasks.common.cli.commands import errors_as_lines, once, reserve
from maxmargin.tasks.common.cli.options import (
    AsJson,
    Jobs,
    Level,
    ModelOut,
    RayAddress,
    Resume,
    SaveEvery,
    Seed,
    Shards,
    TrainingWorkers,
    executor_of,
    numbers,
    numbers_option,
    refuse_with_shards,
)
from maxmargin.tasks.reranking.cli.options import (
    Encoding,
    Features,
    Format,
    LatticeFiles,
    Length,
    Levels,
    ListSize,
    MetricName,
    MinLists,
    NBest,
    Negative,
    Ngrams,
    Normalize,
    Phrases,
    Positive,
    References,
    Segments,
    Sources,
    Within,
    one_input,
)

if TYPE_CHECKING:
    from maxmargin.tasks.reranking.model import RerankerModel


def train(
    out: ModelOut,
    nbest: NBest = None,
    shards: Shards = None,
    lattices: LatticeFiles = None,
    references: References = None,
    features: Features = None,
    method: Annotated[
        str | None,
        typer.Option(
            "--method", help="max-margin, lp7, lp8, mert, pro, mira or perceptron.", show_default="max-margin"
        ),
    ] = None,
    metric: MetricName = "bleu",
    C: Annotated[
        str | None,
        numbers_option("--C", "Larger means less regularization. Of several, held-out lists choose.", "the method's"),
    ] = None,
    norm: Annotated[
        str | None, typer.Option("--norm", help="Of max-margin: l2, or l1 for sparse weights.", show_default="l2")
    ] = None,
    levels: Levels = None,
    within: Within = None,
    restarts: Annotated[
        int | None, typer.Option("--restarts", min=1, help="Starting points of mert.", show_default="20")
    ] = None,
    ngrams: Ngrams = 0,
    phrases: Phrases = False,
    length: Length = False,
    min_lists: MinLists = 1,
    normalize: Normalize = "spread",
    positive: Positive = None,
    negative: Negative = None,
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
    ray: RayAddress = None,
    workers: TrainingWorkers = None,
    resume: Resume = False,
    save_every: SaveEvery = 30.0,
    as_json: AsJson = False,
) -> None:
    """Tune the weights of features of hypotheses, and say what they gain on held-out lists."""
    inputs = [nbest, *(lattices or []), *(features or []), *(references or []), segments, sources, weights]
    reserve(out, keep=[*inputs, metric])  # which may be a file of gains
    checkpoints = Checkpoints(out)
    with errors_as_lines(checkpoints.summary):
        from maxmargin.datasets import ShardedDataset
        from maxmargin.tasks.reranking.encoder.reranking import RerankingEncoder
        from maxmargin.tasks.reranking.files import Reading, read_judged, read_judged_lattices
        from maxmargin.tasks.reranking.io.weights import read_weights
        from maxmargin.tasks.reranking.lattice_training import train_on_lattices
        from maxmargin.tasks.reranking.sharding import dataset_settings, train_reranker_on
        from maxmargin.tasks.reranking.training import RerankerSettings, train_reranker
        from maxmargin.tasks.reranking.tuning.methods import method_named

        once(inputs)
        executor = executor_of(ray, workers)
        if shards is not None:
            refuse_with_shards(
                {
                    **{"--nbest": nbest, "--lattices": lattices, "--references": references, "--features": features},
                    **{"--method": method, "--levels": levels, "--within": within, "--restarts": restarts},
                    **{"--metric": None if metric == "bleu" else metric, "--ngrams": ngrams or None},
                    **{"--phrases": phrases, "--length": length, "--weights": weights, "--segments": segments},
                    **{"--normalize": None if normalize == "spread" else normalize, "--positive": positive},
                    **{"--negative": negative, "--sources": sources, "--list-size": list_size, "--format": form},
                    **{"--min-lists": None if min_lists == 1 else min_lists, "--encoding": encoding},
                }
            )
            dataset = ShardedDataset(shards)
            settings = dataset_settings(
                dataset, norm=norm, C=numbers("--C", C), random_state=seed, n_jobs=jobs, executor=executor,
                checkpoint=checkpoints.checkpoint(save_every), verbose=True,
            )  # fmt: skip
            checkpoints.begin(resume)
            model = train_reranker_on(dataset, settings)
            model.metadata["reading"] = dataset.metadata["reading"]
            checkpoints.save(model)
            _print(model, out, as_json)
            return
        of_lists = {"features": features, "segments": segments, "sources": sources, "list_size": list_size}
        one_input(nbest, lattices, **of_lists, ngrams=ngrams, phrases=phrases)
        if nbest is not None and weights is not None:
            raise ValueError("--weights is for lattices: lists tell the decoder's weights by their order; leave it out")
        settings = RerankerSettings(
            method=method_named(method or "max-margin", norm=norm, levels=levels, within=within, restarts=restarts),
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
            executor=executor,
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
        checkpoints.save(model)
    _print(model, out, as_json)


def _print(model: RerankerModel, out: Path, as_json: bool) -> None:
    assert model.report is not None
    if as_json:
        print(json.dumps({"model": str(out), **model.describe()}), flush=True)
        return
    from maxmargin.tasks.reranking.report import conclusions, report_tables

    for table in report_tables(model.report):
        console().print(table)
    for line in conclusions(model.report):
        print(printable(line), flush=True)

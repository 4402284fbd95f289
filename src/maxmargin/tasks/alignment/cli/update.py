"""The command ``update``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from maxmargin._terminal import report
from maxmargin.tasks.alignment.cli.options import BitextTarget, MinProbability, learned_bitext
from maxmargin.tasks.alignment.model import AlignerModel
from maxmargin.tasks.common.cli.commands import errors_as_lines, once, reserve
from maxmargin.tasks.common.cli.options import AsJson, Jobs, ModelOut


def update(
    model: Annotated[Path, typer.Argument(help="Model written by align train, align bootstrap or align update.")],
    bitext_source: Annotated[
        str,
        typer.Option(
            "--bitext-source", help="Further sentences, lines 'source ||| target' (or TAB), or a folder of align shard."
        ),
    ],
    out: ModelOut,
    bitext_target: BitextTarget = None,
    least: MinProbability = 1e-4,
    jobs: Jobs = -1,
    as_json: AsJson = False,
) -> None:
    """Let the translation models of a model learn from further bitext, with what they know; the weights stay."""
    began = time.perf_counter()
    reserve(out, keep=[bitext_source, bitext_target])
    with errors_as_lines():
        once([bitext_source, bitext_target])
        aligner = AlignerModel.load(model, n_jobs=jobs)
        found = aligner.updated(learned_bitext(bitext_source, bitext_target))
        found.save(out, min_probability=least)
        before, after = aligner.encoder.models, found.encoder.models
        counts = after.words.cooccurrences
        report(
            {
                "model": str(out),
                "megabytes": out.stat().st_size / 1e6,
                "bitext_pairs": after.n_pairs,
                "new_pairs": after.n_pairs - before.n_pairs,
                "source_words": len(counts.source),
                "target_words": len(counts.target),
                "new_source_words": len(counts.source) - len(before.words.cooccurrences.source),
                "new_target_words": len(counts.target) - len(before.words.cooccurrences.target),
                "seconds": time.perf_counter() - began,
            },
            as_json=as_json,
        )

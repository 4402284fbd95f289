"""What commands that build datasets, and training on datasets, have in common."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from maxmargin import _threads
from maxmargin._terminal import report
from maxmargin.datasets import Recipe, ShardedDataset
from maxmargin.encoders.base import Encoder

Own = TypeVar("Own", bound=Encoder)


def require_kind(dataset: ShardedDataset, kind: type[Own], what: str) -> Own:
    """Return the encoder of a dataset; ValueError unless it is of a kind, whose examples are called ``what``."""
    encoder = dataset.encoder
    if not isinstance(encoder, kind):
        raise ValueError(f"{dataset.folder} holds examples of kind {encoder.kind!r}; give a dataset of {what}")
    return encoder


def build(
    out: Path,
    recipe: Encoder | Recipe,
    source: Any,
    *,
    called: str,
    began: float,
    jobs: int | None,
    overwrite: bool,
    resume: bool,
    as_json: bool,
    shown: Callable[[ShardedDataset], dict[str, Any]] | None = None,
    **options: Any,
) -> None:
    """Build the dataset of a command and print what was built.

    Args:
        out: the folder.
        recipe: how examples are made.
        source: where they come from.
        called: what they are called.
        began: when the command began.
        jobs: threads.
        overwrite, resume, options: as :meth:`ShardedDataset.build` takes them.
        as_json: whether to print JSON.
        shown: what to print of a dataset; None for the numbers of its parts and weights.
    """
    with _threads.threads(jobs):
        dataset = ShardedDataset.build(out, recipe, source, overwrite=overwrite, resume=resume, **options)
    sizes = {"parts": dataset.n_parts, "weights": dataset.n_weights} if shown is None else shown(dataset)
    found = {"folder": str(out), called: len(dataset), **sizes, "shards": len(dataset.shards)}
    seconds = time.perf_counter() - began
    report({**found, "megabytes": dataset.nbytes / 1e6, "seconds": seconds}, as_json=as_json)

"""Metrics of files of hypotheses, one sentence a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maxmargin.structures.base import FloatArray
from maxmargin.tasks.common.text import AnyPath, read_lines
from maxmargin.tasks.reranking.io.inputs import check_lines, read_references
from maxmargin.tasks.reranking.metrics.base import Metric


@dataclass(frozen=True, eq=False)
class Evaluated:
    """Systems on the same sentences.

    Attributes:
        metrics: the metrics.
        systems: for each system and metric the statistics of each sentence, shape ``(sentences, k)``.
        sentences: number of sentences.
        n_references: number of references of each sentence.
    """

    metrics: tuple[Metric, ...]
    systems: tuple[tuple[FloatArray, ...], ...]
    sentences: int
    n_references: int


def evaluate_files(
    hypotheses: Sequence[AnyPath],
    references: Sequence[AnyPath],
    metrics: Sequence[Metric],
    *,
    encoding: str | None = None,
) -> Evaluated:
    """Return the statistics of files of hypotheses.

    Args:
        hypotheses: for each system a file with one hypothesis a line.
        references: files with one reference a line.
        metrics: the metrics.
        encoding: of all files; None takes UTF-8 alone.
    """
    gold = read_references(references, encoding)
    texts = [read_lines(path, encoding) for path in hypotheses]
    for path, lines in zip(hypotheses, texts, strict=True):
        check_lines(path, len(lines), references[0], len(gold))
    owner = np.arange(len(gold))
    systems = tuple(tuple(metric.statistics(some, gold, owner) for metric in metrics) for some in texts)
    return Evaluated(tuple(metrics), systems, len(gold), len(references))

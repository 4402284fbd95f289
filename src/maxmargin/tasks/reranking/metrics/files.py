"""Metrics of files of hypotheses, one sentence a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maxmargin.structures.base import FloatArray
from maxmargin.tasks.common.files.text import AnyPath, FileError, count_of, name_of
from maxmargin.tasks.reranking.io.inputs import read_lines, read_references
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
    encoding: str = "utf-8",
) -> Evaluated:
    """Return the statistics of files of hypotheses.

    Args:
        hypotheses: for each system a file with one hypothesis a line.
        references: files with one reference a line.
        metrics: the metrics.
        encoding: of all files.
    """
    gold = read_references(references, encoding)
    texts = [read_lines(path, encoding) for path in hypotheses]
    for path, lines in zip(hypotheses, texts, strict=True):
        if len(lines) != len(gold):
            counts = f"{name_of(path)} has {count_of(len(lines), 'line')} and {name_of(references[0])} has {len(gold)}"
            raise FileError(f"{counts}; give files with one line per sentence, empty ones too")
    owner = np.arange(len(gold))
    systems = tuple(tuple(metric.statistics(some, gold, owner) for metric in metrics) for some in texts)
    return Evaluated(tuple(metrics), systems, len(gold), len(references))

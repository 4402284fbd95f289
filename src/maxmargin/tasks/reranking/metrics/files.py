"""Metrics of files of hypotheses, one sentence a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maxmargin.structures.base import FloatArray
from maxmargin.tasks.common.text import AnyPath, FileError, count_of, name_of, read_lines
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


def read_references(paths: Sequence[AnyPath], encoding: str | None = None) -> list[tuple[str, ...]]:
    """Return the references of each sentence, one from each file.

    Args:
        paths: files with one reference a line, at least one; all have the same number of lines.
        encoding: of the files; None takes UTF-8 alone.
    """
    if not paths:
        raise ValueError("no references; give at least one file")
    files = [read_lines(path, encoding) for path in paths]
    for path, lines in zip(paths[1:], files[1:], strict=True):
        check_lines(paths[0], len(files[0]), path, len(lines))
    return list(zip(*files, strict=True))


def check_lines(one: AnyPath, lines: int, other: AnyPath, other_lines: int) -> None:
    """Raise FileError if two files do not have the same number of lines."""
    if lines != other_lines:
        counts = f"{name_of(one)} has {count_of(lines, 'line')} and {name_of(other)} has {other_lines}"
        raise FileError(f"{counts}; give files with one line per sentence, empty ones too")


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
    if not gold:
        raise FileError(f"{name_of(references[0])}: no lines, so there is nothing to evaluate; give a file with some")
    owner = np.arange(len(gold))
    systems = tuple(tuple(metric.statistics(some, gold, owner) for metric in metrics) for some in texts)
    return Evaluated(tuple(metrics), systems, len(gold), len(references))

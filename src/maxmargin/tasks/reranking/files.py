"""Rerankers from files and to files: what the commands do, for Python users too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Self

from maxmargin.tasks.common.files.text import AnyPath, FileError, name_of
from maxmargin.tasks.reranking.io.blocks import NBestBlocks
from maxmargin.tasks.reranking.io.features import feature_name
from maxmargin.tasks.reranking.io.files import read_nbest
from maxmargin.tasks.reranking.io.lattices import Lattices, read_lattices
from maxmargin.tasks.reranking.io.lists import NBestLists
from maxmargin.tasks.reranking.io.write import write_nbest, write_texts
from maxmargin.tasks.reranking.metrics.base import Metric
from maxmargin.tasks.reranking.metrics.gains import Gains
from maxmargin.tasks.reranking.metrics.names import METRICS, metric_named, second_metrics
from maxmargin.tasks.reranking.model import RerankerModel
from maxmargin.tasks.reranking.sharding import ListSource
from maxmargin.tasks.reranking.training import Judged


@dataclass(frozen=True)
class Reading:
    """How files of lists are read; a model keeps what predictions need again.

    Attributes:
        format: of lists or lattices; None to recognize it.
        list_size: lines of a list, where the file does not tell.
        encoding: of all text files.
        usual_size: lines of a list of the plain layout in training, where nothing else tells it in prediction.
    """

    format: str | None = None
    list_size: int | None = None
    encoding: str | None = None
    usual_size: int | None = None

    def or_else(self, kept: Any) -> Self:
        """Return these settings, and where they are not given those that a model has kept."""
        before = kept if isinstance(kept, dict) else {}
        known = {name: before.get(name) if own is None else own for name, own in vars(self).items()}
        return replace(self, **known)

    def read(self, nbest: AnyPath, **files: Any) -> NBestLists:
        """Read lists with their features and references; arguments as for :func:`read_nbest`."""
        return read_nbest(
            nbest,
            format=self.format,
            list_size=self.list_size,
            usual_size=self.usual_size,
            encoding=self.encoding or "utf-8",
            **files,
        )

    def read_lattices(self, paths: Sequence[AnyPath], **files: Any) -> Lattices:
        """Read lattices; arguments as for :func:`~maxmargin.tasks.reranking.io.lattices.read_lattices`."""
        return read_lattices(paths, format=self.format, encoding=self.encoding or "utf-8", **files)


def read_judged(
    reading: Reading,
    nbest: AnyPath,
    *,
    metric: str = "bleu",
    features: Sequence[AnyPath] = (),
    references: Sequence[AnyPath] = (),
    sources: AnyPath | None = None,
    segments: AnyPath | None = None,
) -> Judged:
    """Read lists and judge their hypotheses.

    Args:
        reading: how to read them.
        nbest: the file of hypotheses.
        metric: one of :data:`~maxmargin.tasks.reranking.metrics.names.METRICS`, or a file with a gain, larger is
            better, for each hypothesis.
        features: files of more features.
        references: files of references, unless the lists have their own; not for gains.
        sources: file of the inputs.
        segments: file of the phrases of hypotheses.
    """
    of_file = _of_file(metric)
    more = [*features, metric] if of_file else list(features)
    lists = reading.read(nbest, features=more, references=list(references), sources=sources, segments=segments)
    return _judged(metric, *_without_gains(metric, lists), nbest)


def judged_lists(metric: str, blocks: NBestBlocks) -> tuple[ListSource, Callable[[NBestLists, Any], Judged]]:
    """Return a source of lists, with their gains if the metric is a file of these, and what judges its blocks."""
    if _of_file(metric):
        blocks = replace(blocks, features=(*blocks.features, metric))
    source = ListSource(blocks, lambda lists: _without_gains(metric, lists))
    return source, lambda lists, gains: _judged(metric, lists, gains, blocks.path)


def _of_file(metric: str) -> bool:
    """Whether a metric is a file of gains."""
    of_file = metric.lower() not in METRICS
    if of_file and not Path(metric).exists():
        raise ValueError(f"--metric {metric}: neither a file nor one of {', '.join(METRICS)}; give one of these")
    return of_file


def _without_gains(metric: str, lists: NBestLists) -> tuple[NBestLists, Gains | None]:
    """Return lists without the gains that are their last feature if the metric is a file, and these."""
    if not _of_file(metric):
        return lists, None
    if lists.names[-1] != feature_name(metric):
        raise FileError(f"{name_of(metric)}: several numbers in a line; give one gain for each hypothesis")
    gains = Gains(lists.values[:, -1])
    return replace(lists, names=lists.names[:-1], values=lists.values[:, :-1].copy()), gains


def _judged(metric: str, lists: NBestLists, gains: Gains | None, nbest: AnyPath) -> Judged:
    if gains is not None:
        return Judged.of(lists, [()] * len(lists), (gains,))
    if lists.references is None:
        raise FileError(f"{name_of(nbest)} has no references; give --references, or a file of gains as --metric")
    tuned = metric_named(metric)
    return Judged.of(lists, lists.references, (tuned, *second_metrics(tuned)))


def read_judged_lattices(
    paths: Sequence[AnyPath], reading: Reading, *, metric: str = "bleu", references: Sequence[AnyPath] = ()
) -> tuple[Lattices, tuple[Metric, ...]]:
    """Read lattices with references; return them, the metric to tune, and those that are shown beside it."""
    if metric.lower() not in METRICS:
        raise ValueError(f"--metric {metric}: texts of lattices are judged by one of {', '.join(METRICS)}; give one")
    found = reading.read_lattices(paths, references=list(references))
    if found.references is None:
        raise FileError(f"{name_of(paths[0])} has no references; give --references")
    tuned = metric_named(metric)
    return found, (tuned, *second_metrics(tuned))


def best_hypotheses(model: RerankerModel, inputs: NBestLists | Lattices, k: int = 1) -> NBestLists:
    """Return the ``k`` best different hypotheses of each list or lattice, best first, with their scores as totals."""
    if isinstance(inputs, Lattices):
        return model.best_of_lattices(inputs, k)
    return model.best_lists(inputs, k)


def write_best(best: NBestLists, out: AnyPath | BinaryIO, *, as_lists: bool = False, scores: bool = False) -> None:
    """Write the best hypotheses.

    Args:
        best: what :func:`best_hypotheses` returned.
        out: a file, ``-`` for standard output, or a binary stream.
        as_lists: write n-best lists in the format of Moses; otherwise the first of each list, a text a line.
        scores: with a text a line, write the score behind it after a tab.
    """
    if as_lists:
        write_nbest(best, out)
        return
    assert best.totals is not None
    first = best.offsets[:-1].tolist()
    write_texts([f"{best.texts[at]}\t{float(best.totals[at])!r}" if scores else best.texts[at] for at in first], out)

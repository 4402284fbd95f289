"""Rerankers from files and to files: what the commands do, for Python users too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Self

from maxmargin.tasks.common.text import AnyPath, FileError, name_of, open_output
from maxmargin.tasks.reranking.io.files import read_nbest
from maxmargin.tasks.reranking.io.lists import NBestLists
from maxmargin.tasks.reranking.metrics.gains import Gains
from maxmargin.tasks.reranking.metrics.names import METRICS, metric_named, second_metrics
from maxmargin.tasks.reranking.model import RerankerModel
from maxmargin.tasks.reranking.training import Judged


@dataclass(frozen=True)
class Reading:
    """How files of lists are read; a model keeps what predictions need again.

    Attributes:
        format: one of :data:`~maxmargin.tasks.reranking.io.files.FORMATS`; None to recognize it.
        list_size: lines of a list, where the file does not tell.
        encoding: of all text files.
    """

    format: str | None = None
    list_size: int | None = None
    encoding: str | None = None

    def or_else(self, kept: Any) -> Self:
        """Return these settings, and where they are not given those that a model has kept."""
        before = kept if isinstance(kept, dict) else {}
        known = {name: before.get(name) if own is None else own for name, own in vars(self).items()}
        return replace(self, **known)

    def read(self, nbest: AnyPath, **files: Any) -> NBestLists:
        """Read lists with their features and references; arguments as for :func:`read_nbest`."""
        given = {"format": self.format, "list_size": self.list_size, "encoding": self.encoding or "utf-8"}
        return read_nbest(nbest, **given, **files)  # type: ignore[arg-type]


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
    of_file = metric.lower() not in METRICS
    if of_file and not Path(metric).exists():
        raise ValueError(f"--metric {metric}: neither a file nor one of {', '.join(METRICS)}; give one of these")
    more = [*features, metric] if of_file else list(features)
    lists = reading.read(nbest, features=more, references=list(references), sources=sources, segments=segments)
    if of_file:
        if len(lists.names) and "," in lists.names[-1] and lists.names[-1].rpartition(",")[0] in Path(metric).name:
            raise FileError(f"{name_of(metric)}: several numbers in a line; give one gain for each hypothesis")
        gains = Gains(lists.values[:, -1])
        kept = replace(lists, names=lists.names[:-1], values=lists.values[:, :-1].copy())
        return Judged.of(kept, [()] * len(kept), (gains,))
    if lists.references is None:
        raise FileError(f"{name_of(nbest)} has no references; give --references, or a file of gains as --metric")
    tuned = metric_named(metric)
    return Judged.of(lists, lists.references, (tuned, *second_metrics(tuned)))


def write_best(
    model: RerankerModel, lists: NBestLists, out: AnyPath | BinaryIO, *, k: int | None = None, scores: bool = False
) -> None:
    """Write the best hypotheses of each list.

    Args:
        model: the reranker.
        lists: the lists.
        out: a file, ``-`` for standard output, or a binary stream.
        k: write so many different hypotheses of each list as ``id ||| text ||| score``, best first; None for one text
            a line.
        scores: with one text a line, write the score behind it after a tab.
    """
    if k is None:
        best = [found[0] for found in model.k_best_texts(lists, 1)]
        lines = [f"{text}\t{score!r}\n" if scores else f"{text}\n" for text, score in best]
    else:
        ranked = zip(lists.ids, model.k_best_texts(lists, k), strict=True)
        lines = [f"{name} ||| {text} ||| {score!r}\n" for name, found in ranked for text, score in found]
    with open_output(out) as stream:
        stream.writelines(line.encode("utf-8", "surrogatepass") for line in lines)

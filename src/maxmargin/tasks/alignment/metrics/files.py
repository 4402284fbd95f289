"""Metrics and symmetrization of files of links."""

from __future__ import annotations

from collections.abc import Sequence

from maxmargin.structures.base import IntArray
from maxmargin.tasks.alignment.io.bitext import Bitext
from maxmargin.tasks.alignment.io.link_files import LinkFile, open_links
from maxmargin.tasks.alignment.io.sentences import warn_of_bad
from maxmargin.tasks.alignment.metrics.scores import Scores, evaluate
from maxmargin.tasks.alignment.metrics.symmetrization import symmetrize
from maxmargin.tasks.common.files.text import AnyPath, FileError, count_of, name_of


def evaluate_files(
    gold: AnyPath,
    predicted: Sequence[AnyPath],
    *,
    bitext: Bitext | None = None,
    format: str | None = None,
    gold_format: str | None = None,
    first: int | None = None,
    gold_first: int | None = None,
    skip_bad: bool = False,
) -> list[Scores]:
    """The scores of files of predicted links.

    Args:
        gold: the links of annotators.
        predicted: files of predicted links.
        bitext: the sentences; links must lie inside them.
        format: the format of the predicted links; None recognizes it.
        gold_format: the format of the gold; None recognizes it.
        first: the number of the first word in the predicted links, 0 or 1; None for that of the format.
        gold_first: the same of the gold.
        skip_bad: whether pairs with links outside the sentences of ``bitext``, in any file, are left out, with a
            warning, instead of refused.
    """
    reference = open_links(gold, format=gold_format, first=gold_first)
    systems = [open_links(path, format=format, first=first) for path in predicted]
    bad: set[int] = set()
    if skip_bad:
        if bitext is None:
            raise ValueError("--skip-bad needs the sentences; give --source, and --target")
        reference, *systems = (_inside(file, bitext, bad) for file in (reference, *systems))
    count = _count([reference, *systems], bitext)
    if bitext is None:
        _check_lines(reference, systems, count)
    references = reference.references(bitext=bitext, sentences=count)
    links = [system.predictions(bitext=bitext, sentences=count) for system in systems]
    if not count:
        raise FileError(f"{name_of(gold)}: no sentence pairs, so there is nothing to evaluate; give files with some")
    kept = [at for at in range(count) if at not in bad]
    if not kept:
        raise FileError(f"{name_of(gold)}: every pair has links outside the sentences, so there is nothing to evaluate")
    return [evaluate([references[at] for at in kept], [one[at] for at in kept]) for one in links]


def _inside(file: LinkFile, bitext: Bitext, bad: set[int]) -> LinkFile:
    """The links inside the sentences; the pairs of others are added to ``bad``."""
    found, numbers = file.inside(bitext)
    if found is not file:
        warn_of_bad(name_of(file.path), len(file.table.links) - len(found.table.links), numbers.tolist())
        bad.update(numbers.tolist())
    return found


def symmetrize_files(
    forward: AnyPath,
    backward: AnyPath,
    method: str = "grow-diag-final-and",
    *,
    reverse: bool = False,
    bitext: Bitext | None = None,
    format: str | None = None,
    first: int | None = None,
) -> list[IntArray]:
    """The symmetrized links of two files; see :mod:`~maxmargin.tasks.alignment.metrics.symmetrization`.

    Args:
        forward: links of one direction.
        backward: links of the other direction.
        method: one of :data:`~maxmargin.tasks.alignment.metrics.symmetrization.METHODS`.
        reverse: whether the links of ``backward`` are (target, source).
        bitext: the sentences; links must lie inside them.
        format: the format of both files; None recognizes it.
        first: the number of the first word in both, 0 or 1; None for that of the format.
    """
    files = [open_links(path, format=format, first=first) for path in (forward, backward)]
    if reverse:
        files[1] = files[1].reversed()
    count = _count(files, bitext)
    one, two = (file.predictions(bitext=bitext, sentences=count) for file in files)
    return symmetrize(one, two, method)


def _count(files: Sequence[LinkFile], bitext: Bitext | None) -> int:
    """The number of sentence pairs: all files but NAACL ones say it, and must agree."""
    if bitext is not None:
        return len(bitext)
    counted = [file for file in files if file.counted]
    for file in counted[1:]:
        if file.sentences != counted[0].sentences:
            raise FileError(
                f"{name_of(counted[0].path)} has {counted[0].sentences} lines and {name_of(file.path)} has "
                f"{file.sentences}; both need one line per sentence pair"
            )
    if counted:
        return counted[0].sentences
    for file in files:
        file.check_numbers()
    return max(file.sentences for file in files)


def _check_lines(gold: LinkFile, systems: Sequence[LinkFile], count: int) -> None:
    """Refuse predictions with too few lines for a gold in NAACL format, which does not say how many it needs."""
    short = next((system for system in systems if system.counted), None)
    first, last = gold.numbered
    # As many lines as the gold has sentences, but other numbers: then the numbers of the gold are wrong.
    if short is None or gold.counted or last <= count or (first > count and last - first < count):
        return
    raise FileError(
        f"{name_of(short.path)} has links of {count_of(count, 'sentence pair')} and {name_of(gold.path)} has "
        f"sentences {first} to {last}; predicted links need one line per sentence pair of the gold, an empty one for "
        "a pair without links"
    )

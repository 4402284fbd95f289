"""``predict`` and ``score``: text of any size in blocks, which this process or workers align or score."""

from __future__ import annotations

import os
import stat
import sys
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from io import StringIO
from itertools import chain, islice, repeat
from pathlib import Path
from typing import ClassVar

from maxmargin.structures.base import IntArray
from maxmargin.tasks.alignment.cli.options import extra_files
from maxmargin.tasks.alignment.confidence import UNCALIBRATED
from maxmargin.tasks.alignment.io.bitext import bitext_blocks
from maxmargin.tasks.alignment.io.link_files import write_links
from maxmargin.tasks.alignment.io.link_formats import Format
from maxmargin.tasks.alignment.io.links import Prediction
from maxmargin.tasks.alignment.io.sentences import SentencePair, alignable, read_pairs, warn_of_long
from maxmargin.tasks.alignment.metrics.symmetrization import Method
from maxmargin.tasks.alignment.model import AlignerModel
from maxmargin.tasks.alignment.translation.known import UnknownWordsWarning
from maxmargin.tasks.common.cli.commands import PART_WRITTEN, errors_as_lines, once, writable
from maxmargin.tasks.common.files.blocks import has_come
from maxmargin.tasks.common.files.resumable import Run, kept, open_blocks
from maxmargin.tasks.common.files.text import STANDARD_INPUT
from maxmargin.tasks.common.progress import Stages
from maxmargin.tasks.common.workers import Workers

BLOCK = 10_000
"""Sentence pairs that are aligned at a time, unless that is given."""


@dataclass(frozen=True)
class BlockWork(ABC):
    """What a command makes of the blocks of a text; its attributes are options of the command."""

    stage: ClassVar[str]
    """What is done, for the lines of progress."""

    @abstractmethod
    def of_block(self, model: AlignerModel, block: tuple[int, list[SentencePair]]) -> bytes:
        """Return what is written of a block, whose first pair has the given number."""

    def begin(self, model: AlignerModel) -> None:  # noqa: B027 (there may be nothing to say)
        """Warn of what the model cannot do well; called once, before the first block."""

    def opened(self, path: Path, n_jobs: int | None) -> Callable[[tuple[int, list[SentencePair]]], bytes]:
        """Return :meth:`of_block` for the model of a file: what each worker does."""
        return partial(self.of_block, AlignerModel.load(path, n_jobs=n_jobs))


@dataclass(frozen=True)
class Aligning(BlockWork):
    """How sentence pairs are aligned, and their links written."""

    stage = "aligning"

    form: Format = Format.pharaoh
    method: Method | None = None
    confidence: bool = False
    threshold: float | None = None
    adapt: bool = True

    def __post_init__(self) -> None:
        if self.method is not None and (self.confidence or self.threshold is not None):
            raise ValueError(f"--method {self.method.value} has no confidences; omit --confidence and --threshold")

    def begin(self, model: AlignerModel) -> None:
        """Warn of confidences that no annotated pairs of these languages vouch for."""
        if (self.confidence or self.threshold is not None) and not model.calibrated:
            warnings.warn(
                f"confidences are {model.metadata.get('confidences', UNCALIBRATED)}: take them as a ranking, and check "
                "some links, or give annotated pairs to align train",
                UserWarning,
                stacklevel=2,
            )

    def of_block(self, model: AlignerModel, block: tuple[int, list[SentencePair]]) -> bytes:
        """Return what is written of pairs, of which the first has the given number."""
        first, pairs = block
        words = [(pair.source, pair.target) for pair in pairs] if self.form is Format.a3 else None
        warn_of_long(pairs, first=first)
        pairs = alignable(pairs)
        found: Sequence[IntArray | Prediction]
        if self.method is not None:
            found = model.align_hmm(pairs, method=self.method.value, adapt=self.adapt)
        elif self.confidence or self.threshold is not None:
            links = model.align(pairs, threshold=self.threshold, adapt=self.adapt)
            found = links if self.confidence else [one.links for one in links]
        else:
            found = model.predict(pairs, adapt=self.adapt)
        stream = StringIO()
        write_links(stream, found, self.form.value, first=first, sentences=words)
        return stream.getvalue().encode()


@dataclass(frozen=True)
class Scoring(BlockWork):
    """How sentence pairs are scored."""

    stage = "scoring"

    adapt: bool = False

    def of_block(self, model: AlignerModel, block: tuple[int, list[SentencePair]]) -> bytes:
        """Return the lines of the scores of pairs."""
        return "".join(f"{value:.4f}\n" for value in model.score_pairs(block[1], adapt=self.adapt).tolist()).encode()


def write_blocks(
    model: Path,
    work: BlockWork,
    source: str,
    target: str | None,
    extra: Sequence[str] | None,
    out: str,
    *,
    block: int | None = None,
    as_they_come: bool = False,
    workers: Workers,
    resume: bool,
) -> None:
    """Write what ``work`` makes of a text, block by block, so that memory does not grow with the text.

    Args:
        model: the file of the model.
        work: makes lines of the pairs of a block.
        source: source sentences, or lines of both languages.
        target: target sentences.
        extra: extra columns, as ``NAME=FILE``.
        out: a file, or ``-``.
        block: number of pairs of a block; None for :data:`BLOCK`, fewer at the beginning of a pipe.
        as_they_come: whether blocks may be any pairs that have come, unless ``block`` is given.
        workers: where blocks are worked on.
        resume: whether to go on where the same command was interrupted.
    """
    with errors_as_lines():
        extras = extra_files(extra)
        files = [source, target, *extras.values()]
        if out != STANDARD_INPUT:
            writable(Path(out), keep=[str(model), *files], streams=True)
        once(files)
        aligner = AlignerModel.load(model, n_jobs=workers.jobs)
        work.begin(aligner)
        blocks = _numbered(_blocks_of(source, target, extras, _sizes(block, source, target, as_they_come)))
        first = next(blocks, None)  # before the output is opened, as the files may not be readable
    with errors_as_lines(PART_WRITTEN if out == STANDARD_INPUT else lambda written, _: kept(out, written)):
        make = (
            partial(partial, work.of_block, aligner) if workers.here else partial(work.opened, model, workers.threads)
        )
        options = {**vars(work), "block": block, "extra": list(extras)}
        run = Run(resume, model, [one for one in files if one], options)
        texts, ready = chain([] if first is None else [first], blocks), partial(has_come, [source, target])
        taken: deque[int] = deque()  # numbers of pairs of the blocks that have been read and not yet written
        once_only = UnknownWordsOnce()
        with (
            open_blocks(out, run) as stream,
            closing(workers.map(make, _counted(islice(texts, stream.done, None), taken), ready)) as found,
            Stages(out != STANDARD_INPUT or not sys.stdout.isatty()) as stages,  # a bar would be among the lines
        ):
            stages.begin(work.stage, None)
            while True:
                with once_only.block():
                    data = next(found, None)
                if data is None:
                    return
                stream.write(data)
                stages.advance(taken.popleft())


def _sizes(block: int | None, source: str, target: str | None, as_they_come: bool) -> Iterator[int] | None:
    """The numbers of pairs of the blocks; those of a pipe begin small, so that the first lines are written at once."""
    if block is not None:
        return repeat(block)
    if as_they_come:
        return None
    if all(_is_file(one) for one in (source, target) if one is not None):
        return repeat(BLOCK)
    return chain((2**n for n in range(BLOCK.bit_length() - 1)), repeat(BLOCK))


def _is_file(path: str) -> bool:
    """Whether this is a regular file, or standard input is one."""
    try:
        found = os.fstat(0) if path == STANDARD_INPUT else os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode)


def _blocks_of(
    source: str, target: str | None, extras: Mapping[str, str], sizes: Iterator[int] | None
) -> Iterator[list[SentencePair]]:
    """Read sentence pairs block by block, so that memory does not grow with the text; files of links are read whole.

    Args:
        source: source sentences, or lines of both languages.
        target: target sentences.
        extras: names and files of extra columns.
        sizes: the number of pairs of each block, without end; None takes pairs as they come.
    """
    if extras:
        pairs = iter(read_pairs(source, target, extra=extras))
        return iter(lambda: list(islice(pairs, BLOCK if sizes is None else next(sizes))), [])
    return ([SentencePair(*pair) for pair in part] for part in bitext_blocks(source, target, sizes))


def _numbered(blocks: Iterable[list[SentencePair]]) -> Iterator[tuple[int, list[SentencePair]]]:
    """Yield the number of the first pair of each block, from 1, and the block."""
    first = 1
    for some in blocks:
        yield first, some
        first += len(some)


def _counted(
    blocks: Iterable[tuple[int, list[SentencePair]]], taken: deque[int]
) -> Iterator[tuple[int, list[SentencePair]]]:
    """Yield the blocks, and note their numbers of pairs."""
    for block in blocks:
        taken.append(len(block[1]))
        yield block


class UnknownWordsOnce:
    """Surrounds the blocks of a text, and lets only one of them warn of unknown words."""

    def __init__(self) -> None:
        self._said = False

    @contextmanager
    def block(self) -> Iterator[None]:
        """Surround a block."""
        caught: list[warnings.WarningMessage] = []
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                yield
        finally:
            for one in caught:
                unknown = issubclass(one.category, UnknownWordsWarning)
                if not (unknown and self._said):
                    warnings.warn(one.message, one.category, stacklevel=2)
                self._said |= unknown

"""Options that the verbs share, and their values."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from maxmargin._interrupts import defer_interrupts
from maxmargin._terminal import report
from maxmargin.structures.base import IntArray
from maxmargin.tasks.alignment.confidence import UNCALIBRATED
from maxmargin.tasks.alignment.io.bitext import Bitext, bitext_blocks, read_bitext
from maxmargin.tasks.alignment.io.compact import read_compact
from maxmargin.tasks.alignment.io.link_files import write_links
from maxmargin.tasks.alignment.io.link_formats import Format
from maxmargin.tasks.alignment.io.links import Prediction, Reference
from maxmargin.tasks.alignment.io.sentences import SentencePair, alignable, read_pairs, warn_of_long
from maxmargin.tasks.alignment.metrics.symmetrization import Method
from maxmargin.tasks.alignment.model import AlignerModel
from maxmargin.tasks.alignment.translation.known import UnknownWordsWarning
from maxmargin.tasks.common.checkpoints import Checkpoints
from maxmargin.tasks.common.commands import saving, written_line
from maxmargin.tasks.common.resumable import Run, open_blocks
from maxmargin.tasks.common.text import FileError
from maxmargin.tasks.common.workers import Workers

if TYPE_CHECKING:
    from maxmargin.tasks.alignment.training import AlignerSettings
    from maxmargin.tasks.alignment.translation.sharded_bitext import NumberedPairs

BLOCK = 10_000
"""Sentence pairs that are aligned at a time, unless that is given."""

RECOGNIZED = "recognized, except talp"
"""The default of the format of a file, in the help."""

Source = Annotated[str, typer.Option("--source", help="Source sentences, or lines 'source ||| target' (or TAB).")]
OptionalSource = Annotated[
    str | None,
    typer.Option("--source", help="Source sentences, one per line, or 'source ||| target' (or TAB) without --target."),
]
Target = Annotated[str | None, typer.Option("--target", help="Target sentences, one per line.")]
BitextTarget = Annotated[str | None, typer.Option("--bitext-target", help="Target sentences of the bitext.")]
# One meaning in all verbs: --from and --first are of links that are read, except gold, --to of those that are written.
From = Annotated[
    Format | None, typer.Option("--from", help="Format of the links that are read.", show_default=RECOGNIZED)
]
GoldFrom = Annotated[
    Format | None, typer.Option("--gold-from", help="Format of the gold links.", show_default=RECOGNIZED)
]
Out = Annotated[str, typer.Option("--out", help="File to write, compressed if it ends in .gz; - for standard output.")]
To = Annotated[Format, typer.Option("--to", help="Format of the links that are written.")]
First = Annotated[
    int | None,
    typer.Option("--first", min=0, max=1, help="Number of the first word in links.", show_default="of the format"),
]
GoldFirst = Annotated[
    int | None,
    typer.Option(
        "--gold-first", min=0, max=1, help="Number of the first word in gold links.", show_default="of the format"
    ),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave pairs with links outside their sentences out instead of refusing.")
]
Extra = Annotated[
    list[str] | None,
    typer.Option("--extra", metavar="NAME=FILE", help="Links of another aligner as a feature; may be repeated."),
]
Fertility = Annotated[int, typer.Option("--fertility", min=1, max=10, help="Maximum number of links of a word.")]
Reuse = Annotated[
    Path | None,
    typer.Option("--reuse", metavar="MODEL", help="Use the translation models of this model instead of learning some."),
]
StartFrom = Annotated[
    str | None,
    typer.Option(
        "--start",
        metavar="MODEL",
        help="Start from the weights of this model, of any language pair; 'none' for zeros.",
        show_default="weights of the package",
    ),
]
MinProbability = Annotated[
    float,
    typer.Option(
        "--min-probability",
        min=0.0,
        max=1.0,
        help="Leave word pairs of smaller probability in all translation models out of the model file.",
    ),
]
MaxEntries = Annotated[
    int | None,
    typer.Option(
        "--max-entries",
        min=1,
        help="The most word pairs that translation models of a folder learn; the least associated are dropped.",
        show_default="what fits into half of the memory",
    ),
]
Confidence = Annotated[bool, typer.Option("--confidence", help="Write the confidence of each link.")]
Threshold = Annotated[
    float | None,
    typer.Option("--threshold", min=0.0, max=1.0, help="Write links with at least this confidence."),
]
Symmetrized = Annotated[
    Method | None,
    typer.Option(
        "--method",
        help="Write the links of the hidden Markov models of words, symmetrized by this method, as a baseline.",
        show_default="the learned matching",
    ),
]


def optional_bitext(source: str | None, target: str | None) -> Bitext | None:
    """The sentences if they are given."""
    if source is None and target is not None:
        raise FileError("--target needs --source; give both, or neither")
    return None if source is None else read_bitext(source, target)


def learned_bitext(source: str, target: str | None) -> NumberedPairs:
    """The sentence pairs to learn from: those of files, in memory, or those of a folder that ``align shard`` wrote."""
    from maxmargin.tasks.alignment.translation.sharded_bitext import ShardedBitext  # here, as few verbs need it

    if source != "-" and Path(source).is_dir():
        if target is not None:
            raise FileError(f"--bitext-source {source} is a folder, which has both sides; omit --bitext-target")
        return ShardedBitext(source)
    return read_compact(source, target)


def blocks_of(
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


def extra_files(given: Sequence[str] | None, option: str = "--extra") -> dict[str, str]:
    """Names and files of ``NAME=FILE``."""
    found: dict[str, str] = {}
    for one in given or ():
        name, _, path = one.partition("=")
        if not name or not path:
            raise ValueError(f"{option} {one}: write NAME=FILE")
        if name in found:
            raise ValueError(f"{option} {one}: the name {name} is given twice")
        found[name] = path
    return found


def settings_of(
    *, fertility: int, tol: float, seed: int, jobs: int, reuse: Path | None, start: str | None, **given: Any
) -> AlignerSettings:
    """The settings of a command that trains; None among ``given`` stands for the default."""
    from maxmargin.tasks.alignment.training import AlignerSettings  # here, as the other verbs do not need training

    return AlignerSettings(
        fertility=fertility,
        tol=tol,
        random_state=seed,
        n_jobs=jobs,
        models=None if reuse is None else AlignerModel.load(reuse).encoder.models,
        start="packaged" if start is None else None if start == "none" else AlignerModel.load(Path(start)),
        verbose=True,
        **{name: value for name, value in given.items() if value is not None},
    )


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


def left_behind(written: Sequence[Path], best: bool) -> str:
    """What Ctrl-C leaves of a training: nothing, translation models, the best weights so far, or the whole model."""
    if not written:
        return "nothing was written"
    bare = not AlignerModel.load(written[0]).trained
    rest = f" with translation models, but without weights: --reuse {written[0]} uses them again" if bare else ""
    return written_line(written[0], best) + rest


def tell_of_confidences(model: AlignerModel, confidence: bool, threshold: float | None) -> None:
    """Warn if confidences are asked for that no annotated pairs of these languages vouch for."""
    if (confidence or threshold is not None) and not model.calibrated:
        warnings.warn(
            f"confidences are {model.metadata.get('confidences', UNCALIBRATED)}: take them as a ranking, and check "
            "some links, or give annotated pairs to align train",
            UserWarning,
            stacklevel=2,
        )


def left_with(checkpoints: Checkpoints) -> Callable[[Sequence[Path], bool], str]:
    """What Ctrl-C leaves of a training that saves checkpoints."""

    def left(written: Sequence[Path], best: bool) -> str:
        model = [one for one in written if one == checkpoints.out]  # not checkpoints
        return "; ".join(filter(None, (left_behind(model, best), checkpoints.kept())))

    return left


def save(
    model: AlignerModel, checkpoints: Checkpoints, began: float, *, least: float, annotated: int, as_json: bool
) -> None:
    """Write a model file, with word pairs of at least a probability, remove its checkpoints, and report on it."""
    out = checkpoints.out
    if not model.trained:  # interrupted before the first weights: translation models alone replace no other model
        if not out.exists():
            model.save(out, min_probability=least)
        raise KeyboardInterrupt
    with saving(model) as complete, defer_interrupts():
        model.save(out, min_probability=least)
        if complete:
            checkpoints.remove()
    metadata = {
        "model": str(out),
        "megabytes": out.stat().st_size / 1e6,
        "bitext_pairs": model.encoder.models.n_pairs,
        "annotated_pairs": annotated,
        "weights": len(model.weights),
        **{key: value for key, value in model.metadata.items() if value is not None},
        "seconds": time.perf_counter() - began,
    }
    report(metadata, as_json=as_json)


def write(
    links: Iterable[IntArray | Prediction | Reference],
    form: Format,
    sentences: Iterable[tuple[Sequence[str], Sequence[str]]] | None = None,
    *,
    first: int = 1,
) -> None:
    """Write links to standard output and flush it, so that a closed pipe raises here, not at the end of the process."""
    write_links(sys.stdout, links, form.value, first=first, sentences=sentences)
    sys.stdout.flush()


@dataclass(frozen=True)
class Aligning:
    """How sentence pairs are aligned, and their links written; its attributes are options of commands."""

    form: Format = Format.pharaoh
    method: Method | None = None
    confidence: bool = False
    threshold: float | None = None
    adapt: bool = True

    def opened(self, path: Path, n_jobs: int | None) -> Callable[[tuple[int, list[SentencePair]]], bytes]:
        """Return :meth:`of_block` for the model of a file: what each worker does."""
        return partial(self.of_block, AlignerModel.load(path, n_jobs=n_jobs))

    def of_block(self, model: AlignerModel, block: tuple[int, list[SentencePair]]) -> bytes:
        """Return what is written of pairs, of which the first has the given number."""
        first, pairs = block
        words = [(pair.source, pair.target) for pair in pairs] if self.form is Format.a3 else None
        warn_of_long(pairs, first=first)
        pairs = alignable(pairs)
        found: Sequence[IntArray | Prediction]
        if self.method is not None:
            if self.confidence or self.threshold is not None:
                raise ValueError(f"--method {self.method.value} has no confidences; omit --confidence and --threshold")
            found = model.align_hmm(pairs, method=self.method.value, adapt=self.adapt)
        elif self.confidence or self.threshold is not None:
            links = model.align(pairs, threshold=self.threshold, adapt=self.adapt)
            found = links if self.confidence else [one.links for one in links]
        else:
            found = model.predict(pairs, adapt=self.adapt)
        stream = StringIO()
        write_links(stream, found, self.form.value, first=first, sentences=words)
        return stream.getvalue().encode()


def write_blocks(
    aligner: AlignerModel,
    work: BlockWork,
    blocks: Iterator[list[SentencePair]],
    out: str,
    *,
    path: Path,
    workers: Workers,
    ready: Callable[[], bool],
    run: Run,
) -> None:
    """Write what ``work`` makes of the blocks of a text, one after the other.

    Args:
        aligner: the model.
        work: makes lines of the pairs of a block.
        blocks: the sentence pairs.
        out: a file, or ``-``.
        path: the file of the model, for workers.
        workers: where blocks are worked on.
        ready: whether the next block can be read without waiting.
        run: what a run that resumes must have in common with this one.
    """
    make = partial(partial, work.of_block, aligner) if workers.here else partial(work.opened, path, workers.threads)
    once_only = UnknownWordsOnce()
    with (
        open_blocks(out, run) as stream,
        closing(workers.map(make, islice(_numbered(blocks), stream.done, None), ready)) as found,
    ):
        while True:
            with once_only.block():
                data = next(found, None)
            if data is None:
                return
            stream.write(data)


def _numbered(blocks: Iterable[list[SentencePair]]) -> Iterator[tuple[int, list[SentencePair]]]:
    """Yield the number of the first pair of each block, from 1, and the block."""
    first = 1
    for some in blocks:
        yield first, some
        first += len(some)


class BlockWork(Protocol):
    """What a command makes of the blocks of a text."""

    def of_block(self, model: AlignerModel, block: tuple[int, list[SentencePair]]) -> bytes:
        """Return what is written of a block, whose first pair has the given number."""

    def opened(self, path: Path, n_jobs: int | None) -> Callable[[tuple[int, list[SentencePair]]], bytes]:
        """Return :meth:`of_block` for the model of a file: what each worker does."""

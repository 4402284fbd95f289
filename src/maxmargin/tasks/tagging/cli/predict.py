"""The command ``predict``: labels, k-best lists, margins or probabilities, written in the format of the input."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from maxmargin._terminal import fail, note
from maxmargin.tasks.common.cli.commands import PART_WRITTEN, errors_as_lines, writable
from maxmargin.tasks.common.cli.options import Jobs, RayAddress, ResumeOutput, WorkerCount
from maxmargin.tasks.common.files.text import STANDARD_INPUT, AnyPath, FileError
from maxmargin.tasks.tagging.cli.options import Columns, Format, Join

if TYPE_CHECKING:
    from maxmargin.structures.base import FloatArray
    from maxmargin.tasks.common.files.resumable import Run
    from maxmargin.tasks.common.tokens.table import Codes
    from maxmargin.tasks.common.workers import Workers
    from maxmargin.tasks.tagging.encoder.extraction import TokenRows
    from maxmargin.tasks.tagging.io.files import TaggedText
    from maxmargin.tasks.tagging.model import TaggerModel

NO_LABEL = ("", "_")
"""Cells of a column of known labels that are not labels."""

_SENTENCE = re.compile(r"sentence ([0-9]+): (.*)", re.DOTALL)


def predict(
    model: Annotated[Path, typer.Argument(help="A model written by tag train.")],
    input: Annotated[str, typer.Argument(help="A file of tokens; - for standard input.")],
    out: Annotated[str, typer.Option("--out", help="File to write, compressed if it ends in .gz.")] = STANDARD_INPUT,
    k_best: Annotated[
        int | None, typer.Option("--k-best", min=1, help="Write this many labelings of each sentence, best first.")
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Write the margin of each label over the best labeling with another one.")
    ] = False,
    probabilities: Annotated[
        bool,
        typer.Option("--probabilities", help="Write the probability of each label, calibrated on --dev or by folds."),
    ] = False,
    known: Annotated[
        str | None,
        typer.Option("--known", metavar="COLUMN", help="Labels that must be taken, unless this column is empty or _."),
    ] = None,
    form: Format = None,
    columns: Columns = None,
    label: Annotated[
        str | None, typer.Option("--label", metavar="NAME", help="The column of labels.", show_default="as in training")
    ] = None,
    join: Join = None,
    workers: WorkerCount = 1,
    ray: RayAddress = None,
    resume: ResumeOutput = False,
    jobs: Jobs = -1,
) -> None:
    """Label the tokens of a file: write the file with one more column, or the equivalent in other formats."""
    if (k_best is not None) + scores + probabilities > 1:
        fail("--k-best, --scores and --probabilities exclude each other; give one of them")
    if out != STANDARD_INPUT:
        writable(Path(out), keep=[str(model), input], streams=True)
    from maxmargin.tasks.common.files.resumable import kept

    with errors_as_lines(PART_WRITTEN if out == STANDARD_INPUT else lambda written, _: kept(out, written)):
        from maxmargin.tasks.common.files.blocks import BLOCK, has_come
        from maxmargin.tasks.common.files.resumable import Run
        from maxmargin.tasks.common.workers import Workers
        from maxmargin.tasks.tagging.model import TaggerModel
        from maxmargin.tasks.tagging.reading import ReadOptions

        tagger = TaggerModel.load(model, n_jobs=jobs)
        reading, labeling = ReadOptions(form, columns, label, join), Labeling(k_best, scores, probabilities, known)
        options = {**vars(reading), **vars(labeling), "block": BLOCK}
        predict_file(
            tagger,
            reading.blocks_for(input, tagger, labeled=None),
            out,
            labeling,
            path=model,
            workers=Workers(workers, jobs, ray),
            ready=partial(has_come, [input]),
            run=Run(resume, model, [input], options),
        )


@dataclass(frozen=True)
class Labeling:
    """What is written of a file of tokens.

    Attributes:
        k_best: write this many labelings of each sentence, best first.
        margins: write the margin of each label.
        probabilities: write the probability of each label.
        known: a column of labels that must be taken, except where it is empty or ``_``.
    """

    k_best: int | None = None
    margins: bool = False
    probabilities: bool = False
    known: str | None = None

    def opened(self, path: Path, n_jobs: int | None) -> Callable[[tuple[TaggedText, Any]], tuple[bytes, bool]]:
        """Return :meth:`of_block` for the model of a file: what each worker does."""
        from maxmargin.tasks.tagging.model import TaggerModel

        return partial(self.of_block, TaggerModel.load(path, n_jobs=n_jobs))

    def of_block(self, model: TaggerModel, block: tuple[TaggedText, Any]) -> tuple[bytes, bool]:
        """Return what is written of a block with its context, and whether the model knows some of its attributes."""
        text, context = block
        stream = BytesIO()
        try:
            rows = model.rows_in_context(context)
            given = None if self.known is None else _known_codes(model, text, self.known)
            self._write(model, text, rows, stream, given)
        except ValueError as error:
            found = _SENTENCE.match(str(error))  # named by the line where the sentence begins
            where = "" if found is None else f"{text.tokens.where(int(text.sentences[int(found[1])]))}: "
            raise FileError(f"{where}{error if found is None else found[2]}") from None
        return stream.getvalue(), len(rows.tokens.columns) > 0

    def _write(
        self, model: TaggerModel, text: TaggedText, rows: TokenRows, stream: BinaryIO, given: Codes | None
    ) -> None:
        from maxmargin.tasks.tagging.io.files import write_k_best, write_tagged

        if self.k_best is not None:
            best = [
                [([str(name) for name in labels], score) for labels, score in some]
                for some in model.ranked(rows, self.k_best, given)
            ]
            write_k_best(text, best, out=stream)
            return
        scores: FloatArray | None = None
        if self.margins:
            codes, scores = model.best_with_margins(rows, given)
        elif self.probabilities:
            codes, scores = model.best_with_probabilities(rows, given)
        else:
            codes = model.best(rows, given)
        write_tagged(text, (codes, [str(name) for name in model.labels]), out=stream, scores=scores)


def predict_file(
    model: TaggerModel,
    texts: Iterable[TaggedText],
    out: AnyPath | BinaryIO,
    labeling: Labeling | None = None,
    *,
    path: Path | None = None,
    workers: Workers | None = None,
    ready: Callable[[], bool] = lambda: True,
    run: Run | None = None,
) -> None:
    """Label the tokens of a file and write it with the labels, block by block.

    Args:
        model: the tagger.
        texts: the blocks of the file.
        out: a binary stream or a file name, as for :func:`~maxmargin.tasks.tagging.io.files.write_tagged`.
        labeling: what is written; None for the best labels.
        path: the file of the model, for workers.
        workers: where blocks are labeled; None for this process.
        ready: whether the next block can be read without waiting.
        run: what a run that resumes must have in common with this one; None if none will.
    """
    from maxmargin.tasks.common.files.resumable import open_blocks
    from maxmargin.tasks.common.workers import Workers
    from maxmargin.tasks.tagging.reading import in_context, tell_of_unknown

    labeling, workers = labeling or Labeling(), workers or Workers()
    if labeling.probabilities and model.temperature is None:
        note("probabilities are not calibrated, the model was trained without --dev or folds")
    blocks = in_context(model, texts)
    first = next(blocks)  # before the output is opened, as the file may not be readable
    work: Callable[[], Callable[[tuple[TaggedText, Any]], tuple[bytes, bool]]]
    if path is None or workers.here:
        work = partial(partial, labeling.of_block, model)
    else:
        work = partial(labeling.opened, path, workers.threads)
    with open_blocks(out, run) as stream:
        known = stream.done > 0
        rest = islice(chain([first], blocks), stream.done, None)
        with closing(workers.map(work, rest, ready)) as found:
            for data, knows in found:
                stream.write(data)
                known |= knows
    if not known:
        tell_of_unknown(first[0].source)


def _known_codes(model: TaggerModel, text: TaggedText, column: str) -> Codes:
    """Return the labels of a column as codes of the model, -1 for none."""
    import numpy as np

    codes, names = text.codes_of(column)
    place = {str(name): code for code, name in enumerate(model.labels)}
    for number, name in enumerate(names):
        if name not in NO_LABEL and name not in place:
            token = int(np.flatnonzero(codes == number)[0])
            raise FileError(
                f"{text.tokens.where(token)}: {name!r} is not a label of this model; write one of its labels, or _"
            )
    return np.array([-1 if name in NO_LABEL else place[name] for name in names], dtype=np.int32)[codes]

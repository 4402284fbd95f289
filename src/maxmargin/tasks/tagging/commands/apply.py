"""The verb ``predict``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxmargin._terminal import fail
from maxmargin.tasks.common.commands import errors_as_lines, writable
from maxmargin.tasks.common.text import STANDARD_INPUT, FileError
from maxmargin.tasks.tagging.commands.options import (
    AS_TRAINED,
    Columns,
    FormatOption,
    Jobs,
    Join,
    Reading,
    loaded,
    rows_of,
)

if TYPE_CHECKING:
    from maxmargin.tasks.tagging.files import TaggedText
    from maxmargin.tasks.tagging.model import TaggerModel

_SENTENCE = re.compile(r"sentence ([0-9]+): (.*)", re.DOTALL)
NOTHING = ("", "_")
"""What ``--known`` takes for no label."""


def predict(
    model: Annotated[Path, typer.Argument(help="A model written by tag train.")],
    input: Annotated[str, typer.Argument(help="A file of tokens; - for standard input.")],
    out: Annotated[str, typer.Option("--out", help="The file to write, packed if it ends in .gz.")] = STANDARD_INPUT,
    k_best: Annotated[
        int | None, typer.Option("--k-best", min=1, help="Write so many labelings of each sentence, best first.")
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Write by how much each label beats the best labeling with another one.")
    ] = False,
    probabilities: Annotated[
        bool,
        typer.Option("--probabilities", help="Write the probability of each label; calibrated if --dev was given."),
    ] = False,
    known: Annotated[
        str | None,
        typer.Option(
            "--known", metavar="COLUMN", help="Labels that must be taken, where this column is not empty or _."
        ),
    ] = None,
    form: FormatOption = None,
    columns: Columns = None,
    label: Annotated[
        str | None, typer.Option("--label", metavar="NAME", help="The column of labels.", show_default=AS_TRAINED)
    ] = None,
    join: Join = False,
    jobs: Jobs = -1,
) -> None:
    """Label the tokens of a file: the same file with one more column (or its like in other formats)."""
    if (k_best is not None) + scores + probabilities > 1:
        fail("--k-best, --scores and --probabilities do not go together; give one of them")
    if out != STANDARD_INPUT:
        writable(Path(out), keep=[str(model)])
    with errors_as_lines():
        tagger = loaded(model, jobs)
        text = Reading(form, columns, label, join).read_for(input, tagger, labeled=None)
        try:
            _write(tagger, text, out, k_best, scores, probabilities, known)
        except ValueError as error:
            raise FileError(_located(str(error), text)) from None


def _located(message: str, text: TaggedText) -> str:
    """An error of a sentence by the line where that begins."""
    found = _SENTENCE.match(message)
    return message if found is None else f"{text.tokens.where(int(text.sentences[int(found[1])]))}: {found[2]}"


def _write(
    tagger: TaggerModel,
    text: TaggedText,
    out: str,
    k_best: int | None,
    scores: bool,
    probabilities: bool,
    known: str | None,
) -> None:
    import numpy as np

    from maxmargin.tasks.tagging.files import write_k_best, write_tagged

    rows = rows_of(tagger, text)
    given = None if known is None else _known(tagger, text, known)
    names = [str(name) for name in tagger.labels]
    if k_best is not None:
        best = [
            [([str(name) for name in labels], score) for labels, score in some]
            for some in tagger.ranked(rows, k_best, given)
        ]
        write_k_best(text, best, out=out)
        return
    figures: Any = None
    if scores:
        codes, figures = tagger.best_with_margins(rows, given)
    else:
        codes = tagger.best(rows, given)
    if probabilities:
        if tagger.temperature is None:
            print(
                "note: trained without --dev, this model has no temperature; its probabilities are not calibrated",
                file=sys.stderr,
            )
        figures = tagger.marginals(rows, given)[np.arange(len(codes)), codes]
    write_tagged(text, (codes, names), out=out, scores=figures)


def _known(tagger: TaggerModel, text: TaggedText, column: str) -> Any:
    """The labels of a column as codes of the model, -1 where there is none."""
    import numpy as np

    codes, names = text.codes_of(column)
    place = {str(name): code for code, name in enumerate(tagger.labels)}
    for number, name in enumerate(names):
        if name not in NOTHING and name not in place:
            token = int(np.flatnonzero(codes == number)[0])
            raise FileError(
                f"{text.tokens.where(token)}: {name!r} is no label of this model; write one that is, or _ for none"
            )
    return np.array([-1 if name in NOTHING else place[name] for name in names], dtype=np.int32)[codes]

"""The verb ``evaluate``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxmargin._terminal import fail
from maxmargin.tasks.common.commands import errors_as_lines, once
from maxmargin.tasks.common.text import STANDARD_INPUT, count_of, name_of
from maxmargin.tasks.tagging.commands.options import (
    AsJson,
    Columns,
    FormatOption,
    Jobs,
    Join,
    Label,
    Reading,
    labels_of,
    loaded,
    rows_of,
)

if TYPE_CHECKING:
    from maxmargin.tasks.tagging.files import TaggedText
    from maxmargin.tasks.tagging.metrics import TagScores

CONFUSIONS = 10
"""How many confusions are printed."""


def evaluate(
    predicted: Annotated[str, typer.Argument(metavar="MODEL|PREDICTED", help="A model, or what tag predict wrote.")],
    gold: Annotated[str, typer.Argument(help="A file of labeled tokens.")],
    as_json: AsJson = False,
    labels: Annotated[
        bool, typer.Option("--labels", help="Also print precision, recall and F1 of each label.")
    ] = False,
    confusion: Annotated[
        Path | None, typer.Option("--confusion", metavar="PNG", help="Draw the table of confusions to this file.")
    ] = None,
    columns: Columns = None,
    label: Label = None,
    form: FormatOption = None,
    join: Join = False,
    predicted_column: Annotated[
        int | None,
        typer.Option("--predicted-column", min=1, help="Where PREDICTED has labels, from 1.", show_default="the last"),
    ] = None,
    level: Annotated[float, typer.Option("--level", min=0.01, max=0.999, help="Level of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the resampling for intervals.")] = 0,
    jobs: Jobs = -1,
) -> None:
    """Measure labels: accuracy of tokens and sentences, chunks as conlleval counts them, confusions."""
    with errors_as_lines():
        once([predicted, gold])
        reading = Reading(form, columns, label, join)
        if _is_model(predicted):
            if predicted_column is not None:
                fail("--predicted-column is of files of labels, and a model is given; leave it out")
            scores = _of_model(predicted, gold, reading, jobs)
        else:
            scores = _of_file(predicted, gold, reading, predicted_column)
        from maxmargin.tasks.tagging import printing

        metadata = printing.summary([name_of(predicted)], [scores], level=level, seed=seed)
        if confusion is not None:
            _draw(scores, confusion)
    if as_json:
        print(json.dumps({"interval_level": metadata["interval_level"], **metadata["systems"][0]}), flush=True)
        return
    from rich.console import Console

    one = metadata["systems"][0]
    # A pipe or a file has no width that columns would have to fit in.
    console = Console(width=None if sys.stdout.isatty() else 10_000)
    console.print(printing.scores_table([name_of(predicted)], metadata))
    if one["chunks"] is not None:
        console.print()
        console.print(printing.rates_table(one["chunks"]["types"], "type"))
    if labels:
        console.print()
        console.print(printing.rates_table(one["labels"], "label"))
    if errors := scores.tokens - scores.correct:
        console.print()
        console.print(printing.confusions_table(one["confusions"][:CONFUSIONS], errors))


def _is_model(path: str) -> bool:
    from maxmargin.model_file import MAGIC

    if path == STANDARD_INPUT:
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        fail(f"{path}: {error.strerror or error}; check the name of the file")


def _of_model(path: str, gold: str, reading: Reading, jobs: int) -> TagScores:
    import numpy as np

    from maxmargin.tasks.tagging.metrics import evaluate_codes

    model = loaded(path, jobs)
    text = reading.read_for(gold, model, labeled=True)
    codes, names = labels_of(text)
    found = model.best(rows_of(model, text)).astype(np.int64)
    known = [str(label) for label in model.labels]
    return evaluate_codes(codes.astype(np.int64), found, text.sentences, known, gold_labels=names)


def _of_file(path: str, gold: str, reading: Reading, column: int | None) -> TagScores:
    import numpy as np

    from maxmargin.tasks.common.text import FileError
    from maxmargin.tasks.tagging.metrics import evaluate_codes

    text = reading.read(gold, labeled=True)
    codes, names = labels_of(text)
    system, found, known = _predictions(path, text, reading, column)
    _same_tokens(system, text)
    if not set(known) & set(names):
        raise FileError(
            f"{system.source}: none of its labels, such as {known[0]!r}, is among the gold ones; say with "
            "--predicted-column where they are, if scores or other things stand behind them"
        )
    union = list(dict.fromkeys([*known, *names]))
    place = {name: at for at, name in enumerate(union)}
    moved = np.array([place[name] for name in names], dtype=np.int64)
    return evaluate_codes(moved[codes], found, text.sentences, union)


def _predictions(
    path: str, gold: TaggedText, reading: Reading, column: int | None
) -> tuple[TaggedText, Any, list[str]]:
    """A file of predictions, their codes and what these stand for."""
    from maxmargin.tasks.common.text import FileError
    from maxmargin.tasks.tagging.files import read_tagged

    if gold.format == "json":
        text = read_tagged(path, format="json", labeled=False)
        return text, *_of_records(text)
    if gold.format in ("conllu", "slash"):
        if column is not None:
            fail(f"--predicted-column is of files of columns, and {gold.source} is {gold.format}; leave it out")
        label = gold.label if gold.format == "conllu" else None
        text = read_tagged(path, format=gold.format, label=label, labeled=True, join=reading.join)
        return text, *labels_of(text)
    # Of CRFsuite's format only labels are written, a line each, and perhaps scores behind them.
    text = read_tagged(path, format="columns", labeled=False)
    width = len(text.columns)
    at = column or (1 if gold.format == "crfsuite" else width)
    if at > width:
        raise FileError(
            f"{text.source}: {count_of(width, 'column')}, and --predicted-column is {at}; give a smaller one"
        )
    return text, *text.codes_of(text.columns[at - 1])


def _of_records(text: TaggedText) -> tuple[Any, list[str]]:
    """The predictions of JSON lines."""
    import numpy as np

    from maxmargin.tasks.common.text import FileError

    place: dict[str, int] = {}
    codes: list[int] = []
    for number, (record, length) in enumerate(zip(text.records, text.tokens.lengths.tolist(), strict=True), 1):
        found = record.get("predicted")
        if not isinstance(found, list) or len(found) != length or not all(isinstance(name, str) for name in found):
            raise FileError(
                f"{text.source}, object {number}: no list 'predicted' with a label for each of its "
                f"{count_of(length, 'token')}; give a file that tag predict wrote"
            )
        codes.extend(place.setdefault(name, len(place)) for name in found)
    return np.array(codes, dtype=np.int64), list(place)


def _same_tokens(system: TaggedText, gold: TaggedText) -> None:
    """FileError, naming the lines of both, where two files do not have the same tokens."""
    import numpy as np

    from maxmargin.tasks import _kernels
    from maxmargin.tasks.common.text import FileError

    sides = system.tokens, gold.tokens
    n = min(side.n_tokens for side in sides)
    differ = np.zeros(n, dtype=bool)
    if system.table is not None and gold.table is not None:
        strings, numbered = _kernels.StringTable(), []
        at = gold.columns.index("word") if "word" in gold.columns else 0
        if at >= len(system.columns):
            raise FileError(
                f"{system.source}: {count_of(len(system.columns), 'column')}, and words are in column {at + 1}"
            )
        for table in (system.table, gold.table):
            numbers = np.empty(table.n_tokens, dtype=np.int32)
            begin, end = (np.ascontiguousarray(ends[:, at]) for ends in (table.begin, table.end))
            strings.number(table.bytes, begin, end, True, numbers)
            numbered.append(numbers)
        differ = numbered[0][:n] != numbered[1][:n]
        if differ.any():
            token = int(np.argmax(differ))
            words = [strings.text(int(numbers[token])).decode("utf-8") for numbers in numbered]
            raise FileError(
                f"{system.tokens.where(token)}: the token {words[0]!r} where {gold.tokens.where(token)} has "
                f"{words[1]!r}; give the same tokens in both files"
            )
    ends = []
    for tokens in sides:
        last = np.zeros(tokens.n_tokens, dtype=bool)
        last[tokens.sentences[1:][tokens.lengths > 0] - 1] = True
        ends.append(last[:n])
    if sides[0].n_tokens != sides[1].n_tokens:
        raise FileError(
            f"{system.source} has {count_of(sides[0].n_tokens, 'token')} and {gold.source} has {sides[1].n_tokens}, "
            f"those up to {sides[0].where(n - 1)} and {sides[1].where(n - 1)} in common; give the same in both files"
        )
    if (ends[0] != ends[1]).any():
        token = int(np.argmax(ends[0] != ends[1]))
        ending, other = (system, gold) if ends[0][token] else (gold, system)
        raise FileError(
            f"{ending.tokens.where(token)}: a sentence ends here and not at {other.tokens.where(token)}; give the same "
            "sentences in both files"
        )


def _draw(scores: TagScores, path: Path) -> None:
    from maxmargin.tasks.tagging.printing import draw_confusions

    try:
        draw_confusions(scores, path)
    except (OSError, ValueError) as error:
        fail(f"{path}: {getattr(error, 'strerror', None) or error}; give --confusion a file such as confusions.png")

"""The command ``explain``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxmargin.tasks.common.cli.commands import errors_as_lines
from maxmargin.tasks.common.cli.explain import (
    Html,
    Rows,
    Sentence,
    check_html,
    write_explanation,
)
from maxmargin.tasks.common.cli.options import AsJson
from maxmargin.tasks.common.files.text import FileError, count_of, name_of
from maxmargin.tasks.tagging.cli.options import Columns, Format, Join

if TYPE_CHECKING:
    from maxmargin.explanation import Explanation
    from maxmargin.tasks.tagging.io.files import TaggedText
    from maxmargin.tasks.tagging.model import TaggerModel
    from maxmargin.tasks.tagging.reading import ReadOptions


def explain(
    model: Annotated[Path, typer.Argument(help="A model written by tag train.")],
    input: Annotated[str, typer.Argument(help="A file of tokens; - for standard input.")],
    sentence: Sentence = 1,
    token: Annotated[
        int | None,
        typer.Option("--token", min=1, help="Compare with the best labels that differ at this token, from 1."),
    ] = None,
    gold: Annotated[bool, typer.Option("--gold", help="Compare with the labels in the file.")] = False,
    top: Rows = None,
    html: Html = None,
    as_json: AsJson = False,
    form: Format = None,
    columns: Columns = None,
    label: Annotated[
        str | None, typer.Option("--label", metavar="NAME", help="The column of labels.", show_default="as in training")
    ] = None,
    join: Join = None,
) -> None:
    """Show why a sentence gets its labels: what attributes and transitions contribute to their margin over others."""
    check_html(html, [str(model), input])
    with errors_as_lines():
        if token is not None and gold:
            raise ValueError("--token and --gold exclude each other; give one of them")
        from maxmargin.tasks.tagging.model import TaggerModel
        from maxmargin.tasks.tagging.reading import ReadOptions

        tagger, reading = TaggerModel.load(model), ReadOptions(form, columns, label, join)
        found = explain_sentence(tagger, reading, input, sentence, token=token, gold=gold)
        heading = f"sentence {sentence} of {name_of(input)}"
        write_explanation(found, heading, top=top, html=html, as_json=as_json)


def explain_sentence(
    model: TaggerModel, reading: ReadOptions, path: str, number: int, *, token: int | None = None, gold: bool = False
) -> Explanation:
    """Return the explanation of the labels of one sentence of a file, counted from 1.

    Args:
        model: the tagger.
        reading: how to read the file.
        path: the file.
        number: of the sentence.
        token: compare with the best labels that differ there, from 1; None for anywhere.
        gold: whether to compare with the labels of the file.
    """
    from maxmargin.tasks.tagging.encoder.names import words_of
    from maxmargin.tasks.tagging.reading import in_context

    seen = 0
    for text, context in in_context(model, reading.blocks_for(path, model, labeled=True if gold else None)):
        if seen + text.n_sentences < number:
            seen += text.n_sentences
            continue
        at = number - seen - 1
        length = int(text.sentences[at + 1] - text.sentences[at])
        if token is not None and token > length:
            raise FileError(
                f"--token {token}: sentence {number} has {count_of(length, 'token')}; give a smaller number"
            )
        words = [] if text.table is None else words_of(text.table.part(at, at + 1), model.encoder.extractor)
        given: dict[str, Any] = {"against": _gold(model, text, at)} if gold else {"at": token and token - 1}
        return model.explain_rows(model.rows_in_context(context), at, words, **given)
    raise FileError(f"--sentence {number}: {name_of(path)} has {count_of(seen, 'sentence')}; give a smaller number")


def _gold(model: TaggerModel, text: TaggedText, at: int) -> list[Any]:
    """The labels of a sentence in its file, as the model has them."""
    known = {str(label): label for label in model.labels}
    found = text.labels()[at]
    for place, name in enumerate(found):
        if name not in known:
            where = text.tokens.where(int(text.sentences[at]) + place)
            raise FileError(f"{where}: {name!r} is not a label of this model; compare with labels that it knows")
    return [known[name] for name in found]

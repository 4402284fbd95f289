"""The command ``explain``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from maxmargin.tasks.common.cli.commands import errors_as_lines, once
from maxmargin.tasks.common.cli.explain import (
    Html,
    Rows,
    Sentence,
    check_html,
    write_explanation,
)
from maxmargin.tasks.common.cli.options import AsJson
from maxmargin.tasks.common.files.text import count_of, name_of


def explain(
    model: Annotated[Path, typer.Argument(help="A model of parse train.")],
    sentences: Annotated[str, typer.Argument(help="A file in CoNLL-U with tags; - for standard input.")],
    sentence: Sentence = 1,
    token: Annotated[
        int | None,
        typer.Option("--token", min=1, help="Compare with the best tree in which this token has another head."),
    ] = None,
    relation: Annotated[
        bool, typer.Option("--relation", help="Explain the relation of --token in the tree, not the tree.")
    ] = False,
    gold: Annotated[bool, typer.Option("--gold", help="Compare with the tree, or the relation, in the file.")] = False,
    top: Rows = None,
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """Show why a sentence gets its tree: what features of arcs contribute to its margin over another tree.

    The file is read whole, so cut a sentence out of a large one.
    """
    check_html(html, [str(model), sentences])
    with errors_as_lines():
        once([sentences])
        from maxmargin.tasks.parsing.io.checks import gold_heads, gold_relation
        from maxmargin.tasks.parsing.io.treebank import read_treebank
        from maxmargin.tasks.parsing.model import ParserModel

        parser, bank = ParserModel.load(model), read_treebank(sentences)
        if sentence > bank.n_sentences:
            count = count_of(bank.n_sentences, "sentence")
            raise ValueError(f"--sentence {sentence}: {name_of(sentences)} has {count}; give a smaller number")
        one = bank.part(sentence - 1, sentence)
        if token is not None and token > one.n_tokens:
            count = count_of(one.n_tokens, "token")
            raise ValueError(f"--token {token}: sentence {sentence} has {count}; give a smaller number")
        if relation and token is None:
            raise ValueError("--relation needs --token, the one whose relation is explained")
        if gold and token is not None and not relation:
            raise ValueError("--token and --gold exclude each other, but for --relation; give one of them")
        given: dict[str, Any] = {"at": token and token - 1, "relation": relation}
        if gold:
            if relation and token is not None:
                given["against"] = gold_relation(one, token, parser.encoder.classes)
            else:
                given["against"] = gold_heads(one, parser.encoder.trees.single_root)
        found = parser.explain(one, **given)
        what = f"the relation of token {token} in sentence" if relation else "sentence"
        heading = f"{what} {sentence} of {name_of(sentences)}"
        write_explanation(found, heading, top=top, html=html, as_json=as_json)

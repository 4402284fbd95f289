"""The command ``explain``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from maxmargin.tasks.alignment.cli.options import GoldFirst, GoldFrom, GoldLinks, Source, Target
from maxmargin.tasks.alignment.io.bitext import read_bitext
from maxmargin.tasks.alignment.io.link_files import open_links
from maxmargin.tasks.alignment.model import AlignerModel
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
    model: Annotated[Path, typer.Argument(help="Model written by align train or align bootstrap.")],
    source: Source,
    target: Target = None,
    sentence: Sentence = 1,
    link: Annotated[
        str | None,
        typer.Option(
            "--link",
            metavar="I-J",
            help="Compare with the best alignment with this link, or without it if it is predicted; words from 0.",
        ),
    ] = None,
    gold: GoldLinks = None,
    gold_form: GoldFrom = None,
    gold_first: GoldFirst = None,
    adapt: Annotated[
        bool, typer.Option(help="Adapt the translation models to this pair, if it is new, or use them unchanged.")
    ] = True,
    top: Rows = None,
    html: Html = None,
    as_json: AsJson = False,
) -> None:
    """Show why a sentence pair gets its links: what contributes to their margin over other links.

    The pair is aligned alone; align predict adapts to a block of pairs, so that links may differ. The files are read
    whole, so cut a pair out of large ones.
    """
    check_html(html, [str(model), source, target, gold])
    with errors_as_lines():
        once([source, target, gold])
        if link is not None and gold is not None:
            raise ValueError("--link and --gold exclude each other; give one of them")
        at = None if link is None else _link(link)
        aligner, bitext = AlignerModel.load(model), read_bitext(source, target)
        if not len(bitext):
            raise ValueError(f"{name_of(source)}: no sentence pairs; give a file that has some")
        if sentence > len(bitext):
            raise ValueError(
                f"--sentence {sentence}: {name_of(source)} has {count_of(len(bitext), 'sentence pair')}; give a "
                "smaller number"
            )
        against = None
        if gold is not None:
            links = open_links(gold, format=gold_form, first=gold_first)
            against = links.references(bitext=bitext)[sentence - 1]
        pair = bitext.source[sentence - 1], bitext.target[sentence - 1]
        _check_words(pair, sentence, source, link, at)
        found = aligner.explain(pair, against=against, at=at, adapt=adapt)
        write_explanation(found, f"sentence pair {sentence} of {name_of(source)}", top=top, html=html, as_json=as_json)


def _check_words(
    pair: tuple[list[str], list[str]], sentence: int, source: str, link: str | None, at: tuple[int, int] | None
) -> None:
    """ValueError if a pair has an empty side, or no such link."""
    n, m = map(len, pair)
    where = f"sentence pair {sentence} of {name_of(source)}"
    if not n or not m:
        raise ValueError(f"--sentence {sentence}: {where} has an empty side and no links; give another pair")
    if at is not None and (at[0] >= n or at[1] >= m):
        raise ValueError(
            f"--link {link}: {where} has {count_of(n, 'source word')} and {count_of(m, 'target word')}, counted from "
            "0; give smaller numbers"
        )


def _link(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([0-9]{1,9})-([0-9]{1,9})", text)
    if found is None:
        raise ValueError(f"--link must be two positions from 0, such as 2-5, got {text!r}")
    return int(found[1]), int(found[2])

"""The command line of word alignment: ``maxmargin align VERB``, one thin function per verb."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from maxmargin._terminal import fail, printable
from maxmargin.tasks.alignment.files import Bitext, FileError, LinkFile, open_links, read_bitext, write_links
from maxmargin.tasks.alignment.text import STANDARD_INPUT, name_of

app = typer.Typer(help="Word alignment: learn it, predict it, measure it, look at it.", no_args_is_help=True)


class ReadFormat(StrEnum):
    """Formats of links that are read."""

    auto = "auto"
    pharaoh = "pharaoh"
    naacl = "naacl"
    talp = "talp"
    json = "json"

    def known(self) -> str | None:
        """None where the content of the file decides."""
        return None if self is ReadFormat.auto else self.value


class WriteFormat(StrEnum):
    """Formats of links that are written."""

    pharaoh = "pharaoh"
    naacl = "naacl"
    talp = "talp"
    json = "json"


class Method(StrEnum):
    """Ways to make one alignment of two."""

    intersection = "intersection"
    union = "union"
    grow_diag = "grow-diag"
    grow_diag_final = "grow-diag-final"
    grow_diag_final_and = "grow-diag-final-and"
    forward = "forward"
    backward = "backward"


SourceOption = Annotated[
    str | None,
    typer.Option(
        "--source", help="Source sentences, one per line, or lines 'source ||| target' if there is no --target."
    ),
]
TargetOption = Annotated[str | None, typer.Option("--target", help="Target sentences, one per line.")]


def once(paths: Sequence[str | None]) -> None:
    """Refuse to read standard input twice."""
    if sum(path == STANDARD_INPUT for path in paths) > 1:
        raise FileError("standard input (-) can be read once only; give the other inputs as files")


def optional_bitext(source: str | None, target: str | None) -> Bitext | None:
    """The sentences if they are given."""
    if source is None and target is not None:
        raise FileError("--target needs --source; give both, or neither")
    return None if source is None else read_bitext(source, target)


def pairs_of(files: Sequence[LinkFile], bitext: Bitext | None) -> int:
    """How many sentence pairs the files speak of: NAACL files do not say it, others do and must agree."""
    if bitext is not None:
        return len(bitext)
    counted = [file for file in files if file.counted]
    for file in counted[1:]:
        if file.sentences != counted[0].sentences:
            raise FileError(
                f"{name_of(counted[0].path)} has {counted[0].sentences} lines and {name_of(file.path)} has "
                f"{file.sentences}; both need one line per sentence pair"
            )
    return counted[0].sentences if counted else max(file.sentences for file in files)


@app.command()
def evaluate(
    gold: Annotated[str, typer.Option("--gold", help="Hand-made links: NAACL, Pharaoh or JSON.")],
    predicted: Annotated[list[str], typer.Option("--predicted", help="Links to be measured.")],
    more: Annotated[list[str] | None, typer.Argument(metavar="[PREDICTED]...", help="More of them.")] = None,
    source: SourceOption = None,
    target: TargetOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
    details: Annotated[bool, typer.Option("--details", help="Also print the scores of each sentence.")] = False,
    form: Annotated[ReadFormat, typer.Option("--format", help="Format of the links to be measured.")] = ReadFormat.auto,
    gold_form: Annotated[ReadFormat, typer.Option("--gold-format", help="Format of the gold.")] = ReadFormat.auto,
    level: Annotated[float, typer.Option("--level", min=0.01, max=0.999, help="Level of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the resampling for intervals.")] = 0,
) -> None:
    """Measure links: AER, precision, recall, F1 and balance; several files are compared with the first."""
    from maxmargin.tasks.alignment import metrics, tables

    names = [*predicted, *(more or [])]
    try:
        once([gold, source, target, *names])
        bitext = optional_bitext(source, target)
        hand = open_links(gold, format=gold_form.known())
        systems = [open_links(name, format=form.known()) for name in names]
        count = pairs_of([hand, *systems], bitext)
        references = hand.references(bitext=bitext, sentences=count)
        links = [system.predictions(bitext=bitext, sentences=count) for system in systems]
    except FileError as error:
        fail(str(error))
    scores = [metrics.evaluate(references, one) for one in links]
    facts = tables.summary([name_of(name) for name in names], scores, level=level, seed=seed)
    if as_json:
        if details:
            for entry, one in zip(facts["systems"], scores, strict=True):
                entry["per_sentence"] = [each.as_dict() for each in one.per_sentence]
        print(json.dumps(facts))
        return
    from rich.console import Console

    # A pipe or a file has no width that columns would have to fit in.
    width = None if sys.stdout.isatty() else 10_000
    Console(width=width).print(tables.scores_table([name_of(name) for name in names], facts))
    if details:
        print()
        print("\n".join(tables.sentence_lines(scores)))


@app.command()
def show(
    source: Annotated[str, typer.Option("--source", help="Source sentences, or lines 'source ||| target'.")],
    links: Annotated[str, typer.Option("--links", help="Links to look at: NAACL, Pharaoh or JSON.")],
    target: TargetOption = None,
    gold: Annotated[str | None, typer.Option("--gold", help="Hand-made links to compare them with.")] = None,
    html: Annotated[str | None, typer.Option("--html", help="Write one page for a browser to this file.")] = None,
    sentence: Annotated[
        list[int] | None, typer.Option("--sentence", min=1, help="Only this sentence pair, from 1; may be repeated.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="At most so many pairs.", show_default="20, a page has all")
    ] = None,
    worst: Annotated[bool, typer.Option("--worst", help="Begin with the pairs of highest AER; needs --gold.")] = False,
    form: Annotated[ReadFormat, typer.Option("--format", help="Format of the links.")] = ReadFormat.auto,
    gold_form: Annotated[ReadFormat, typer.Option("--gold-format", help="Format of the gold.")] = ReadFormat.auto,
) -> None:
    """Look at links: a grid for each sentence pair on the terminal, or one page that opens in any browser."""
    from maxmargin.tasks.alignment import show as showing

    try:
        once([source, target, links, gold])
        bitext = read_bitext(source, target)
        predictions = open_links(links, format=form.known()).predictions(bitext=bitext)
        references = None if gold is None else open_links(gold, format=gold_form.known()).references(bitext=bitext)
    except FileError as error:
        fail(str(error))
    try:
        pairs = showing.shown_pairs(bitext, predictions, references)
    except ValueError as error:
        fail(f"{name_of(links)}: {error}")
    if worst and references is None:
        fail("--worst needs --gold; give the hand-made links")
    if sentence:
        if max(sentence) > len(pairs):
            fail(f"--sentence {max(sentence)}: there are {len(pairs)} sentence pairs; give a smaller number")
        pairs = [pairs[number - 1] for number in dict.fromkeys(sentence)]
    if worst:
        pairs.sort(key=lambda pair: -(pair.error_rate() or 0.0))
    found = len(pairs)
    if limit is None and html is None and not sentence:
        limit = 20
    pairs = pairs[:limit]
    left_out = f"{found - len(pairs)} more left out; --limit {found} shows all" if len(pairs) < found else ""
    if html is not None:
        try:
            Path(html).write_text(showing.page(pairs, title=f"Word alignments: {name_of(links)}"), encoding="utf-8")
        except (OSError, ValueError) as error:
            fail(f"{html}: {getattr(error, 'strerror', None) or error}; give --html a file that can be written")
        counted = "1 sentence pair" if len(pairs) == 1 else f"{len(pairs)} sentence pairs"
        print(f"wrote {printable(html)}: {counted}{f' ({left_out})' if left_out else ''}")
        return
    from rich.console import Console

    console = Console(highlight=False)
    try:
        for pair in pairs:
            console.print(showing.grid(pair, width=console.width, legend=False), soft_wrap=True)
        console.print(showing.explain(pairs, width=console.width), soft_wrap=True, end="")
        if left_out:
            console.print(left_out, soft_wrap=True)
    except UnicodeEncodeError:
        fail(f"output as {console.encoding} cannot hold these letters; set PYTHONIOENCODING=utf-8 or use --html")


@app.command()
def symmetrize(
    forward: Annotated[str, typer.Option("--forward", help="Links of one direction, as source-target.")],
    backward: Annotated[str, typer.Option("--backward", help="Links of the other direction, also as source-target.")],
    method: Annotated[Method, typer.Option("--method", help="How.")] = Method.grow_diag_final_and,
    reverse: Annotated[
        bool, typer.Option("--reverse", help="The backward file has target-source; exchange the two.")
    ] = False,
    source: SourceOption = None,
    target: TargetOption = None,
    form: Annotated[ReadFormat, typer.Option("--format", help="Format of both files.")] = ReadFormat.auto,
    out: Annotated[WriteFormat, typer.Option("--to", help="Format to write.")] = WriteFormat.pharaoh,
) -> None:
    """Make one alignment of those of two directions, and write it: a line per sentence pair (NAACL: per link)."""
    from maxmargin.tasks.alignment import symmetrize as symmetrization

    try:
        once([forward, backward, source, target])
        bitext = optional_bitext(source, target)
        files = [open_links(path, format=form.known()) for path in (forward, backward)]
        if reverse:
            files[1] = files[1].reversed()
        count = pairs_of(files, bitext)
        one, two = (file.predictions(bitext=bitext, sentences=count) for file in files)
    except FileError as error:
        fail(str(error))
    write_links(sys.stdout, symmetrization.symmetrize(one, two, method.value), out.value)

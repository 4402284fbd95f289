"""Options that several commands of reranking share."""

from __future__ import annotations

from typing import Annotated

import typer

Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Encoding of text files, for example latin-1.", show_default="utf-8")
]
Features = Annotated[
    list[str] | None,
    typer.Option("--features", metavar="FILE...", help="More features: files with a line per hypothesis."),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format", help="moses, plain, tsv, jsonl or parquet; of lattices plf, slf or json.", show_default="recognized"
    ),
]
ListSize = Annotated[int | None, typer.Option("--list-size", min=1, help="Lines of each list, in the plain format.")]
LatticeFiles = Annotated[
    list[str] | None,
    typer.Option("--lattices", metavar="FILE...", help="In place of lists: lattices, files or folders of files."),
]
NBest = Annotated[
    str | None, typer.Option("--nbest", metavar="FILE", help="Lists of hypotheses with features; - for standard input.")
]
References = Annotated[
    list[str] | None,
    typer.Option(
        "--references", metavar="FILE...", help="References, if the lists have none: files with a line per list."
    ),
]
Segments = Annotated[
    str | None,
    typer.Option(
        "--segments",
        metavar="FILE",
        help="Phrases, a line per hypothesis: number, source words, target words, as 1:0-1:0-2.",
    ),
]
Sources = Annotated[
    str | None, typer.Option("--sources", metavar="FILE", help="The inputs of the lists, a line per list.")
]

MetricName = Annotated[
    str,
    typer.Option("--metric", help="bleu, chrf, chrf++, ter, wer or cer; or a file of gains, a line per hypothesis."),
]
Levels = Annotated[
    int | None,
    typer.Option(
        "--levels",
        min=1,
        help="Of lp7 and lp8: good are the hypotheses with one of so many highest qualities of a list.",
        show_default="1",
    ),
]
Within = Annotated[
    float | None,
    typer.Option(
        "--within",
        min=0.0,
        help="In place of --levels: good are those at most so much worse than the best, in [0, 1].",
    ),
]
Ngrams = Annotated[int, typer.Option("--ngrams", min=0, help="The longest word n-grams that are features.")]
Phrases = Annotated[bool, typer.Option("--phrases", help="Phrase pairs are features; see --segments.")]
Length = Annotated[bool, typer.Option("--length", help="The number of words is a feature.")]
MinLists = Annotated[
    int,
    typer.Option("--min-lists", min=1, help="Keep sparse features that tell hypotheses apart in so many lists."),
]
Normalize = Annotated[
    str, typer.Option("--normalize", help="Units of dense features: spread, list (within each list) or none.")
]
Positive = Annotated[
    list[str] | None, typer.Option("--positive", metavar="NAME...", help="Dense features with weights >= 0.")
]
Negative = Annotated[
    list[str] | None, typer.Option("--negative", metavar="NAME...", help="Dense features with weights <= 0.")
]


def one_input(nbest: str | None, lattices: list[str] | None, **others: object) -> None:
    """Raise ValueError unless there are lists or lattices, and only lists have options for lists."""
    if (nbest is None) == (not lattices):
        raise ValueError("give --nbest or --lattices, one of them")
    for name, value in others.items():
        if nbest is None and value:
            raise ValueError(f"--{name.replace('_', '-')} is for lists, not for lattices; leave it out")

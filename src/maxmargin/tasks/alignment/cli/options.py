"""Options that the verbs share, and their values."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxmargin.structures.base import IntArray
from maxmargin.tasks.alignment.io.bitext import Bitext, read_bitext
from maxmargin.tasks.alignment.io.compact import read_compact
from maxmargin.tasks.alignment.io.link_files import write_links
from maxmargin.tasks.alignment.io.link_formats import Format
from maxmargin.tasks.alignment.io.links import Prediction, Reference
from maxmargin.tasks.alignment.metrics.symmetrization import Method
from maxmargin.tasks.alignment.model import AlignerModel
from maxmargin.tasks.common.files.text import FileError

if TYPE_CHECKING:
    from maxmargin.tasks.alignment.training import AlignerSettings
    from maxmargin.tasks.alignment.translation.sharded_bitext import NumberedPairs

RECOGNIZED = "recognized, except talp"
"""The default of the format of a file, in the help."""

Source = Annotated[str, typer.Option("--source", help="Source sentences, or lines 'source ||| target' (or TAB).")]
OptionalSource = Annotated[
    str | None,
    typer.Option("--source", help="Source sentences, one per line, or 'source ||| target' (or TAB) without --target."),
]
AnnotatedSource = Annotated[
    str | None, typer.Option("--source", help="Annotated source sentences, or 'source ||| target'.")
]
GoldLinks = Annotated[str | None, typer.Option("--gold", help="Links of --source: NAACL, Pharaoh or JSON.")]
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

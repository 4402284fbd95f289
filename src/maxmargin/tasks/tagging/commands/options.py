"""Options that the verbs share, and files read as those that a model was trained on."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from maxmargin.tasks.tagging.files import TaggedText
    from maxmargin.tasks.tagging.model import TaggerModel
    from maxmargin.tasks.tagging.table import Codes

AS_TRAINED = "as in training"
RECOGNIZED = "by name and content"
IGNORED = "_"
"""What stands for a column that is of no use, in ``--columns``."""

Columns = Annotated[
    str | None,
    typer.Option(
        "--columns", metavar="NAMES", help="Names of the columns, such as word,pos,label; _ for one to be ignored."
    ),
]
Label = Annotated[
    str | None,
    typer.Option("--label", metavar="NAME", help="The column of labels.", show_default="label, or the last; upos"),
]
FormatOption = Annotated[
    str | None,
    typer.Option("--format", help="columns, conllu, slash, crfsuite or json.", show_default=RECOGNIZED),
]
Join = Annotated[bool, typer.Option("--join", help="In word/TAG lines a word without a tag belongs to the next.")]
Jobs = Annotated[int, typer.Option("--jobs", help="Threads; -1 for all cores.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@dataclass(frozen=True)
class Reading:
    """How the user says that files are to be read."""

    format: str | None = None
    columns: str | None = None
    label: str | None = None
    join: bool = False

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of columns, those to be ignored with names of their own."""
        from maxmargin.tasks.tagging.files import column_names

        if self.columns is None:
            return None
        given = [name.strip() for name in self.columns.split(",")]
        return column_names([f"{name}{at}" if name == IGNORED else name for at, name in enumerate(given)])

    def read(self, path: str, *, labeled: bool | None) -> TaggedText:
        """A file by these options alone."""
        from maxmargin.tasks.tagging.files import read_tagged

        text = read_tagged(
            path, format=self.format, columns=self.names, label=self.label, labeled=labeled, join=self.join
        )
        _check_label(text, self.label)
        return text

    def read_for(self, path: str, model: TaggerModel, *, labeled: bool | None) -> TaggedText:
        """A file for a model: what the options do not say is as it was in training, if the file has that format."""
        from maxmargin.tasks.common.text import read_text
        from maxmargin.tasks.tagging.files import check_format, parsed

        check_format(self.format)
        trained = trained_on(model)
        names, label = self.names, self.label
        # The columns of CoNLL-U are those of no other format.
        known = names or (None if trained.get("format") == "conllu" else trained.get("columns"))
        data = read_text(path)
        form = self.format or _recognized(path, data, model, known is not None)
        if self.format is None and form == "columns" and names is None and trained.get("format") == "slash":
            form = "slash" if not labeled and _is_running_text(data) else form
        if names is None and form not in ("conllu", "crfsuite") and (form != "slash" or len(known or ()) == 2):
            names = known
        before = trained.get("label")
        if label is None and (form == trained.get("format") if names is None else before in names):
            label = before
        if self.names is None and form == "columns" and names is not None and data.strip():
            found = _columns_there(path, data, model, names, label, labeled)
            # Without labels there, none of the columns that are is to be taken for them.
            names, labeled = found, labeled if found == names else False
            label = label if label in names else self.label
        text = parsed(path, data, form, names, label, labeled, self.join or bool(labeled and trained.get("join")))
        _check_label(text, self.label)
        return text


def _recognized(path: str, data: bytes, model: TaggerModel, named: bool) -> str:
    """The format of a file; that of training where content does not tell."""
    from maxmargin.tasks.common.text import FileError
    from maxmargin.tasks.tagging.files import recognized

    before = trained_on(model).get("format")
    try:
        form = recognized(path, data, named=named)
    except FileError:
        if before is None or not data.strip():
            raise
        return str(before)
    # A model of CRFsuite's attributes has no use for columns.
    return before if before == "crfsuite" and form in ("columns", "slash") else form


def _columns_there(
    path: str, data: bytes, model: TaggerModel, trained: tuple[str, ...], label: str | None, labeled: bool | None
) -> tuple[str, ...]:
    """The columns of a file: those of training, whose labels may be missing, or just those that the template uses."""
    from maxmargin.tasks.common.text import count_of, problem
    from maxmargin.tasks.tagging.line_formats import layout_of_columns, lines_with_text, width_of

    width = width_of(data, layout_of_columns(data))
    if width in (len(trained), len(trained) - (label in trained)):
        return trained
    template = getattr(model.extractor, "template", None)
    used = () if template is None else template.columns_used
    needed = tuple(name for name in trained if name in used and name != label)
    if width == len(needed) == len(used) and not labeled:
        return needed
    shown = [IGNORED if name == f"{IGNORED}{at}" else name for at, name in enumerate(trained)]
    ways = [", ".join(shown)]
    if not labeled:
        ways += [f"these without {label}"] if label in trained else []
        ways += [f"only {', '.join(needed)}"] if 0 < len(needed) == len(used) else []
    raise problem(
        path,
        next(lines_with_text(data))[0],
        f"{count_of(width, 'column')} where training had {len(trained)}; give {', or '.join(ways)}, or name those that "
        "are there with --columns",
    )


def _is_running_text(data: bytes) -> bool:
    """Whether words stand in lines as sentences: not one in each line, nor in columns between TABs."""
    from maxmargin.tasks.tagging.line_formats import first_lines

    lines = first_lines(data)
    if any(b"\t" in line for line in lines):
        return False
    return len(lines) == 1 or any(len(line.split()) > 1 for line in lines)


def _check_label(text: TaggedText, label: str | None) -> None:
    """CRFsuite files and JSON with features have no columns to choose from."""
    if text.table is None and label is not None:
        from maxmargin.tasks.common.text import FileError

        raise FileError(f"{text.source}: tokens have attributes and no columns; leave --label out")


def trained_on(model: TaggerModel) -> dict[str, Any]:
    """What the model remembers of its training file: ``format``, ``columns``, ``label`` and ``join``."""
    found: Any = model.metadata.get("file")
    if isinstance(found, dict) and isinstance(found.get("format"), str):
        columns, label = found.get("columns"), found.get("label")
        plain = isinstance(columns, list) and columns and all(isinstance(name, str) for name in columns)
        return {
            "format": found["format"],
            "columns": tuple(columns) if plain else None,  # type: ignore[arg-type]
            "label": label if isinstance(label, str) else None,
            "join": found.get("join") is True,
        }
    template = getattr(model.extractor, "template", None)
    if template is None:
        return {}
    # Trained in Python on tokens without a column of labels, which a file may have behind the others.
    columns = tuple(template.columns)
    return {"columns": columns if "label" in columns else (*columns, "label"), "label": "label"}


def file_facts(text: TaggedText, join: bool) -> dict[str, Any]:
    """What a model is to remember of its training file."""
    return {"format": text.format, "columns": list(text.columns), "label": text.label, "join": join}


def loaded(path: Any, jobs: int) -> TaggerModel:
    """The model of a file."""
    from maxmargin.tasks.tagging.model import load_tagger

    return load_tagger(path, n_jobs=jobs)


def rows_of(model: TaggerModel, text: TaggedText) -> Any:
    """The attributes of a file that a model knows."""
    from maxmargin.tasks.common.text import FileError

    template = getattr(model.extractor, "template", None)
    if template is not None and text.table is None:
        raise FileError(
            f"{text.source}: tokens have attributes and no columns, and this model needs the columns "
            f"{', '.join(template.columns_used)}; give a file that has them"
        )
    rows = model.extractor.rows(text.tokens)
    if text.n_tokens and not len(rows.tokens.columns):
        note = "none of its attributes is known to the model; was that trained on files of another kind?"
        print(f"note: {text.source}: {note}", file=sys.stderr)
    return rows


def labels_of(text: TaggedText, unknown: str | None = None) -> tuple[Codes, list[str]]:
    """The labels as codes and names; FileError where one is empty, or none is there at all."""
    import numpy as np

    from maxmargin.tasks.common.text import FileError

    codes, names = text.label_codes()
    if "" in names and unknown != "":
        token = int(np.flatnonzero(codes == names.index(""))[0])
        raise FileError(
            f"{text.tokens.where(token)}: the label is empty; give each token one, and those whose label is not known "
            "a word that --unknown names"
        )
    if text.format == "conllu" and names == [IGNORED]:
        raise FileError(f"{text.source}: no labels, the column {text.label!r} has only '_'; give --label another one")
    return codes, names

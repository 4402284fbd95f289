"""Reading files for a model: settings that are not given default to those of the training file."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._callers import callers_level
from maxmargin._terminal import note
from maxmargin.tasks.common.files.blocks import BLOCK, TextBlocks
from maxmargin.tasks.common.files.text import FileError, count_of, problem
from maxmargin.tasks.common.tokens.line_formats import (
    Layout,
    NoTokensError,
    first_lines,
    has_first_line,
    has_first_lines,
    layout_of_columns,
    lines_end_tagged,
    lines_with_text,
    no_tokens,
    width_of,
)
from maxmargin.tasks.common.tokens.table import WORD, Codes
from maxmargin.tasks.tagging.encoder.extraction import TokenRows
from maxmargin.tasks.tagging.io.files import Parser, TaggedText, check_format, column_names, read_tagged, recognized
from maxmargin.tasks.tagging.model import TaggerModel

IGNORED = "_"
"""The name of columns to be ignored."""

MANY_LABELS = 100
"""So many different labels are not suspicious, even if there are fewer words."""


@dataclass(frozen=True)
class ReadOptions:
    """Settings of :func:`~maxmargin.tasks.tagging.io.files.read_tagged`; None for the default.

    Attributes:
        format: the format of the file.
        columns: names of the columns, separated by commas; ``_`` for columns to be ignored.
        label: the column of labels.
        join: in ``word/TAG`` lines, whether a word without a tag belongs to the next one.
    """

    format: str | None = None
    columns: str | None = None
    label: str | None = None
    join: bool | None = None

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns; ignored columns get unique names."""
        if self.columns is None:
            return None
        given = [name.strip() for name in self.columns.split(",")]
        return column_names([f"{name}{at}" if name == IGNORED else name for at, name in enumerate(given)])

    def read(self, path: str, *, labeled: bool | None) -> TaggedText:
        """Read a file with these settings."""
        text = read_tagged(
            path, format=self.format, columns=self.names, label=self.label, labeled=labeled, join=bool(self.join)
        )
        _check_label(text, self.label)
        return text

    def read_for(self, path: str, model: TaggerModel, *, labeled: bool | None) -> TaggedText:
        """Read a file for a model: settings that are not given are those of training, if the format is the same."""
        (text,) = self.blocks_for(path, model, labeled=labeled, size=None)
        return text

    def blocks_for(
        self, path: str, model: TaggerModel, *, labeled: bool | None, size: int | None = BLOCK
    ) -> Iterator[TaggedText]:
        """Read a file for a model as :meth:`read_for` does, block by block, so that memory does not grow with it.

        Blocks are runs of whole sentences; all but the first may have no tokens, but other lines.

        Args:
            path: the file.
            model: the model.
            labeled: whether there must be labels, as for :func:`~maxmargin.tasks.tagging.io.files.read_tagged`.
            size: bytes of a block; None for the whole file as one block.
        """
        return self._blocks(path, size, lambda head: self._parser(path, head, model, labeled))

    def blocks(self, path: str, *, size: int | None = BLOCK) -> Iterator[TaggedText]:
        """Read a labeled file as :meth:`read` does, block by block."""

        def parser(head: bytes) -> Parser:
            form = self.format or recognized(path, head, named=self.names is not None)
            if self.join and self.format is None and form == "columns":
                form = "slash"
            return Parser(path, form, self.names, self.label, True, bool(self.join))

        return self._blocks(path, size, parser)

    def _blocks(self, path: str, size: int | None, parser_of: Callable[[bytes], Parser]) -> Iterator[TaggedText]:
        check_format(self.format)
        with TextBlocks(path, size) as stream:
            parser = parser_of(stream.head(has_first_line if self.format else has_first_lines))
            first, data = 0, b""
            for before, block in stream.blocks(paragraphs=parser.form in ("columns", "conllu", "crfsuite")):
                first, data = (first, data + block) if data else (before, block)
                try:
                    text = parser(data, first)
                except NoTokensError:  # only comments and the like up to here
                    continue
                _check_label(text, self.label)
                data = b""
                yield text
            if not parser.begun:
                raise no_tokens(path)

    def _parser(self, path: str, head: bytes, model: TaggerModel, labeled: bool | None) -> Parser:
        """Return the parser of a file that begins with these lines."""
        trained = trained_on(model)
        names, label = self.names, self.label
        # The columns of CoNLL-U apply to no other format.
        known = names or (None if trained.get("format") == "conllu" else trained.get("columns"))
        form = self.format or _recognized(path, head, model, known is not None)
        # Without tags in the last words, these are words to be labeled, which are not joined.
        join = bool(trained.get("join") and lines_end_tagged(head)) if self.join is None else self.join
        if self.format is None and form == "columns" and names is None and trained.get("format") == "slash":
            form = "slash" if (join or not labeled) and _is_running_text(head) else form
        if names is None and form not in ("conllu", "crfsuite") and (form != "slash" or len(known or ()) == 2):
            names = known
        if names is None and form == "columns" and trained.get("format") == "conllu" and not (self.format or labeled):
            _refuse_running_text(path, head)
        before = trained.get("label")
        if label is None and (form == trained.get("format") if names is None else before in names):
            label = before
        if self.names is None and form == "columns" and names is not None and head.strip():
            found = _present_columns(path, head, model, names, label, labeled)
            # If the labels are missing, no other column may be taken for them.
            names, labeled = found, labeled if found == names else False
            label = label if label in names else self.label
        return Parser(path, form, names, label, labeled, join)


def _recognized(path: str, data: bytes, model: TaggerModel, named: bool) -> str:
    """Return the format of a file; that of training if it is ambiguous."""
    before = trained_on(model).get("format")
    try:
        form = recognized(path, data, named=named)
    except FileError:
        if before is None or not data.strip():
            raise
        return str(before)
    # A model of CRFsuite attributes cannot use columns.
    return before if before == "crfsuite" and form in ("columns", "slash") else form


def _present_columns(
    path: str, data: bytes, model: TaggerModel, trained: tuple[str, ...], label: str | None, labeled: bool | None
) -> tuple[str, ...]:
    """Return the columns of a file: those of training, perhaps without labels, or only those the template uses."""
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
        f"{count_of(width, 'column')}, and the training file had {len(trained)}; give {', or '.join(ways)}, or name "
        "the columns of this file with --columns",
    )


def _is_running_text(data: bytes) -> bool:
    """Return whether lines are sentences: not one word per line, nor columns separated by TABs."""
    lines = first_lines(data)
    if any(b"\t" in line for line in lines):
        return False
    return len(lines) == 1 or any(len(line.split()) > 1 for line in lines)


def _refuse_running_text(path: str, data: bytes) -> None:
    """Raise FileError for lines of several words that may be sentences, as nothing says that they are columns."""
    if layout_of_columns(data) is Layout.BLANKS and width_of(data, Layout.BLANKS) > 1:
        raise problem(
            path,
            next(lines_with_text(data))[0],
            "several words: a sentence, or columns of a token, whose names are not known; give --format slash for a "
            "sentence per line, or name the columns with --columns",
        )


def _check_label(text: TaggedText, label: str | None) -> None:
    if text.table is None and label is not None:
        raise FileError(f"{text.source}: tokens have attributes and no columns; leave --label out")


def trained_on(model: TaggerModel) -> dict[str, Any]:
    """Return ``format``, ``columns``, ``label`` and ``join`` of the training file of a model."""
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
    # Trained in Python, on tokens without a column of labels, which files may have after the others.
    columns = tuple(template.columns)
    return {"columns": columns if "label" in columns else (*columns, "label"), "label": "label"}


def file_metadata(text: TaggedText, join: bool) -> dict[str, Any]:
    """Return the metadata of a training file that a model stores; :func:`trained_on` reads them."""
    return {"format": text.format, "columns": list(text.columns), "label": text.label, "join": join}


def in_context(model: TaggerModel, texts: Iterable[TaggedText]) -> Iterator[tuple[TaggedText, Any]]:
    """Yield each block of a file, and for :meth:`TaggerModel.rows_in_context` all that its attributes depend on."""
    template = getattr(model.extractor, "template", None)
    held: deque[TaggedText] = deque()  # blocks whose attributes wait for the sentences after them

    def tokens() -> Iterator[Any]:
        for text in texts:
            if template is not None and text.table is None:
                raise FileError(
                    f"{text.source}: tokens have attributes and no columns, and this model needs the columns "
                    f"{', '.join(template.columns_used)}; give a file that has them"
                )
            held.append(text)
            yield text.tokens

    for context in model.in_context(tokens()):
        yield held.popleft(), context


def rows_of(model: TaggerModel, texts: Iterable[TaggedText]) -> Iterator[tuple[TaggedText, TokenRows]]:
    """Yield each block of a file with the attributes that a model knows; note on standard error if there are none."""
    known = False
    for text, context in in_context(model, texts):
        rows = model.rows_in_context(context)
        known = known or len(rows.tokens.columns) > 0
        yield text, rows
    if not known:
        tell_of_unknown(text.source)


def tell_of_unknown(source: str) -> None:
    """Note that a model knows no attribute of a file."""
    note(f"{source}: the model knows none of its attributes; was it trained on files of another kind?")


def labels_of(text: TaggedText, unknown: str | None = None) -> tuple[Codes, list[str]]:
    """Return the labels of a file as codes and names; FileError if one is empty, or there are none."""
    codes, names = block_labels(text, unknown)
    check_annotated(text, names)
    return codes, names


def warn_of_words(text: TaggedText, labels: Sequence[str]) -> None:
    """Warn if the labels of a file look like its words: many, and more different ones than in the column of words."""
    if len(labels) <= MANY_LABELS or text.label is None or WORD not in text.columns:
        return
    words = len(text.codes_of(WORD)[1])
    if words < len(labels):
        warnings.warn(
            f"{text.source}: the column {text.label!r} has {len(labels):,} different labels, the column of words only "
            f"{words:,} different words; if the labels are in another column, name it (--label), or all columns "
            "(--columns)",
            UserWarning,
            stacklevel=callers_level(),
        )


def block_labels(text: TaggedText, unknown: str | None = None) -> tuple[Codes, list[str]]:
    """Return the labels of a block of a file as codes and names; FileError if one is empty."""
    codes, names = text.label_codes()
    if "" in names and unknown != "":
        token = int(np.flatnonzero(codes == names.index(""))[0])
        raise FileError(
            f"{text.tokens.where(token)}: the label is empty; give each token a label, and mark unknown labels by a "
            "word that --unknown names"
        )
    return codes, names


def check_annotated(text: TaggedText, names: list[str]) -> None:
    """Raise FileError if the labels of a file have only the name that CoNLL-U gives to missing cells."""
    if text.format == "conllu" and names == [IGNORED]:
        raise FileError(f"{text.source}: no labels, the column {text.label!r} has only '_'; give --label another one")

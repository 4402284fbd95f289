"""Templates: attributes of tokens as functions of the columns around them.

A line of a template defines an attribute of every token (``U``) or of every pair of neighbors (``B``, at the second
one), as in CRF++: text in which ``%x[row,column]`` stands for a cell, with ``row`` relative to the token. ::

    # words and tags
    U00:%x[-1,0]
    U01:%x[0,0]/%x[0,1]
    U02:%lower.suffix(3)[0,word]
    U03:%is(title)[0,word]
    B

Cells before the sentence are ``_B-1``, ``_B-2``, ..., those after it ``_B+1``, ...; with the line ``!boundary omit``,
attributes that need such a cell are dropped instead. Beyond CRF++, columns may have names, ``%%`` is a percent sign,
and functions of a cell may replace ``x``, several of them joined by dots: see :data:`FUNCTIONS`. An attribute is
dropped if one of its functions has no value.

Lines that begin with ``!`` are settings. ``!optional pos``: lines that use the column ``pos`` are left out if there is
none. Others add columns (:mod:`~maxmargin.tasks.tagging.encoder.columns`): ``!learn class word`` the word classes that
are learned from column ``word`` and the labels, ``!cluster cluster word`` the clusters of words in text without labels,
if there is such text, and ``!gazetteer listed word`` where entries of gazetteers occur; a line that uses this column
stands for one line per gazetteer.

A function is computed once per distinct cell of its column, by Python's string functions; a kernel joins the results
(``token_attributes.hpp``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _threads
from maxmargin._messages import shown
from maxmargin.structures.base import IntArray
from maxmargin.tasks import _kernels
from maxmargin.tasks.common.text import FileError, name_of
from maxmargin.tasks.tagging.encoder.attributes import Attributes, AttributeVocabulary, decoded
from maxmargin.tasks.tagging.encoder.cell_functions import FUNCTIONS as FUNCTIONS
from maxmargin.tasks.tagging.encoder.cell_functions import POSITIONS, Pieces, change
from maxmargin.tasks.tagging.io.named_columns import place_of
from maxmargin.tasks.tagging.io.table import TokenTable

REACH = 100
"""Largest distance of a row from the token."""

_MACRO = re.compile(r"%([a-z_]+(?:\([^()]*\))?(?:\.[a-z_]+(?:\([^()]*\))?)*)\[([^\[\],]*),([^\[\],]*)\]")
_FUNCTION = re.compile(r"([a-z_]+)(?:\(([^()]*)\))?")


@dataclass(frozen=True)
class Macro:
    """A function of a cell.

    Attributes:
        functions: names with their arguments, in order of application.
        row: distance from the token.
        column: the name of the column; empty for functions of the position alone.
    """

    functions: tuple[tuple[str, str | None], ...]
    row: int
    column: str


Items = tuple[str | Macro, ...]


def _macro(functions: str, row: str, column: str, columns: Sequence[str]) -> Macro:
    """Parse a macro; ValueError says what is wrong."""
    found = tuple((match[1], match[2]) for match in _FUNCTION.finditer(functions))
    if not re.fullmatch(r"\s*[+-]?[0-9]{1,6}\s*", row) or abs(int(row)) > REACH:
        raise ValueError(f"row {shown(row)} is not an integer from -{REACH} to {REACH}")
    position = any(name == "is" and argument in POSITIONS for name, argument in found)
    if position and len(found) > 1:
        raise ValueError(f"is({found[-1][1]}) cannot be joined with other functions")
    if not position:
        for name, argument in found:
            change(name, argument)
    column = column.strip()
    if column.isascii() and column.isdigit():
        if len(column) > 6 or int(column) >= len(columns):
            raise ValueError(f"column {column} of {len(columns)}, counted from 0: {', '.join(columns)}")
        column = columns[int(column)]
    elif (place := place_of(column, columns)) is not None:
        column = columns[place]
    else:
        raise ValueError(f"no column {shown(column)}; there are {', '.join(columns)}")
    return Macro(found, int(row), "" if position else column)


def _items(line: str, columns: Sequence[str]) -> Items:
    items: list[str | Macro] = []
    literal, at = "", 0
    while at < len(line):
        if line[at] != "%":
            stop = line.find("%", at)
            stop = len(line) if stop < 0 else stop
            literal += line[at:stop]
            at = stop
        elif line.startswith("%%", at):
            literal += "%"
            at += 2
        elif match := _MACRO.match(line, at):
            if literal:
                items.append(literal)
            literal = ""
            items.append(_macro(match[1], match[2], match[3], columns))
            at = match.end()
        else:
            raise ValueError(f"cannot read {shown(line[at : at + 30])}; write %x[row,column], or %% for a percent sign")
    return (*items, literal) if literal or not items else tuple(items)


@dataclass(frozen=True)
class Added:
    """A column that the encoder adds.

    Attributes:
        kind: ``learn`` (labels of words), ``cluster`` (words with similar neighbors) or ``gazetteer`` (listed names).
        name: its name.
        source: the column of the words.
    """

    kind: str
    name: str
    source: str


ADDED = {"learn": "!learn class word", "cluster": "!cluster cluster word", "gazetteer": "!gazetteer listed word"}
"""Kinds of added columns, and the usual lines."""


def _added(kind: str, names: Sequence[str], columns: Sequence[str]) -> Added:
    """Parse the column to add and its source; ValueError says what is wrong."""
    if len(names) != 2:
        raise ValueError(f"{kind} takes the name of the new column and that of the words, as in {ADDED[kind]!r}")
    if names[0] in columns or names[0].isdigit():
        raise ValueError(f"the new column cannot be called {shown(names[0])}; give it a name that no column has")
    if names[1] not in columns:
        raise ValueError(f"no column {shown(names[1])}; there are {', '.join(columns)}")
    return Added(kind, names[0], names[1])


class _Settings:
    """The lines of a template that begin with ``!``, as far as they have been read."""

    def __init__(self, columns: Sequence[str], gazetteers: Sequence[str], clusters: bool) -> None:
        self.known, self.gazetteers, self.clusters = tuple(columns), tuple(gazetteers), clusters
        self.absent: tuple[str, ...] = ()
        self.added: dict[str, Added] = {}
        self.omit = False
        self.optional: tuple[str, ...] = ()

    def read(self, line: str) -> None:
        """Read a line; ValueError says what is wrong."""
        words = line[1:].split()
        kind = words[0] if words else ""
        if kind in ADDED:
            if kind in self.added:
                raise ValueError(f"there is a line !{kind} already; leave this one out")
            self.added[kind] = _added(kind, words[1:], self.known)
            self.known = (*self.known, self.added[kind].name)
            if (kind == "gazetteer" and not self.gazetteers) or (kind == "cluster" and not self.clusters):
                self.absent = (*self.absent, self.added[kind].name)
        elif kind == "optional" and words[1:]:
            self.optional = (*self.optional, *words[1:])
            missing = tuple(name for name in words[1:] if name not in self.known)
            self.absent, self.known = (*self.absent, *missing), (*self.known, *missing)
        elif words in (["boundary", "omit"], ["boundary", "mark"]):
            self.omit = words[1] == "omit"
        else:
            use = ", ".join(map(repr, ("!boundary omit", "!boundary mark", "!optional pos", *ADDED.values())))
            raise ValueError(f"unknown setting {shown(line)}; use one of {use}")

    def lines(self, items: Items) -> list[Items]:
        """Return a line as it is, none if a column is absent, or one per gazetteer if it uses their column."""
        columns = {item.column for item in items if isinstance(item, Macro)}
        if columns & set(self.absent):
            return []
        added = self.added.get("gazetteer")
        if added is None or added.name not in columns:
            return [items]
        return [
            tuple(
                replace(item, column=gazetteer_column(added, name))
                if isinstance(item, Macro) and item.column == added.name
                else item
                for item in items
            )
            for name in self.gazetteers
        ]


def gazetteer_column(added: Added, name: str) -> str:
    """Return the column of one gazetteer."""
    return f"{added.name}:{name}"


@dataclass(frozen=True)
class Template:
    """A parsed template.

    Attributes:
        text: the text it was parsed from.
        columns: names of the columns, in the order in which numbers refer to them.
        unigrams: attributes of tokens, each as literal text and macros.
        bigrams: attributes of pairs of neighbors, likewise.
        omit: whether attributes with cells outside the sentence are dropped.
        added: columns that the encoder adds, by their kinds.
        gazetteers: names of the gazetteers; lines that use their column stand once for each.
        clusters: whether there are clusters of words; lines that use them are left out otherwise.
        optional: columns that a table may lack; lines that use one which it lacks are left out.
    """

    text: str
    columns: tuple[str, ...]
    unigrams: tuple[Items, ...]
    bigrams: tuple[Items, ...]
    omit: bool = False
    added: Mapping[str, Added] = field(default_factory=dict)
    gazetteers: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    clusters: bool = False

    def __str__(self) -> str:
        return self.text

    @classmethod
    def parse(
        cls,
        text: str,
        columns: Sequence[str],
        source: str = "template",
        gazetteers: Sequence[str] = (),
        clusters: bool = False,
    ) -> Template:
        """Parse a template for a table with these columns; FileError names the line."""
        unigrams: list[Items] = []
        bigrams: list[Items] = []
        settings = _Settings(columns, gazetteers, clusters)
        found = False
        for number, line in enumerate(text.split("\n"), 1):
            line = line.removesuffix("\r")
            try:
                if not line.strip() or line.startswith("#"):
                    continue
                if line.startswith("!"):
                    settings.read(line)
                elif line[0] in "UB":
                    found = True
                    lines = unigrams if line[0] == "U" else bigrams
                    lines.extend(settings.lines(_items(line, settings.known)))
                else:
                    raise ValueError("a line must begin with U (tokens), B (pairs of neighbors), # or !")
            except ValueError as error:
                raise FileError(f"{name_of(source)}, line {number}: {error}") from None
        if not found:
            raise FileError(f"{name_of(source)}: no line that begins with U or B; write at least one, as U00:%x[0,0]")
        return cls(
            text,
            tuple(columns),
            tuple(unigrams),
            tuple(bigrams),
            settings.omit,
            settings.added,
            tuple(gazetteers),
            settings.optional,
            clusters,
        )

    @property
    def learned(self) -> tuple[str, str] | None:
        """The column of word classes and the column they are learned from; None without word classes."""
        added = self.added.get("learn")
        return None if added is None else (added.name, added.source)

    @property
    def columns_used(self) -> tuple[str, ...]:
        """The columns that a table must have, in order of first use."""
        items = (item for line in (*self.unigrams, *self.bigrams) for item in line if isinstance(item, Macro))
        source_of = {added.name: added.source for added in self.added.values()}
        if (listed := self.added.get("gazetteer")) is not None:
            source_of |= {gazetteer_column(listed, name): listed.source for name in self.gazetteers}
        return tuple(dict.fromkeys(source_of.get(item.column, item.column) for item in items if item.column))

    @property
    def columns_needed(self) -> tuple[str, ...]:
        """The columns without which it could not have been parsed."""
        return tuple(name for name in self.columns_used if name not in self.optional)

    @property
    def edges(self) -> bool:
        """Whether a ``B`` line has macros: attributes of pairs of neighbors."""
        return bool(self._edge_plan.lines)

    @cached_property
    def _token_plan(self) -> _Plan:
        return _Plan(self.unigrams)

    @cached_property
    def _edge_plan(self) -> _Plan:
        return _Plan([line for line in self.bigrams if any(isinstance(item, Macro) for item in line)])

    def apply(self, table: TokenTable, vocabulary: AttributeVocabulary, *, grow: bool = False) -> Attributes:
        """Return the attributes of all tokens; new ones are added to the vocabulary (``grow``) or dropped."""
        return self._token_plan.apply(table, vocabulary, self.omit, edges=False, grow=grow)[0]

    def apply_edges(self, table: TokenTable, vocabulary: AttributeVocabulary, *, grow: bool = False) -> Attributes:
        """Return the attributes of pairs of neighbors, one row per token but the first of each sentence.

        Lines without macros are transitions and have no attributes.
        """
        return self._edge_plan.apply(table, vocabulary, self.omit, edges=True, grow=grow)[0]

    def learn(
        self, table: TokenTable, vocabulary: AttributeVocabulary, *, edges: bool = False, min_count: int = 1
    ) -> tuple[AttributeVocabulary, Attributes]:
        """Return the vocabulary with the attributes, of tokens or ``edges``, that ``min_count`` rows have, and rows.

        The vocabulary that is given grows; what it has before is kept, however rare.
        """
        plan, known = self._edge_plan if edges else self._token_plan, len(vocabulary)
        rows, keep = plan.apply(table, vocabulary, self.omit, edges=edges, grow=True, min_count=min_count, known=known)
        return vocabulary if keep is None else vocabulary.only(keep), rows


class _Plan:
    """Lines in the form of the kernel: sources are functions of a column, views are sources at a distance."""

    def __init__(self, lines: Sequence[Items]) -> None:
        self.lines = lines
        macros = [item for line in lines for item in line if isinstance(item, Macro)]
        self.reach = max((abs(macro.row) for macro in macros), default=0)
        self.columns = list(dict.fromkeys(macro.column for macro in macros))
        self.sources = list(dict.fromkeys((macro.functions, macro.column) for macro in macros))
        source_of = {source: number for number, source in enumerate(self.sources)}
        views = list(dict.fromkeys(((source_of[macro.functions, macro.column], macro.row)) for macro in macros))
        view_of = {view: number for number, view in enumerate(views)}
        self.view_source = np.array([source for source, _ in views], dtype=np.int32)
        self.view_row = np.array([row for _, row in views], dtype=np.int32)
        self.literals = list(dict.fromkeys(item for line in lines for item in line if isinstance(item, str)))
        literal_of = {literal: number for number, literal in enumerate(self.literals)}
        self.items = np.array(
            [
                -1 - literal_of[item]
                if isinstance(item, str)
                else view_of[source_of[item.functions, item.column], item.row]
                for line in lines
                for item in line
            ],
            dtype=np.int64,
        )
        self.line_start = np.cumsum([0, *map(len, lines)], dtype=np.int64)

    def apply(
        self,
        table: TokenTable,
        vocabulary: AttributeVocabulary,
        omit: bool,
        *,
        edges: bool,
        grow: bool,
        min_count: int = 1,
        known: int = 0,
    ) -> tuple[Attributes, npt.NDArray[np.bool_] | None]:
        all_cells = [numbered(table, column) for column in self.columns]
        cells, texts = [numbers for numbers, _ in all_cells], [different for _, different in all_cells]
        changes = [_Changes(text, ends) for text, ends in texts]
        pool = _Pool()
        pool.add(list(self.literals))
        marks: Pieces = [f"_B{sign}{k}" for sign in "-+" for k in range(1, self.reach + 1)]
        first = []
        for functions, column in self.sources:
            first.append(pool.n_pieces)
            place = self.columns.index(column)
            if functions == (("x", None),):
                pool.add_bytes(*texts[place])
            elif not column:
                bit = 1 << POSITIONS.index(str(functions[0][1]))
                pool.add([functions[0][1] if state & bit else None for state in range(4)])
            else:
                pool.add(changes[place].of(functions))
            tests = any(name in ("is", "has") for name, _ in functions)
            pool.add([None] * len(marks) if omit or tests else marks)
        pieces = pool.arrays()
        starts, columns, values, keep = _kernels.attributes_of_tokens(
            vocabulary.table,
            np.ascontiguousarray(table.sentences, dtype=np.int64),
            np.stack(cells) if cells else np.zeros((0, table.n_tokens), dtype=np.int32),
            np.array([len(ends) for _, ends in texts], dtype=np.int64),
            self.reach,
            np.array([self.columns.index(column) for _, column in self.sources], dtype=np.int32),
            np.array(first, dtype=np.int64),
            *pieces,
            self.view_source,
            self.view_row,
            self.line_start,
            self.items,
            edges,
            grow,
            min_count,
            known,
            _threads.current(),
        )
        lengths = np.maximum(table.lengths - 1, 0) if edges else table.lengths
        kept = None if keep is None else keep.view(np.bool_)
        size = len(vocabulary) if kept is None else int(np.count_nonzero(kept))
        return Attributes(starts, columns, values, size, lengths), kept


class _Changes:
    """Functions of the distinct cells of a column; common prefixes of compositions are computed once."""

    def __init__(self, text: bytes, ends: IntArray) -> None:
        self.text, self.ends = text, ends
        self.known: dict[tuple[tuple[str, str | None], ...], Pieces] = {}

    def of(self, functions: tuple[tuple[str, str | None], ...]) -> Pieces:
        """Compose the functions; a missing value stays missing."""
        if functions not in self.known:
            if functions:
                before = self.of(functions[:-1])
                changed = change(*functions[-1])
                present = [cell for cell in before if cell is not None]
                left = iter(changed(present))
                whole = len(present) == len(before)
                found = list(left) if whole else [None if cell is None else next(left) for cell in before]
            else:
                found = list(decoded(self.text, self.ends))
            self.known[functions] = found
        return self.known[functions]


def numbered(table: TokenTable, column: str) -> tuple[npt.NDArray[np.int32], tuple[bytes, IntArray]]:
    """Return the cells of a column as numbers, and the distinct cells as strings of a table.

    The column without a name holds positions: 1 for first tokens, plus 2 for last ones.
    """
    if not column:
        numbers = np.zeros(table.n_tokens, dtype=np.int32)
        filled = table.lengths > 0
        numbers[table.sentences[:-1][filled]] += 1
        numbers[table.sentences[1:][filled] - 1] += 2
        return numbers, (b"", np.zeros(4, dtype=np.int64))
    if column not in table.columns:
        where = f"{table.source}: " if table.source else ""
        raise ValueError(
            f"{where}no column {shown(column)}, which the template needs; there are {', '.join(table.columns)}"
        )
    place = table.columns.index(column)
    numbers = np.empty(table.n_tokens, dtype=np.int32)
    cells = _kernels.StringTable()
    cells.number(table.bytes, *table.places(place), True, numbers)
    text, ends = cells.strings()
    return numbers, (text.tobytes(), ends)


class _Pool:
    """Pieces of text collected in one buffer."""

    def __init__(self) -> None:
        self.texts: list[bytes] = []
        self.begins: list[IntArray] = []
        self.ends: list[IntArray] = []
        self.size = 0
        self.n_pieces = 0

    def add_bytes(self, text: bytes, ends: IntArray, missing: Any = None) -> None:
        begins = np.concatenate([[0], ends[:-1]])[: len(ends)].astype(np.int64) + self.size
        if missing is not None:
            begins[missing] = -1
        self.texts.append(text)
        self.begins.append(begins)
        self.ends.append(ends + self.size)
        self.size += len(text)
        self.n_pieces += len(ends)

    def add(self, pieces: Pieces) -> None:
        present = ["" if piece is None else piece for piece in pieces]
        whole = "".join(present)
        if whole.isascii():
            text, sizes = whole.encode("ascii"), list(map(len, present))
        else:
            encoded = [piece.encode("utf-8", "surrogatepass") for piece in present]
            text, sizes = b"".join(encoded), list(map(len, encoded))
        missing = [number for number, piece in enumerate(pieces) if piece is None]
        self.add_bytes(text, np.cumsum(sizes, dtype=np.int64), np.array(missing, dtype=np.int64))

    def arrays(self) -> tuple[npt.NDArray[np.uint8], IntArray, IntArray]:
        nothing = np.zeros(0, dtype=np.int64)
        text = np.frombuffer(b"".join(self.texts), dtype=np.uint8)
        return text, np.concatenate([nothing, *self.begins]), np.concatenate([nothing, *self.ends])

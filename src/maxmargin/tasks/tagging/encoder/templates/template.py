"""Templates: attributes of tokens as functions of the columns around them.

A line of a template defines an attribute of every token (``U``) or of every pair of neighbors (``B``, at the second
one), as in CRF++, or of every segment (``S``): text in which ``%x[row,column]`` stands for a cell, with ``row``
relative to the token. ::

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

Lines that begin with ``S`` count only where a tagger scores segments (``segments=True``). The row of their macros is a
place: ``first`` or ``last`` for such a token of the segment, ``before`` or ``after`` for the one beside it, ``all`` for
all its tokens, joined by spaces: ``S0:%x[all,pos]``.

Lines that begin with ``!`` are settings. ``!optional pos``: lines that use the column ``pos`` are left out if there is
none. Others add columns (:mod:`~maxmargin.tasks.tagging.encoder.columns`): ``!learn class word`` the word classes that
are learned from column ``word`` and the labels, ``!cluster cluster word`` the clusters of words in text without labels,
if there is such text, and ``!gazetteer listed word`` where entries of gazetteers occur; a line that uses this column
stands for one line per gazetteer. ``!mention mention word`` adds four columns, ``mention:first``, ``mention:last``,
``mention:before`` and ``mention:after``: words of the longest name nearby that has the word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from maxmargin._messages import shown
from maxmargin.tasks.common.files.text import FileError, name_of
from maxmargin.tasks.common.tokens.table import TokenTable
from maxmargin.tasks.tagging.encoder.attributes import Attributes, AttributeVocabulary
from maxmargin.tasks.tagging.encoder.templates.cell_functions import FUNCTIONS as FUNCTIONS
from maxmargin.tasks.tagging.encoder.templates.macros import Items, Macro, items_of
from maxmargin.tasks.tagging.encoder.templates.plan import Plan, SegmentPlan


@dataclass(frozen=True)
class Added:
    """A column that the encoder adds.

    Attributes:
        kind: ``learn`` (labels of words), ``cluster`` (words with similar neighbors), ``gazetteer`` (listed names) or
            ``mention`` (longer names nearby).
        name: its name.
        source: the column of the words.
    """

    kind: str
    name: str
    source: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a template can use: of its name, or several whose names begin with it."""
        return tuple(f"{self.name}:{place}" for place in PLACES) if self.kind == MENTION else (self.name,)


MENTION = "mention"
PLACES = ("first", "last", "before", "after")
"""Places of the words of another mention: in its name, if that has several, and next to the word itself."""

ADDED = {
    "learn": "!learn class word",
    "cluster": "!cluster cluster word",
    "gazetteer": "!gazetteer listed word",
    MENTION: "!mention mention word",
}
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
            self.known = (*self.known, *self.added[kind].columns)
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
        segments: attributes of segments.
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
    segments: tuple[Items, ...] = ()

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
        segments: list[Items] = []
        settings = _Settings(columns, gazetteers, clusters)
        found = False
        for number, line in enumerate(text.split("\n"), 1):
            line = line.removesuffix("\r")
            try:
                if not line.strip() or line.startswith("#"):
                    continue
                if line.startswith("!"):
                    settings.read(line)
                elif line[0] in "UBS":
                    found = found or line[0] != "S"
                    lines = {"U": unigrams, "B": bigrams, "S": segments}[line[0]]
                    lines.extend(settings.lines(items_of(line, settings.known, segments=line[0] == "S")))
                else:
                    raise ValueError("a line must begin with U (tokens), B (pairs of neighbors), S (segments), # or !")
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
            tuple(segments),
        )

    @property
    def learned(self) -> tuple[str, str] | None:
        """The column of word classes and the column they are learned from; None without word classes."""
        added = self.added.get("learn")
        return None if added is None else (added.name, added.source)

    @property
    def columns_used(self) -> tuple[str, ...]:
        """The columns that a table must have, in order of first use."""
        lines = (*self.unigrams, *self.bigrams, *self.segments)
        items = (item for line in lines for item in line if isinstance(item, Macro))
        source_of = {name: added.source for added in self.added.values() for name in added.columns}
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
    def _token_plan(self) -> Plan:
        return Plan(self.unigrams)

    @cached_property
    def _edge_plan(self) -> Plan:
        return Plan([line for line in self.bigrams if any(isinstance(item, Macro) for item in line)])

    @cached_property
    def segment_plan(self) -> SegmentPlan:
        """The lines of segments, to be applied to tables."""
        return SegmentPlan(self.segments)

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

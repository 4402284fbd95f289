"""Lines of a template applied to a table of tokens: sources and views of cells, joined by a kernel.

A function is computed once per distinct cell of its column, by Python's string functions; a kernel joins the results
(``token_attributes.hpp``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin import _threads
from maxmargin._messages import shown
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.structures.deductions.segments import n_candidate_segments
from maxmargin.tasks import _kernels
from maxmargin.tasks.common.tokens.table import TokenTable
from maxmargin.tasks.tagging.encoder.attributes import Attributes, AttributeVocabulary, decoded
from maxmargin.tasks.tagging.encoder.templates.cell_functions import POSITIONS, Pieces, change
from maxmargin.tasks.tagging.encoder.templates.macros import Items, Macro


class Plan:
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
        """Return the attributes of all rows, and which ones of the vocabulary are kept; None for all.

        Args:
            table: the tokens.
            vocabulary: known attributes.
            omit: whether attributes with cells outside the sentence are dropped.
            edges: whether rows are pairs of neighbors.
            grow: whether new attributes are added to the vocabulary.
            min_count: new attributes of fewer rows are dropped.
            known: number of attributes that are kept, however rare.
        """
        tables, sources = self._arrays(table, omit)
        how = edges, grow, min_count, known, _threads.current()
        arguments: list[Any] = [vocabulary.table, *tables, self.reach, *sources, *how]
        starts, columns, values, keep = _kernels.attributes_of_tokens(*arguments)
        lengths = np.maximum(table.lengths - 1, 0) if edges else table.lengths
        kept = None if keep is None else keep.view(np.bool_)
        size = len(vocabulary) if kept is None else int(np.count_nonzero(kept))
        return Attributes(starts, columns, values, size, lengths), kept

    def _arrays(self, table: TokenTable, omit: bool) -> tuple[Any, Any]:
        """Return the arguments of kernels: sentences, cells and their numbers; sources, pieces, views and lines."""
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
        tables = (
            np.ascontiguousarray(table.sentences, dtype=np.int64),
            np.stack(cells) if cells else np.zeros((0, table.n_tokens), dtype=np.int32),
            np.array([len(ends) for _, ends in texts], dtype=np.int64),
        )
        return tables, (
            np.array([self.columns.index(column) for _, column in self.sources], dtype=np.int32),
            np.array(first, dtype=np.int64),
            *pool.arrays(),
            self.view_source,
            self.view_row,
            self.line_start,
            self.items,
        )


class SegmentPlan(Plan):
    """Lines of segments, whose views show places; the first attribute of every segment is its length.

    Candidates are all segments of up to ``longest`` tokens, in the order of
    :func:`maxmargin.structures.candidate_segments`.
    """

    def __init__(self, lines: Sequence[Items]) -> None:
        super().__init__(lines)
        self.reach = 1

    def of_segments(
        self,
        table: TokenTable | IntArray,
        vocabulary: AttributeVocabulary,
        longest: int,
        omit: bool = False,
        *,
        chosen: npt.NDArray[np.bool_] | None = None,
        min_count: int = 1,
    ) -> tuple[Attributes, npt.NDArray[np.bool_] | None]:
        """Return the attributes of all candidates, and which ones of the vocabulary are kept; None for all.

        Args:
            table: the tokens; or, without lines, the lengths of sentences.
            vocabulary: known attributes.
            longest: the most tokens of a segment.
            omit: whether attributes with cells outside the sentence are dropped.
            chosen: only these candidates have rows, whose new attributes are added to the vocabulary; None for all,
                without new ones.
            min_count: new attributes of fewer rows are dropped.
        """
        if isinstance(table, TokenTable):
            lengths, (tables, sources) = table.lengths, self._arrays(table, omit)
        else:
            lengths, nothing, none = table, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
            tables = offsets_of(lengths), np.zeros((0, int(lengths.sum())), dtype=np.int32), nothing
            sources = (
                none,
                nothing,
                np.zeros(0, dtype=np.uint8),
                nothing,
                nothing,
                none,
                none,
                np.zeros(1, np.int64),
                nothing,
            )
        rows = np.zeros(0, dtype=np.uint8) if chosen is None else chosen.view(np.uint8)
        how = longest, rows, chosen is not None, min_count, 0, _threads.current()
        arguments: list[Any] = [vocabulary.table, *tables, *sources, *how]
        starts, columns, values, keep = _kernels.attributes_of_segments(*arguments)
        kept = None if keep is None else keep.view(np.bool_)
        size = len(vocabulary) if kept is None else int(np.count_nonzero(kept))
        counts = n_candidate_segments(lengths, longest)
        if chosen is not None:
            counts = np.diff(np.append(0, np.cumsum(chosen))[offsets_of(counts)])
        return Attributes(starts, columns, values, size, counts), kept


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

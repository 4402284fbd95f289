"""Treebanks in CoNLL-U: reading them, and writing them back with other trees.

A path may be ``-`` for standard input or output, and a file may be compressed. Files that cannot be read raise
:class:`FileError`: ``FILE, line N: what is wrong; what to do``. Comments, ranges of words and empty nodes are not
tokens, but are written back as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin.structures._arrays import integers
from maxmargin.structures.base import IntArray
from maxmargin.tasks.common.files.text import AnyPath, name_of, open_output, read_text
from maxmargin.tasks.common.files.text import FileError as FileError
from maxmargin.tasks.common.tokens import line_formats
from maxmargin.tasks.common.tokens.conllu_objects import of_conllu
from maxmargin.tasks.common.tokens.line_formats import CONLLU, FirstLine, Layout
from maxmargin.tasks.common.tokens.splice import with_names
from maxmargin.tasks.common.tokens.table import Codes, TokenTable

Tree = tuple[IntArray, list[str]]
"""Heads of the tokens of a sentence, counted from 1, with 0 for the root, shape ``(n,)``, and their relations."""

MISSING = ("_", "")
"""Cells that hold nothing."""

_ID, _HEAD, _RELATION = (CONLLU.index(name) for name in ("id", "head", "deprel"))


@dataclass(frozen=True, eq=False)
class Treebank:
    """Sentences of CoNLL-U.

    Attributes:
        table: the tokens, with the ten columns of CoNLL-U.
        data: the file, for writing it back; None if the sentences do not come from a file.
    """

    table: TokenTable
    data: bytes | None = None

    @property
    def n_sentences(self) -> int:
        """Number of sentences."""
        return self.table.n_sentences

    @property
    def n_tokens(self) -> int:
        """Number of tokens."""
        return self.table.n_tokens

    @property
    def lengths(self) -> IntArray:
        """Tokens per sentence, shape ``(n_sentences,)``."""
        return self.table.lengths

    def __len__(self) -> int:
        return self.n_sentences

    @property
    def heads(self) -> IntArray:
        """Heads of all tokens, counted from 1 in their sentence, 0 for the root, shape ``(n_tokens,)``.

        FileError if one is missing, is not a token of its sentence or is the token itself.
        """
        heads = self.known_heads
        if (missing := np.flatnonzero(heads < 0)).size:
            raise self._wrong_head(
                int(missing[0]), "_", "give a file with trees, or train with partial=True (--partial)"
            )
        return heads

    @cached_property
    def known_heads(self) -> IntArray:
        """As :attr:`heads`, but -1 where one is missing (``_``)."""
        codes, names = self.table.codes(_HEAD)
        missing = np.array([name in MISSING for name in names], dtype=np.bool_)[codes]
        heads = _numbers(names)[codes]
        length = np.repeat(self.lengths, self.lengths)
        wrong = np.flatnonzero(~missing & ((heads < 0) | (heads > length) | (heads == self.places)))
        if wrong.size:
            raise self._wrong_head(int(wrong[0]), names[codes[wrong[0]]], "give a file with trees")
        return heads

    def _wrong_head(self, token: int, head: str, remedy: str) -> FileError:
        n = int(self.lengths[np.searchsorted(self.table.sentences, token, side="right") - 1])
        return FileError(
            f"{self.table.where(token)}: the head {shown(head)} is not one of the other tokens, 1 to {n}, or 0 for the "
            f"root; {remedy}"
        )

    @property
    def places(self) -> IntArray:
        """The number of each token in its sentence, from 1, shape ``(n_tokens,)``."""
        return np.arange(self.n_tokens) - np.repeat(self.table.sentences[:-1], self.lengths) + 1

    @cached_property
    def relations(self) -> tuple[Codes, list[str]]:
        """Relations of all tokens as codes, shape ``(n_tokens,)``, and their names in order of appearance."""
        return self.table.codes(_RELATION)

    def trees(self) -> list[Tree]:
        """The tree of each sentence; FileError if a head is missing."""
        (codes, names), heads = self.relations, self.heads
        return [
            (heads[first:last].copy(), [names[code] for code in codes[first:last].tolist()])
            for first, last in pairwise(self.table.sentences.tolist())
        ]

    def without_relations(self) -> Treebank:
        """The same sentences and heads, with the relation ``_`` at all tokens."""
        found = Treebank(self.table, self.data)
        vars(found)["known_heads"] = self.known_heads
        vars(found)["relations"] = np.zeros(self.n_tokens, dtype=np.int32), ["_"]
        return found

    def part(self, first: int, last: int) -> Treebank:
        """The sentences ``first`` to ``last - 1``, without the text of their file."""
        return Treebank(self.table.part(first, last))

    @classmethod
    def of(cls, sentences: Iterable[Any]) -> Treebank:
        """The treebank of ``conllu.TokenList`` objects, or of any lists of dictionaries with the same keys.

        ValueError if a sentence is not such a list, or has no tokens.
        """
        found = cls(of_conllu(_checks.listed("X", sentences, "a list of sentences", sized=False)))
        empty = np.flatnonzero(found.lengths == 0)
        if empty.size:
            raise ValueError(f"sentence {int(empty[0])} has no tokens; leave it out, or give it at least one")
        found._check_numbers()
        return found

    def _check_numbers(self) -> None:
        """FileError unless the tokens of each sentence are numbered from 1."""
        codes, names = self.table.codes(_ID)
        wrong = np.flatnonzero(_numbers(names)[codes] != self.places)
        if wrong.size and not (codes == codes[0]).all():  # lists without numbers have "_" everywhere
            token = int(wrong[0])
            raise FileError(
                f"{self.table.where(token)}: a token has the number {shown(names[codes[token]])} instead of "
                f"{int(self.places[token])}; number the tokens of a sentence from 1, as heads refer to these numbers"
            )


def _numbers(names: Sequence[str]) -> IntArray:
    """Numbers of at most 9 digits, and -1 for all other texts."""
    good = (len(name) <= 9 and name.isascii() and name.isdigit() for name in names)
    return np.array([int(name) if one else -1 for name, one in zip(names, good, strict=True)], dtype=np.int64)


def read_treebank(path: AnyPath) -> Treebank:
    """Read a file in CoNLL-U, with or without trees."""
    data = read_text(path)
    if not data.strip():
        raise line_formats.no_tokens(path)
    cells = line_formats.scan(path, data, FirstLine.of(data, Layout.CONLLU))
    if not len(cells.lines):
        raise line_formats.no_tokens(path)
    table = TokenTable(data, cells.begin, cells.end, cells.sentences, CONLLU, cells.lines, name_of(path))
    found = Treebank(table, data)
    found._check_numbers()
    return found


def write_treebank(
    treebank: Treebank, heads: IntArray, relations: tuple[Codes, Sequence[str]], *, out: AnyPath | BinaryIO
) -> None:
    """Write a treebank with other heads and relations; everything else stays as it is, byte for byte.

    Args:
        treebank: the sentences.
        heads: head of each token in its sentence, from 1, and 0 for the root, shape ``(n_tokens,)``.
        relations: relations as codes, shape ``(n_tokens,)``, and their names, ``_`` for none.
        out: a binary stream or a file name, compressed if it ends in ``.gz``; ``-`` is standard output.
    """
    heads, codes, names = _checked_trees(treebank, heads, *relations)
    if treebank.data is None:
        treebank = _with_text(treebank)
    assert treebank.data is not None
    table = treebank.table
    texts = [str(head).encode() for head in range(int(heads.max(initial=0)) + 1)]
    both = np.stack([heads, codes + len(texts)], axis=1).reshape(-1)
    begin, end = (
        np.stack([table.places(_HEAD)[side], table.places(_RELATION)[side]], axis=1).reshape(-1) for side in (0, 1)
    )
    content = with_names(treebank.data, begin, end, both.astype(np.int32), [*texts, *(name.encode() for name in names)])
    with open_output(out) as stream:
        stream.write(content)


def _checked_trees(
    treebank: Treebank, heads: IntArray, codes: Codes, names: Sequence[str]
) -> tuple[IntArray, IntArray, Sequence[str]]:
    """Heads, codes of relations and their names; ValueError if they cannot be those of the treebank."""
    n = treebank.n_tokens
    heads, codes = np.asarray(heads), np.asarray(codes)
    if heads.shape != (n,) or codes.shape != (n,):
        raise ValueError(
            f"there are {n} tokens, and {heads.size} heads and {codes.size} relations; give each token one"
        )
    whole = (integers(heads, "heads"), integers(codes, "the codes of relations"))
    lengths = np.repeat(treebank.lengths, treebank.lengths)
    wrong = np.flatnonzero((whole[0] < 0) | (whole[0] > lengths) | (whole[0] == treebank.places))
    if wrong.size:
        token = int(wrong[0])
        raise ValueError(
            f"{treebank.table.where(token)}: the head {int(whole[0][token])} is not one of the other tokens, 1 to "
            f"{int(lengths[token])}, or 0 for the root; give heads within their sentence"
        )
    wrong = np.flatnonzero((whole[1] < 0) | (whole[1] >= len(names)))
    if wrong.size:
        token = int(wrong[0])
        raise ValueError(
            f"{treebank.table.where(token)}: the relation {int(whole[1][token])} has no name, as there are "
            f"{len(names)}; give codes from 0"
        )
    for name in names:
        if not isinstance(name, str) or not name or any(c.isspace() for c in name):
            raise ValueError(f"a relation must be a text without spaces, got {shown(name)}; use _ for none")
    return (*whole, names)


def _with_text(treebank: Treebank) -> Treebank:
    """The same sentences as the text of a file; ValueError for a cell that a line of CoNLL-U cannot hold."""
    table = treebank.table
    columns = [table.cells(column) for column in range(len(table.columns))]
    for name, own in zip(table.columns, columns, strict=True):
        for token, cell in enumerate(own):
            if not cell or "\t" in cell or "\n" in cell or "\r" in cell:
                raise ValueError(
                    f"{table.where(token)}: {name} is {shown(cell)}, and a cell of CoNLL-U is not empty and has no tab "
                    "or line break; write _ for nothing, and a space for a tab"
                )
    columns[_ID] = [str(place) for place in treebank.places.tolist()]
    rows = ["\t".join(row) for row in zip(*columns, strict=True)]
    bounds = pairwise(table.sentences.tolist())
    data = "".join("\n".join(rows[first:last]) + "\n\n" for first, last in bounds).encode()
    cells = line_formats.scan("the sentences", data, FirstLine.of(data, Layout.CONLLU))
    return Treebank(TokenTable(data, cells.begin, cells.end, cells.sentences, CONLLU), data)

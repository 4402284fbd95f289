"""Numbers of the attributes of tokens, from which features are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.tasks.common.tokens.table import WORD, TokenTable, packed
from maxmargin.tasks.parsing.encoder.templates import ATTRIBUTES
from maxmargin.tasks.parsing.io.treebank import MISSING

_COLUMNS = (WORD, "lemma", "upos", "xpos", "feats")
_MADE = ("suffix", "prefix", "shape")
"""Attributes that are made of the word."""

_KINDS = {"VERB": 1, "PUNCT": 2, "CCONJ": 3, "SCONJ": 3}
"""Kinds of words that are counted between head and modifier, by their tags."""

_ROOT, _UNKNOWN = 0, -1


@dataclass(frozen=True, eq=False)
class Nodes:
    """The tokens of sentences, each sentence after a node for its root.

    Attributes:
        lengths: tokens of each sentence, shape ``(n_sentences,)``.
        numbers: of the attributes, -1 for values unknown in training, int32, shape ``(n_nodes, n_attributes)``.
        kinds: kinds of the words, uint8, shape ``(n_nodes,)``.
    """

    lengths: IntArray
    numbers: npt.NDArray[np.int32]
    kinds: npt.NDArray[np.uint8]

    @property
    def tags(self) -> npt.NDArray[np.int32]:
        """Tags of the nodes, with a number of their own for unknown ones, int32, shape ``(n_nodes,)``."""
        return np.ascontiguousarray(self.numbers[:, ATTRIBUTES.index("upos")] + 1)

    def select(self, sentences: IntArray) -> Nodes:
        """The nodes of consecutive sentences ``sentences[0]`` to ``sentences[-1]``."""
        offsets = offsets_of(self.lengths + 1)
        own = slice(offsets[sentences[0]], offsets[sentences[-1] + 1])
        return Nodes(self.lengths[sentences], self.numbers[own], self.kinds[own])


def _shape(word: str) -> str:
    """Kinds of characters without repeats: ``Xx`` for ``Word``, ``d`` for ``1984``."""
    kinds = ("X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word)
    found = ""
    for kind in kinds:
        if not found.endswith(kind):
            found += kind
    return found[:6]


def _made(word: str) -> tuple[str, ...]:
    """Values of the attributes that a word gives: in lower case, and :data:`_MADE`."""
    low = word.lower()
    return low, low[-3:], low[:2], _shape(word)


@dataclass(frozen=True, eq=False)
class TokenNumbers:
    """The values of each attribute that occur in training, and their numbers.

    Attributes:
        known: for each of the attributes the number of each value, from 1.
    """

    known: tuple[dict[str, int], ...]

    @classmethod
    def learn(cls, table: TokenTable) -> Self:
        """Number the values in a table, in order of appearance."""
        found = cls(tuple({} for _ in ATTRIBUTES))
        found._columns(table, grow=True)
        return found

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that were filled in training."""
        known = dict(zip(ATTRIBUTES, self.known, strict=True))
        return tuple(column for column in _COLUMNS if known[column].keys() - {"_"})

    @property
    def without_tags(self) -> bool:
        """Whether some tokens of the training data had no tag."""
        known = self.known[ATTRIBUTES.index("upos")]
        return any(value in known for value in MISSING)

    def nodes(self, table: TokenTable) -> Nodes:
        """Return the nodes of a table of tokens."""
        numbers, kinds = self._columns(table, grow=False)
        lengths = table.lengths
        token = np.ones(len(numbers) + len(lengths), dtype=np.bool_)
        token[offsets_of(lengths + 1)[:-1]] = False
        rows = np.full((len(token), len(ATTRIBUTES)), _ROOT, dtype=np.int32)
        rows[token] = numbers
        every = np.zeros(len(token), dtype=np.uint8)
        every[token] = kinds
        return Nodes(lengths, rows, every)

    def _columns(self, table: TokenTable, *, grow: bool) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
        """Numbers of all tokens, and their kinds; each distinct cell is looked up once."""

        def number(attribute: str, values: list[str]) -> npt.NDArray[np.int32]:
            known = self.known[ATTRIBUTES.index(attribute)]
            if grow:
                return np.array([known.setdefault(value, len(known) + 1) for value in values], dtype=np.int32)
            return np.array([known.get(value, _UNKNOWN) for value in values], dtype=np.int32)

        out = np.empty((table.n_tokens, len(ATTRIBUTES)), dtype=np.int32)
        kinds = np.zeros(table.n_tokens, dtype=np.uint8)
        if not table.n_tokens:
            return out, kinds
        for column in _COLUMNS:
            if column not in table.columns:
                out[:, ATTRIBUTES.index(column)] = number(column, ["_"])[0]
                continue
            codes, values = table.codes(table.columns.index(column))
            if column == WORD:
                for attribute, own in zip((WORD, *_MADE), zip(*map(_made, values), strict=True), strict=True):
                    out[:, ATTRIBUTES.index(attribute)] = number(attribute, list(own))[codes]
                continue
            out[:, ATTRIBUTES.index(column)] = number(column, values)[codes]
            if column == "upos":
                kinds = np.array([_KINDS.get(value, 0) for value in values], dtype=np.uint8)[codes]
        return out, kinds

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays of a model file: for each attribute all values in UTF-8, and where they begin and end."""
        found: dict[str, npt.NDArray[Any]] = {}
        for attribute, known in zip(ATTRIBUTES, self.known, strict=True):
            text, ends = packed(list(known))
            found[f"{attribute}_text"] = np.frombuffer(text, dtype=np.uint8)
            found[f"{attribute}_ends"] = ends
        return found

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The inverse of :meth:`arrays`; ValueError or KeyError if they are damaged."""
        known = []
        for attribute in ATTRIBUTES:
            text, ends = arrays[f"{attribute}_text"], arrays[f"{attribute}_ends"]
            good = text.dtype == np.uint8 and text.ndim == 1 and ends.dtype == np.int64 and ends.ndim == 1 and len(ends)
            if not good or ends[0] != 0 or ends[-1] != len(text) or (np.diff(ends) < 0).any():
                raise ValueError(f"the values of {attribute} are damaged")
            whole = text.tobytes()
            values = [whole[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(ends.tolist())]
            own = {value: number for number, value in enumerate(values, start=1)}
            if len(own) != len(values):
                raise ValueError(f"a value of {attribute} occurs twice")
            known.append(own)
        return cls(tuple(known))

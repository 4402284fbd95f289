"""Gazetteers: lists of names, and where their entries occur in a text, as further columns for templates.

An entry is one or more words. At each token the longest entry that begins there counts; a token that several of them
cover gets the longest one, the first of equal ones. Its cell says where in the entry it stands, as in IOBES:
``city:B``, ``city:I``, ``city:E``, or ``city:S`` for an entry of one word; ``city/LOC:B`` if the entry has a label.
Entries also match words of another case, as ``city:b`` and so on: a name in capitals, or a list in lower case. Other
cells are empty.

All tokens go down a trie together, one level at a time: a level is a sorted array of pairs of a node and a word. Cost:
``O(n_tokens log n_entries)`` per level that is reached.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import PurePath
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin._messages import shown
from maxmargin.structures._arrays import offsets_of, ranges
from maxmargin.structures.base import IntArray
from maxmargin.tasks.common.files.text import lines_of, problem, read_text, words_of
from maxmargin.tasks.common.tokens.table import Codes, TokenTable
from maxmargin.tasks.tagging.encoder.attributes import AttributeVocabulary, decoded, numbers_of
from maxmargin.tasks.tagging.encoder.templates.plan import numbered

Given = Any
"""Gazetteers by name, each a file or entries; or files, perhaps as ``NAME=FILE``; or :class:`Gazetteers`."""

PLACES = "BIES"
"""Places of tokens in an entry: its beginning, inside, its end, and the only one."""


@dataclass(frozen=True, eq=False)
class Gazetteer:
    """One list.

    Attributes:
        name: its name in attributes.
        cells: the words of all entries, numbers of the shared vocabulary, int32.
        ends: entry ``e`` has the words ``cells[ends[e]:ends[e + 1]]``, shape ``(n_entries + 1,)``, int64.
        labels: label of each entry, a place in ``label_names``, shape ``(n_entries,)``, int32.
        label_names: the labels; the first is "" for none.
    """

    name: str
    cells: Codes
    ends: IntArray
    labels: Codes
    label_names: tuple[str, ...]

    @property
    def values(self) -> tuple[str, ...]:
        """The cells of the new column: "", then eight for each label, exact matches before those of other case."""
        names = [f"{self.name}/{label}" if label else self.name for label in self.label_names]
        return ("", *(f"{name}:{place}" for name in names for place in PLACES + PLACES.lower()))

    def values_of(self, tries: tuple[_Trie, _Trie], words: tuple[IntArray, IntArray], sentences: IntArray) -> Codes:
        """Return the cell of each token, a place in :attr:`values`.

        Args:
            tries: the entries as they are, and in lower case.
            words: numbers of the tokens' words, -1 if no entry has them, for both tries.
            sentences: bounds of the sentences.
        """
        found = [trie.longest(word, sentences) for trie, word in zip(tries, words, strict=True)]
        start = np.concatenate([one[0] for one in found])
        length = np.concatenate([one[1] for one in found])
        label = np.concatenate([self.labels[one[2]] for one in found])
        other_case = np.repeat([0, 1], [len(one[0]) for one in found])
        # The last assignment to a token counts: the longest match, an exact one before others, the first one.
        order = np.lexsort((-start, -other_case, length))
        start, length, label, other_case = start[order], length[order], label[order], other_case[order]
        tokens = ranges(start, start + length)
        first = np.repeat(start, length)
        last = np.repeat(start + length - 1, length)
        place = np.where(first == last, 3, np.where(tokens == first, 0, np.where(tokens == last, 2, 1)))
        values = np.zeros(int(sentences[-1]), dtype=np.int32)
        values[tokens] = 1 + 8 * np.repeat(label, length) + 4 * np.repeat(other_case, length) + place
        return values


class _Trie:
    """Entries as levels of sorted pairs of a node and a word."""

    def __init__(self, cells: IntArray, ends: IntArray, n_words: int) -> None:
        self.n_words = max(n_words, 1)
        lengths = np.diff(ends)
        node = np.zeros(len(lengths), dtype=np.int64)
        self.levels: list[IntArray] = []
        self.entry: list[IntArray] = []
        """Per level, the first entry that ends at each node; -1 for none."""
        alive = np.arange(len(lengths))
        for depth in range(int(lengths.max(initial=0))):
            alive = alive[lengths[alive] > depth]
            keys = node[alive] * self.n_words + cells[ends[alive] + depth]
            level, at = np.unique(keys, return_inverse=True)
            node[alive] = at
            entry = np.full(len(level), -1, dtype=np.int64)
            done = alive[lengths[alive] == depth + 1][::-1]
            entry[node[done]] = done  # the last assignment counts: the first entry
            self.levels.append(level)
            self.entry.append(entry)

    def longest(self, words: IntArray, sentences: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return start, length and entry of the longest match at each token that has one."""
        last = np.repeat(sentences[1:], np.diff(sentences))
        start = np.flatnonzero(words >= 0)
        node = np.zeros(len(start), dtype=np.int64)
        length = np.zeros(len(words), dtype=np.int64)
        entry = np.full(len(words), -1, dtype=np.int64)
        for depth, (level, ending) in enumerate(zip(self.levels, self.entry, strict=True)):
            inside = start + depth < last[start]
            start, node = start[inside], node[inside]
            word = words[start + depth]
            start, node, word = start[word >= 0], node[word >= 0], word[word >= 0]
            keys = node * self.n_words + word
            at = np.searchsorted(level, keys)
            there = level[np.minimum(at, len(level) - 1)] == keys
            start, node = start[there], at[there]
            whole = ending[node] >= 0
            length[start[whole]], entry[start[whole]] = depth + 1, ending[node[whole]]
            if not len(start):
                break
        found = np.flatnonzero(length)
        return found, length[found], entry[found]


@dataclass(frozen=True, eq=False)
class Gazetteers:
    """Several lists with one vocabulary of words.

    Attributes:
        words: the words of all entries.
        lists: the gazetteers.
    """

    words: AttributeVocabulary
    lists: tuple[Gazetteer, ...]

    def __repr__(self) -> str:
        sizes = ", ".join(f"{one.name}: {len(one.labels)}" for one in self.lists)
        return f"{type(self).__name__}({sizes}; {self.digest})"

    @property
    def digest(self) -> str:
        """A hash of the content, short enough to be shown."""
        found = hashlib.sha256()
        for value in self.state().values():
            found.update(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
        return found.hexdigest()[:12]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the lists."""
        return tuple(one.name for one in self.lists)

    @classmethod
    def read(cls, given: Given) -> Gazetteers:
        """Read gazetteers: files, as they are or as ``NAME=FILE``, or by name a file or entries.

        A file has an entry per line, words separated by blanks, optionally with a TAB and a label; a label applies
        to its entry only. The name of a file without its extensions is the name of the gazetteer, by default.
        """
        if isinstance(given, Gazetteers):
            return given
        if isinstance(given, Mapping):
            named = [(str(name), entries) for name, entries in given.items()]
        else:
            paths = [given] if isinstance(given, (str, PathLike)) else _checks.listed("gazetteers", given, "files")
            named = [named_file(path) for path in paths]
        words = AttributeVocabulary()
        lists: list[Gazetteer] = []
        for name, entries in named:
            if not name or any(mark in name for mark in ":/") or name.split() != [name]:
                raise ValueError(f"the name of a gazetteer must be a word without ':' and '/', got {shown(name)}")
            if name in (one.name for one in lists):
                raise ValueError(f"two gazetteers are called {shown(name)}; name one of them, as NAME=FILE")
            lists.append(_parsed(name, _lines(name, entries), words))
        return cls(words, tuple(lists))

    @cached_property
    def _lower(self) -> tuple[AttributeVocabulary, IntArray]:
        """The words in lower case, and the number of each word there."""
        vocabulary = AttributeVocabulary()
        numbers = numbers_of(vocabulary, [name.lower() for name in self.words.names], grow=True)
        return vocabulary, numbers.astype(np.int64)

    @cached_property
    def _tries(self) -> list[tuple[_Trie, _Trie]]:
        vocabulary, lower = self._lower
        return [
            (
                _Trie(one.cells.astype(np.int64), one.ends, len(self.words)),
                _Trie(lower[one.cells], one.ends, len(vocabulary)),
            )
            for one in self.lists
        ]

    def columns(self, table: TokenTable, names: Sequence[str], *, source: str) -> TokenTable:
        """Return the table with a column per gazetteer, called ``names``."""
        numbers, (text, ends) = numbered(table, source)
        cells = decoded(text, ends)
        exact = numbers_of(self.words, cells)[numbers].astype(np.int64)
        lower = numbers_of(self._lower[0], [cell.lower() for cell in cells])[numbers].astype(np.int64)
        for one, tries, name in zip(self.lists, self._tries, names, strict=True):
            table = table.with_column(name, one.values_of(tries, (exact, lower), table.sentences), one.values)
        return table

    def state(self) -> dict[str, Any]:
        """Return the entries of a model file."""
        state: dict[str, Any] = {
            "gazetteer_names": list(self.names),
            "gazetteer_labels": [list(one.label_names) for one in self.lists],
            **{f"gazetteer_words_{key}": array for key, array in self.words.to_arrays().items()},
        }
        for at, one in enumerate(self.lists):
            arrays = {"cells": one.cells, "ends": one.ends, "labels": one.labels}
            state |= {f"gazetteer_{at}_{key}": array for key, array in arrays.items()}
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`state`; ValueError or KeyError if it is damaged."""
        names, labels = state["gazetteer_names"], state["gazetteer_labels"]
        words = AttributeVocabulary.from_arrays({key: state[f"gazetteer_words_{key}"] for key in ("text", "ends")})
        if not _texts(names) or not isinstance(labels, list) or len(labels) != len(names):
            raise ValueError("its gazetteers have no names; save the model again")
        lists = []
        for at, (name, own) in enumerate(zip(names, labels, strict=True)):
            cells, ends, label = (state[f"gazetteer_{at}_{key}"] for key in ("cells", "ends", "labels"))
            if (
                not _texts(own)
                or not _within(cells, np.int32, 0, len(words))
                or not _within(label, np.int32, 0, len(own))
                or not _within(ends, np.int64, 0, len(cells) + 1)
                or len(ends) != len(label) + 1
                or ends[0] != 0
                or ends[-1] != len(cells)
                or (np.diff(ends) < 1).any()
            ):
                raise ValueError(f"its gazetteer {shown(name)} is damaged; save the model again")
            lists.append(Gazetteer(name, cells, ends, label, tuple(own)))
        return cls(words, tuple(lists))


def _texts(given: Any) -> bool:
    return isinstance(given, list) and bool(given) and all(isinstance(text, str) for text in given)


def _within(array: Any, kind: Any, least: int, beyond: int) -> bool:
    if not isinstance(array, np.ndarray) or array.dtype != kind or array.ndim != 1:
        return False
    return not len(array) or bool(least <= array.min() and array.max() < beyond)


def named_file(path: Any) -> tuple[str, Any]:
    """Return the name and the file of ``NAME=FILE``, or of a file alone."""
    if not isinstance(path, (str, PathLike)):
        raise ValueError(f"a gazetteer must be a file, as FILE or NAME=FILE, got {shown(path)}; or give a dictionary")
    name, equals, file = str(path).partition("=")
    if isinstance(path, str) and equals and "/" not in name:
        return name, file
    return PurePath(path).name.partition(".")[0], path


def _lines(name: str, entries: Any) -> list[tuple[str, bytes | str]]:
    """Return the lines of a file or the given entries, with their places for errors."""
    if isinstance(entries, (str, PathLike)):
        return [(f"line {at}", line) for at, line in enumerate(lines_of(read_text(entries)), 1)]
    if not isinstance(entries, Iterable):
        raise ValueError(f"gazetteer {shown(name)}: expected a file or entries, got {shown(entries)}")
    found: list[tuple[str, bytes | str]] = []
    for at, entry in enumerate(entries):
        if not isinstance(entry, str):
            raise ValueError(f"gazetteer {shown(name)}, entry {at}: expected a string, got {shown(entry)}")
        found.append((f"entry {at}", entry))
    return found


def _parsed(name: str, lines: list[tuple[str, bytes | str]], words: AttributeVocabulary) -> Gazetteer:
    label_names: dict[str, int] = {"": 0}
    flat: list[str] = []
    lengths: list[int] = []
    labels: list[int] = []
    for where, line in lines:
        text, _, label = (line if isinstance(line, str) else line.decode()).partition("\t")
        entry, given = words_of(text), words_of(label)
        if not entry:
            continue
        if len(given) > 1:
            raise problem(f"gazetteer {name}", None, f"{where}: the label {shown(label)} is not one word")
        flat += entry
        lengths.append(len(entry))
        labels.append(label_names.setdefault(given[0] if given else "", len(label_names)))
    if not lengths:
        raise problem(f"gazetteer {name}", None, "it has no entries; give one per line")
    cells: npt.NDArray[np.int32] = numbers_of(words, flat, grow=True)
    return Gazetteer(name, cells, offsets_of(lengths), np.array(labels, dtype=np.int32), tuple(label_names))

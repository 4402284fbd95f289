"""Clusters of words with similar neighbors, from text without labels, as one more column for templates.

The exchange algorithm puts words into classes that maximize the likelihood of a bigram model of classes, and classes
are merged into a binary tree (``word_clusters.hpp``). The cell of a word is its path from the root, ``0110100``: its
first characters are a coarser class. Words that the text has too rarely have an empty cell. Digits count as 0; a word
that the text does not have is looked up in lower case, then with a first capital.

The result depends on the text alone: words are numbered by their frequency, then by their first appearance, and start
in the classes 0, 1, ..., K - 1, 0, 1, ... in this order. Cost: a pass over the words takes about a second for a million
tokens in 256 classes, and there are at most :data:`PASSES`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin._messages import shown
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray
from maxmargin.tasks import _kernels
from maxmargin.tasks.common.files.text import problem, read_text
from maxmargin.tasks.common.tokens.table import Codes, TokenTable
from maxmargin.tasks.tagging.encoder.attributes import AttributeVocabulary, decoded, numbers_of
from maxmargin.tasks.tagging.encoder.templates.cell_functions import change
from maxmargin.tasks.tagging.encoder.templates.plan import numbered

CLASSES = 256
"""Number of classes; fewer for small texts."""
LEAST = 3
"""Words with fewer occurrences are in no class."""
PASSES = 15
SETTLED = 0.002
"""Passes end when a smaller share of the words moves."""
_FIXED = 2
"""Classes of their own: the boundary of sentences, and all rare words."""

Counts = tuple[IntArray, Codes, IntArray]
"""Rows of neighbors: starts, words and counts."""


@dataclass(frozen=True, eq=False)
class PlainText:
    """Sentences of words, without labels.

    Attributes:
        words: the different words, normalized (digits are 0).
        numbers: all words in order, places in ``words``, int32.
        sentences: bounds of the sentences, shape ``(n_sentences + 1,)``, int64.
    """

    words: AttributeVocabulary
    numbers: Codes
    sentences: IntArray

    def __repr__(self) -> str:
        content = self.numbers.tobytes() + self.sentences.tobytes() + "\n".join(self.words.names).encode()
        digest = hashlib.sha256(content).hexdigest()[:12]
        return f"{type(self).__name__}({len(self.numbers)} words, {len(self.sentences) - 1} sentences; {digest})"

    @classmethod
    def of(cls, tables: Iterable[tuple[TokenTable, str]], given: Any = None) -> PlainText:
        """Join columns of words of tables, files of text, and sentences as lists of words.

        Args:
            tables: tables, each with the column of the words.
            given: a file or several, with a sentence per line, or lists of words among them; None for none; or text
                that has been read.
        """
        words = AttributeVocabulary()
        numbers: list[Codes] = []
        lengths: list[IntArray] = []

        def add(cells: list[str], places: IntArray | Codes, sizes: IntArray) -> None:
            numbers.append(numbers_of(words, _normal(cells), grow=True)[places])
            lengths.append(sizes)

        for table, source in tables:
            places, (text, ends) = numbered(table, source)
            add(decoded(text, ends), places, table.lengths)
        if isinstance(given, PlainText):
            add(given.words.names, given.numbers, np.diff(given.sentences))
            given = None
        lists: list[list[str]] = []
        for one in _listed(given):
            if isinstance(one, (str, PathLike)):
                lines = read_text(one).decode("utf-8").split("\n")
                strings = _kernels.StringTable()
                found, starts = _kernels.words_of_texts(strings, lines, not _is_tokenized(lines))
                if not len(found):
                    raise problem(one, None, "it has no words; give text with a sentence per line")
                text, ends = strings.strings()
                add(decoded(text.tobytes(), ends), found, np.diff(starts))
            else:
                lists.append(one)
        if lists:
            table = TokenTable.of_lists(lists, ["word"])
            places, (text, ends) = numbered(table, "word")
            add(decoded(text, ends), places, table.lengths)
        none = np.zeros(0, dtype=np.int32)  # not int64, which would double the memory of all words
        sizes = np.concatenate([none, *lengths])
        return cls(words, np.concatenate([none, *numbers]), offsets_of(sizes))


@dataclass(frozen=True, eq=False)
class WordClusters:
    """Words with their classes.

    Attributes:
        words: words, normalized.
        classes: class of each word, shape ``(n_words,)``, int32.
        paths: the path of each class in the tree, a string of 0 and 1.
    """

    words: AttributeVocabulary
    classes: Codes
    paths: tuple[str, ...]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.words)} words, {len(self.paths)} classes)"

    @classmethod
    def learn(cls, text: PlainText, n_classes: int | None = None, least: int = LEAST) -> WordClusters:
        """Learn the classes of the words that occur ``least`` times or more.

        By default there are :data:`CLASSES`, or one for three words if these are fewer.
        """
        count = np.bincount(text.numbers, minlength=len(text.words))
        frequent = np.flatnonzero(count >= least)
        frequent = frequent[np.argsort(-count[frequent], kind="stable")]
        n = len(frequent)
        k = max(min(CLASSES, n // 3) if n_classes is None else min(n_classes, n), 1)
        place = np.full(len(text.words), n + 1, dtype=np.int32)  # the boundary is n, a rare word n + 1
        place[frequent] = np.arange(n, dtype=np.int32)
        classes = np.concatenate([np.arange(n) % k, [k, k + 1]]).astype(np.int32)
        after, before = _neighbors(place[text.numbers], text.sentences, n)
        for _ in range(PASSES):
            moved = _kernels.exchange_words(*after, *before, k + _FIXED, _FIXED, n, classes)
            if moved <= SETTLED * n:
                break
        paths = _paths(_merges(after, classes, k), k)
        kept = np.zeros(len(text.words), dtype=bool)
        kept[frequent] = True
        return cls(text.words.only(kept), classes[place[np.flatnonzero(kept)]], paths)

    def columns(self, table: TokenTable, *, name: str, source: str) -> TokenTable:
        """Return the table with one more column, the path of each word."""
        numbers, (text, ends) = numbered(table, source)
        cells = _normal(decoded(text, ends))
        found = numbers_of(self.words, cells)
        for other in (str.lower, str.capitalize):
            unknown = np.flatnonzero(found < 0)
            found[unknown] = numbers_of(self.words, [other(cells[i]) for i in unknown.tolist()])
        classes = np.append(self.classes, np.int32(len(self.paths)))[found]  # -1 selects the appended entry
        return table.with_column(name, classes[numbers], (*self.paths, ""))

    def state(self) -> dict[str, Any]:
        """Return the entries of a model file."""
        arrays = {f"cluster_words_{key}": array for key, array in self.words.to_arrays().items()}
        return {"cluster_paths": list(self.paths), "cluster_classes": self.classes, **arrays}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`state`; ValueError or KeyError if it is damaged."""
        paths, classes = state["cluster_paths"], state["cluster_classes"]
        words = AttributeVocabulary.from_arrays({key: state[f"cluster_words_{key}"] for key in ("text", "ends")})
        if (
            not isinstance(paths, list)
            or not all(isinstance(path, str) for path in paths)
            or not isinstance(classes, np.ndarray)
            or classes.dtype != np.int32
            or classes.shape != (len(words),)
            or (len(classes) and not 0 <= classes.min() <= classes.max() < len(paths))
        ):
            raise ValueError("its clusters of words are damaged; save the model again")
        return cls(words, classes, tuple(paths))


def _normal(cells: list[str]) -> list[str]:
    return [cell or "" for cell in change("digits", None)(cells)]


def _listed(given: Any) -> list[Any]:
    """Return files and lists of words; ValueError if something else is among them."""
    if given is None:
        return []
    if isinstance(given, (str, PathLike)):
        return [given]
    if not isinstance(given, Iterable):
        raise ValueError(f"text must be a file, several, or sentences as lists of words, got {shown(given)}")
    found = list(given)
    for at, one in enumerate(found):
        if not isinstance(one, (str, PathLike, list, tuple)):
            raise ValueError(f"text {at}: expected the name of a file or a list of words, got {shown(one)}")
    return found


def _is_tokenized(lines: Sequence[str]) -> bool:
    """Return whether commas are words of their own, as in the text of taggers."""
    words = [word for line in lines[:1000] for word in line.split()]
    return sum(word == "," for word in words) >= sum(len(word) > 1 and word.endswith(",") for word in words)


def _neighbors(places: Codes, sentences: IntArray, n: int) -> tuple[Counts, Counts]:
    """Return the words after and before each word, where sentences begin and end with the word ``n``."""
    lengths = np.diff(sentences)
    filled = lengths > 0
    row = np.full(len(places) + int(filled.sum()) + 1, n, dtype=np.int64)
    row[np.arange(len(places)) + np.repeat(np.cumsum(filled), lengths)] = places
    pairs, count = np.unique(row[:-1] * (n + 2) + row[1:], return_counts=True)
    first, second = pairs // (n + 2), pairs % (n + 2)
    order = np.argsort(second, kind="stable")

    def rows(of: IntArray, others: IntArray, counts: npt.NDArray[Any]) -> Counts:
        return offsets_of(np.bincount(of, minlength=n + 2)), others.astype(np.int32), counts.astype(np.int64)

    return rows(first, second, count), rows(second[order], first[order], count[order])


def _merges(after: Counts, classes: Codes, k: int) -> npt.NDArray[np.int32]:
    """Return the pairs of classes that are merged into a tree, shape ``(k - 1, 2)``."""
    starts, words, count = after
    counts = np.zeros((k + _FIXED, k + _FIXED), dtype=np.int64)
    first = classes[np.repeat(np.arange(len(classes)), np.diff(starts))]
    np.add.at(counts, (first, classes[words]), count)
    pairs = np.zeros((k - 1, 2), dtype=np.int32)
    _kernels.merge_classes(counts, _FIXED, pairs.reshape(-1))
    return pairs


def _paths(pairs: npt.NDArray[np.int32], k: int) -> tuple[str, ...]:
    """Return the path of each class from the root: 0 for the first of a merged pair, 1 for the second."""
    paths = [""] * k
    for first, second in pairs[::-1].tolist():
        paths[first], paths[second] = paths[first] + "0", paths[first] + "1"
    return tuple(paths)

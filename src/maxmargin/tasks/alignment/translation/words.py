"""Words as the models of word alignment see them: numbered once, normalized, counted, described by their spelling."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from itertools import chain, pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from maxmargin._messages import shown
from maxmargin._vectors import rises
from maxmargin.structures._arrays import offsets_of, ranges
from maxmargin.structures.base import IntArray
from maxmargin.tasks.alignment.io.compact import CompactSentences

Sentences = Sequence[Sequence[str]]
Int32Array = npt.NDArray[np.int32]

MAX_LETTERS = 64
"""Longer words are compared by their first letters."""

_DIGIT = re.compile(r"\d")


def normalize(word: str) -> str:
    """Lower case, composed (NFC). Normalizing is idempotent."""
    if word.isascii():
        return word.lower()
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", word).casefold())
    return unicodedata.normalize("NFC", folded)


def shape(normalized: str) -> str:
    """A normalized word with every decimal digit as ``0``: ``1,234.5`` is ``0,000.0``, ``36e`` is ``00e``."""
    return normalized if normalized.isalpha() else _DIGIT.sub("0", normalized)


def _numbers(values: Sequence[str]) -> tuple[Int32Array, list[str]]:
    """The number of each string among the distinct ones, and these in order of first occurrence."""
    index: dict[str, int] = {}
    numbers = [index.setdefault(value, len(index)) for value in values]
    return np.array(numbers, dtype=np.int32), list(index)


class Spelling(NamedTuple):
    """The spelling of ``n`` words, as the kernels of features read it.

    Attributes:
        start: offsets of the words in ``letters``, shape ``(n + 1,)``.
        letters: code points without case and accents, at most :data:`MAX_LETTERS` of a word.
        normalized: equal numbers for words with the same normalized form, shape ``(n,)``.
        digits: equal numbers for words with the same digits, -1 for those without any, shape ``(n,)``.
        kind: 1 for punctuation, plus 2 for words with a capital letter first, shape ``(n,)``.
    """

    start: IntArray
    letters: npt.NDArray[np.uint32]
    normalized: Int32Array
    digits: Int32Array
    kind: npt.NDArray[np.uint8]

    def select(self, words: IntArray) -> Spelling:
        """The spelling of some of the words."""
        first, last = self.start[words], self.start[words + 1]
        letters = self.letters[ranges(first, last)]
        return Spelling(offsets_of(last - first), letters, self.normalized[words], self.digits[words], self.kind[words])


class DistinctWords:
    """The distinct words of a text: everything that depends on a word alone is computed once per word.

    Args:
        words: the words, each of them once.
    """

    def __init__(self, words: list[str]) -> None:
        odd = [word for word in words if not isinstance(word, str)]
        if odd:
            raise ValueError(f"words must be strings, got {shown(odd[0])}; split sentences into strings")
        self.words = words
        self._forms: dict[int, tuple[Int32Array, list[str]]] = {}
        self._numbers: dict[tuple[WordVocabulary, int], Int32Array] = {}

    def forms(self, letters: int) -> tuple[Int32Array, list[str]]:
        """The number of each word's form, and the forms.

        These are normalized words with ``letters=0``, otherwise their shapes cut after so many letters: numbers are
        distinct words, but share stems.
        """
        if letters not in self._forms:
            if letters:
                numbers, whole = self.forms(0)
                cut, forms = _numbers([shape(word)[:letters] for word in whole])
                self._forms[letters] = cut[numbers], forms
            else:
                self._forms[0] = _numbers([normalize(word) for word in self.words])
        return self._forms[letters]

    def numbers_in(self, vocabulary: WordVocabulary, letters: int) -> Int32Array:
        """The number of each word's form in a vocabulary, -1 for those that it does not have."""
        if (vocabulary, letters) not in self._numbers:
            numbers, forms = self.forms(letters)
            found = np.array([vocabulary.index.get(form, -1) for form in forms], dtype=np.int32)
            self._numbers[vocabulary, letters] = found[numbers]
        return self._numbers[vocabulary, letters]

    @cached_property
    def spelling(self) -> Spelling:
        """The spelling of the words."""
        letters = [_letters(word) for word in self.words]
        digits = ["" if word.isalpha() else "".join(_DIGIT.findall(word)) for word in self.words]
        kinds = [(not any(map(str.isalnum, word))) + 2 * word[:1].isupper() for word in self.words]
        return Spelling(
            offsets_of([len(word) for word in letters]),
            np.frombuffer("".join(letters).encode("utf-32-le", "surrogatepass"), dtype=np.uint32),
            _numbers([shape(word) for word in self.forms(0)[1]])[0][self.forms(0)[0]],
            _numbers(["", *digits])[0][1:] - np.int32(1),
            np.array(kinds, dtype=np.uint8),
        )


def _letters(word: str) -> str:
    """The letters of a word to compare: without case, accents and compatibility variants."""
    if word.isascii():
        return word.lower()[:MAX_LETTERS]
    parts = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", word).casefold())
    return "".join(letter for letter in parts if not unicodedata.combining(letter))[:MAX_LETTERS]


@dataclass(frozen=True, eq=False)
class IndexedBitext:
    """Sentence pairs whose tokens are numbers of distinct words.

    Attributes:
        words: the distinct words of both sides, perhaps with others.
        source_start: offsets of the source sentences in ``source``, shape ``(n + 1,)``.
        source: the source tokens as numbers of ``words``.
        target_start: offsets of the target sentences in ``target``.
        target: the target tokens.
    """

    words: DistinctWords
    source_start: IntArray
    source: Int32Array
    target_start: IntArray
    target: Int32Array

    @classmethod
    def of(cls, source: Sentences, target: Sentences) -> Self:
        """Number the words of sentence pairs, given as lists of words."""
        if len(source) != len(target):
            raise ValueError(f"{len(source)} source sentences but {len(target)} target sentences; give one for each")
        match source, target:
            case CompactSentences(), CompactSentences() if source.words is target.words:
                return cls(DistinctWords(source.words), source.start, source.tokens, target.start, target.tokens)
        index: dict[str, int] = {}
        sides: list[Any] = []
        for sentences in (source, target):
            start = offsets_of(np.fromiter(map(len, sentences), dtype=np.int64, count=len(sentences)))
            for word in dict.fromkeys(chain.from_iterable(sentences)):
                index.setdefault(word, len(index))
            tokens = map(index.__getitem__, chain.from_iterable(sentences))
            sides += [start, np.fromiter(tokens, dtype=np.int32, count=int(start[-1]))]
        return cls(DistinctWords(list(index)), *sides)

    def __len__(self) -> int:
        return len(self.source_start) - 1

    @cached_property
    def grid_start(self) -> IntArray:
        """Offsets of the cells (word pairs) of each sentence pair, shape ``(n + 1,)``."""
        return offsets_of(np.diff(self.source_start) * np.diff(self.target_start))

    def select(self, pairs: npt.ArrayLike) -> Self:
        """The given sentence pairs; the words stay the same."""
        chosen = np.asarray(pairs, dtype=np.int64)
        sides: list[Any] = []
        for start, tokens in ((self.source_start, self.source), (self.target_start, self.target)):
            first, last = start[chosen], start[chosen + 1]
            sides += [offsets_of(last - first), tokens[ranges(first, last)]]
        return type(self)(self.words, *sides)

    def between(self, first: int, last: int) -> Self:
        """Consecutive sentence pairs; tokens and words are shared."""
        sides: list[Any] = []
        for start, tokens in ((self.source_start, self.source), (self.target_start, self.target)):
            bounds = start[first : last + 1]
            sides += [bounds - bounds[0], tokens[bounds[0] : bounds[-1]]]
        return type(self)(self.words, *sides)


@dataclass(frozen=True, eq=False)
class WordVocabulary:
    """Distinct words, numbered from 0.

    Attributes:
        words: the words.
        counts: a count for each word, int64, shape ``(n,)``.
    """

    words: list[str]
    counts: IntArray = field(repr=False)

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def index(self) -> dict[str, int]:
        """The number of each word."""
        return {word: number for number, word in enumerate(self.words)}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays of a model file: ``text`` (all words in UTF-8), ``offsets`` (in bytes) and ``counts``."""
        encoded = [word.encode("utf-8", "surrogatepass") for word in self.words]
        return {
            "text": np.frombuffer(b"".join(encoded), dtype=np.uint8),
            "offsets": offsets_of([len(word) for word in encoded]),
            "counts": self.counts,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Self:
        """The inverse of :meth:`arrays`; ValueError if they are damaged."""
        for name, dtype in (("text", np.uint8), ("offsets", np.int64), ("counts", np.int64)):
            if name not in arrays:
                raise ValueError(f"the vocabulary has no array {shown(name)}; save the model again")
            if arrays[name].dtype != dtype or arrays[name].ndim != 1:
                raise ValueError(f"{name} of the vocabulary must be one-dimensional {np.dtype(dtype)}; save it again")
        text, offsets, counts = arrays["text"], arrays["offsets"], arrays["counts"]
        if len(offsets) != len(counts) + 1 or offsets[0] != 0 or offsets[-1] != len(text) or not rises(offsets):
            raise ValueError("the offsets of the vocabulary do not fit its text and counts; save the model again")
        if bool(np.any(counts < 0)):
            raise ValueError("the vocabulary has negative counts; save the model again")
        blob, bounds = text.tobytes(), offsets.tolist()
        try:
            words = [blob[begin:end].decode("utf-8", "surrogatepass") for begin, end in pairwise(bounds)]
        except UnicodeDecodeError as error:
            raise ValueError("the vocabulary is not UTF-8 text; save the model again") from error
        if len(set(words)) != len(words):
            raise ValueError("the vocabulary has a word twice; save the model again")
        return cls(words, counts)


def fingerprints(source: Sentences, target: Sentences) -> IntArray:
    """A hash of 64 bits for each sentence pair."""
    numbers = (
        blake2b(f"{' '.join(first)}\n{' '.join(second)}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for first, second in zip(source, target, strict=True)
    )
    return np.frombuffer(b"".join(numbers), dtype="<i8").astype(np.int64)

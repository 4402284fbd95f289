"""Words as the models of word alignment see them: normalized, numbered, counted."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import IntArray

_DIGIT = re.compile(r"\d")


def normalize(word: str) -> str:
    """Lower case, composed (NFC), every decimal digit as ``0``: ``1,234.5`` is ``0,000.0``, ``36E`` is ``00e``.

    Normalizing twice changes nothing more.
    """
    if word.isascii():
        lower = word.lower()
        return lower if lower.isalpha() else _DIGIT.sub("0", lower)
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", word).casefold())
    return _DIGIT.sub("0", unicodedata.normalize("NFC", folded))


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Distinct words, numbered from 0.

    Attributes:
        words: the words.
        counts: how often each came, int64, shape ``(n,)``.
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
        """What a model file holds: ``text`` (all words in UTF-8), ``offsets`` (in bytes) and ``counts``."""
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
                raise ValueError(f"the vocabulary has no array {name!r}; save the model again")
            if arrays[name].dtype != dtype or arrays[name].ndim != 1:
                raise ValueError(f"{name} of the vocabulary must be one-dimensional {np.dtype(dtype)}; save it again")
        text, offsets, counts = arrays["text"], arrays["offsets"], arrays["counts"]
        if (
            len(offsets) != len(counts) + 1
            or offsets[0] != 0
            or offsets[-1] != len(text)
            or bool(np.any(np.diff(offsets) < 0))
        ):
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


def fingerprints(source: Sequence[Sequence[str]], target: Sequence[Sequence[str]]) -> IntArray:
    """A number for each sentence pair, the same for the same words (two pairs in 10^19 share one by chance)."""
    numbers = (
        blake2b(f"{' '.join(first)}\n{' '.join(second)}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for first, second in zip(source, target, strict=True)
    )
    return np.frombuffer(b"".join(numbers), dtype="<i8").astype(np.int64)

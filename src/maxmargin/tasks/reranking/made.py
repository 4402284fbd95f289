"""Lists and lattices of a made-up language, for examples, tests and the demo: nothing has to be downloaded.

Sentences come from a chain of words, and a noisy channel hides each word among words that sound like it. Hypotheses say
what may have been said: some have a wrong word, lack a short one or have one too many. Features are the log scores of
two models and the length. The weights of the decoder that ordered the lists are not the best ones, as they never are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from maxmargin import _checks
from maxmargin.encoders.data.inputs import WordLattice
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.reranking.io.lattices import Lattices
from maxmargin.tasks.reranking.io.lists import NBestLists

SPEECH_FEATURES = ("acoustic", "lm", "length")
"""Features of :func:`made_transcripts` and :func:`made_lattices`."""

SPEECH_WEIGHTS = (1.0, 3.0, 0.0)
"""Weights of the decoder that ordered them."""

TRANSLATION_FEATURES = ("tm", "lm", "distortion", "length")
"""Features of :func:`made_lists`."""

TRANSLATION_WEIGHTS = (1.0, 4.0, 6.0, 0.0)
"""Weights of the decoder that ordered them."""

_ALIKE = 4  # words that sound alike
_SHORT = 16  # short words, which are easily lost or heard where there are none
_NO_WORD = -1
_BLOCK = 64  # lists whose samples are in memory at once


def made_lists(n: int = 200, seed: int = 0, *, size: int = 50) -> NBestLists:
    """Translations: lists with a translation model, a language model, reordered words and the length; two references.

    Args:
        n: number of lists.
        seed: random seed; the lists of a seed are always the same, and the language is that of all seeds.
        size: hypotheses of a list; short sentences have fewer.
    """
    _checks.integer("n", n, least=1)
    _checks.integer("size", size, least=1)
    rng = np.random.default_rng([seed, 1])
    channel = _Channel.drawn(rng, n, swaps=True)
    lists = _lists(rng, channel, size, TRANSLATION_FEATURES, np.array(TRANSLATION_WEIGHTS))
    texts = _language().texts
    references = []
    for at in range(n):
        words = channel.said[at, : channel.lengths[at]]
        # The second translator prefers another word of a family now and then.
        other = np.where(rng.random(len(words)) < 0.2, _family(words)[:, 1], words)
        references.append((texts(words), texts(other)))
    return replace(lists, references=references)


def made_transcripts(n: int = 200, seed: int = 0, *, size: int = 50) -> NBestLists:
    """Transcripts of speech: lists with an acoustic score, a language model and the length; arguments as before."""
    _checks.integer("n", n, least=1)
    _checks.integer("size", size, least=1)
    rng = np.random.default_rng([seed, 2])
    channel = _Channel.drawn(rng, n)
    lists = _lists(rng, channel, size, SPEECH_FEATURES, np.array(SPEECH_WEIGHTS))
    return replace(lists, references=channel.references())


def made_lattices(n: int = 50, seed: int = 0) -> Lattices:
    """Lattices of speech with the features of :func:`made_transcripts` on their edges.

    A node is a place in the sentence with the last word before it, so that edges know the score of two words.

    Args:
        n: number of lattices.
        seed: random seed; the lattices of a seed are always the same.
    """
    _checks.integer("n", n, least=1)
    channel = _Channel.drawn(np.random.default_rng([seed, 3]), n)
    return Lattices(
        [channel.lattice(at) for at in range(n)],
        SPEECH_FEATURES,
        [f"made-{at}" for at in range(n)],
        channel.references(),
    )


@dataclass(frozen=True, eq=False)
class _Language:
    """Words, and how they follow each other.

    Attributes:
        words: the words; each :data:`_ALIKE` in a row sound alike, and the first :data:`_SHORT` are short.
        following: log probability of a word behind another, the last row at the beginning; ``(n + 1, n)``.
    """

    words: list[str]
    following: FloatArray

    def texts(self, numbers: IntArray) -> str:
        return " ".join([self.words[word] for word in numbers.tolist()])


@cache
def _language() -> _Language:
    rng = np.random.default_rng(2009)
    onsets, codas = [*"bdfgklmnprstvz", "sh", "tr", "st", "pl"], ["", "n", "l", "r", "s", "m", "nd", "st"]
    vowels = np.array(["a", "e", "i", "o", "u"])
    words: list[str] = []
    seen: set[str] = set()
    while len(words) < 400:
        stem = "" if len(words) < _SHORT else rng.choice(onsets) + rng.choice(vowels)
        onset, coda = rng.choice(onsets), "" if len(words) < _SHORT else rng.choice(codas)
        family = [f"{stem}{onset}{vowel}{coda}" for vowel in rng.permutation(vowels)[:_ALIKE]]
        if not seen.intersection(family):
            words += family
            seen.update(family)
    n = len(words)
    # Short words are frequent; each word is often followed by some that it favors.
    often = rng.gamma(1.0, size=n) / np.arange(4, n + 4)
    often /= often.sum()
    favored = np.zeros((n + 1, n))
    for row in favored:
        row[rng.choice(n, 12, replace=False)] = rng.gamma(1.0, size=12)
    favored /= favored.sum(axis=1, keepdims=True)
    return _Language(words, np.log(0.7 * favored + 0.3 * often))


def _family(words: IntArray) -> IntArray:
    """Words that sound like the given ones, themselves first; shape ``(..., _ALIKE)``."""
    return words[..., None] // _ALIKE * _ALIKE + (words[..., None] + np.arange(_ALIKE)) % _ALIKE


@dataclass(frozen=True, eq=False)
class _Channel:
    """Sentences and what may be heard instead, slot after slot.

    Slots 0, 2, ... are those of words; between them a short word may be heard that nobody said.

    Attributes:
        said: words of each sentence, shape ``(n, length)``; only the first ``lengths`` count.
        lengths: number of words of each sentence.
        heard: alternatives of each slot, shape ``(n, slots, alternatives)``, :data:`_NO_WORD` for none.
        scores: their scores; minus infinity where there is no alternative.
        turned: pairs of word slots that the source has the other way round, shape ``(n, pairs)``; empty without any.
    """

    said: IntArray
    lengths: IntArray
    heard: IntArray
    scores: FloatArray
    turned: npt.NDArray[np.bool_]

    @classmethod
    def drawn(cls, rng: np.random.Generator, n: int, *, swaps: bool = False) -> _Channel:
        language = _language()
        lengths = rng.integers(5, 17, n)
        length = 16
        chances = np.cumsum(np.exp(language.following), axis=1)
        said = np.empty((n, length), dtype=np.int64)
        last = np.full(n, len(language.words))
        for at in range(length):
            draw = rng.random(n) * chances[last, -1]
            said[:, at] = last = (chances[last] < draw[:, None]).sum(axis=1)
        heard = np.full((n, 2 * length, _ALIKE + 1), _NO_WORD)
        scores = np.full(heard.shape, -np.inf)
        heard[:, ::2, :_ALIKE] = _family(said)
        scores[:, ::2, 0] = rng.normal(0.0, 1.6, said.shape)
        scores[:, ::2, 1:_ALIKE] = rng.normal(-3.0, 1.6, (*said.shape, _ALIKE - 1))
        lost = (said < _SHORT) | (rng.random(said.shape) < 0.1)
        scores[:, ::2, -1] = np.where(lost, rng.normal(-2.0, 1.6, said.shape), -np.inf)
        scores[:, 1::2, -1] = rng.normal(0.0, 1.6, said.shape)
        heard[:, 1::2, 0] = rng.integers(0, _SHORT, said.shape)
        more = rng.random(said.shape) < 0.25
        scores[:, 1::2, 0] = np.where(more, rng.normal(-3.0, 1.6, said.shape), -np.inf)
        beyond = np.repeat(np.arange(length) >= lengths[:, None], 2, axis=1)
        scores[:, ::2] -= 5.0  # logarithms of densities: the same for all alternatives
        scores[beyond] = -np.inf
        scores[beyond, -1] = 0.0
        turned = np.zeros((n, length // 2 if swaps else 0), dtype=bool)
        if swaps:
            inside = 2 * np.arange(length // 2) + 1 < lengths[:, None]
            turned = inside & (rng.random(turned.shape) < 0.25)
        scores = np.round(8.0 * scores, 3)  # decoders add the scores of many frames, which are not independent
        return cls(said, lengths, heard, scores, turned)

    def references(self) -> list[tuple[str, ...]]:
        language = _language()
        return [
            (language.texts(words[:length]),) for words, length in zip(self.said, self.lengths.tolist(), strict=True)
        ]

    def samples(
        self, rng: np.random.Generator, rows: slice, count: int
    ) -> tuple[IntArray, FloatArray, npt.NDArray[np.uint64]]:
        """Draw hypotheses of some sentences, better ones more often.

        Returns:
            Words of each, ``(n_rows, count, slots)``, its features (score, language model, swaps, length), and a number
            that tells different word sequences apart.
        """
        heard, scores = self.heard[rows], self.scores[rows]
        n, slots, _ = heard.shape
        noise = rng.gumbel(size=(n, count, slots, heard.shape[2])).astype(np.float32)
        noise[:, 0] = 0.0
        chosen = np.argmax(scores[:, None].astype(np.float32) / 12.0 + noise, axis=3)
        place = np.arange(n)[:, None, None], np.arange(slots), chosen
        words, score = heard[place], scores[place].sum(axis=2)
        swaps = np.zeros((n, count))
        if self.turned.shape[1]:
            words, swaps = self._ordered(rng, rows, words)
        language = _language()
        last = np.full((n, count), len(language.words))
        lm, key = np.zeros((n, count)), np.zeros((n, count), dtype=np.uint64)
        for slot in range(slots):
            word = words[:, :, slot]
            there = word != _NO_WORD
            lm += np.where(there, language.following[last, word], 0.0)
            key = np.where(there, key * np.uint64(0x9E3779B97F4A7C15) + word.astype(np.uint64) + np.uint64(1), key)
            last = np.where(there, word, last)
        length = np.count_nonzero(words != _NO_WORD, axis=2)
        return words, np.stack([score, np.round(lm, 3), 0.0 - swaps, length], axis=2), key

    def _ordered(self, rng: np.random.Generator, rows: slice, words: IntArray) -> tuple[IntArray, FloatArray]:
        """Hypotheses with some pairs of words swapped, and how many of these pairs the source has in order."""
        turned = self.turned[rows][:, None]
        pairs = turned.shape[2]
        wrong = rng.random((words.shape[0], words.shape[1], pairs)) < np.where(turned, 0.4, 0.1)
        inside = 2 * np.arange(pairs) + 1 < self.lengths[rows, None]
        wrong &= inside[:, None]
        wrong[:, 0] = turned[:, 0]  # one hypothesis in the order of the source
        first, second = words[:, :, ::4], words[:, :, 2::4]
        ordered = words.copy()
        ordered[:, :, ::4] = np.where(wrong, second, first)
        ordered[:, :, 2::4] = np.where(wrong, first, second)
        return ordered, np.count_nonzero(wrong != turned, axis=2).astype(np.float64)

    def lattice(self, at: int) -> WordLattice:
        language = _language()
        edges: list[tuple[int, int]] = []
        words: list[str | None] = []
        features: list[tuple[float, float, float]] = []
        states = {len(language.words): 0}
        nodes = 1
        for heard, scores in zip(self.heard[at].tolist(), self.scores[at].tolist(), strict=True):
            arcs = [(word, score) for word, score in zip(heard, scores, strict=True) if score > -np.inf]
            if len(arcs) == 1 and arcs[0][0] == _NO_WORD:
                continue  # nothing to choose
            reached: dict[int, int] = {}
            for last, node in states.items():
                for word, score in arcs:
                    state = last if word == _NO_WORD else word
                    if state not in reached:
                        reached[state] = nodes
                        nodes += 1
                    edges.append((node, reached[state]))
                    spoken = word != _NO_WORD
                    words.append(language.words[word] if spoken else None)
                    lm = round(float(language.following[last, word]), 3) if spoken else 0.0
                    features.append((score, lm, float(spoken)))
            states = reached
        for node in states.values():
            edges.append((node, nodes))
            words.append(None)
            features.append((0.0, 0.0, 0.0))
        return WordLattice(np.array(features), np.array(edges, dtype=np.int64), words, 0, nodes)


def _lists(
    rng: np.random.Generator, channel: _Channel, size: int, names: tuple[str, ...], weights: FloatArray
) -> NBestLists:
    """Different hypotheses of each sentence, the best of the decoder first."""
    language = _language()
    texts: list[str] = []
    counts: list[int] = []
    values: list[FloatArray] = []
    totals: list[FloatArray] = []
    columns = [0, 1, 2, 3] if len(names) == 4 else [0, 1, 3]
    for begin in range(0, len(channel.lengths), _BLOCK):
        words, features, keys = channel.samples(rng, slice(begin, begin + _BLOCK), 3 * size)
        for some, given, key in zip(words, features[:, :, columns], keys, strict=True):
            different = np.unique(key, return_index=True)[1]
            total = np.round(given[different] @ weights, 6)
            best = np.lexsort((different, -total))[:size]
            rows = different[best]
            texts += [language.texts(row[row != _NO_WORD]) for row in some[rows]]
            counts.append(len(rows))
            values.append(given[rows])
            totals.append(total[best])
    return NBestLists(
        texts=texts,
        offsets=offsets_of(counts),
        names=names,
        values=np.concatenate(values),
        ids=[str(number) for number in range(len(counts))],
        totals=np.concatenate(totals),
    )

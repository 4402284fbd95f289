"""100-best lists of translations: reading them, BLEU and NIST scores, pseudo-references, features for re-ranking."""

from __future__ import annotations

import gzip
import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

ORDER, NIST_ORDER = 4, 5


@dataclass
class Candidates:
    """The translations of one sentence with the decoder's features, and the reference.

    ``rescored``: the scores of weights that came with the data, if there are any.
    """

    texts: list[list[str]]
    values: np.ndarray
    reference: list[str]
    rescored: np.ndarray | None = None
    quality: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.quality = [sentence_bleu(text, self.reference) for text in self.texts]


def read(folder: Path) -> list[Candidates]:
    """The lists of system A with all its features; empty lines, which pad short lists, left out."""
    system = folder / "sysA_dev2"
    if not system.exists():
        raise SystemExit(f"{system} does not exist: give --data or set MAXMARGIN_DATA")

    def column(name: str) -> np.ndarray:
        with gzip.open(system / name, "rt", encoding="latin-1") as lines:
            return np.array([[float(x) for x in line.split()] or [0.0] for line in lines])

    model = [line.split() for line in (system / "rescore-model.ini.rat.out").read_text().splitlines() if line.strip()]
    decoder, columns, weights = column("ffvals.gz"), [], []
    for name, weight in model:
        file, _, number = name.removeprefix("FileFF:").partition(",")
        columns.append(decoder[:, int(number) - 1] if number else column(f"{file}.gz")[:, 0])
        weights.append(float(weight))
    values = np.stack(columns, axis=1)
    with gzip.open(system / "100best.gz", "rt", encoding="latin-1") as lines:
        texts = [line.split() for line in lines]
    references = (folder / "dev2_en.al").read_text(encoding="latin-1").splitlines()
    size, found = len(texts) // len(references), []
    for i, reference in enumerate(references):
        own = [at for at in range(i * size, (i + 1) * size) if texts[at]]
        scores = values[own] @ weights
        found.append(Candidates([texts[at] for at in own], values[own], reference.split(), scores))
    return found


def made_up(n: int = 12, size: int = 8) -> list[Candidates]:
    """Lists of noisy copies of a sentence; one feature says how noisy a copy is, roughly."""
    rng, found = np.random.default_rng(0), []
    for _ in range(n):
        reference = [f"w{k}" for k in rng.integers(0, 30, size=10)]
        texts, values = [], []
        for _ in range(size):
            noise = rng.random()
            texts.append([f"w{rng.integers(0, 30)}" if rng.random() < noise else word for word in reference])
            values.append([-noise + 0.3 * rng.normal(), rng.normal(), rng.normal()])
        found.append(Candidates(texts, np.array(values), reference))
    return found


def ngrams(words: list[str], n: int) -> Counter[tuple[str, ...]]:
    """How often each n-gram occurs."""
    return Counter(zip(*(words[k:] for k in range(n)), strict=False))


def matches(words: list[str], reference: list[str]) -> np.ndarray:
    """For n = 1 to 4 the n-grams that the reference has, and all; shape (4, 2)."""
    pairs = ((ngrams(words, n), ngrams(reference, n)) for n in range(1, ORDER + 1))
    return np.array([[(mine & theirs).total(), mine.total()] for mine, theirs in pairs], dtype=np.float64)


def bleu(counts: np.ndarray, length: int, reference: int, smoothing: float = 0.0) -> float:
    """BLEU (Papineni and others 2002) of summed counts; ``smoothing`` is added to all but unigrams."""
    counts = counts + smoothing * (np.arange(ORDER) > 0)[:, None]
    if not counts.all():
        return 0.0
    brevity = min(0.0, 1.0 - reference / max(length, 1))
    return math.exp(brevity + float(np.log(counts[:, 0] / counts[:, 1]).mean()))


def sentence_bleu(words: list[str], reference: list[str]) -> float:
    """BLEU of one sentence, smoothed by one (Lin and Och 2004)."""
    return bleu(matches(words, reference), len(words), len(reference), 1.0)


def best(one: Candidates) -> int:
    """The candidate of the highest sentence BLEU, the first of equals."""
    return int(np.argmax(one.quality))


def pseudo_references(one: Candidates, levels: int) -> np.ndarray:
    """A mask of the candidates with one of the highest sentence BLEUs; of all only if they are equal."""
    values = np.unique(one.quality)[::-1]
    return np.asarray(one.quality) >= values[min(levels, max(len(values) - 1, 1)) - 1]


def separable(one: Candidates) -> bool:
    """Whether some direction has every pseudo-reference of the highest BLEU above every other candidate of the list."""
    good = pseudo_references(one, 1)
    pairs = (one.values[~good][:, None] - one.values[good][None]).reshape(-1, one.values.shape[1])
    zero = np.zeros(pairs.shape[1])
    return bool(linprog(zero, A_ub=pairs, b_ub=np.full(len(pairs), -1.0), bounds=(None, None)).status == 0)


def costs(one: Candidates) -> np.ndarray:
    """By how much each candidate's sentence BLEU is below the highest of the list."""
    quality = np.asarray(one.quality)
    return np.asarray(quality.max() - quality)


def features(lists: list[Candidates], train: np.ndarray, *, trigrams: bool) -> list[Any]:
    """Decoder features in units of their spread within lists; with ``trigrams`` also counts of English trigrams.

    Only the training lists decide what the spread is, and which trigrams there are.
    """
    spread = np.sqrt(np.mean([lists[i].values.var(axis=0) for i in train], axis=0))
    dense = [one.values / np.where(spread > 0.0, spread, 1.0) for one in lists]
    if not trigrams:
        return dense
    grams = [[ngrams(["<s>", "<s>", *text, "</s>"], 3) for text in one.texts] for one in lists]
    seen = dict.fromkeys(chain.from_iterable(found for i in train for found in grams[i]))
    column = {gram: at for at, gram in enumerate(seen)}
    joined = []
    for values, found in zip(dense, grams, strict=True):
        known = [{column[gram]: count for gram, count in one.items() if gram in column} for one in found]
        starts = np.cumsum([0, *map(len, known)])
        at = np.fromiter(chain.from_iterable(known), dtype=np.int64, count=starts[-1])
        counts = np.fromiter(chain.from_iterable(one.values() for one in known), dtype=np.float64, count=starts[-1])
        sparse = sp.csr_array((counts, at, starts), shape=(len(known), len(column)))
        joined.append(sp.csr_array(sp.hstack([sp.csr_array(values), sparse], format="csr")))
    return joined


def shipped_choice(lists: list[Candidates]) -> list[int]:
    """What the weights that came with the data choose; empty if there are none."""
    if any(one.rescored is None for one in lists):
        return []
    return [int(np.argmax(one.rescored)) for one in lists]  # type: ignore[arg-type]


def scores(lists: list[Candidates], picks: list[int]) -> dict[str, float]:
    """BLEU and NIST (Doddington 2002) of the chosen candidates as a corpus."""
    chosen = [one.texts[pick] for one, pick in zip(lists, picks, strict=True)]
    references = [one.reference for one in lists]
    counts = sum(matches(words, reference) for words, reference in zip(chosen, references, strict=True))
    lengths = sum(map(len, chosen)), sum(map(len, references))
    return {"bleu": bleu(np.asarray(counts), *lengths), "nist": nist(chosen, references)}


def nist(chosen: list[list[str]], references: list[list[str]]) -> float:
    """The information of matched n-grams up to 5, an n-gram being worth log2(count of its prefix / its own count)."""
    counts = [Counter[tuple[str, ...]]() for _ in range(NIST_ORDER + 1)]
    counts[0][()] = sum(map(len, references))
    for reference in references:
        for n in range(1, NIST_ORDER + 1):
            counts[n].update(ngrams(reference, n))
    total = 0.0
    for n in range(1, NIST_ORDER + 1):
        gained, all_grams = 0.0, 0
        for words, reference in zip(chosen, references, strict=True):
            mine = ngrams(words, n)
            all_grams += mine.total()
            for gram, count in (mine & ngrams(reference, n)).items():
                gained += count * math.log2(counts[n - 1][gram[:-1]] / counts[n][gram])
        total += gained / max(all_grams, 1)
    ratio = min(1.0, sum(map(len, chosen)) / max(counts[0][()], 1))
    # The penalty is 0.5 where the translations have two thirds of the words of the references.
    return total * math.exp(math.log(0.5) / math.log(1.5) ** 2 * math.log(ratio) ** 2) if ratio > 0.0 else 0.0

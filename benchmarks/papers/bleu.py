"""100-best lists of translations: reading them, BLEU and NIST scores of a choice, features for re-ranking."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.feature_extraction.text import CountVectorizer

from maxmargin.tasks.reranking import Bleu, Judged, NBestLists, RerankingEncoder, made_lists, read_nbest, score

NIST_ORDER = 5


def judged(lists: NBestLists) -> Judged:
    """The lists with the BLEU statistics of their hypotheses."""
    assert lists.references is not None
    return Judged.of(lists, lists.references, (Bleu(),))


def read(folder: Path) -> tuple[Judged, list[int]]:
    """The lists of system A with all its features, and what the weights choose that came with the data."""
    system = folder / "sysA_dev2"
    if not system.exists():
        raise SystemExit(f"{system} does not exist: give --data or set MAXMARGIN_DATA")
    model = [line.split() for line in (system / "rescore-model.ini.rat.out").read_text().splitlines() if line.strip()]
    names = [name.removeprefix("FileFF:") for name, _ in model]
    files = dict.fromkeys(f"{name.partition(',')[0]}.gz" for name in names)
    lists = read_nbest(
        system / "100best.gz",
        features=[system / file for file in files],
        references=folder / "dev2_en.al",
        names=names,
        encoding="latin-1",
    )
    scores = lists.values @ np.array([float(weight) for _, weight in model])
    return judged(lists), [int(np.argmax(scores[a:b])) for a, b in pairwise(lists.offsets)]


def made_up() -> tuple[Judged, list[int]]:
    """A few short lists, with no other choice."""
    return judged(made_lists(12, size=8)), []


def features(lists: NBestLists, train: np.ndarray, *, trigrams: bool) -> list[Any]:
    """Decoder features in units of their spread within lists; with ``trigrams`` also counts of English trigrams.

    Only the training lists decide what the spread is, and which trigrams there are.
    """
    own = lists.select(train)
    rows = RerankingEncoder().fit_rows(own)[0].rows(lists)
    if trigrams:
        counter = CountVectorizer(tokenizer=str.split, token_pattern=None, lowercase=False, ngram_range=(3, 3))
        counter.fit(map("<s> <s> {} </s>".format, own.texts))
        counts = counter.transform(map("<s> <s> {} </s>".format, lists.texts))
        rows = sp.csr_array(sp.hstack([sp.csr_array(rows), counts], format="csr", dtype=np.float64))
    return [rows[a:b] for a, b in pairwise(lists.offsets)]


def separable(values: np.ndarray, good: np.ndarray) -> bool:
    """Whether some direction of the features has every good candidate of a list above every other one."""
    pairs = (values[~good][:, None] - values[good][None]).reshape(-1, values.shape[1])
    zero = np.zeros(pairs.shape[1])
    return bool(linprog(zero, A_ub=pairs, b_ub=np.full(len(pairs), -1.0), bounds=(None, None)).status == 0)


def scores(lists: Judged, picks: Any) -> dict[str, float]:
    """BLEU, in percent, and NIST (Doddington 2002) of the chosen hypotheses as a corpus; one reference each."""
    rows = lists.lists.offsets[:-1] + np.asarray(picks)
    chosen = [lists.lists.texts[row].split() for row in rows]
    references = [texts[0].split() for texts in lists.lists.references or ()]
    return {"bleu": score(lists.metrics[0], lists.statistics[0][rows]), "nist": nist(chosen, references)}


def ngrams(words: list[str], n: int) -> Counter[tuple[str, ...]]:
    """How often each n-gram occurs."""
    return Counter(zip(*(words[k:] for k in range(n)), strict=False))


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

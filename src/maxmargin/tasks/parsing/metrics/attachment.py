"""Attachment scores, as the CoNLL 2018 shared task defines them, for sentences whose tokens are given.

    UAS    tokens with the right head
    LAS    with the right head and relation
    CLAS   LAS of content words alone, those with relations such as nsubj and obj, not det, case or punct
    MLAS   CLAS, and tag and features are right too, and so are all function words below the token
    BLEX   CLAS, and the lemma is right too

Subtypes of relations (the part after ``:``) are ignored, and so are features that are not universal. UAS and LAS are
accuracies, the others F1: a content word is one in gold if its gold relation says so, and predicted by its predicted
relation.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from maxmargin._callers import callers_level
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.common import resampling
from maxmargin.tasks.common.resampling import Interval
from maxmargin.tasks.common.tokens.table import WORD, Codes
from maxmargin.tasks.parsing.io.checks import check_trees
from maxmargin.tasks.parsing.io.treebank import MISSING, Treebank


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


CONTENT = _names(
    "acl advcl advmod amod appos ccomp compound conj csubj dep discourse dislocated expl fixed flat goeswith iobj "
    "list nmod nsubj nummod obj obl orphan parataxis reparandum root vocative xcomp"
)
"""Relations of content words."""

FUNCTIONAL = _names("aux case cc clf cop det mark")
"""Relations of function words."""

UNIVERSAL = _names(
    "Abbr Animacy Aspect Case Definite Degree Evident Foreign Gender Mood Number NumType Person Polarity Polite "
    "Poss PronType Reflex Tense VerbForm Voice"
)
"""Morphological features that are universal."""

MEASURES = ("UAS", "LAS", "CLAS", "MLAS", "BLEX")


@dataclass(frozen=True, eq=False)
class AttachmentScores:
    """Scores of predicted trees.

    Attributes:
        counts: for each sentence and measure how often it is right, and the gold and the predicted tokens that it
            counts, shape ``(n_sentences, 5, 3)``.
        n_tokens: number of tokens.
    """

    counts: IntArray
    n_tokens: int

    def __getitem__(self, measure: str) -> float:
        """The score with a name, one of :data:`MEASURES`, from 0 to 1."""
        return float(_rates(self.counts.sum(axis=0)[MEASURES.index(measure)].astype(np.float64)))

    @property
    def uas(self) -> float:
        """The share of tokens with the right head."""
        return self["UAS"]

    @property
    def las(self) -> float:
        """The share of tokens with the right head and relation."""
        return self["LAS"]

    @property
    def exact(self) -> float:
        """The share of sentences without a wrong head or relation."""
        right, gold = self.counts[:, MEASURES.index("LAS"), 0], self.counts[:, 0, 1]
        return float((right == gold).mean()) if len(right) else 0.0

    def interval(self, measure: str = "LAS", *, level: float = 0.95) -> Interval:
        """A confidence interval of a score, from resampled sentences."""
        statistics = self.counts[:, MEASURES.index(measure)].astype(np.float64)
        return resampling.interval(statistics, _rates, level=level)

    def as_dict(self) -> dict[str, Any]:
        """All scores as plain numbers."""
        scores: dict[str, Any] = {measure: self[measure] for measure in MEASURES}
        return scores | {"exact": self.exact, "tokens": self.n_tokens, "sentences": len(self.counts)}


def _rates(sums: FloatArray) -> Any:
    """F1 of counts (right, gold, predicted) in the last axis; 0 where there are none."""
    total = sums[..., 1] + sums[..., 2]
    return 2.0 * sums[..., 0] / np.where(total > 0.0, total, 1.0)


@dataclass(frozen=True, eq=False)
class _Words:
    """What the measures compare of all tokens, as codes of texts that gold and predicted tokens share."""

    head: IntArray
    relation: IntArray
    upos: IntArray
    feats: IntArray
    lemma: IntArray
    content: npt.NDArray[np.bool_]
    functional: npt.NDArray[np.bool_]


def evaluate(gold: Treebank, predicted: Treebank) -> AttachmentScores:
    """Compare predicted trees with gold ones; ValueError unless both have the same words, and heads that are trees.

    A sentence may have several tokens below its root, which the scorer of CoNLL 2018 refuses. Tags,
    features and lemmas of the predicted treebank count for MLAS and BLEX.
    """
    if not np.array_equal(gold.lengths, predicted.lengths):
        raise ValueError(
            f"gold has {gold.n_sentences} sentences with {gold.n_tokens} tokens, and the predictions have "
            f"{predicted.n_sentences} with {predicted.n_tokens}, or other sentences; give predictions of the same file"
        )
    column = gold.table.columns.index(WORD)
    words = _shared([bank.table.codes(column) for bank in (gold, predicted)])
    apart = np.flatnonzero(words[0] != words[1])
    if apart.size:
        token = int(apart[0])
        ours, theirs = (bank.table.cells(column)[token] for bank in (gold, predicted))
        raise ValueError(
            f"{gold.table.where(token)}: the word {ours!r} is {theirs!r} in {predicted.table.where(token)}; give "
            "predictions of the same file"
        )
    for bank in (gold, predicted):
        check_trees(bank)
    warn_unlabeled(gold.relations, predicted.relations)
    return compare(gold, predicted.heads, predicted.relations, predicted)


def warn_unlabeled(gold: tuple[Codes, list[str]], predicted: tuple[Codes, list[str]]) -> None:
    """Warn if gold or predicted trees have no relations at all."""
    for what, (_, names) in (("gold", gold), ("predicted", predicted)):
        if names and all(name in MISSING for name in names):
            warnings.warn(
                f"the {what} trees have no relations (_): UAS alone says something", UserWarning, callers_level()
            )


def compare(
    gold: Treebank, heads: IntArray, relations: tuple[Codes, list[str]], tagged: Treebank | None = None
) -> AttachmentScores:
    """Compare heads and relations of all tokens with gold trees.

    Args:
        gold: the gold treebank.
        heads: predicted heads, counted from 1 in their sentence, 0 for the root, shape ``(n_tokens,)``.
        relations: predicted relations as codes and names.
        tagged: where tags, features and lemmas of the prediction come from; None if they are those of gold.
    """
    ours, theirs = _words(gold, heads, relations, gold if tagged is None else tagged)
    first = np.repeat(gold.table.sentences[:-1], gold.lengths)
    right_head = ours.head == theirs.head
    right = right_head & (ours.relation == theirs.relation)
    same_tags = (ours.upos == theirs.upos) & (ours.feats == theirs.feats)
    # A token's function words are right if each of them, in gold or predicted, is one in both, with the same tags.
    both = ours.functional & theirs.functional & right & same_tags
    astray = np.zeros(gold.n_tokens + 1, dtype=np.int64)
    for one in (ours, theirs):
        wrong = one.functional & ~both & (one.head > 0)
        np.add.at(astray, (first + one.head - 1)[wrong], 1)
    hits = (
        right_head,
        right,
        right & ours.content,
        right & same_tags & (astray[:-1] == 0) & ours.content,
        right & (ours.lemma == theirs.lemma) & ours.content,
    )
    everything = np.ones(gold.n_tokens, dtype=np.bool_)
    counts = np.empty((gold.n_sentences, len(MEASURES), 3), dtype=np.int64)
    for m, hit in enumerate(hits):
        counted = (hit, everything, everything) if m < 2 else (hit, ours.content, theirs.content)
        for j, flags in enumerate(counted):
            counts[:, m, j] = np.diff(np.concatenate([[0], np.cumsum(flags)])[gold.table.sentences])
    return AttachmentScores(counts, gold.n_tokens)


def _words(
    gold: Treebank, heads: IntArray, relations: tuple[Codes, list[str]], tagged: Treebank
) -> tuple[_Words, _Words]:
    """Gold and predicted words."""
    columns = gold.table.columns
    tags = [
        _shared([_cleaned(bank.table.codes(columns.index(name)), name) for bank in (gold, tagged)])
        for name in ("upos", "feats", "lemma")
    ]
    # Where gold has no lemma, any is right.
    codes, names = gold.table.codes(columns.index("lemma"))
    missing = np.array([name == "_" for name in names], dtype=np.bool_)[codes]
    tags[2][1][missing] = tags[2][0][missing]
    both = [(codes, [name.split(":")[0] for name in names]) for codes, names in (gold.relations, relations)]
    found = _shared(both)
    made = []
    for j, own in enumerate((gold.heads, np.asarray(heads, dtype=np.int64))):
        codes, names = both[j]
        kinds = [np.array([name in some for name in names], dtype=np.bool_)[codes] for some in (CONTENT, FUNCTIONAL)]
        made.append(_Words(own, found[j], tags[0][j], tags[1][j], tags[2][j], kinds[0], kinds[1]))
    return made[0], made[1]


def _cleaned(column: tuple[Codes, list[str]], name: str) -> tuple[Codes, list[str]]:
    """The column with universal features alone."""
    if name != "feats":
        return column
    kept = ("|".join(sorted(f for f in text.split("|") if f.split("=")[0] in UNIVERSAL)) for text in column[1])
    return column[0], list(kept)


def _shared(columns: list[tuple[Codes, list[str]]]) -> list[IntArray]:
    """Codes of texts that are numbered together, for each of the columns."""
    known: dict[str, int] = {}
    found = []
    for codes, names in columns:
        numbers = np.array([known.setdefault(name, len(known)) for name in names], dtype=np.int64)
        found.append(numbers[codes])
    return found

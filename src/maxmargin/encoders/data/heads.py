"""Dependency trees as users write them: heads, or heads and labels, each of which may be unknown or one of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin._messages import shown
from maxmargin.encoders.data import checks
from maxmargin.encoders.data.labels import Labels, sequence_of
from maxmargin.encoders.data.partial import PartialLabels, numbered
from maxmargin.structures.base import IntArray
from maxmargin.structures.dependencies.base import DependencyTrees
from maxmargin.structures.fallbacks.given import Given

_WANTED = "heads, a vector of integers, or a pair (heads, labels)"
_SETS = (set, frozenset)


@dataclass(frozen=True, eq=False)
class Trees(Sequence[Any]):
    """Checked outputs of a user.

    Attributes:
        heads: one vector of integers per sentence.
        labels: of all tokens, None if there are none.
    """

    heads: list[IntArray]
    labels: Labels | None

    @classmethod
    def parse(cls, y: Sequence[Any]) -> Trees:
        """Heads, or pairs of heads and labels; ValueError naming the first sentence that is neither."""
        if isinstance(y, Trees):
            return y
        both = [heads_and_labels(given) for given in y]
        with_labels = [labels is not None for _, labels in both]
        if any(with_labels) and not all(with_labels):
            odd = with_labels.index(not with_labels[0])
            what = (
                "heads and labels, but example 0 has heads" if with_labels[odd] else "heads, but example 0 has labels"
            )
            raise ValueError(f"example {odd}: y holds {what}; give (heads, labels) for all sentences, or heads for all")
        for index, (given, _) in enumerate(both):
            if is_partial(given):
                raise ValueError(
                    f"example {index}: y has heads that are None or a set, which stand for unknown ones; give them, or "
                    "train with mm.LatentSVM(mm.DependencySVM(...)), which learns from trees that are known in part"
                )
        heads = [checks.array(given, index, "y", "iu", _WANTED) for index, (given, _) in enumerate(both)]
        for index, own in enumerate(heads):
            if own.ndim != 1:
                raise ValueError(f"example {index}: y must be {_WANTED}, got shape {own.shape}")
        if not all(with_labels):
            return cls(heads, None)
        labels = Labels.known([labels for _, labels in both])
        for index, (own, count) in enumerate(zip(heads, np.diff(labels.offsets).tolist(), strict=True)):
            _check_counts(index, len(own), count)
        return cls(heads, labels)

    def __len__(self) -> int:
        return len(self.heads)

    def __getitem__(self, index: Any) -> Any:
        return self.heads[index] if self.labels is None else (self.heads[index], self.labels[index])


def heads_and_labels(given: Any) -> tuple[Any, Any]:
    """The two parts of an output; labels are None where there are heads alone."""
    several = isinstance(given, (tuple, list)) and len(given) == 2 and isinstance(given[0], (list, tuple, np.ndarray))
    if several or (isinstance(given, np.ndarray) and given.ndim == 2 and len(given) == 2):
        return given[0], given[1]
    return given, None


def is_partial(entries: Any) -> bool:
    """Whether some of the heads, or labels, of a sentence are None or sets."""
    if isinstance(entries, np.ndarray) and entries.dtype != object:
        return False
    return isinstance(entries, (list, tuple, np.ndarray)) and any(
        entry is None or isinstance(entry, _SETS) for entry in entries
    )


def _check_counts(index: int, n_heads: int, n_labels: int) -> None:
    """ValueError unless a sentence has as many labels as heads."""
    if n_heads != n_labels:
        raise ValueError(f"example {index}: {n_heads} heads but {n_labels} labels; give one of each per token")


def _labels_of(index: int, given: Any) -> Any:
    """The labels of a sentence known in part, all None where it has heads alone."""
    heads, labels = heads_and_labels(given)
    n = len(sequence_of(heads, index))
    if labels is None:
        return [None] * n
    _check_counts(index, n, len(sequence_of(labels, index)))
    return labels


def known_arcs(trees: DependencyTrees, given: Any, index: int, said: Given | None) -> Given:
    """What a tree that is known in part says of the arcs with labels of sentence ``index``: -1 for no, else 0.

    Args:
        trees: the batch.
        given: heads, each None or a set where several may be right, or a pair of heads and labels.
        index: the sentence.
        said: what the labels say, 1, -1 or 0 for each token and label, shape ``(n, n_labels)``; None without labels.
    """
    n = int(trees.n_tokens[index])
    heads = sequence_of(heads_and_labels(given)[0], index)
    if len(heads) != n:
        raise ValueError(f"example {index}: {len(heads)} heads for {n} tokens; give each token one, None if unknown")
    allowed = np.ones((n, n + 1), dtype=bool)
    for token, entry in enumerate(heads, start=1):
        if entry is not None:
            allowed[token - 1] = False
            allowed[token - 1, _heads(entry, index, token, n)] = True
    first, last = trees.blocks[0].offsets[index : index + 2].tolist()
    head, label = trees.heads_of(np.arange(first, last))
    tokens = trees.token_offsets[index : index + 2]
    states = trees.n_states[tokens[0] : tokens[1]]
    modifier = np.repeat(np.arange(n), states)
    possible = allowed[modifier, head]
    if said is not None:
        possible &= said[modifier, label] >= 0
    none = np.flatnonzero(np.bincount(modifier[possible], minlength=n) == 0)
    if none.size:
        token = int(none[0]) + 1
        raise ValueError(
            f"example {index}: token {token} cannot have the head {shown(heads[token - 1])}, as no such arc is a "
            "candidate; list the arc, or give the head as None"
        )
    return np.where(possible, 0, -1).astype(np.int8)


def _heads(entry: Any, index: int, token: int, n: int) -> list[int]:
    """The heads of which one is right."""
    found = list(entry) if isinstance(entry, _SETS) else [entry]
    for head in found:
        whole = isinstance(head, (int, np.integer)) and not isinstance(head, bool)
        if not whole or not 0 <= head <= n or head == token:
            raise ValueError(
                f"example {index}: token {token} has head {shown(head)}; give another token, 1 to {n}, 0 for the root, "
                "None for unknown, or a set of these"
            )
    if not found:
        raise ValueError(f"example {index}: token {token} has an empty set of heads; use None for unknown")
    return [int(head) for head in found]


def partial_labels(y: Sequence[Any], some: Sequence[int]) -> PartialLabels:
    """The labels of outputs, None where a sentence has heads alone; ``some`` are their numbers, for errors."""
    labels = [_labels_of(index, given) for index, given in zip(some, y, strict=True)]
    with numbered(np.array(some)):
        return PartialLabels.parse(labels)

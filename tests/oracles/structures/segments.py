"""For tests of segmentations: all of them, and random problems."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from maxmargin.features.base import Features
from maxmargin.features.parts import PartFeatures, Stacked
from maxmargin.features.tied import TiedRows
from maxmargin.structures import Segments, TaggedSegments, TransitionConstraints, token_states
from maxmargin.structures.base import IntArray
from maxmargin.structures.deductions.segments import ROLES


def outputs(one: Segments) -> Iterator[IntArray]:
    """All segmentations of a batch of one sequence, as rows of begin, end and label."""
    length, rules = int(one.lengths[0]), one.constraints or TransitionConstraints.anything(one.n_labels)
    waiting: list[list[tuple[int, int, int]]] = [[]]
    while waiting:
        begun = waiting.pop()
        at = begun[-1][1] if begun else 0
        if at == length:
            if not begun or rules.last[begun[-1][2]]:
                yield np.array(begun, dtype=np.int64).reshape(-1, 3)
            continue
        for label in range(one.n_labels):
            if not (rules.pairs[begun[-1][2], label] if begun else rules.first[label]):
                continue
            for end in range(at + 1, min(at + int(one.longest[label]), length) + 1):
                if (states_of(one, end - at, label) >= 0).all():
                    waiting.append([*begun, (at, end, label)])


def tagged_outputs(one: TaggedSegments) -> Iterator[IntArray]:
    """The same as states of tokens."""
    for rows in outputs(one):
        own = [states_of(one, end - begin, label) for begin, end, label in rows.tolist()]
        yield np.concatenate([np.zeros(0, dtype=np.int64), *own])


def states_of(one: Segments, length: int, label: int) -> IntArray:
    """The states of the tokens of one segment."""
    first, inside, last, single = one.states[label].tolist()
    return np.array([single] if length == 1 else [first, *[inside] * (length - 2), last])


def random_segments(rng: np.random.Generator, n: int) -> Segments:
    """Short sequences, some empty; some labels may not follow others, but each may follow itself."""
    k = int(rng.integers(1, 4))
    states = token_states(k, str(rng.choice(list(ROLES))))
    if rng.random() < 0.3:
        states[rng.integers(k), rng.integers(4)] = -1
    pairs = (rng.random((k, k)) < 0.7) | np.eye(k, dtype=bool)
    ends = rng.random((2, k)) < 0.8
    ends[:, 0] = True
    constraints = TransitionConstraints(pairs, *ends) if rng.random() < 0.7 else None
    longest = rng.integers(1, 5, size=k) if rng.random() < 0.5 else int(rng.integers(1, 5))
    return Segments(rng.integers(0, 5, size=n), k, longest, states=states, constraints=constraints)


def problem(rng: np.random.Generator, n: int) -> tuple[Segments, Features]:
    """Sequences with random features of their tokens and segments."""
    only = TransitionConstraints(np.array([[True, True], [True, False]]), np.ones(2, bool), np.ones(2, bool))
    structure = Segments(rng.integers(1, 4, size=n), 2, [3, 2], constraints=only)
    return structure, features_of(rng, structure)


def features_of(rng: np.random.Generator, structure: Segments) -> Features:
    """Random features of tokens and segments, and weights of transitions."""
    n, tokens = structure.n_examples, int(structure.lengths.sum())
    offsets = np.concatenate([[0], np.cumsum(structure.lengths)])
    segments = structure.blocks[2].offsets
    return Stacked(
        TiedRows(rng.normal(size=(tokens, 2)), offsets, structure.n_states_each),
        TiedRows(np.zeros((n, 0)), np.arange(n + 1), structure.n_labels**2, constant=True),
        PartFeatures(rng.normal(size=(int(segments[-1]), 3)), segments),
    )

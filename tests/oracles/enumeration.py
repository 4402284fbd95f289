"""All outputs of tiny examples of any structure of the library, and distributions over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise, product
from typing import Any

import numpy as np

from maxmargin.structures import (
    Candidates,
    Chain,
    Cut,
    DependencyTrees,
    Derivations,
    Edits,
    Lattice,
    LinearProgram,
    Matching,
    Pairing,
    SecondOrderChain,
    Segments,
    Spans,
    Structure,
    TaggedSegments,
)
from maxmargin.structures._arrays import offsets_of
from maxmargin.structures.base import FloatArray
from maxmargin.structures.fallbacks.given import Given
from oracles.structures import dependencies, edits, grammar, lattice, linear_program, matching, pairing, segments

OUTPUTS: dict[type[Structure], Callable[[Any], Iterator[Any]]] = {
    Edits: edits.outputs,
    Derivations: grammar.derivations,
    Segments: segments.outputs,
    TaggedSegments: segments.tagged_outputs,
    Spans: grammar.span_trees,
}
"""For structures that are not labelings of nodes: all outputs of a batch of one example, as ``encode`` takes them."""


def vertices(structure: Structure) -> list[FloatArray]:
    """All outputs of each example as rows of its parts, block after block; labelings in lexicographic order."""
    if isinstance(structure, LinearProgram):
        return linear_program.vertices(structure)
    if isinstance(structure, Lattice):
        return lattice.vertices(structure)
    if isinstance(structure, Matching):
        return matching.vertices(structure)
    if isinstance(structure, DependencyTrees):
        return dependencies.vertices(structure)
    if isinstance(structure, Pairing):
        return pairing.vertices(structure)
    found = []
    for i in range(structure.n_examples):
        outputs = list(_labelings(structure.select([i])))
        many = structure.select([i] * len(outputs))
        z = np.asarray(many.encode(outputs))
        blocks = [block.reshape(len(outputs), -1) for block in np.split(z, many.starts[1:-1]) if outputs]
        found.append(np.hstack(blocks) if outputs else np.zeros((0, int(structure.sizes[i]))))
    return found


def _labelings(one: Structure) -> Iterator[Any]:
    """All labels of a batch of one example, as ``encode`` takes them."""
    if isinstance(one, Candidates):
        yield from range(one.n_parts)
        return
    if type(one) in OUTPUTS:
        yield from OUTPUTS[type(one)](one)
        return
    states = [one.part_states[first:last].tolist() for first, last in pairwise(offsets_of(one.n_states).tolist())]
    if isinstance(one, Cut):
        states = [[0, 1] for _ in states]
    constraints = one.constraints if isinstance(one, (Chain, SecondOrderChain)) else None
    for labels in product(*states):
        if constraints is not None and labels:
            ends = constraints.first[labels[0]] and constraints.last[labels[-1]]
            if not (ends and all(constraints.pairs[a, b] for a, b in pairwise(labels))):
                continue
        yield np.array(labels, dtype=np.int64)


def gibbs(vertices: FloatArray, potentials: FloatArray) -> tuple[FloatArray, float]:
    """Expected parts and log-partition function of ``p(y) ~ exp(potentials'y)`` over the listed outputs.

    Potentials of ``-inf`` forbid.
    """
    scores = worth(vertices, potentials)
    top = scores.max()
    weights = np.exp(scores - top)
    return weights @ vertices / weights.sum(), float(top + np.log(weights.sum()))


def scores_of(rng: np.random.Generator, structure: Structure, *, forbid: bool = True) -> FloatArray:
    """Scores with ties now and then, and forbidden parts."""
    scores = np.round(rng.normal(size=structure.n_parts), int(rng.integers(0, 4)))
    if forbid and rng.random() < 0.5:
        scores[rng.random(structure.n_parts) < 0.2] = -np.inf
    return scores


def worth(outputs: FloatArray, scores: FloatArray) -> FloatArray:
    """The scores of outputs (rows), -inf where a part is forbidden."""
    with np.errstate(invalid="ignore"):
        return np.where(outputs > 0, scores * outputs, 0.0).sum(axis=1)


def good_rows(structure: Structure, given: Given) -> list[tuple[FloatArray, np.ndarray]]:
    """For each example all outputs, and which of them agree with what is given."""
    offsets = structure.blocks[0].offsets
    found = []
    for i, rows in enumerate(vertices(structure)):
        own = given[offsets[i] : offsets[i + 1]]
        lead = rows[:, : len(own)]
        found.append((rows, ((lead > 0.5) >= (own > 0)).all(axis=1) & ((lead < 0.5) >= (own < 0)).all(axis=1)))
    return found

"""For tests of dependency trees: all trees of short sentences, and their parts by loops over tokens."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np

from maxmargin.features import Beside, Features, PartFeatures, Stacked, TiedRows
from maxmargin.structures.base import FloatArray
from maxmargin.structures.dependencies.base import DependencyTrees
from maxmargin.structures.dependencies.nonprojective import NonProjectiveTrees
from maxmargin.structures.dependencies.projective import ProjectiveTrees


def leads_to_root(heads: tuple[int, ...]) -> bool:
    """Whether each token has the root above it."""
    for token in range(1, len(heads) + 1):
        for _ in range(len(heads)):
            token = heads[token - 1] if token else 0
        if token:
            return False
    return True


def crosses(heads: tuple[int, ...]) -> bool:
    """Whether two arcs cross."""
    spans = [sorted((head, token)) for token, head in enumerate(heads, start=1)]
    return any(a < c < b < d for a, b in spans for c, d in spans)


def trees(n: int, *, single_root: bool, projective: bool) -> list[tuple[int, ...]]:
    """All trees of ``n`` tokens by their heads."""
    choices = [[head for head in range(n + 1) if head != token] for token in range(1, n + 1)]
    return [
        heads
        for heads in product(*choices)
        if leads_to_root(heads) and not (single_root and heads.count(0) > 1) and not (projective and crosses(heads))
    ]


def siblings(heads: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """(head, sibling, modifier) for each token; the head itself before the first modifier of a side."""
    found = []
    for head in range(len(heads) + 1):
        own = [token for token, above in enumerate(heads, start=1) if above == head]
        right, left = [m for m in own if m > head], [m for m in own if m < head][::-1]
        found += [(head, s, m) for side in (right, left) for s, m in pairwise([head, *side])]
    return found


def grandparents(heads: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """(grandparent, head, modifier) for each token whose head is not the root."""
    return [(heads[head - 1], head, token) for token, head in enumerate(heads, start=1) if head]


def all_siblings(n: int) -> list[tuple[int, int, int]]:
    """All triples in the order of the parts."""
    return [
        (h, h + (d if m > h else -d), m)
        for m in range(1, n + 1)
        for h in range(n + 1)
        if h != m
        for d in range(abs(h - m))
    ]


def all_grandparents(n: int) -> list[tuple[int, int, int]]:
    """All triples in the order of the parts."""
    return [
        (g, h, m)
        for m in range(1, n + 1)
        for h in range(1, n + 1)
        if h != m
        for g in range(n + 1)
        if not min(h, m) <= g <= max(h, m)
    ]


def vertices(structure: DependencyTrees) -> list[FloatArray]:
    """All outputs of each sentence as rows of its parts, block after block."""
    rows = []
    blocks = {block.name: block.offsets for block in structure.blocks}
    for i, n in enumerate(structure.n_tokens.tolist()):
        k = structure.n_labels
        if structure.arcs is None:
            arcs = [(h, m) for m in range(1, n + 1) for h in range(n + 1) if h != m]
        else:
            first, last = blocks["arcs"][i : i + 2] // k
            arcs = [tuple(arc) for arc in structure.arcs[first:last].tolist()]
        names = [(h, m, label) for h, m in arcs for label in range(k)]
        found = []
        triples = []
        for name, every in (("siblings", all_siblings), ("grandparents", all_grandparents)):
            if name in blocks:
                listed = getattr(structure, name)
                first, last = blocks[name][i : i + 2]
                triples.append(every(n) if listed is None else [tuple(t) for t in listed[first:last].tolist()])
        for heads in trees(n, single_root=structure.single_root, projective=structure.projective):
            if not {(head, token) for token, head in enumerate(heads, start=1)} <= set(arcs):
                continue
            used = [set(siblings(heads)), set(grandparents(heads))]
            used = [own for own, name in zip(used, ("siblings", "grandparents"), strict=True) if name in blocks]
            rest = [float(t in own) for own, listed in zip(used, triples, strict=True) for t in listed]
            for labels in product(range(k), repeat=n):
                tree = {(head, token, labels[token - 1]) for token, head in enumerate(heads, start=1)}
                found.append([float(name in tree) for name in names] + rest)
        rows.append(np.array(found))
    return rows


def random_trees(
    rng: np.random.Generator, n: int, *, tokens: int = 4, labels: int = 2, order: int = 2, listed: bool | None = None
) -> ProjectiveTrees:
    """Short sentences with all arcs or a list of them that has a tree, one root or several, and some second-order
    blocks, with all or listed triples."""
    sizes = rng.integers(1, tokens + 1, size=n)
    settings: dict[str, Any] = {
        "n_labels": int(rng.integers(1, labels + 1)),
        "single_root": bool(rng.integers(2)),
    }
    if order == 2:
        for name, every in (("siblings", all_siblings), ("grandparents", all_grandparents)):
            some = [[t for t in every(size) if rng.random() < 0.6] for size in sizes.tolist()]
            rows = np.array([t for own in some for t in own], dtype=np.int64).reshape(-1, 3)
            settings[name] = (False, True, (rows, np.cumsum([0, *map(len, some)])))[int(rng.integers(3))]
    return _some_arcs(rng, ProjectiveTrees, sizes, settings, listed)


def random_nonprojective(
    rng: np.random.Generator, n: int, *, tokens: int = 4, labels: int = 2, listed: bool | None = None
) -> NonProjectiveTrees:
    """Short sentences with all arcs or a list of them that has a tree, one root or several."""
    sizes = rng.integers(1, tokens + 1, size=n)
    settings = {"n_labels": int(rng.integers(1, labels + 1)), "single_root": bool(rng.integers(2))}
    return _some_arcs(rng, NonProjectiveTrees, sizes, settings, listed)


def _some_arcs(
    rng: np.random.Generator, kind: type[Any], sizes: np.ndarray, settings: dict[str, Any], listed: bool | None
) -> Any:
    if not (rng.integers(2) if listed is None else listed):
        return kind.dense(sizes, **settings)
    arcs = []
    for size in sizes.tolist():
        gold = trees(size, single_root=settings["single_root"], projective=kind.projective)
        kept = gold[int(rng.integers(len(gold)))]
        every_arc = [(h, m) for m in range(1, size + 1) for h in range(size + 1) if h != m]
        arcs.append([(h, m) for h, m in every_arc if kept[m - 1] == h or rng.random() < 0.6])
    rows = np.array([arc for own in arcs for arc in own], dtype=np.int64)
    return kind(sizes, rows, np.cumsum([0, *map(len, arcs)]), **settings)


def problem(rng: np.random.Generator, n: int) -> tuple[ProjectiveTrees, Features]:
    """All arcs with two labels, which share weights and have their own, siblings and grandparents; several roots."""
    settings = {"single_root": False, "siblings": True, "grandparents": True}
    structure = ProjectiveTrees.dense(rng.integers(1, 4, size=n), 2, **settings)
    offsets = structure.blocks[0].offsets // 2
    rows = rng.normal(size=(int(offsets[-1]), 2))
    arcs = Beside(TiedRows(rows, offsets, 2, alike=True), TiedRows(rows, offsets, 2))
    triples = [PartFeatures(rng.normal(size=(int(b.offsets[-1]), 1)), b.offsets) for b in structure.blocks[1:]]
    return structure, Stacked(arcs, *triples)


def nonprojective_problem(rng: np.random.Generator, n: int) -> tuple[NonProjectiveTrees, Features]:
    """All arcs with two labels, which share weights and have their own; one root."""
    structure = NonProjectiveTrees.dense(rng.integers(1, 4, size=n), 2)
    offsets = structure.blocks[0].offsets // 2
    rows = rng.normal(size=(int(offsets[-1]), 2))
    return structure, Beside(TiedRows(rows, offsets, 2, alike=True), TiedRows(rows, offsets, 2))

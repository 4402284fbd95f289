"""Small learnable problems of each kind, used by several test files, and a structure of a user's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import maxmargin as mm
from maxmargin.structures import Block, Points, Structure


def chains(n: int = 6, *, seed: int = 0, labels: tuple[Any, ...] = ("a", "b", "c"), edges: bool = False):
    """Sequences whose labels are a noisy linear function of the features; with edge features on demand."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for length in rng.integers(2, 6, size=n):
        numbers = rng.integers(0, len(labels), size=length)
        x = np.eye(len(labels))[numbers] + 0.4 * rng.standard_normal((length, len(labels)))
        X.append(mm.FeatureSequence(x, rng.standard_normal((length - 1, 2))) if edges else x)
        y.append([labels[k] for k in numbers])
    return X, y


def matchings(n: int = 6, *, seed: int = 0, d: int = 3, pruned: bool = False):
    """Bipartite graphs whose links score highest on their first feature."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for left, right in rng.integers(2, 5, size=(n, 2)):
        links = np.stack(
            [rng.permutation(left)[: min(left, right)], rng.permutation(right)[: min(left, right)]], axis=1
        )
        x = 0.6 * rng.standard_normal((left, right, d))
        x[links[:, 0], links[:, 1], 0] += 1.0
        x[:, :, 1] = 1.0
        if pruned:
            kept = np.zeros((left, right), dtype=bool)
            kept[links[:, 0], links[:, 1]] = True
            kept |= rng.random((left, right)) < 0.6
            X.append(mm.Bipartite(x[kept], np.argwhere(kept), (int(left), int(right))))
        else:
            X.append(x)
        y.append(links[np.argsort(links[:, 0])])
    return X, y


def cuts(n: int = 5, *, seed: int = 0):
    """Rings whose node labels come in runs; two edge features."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for size in rng.integers(4, 8, size=n):
        labels = (np.arange(size) < size // 2).astype(np.int64)
        nodes = np.stack([2.0 * labels - 1.0 + 0.5 * rng.standard_normal(size), np.ones(size)], axis=1)
        edges = np.stack([np.arange(size), (np.arange(size) + 1) % size], axis=1)
        X.append(mm.Graph(nodes, edges, np.abs(rng.standard_normal((size, 2)))))
        y.append(labels)
    return X, y


def lattices(n: int = 6, *, seed: int = 0, d: int = 3):
    """Word lattices with words that are skipped, repeated or missing; edges of the right path score highest."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for size in rng.integers(3, 6, size=n):
        pairs, right = [], []
        for v in range(int(size)):
            right.append(len(pairs) + int(rng.integers(2)))
            pairs += [(v, v + 1)] * 2
            if v + 2 <= size:
                pairs.append((v, v + 2))
        x = 0.6 * rng.standard_normal((len(pairs), d))
        x[right, 0] += 1.0
        words = [None if rng.random() < 0.2 else "abcd"[rng.integers(4)] for _ in pairs]
        X.append(mm.WordLattice(x, np.array(pairs), words))
        y.append(np.array(right))
    return X, y


def spellings(n: int = 8, *, seed: int = 0, nonmatches: bool = False):
    """Words and the same with vowels changed, letters dropped and doubled, aligned; every third may be no match."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for i in range(n):
        word = "".join(rng.choice(list("abeiklnos"), size=rng.integers(2, 6)).tolist())
        other, pairs = "", []
        for at, letter in enumerate(word):
            event = rng.random()
            if event < 0.1:
                continue
            pairs.append((at, len(other)))
            other += "e" if event < 0.3 and letter in "aio" else letter
            other += letter if event > 0.85 else ""
        no_match = nonmatches and i % 3 == 2
        X.append((word, "tu" * 3 if no_match else other))
        y.append(False if no_match else np.array(pairs, dtype=np.int64).reshape(-1, 2))
    return X, y


def segmented(n: int = 6, *, seed: int = 0, labels: tuple[Any, ...] = ("a", "b"), whole: bool = False):
    """Sequences in segments of up to three tokens, whose labels show in the features; perhaps with segment features."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for count in rng.integers(2, 4, size=n):
        lengths, numbers = rng.integers(1, 4, size=count), rng.integers(0, len(labels), size=count)
        ends = np.cumsum(lengths)
        x = np.eye(len(labels) + 1)[np.repeat(numbers, lengths)]
        x[ends - lengths, -1] = 1.0
        x += 0.3 * rng.standard_normal(x.shape)
        rows = rng.standard_normal((len(mm.candidate_segments(len(x), 3)), 2)) if whole else None
        X.append(mm.SegmentSequence(x, rows) if whole else x)
        y.append([(int(e - l), int(e), labels[k]) for e, l, k in zip(ends, lengths, numbers, strict=True)])
    return X, y


def pairings(n: int = 8, *, seed: int = 0, d: int = 3, full: bool = False):
    """Graphs, or arrays (``full``), whose right pairs have a large first feature; some nodes stay alone."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for size in rng.integers(4, 7, size=n).tolist():
        x = rng.standard_normal((size, size, d))
        pairs = np.sort(rng.permutation(size)[: 2 * (size // 2) - 2 * int(rng.integers(2))].reshape(-1, 2), axis=1)
        x[pairs[:, 0], pairs[:, 1], 0] += 1.8
        edges = np.argwhere(np.triu(np.ones((size, size)), 1))
        X.append(x if full else mm.PairGraph(x[edges[:, 0], edges[:, 1]], edges))
        y.append(pairs[np.argsort(pairs[:, 0])])
    return X, y


def sentences(
    n: int = 6,
    *,
    seed: int = 0,
    labels: tuple[Any, ...] = (),
    second: bool = False,
    tokens: int = 5,
    projective: bool = True,
):
    """Sentences whose right arcs, (head, modifier), have a large first feature; with labels, or parts of second order,
    on demand. A label shows in a feature of its own."""
    kind = mm.structures.ProjectiveTrees if projective else mm.structures.NonProjectiveTrees
    rng = np.random.default_rng(seed)
    X, y = [], []
    for size in rng.integers(2, tokens, size=n).tolist():
        best = kind.dense([size])
        heads = best.decode(best.argmax(rng.standard_normal(size * size)).z)[0]
        numbers = rng.integers(0, max(len(labels), 1), size=size)
        x = 0.5 * rng.standard_normal((size * size, 3 + len(labels)))
        modifier, place = np.divmod(np.arange(size * size), size)
        right = place + (place > modifier) == heads[modifier]
        x[right, 0] += 1.5
        if labels:
            x[right, 3 + numbers] += 1.5
        settings = {}
        if second:
            settings["siblings"] = [(h, h, m) for m in range(1, size + 1) for h in range(size + 1) if h != m]
            settings["sibling_features"] = rng.standard_normal((size * size, 1))
            settings["grandparents"] = [(0, 1, m) for m in range(2, size + 1)]
            settings["grandparent_features"] = rng.standard_normal((size - 1, 2))
        X.append(mm.Sentence(x, **settings) if second else x)
        y.append((heads, [labels[k] for k in numbers]) if labels else heads)
    return X, y


def charts(n: int = 6, *, seed: int = 0, d: int = 3, splits: bool = False):
    """Sentences of two to four tokens; the spans of a tree's nodes have a large feature for their label."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for size in rng.integers(2, 5, size=n).tolist():
        begin = int(rng.integers(0, size - 1))
        end = begin + 2 - (size == 2)
        tree = ("A", *range(begin), ("B", *range(begin, end)), *range(end, size))
        spans = mm.spans_of(size).tolist()
        x = 0.6 * rng.standard_normal((len(spans), d))
        x[:, -1] = 1.0  # so that spans without a node can be told to have none
        x[spans.index([0, size]), 0] += 2.0
        x[spans.index([begin, end]), 1] += 2.0
        X.append(mm.SpanChart(x, rng.standard_normal((len(mm.splits_of(size)), 2)) if splits else None))
        y.append(tree)
    return X, y


def trees(
    n: int = 6, *, seed: int = 0, edges: bool = False, ring: bool = False, labels: tuple[Any, ...] = ("a", "b", "c")
):
    """Random trees (with a ring on demand) whose labels are a noisy linear function of the features."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for size in rng.integers(3, 7, size=n):
        numbers = rng.integers(0, len(labels), size=size)
        nodes = np.eye(len(labels))[numbers] + 0.4 * rng.standard_normal((size, len(labels)))
        links = [(int(rng.integers(0, v)), v) for v in range(1, size)]
        if ring:
            links = [(v, (v + 1) % int(size)) for v in range(size)]
        X.append(mm.Graph(nodes, np.array(links), rng.standard_normal((len(links), 2)) if edges else None))
        y.append([labels[k] for k in numbers])
    return X, y


def cliqued(
    n: int = 6, *, seed: int = 0, features: bool = False, edges: bool = False, sizes: tuple[int, ...] = (1, 2, 3)
):
    """Trees of three labels with a clique of each size on their first nodes, backwards; the last one has none."""
    X, y = trees(n, seed=seed, edges=edges)
    rng = np.random.default_rng(seed)
    some = []
    for x in X[:-1]:
        cliques = [tuple(range(size))[::-1] for size in sizes]
        rows = rng.standard_normal((len(cliques), 2)) if features else None
        some.append(replace(x, cliques=cliques, clique_features=rows))
    return [*some, X[-1]], y


def graphs(n: int = 5, *, seed: int = 0, labels: tuple[Any, ...] = ("x", "y", "z"), signed: bool = False):
    """Rings with a chord whose node labels come in runs; an edge feature that may have any sign."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for size in rng.integers(5, 9, size=n):
        numbers = np.arange(size) * len(labels) // size
        nodes = np.eye(len(labels))[numbers] + 0.5 * rng.standard_normal((size, len(labels)))
        edges = np.concatenate([np.stack([np.arange(size), (np.arange(size) + 1) % size], axis=1), [[0, size // 2]]])
        weights = rng.standard_normal((size + 1, 1))
        X.append(mm.Graph(nodes, edges, weights if signed else np.abs(weights)))
        y.append([labels[k] for k in numbers])
    return X, y


def teams(n: int = 10, *, seed: int = 0, labels: tuple[Any, ...] = (0, 1), features: bool = False, most: int = 5):
    """Graphs in whose teams, the cliques, all nodes have one label, while edges say nothing; noisy node features.

    A team has ``most`` nodes or a few less. With ``features`` some cliques are no teams, and the first of their two
    features is small.
    """
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        sizes = rng.integers(most // 2 + 1, most + 1, size=3)
        numbers = np.repeat(rng.integers(0, len(labels), size=3), sizes)
        nodes = np.eye(len(labels))[numbers] + rng.standard_normal((len(numbers), len(labels)))
        ends = np.cumsum(sizes)
        cliques = [tuple(range(end - size, end)) for end, size in zip(ends.tolist(), sizes.tolist(), strict=True)]
        rows = None
        if features:
            cliques.append(tuple(rng.permutation(len(numbers))[:4].tolist()))
            alike = np.array([len(set(numbers[list(clique)].tolist())) == 1 for clique in cliques])
            rows = np.stack([alike + 0.2 * rng.random(len(cliques)), rng.random(len(cliques))], axis=1)
        edges = [(j, j + 1) for j in range(0, len(numbers) - 1, 2)]
        X.append(mm.Graph(nodes, edges, cliques=cliques, clique_features=rows))
        y.append(numbers if labels == (0, 1) else [labels[k] for k in numbers])
    return X, y


class PickOne(Structure):
    """A structure of a user's own: exactly one part of each example is chosen; an output is its number."""

    name = "pick"
    categorical = True

    def __init__(self, sizes: Any) -> None:
        self.sizes = np.asarray(sizes, dtype=np.int64)
        self.blocks = (Block("parts", np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)),)

    @property
    def states_per_variable(self):
        return self.sizes

    def encode(self, labels):
        z = np.zeros(self.n_parts)
        for index, (label, size) in enumerate(zip(labels, self.sizes, strict=True)):
            if not 0 <= label < size:
                raise ValueError(f"example {index}: {label} is not one of its {size} parts; give a smaller number")
            z[self.blocks[0].offsets[index] + label] = 1.0
        return z

    def decode(self, z):
        return [int(np.argmax(piece)) for piece in np.split(z, self.blocks[0].offsets[1:-1])]

    def argmax(self, scores, *, warm=None):
        offsets = self.blocks[0].offsets
        z, value = np.zeros(self.n_parts), np.zeros(self.n_examples)
        for i in range(self.n_examples):
            best = int(offsets[i] + np.argmax(scores[offsets[i] : offsets[i + 1]]))
            z[best], value[i] = 1.0, scores[best]
        return Points(z, value, np.zeros(self.n_examples, dtype=np.int8))

    def select(self, indices):
        return type(self)(self.sizes[np.asarray(indices, dtype=np.int64)])


def picks(n: int = 8, *, seed: int = 0):
    """Examples for :class:`PickOne`: the right part has a large first feature."""
    rng = np.random.default_rng(seed)
    X = [0.5 * rng.standard_normal((size, 2)) for size in rng.integers(2, 5, size=n)]
    y = [int(rng.integers(len(x))) for x in X]
    for x, label in zip(X, y, strict=True):
        x[label, 0] += 1.0
    return X, y


KINDS = {
    "chain": (mm.ChainSVM, chains),
    "cut": (mm.CutSVM, cuts),
    "dependency": (mm.DependencySVM, sentences),
    "grammar": (mm.GrammarSVM, charts),
    "lattice": (mm.LatticeSVM, lattices),
    "matching": (mm.MatchingSVM, matchings),
    "pairing": (mm.PairingSVM, pairings),
    "segments": (mm.SegmentSVM, segmented),
    "tree": (mm.TreeSVM, trees),
}
"""Estimator class and data of each built-in structure."""


def variables_of(x: Any, output: Any) -> int:
    """How many variables an example has: links, edges, nodes or tokens."""
    if isinstance(x, (mm.PairGraph, mm.WordLattice)):
        return len(x.edges)
    if isinstance(x, mm.SpanChart):
        return 2 * len(x.features)
    if isinstance(x, np.ndarray) and (x.ndim > 2 or not isinstance(output, np.ndarray)):
        return int(np.prod(x.shape[:-1]))
    return len(output)


def same(first: Any, second: Any) -> bool:
    """Whether two lists of outputs are equal."""
    return len(first) == len(second) and all(
        same(a, b)
        if isinstance(a, tuple) and isinstance(b, tuple)
        else (a == b if isinstance(a, list) and isinstance(b, list) else np.array_equal(a, b))
        for a, b in zip(first, second, strict=True)
    )


def made(kind, **settings):
    """An estimator, its training data, and data it has not seen."""
    estimator, data = KINDS[kind]
    return estimator(**settings), data(), data(4, seed=7)

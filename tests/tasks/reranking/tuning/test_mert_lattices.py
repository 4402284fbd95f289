"""Minimum error rate training of lattices against lists of all their paths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.tasks.reranking import best_on_line

import maxmargin as mm
from maxmargin._sparse import sp
from maxmargin.structures import Lattice
from maxmargin.structures._arrays import offsets_of
from maxmargin.tasks.reranking.metrics.base import Formula, Metric
from maxmargin.tasks.reranking.tuning.ascent import ListLines, cut, search
from maxmargin.tasks.reranking.tuning.base import TuningLists
from maxmargin.tasks.reranking.tuning.lattices import LatticeLines, TuningLattices
from maxmargin.tasks.reranking.tuning.mert import Mert


class SharedWords(Metric):
    """Words that are not in the references, and the length of these: an error rate without order."""

    name, n_statistics, formula = "shared words", 2, Formula.ERROR_RATE

    def __init__(self):
        self.seen = []

    def statistics(self, texts, references, owner):
        self.seen.extend(zip(owner.tolist(), texts, strict=True))
        assert (np.diff(owner) >= 0).all()
        rows = []
        for text, i in zip(texts, owner.tolist(), strict=True):
            said, wanted = text.split(), references[i][0].split()
            rows.append([sum(word not in wanted for word in said) + abs(len(said) - len(wanted)), len(wanted)])
        return np.array(rows, dtype=np.float64).reshape(-1, 2)


def paths_of(n_nodes, edges, start, end):
    """All paths as lists of edge numbers, by enumeration."""
    found, open_paths = [], [(start, [])]
    while open_paths:
        node, path = open_paths.pop()
        if node == end:
            found.append(path)
        open_paths += [(int(head), [*path, e]) for e, (tail, head) in enumerate(edges.tolist()) if tail == node]
    return found


def made(seed, n=4, d=3, whole=False, signs=(0, 0, 0)):
    """Lattices, and the lists of all their paths."""
    rng = np.random.default_rng(seed)
    names = ["a", "b", "c", "d", "e", "f", "g"]
    edges, words, sizes, nodes, references, rows, paths = [], [], [], [], [], [], []
    for _ in range(n):
        count = int(rng.integers(2, 6))
        shuffled = rng.permutation(count)  # numbers of nodes are in no order
        own = [(t, t + 1) for t in range(count - 1)]
        own += [tuple(sorted(rng.choice(count, size=2, replace=False).tolist())) for _ in range(rng.integers(2, 6))]
        own = shuffled[np.array(own)][rng.permutation(len(own))]
        features = (
            rng.integers(-1, 2, size=(len(own), d)).astype(float) if whole else rng.standard_normal((len(own), d))
        )
        said = [None if rng.random() < 0.2 else str(rng.choice(names)) for _ in own]
        paths.append((paths_of(count, own, shuffled[0], shuffled[-1]), features, said))
        edges.append(own)
        words += said
        rows.append(features)
        sizes.append(len(own))
        nodes.append((count, shuffled[0], shuffled[-1]))
        references.append([" ".join(rng.choice(names, size=3))])
    metric, sign = SharedWords(), np.array(signs, dtype=np.int8)
    counts, starts, ends = zip(*nodes, strict=True)
    structure = Lattice(counts, np.concatenate(edges), offsets_of(sizes), starts, ends)
    lattices = TuningLattices(structure, np.concatenate(rows), words, references, metric, sign)
    texts = [[" ".join(said[e] for e in path if said[e]) for path in own] for own, _, said in paths]
    owner = np.repeat(np.arange(n), [len(own) for own in texts])
    statistics = metric.statistics([text for own in texts for text in own], references, owner)
    list_rows = np.array([features[path].sum(axis=0) for own, features, _ in paths for path in own])
    lists = TuningLists(offsets_of([len(own) for own in texts]), list_rows, statistics, metric, sign)
    metric.seen.clear()
    return lattices, lists


@given(seed=st.integers(0, 10**6), signed=st.booleans())
def test_a_search_finds_what_lists_of_all_paths_find(seed, signed):
    rng = np.random.default_rng(seed)
    signs = rng.integers(-1, 2, size=3) if signed else (0, 0, 0)
    lattices, lists = made(seed, signs=signs)
    weights = rng.standard_normal(3)
    weights = np.where(lists.signs == 0, weights, lists.signs * np.abs(weights))
    lines = LatticeLines(lattices)
    for direction in [*np.eye(3), rng.standard_normal(3)]:
        gamma, value, here = search(lines, weights, direction, lists.signs)
        assert (gamma, value, here) == pytest.approx(search(ListLines(lists), weights, direction, lists.signs))
        assert value == pytest.approx(best_on_line(lists, weights, direction))
        if value > here:
            assert lines.quality(weights + gamma * direction) == pytest.approx(value)
            assert lists.corpus_quality(lists.choose(weights + gamma * direction)) == pytest.approx(value)


@given(seed=st.integers(0, 10**6))
def test_changes_are_those_of_lists(seed):
    lattices, lists = made(seed)
    rng = np.random.default_rng(seed)
    weights, direction = rng.standard_normal((2, 3))
    ours = cut(LatticeLines(lattices).runs(weights, direction), -np.inf, np.inf)
    theirs = cut(ListLines(lists).runs(weights, direction), -np.inf, np.inf)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-8)
    np.testing.assert_array_equal(ours[1], theirs[1])


@given(seed=st.integers(0, 10**6), whole=st.booleans())
def test_weights_as_good_as_those_of_lists(seed, whole):
    lattices, lists = made(seed, n=6, whole=whole)
    method = Mert(restarts=3, random_directions=2)
    tuned = method.tune_lattices(lattices, seed=seed)
    assert tuned.details["quality"] >= tuned.details["start_quality"]
    assert LatticeLines(lattices).quality(tuned.weights) == tuned.details["quality"]
    if not whole:  # without ties
        assert tuned.details["quality"] == pytest.approx(method.tune(lists, seed=seed).details["quality"])
        assert lists.corpus_quality(lists.choose(tuned.weights)) == pytest.approx(tuned.details["quality"])


def test_statistics_of_a_text_are_computed_once():
    lattices, _ = made(3, n=5)
    Mert(restarts=4).tune_lattices(lattices)
    seen = lattices.metric.seen
    assert len(seen) == len(set(seen)) > 5


def test_threads_and_sparse_rows():
    lattices, _ = made(8, n=12)
    method = Mert(restarts=3, random_directions=1)
    first = method.tune_lattices(lattices, seed=2).weights
    with mm.threads(3):
        assert method.tune_lattices(lattices, seed=2).weights.tobytes() == first.tobytes()
    sparse = TuningLattices(
        lattices.structure,
        sp.csr_array(lattices.rows),
        lattices.words,
        lattices.references,
        lattices.metric,
        lattices.signs,
    )
    np.testing.assert_allclose(method.tune_lattices(sparse, seed=2).weights, first, rtol=1e-9)


def test_a_lattice_of_millions_of_paths():
    rng = np.random.default_rng(0)
    slots, width = 30, 4
    tail = np.repeat(np.arange(slots), width)
    edges = np.stack([tail, tail + 1], axis=1)
    words = [f"{chr(97 + a)}{s}" for s in range(slots) for a in range(width)]
    reference = " ".join(words[s * width + int(rng.integers(width))] for s in range(slots))
    features = rng.standard_normal((len(edges), 2))
    features[[word in reference.split() for word in words], 0] += 1.0
    structure = Lattice([slots + 1], edges, [0, len(edges)])
    metric, signs = SharedWords(), np.zeros(2, dtype=np.int8)
    tuned = Mert().tune_lattices(TuningLattices(structure, features, words, [[reference]], metric, signs))
    # Slots are independent, so a fine grid of directions is as good as all of them.
    best = max(
        LatticeLines(TuningLattices(structure, features, words, [[reference]], metric, signs)).quality(
            np.array([np.cos(angle), np.sin(angle)])
        )
        for angle in np.linspace(0, 2 * np.pi, 1001)
    )
    assert tuned.details["quality"] >= best


def test_bad_input_is_refused():
    lattices, _ = made(0)
    kept = (lattices.structure, lattices.rows, lattices.words, lattices.references, lattices.metric, lattices.signs)
    for at, short, name in (
        (1, lattices.rows[1:], "rows"),
        (2, lattices.words[1:], "words"),
        (3, [["a"]], "references"),
    ):
        with pytest.raises(ValueError, match=f"{name} has"):
            TuningLattices(*kept[:at], short, *kept[at + 1 :])
    lattices.rows[0, 0] = np.nan
    with pytest.raises(ValueError, match="example 0: scores or slopes are NaN"):
        Mert().tune_lattices(lattices)

"""Symmetrization against a twin that scans whole grids of Python sets, as the method was published."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import maxmargin as mm
from maxmargin.tasks import _kernels
from maxmargin.tasks.alignment.io.links import Prediction, as_links
from maxmargin.tasks.alignment.metrics.symmetrization import METHODS, symmetrize

GROWING = ("grow-diag", "grow-diag-final", "grow-diag-final-and")


def by_scans(forward: set, backward: set, method: str) -> set:
    """Scan after scan over all cells, target by target."""
    union, links = forward | backward, forward & backward
    sizes = [max((link[side] for link in union), default=-1) + 1 for side in (0, 1)]
    cells = [(i, j) for j in range(sizes[1]) for i in range(sizes[0])]
    beside = [(0, -1), (-1, 0), (0, 1), (1, 0)]
    diagonal = [(-1, -1), (1, -1), (-1, 1), (1, 1)]

    def free(link: tuple[int, int]) -> list[bool]:
        return [all(other[side] != link[side] for other in links) for side in (0, 1)]

    grown = True
    while grown:
        grown = False
        for i, j in cells:
            if (i, j) not in links:
                continue
            for di, dj in beside + diagonal:
                new = (i + di, j + dj)
                if new in union and new not in links and any(free(new)):
                    links.add(new)
                    grown = True
    if method == "grow-diag":
        return links
    enough = all if method == "grow-diag-final-and" else any
    for directed in (forward, backward):
        for cell in cells:
            if cell in directed and cell not in links and enough(free(cell)):
                links.add(cell)
    return links


def link_sets(size: int = 7):
    return st.sets(st.tuples(st.integers(0, size), st.integers(0, size)), max_size=3 * size)


def as_sets(links):
    return [set(map(tuple, one.tolist())) for one in links]


@given(st.lists(st.tuples(link_sets(), link_sets()), max_size=6), st.sampled_from(GROWING))
def test_growing_is_that_of_the_twin(pairs, method):
    forward, backward = ([as_links(pair[side]) for pair in pairs] for side in (0, 1))
    found = symmetrize(forward, backward, method)
    assert as_sets(found) == [by_scans(one, two, method) for one, two in pairs]
    for links in found:
        assert np.array_equal(links, as_links(links))
        assert links.dtype == np.int64


@given(st.lists(st.tuples(link_sets(), link_sets()), max_size=6))
def test_simple_methods(pairs):
    forward, backward = ([as_links(pair[side]) for pair in pairs] for side in (0, 1))
    for method, rule in {
        "intersection": set.intersection,
        "union": set.union,
        "forward": lambda one, two: one,
        "backward": lambda one, two: two,
    }.items():
        assert as_sets(symmetrize(forward, backward, method)) == [rule(one, two) for one, two in pairs]


@pytest.mark.parametrize("method", METHODS)
def test_same_links_for_any_number_of_threads(method):
    rng = np.random.default_rng(3)
    forward, backward = (
        [as_links(rng.integers(0, 12, size=(rng.integers(0, 30), 2))) for _ in range(2000)] for _ in range(2)
    )
    alone = symmetrize(forward, backward, method)
    for count in (2, 3):
        with mm.threads(count):
            for one, two in zip(alone, symmetrize(forward, backward, method), strict=True):
                assert np.array_equal(one, two)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_in_nothing_out(method):
    assert symmetrize([], [], method) == []
    none = as_links([])
    assert [len(links) for links in symmetrize([none, none], [none, none], method)] == [0, 0]


def test_an_example_by_hand():
    """A block around the seed grows; a lone link of one direction is added only if both of its words are free."""
    forward = as_links([(0, 0), (1, 1), (1, 2), (4, 4), (0, 5)])
    backward = as_links([(0, 0), (2, 1), (4, 0), (5, 3)])
    expected = {
        "grow-diag": [(0, 0), (1, 1), (1, 2), (2, 1)],
        "grow-diag-final": [(0, 0), (0, 5), (1, 1), (1, 2), (2, 1), (4, 4), (5, 3)],
        "grow-diag-final-and": [(0, 0), (1, 1), (1, 2), (2, 1), (4, 4), (5, 3)],
    }
    for method, links in expected.items():
        assert symmetrize([forward], [backward], method)[0].tolist() == [list(link) for link in links]


def test_the_order_is_by_target_then_source():
    """Two links compete for the same free word; scans by source first would take the other one."""
    both = [(0, 1), (2, 0)]
    forward, backward = as_links([*both, (1, 1)]), as_links([*both, (1, 0)])
    # Target word 0 comes first: beside (2, 0) lies (1, 0). After that (1, 1), beside (0, 1), has no free word.
    assert symmetrize([forward], [backward], "grow-diag")[0].tolist() == [[0, 1], [1, 0], [2, 0]]


def test_far_positions_and_long_chains():
    """Cost does not depend on the positions, and a chain that grows against the order of the scans is linear."""
    chain = np.stack([np.arange(50_000), np.arange(50_000)], axis=1)
    seed = chain[-1:]
    assert np.array_equal(symmetrize([chain], [seed], "grow-diag")[0], chain)
    far = as_links([(2**31 - 1, 2**31 - 1), (2**31 - 2, 2**31 - 2)])
    assert np.array_equal(symmetrize([far], [far[1:]], "grow-diag")[0], far)


def test_predictions_are_taken_as_links():
    links = as_links([(0, 0)])
    assert symmetrize([Prediction(links)], [links], "union")[0].tolist() == [[0, 0]]


def test_links_in_any_memory_order():
    links = as_links([(0, 0), (1, 1)])
    found = symmetrize([np.asfortranarray(links)], [np.argwhere(np.eye(2))], "union")
    assert np.array_equal(found[0], links)


def test_refused_input():
    good = as_links([(0, 0), (1, 1)])
    with pytest.raises(ValueError, match=r"unknown method 'grow'; choose one of intersection"):
        symmetrize([good], [good], "grow")
    with pytest.raises(ValueError, match="1 sentence pairs forward and 2 backward"):
        symmetrize([good], [good, good])
    with pytest.raises(ValueError, match=r"sentence 2: link \(-1, -1\) has a negative position"):
        symmetrize([good, good], [good, -good])
    for bad in (good[::-1], good[[0, 0]], good + 2**31):
        with pytest.raises(ValueError, match=r"sentence 2, backward: .*as_links"):
            symmetrize([good, good], [good, bad])
    with pytest.raises(ValueError, match="sentence 1: links must be an int64 array"):
        symmetrize([good.ravel()], [good])


def test_the_binding_checks_everything():
    start, links = np.array([0, 1]), np.array([[0, 0]])

    def call(method=0, a=start, b=links, c=start, d=links, out=None, count=None):
        out = np.zeros((2, 2), dtype=np.int64) if out is None else out
        _kernels.symmetrize_links(method, a, b, c, d, out, np.zeros(1, dtype=np.int64) if count is None else count, 1)

    call()
    for wrong in (
        {"method": 5},
        {"method": -1},
        {"a": np.array([0, 2])},
        {"a": np.array([1, 1])},
        {"a": np.array([0, 0])},
        {"a": np.zeros(0, dtype=np.int64)},
        {"c": np.array([0, 1, 0])},
        {"c": np.array([0, 1, 1])},
        {"b": np.array([0, 0, 0])},
        {"b": np.array([[-1, 0]])},
        {"d": np.array([[0, 1 << 31]])},
        {"a": np.array([0, 2]), "b": np.array([[0, 1], [0, 1]])},
        {"out": np.zeros((1, 2), dtype=np.int64)},
        {"count": np.zeros(2, dtype=np.int64)},
    ):
        with pytest.raises(ValueError):
            call(**wrong)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        call(b=links.astype(np.int32))

"""Matchings with fertility: layout against loops, best outputs against enumeration of sets of links."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.structures.base import PointStatus
from maxmargin.tasks.alignment.encoder.fertility import FertilityBatch

SHAPES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=5)


def batch_of(shapes, fertility):
    sizes = np.array(shapes, dtype=np.int64).reshape(-1, 2)
    return FertilityBatch(sizes[:, 0].copy(), sizes[:, 1].copy(), fertility)


def by_loops(shapes, fertility):
    """AlignerState one by one: kind, slot in its own list, edge; and capacities of the nodes."""
    D = fertility - 1
    parts, left, right = [], [], []
    cell = source = target = 0
    for J, K in shapes:
        for j in range(J):
            parts += [("cell", cell + j * K + k, (j, k)) for k in range(K)]
            parts += [("source", (source + j, d), (j, K + d * J + j)) for d in range(D)]
        parts += [("target", (target + k, d), (J + d * K + k, k)) for d in range(D) for k in range(K)]
        left += [fertility] * J + [1] * (D * K)
        right += [fertility] * K + [1] * (D * J)
        cell, source, target = cell + J * K, source + J, target + K
    return parts, left, right


@settings(deadline=None, derandomize=True, max_examples=80)
@given(SHAPES, st.integers(1, 4))
def test_layout_is_that_of_loops(shapes, fertility):
    batch = batch_of(shapes, fertility)
    parts, left, right = by_loops(shapes, fertility)
    structure = batch.structure
    assert batch.n_parts == structure.n_parts == len(parts)
    assert structure.n_examples == len(shapes)
    assert structure._order is None
    np.testing.assert_array_equal(batch.grid_start, np.cumsum([0] + [J * K for J, K in shapes]))
    assert batch.cells.shape == (batch.grid_start[-1],)
    assert batch.source_slots.shape == (sum(J for J, _ in shapes), fertility - 1)
    assert batch.target_slots.shape == (sum(K for _, K in shapes), fertility - 1)
    for part, (kind, at, edge) in enumerate(parts):
        where = {"cell": batch.cells, "source": batch.source_slots, "target": batch.target_slots}[kind]
        assert where[at] == part
        assert tuple(structure.edges[part].tolist()) == edge
    assert structure.left_capacity.tolist() == left
    assert structure.right_capacity.tolist() == right
    numbers = np.arange(batch.n_parts, dtype=np.float64)
    packed = batch.packed(numbers[batch.cells], numbers[batch.source_slots], numbers[batch.target_slots])
    np.testing.assert_array_equal(packed, numbers)


def link_sets(J, K, fertility):
    """All grids in which no word has more links than it may."""
    for bits in product((0, 1), repeat=J * K):
        grid = np.array(bits, dtype=np.int64).reshape(J, K)
        if (grid.sum(axis=0) <= fertility).all() and (grid.sum(axis=1) <= fertility).all():
            yield grid


def places_worth(scores, links, fertility):
    """The best that the words can make of their slots, given their numbers of links."""
    total = 0.0
    for own, n in zip(scores, links, strict=True):
        total += sum(sorted((max(float(x), 0.0) for x in own), reverse=True)[: fertility - n])
    return total


TINY = st.lists(st.sampled_from([(0, 0), (0, 2), (1, 0), (1, 1), (1, 3), (2, 2), (3, 1), (2, 3), (3, 3)]), max_size=3)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(TINY, st.integers(1, 3), st.integers(0, 10**6), st.booleans())
def test_the_best_output_is_the_best_set_of_links_with_costs(shapes, fertility, seed, ties):
    batch = batch_of(shapes, fertility)
    rng = np.random.default_rng(seed)

    def numbers(shape):
        return rng.integers(-2, 4, shape).astype(np.float64) if ties else rng.normal(0.5, 1.0, shape)

    cells, source, target = (numbers(parts.shape) for parts in (batch.cells, batch.source_slots, batch.target_slots))
    best = batch.structure.argmax(batch.packed(cells, source, target))
    assert (best.status == PointStatus.OK).all()
    s = t = 0
    for p, (J, K) in enumerate(shapes):
        grid = cells[batch.grid_start[p] : batch.grid_start[p + 1]].reshape(J, K)
        own, other = source[s : s + J], target[t : t + K]
        values = [
            (links * grid).sum()
            + places_worth(own, links.sum(axis=1), fertility)
            + places_worth(other, links.sum(axis=0), fertility)
            for links in link_sets(J, K, fertility)
        ]
        np.testing.assert_allclose(best.value[p], max(values), atol=1e-9)
        s, t = s + J, t + K


@settings(deadline=None, derandomize=True, max_examples=60)
@given(SHAPES, st.integers(1, 4), st.integers(0, 10**6))
def test_completed_outputs_are_legal_and_have_no_place_left(shapes, fertility, seed):
    batch = batch_of(shapes, fertility)
    rng = np.random.default_rng(seed)
    chosen = batch.within_fertility(rng.normal(0.0, 1.0, batch.cells.shape))[batch.cells]
    z = batch.complete(chosen)
    structure = batch.structure
    np.testing.assert_array_equal(structure.encode(structure.decode(z)), z)
    np.testing.assert_array_equal(z[batch.cells], chosen)
    s = t = 0
    for p, (J, K) in enumerate(shapes):
        links = chosen[batch.grid_start[p] : batch.grid_start[p + 1]].reshape(J, K)
        for slots, begin, n_links in (
            (batch.source_slots, s, links.sum(axis=1)),
            (batch.target_slots, t, links.sum(axis=0)),
        ):
            for word, n in enumerate(n_links):
                filled = z[slots[begin + word]]
                assert filled.sum() == min(fertility - 1, fertility - n)
                assert (np.diff(filled) <= 0).all()
        s, t = s + J, t + K
    # All slots of worth 1 and links worth nothing: nothing is better.
    worth = batch.packed(
        np.where(chosen > 0.5, 0.5, -1.0), *(np.ones(x.shape) for x in (batch.source_slots, batch.target_slots))
    )
    if fertility > 1:
        assert worth @ z <= structure.argmax(worth).value.sum() + 1e-9


@settings(deadline=None, derandomize=True, max_examples=40)
@given(TINY, st.integers(1, 3), st.integers(0, 10**6))
def test_what_does_not_fit_is_what_is_wanted_least(shapes, fertility, seed):
    batch = batch_of(shapes, fertility)
    wanted = np.random.default_rng(seed).normal(1.0, 1.0, batch.cells.shape)
    z = batch.within_fertility(wanted)
    np.testing.assert_array_equal(batch.structure.encode(batch.structure.decode(z)), z)
    kept = z[batch.cells]
    assert not kept[wanted <= 0].any()
    for p, (J, K) in enumerate(shapes):
        cells = slice(batch.grid_start[p], batch.grid_start[p + 1])
        best = max((links.ravel() * wanted[cells]).sum() for links in link_sets(J, K, fertility))
        np.testing.assert_allclose((kept * wanted)[cells].sum(), best, atol=1e-9)


def test_all_wanted_links_are_kept_where_there_is_room():
    batch = batch_of([(2, 2), (1, 3)], 2)
    wanted = np.array([1.0, 1.0, -1.0, 1.0, 1.0, 2.0, 3.0])
    assert batch.within_fertility(wanted)[batch.cells].tolist() == [1, 1, 0, 1, 0, 1, 1]


@pytest.mark.parametrize("fertility", [1, 2, 3])
def test_no_pairs(fertility):
    batch = batch_of([], fertility)
    assert batch.n_parts == 0
    assert batch.structure.n_examples == 0
    assert len(batch.complete(np.zeros(0))) == len(batch.within_fertility(np.zeros(0))) == 0

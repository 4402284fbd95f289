"""Projective trees of first and second order: against enumeration, general solvers and other threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import reference
from oracles.enumeration import gibbs, scores_of, worth
from oracles.structures.dependencies import (
    all_grandparents,
    all_siblings,
    grandparents,
    random_trees,
    siblings,
    trees,
    vertices,
)

from maxmargin import threads
from maxmargin.structures import PointStatus, ProjectiveTrees
from maxmargin.testing import check_structure

RULES = settings(deadline=None, derandomize=True, max_examples=30)
seeds = st.integers(0, 2**32 - 1)
SECOND = [(False, False), (True, False), (False, True), (True, True)]


@RULES
@given(seed=seeds, k=st.sampled_from([1, 4, 10**6]))
def test_k_best_and_marginals_equal_enumeration(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_trees(rng, 3)
    scores = scores_of(rng, structure)
    best, ranks, sums = structure.argmax(scores), structure.k_best(scores, k), structure.marginals(scores)
    np.testing.assert_array_equal(best.z, ranks[0].z)
    np.testing.assert_array_equal(best.status, ranks[0].status)
    for i, outputs in enumerate(vertices(structure)):
        own = structure.parts_of([i])
        values = worth(outputs, scores[own])
        wanted = np.sort(values[values > -np.inf])[::-1][:k]
        right = [points.status[i] == PointStatus.OK for points in ranks]
        assert right == [r < len(wanted) for r in range(len(ranks))]
        np.testing.assert_allclose([points.value[i] for points in ranks][: len(wanted)], wanted, atol=1e-12)
        listed = {points.z[own].tobytes() for points in ranks[: len(wanted)]}
        assert len(listed) == len(wanted)
        assert listed <= {row.tobytes() for row in outputs}
        np.testing.assert_allclose(structure.log_outputs()[i], np.log(len(outputs)), atol=1e-10)
        if not len(wanted):
            assert sums.status[i] == PointStatus.ABSENT
            continue
        z, value = gibbs(outputs, scores[own])
        np.testing.assert_allclose(sums.z[own], z, atol=1e-12)
        np.testing.assert_allclose(sums.value[i], value, atol=1e-12)


@RULES
@given(seed=seeds, hamming=st.booleans())
def test_slack_rescaling_equals_enumeration(seed: int, hamming: bool) -> None:
    rng = np.random.default_rng(seed)
    structure = random_trees(rng, 2, tokens=3)
    scores = scores_of(rng, structure)
    costs = (rng.integers(0, 2, size=structure.n_parts) if hamming else rng.random(structure.n_parts)).astype(float)
    margin, constants = rng.normal(size=2), rng.random(2)
    found = structure.slack_argmax(scores, margin, costs, constants)
    for i, outputs in enumerate(vertices(structure)):
        own = structure.parts_of([i])
        legal = outputs[worth(outputs, scores[own]) > -np.inf]
        if not len(legal):
            assert found.status[i] == PointStatus.ABSENT
            continue
        loss, good = legal @ costs[own] + constants[i], margin[i] + worth(legal, scores[own])
        assert found.status[i] == PointStatus.OK
        most = np.where((loss > 0) & (good > 0), loss * good, 0.0).max()
        np.testing.assert_allclose(found.value[i], most, atol=1e-12)


@RULES
@given(seed=seeds)
def test_trees_are_encoded_decoded_and_selected(seed: int) -> None:
    rng = np.random.default_rng(seed)
    structure = random_trees(rng, 3, tokens=3)
    for i, outputs in enumerate(vertices(structure)):
        one = structure.select([i])
        many = structure.select([i] * len(outputs))
        blocks = np.split(outputs, np.cumsum([int(np.diff(block.offsets)[0]) for block in one.blocks])[:-1], axis=1)
        packed = np.concatenate([block.ravel() for block in blocks])
        found = many.decode(packed)
        np.testing.assert_array_equal(np.asarray(many.encode(found)), packed)


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize(("brothers", "above"), SECOND)
def test_five_tokens_with_all_parts(single_root: bool, brothers: bool, above: bool) -> None:
    rng = np.random.default_rng(5)
    settings: dict[str, Any] = {"single_root": single_root, "siblings": brothers, "grandparents": above}
    structure = ProjectiveTrees.dense([5], **settings)
    outputs = vertices(structure)[0]
    assert len(outputs) == len(trees(5, single_root=single_root, projective=True))
    np.testing.assert_allclose(structure.log_outputs(), np.log(len(outputs)))
    scores = rng.normal(size=structure.n_parts)
    found = structure.k_best(scores, len(outputs) + 1)
    assert len(found) == len(outputs)
    np.testing.assert_allclose([points.value[0] for points in found], np.sort(outputs @ scores)[::-1], atol=1e-12)


def test_triples_of_long_sentences_stand_where_they_are_listed() -> None:
    rng = np.random.default_rng(1)
    for n in (7, 8):
        everything = ProjectiveTrees.dense([n], siblings=True, grandparents=True)
        lists = {"siblings": (all_siblings(n), [0, len(all_siblings(n))])}
        lists["grandparents"] = (all_grandparents(n), [0, len(all_grandparents(n))])
        arcs = [(h, m) for m in range(1, n + 1) for h in range(n + 1) if h != m]
        listed = ProjectiveTrees([n], arcs, [0, len(arcs)], **lists)
        assert listed.sizes.tolist() == everything.sizes.tolist()
        scores = rng.normal(size=listed.n_parts)
        best, same = everything.argmax(scores), listed.argmax(scores)
        np.testing.assert_array_equal(best.z, same.z)
        heads = tuple(everything.decode(best.z)[0].tolist())
        block = everything.starts
        assert sorted(siblings(heads)) == sorted(
            lists["siblings"][0][j] for j in np.flatnonzero(best.z[block[1] : block[2]])
        )
        assert sorted(grandparents(heads)) == sorted(
            lists["grandparents"][0][j] for j in np.flatnonzero(best.z[block[2] :])
        )
        np.testing.assert_array_equal(np.asarray(everything.encode([heads])), best.z)
        np.testing.assert_array_equal(np.asarray(listed.encode([heads])), best.z)


@pytest.mark.parametrize("second", [False, True])
def test_projection_and_linear_description_agree_with_a_general_solver(second: bool) -> None:
    rng = np.random.default_rng(3)
    structure = ProjectiveTrees.dense([3, 1], 1 if second else 2, siblings=second, grandparents=second)
    point = rng.normal(size=structure.n_parts)
    np.testing.assert_allclose(structure.project(point).z, reference.project(structure, point), atol=1e-6)
    scores = rng.normal(size=structure.n_parts)
    np.testing.assert_allclose(structure.argmax(scores).value.sum(), reference.maximum(structure, scores), atol=1e-9)


@pytest.mark.parametrize(("brothers", "above"), SECOND)
def test_the_same_bits_with_any_number_of_threads(brothers: bool, above: bool) -> None:
    rng = np.random.default_rng(0)
    structure = ProjectiveTrees.dense(rng.integers(1, 12, size=20), 2, siblings=brothers, grandparents=above)
    scores = rng.normal(size=structure.n_parts)
    with threads(1):
        one = structure.argmax(scores), structure.marginals(scores), *structure.k_best(scores, 4)
    with threads(3):
        three = structure.argmax(scores), structure.marginals(scores), *structure.k_best(scores, 4)
    for a, b in zip(one, three, strict=True):
        np.testing.assert_array_equal(a.z, b.z)
        np.testing.assert_array_equal(a.value, b.value)


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize(("brothers", "above"), SECOND)
def test_the_argmax_has_the_bits_that_the_ways_give(single_root: bool, brothers: bool, above: bool) -> None:
    """With grandparents it is found without a pass over the ways."""
    rng = np.random.default_rng(4)
    settings: dict[str, Any] = {"single_root": single_root, "siblings": brothers, "grandparents": above}
    for n in (1, 2, 9):
        structure = ProjectiveTrees.dense([n], 2, **settings)
        scores = rng.normal(size=structure.n_parts)
        scores[rng.random(structure.n_parts) < 0.1] = -np.inf
        starts, flat = structure._batch.ways()
        best, worth_of = np.full(int(starts[-1]) + 1, -np.inf), np.append(scores, 0.0)
        best[-1] = 0.0  # that of no item, as that of no part
        rows = flat.reshape(-1, 5)
        for item in np.unique(rows[:, 0]):
            _, left, right, part, own = rows[rows[:, 0] == item].T
            best[item] = (best[left] + best[right] + worth_of[part]).max() + worth_of[own[0]]
        assert structure.argmax(scores).value[0] == best[int(starts[-1]) - 1]


def test_keeps_the_promises_of_structures() -> None:
    rng = np.random.default_rng(2)
    check_structure(random_trees(rng, 4, order=1), rng)
    check_structure(random_trees(rng, 4, tokens=3), rng)


def test_candidates_without_a_tree_are_refused() -> None:
    with pytest.raises(
        ValueError, match="example 1: its candidate arcs do not contain a projective tree with one root"
    ):
        ProjectiveTrees([1, 2], [(0, 1), (0, 1), (0, 2)], [0, 1, 3])
    ProjectiveTrees([1, 2], [(0, 1), (0, 1), (0, 2)], [0, 1, 3], single_root=False)
    crossing = [(3, 1), (4, 2), (0, 3), (3, 4)]
    with pytest.raises(ValueError, match="example 0: its candidate arcs do not contain a projective tree"):
        ProjectiveTrees([4], crossing, [0, 4], n_labels=2, siblings=True, single_root=False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"siblings": 3}, "siblings must be True, False, or a tuple"),
        ({"siblings": ([(0, 0)], [0, 1])}, "three columns"),
        ({"siblings": ([(0, 0, 1)], [0, 2])}, "one more than examples, from 0 to the number of triples, 1"),
        ({"siblings": ([(1, 2, 2)], [0, 1])}, r"example 0: siblings has \(1, 2, 2\); it must be \(head, sibling"),
        ({"siblings": ([(1, 3, 2)], [0, 1])}, r"example 0: siblings has \(1, 3, 2\)"),
        ({"siblings": ([(1, 2, 3), (1, 1, 3)], [0, 2])}, r"siblings has \(1, 1, 3\) too late or twice"),
        ({"grandparents": ([(0, 0, 1)], [0, 1])}, "a head that is not the root"),
        ({"grandparents": ([(2, 1, 3)], [0, 1])}, "the grandparent not between"),
        ({"grandparents": ([(0, 1, 2), (0, 1, 2)], [0, 2])}, "too late or twice"),
        ({"grandparents": ([(4, 1, 2)], [0, 1])}, r"nodes in 0\.\.3"),
    ],
)
def test_triples_that_make_no_sense_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ProjectiveTrees.dense([3], **given)

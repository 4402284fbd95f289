"""Hashed features of trees: the map, its adjoint and single examples agree with the explicit matrix."""

import numpy as np
import pytest

from maxmargin import _kernels
from maxmargin.features.hashed import HashedTrees, Templates
from maxmargin.structures.dependencies.projective import ProjectiveTrees
from maxmargin.testing import check_features

TEMPLATES = Templates(
    keys={"a": ((0, 0),), "b": ((1, 0),), "ab": ((0, 0), (1, -1)), "next": ((0, 1), (1, 2))},
    arcs=(
        ("a", "b", ""),
        ("", "ab", ""),
        ("next", "", ""),
        *(
            ("a", "a", seen)
            for seen in ("same as head", "same as modifier", "both same", "kinds between", "edge", "place")
        ),
    ),
    siblings=(("a", "a", "a"), ("", "b", "ab")),
    grandparents=(("a", "b", "a"), ("next", "", "b")),
    between="b",
)


def features(rng, lengths, *, listed=False, bits=8, **blocks):
    arcs = offsets = None
    if listed:
        per = []
        for n in lengths:
            keep = [
                (h, m)
                for m in range(1, n + 1)
                for h in range(n + 1)
                if h != m and (h in (0, m - 1, m + 1) or rng.random() < 0.5)
            ]
            per.append(np.array(keep))
        arcs, offsets = np.concatenate(per), np.cumsum([0, *map(len, per)])
    trees = ProjectiveTrees(lengths, arcs, offsets, **blocks)
    n = int(np.sum(lengths)) + len(lengths)
    numbers = rng.integers(-1, 3, size=(n, 2)).astype(np.int32)
    tags, kinds = rng.integers(0, 3, size=n).astype(np.int32), rng.integers(0, 4, size=n).astype(np.uint8)
    return HashedTrees(trees, numbers, tags, kinds, TEMPLATES, bits)


CASES = [
    {},
    {"listed": True},
    {"siblings": True},
    {"siblings": True, "grandparents": True},
    {"siblings": True, "grandparents": True, "listed": True},
    {"siblings": True, "grandparents": True, "single_root": False},
    {"grandparents": True, "listed": True},
]


@pytest.mark.parametrize("case", CASES)
def test_the_map_is_its_matrix(case):
    rng = np.random.default_rng(0)
    one = features(rng, [1, 3, 5], bits=7, **case)
    matrix = one.to_sparse().toarray()
    weights, z = rng.normal(size=one.n_weights), rng.normal(size=one.n_parts)
    np.testing.assert_allclose(one.scores(weights), matrix @ weights, atol=1e-12)
    np.testing.assert_allclose(one.adjoint(z), matrix.T @ z, atol=1e-12)
    assert len(np.unique(matrix, axis=0)) > one.n_parts / 3  # parts differ
    check_features(one, one.trees)


def test_listed_triples_have_the_features_of_all():
    rng = np.random.default_rng(1)
    whole = features(rng, [5, 3], siblings=True, grandparents=True)
    weights = rng.normal(size=whole.n_weights)
    siblings = [[(h, s, m) for m in range(1, n + 1) for h in range(n + 1) if h != m
                 for s in (range(h, m) if h < m else range(h, m, -1))] for n in (5, 3)]  # fmt: skip
    above = [[(g, h, m) for m in range(1, n + 1) for h in range(1, n + 1) if h != m
              for g in range(n + 1) if not min(h, m) <= g <= max(h, m)] for n in (5, 3)]  # fmt: skip
    given = [(np.concatenate(some), np.cumsum([0, *map(len, some)])) for some in (siblings, above)]
    trees = ProjectiveTrees([5, 3], None, None, siblings=given[0], grandparents=given[1])
    listed = HashedTrees(trees, whole.numbers, whole.tags, whole.kinds, TEMPLATES, whole.bits)
    np.testing.assert_array_equal(listed.scores(weights), whole.scores(weights))
    np.testing.assert_array_equal(listed.to_sparse().toarray(), whole.to_sparse().toarray())


def test_threads_do_not_change_the_bits(monkeypatch):
    rng = np.random.default_rng(2)
    one = features(rng, rng.integers(1, 9, size=30), siblings=True, grandparents=True, bits=10)
    weights, outs = rng.normal(size=one.n_weights), [np.empty(one.n_parts) for _ in range(2)]
    for out, threads in zip(outs, (1, 3), strict=True):
        one.compiled.scores(weights, out, threads)
    np.testing.assert_array_equal(*outs)


def test_refusals():
    rng = np.random.default_rng(3)
    one = features(rng, [3])
    with pytest.raises(ValueError, match="must have a row for each of the 4 tokens and roots"):
        HashedTrees(one.trees, one.numbers[:2], one.tags, one.kinds, TEMPLATES, 8)
    with pytest.raises(ValueError, match="do not see labels, and the trees have 2"):
        HashedTrees(ProjectiveTrees.dense([3], 2), one.numbers, one.tags, one.kinds, TEMPLATES, 8)
    arrays = list(TEMPLATES.arrays)
    for place, bad in ((1, 2), (3, 99), (4, 99)):
        wrong = list(arrays)
        wrong[place] = np.full_like(wrong[place], bad)
        with pytest.raises(ValueError, match="does not exist"):
            _kernels.dependency_features(one.trees._batch, one.numbers, one.tags, one.kinds, *wrong, 8)

"""Cliques of junction trees: what test_tree.py, which takes them as one more kind of graph, does not ask."""

import itertools

import numpy as np
import pytest
from oracles import reference
from oracles.enumeration import gibbs, vertices

from maxmargin.structures.base import PointStatus
from maxmargin.structures.trees.junction import JunctionTree
from maxmargin.structures.trees.tree import Tree

OK, NONFINITE, ABSENT = PointStatus.OK, PointStatus.NONFINITE, PointStatus.ABSENT


def neighbors(length, size):
    """Cliques of consecutive nodes of a path."""
    return [tuple(range(t, t + size)) for t in range(length - size + 1)]


def second_order(lengths, n_labels):
    """Chains in which three neighbors are scored together, without edges."""
    return JunctionTree(
        lengths, n_labels, [], [0] * (len(lengths) + 1), cliques=[neighbors(length, 3) for length in lengths]
    )


def test_the_order_of_a_clique_counts():
    forward = JunctionTree([3], [2, 3, 4], [], [0, 0], cliques=[[(0, 1, 2)]])
    backward = JunctionTree([3], [2, 3, 4], [], [0, 0], cliques=[[(2, 0, 1)]])
    table = np.arange(24.0).reshape(2, 3, 4)[::-1, :, ::-1]
    one = forward.argmax(np.concatenate([np.zeros(9), table.ravel()]))
    two = backward.argmax(np.concatenate([np.zeros(9), table.transpose(2, 0, 1).ravel()]))
    assert one.value[0] == two.value[0] == 23.0
    for tree, points in ((forward, one), (backward, two)):
        assert tree.decode(points.z)[0].tolist() == [0, 2, 0]
        np.testing.assert_array_equal(tree.encode([[0, 2, 0]]), points.z)


def test_cliques_of_one_and_two_nodes_add_to_nodes_and_edges():
    rng = np.random.default_rng(1)
    plain = Tree([3, 2], 3, [[0, 1], [2, 1], [0, 1]], [0, 2, 3])
    tree = JunctionTree(
        [3, 2], 3, [[0, 1], [2, 1], [0, 1]], [0, 2, 3], cliques=[[(1,), (1, 2), (0,)], [(0, 1), (1,)]], width=1
    )
    assert tree.width.tolist() == [1, 1]
    assert [block.name for block in tree.blocks] == ["nodes", "edges", "cliques"]
    scores = rng.normal(size=tree.n_parts)
    same = scores[: plain.n_parts].copy()
    one, pair, two, both, three = np.split(scores[plain.n_parts :], [3, 12, 15, 24])
    same[3:6] += one
    same[0:3] += two
    same[12:15] += three
    same[15 + 9 : 15 + 18] += pair.reshape(3, 3).T.ravel()
    same[15 + 18 : 15 + 27] += both
    for method in ("argmax", "marginals"):
        ours, theirs = getattr(tree, method)(scores), getattr(plain, method)(same)
        np.testing.assert_allclose(ours.value, theirs.value, rtol=1e-13)
        np.testing.assert_allclose(ours.z[: plain.n_parts], theirs.z, atol=1e-13)
        np.testing.assert_allclose(ours.z[plain.n_parts :][:3], theirs.z[3:6], atol=1e-13)


def test_a_batch_with_and_without_cliques():
    """Examples without cliques beside others, an empty list, none at all, and select with repeats."""
    edges = [[0, 1], [1, 2], [0, 1]]
    tree = JunctionTree([3, 2, 0, 4], 2, edges, [0, 2, 3, 3, 3], cliques=[[], None, [], [(3, 0, 2), (1,), (0, 1)]])
    np.testing.assert_array_equal(tree.blocks[2].offsets, [0, 0, 0, 0, 14])
    rng = np.random.default_rng(2)
    scores = rng.normal(size=tree.n_parts)
    for i, outputs in enumerate(vertices(tree)):
        own = scores[tree.parts_of([i])]
        assert tree.argmax(scores).value[i] == pytest.approx((outputs @ own).max())
        means, value = gibbs(outputs, own)
        np.testing.assert_allclose(tree.marginals(scores).z[tree.parts_of([i])], means, atol=1e-14)
        assert tree.marginals(scores).value[i] == pytest.approx(value)
    chosen = [3, 1, 3, 2]
    some = tree.select(chosen)
    np.testing.assert_array_equal(some.width, tree.width[chosen])
    np.testing.assert_array_equal(some.cliques.nodes, [3, 0, 2, 1, 0, 1] * 2)
    parts = tree.parts_of(chosen)
    np.testing.assert_array_equal(some.marginals(scores[parts]).z, tree.marginals(scores).z[parts])
    np.testing.assert_allclose(tree.project(scores).z, reference.project(tree, scores), atol=1e-5)
    assert tree.select([0, 1]).n_parts == 3 * 2 + 8 + 2 * 2 + 4
    without = JunctionTree([3, 2, 0, 4], 2, edges, [0, 2, 3, 3, 3])
    assert len(without.blocks) == 2
    assert JunctionTree([], 2, [], [0], cliques=[]).argmax([]).z.size == 0


def test_warm_starts_do_not_mix_cliques():
    one = JunctionTree([3], 2, [], [0, 0], cliques=[[(0, 1, 2)]])
    two = JunctionTree([3], 2, [], [0, 0], cliques=[[(2, 1, 0)]])
    point = np.random.default_rng(3).normal(size=one.n_parts)
    warm = one.project(point).warm
    np.testing.assert_allclose(one.project(point, warm=warm).z, one.project(point).z, atol=2e-8)
    np.testing.assert_allclose(two.project(point, warm=warm).z, reference.project(two, point), atol=1e-5)


def test_labels_of_clique_parts():
    tree = JunctionTree([3], [2, 1, 2], [], [0, 0], labels=[1, 4, 2, 0, 7], cliques=[[(2, 0), (1,), (0, 1, 2)]])
    wanted = [[0, 1], [0, 4], [7, 1], [7, 4], [2], [1, 2, 0], [1, 2, 7], [4, 2, 0], [4, 2, 7]]
    digits = [sum(label * 8**place for place, label in enumerate(reversed(own))) for own in wanted]
    np.testing.assert_array_equal(tree.joint_labels(8), digits)
    for labels in ([1, 2, 7], [4, 2, 0]):
        z = tree.encode([labels]).dense()
        on = np.flatnonzero(z[tree.starts[2] :])
        assert [wanted[part] for part in on] == [[labels[2], labels[0]], [labels[1]], labels]
        assert tree.decode(z)[0].tolist() == labels


@pytest.mark.parametrize("n_labels", [4, 9])
def test_clusters_too_many_to_keep(n_labels):
    """A large example beside a small one: marginals agree, and are the gradient of the log-partition function."""
    size, k, length = 5, n_labels, 24
    tree = JunctionTree([length, 6], k, [], [0, 0, 0], cliques=[neighbors(length, size), neighbors(6, size)])
    rng = np.random.default_rng(n_labels)
    scores = rng.normal(size=tree.n_parts)
    entries = (length - size + 1) * k**size
    assert (entries > 1 << 20) == (n_labels == 9)
    points = tree.marginals(scores)
    assert (points.status == OK).all()
    z, begin = points.z, tree.starts[2]
    nodes = z[: length * k].reshape(length, k)
    tables = z[begin : begin + entries].reshape(-1, *[k] * size)
    for axis in range(size):
        others = tuple(place + 1 for place in range(size) if place != axis)
        np.testing.assert_allclose(tables.sum(axis=others), nodes[axis : axis + len(tables)], atol=1e-13)
    np.testing.assert_allclose(tables[:-1].sum(axis=1), tables[1:].sum(axis=size), atol=1e-13)
    direction = rng.normal(size=tree.n_parts)
    ahead, behind = (tree.marginals(scores + step * direction).value for step in (1e-5, -1e-5))
    np.testing.assert_allclose((ahead - behind) / 2e-5, tree.by_example(direction * z), rtol=1e-5)
    best = tree.argmax(scores)
    np.testing.assert_allclose(best.value, tree.by_example(scores * best.z))


def test_forbidden_joint_labels():
    """No two neighbors but one may change: -inf in a table of three."""
    tree = second_order([5], 2)
    scores = np.zeros(tree.n_parts)
    table = np.zeros((2, 2, 2))
    table[0, 1, 0] = table[1, 0, 1] = -np.inf
    scores[tree.starts[2] :] = np.tile(table.ravel(), 3)
    constraints = [
        y
        for y in itertools.product(range(2), repeat=5)
        if not any(y[t : t + 3] in ((0, 1, 0), (1, 0, 1)) for t in range(3))
    ]
    assert len(tree.k_best(scores, 32)) == len(constraints)
    assert tree.marginals(scores).value[0] == pytest.approx(np.log(len(constraints)))
    nothing = np.where(np.arange(tree.n_parts) >= tree.starts[2], -np.inf, 0.0)
    for points in (tree.argmax(nothing), tree.marginals(nothing), tree.k_best(nothing, 2)[0]):
        assert (points.status[0], points.value[0]) == (ABSENT, -np.inf)
        assert not points.z.any()


@pytest.mark.parametrize(
    ("cliques", "why"),
    [
        ([[], [(0, 1, 2)]], r"example 1 has a clique with nodes that it does not have, \(0, 1, 2\); number its nodes"),
        ([[(0, -1)], []], "example 0 has a clique with nodes that it does not have"),
        ([[(0, 1, 0)], []], r"example 0 has a clique with the same node more than once, \(0, 1, 0\); name each"),
        (
            [[(0, 1), (2,), (1, 0)], []],
            r"example 0 has a clique more than once, \(1, 0\); keep one clique for each set",
        ),
        ([[], [(0,), ()]], r"example 1 has a clique without nodes, \(\); leave it out"),
        ([[(0, 1.5)], []], r"example 0: its cliques must be a list of tuples of node numbers, but one is \(0, 1.5\)"),
        ([[(0, 1)], [[(0,), (1, 2)]]], "example 1: its cliques must be a list of tuples"),
        ([[(0, 1)], "ab"], "example 1: its cliques must be a list of tuples of node numbers, got 'ab'"),
        ([[(0, 1)], ["ab"]], "example 1: its cliques must be a list of tuples of node numbers, but one is 'ab'"),
        ([[(0, 1)], 3], "example 1: its cliques must be a list of tuples of node numbers, got 3"),
        ([[{0, 1}], []], "example 0: its cliques must be a list of tuples"),
        ([[]], "cliques has 1 entries for 2 examples; give one for each"),
        (3, "cliques must be a list with, for each example"),
    ],
)
def test_refused_cliques(cliques, why):
    with pytest.raises(ValueError, match=why):
        JunctionTree([3, 2], 2, [[0, 1]], [0, 1, 1], cliques=cliques)


def test_cliques_count_for_the_width():
    assert JunctionTree([4], 2, [], [0, 0], cliques=[[(0, 1, 2), (1, 2, 3)]], width=2).width.tolist() == [2]
    with pytest.raises(ValueError, match=r"example 0: its graph has a tree width above 1; .*leave out edges, cliques"):
        JunctionTree([4], 2, [], [0, 0], cliques=[[(0, 1, 2)]], width=1)
    ring = [(t, (t + 1) % 5, (t + 2) % 5) for t in range(5)]
    assert JunctionTree([5], 2, [], [0, 0], cliques=[ring]).width.tolist() == [4]
    with pytest.raises(ValueError, match="example 1 has a clique of more than 100000 joint labels"):
        JunctionTree([1, 6], 10, [], [0, 0, 0], cliques=[[], [tuple(range(6))]])
    assert JunctionTree([5], 10, [], [0, 0], cliques=[[tuple(range(5))]]).n_parts == 100_050
    with pytest.raises(ValueError, match=r"example 0: its graph needs a cluster of 1e\+06 joint labels"):
        JunctionTree([6], 10, [], [0, 0], cliques=[list(itertools.combinations(range(6), 2))])
    with pytest.raises(ValueError, match="example 0 has a clique of more than 32 nodes"):
        JunctionTree([40], 1, [], [0, 0], cliques=[[tuple(range(40))]])
    many = JunctionTree([32], 1, [], [0, 0], cliques=[[tuple(range(32))]])
    assert many.argmax(np.ones(33)).value[0] == 33.0
    assert many.marginals(np.ones(33)).value[0] == 33.0

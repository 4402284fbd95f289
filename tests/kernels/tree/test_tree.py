from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from networks import grid
from oracles import reference
from oracles.enumeration import gibbs, vertices

import maxmargin
from maxmargin import _kernels
from maxmargin.structures.base import PointStatus
from maxmargin.structures.chains.chain import Chain
from maxmargin.structures.trees.junction import JunctionTree
from maxmargin.structures.trees.tree import Tree

OK, NONFINITE, ABSENT = PointStatus.OK, PointStatus.NONFINITE, PointStatus.ABSENT


def cliqued(n_nodes, n_labels, edges, edge_offsets, *, labels=None):
    """A junction tree with up to three cliques of up to four nodes (three where there are many labels) per example."""
    rng = np.random.default_rng(np.sum(n_nodes, dtype=int) + len(edges))
    most = 4 if np.max(n_labels, initial=1) < 5 else 3
    cliques = []
    for size in n_nodes:
        found = {}
        for _ in range(3 if size > 1 else 0):
            clique = rng.permutation(size)[: rng.integers(1, min(size, most) + 1)].tolist()
            found.setdefault(frozenset(clique), clique)
        cliques.append(list(found.values()))
    return JunctionTree(n_nodes, n_labels, edges, edge_offsets, labels=labels, cliques=cliques)


KINDS = [Tree, JunctionTree, cliqued]
# A vector length is set for all examples of a test, so it does not matter that the fixture is not set up for each.
at_one_width = partial(
    settings, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def random_graphs(rng, kind, n, *, nodes=5, labels=3, joined=0.85, subsets=False):
    """Random forests, whose edges run either way; for junction trees with a few more edges."""
    sizes, edges, offsets, counts, numbers = [], [], [0], [], []
    for _ in range(n):
        size = int(rng.integers(0, nodes + 1))
        order = rng.permutation(size)
        own = [(order[j], order[rng.integers(0, j)]) for j in range(1, size) if rng.random() < joined]
        known = {frozenset(map(int, edge)) for edge in own}
        for _ in range(3 if kind is JunctionTree else 1 if kind is cliqued else 0):
            if size < 2:
                break
            pair = rng.choice(size, 2, replace=False)
            if frozenset(map(int, pair)) not in known:
                known.add(frozenset(map(int, pair)))
                own.append(tuple(pair))
        own = [edge[:: int(rng.choice([-1, 1]))] for edge in own]
        sizes.append(size)
        edges += [tuple(map(int, edge)) for edge in own]
        offsets.append(len(edges))
        counts += rng.integers(1, labels + 1, size=size).tolist()
    if subsets:
        numbers = [np.sort(rng.permutation(labels + 2)[:count]) for count in counts]
    return kind(
        sizes,
        counts,
        np.array(edges, dtype=int).reshape(-1, 2),
        offsets,
        labels=np.concatenate([np.zeros(0, dtype=int), *numbers]) if subsets else None,
    )


@st.composite
def small_graphs(draw):
    """A tiny batch with scores of the kind that make ties likely."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tree = random_graphs(rng, draw(st.sampled_from(KINDS)), draw(st.integers(0, 4)), subsets=draw(st.booleans()))
    scale = draw(st.sampled_from([1e-12, 0.3, 1.0, 10.0, 1e8]))
    scores = rng.normal(size=tree.n_parts) if draw(st.booleans()) else rng.integers(-2, 3, size=tree.n_parts)
    return tree, scale * scores.astype(float)


def path(length, n_labels):
    """Nodes 0 - 1 - 2 - ... with edges in both directions by turns."""
    edges = np.stack([np.arange(length - 1), np.arange(1, length)], axis=1)
    edges[1::2] = edges[1::2, ::-1]
    return Tree([length], n_labels, edges, [0, length - 1])


def chain_and_tree(lengths, n_labels):
    """The same batch as a chain and as a tree."""
    lengths = np.asarray(lengths)
    edges = [(t, t + 1) for length in lengths for t in range(length - 1)]
    offsets = np.concatenate([[0], np.cumsum(np.maximum(lengths - 1, 0))])
    tree = Tree(lengths, n_labels, np.array(edges, dtype=int).reshape(-1, 2), offsets)
    return Chain(lengths, n_labels, transitions="each"), tree


def assert_marginals(tree, points):
    """Node marginals sum to 1, those of edges and cliques to those of their nodes, to rounding."""
    z = points.z
    begin = np.cumsum(tree.n_labels) - tree.n_labels
    assert z.min(initial=0.0) >= 0.0
    nodes = [z[b : b + k] for b, k in zip(begin, tree.n_labels, strict=True)]
    at = tree.starts[1]
    for u, v in zip(*tree.ends, strict=True):
        table = z[at : at + len(nodes[u]) * len(nodes[v])].reshape(len(nodes[u]), len(nodes[v]))
        at += table.size
        np.testing.assert_allclose(table.sum(axis=1), nodes[u], atol=1e-13)
        np.testing.assert_allclose(table.sum(axis=0), nodes[v], atol=1e-13)
    for clique in np.split(tree.cliques.ends, tree.cliques.begin[1:-1]) if len(tree.cliques) else []:
        shape = tree.n_labels[clique]
        table = z[at : at + shape.prod()].reshape(shape)
        at += table.size
        for axis, v in enumerate(clique):
            others = tuple(other for other in range(len(clique)) if other != axis)
            np.testing.assert_allclose(table.sum(axis=others), nodes[v], atol=1e-13)
    np.testing.assert_allclose([own.sum() for own in nodes], 1.0, atol=1e-13)


@pytest.mark.usefixtures("every_vector_length")
@at_one_width(max_examples=60)
@given(small_graphs())
def test_argmax_is_the_best_of_all_labelings(case):
    tree, scores = case
    best = tree.argmax(scores)
    assert (best.status == OK).all()
    for i, outputs in enumerate(vertices(tree)):
        own = scores[tree.parts_of([i])]
        scale = np.abs(own).sum() + 1e-300
        assert best.value[i] == pytest.approx((outputs @ own).max(), abs=1e-13 * scale)
        assert best.value[i] == pytest.approx(best.z[tree.parts_of([i])] @ own, abs=1e-13 * scale)
    np.testing.assert_array_equal(tree.encode(tree.decode(best.z)), best.z)
    found = tree.labels(scores)
    np.testing.assert_array_equal(found.value, best.value)
    np.testing.assert_array_equal(found.outputs.flat, np.concatenate([[], *tree.decode(best.z)]))


@settings(max_examples=80, deadline=None, derandomize=True)
@given(small_graphs(), st.integers(1, 12))
def test_k_best_equals_enumeration(case, k):
    tree, scores = case
    ranks = tree.k_best(scores, k)
    for i, outputs in enumerate(vertices(tree)):
        parts = tree.parts_of([i])
        worth = np.sort(outputs @ scores[parts])[::-1][:k]
        scale = np.abs(scores[parts]).sum() + 1e-300
        found = [points for points in ranks if points.status[i] == OK]
        assert len(found) == len(worth)
        np.testing.assert_allclose([points.value[i] for points in found], worth, rtol=0, atol=1e-13 * scale)
        assert len({points.z[parts].tobytes() for points in found}) == len(worth)
        for one, two in pairwise(found):
            assert two.value[i] <= one.value[i]
        for points in found:
            assert points.value[i] == pytest.approx(points.z[parts] @ scores[parts], abs=1e-13 * scale)
        assert all(points.value[i] == -np.inf for points in ranks if points.status[i] == ABSENT)


@pytest.mark.usefixtures("every_vector_length")
@at_one_width(max_examples=60)
@given(small_graphs())
def test_marginals_equals_enumeration(case):
    tree, potentials = case
    points = tree.marginals(potentials)
    assert (points.status == OK).all()
    for i, outputs in enumerate(vertices(tree)):
        parts = tree.parts_of([i])
        means, value = gibbs(outputs, potentials[parts])
        size = np.abs(potentials[parts]).sum()
        assert points.value[i] == pytest.approx(value, rel=1e-13, abs=1e-13 * (1.0 + size))
        np.testing.assert_allclose(points.z[parts], means, atol=1e-13 * (1.0 + size))
    assert_marginals(tree, points)


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("k", [1, 2, 3, 7, 8, 9, 16, 17, 31, 45, 49, 100])
def test_all_numbers_of_labels_and_directions(k):
    """A path of three nodes of about k labels against its table of all labelings."""
    rng = np.random.default_rng(k)
    sizes = [k, max(1, k - 1), k + 2]
    for edges in ([[0, 1], [1, 2]], [[1, 0], [2, 1]], [[0, 1], [2, 1]], [[1, 0], [1, 2]]):
        tree = Tree([3], sizes, edges, [0, 2])
        scores = rng.normal(size=tree.n_parts)
        one, two, three = np.split(scores[: tree.starts[1]], np.cumsum(sizes)[:-1])
        tables, at = [], tree.starts[1]
        for u, v in edges:
            table = scores[at : at + sizes[u] * sizes[v]].reshape(sizes[u], sizes[v])
            at += table.size
            tables.append(table if u < v else table.T)
        total = one[:, None, None] + two[:, None] + three + tables[0][:, :, None] + tables[1]
        best = tree.argmax(scores)
        assert best.value[0] == pytest.approx(total.max(), rel=1e-13)
        np.testing.assert_array_equal(tree.decode(best.z)[0], np.unravel_index(total.argmax(), total.shape))
        weight = np.exp(total - total.max())
        points = tree.marginals(scores)
        assert points.value[0] == pytest.approx(np.log(weight.sum()) + total.max(), rel=1e-12)
        middle = weight.sum(axis=(0, 2)) / weight.sum()
        np.testing.assert_allclose(points.z[k : k + sizes[1]], middle, atol=1e-14)
        assert_marginals(tree, points)


@pytest.mark.parametrize("kind", KINDS)
def test_log_partition_function_has_the_marginals_as_gradient(kind):
    rng = np.random.default_rng(4)
    tree = random_graphs(rng, kind, 3, nodes=7)
    potentials, direction = rng.normal(size=(2, tree.n_parts))
    ahead, behind = (tree.marginals(potentials + step * direction).value for step in (1e-5, -1e-5))
    slope = tree.by_example(direction * tree.marginals(potentials).z)
    np.testing.assert_allclose((ahead - behind) / 2e-5, slope, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_marginals_is_stable_for_large_potentials(kind):
    rng = np.random.default_rng(5)
    tree = random_graphs(rng, kind, 20, nodes=6)
    whole = rng.integers(-1, 2, size=tree.n_parts).astype(float)
    for scale in (1e4, 1e8):
        points = tree.marginals(scale * whole)
        assert (points.status == OK).all()
        assert_marginals(tree, points)
        for i, outputs in enumerate(vertices(tree)):
            means, value = gibbs(outputs, scale * whole[tree.parts_of([i])])
            np.testing.assert_allclose(points.z[tree.parts_of([i])], means, atol=1e-14 * scale)
            assert points.value[i] == pytest.approx(value, rel=1e-13, abs=1e-14 * scale)
    # Differences of 1e300 leave no digits for the number of outputs; the marginals are still those of best outputs.
    points = tree.marginals(1e300 * whole)
    assert (points.status == OK).all()
    assert_marginals(tree, points)
    np.testing.assert_allclose(tree.by_example(whole * points.z), tree.argmax(whole).value, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_minus_infinity_forbids(kind):
    rng = np.random.default_rng(6)
    seen = set()
    for _ in range(60):
        tree = random_graphs(rng, kind, 4)
        scores = np.where(rng.random(tree.n_parts) < 0.3, -np.inf, rng.normal(size=tree.n_parts))
        best, points, ranks = tree.argmax(scores), tree.marginals(scores), tree.k_best(scores, 4)
        for i, outputs in enumerate(vertices(tree)):
            parts = tree.parts_of([i])
            worth = np.where(outputs > 0, np.where(outputs > 0, scores[parts], 0.0), 0.0).sum(axis=1)
            constraints = np.sort(worth[worth > -np.inf])[::-1]
            seen.add(len(constraints) > 0)
            found = [rank.value[i] for rank in ranks if rank.status[i] == OK]
            np.testing.assert_allclose(found, constraints[:4], atol=1e-12)
            if len(constraints):
                means, value = gibbs(outputs, scores[parts])
                assert best.status[i] == points.status[i] == OK
                assert best.value[i] == pytest.approx(constraints[0])
                assert points.value[i] == pytest.approx(value)
                np.testing.assert_allclose(points.z[parts], means, atol=1e-13)
            else:
                for result in (best, points, ranks[0]):
                    assert (result.status[i], result.value[i]) == (ABSENT, -np.inf)
                    assert not result.z[parts].any()
    assert seen == {True, False}


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("n_labels", [1, 2, 5, 11])
def test_a_chain_is_a_tree(n_labels):
    chain, tree = chain_and_tree([0, 1, 2, 5, 9], n_labels)
    rng = np.random.default_rng(n_labels)
    for scores in (rng.normal(size=chain.n_parts), rng.integers(-1, 2, size=chain.n_parts).astype(float)):
        both = [[kind.argmax(scores), *kind.k_best(scores, 9)] for kind in (chain, tree)]
        for one, two in zip(*both, strict=True):
            np.testing.assert_allclose(one.value, two.value, rtol=1e-14, atol=1e-14)
            np.testing.assert_array_equal(one.status, two.status)
        np.testing.assert_array_equal(chain.argmax(scores).z, tree.argmax(scores).z)
        np.testing.assert_allclose(chain.project(scores).z, tree.project(scores).z, atol=2e-8)
        if not chain.marginals_unsupported:
            np.testing.assert_allclose(chain.marginals(scores).z, tree.marginals(scores).z, atol=1e-10)
            np.testing.assert_allclose(chain.marginals(scores).value, tree.marginals(scores).value, rtol=1e-12)
    labels = chain.decode(chain.argmax(scores).z)
    np.testing.assert_array_equal(chain.encode(labels), tree.encode(labels))


def test_a_forest_is_a_junction_tree_of_width_one():
    rng = np.random.default_rng(7)
    tree = random_graphs(rng, Tree, 30, nodes=9)
    same = JunctionTree(tree.n_nodes, tree.n_labels, tree.edges, tree.edge_offsets, width=1)
    assert set(same.width.tolist()) <= {0, 1}
    scores = rng.normal(size=tree.n_parts)
    for method in ("argmax", "marginals", "project"):
        np.testing.assert_array_equal(getattr(tree, method)(scores).z, getattr(same, method)(scores).z)


@pytest.mark.parametrize("kind", KINDS)
def test_maximum_and_projection_equal_general_solvers(kind):
    rng = np.random.default_rng(8)
    for _ in range(6):
        tree = random_graphs(rng, kind, 4)
        scores = rng.normal(size=tree.n_parts)
        assert tree.argmax(scores).value.sum() == pytest.approx(reference.maximum(tree, scores), abs=1e-8)
        np.testing.assert_allclose(tree.project(scores).z, reference.project(tree, scores), atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_projection_of_larger_graphs_is_certified_by_the_argmax(kind):
    rng = np.random.default_rng(9)
    tree = random_graphs(rng, kind, 6, nodes=25, labels=4, joined=1.0)
    point = rng.normal(size=tree.n_parts)
    points = tree.project(point)
    assert (points.status == OK).all()
    residual = point - points.z
    gap = tree.argmax(residual).value - tree.by_example(residual * points.z)
    assert gap.max() <= 1e-8
    assert_marginals(tree, points)
    again = tree.project(point, warm=points.warm)
    np.testing.assert_allclose(again.z, points.z, atol=2e-8)


def test_grid_of_small_width_equals_brute_force():
    edges = grid(3, 4)
    tree = JunctionTree([12], 2, edges, [0, len(edges)])
    assert tree.width.tolist() == [3]
    rng = np.random.default_rng(10)
    scores = rng.normal(size=tree.n_parts)
    (outputs,) = vertices(tree)
    worth = outputs @ scores
    assert tree.argmax(scores).value[0] == pytest.approx(worth.max())
    means, value = gibbs(outputs, scores)
    points = tree.marginals(scores)
    np.testing.assert_allclose(points.z, means, atol=1e-13)
    assert points.value[0] == pytest.approx(value)
    ranks = [points.value[0] for points in tree.k_best(scores, 40)]
    np.testing.assert_allclose(ranks, np.sort(worth)[::-1][:40])


def test_a_wide_ladder_is_certified_by_single_changes():
    """A 4 x 60 grid of three labels: no change of a label or two improves on the argmax; marginals agree."""
    edges = grid(60, 4)
    tree = JunctionTree([240], 3, edges, [0, len(edges)])
    assert tree.width[0] <= 6
    rng = np.random.default_rng(11)
    scores = rng.normal(size=tree.n_parts)
    best = tree.argmax(scores)
    (labels,) = tree.decode(best.z)
    changed = np.repeat(labels[None], 300, axis=0)
    for row in changed:
        row[rng.integers(0, 240, size=2)] = rng.integers(0, 3, size=2)
    chosen = np.zeros(300, dtype=int)
    many = tree.select(chosen)
    assert (
        many.by_example(many.encode(list(changed)).dense() * scores[tree.parts_of(chosen)]).max()
        <= best.value[0] + 1e-9
    )
    assert_marginals(tree, tree.marginals(scores))
    values = [points.value[0] for points in tree.k_best(scores, 20)]
    assert values == sorted(values, reverse=True)
    assert values[0] == pytest.approx(best.value[0])


def test_a_path_of_fifty_thousand_nodes():
    tree = path(50_000, 3)
    rng = np.random.default_rng(12)
    scores = rng.normal(size=tree.n_parts)
    best, points = tree.argmax(scores), tree.marginals(scores)
    assert best.value[0] == pytest.approx(scores @ best.z, rel=1e-12)
    entropy = points.value[0] - scores @ points.z
    assert 0.0 < entropy < 50_000 * np.log(3.0)
    begin = np.arange(0, tree.starts[1], 3)
    np.testing.assert_allclose(np.add.reduceat(points.z[: tree.starts[1]], begin), 1.0, atol=1e-13)
    ranks = tree.k_best(scores, 3)
    for rank in ranks:
        assert rank.value[0] == pytest.approx(scores @ rank.z, rel=1e-12)
    assert ranks[0].value[0] == best.value[0] >= ranks[1].value[0] >= ranks[2].value[0]


def test_a_star_of_twenty_thousand_leaves():
    leaves = np.arange(1, 20_001)
    tree = Tree([20_001], 2, np.stack([np.zeros_like(leaves), leaves], axis=1), [0, 20_000])
    rng = np.random.default_rng(13)
    scores = rng.normal(size=tree.n_parts)
    nodes = scores[: tree.starts[1]].reshape(-1, 2)
    tables = scores[tree.starts[1] :].reshape(-1, 2, 2) + nodes[1:, None, :]
    assert tree.argmax(scores).value[0] == pytest.approx((nodes[0] + tables.max(axis=2).sum(axis=0)).max())
    value = np.logaddexp.reduce(nodes[0] + np.logaddexp.reduce(tables, axis=2).sum(axis=0))
    assert tree.marginals(scores).value[0] == pytest.approx(value)
    best = nodes[0] + tables.max(axis=2).sum(axis=0)
    lost = np.sort((tables.max(axis=2) - tables.min(axis=2))[:, best.argmax()])
    ranks = [points.value[0] for points in tree.k_best(scores, 3)]
    np.testing.assert_allclose(ranks, best.max() - [0.0, lost[0], min(lost[1], lost[0] + lost[1])], rtol=1e-12)


@pytest.mark.usefixtures("every_vector_length")
@pytest.mark.parametrize("kind", KINDS)
def test_same_bits_for_any_number_of_threads(kind):
    rng = np.random.default_rng(14)
    tree = random_graphs(rng, kind, 40, nodes=8, labels=9)
    scores = rng.normal(size=tree.n_parts)
    results = []
    for threads in (1, 2, 3):
        with maxmargin.threads(threads):
            runs = [tree.argmax(scores), tree.marginals(scores), tree.project(scores), *tree.k_best(scores, 4)]
        results.append(b"".join(run.z.tobytes() + run.value.tobytes() + run.status.tobytes() for run in runs))
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("kind", KINDS)
def test_select_keeps_the_labels_of_nodes(kind):
    tree, chosen = random_graphs(np.random.default_rng(15), kind, 6, subsets=True), [3, 0, 3, 5, 5]
    some, parts = tree.select(chosen), tree.parts_of(chosen)
    np.testing.assert_array_equal(some.part_states, tree.part_states[parts[: some.starts[1]]])
    scores = np.random.default_rng(16).normal(size=tree.n_parts)
    labels = tree.decode(tree.argmax(scores).z)
    for one, two in zip(some.decode(some.argmax(scores[parts]).z), [labels[i] for i in chosen], strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("kind", KINDS)
def test_degenerate_batches(kind):
    nothing = kind([0, 1, 0], 1, [], [0, 0, 0, 0])
    scores = np.array([2.5])
    np.testing.assert_array_equal(nothing.argmax(scores).value, [0.0, 2.5, 0.0])
    np.testing.assert_array_equal(nothing.marginals(scores).value, [0.0, 2.5, 0.0])
    np.testing.assert_array_equal(nothing.project(scores).z, [1.0])
    assert len(nothing.k_best(scores, 5)) == 1
    assert [labels.tolist() for labels in nothing.decode(np.ones(1))] == [[], [0], []]
    equal = kind([4], 3, [[0, 1], [1, 2], [1, 3]], [0, 3])
    assert equal.decode(equal.argmax(np.zeros(equal.n_parts)).z)[0].tolist() == [0, 0, 0, 0]
    np.testing.assert_allclose(equal.marginals(np.full(equal.n_parts, 7.0)).z[:12], 1 / 3, atol=1e-15)
    assert len(equal.k_best(np.zeros(equal.n_parts), 200)) == 81
    assert equal.argmax(np.full(equal.n_parts, 1e308)).status.tolist() == [NONFINITE]


def test_encode_and_decode():
    tree = Tree([3, 1], [2, 3, 2, 4], [[1, 0], [1, 2]], [0, 2, 2])
    z = tree.encode([[1, 2, 0], [3]]).dense()
    assert [labels.tolist() for labels in tree.decode(z)] == [[1, 2, 0], [3]]
    np.testing.assert_array_equal(np.flatnonzero(z[: tree.starts[1]]), [1, 4, 5, 10])
    np.testing.assert_array_equal(np.flatnonzero(z[tree.starts[1] :]), [5, 6 + 4])
    with pytest.raises(ValueError, match="1 labelings for 2 examples"):
        tree.encode([[1, 2, 0]])
    with pytest.raises(ValueError, match=r"example 0 has 3 nodes but its labels have shape \(2,\); give one label"):
        tree.encode([[1, 2], [3]])
    with pytest.raises(ValueError, match="example 1: labels must be integers"):
        tree.encode([[1, 2, 0], [0.5]])
    with pytest.raises(ValueError, match="example 0 has label 2 at node 2, where only 0, 1 are allowed"):
        tree.encode([[1, 2, 2], [3]])
    with pytest.raises(ValueError, match="example 1 has label -1 at node 0, where only 0, 1, 2, 3 are allowed"):
        tree.encode([[1, 2, 1], [-1]])
    assert tree.decode(np.full(tree.n_parts, np.nan))[0].tolist() == [0, 0, 0]


def test_nodes_with_labels_of_their_own():
    tree = Tree([2, 1], [2, 1, 2], [[0, 1]], [0, 1, 1], labels=[1, 4, 2, 0, 7])
    z = tree.encode([[4, 2], [7]]).dense()
    np.testing.assert_array_equal(z, [0, 1, 1, 0, 1, 0, 1])
    assert [labels.tolist() for labels in tree.decode(z)] == [[4, 2], [7]]
    for wrong in ([[0, 2], [7]], [[4, 2], [8]], [[4, 2], [-1]], [[2, 2], [0]]):
        with pytest.raises(ValueError, match=r"example \d has label -?\d at node 0, where only"):
            tree.encode(wrong)
    np.testing.assert_array_equal(tree.pair_labels(8), [1 * 8 + 2, 4 * 8 + 2])
    np.testing.assert_array_equal(tree.states_per_variable, [2, 1, 2])
    np.testing.assert_array_equal(tree.n_variables, [2, 1])
    for labels, why in (
        ([1, 1, 2, 0, 7], "example 0"),
        ([1, 4, -2, 0, 7], "example 0"),
        ([1, 4, 2, 7, 0], "example 1"),
    ):
        with pytest.raises(ValueError, match=why):
            Tree([2, 1], [2, 1, 2], [[0, 1]], [0, 1, 1], labels=labels)
    with pytest.raises(ValueError, match="one entry for each of the 5 node parts"):
        Tree([2, 1], [2, 1, 2], [[0, 1]], [0, 1, 1], labels=[0])


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (([2, 3], 2, [[0, 1], [0, 1], [1, 2], [2, 0]], [0, 1, 4]), "example 1: its edges form a cycle"),
        (([2, 3], 2, [[0, 1], [1, 1]], [0, 1, 2]), r"example 1, which has 3 nodes, has the self-loop \(1, 1\)"),
        (([2, 3], 2, [[0, 2]], [0, 1, 1]), r"example 0, which has 2 nodes, has the edge \(0, 2\)"),
        (([2, 3], 2, [[0, 1], [1, 0]], [0, 2, 2]), "example 0, which has 2 nodes, has more than once the edge"),
        (([2, -1], 2, [], [0, 0, 0]), "example 1: n_nodes must be at least 0, got -1"),
        (([2, 1], [2, 0, 3], [], [0, 0, 0]), "example 0: a node has 0 labels"),
        (([2, 1], [2, 1, 40_000], [], [0, 0, 0]), "example 1: a node has 40000 labels"),
        (([2, 1], [2, 1], [], [0, 0, 0]), "one for each of the 3 nodes"),
        (([2, 1], 2.5, [], [0, 0, 0]), "n_labels must be integers"),
        (([2, 1], 2, [], [0, 0]), "edge_offsets has 2 entries for 2 examples"),
        (([2, 1], 2, [[0, 1]], [0, 0, 0]), "edge_offsets must rise from 0 to the number of edges, 1"),
        (([2, 1], 2, [0, 1, 2], [0, 0, 0]), "two columns"),
        (([2, 2], 32_768, [[0, 1], [0, 1]], [0, 1, 2]), None),
        (([4], 32_768, [[0, 1], [0, 2], [0, 3]], [0, 3]), "example 0 has 2\\^31 parts or more"),
    ],
)
def test_refused_graphs(arguments, why):
    if why is None:
        assert Tree(*arguments).n_examples == 2
        return
    with pytest.raises(ValueError, match=why):
        Tree(*arguments)


def test_refused_widths():
    edges = grid(30, 30)
    with pytest.raises(ValueError, match=r"example 0: its graph needs a cluster of .* joint labels, more than 100000"):
        JunctionTree([900], 5, edges, [0, len(edges)])
    cycle = [[0, 1], [1, 2], [2, 0]]
    with pytest.raises(ValueError, match="example 0: its graph has a tree width above 1; use GraphSVM"):
        JunctionTree([3], 2, cycle, [0, 3], width=1)
    assert JunctionTree([3], 2, cycle, [0, 3], width=2).width.tolist() == [2]
    for width in (0, -1, 1.5):
        with pytest.raises(ValueError, match="width must be"):
            JunctionTree([3], 2, cycle, [0, 3], width=width)


@pytest.mark.parametrize("closed", [False, True])
def test_a_wheel_around_a_hub_of_many_nodes(closed):
    """The hub has too many neighbors to count their missing edges, but goes last."""
    n = 3_000
    rim = np.stack([np.arange(1, n), np.arange(2, n + 1)], axis=1)
    spokes = np.stack([np.zeros(n, dtype=int), np.arange(1, n + 1)], axis=1)
    edges = np.concatenate([rim, spokes, [[n, 1]] if closed else np.zeros((0, 2), dtype=int)])
    tree = JunctionTree([n + 1], 2, edges, [0, len(edges)])
    assert tree.width.tolist() == [3 if closed else 2]
    scores = np.random.default_rng(0).normal(size=tree.n_parts)
    best = tree.argmax(scores)
    assert best.value[0] == pytest.approx(scores @ best.z)


def test_the_binding_checks_what_it_is_given():
    nodes, labels = np.array([0, 2]), np.array([2, 2], dtype=np.int32)
    edges, offsets = np.array([[0, 1]], dtype=np.int32), np.array([0, 1])
    order = np.array([0, 1], dtype=np.int32)
    cliques = (np.array([0, 1]), np.array([0, 2]), np.array([1, 0], dtype=np.int32))
    good = (nodes, labels, edges, offsets, *cliques, order)
    batch = _kernels.TreeBatch(*good, 1e5)
    wrong = [
        (0, np.array([0, 3])),
        (0, np.array([1, 2])),
        (0, np.zeros(0, dtype=np.int64)),
        (1, np.array([2, 0], dtype=np.int32)),
        (1, np.array([2], dtype=np.int32)),
        (2, np.array([[0, 2]], dtype=np.int32)),
        (2, np.array([[1, 1]], dtype=np.int32)),
        (2, np.array([[-1, 1]], dtype=np.int32)),
        (2, np.zeros((2, 2), dtype=np.int32)),
        (3, np.array([0, 2])),
        (3, np.array([0, -1])),
        (4, np.array([0, 2])),
        (4, np.array([0])),
        (4, np.array([1, 1])),
        (4, np.array([0, -1])),
        (5, np.array([0, 3])),
        (5, np.array([0, 0])),
        (5, np.array([1, 2])),
        (5, np.zeros(0, dtype=np.int64)),
        (6, np.array([1, 1], dtype=np.int32)),
        (6, np.array([1, 2], dtype=np.int32)),
        (6, np.array([-1, 1], dtype=np.int32)),
        (6, np.array([1], dtype=np.int32)),
        (7, np.array([0, 0], dtype=np.int32)),
        (7, np.array([0, 2], dtype=np.int32)),
        (7, np.array([0], dtype=np.int32)),
    ]
    for at, value in wrong:
        given = [value if j == at else array for j, array in enumerate(good)]
        with pytest.raises(ValueError):
            _kernels.TreeBatch(*given, 1e5)
    z, value, status = np.zeros(12), np.zeros(1), np.zeros(1, dtype=np.int8)
    for method in (batch.argmax, batch.marginals):
        for short in ((np.zeros(8), z, value, status), (z, np.zeros(8), value, status), (z, z, np.zeros(0), status)):
            with pytest.raises(ValueError):
                method(*short, 1)
    for k in (0, -1, 1 << 31):
        with pytest.raises(ValueError):
            batch.k_best(k, np.zeros(12), z, value, status, 1)
    with pytest.raises(ValueError):
        batch.project(_kernels.HullBatch(np.array([8]), 1e-8), np.zeros(12), z, value, status, 1)
    triangle = np.array([[0, 1], [1, 2], [2, 0]], dtype=np.int32)
    none = np.zeros(2, dtype=np.int64), np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32)
    graph = np.array([0, 3]), np.full(3, 9, dtype=np.int32), triangle, np.array([0, 3])
    large = _kernels.TreeBatch(*graph, *none, np.arange(3, dtype=np.int32), 100.0)
    with pytest.raises(ValueError, match="larger than allowed"):
        large.argmax(np.zeros(270), np.zeros(270), value, status, 1)

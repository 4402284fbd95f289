"""Inputs and outputs that do not suit their structure: a ValueError that names the example."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from data import chains, cuts, graphs, matchings, pairings, same, segmented, trees
from refusals import BAD, EVERY, refused, spoiled
from sklearn.base import clone

import maxmargin as mm

# Chains


def test_empty_sequences(fitted):
    model, X, y = fitted["chain"]
    refused(model, spoiled(X, np.zeros((0, 3))), spoiled(y, []), rf"example {BAD}: an empty sequence.*remove", at=EVERY)


def test_labels_of_another_length(fitted):
    model, X, y = fitted["chain"]
    for bad in ([], [*y[BAD], "a"], y[BAD][:-1]):
        refused(model, X, spoiled(y, bad), f"example {BAD} has .*one label per position", at=("fit", "score"))


def test_unknown_labels(fitted):
    model, X, y = fitted["chain"]
    strange = spoiled(y, ["z"] * len(y[BAD]))
    refused(model, X, strange, rf"example {BAD}: label 'z' was not seen in training; give all labels", at=("score",))
    with pytest.raises(ValueError, match=rf"example {BAD}: label 'z' was not seen.*classes"):
        clone(model).set_params(classes=["a", "b", "c"]).fit(X, strange)
    with pytest.raises(ValueError, match=rf"dev data: example {BAD}: label 'z'"):
        clone(model).fit(X, y, dev=(X, strange))


@pytest.mark.parametrize("label", [["x"], {"x": 1}, {1}, np.zeros(2)])
def test_unhashable_labels(fitted, label):
    model, X, y = fitted["chain"]
    bad = spoiled(y, [label] * len(y[BAD]))
    refused(model, X, bad, rf"example {BAD}: labels must be hashable.*tuples", at=("fit", "score"))


def test_labels_that_are_nan(fitted):
    model, X, y = fitted["chain"]
    for bad in ([np.nan] * len(y[BAD]), np.full(len(y[BAD]), np.nan)):
        refused(model, X, spoiled(y, bad), f"example {BAD}: NaN cannot be a label", at=("fit", "score"))


def test_a_string_is_no_list_of_labels(fitted):
    model, X, y = fitted["chain"]
    for bad in ("".join(y[BAD]), set(y[BAD]), dict.fromkeys(y[BAD]), iter(y[BAD])):
        refused(model, X, spoiled(y, bad), rf"example {BAD}: y must be a list or 1-D array", at=("fit", "score"))


@pytest.mark.parametrize("classes", [[], ["a", "a"], [["a"], ["b"]], "abc", 3, [np.nan], {"a": 1, "b": 2}.keys])
def test_bad_classes(classes):
    with pytest.raises(ValueError, match="classes"):
        mm.ChainSVM(classes=classes).fit(*chains(3))


def test_edge_features_of_chains():
    X, y = chains(4, edges=True)
    model = mm.ChainSVM().fit(X, y)
    n = len(y[BAD])

    def with_edges(value):
        return spoiled(X, replace(X[BAD], edge_features=value))

    refused(model, with_edges(np.ones((n, 2))), y, rf"example {BAD}: {n} rows of edge features.*length - 1", at=EVERY)
    refused(model, with_edges(np.ones((n - 1, 3))), y, rf"example {BAD}: edge features have 3 columns", at=EVERY)
    refused(model, with_edges(np.full((n - 1, 2), np.nan)), y, rf"example {BAD}: edge features hold NaN", at=EVERY)
    refused(model, with_edges(np.ones(n - 1)), y, rf"example {BAD}: edge features must be a 2-D array", at=EVERY)
    refused(model, with_edges(None), y, rf"example {BAD}: no edge features.*for all or for none", at=EVERY)


# Matchings


def test_gold_matchings_that_are_none(fitted):
    model, X, y = fitted["matching"]
    left, right = X[BAD].shape[:2]
    for pairs, message in (
        ([[0, 0], [0, 1]], "left node 0 has 2 links.*raise left_capacity"),
        ([[0, 0], [1, 0]], "right node 0 has 2 links.*raise right_capacity"),
        ([[left, 0]], "is not an edge of its graph.*drop it"),
        ([[0, right]], "is not an edge of its graph.*drop it"),
        ([[-1, 0]], "is not an edge of its graph.*drop it"),
        ([[0, 0], [0, 0]], "is given more than once; list every pair once"),
        ([[0, 0, 0]], r"integer array of shape \(k, 2\)"),
        ([0, 1], r"integer array of shape \(k, 2\)"),
        ([[0.0, 1.0]], r"integer array of shape \(k, 2\)"),
        ([["0", "1"]], r"integer array of shape \(k, 2\)"),
        ([[True, False]], r"integer array of shape \(k, 2\)"),
        (np.eye(3), r"integer array of shape \(k, 2\)"),
    ):
        refused(model, X, spoiled(y, pairs), f"example {BAD}: .*{message}", at=("fit", "score"))


def test_pairings(fitted):
    X, y = pairings(full=True)
    model, n = fitted["pairing"][0], len(X[BAD])
    assert same(mm.PairingSVM().fit(X, y).predict(X), model.predict(fitted["pairing"][1]))
    for pairs, message in (
        ([[0, 1], [1, 2]], "node 1 has 2 partners.*drop pairs"),
        ([[0, 0]], "is not an edge of its graph.*drop it"),
        ([[0, n]], "is not an edge of its graph.*drop it"),
        ([[0, 1, 2]], r"integer array of shape \(k, 2\)"),
        ([[0.0, 1.0]], r"integer array of shape \(k, 2\)"),
    ):
        refused(model, X, spoiled(y, pairs), f"example {BAD}: .*{message}", at=("fit", "score"))
    refused(model, spoiled(X, X[BAD][:2]), y, rf"example {BAD}: X must be .* got shape", at=EVERY)
    edges = [[0, 1], [2, 3]]
    for graph, message in (
        (mm.PairGraph(np.zeros((3, 3)), edges), "3 rows of features for 2 edges; give one per edge"),
        (mm.PairGraph(np.zeros((2, 3)), edges, 2.5), "n_nodes must be"),
        (mm.PairGraph(np.zeros((2, 3)), [[0, 1], [1, 0]]), "more than once"),
        (mm.PairGraph(np.zeros((2, 3)), edges, 3), "number its nodes from 0"),
    ):
        refused(model, spoiled(X, graph), y, f"example {BAD}.*{message}", at=EVERY)
    with pytest.raises(ValueError, match="perfect must be"):
        mm.PairingSVM(perfect="yes").fit(*pairings(3))
    with pytest.raises(ValueError, match="has no partner; add a pair, or use perfect=False"):
        mm.PairingSVM(perfect=True).fit(*pairings(6))


def test_segments(fitted):
    model, X, y = fitted["segments"]
    n = len(X[BAD])
    for rows, message in (
        ([(0, n + 1, "a")], "ends after the sequence|longer than its label allows"),
        ([(1, n, "a")], "does not begin where the one before it ends"),
        ([(0, 1, "c")], "label 'c' was not seen in training" if n else ""),
        ([(0, 1)], r"must be a list of segments \(begin, end, label\)"),
        ([(0.0, 1, "a")], "must be positions, whole numbers from 0 on"),
        ([(-1, 1, "a")], "must be positions, whole numbers from 0 on"),
        ([(0, 1, [])], "labels must be hashable"),
        ("aab", "must be a list of segments"),
        (3, "must be a list of segments"),
    ):
        at = ("fit",) if "c" not in str(rows) else ()
        refused(model, X, spoiled(y, rows), f"example {BAD}: .*({message})", at=at)
    with pytest.raises(ValueError, match=f"example {BAD}: label 'c' was not seen"):
        mm.SegmentSVM(classes=["a", "b"]).fit(X, spoiled(y, [(0, 1, "c")]))
    for settings, message in (
        ({"longest": 0}, "longest must be"),
        ({"longest": {"c": 2}}, "longest names 'c', which is not a label; there are a, b"),
        ({"longest": {"a": "2"}}, r"longest\['a'\] must be"),
        ({"roles": "IO"}, "roles must be"),
        ({"forbidden": [("a", "c")]}, "forbidden names 'c', which is not a label; there are a, b"),
        ({"forbidden": [("a",)]}, "must be pairs"),
        ({"forbidden": "ab"}, "forbidden"),
        ({"longest": 1}, "is longer than its label allows"),
    ):
        with pytest.raises(ValueError, match=message):
            mm.SegmentSVM(**settings).fit(X, y)
    with pytest.raises(
        ValueError, match=r"example 0: 3 rows of segment features for \d+ segments .*candidate_segments"
    ):
        mm.SegmentSVM(longest=3).fit([mm.SegmentSequence(x, np.zeros((3, 1))) for x in X], y)
    rich = mm.SegmentSVM().fit(*segmented(whole=True))
    with pytest.raises(ValueError, match="segment features must be given for all sequences"):
        rich.predict(X)
    with pytest.raises(ValueError, match="example 0: no segment features, but 1 of 2 sequences have them"):
        rich.predict([X[0], segmented(1, whole=True)[0][0]])


def test_a_gold_link_that_was_pruned():
    X, y = matchings(4, pruned=True)
    left, right = X[BAD].shape
    kept = X[BAD].edges.tolist()
    gone = next([j, k] for j in range(left) for k in range(right) if [j, k] not in kept)
    model = mm.MatchingSVM().fit(X, y)
    refused(model, X, spoiled(y, [gone]), rf"example {BAD}: pair .*drop it or add", at=("fit", "score"))


def test_graphs_of_matchings():
    X, y = matchings(4, pruned=True)
    model = mm.MatchingSVM().fit(X, y)
    good = X[BAD]
    for changes, message in (
        ({"edges": np.concatenate([good.edges[1:], good.edges[1:2]])}, "more than once"),
        ({"edges": good.edges + 10}, "outside its graph.*number the nodes"),
        ({"edges": good.edges - 1}, "outside its graph.*number the nodes"),
        ({"edges": good.edges[:-1]}, "edges but .*one row per edge"),
        ({"edges": good.edges.astype(float)}, r"integer array of shape \(n_edges, 2\)"),
        ({"edges": "ab"}, r"integer array of shape \(n_edges, 2\)"),
        ({"edges": None}, r"integer array of shape \(n_edges, 2\)"),
        ({"edges": [[0, 1], [2]]}, r"integer array of shape \(n_edges, 2\)"),
        ({"edges": good.edges[:, :1]}, r"integer array of shape \(n_edges, 2\)"),
        ({"shape": (0, 3)}, "at least one node on each side.*remove"),
        ({"shape": (2,)}, "shape must be"),
        ({"shape": 3}, "shape must be"),
        ({"shape": None}, "shape must be two integers"),
        ({"shape": "ab"}, "shape must be two integers"),
        ({"shape": (2.5, 3)}, "shape must be two integers"),
        ({"shape": (-1, 3)}, "at least one node"),
        ({"left_capacity": -1}, "left_capacity must be integers >= 0"),
        ({"left_capacity": 1.5}, "left_capacity must be integers >= 0"),
        ({"right_capacity": [1] * 99}, "right_capacity must be integers >= 0, one or"),
        ({"right_capacity": "many"}, "right_capacity must be integers >= 0, one or"),
    ):
        refused(model, spoiled(X, replace(good, **changes)), y, f"example {BAD}: .*{message}", at=EVERY)


@pytest.mark.parametrize("shape", [(0, 3, 3), (3, 0, 3), (0, 0, 3)])
def test_matchings_without_nodes(fitted, shape):
    model, X, y = fitted["matching"]
    refused(model, spoiled(X, np.zeros(shape)), spoiled(y, []), rf"example {BAD}: .*remove", at=EVERY)


@pytest.mark.parametrize("value", [0, -1, 1.5, "2", None, True, np.inf])
@pytest.mark.parametrize("side", ["left_capacity", "right_capacity"])
def test_capacities(side, value):
    with pytest.raises(ValueError, match=f"{side} must be an integer >= 1"):
        mm.MatchingSVM(**{side: value}).fit(*matchings(3))


# Lattices


def test_gold_paths_that_are_none(fitted):
    model, X, y = fitted["lattice"]
    path = y[BAD]
    for given, message in (
        (path[::-1], "not a path from node 0 to node .* give the path's edges in order"),
        (path[:-1], "not a path .* after the last entry"),
        ([], "not a path"),
        ([*path, path[-1]], "not a path"),
        ([-1], "edge -1 is out of range"),
        ([99], "edge 99 is out of range"),
        (3, "y must be a path, a vector of edge numbers, or a list of several paths"),
        (path.astype(float), "y must be a path"),
        (path.astype(str), "y must be a path"),
        (None, "y must be a path"),
        ([path, [0.5]], "y must be a path"),
        ([path, 3], "y must be a path"),
        (np.zeros((0, 3), dtype=int), "no path is good"),
    ):
        refused(model, X, spoiled(y, given), f"example {BAD}: .*{message}", at=("fit", "score"))
    several = [path, path]
    refused(model, X, spoiled(y, several), f'example {BAD}: several paths are good; use formulation="all"', at=("fit",))
    assert model.score(X, spoiled(y, several)) == model.score(X, y)


def test_graphs_of_lattices(fitted):
    model, X, y = fitted["lattice"]
    good = X[BAD]
    n = len(good.edges)
    for changes, message in (
        ({"edges": good.edges[:, ::-1]}, "there is no path from node 0"),
        ({"edges": np.concatenate([good.edges[:-1], [[1, 0]]])}, "its edges form a cycle.*drop or turn an edge"),
        ({"edges": good.edges - 1}, "has a node out of range; number nodes from 0"),
        ({"edges": good.edges + 2**40}, "has a node out of range; number nodes from 0"),
        ({"edges": good.edges[:-1]}, "edges but .*one row per edge"),
        ({"edges": good.edges.astype(float)}, r"integer array of shape \(n_edges, 2\)"),
        ({"edges": None}, r"integer array of shape \(n_edges, 2\)"),
        ({"start": -1}, "start must be one node number >= 0"),
        ({"start": 0.5}, "start must be one node number"),
        ({"start": [0, 1]}, "start must be one node number"),
        ({"start": 99, "end": 99}, None),
        ({"end": 99}, "there is no path from node 0 to node 99; add edges, give another start or end"),
        ({"end": "x"}, "end must be one node number"),
        ({"words": ["a"] * (n - 1)}, f"words must be {n} words, one per edge"),
        ({"words": "a" * n}, f"words must be {n} words"),
        ({"words": 3}, f"words must be {n} words"),
        ({"words": sp.csr_array((n, n))}, f"words must be {n} words"),
        ({"words": [["a"]] * n}, "words must be strings or other hashable values"),
    ):
        changed = spoiled(X, replace(good, **changes))
        if message is None:
            assert len(model.predict(changed)[BAD]) == 0
        else:
            refused(model, changed, y, f"example {BAD}: .*{message}", at=EVERY)
    refused(model, spoiled(X, good.features), y, rf"example {BAD}: X must be mm\.WordLattice", at=EVERY)


def test_other_settings_of_lattices(fitted):
    model, X, y = fitted["lattice"]
    for settings, message in (
        ({"formulation": "nearest"}, "formulation must be"),
        ({"formulation": "best", "rounds": 0}, "rounds must be"),
        ({"formulation": "all", "rescaling": "slack"}, "a margin of 1 or of their costs"),
        ({"formulation": "all"}, "give the costs of all outputs"),
        ({"features": "rbf"}, "features must be None or a kernel"),
    ):
        with pytest.raises(ValueError, match=message):
            mm.LatticeSVM(**settings).fit(X, y)
    with pytest.raises(ValueError, match="distinct must be"):
        model.k_best(X, 2, distinct="edges")
    with pytest.raises(ValueError, match="the lattices have no words"):
        model.k_best([replace(x, words=None) for x in X], 2, distinct="words")
    with pytest.raises(ValueError, match="k_best_words is for lattices, not for a chain"):
        fitted["chain"][0].model_.k_best_words(fitted["chain"][1], 2)
    with pytest.raises(ValueError, match="the lattice has no words"):
        mm.words_of(replace(X[0], words=None), y[0])
    with pytest.raises(ValueError, match="slot 1 has 0 alternatives"):
        mm.WordLattice.confusion_network(np.zeros((2, 1)), [2, 0])


# Cuts


GRAPHS = {
    "associative": (mm.AssociativeSVM, graphs()),
    "cut": (mm.CutSVM, cuts()),
    "graph": (mm.GraphSVM, graphs(signed=True)),
    "tree": (mm.TreeSVM, trees(edges=True)),
}


@pytest.mark.parametrize("kind", GRAPHS)
def test_graphs(kind):
    estimator, (X, y) = GRAPHS[kind]
    model, good = estimator().fit(X, y), X[BAD]
    nodes, edges, rows = good.node_features, good.edges, good.edge_features
    d = rows.shape[1]

    def second(*pair):
        return np.concatenate([edges[:1], [pair], edges[2:]])

    listed = "k_best" if kind in ("cut", "tree") else "relaxation"
    at, pairs = ("fit", "predict", "score", "decision_function", listed), r"integer array of shape \(n_edges, 2\)"
    for changes, message in (
        ({"edges": second(1, 1)}, "self-loop.*leave it out"),
        ({"edges": second(*edges[0])}, "more than once.*keep one edge"),
        ({"edges": second(*edges[0][::-1])}, "more than once.*keep one edge"),
        ({"edges": second(0, len(nodes))}, "number its nodes from 0"),
        ({"edges": second(-1, 0)}, "number its nodes from 0"),
        ({"edges": edges.astype(float)}, pairs),
        ({"edges": edges.reshape(-1)}, pairs),
        ({"edges": None}, pairs),
        ({"edges": "edges"}, pairs),
        ({"edges": [[0, 1], [2]]}, pairs),
        ({"edges": edges[:-1]}, "edges but .*one row per edge"),
        ({"edge_features": rows[1:]}, "one row per edge"),
        ({"edge_features": rows * np.nan}, "edge features hold NaN or infinity in row 0"),
        ({"edge_features": rows[:, 0]}, "edge features must be a 2-D array"),
        ({"edge_features": []}, "edge features must be a 2-D array"),
        ({"edge_features": np.hstack([rows, rows])}, f"edge features have {2 * d} columns, expected {d}"),
        ({"edge_features": rows[:, 1:]}, f"edge features have {d - 1} columns, expected {d}"),
        ({"edge_features": "ab"}, "edge features must be real numbers"),
        ({"node_features": nodes[:, 1:]}, "node features have . columns, expected"),
        ({"node_features": np.vstack([nodes[:2], nodes[2:] * np.nan])}, "node features hold NaN or infinity in row 2"),
        ({"node_features": nodes[:0]}, "at least one node; remove it"),
    ):
        refused(model, spoiled(X, replace(good, **changes)), y, rf"example {BAD}\b.*{message}", at=at)
    for bad in (nodes, (nodes, edges), None, "graph", {}):
        refused(model, spoiled(X, bad), y, rf"example {BAD}: X must be a list of mm\.Graph", at=at)


def test_edge_features_of_cuts(fitted):
    model, X, y = fitted["cut"]
    good = X[BAD]
    negative = good.edge_features.copy()
    negative[1, 1] = -0.5
    for rows, message in (
        (negative, "edge features must be >= 0.*(shift|split)"),
        (sp.csr_array(negative), "edge features must be >= 0.*(shift|split)"),
        (None, "edge features have 1 columns, expected 2"),
    ):
        refused(model, spoiled(X, replace(good, edge_features=rows)), y, rf"example {BAD}\b.*{message}", at=EVERY)


def test_labels_of_cuts(fitted):
    model, X, y = fitted["cut"]
    n = len(y[BAD])
    for bad in (
        np.full(n, 2),
        np.full(n, -1),
        np.full(n, 0.5),
        np.full(n, np.nan),
        np.zeros(n + 1),
        np.zeros(n - 1),
        np.zeros((n, 1)),
        ["0"] * n,
        [None] * n,
        [1j] * n,
        np.zeros(n, dtype=complex),
    ):
        refused(model, X, spoiled(y, bad), rf"example {BAD}\b.*(give|must be).* 0 or 1", at=("fit", "score"))


def test_fractional_outputs_are_not_silent():
    A, features = [[1, 1, 0], [0, 1, 1], [1, 0, 1]], np.ones((3, 1))
    model = mm.ProgramSVM(C=10.0).fit([mm.Program(features, A, [2, 2, 2])] * 3, [[1, 1, 1]] * 3)
    with pytest.warns(UserWarning, match="relaxed=True"):
        model.predict([mm.Program(features, A, [1, 1, 1])])


def test_a_broken_constraint_is_given_in_its_own_units():
    with pytest.raises(ValueError, match="by 10"):
        mm.ProgramSVM().fit([mm.Program(np.ones((3, 2)), [[10, 10, 10]], [10])], [[1, 1, 0]])

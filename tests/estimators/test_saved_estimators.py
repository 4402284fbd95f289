"""Every kind of estimator saved, loaded, pickled and cloned, and the states of their encoders damaged."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from data import (
    chains,
    charts,
    cliqued,
    cuts,
    graphs,
    lattices,
    matchings,
    pairings,
    same,
    segmented,
    sentences,
    spellings,
    teams,
    trees,
)
from sklearn.base import clone
from test_programs import odd_cycles

import maxmargin as mm

ESTIMATORS = {
    "associative": (mm.AssociativeSVM(), graphs()),
    "associative, one weight for all labels": (mm.AssociativeSVM(per_label=False), graphs()),
    "associative, cliques": (mm.AssociativeSVM(per_label=False), teams(4, labels=("a", "b", "c"), features=True)),
    "chain": (mm.ChainSVM(), chains()),
    "cliques": (mm.TreeSVM(tol=1e-2), cliqued()),
    "cliques with features": (mm.TreeSVM(tol=1e-2), cliqued(features=True)),
    "cut": (mm.CutSVM(), cuts()),
    "cut, cliques": (mm.CutSVM(), teams(5)),
    "cut, cliques, regular": (mm.CutSVM(potentials="regular"), teams(5, features=True)),
    "cut, regular": (mm.CutSVM(potentials="regular", C=2.0), cuts()),
    "edits": (mm.EditSVM(classes_of={"a": "vowel", "e": "vowel"}, random_state=0), spellings()),
    "edits, no match": (
        mm.EditSVM(gaps="linear", nonmatches=True, symmetric=True, random_state=0),
        spellings(nonmatches=True),
    ),
    "dependency": (mm.DependencySVM(order=2), sentences(labels=("a", "b"), second=True)),
    "dependency, crossing": (
        mm.DependencySVM(projective=False, single_root=False),
        sentences(labels=("a", "b"), projective=False),
    ),
    "graph": (mm.GraphSVM(), graphs(signed=True)),
    "grammar": (mm.GrammarSVM(), charts(splits=True)),
    "lattice": (mm.LatticeSVM(), lattices()),
    "matching": (mm.MatchingSVM(), matchings()),
    "pairing": (mm.PairingSVM(), pairings()),
    "program": (mm.ProgramSVM(relaxed=True), odd_cycles()),
    "segments": (
        mm.SegmentSVM(roles="BIES", classes=["a", "b", "c"], forbidden=[("a", "c"), ("c", None)], longest={"a": 4}),
        segmented(),
    ),
    "segments, outside": (mm.SegmentSVM(outside="b", longest=3), segmented(whole=True)),
    "second order": (mm.ChainSVM(order=2), chains()),
    "tree": (mm.TreeSVM(tol=1e-2), trees(edges=True)),
    "tree, width": (mm.TreeSVM(tol=1e-2, width=1), trees(edges=True)),
    "tree, classes": (mm.TreeSVM(tol=1e-2, width=3, classes=["c", "a", "b", ("d", 1)]), trees(edges=True)),
}
BAD = {
    "classes": ["abc", [], ["a", "a"]],
    "classes_of": ["a", [["a"]], [["a", {}]]],
    "clique_sizes": [3, [3, 2], [2, 2], [0], [True], ["2"], [33]],
    "context": [1, None],
    "gaps": ["none", None],
    "known": ["abc", ["a", "a"], [{}], None],
    "min_count": [0, "1"],
    "n_clique_features": [-1, None],
    "forbidden": [None, [[7, 0]], [["a", 0]]],
    "longest": [3, [1], [0, 1], [1, "2"]],
    "n_edge_features": [1.5, True],
    "n_features": [-1, "2"],
    "n_gap_features": [-1, None],
    "n_pair_features": [-1, "2"],
    "nonmatches": [1],
    "n_segment_features": [-1, None],
    "order": [0, 3, "2", None, True],
    "per_label": [1],
    "outside": [9, "a"],
    "relaxed": ["yes", None],
    "symbols": [None],
    "symmetric": ["no"],
    "roles": ["B", None],
    "width": [0, "2"],
}
"""What entries of a state may not be."""
every_estimator = pytest.mark.parametrize("name", ESTIMATORS)


@every_estimator
def test_saved_pickled_and_cloned(name, tmp_path):
    estimator, (X, y) = ESTIMATORS[name]
    model = clone(estimator).fit(X, y)
    model.save(tmp_path / "model")
    again = mm.load(tmp_path / "model")
    for other in (again, pickle.loads(pickle.dumps(model)), clone(model).fit(X, y)):
        assert same(other.predict(X), model.predict(X))
        np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))
        assert getattr(other, "classes_", None) == getattr(model, "classes_", None)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    assert again.encoder.state() == model.model_.encoder.state()
    assert again.encoder.layout == model.model_.encoder.layout
    assert again.metadata["estimator"] == type(model).__name__
    assert again.metadata.get("relaxed", False) == model.solution_.certificate.relaxed
    if model.solution_.certificate.relaxed and name != "program":
        assert [record.bound for record in again.relaxation(X)] == [record.bound for record in model.relaxation(X)]


@every_estimator
def test_damaged_states_are_refused(name):
    estimator, (X, y) = ESTIMATORS[name]
    encoder = estimator._encoder().fit(X, y)[0]
    state = json.loads(json.dumps(encoder.state()))
    assert type(encoder).from_state(state).layout == encoder.layout
    for key in state:
        for value in BAD.get(key, []):
            with pytest.raises(ValueError):
                type(encoder).from_state({**state, key: value})
        with pytest.raises(KeyError):
            type(encoder).from_state({other: value for other, value in state.items() if other != key})

"""Errors of encoders call labels as users do; None is an unknown label, and never one of the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from data import chains, charts, graphs, matchings, segmented, sentences, trees

import maxmargin as mm

UNKNOWN = r"None, which stands for an unknown one; give it, or train with mm.LatentSVM\(...\) or SequenceTagger"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(0, 2, "PER"), (3, 5, "LOC")], r"segment \(3, 5, 'LOC'\) .* does not begin where the one before it ends"),
        ([(0, 4, "PER"), (4, 5, "LOC")], r"segment \(0, 4, 'PER'\) .* is longer than its label allows"),
        ([(0, 2, "LOC"), (2, 5, "PER")], r"segment \(0, 2, 'LOC'\) .* has a label that may not come first"),
        ([(0, 2, "PER"), (2, 5, "PER")], r"segment \(2, 5, 'PER'\) .* may not follow the one before it"),
        ([(0, 3, "PER"), (3, 9, "LOC")], r"segment \(3, 9, 'LOC'\) .* ends after the sequence"),
        ([(0, 3, "PER"), (3, 5, "ORG")], "label 'ORG' was not seen in training"),
    ],
)
def test_segments_are_shown_with_their_labels(rows: list[Any], message: str) -> None:
    X = [np.zeros((5, 1))] * 2
    model = mm.SegmentSVM(longest=3, forbidden=[("PER", "PER"), (None, "LOC")], classes=["LOC", "PER"])
    with pytest.raises(ValueError, match=f"example 1: {message}"):
        model.fit(X, [[(0, 3, "PER"), (3, 5, "LOC")], rows])


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (
            "(NP (NP the) (NP cat))",
            "derives one tree from 'S' over all 2 tokens, and the top node is 'NP' over tokens 0",
        ),
        ([("S", ("NP", 0), ("VP", 1)), 2], "over all 3 tokens, and the top node is 'S' over tokens 0 to 2"),
        (("S", ("NP", "a"), "b", ("VP", "c")), "'S' -> 'NP' 'VP' is used over tokens 0 to 3, but its nodes over some"),
        (("S", ("NP", "a", "b"), ("VP", "c")), "'NP' -> a token is used over tokens 0 to 2, but a preterminal stands"),
        (("S", ("VP", "a"), ("NP", "b")), "the grammar has no rule 'S' -> 'VP' 'NP' for tokens 0 to 2"),
    ],
)
def test_trees_that_a_grammar_does_not_derive(tree: Any, message: str) -> None:
    grammar = mm.Grammar([("S", "NP", "VP"), ("NP", "NP", "NP")], preterminals=["NP", "VP"])
    n = 2 if isinstance(tree, str) or (tree[0] == "S" and tree[-1] == ("NP", "b")) else 3
    with pytest.raises(ValueError, match=f"example 0: y: .*{message}"):
        mm.GrammarSVM(grammar=grammar).fit([np.zeros((n * (n + 1) // 2, 1))], [tree])


def unknown_label(kind: str) -> tuple[Any, Any, Any]:
    """An estimator, and its data with a label None in example 1."""
    if kind in ("chain", "tree", "graph", "associative"):
        model, data = {
            "chain": (mm.ChainSVM(), chains),
            "tree": (mm.TreeSVM(), trees),
            "graph": (mm.GraphSVM(), graphs),
            "associative": (mm.AssociativeSVM(), graphs),
        }[kind]
        X, y = data()
        y[1] = [*y[1][:-1], None]
    elif kind == "segments":
        model, (X, y) = mm.SegmentSVM(), segmented()
        y[1] = [*y[1][:-1], (*y[1][-1][:2], None)]
    elif kind == "grammar":
        model, (X, y) = mm.GrammarSVM(), charts()
        y[1] = (None, *y[1][1:])
    else:
        model, (X, y) = mm.DependencySVM(), sentences(labels=("x", "y"))
        y[1] = (y[1][0], [None, *y[1][1][1:]])
    return model, X, y


@pytest.mark.parametrize("kind", ["chain", "tree", "graph", "associative", "segments", "grammar", "dependency"])
def test_labels_that_are_none_are_refused(kind: str, tmp_path: Any) -> None:
    model, X, y = unknown_label(kind)
    with pytest.raises(ValueError, match=f"example 1: .*{UNKNOWN}"):
        model.fit(X, y)
    if kind != "dependency":
        with pytest.raises(ValueError, match=UNKNOWN):
            model.build_dataset(tmp_path / "data", (X, y))
    whole = [i for i in range(len(X)) if i != 1]
    model.fit([X[i] for i in whole], [y[i] for i in whole])
    with pytest.raises(ValueError, match=f"example 1: .*{UNKNOWN}"):
        model.score(X, y)
    with pytest.raises(ValueError, match="classes holds None, which stands for an unknown label; leave it out"):
        type(model)(classes=["a", "b", None]).fit(X, y)


def test_heads_that_are_unknown_are_refused() -> None:
    X, y = sentences()
    y[1] = [None, *y[1].tolist()[1:]]
    with pytest.raises(ValueError, match=r"example 1: y has heads that are None or a set, .* train with mm.LatentSVM"):
        mm.DependencySVM().fit(X, y)
    X, y = matchings()
    with pytest.raises(ValueError, match="example 0: y must be an integer array"):
        mm.MatchingSVM().fit(X, [mm.PartialLinks(y[0], absent=[]), *y[1:]])

"""A small model of every kind of encoder in the library, with an input and another legal output of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import maxmargin as mm
from maxmargin.encoders import base
from maxmargin.encoders.candidates import CandidatesEncoder
from maxmargin.encoders.cut import CutEncoder
from maxmargin.encoders.deductions.edits import EditEncoder
from maxmargin.encoders.deductions.grammar import GrammarEncoder
from maxmargin.encoders.deductions.segments import SegmentEncoder
from maxmargin.encoders.dependency import DependencyEncoder
from maxmargin.encoders.labelings.associative import AssociativeEncoder
from maxmargin.encoders.labelings.chain import ChainEncoder
from maxmargin.encoders.labelings.graph import GraphEncoder
from maxmargin.encoders.labelings.sublabels import SublabelEncoder
from maxmargin.encoders.labelings.tree import TreeEncoder
from maxmargin.encoders.lattice import LatticeEncoder
from maxmargin.encoders.matchings.matching import MatchingEncoder
from maxmargin.encoders.matchings.pairing import PairingEncoder
from maxmargin.encoders.parts import PartsEncoder
from maxmargin.encoders.program import ProgramEncoder
from maxmargin.features.kernel import Kernel
from maxmargin.structures.candidates import Candidates


class Case(NamedTuple):
    """A model, an input, and an output that is legal for it."""

    model: Any
    x: Any
    other: Any


class OneOf(Candidates):
    """A structure of a user's own: one of all parts."""

    def __init__(self, sizes: Any) -> None:
        super().__init__(sizes)


def _matrix(n: int, d: int = 3, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(n, d))


def _case(encoder: Any, X: list[Any], y: list[Any], seed: int = 1) -> Case:
    """Random weights of the signs that the encoder asks for; no training."""
    encoder = encoder.fit(X, y)[0]
    weights = np.random.default_rng(seed).normal(size=encoder.n_weights)
    signed = encoder.nonnegative()
    if signed is not None:
        weights[signed] = np.abs(weights[signed])
    encoder, weights = encoder.to_model(weights)
    return Case(replace(mm.Model.of(encoder), weights=weights), X[0], y[0])


_EDGES = np.array([[0, 1], [1, 2], [2, 3]])
_LABELS = ["a", "b", "a", "c"]
_KERNEL = {"kernel": Kernel("rbf", gamma=0.5)}


def _graph(seed: int = 0, **more: Any) -> mm.Graph:
    return mm.Graph(_matrix(4, seed=seed), _EDGES, np.abs(_matrix(3, 2, seed + 9)), **more)


def _chain(**settings: Any) -> Case:
    return _case(ChainEncoder(**settings), [_matrix(4), _matrix(3, seed=2)], [_LABELS, ["c", "b", "a"]])


def _sentences(second: bool = False, n: int = 4) -> list[Any]:
    arcs = [(h, m) for m in range(1, n + 1) for h in range(n + 1) if h != m]
    siblings = [(h, h, m) for h, m in arcs]
    grandparents = [(g, h, m) for g, h in arcs for k, m in arcs if k == h and h > 0 and not min(h, m) <= g <= max(h, m)]
    more = {
        "siblings": siblings,
        "sibling_features": _matrix(len(siblings), 2, 5),
        "grandparents": grandparents,
        "grandparent_features": _matrix(len(grandparents), 2, 6),
    }
    return [mm.Sentence(_matrix(len(arcs)), arcs, **(more if second else {}))]


_TREE = ("S", ("NP", "the", "cat"), ("VP", "sleeps"))
_RULES = [("S", "NP", "VP"), ("NP", "D", "N"), ("VP", "V")]
_PAIR = ("kitten", "sitting")
_PAIRS = [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]

CORE: dict[str, list[Callable[[], Case]]] = {
    "associative": [
        lambda: _case(AssociativeEncoder(), [_graph()], [_LABELS]),
        lambda: _case(AssociativeEncoder(per_label=False), [_graph(cliques=[(0, 1, 2)])], [_LABELS]),
        lambda: _case(AssociativeEncoder(), [_graph(cliques=[(0, 1, 2)])], [["a", "b", "b", "a"]]),
    ],
    "candidates": [
        lambda: _case(CandidatesEncoder(), [_matrix(5), _matrix(2)], [3, 0]),
        lambda: _case(CandidatesEncoder(**_KERNEL), [_matrix(5), _matrix(2)], [3, 0]),
    ],
    "chain": [
        _chain,
        lambda: _chain(order=2),
        lambda: _chain(**_KERNEL),
        lambda: _case(ChainEncoder(), [mm.FeatureSequence(_matrix(4), _matrix(3, 2))], [_LABELS]),
    ],
    "cut": [
        lambda: _case(CutEncoder(), [_graph()], [[0, 1, 1, 0]]),
        lambda: _case(CutEncoder(potentials="regular"), [_graph(cliques=[(0, 1, 2)])], [[0, 1, 1, 0]]),
        lambda: _case(CutEncoder(**_KERNEL), [_graph(cliques=[(0, 1, 2)])], [[0, 1, 1, 0]]),
    ],
    "dependency": [
        lambda: _case(DependencyEncoder(), _sentences(), [[2, 0, 2, 3]]),
        lambda: _case(DependencyEncoder(), _sentences(), [([2, 0, 2, 3], ["x", "root", "y", "x"])]),
        lambda: _case(DependencyEncoder(projective=False), _sentences(), [[2, 0, 2, 3]]),
        lambda: _case(DependencyEncoder(order=2), _sentences(second=True), [[2, 0, 2, 3]]),
        lambda: _case(DependencyEncoder(**_KERNEL), _sentences(), [([2, 0, 2, 3], ["x", "root", "y", "x"])]),
    ],
    "edits": [
        lambda: _case(EditEncoder(), [_PAIR], [_PAIRS]),
        lambda: _case(EditEncoder(gaps="linear", symmetric=True, context=False, nonmatches=True), [_PAIR], [False]),
        lambda: _case(EditEncoder(nonmatches=True, classes_of={"i": "vowel", "e": "vowel"}), [_PAIR], [True]),
        lambda: _case(
            EditEncoder(symbols=False),
            [mm.SequencePair("ab", "abc", _matrix(6), _matrix(2, 2), _matrix(3, 2))],
            [[(0, 0), (1, 2)]],
        ),
    ],
    "grammar": [
        lambda: _case(GrammarEncoder(), [_matrix(6)], [_TREE]),
        lambda: _case(GrammarEncoder(rooted=False), [mm.SpanChart(_matrix(6), _matrix(4, 2))], [[_TREE]]),
        lambda: _case(
            GrammarEncoder(grammar=mm.Grammar(_RULES)),
            [_matrix(6)],
            [("S", ("NP", ("D", "the"), ("N", "cat")), ("VP", ("V", "sleeps")))],
        ),
    ],
    "graph": [
        lambda: _case(GraphEncoder(), [_graph()], [_LABELS]),
        lambda: _case(GraphEncoder(), [mm.Graph(_matrix(4), [*_EDGES.tolist(), [0, 3]])], [_LABELS]),
    ],
    "lattice": [
        lambda: _case(
            LatticeEncoder(),
            [mm.WordLattice(_matrix(5), [(0, 1), (0, 1), (1, 2), (1, 2), (0, 2)], ["a", "b", None, "c", "d"])],
            [[1, 3]],
        ),
    ],
    "matching": [
        lambda: _case(MatchingEncoder(), [_matrix(9).reshape(3, 3, 3)], [[(0, 1), (1, 0)]]),
        lambda: _case(
            MatchingEncoder(2, 1), [mm.Bipartite(_matrix(4), [(0, 0), (0, 1), (1, 1), (2, 0)], (3, 2))], [[(0, 0)]]
        ),
    ],
    "pairing": [lambda: _case(PairingEncoder(perfect=True), [_matrix(16).reshape(4, 4, 3)], [[(0, 3), (1, 2)]])],
    "parts": [lambda: _case(PartsEncoder(OneOf), [_matrix(5), _matrix(3)], [2, 0])],
    "program": [
        lambda: _case(
            ProgramEncoder(), [mm.Program(_matrix(4), np.eye(4) + np.eye(4, k=1), np.ones(4))], [[1, 0, 1, 0]]
        ),
        lambda: _case(
            ProgramEncoder(relaxed=True), [mm.Program(_matrix(4), A_eq=np.ones((1, 4)), b_eq=[2.0])], [[1, 0, 1, 0]]
        ),
    ],
    "segments": [
        lambda: _case(SegmentEncoder(outside="O"), [_matrix(5)], [[(0, 2, "X"), (3, 5, "Y")]]),
        lambda: _case(
            SegmentEncoder(longest=2, roles="BIES"),
            [mm.SegmentSequence(_matrix(4), _matrix(7, 2))],
            [[(0, 2, "X"), (2, 3, "Y"), (3, 4, "X")]],
        ),
    ],
    "sublabels": [
        lambda: _case(SublabelEncoder(ChainEncoder(), 2), [_matrix(4), _matrix(3, seed=2)], [_LABELS, ["c", "b", "a"]]),
    ],
    "tree": [
        lambda: _case(TreeEncoder(), [_graph()], [_LABELS]),
        lambda: _case(
            TreeEncoder(),
            [_graph(labels=[["a", "b"], None, ["a"], ["c", "b"]], cliques=[(0, 1), (1, 2, 3)])],
            [_LABELS],
        ),
        lambda: _case(TreeEncoder(), [_graph(cliques=[(0, 3), (1, 2, 3)], clique_features=_matrix(2, 2))], [_LABELS]),
    ],
}
"""For each kind of encoder without a task, models whose weights are drawn."""


@cache
def tagger(**settings: Any) -> Case:
    X = [["the", "dog", "sees", "a", "cat"], ["a", "cat", "sleeps"], ["dogs", "sleep"]]
    y = [["B-NP", "I-NP", "B-VP", "B-NP", "I-NP"], ["B-NP", "I-NP", "B-VP"], ["B-NP", "B-VP"]]
    own = {"template": "U00:%x[0,0]\nU01:%x[-1,0]\nB\n", "tol": 1e-2, **settings}
    model = mm.tasks.tagging.SequenceTagger(**own).fit(X, y).model_
    return Case(model, X[0], ["B-NP", "I-NP", "B-VP", "B-VP", "I-VP" if "I-VP" in model.labels else "B-NP"])


@cache
def matrix_tagger() -> Case:
    X, y = [_matrix(3), _matrix(4, seed=1)], [["a", "b", "a"], ["b", "a", "a", "b"]]
    model = mm.tasks.tagging.SequenceTagger(tol=1e-2).fit(X, y).model_
    return Case(model, X[1], ["a", "a", "b", "b"])


@cache
def aligner(**settings: Any) -> Case:
    X = [("das Haus ist klein", "the house is small"), ("das Buch", "the book"), ("ein Haus", "a house")]
    y = [[(0, 0), (1, 1), (2, 2), (3, 3)], [(0, 0), (1, 1)], [(0, 0), (1, 1)]]
    model = mm.tasks.alignment.WordAligner(folds=0, tol=1e-2, **settings).fit(X, y).model_
    return Case(model, X[0], [(0, 0), (1, 1), (2, 3)])


@cache
def reranker() -> Case:
    X, gains = [_matrix(4, seed=3), _matrix(3, seed=4)], [[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    return Case(mm.tasks.reranking.Reranker("perceptron", folds=0).fit(X, gains).model_, X[0], 2)


@cache
def segmenter(n_classes: int) -> Case:
    from maxmargin.tasks.segmentation import Segmenter
    from maxmargin.tasks.segmentation.drawings import drawn_pictures

    X, y = drawn_pictures(3, size=(24, 32), classes=n_classes)
    model = Segmenter(n_regions=16, classifier="linear", stages=1, folds=2, tol=1e-2).fit(X, y).model_
    return Case(model, X[0], np.zeros_like(y[0]))


@cache
def scan_segmenter() -> Case:
    from maxmargin.tasks.segmentation import ScanSegmenter
    from maxmargin.tasks.segmentation.drawings import drawn_scans

    X, y = drawn_scans(3, points=200)
    model = ScanSegmenter(voxel=1.0, classifier="linear", stages=1, folds=2, tol=1e-2).fit(X, y).model_
    return Case(model, X[0], y[0])


@cache
def parser(order: int = 1) -> Case:
    sentence = [
        {"form": form, "upos": upos, "head": head, "deprel": deprel}
        for form, upos, head, deprel in (
            ("the", "DET", 2, "det"),
            ("cat", "NOUN", 3, "nsubj"),
            ("sees", "VERB", 0, "root"),
            ("a", "DET", 5, "det"),
            ("dog", "NOUN", 3, "obj"),
        )
    ]
    other = [dict(sentence[at], head=head) for at, head in ((0, 2), (1, 3), (2, 0))]
    model = mm.tasks.parsing.DependencyParser(order=order, bits=12, max_iter=2).fit([sentence, other]).model_
    return Case(model, sentence, ([3, 3, 0, 5, 3], ["det", "nsubj", "root", "det", "obj"]))


def heads() -> Case:
    """The trees of a parser alone, whose inputs are treebanks."""
    model = parser().model._stages[0]
    return Case(model, parser().x, [3, 3, 0, 5, 3])


TASKS: dict[str, list[Callable[[], Case]]] = {
    "sequence tagging": [
        tagger,
        lambda: tagger(order=2),
        lambda: tagger(segments=True),
        lambda: tagger(template="U00:%x[0,0]\nB01:%x[0,0]\n"),
        matrix_tagger,
    ],
    "word alignment": [aligner, lambda: aligner(fertility=1), lambda: aligner(fertility=3)],
    "reranking": [reranker],
    "image segmentation": [lambda: segmenter(2), lambda: segmenter(3)],
    "scan segmentation": [scan_segmenter],
    "dependency parsing": [parser, lambda: parser(2)],
}
"""For each kind of a task, small trained models."""

STAGES = {"dependency trees", "dependency relations"}
"""Kinds of the stages of a parser, which its own explanations are made of."""

EVERY = set(base._HOMES)
"""All kinds of the library."""

"""Calls of the tasks' Python functions with odd arguments: tagging, alignment, reranking, segmentation."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from maxmargin.tasks import alignment, reranking, segmentation, tagging

Arguments = dict[str, Any]
Calls = dict[str, tuple[Any, Any]]


def fixed(**arguments: Any) -> Any:
    """The same good arguments each time."""
    return lambda random: dict(arguments)


def drawn(some: int, always: Arguments, more: Arguments) -> Any:
    """The arguments that a call always has, and some of those that it may have."""

    def arguments(random: np.random.Generator) -> Arguments:
        names = list(more)
        chosen = [names[i] for i in random.choice(len(names), size=min(some, len(names)), replace=False)]
        return {**always, **{name: more[name] for name in chosen}}

    return arguments


def fitting(estimator: Any, *data: str, method: str = "fit") -> Any:
    """A function that trains an estimator with some settings on some data."""

    def run(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in data if name in arguments}
        getattr(estimator(**arguments), method)(**given)

    return run


# Tagging

WORDS = [["the", "cat", "sat"], ["a", "dog"], ["the", "dog", "ran", "home"]]
TAGS = [["D", "N", "V"], ["D", "N"], ["D", "N", "V", "A"]]
DICTS = [[{"w": word, "n": 1.0, "b": True} for word in sentence] for sentence in WORDS]
ROWS = [np.ones((len(sentence), 2)) for sentence in WORDS]
BRIEF: Arguments = {"max_iter": 2, "max_seconds": 0.5, "tol": 0.1}


@functools.cache
def tagger(kind: str) -> tagging.SequenceTagger:
    """A trained tagger of words, dictionaries or matrices."""
    X, settings = {"words": (WORDS, {"preset": "pos"}), "dicts": (DICTS, {}), "rows": (ROWS, {})}[kind]
    return tagging.SequenceTagger(**BRIEF, **settings).fit(X, TAGS, dev=(X, TAGS))


def tagging_calls() -> Calls:
    """The tagger, the CRF and the measures."""
    settings: Arguments = {
        "template": "U00:%x[0,0]\nU01:%x[-1,0]\nB",
        "columns": ["word"],
        "order": 1,
        "constraints": "auto",
        "forbidden": [("N", "D")],
        "classes": ["D", "N", "V", "A"],
        "unknown": "?",
        "min_count": 1,
        "support": "negative",
        "C": [0.1, 1.0],
        "loss": {"N": 2.0},
        "solver": "auto",
        "metric": "accuracy",
        "patience": 2,
        "n_jobs": 1,
        "random_state": 0,
        "verbose": False,
        "callbacks": [],
    }
    crf: Arguments = {
        "algorithm": "lbfgs",
        "min_freq": 1.0,
        "all_possible_states": True,
        "all_possible_transitions": True,
        "c1": 0.0,
        "c2": 1.0,
        "epsilon": 0.1,
        "delta": 0.1,
        "period": 3,
        "verbose": False,
    }
    data = ("X", "y", "dev", "sample_weight", "loss_weight")
    weights = {"sample_weight": np.ones(3), "loss_weight": [np.ones(len(one)) for one in WORDS]}
    fit = fitting(tagging.SequenceTagger, *data)
    partial = fitting(tagging.SequenceTagger, *data, "classes", method="partial_fit")
    calls: Calls = {
        "words": (fit, drawn(2, {"X": WORDS, "y": TAGS, "dev": (WORDS, TAGS), "preset": "pos", **BRIEF}, settings)),
        "dicts": (fit, drawn(1, {"X": DICTS, "y": TAGS, **BRIEF}, {**weights, "dev": (DICTS, TAGS)})),
        "rows": (fit, drawn(1, {"X": ROWS, "y": TAGS, **BRIEF}, {**weights, "order": 2})),
        "partial": (partial, fixed(X=DICTS, y=TAGS, **BRIEF)),
        "crf": (fitting(tagging.CRF, "X", "y"), drawn(3, {"X": DICTS, "y": TAGS, "max_iterations": 2}, crf)),
        "evaluate": (tagging.evaluate, fixed(gold=TAGS, predicted=TAGS, known=["D", "N"])),
        "interval_of": (
            tagging.interval_of,
            fixed(scores=tagging.evaluate(TAGS, TAGS), level=0.95, resamples=10, seed=0),
        ),
    }
    for kind, X in (("words", WORDS), ("dicts", DICTS), ("rows", ROWS)):
        for method, arguments in {
            "predict": {"X": X, "known": [[None] * len(one) for one in X]},
            "predict_single": {"sentence": X[0]},
            "k_best": {"X": X, "k": 2},
            "margins": {"X": X},
            "predict_proba": {"X": X},
            "predict_marginals": {"X": X},
            "evaluate": {"X": X, "y": TAGS},
            "score": {"X": X, "y": TAGS, "sample_weight": np.ones(3)},
        }.items():
            calls[f"{kind}.{method}"] = (functools.partial(_call, tagger, kind, method), fixed(**arguments))
    return calls


def _call(trained: Any, kind: str, called: str, /, **arguments: Any) -> Any:
    return getattr(trained(kind), called)(**arguments)


# Alignment

PAIRS = [("the cat", "die Katze"), ("a dog", "ein Hund"), ("the dog", "der Hund")]
LINKS = [[(0, 0), (1, 1)], np.array([[0, 0], [1, 1]]), [(0, 0), (1, 1)]]


@functools.cache
def aligner(kind: str) -> alignment.WordAligner:
    """A trained aligner."""
    return alignment.WordAligner(C=0.1, false_negative=1.0, folds=0, rounds=0).fit(PAIRS, LINKS)


def alignment_calls() -> Calls:
    """The aligner and its measures."""
    settings: Arguments = {
        "fertility": 2,
        "features": ["position"],
        "frequent_pairs": 3,
        "folds": 2,
        "solver": "auto",
        "tol": 0.1,
        "random_state": 0,
        "n_jobs": 1,
        "verbose": False,
        "bitext": PAIRS,
        "dev": (PAIRS, LINKS),
    }
    always = {"X": PAIRS, "y": LINKS, "C": 0.1, "false_negative": [1.0, 2.0], "folds": 0}
    references = [alignment.Reference(np.array(links), np.array(links)) for links in LINKS]
    calls: Calls = {
        "fit": (fitting(alignment.WordAligner, "X", "y", "bitext", "dev"), drawn(2, always, settings)),
        "bootstrap": (
            fitting(alignment.WordAligner, "bitext", "n_pairs", method="bootstrap"),
            fixed(bitext=PAIRS, n_pairs=2, C=0.1, false_negative=1.0),
        ),
        "evaluate": (alignment.evaluate, fixed(references=references, predictions=[np.array(one) for one in LINKS])),
    }
    for method, arguments in {
        "predict": {"X": PAIRS, "adapt": True},
        "align": {"X": PAIRS, "threshold": 0.5, "adapt": False},
        "align_hmm": {"X": PAIRS, "method": "intersection", "adapt": False},
        "score": {"X": PAIRS, "y": LINKS},
        "score_pairs": {"X": PAIRS, "adapt": False},
    }.items():
        calls[method] = (functools.partial(_call, aligner, "", method), fixed(**arguments))
    return calls


# Reranking

LISTS = [np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([[0.5, 0.0], [0.0, 2.0]])]
GAINS = [np.array([0.3, 0.1, 0.9]), np.array([1.0, 0.0])]
NAMED = [
    [{"lm": -1.0, "text": "a b"}, {"lm": -2.0, "text": "b"}],
    [{"lm": -1.5, "text": "c"}, {"lm": 0.5, "text": "c d"}],
]
REFERENCES = ["a b", ["c d", "c"]]


@functools.cache
def reranker(kind: str) -> reranking.Reranker:
    """A trained reranker of numbers or of texts."""
    return reranking.Reranker(folds=0).fit(*((LISTS, GAINS) if kind == "numbers" else (NAMED, [["a b"], ["c d"]])))


def reranking_calls() -> Calls:
    """The reranker and its measures."""
    settings: Arguments = {
        "method": "mira",
        "C": [0.1, 1.0],
        "normalize": "list",
        "length": True,
        "ngrams": 1,
        "phrases": False,
        "min_lists": 1,
        "positive": ["x0"],
        "negative": ["x1"],
        "n_jobs": 1,
        "random_state": 0,
        "verbose": False,
    }
    table = np.concatenate(LISTS)
    fit = fitting(reranking.Reranker, "X", "y", "groups", "dev")
    calls: Calls = {
        "fit": (fit, drawn(2, {"X": LISTS, "y": GAINS, "folds": 0}, {**settings, "dev": (LISTS, GAINS)})),
        "grouped": (fit, fixed(X=table, y=np.concatenate(GAINS), groups=np.array([0, 0, 0, 1, 1]), folds=0)),
        "texts": (fit, fixed(X=NAMED, y=[["a b"], ["c d"]], metric="bleu", folds=0)),
        "metric_named": (reranking.metric_named, fixed(name="bleu")),
    }
    for kind, X, y in (("numbers", LISTS, GAINS), ("texts", NAMED, [["a b"], ["c d"]])):
        for method, arguments in {
            "predict": {"X": X},
            "rank": {"X": X},
            "decision_function": {"X": X},
            "score": {"X": X, "y": y},
        }.items():
            calls[f"{kind}.{method}"] = (functools.partial(_call, reranker, kind, method), fixed(**arguments))
    return calls


# Segmentation

QUICK: Arguments = {"classifier": "linear", "stages": 1, "folds": 2, "max_iter": 2, "max_seconds": 0.5, "tol": 0.1}


@functools.cache
def drawings(kind: str) -> tuple[list[Any], list[Any]]:
    """Small pictures or scans with labels."""
    if kind == "scans":
        return segmentation.drawn_scans(3, points=60)
    return segmentation.drawn_pictures(3, size=(16, 20))


@functools.cache
def segmenter(kind: str) -> Any:
    """A trained segmenter."""
    if kind == "scans":
        return segmentation.ScanSegmenter(**QUICK, voxel=0.5).fit(*drawings(kind))
    return segmentation.Segmenter(**QUICK, n_regions=12).fit(*drawings(kind))


def segmentation_calls() -> Calls:
    """Segmenters of images and scans, interactive ones, measures."""
    (images, masks), (scans, points) = drawings("images"), drawings("scans")
    shared: Arguments = {
        "class_weight": {0: 1.0, 1: 2.0},
        "potentials": "regular",
        "void": -1,
        "C": 1.0,
        "solver": "auto",
        "n_jobs": 1,
        "random_state": 0,
        "callbacks": [],
        "verbose": False,
        "classifier": LogisticRegression(),
    }
    own: Arguments = {
        "graph": "superpixels",
        "region_size": 20.0,
        "compactness": 10.0,
        "working_pixels": "auto",
        "connectivity": 4,
        "refine": True,
        **shared,
        "dev": (images[:1], masks[:1]),
    }
    lengths: Arguments = {
        "radii": [0.5, 1.0],
        "context_radii": [1.0],
        "neighbors": 3,
        "edge_radius": 0.5,
        "spin_reaches": [1.0],
        "spin_components": 2,
        "attributes": None,
        **shared,
        "dev": (scans[:1], points[:1]),
    }
    fit = fitting(segmentation.Segmenter, "X", "y", "dev")
    fit_scans = fitting(segmentation.ScanSegmenter, "X", "y", "dev")
    calls: Calls = {
        "images": (fit, drawn(1, {"X": images, "y": masks, "n_regions": 12, **QUICK}, own)),
        "scans": (fit_scans, drawn(1, {"X": scans, "y": points, "voxel": 0.5, **QUICK}, lengths)),
        "evaluate": (
            segmentation.evaluate,
            fixed(gold=masks, predicted=masks, names=["a", "b"], images=["p", "q", "r"], boundaries=True),
        ),
    }
    for kind, X, y in (("images", images, masks), ("scans", scans, points)):
        for method, arguments in {
            "predict": {"X": X, "seeds": [np.full(np.shape(one), -1) for one in y]},
            "predict_proba": {"X": X},
            "score": {"X": X, "y": y, "sample_weight": None},
            "interactive": {"given": X[0]},
        }.items():
            calls[f"{kind}.{method}"] = (functools.partial(_call, segmenter, kind, method), fixed(**arguments))
        calls[f"{kind}.segment"] = (functools.partial(_seeded, kind), fixed(seeds=np.full(np.shape(y[0]), -1)))
    return calls


@functools.cache
def _interactive(kind: str) -> Any:
    return segmenter(kind).interactive(drawings(kind)[0][0])


def _seeded(kind: str, seeds: Any) -> Any:
    return _interactive(kind).segment(seeds)


def groups() -> dict[str, tuple[Calls, Arguments]]:
    """Calls of each task, and the limits of their targets."""
    return {
        "tagging": (tagging_calls(), {}),
        "alignment": (alignment_calls(), {"seconds": 10.0}),
        "reranking": (reranking_calls(), {}),
        "segmentation": (segmentation_calls(), {"seconds": 10.0}),
    }

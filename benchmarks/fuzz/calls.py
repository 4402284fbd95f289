"""Calls of the public API with odd arguments: good ones of the right kind, of which one or two are spoiled.

Every call must work or raise a ValueError that the library itself raises. A target is a group of calls; an input draws
one of them, makes its arguments (a plain dictionary) and spoils some.
"""

from __future__ import annotations

import functools
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import maxmargin as mm
from benchmarks.fuzz.harness import Target
from benchmarks.fuzz.spoil import junk, spoiled
from maxmargin import _memory, features, losses, regions, solvers, structures

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
import data
import problems

Arguments = dict[str, Any]
Call = tuple[Callable[..., Any], Callable[[np.random.Generator], Arguments]]
"""A function, and what makes good arguments of it."""

NAMES = (
    *("fit", "settings", "models", "constructors", "structures", "features", "objects", "problems", "whole"),
    *("tagging", "alignment", "reranking", "segmentation", "explanations"),
)
"""The targets."""

MEMORY = 300 << 20
"""Bytes that the library may count on, whatever the machine has: inputs above are refused, others stay small."""

BRIEF: Arguments = {"max_iter": 3, "tol": 0.1, "max_seconds": 0.5, "C": 1.0}
"""Settings of short runs."""


class OddLoss(losses.Loss):
    """A loss of one's own that returns anything."""

    def __init__(self, returned: Any) -> None:
        self.returned = returned

    def costs(self, structure: Any, gold: Any) -> Any:
        """Anything."""
        return self.returned


class Forgiving(data.PickOne):
    """A structure of one's own that takes any outputs: errors that it raised itself would not be the library's."""

    def encode(self, labels: Any) -> Any:
        """The first part where an output is not one."""
        pairs = zip(labels, self.sizes, strict=False)
        fine = [label if isinstance(label, int) and 0 <= label < n else 0 for label, n in pairs]
        return super().encode(fine)


def target(name: str, calls: dict[str, Call], **limits: Any) -> Target:
    """A target that draws one of several calls."""

    def call(random: np.random.Generator) -> None:
        function, make = list(calls.values())[random.integers(len(calls))]
        arguments = make(random)
        names = list(arguments)
        for _ in range(random.choice(3, p=[0.05, 0.7, 0.25])):
            name = names[random.integers(len(names))]
            arguments[name] = spoiled(random, arguments[name])
        before, _memory.LIMIT = _memory.LIMIT, MEMORY
        try:
            function(**arguments)
        finally:
            _memory.LIMIT = before

    return Target(name, call, **limits)


def fixed(**arguments: Any) -> Callable[[np.random.Generator], Arguments]:
    """The same good arguments each time."""
    return lambda random: dict(arguments)


# Estimators

KINDS: dict[str, tuple[Any, Callable[..., Any], Arguments]] = {
    "chain": (mm.ChainSVM, data.chains, {}),
    "chain-edges": (mm.ChainSVM, functools.partial(data.chains, edges=True), {}),
    "second-order": (mm.ChainSVM, data.chains, {"order": 2}),
    "chain-kernel": (mm.ChainSVM, data.chains, {"features": features.Kernel("rbf")}),
    "cut": (mm.CutSVM, data.cuts, {}),
    "cut-regular": (mm.CutSVM, data.cuts, {"potentials": "regular"}),
    "cut-cliques": (mm.CutSVM, functools.partial(data.teams, features=True, most=2), {}),
    "dependency": (
        mm.DependencySVM,
        functools.partial(data.sentences, labels=("a", "b"), second=True),
        {"projective": True, "single_root": False, "order": 2},
    ),
    "dependency-crossing": (
        mm.DependencySVM,
        functools.partial(data.sentences, labels=("a", "b"), projective=False),
        {"projective": False, "single_root": True, "order": 1},
    ),
    "grammar": (mm.GrammarSVM, data.charts, {"rooted": True}),
    "grammar-splits": (mm.GrammarSVM, functools.partial(data.charts, splits=True), {"rooted": False}),
    "lattice": (mm.LatticeSVM, data.lattices, {}),
    "matching": (mm.MatchingSVM, data.matchings, {"left_capacity": 1, "right_capacity": 2}),
    "pairing": (mm.PairingSVM, data.pairings, {"perfect": False}),
    "edits": (mm.EditSVM, data.spellings, {"gaps": "affine", "symbols": True, "context": True, "min_count": 1}),
    "edits-nonmatches": (
        mm.EditSVM,
        functools.partial(data.spellings, nonmatches=True),
        {"nonmatches": True, "symmetric": True, "classes_of": {"a": 1}, "rounds": 2},
    ),
    "segments": (
        mm.SegmentSVM,
        data.segmented,
        {"longest": 3, "roles": "BIES", "forbidden": [("a", "c")], "classes": ["a", "b", "c"]},
    ),
    "segments-outside": (mm.SegmentSVM, functools.partial(data.segmented, whole=True), {"longest": 3, "outside": "b"}),
    "bipartite": (mm.MatchingSVM, functools.partial(data.matchings, pruned=True), {}),
    "tree": (mm.TreeSVM, data.trees, {}),
    "tree-edges": (mm.TreeSVM, functools.partial(data.trees, edges=True), {"width": 1}),
    "tree-ring": (mm.TreeSVM, functools.partial(data.trees, ring=True), {"classes": ["a", "b", "c"]}),
    "tree-cliques": (mm.TreeSVM, functools.partial(data.teams, most=3), {}),
    "associative": (mm.AssociativeSVM, data.graphs, {"per_label": True}),
    "associative-cliques": (mm.AssociativeSVM, functools.partial(data.teams, labels=("x", "y", "z")), {}),
    "graph": (mm.GraphSVM, functools.partial(data.graphs, signed=True), {}),
    "candidates": (mm.CandidatesSVM, data.picks, {"formulation": "gold"}),
    "candidates-all": (mm.CandidatesSVM, data.picks, {"formulation": "all", "rescaling": "none", "rounds": 2}),
    "own": (functools.partial(mm.StructuredSVM, Forgiving), data.picks, {}),
    "program": (mm.ProgramSVM, lambda n: programs(n), {"relaxed": False}),
}


def programs(n: int) -> tuple[list[Any], list[Any]]:
    """Choices of one part of three."""
    random = np.random.default_rng(0)
    X = [mm.Program(random.normal(size=(3, 2)), np.ones((1, 3)), np.ones(1), upper=1.0) for _ in range(n)]
    return X, [np.eye(3)[random.integers(3)] for _ in X]


@functools.cache
def fitted(kind: str) -> Any:
    """A trained estimator."""
    estimator, make, settings = KINDS[kind]
    return estimator(**{**BRIEF, **settings}).fit(*make(4))


def fit_call(kind: str) -> Call:
    """Training: data and settings."""
    estimator, make, own = KINDS[kind]

    def run(X: Any, y: Any, sample_weight: Any, dev: Any, loss_weight: Any = None, **settings: Any) -> None:
        more = {"costs": settings.pop("costs")} if "costs" in settings else {"loss_weight": loss_weight}
        estimator(**settings).fit(X, y, sample_weight, dev=dev, **more).predict(X)

    def arguments(random: np.random.Generator) -> Arguments:
        X, y = make(4)
        pairs = zip(X, y, strict=True)
        counts = [data.variables_of(x, output) if not np.isscalar(output) else len(x) for x, output in pairs]
        drawn = random.integers(5)
        more = {["loss_weight", "costs"][drawn]: [np.ones(n) for n in counts]} if drawn < 2 else {}
        return {
            "X": X,
            "y": y,
            "sample_weight": [None, np.ones(4)][random.integers(2)],
            "dev": [None, (X[:2], y[:2])][random.integers(2)],
            **more,
            **BRIEF,
            **own,
        }

    return run, arguments


def settings_call(kind: str) -> Call:
    """Training with odd settings."""
    estimator, make, own = KINDS[kind]
    every: Arguments = {
        "radius": 2.0,
        "norm": "l2",
        "loss": losses.Hamming(),
        "rescaling": "margin",
        "slack": "linear",
        "solver": "auto",
        "nonnegative": [0],
        "metric": None,
        "patience": 2,
        "n_jobs": 1,
        "random_state": 0,
        "callbacks": [lambda record: None],
        "checkpoint": None,
        "verbose": False,
        "warm_start": False,
    }

    def run(**settings: Any) -> None:
        if isinstance(settings.get("checkpoint"), str | Path):
            settings["checkpoint"] = None  # files are for other targets
        estimator(**settings).fit(*make(4))

    def arguments(random: np.random.Generator) -> Arguments:
        names = list(every)
        drawn = [names[i] for i in random.choice(len(names), size=3, replace=False)]
        odd: Arguments = {name: every[name] for name in drawn}
        if "loss" in odd and random.random() < 0.5:
            returned = junk(random)
            n = int(random.integers(0, 40))
            odd["loss"] = OddLoss([returned, (returned, returned), (np.ones(n), np.zeros(n))][random.integers(3)])
        if "solver" in odd:
            odd["solver"] = SOLVERS[random.integers(len(SOLVERS))]()
        return {**BRIEF, **own, **odd}

    return run, arguments


SOLVERS = tuple(
    getattr(mm, name)
    for name in [
        "AveragedPerceptron",
        "BlockFrankWolfe",
        "ColumnGeneration",
        "CuttingPlane",
        "DualExtragradient",
        "Exact",
        "ExponentiatedGradient",
        "Extragradient",
        "Mira",
        "ProjectedGradient",
        "ProjectedSubgradient",
        "SimplicialDecomposition",
        "Subgradient",
    ]
)


def model_calls(kind: str) -> dict[str, Call]:
    """Predictions of a trained model."""
    _, make, _ = KINDS[kind]
    X, y = make(4)

    def call(method: str, **arguments: Any) -> Any:
        return getattr(fitted(kind), method)(**arguments)

    calls = {
        "predict": {"X": X},
        "decision_function": {"X": X},
        "score": {"X": X, "y": y, "sample_weight": np.ones(4)},
        "k_best": {"X": X, "k": 2},
    }
    if hasattr(mm.GraphSVM, "relaxation") and kind in ("graph", "associative", "associative-cliques"):
        calls["relaxation"] = {"X": X}
    if kind == "lattice":
        calls["k_best"]["distinct"] = "words"
    return {f"{kind}.{name}": (functools.partial(call, name), fixed(**one)) for name, one in calls.items()}


# Structures

GRAPH: Arguments = {
    "n_nodes": np.array([3, 2]),
    "edges": np.array([[0, 1], [1, 2], [0, 1]]),
    "edge_offsets": np.array([0, 2, 3]),
}
CONSTRAINTS = {
    "pairs": np.array([[True, True, False], [True, True, True], [False, True, True]]),
    "first": np.ones(3, dtype=bool),
    "last": np.ones(3, dtype=bool),
}


def _use(structure: Any) -> None:
    """What anybody might ask of a structure."""
    for name in ("n_examples", "n_parts", "n_variables", "sizes", "part_bound", "n_states", "variable_parts"):
        getattr(structure, name)
    if structure.n_examples:
        structure.select([0])
    if not structure.marginals_unsupported:
        structure.log_outputs()


def _constructed(kind: Any) -> Callable[..., None]:
    def construct(**arguments: Any) -> None:
        _use(kind(**arguments))

    return construct


def constructor_calls() -> dict[str, Call]:
    """Structures from arrays."""
    shapes, cliques = np.array([[2, 3], [1, 2]]), [[(0, 1, 2)], [(0, 1)]]
    constraints = structures.TransitionConstraints(**CONSTRAINTS)
    chain = {"lengths": np.array([2, 3, 1]), "n_labels": 3, "constraints": constraints}
    lattice = {**GRAPH, "start": np.array([0, 0]), "end": np.array([2, 1]), "words": np.array([0, 1, -1])}
    labels = {"n_labels": np.array([2, 3, 2, 2, 1]), "labels": np.array([0, 1, 0, 1, 2, 1, 2, 0, 1, 2])}
    capacities = {"left_capacity": np.array([1, 1, 1]), "right_capacity": 2}
    listed = {"edges": np.array([[0, 0], [1, 2], [0, 1]]), "offsets": np.array([0, 2, 3])}
    rows = {"A": [np.ones((1, 3)), sp.csr_array(np.ones((2, 2)))], "b": [np.ones(1), np.ones(2)], "relaxed": True}
    equations = {"A_eq": [np.ones((1, 3)), None], "b_eq": [np.ones(1), None], "upper": [1.0, np.ones(2)]}
    alternatives = {"features": np.ones((5, 2)), "n_alternatives": np.array([2, 3]), "words": list("abcde")}
    named = ["B-x", "I-x", "O"]
    calls: dict[str, tuple[Any, Arguments]] = {
        "Candidates": (structures.Candidates, {"sizes": np.array([2, 3, 1])}),
        "Chain": (structures.Chain, {**chain, "transitions": "each"}),
        "ChainShared": (structures.Chain, {**chain, "transitions": "shared"}),
        "SecondOrderChain": (structures.SecondOrderChain, chain),
        "Cut": (structures.Cut, GRAPH),
        "CliqueCut": (structures.CliqueCut, {**GRAPH, "cliques": cliques}),
        "Associative": (structures.Associative, {**GRAPH, "n_labels": 3}),
        "CliqueNetwork": (structures.CliqueNetwork, {**GRAPH, "n_labels": 3, "cliques": cliques}),
        "PairwiseGraph": (structures.PairwiseGraph, {**GRAPH, "n_labels": 3}),
        "Tree": (structures.Tree, {**GRAPH, **labels}),
        "JunctionTree": (structures.JunctionTree, {**GRAPH, "n_labels": 3, "cliques": cliques, "width": 3}),
        "Matching": (structures.Matching, {"shapes": shapes, **listed, **capacities}),
        "Matching.dense": (structures.Matching.dense, {"shapes": shapes, **capacities}),
        "Pairing": (structures.Pairing, {**GRAPH, "perfect": False}),
        "Pairing.dense": (structures.Pairing.dense, {"n_nodes": np.array([4, 2]), "perfect": True}),
        "Lattice": (structures.Lattice, lattice),
        "Edits": (
            structures.Edits,
            {"first": np.array([2, 3]), "second": np.array([1, 2]), "affine": True, "nonmatch": False},
        ),
        "Segments": (
            structures.Segments,
            {"lengths": np.array([2, 3]), "n_labels": 2, "longest": 2, "states": structures.token_states(2, "BIES")},
        ),
        "TaggedSegments": (
            structures.TaggedSegments,
            {
                "lengths": np.array([2, 3]),
                "n_labels": 2,
                "longest": np.array([1, 2]),
                "states": structures.token_states(2),
            },
        ),
        "NonProjectiveTrees": (
            structures.NonProjectiveTrees,
            {
                "n_tokens": np.array([1, 2]),
                "arcs": np.array([(0, 1), (0, 1), (2, 1), (0, 2), (1, 2)]),
                "arc_offsets": np.array([0, 1, 5]),
                "n_labels": 2,
                "single_root": True,
            },
        ),
        "NonProjectiveTrees.dense": (
            structures.NonProjectiveTrees.dense,
            {"n_tokens": np.array([1, 2]), "n_labels": 2, "single_root": False},
        ),
        "ProjectiveTrees": (
            structures.ProjectiveTrees,
            {
                "n_tokens": np.array([1, 2]),
                "arcs": np.array([(0, 1), (0, 1), (2, 1), (0, 2), (1, 2)]),
                "arc_offsets": np.array([0, 1, 5]),
                "n_labels": 2,
                "single_root": True,
                "siblings": (np.array([(0, 0, 1), (1, 1, 2)]), np.array([0, 1, 2])),
                "grandparents": (np.array([(0, 1, 2)]), np.array([0, 0, 1])),
            },
        ),
        "ProjectiveTrees.dense": (
            structures.ProjectiveTrees.dense,
            {"n_tokens": np.array([1, 2]), "n_labels": 2, "single_root": False, "siblings": True},
        ),
        "Spans": (structures.Spans, {"lengths": np.array([2, 3]), "n_labels": 2, "rooted": True, "splits": True}),
        "Derivations": (
            structures.Derivations,
            {
                "lengths": np.array([2, 3]),
                "n_symbols": 2,
                "binary": np.array([[0, 0, 1], [0, 1, 1]]),
                "unary": np.array([[0, 1]]),
                "preterminals": np.array([1]),
                "start": 0,
            },
        ),
        "LinearProgram": (structures.LinearProgram, {**rows, **equations}),
        "Lattice.confusion": (
            structures.Lattice.confusion_network,
            {"n_alternatives": np.array([2, 3]), "slot_offsets": np.array([0, 1, 2])},
        ),
    }
    plain: dict[str, tuple[Any, Arguments]] = {
        "TransitionConstraints": (structures.TransitionConstraints, CONSTRAINTS),
        "anything": (structures.TransitionConstraints.anything, {"n_labels": 3}),
        "bio": (structures.TransitionConstraints.bio, {"labels": named}),
        "iobes": (structures.TransitionConstraints.iobes, {"labels": named}),
        "forbid": (structures.TransitionConstraints.forbid, {"labels": named, "pairs": [("O", "I-x"), (None, "I-x")]}),
        "broken": (constraints.broken, {"labels": np.array([0, 1, 2]), "lengths": np.array([2, 1])}),
        "WordLattice.confusion_network": (mm.WordLattice.confusion_network, alternatives),
        "spans_of": (mm.spans_of, {"n": 3}),
        "splits_of": (mm.splits_of, {"n": 3}),
        "parse_trees": (mm.parse_trees, {"text": "(A (B x) y) (A z)"}),
        "tree_text": (mm.tree_text, {"tree": ("A", ("B", 0), 1), "tokens": ["x", "y"]}),
        "Grammar": (
            mm.Grammar,
            {"rules": [("A", "A", "B"), ("A", "B")], "start": "A", "preterminals": ["B"]},
        ),
        "words_of": (mm.words_of, {"lattice": data.lattices(1)[0][0], "path": data.lattices(1)[1][0]}),
    }
    return {
        **{name: (_constructed(kind), fixed(**arguments)) for name, (kind, arguments) in calls.items()},
        **{name: (function, fixed(**arguments)) for name, (function, arguments) in plain.items()},
    }


@functools.cache
def problem_of(kind: str) -> mm.Problem:
    """A small training problem."""
    return problems.make(kind, n=3)


def structure_calls(kind: str) -> dict[str, Call]:
    """Methods of one structure."""
    structure = problem_of(kind).structure
    random = np.random.default_rng(0)
    scores, n = random.normal(size=structure.n_parts), structure.n_examples
    outputs = list(structure.decode(structure.predict(scores).z))
    slack = {
        "scores": scores,
        "margin": np.ones(n),
        "costs": random.random(structure.n_parts),
        "constants": np.zeros(n),
        "warm": None,
    }
    calls: dict[str, Arguments] = {
        "argmax": {"scores": scores, "warm": None},
        "predict": {"scores": scores},
        "labels": {"scores": scores},
        "decode": {"z": structure.argmax(scores).z},
        "encode": {"labels": outputs},
        "k_best": {"scores": scores, "k": 2},
        "project": {"point": scores, "tol": 1e-6, "warm": None},
        "slack_argmax": slack,
        "select": {"indices": np.array([0, 1])},
        "parts_of": {"indices": np.array([0, 1])},
        "oracle": {"ranks": 1},
    }
    if not structure.marginals_unsupported:
        calls["marginals"] = {"potentials": scores}
    if hasattr(structure, "max_marginals"):
        calls["max_marginals"] = {"scores": scores}
    if hasattr(structure, "margins"):
        calls["margins"] = {"scores": scores}
    return {f"{kind}.{name}": (getattr(structure, name), fixed(**one)) for name, one in calls.items()}


# Features, regions, losses, solvers

ROWS = np.random.default_rng(0).normal(size=(5, 2))


def feature_calls() -> dict[str, Call]:
    """Feature maps: constructors and methods."""
    offsets, tree = np.array([0, 3, 5]), structures.Tree(**GRAPH, n_labels=3)
    cliques = structures.JunctionTree(**GRAPH, n_labels=3, cliques=[[(0, 1, 2)], [(0, 1)]])
    parts = features.PartFeatures(ROWS, offsets)
    support = features.Support.full(2, 3)
    csr = sp.csr_array(ROWS)
    tied = features.TiedRows(ROWS, offsets, 3)
    chain = {"tokens": ROWS, "lengths": np.array([3, 2]), "n_labels": 3}

    def mapped(kind: Any) -> Callable[..., None]:
        def use(**arguments: Any) -> None:
            made = kind(**arguments)
            made.scores(np.zeros(made.n_weights))
            made.norm()
            made.select([0])

        return use

    made: dict[str, tuple[Any, Arguments]] = {
        "PartFeatures": (features.PartFeatures, {"matrix": ROWS, "offsets": offsets, "sign": -1.0}),
        "PartFeatures.csr": (features.PartFeatures, {"matrix": csr, "offsets": offsets}),
        "TiedRows": (features.TiedRows, {"matrix": ROWS, "offsets": offsets, "m": 3, "constant": True, "alike": False}),
        "TiedRows.kept": (features.TiedRows, {"matrix": ROWS, "offsets": offsets, "m": 3, "kept": np.arange(0, 15, 2)}),
        "ChainFeatures": (features.ChainFeatures, {**chain, "edge_features": ROWS[:3]}),
        "ChainFeatures.support": (features.ChainFeatures, {**chain, "tokens": csr, "support": support}),
        "SecondOrderFeatures": (features.SecondOrderFeatures, chain),
        "TreeFeatures": (
            features.TreeFeatures,
            {"nodes": ROWS, "tree": tree, "n_labels": 3, "edge_features": ROWS[:3]},
        ),
        "CliqueFeatures": (features.CliqueFeatures, {"tree": cliques, "n_labels": 3, "sizes": (2, 3)}),
        "PairwiseFeatures": (
            features.PairwiseFeatures,
            {"nodes": ROWS, "node_offsets": offsets, "edges": ROWS[:3], "edge_offsets": [0, 2, 3], "n_labels": 3},
        ),
        "SupportedRows": (features.SupportedRows, {"matrix": csr, "offsets": offsets, "support": support}),
        "Stacked": (lambda first, second: features.Stacked(first, second), {"first": parts, "second": tied}),
        "Beside": (lambda first, second: features.Beside(first, second), {"first": parts, "second": parts}),
    }
    plain: dict[str, tuple[Any, Arguments]] = {
        "scores": (tied.scores, {"weights": np.ones(6)}),
        "adjoint": (tied.adjoint, {"z": np.ones(15)}),
        "select": (tied.select, {"indices": [0, 1]}),
        "part_norms": (parts.part_norms, {"order": 2}),
        "weight_norms": (parts.weight_norms, {"scale": np.ones(5)}),
        "Support.observed": (features.Support.observed, {"matrix": csr, "columns": np.array([0, 1, 2, 0, 1]), "m": 3}),
        "Support.full": (features.Support.full, {"n_features": 2, "m": 3}),
        "Support.of_pairs": (features.Support.of_pairs, {"pairs": np.array([0, 2, 5]), "n_features": 2, "m": 3}),
        "Support": (features.Support, {"starts": support.starts, "columns": support.columns, "m": 3}),
        "Kernel": (
            lambda function, first, second, **named: (
                features.Kernel(function, **named).resolved(2).values(first, second)
            ),
            {
                "function": "poly",
                "gamma": 0.5,
                "degree": 2,
                "coef0": 1.0,
                "max_parts": 10,
                "first": ROWS,
                "second": ROWS,
            },
        ),
        "operator_norm": (features.operator_norm, {"normal": lambda w: 2.0 * w, "n_weights": 3, "tol": 1e-3}),
    }
    return {
        **{name: (mapped(kind), fixed(**arguments)) for name, (kind, arguments) in made.items()},
        **{name: (function, fixed(**arguments)) for name, (function, arguments) in plain.items()},
    }


def setting_calls() -> dict[str, Call]:
    """Objects of settings: regions, losses, solvers, stops, checkpoints, threads."""

    def solver(kind: Any) -> Call:
        return kind, fixed(**{field.name: getattr(kind(), field.name) for field in fields(kind)})

    def counted(n_jobs: Any) -> None:
        with mm.threads(n_jobs):
            pass

    def costs(loss: Any, **named: Any) -> Any:
        problem = problem_of("chain")
        return loss(**named).costs(problem.structure, problem.gold)

    calls: dict[str, tuple[Any, Arguments]] = {
        "L1": (regions.L1, {"radius": 1.0, "nonnegative": np.array([True, False]), "C": 1.0}),
        "L2": (regions.L2, {"radius": 1.0, "nonnegative": np.array([True, False]), "C": 1.0}),
        "L2.project": (regions.L2(C=1.0).project, {"weights": np.ones(3)}),
        "Hamming": (functools.partial(costs, losses.Hamming), {"false_positive": 1.0, "false_negative": 1.0}),
        "LabelCost": (functools.partial(costs, losses.LabelCost), {"matrix": 1.0 - np.eye(3)}),
        "Stop": (mm.Stop, {"tol": 0.1, "max_iter": 3, "max_seconds": 1.0}),
        "Checkpoint": (
            solvers.Checkpoint,
            {"path": "run.mm", "every": 30.0, "fingerprint": "one", "keep": False},
        ),
        "Validation": (solvers.Validation, {"score": lambda weights: 1.0, "patience": 2}),
        "Entropic": (mm.Entropic, {field.name: getattr(mm.Entropic(), field.name) for field in fields(mm.Entropic)}),
        "Euclidean": (
            mm.Euclidean,
            {field.name: getattr(mm.Euclidean(), field.name) for field in fields(mm.Euclidean)},
        ),
        "threads": (counted, {"n_jobs": 2}),
        "Settings": (
            mm.training.Settings,
            {field.name: getattr(mm.training.Settings(), field.name) for field in fields(mm.training.Settings)},
        ),
    }
    found = {name: (function, fixed(**arguments)) for name, (function, arguments) in calls.items() if arguments}
    return found | {kind.__name__: solver(kind) for kind in SOLVERS}


# Problems, runs, paths, bounds, reports


def problem_calls(kind: str) -> dict[str, Call]:
    """Problems and runs on them."""
    problem = problem_of(kind)
    structure = problem.structure
    build: Arguments = {
        "structure": structure,
        "features": problem.features,
        "gold": problem.gold,
        "loss": losses.Hamming(),
        "region": problem.region,
        "example_weight": np.ones(structure.n_examples),
        "loss_weight": np.ones(structure.starts[1]),
        "rescaling": "margin",
        "slack": "linear",
    }

    def run(solver: Any, **arguments: Any) -> Any:
        chosen = solver() if isinstance(solver, type) else solver
        return mm.solve(problem, chosen, **arguments)

    def arguments(random: np.random.Generator) -> Arguments:
        chosen = SOLVERS[random.integers(len(SOLVERS))]()
        start = solvers.Start(weights=np.zeros(problem.n_weights), z=problem.gold)
        return {
            "solver": chosen,
            "stop": mm.Stop(tol=0.1, max_iter=2, max_seconds=0.5),
            "callbacks": [lambda record: None],
            "start": start,
            "n_jobs": 1,
            "random_state": 0,
            "why": "",
        }

    def odd_loss(random: np.random.Generator) -> Arguments:
        n = int([structure.starts[1], structure.n_parts, 3][random.integers(3)])
        entry = [np.nan, np.inf, 1e308, -1.0, 0.0][random.integers(5)]
        returned = [junk(random), (junk(random), junk(random)), (np.full(n, entry), np.zeros(n))][random.integers(3)]
        return {**build, "loss": OddLoss(returned)}

    def calls(method: str, *size: str) -> Call:
        lengths = {"weights": problem.n_weights, "z": structure.n_parts}
        return getattr(problem, method), fixed(**{name: np.ones(lengths[name]) for name in size})

    return {
        f"{kind}.build": (mm.Problem.build, fixed(**build)),
        f"{kind}.odd_loss": (mm.Problem.build, odd_loss),
        f"{kind}.solve": (run, arguments),
        f"{kind}.most_violated": calls("most_violated", "weights"),
        f"{kind}.gradient": calls("gradient", "z"),
        f"{kind}.hinge": calls("hinge", "weights"),
    }


def whole_calls() -> dict[str, Call]:
    """The path, the bound, plots, checks for authors, files."""
    X, y = data.chains(4)
    folder = tempfile.mkdtemp()
    model = fitted("chain")
    path = functools.cache(
        lambda: mm.regularization_path(mm.ChainSVM(**BRIEF), X, y, radii=[1.0], iterations=2, dev=(X, y))
    )

    def save(path: Any) -> None:
        if isinstance(path, int | bytes | bytearray | memoryview):  # would write to an open file
            return
        with suppress(OSError):  # what the system says of a name
            model.save(Path(folder) / path if isinstance(path, str) else path)

    def load(path: Any, **arguments: Any) -> None:
        if isinstance(path, int | bytes | bytearray | memoryview):
            return
        with suppress(OSError):
            mm.load(path, **arguments)

    def check_features(features: Any, structure: Any, seed: Any) -> None:
        with suppress(AssertionError):
            mm.testing.check_features(features, structure, seed=seed)

    def check_structure(**arguments: Any) -> None:
        with suppress(AssertionError):
            mm.testing.check_structure(**arguments)

    def plot_path(**arguments: Any) -> None:
        path = arguments.pop("path")
        mm.report.plot_path(made_path() if isinstance(path, str) and path == "good" else path, **arguments)

    made_path = path
    structure = structures.Chain([2, 1], 2)
    parts = features.PartFeatures(ROWS, np.array([0, 3, 5]))
    bound: Arguments = {"C": 1.0, "gamma": 1.0, "eta": 0.05, "nonnegative": False, "largest": 2.0}
    calls: dict[str, tuple[Any, Arguments]] = {
        "path": (
            mm.regularization_path,
            {
                "estimator": mm.ChainSVM(**BRIEF),
                "X": X,
                "y": y,
                "radii": [0.5, 1.0],
                "dev": (X, y),
                "test": (X, y),
                "iterations": 2,
                "sample_weight": np.ones(4),
                "ball": 5.0,
            },
        ),
        "path.Cs": (
            mm.regularization_path,
            {"estimator": mm.ChainSVM(**BRIEF), "X": X, "y": y, "Cs": [0.5, 1.0], "iterations": 0, "error": None},
        ),
        "bound": (mm.generalization_bound, {"model": model, "X": X, "y": y, **bound}),
        "bound.outputs": (mm.generalization_bound, {"model": model, "X": X, "y": y, "log_outputs": np.ones(4)}),
        "plot_convergence": (
            mm.report.plot_convergence,
            {"solutions": {"one": model.solution_, "two": model.solution_}, "against": "iteration"},
        ),
        "plot_path": (
            plot_path,
            {"path": "good", "against": "norm", "scale": "linear", "error": "error", "title": "a"},
        ),
        "plot_confusion": (
            mm.report.plot_confusion,
            {"counts": np.array([[3, 1], [0, 2]]), "labels": ["a", "b"], "title": "t"},
        ),
        "check_structure": (check_structure, {"structure": structure, "rng": np.random.default_rng(0), "k": 2}),
        "check_features": (check_features, {"features": parts, "structure": None, "seed": 0}),
        "load": (load, {"path": "/nowhere/model.mm", "structure": None, "n_jobs": 1}),
        "save": (save, {"path": "model.mm"}),
    }
    return {name: (function, fixed(**arguments)) for name, (function, arguments) in calls.items()}


def targets() -> list[Target]:
    """Groups of calls: the library's own, then those of the tasks."""
    from benchmarks.fuzz import explain_calls, task_calls

    every = {name: fit_call(name) for name in KINDS}
    settings = {name: settings_call(name) for name in ("chain", "cut", "matching", "candidates", "own")}
    models = {name: call for kind in KINDS for name, call in model_calls_of(kind).items()}
    methods = {name: call for kind in problems.STRUCTURES for name, call in structure_calls(kind).items()}
    chosen = ("chain", "cut", "matching", "candidates", "lattice")
    built = {name: call for kind in chosen for name, call in problem_calls(kind).items()}
    return [
        target("fit", every),
        target("settings", settings),
        target("models", models),
        target("constructors", constructor_calls()),
        target("structures", methods, refuses=(ValueError, NotImplementedError)),
        target("features", feature_calls()),
        target("objects", setting_calls()),
        target("problems", built),
        target("whole", whole_calls()),
        *(target(name, calls, **limits) for name, (calls, limits) in task_calls.groups().items()),
        target("explanations", explain_calls.calls(KINDS, fitted), seconds=10.0),
    ]


@functools.cache
def model_calls_of(kind: str) -> dict[str, Call]:
    """As :func:`model_calls`, once."""
    return model_calls(kind)

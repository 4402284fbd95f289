"""What users say of outputs that are known in part, against all outputs that agree with it, by enumeration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from data import charts, pairings, same, segmented, sentences
from oracles.enumeration import good_rows

import maxmargin as mm
from maxmargin.encoders.base import Batch, Encoder
from maxmargin.encoders.deductions.bracketed import joined, nodes_of
from maxmargin.estimators.base import StructuredSVM


def fitted(estimator: StructuredSVM, X: Sequence[Any], y: Sequence[Any]) -> tuple[Encoder, Batch]:
    """The encoder of an estimator, fitted to outputs that are known in part, and the batch."""
    encoder, batch, _ = estimator._encoder().fit_partial(X, y)
    return encoder, batch


def check_completions(
    encoder: Encoder, batch: Batch, y: Sequence[Any], agrees: Callable[[Any, Any], bool], least: int = 2
) -> None:
    """Outputs that have the known parts are those that agree with what was said, one by one."""
    structure = batch.structure
    given = encoder.given(batch, y)
    counts = []
    for i, (rows, good) in enumerate(good_rows(structure, given)):
        one = batch.select(np.array([i]))
        outputs = [encoder.decode(one, one.structure.decode(row))[0] for row in rows]
        said = np.array([agrees(y[i], output) for output in outputs])
        np.testing.assert_array_equal(good, said)
        counts.append((int(good.sum()), len(rows)))
    assert all(some > 0 for some, _ in counts)
    assert sum(1 < some < every for some, every in counts) >= least


def fits(entry: Any, value: Any) -> bool:
    """Whether a value is what is known of it: anything for None, one of a set, or the same."""
    return entry is None or (value in entry if isinstance(entry, (set, frozenset)) else value == entry)


def hidden(rng: np.random.Generator, values: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Some values unknown, some one of several."""
    found: list[Any] = []
    for value in values:
        kind = rng.random()
        found.append(None if kind < 0.4 else {value, others[rng.integers(len(others))]} if kind < 0.6 else value)
    return found


@pytest.mark.parametrize("projective", [True, False])
@pytest.mark.parametrize("labels", [(), ("x",), ("x", "y")])
def test_heads_and_labels(projective: bool, labels: tuple[str, ...]) -> None:
    rng = np.random.default_rng(0)
    X, whole = sentences(10, labels=labels, projective=projective, tokens=4 if len(labels) > 1 else 5, seed=1)
    y: list[Any] = []
    for one in whole:
        heads, names = one if labels else (one, None)
        known = [None if rng.random() < 0.4 else {head, 0} if rng.random() < 0.3 else head for head in heads.tolist()]
        y.append((known, hidden(rng, names, labels)) if labels else known)
    if labels:
        y[0] = whole[0][0].tolist()  # heads alone: labels are unknown
        y[1] = (np.array(y[1][0], dtype=object), y[1][1])
    encoder, batch = fitted(mm.DependencySVM(projective=projective, classes=labels or None), X, y)

    def agrees(said: Any, output: Any) -> bool:
        heads, names = output if labels else (output, None)
        own, known = said if isinstance(said, tuple) else (said, None)
        right = all(map(fits, own, heads.tolist()))
        return right and (names is None or known is None or all(map(fits, known, names)))

    check_completions(encoder, batch, y, agrees)


def test_heads_among_listed_arcs_and_second_order() -> None:
    arcs = [(0, 1), (2, 1), (0, 2), (1, 2), (3, 2), (0, 3), (2, 3)]
    x = mm.Sentence(np.eye(7), arcs, sibling_features=np.ones((1, 1)), siblings=[(2, 2, 3)])
    y = [[None, {1, 3}, None], [0, None, None]]
    encoder, batch = fitted(mm.DependencySVM(order=2, single_root=False), [x, x], y)
    check_completions(encoder, batch, y, lambda said, heads: all(map(fits, said, heads.tolist())))
    with pytest.raises(ValueError, match="example 1: token 1 cannot have the head 3, as no such arc is a candidate"):
        encoder.given(batch, [y[0], [3, None, None]])


@pytest.mark.parametrize("roles", ["I", "BI", "BIES"])
@pytest.mark.parametrize("outside", [None, "o"])
def test_segments(roles: str, outside: str | None) -> None:
    forbidden = (("a", "a"), ("b", "b")) if roles == "I" else ()
    X = [np.zeros((n, 1)) for n in (3, 4, 4, 5, 5, 2)]
    y: list[Any] = [
        [],
        [(1, 3, "a")],
        [(0, 1, "b"), (3, 4, "a")],
        [(1, 4, "b" if roles == "I" else {"a", "b"})],
        [(0, 2, "a"), (2, 3, "b" if roles == "I" else None)],
        [(0, 1, "a")],
    ]
    if outside:
        y[4] = [(0, 2, "o"), (3, 4, "a" if roles == "I" else {"a", "o"})]
    known = [mm.PartialSegments(one) for one in y]
    base = mm.SegmentSVM(roles=roles, outside=outside, forbidden=forbidden, longest=3, classes=["a", "b"])
    encoder, batch = fitted(base, X, known)

    def agrees(said: mm.PartialSegments, output: list[Any]) -> bool:
        taken = {t for begin, end, _ in output for t in range(begin, end)}
        for begin, end, label in said.known:
            among = label if isinstance(label, set) else {"a", "b"} if label is None else {label}
            inside = any((begin, end) == row[:2] and row[2] in among for row in output)
            free = outside in among and not taken & set(range(begin, end))
            if not inside and not free:
                return False
        return True

    check_completions(encoder, batch, known, agrees, 1 if roles == "I" else 3)


def test_lengths_of_segments_are_learned_from_those_that_are_known() -> None:
    X = [np.zeros((5, 1))] * 3
    known = [mm.PartialSegments([(0, 4, "a")]), mm.PartialSegments([(0, 3, None), (3, 5, {"b", "c"})]), [(0, 5, "c")]]
    encoder, _ = fitted(mm.SegmentSVM(), X, known)
    assert encoder.classes == ("a", "b", "c")
    assert encoder.state()["longest"] == [4, 3, 5]
    only = [mm.PartialSegments([(1, 2, None)])] * 3
    assert fitted(mm.SegmentSVM(classes=["a"]), X, only)[0].classes == ("a",)


@pytest.mark.parametrize("rooted", [True, False])
def test_nodes_of_trees(rooted: bool) -> None:
    chain = [(0, 2, "A"), (0, 2, "B"), (2, 3, "B")]
    y = [mm.PartialTree([(0, 2, "A")]), mm.PartialTree(chain), mm.PartialTree(brackets=[(1, 3)]), mm.PartialTree()]
    encoder, batch = fitted(mm.GrammarSVM(rooted=rooted), [np.zeros((6, 1))] * 4, y)
    assert encoder.classes == ("A", "A+B", "B")
    longer = [mm.PartialTree([(1, 3, "A")], brackets=[(0, 3)]), mm.PartialTree(brackets=[(1, 3), (1, 4)])]

    def agrees(said: mm.PartialTree, tree: Any) -> bool:
        nodes = Counter(joined(nodes_of(tree, "").nodes, ""))
        spans = [(b, e) for b, e, _ in nodes]
        known = joined(sorted(said.known, key=lambda node: (node[0], -node[1])), "")
        crossed = any(b < s < e < t or s < b < t < e for b, e in said.brackets for s, t in spans)
        return not crossed and all(node in nodes for node in known)

    check_completions(encoder, batch, y, agrees, 3)
    check_completions(
        *fitted(mm.GrammarSVM(rooted=rooted, classes=["A"]), [np.zeros((10, 1))] * 2, longer), longer, agrees
    )


def test_rules_of_derivations() -> None:
    grammar = mm.Grammar([("S", "A", "B"), ("S", "S", "B"), ("A", "B"), ("A", "A", "A")], preterminals=["A", "B"])
    X = [np.zeros((n * (n + 1) // 2, 1)) for n in (2, 3, 3, 4)]
    y = [
        mm.PartialTree([(1, 2, ("B",))]),
        mm.PartialTree([(0, 2, ("S", "A", "B"))]),
        mm.PartialTree([(0, 1, ("A", "B")), (1, 2, "B")]),
        mm.PartialTree([(2, 3, ("B",))], brackets=[(0, 3)]),
    ]
    encoder, batch = fitted(mm.GrammarSVM(grammar=grammar), X, y)
    structure, given = batch.structure, encoder.given(batch, y)
    for i, (rows, good) in enumerate(good_rows(structure, given)):
        own = structure.select([i])
        said = []
        for row in rows:
            steps = {(b, e, grammar.rules[r]) for b, e, r in own.decode(row)[0].tolist()}
            known = {(b, e, rule if isinstance(rule, tuple) else (rule,)) for b, e, rule in y[i].known}
            crossed = any(b < s < e < t or s < b < t < e for b, e in y[i].brackets for s, t, _ in steps)
            said.append(known <= steps and not crossed)
        np.testing.assert_array_equal(good, said)
        assert good.sum() > 0
    assert good.sum() < len(good)


@pytest.mark.parametrize("perfect", [True, False])
def test_pairs(perfect: bool) -> None:
    edges = [(i, j) for j in range(6) for i in range(j)]
    X = [mm.PairGraph(np.zeros((len(edges), 1)), edges)] * 4
    y = [
        mm.PartialLinks([(1, 0)], absent=[(2, 3)]),
        mm.PartialLinks([(5, 2)], possible=[(0, 1), (4, 3), (0, 3), (1, 4)]),
        mm.PartialLinks([], absent=[(4, 5), (0, 1)]),
        mm.PartialLinks([(0, 5)], possible=edges),
    ]
    encoder, batch = fitted(mm.PairingSVM(perfect=perfect), X, y)

    def agrees(said: mm.PartialLinks, output: Any) -> bool:
        there, links, possible, absent = (
            {tuple(sorted(pair)) for pair in (() if pairs is None else pairs)}
            for pairs in (output.tolist(), said.links, said.possible, said.absent)
        )
        return links <= there and (there <= links | possible if said.absent is None else not there & absent)

    check_completions(encoder, batch, y, agrees, 4 if not perfect else 3)


def half(kind: str, X: Sequence[Any], y: Sequence[Any]) -> list[Any]:
    if kind == "dependency":
        return [([None if m % 2 else head for m, head in enumerate(own.tolist())], names) for own, names in y]
    if kind == "segments":
        return [mm.PartialSegments(own[:1]) for own in y]
    if kind == "grammar":
        return [mm.PartialTree([node for node in nodes_of(own, "").nodes if node[2] == "B"]) for own in y]
    return [mm.PartialLinks(own[:1], absent=[]) for own in y]


@pytest.mark.parametrize("kind", ["dependency", "segments", "grammar", "pairing"])
def test_training_lowers_the_objective_and_completions_agree(kind: str) -> None:
    base: StructuredSVM
    base, (X, y) = {
        "dependency": (mm.DependencySVM(C=3.0, tol=1e-4), sentences(10, labels=("x", "y"))),
        "segments": (mm.SegmentSVM(C=3.0, tol=1e-4, longest=3, classes=["a", "b"]), segmented(10)),
        "grammar": (mm.GrammarSVM(C=3.0, tol=1e-4, classes=["A", "B"]), charts(10)),
        "pairing": (mm.PairingSVM(C=3.0, tol=1e-4), pairings(10)),
    }[kind]
    known = [*half(kind, X[:8], y[:8]), *y[8:]]
    model = mm.LatentSVM(base, rounds=4).fit(X, known)
    assert (np.diff(model.objectives_) <= 0.0).all()
    assert model.score(X, y) > 0.5
    completed = model.complete(X, known)
    encoder = model.model_.encoder
    batch = encoder.transform(X)
    z = np.asarray(encoder.encode(batch, encoder.parse_outputs(completed)))
    given, lead = encoder.given(batch, known), z[batch.structure.variable_parts]
    assert (lead[given > 0] > 0.5).all()
    assert (lead[given < 0] < 0.5).all()
    assert same(completed[8:], model.complete(X, y)[8:])


DEPENDENCIES, SEGMENTS, TREES = mm.DependencySVM(), mm.SegmentSVM(classes=[*"ab"]), mm.GrammarSVM(classes=[*"AB"])

REFUSED: list[tuple[Any, Any, str]] = [
    (DEPENDENCIES, [9, None, None], "example 1: token 1 has head 9; give another token, 1 to 3"),
    (DEPENDENCIES, [None, 2, None], "example 1: token 2 has head 2"),
    (DEPENDENCIES, [None, True, None], "example 1: token 2 has head True"),
    (DEPENDENCIES, [None, set(), None], "example 1: token 2 has an empty set of heads"),
    (DEPENDENCIES, [None, 0], "example 1: 2 heads for 3 tokens"),
    (DEPENDENCIES, [2, 1, None], "example 1: no output agrees with what is given"),
    (mm.DependencySVM(classes=["x"]), ([0, None, 1], ["x", "z", None]), "example 1: label 'z' was not seen"),
    (mm.DependencySVM(classes=["x"]), ([0, None, 1], ["x", "x"]), "example 1: 3 heads but 2 labels"),
    (SEGMENTS, mm.PartialSegments([(0, 2)]), "example 1: .* must be a list of segments"),
    (SEGMENTS, mm.PartialSegments([(0, 0, "a")]), r"example 1: .* \(0, 0, 'a'\) is empty"),
    (SEGMENTS, mm.PartialSegments([(0, 2, "a"), (1, 3, "b")]), "example 1: .* overlaps"),
    (SEGMENTS, mm.PartialSegments([(0, 4, "a")]), "ends after the sequence of 3 tokens"),
    (SEGMENTS, mm.PartialSegments([(0, 1, "q")]), "example 1: .* label 'q' was not seen"),
    (SEGMENTS, mm.PartialSegments([(0, 1, set())]), "example 1: .* empty set of labels"),
    (
        mm.SegmentSVM(classes=[*"ab"], longest=1),
        mm.PartialSegments([(0, 2, "a")]),
        "is longer than its label allows",
    ),
    (mm.SegmentSVM(classes=[*"ab"], roles="I"), mm.PartialSegments([(0, 2, "a")]), 'with roles="I" tokens do not'),
    (
        mm.SegmentSVM(classes=[*"ab"], outside="o"),
        mm.PartialSegments([(0, 2, {"a", "o"})]),
        "give the label outside",
    ),
    (
        mm.GrammarSVM(classes=["A", "B"]),
        mm.PartialTree([(0, 4, "A")]),
        r"example 1: \(0, 4\) is not a span of 3 tokens",
    ),
    (TREES, mm.PartialTree([(0, 2, "A"), (1, 3, "B")]), r"\(0, 2\) and \(1, 3\) cross"),
    (TREES, mm.PartialTree([(0, 2, "A")], [(1, 3)]), r"example 1: .* \(1, 3\) cross"),
    (TREES, mm.PartialTree([(0, 2, None)]), "example 1: .* needs one label"),
    (TREES, mm.PartialTree([(0, 2, "C")]), "the label was not seen in training"),
    (
        mm.GrammarSVM(classes=["A", "B"]),
        mm.PartialTree(brackets=[(0, 2, 3)]),
        r"must be a list of spans \(begin, end\)",
    ),
    (TREES, mm.PartialTree([(2, 2, "A")]), "is empty; end must be greater than begin"),
]


@pytest.mark.parametrize(("base", "given", "message"), REFUSED)
def test_what_makes_no_sense_is_refused(base: StructuredSVM, given: Any, message: str) -> None:
    if isinstance(base, mm.DependencySVM):
        X, y = [np.zeros((9, 1))] * 2, [([0, 1, 1], ["x"] * 3) if base.classes else [0, 1, 1], given]
    elif isinstance(base, mm.SegmentSVM):
        X, y = [np.zeros((3, 1))] * 2, [[(0, 1, "a"), (1, 2, "b"), (2, 3, "a")], given]
    else:
        X, y = [np.zeros((6, 1))] * 2, [("A", 0, 1, 2), given]
    with pytest.raises(ValueError, match=message):
        mm.LatentSVM(base).fit(X, y)


def test_symbols_that_have_several_rules() -> None:
    grammar = mm.Grammar([("S", "A", "A"), ("A", "A", "A"), ("A", "S", "A")], preterminals=["A"])
    for known, message in (
        ((0, 2, "A"), r"'A' has 2 rules \('A' -> 'A' 'A', 'A' -> 'S' 'A'\); name one of them as a tuple"),
        ((0, 2, "B"), "no rule and no symbol 'B'"),
        ((0, 1, ("S", "A", "A")), "'S' -> 'A' 'A' cannot stand there"),
    ):
        with pytest.raises(ValueError, match=message):
            mm.LatentSVM(mm.GrammarSVM(grammar=grammar)).fit([np.zeros((6, 1))], [mm.PartialTree([known])])

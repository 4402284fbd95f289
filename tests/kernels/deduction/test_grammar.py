"""Trees of spans and derivations: against enumeration, each tree once, and refused outputs."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import reference
from oracles.enumeration import gibbs, vertices
from oracles.structures import grammar

from maxmargin import threads
from maxmargin.datasets.freezing import freeze, thaw
from maxmargin.structures import Derivations, PointStatus, Spans, spans_of, splits_of
from maxmargin.structures.deductions.charts import Chart, row_of, span_of
from maxmargin.testing import check_structure

OK, ABSENT = PointStatus.OK, PointStatus.ABSENT
BATCHES = {
    "trees": lambda: Spans([3, 1, 2], 2),
    "trees with splits": lambda: Spans([2, 4, 1], 1, splits=True),
    "forests": lambda: Spans([3, 1, 4], 1, rooted=False),
    "forests with splits": lambda: Spans([1, 3], 2, rooted=False, splits=True),
    "derivations": lambda: Derivations([3, 1, 4, 2], **grammar.RULES),
}


def test_rows_and_splits_of_a_chart() -> None:
    for n in (1, 2, 3, 10, 60):
        spans, splits = spans_of(n), splits_of(n)
        rows = np.arange(len(spans))
        assert spans.tolist() == [[b, e] for b in range(n) for e in range(b + 1, n + 1)]
        assert splits.tolist() == [[b, k, e] for b, e in spans.tolist() for k in range(b + 1, e)]
        np.testing.assert_array_equal(row_of(n, spans[:, 0], spans[:, 1]), rows)
        np.testing.assert_array_equal(np.stack(span_of(np.full(len(rows), n), rows), axis=1), spans)


@pytest.mark.parametrize("kind", BATCHES)
def test_every_output_once(kind: str) -> None:
    """Numbers of outputs, all of them by k_best, marginals and their logs, and slack rescaling, by enumeration."""
    structure: Chart = BATCHES[kind]()
    rng = np.random.default_rng(len(kind))
    listed = vertices(structure)
    np.testing.assert_allclose(structure.log_outputs(), np.log([len(rows) for rows in listed]))
    for forbid in (False, True):
        scores = rng.normal(size=structure.n_parts)
        if forbid:
            scores[rng.random(structure.n_parts) < 0.1] = -np.inf
        costs, margin = rng.integers(0, 3, size=structure.n_parts) * 1.0, np.full(structure.n_examples, 2.0)
        ranks, means = structure.k_best(scores, 10**6), structure.marginals(scores)
        slack = structure.slack_argmax(scores, margin, costs, np.ones(structure.n_examples))
        for i, outputs in enumerate(listed):
            own = structure.parts_of([i])
            with np.errstate(invalid="ignore"):
                values = np.where(outputs > 0, scores[own], 0.0).sum(axis=1)
            legal = outputs[values > -np.inf]
            if not len(legal):
                assert means.status[i] == ranks[0].status[i] == ABSENT
                continue
            found = [points for points in ranks if points.status[i] == OK]
            wanted = np.sort(values[values > -np.inf])[::-1]
            np.testing.assert_allclose([points.value[i] for points in found], wanted, atol=1e-12)
            assert len({points.z[own].tobytes() for points in found}) == len(legal)
            z, value = gibbs(legal, np.where(scores[own] == -np.inf, 0.0, scores[own]))
            np.testing.assert_allclose(means.z[own], z, atol=1e-12)
            np.testing.assert_allclose(means.value[i], value)
            products = (legal @ costs[own] + 1.0) * (2.0 + values[values > -np.inf])
            np.testing.assert_allclose(slack.value[i], max(products.max(), 0.0), atol=1e-12)


@pytest.mark.parametrize("kind", BATCHES)
def test_encode_and_decode_are_inverse(kind: str) -> None:
    structure: Chart = BATCHES[kind]()
    for i, outputs in enumerate(vertices(structure)):
        many = structure.select([i] * len(outputs))
        ends = np.cumsum([block.offsets[i + 1] - block.offsets[i] for block in structure.blocks])
        z = np.concatenate([block.ravel() for block in np.split(outputs, ends, axis=1)])
        np.testing.assert_array_equal(np.asarray(many.encode(many.decode(z))), z)


@pytest.mark.parametrize("kind", BATCHES)
def test_frozen_batches_are_the_same(kind: str) -> None:
    structure: Chart = BATCHES[kind]()
    again = thaw(*freeze(structure))
    scores = np.random.default_rng(0).normal(size=structure.n_parts)
    assert repr(again) == repr(structure)
    np.testing.assert_array_equal(again.argmax(scores).z, structure.argmax(scores).z)


@pytest.mark.parametrize("kind", ["trees with splits", "derivations"])
def test_projection_agrees_with_a_general_solver(kind: str) -> None:
    structure: Chart = BATCHES[kind]().select([0, 2])
    point = np.random.default_rng(3).normal(size=structure.n_parts)
    np.testing.assert_allclose(structure.project(point).z, reference.project(structure, point), atol=1e-6)


def test_the_contract_and_threads() -> None:
    rng = np.random.default_rng(0)
    check_structure(Spans([5, 1, 3], 2, rooted=False, splits=True), rng)
    check_structure(Derivations([5, 1, 3], **grammar.RULES), rng)
    for structure in (Spans(rng.integers(1, 12, size=20), 3, splits=True), Derivations([7, 3, 9], **grammar.RULES)):
        scores, found = rng.normal(size=structure.n_parts), []
        for count in (1, 3):
            with threads(count):
                points = [structure.argmax(scores), structure.marginals(scores), *structure.k_best(scores, 3)]
            found.append(np.concatenate([point.z for point in points]))
        np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(0, 3, 0), (0, 2, 0), (1, 3, 1)], r"example 1: spans \(0, 2\) and \(1, 3\) cross"),
        ([(0, 2, 0)], "example 1: no node covers all 3 tokens; add one, or use rooted=False"),
        ([], "example 1: no node covers all 3 tokens"),
        ([(0, 3, 0), (0, 3, 1)], r"example 1: span \(0, 3\) has two labels; join them"),
        ([(0, 3, 2)], "example 1: label 2 is out of range for 2 labels"),
        ([(0, 4, 0)], r"example 1: \(0, 4, 0\) is not a span of 3 tokens"),
        ([(1, 1, 0)], r"example 1: \(1, 1, 0\) is not a span of 3 tokens"),
        ([(0, 3)], r"example 1: a tree must be rows \(begin, end, number\)"),
    ],
)
def test_trees_that_are_refused(rows: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Spans([1, 3], 2).encode([[(0, 1, 0)], rows])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(0, 2, 0), (0, 1, 7)], "example 0: no rule derives symbol 2 over"),
        ([(0, 2, 0), (0, 1, 8), (1, 2, 8)], r"entry 1 uses rule 8 over \(0, 1\), where symbol 1 over \(0, 1\)"),
        ([(0, 2, 0)], "entry 0, a binary rule, is not followed by its left part"),
        ([(0, 2, 4), (0, 2, 7)], "entry 1 uses rule 7 over .*; preterminals stand over one token"),
        ([(0, 2, 0), (0, 1, 7), (1, 2, 8), (1, 2, 8)], "entries from 3 on are not part of the derivation"),
        ([(0, 2, 9)], "rule 9 is out of range for 9 rules"),
    ],
)
def test_derivations_that_are_refused(rows: list[tuple[int, ...]], message: str) -> None:
    structure = Derivations([2], **grammar.RULES)
    structure.encode([[(0, 2, 0), (0, 1, 7), (1, 2, 8)]])
    with pytest.raises(ValueError, match=message):
        structure.encode([rows])


def test_batches_that_are_refused() -> None:
    rules = grammar.RULES
    for changes, message in (
        ({"unary": [[0, 1], [1, 0]]}, "unary rules form a cycle"),
        ({"unary": [[0, 1], [0, 1]]}, "unary: a rule is given twice"),
        ({"binary": [[0, 1, 3]]}, r"binary: symbols must lie in 0\.\.2"),
        ({"binary": [[0, 1]]}, r"binary must have shape \(n_rules, 3\)"),
        ({"n_symbols": 4}, "symbol 3 is in no rule"),
        ({"binary": [], "unary": [[0, 1]]}, "example 1: the grammar derives no sentence of 2 tokens"),
    ):
        with pytest.raises(ValueError, match=message):
            Derivations([1, 2], **{**rules, **changes})
    with pytest.raises(ValueError, match="example 1: a sentence of 0 tokens; give 1 to 4096"):
        Spans([3, 0], 2)
    with pytest.raises(ValueError, match="rooted must be"):
        Spans([3], 2, rooted="yes")  # type: ignore[arg-type]

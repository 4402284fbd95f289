"""Max-margin tuning: pseudo-references by loops, objectives by the estimator of lists, zero weights."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.tasks.reranking import made_lists

import maxmargin as mm
from benchmarks.record import DATA
from maxmargin._sparse import sp
from maxmargin.solvers import Stop, solve
from maxmargin.tasks.reranking.metrics.base import Formula
from maxmargin.tasks.reranking.metrics.bleu import Bleu
from maxmargin.tasks.reranking.tuning import references
from maxmargin.tasks.reranking.tuning.base import TuningLists
from maxmargin.tasks.reranking.tuning.max_margin import STRENGTHS, LinearProgram7, LinearProgram8, MaxMargin
from maxmargin.tasks.reranking.tuning.methods import method_named
from maxmargin.training import Settings

seeds = st.integers(0, 10_000)


def some_lists(seed: int = 0, n: int = 20, **changes: Any) -> TuningLists:
    lists = made_lists(seed, n=n, most=8, formula=Formula.MEAN, learnable=1.0, **changes)
    statistics = lists.statistics.copy()
    statistics[:, 0] = statistics[:, 0].round(1)  # some hypotheses are equally good
    return replace(lists, statistics=statistics)


def bounds(lists: TuningLists) -> list[tuple[int, int]]:
    return list(pairwise(lists.offsets.tolist()))


@given(seed=seeds, levels=st.integers(1, 5), within=st.sampled_from([0.0, 0.3, 1.0]))
def test_good_hypotheses_by_loops(seed: int, levels: int, within: float) -> None:
    lists = some_lists(seed, n=8)
    by_rank = references.good_by_rank(lists, lists.quality, levels)
    by_margin = references.good_by_margin(lists, lists.quality, within)
    costs = references.costs_of(lists, lists.quality)
    for first, last in bounds(lists):
        own = lists.quality[first:last].tolist()
        distinct = sorted(set(own), reverse=True)
        kept = distinct[: min(levels, max(len(distinct) - 1, 1))]
        assert by_rank[first:last].tolist() == [q in kept for q in own]
        assert by_margin[first:last].tolist() == [max(own) - q <= within for q in own]
        np.testing.assert_allclose(costs[first:last], [max(own) - q for q in own])


@pytest.mark.parametrize("formula", [Formula.BLEU, Formula.ERROR_RATE])
def test_what_a_hypothesis_does_to_the_corpus(formula: Formula) -> None:
    lists = made_lists(3, formula=formula)
    chosen = lists.offsets[1:] - 1
    found = references.corpus_quality(lists, chosen)
    for i, (first, last) in enumerate(bounds(lists)):
        for row in range(first, last):
            swapped = chosen.copy()
            swapped[i] = row
            assert found[row] == pytest.approx(len(lists) * lists.corpus_quality(swapped))


# --- the objective ----------------------------------------------------------------------------------------------------


def as_data(lists: TuningLists, good: Any) -> tuple[list[Any], list[Any]]:
    return [lists.rows[a:b] for a, b in bounds(lists)], [good[a:b] for a, b in bounds(lists)]


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("formulation", ["gold", "nearest", "all", "best"])
@pytest.mark.parametrize("margin", ["cost", "one"])
def test_the_objective_is_that_of_the_estimator(margin: str, formulation: str, norm: str) -> None:
    lists = some_lists(1)
    settings: dict[str, Any] = {"formulation": formulation, "margin": margin}
    levels = 1 if (formulation, margin) == ("gold", "cost") else 2  # more than one would have no effect there
    tuned = MaxMargin(C=20.0, norm=norm, **settings, levels=levels, cost_scale=3.0, tol=1e-6).tune(lists)
    good = references.good_by_rank(lists, lists.quality, 2)
    X, y = as_data(lists, good)
    costs = 3.0 * references.costs_of(lists, lists.quality)
    if formulation == "best":
        costs = np.where(good, 0.0, costs)
    data: dict[str, Any] = {"costs": [costs[a:b] for a, b in bounds(lists)]} if margin == "cost" else {}
    rescaling = "margin" if margin == "cost" else "none"
    if formulation == "gold":
        gold = [int(np.argmax(lists.quality[a:b])) for a, b in bounds(lists)]
        if margin == "one":  # equally good ones are not wrong
            formulation, data["nearest"] = "nearest", [np.full(len(x), g) for x, g in zip(X, gold, strict=True)]
        else:
            y = gold
    settings = {"C": 20.0 / len(lists), "norm": norm, "formulation": formulation, "rescaling": rescaling, "tol": 1e-6}
    if formulation == "best":
        # Rounds start from the best hypothesis, those of the estimator from the first good one.
        assert tuned.details["settled"]
        assert tuned.details["rounds"] >= 1
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *arguments, **named: None)
        expected = mm.CandidatesSVM(**settings).fit(X, y, **data).solution_.certificate
    assert tuned.solution is not None
    assert tuned.solution.certificate.primal == pytest.approx(expected.primal, rel=1e-5)


def test_rounds_of_the_best_good_hypothesis() -> None:
    lists = some_lists(2, n=40)
    objectives = []
    for rounds in (1, 10):
        tuned = MaxMargin(C=100.0, formulation="best", levels=3, rounds=rounds, tol=1e-6).tune(lists)
        assert tuned.solution is not None
        objectives.append(tuned.solution.certificate.primal)
    assert tuned.details["settled"]
    assert tuned.details["rounds"] > 1
    assert objectives[1] < objectives[0]


@pytest.mark.parametrize("method", [MaxMargin(C=10.0), LinearProgram7(C=30.0), LinearProgram8(C=30.0)])
@pytest.mark.parametrize("signs", [(1, -1, 1), (-1, 1, 0)])
def test_signs_and_sparse_rows(method: MaxMargin, signs: tuple[int, ...]) -> None:
    lists = some_lists(4, signs=signs)
    tuned = method.tune(lists)
    assert (lists.signs * tuned.weights >= 0.0).all()
    assert tuned.weights.any()
    sparse = method.tune(replace(lists, rows=sp.csr_array(lists.rows)))
    assert sparse.details["quality"] == lists.corpus_quality(lists.choose(sparse.weights))
    np.testing.assert_allclose(sparse.weights, tuned.weights, atol=1e-2)
    # As if the features with a sign of -1 had been given with another sign.
    turned = np.where(np.array(signs) < 0, -1.0, 1.0)
    other = method.tune(replace(lists, rows=lists.rows * turned, signs=np.abs(lists.signs)))
    np.testing.assert_array_equal(other.weights * turned, tuned.weights)
    with mm.threads(2):
        np.testing.assert_array_equal(method.tune(lists).weights, tuned.weights)


def test_nonnegative_weights() -> None:
    lists = some_lists(5)
    free, kept = MaxMargin(C=10.0).tune(lists), MaxMargin(C=10.0, nonnegative=True).tune(lists)
    assert (free.weights < 0.0).any()
    assert (kept.weights >= 0.0).all()


def test_costs_of_the_corpus_depend_on_the_start() -> None:
    lists = made_lists(6, n=20, formula=Formula.BLEU)
    method = MaxMargin(C=1.0, quality="corpus")
    none, some = method.examples(lists)[0], method.examples(lists, np.array([1.0, -2.0, 0.5]))[0]
    assert not np.array_equal(none.costs, some.costs)
    for examples in (none, some):
        worst = [examples.costs[a:b].max() for a, b in bounds(lists)]
        assert np.mean(worst) == pytest.approx(1.0)
        assert (examples.gold.dot(examples.costs) == 0.0).all()


def test_better_than_the_first_of_the_list() -> None:
    lists = some_lists(7, n=100)
    first = lists.corpus_quality(lists.offsets[:-1])
    oracle = lists.corpus_quality(lists.structure.first_largest(lists.quality)[0])
    for method in (MaxMargin(), LinearProgram7(), LinearProgram8(), MaxMargin(formulation="best", levels=2)):
        assert method.tune(lists).details["quality"] > 0.3 * first + 0.7 * oracle


# --- zero weights -----------------------------------------------------------------------------------------------------


def test_a_margin_of_one_may_have_no_better_weights_than_zero() -> None:
    """One list gains what another loses: zero is the solution for every C, and is announced; costs tell them apart."""
    lists = TuningLists(
        np.array([0, 2, 5]),
        np.array([[1.0], [0.0], [0.0], [1.0], [-1.0]]),
        np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0], [0.8, 1.0], [0.0, 1.0]]),
        some_lists().metric,
        np.zeros(1, dtype=np.int8),
    )
    for C in (0.1, 10.0, 1000.0):
        for method in (LinearProgram7(margin="one", C=C), LinearProgram8(margin="one", C=C)):
            tuned = method.tune(lists)
            assert not tuned.weights.any()
            assert "the first hypothesis of each list is chosen" in tuned.details["zero"]
            assert tuned.details["quality"] == lists.corpus_quality(lists.offsets[:-1])
    tuned = LinearProgram8(C=10.0).tune(lists)
    assert tuned.weights[0] > 0.0
    assert "zero" not in tuned.details


def test_lists_without_a_bad_hypothesis() -> None:
    lists = some_lists(8)
    same = replace(lists, statistics=np.ones_like(lists.statistics))
    for method in (MaxMargin(), MaxMargin(margin="one"), LinearProgram7(), LinearProgram8(within=0.5)):
        tuned = method.tune(same)
        assert not tuned.weights.any()
        assert tuned.details["bad_lists"] == 0


@pytest.mark.skipif(not (DATA / "reranking").is_dir(), reason="the 100-best lists are not at hand (MAXMARGIN_DATA)")
def test_why_the_programs_of_the_paper_gave_no_weights() -> None:
    """With a margin of 1 no weights at all have a smaller sum of hinges than zero here; with costs some do."""
    import gzip

    system = DATA / "reranking" / "sysB_dev2"
    with gzip.open(system / "100best.gz", "rt", encoding="latin-1") as lines:
        texts = [line.strip() for line in lines]
    with gzip.open(system / "ffvals.gz", "rt") as lines:
        values = np.array([[float(x) for x in line.split()] or [0.0] * 4 for line in lines])
    refs = [(line.strip(),) for line in (DATA / "reranking/dev2_en.al").read_text(encoding="latin-1").splitlines()]
    kept = np.array([bool(text) for text in texts])
    sizes = kept.reshape(len(refs), -1).sum(axis=1)
    texts, owner = [text for text in texts if text], np.repeat(np.arange(len(refs)), sizes)
    offsets, metric = np.concatenate([[0], np.cumsum(sizes)]), Bleu()
    rows = np.ascontiguousarray(values[kept] / values[kept].std(axis=0))
    statistics = metric.statistics(texts, refs, owner)
    lists = TuningLists(offsets, rows, statistics, metric, np.zeros(4, dtype=np.int8), texts)
    for method in (LinearProgram7, LinearProgram8):
        least = {}
        for margin, rescaling in (("one", "none"), ("cost", "margin")):
            examples, details = method(margin=margin).examples(lists)
            problem = examples.problem(Settings(norm="l1", radius=1000.0, rescaling=rescaling), np.inf)
            found = solve(problem, mm.ColumnGeneration(master="highs"), stop=Stop(tol=1e-6)).certificate
            least[margin] = found.dual / problem.hinge(np.zeros(4)), found.primal / problem.hinge(np.zeros(4))
        assert details["bad_lists"] == 96
        assert least["one"][0] > 1.0 - 1e-6
        assert least["cost"][1] < 1.0 - 1e-4


# --- settings ---------------------------------------------------------------------------------------------------------


def test_candidates_and_names() -> None:
    assert [one.describe()["C"] for one in MaxMargin().candidates()] == list(STRENGTHS["l2"])
    assert [one.describe()["C"] for one in LinearProgram7().candidates()] == list(STRENGTHS["l1"])
    assert MaxMargin().describe() == {"C": STRENGTHS["l2"][2]}
    assert all(isinstance(one, LinearProgram8) for one in LinearProgram8(C=[1.0, 2.0]).candidates())
    for name in ("max-margin", "lp7", "lp8"):
        assert method_named(name).name == name
    assert (LinearProgram7().formulation, LinearProgram8().formulation) == ("nearest", "all")
    assert LinearProgram7().norm == LinearProgram8().norm == "l1"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"C": ()}, "C is empty"),
        ({"C": -1.0}, "C must be a finite number > 0"),
        ({"norm": "l3"}, "norm must be one of 'l2', 'l1'"),
        ({"formulation": "worst"}, "formulation must be one of"),
        ({"margin": "two"}, "margin must be one of"),
        ({"quality": "word"}, "quality must be one of"),
        ({"levels": 0}, "levels must be an integer >= 1"),
        ({"within": -0.1}, "within must be"),
        ({"cost_scale": 0.0}, "cost_scale must be"),
        ({"rounds": 0}, "rounds must be"),
        ({"solver": "fast"}, "solver must be"),
        ({"tol": -1.0}, "tol must be"),
    ],
)
def test_settings_that_make_no_sense(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MaxMargin(**settings)

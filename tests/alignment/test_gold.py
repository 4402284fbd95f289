"""Annotated pairs as a training problem: what counts as loss, and how possible links are imputed."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.solvers import Stop
from maxmargin.tasks.alignment import Reference, evaluate
from maxmargin.tasks.alignment.encoder.evidence import Evidence
from maxmargin.tasks.alignment.selection import choose, folds
from maxmargin.tasks.alignment.training import Choice, GoldBatch, train
from maxmargin.tasks.alignment.translation.words import IndexedBitext


@pytest.fixture(scope="module")
def build(aligner):
    """Gold of sentence pairs, with the features of an aligner."""

    def one(X, references):
        source, target = ([pair[side] for pair in X] for side in (0, 1))
        evidence = Evidence.of(
            aligner.models_, IndexedBitext.of(source, target), lexical=aligner.models_.words.numbered(aligner.lexical_)
        )
        return GoldBatch.build(aligner.link_model_, evidence, references)

    return one


def loss(gold, output, false_negative=2.0):
    """The training loss of an output, a packed vector, over all pairs."""
    problem = gold.problem(1.0, false_negative, gold.kept)
    return problem.constant + problem.leading_costs @ output


def test_possible_links_cost_nothing(build, few):
    X, y = few[0][:20], few[1][:20]
    gold = build(X, y)
    assert (gold.possible & ~gold.sure).any()
    assert (gold.possible | ~gold.sure).all()
    problem = gold.problem(1.0, 2.0, gold.kept)
    cells = problem.leading_costs[gold.batch.cells]
    kept = gold.kept[gold.batch.cells] > 0.5
    np.testing.assert_array_equal(cells[gold.possible & ~gold.sure], 0.0)
    np.testing.assert_array_equal(cells[~gold.possible], 1.0)
    np.testing.assert_array_equal(cells[kept], -2.0)
    slots = np.setdiff1d(np.arange(gold.batch.n_parts), gold.batch.cells)
    np.testing.assert_array_equal(problem.leading_costs[slots], 0.0)
    assert loss(gold, gold.kept) == pytest.approx(0.0)
    nothing = gold.batch.complete(np.zeros(len(gold.sure)))
    assert loss(gold, nothing) == pytest.approx(2.0 * kept.sum())


def test_more_possible_links_never_cost(build, few):
    """The loss of any output falls, or stays, where annotators call more links possible."""
    X, y = few[0][:15], few[1][:15]
    rng = np.random.default_rng(0)
    wider = [
        Reference.of(one.sure, np.concatenate([one.possible, rng.integers(0, (len(source), len(target)), (6, 2))]))
        for one, (source, target) in zip(y, X, strict=True)
    ]
    gold, more = build(X, y), build(X, wider)
    np.testing.assert_array_equal(gold.kept, more.kept)
    for _ in range(20):
        output = gold.batch.structure.argmax(rng.standard_normal(gold.batch.n_parts)).z
        assert loss(more, output) <= loss(gold, output) + 1e-9


def test_loss_of_random_outputs(build, few):
    X, y = few[0][:10], [Reference.of(one.sure, one.possible) for one in few[1][:10]]
    gold, rng = build(X, y), np.random.default_rng(1)
    for _ in range(10):
        output = gold.batch.structure.argmax(rng.standard_normal(gold.batch.n_parts)).z
        chosen, must = output[gold.batch.cells] > 0.5, gold.kept[gold.batch.cells] > 0.5
        expected = 3.0 * (must & ~chosen).sum() + (chosen & ~gold.possible).sum()
        assert loss(gold, output, 3.0) == pytest.approx(expected)


def test_imputation(build, few):
    gold = build(*few)
    rng = np.random.default_rng(2)
    must = gold.kept[gold.batch.cells] > 0.5
    for scale in (0.0, 1e-6, 1.0, 1e6):
        output = gold.imputed(scale * rng.standard_normal(gold.features.n_weights))
        chosen = output[gold.batch.cells] > 0.5
        assert (chosen | ~must).all()
        assert (gold.possible | ~chosen).all()
        assert set(np.unique(output)) <= {0.0, 1.0}
        assert loss(gold, output) == pytest.approx(0.0)
    wanted = np.zeros(gold.features.n_weights)
    wanted[0] = 1.0  # the bias: as many links as there is room for
    assert (gold.imputed(wanted)[gold.batch.cells] > 0.5).sum() > must.sum()


def test_more_sure_links_than_room(build):
    crowded = build([(["a"], ["x", "y", "z", "u"])], [Reference.of([(0, k) for k in range(4)])])
    kept = crowded.kept[crowded.batch.cells] > 0.5
    assert kept.sum() == 2
    problem = crowded.problem(1.0, 2.0, crowded.kept)
    np.testing.assert_array_equal(problem.leading_costs[crowded.batch.cells], np.where(kept, -2.0, 0.0))
    assert (crowded.imputed(np.zeros(crowded.features.n_weights))[crowded.batch.cells] > 0.5).sum() == 2


def test_select(build, few):
    X, y = few
    gold, rng = build(X, y), np.random.default_rng(3)
    chosen = np.array([5, 2, 2, 40])
    part, alone = gold.select(chosen), build([X[i] for i in chosen], [y[i] for i in chosen])
    weights = rng.standard_normal(gold.features.n_weights)
    np.testing.assert_allclose(part.margins(weights), alone.margins(weights))
    np.testing.assert_array_equal(part.sure, alone.sure)
    np.testing.assert_array_equal(part.kept, alone.kept)
    np.testing.assert_array_equal(part.outputs(weights), alone.outputs(weights))
    assert len(gold.select(np.zeros(0, dtype=np.int64))) == 0


def test_margins_tell_the_outputs(build, few, aligner):
    X, y = few
    gold = build(X, y)
    margins, outputs = gold.margins(aligner.coef_), gold.outputs(aligner.coef_)
    np.testing.assert_array_equal(margins > 0, outputs)
    assert gold.evaluate(outputs) == evaluate(y, aligner.predict(X))


def test_rounds_lower_the_loss_that_is_meant(build, few):
    """Each round of imputation starts from weights at which its own problem is no worse than the last one."""
    gold = build(few[0][:20], few[1][:20])
    objective = []
    for rounds in range(3):
        solution = train(gold, Choice(0.1, 2.0), rounds=rounds, solver=None, stop=Stop(tol=1e-4))
        objective.append(solution.certificate.primal)
    assert objective[1] <= objective[0] * (1 + 1e-3)
    assert objective[2] <= objective[1] * (1 + 1e-3)


def test_folds():
    for n, k in ((10, 3), (5, 5), (3, 5), (1, 2)):
        parts = folds(n, k, 0)
        assert len(parts) == min(n, k)
        np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(n))
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert not np.array_equal(folds(20, 2, 0)[0], folds(20, 2, 1)[0])


def test_choose():
    asked = []

    def aer(choice):
        asked.append(choice)
        return abs(choice.C - 4) + abs(choice.false_negative - 3)

    best, tried = choose((1.0, 2.0, 4.0), (1.0, 2.0, 3.0), aer)
    assert best == Choice(4.0, 3.0)
    assert len(asked) == len(set(asked)) == len(tried) < 9
    assert choose((1.0, 2.0), (1.0, 2.0), lambda choice: 0.0)[0] == Choice(1.0, 1.0)

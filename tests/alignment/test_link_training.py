"""Training of link weights: layout of weights, gold outputs, loss, and what a run ends with."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.solvers import Extragradient, Stop
from maxmargin.tasks.alignment import Reference, load_corpus
from maxmargin.tasks.alignment.encoder.evidence import POSTERIOR_NAMES, Evidence
from maxmargin.tasks.alignment.encoder.features import GROUPS, LinkFeatures
from maxmargin.tasks.alignment.io.links import as_links
from maxmargin.tasks.alignment.metrics.scores import evaluate
from maxmargin.tasks.alignment.selection import choose, folds
from maxmargin.tasks.alignment.training import Choice, GoldBatch, LinkModel, train
from maxmargin.tasks.alignment.translation.bitext_models import BitextModels
from maxmargin.tasks.alignment.translation.words import IndexedBitext

CORPUS = load_corpus()
MODELS = BitextModels.learn(CORPUS.source, CORPUS.target, model1_iterations=2, hmm_iterations=2)
SOME = CORPUS.select(range(0, len(CORPUS), 6))
LEXICAL = MODELS.words.frequent(30)


def link_model(fertility=2, *, lexical=False):
    groups = tuple(group for group in GROUPS if group != "extra" and (lexical or group != "lexical"))
    return LinkModel(LinkFeatures(groups, len(LEXICAL) if lexical else 0, POSTERIOR_NAMES), fertility)


def evidence(corpus=SOME):
    return Evidence.of(MODELS, IndexedBitext.of(corpus.source, corpus.target), lexical=MODELS.words.numbered(LEXICAL))


@pytest.mark.parametrize("fertility", [1, 2, 4])
@pytest.mark.parametrize("lexical", [False, True])
def test_features_of_parts_are_those_of_links_and_words(fertility, lexical):
    model, metadata = link_model(fertility, lexical=lexical), evidence()
    batch = model.batch(metadata)
    features = model.features(metadata, batch)
    matrix = features.to_sparse().toarray()
    assert matrix.shape == (batch.n_parts, model.n_weights)
    assert len(model.names) == len(set(model.names)) == model.n_weights
    links = model.links.matrix(metadata)
    links = links.toarray() if sp.issparse(links) else links
    expected = np.zeros(matrix.shape)
    expected[batch.cells, : links.shape[1]] = links
    at = links.shape[1]
    for slot in range(fertility - 1):
        for side, parts in zip(model._words, (batch.source_slots, batch.target_slots), strict=True):
            words = side.matrix(metadata)
            expected[parts[:, slot], at : at + words.shape[1]] = words
            at += words.shape[1]
    assert at == model.n_weights
    np.testing.assert_array_equal(matrix, expected)
    weights = np.random.default_rng(0).standard_normal(model.n_weights)
    np.testing.assert_allclose(features.scores(weights), expected @ weights, atol=1e-9)
    np.testing.assert_allclose(model.scores(metadata, batch, weights), expected @ weights, atol=1e-9)


def test_names_of_places():
    names = link_model(4).names
    for ordinal in ("second", "third", "4th"):
        assert sum(name.startswith(f"cost of a {ordinal} link") for name in names) == 28


def gold(fertility=2, corpus=SOME, **settings):
    return GoldBatch.build(link_model(fertility, **settings), evidence(corpus), corpus.references)


def test_selected_pairs_are_those_built_alone():
    whole = gold()
    chosen = np.array([3, 0, 3, 7])
    part, alone = whole.select(chosen), gold(corpus=SOME.select(chosen.tolist()))
    assert len(part) == 4
    np.testing.assert_array_equal(part.sure, alone.sure)
    np.testing.assert_array_equal(part.possible, alone.possible)
    np.testing.assert_array_equal(part.prior, alone.prior)
    np.testing.assert_array_equal(part.kept, alone.kept)
    np.testing.assert_array_equal(part.features.to_sparse().toarray(), alone.features.to_sparse().toarray())
    assert len(whole.select(np.zeros(0, dtype=np.int64))) == 0


@pytest.mark.parametrize("fertility", [1, 2, 3])
def test_gold_outputs_are_legal(fertility):
    batch = gold(fertility)
    structure = batch.batch.structure
    rng = np.random.default_rng(fertility)
    weights = rng.standard_normal(batch.features.n_weights)
    for output in (batch.kept, batch.imputed(weights)):
        np.testing.assert_array_equal(structure.encode(structure.decode(output)), output)
        cells = output[batch.batch.cells] > 0.5
        assert not (cells & ~batch.possible).any()
    kept, imputed = (output[batch.batch.cells] > 0.5 for output in (batch.kept, batch.imputed(weights)))
    assert not (kept & ~batch.sure).any()
    assert not (kept & ~imputed).any()
    if fertility == 3:
        assert kept.sum() > 0.9 * batch.sure.sum()
    # Nothing is left out that would have fitted.
    grid = batch.batch
    pair, j, k = grid._cell_words
    at = (grid.n_source.cumsum() - grid.n_source)[pair] + j, (grid.n_target.cumsum() - grid.n_target)[pair] + k
    used = [
        np.bincount(words[kept], minlength=int(n.sum()))
        for words, n in zip(at, (grid.n_source, grid.n_target), strict=True)
    ]
    left_out = batch.sure & ~kept
    assert ((used[0][at[0]] >= fertility) | (used[1][at[1]] >= fertility))[left_out].all()


@pytest.mark.parametrize("fertility", [1, 2])
def test_imputed_outputs_are_the_best_that_references_allow(fertility):
    source, target = [["the", "house"], ["a", "small", "house"]], [["la", "maison"], ["une", "petite", "maison"]]
    references = [Reference.of([(1, 1)], [(0, 0), (0, 1)]), Reference.of([(0, 0)], [(1, 1), (2, 2), (1, 2)])]
    model = link_model(fertility)
    metadata = Evidence.of(MODELS, IndexedBitext.of(source, target), lexical=MODELS.words.numbered(LEXICAL))
    batch = GoldBatch.build(model, metadata, references)
    for seed in range(10):
        weights = np.random.default_rng(seed).standard_normal(model.n_weights)
        scores = batch.features.scores(weights)
        output = batch.imputed(weights)
        structure = batch.batch.structure
        for p, reference in enumerate(references):
            begin, end = structure.blocks[0].offsets[p : p + 2]
            cells = slice(batch.batch.grid_start[p], batch.batch.grid_start[p + 1])
            where = batch.batch.cells[cells] - begin
            free = np.setdiff1d(np.arange(end - begin), where)
            K = len(target[p])
            optional = [j * K + k for j, k in reference.possible.tolist() if [j, k] not in reference.sure.tolist()]
            fixed = [j * K + k for j, k in reference.sure.tolist()]
            best = -np.inf
            polytope = structure.select(np.array([p])).polytope()
            for bits in product((0.0, 1.0), repeat=len(optional)):
                z = np.zeros(end - begin)
                z[where[fixed]] = 1
                z[where[optional]] = bits
                for filled in product((0.0, 1.0), repeat=len(free)) if len(free) <= 8 else [None]:
                    if filled is None:
                        z = _filled(z, scores[begin:end], free, polytope)
                    else:
                        z[free] = filled
                    if z is not None and (polytope.ub @ z <= polytope.ub_rhs + 1e-9).all():
                        best = max(best, float(scores[begin:end] @ z))
            assert scores[begin:end] @ output[begin:end] == pytest.approx(best)


def _filled(z, scores, free, polytope):
    """Places filled greedily, the best first: they compete for the room of one word only."""
    z = z.copy()
    for part in sorted(free.tolist(), key=lambda part: -scores[part]):
        z[part] = scores[part] > 0
        if (polytope.ub @ z > polytope.ub_rhs + 1e-9).any():
            z[part] = 0
    return z


def test_loss_counts_missed_sure_and_impossible_links():
    batch = gold(2)
    problem = batch.problem(1.0, 3.0, batch.kept)
    structure, cells = batch.batch.structure, batch.batch.cells
    rng = np.random.default_rng(0)
    output = structure.argmax(rng.standard_normal(structure.n_parts)).z
    taken, kept = output[cells] > 0.5, batch.kept[cells] > 0.5
    missed, wrong = (kept & ~taken).sum(), (taken & ~batch.possible).sum()
    assert problem.loss(output) == pytest.approx(problem.scale[0] * (3.0 * missed + wrong))
    assert problem.loss(batch.kept) == 0.0


def test_scores_are_those_of_the_metrics():
    batch = gold(2)
    weights = np.random.default_rng(1).standard_normal(batch.features.n_weights)
    predicted = batch.outputs(weights)
    grids = np.split(predicted, batch.batch.grid_start[1:-1])
    links = [
        as_links(np.argwhere(grid.reshape(len(source), len(target))))
        for grid, source, target in zip(grids, SOME.source, SOME.target, strict=True)
    ]
    expected, found = evaluate(SOME.references, links), batch.evaluate(predicted)
    assert found == expected
    np.testing.assert_array_equal(found.counts, expected.counts)
    margins = batch.margins(weights)
    np.testing.assert_array_equal(margins > 0, predicted)


@pytest.mark.parametrize("lexical", [False, True])
def test_training_ends_with_a_certificate_and_fits(lexical):
    batch = gold(2, lexical=lexical)
    stop = Stop(tol=1e-2, max_iter=3000)
    solution = train(batch, Choice(1.0, 2.0), rounds=1, solver=Extragradient(), stop=stop)
    assert solution.certificate.relative_gap <= 1e-2
    assert batch.evaluate(batch.outputs(solution.weights)).aer < 0.05


@pytest.mark.parametrize("link", [(-1, 0), (0, -1), (99, 0), (0, 99)])
def test_links_outside_a_sentence_are_refused(link):
    references = list(SOME.references)
    references[2] = Reference(np.array([link]), np.array([link]))
    wrong = "has a negative position" if min(link) < 0 else "is outside its .*"
    with pytest.raises(ValueError, match=rf"sentence pair 3: link .* {wrong}; positions count from 0"):
        GoldBatch.build(link_model(), evidence(), references)


def test_folds_share_all_pairs():
    parts = folds(23, 5, seed=3)
    assert sorted(np.concatenate(parts).tolist()) == list(range(23))
    assert {len(part) for part in parts} == {4, 5}
    assert len(folds(3, 10, seed=0)) == 3
    for one, two in zip(parts, folds(23, 5, seed=3), strict=True):
        np.testing.assert_array_equal(one, two)


def test_settings_are_chosen_by_coordinates():
    asked = []

    def aer(choice):
        asked.append(choice)
        return abs(np.log(choice.C / 0.1)) + abs(choice.false_negative - 3)

    choice, tried = choose([0.1, 1.0, 10.0], [1.0, 2.0, 3.0, 4.0], aer)
    assert choice == Choice(0.1, 3.0)
    assert len(asked) == len(set(asked)) == len(tried)
    assert tried[choice] == min(tried.values())
    first, _ = choose([1.0], [1.0, 2.0], lambda _: 0.5)
    assert first == Choice(1.0, 1.0)

"""Training of link weights: features of parts, gold outputs, loss, imputed links, and what a run ends with."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.losses import Hamming
from maxmargin.solvers import Extragradient
from maxmargin.tasks.alignment import BitextModels, Reference, evaluate, load_corpus
from maxmargin.tasks.alignment.annotated import AnnotatedPairs, Imputation
from maxmargin.tasks.alignment.encoder.alignment import AlignmentEncoder
from maxmargin.tasks.alignment.encoder.evidence import indexed
from maxmargin.tasks.alignment.encoder.features import GROUPS
from maxmargin.tasks.alignment.io.links import as_links
from maxmargin.training import Settings, train_examples
from maxmargin.training.selection import coordinate_search, folds

CORPUS = load_corpus()
MODELS = BitextModels.learn(CORPUS.source, CORPUS.target, model1_iterations=2, hmm_iterations=2)
SOME = CORPUS.select(range(0, len(CORPUS), 6))


def encoder(fertility=2, *, lexical=False):
    groups = [group for group in GROUPS if group != "extra" and (lexical or group != "lexical")]
    return AlignmentEncoder.of(MODELS, MODELS.words.frequent(30 * lexical), groups=groups, fertility=fertility)


def annotated(X=SOME, references=None, fertility=2, **settings):
    made = encoder(fertility, **settings)
    return AnnotatedPairs.annotated(made, made.transform(list(X)), X.references if references is None else references)


def settings_of(C=1.0, false_negative=2.0, **more):
    return Settings(C=C, loss=Hamming(false_positive=1.0, false_negative=false_negative), **more)


def cells_of(pairs):
    """The links of the gold output, a 0/1 grid."""
    return pairs.gold.dense()[pairs.batch.matchings.cells] > 0.5


def random_output(pairs, rng):
    return pairs.batch.structure.argmax(rng.standard_normal(pairs.batch.structure.n_parts)).z


@pytest.mark.parametrize("fertility", [1, 2, 4])
@pytest.mark.parametrize("lexical", [False, True])
def test_features_of_parts_are_those_of_links_and_words(fertility, lexical):
    made = encoder(fertility, lexical=lexical)
    model, pairs = made.link_model, made.parse(SOME)
    evidence = made.evidence(pairs, indexed(pairs), made.translation())
    batch = model.batch(evidence)
    features = model.features(evidence, batch)
    matrix = features.to_sparse().toarray()
    assert matrix.shape == (batch.n_parts, model.n_weights)
    assert len(model.names) == len(set(model.names)) == model.n_weights
    links = model.links.matrix(evidence)
    links = links.toarray() if sp.issparse(links) else links
    expected = np.zeros(matrix.shape)
    expected[batch.cells, : links.shape[1]] = links
    at = links.shape[1]
    for slot in range(fertility - 1):
        for side, parts in zip(model._words, (batch.source_slots, batch.target_slots), strict=True):
            words = side.matrix(evidence)
            expected[parts[:, slot], at : at + words.shape[1]] = words
            at += words.shape[1]
    assert at == model.n_weights
    np.testing.assert_array_equal(matrix, expected)
    weights = np.random.default_rng(0).standard_normal(model.n_weights)
    np.testing.assert_allclose(features.scores(weights), expected @ weights, atol=1e-9)
    np.testing.assert_allclose(model.scores(evidence, batch, weights), expected @ weights, atol=1e-9)


def test_names_of_slots():
    names = encoder(4).link_model.names
    for ordinal in ("second", "third", "4th"):
        assert sum(name.startswith(f"cost of a {ordinal} link") for name in names) == 28


def test_the_encoder_encodes_sure_links_and_decodes_links():
    made = encoder(3)
    batch = made.transform(list(SOME))
    gold = made.encode(batch, SOME.references)
    np.testing.assert_array_equal(gold.dense(), annotated(fertility=3).gold.dense())
    links = made.decode(batch, batch.structure.decode(gold.dense()))
    found = evaluate(SOME.references, links)
    assert found.predicted == found.predicted_sure > 0.9 * found.sure
    counts = np.sum([made.agreement(one, two) for one, two in zip(SOME.references, links, strict=True)], axis=0)
    assert counts[0] / counts[1] == pytest.approx(1 - found.aer)


def test_selected_pairs_are_those_built_alone():
    whole, chosen = annotated(lexical=True), np.array([3, 0, 3, 7])
    part, alone = whole.select(chosen), annotated(SOME.select(chosen.tolist()), lexical=True)
    assert len(part) == 4
    for name in ("sure", "possible"):
        np.testing.assert_array_equal(getattr(part, name), getattr(alone, name))
    np.testing.assert_array_equal(part.good.given, alone.good.given)
    np.testing.assert_array_equal(part.batch.prior, alone.batch.prior)
    np.testing.assert_array_equal(part.gold.dense(), alone.gold.dense())
    np.testing.assert_array_equal(part.batch.features.to_sparse().toarray(), alone.batch.features.to_sparse().toarray())
    weights = np.random.default_rng(3).standard_normal(part.batch.features.n_weights)
    np.testing.assert_allclose(part.margins(weights), alone.margins(weights))
    assert len(whole.select(np.zeros(0, dtype=np.int64))) == 0


@pytest.mark.parametrize("fertility", [1, 2, 3])
def test_gold_outputs_are_legal(fertility):
    pairs = annotated(fertility=fertility)
    structure, rng = pairs.batch.structure, np.random.default_rng(fertility)
    kept = cells_of(pairs)
    for scale in (None, 0.0, 1e-6, 1.0, 1e6):
        made = pairs if scale is None else pairs.completed(scale * rng.standard_normal(pairs.batch.features.n_weights))
        output = made.gold.dense()
        np.testing.assert_array_equal(structure.encode(structure.decode(output)), output)
        assert not (cells_of(made) & ~pairs.possible).any()
        assert not (kept & ~cells_of(made)).any()
        assert pairs.problem(settings_of(), 1.0).loss(output) == pytest.approx(0.0)
    assert not (kept & ~pairs.sure).any()
    if fertility == 3:
        assert kept.sum() > 0.9 * pairs.sure.sum()
    # Nothing is left out that would have fitted.
    grid = pairs.batch.matchings
    pair, j, k = grid._cell_words
    at = (grid.n_source.cumsum() - grid.n_source)[pair] + j, (grid.n_target.cumsum() - grid.n_target)[pair] + k
    used = [
        np.bincount(words[kept], minlength=int(n.sum()))
        for words, n in zip(at, (grid.n_source, grid.n_target), strict=True)
    ]
    left_out = pairs.sure & ~kept
    assert ((used[0][at[0]] >= fertility) | (used[1][at[1]] >= fertility))[left_out].all()
    wanted = np.zeros(pairs.batch.features.n_weights)
    wanted[0] = 1.0  # the bias: as many links as there is room for
    assert cells_of(pairs.completed(wanted)).sum() > kept.sum()


@pytest.mark.parametrize("fertility", [1, 2])
def test_imputed_outputs_are_the_best_that_references_allow(fertility):
    X = [(["the", "house"], ["la", "maison"]), (["a", "small", "house"], ["une", "petite", "maison"])]
    references = [Reference.of([(1, 1)], [(0, 0), (0, 1)]), Reference.of([(0, 0)], [(1, 1), (2, 2), (1, 2)])]
    pairs = annotated(X, references, fertility)
    grid, structure = pairs.batch.matchings, pairs.batch.structure
    for seed in range(10):
        weights = np.random.default_rng(seed).standard_normal(pairs.batch.features.n_weights)
        scores = pairs.batch.features.scores(weights)
        output = pairs.completed(weights).gold.dense()
        for p, reference in enumerate(references):
            begin, end = structure.blocks[0].offsets[p : p + 2]
            where = grid.cells[grid.grid_start[p] : grid.grid_start[p + 1]] - begin
            free = np.setdiff1d(np.arange(end - begin), where)
            K = len(X[p][1])
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
    """Slots filled greedily, the best first: they compete for the room of one word only."""
    z = z.copy()
    for part in sorted(free.tolist(), key=lambda part: -scores[part]):
        z[part] = scores[part] > 0
        if (polytope.ub @ z > polytope.ub_rhs + 1e-9).any():
            z[part] = 0
    return z


def test_loss_counts_missed_sure_and_impossible_links():
    pairs, rng = annotated(), np.random.default_rng(0)
    grid, kept = pairs.batch.matchings, cells_of(pairs)
    problem = pairs.problem(settings_of(false_negative=3.0), 1.0)
    free = pairs.possible & ~pairs.sure
    assert free.any()
    assert (pairs.possible | ~pairs.sure).all()
    costs = problem.leading_costs[grid.cells]
    for value, where in ((0.0, free), (1.0, ~pairs.possible), (-3.0, kept)):
        np.testing.assert_array_equal(costs[where], value)
    np.testing.assert_array_equal(np.delete(problem.leading_costs, grid.cells), 0.0)  # those of slots
    nothing = grid.complete(np.zeros(len(pairs.sure)))
    for output in (pairs.gold.dense(), nothing, *(random_output(pairs, rng) for _ in range(10))):
        taken = output[grid.cells] > 0.5
        missed, wrong = (kept & ~taken).sum(), (taken & ~pairs.possible).sum()
        assert problem.loss(output) == pytest.approx(problem.scale[0] * (3.0 * missed + wrong))


def test_more_possible_links_never_cost():
    """The loss of any output falls, or stays, where annotators call more links possible."""
    rng = np.random.default_rng(0)
    wider = [
        Reference.of(one.sure, np.concatenate([one.possible, rng.integers(0, (len(source), len(target)), (6, 2))]))
        for one, source, target in zip(SOME.references, SOME.source, SOME.target, strict=True)
    ]
    pairs, more = annotated(), annotated(references=wider)
    np.testing.assert_array_equal(pairs.gold.dense(), more.gold.dense())
    few, many = (one.problem(settings_of(), 1.0) for one in (pairs, more))
    for _ in range(20):
        output = random_output(pairs, rng)
        assert many.loss(output) <= few.loss(output) + 1e-9


def test_more_sure_links_than_room():
    crowded = annotated([(["a"], ["x", "y", "z", "u"])], [Reference.of([(0, k) for k in range(4)])])
    kept = cells_of(crowded)
    assert kept.sum() == 2
    costs = crowded.problem(settings_of(), 1.0).leading_costs[crowded.batch.matchings.cells]
    np.testing.assert_array_equal(costs, np.where(kept, -2.0, 0.0))
    assert cells_of(crowded.completed(np.zeros(crowded.batch.features.n_weights))).sum() == 2


def test_scores_are_those_of_the_metrics():
    pairs = annotated()
    grid, weights = pairs.batch.matchings, np.random.default_rng(1).standard_normal(pairs.batch.features.n_weights)
    predicted = pairs.batch.structure.argmax(pairs.batch.features.scores(weights)).z[grid.cells] > 0.5
    np.testing.assert_array_equal(pairs.margins(weights) > 0, predicted)
    grids = np.split(predicted, grid.grid_start[1:-1])
    sizes = zip(grids, map(len, SOME.source), map(len, SOME.target), strict=True)
    links = [as_links(np.argwhere(cells.reshape(shape))) for cells, *shape in sizes]
    expected, found = evaluate(SOME.references, links), pairs.evaluate(predicted)
    assert found == expected
    np.testing.assert_array_equal(found.counts, expected.counts)


@pytest.mark.parametrize("lexical", [False, True])
def test_training_ends_with_a_certificate_and_fits(lexical):
    pairs = annotated(lexical=lexical)
    settings = settings_of(solver=Extragradient(), tol=1e-2, max_iter=3000)
    model = train_examples(pairs, settings, hooks=Imputation(1))
    assert model.training.solution.certificate.relative_gap <= 1e-2
    assert pairs.evaluate(pairs.margins(model.weights) > 0).aer < 0.05


def test_rounds_lower_the_loss_that_is_meant():
    """Each round of imputation starts from weights at which its own problem is no worse than the last one."""
    pairs = annotated(SOME.select(range(20)), lexical=True)
    objective = []
    for rounds in range(3):
        model = train_examples(pairs, settings_of(0.1, tol=1e-4), hooks=Imputation(rounds))
        objective.append(model.training.solution.certificate.primal)
        assert model.training.solution.why.startswith("alignments, a few hundred weights: simplicial decomposition")
    assert objective[1] <= objective[0] * (1 + 1e-3)
    assert objective[2] <= objective[1] * (1 + 1e-3)


@pytest.mark.parametrize("link", [(-1, 0), (0, -1), (99, 0), (0, 99)])
def test_links_outside_a_sentence_are_refused(link):
    references = list(SOME.references)
    references[2] = Reference(np.array([link]), np.array([link]))
    wrong = "has a negative position" if min(link) < 0 else "is outside its .*"
    with pytest.raises(ValueError, match=rf"sentence pair 3: link .* {wrong}; positions count from 0"):
        annotated(references=references)


@pytest.mark.parametrize(("n", "k"), [(10, 3), (5, 5), (3, 5), (1, 2), (23, 5)])
def test_folds_share_all_pairs(n, k):
    parts = folds(n, k, 0)
    assert len(parts) == min(n, k)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(n))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for one, two in zip(parts, folds(n, k, 0), strict=True):
        np.testing.assert_array_equal(one, two)
    assert n < 20 or not np.array_equal(parts[0], folds(n, k, 1)[0])


def test_settings_are_chosen_by_coordinates():
    asked = []

    def error(candidate):
        asked.append((candidate["false_negative"], candidate["C"]))
        return abs(np.log(candidate["C"] / 0.1)) + abs(candidate["false_negative"] - 3)

    best, tried = coordinate_search({"false_negative": [1.0, 2.0, 3.0, 4.0], "C": [0.1, 1.0, 10.0]}, error)
    assert best == {"false_negative": 3.0, "C": 0.1}
    costs_at_the_middle_C, then_C = [(cost, 1.0) for cost in (1.0, 2.0, 3.0, 4.0)], [(3.0, 0.1), (3.0, 10.0)]
    assert asked == [*costs_at_the_middle_C, *then_C, (2.0, 0.1), (4.0, 0.1)]
    assert [tuple(candidate.values()) for candidate, _ in tried] == asked
    assert dict(zip(asked, [value for _, value in tried], strict=True))[3.0, 0.1] == min(value for _, value in tried)
    first, _ = coordinate_search({"false_negative": [1.0, 2.0], "C": [1.0]}, lambda _: 0.5)
    assert first == {"false_negative": 1.0, "C": 1.0}

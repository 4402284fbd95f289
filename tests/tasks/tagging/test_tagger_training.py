"""Training of taggers: the objective of ChainSVM, certificates that are true, unknown labels, further data."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from corpora import PAIRS, WORDS, chunked, dictionaries, markov, matrices
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.losses import LabelCost
from maxmargin.regions import L2
from maxmargin.solvers import BlockFrankWolfe, Exact, Stop, solve
from maxmargin.structures.chains.transitions import TransitionConstraints
from maxmargin.tasks.tagging import SequenceTagger
from maxmargin.tasks.tagging.dev import DevSentences
from maxmargin.tasks.tagging.encoder.extractors import MatrixExtractor
from maxmargin.tasks.tagging.encoder.labels.gold import LabeledRows
from maxmargin.training import Examples, Settings

FINE = {"tol": 1e-8, "max_iter": 20000}


def explicit(tagger, X):
    """The features of sentences as dense matrices, and as sequences where pairs see the input."""
    rows = tagger.model_.extractor.rows(X)
    dense, bounds = rows.tokens.matrix.toarray(), rows.offsets
    found = [dense[a:b] for a, b in itertools.pairwise(bounds)]
    if rows.edges is None:
        return found
    edges, at = rows.edges.matrix.toarray(), rows.edge_offsets
    return [mm.FeatureSequence(x, edges[a:b]) for x, a, b in zip(found, at[:-1], at[1:], strict=True)]


def problem_of(tagger, X, y, *, loss=None, sample_weight=None, loss_weight=None):
    """The problem that the weights of a trained tagger solve."""
    encoder, batch = tagger.model_.encoder, tagger.model_.encoder.transform(X)
    per_part = None if loss_weight is None else np.repeat(loss_weight, len(tagger.classes_))
    examples = Examples(encoder, batch, encoder.encode(batch, y), sample_weight, per_part)
    return examples.problem(Settings(loss=loss), tagger.model_.metadata["C"])


@pytest.mark.parametrize("kind", ["first", "second", "edges"])
def test_full_support_is_the_problem_of_chain_svm(kind):
    X, y = markov(8, seed=1, longest=4)
    template = PAIRS if kind == "edges" else WORDS
    order = 2 if kind == "second" else 1
    tagger = SequenceTagger(template=template, order=order, support="all", C=0.3, **FINE).fit(X, y)
    dense = explicit(tagger, X)
    svm = mm.ChainSVM(C=0.3, order=order, solver=mm.BlockFrankWolfe(), random_state=0, **FINE).fit(dense, y)
    assert tagger.model_.metadata["primal"] == pytest.approx(svm.solution_.certificate.primal, rel=1e-7)
    assert tagger.model_.metadata["dual"] == pytest.approx(svm.solution_.certificate.dual, rel=1e-7)
    problem = problem_of(tagger, X, y)
    assert problem.objective(tagger.model_.weights) == pytest.approx(tagger.model_.metadata["primal"], rel=1e-9)
    exact = solve(problem, Exact()).certificate
    assert exact.primal == pytest.approx(tagger.model_.metadata["primal"], rel=1e-6)
    # Weights of tokens are label after label in both; the objective is strictly convex, so that they agree.
    own, pairs, _ = tagger.model_.weight_layout.split(tagger.model_.weights)
    d, k = tagger.model_.extractor.n_attributes, len(tagger.classes_)
    np.testing.assert_allclose(svm.coef_[: d * k].reshape(d, k), own.reshape(d, k), atol=2e-4)
    if kind == "first":
        np.testing.assert_allclose(svm.coef_[d * k : d * k + k * k].reshape(k, k), pairs, atol=2e-4)
    assert svm.predict(dense) == tagger.predict(X)


@pytest.mark.parametrize(
    "inputs",
    [dictionaries, matrices, lambda X: [sp.csr_array(x) for x in matrices(X)]],
    ids=["dictionaries", "dense", "sparse"],
)
def test_other_inputs_are_the_same_problem(inputs):
    X, y = markov(8, seed=2, longest=4)
    tagger = SequenceTagger(support="all", C=0.2, **FINE).fit(inputs(X), y)
    svm = mm.ChainSVM(C=0.2, solver=mm.Exact()).fit(explicit(tagger, inputs(X)), y)
    assert tagger.model_.metadata["primal"] == pytest.approx(svm.solution_.certificate.primal, rel=1e-6)


@pytest.mark.parametrize("support", ["observed", "negative"])
def test_less_support_is_the_same_problem_with_weights_removed(support):
    X, y = markov(10, seed=3, longest=4)
    tagger = SequenceTagger(template=WORDS, support=support, C=0.3, **FINE).fit(X, y)
    whole = SequenceTagger(template=WORDS, support="all", C=0.3, **FINE).fit(X, y)
    few, every = tagger.model_.weight_layout, whole.model_.weight_layout
    assert few.n_weights < every.n_weights
    seen = {
        (word, label) for words, labels in zip(X, y, strict=True) for word, label in zip(words, labels, strict=True)
    }
    found = {(name[4:], label) for name, label in tagger.state_features_ if name.startswith("U00:")}
    assert seen == found if support == "observed" else seen < found
    # The same weights give the same objective in the problem with all of them.
    own, pairs, _ = few.split(tagger.model_.weights)
    spread = np.concatenate([few.support.carried(own, every.support), pairs.ravel()])
    big = problem_of(whole, X, y)
    assert big.objective(spread) == pytest.approx(tagger.model_.metadata["primal"], rel=1e-9)
    assert tagger.model_.metadata["primal"] >= whole.model_.metadata["dual"] * (1 - 1e-9)
    exact = solve(problem_of(tagger, X, y), Exact()).certificate
    assert exact.primal == pytest.approx(tagger.model_.metadata["primal"], rel=1e-6)


def test_weights_and_costs():
    X, y = markov(8, seed=4, longest=4)
    rng = np.random.default_rng(0)
    samples = rng.uniform(0, 2, len(X))
    tokens = [rng.uniform(0, 2, len(x)) for x in X]
    matrix = rng.uniform(0.5, 2, (3, 3)) * (1 - np.eye(3))
    cost = {"a": 2.0, "c": 0.5}
    rows = np.array([2.0, 1.0, 0.5])[:, None] * (1 - np.eye(3))
    base = SequenceTagger(template=WORDS, support="all", C=0.3, **FINE)
    for given_cost, loss in [
        (cost, LabelCost(rows)),
        (matrix, LabelCost(matrix)),
        (LabelCost(matrix), LabelCost(matrix)),
    ]:
        tagger = base.set_params(loss=given_cost).fit(X, y, sample_weight=samples, loss_weight=tokens)
        svm = mm.ChainSVM(C=0.3, loss=loss, solver=mm.Exact())
        svm.fit(explicit(tagger, X), y, sample_weight=samples, loss_weight=tokens)
        assert tagger.model_.metadata["primal"] == pytest.approx(svm.solution_.certificate.primal, rel=1e-6)
        problem = problem_of(tagger, X, y, loss=loss, sample_weight=samples, loss_weight=np.concatenate(tokens))
        assert problem.objective(tagger.model_.weights) == pytest.approx(tagger.model_.metadata["primal"], rel=1e-9)


@pytest.mark.parametrize(
    "solver",
    [Exact(), mm.Extragradient(), mm.AveragedPerceptron(), mm.CuttingPlane()],
    ids=lambda solver: type(solver).__name__,
)
def test_other_solvers(solver):
    X, y = markov(8, seed=5, longest=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tagger = SequenceTagger(template=WORDS, solver=solver, C=0.2, max_iter=400).fit(X, y, dev=(X, y))
    metadata = tagger.model_.metadata
    assert metadata["solver"] == type(solver).__name__
    assert metadata["primal"] >= metadata["dual"] - 1e-9
    assert problem_of(tagger, X, y).objective(tagger.model_.weights) == pytest.approx(metadata["primal"], rel=1e-9)


# Dev data.


def test_early_stopping_keeps_the_best_weights_and_tells_their_gap():
    X, y = markov(30, noise=0.5, seed=6)
    others, gold = markov(30, noise=0.5, seed=7)
    seen = []
    tagger = SequenceTagger(template=WORDS, C=3.0, tol=1e-9, patience=3, callbacks=[lambda r: seen.append(r) and None])
    tagger.fit(X, y, dev=(others, gold))
    scores = [score for _, score in tagger.dev_scores_]
    best = int(np.argmax(scores))
    assert len(scores) == best + 1 + 3  # patience ran out
    np.testing.assert_array_equal(tagger.model_.weights, seen[best].weights)
    assert tagger.score(others, gold) == pytest.approx(scores[best])
    metadata = tagger.model_.metadata
    assert (metadata["dev_iteration"], metadata["dev_score"]) == tagger.dev_scores_[best]
    primal = problem_of(tagger, X, y).objective(tagger.model_.weights)
    assert metadata["primal"] == pytest.approx(primal, rel=1e-9)
    assert metadata["relative_gap"] == pytest.approx((primal - metadata["dual"]) / primal, rel=1e-9)
    assert metadata["run_relative_gap"] == tagger.solution_.certificate.relative_gap < metadata["relative_gap"]
    assert "run_relative_gap" not in SequenceTagger(template=WORDS).fit(X, y).model_.metadata
    fine = solve(problem_of(tagger, X, y), BlockFrankWolfe(), stop=Stop(tol=1e-5), random_state=0)
    assert metadata["dual"] <= fine.certificate.primal * (1 + 1e-9)


@pytest.mark.filterwarnings("ignore:C=0.3 has the best score and is the largest")
def test_the_best_c_is_taken():
    X, y = markov(30, noise=0.5, seed=8)
    others, gold = markov(30, noise=0.5, seed=9)
    grid = [1e-4, 1e-2, 0.3]
    common = {"template": WORDS, "patience": None, "tol": 1e-3}
    tagger = SequenceTagger(C=grid, **common).fit(X, y, dev=(others, gold))
    single = [SequenceTagger(C=C, **common).fit(X, y, dev=(others, gold)) for C in grid]
    best = [max(score for _, score in one.dev_scores_) for one in single]
    chosen = grid.index(tagger.model_.metadata["C"])
    assert max(score for _, score in tagger.dev_scores_) == max(best)
    assert best[chosen] > best[0]
    assert tagger.score(others, gold) == pytest.approx(tagger.model_.metadata["dev_score"])
    primal = problem_of(tagger, X, y).objective(tagger.model_.weights)
    assert tagger.model_.metadata["primal"] == pytest.approx(primal, rel=1e-9)
    assert tagger.solution_.certificate.dual == tagger.model_.metadata["dual"]
    with pytest.raises(ValueError, match="several values of C are compared on dev data"):
        SequenceTagger(C=grid, folds=0, **common).fit(X, y)


def test_each_C_is_trained_as_if_it_were_alone():
    X, y = markov(40, seed=3)
    dev, common = markov(20, seed=4), {"template": WORDS, "patience": None}
    grid = (0.02, 1.0, 0.1)
    alone = {C: SequenceTagger(C=C, **common).fit(X, y, dev=dev) for C in grid}
    scores = {C: one.model_.metadata["dev_score"] for C, one in alone.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the best may be at the edge
        for order in itertools.permutations(grid):
            tagger = SequenceTagger(C=order, **common).fit(X, y, dev=dev)
            best = tagger.model_.metadata["C"]
            assert scores[best] == max(scores.values())
            assert tagger.model_.weights.tobytes() == alone[best].model_.weights.tobytes()
            assert tagger.choices_ == tuple(({"C": C}, scores[C]) for C in order)
            assert tagger.model_.metadata["tried"] == [[C, scores[C]] for C in order]
    assert alone[grid[0]].choices_ == ()


def test_metrics_of_dev_data():
    X, y = chunked(20)
    others, gold = chunked(20, seed=1)
    for metric, name in [("auto", "f1"), ("f1", "f1"), ("accuracy", "accuracy"), ("sentence_accuracy",) * 2]:
        tagger = SequenceTagger(template=WORDS, metric=metric).fit(X, y, dev=(others, gold))
        assert getattr(tagger.evaluate(others, gold), name) == pytest.approx(tagger.model_.metadata["dev_score"])
    gold[0][0] = "B-NEW"  # an error, whatever is predicted
    tagger = SequenceTagger(template=WORDS, metric="accuracy").fit(X, y, dev=(others, gold))
    assert tagger.model_.metadata["dev_score"] < 1


def test_dev_data_are_checked():
    X, y = markov(6)
    tagger = SequenceTagger(template=WORDS)
    for dev, message in [
        (X, "dev must be a pair"),
        ((X, None), "dev data: y must be a list"),
        ((None, y), "dev data: X must be a list"),
        ((X, y[:-1]), "dev data: 6 sentences and 5 label sequences"),
        ((X, [[*y[0], "a"], *y[1:]]), "dev data: sentence 0: .* labels for .* tokens; give each token one"),
        ((X, [[None] * len(x) for x in X]), "dev data: labels are unknown; leave such sentences out"),
        ((X, (np.array([0]), ["a"])), "dev data: 1 labels for .* tokens"),
        (([["w"]], (np.array([-1]), ["a"])), "dev data: labels are unknown"),
        (([[], []], [[], []]), "dev data: no tokens; give sentences with tokens, or no dev data"),
    ]:
        with pytest.raises(ValueError, match=message):
            tagger.fit(X, y, dev=dev)
        assert not hasattr(tagger, "model_")


@pytest.mark.parametrize("support", ["negative", "observed"])
@pytest.mark.parametrize("order", [1, 2])
def test_same_seed_same_bits_for_all_threads(support, order):
    X, y = markov(20, seed=10)
    others, gold = markov(10, seed=11)
    y[3][0] = None

    def bits(n_jobs, seed=0):
        tagger = SequenceTagger(
            template=WORDS, support=support, order=order, n_jobs=n_jobs, random_state=seed, C=[0.1, 1]
        )
        tagger.fit(X, y, dev=(others, gold))
        metadata = {key: value for key, value in tagger.model_.metadata.items() if key != "seconds"}
        return tagger.model_.weights.tobytes(), metadata, tagger.dev_scores_, tagger.model_.calibration

    wanted = bits(1)
    assert bits(2) == wanted
    assert bits(3) == wanted
    assert bits(1, seed=1)[1]["primal"] > 0


# Unknown labels.


def twin_of_runs(lengths, codes):
    """Runs of known labels: lists of (sentence, tokens)."""
    found, first = [], 0
    for i, length in enumerate(lengths):
        run = []
        for t in range(first, first + length):
            if codes[t] >= 0:
                run.append(t)
            elif run:
                found.append((i, run))
                run = []
        if run:
            found.append((i, run))
        first += length
    return found


@settings(deadline=None, derandomize=True, max_examples=80)
@given(data=st.data())
def test_runs(data):
    lengths = data.draw(st.lists(st.integers(0, 5), max_size=5))
    n = sum(lengths)
    codes = np.array(data.draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n)), dtype=np.int32)
    edges = data.draw(st.booleans())
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((length, 3)) for length in lengths]
    if edges:
        X = [mm.FeatureSequence(x, rng.standard_normal((max(len(x) - 1, 0), 2))) for x in X]
    extractor = MatrixExtractor() if X else MatrixExtractor(3, 2 if edges else 0)
    weight, tokens = rng.random(len(lengths)), rng.random(n)
    whole = LabeledRows(extractor.rows(X), codes, weight, tokens)
    runs, wanted = whole.runs(), twin_of_runs(lengths, codes)
    assert runs.lengths.tolist() == [len(run) for _, run in wanted]
    flat = [t for _, run in wanted for t in run]
    np.testing.assert_array_equal(runs.codes, codes[flat])
    np.testing.assert_array_equal(runs.sentence_weight, weight[[i for i, _ in wanted]])
    np.testing.assert_array_equal(runs.loss_weight, tokens[flat])
    np.testing.assert_array_equal(runs.rows.tokens.matrix.toarray(), whole.rows.tokens.matrix.toarray()[flat])
    if edges and X:
        starts = whole.rows.offsets
        later = [starts[i] for i in range(len(lengths)) if lengths[i]]
        number = np.cumsum(~np.isin(np.arange(n), later)) - 1  # of the edge before a token
        chosen = [number[t] for _, run in wanted for t in run[1:]]
        np.testing.assert_array_equal(runs.rows.edges.matrix.toarray(), whole.rows.edges.matrix.toarray()[chosen])
        assert runs.rows.edges.lengths.tolist() == [len(run) - 1 for _, run in wanted]


def test_all_labels_known_is_as_without_the_feature():
    X, y = markov(12, seed=12)
    one = SequenceTagger(template=WORDS).fit(X, y)
    two = SequenceTagger(template=WORDS, unknown="?").fit(X, y)
    assert one.model_.weights.tobytes() == two.model_.weights.tobytes()


def test_unknown_labels_by_any_name():
    X, y = markov(12, seed=12)
    hidden = [[label if t % 3 else None for t, label in enumerate(labels)] for labels in y]
    asked = [["?" if label is None else label for label in labels] for labels in hidden]
    one = SequenceTagger(template=WORDS).fit(X, hidden)
    two = SequenceTagger(template=WORDS, unknown="?").fit(X, asked)
    assert one.model_.weights.tobytes() == two.model_.weights.tobytes()
    assert two.classes_ == ["a", "b", "c"]
    names = ["c", "a", "?", "b"]
    flat = np.array([names.index(label) for labels in asked for label in labels])
    three = SequenceTagger(template=WORDS, unknown="?").fit(X, (flat, names))
    four = SequenceTagger(template=WORDS).fit(X, (np.where(flat == 2, -1, flat), [*names[:2], "unused", "b"]))
    assert three.model_.weights.tobytes() == one.model_.weights.tobytes()
    assert four.classes_ == ["a", "b", "c", "unused"]
    with pytest.raises(ValueError, match="codes of labels must be places in the list of 4 labels, or -1"):
        SequenceTagger(template=WORDS).fit(X, (flat + 1, names))
    for nothing in ([[None] * len(x) for x in X], (np.full(len(flat), -1), ["a"])):
        with pytest.raises(ValueError, match="no label is known; label at least some tokens"):
            SequenceTagger(template=WORDS).fit(X, nothing)


def test_completion_agrees_with_known_labels():
    X, y = markov(15, seed=13)
    hidden = [[label if t % 2 else None for t, label in enumerate(labels)] for labels in y]
    tagger = SequenceTagger(template=WORDS, C=0.1).fit(X, hidden)
    completed = tagger.predict(X, known=hidden)
    pairs = [pair for one in zip(hidden, completed, strict=True) for pair in zip(*one, strict=True)]
    assert all(label in (None, found) for label, found in pairs)
    # Completions came again, so this one is of the problem whose certificate is reported: wrong labels cost nothing at
    # unknown tokens there.
    metadata = tagger.model_.metadata
    assert metadata["primal"] >= metadata["dual"]
    problem = problem_of(tagger, X, completed, loss_weight=np.array([label is not None for label, _ in pairs]) * 1.0)
    assert problem.objective(tagger.model_.weights) == pytest.approx(metadata["primal"], rel=1e-9)


def test_the_best_round_on_dev_data_is_kept(monkeypatch):
    reported, score = [], DevSentences.__call__
    monkeypatch.setattr(
        DevSentences, "__call__", lambda self, model: reported.append(score(self, model)) or reported[-1]
    )
    for seed in range(8):
        make, labels = (markov, ["a", "b", "c"]) if seed % 2 else (chunked, ["B-X", "I-X", "O"])
        X, y = make(12, seed=30 + seed)
        others, gold = make(30, seed=50 + seed)
        rng = np.random.default_rng(seed)
        hidden = [[None if rng.random() < 0.6 else label for label in some] for some in y]
        reported.clear()
        tagger = SequenceTagger(template=WORDS, C=1.0, classes=labels, metric="accuracy")
        tagger.fit(X, hidden, dev=(others, gold))
        assert tagger.score(others, gold) == pytest.approx(max(reported))


def test_half_of_the_labels_are_nearly_enough():
    X, y = markov(150, seed=14, longest=8)
    others, gold = markov(150, seed=15, longest=8)
    rng = np.random.default_rng(0)
    hidden = [[label if rng.random() < 0.5 else None for label in labels] for labels in y]
    full = SequenceTagger(template=WORDS).fit(X, y).score(others, gold)
    half = SequenceTagger(template=WORDS).fit(X, hidden).score(others, gold)
    runs_X, runs_y = [], []
    for x, labels in zip(X, hidden, strict=True):
        known = np.array([label is not None for label in labels], dtype=int)
        for _, run in twin_of_runs([len(x)], known - 1):
            runs_X.append([x[t] for t in run])
            runs_y.append([labels[t] for t in run])
    alone = SequenceTagger(template=WORDS).fit(runs_X, runs_y).score(others, gold)
    assert half > full - 0.03
    assert half > alone - 0.01


def test_unknown_labels_and_constraints():
    """A run that begins inside of a chunk is a piece of a sentence, no error."""
    X, y = chunked(20, seed=3)
    hidden = [[None if t % 2 == 0 else label for t, label in enumerate(labels)] for labels in y]
    assert any(label == "I-X" for labels in hidden for label in labels)
    for constraints in ("bio", "auto"):
        tagger = SequenceTagger(template=WORDS, constraints=constraints, classes=["B-X", "I-X", "O"]).fit(X, hidden)
        assert tagger.model_.weight_layout.constraints is not None
        assert not tagger.model_.weight_layout.constraints.first[1]
        for labels in tagger.predict(X):
            assert all(b != "I-X" or a != "O" for a, b in zip(["O", *labels], labels, strict=False))
    broken = [["I-X", None, "O"], ["O", "B-X", "I-X"], ["O", None, None]]
    words = [["a", "b", "c"]] * 3
    with pytest.raises(ValueError, match="sentence 0, token 0: the label 'I-X' violates the constraints of labels"):
        SequenceTagger(template=WORDS, constraints="bio").fit(words, broken)
    with pytest.warns(UserWarning, match="too many to keep the rules"):
        assert SequenceTagger(template=WORDS).fit(words, broken).model_.weight_layout.constraints is None
    stuck = [["B-X", None, "O"], ["B-X", "E-X", "O"], ["O", None, "E-X"], ["B-X", "B-X", None]]
    with pytest.raises(ValueError, match="sentence 3, token 1: the label 'B-X' after 'B-X' violates the constraints"):
        SequenceTagger(template=WORDS, constraints="iobes").fit([*words, words[0]], stuck)
    stuck[3] = ["S-X", None, "E-X"]
    SequenceTagger(template=WORDS, constraints="iobes").fit([*words, words[0]], stuck)
    with pytest.raises(ValueError, match="sentence 3: no allowed labeling has the known labels"):
        SequenceTagger(template=WORDS, constraints="iobes", forbidden=[("S-X", "B-X")]).fit([*words, words[0]], stuck)


# Further data.


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("template", [WORDS, PAIRS])
def test_a_problem_around_weights(weighted, template, monkeypatch):
    X, y = markov(10, seed=16)
    tagger = SequenceTagger(template=template, C=0.2).fit(X, y)
    rng = np.random.default_rng(1)
    problem = problem_of(tagger, X, y, sample_weight=rng.uniform(0, 2, len(X)) if weighted else None)
    center = rng.standard_normal(problem.n_weights)
    around = problem.around(center)
    for scale in (0.0, 0.1, 1.0, 10.0):
        v = scale * rng.standard_normal(problem.n_weights)
        wanted = (v @ v) / (2 * 0.2) + problem.hinge(center + v)
        assert around.objective(v) == pytest.approx(wanted, rel=1e-10)
        pieces = [around.select(some) for some in ([0, 3, 3], np.arange(4, 10))]
        for piece, some in zip(pieces, ([0, 3, 3], np.arange(4, 10)), strict=True):
            assert piece.hinge(v) == pytest.approx(problem.select(some).hinge(center + v), rel=1e-9, abs=1e-9)
    with pytest.raises(ValueError, match="only a problem with the margin rescaled"):
        replace(problem, rescaling="none").around(center)


@pytest.mark.parametrize("template", [WORDS, PAIRS], ids=["words", "pairs"])
@pytest.mark.parametrize("support", ["all", "observed", "negative"])
def test_partial_fit_minimizes_what_it_says(support, template):
    X, y = markov(10, seed=17, longest=4)
    more, gold = markov(6, seed=18, longest=4)
    more[0] = ["new" + word for word in more[0]]
    tagger = SequenceTagger(template=template, support=support, C=0.2, **FINE).partial_fit(X, y)
    before = tagger.model_
    tagger.partial_fit(more, gold)
    after = tagger.model_
    assert "U00:" + more[0][0] in tagger.attributes_
    old, new = before.weight_layout, after.weight_layout
    assert old.n_weights < new.n_weights

    def named(model):
        """Weights by what they are about."""
        tokens, pairs, rest = model.weight_layout.split(model.weights)
        found = {("pair", *at): pairs[at] for at in np.ndindex(*pairs.shape)}
        of_tokens = model.weight_layout.support, model.extractor.name, tokens
        of_edges = model.weight_layout.edge_support, model.extractor.edge_name, rest
        for kind, (support, name, weights) in (("token", of_tokens), ("edge", of_edges)):
            if support is not None:
                for f, c, w in zip(support.features, support.columns, weights, strict=True):
                    found[kind, name(f), c] = w
        return found

    # Weights there were are found again, new ones begin at zero.
    known = named(before)
    center = replace(after, weights=np.zeros(new.n_weights))
    center.weights[:] = [known.get(what, 0.0) for what in _in_order(after)]
    assert len(named(center)) == new.n_weights
    assert named(center).items() >= known.items()
    here = problem_of(tagger, more, gold).around(center.weights)
    assert here.objective(after.weights - center.weights) == pytest.approx(after.metadata["primal"], rel=1e-8)
    exact = solve(replace(here, region=L2(C=0.2)), Exact()).certificate
    assert exact.primal == pytest.approx(after.metadata["primal"], rel=1e-5, abs=1e-7)


def _in_order(model):
    """What each weight is about, in the order of the weights."""
    k, support, edges = model.weight_layout.n_labels, model.weight_layout.support, model.weight_layout.edge_support
    found = [("token", model.extractor.name(f), c) for f, c in zip(support.features, support.columns, strict=True)]
    found += [("pair", a, b) for a in range(k) for b in range(k)]
    if edges is not None:
        pairs = zip(edges.features, edges.columns, strict=True)
        found += [("edge", model.extractor.edge_name(f), c) for f, c in pairs]
    return found


def test_partial_fit_chooses_on_dev_data():
    X, y = markov(30, seed=61, noise=0.4)
    more, gold = markov(10, seed=62, noise=0.4)
    others, wanted = markov(40, seed=63, noise=0.4)
    tagger = SequenceTagger(template=WORDS, C=1.0, patience=None, tol=1e-4).fit(X, y)
    tagger.partial_fit(more, gold, dev=(others, wanted))
    assert tagger.score(others, wanted) == pytest.approx(max(score for _, score in tagger.dev_scores_))


def test_negative_support_of_further_sentences_is_that_of_the_old_weights():
    """Sentences that are right by a margin add no negative support."""
    X, y = markov(20, seed=64, noise=0.0)
    tagger = SequenceTagger(template=WORDS, support="observed", C=10.0, tol=1e-3).fit(X, y)
    tagger.model_ = replace(tagger.model_, weights=10 * tagger.model_.weights)
    before = tagger.model_
    tagger.set_params(support="negative").partial_fit(X[:5], y[:5])
    assert tagger.model_.weight_layout.n_weights == before.weight_layout.n_weights
    assert tagger.model_.weights.tobytes() == before.weights.tobytes()
    assert tagger.model_.metadata["primal"] == pytest.approx(0.0, abs=1e-9)


def test_old_weights_stay_where_the_new_sentences_say_nothing():
    X, y = markov(10, seed=19)
    tagger = SequenceTagger(template="U:%x[0,0]\n", tol=1e-4).fit(X, y)
    before = tagger.state_features_
    tagger.partial_fit([["other", "another"]], [["a", "b"]])
    after = tagger.state_features_
    assert set(before) < set(after)
    assert all(after[pair] == pytest.approx(weight, abs=1e-12) for pair, weight in before.items())
    assert ("U:other", "a") in after


def test_partial_fit_again_and_again():
    pieces = [markov(5, seed=20 + i) for i in range(3)]

    def run():
        tagger = SequenceTagger(template=WORDS, constraints=None)
        for i, (X, y) in enumerate(pieces):
            tagger.partial_fit(X, y, classes=["a", "b", "c", "d"] if i == 0 else None)
        return tagger

    one, two = run(), run()
    assert one.model_.weights.tobytes() == two.model_.weights.tobytes()
    assert one.classes is None  # a setting of the user's, left alone
    assert one.classes_ == ["a", "b", "c", "d"]
    assert one.partial_fit([["w00"]], [["d"]]).predict([["w00"]])
    bits = one.model_.weights.tobytes()
    with pytest.raises(
        ValueError,
        match=r"sentence 0: label 'e' was not seen before; give all labels with classes=\[...\] at the first training",
    ):
        one.partial_fit([["w00"]], [["e"]])
    with pytest.raises(ValueError, match="label 'e' was not seen before"):
        one.partial_fit([["w00"]], (np.array([0]), ["e"]))
    assert one.model_.weights.tobytes() == bits


def test_partial_fit_of_other_inputs(tmp_path):
    X, y = markov(8, seed=23)
    more, gold = markov(8, seed=24)
    for inputs in (dictionaries, matrices, lambda X: matrices(X, edges=True)):
        tagger = SequenceTagger().fit(inputs(X), y)
        tagger.save(tmp_path / "model")
        tagger.partial_fit(inputs(more), gold)
        loaded = SequenceTagger.load(tmp_path / "model").partial_fit(inputs(more), gold)
        assert loaded.model_.weights.tobytes() == tagger.model_.weights.tobytes()
    with pytest.raises(ValueError, match="example 0: no edge features"):
        tagger.partial_fit(matrices(more), gold)
    plain = SequenceTagger().fit(matrices(X), y)
    for use in (
        lambda: plain.partial_fit(matrices(more, edges=True), gold),
        lambda: plain.predict(matrices(X, edges=True)),
    ):
        with pytest.raises(ValueError, match="example 0: this model was trained without edge features; leave them out"):
            use()
    with pytest.raises(ValueError, match="features have 5 columns, expected 4"):
        plain.partial_fit([np.zeros((1, 5))], [["a"]])


def test_partial_fit_keeps_constraints():
    X, y = chunked(12)
    tagger = SequenceTagger(template=WORDS).fit(X, y)
    assert tagger.model_.weight_layout.constraints is not None
    said = "sentence 0, token 0: the label 'I-X' violates the constraints of the model; correct the data"
    with pytest.raises(ValueError, match=said):
        tagger.partial_fit([["i0"]], [["I-X"]])
    tagger.partial_fit([["b0", "i0", "i0"]], [["B-X", None, "I-X"]])
    assert tagger.model_.weight_layout.constraints is not None


ILLEGAL = [("O", "I-X"), (None, "I-X")]


@pytest.mark.parametrize(
    ("first", "then", "message"),
    [
        ({}, {}, None),
        ({}, {"constraints": "bio"}, None),
        ({}, {"constraints": None, "forbidden": ILLEGAL}, None),
        ({}, {"forbidden": ILLEGAL[:1]}, None),
        ({"constraints": "bio"}, {"constraints": "auto"}, None),
        ({"constraints": None}, {"constraints": "auto"}, None),
        ({"constraints": None}, {"constraints": TransitionConstraints.anything(3)}, None),
        ({"order": 2}, {}, None),
        ({}, {"order": 2}, "order=2, and the model was trained with order=1; keep that order"),
        ({"order": 2}, {"order": 1}, "order=1, and the model was trained with order=2; keep that order"),
        ({}, {"constraints": None}, "differ from those of the model"),
        ({"constraints": None}, {"constraints": "bio"}, "differ from those of the model"),
        ({}, {"forbidden": [("O", "O")]}, "differ from those of the model"),
        ({}, {"constraints": TransitionConstraints.anything(4)}, "constraints are for 4 labels, there are 3"),
    ],
    ids=str,
)
def test_partial_fit_with_other_settings(first, then, message, tmp_path):
    X, y = chunked(12)
    X, y = [*X, ["o0", "b0", "i0"]], [*y, ["O", "B-X", "I-X"]]
    tagger = SequenceTagger(template=WORDS, **first).fit(X, y)
    tagger.save(tmp_path / "model")
    for one in (tagger.set_params(**then), SequenceTagger.load(tmp_path / "model", **then)):
        if message is None:
            one.partial_fit(X[:2], y[:2])
            continue
        with pytest.raises(ValueError, match=message):
            one.partial_fit(X[:2], y[:2])


# Anything.


@settings(deadline=None, derandomize=True, max_examples=60)
@given(data=st.data())
@pytest.mark.filterwarnings("ignore:all weights of the model are zero")
def test_random_corpora_and_settings(data):
    """No crash, a certificate that is true, allowed predictions."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**20)))
    kind = data.draw(st.sampled_from(["words", "pairs", "dictionaries", "matrices", "edges"]))
    X, y = (chunked if data.draw(st.booleans()) else markov)(data.draw(st.integers(1, 7)), seed=int(rng.integers(99)))
    if data.draw(st.booleans()):
        X, y = [*X, []], [*y, []]
    settings = {
        "support": data.draw(st.sampled_from(["negative", "observed", "all"])),
        "C": data.draw(st.sampled_from([1e-4, 0.1, 10.0])),
        "tol": 1e-2,
        "min_count": data.draw(st.integers(1, 3)),
        "constraints": data.draw(st.sampled_from(["auto", None])),
        "order": data.draw(st.sampled_from([1, 2])) if kind not in ("pairs", "edges") else 1,
    }
    if kind in ("words", "pairs"):
        settings["template"] = WORDS if kind == "words" else PAIRS
    made = {"dictionaries": dictionaries, "matrices": matrices, "edges": lambda X: matrices(X, edges=True)}
    X = made.get(kind, list)(X)
    weights = rng.uniform(0.1, 2, len(X)) if data.draw(st.booleans()) else None
    dev = (X, y) if data.draw(st.booleans()) and settings["C"] < 1 else None
    tagger = SequenceTagger(**settings).fit(X, y, dev=dev, sample_weight=weights)
    metadata = tagger.model_.metadata
    primal = problem_of(tagger, X, y, sample_weight=weights).objective(tagger.model_.weights)
    assert metadata["primal"] == pytest.approx(primal, rel=1e-8, abs=1e-9)
    assert metadata["primal"] >= metadata["dual"] - 1e-9 * (1 + abs(metadata["primal"]))
    found = tagger.predict(X)
    assert [len(labels) for labels in found] == [len(labels) for labels in y]
    constraints = tagger.model_.weight_layout.constraints
    if constraints is not None:
        codes = np.array([tagger.model_.codes[label] for labels in found for label in labels], dtype=np.int64)
        assert not constraints.broken(codes, [len(labels) for labels in found]).any()
    hidden = [[None if rng.random() < 0.3 else label for label in labels] for labels in y]
    if any(label is not None for labels in hidden for label in labels):
        assert tagger.set_params(classes=tagger.classes_).fit(X, hidden, dev=dev).predict(X)

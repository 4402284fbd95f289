"""TaggingEncoder as the core uses it: fitting, encoding and decoding, its state, and scores of its models."""

from __future__ import annotations

import numpy as np
import pytest
from corpora import KINDS, WORDS, markov

import maxmargin as mm
from maxmargin.tasks.tagging import SequenceTagger, TaggingEncoder
from maxmargin.training import Settings, train

kinds = pytest.mark.parametrize("kind", sorted(KINDS))


@kinds
def test_outputs_there_and_back(kind):
    X, y, settings = KINDS[kind]
    encoder = TaggingEncoder(support="observed", **settings)
    learned, batch, gold = encoder.fit(X, y)
    assert learned.decode(batch, batch.structure.decode(gold.dense())) == y
    again = learned.transform(X)
    np.testing.assert_array_equal(learned.encode(again, y).dense(), gold.dense())
    weights = np.random.default_rng(0).standard_normal(learned.n_weights)
    np.testing.assert_array_equal(again.features.scores(weights), batch.features.scores(weights))
    restored = TaggingEncoder.from_state(learned.state())
    np.testing.assert_array_equal(restored.transform(X).features.scores(weights), batch.features.scores(weights))
    assert restored.describe() == learned.describe()
    assert encoder.learn(encoder.parse(X), y).n_weights == learned.n_weights
    assert all(learned.agreement(labels, labels) == (len(labels), len(labels)) for labels in y)


@kinds
@pytest.mark.filterwarnings("ignore:all weights of the model are zero")
def test_the_core_trains_it_as_the_estimator_does(kind):
    X, y, settings = KINDS[kind]
    tagger = SequenceTagger(support="observed", **settings)
    tagger.fit(X, y)
    how = Settings(C=tagger.model_.metadata["C"], tol=1e-2, solver=mm.BlockFrankWolfe(), random_state=0)
    model = train(TaggingEncoder(support="observed", **settings), X, y, how)
    assert type(model) is type(tagger.model_)
    np.testing.assert_array_equal(model.weights, tagger.model_.weights)


def test_unknown_labels_are_cut_out():
    X, y = [["w", "v", "w", "u"], ["v"]], [["a", None, "b", "?"], [None]]
    given = TaggingEncoder(template=WORDS, unknown="?", support="observed")
    learned, data = given.learned(X, y)
    encoder, batch, gold = learned.encoded(data.runs(), pieces=True)
    assert encoder.pieces
    assert encoder.decode(batch, batch.structure.decode(gold.dense())) == [["a"], ["b"]]
    assert not encoder.to_model(np.zeros(encoder.n_weights))[0].pieces
    with pytest.raises(ValueError, match="some labels are unknown: use train_tagger"):
        train(given, X, y)
    with pytest.raises(ValueError, match=r'support="negative" is found by training: use train_tagger'):
        train(TaggingEncoder(template=WORDS), X, [["a", "b", "a", "b"], ["a"]])


def test_scores_of_models():
    X, y = markov(20, noise=0.5)
    model = SequenceTagger(template=WORDS).fit(X, y).model_
    found, best = model.predict(X), model.k_best(X, 1)
    np.testing.assert_array_equal(model.decision_function(X), [ranks[0][1] for ranks in best])
    right = np.array([sum(a == b for a, b in zip(*both, strict=True)) for both in zip(found, y, strict=True)])
    sizes, weight = np.array([len(labels) for labels in y]), np.arange(20.0)
    assert model.score(X, y) == right.sum() / sizes.sum()
    assert model.score(X, y, weight) == pytest.approx(weight @ right / (weight @ sizes))
    whole = model.scorer(X, y, weight, metric="sentence_accuracy")(model)
    assert whole == pytest.approx(weight @ (right == sizes) / weight.sum())
    both = model.scorer(X, y, metric=lambda gold, predicted: float(gold == y and predicted == found))
    assert both(model) == 1.0
    assert model.score(X, [["new"] * len(labels) for labels in y]) == 0.0
    with pytest.raises(ValueError, match="metric must be one of"):
        model.scorer(X, y, metric="bleu")

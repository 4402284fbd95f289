"""Predictions over datasets, iterators, and batches of columns."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from commands import runner

import maxmargin as mm
from maxmargin.cli import app
from maxmargin.tasks import tagging


@pytest.fixture(scope="module")
def chains(tmp_path_factory):
    """A dataset of several shards, what it was built from, and a model that was trained on it."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(int(rng.integers(2, 6)), 4)) for _ in range(40)]
    y = [(x[:, :3] + rng.normal(size=(len(x), 3))).argmax(axis=1).tolist() for x in X]
    dataset = mm.ShardedDataset.build(
        tmp_path_factory.mktemp("set"), mm.encoders.ChainEncoder(), (X, y), shard_parts=300
    )
    assert len(dataset.shards) > 3
    return X, y, dataset, mm.ChainSVM(C=0.1).fit(dataset)


def test_a_dataset_is_predicted_and_scored_shard_by_shard(chains, tmp_path, monkeypatch):
    X, y, dataset, estimator = chains
    estimator.save(tmp_path / "model")
    for model in (estimator.model_, mm.load(tmp_path / "model")):
        assert model.predict(dataset) == model.predict(X)
        assert model.score(dataset) == pytest.approx(model.score(X, y), rel=1e-12)
    assert estimator.predict(dataset) == estimator.predict(X)
    assert estimator.score(dataset) == pytest.approx(estimator.score(X, y), rel=1e-12)
    opened, examples = [], mm.ShardedDataset.examples
    monkeypatch.setattr(mm.ShardedDataset, "examples", lambda self, at: opened.append(at) or examples(self, at))
    found = estimator.model_.predict_iter(dataset)
    next(found)
    assert opened == [0]


def test_any_iterable_is_predicted_in_blocks(chains):
    X, _, _, estimator = chains
    for size in (1, 7, 100):
        assert list(estimator.model_.predict_iter(iter(X), size=size)) == estimator.predict(X)


def test_matchings_and_weights(tmp_path):
    rng = np.random.default_rng(1)
    edges = [(i, j) for i in range(3) for j in range(4)]
    same = np.array([[2.0 * (i == j), 0.0] for i, j in edges])
    X = [mm.Bipartite(same + rng.normal(size=(12, 2)), edges, (3, 4)) for _ in range(12)]
    y = [[(i, i) for i in range(3)] for _ in X]
    dataset = mm.ShardedDataset.build(tmp_path, mm.encoders.MatchingEncoder(), (X, y), shard_parts=40)
    model = mm.MatchingSVM(C=0.1).fit(dataset).model_
    assert [one.tolist() for one in model.predict(dataset)] == [one.tolist() for one in model.predict(X)]
    assert model.score(dataset) == pytest.approx(model.score(X, y), rel=1e-12)


def test_a_dataset_of_another_encoder_is_refused(chains):
    X, y, dataset, _ = chains
    other = mm.ChainSVM(C=0.1).fit(X, [[f"label {one}" for one in labels] for labels in y])
    with pytest.raises(ValueError, match="was built with another encoder than this model's"):
        other.predict(dataset)
    with pytest.raises(ValueError, match="has its outputs and weights; leave y and sample_weight out"):
        other.score(dataset, y)
    with pytest.raises(ValueError, match="y is missing"):
        other.score(X)


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    at = tmp_path_factory.mktemp("tagger")
    tagging.load_corpus().select(range(40)).write(at / "train")
    given = ("--columns", "word,pos,label,_", "--label", "pos", "--preset", "pos", "--C", "0.1", "--folds", "0")
    assert runner.invoke(app, ["tag", "train", str(at / "train"), *given, "--out", str(at / "m")]).exit_code == 0
    return at / "m"


SENTENCES = [["The", "dog", "runs"], ["A", "cat"], ["He", "said", "so", "."]]


def test_batches_of_columns(tagger):
    predictor = pickle.loads(pickle.dumps(mm.BatchPredictor(tagger, input="tokens", output="pos")))
    expected = mm.load(tagger).predict(SENTENCES)
    # As Ray Data gives lists of strings: arrays of objects in an array of objects.
    column = np.empty(3, dtype=object)
    column[:] = [np.array(sentence, dtype=object) for sentence in SENTENCES]
    batch = {"id": np.arange(3), "tokens": column}
    found = predictor(batch)
    assert list(found) == ["id", "tokens", "pos"]
    assert list(found["pos"]) == expected
    assert list(batch) == ["id", "tokens"]
    assert list(predictor({"tokens": []})["pos"]) == []
    with pytest.raises(ValueError, match="no column 'tokens'; there are words"):
        predictor({"words": []})
    with pytest.raises(ValueError, match="has no method 'guess'"):
        mm.BatchPredictor(tagger, input="x", method="guess")({"x": SENTENCES})
    with pytest.raises(ValueError, match="a batch must be a dictionary of columns"):
        predictor(SENTENCES)


def test_batches_of_arrow_and_pandas(tagger):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    predictor, expected = mm.BatchPredictor(tagger, input="tokens"), mm.load(tagger).predict(SENTENCES)
    table = predictor(pa.table({"tokens": SENTENCES}))
    assert table.column("predicted").to_pylist() == expected
    assert predictor(table).column_names == ["tokens", "predicted"]
    pd = pytest.importorskip("pandas", reason="needs pandas")
    assert predictor(pd.DataFrame({"tokens": SENTENCES}))["predicted"].tolist() == expected


def test_a_row_of_hugging_face_is_not_a_batch(tagger):
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"tokens": [["the", "dog"], ["it"]]})
    predictor = mm.BatchPredictor(tagger, input="tokens", output="predicted")
    assert len(rows.map(predictor, batched=True)[0]["predicted"]) == 2
    with pytest.raises(ValueError, match=r"this is one row, and a batch has several; give map\(\) batched=True"):
        rows.map(predictor)


def test_several_columns_are_tuples(tmp_path):
    from maxmargin.tasks.alignment import WordAligner, load_corpus

    part = load_corpus().select(range(20))
    pairs = list(zip(part.source, part.target, strict=True))
    model = WordAligner(C=0.1, false_negative=2.0, tol=0.1).fit(pairs, part.references)
    model.save(tmp_path / "aligner")
    predictor = mm.BatchPredictor(tmp_path / "aligner", input=("en", "fr"), output="links", adapt=False)
    found = predictor({"en": part.source, "fr": part.target})["links"]
    assert list(found) == [one.tolist() for one in mm.load(tmp_path / "aligner").predict(pairs, adapt=False)]

"""Taggers that learn from blocks: the same encoder and batches as from all text at once, and training on folders."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import maxmargin as mm
from maxmargin.cli import app
from maxmargin.tasks.tagging import SequenceTagger, TaggedSource, TaggingEncoder, load_corpus

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:all weights of the model are zero"),
]
runner = CliRunner()


def sentences(n: int = 60) -> tuple[list[Any], list[Any], list[Any]]:
    corpus = load_corpus()
    return list(corpus.tokens)[:n], list(corpus.upos)[:n], list(corpus.chunks)[:n]


def same_as_in_memory(encoder: TaggingEncoder, X: list[Any], y: list[Any], folder: Path, size: int = 7) -> None:
    """Compare states, scores and gold outputs."""
    fitted, data = encoder.learned(X, y)
    fitted, batch, gold = fitted.encoded(data)
    dataset = mm.ShardedDataset.build(folder, encoder, (X, y), block_examples=size, shard_parts=4000)
    learned, stored = fitted.state(), dataset.encoder.state()
    assert learned.keys() == stored.keys()
    for name, value in learned.items():
        assert np.array_equal(value, stored[name]) if isinstance(value, np.ndarray) else value == stored[name]
    weights = np.random.default_rng(0).normal(size=fitted.n_weights)
    scores = batch.features.scores(weights)
    values = [one.batch.structure.argmax(one.batch.features.scores(weights)).value for one in dataset]
    assert np.array_equal(np.concatenate(values), batch.structure.argmax(scores).value)
    found = np.concatenate([one.gold.dot(one.batch.features.scores(weights)) for one in dataset])
    assert np.allclose(found, gold.dot(scores))
    assert dataset.n_variables == len(data.codes)


@pytest.mark.parametrize("preset", ["pos", "ner"])
def test_presets_learn_from_blocks(preset: str, tmp_path: Path) -> None:
    """With word classes from other folds, and mentions in neighboring blocks."""
    X, y, _ = sentences()
    same_as_in_memory(TaggingEncoder(preset=preset, support="observed"), X, y, tmp_path / "data")


def test_other_inputs_learn_from_blocks(tmp_path: Path) -> None:
    X, _, chunks = sentences(30)
    items = [[{"w": token, "n": len(token)} for token in sentence] for sentence in X]
    same_as_in_memory(TaggingEncoder(support="observed", min_count=2), items, chunks, tmp_path / "items")
    same_as_in_memory(TaggingEncoder(support="all", order=2, min_count=5), items, chunks, tmp_path / "second")
    rng = np.random.default_rng(0)
    matrices = [rng.normal(size=(len(sentence), 3)) for sentence in X]
    same_as_in_memory(TaggingEncoder(support="observed"), matrices, chunks, tmp_path / "matrices")
    template = "U0:%x[0,0]\nU1:%x[-1,0]\nB0:%x[0,0]\n"
    same_as_in_memory(TaggingEncoder(template=template, support="observed"), X, chunks, tmp_path / "edges")


def test_odd_sentences_are_left_out(tmp_path: Path) -> None:
    X, _, chunks = sentences(40)
    first = next(i for i, own in enumerate(chunks) if own[0] == "O" or own[0].startswith("B"))
    chunks[first] = ["I-NP", *chunks[first][1:]]
    source = (X, chunks)
    with pytest.warns(UserWarning, match="breaks the BIO rules.*1 sentence is left out"):
        dataset = mm.ShardedDataset.build(tmp_path / "data", TaggingEncoder(preset="pos"), source, block_examples=9)
    assert len(dataset) == len(X) - 1
    assert dataset.encoder.weight_layout.constraints is not None
    strict = TaggingEncoder(preset="pos", constraints="bio")
    with pytest.raises(ValueError, match="violates the constraints"):
        mm.ShardedDataset.build(tmp_path / "strict", strict, source)


@pytest.mark.parametrize("support", ["observed", "negative"])
def test_training(support: str, tmp_path: Path) -> None:
    X, y, _ = sentences()
    tagger = SequenceTagger(preset="pos", support=support, C=0.01, folds=0, tol=0.05, max_iter=60)
    dataset = tagger.build_dataset(tmp_path / "data", (X, y), shard_parts=9000)
    assert len(dataset.shards) > 1
    tagger.fit(dataset, dev=(X[:5], y[:5]))
    assert tagger.model_.metadata["tokens"] == sum(map(len, X))
    assert tagger.model_.metadata["preset"] == "pos"
    assert tagger.calibrated_on == "dev data"
    assert tagger.score(X, y) > 0.7
    observed = dataset.encoder.n_weights
    assert len(tagger.coef_) == observed if support == "observed" else len(tagger.coef_) > observed
    tagger.save(tmp_path / "model")
    assert mm.load(tmp_path / "model").predict(X[:3]) == tagger.predict(X[:3])
    with pytest.raises(ValueError, match="was built with TaggingEncoder"):
        SequenceTagger(preset="ner", support=support).fit(dataset)
    with pytest.raises(ValueError, match="a dataset has its own y"):
        tagger.fit(dataset, y)
    with pytest.raises(ValueError, match="give sentences and labels"):
        tagger.partial_fit(dataset, y)


def test_folds_are_those_of_memory(tmp_path: Path) -> None:
    """The same sentences in the same folds: the same scores of C, and the same temperature."""
    X, y, _ = sentences(45)
    given = {"preset": "pos", "support": "observed", "C": [0.01, 0.1], "tol": 0.05}
    here = SequenceTagger(**given).fit(X, y)
    there = SequenceTagger(**given)
    there.fit(there.build_dataset(tmp_path / "data", (X, y), shard_parts=9000))
    assert there.choices_ == here.choices_
    assert there.model_.metadata["C"] == here.model_.metadata["C"]
    assert there.model_.temperature == here.model_.temperature
    assert there.calibrated_on == "folds"


def test_weights_of_pairs_have_folds_too(tmp_path: Path) -> None:
    X, y, _ = sentences(25)
    given = {"template": "U0:%x[0,0]\nB0:%x[0,0]\n", "C": "auto", "folds": 2, "tol": 0.1}
    there = SequenceTagger(**given)
    there.fit(there.build_dataset(tmp_path / "data", (X, y), shard_parts=9000))
    assert there.choices_ == SequenceTagger(**given).fit(X, y).choices_


def test_negative_support_is_nearly_that_of_memory(tmp_path: Path) -> None:
    """One run over all shards: not the many wrong labels of a run over each of them."""
    X, y, _ = sentences(150)
    given = {"preset": "pos", "C": 0.03, "folds": 0, "tol": 0.3}
    here, there = SequenceTagger(**given).fit(X, y), SequenceTagger(**given)
    dataset = there.build_dataset(tmp_path / "data", (X, y), shard_parts=9000)
    there.fit(dataset)
    observed = dataset.encoder.n_weights
    assert len(there.coef_) - observed == pytest.approx(len(here.coef_) - observed, rel=0.1)


def test_pruning(tmp_path: Path) -> None:
    X, y, _ = sentences()
    given = {"preset": "pos", "support": "observed", "C": 0.03, "folds": 0, "tol": 0.05}
    there, whole = SequenceTagger(prune=0.2, **given), SequenceTagger(**given)
    dataset = there.build_dataset(tmp_path / "data", (X, y), shard_parts=9000)
    there.fit(dataset)
    here = SequenceTagger(prune=0.2, **given).fit(X, y)
    whole.fit(X, y)
    assert len(there.coef_) == pytest.approx(len(here.coef_), rel=0.05)
    assert len(there.coef_) < 0.9 * len(whole.coef_)
    assert len(there.attributes_) == pytest.approx(len(here.attributes_), rel=0.05)
    assert there.score(X, y) == pytest.approx(here.score(X, y), abs=0.02)
    there.save(tmp_path / "model")
    assert mm.load(tmp_path / "model").predict(X[:3]) == there.predict(X[:3])


def test_clusters_of_text_learn_from_blocks(tmp_path: Path) -> None:
    X, y, _ = sentences(30)
    encoder = TaggingEncoder(preset="pos", support="observed", text=X * 4)
    same_as_in_memory(encoder, X, y, tmp_path / "data")


def test_what_cannot_be_streamed(tmp_path: Path) -> None:
    X, y, _ = sentences(9)
    with pytest.raises(ValueError, match="some labels are unknown"):
        mm.ShardedDataset.build(tmp_path / "a", TaggingEncoder(), (X, [[None, *own[1:]] for own in y]))
    with pytest.raises(ValueError, match="standard input can be read once"):
        TaggedSource("-")


def test_commands(tmp_path: Path) -> None:
    X, y, _ = sentences()
    file, folder, model = tmp_path / "train.tsv", tmp_path / "data", tmp_path / "model"
    lines = ["".join(f"{a}\t{b}\n" for a, b in zip(*pair, strict=True)) for pair in zip(X, y, strict=True)]
    file.write_text("\n".join(lines))

    def run(*arguments: object) -> dict[str, Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = runner.invoke(app, ["tag", *map(str, arguments)])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout) if "--json" in arguments else {"text": result.stdout}

    (tmp_path / "text").write_text("\n".join(" ".join(own) for own in X * 3))
    text = ["--text", tmp_path / "text"]
    found = run("shard", file, "--out", folder, "--preset", "pos", "--support", "observed", *text, "--json")
    assert found["sentences"] == len(X)
    assert found["tokens"] == sum(map(len, X))
    trained = run("train", folder, "--out", model, "--C", "0.01", "--max-iter", "10", "--dev", file, "--json")
    assert trained["preset"] == "pos"
    assert trained["tokens"] == found["tokens"]
    by_folds = run("train", folder, "--out", model, "--C", "0.01,0.1", "--folds", "2", "--max-iter", "5", "--json")
    assert by_folds["calibrated_on"] == "folds"
    assert len(by_folds["tried"]) == 2
    tags = run("predict", model, file)["text"]
    assert len(tags.split("\n\n")) == len(X)
    refused = runner.invoke(app, ["tag", "shard", str(file), "--out", str(folder)])
    assert refused.exit_code != 0
    assert "holds a dataset" in refused.output
    for option in (
        ["--preset", "pos"],
        ["--order", "2"],
        ["--repair"],
        ["--support", "all"],
        ["--constraints", "none"],
    ):
        refused = runner.invoke(app, ["tag", "train", str(folder), "--out", str(model), *option])
        assert refused.exit_code != 0
        assert f"{option[0]} is for files" in refused.output

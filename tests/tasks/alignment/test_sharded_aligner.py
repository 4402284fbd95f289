"""Aligners that learn from annotated pairs in a folder: the same bits as from memory, and the commands."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import failed, run

import maxmargin as mm
from maxmargin.tasks.alignment import Reference, ShardedBitext, WordAligner

WORDS = ["the", "house", "is", "big", "a", "book", "was", "small", "we", "see", "green", "trees", "on", "old", "roads"]
HOW: dict[str, Any] = {"C": 0.1, "false_negative": 2.0, "folds": 0, "tol": 1e-2}


def pairs(n: int = 30, seed: int = 0) -> tuple[list[Any], list[Reference]]:
    """Pairs of words and their mirror images, with possible links besides the sure ones."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words = [str(word) for word in rng.choice(WORDS, size=int(rng.integers(3, 7)))]
        X.append((words, [word[::-1] for word in words]))
        every = [(i, i) for i in range(len(words))]
        y.append(Reference.of([one for one in every if rng.random() < 0.8], [*every, (0, 1)]))
    return X, y


@pytest.fixture(scope="module")
def in_memory() -> WordAligner:
    return WordAligner(**HOW).fit(*pairs())


def test_the_same_bits_as_in_memory(in_memory: WordAligner, tmp_path: Path) -> None:
    """Imputed links and the weights to stay close to included; several shards differ by rounding."""
    X, y = pairs()
    dataset = WordAligner(**HOW).build_dataset(tmp_path / "one", (X, y))
    assert len(dataset.shards) == 1
    fitted = WordAligner(**HOW).fit(dataset)
    np.testing.assert_array_equal(fitted.coef_, in_memory.coef_)
    assert [one.tolist() for one in fitted.predict(X)] == [one.tolist() for one in in_memory.predict(X)]
    several = WordAligner(**HOW).build_dataset(tmp_path / "several", (X, y), shard_parts=300, block_examples=7)
    assert len(several.shards) > 2
    fits = [WordAligner(**HOW, executor=mm.execution.Serial(shards=k)).fit(several) for k in (1, 2)]
    for one in fits:
        np.testing.assert_allclose(one.coef_, in_memory.coef_, atol=1e-4)


def test_dev_pairs_choose_and_calibrate(tmp_path: Path) -> None:
    X, y = pairs()
    aligner = WordAligner(C=(0.03, 0.1), false_negative=(1.0, 2.0), tol=1e-2, rounds=1)
    dataset = aligner.build_dataset(tmp_path / "data", (X, y), bitext=[("the old house", "eht dlo esuoh")])
    assert dataset.encoder.models.n_pairs == 31
    aligner.fit(dataset, dev=pairs(6, seed=1))
    assert len(aligner.choices_) > 2
    assert aligner.model_.calibrated
    with pytest.warns(UserWarning, match="there are no held-out pairs to choose settings by"):
        assert not aligner.fit(dataset).model_.calibrated


def test_models_that_have_not_seen_the_pairs_adapt(in_memory: WordAligner, tmp_path: Path) -> None:
    X, y = pairs(12, seed=2)
    how = {**HOW, "models": in_memory.models_}
    dataset = WordAligner(**how).build_dataset(tmp_path / "data", (X, y))
    np.testing.assert_array_equal(WordAligner(**HOW).fit(dataset).coef_, WordAligner(**how).fit(X, y).coef_)


def test_refusals(in_memory: WordAligner, tmp_path: Path) -> None:
    X, y = pairs(6)
    dataset = WordAligner(**HOW).build_dataset(tmp_path / "data", (X, y))
    with pytest.raises(ValueError, match="a dataset has its own y"):
        WordAligner(**HOW).fit(dataset, y)
    with pytest.raises(ValueError, match="a dataset has its own bitext"):
        WordAligner(**HOW).fit(dataset, bitext=X)
    with pytest.raises(ValueError, match="a dataset has its own translation models"):
        WordAligner(**HOW, models=in_memory.models_).fit(dataset)
    with pytest.raises(ValueError, match="was built with AlignmentEncoder"):
        WordAligner(**HOW, fertility=1).fit(dataset)
    with pytest.raises(ValueError, match="y is missing"):
        WordAligner(**HOW).fit(X)
    with pytest.raises(ValueError, match="is for training, and lacks what outputs are made of"):
        list(in_memory.model_.predict_iter(dataset))
    with pytest.raises(ValueError, match="sentence pair 6"):
        WordAligner(**HOW).build_dataset(tmp_path / "bad", (X, [*y[:5], [(99, 0)]]), block_examples=2)


def written(folder: Path, n: int = 30) -> tuple[str, str]:
    X, y = pairs(n)
    text, gold = folder / "pairs.txt", folder / "gold.txt"
    text.write_text("".join(f"{' '.join(source)} ||| {' '.join(target)}\n" for source, target in X))
    gold.write_text("".join(" ".join(f"{i}-{j}" for i, j in one.sure.tolist()) + "\n" for one in y))
    return str(text), str(gold)


def test_commands(tmp_path: Path) -> None:
    text, gold = written(tmp_path)
    folder, model = str(tmp_path / "folder"), str(tmp_path / "model")
    found = json.loads(
        run("align", "shard", "--source", text, "--gold", gold, "--out", folder, "--jobs", "1", "--json")
    )
    assert found["annotated_pairs"] == 30
    how = ("--C", "0.1", "--false-negative", "2", "--tol", "0.01", "--jobs", "1", "--json")
    found = json.loads(run("align", "train", "--shards", folder, "--out", model, *how))
    assert found["annotated_pairs"] == 30
    assert found["status"] == "converged"
    assert mm.load(model).predict([("old trees", "dlo seert")])[0].tolist() == [[0, 0], [1, 1]]
    assert "so --fertility has no use here" in failed(
        "align", "train", "--shards", folder, "--fertility", "3", "--out", model
    )
    assert "give --source and --gold, or --shards" in failed("align", "train", "--source", text, "--out", model)
    assert "holds a dataset" in failed("align", "shard", "--source", text, "--gold", gold, "--out", folder)
    assert "give both, or --bitext-source alone" in failed("align", "shard", "--source", text, "--out", folder)
    assert "there is nothing to write" in failed("align", "shard", "--out", folder)
    assert "--reuse needs --source and --gold" in failed(
        "align", "shard", "--bitext-source", text, "--reuse", model, "--out", folder
    )


def test_update_from_a_folder(in_memory: WordAligner, tmp_path: Path) -> None:
    """The files of a folder teach one after the other."""
    text, _ = written(tmp_path, 50)
    lines = Path(text).read_text().splitlines(keepends=True)
    Path(text).write_text("".join(lines[30:]))
    bitext = ShardedBitext.build(tmp_path / "bitext", text, shard_pairs=10)
    assert len(bitext.shards) == 2
    found = in_memory.model_.updated(bitext).encoder.models
    given = [tuple(side.split() for side in line.split(" ||| ")) for line in lines[30:]]
    expected = in_memory.model_.updated(given[:10]).updated(given[10:]).encoder.models
    assert found.n_pairs == expected.n_pairs
    np.testing.assert_array_equal(found.words.hmm.word, expected.words.hmm.word)
    in_memory.save(tmp_path / "model")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = ("--out", str(tmp_path / "updated"), "--jobs", "1", "--json")
        told = json.loads(
            run("align", "update", str(tmp_path / "model"), "--bitext-source", str(tmp_path / "bitext"), *out)
        )
    assert told["bitext_pairs"] == expected.n_pairs

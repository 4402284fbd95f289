"""Rerankers that learn from lists in a folder: the same bits as from memory, and the commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import failed, run

import maxmargin as mm
from maxmargin.execution import Serial
from maxmargin.tasks.reranking import Reranker
from maxmargin.tasks.reranking.io.blocks import NBestBlocks
from maxmargin.tasks.reranking.io.files import read_nbest


def lists(n: int = 30, seed: int = 0) -> tuple[list[Any], list[str]]:
    rng = np.random.default_rng(seed)
    X = [
        [
            {
                "text": " ".join(rng.choice(list("abcde"), 4)),
                "lm": float(value),
                "tm": float(rng.normal()),
                **({"s_x": 1.0} if rng.random() < 0.4 else {}),
            }
            for value in rng.normal(size=int(rng.integers(2, 6)))
        ]
        for _ in range(n)
    ]
    return X, [x[int(np.argmax([one["lm"] for one in x]))]["text"] for x in X]


@pytest.mark.parametrize(
    "how",
    [
        {"C": 1.0, "ngrams": 2, "length": True, "metric": "chrf"},
        {"method": "lp7", "C": 10.0},
        {"method": "lp8", "C": 10.0, "negative": ("tm",)},
    ],
    ids=["max-margin", "lp7", "lp8"],
)
def test_the_same_bits_as_in_memory(how: dict[str, Any], tmp_path: Path) -> None:
    X, y = lists()
    in_memory = Reranker(folds=0, **how).fit(X, y)
    dataset = Reranker(**how).build_dataset(tmp_path / "one", (X, y))
    assert len(dataset.shards) == 1
    np.testing.assert_array_equal(Reranker(**how).fit(dataset).coef_, in_memory.coef_)
    several = Reranker(**how).build_dataset(tmp_path / "several", (X, y), shard_parts=30, block_examples=7)
    assert len(several.shards) > 3
    found = Reranker(**how, executor=Serial(shards=2)).fit(several)
    assert found.feature_names_ == in_memory.feature_names_
    np.testing.assert_allclose(found.coef_, in_memory.coef_, atol=1e-3)
    assert found.predict(X) == in_memory.predict(X)


def test_an_executor_in_memory() -> None:
    X, y = lists(12)
    one, two = (Reranker(C=(0.1, 1.0), folds=2, executor=executor).fit(X, y) for executor in (None, Serial(shards=2)))
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-3)
    with pytest.raises(ValueError, match="mert tunes all lists in this process, and takes no executor"):
        Reranker("mert", executor=Serial(shards=2)).fit(X, y)


def test_dev_lists_choose_and_refusals(tmp_path: Path) -> None:
    X, y = lists()
    dataset = Reranker().build_dataset(tmp_path / "data", (X, y))
    found = Reranker(C=(0.1, 1.0)).fit(dataset, dev=lists(9, seed=1))
    assert len(found.report_.tried) == 2
    assert found.report_.held_out[0].metric == "BLEU"
    with pytest.raises(ValueError, match="was built with RerankingEncoder"):
        Reranker(ngrams=1).fit(dataset)
    with pytest.raises(ValueError, match="a dataset has its own y"):
        Reranker().fit(dataset, y)
    with pytest.raises(ValueError, match="y is missing"):
        Reranker().fit(X)
    with pytest.raises(ValueError, match="mert searches over the hypotheses of all lists in memory"):
        Reranker("mert").build_dataset(tmp_path / "mert", (X, y))
    with pytest.raises(ValueError, match="lacks what outputs are made of"):
        found.model_.predict(dataset)


def written(folder: Path, n: int = 40) -> tuple[str, str, str]:
    """Files of lists in the format of Moses, of references, and of another feature."""
    X, y = lists(n)
    lines = [
        f"{i} ||| {one['text']} ||| lm= {one['lm']:.4f} tm= {one['tm']:.4f}{' s_x= 1' if 's_x' in one else ''} ||| 0"
        for i, x in enumerate(X)
        for one in x
    ]
    paths = [folder / name for name in ("nbest", "refs", "more")]
    for path, content in zip(paths, (lines, y, [str(k % 5) for k in range(len(lines))]), strict=True):
        path.write_text("".join(f"{line}\n" for line in content))
    return tuple(map(str, paths))  # type: ignore[return-value]


def test_files_are_read_in_blocks(tmp_path: Path) -> None:
    nbest, refs, more = written(tmp_path)
    whole = read_nbest(nbest, references=refs, features=[more])
    for size in (200, 1000, 1 << 20):
        blocks = list(NBestBlocks(nbest, features=(more,), references=(refs,), size=size))
        assert sum(map(len, blocks)) == len(whole)
        assert [text for one in blocks for text in one.texts] == list(whole.texts)
        assert [gold for one in blocks for gold in one.references or ()] == whole.references
        assert [size for one in blocks for size in one.sizes.tolist()] == whole.sizes.tolist()
        column = [value for one in blocks for value in one.values[:, one.names.index("more")]]
        assert column == whole.values[:, whole.names.index("more")].tolist()
    plain = tmp_path / "plain"
    plain.write_text("a\nb\nc\n\nd\ne\n")
    assert [one.texts for one in NBestBlocks(str(plain), list_size=2, size=4)] == [["a", "b"], ["c", "d", "e"]]
    with pytest.raises(ValueError, match="cannot be read block by block"):
        list(NBestBlocks(str(plain)))
    with pytest.raises(ValueError, match="standard input can be read once"):
        NBestBlocks("-")
    Path(refs).write_text("a\n")
    with pytest.raises(ValueError, match="refs has 1 lines, fewer than belong to"):
        list(NBestBlocks(nbest, references=(refs,)))
    text = Path(nbest).read_text().splitlines()
    Path(nbest).write_text("\n".join([*text[:60], text[60].replace("lm= ", "lm= x"), *text[61:]]))
    with pytest.raises(ValueError, match="nbest, line 61"):
        list(NBestBlocks(nbest, size=500))


def test_commands(tmp_path: Path) -> None:
    nbest, refs, more = written(tmp_path)
    folder, model = str(tmp_path / "folder"), str(tmp_path / "model")
    files = ("--nbest", nbest, "--features", more, "--references", refs)
    made = json.loads(run("rerank", "shard", *files, "--out", folder, "--negative", "tm", "--jobs", "1", "--json"))
    assert made["lists"] == 40
    how = ("--C", "1", "--jobs", "1", "--json")
    run("rerank", "train", "--shards", folder, "--out", model, *how)
    assert mm.load(model).metadata["lists"] == 40
    assert mm.load(model).metadata["status"] == "converged"
    run("rerank", "train", *files, "--negative", "tm", "--folds", "0", "--out", model + "2", *how)
    np.testing.assert_array_equal(mm.load(model).weights, mm.load(model + "2").weights)
    assert mm.load(model).metadata["reading"]["format"] is None
    assert "so --ngrams has no use here" in failed(
        "rerank", "train", "--shards", folder, "--ngrams", "2", "--out", model
    )
    assert "mert searches over the hypotheses" in failed("rerank", "shard", *files, "--method", "mert", "--out", folder)
    gains = ("--nbest", nbest, "--metric", more, "--out", str(tmp_path / "gains"), "--json")
    assert json.loads(run("rerank", "shard", *gains))["weights"] == 3

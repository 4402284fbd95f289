"""Datasets on disk hold what encoders make in memory, and are whole or recognized as not completed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data import charts, pairings, segmented, sentences, spellings

import maxmargin as mm
from maxmargin.datasets import (
    ColumnSource,
    DataBlock,
    DataSource,
    FrozenError,
    IteratorSource,
    SequenceSource,
    ShardedDataset,
    ShardError,
    parquet,
)
from maxmargin.encoders import (
    AssociativeEncoder,
    CandidatesEncoder,
    ChainEncoder,
    CutEncoder,
    DependencyEncoder,
    EditEncoder,
    GrammarEncoder,
    GraphEncoder,
    LatticeEncoder,
    MatchingEncoder,
    PairingEncoder,
    PartsEncoder,
    ProgramEncoder,
    SegmentEncoder,
    TreeEncoder,
)
from maxmargin.encoders.base import Encoder
from maxmargin.structures.candidates import Candidates
from maxmargin.training import Examples


def chains(n: int = 60, seed: int = 0) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(int(rng.integers(1, 7)), 4)) for _ in range(n)]
    return X, [list(rng.choice(["a", "b", "c"][: 2 + (i > n // 2)], size=len(x))) for i, x in enumerate(X)]


def graphs(rng: np.random.Generator, n: int, *, tree: bool = False, cliques: bool = False) -> list[mm.Graph]:
    found = []
    for i in range(n):
        size = int(rng.integers(2, 5))
        edges = [(j, int(rng.integers(j))) for j in range(1, size)]
        if not tree and size > 2:
            edges = [(j, k) for j in range(size) for k in range(j)]
        own = [tuple(range(min(size, 3)))] if cliques and i > n // 2 else None
        found.append(mm.Graph(rng.normal(size=(size, 3)), np.array(edges), rng.random((len(edges), 2)), cliques=own))
    return found


def cases() -> dict[str, tuple[Encoder, list[Any], list[Any]]]:
    rng, n = np.random.default_rng(0), 30
    lists = [rng.normal(size=(int(rng.integers(1, 5)), 3)) for _ in range(n)]
    cuts, trees, networks = graphs(rng, n), graphs(rng, n, tree=True, cliques=True), graphs(rng, n, cliques=True)
    labels = [[str(rng.choice(["x", "y"])) for _ in range(len(g.node_features))] for g in cuts]
    pairs = [rng.normal(size=(4, 2)) for _ in range(n)]
    lattices = [mm.WordLattice(rng.normal(size=(3, 2)), [(0, 1), (1, 2), (0, 2)]) for _ in range(n)]
    full = [rng.normal(size=(2, 3, 2)) for _ in range(n)]
    programs = [mm.Program(one, np.ones((1, 4)), np.ones(1)) for one in pairs]
    return {
        "chain": (ChainEncoder(), *chains(n)),
        "chain-2": (ChainEncoder(order=2), *chains(n)),
        "candidates": (CandidatesEncoder(), lists, [int(rng.integers(len(x))) for x in lists]),
        "cut": (CutEncoder(), cuts, [rng.integers(0, 2, size=len(g.node_features)) for g in cuts]),
        "clique-cut": (CutEncoder(), networks, [rng.integers(0, 2, size=len(g.node_features)) for g in networks]),
        "graph": (GraphEncoder(), cuts, labels),
        "associative": (
            AssociativeEncoder(),
            networks,
            [[str(rng.choice(["x", "y"])) for _ in range(len(g.node_features))] for g in networks],
        ),
        "tree": (
            TreeEncoder(),
            trees,
            [[str(rng.choice(["x", "y"])) for _ in range(len(g.node_features))] for g in trees],
        ),
        "matching": (MatchingEncoder(), full, [[(0, 1), (1, 2)] for _ in range(n)]),
        "pairing": (PairingEncoder(), *pairings(n)),
        "edits": (EditEncoder(), *spellings(n)),
        "segments": (SegmentEncoder(), *segmented(n)),
        "dependency": (DependencyEncoder(), *sentences(n, labels=("a", "b", "c"))),
        "grammar": (GrammarEncoder(), *charts(n, splits=True)),
        "lattice": (LatticeEncoder(), lattices, [[[0, 1], [2]][int(rng.integers(2))] for _ in range(n)]),
        "program": (ProgramEncoder(), programs, [np.eye(4)[int(rng.integers(4))] for _ in range(n)]),
    }


@pytest.mark.parametrize("kind", cases())
def test_same_as_in_memory(kind: str, tmp_path: Path) -> None:
    encoder, X, y = cases()[kind]
    whole = Examples.fit(encoder, X, y)
    dataset = ShardedDataset.build(tmp_path / "data", encoder, (X, y), shard_parts=25, block_examples=7)
    assert len(dataset.shards) > 2
    assert len(dataset) == len(X)
    assert dataset.n_parts == whole.batch.structure.n_parts
    assert dataset.encoder.layout == whole.encoder.layout
    assert dataset.encoder.stored()[0] == whole.encoder.stored()[0]
    weights = np.abs(np.random.default_rng(1).normal(size=dataset.n_weights))
    for shard, entry in zip(dataset, dataset.shards, strict=True):
        own = whole.select(np.arange(entry.first, entry.first + entry.examples))
        scores = own.batch.features.scores(weights)
        assert np.array_equal(shard.batch.features.scores(weights), scores)
        assert np.array_equal(shard.gold.dense(), own.gold.dense())
        assert np.array_equal(shard.batch.structure.argmax(scores).value, own.batch.structure.argmax(scores).value)


def test_weights_and_costs(tmp_path: Path) -> None:
    X, y = chains()
    weight = np.where(np.arange(len(X)) < 40, 0.0, np.arange(len(X)))
    per_token = [np.arange(len(x), dtype=float) for x in X]
    whole = Examples.fit(ChainEncoder(), X, y, weight, per_token)
    source = SequenceSource(X, y, weight, loss_weight=per_token, block_examples=11)
    dataset = ShardedDataset.build(tmp_path / "a", ChainEncoder(), source, shard_parts=200)
    found = list(dataset)
    assert np.array_equal(np.concatenate([one.example_weight for one in found]), whole.example_weight)
    assert np.array_equal(np.concatenate([one.loss_weight for one in found]), whole.loss_weight)
    assert not dataset.has_costs
    costs = [np.random.default_rng(i).random((len(x), 3)) for i, x in enumerate(X)]
    dataset = ShardedDataset.build(tmp_path / "b", ChainEncoder(), SequenceSource(X, y, costs=costs), shard_parts=200)
    assert dataset.has_costs
    assert np.array_equal(
        np.concatenate([one.costs for one in dataset]), Examples.fit(ChainEncoder(), X, y, costs=costs).costs
    )


class Blocks(DataSource):
    """A source of one's own."""

    def __init__(self, X: list[Any], y: list[Any]) -> None:
        self.X, self.y, self.at, self.resets = X, y, 0, 0

    def next(self) -> tuple[Any, Any] | None:
        self.at += 10
        return (self.X[self.at - 10 : self.at], self.y[self.at - 10 : self.at]) if self.at <= len(self.X) else None

    def reset(self) -> None:
        self.at, self.resets = 0, self.resets + 1


def test_sources_give_the_same_dataset(tmp_path: Path) -> None:
    X, y = chains()
    table = {"features": [x.tolist() for x in X], "labels": y, "weight": [1.0] * len(X)}

    class Rows:
        """As Hugging Face datasets iterate."""

        def iter(self, batch_size: int) -> Iterator[dict[str, Any]]:
            for first in range(0, len(X), batch_size):
                yield {name: column[first : first + batch_size] for name, column in table.items()}

    def generated() -> Iterator[tuple[Any, Any]]:
        yield from zip(X, y, strict=True)

    sources = {
        "pair": (X, y),
        "list": list(zip(X, y, strict=True)),
        "function": generated,
        "blocks": lambda: iter([DataBlock(X[:25], y[:25]), DataBlock(X[25:], y[25:])]),
        "own": Blocks(X, y),
        "dictionary": ColumnSource(table, "features", "labels", block_examples=9),
        "hugging face": ColumnSource(Rows(), lambda row: np.array(row["features"]), "labels", block_examples=9),
    }
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pyarrow.table(table), tmp_path / "rows.parquet")
    sources["parquet"] = parquet(tmp_path / "rows.parquet", "features", "labels", block_examples=13)
    sources["arrow"] = ColumnSource(pyarrow.table(table), "features", "labels")
    digests = set()
    for name, source in sources.items():
        dataset = ShardedDataset.build(tmp_path / name, ChainEncoder(), source, shard_parts=200)
        digests.add(tuple(one.digest for one in dataset.shards))
    assert len(digests) == 1
    assert sources["own"].resets >= 2


def test_sources_that_are_none(tmp_path: Path) -> None:
    X, y = chains(4)
    for source, message in (
        (iter(zip(X, y, strict=True)), "function that returns a new iterator"),
        (7, "the source must be"),
        ("file.txt", "the source must be"),
        ((X, y[:2]), "X has 4 examples but y has 2"),
        ([{"x": 1}], "example 0.*ColumnSource"),
        ([(X[0], y[0]), 5], r"example 1: a source must give pairs"),
        (lambda: [], "no examples"),
        (IteratorSource(lambda: [DataBlock(X, y[:2])]), "4 inputs but 2 outputs"),
        (ColumnSource({"a": [1]}, "a", "b"), "no column 'b'"),
    ):
        with pytest.raises(ValueError, match=message):
            ShardedDataset.build(tmp_path / "data", ChainEncoder(), source)
    assert not (tmp_path / "data").exists()


def test_examples_are_counted_from_the_beginning(tmp_path: Path) -> None:
    X, y = chains()
    y[47] = [*y[47][:-1], "new"]
    with pytest.raises(ValueError, match="example 47: label 'new'"):
        ShardedDataset.build(tmp_path / "a", ChainEncoder(classes=("a", "b", "c")), (X, y), block_examples=10)
    y[47] = {}
    with pytest.raises(ValueError, match="example 47: y must be"):
        ShardedDataset.build(tmp_path / "b", ChainEncoder(), (X, y), block_examples=10)


def test_what_cannot_be_streamed_or_stored(tmp_path: Path) -> None:
    X, y = chains()
    kernel = mm.features.Kernel("rbf")
    with pytest.raises(ValueError, match="a kernel compares every row"):
        ShardedDataset.build(tmp_path / "a", ChainEncoder(kernel=kernel), (X, y))
    lists = [np.ones((2, 1)), np.zeros((3, 1))]

    class Own(Candidates):
        pass

    with pytest.raises(FrozenError, match="Own cannot be stored"):
        ShardedDataset.build(tmp_path / "b", PartsEncoder(Own), (lists, [0, 0]))


def test_interrupted_builds_are_resumed(tmp_path: Path) -> None:
    X, y = chains()
    whole = ShardedDataset.build(tmp_path / "whole", ChainEncoder(), (X, y), shard_parts=200, block_examples=10)

    def source(stop: int | None) -> Iterator[tuple[Any, Any]]:
        for i, pair in enumerate(zip(X, y, strict=True)):
            if i == stop and passes.count("pass") > 2:
                raise KeyboardInterrupt
            yield pair

    for stop in (0, 31, 33, 59):
        folder, passes = tmp_path / f"cut{stop}", []

        def restart(stop: int | None = stop, passes: list[str] = passes) -> Iterator[tuple[Any, Any]]:
            passes.append("pass")
            return source(stop)

        with pytest.raises(KeyboardInterrupt):
            ShardedDataset.build(folder, ChainEncoder(), restart, shard_parts=200, block_examples=10)
        with pytest.raises(ShardError, match=r"not completed.*resume=True"):
            ShardedDataset(folder)
        with pytest.raises(ValueError, match=r"not completed.*resume=True"):
            ShardedDataset.build(folder, ChainEncoder(), (X, y), shard_parts=200)
        with open(folder / "building.jsonl", "a") as file:
            file.write('{"shards": [')  # killed in the middle of a line
        (folder / "000099.shard").write_bytes(b"")
        with pytest.raises(ValueError, match="begun with other data or settings"):
            ShardedDataset.build(folder, ChainEncoder(), (X, y), shard_parts=300, resume=True)
        found = ShardedDataset.build(folder, ChainEncoder(), (X, y), shard_parts=200, block_examples=10, resume=True)
        assert [one.digest for one in found.shards] == [one.digest for one in whole.shards]
        assert not (folder / "building.jsonl").exists()


def test_folders(tmp_path: Path) -> None:
    X, y = chains(5)
    with pytest.raises(ShardError, match="holds no dataset"):
        ShardedDataset(tmp_path / "nothing")
    (tmp_path / "file").write_text("x")
    with pytest.raises(ValueError, match="is not a folder"):
        ShardedDataset.build(tmp_path / "file", ChainEncoder(), (X, y))
    with pytest.raises(ValueError, match=r"holds other files \(file\)"):
        ShardedDataset.build(tmp_path, ChainEncoder(), (X, y))
    folder = tmp_path / "data"
    ShardedDataset.build(folder, ChainEncoder(), (X, y))
    with pytest.raises(ValueError, match="holds a dataset"):
        ShardedDataset.build(folder, ChainEncoder(), (X, y))
    assert len(ShardedDataset.build(folder, ChainEncoder(), (X[:3], y[:3]), overwrite=True)) == 3


def test_damaged_datasets(tmp_path: Path) -> None:
    X, y = chains()
    folder = tmp_path / "data"
    dataset = ShardedDataset.build(folder, ChainEncoder(), (X, y), shard_parts=200)
    dataset.verify()
    first, second = (folder / one.file for one in dataset.shards[:2])
    data = second.read_bytes()
    second.write_bytes(data[:-1] + b"\x01")
    with pytest.raises(ShardError, match=r"000001\.shard is damaged"):
        dataset.verify()
    with pytest.raises(ShardError, match=r"000001\.shard is damaged"):
        dataset.examples(1)
    second.write_bytes(first.read_bytes())
    with pytest.raises(ShardError, match=r"000001\.shard is not the file that the dataset's index names"):
        dataset.examples(1)
    second.unlink()
    with pytest.raises(ShardError, match=r"000001\.shard is missing"):
        list(dataset)
    second.write_bytes(data)
    dataset.examples(1)
    index = json.loads((folder / "index.json").read_text())
    for change, message in (
        ({"examples": 5}, "checksum"),
        ({"format": 9}, "update maxmargin"),
        ({"format": None}, "not the index"),
    ):
        (folder / "index.json").write_text(json.dumps({**index, **change}))
        with pytest.raises(ShardError, match=message):
            ShardedDataset(folder)
    (folder / "index.json").write_text(json.dumps(index))
    encoder = (folder / "encoder.model").read_bytes()
    (folder / "encoder.model").write_bytes(encoder[:-1])
    with pytest.raises(ShardError, match=r"encoder\.model cannot be used"):
        _ = ShardedDataset(folder).encoder
    (folder / "encoder.model").unlink()
    with pytest.raises(ShardError, match=r"encoder\.model is missing"):
        _ = ShardedDataset(folder).encoder

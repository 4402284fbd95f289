"""Tables of other libraries as sources: the real Hugging Face ``datasets``, if it is installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.datasets import ColumnSource


@pytest.mark.filterwarnings("ignore")
def test_hugging_face(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory, from Parquet and streamed: the same shards as from lists."""
    # Not "datasets", which would also be the folder of these tests.
    pytest.importorskip("datasets.arrow_dataset", reason="Hugging Face datasets is not installed")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from datasets import Dataset, load_dataset

    rng = np.random.default_rng(0)
    X = [rng.normal(size=(int(rng.integers(1, 5)), 3)) for _ in range(25)]
    y = [["ab"[int(row[0] > 0)] for row in x] for x in X]
    table = Dataset.from_dict({"features": [x.tolist() for x in X], "labels": y, "weight": rng.random(25).tolist()})
    table.to_parquet(str(tmp_path / "rows.parquet"))
    files = {"data_files": str(tmp_path / "rows.parquet"), "cache_dir": str(tmp_path / "cache"), "split": "train"}
    source = mm.datasets.SequenceSource(X, y, sample_weight=table["weight"], block_examples=7)
    expected = mm.ChainSVM().build_dataset(tmp_path / "expected", source, shard_parts=60)
    for name, found in {
        "memory": table,
        "arrow": table.with_format("arrow"),
        "iterable": table.to_iterable_dataset(),
        "parquet": load_dataset("parquet", **files),
        "streamed": load_dataset("parquet", streaming=True, **files),
    }.items():
        source = ColumnSource(found, "features", "labels", sample_weight="weight", block_examples=7)
        dataset = mm.ChainSVM().build_dataset(tmp_path / name, source, shard_parts=60)
        assert [one.digest for one in dataset.shards] == [one.digest for one in expected.shards], name
    with pytest.raises(ValueError, match="of a table make a ColumnSource"):
        mm.ChainSVM().build_dataset(tmp_path / "bare", table)


def test_columns_of_arrays_of_objects(tmp_path: Path) -> None:
    """As Ray Data gives lists of lists in batches of NumPy arrays."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(int(rng.integers(1, 5)), 3)) for _ in range(9)]
    y = [["ab"[int(row[0] > 0)] for row in x] for x in X]
    columns = {"features": np.empty(9, dtype=object), "labels": np.empty(9, dtype=object)}
    for at, (x, own) in enumerate(zip(X, y, strict=True)):
        columns["features"][at] = np.empty(len(x), dtype=object)
        columns["features"][at][:] = list(x)
        columns["labels"][at] = np.array(own, dtype=object)
    dataset = mm.ChainSVM().build_dataset(tmp_path / "data", ColumnSource(columns, "features", "labels"))
    assert dataset.encoder.classes == ("a", "b")
    expected = mm.ChainSVM().build_dataset(tmp_path / "expected", (X, y))
    assert [one.digest for one in dataset.shards] == [one.digest for one in expected.shards]

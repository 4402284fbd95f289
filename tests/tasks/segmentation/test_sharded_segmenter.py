"""Segmenters that learn from graphs in a folder: the same bits as from memory, and the commands."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from commands import failed, run

import maxmargin as mm
from maxmargin.tasks.segmentation import ScanSegmenter, Segmenter
from maxmargin.tasks.segmentation.drawings import drawn_pictures, drawn_scans

QUICK = {"classifier": "linear", "stages": 1, "folds": 2, "tol": 1e-2}


@pytest.mark.parametrize("classes", [2, 3])
def test_the_same_bits_as_in_memory(classes: int, tmp_path: Path) -> None:
    """As long as the sample has all images: cuts of two classes, networks of three in pieces."""
    X, y = drawn_pictures(6, size=(48, 64), classes=classes)
    y[1][:] = -1
    segmenter = Segmenter(n_regions=40, refine=False, **QUICK)
    dataset = segmenter.build_dataset(tmp_path / "all", (X, y), block_examples=2)
    in_memory = segmenter.fit(X, y).coef_
    assert segmenter.fit(dataset, dev=(X[:1], y[:1])).dev_scores_
    np.testing.assert_array_equal(segmenter.fit(dataset).coef_, in_memory)
    sampled = segmenter.build_dataset(tmp_path / "some", (X, y), sample=4, block_examples=3, shard_parts=150)
    assert len(sampled.shards) > 1
    assert segmenter.fit(sampled).score(X, y) > 0.85


def test_scans_and_refusals(tmp_path: Path) -> None:
    scans, points = drawn_scans(3, points=400)
    segmenter = ScanSegmenter(voxel=0.5, **QUICK)
    dataset = segmenter.build_dataset(tmp_path / "scans", (scans, points))
    np.testing.assert_array_equal(segmenter.fit(dataset).coef_, segmenter.fit(scans, points).coef_)
    with pytest.raises(ValueError, match="refine=True learns the cut of pixels from images"):
        Segmenter().fit(dataset)
    with pytest.raises(ValueError, match="was built with ScanEncoder"):
        ScanSegmenter(voxel=0.4, **QUICK).fit(dataset)
    with pytest.raises(ValueError, match="a dataset has its own y"):
        segmenter.fit(dataset, points)
    with pytest.raises(ValueError, match="y is missing"):
        segmenter.fit(scans)
    with pytest.raises(ValueError, match="example 2: labels of shape"):
        segmenter.build_dataset(tmp_path / "bad", (scans, [*points[:2], points[2][:-1]]), block_examples=1)


def test_commands(drawn, tmp_path: Path) -> None:
    images, scans = drawn.folder / "two", drawn.folder / "scans"
    folder, model = str(tmp_path / "folder"), str(tmp_path / "model")
    stages = ("--classifier", "linear", "--stages", "1", "--folds", "2", "--jobs", "1", "--json")
    files = ("--images", str(images / "train" / "images"), "--masks", str(images / "train" / "masks"))
    classes = ("--classes", "ground=0 leaf=255 void=128", "--regions", "40")
    made = json.loads(run("segment", "shard", *files, *classes, *stages, "--sample", "4", "--out", folder))
    assert made["graphs"] == 6
    dev = ("--dev-images", str(images / "test" / "images"), "--dev-masks", str(images / "test" / "masks"))
    found = json.loads(run("segment", "train", "--shards", folder, *dev, "--out", model, "--jobs", "1", "--json"))
    assert found["classes"] == ["ground", "leaf"]
    assert found["dev_score"] > 0.85
    assert mm.load(model).encoder.pixel_cut is None
    assert "so --refine has no use here" in failed("segment", "train", "--shards", folder, "--refine", "--out", model)
    assert "is of images; give dev data of the same kind" in failed(
        "segment", "train", "--shards", folder, "--dev-scans", str(scans / "test"), "--out", model
    )
    given = ("--scans", str(scans / "train"), "--classes", "ground,tree,wall", "--voxel", "0.5", *stages)
    made = json.loads(run("segment", "shard", *given, "--out", folder, "--overwrite"))
    run("segment", "train", "--shards", folder, "--out", model, "--jobs", "1", "--json")
    np.testing.assert_array_equal(mm.load(model).weights, mm.load(drawn.models.scans).weights)

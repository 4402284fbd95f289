"""Scores of files: masks of other sizes and codings, scans with labels."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.tasks.common.files.text import FileError
from maxmargin.tasks.segmentation.io.classes import parse_classes
from maxmargin.tasks.segmentation.io.images import write_image
from maxmargin.tasks.segmentation.io.masks import write_mask
from maxmargin.tasks.segmentation.io.points import Scan
from maxmargin.tasks.segmentation.io.scans import write_scan
from maxmargin.tasks.segmentation.metrics.files import evaluate_masks, evaluate_scans

CODES = parse_classes("ground=0 horse=255").codes()


@pytest.fixture
def folders(tmp_path):
    """JPEG masks, and predictions of half their size of which one pixel is wrong."""
    masks, predicted = tmp_path / "masks", tmp_path / "predicted"
    masks.mkdir()
    predicted.mkdir()
    labels = np.zeros((20, 30), dtype=int)
    labels[4:13, 6:21] = 1
    for name in ("img1", "img2"):
        write_image(masks / f"{name}.jpg", np.kron(labels, np.ones((2, 2), dtype=int)).astype(np.uint8) * 255)
        write_mask(predicted / f"{name}.png", labels, CODES)
    labels[0, 0] = 1
    write_mask(predicted / "img2.png", labels, CODES)
    return predicted, masks


def test_masks(folders):
    predicted, masks = folders
    scores = evaluate_masks(predicted, masks)
    assert scores.names == ("background", "foreground")
    assert scores.images == ("img1", "img2")
    assert (scores.counts[:, 0, 1].tolist(), scores.total) == ([0, 4], 2 * 40 * 60)
    assert evaluate_masks(predicted, masks, parse_classes("ground,horse")).names == ("ground", "horse")
    assert evaluate_masks(predicted, masks, CODES).error == scores.error
    assert [row["image"] for row in scores.per_image()] == ["img2", "img1"]


def test_missing_and_other_masks(folders):
    predicted, masks = folders
    write_mask(predicted / "img2.png", np.zeros((20, 40), dtype=int), CODES)
    with pytest.raises(
        FileError, match=r"img2\.png has 40 x 20 pixels and .*img2\.jpg 60 x 40, which is another aspect"
    ):
        evaluate_masks(predicted, masks)
    (predicted / "img2.png").unlink()
    with pytest.raises(FileError, match=r"mask .*img2\.jpg of .* has no prediction named img2\.\*"):
        evaluate_masks(predicted, masks)


def test_a_class_that_only_predictions_have(tmp_path):
    (tmp_path / "masks").mkdir()
    (tmp_path / "predicted").mkdir()
    codes = parse_classes("a=0 b=1 c=2").codes()
    write_mask(tmp_path / "masks/x.png", np.array([[0, 0, 1, 1]]), codes)
    write_mask(tmp_path / "predicted/x.png", np.array([[0, 2, 1, 1]]), codes)
    scores = evaluate_masks(tmp_path / "predicted", tmp_path / "masks")
    assert scores.names == ("0", "1", "2")
    assert scores.iou.tolist() == [0.5, 1.0, 0.0]


def test_masks_spelled_in_two_ways(folders):
    predicted, masks = folders
    for path in predicted.iterdir():
        write_mask(path, np.eye(20, 30, dtype=int), parse_classes("ground=0 horse=1").codes())
    with pytest.raises(FileError, match=r"have the values 0, 255, and the predictions 0, 1; write both"):
        evaluate_masks(predicted, masks)
    for path in masks.iterdir():
        write_mask(path.with_suffix(".png"), np.eye(40, 60, dtype=int), CODES)
        path.unlink()
    scores = evaluate_masks(predicted, masks, parse_classes("ground=0 horse=1,255"))
    assert scores.names == ("ground", "horse")
    assert scores.confusion[:, 1].sum() == 2 * 4 * 20


def test_scans(tmp_path):
    points = np.arange(12.0).reshape(4, 3)
    write_scan(tmp_path / "gold.txt", Scan(points), np.array([1202, 1300, 1203, 9999]))
    (tmp_path / "out").mkdir()
    write_scan(tmp_path / "out/gold.ply", Scan(points), np.array([1202, 1202, 1202, 1300]))
    classes = parse_classes("ground=1200-1206 plant=1300-1306 void=9999")
    scores = evaluate_scans(tmp_path / "out", tmp_path / "gold.txt", classes)
    assert scores.confusion[:, :2].tolist() == [[2, 0], [1, 0]]
    assert (scores.unit, scores.error) == ("point", pytest.approx(1 / 3))
    write_scan(tmp_path / "out/gold.ply", Scan(points[:3]), np.array([1202, 1202, 1202]))
    with pytest.raises(FileError, match=r"gold\.ply has 3 points and .*gold\.txt 4; give the same points"):
        evaluate_scans(tmp_path / "out", tmp_path / "gold.txt", classes)

"""The command train: what it reports, and data that it cannot learn from."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from commands import failed, run
from PIL import Image

import maxmargin as mm
from maxmargin.tasks.segmentation import parse_classes, read_image, read_mask, write_image, write_mask

QUICK_SCANS = ("--classifier", "linear", "--stages", "1", "--folds", "2", "--jobs", "1")
QUICK = (*QUICK_SCANS, "--regions", "40")
CODES = parse_classes("ground=0 leaf=255", void="128").codes()


@pytest.fixture
def pictures(copied):
    """A folder of images and masks that a test may change."""
    return copied / "two" / "train"


def train(folder, *options):
    files = ("--images", str(folder / "images"), "--masks", str(folder / "masks"), "--out", str(folder / "model"))
    return run("segment", "train", *files, *QUICK, *options)


def refused(folder, *options):
    files = ("--images", str(folder / "images"), "--masks", str(folder / "masks"), "--out", str(folder / "model"))
    message = failed("segment", "train", *files, *QUICK, *options)
    assert not (folder / "model").exists()
    return message


def test_the_report_and_the_file(pictures):
    found = json.loads(train(pictures, "--json"))
    assert found["classes"] == ["background", "foreground"]
    assert (found["examples"], found["stages"], found["folds"], found["classifier"]) == (6, 1, 2, "linear")
    assert found["relative_gap"] <= 1e-3
    model = mm.load(pictures / "model")
    assert model.encoder.codes.values == ((0,), (255,))
    described = json.loads(run("inspect", str(pictures / "model"), "--json"))
    assert described["kind"] == "image segmentation"
    assert described["trained_relative_gap"] == found["relative_gap"]


def test_dev_data_and_several_C(drawn, pictures):
    dev = drawn.folder / "two" / "test"
    options = ("--dev-images", str(dev / "images"), "--dev-masks", str(dev / "masks"), "--C", "0.01,1", "--json")
    assert json.loads(train(pictures, *options))["C"] in (0.01, 1)


def test_images_of_other_sizes_and_kinds(pictures):
    images = pictures / "images"
    large = np.kron(read_image(images / "leaf0.png"), np.ones((2, 2, 1), dtype=np.uint8))
    write_image(images / "leaf0.png", large)  # the same aspect ratio: resized to the mask
    gray = read_image(images / "leaf1.png")[..., 1]
    write_image(images / "leaf1.png", gray)
    color = Image.fromarray(read_image(images / "leaf2.png"))
    color.putalpha(100)
    color.save(images / "leaf2.png")
    Image.fromarray(read_image(images / "leaf3.png")).convert("CMYK").save(images / "leaf3.jpg")
    os.remove(images / "leaf3.png")
    write_image(images / "leaf4.png", np.full((48, 64, 3), 50, dtype=np.uint8))  # one color
    train(pictures)
    assert mm.load(pictures / "model").predict([gray, large])[1].shape == large.shape[:2]


def test_another_aspect_ratio(pictures):
    write_image(pictures / "images" / "leaf3.png", np.zeros((48, 90, 3), dtype=np.uint8))
    message = refused(pictures)
    assert "leaf3.png has 90 x 48 pixels and " in message
    assert "give a mask of the same image" in message


def test_unknown_colors_in_a_mask(pictures):
    mask = np.zeros((48, 64, 3), dtype=np.uint8)
    mask[4:8, 6:9] = (255, 0, 0)
    write_image(pictures / "masks" / "leaf5.png", mask)
    message = refused(pictures, "--classes", "ground=#000 leaf=#fff")
    assert "leaf5.png: unknown color #ff0000 at row 5, column 7 (12 pixels of unknown color)" in message
    assert "void=#ff0000" in message
    assert "color #ff0000 at row 5, column 7, but the classes have numbers" in refused(
        pictures, "--classes", "ground=0 leaf=255"
    )


def test_truncated_and_foreign_files(pictures):
    for name, kind in (("images", "image"), ("masks", "mask")):
        path = pictures / name / "leaf2.png"
        good = path.read_bytes()
        for content in (good[: len(good) // 2], b"not an image", b""):
            path.write_bytes(content)
            assert str(path) in refused(pictures), kind
        path.write_bytes(good)


def test_masks_of_one_class(pictures):
    for path in (pictures / "masks").iterdir():
        write_mask(path, np.zeros((48, 64), dtype=np.int64), CODES)
    assert "the labels have only the class" in refused(pictures)
    # Two classes are named, and no pixel has the second.
    assert "no pixel or point has the class" in refused(pictures, "--classes", "ground=0 leaf=255")


def test_masks_that_are_void(pictures):
    for path in (pictures / "masks").iterdir():
        labels = read_mask(path, CODES)
        labels[:20] = -1
        write_mask(path, labels, CODES)
    train(pictures, "--void", "128")
    os.remove(pictures / "model")
    for path in (pictures / "masks").iterdir():
        write_mask(path, np.full((48, 64), -1), CODES)
    assert "no values besides void ones" in refused(pictures, "--void", "128")


def test_folders_that_do_not_fit(pictures, tmp_path):
    os.remove(pictures / "masks" / "leaf2.png")
    assert "leaf2.png of " in refused(pictures)
    assert "belong together" in failed(
        "segment", "train", "--images", str(pictures / "images"), "--out", str(tmp_path / "model")
    )
    assert "its folder does not exist" in failed(
        "segment", "train", "--images", "x", "--masks", "y", "--out", str(tmp_path / "no" / "model")
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--classes", "a,b,c"), "2 values (0, 255) and 3 classes"),
        (("--classes", "ground=0 leaf=0"), "stands for both"),
        (("--classifier", "forest"), "classifier must be one of"),
        (("--C", "x"), "--C x: give a number"),
        (("--C", "-1"), "C must be"),
        (("--graph", "voxels"), "graph must be"),
        (("--stages", "1000"), "stages must be at most"),
    ],
)
def test_settings_that_make_no_sense(drawn, tmp_path, options, words):
    folder = drawn.folder / "two" / "train"
    files = ("--images", str(folder / "images"), "--masks", str(folder / "masks"), "--out", str(tmp_path / "model"))
    assert words in failed("segment", "train", *files, *options)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["1 2 nan 0", "1 2 3 1", "1 1 1 1"], "coordinate z is nan"),
        (["1 2 3 0", "1 2 3", "1 1 1 1"], "line 2"),
        (["1 2 3 0.5", "1 2 3 1", "1 1 1 1"], "is not a label"),
        (["1 2 3 0", "1 2 x 1"], "'x' in column z is not a number"),
        (["1 2 3 0", "2 2 3 0", "1 1 1 0"], "only the class"),
    ],
)
def test_scans_that_cannot_be_learned_from(tmp_path, lines, words):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    given = ("--scans", str(tmp_path), "--label-column", "4", "--out", str(tmp_path / "model"))
    assert words in failed("segment", "train", *given, *QUICK_SCANS)


def test_three_points_are_enough(tmp_path):
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("0 0 0 1\n1 0 0 1\n0 1 4 2\n")
    given = ("--scans", str(tmp_path / "a.txt"), str(tmp_path / "b.txt"), "--label-column", "4")
    run("segment", "train", *given, *QUICK_SCANS, "--out", str(tmp_path / "model"))
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 4]])
    assert set(mm.load(tmp_path / "model").predict([points])[0]) <= {0, 1}


def test_options_of_the_other_kind_are_errors(tmp_path):
    out = ("--out", str(tmp_path / "model"))
    assert "--regions is for images" in failed("segment", "train", "--scans", "a.txt", "--regions", "40", *out)
    images = ("--images", "a", "--masks", "b")
    assert "--voxel is for scans" in failed("segment", "train", *images, "--voxel", "0.5", *out)


def test_inputs_are_not_written_over(pictures):
    files = ("--images", str(pictures / "images"), "--masks", str(pictures / "masks"))
    for taken in ("images/leaf0.png", "masks/leaf0.png"):
        before = (pictures / taken).read_bytes()
        assert "is also an input" in failed("segment", "train", *files, *QUICK, "--out", str(pictures / taken))
        assert (pictures / taken).read_bytes() == before
    scan = str(pictures / "scan.xyz")
    (pictures / "scan.xyz").write_text("0 0 0 1\n")
    assert "is also an input" in failed("segment", "train", "--scans", scan, *QUICK_SCANS, "--out", scan)

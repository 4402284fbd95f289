"""Pairs of images and masks in folders, and their sizes."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import saved_by_pillow

from benchmarks.record import DATA
from maxmargin.tasks.common.files.text import FileError
from maxmargin.tasks.segmentation.io.classes import parse_classes
from maxmargin.tasks.segmentation.io.folders import (
    LabeledImages,
    fitted_labels,
    list_files,
    natural_key,
    pair_files,
    same_aspect,
)
from maxmargin.tasks.segmentation.io.masks import learn_codes

CODES = parse_classes("a=0 b=1").codes()


@pytest.fixture
def folders(tmp_path):
    """Two folders with three images and masks, and files that are neither."""
    images, masks = tmp_path / "images", tmp_path / "masks"
    for folder in (images, masks):
        folder.mkdir()
        for number in (10, 2, 1):
            pixels = np.full((6, 8), number % 2, dtype=np.uint8)
            end = "png" if folder == masks else "PNG"
            saved_by_pillow(pixels, folder / f"img{number}.{end}", format="png")
        (folder / ".hidden.png").write_bytes(b"")
        (folder / "notes.txt").write_text("x")
        (folder / "folder.png").mkdir()
    return images, masks


def test_pairs_in_natural_order(folders):
    pairs = pair_files(*folders)
    assert [image.name for image, _ in pairs] == ["img1.PNG", "img2.PNG", "img10.PNG"]
    assert [mask.name for _, mask in pairs] == ["img1.png", "img2.png", "img10.png"]
    images, masks = folders
    chosen = pair_files([images / "img10.PNG", images / "img1.PNG"], masks)
    assert [image.name for image, _ in chosen] == ["img10.PNG", "img1.PNG"]
    assert sorted(["b2", "b10", "a", "b1x3", "b1x20", ""], key=natural_key) == ["", "a", "b1x3", "b1x20", "b2", "b10"]


def test_missing_partners(folders):
    images, masks = folders
    (masks / "img2.png").unlink()
    message = rf"image .*img2\.PNG of {images} has no mask named img2\.\* in {masks}; add it"
    with pytest.raises(FileError, match=message):
        pair_files(images, masks)
    (masks / "img1.png").unlink()
    with pytest.raises(FileError, match=r"img1\.PNG \(and 1 more\)"):
        pair_files(images, masks)
    (images / "img1.PNG").unlink()
    (images / "img2.PNG").unlink()
    (masks / "other.png").write_bytes(b"x")
    assert len(pair_files(images, masks)) == 1
    with pytest.raises(FileError, match=r"mask .*other\.png of .* has no prediction named other\.\*"):
        pair_files(images, masks, what=("prediction", "mask"), all_of_second=True)


def test_equal_names_and_empty_folders(folders, tmp_path):
    images, masks = folders
    (images / "img1.jpg").write_bytes(b"x")
    with pytest.raises(
        FileError, match=r"img1\.jpg and .*img1\.PNG|img1\.PNG and .*img1\.jpg have the same name 'img1'"
    ):
        pair_files(images, masks)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match=r"empty: no masks in this folder; give one with \.png"):
        pair_files(masks, tmp_path / "empty")
    with pytest.raises(FileError, match="nothing: no such file or folder"):
        list_files(tmp_path / "nothing")
    with pytest.raises(FileError, match="no images; give a folder"):
        list_files([])


def test_labeled_images_are_read_lazily(folders):
    images, masks = folders
    data = LabeledImages.of(images, masks, CODES)
    assert len(data) == 3
    assert [one.name for one in data] == ["img1", "img2", "img10"]
    assert data[0].mask.tolist() == np.ones((6, 8)).tolist()
    assert data[0].image.shape == (6, 8)
    assert [one.name for one in data[1:]] == ["img2", "img10"]
    (masks / "img2.png").write_bytes(b"x")
    assert data[-1].name == "img10"
    with pytest.raises(FileError, match=r"img2\.png: not an image"):
        data[1]


def test_images_are_resized_to_their_masks(folders):
    images, masks = folders
    saved_by_pillow(np.full((12, 16, 3), 9, dtype=np.uint8), images / "img1.PNG", format="png")
    one = LabeledImages.of(images, masks, CODES)[0]
    assert one.image.shape == (6, 8, 3)
    assert (one.image == 9).all()
    saved_by_pillow(np.zeros((12, 20), dtype=np.uint8), images / "img1.PNG", format="png")
    message = r"img1\.PNG has 20 x 12 pixels and .*img1\.png 8 x 6, which is another aspect ratio"
    with pytest.raises(FileError, match=message):
        LabeledImages.of(images, masks, CODES)[0]


def test_aspects():
    assert same_aspect((346, 400), (187, 216))
    assert same_aspect((100, 100), (333, 330))
    assert not same_aspect((100, 100), (105, 100))
    assert not same_aspect((100, 200), (200, 100))
    assert same_aspect((3, 4), (300, 450))  # 3 x 4.5 rounded
    assert same_aspect((50, 101), (100, 201))


def test_predictions_are_resized_to_masks():
    labels = np.array([[0, 1], [1, 0]])
    assert fitted_labels("p", labels, "m", (4, 4)).tolist() == labels.repeat(2, 0).repeat(2, 1).tolist()
    assert fitted_labels("p", labels, "m", (2, 2)) is labels
    with pytest.raises(FileError, match="p has 2 x 2 pixels and m 40 x 10, which is another aspect ratio"):
        fitted_labels("p", labels, "m", (10, 40))
    with pytest.raises(FileError, match="p has 2 x 2 x 2 pages"):
        fitted_labels("p", np.zeros((2, 2, 2), dtype=int), "m", (3, 4, 4))


@pytest.mark.skipif(not (DATA / "segmentation" / "horses").exists(), reason="the horses are not there")
def test_horses_fit_their_masks():
    folder = DATA / "segmentation/horses/train"
    pairs = pair_files(folder / "rgb", folder / "figure_ground", all_of_second=True)
    assert len(pairs) == 100
    data = LabeledImages(tuple(pairs[:8]), learn_codes([mask for _, mask in pairs[:8]]))
    for one in data:
        assert one.image.shape == (*one.mask.shape, 3)
        assert one.image.dtype == np.uint8
        assert set(np.unique(one.mask)) == {0, 1}

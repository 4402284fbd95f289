"""Masks by value, number and color; classes learned from them; values that have no class."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import saved_by_pillow
from PIL import Image

from benchmarks.record import DATA
from maxmargin.tasks.common.files.text import FileError
from maxmargin.tasks.segmentation.io.classes import parse_classes
from maxmargin.tasks.segmentation.io.images import read_image
from maxmargin.tasks.segmentation.io.masks import class_color, learn_codes, read_mask, write_mask

RNG = np.random.default_rng(1)
BLOBS = np.kron(RNG.integers(0, 2, (6, 8)), np.ones((11, 11), dtype=int)).astype(np.uint8)
THREE = np.kron(RNG.integers(0, 3, (6, 8)), np.ones((8, 8), dtype=int)).astype(np.uint8)
COLORS = np.array([[0, 0, 0], [255, 0, 0], [0, 0, 128]], dtype=np.uint8)


def learned(path, *more, **definition):
    text = definition.pop("classes", None)
    return learn_codes([path, *more], parse_classes(text, **definition))


@pytest.mark.parametrize("values", [(0, 255), (0, 1), (10, 20)])
def test_two_gray_values(tmp_path, values):
    path = saved_by_pillow(np.array(values, dtype=np.uint8)[BLOBS], tmp_path / "m.png")
    codes = learned(path)
    assert codes.names == ("background", "foreground")
    assert codes.written == values
    assert not codes.rounded
    np.testing.assert_array_equal(read_mask(path, codes), BLOBS)


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_two_values_in_a_jpeg(tmp_path, mode):
    path = saved_by_pillow(Image.fromarray(BLOBS * np.uint8(255)).convert(mode), tmp_path / "m.jpg", quality=60)
    stored = read_image(path)
    assert len(np.unique(stored)) > 2
    for codes in (learned(path), learned(path, classes="ground,horse"), learned(path, classes="ground=0 horse=255")):
        found = read_mask(path, codes)
        np.testing.assert_array_equal(found, (stored if mode == "L" else stored[..., 1]) > 127)
        assert (found == BLOBS).mean() > 0.99
    void = parse_classes("ground=0 horse=255 void=128").codes()
    assert (read_mask(path, void) == BLOBS).mean() > 0.99


def test_noise_of_jpeg_in_a_png(tmp_path):
    noisy = Image.fromarray(BLOBS * np.uint8(255))
    noisy.save(tmp_path / "m.jpg", quality=10)
    with Image.open(tmp_path / "m.jpg") as image:
        path = saved_by_pillow(np.array(image), tmp_path / "m.png")
    if len(np.unique(read_image(path))) > 64:
        codes = learned(path)
        assert (codes.names, codes.rounded) == (("background", "foreground"), True)
        np.testing.assert_array_equal(read_mask(path, codes), read_image(path) > 127)
        ones = saved_by_pillow(BLOBS, tmp_path / "ones.png")
        with pytest.raises(FileError, match=r"ones\.png: values 0 and 1, where"):
            read_mask(ones, codes)


def test_index_masks_and_void(tmp_path):
    path = saved_by_pillow(np.array([0, 1, 255], dtype=np.uint8)[THREE], tmp_path / "m.png")
    codes = learned(path)
    assert codes.names == ("0", "1", "255")
    np.testing.assert_array_equal(read_mask(path, codes), THREE)
    codes = learned(path, classes="sky,tree", void="255")
    assert codes.names == ("sky", "tree")
    np.testing.assert_array_equal(read_mask(path, codes), np.array([0, 1, -1])[THREE])
    assert learned(path, void="255").names == ("background", "foreground")
    with pytest.raises(FileError, match=r"m\.png: 3 values \(0, 1, 255\) and 2 classes"):
        learned(path, classes="sky,tree")


def test_color_masks(tmp_path):
    path = saved_by_pillow(COLORS[THREE], tmp_path / "m.png")
    codes = learned(path)
    assert codes.written == ((0, 0, 0), (0, 0, 128), (255, 0, 0))
    np.testing.assert_array_equal(read_mask(path, codes), np.array([0, 2, 1])[THREE])
    codes = parse_classes("ground=#000000 horse=#f00", void="#000080").codes()
    np.testing.assert_array_equal(read_mask(path, codes), np.array([0, 1, -1])[THREE])
    codes = learned(path, classes="a,b", void="0")
    np.testing.assert_array_equal(read_mask(path, codes), np.array([-1, 1, 0])[THREE])


def test_color_masks_in_jpeg_are_refused(tmp_path):
    path = saved_by_pillow(COLORS[THREE], tmp_path / "m.jpg")
    with pytest.raises(FileError, match=r"m\.jpg: a JPEG mask in color; .* save masks by color as PNG"):
        learned(path)
    with pytest.raises(FileError, match=r"m\.jpg: unknown color #.*JPEG changes the values"):
        read_mask(path, parse_classes("a=#000000 b=#ff0000 c=#000080").codes())
    gray = saved_by_pillow(THREE * np.uint8(100), tmp_path / "g.jpg")
    with pytest.raises(FileError, match=r"g\.jpg: a JPEG mask that is not black and white .* PNG"):
        learned(gray)


def test_palettes(tmp_path):
    def indexed(name, palette):
        image = Image.fromarray(THREE)
        image.putpalette([channel for color in palette for channel in color])
        return saved_by_pillow(image, tmp_path / name)

    first = indexed("a.png", COLORS.tolist())
    codes = learned(first, indexed("b.png", COLORS.tolist()))
    assert codes.written == (0, 1, 2)
    np.testing.assert_array_equal(read_mask(first, codes), THREE)
    # With other palettes the numbers mean nothing, but the colors do.
    second = indexed("c.png", COLORS[[2, 0, 1]].tolist())
    codes = learned(first, second)
    assert codes.by_color
    order = np.array([0, 2, 1])
    np.testing.assert_array_equal(read_mask(first, codes), order[THREE])
    np.testing.assert_array_equal(read_mask(second, codes), order[np.array([2, 0, 1])[THREE]])


def test_unknown_values_say_where(tmp_path):
    mask = THREE.copy()
    mask[:] = 0
    mask[3, 5] = 7
    mask[4, :2] = 9
    path = saved_by_pillow(mask, tmp_path / "m.png")
    with pytest.raises(FileError, match=r"m\.png: unknown value 7 at row 4, column 6 \(3 pixels .* b=7, or void=7"):
        read_mask(path, parse_classes("a=0 b=1").codes())
    path = saved_by_pillow(COLORS[THREE], tmp_path / "c.png")
    with pytest.raises(FileError, match=r"c\.png: unknown color #\w{6} at row 1, .*known are a=#000001"):
        read_mask(path, parse_classes("a=#000001").codes())
    with pytest.raises(FileError, match=r"c\.png: color #\w{6} at row .* classes have numbers; give colors"):
        read_mask(path, parse_classes("a=0 b=1").codes())


def test_photographs_are_no_masks(tmp_path):
    noise = RNG.integers(0, 256, (40, 40), dtype=np.uint8)
    with pytest.raises(FileError, match=r"n\.png: 256 different values, from 0 to 255; is this a mask"):
        learned(saved_by_pillow(noise, tmp_path / "n.png"))
    noise = RNG.integers(0, 256, (40, 40, 3), dtype=np.uint8)
    with pytest.raises(FileError, match=r"n\.png: \d+ different colors; is this a mask"):
        learned(saved_by_pillow(noise, tmp_path / "n.png"))
    # Said explicitly, many values are fine: cells are numbered one by one.
    path = saved_by_pillow(RNG.integers(0, 400, (40, 40)).astype(np.uint16), tmp_path / "cells.png")
    codes = learned(path, classes="background=0 cell=1-400")
    np.testing.assert_array_equal(read_mask(path, codes), read_image(path) > 0)
    with pytest.raises(ValueError, match="no masks"):
        learn_codes([])


def test_other_types(tmp_path):
    codes = parse_classes("a=0 b=1").codes()
    for array in (THREE > 0, (THREE > 0).astype(float), (THREE > 0).astype(np.int64), np.stack([THREE > 0] * 2)):
        np.savez(tmp_path / "m.npz", mask=array, image=THREE)
        np.testing.assert_array_equal(read_mask(tmp_path / "m.npz", codes), array)
    saved_by_pillow(Image.fromarray(THREE > 0), tmp_path / "bits.png")
    np.testing.assert_array_equal(read_mask(tmp_path / "bits.png", codes), THREE > 0)
    np.testing.assert_array_equal(read_mask(tmp_path / "bits.png", learned(tmp_path / "bits.png")), THREE > 0)
    np.savez(tmp_path / "m.npz", THREE + 0.5)
    with pytest.raises(FileError, match=r"m\.npz: value 0\.5 at row .* is not an integer|m\.npz: value \d\.5"):
        read_mask(tmp_path / "m.npz", codes)
    np.savez(tmp_path / "m.npz", THREE.astype(int) * 400)
    with pytest.raises(FileError, match="are not colors"):
        read_mask(tmp_path / "m.npz", parse_classes("a=#ffffff").codes())


@pytest.mark.parametrize("name", ["m.png", "m.tif", "m.npz"])
@pytest.mark.parametrize(
    "text",
    [
        "a=0 b=1 c=2 void=255",
        "a=0 b=255 c=128 void=7",
        "a=1000 b=3 c=0,1 void=9",
        "a=#ff0000 b=#00ff00 c=#0000ff void=0",
    ],
)
def test_round_trips(tmp_path, name, text):
    codes = parse_classes(text).codes()
    labels = RNG.integers(-1, 3, (9, 11))
    write_mask(tmp_path / name, labels, codes)
    np.testing.assert_array_equal(read_mask(tmp_path / name, codes), labels)
    if name != "m.png":
        stack = RNG.integers(-1, 3, (4, 9, 11))
        write_mask(tmp_path / name, stack, codes)
        np.testing.assert_array_equal(read_mask(tmp_path / name, codes), stack)


def test_written_masks_show_their_classes(tmp_path):
    codes = parse_classes("a=0 b=1 c=2").codes()
    write_mask(tmp_path / "m.png", THREE, codes)
    shown = read_image(tmp_path / "m.png")
    np.testing.assert_array_equal(shown, np.array([class_color(at) for at in range(3)], dtype=np.uint8)[THREE])
    assert len({class_color(at) for at in range(200)}) > 150


def test_what_cannot_be_written(tmp_path):
    codes = parse_classes("a=0 b=1").codes()
    for labels, name, message in [
        (np.array([[2]]), "m.png", "labels from 0 to 2; give -1 to 1"),
        (np.array([[-1]]), "m.png", "void=255"),
        (np.array([[0.5]]), "m.png", "give integers of an image"),
        (np.zeros((2, 2, 2), dtype=int), "m.png", "PNG holds no stacks"),
        (np.array([[0]]), "m.jpg", "unknown format of masks"),
    ]:
        with pytest.raises(ValueError, match=message):
            write_mask(tmp_path / name, labels, codes)
    with pytest.raises(ValueError, match="integers or colors"):
        write_mask(tmp_path / "m.png", np.array([[0]]), parse_classes("a=tree").codes())
    with pytest.raises(ValueError, match="do not fit PNG"):
        write_mask(tmp_path / "m.png", np.array([[0]]), parse_classes("a=-5").codes())


@pytest.mark.skipif(not (DATA / "segmentation" / "horses").exists(), reason="the horses are not there")
def test_horses():
    paths = sorted((DATA / "segmentation/horses/dev/figure_ground").iterdir())[:12]
    codes = learn_codes(paths)
    assert (codes.names, codes.written, codes.rounded) == (("background", "foreground"), (0, 255), True)
    for path in paths:
        np.testing.assert_array_equal(read_mask(path, codes), read_image(path) > 127)

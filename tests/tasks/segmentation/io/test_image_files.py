"""Images of every kind that the readers know, and files that are damaged, foreign or too large."""

from __future__ import annotations

import io

import numpy as np
import pytest
from attempts import read_or_refuse
from drawn import COLOR, DEEP, DEEP_COLOR, GRAY, SMOOTH, bytes_of, filtered, png_bytes, saved_by_pillow
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from maxmargin.tasks.common.files.text import FileError
from maxmargin.tasks.segmentation.io import pixels
from maxmargin.tasks.segmentation.io.deep_png import decode_deep
from maxmargin.tasks.segmentation.io.images import read_image, resize_image, resize_labels, write_image

tifffile = pytest.importorskip("tifffile")


def same(found, expected):
    assert found.dtype == expected.dtype
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["a.png", "a.tif", "a.npz"])
@pytest.mark.parametrize("image", [GRAY, COLOR, DEEP], ids=["gray", "color", "deep"])
def test_round_trips(tmp_path, name, image):
    write_image(tmp_path / name, image)
    same(read_image(tmp_path / name), image)


@pytest.mark.parametrize("name", ["a.tif", "a.npz"])
@pytest.mark.parametrize(
    "image",
    [
        np.stack([GRAY, GRAY[::-1]]),
        np.stack([COLOR] * 3),
        DEEP_COLOR,
        np.stack([DEEP] * 4),
        GRAY / np.float32(7),
        np.stack([GRAY, GRAY]) / np.float32(3),
    ],
    ids=["stack", "color stack", "deep color", "deep stack", "float", "float stack"],
)
def test_stacks_and_floats(tmp_path, name, image):
    write_image(tmp_path / name, image)
    same(read_image(tmp_path / name), image)


def test_content_counts_and_not_the_name(tmp_path):
    saved_by_pillow(GRAY, tmp_path / "a.jpg", format="png")
    same(read_image(tmp_path / "a.jpg"), GRAY)
    write_image(tmp_path / "a.tif", COLOR)
    (tmp_path / "a.tif").rename(tmp_path / "picture")
    same(read_image(tmp_path / "picture"), COLOR)


def test_alpha_is_dropped(tmp_path):
    alpha = GRAY[::-1]
    both = Image.merge("LA", [Image.fromarray(GRAY), Image.fromarray(alpha)])
    same(read_image(saved_by_pillow(both, tmp_path / "la.png")), GRAY)
    rgba = np.concatenate([COLOR, alpha[..., None]], axis=-1)
    same(read_image(saved_by_pillow(rgba, tmp_path / "rgba.png")), COLOR)
    tifffile.imwrite(tmp_path / "rgba.tif", rgba, photometric="rgb", extrasamples=["unassalpha"])
    same(read_image(tmp_path / "rgba.tif"), COLOR)
    np.savez(tmp_path / "rgba.npz", rgba)
    same(read_image(tmp_path / "rgba.npz"), COLOR)


def test_palettes_bits_and_inks(tmp_path):
    indexed = Image.fromarray(COLOR).quantize(16)
    same(read_image(saved_by_pillow(indexed, tmp_path / "p.png")), np.array(indexed.convert("RGB")))
    same(read_image(saved_by_pillow(indexed, tmp_path / "p.tif")), np.array(indexed.convert("RGB")))
    bits = Image.fromarray(GRAY > 127)
    for name in ("1.png", "1.tif"):
        same(read_image(saved_by_pillow(bits, tmp_path / name)), np.where(GRAY > 127, 255, 0).astype(np.uint8))
    gray = Image.fromarray(GRAY % 4 * 80).quantize(4)
    same(read_image(saved_by_pillow(gray, tmp_path / "gray.png")), GRAY % 4 * 80)
    inks = Image.fromarray(COLOR).convert("CMYK")
    same(read_image(saved_by_pillow(inks, tmp_path / "cmyk.tif")), COLOR)
    wide = np.repeat(np.repeat(COLOR, 8, axis=0), 8, axis=1)
    found = read_image(saved_by_pillow(Image.fromarray(wide).convert("CMYK"), tmp_path / "cmyk.jpg", quality=95))
    assert found.shape == wide.shape
    assert abs(found.astype(int) - wide).mean() < 4


def test_compressed_tiff_and_white_is_zero(tmp_path):
    saved_by_pillow(COLOR, tmp_path / "lzw.tif", compression="tiff_lzw")
    same(read_image(tmp_path / "lzw.tif"), COLOR)
    pages = [Image.fromarray(GRAY), Image.fromarray(GRAY[::-1])]
    pages[0].save(tmp_path / "lzw2.tif", compression="tiff_lzw", save_all=True, append_images=pages[1:])
    same(read_image(tmp_path / "lzw2.tif"), np.stack([GRAY, GRAY[::-1]]))
    tifffile.imwrite(tmp_path / "white.tif", GRAY, photometric="miniswhite")
    same(read_image(tmp_path / "white.tif"), 255 - GRAY)
    tifffile.imwrite(tmp_path / "planes.tif", np.moveaxis(COLOR, -1, 0), photometric="rgb", planarconfig="separate")
    same(read_image(tmp_path / "planes.tif"), COLOR)
    tifffile.imwrite(tmp_path / "j.tif", np.stack([DEEP] * 5), imagej=True, metadata={"axes": "ZYX"})
    same(read_image(tmp_path / "j.tif"), np.stack([DEEP] * 5))


@pytest.mark.parametrize("orientation", range(1, 10))
def test_exif_orientation(tmp_path, orientation):
    image = Image.fromarray(COLOR)
    exif = Image.Exif()
    exif[0x0112] = orientation
    image.save(tmp_path / "a.png", exif=exif)
    with Image.open(tmp_path / "a.png") as stored:
        same(read_image(tmp_path / "a.png"), np.array(ImageOps.exif_transpose(stored)))


def test_integers_of_other_widths_and_floats(tmp_path):
    for array, expected in [
        (np.array([[0, 70000], [1, 2]], dtype=np.int32), np.float32),
        (np.array([[0, -5], [1, 2]], dtype=np.int16), np.float32),
        (np.array([[0, 5], [1, 2]], dtype=np.int64), np.uint16),
        (np.array([[0, 5], [1, 2]], dtype=np.float64), np.float32),
        (np.array([[0, 5], [1, 2]], dtype=np.float16), np.float32),
    ]:
        np.savez(tmp_path / "a.npz", image=array, other=np.zeros(3))
        same(read_image(tmp_path / "a.npz"), array.astype(expected))
    np.save(tmp_path / "a.npy", GRAY)
    same(read_image(tmp_path / "a.npy"), GRAY)
    np.savez(tmp_path / "f.npz", np.asfortranarray(DEEP))
    same(read_image(tmp_path / "f.npz"), DEEP)


@given(st.data())
def test_deep_color_png(data):
    height, width = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 6))
    channels = data.draw(st.sampled_from([3, 4]))
    kinds = data.draw(st.lists(st.integers(0, 4), min_size=height, max_size=height))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    image = rng.integers(0, 65536, (height, width, channels)).astype(">u2")
    rows = np.frombuffer(image.tobytes(), dtype=np.uint8).reshape(height, -1)
    content = png_bytes(filtered(rows, 2 * channels, kinds), width, height, 16, 2 if channels == 3 else 6)
    np.testing.assert_array_equal(decode_deep(content, 100), image)


def test_deep_color_png_by_its_name(saved):
    rows = np.frombuffer(DEEP_COLOR.astype(">u2").tobytes(), dtype=np.uint8).reshape(13, -1)
    content = png_bytes(filtered(rows, 6, [0, 1, 2, 3, 4] * 2 + [4, 3, 1]), 17, 13, 16, 2)
    same(read_image(saved(content, "deep.png")), DEEP_COLOR)
    for length in (30, 60, 200, len(content) - 1):
        with pytest.raises(FileError, match=r"deep\.png: damaged"):
            read_image(saved(content[:length], "deep.png"))
    with pytest.raises(FileError, match="pixels"):
        read_image(saved(png_bytes(b"", 1 << 20, 1 << 20, 16, 2), "deep.png"))


FILES = {
    "png": bytes_of(Image.fromarray(SMOOTH), "png"),
    "jpeg": bytes_of(Image.fromarray(SMOOTH), "jpeg"),
    "lzw": bytes_of(Image.fromarray(SMOOTH), "tiff", compression="tiff_lzw"),
}


def _packed(write, **options):
    stream = io.BytesIO()
    write(stream, **options)
    return stream.getvalue()


FILES["tiff"] = _packed(
    lambda file: tifffile.imwrite(file, np.stack([SMOOTH] * 3), photometric="minisblack", metadata=None)
)
FILES["npz"] = _packed(lambda file: np.savez_compressed(file, image=SMOOTH))


@pytest.mark.parametrize("kind", FILES)
@given(share=st.floats(0, 0.98))
def test_truncated_files(tmp_path_factory, kind, share):
    """A file cut anywhere is an error with its name, or, if only its end is missing, an image of the right shape."""
    path = tmp_path_factory.getbasetemp() / f"cut.{kind}"
    path.write_bytes(FILES[kind][: int(share * len(FILES[kind]))])
    found = read_or_refuse(read_image, path)
    assert found is None or found.shape == ((3, *SMOOTH.shape) if kind == "tiff" else SMOOTH.shape)


@pytest.mark.parametrize("kind", FILES)
@given(data=st.data())
def test_changed_bytes(tmp_path_factory, kind, data):
    content = bytearray(FILES[kind])
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / f"changed.{kind}"
    path.write_bytes(content)
    found = read_or_refuse(read_image, path)
    assert found is None or found.size


def test_truncated_halves_are_refused(saved):
    for kind, content in FILES.items():
        with pytest.raises(FileError, match=f"half.{kind}: "):
            read_image(saved(content[: len(content) // 2], f"half.{kind}"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"GIF89a" + b"\0" * 40, "a GIF file; convert it to PNG"),
        (b"hello", "not an image; convert"),
        (b"\x89PNG\r\n\x1a\n", "damaged"),
        (b"\xff\xd8\xff", "damaged"),
        (b"II*\0\x08\0\0\0", "damaged"),
        (b"PK\x03\x04", "damaged npz"),
        (b"\x93NUMPY\x01\0", "damaged npz"),
    ],
)
def test_foreign_files(saved, content, message):
    with pytest.raises(FileError, match=rf"file\.x: .*{message}"):
        read_image(saved(content, "file.x"))


def test_missing_file(tmp_path):
    with pytest.raises(FileError, match=r"no-such\.png: No such file"):
        read_image(tmp_path / "no-such.png")
    with pytest.raises(FileError, match="directory"):
        read_image(tmp_path)


def test_too_large(saved, monkeypatch):
    bomb = png_bytes(b"", 60000, 60000, 8, 0)
    with pytest.raises(FileError, match=r"bomb\.png: "):
        read_image(saved(bomb, "bomb.png"))
    monkeypatch.setattr(pixels, "MAX_PIXELS", 100)
    for kind in ("png", "tiff", "npz"):
        with pytest.raises(FileError, match="pixels are more than 100; cut or reduce"):
            read_image(saved(FILES[kind], f"a.{kind}"))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((0, 5)), "size 0 x 5"),
        (np.zeros(5), "shape 5"),
        (np.zeros((2, 3, 4, 5, 6)), "shape 2 x 3"),
        (np.array(3.0), "one number"),
        (np.array([["a"]]), "type <U1"),
        (np.zeros((4, 4), dtype=complex), "type complex"),
        (np.array([[1.0, 2.0], [3.0, np.nan]]), r"1 values .* \(nan\) at row 2, column 2"),
        (np.array([[1.0, np.inf], [3.0, np.nan]]), "2 values .* row 1, column 2"),
        (np.array([[1.0, 1e300]]), "not finite float32"),
    ],
)
def test_bad_arrays(tmp_path, array, message):
    np.savez(tmp_path / "a.npz", array)
    with pytest.raises(FileError, match=rf"a\.npz: .*{message}"):
        read_image(tmp_path / "a.npz")


def test_bad_archives(tmp_path, saved):
    np.savez(tmp_path / "two.npz", a=GRAY, b=GRAY)
    with pytest.raises(FileError, match=r"2 arrays \(a, b\); name the one to read 'image'"):
        read_image(tmp_path / "two.npz")
    np.savez(tmp_path / "objects.npz", np.array([None, "x"], dtype=object))
    with pytest.raises(FileError, match="Python objects"):
        read_image(tmp_path / "objects.npz")
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40, 1 << 10)})
    with pytest.raises(FileError, match="too large"):
        read_image(saved(stream.getvalue(), "huge.npy"))
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (1 << 10, 1 << 10)})
    with pytest.raises(FileError, match="cut off"):
        read_image(saved(stream.getvalue(), "huge.npy"))


def test_pages_of_different_sizes(tmp_path):
    with tifffile.TiffWriter(tmp_path / "a.tif") as file:
        file.write(GRAY)
        file.write(GRAY[:5])
    with pytest.raises(FileError, match="2 images of different kinds"):
        read_image(tmp_path / "a.tif")


def test_pages_in_a_circle(tmp_path):
    tifffile.imwrite(tmp_path / "a.tif", np.stack([GRAY] * 2), photometric="minisblack", metadata=None)
    content = bytearray((tmp_path / "a.tif").read_bytes())
    with tifffile.TiffFile(tmp_path / "a.tif") as file:
        first, last = file.pages[0].offset, file.pages[1].offset
    entries = int.from_bytes(content[last : last + 2], "little")
    end = last + 2 + 12 * entries
    content[end : end + 4] = first.to_bytes(4, "little")
    (tmp_path / "a.tif").write_bytes(content)
    with pytest.raises(FileError, match=r"a\.tif: .*pages in a circle"):
        read_image(tmp_path / "a.tif")


def test_what_formats_cannot_hold(tmp_path):
    for name, image in [("a.png", DEEP_COLOR), ("a.png", np.stack([GRAY] * 2)), ("a.jpg", DEEP), ("a.png", GRAY / 2.0)]:
        with pytest.raises(ValueError, match=r"does not fit this format; write \.tif or \.npz"):
            write_image(tmp_path / name, image)
    with pytest.raises(ValueError, match="unknown format"):
        write_image(tmp_path / "a.gif", GRAY)


def test_resize_is_a_mean_over_areas():
    ramp = np.linspace(0, 65535, 64).astype(np.uint16)[None, :].repeat(8, axis=0)
    halved = resize_image(ramp, (4, 32))
    assert halved.dtype == np.uint16
    assert abs(halved[:, 1:-1].astype(float) - ramp.reshape(4, 2, 32, 2).mean(axis=(1, 3))[:, 1:-1]).max() < 3
    for image in (COLOR, DEEP_COLOR, COLOR / np.float32(5), GRAY):
        small = resize_image(image, (6, 8))
        assert small.shape == (6, 8, *image.shape[2:])
        assert small.dtype == image.dtype
        assert abs(small.mean() / image.mean() - 1) < 0.2
        assert resize_image(image, image.shape[:2]) is image


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4), st.integers(1, 4))
def test_labels_take_the_nearest(height, width, down, right):
    labels = np.arange(height * width).reshape(height, width)
    large = resize_labels(labels, (height * down, width * right))
    np.testing.assert_array_equal(large, labels.repeat(down, axis=0).repeat(right, axis=1))
    np.testing.assert_array_equal(resize_labels(large, (height, width)), labels)

"""The command predict: masks, overlays, probabilities, seeds, and what it refuses."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from commands import failed, run, runner
from PIL import Image

import maxmargin as mm
from maxmargin.cli import app
from maxmargin.tasks.common import packages
from maxmargin.tasks.segmentation import parse_classes, read_image, read_mask, read_scan, write_image, write_scan
from maxmargin.tasks.segmentation.io.masks import read_seeds
from maxmargin.tasks.segmentation.io.pixels import decode

TWO = parse_classes("ground=0 leaf=255", void="128").codes()
THREE = parse_classes("ground=#000000 leaf=#20a020 berry=#ff0000").codes()


def predict(model, *inputs, out, options=()):
    return run("segment", "predict", model, *map(str, inputs), "--out", str(out), *options, "--jobs", "1")


def refused(model, *inputs, out, options=()):
    return failed("segment", "predict", model, *map(str, inputs), "--out", str(out), *options)


# --- images ---


def test_masks_are_the_predictions_of_the_model(drawn, tmp_path):
    images = drawn.folder / "two" / "test" / "images"
    out = tmp_path / "new" / "folder"
    assert predict(drawn.models.two, images, out=out) == f"wrote {out}: 3 masks\n"
    assert sorted(os.listdir(out)) == ["leaf6.png", "leaf7.png", "leaf8.png"]
    expected = mm.load(drawn.models.two).predict(drawn.images)
    for at, labels in enumerate(expected):
        np.testing.assert_array_equal(read_mask(out / f"leaf{at + 6}.png", TWO), labels)
    assert np.mean([labels != gold for labels, gold in zip(expected, drawn.labels, strict=True)]) < 0.15


def test_overlays_and_probabilities(drawn, tmp_path):
    image = drawn.folder / "three" / "test" / "images" / "leaf6.png"
    said = predict(drawn.models.three, image, out=tmp_path, options=("--overlay", "--probabilities"))
    assert said == f"wrote {tmp_path}: 1 mask, with overlays and probabilities\n"
    labels = read_mask(tmp_path / "leaf6.png", THREE)
    drawn_over, plain = read_image(tmp_path / "overlays" / "leaf6.png"), read_image(image)
    assert drawn_over.shape == plain.shape
    assert (drawn_over != plain).any(axis=-1).mean() > 0.5
    with np.load(tmp_path / "probabilities" / "leaf6.npz") as file:
        found, names = file["probabilities"], file["classes"]
    assert names.tolist() == ["ground", "leaf", "berry"]
    assert (found.dtype, found.shape) == (np.float32, (*labels.shape, 3))
    np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-5)
    np.testing.assert_allclose(found, mm.load(drawn.models.three).predict_proba([plain])[0], atol=1e-6)


def test_files_and_folders_together(drawn, tmp_path):
    images = drawn.folder / "two" / "test" / "images"
    (tmp_path / "a").mkdir()
    write_image(tmp_path / "a" / "other.tif", drawn.images[0])
    predict(drawn.models.two, images / "leaf6.png", images / "leaf6.png", tmp_path / "a", out=tmp_path / "out")
    assert sorted(os.listdir(tmp_path / "out")) == ["leaf6.png", "other.png"]
    same = [(tmp_path / "out" / name).read_bytes() for name in ("leaf6.png", "other.png")]
    assert same[0] == same[1]


def test_any_number_of_threads_writes_the_same_files(drawn, tmp_path):
    images = str(drawn.folder / "two" / "test" / "images")
    for jobs in ("1", "3"):
        run("segment", "predict", drawn.models.two, images, "--out", str(tmp_path / jobs), "--jobs", jobs)
    for name in os.listdir(tmp_path / "1"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "3" / name).read_bytes()


def test_gray_rgba_16_bit_and_cmyk_images(drawn, tmp_path):
    color = drawn.images[0]
    gray = color.mean(axis=-1).astype(np.uint8)
    opaque = np.full((*gray.shape, 1), 255, dtype=np.uint8)
    given = tmp_path / "in"
    given.mkdir()
    write_image(given / "gray.png", gray)
    Image.fromarray(np.concatenate([color, opaque], axis=-1)).save(given / "rgba.png")
    Image.fromarray(color).convert("CMYK").save(given / "cmyk.jpg", quality=95)
    Image.fromarray(color).convert("CMYK").save(given / "cmyk_tiff.tif")
    write_image(given / "one.png", np.full_like(color, 77))
    write_image(given / "tiny.png", color[:1, :1])
    Image.fromarray(color).save(given / "palette.gif.png", format="PNG")
    predict(drawn.models.two, given, out=tmp_path / "out")
    shapes = {path.name: read_mask(path, TWO).shape for path in (tmp_path / "out").iterdir()}
    assert shapes.pop("tiny.png") == (1, 1)
    assert shapes.keys() == {"gray.png", "rgba.png", "cmyk.png", "cmyk_tiff.png", "one.png", "palette.gif.png"}
    assert set(shapes.values()) == {gray.shape}
    np.testing.assert_array_equal(
        read_mask(tmp_path / "out" / "rgba.png", TWO), mm.load(drawn.models.two).predict([color])[0]
    )


def test_16_bits_are_trained_and_predicted(drawn, copied, tmp_path):
    deep = tmp_path / "deep"
    deep.mkdir()
    for path in (copied / "two" / "train" / "images").iterdir():
        write_image(deep / f"{path.stem}.tif", read_image(path).astype(np.uint16) * 200)
    quick = ("--classifier", "linear", "--stages", "1", "--folds", "2", "--regions", "40", "--jobs", "1")
    masks = ("--masks", str(copied / "two" / "train" / "masks"), "--void", "128")
    run("segment", "train", "--images", str(deep), *masks, *quick, "--out", str(tmp_path / "deep.mm"))
    predict(str(tmp_path / "deep.mm"), deep, out=tmp_path / "out", options=("--overlay",))
    found = [read_mask(tmp_path / "out" / f"leaf{at}.png", TWO) for at in range(6)]
    gold = [read_mask(copied / "two" / "train" / "masks" / f"leaf{at}.png", TWO) for at in range(6)]
    assert np.mean(np.array(found) != gold) < 0.1
    assert read_image(tmp_path / "out" / "overlays" / "leaf0.png").dtype == np.uint8


def test_stacks_are_tiff_and_labels_without_codes_are_their_own_values(stack_model, tmp_path):
    write_image(tmp_path / "cells.tif", stack_model.stack)
    options = ("--overlay", "--probabilities")
    predict(stack_model.path, tmp_path / "cells.tif", out=tmp_path / "out", options=options)
    labels = decode(tmp_path / "out" / "cells.tif").values
    np.testing.assert_array_equal(labels, stack_model.segmenter.predict([stack_model.stack])[0])
    assert set(np.unique(labels)) == {3, 7}
    assert read_image(tmp_path / "out" / "overlays" / "cells.tif").shape == (*labels.shape, 3)
    with np.load(tmp_path / "out" / "probabilities" / "cells.npz") as file:
        assert file["probabilities"].shape == (*labels.shape, 2)
        assert file["classes"].tolist() == ["3", "7"]


# --- seeds ---


def seeds_of(shape):
    """Some pixels of both classes, -1 elsewhere."""
    rng = np.random.default_rng(1)
    known = np.full(shape, -1)
    known[2:5, 3:40] = 1
    known[shape[0] // 2, shape[1] // 2] = 0
    known[tuple(rng.integers(0, side, 12) for side in shape)] = 1
    return known


@pytest.mark.parametrize("form", ["alpha", "void", "unknown", "palette", "16 bit", "npz", "alpha gray"])
def test_predictions_have_exactly_the_labels_of_seeds(drawn, tmp_path, form):
    known = seeds_of(drawn.images[0].shape[:2])
    values = np.array([0, 255, 128], dtype=np.uint8)[known]
    folder = tmp_path / "seeds"
    folder.mkdir()
    path = folder / "leaf6.png"
    opaque = np.where(known >= 0, 255, 0).astype(np.uint8)
    if form == "alpha":
        color = np.repeat(np.maximum(values, 0)[..., None], 3, axis=-1)
        color[known < 0] = 255  # under transparent pixels there may be the color of a class
        Image.fromarray(np.dstack([color, opaque])).save(path)
    elif form == "alpha gray":
        Image.merge(
            "LA", [Image.fromarray(np.where(known < 0, 0, values).astype(np.uint8)), Image.fromarray(opaque)]
        ).save(path)
    elif form == "void":
        write_image(path, values)
    elif form == "unknown":
        write_image(path, np.where(known < 0, 77, values).astype(np.uint8))
    elif form == "palette":
        # GIMP saves few colors as a palette, with one that is transparent.
        image = Image.fromarray(np.where(known < 0, 3, values).astype(np.uint8), mode=None).convert("P")
        image.putpalette([channel for value in range(256) for channel in (value, value, value)])
        image.save(path, transparency=3)
    elif form == "16 bit":
        write_image(path, np.where(known < 0, 9000, values).astype(np.uint16))
    else:
        np.savez(folder / "leaf6.npz", seeds=np.where(known < 0, -5, values.astype(int)))
    image = drawn.folder / "two" / "test" / "images" / "leaf6.png"
    predict(drawn.models.two, image, out=tmp_path / "out", options=("--seeds", str(folder)))
    found = read_mask(tmp_path / "out" / "leaf6.png", TWO)
    np.testing.assert_array_equal(found[known >= 0], known[known >= 0])
    free = mm.load(drawn.models.two).predict([drawn.images[0]])[0]
    assert (free[known >= 0] != known[known >= 0]).any()
    np.testing.assert_array_equal(found, mm.load(drawn.models.two).predict([drawn.images[0]], seeds=[known])[0])


def test_seeds_by_color_and_inputs_without_seeds(drawn, tmp_path):
    images = drawn.folder / "three" / "test" / "images"
    known = np.full((48, 64), -1)
    known[5:9, 5:9], known[30:33, 50:60] = 2, 0
    colors = np.array([*THREE.written, (9, 9, 9)], dtype=np.uint8)[known]
    (tmp_path / "seeds").mkdir()
    write_image(tmp_path / "seeds" / "leaf7.png", colors)
    write_image(tmp_path / "seeds" / "unrelated.png", colors)
    for folder, options in (("free", ()), ("seeded", ("--seeds", str(tmp_path / "seeds")))):
        predict(drawn.models.three, images, out=tmp_path / folder, options=options)
    free, seeded = (read_mask(tmp_path / name / "leaf7.png", THREE) for name in ("free", "seeded"))
    np.testing.assert_array_equal(seeded[known >= 0], known[known >= 0])
    assert (free != seeded).any()
    assert (tmp_path / "free" / "leaf6.png").read_bytes() == (tmp_path / "seeded" / "leaf6.png").read_bytes()


def test_seeds_that_cannot_be_used(drawn, tmp_path):
    image = drawn.folder / "two" / "test" / "images" / "leaf6.png"
    folder, seeds = tmp_path / "seeds", ("--seeds", str(tmp_path / "seeds"))
    folder.mkdir()
    assert "no seeds in this folder" in refused(drawn.models.two, image, out=tmp_path / "out", options=seeds)
    write_image(folder / "other.png", np.zeros((48, 64), dtype=np.uint8))
    assert "have the name of no input; name them like leaf6" in refused(
        drawn.models.two, image, out=tmp_path / "out", options=seeds
    )
    write_image(folder / "leaf6.jpg", np.zeros((48, 64), dtype=np.uint8))
    message = refused(drawn.models.two, image, out=tmp_path / "out", options=seeds)
    assert "leaf6.jpg: JPEG changes the values of seeds; save them as PNG" in message
    os.remove(folder / "leaf6.jpg")
    write_image(folder / "leaf6.png", np.zeros((24, 32), dtype=np.uint8))
    message = refused(drawn.models.two, image, out=tmp_path / "out", options=seeds)
    assert "leaf6.png: 32 x 24 pixels, but " in message
    assert "draw them in the size of the image" in message
    assert os.listdir(tmp_path / "out") == []


def test_seeds_of_a_stack(stack_model, tmp_path):
    known = np.full(stack_model.stack.shape, -1)
    known[2, 3:6, 3:20] = 1
    write_image(tmp_path / "cells.tif", stack_model.stack)
    (tmp_path / "seeds").mkdir()
    write_image(tmp_path / "seeds" / "cells.tif", np.array([3, 7, 0], dtype=np.uint8)[known])
    np.testing.assert_array_equal(
        read_seeds(tmp_path / "seeds" / "cells.tif", stack_model.segmenter.model_.encoder.file_codes), known
    )
    predict(
        stack_model.path, tmp_path / "cells.tif", out=tmp_path / "out", options=("--seeds", str(tmp_path / "seeds"))
    )
    found = decode(tmp_path / "out" / "cells.tif").values
    assert (found[known == 1] == 7).all()


# --- scans ---


def test_scans_keep_their_format_and_get_labels(drawn, tmp_path):
    given = tmp_path / "in"
    given.mkdir()
    for name in ("a.ply", "b.txt", "c.npz", "d.las", "e.laz", "f.csv"):
        if name[0] in "de":
            pytest.importorskip("laspy", reason="needs the scans extra")
            pytest.importorskip("lazrs", reason="needs the scans extra")
        write_scan(given / name, drawn.scan)
    (given / "ply.dat").write_bytes((given / "a.ply").read_bytes())
    inputs = [given, given / "ply.dat"]
    assert predict(drawn.models.scans, *inputs, out=tmp_path / "out", options=("--probabilities",)) == (
        f"wrote {tmp_path / 'out'}: 7 scans, with probabilities\n"
    )
    names = {path.name for path in given.iterdir()} - {"ply.dat"} | {"ply.ply"}
    assert set(os.listdir(tmp_path / "out")) == names
    model = mm.load(drawn.models.scans)
    for name in names:
        source = read_scan(given / name.replace("ply.ply", "ply.dat"))
        found = read_scan(tmp_path / "out" / name)
        np.testing.assert_array_equal(found.labels, model.predict([source])[0])
        np.testing.assert_array_equal(found.points, source.points)
        given_by = {"x": "intensity"}["x"]
        np.testing.assert_allclose(found.attributes[given_by], source.attributes[given_by], rtol=1e-5)
        probabilities = np.stack([found.attributes[f"probability_{c}"] for c in ("ground", "tree", "wall")], axis=1)
        np.testing.assert_allclose(probabilities, model.predict_proba([source])[0], atol=1e-5)
    assert np.mean(found.labels == drawn.points) > 0.9


def test_seeds_of_scans(drawn, tmp_path):
    write_scan(tmp_path / "street.ply", drawn.scan)
    known = np.where(np.arange(len(drawn.scan)) % 50 == 0, 2, 99)
    (tmp_path / "seeds").mkdir()
    write_scan(tmp_path / "seeds" / "street.txt", drawn.scan, known)
    options = ("--seeds", str(tmp_path / "seeds"))
    predict(drawn.models.scans, tmp_path / "street.ply", out=tmp_path / "out", options=options)
    labels = read_scan(tmp_path / "out" / "street.ply").labels
    assert (labels[known == 2] == 2).all()
    assert (labels != 2).any()
    (tmp_path / "seeds" / "street.txt").write_text("1 2 3 2\n")
    options = (*options, "--label-column", "4")
    message = refused(drawn.models.scans, tmp_path / "street.ply", out=tmp_path / "out", options=options)
    assert "street.txt: 1 points, but " in message


def test_scans_that_cannot_be_used(drawn, tmp_path):
    (tmp_path / "nan.txt").write_text("# x y z intensity\n1 2 nan 0.5\n2 2 2 0.5\n")
    (tmp_path / "few.txt").write_text("# x y z intensity\n1 2 3 0.5\n2 2 2 0.5\n0 1 0 0.5\n")
    (tmp_path / "without.txt").write_text("1 2 3\n2 2 2\n0 1 0\n")
    message = refused(drawn.models.scans, tmp_path / "nan.txt", out=tmp_path / "out")
    assert "nan.txt: line 2: coordinate z is nan" in message or "nan.txt" in message
    predict(drawn.models.scans, tmp_path / "few.txt", out=tmp_path / "out")
    assert len(read_scan(tmp_path / "out" / "few.txt").labels) == 3
    message = refused(drawn.models.scans, tmp_path / "without.txt", out=tmp_path / "out")
    assert "without.txt: the scan has no attribute 'intensity'" in message
    message = refused(drawn.models.scans, tmp_path / "few.txt", out=tmp_path / "out", options=("--overlay",))
    assert "--overlay draws on images, and this model labels scans" in message


# --- refusals ---


def test_what_is_not_an_image_is_named_and_other_files_stay(drawn, tmp_path):
    given, out = tmp_path / "in", tmp_path / "out"
    given.mkdir()
    good = (drawn.folder / "two" / "test" / "images" / "leaf6.png").read_bytes()
    (given / "a1.png").write_bytes(good)
    for content, words in (
        (b"hello", "not an image; convert it"),
        (b"", "the file is empty"),
        (good[: len(good) // 2], "damaged or unsupported PNG file"),
        (b"GIF89a", "a GIF file; convert it"),
    ):
        (given / "a2.png").write_bytes(content)
        message = refused(drawn.models.two, given, out=out)
        assert f"{given / 'a2.png'}: {words}" in message
        assert os.listdir(out) == ["a1.png"]
        os.remove(out / "a1.png")
    write_image(given / "a2.tif", np.stack([drawn.images[0]] * 2))
    os.remove(given / "a2.png")
    assert "a2.tif: the input of shape" in refused(drawn.models.two, given, out=out)


def test_two_inputs_of_one_name_are_refused_before_work_starts(drawn, tmp_path):
    images = drawn.folder / "two" / "test" / "images"
    write_image(tmp_path / "leaf6.jpg", drawn.images[0])
    message = refused(drawn.models.two, images, tmp_path / "leaf6.jpg", out=tmp_path / "out")
    assert "have the same name 'leaf6'; rename or remove one of them" in message
    assert not (tmp_path / "out").exists()


def test_folders_that_cannot_be_written(drawn, tmp_path):
    image = drawn.folder / "two" / "test" / "images" / "leaf6.png"
    (tmp_path / "file").write_text("x")
    assert "is a file; give --out a folder" in refused(drawn.models.two, image, out=tmp_path / "file")
    message = refused(drawn.models.two, image, out=tmp_path / "file" / "below")
    assert "give another --out" in message
    write_image(tmp_path / "mine.png", drawn.images[0])
    before = (tmp_path / "mine.png").read_bytes()
    assert "could be overwritten; give another --out" in refused(drawn.models.two, tmp_path / "mine.png", out=tmp_path)
    assert (tmp_path / "mine.png").read_bytes() == before
    if os.geteuid():
        (tmp_path / "locked").mkdir(mode=0o555)
        assert "no permission to write" in refused(drawn.models.two, image, out=tmp_path / "locked")


def test_inputs_and_models_that_are_missing(drawn, tmp_path):
    image = drawn.folder / "two" / "test" / "images" / "leaf6.png"
    assert "no such file or folder" in refused(drawn.models.two, tmp_path / "none.png", out=tmp_path / "out")
    (tmp_path / "empty").mkdir()
    assert "no images in this folder" in refused(drawn.models.two, tmp_path / "empty", out=tmp_path / "out")
    assert "none.mm" in refused(str(tmp_path / "none.mm"), image, out=tmp_path / "out")
    assert "is not a maxmargin model file" in refused(str(image), image, out=tmp_path / "out")
    other = mm.MatchingSVM().fit([np.ones((1, 1, 1))], [[[0, 0]]])
    other.save(tmp_path / "other.mm")
    assert "it holds a model of kind 'matching'" in refused(str(tmp_path / "other.mm"), image, out=tmp_path / "out")


def test_ctrl_c_says_what_was_written(drawn, tmp_path, monkeypatch):
    from maxmargin.tasks.segmentation.files import predict as prediction

    real = prediction.read_image

    def interrupted(path):
        if Path(path).name == "leaf7.png":
            raise KeyboardInterrupt
        return real(path)

    monkeypatch.setattr(prediction, "read_image", interrupted)
    images = str(drawn.folder / "two" / "test" / "images")
    answer = runner.invoke(app, ["segment", "predict", drawn.models.two, images, "--out", str(tmp_path), "--jobs", "1"])
    assert answer.exit_code == 130
    assert answer.stderr == f"interrupted; {tmp_path / 'leaf6.png'} was written\n"
    assert os.listdir(tmp_path) == ["leaf6.png"]


def test_a_missing_extra_is_one_line(drawn, tmp_path, monkeypatch):
    real = packages.importlib.import_module

    def without(name, *rest):
        if name.startswith("PIL"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(packages.importlib, "import_module", without)
    image = drawn.folder / "two" / "test" / "images" / "leaf6.png"
    message = refused(drawn.models.two, image, out=tmp_path / "out")
    assert message == "error: PIL is not installed; run: pip install 'maxmargin[images]'\n"

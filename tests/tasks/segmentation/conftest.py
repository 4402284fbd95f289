"""Small segmenters and files of drawn pictures and scans."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import commands
import numpy as np
import pytest

pytest.importorskip("skimage", reason="needs the images extra")
pytest.importorskip("PIL", reason="needs the images extra")
pytest.importorskip("tifffile", reason="needs the images extra")

from maxmargin.tasks.segmentation import Segmenter, parse_classes, write_image, write_mask, write_scan
from maxmargin.tasks.segmentation.drawings import drawn_pictures, drawn_scans

SIZE = (48, 64)
TWO = parse_classes("ground=0 leaf=255", void="128").codes()
THREE = parse_classes("ground=#000000 leaf=#20a020 berry=#ff0000").codes()
QUICK = ("--classifier", "linear", "--stages", "1", "--folds", "2", "--jobs", "1")


def write_pictures(folder, images, labels, codes, first=0):
    """Write ``images/leaf0.png``, ``masks/leaf0.png``, ..."""
    for name in ("images", "masks"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for at, (image, mask) in enumerate(zip(images, labels, strict=True), start=first):
        write_image(folder / "images" / f"leaf{at}.png", image)
        write_mask(folder / "masks" / f"leaf{at}.png", mask, codes)


@pytest.fixture(scope="session")
def drawn(tmp_path_factory):
    """Folders of pictures and scans, and models that the command trained on them; never changed by a test."""
    at = tmp_path_factory.mktemp("drawn")
    X, y = drawn_pictures(9, size=SIZE)
    X3, y3 = drawn_pictures(8, size=SIZE, classes=3)
    for name, images, labels, codes in (("two", X, y, TWO), ("three", X3, y3, THREE)):
        write_pictures(at / name / "train", images[:6], labels[:6], codes)
        write_pictures(at / name / "test", images[6:], labels[6:], codes, 6)
    scans, points = drawn_scans(4, points=800)
    for number, (scan, labels) in enumerate(zip(scans, points, strict=True)):
        folder = at / "scans" / ("train" if number < 3 else "test")
        folder.mkdir(parents=True, exist_ok=True)
        write_scan(folder / f"street{number}.ply", scan, labels)
    models = SimpleNamespace(two=str(at / "two.mm"), three=str(at / "three.mm"), scans=str(at / "scans.mm"))
    for name, classes in (("two", "ground=0 leaf=255 void=128"), ("three", "ground=#000 leaf=#20a020 berry=#f00")):
        folder, small = at / name / "train", ("--regions", "40")
        files = ("--images", str(folder / "images"), "--masks", str(folder / "masks"), "--classes", classes)
        commands.run("segment", "train", *files, *small, *QUICK, "--out", getattr(models, name))
    given = ("--scans", str(at / "scans" / "train"), "--classes", "ground,tree,wall", "--voxel", "0.5")
    commands.run("segment", "train", *given, *QUICK, "--out", models.scans)
    return SimpleNamespace(folder=at, models=models, images=X[6:], labels=y[6:], scan=scans[3], points=points[3])


@pytest.fixture
def copied(drawn, tmp_path):
    """A copy of the files that a test may change."""
    shutil.copytree(drawn.folder, tmp_path / "files")
    return tmp_path / "files"


@pytest.fixture(scope="session")
def stack_model(tmp_path_factory):
    """A segmenter of small stacks that was trained on arrays, whose labels are 3 and 7."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(4):
        z, r, c = np.mgrid[:5, :20, :24]
        ball = (2 * z - 4) ** 2 + (r - rng.uniform(7, 13)) ** 2 + (c - rng.uniform(8, 16)) ** 2 < 36
        X.append(np.clip(90 + 60 * ball + rng.normal(scale=12, size=ball.shape), 0, 255).astype(np.uint8))
        y.append(np.where(ball, 7, 3))
    segmenter = Segmenter(n_regions=40, classifier="linear", stages=1, folds=2).fit(X[:3], y[:3])
    path = tmp_path_factory.mktemp("stacks") / "stack.mm"
    segmenter.save(path)
    return SimpleNamespace(path=str(path), segmenter=segmenter, stack=X[3], labels=y[3])

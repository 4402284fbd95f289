"""The command evaluate: tables, JSON, systems compared, scans, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest
from commands import failed, run

from maxmargin.tasks.segmentation import (
    evaluate_masks,
    evaluate_scans,
    parse_classes,
    read_mask,
    write_mask,
    write_scan,
)

CODES = parse_classes("ground=0 leaf=255", void="128").codes()
VOID = ("--void", "128")


@pytest.fixture(scope="module")
def predicted(drawn, tmp_path_factory):
    """Two folders of predictions: the model's, and the gold labels with a stripe of errors."""
    at = tmp_path_factory.mktemp("predicted")
    images = str(drawn.folder / "two" / "test" / "images")
    run("segment", "predict", drawn.models.two, images, "--out", str(at / "model"), "--jobs", "1")
    (at / "stripe").mkdir()
    for number, labels in enumerate(drawn.labels, start=6):
        wrong = labels.copy()
        wrong[: number - 5] = 1 - wrong[: number - 5]
        write_mask(at / "stripe" / f"leaf{number}.png", wrong, CODES)
    return at


def test_one_folder(drawn, predicted):
    masks = str(drawn.folder / "two" / "test" / "masks")
    found = evaluate_masks(predicted / "stripe", masks)
    said = run("segment", "evaluate", "--predicted", str(predicted / "stripe"), "--masks", masks)
    lines = [line.split() for line in said.splitlines()]
    assert ["pixel", "error", "%", f"{100 * 6 / 3 / 48:.2f}"] in lines
    assert found.error == pytest.approx(6 / 3 / 48)
    for at, name in enumerate(("background", "foreground")):
        row = next(line for line in lines if line[:1] == [name] and len(line) > 4)
        assert row[1] == f"{100 * found.iou[at]:.2f}"
    assert "gold \\ predicted" in said
    assert "95% interval" in said
    assert "leaf8" not in said


def test_details_and_json(drawn, predicted):
    given = ("--predicted", str(predicted / "stripe"), "--masks", str(drawn.folder / "two" / "test" / "masks"))
    said = run("segment", "evaluate", *given, "--details", "--classes", "ground=0 leaf=255")
    rows = [line.split() for line in said.splitlines() if line.startswith("leaf") and len(line.split()) == 5]
    assert [row[0] for row in rows] == ["leaf8", "leaf7", "leaf6"]  # the worst first
    assert [row[1] for row in rows] == [f"{100 * count / 48:.2f}" for count in (3, 2, 1)]
    found = json.loads(run("segment", "evaluate", *given, "--json", "--level", "0.9", "--void", "128"))
    (system,) = found["systems"]
    assert found["interval_level"] == 0.9
    assert system["error"] == pytest.approx(2 / 48)
    assert "per_image" not in system
    low, high = system["error_interval"]
    assert low <= system["error"] <= high
    detailed = json.loads(run("segment", "evaluate", *given, "--json", "--details"))["systems"][0]
    assert [one["image"] for one in detailed["per_image"]] == ["leaf8", "leaf7", "leaf6"]


def test_further_folders_are_compared_with_the_first(drawn, predicted):
    masks = str(drawn.folder / "two" / "test" / "masks")
    given = ("--masks", masks, "--predicted", str(predicted / "stripe"), str(predicted / "model"), *VOID)
    systems = json.loads(run("segment", "evaluate", *given, "--json"))["systems"]
    assert [one["predicted"] for one in systems] == [str(predicted / name) for name in ("stripe", "model")]
    assert systems[1]["against_first"]["error_difference"] == pytest.approx(systems[1]["error"] - systems[0]["error"])
    assert "against first" in run("segment", "evaluate", *given)


def test_void_pixels_do_not_count(drawn, predicted, copied):
    mask = copied / "two" / "test" / "masks" / "leaf8.png"
    labels = read_mask(mask, CODES)
    labels[:3] = -1
    write_mask(mask, labels, CODES)
    given = ("--predicted", str(predicted / "stripe"), "--masks", str(mask.parent), *VOID)
    (system,) = json.loads(run("segment", "evaluate", *given, "--json", "--details"))["systems"]
    assert next(one["error"] for one in system["per_image"] if one["image"] == "leaf8") == 0


def test_scans(drawn, tmp_path):
    street = drawn.folder / "scans" / "test" / "street3.ply"
    run("segment", "predict", drawn.models.scans, str(street), "--out", str(tmp_path / "out"), "--jobs", "1")
    for scans in (street, street.parent):
        for predicted in (tmp_path / "out", tmp_path / "out" / "street3.ply"):
            given = ("--predicted", str(predicted), "--scans", str(scans), "--classes", "ground,tree,wall")
            (system,) = json.loads(run("segment", "evaluate", *given, "--json"))["systems"]
            assert system["error"] == evaluate_scans(tmp_path / "out", street).error
            assert list(system["classes"]) == ["ground", "tree", "wall"]
            assert "boundary_f" not in system
    assert "point error %" in run("segment", "evaluate", *given, "--details")
    for name in ("a", "b"):
        write_scan(tmp_path / f"{name}.txt", drawn.scan, drawn.points)
    files = [str(tmp_path / f"{name}.txt") for name in ("a", "b")]
    given = ("--predicted", *files, "--scans", files[0], "--scans", files[1], "--label-column", "label")
    (system,) = json.loads(run("segment", "evaluate", *given, "--json"))["systems"]
    assert (system["error"], system["images"]) == (0, 2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--predicted", "{two}/test/masks"), "give either --masks or --scans"),
        (("--predicted", "{two}/test/masks", "--masks", "{two}/test/masks", "--scans", "x"), "give either"),
        (("--predicted", "{two}/test/masks", "--masks", "{two}/train/masks"), "has no mask named leaf6.*"),
        (("--predicted", "{two}/test/masks", "--masks", "nowhere"), "nowhere: no such file or folder"),
        (("--predicted", "nowhere", "--masks", "{two}/test/masks"), "nowhere: no such file or folder"),
        (
            ("--predicted", "{two}/test/masks", "--masks", "{two}/test/masks", "--classes", "a,b,c"),
            "2 values (0, 255) and 3 classes",
        ),
        (
            ("--predicted", "{two}/test/masks", "--masks", "{two}/test/masks", "--classes", "a=0"),
            "leaf6.png: unknown value 255 at row",
        ),
        (
            ("--predicted", "{two}/test/masks", "{two}/test/masks/leaf6.png", "--masks", "{two}/test/masks"),
            "give folders, or files",
        ),
        (
            ("--predicted", "{two}/test/images", "--masks", "{two}/test/masks"),
            "is this a mask? give masks with",
        ),
        (
            ("--predicted", "{two}/test/masks", "--masks", "{two}/test/masks", "--label-column", "4"),
            "belongs to --scans",
        ),
    ],
)
def test_what_cannot_be_evaluated(drawn, options, words):
    two = drawn.folder / "two"
    assert words in failed("segment", "evaluate", *(option.format(two=two) for option in options))


def test_masks_of_other_sizes(drawn, predicted, tmp_path):
    masks = tmp_path / "masks"
    masks.mkdir()
    for number, labels in enumerate(drawn.labels, start=6):
        write_mask(masks / f"leaf{number}.png", np.kron(labels, np.ones((2, 2), dtype=int)), CODES)
    given = ("--predicted", str(predicted / "stripe"), "--masks", str(masks), "--json")
    (system,) = json.loads(run("segment", "evaluate", *given))["systems"]
    assert system["error"] == pytest.approx(2 / 48)
    write_mask(masks / "leaf6.png", drawn.labels[0][:, :40], CODES)
    message = failed("segment", "evaluate", *given)
    assert "leaf6.png has 64 x 48 pixels and " in message
    assert "40 x 48, which is another aspect ratio" in message

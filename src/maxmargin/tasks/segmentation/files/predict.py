"""Prediction of files: images to masks and scans to labeled scans, one file per thread in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from maxmargin import _threads
from maxmargin.structures.base import FloatArray, IntArray
from maxmargin.tasks.common.files.compression import plain_name
from maxmargin.tasks.common.files.text import FileError, name_of, problem
from maxmargin.tasks.segmentation.encoder.scans import ScanEncoder
from maxmargin.tasks.segmentation.io import images, scans
from maxmargin.tasks.segmentation.io.arrays import write_arrays
from maxmargin.tasks.segmentation.io.classes import ClassCodes
from maxmargin.tasks.segmentation.io.folders import Paths, by_stem, list_files, pixels_shape, spelled_size, stem_of
from maxmargin.tasks.segmentation.io.images import read_image, write_image
from maxmargin.tasks.segmentation.io.masks import read_seeds, write_mask
from maxmargin.tasks.segmentation.io.points import Scan
from maxmargin.tasks.segmentation.io.scans import point_seeds, read_scan, write_scan
from maxmargin.tasks.segmentation.model import Segmentation, SegmenterModel
from maxmargin.tasks.segmentation.show.overlay import class_colors, overlay

_ENDS = {"ply": (".ply",), "las": (".las", ".laz"), "npz": (".npz",)}
"""Ends of names by which scans are written in a format; all other names are text."""


@dataclass(frozen=True)
class Output:
    """Where predictions of files go, and which.

    Attributes:
        folder: gets a mask, or a labeled scan, for each input.
        overlays: whether to write images with tinted classes to ``folder/overlays``; scans have none.
        probabilities: whether to write probabilities, of images to ``folder/probabilities``, of scans as columns.
    """

    folder: Path
    overlays: bool = False
    probabilities: bool = False


def takes_scans(model: SegmenterModel) -> bool:
    """Whether a model labels scans; otherwise it labels images."""
    return isinstance(model.encoder, ScanEncoder)


def list_inputs(model: SegmenterModel, paths: Paths) -> list[Path]:
    """The images or scans among files and folders; FileError if two have the same name."""
    scan = takes_scans(model)
    found = list_files(paths, scans.SUFFIXES if scan else images.SUFFIXES, what="scans" if scan else "images")
    return list(by_stem(found).values())


def list_seeds(model: SegmenterModel, inputs: Sequence[Path], paths: Paths) -> dict[str, Path]:
    """Files of seeds by the names of the inputs; FileError if none belongs to an input."""
    scan = takes_scans(model)
    found = by_stem(list_files(paths, scans.SUFFIXES if scan else images.SUFFIXES, what="seeds"))
    known = {stem_of(path) for path in inputs}
    if not known & set(found):
        first = next(iter(found.values()))
        raise FileError(
            f"{name_of(first)} and the other seeds have the name of no input; name them like {stem_of(inputs[0])}"
        )
    return {stem: path for stem, path in found.items() if stem in known}


def predict_files(
    model: SegmenterModel,
    inputs: Sequence[Path],
    output: Output,
    *,
    seeds: dict[str, Path] | None = None,
    label_column: str | int | None = None,
) -> Iterator[Path]:
    """Label files, and yield the name of each file of labels when it is written.

    Files that are written stay if a later one cannot be read; an error names the file.

    Args:
        model: labels images, or scans.
        inputs: files, as :func:`list_inputs` returns them.
        output: where the predictions go.
        seeds: files of seeds, as :func:`list_seeds` returns them; predictions have exactly their labels.
        label_column: the column of labels in seeds of scans.
    """
    write = _write_scan if takes_scans(model) else _write_image
    for name, wanted in (("overlays", output.overlays), ("probabilities", output.probabilities)):
        if wanted and not takes_scans(model):
            (output.folder / name).mkdir(exist_ok=True)
    alone = replace(model, n_jobs=None)  # as many threads as the files leave

    def one(path: Path) -> Path:
        try:
            return write(alone, path, output, (seeds or {}).get(stem_of(path)), label_column)
        except FileError:
            raise
        except ValueError as error:
            raise FileError(f"{name_of(path)}: {error}") from None

    with _threads.threads(model.n_jobs):
        yield from _threads.mapped(one, inputs)


def class_numbers(model: SegmenterModel, labels: IntArray) -> IntArray:
    """Labels of a model as numbers of its classes, -1 for void."""
    return model.encoder.coded([labels])[0]


def segmented(model: SegmenterModel, given: Any, seeds: IntArray | None = None) -> Segmentation:
    """The prediction of an image or scan with seeds as files have them.

    Args:
        model: the model.
        given: the image or scan.
        seeds: numbers of known classes, -1 elsewhere.
    """
    encoder = model.encoder
    if seeds is not None:
        labels = np.array([*(encoder.classes or ()), encoder.void], dtype=np.int64)  # -1 is the last entry
        seeds = labels[seeds]
    return model.segment(given, seeds)


def _write_image(
    model: SegmenterModel, path: Path, output: Output, seeds: Path | None, label_column: str | int | None
) -> Path:
    codes, stem = model.encoder.file_codes, stem_of(path)
    image = read_image(path)
    known = None if seeds is None else _same_size(path, pixels_shape(image), seeds, read_seeds(seeds, codes))
    found = segmented(model, image, known)
    classes = class_numbers(model, found.labels)
    out = output.folder / f"{stem}{mask_ending(codes, classes)}"
    write_mask(out, classes, codes)
    if output.overlays:
        drawn = overlay(image, classes, class_colors(codes))
        write_image(output.folder / "overlays" / f"{stem}{'.png' if classes.ndim == 2 else '.tif'}", drawn)
    if output.probabilities:
        values = found.probabilities.astype(np.float32)
        arrays = {"probabilities": values, "classes": np.array(codes.names)}
        write_arrays(output.folder / "probabilities" / f"{stem}.npz", arrays)
    return out


def mask_ending(codes: ClassCodes, labels: IntArray) -> str:
    """The end of a mask's name: PNG unless it is a stack, or the values do not fit."""
    values = [value for value in codes.written if isinstance(value, int)]
    return ".png" if labels.ndim == 2 and all(0 <= value <= 65535 for value in values) else ".tif"


def _same_size(path: Path, shape: tuple[int, ...], seeds_path: Path, seeds: IntArray) -> IntArray:
    if seeds.shape != shape:
        raise problem(
            seeds_path,
            None,
            f"{spelled_size(seeds.shape)} pixels, but {name_of(path)} has {spelled_size(shape)}; seeds are exact, so "
            "draw them in the size of the image",
        )
    return seeds


def _write_scan(
    model: SegmenterModel, path: Path, output: Output, seeds: Path | None, label_column: str | int | None
) -> Path:
    codes = model.encoder.file_codes
    scan = read_scan(path)
    known = None
    if seeds is not None:
        given = read_scan(seeds, label_column)
        if len(given) != len(scan):
            raise problem(
                seeds, None, f"{len(given)} points, but {name_of(path)} has {len(scan)}; give the same points"
            )
        known = point_seeds(given, codes)
    found = segmented(model, scan, known)
    classes = class_numbers(model, found.labels)
    out = output.folder / _scan_name(path, scan)
    columns = _probability_columns(codes, found.probabilities) if output.probabilities else {}
    names = {value: name for name, value in zip(codes.names, codes.written, strict=True) if isinstance(value, int)}
    write_scan(out, scan, np.array(codes.written)[classes], columns=columns, class_names=names)
    return out


def _scan_name(path: Path, scan: Scan) -> str:
    """The name of an input, with an end that says its format if that of the input does not."""
    name = plain_name(path.name).lower()
    own = next((format for format, ends in _ENDS.items() if name.endswith(ends)), "text")
    if own == scan.format:
        return path.name
    return stem_of(path) + (_ENDS[scan.format][0] if scan.format in _ENDS else ".txt")


def _probability_columns(codes: ClassCodes, probabilities: FloatArray) -> dict[str, FloatArray]:
    return {f"probability_{name}": probabilities[:, at].astype(np.float32) for at, name in enumerate(codes.names)}

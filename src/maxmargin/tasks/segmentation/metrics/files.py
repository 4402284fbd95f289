"""Metrics of files: predicted masks against those of annotators, predicted labels of scans against theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from maxmargin.structures.base import IntArray
from maxmargin.tasks.common.files.text import FileError, name_of
from maxmargin.tasks.segmentation.io.classes import ClassCodes, Definition, shown
from maxmargin.tasks.segmentation.io.folders import Paths, fitted_labels, pair_files, stem_of
from maxmargin.tasks.segmentation.io.masks import learn_codes, read_mask
from maxmargin.tasks.segmentation.io.points import Scan
from maxmargin.tasks.segmentation.io.scans import SUFFIXES, learn_scan_codes, point_classes, read_scan
from maxmargin.tasks.segmentation.metrics.scores import Scores, evaluate


def evaluate_masks(
    predicted: Paths, masks: Paths, classes: Definition | ClassCodes | None = None, *, boundaries: bool = True
) -> Scores:
    """Return the scores of predicted masks; a prediction of another size is resized to the annotators' mask.

    Args:
        predicted: a folder or files of predicted masks.
        masks: a folder or files of the annotators' masks, paired with the predicted ones by name.
        classes: which values stand for which class; by default, and if only names are given, by the values that occur.
        boundaries: whether to compare boundaries.
    """
    pairs = pair_files(predicted, masks, what=("prediction", "mask"), all_of_second=True)
    codes = classes if isinstance(classes, ClassCodes) else _codes_of_both(pairs, classes or Definition())
    # Both sides of a pair are read together, so that one pair is in memory and an error comes where it belongs.
    read = _ReadPairs(pairs, codes)
    names = [stem_of(path) for path, _ in pairs]
    return evaluate(read.gold(), read.predictions(), codes.names, images=names, boundaries=boundaries)


def _codes_of_both(pairs: Sequence[tuple[Path, Path]], definition: Definition) -> ClassCodes:
    """Return the codes by the values that occur on both sides, which must be spelled in the same way."""
    files = [mask for _, mask in pairs], [path for path, _ in pairs]
    if definition.values is not None:
        return definition.codes()
    gold, predicted = (set(learn_codes(side, Definition(void=definition.void)).written) for side in files)
    if gold - predicted and predicted - gold:
        values = [", ".join(map(shown, sorted(one, key=str))) for one in (gold, predicted)]
        raise FileError(
            f"{name_of(files[0][0])} and other masks have the values {values[0]}, and the predictions {values[1]}; "
            "write both in the same way, or say which values stand for which class, as background=0 horse=1,255"
        )
    return learn_codes([*files[0], *files[1]], definition)


class _ReadPairs:
    """Pairs of masks, each read when the first side of it is asked for."""

    def __init__(self, pairs: list[tuple[Path, Path]], codes: ClassCodes) -> None:
        self._pairs, self._codes = pairs, codes
        self._latest: IntArray | None = None

    def gold(self) -> Iterator[IntArray]:
        """Yield the annotators' labels."""
        for path, mask_path in self._pairs:
            mask = read_mask(mask_path, self._codes)
            self._latest = fitted_labels(path, read_mask(path, self._codes), mask_path, mask.shape)
            yield mask

    def predictions(self) -> Iterator[IntArray]:
        """Yield the predicted labels of the pair whose other side was just yielded."""
        for _ in self._pairs:
            assert self._latest is not None
            yield self._latest


def evaluate_scans(
    predicted: Paths,
    scans: Paths,
    classes: Definition | ClassCodes | None = None,
    *,
    label_column: str | int | None = None,
    predicted_column: str | int | None = None,
) -> Scores:
    """Return the scores of predicted labels of points.

    Args:
        predicted: a folder or files of scans with predicted labels.
        scans: a folder or files of the annotators' scans, paired with the predicted ones by name; the points must be
            the same, in the same order.
        classes: which labels stand for which class; by default, and if only names are given, by those that occur.
        label_column: the annotators' labels, as in :func:`read_scan`.
        predicted_column: the predicted labels.
    """
    pairs = pair_files(predicted, scans, what=("prediction", "scan"), suffixes=SUFFIXES, all_of_second=True)
    read: list[tuple[Scan, Scan]] = []
    for path, scan_path in pairs:
        both = read_scan(path, predicted_column), read_scan(scan_path, label_column)
        if len(both[0]) != len(both[1]):
            sizes = f"{name_of(path)} has {len(both[0])} points and {name_of(scan_path)} {len(both[1])}"
            raise FileError(f"{sizes}; give the same points")
        read.append(both)
    if isinstance(classes, ClassCodes):
        codes = classes
    else:
        codes = learn_scan_codes([scan for pair in read for scan in pair[::-1]], classes)
    gold = [point_classes(scan, codes) for _, scan in read]
    labels = [point_classes(scan, codes) for scan, _ in read]
    names = [stem_of(path) for path, _ in pairs]
    return evaluate(gold, labels, codes.names, images=names, boundaries=False, unit="point")

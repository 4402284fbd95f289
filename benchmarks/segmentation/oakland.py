"""The laser scans of Oakland, cross-validated by whole scans.

Classes after Munoz et al. (2009): wire, pole, ground (load bearing), vegetation, facade. Grass lies on the ground and
counts as such, as no coordinate tells it apart; vehicles, people and street furniture have no class among the five.
"""

from __future__ import annotations

import resource
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.workloads import need
from maxmargin.tasks.segmentation import ScanEncoder, ScanExtractor, parse_classes, read_scan
from maxmargin.tasks.segmentation.io.scans import point_classes
from maxmargin.tasks.segmentation.training import SCAN_SETTINGS, StageSettings, train_segmenter

GROUND, VEGETATION, FACADE = "1200,1202,1203,1205,1206,1301", "1300,1302,1303,1305,1306", "1400-1402,1408-1412"
VOID = "void=1001,9999"
TASKS = {
    "ground and rest": f"ground={GROUND} rest=* {VOID}",
    "vegetation and facade": f"vegetation={VEGETATION} facade={FACADE} void=*",
    "five classes": f"wire=1101,1102,1105 pole=1103,1104,1107-1112,1114-1116,1118,1119 ground={GROUND} "
    f"vegetation={VEGETATION} facade={FACADE} void=*",
}
FOLDS = ((0, 5), (1, 6), (2, 7), (3, 4))
"""Scans that are held out together; the last two show the same place."""
PAPERS_POINTS = 7000
"""Points of a scan in the papers."""


def measure(folder: Path, jobs: int) -> dict[str, Any]:
    files = sorted(need(folder / "segmentation/oakland").glob("*.xyz_label_conf.gz"))
    scans = [read_scan(file, 4) for file in files]
    found: dict[str, Any] = {"points": sum(map(len, scans))}
    for name, classes in TASKS.items():
        codes = parse_classes(classes).codes()
        labels = [point_classes(scan, codes) for scan in scans]
        for size, count in {"all points": None, "7,000 points": PAPERS_POINTS}.items():
            found[f"{name}, {size}"] = _cross_validated(*_thinned(scans, labels, count), codes.names, jobs)
    return found


def _thinned(
    scans: list[Any], labels: list[np.ndarray], count: int | None
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Coordinates and labels of all points, or of so many drawn at random from each scan."""
    rng = np.random.default_rng(0)
    points, y = [], []
    for scan, own in zip(scans, labels, strict=True):
        chosen = np.arange(len(own)) if count is None else np.sort(rng.choice(len(own), count, replace=False))
        points.append(scan.points[chosen])
        y.append(own[chosen])
    return points, y


def _cross_validated(
    points: list[np.ndarray], y: list[np.ndarray], names: tuple[str, ...], jobs: int
) -> dict[str, Any]:
    k = len(names)
    confusion, alone = np.zeros((k, k), dtype=np.int64), np.zeros((k, k), dtype=np.int64)
    train_cpu = predict_cpu = 0.0
    for fold in FOLDS:
        train = [i for i in range(len(points)) if i not in fold]
        began = time.process_time()
        model = train_segmenter(
            ScanEncoder(ScanExtractor(), tuple(range(k))),
            [points[i] for i in train],
            [y[i] for i in train],
            replace(SCAN_SETTINGS, n_jobs=jobs),
            StageSettings(stages=2, folds=3),
        )
        train_cpu += time.process_time() - began
        for i in fold:
            began = time.process_time()
            predicted = model.predict([points[i]])[0]
            predict_cpu += time.process_time() - began
            first = model.predict_proba([points[i]])[0].argmax(axis=-1)
            known = y[i] >= 0
            np.add.at(confusion, (y[i][known], predicted[known]), 1)
            np.add.at(alone, (y[i][known], first[known]), 1)
    n = sum(map(len, points))
    return {
        "error": round(100 * (1 - np.trace(confusion) / confusion.sum()), 3),
        "error_without_graph": round(100 * (1 - np.trace(alone) / alone.sum()), 3),
        "recall": {
            name: round(float(r), 3) for name, r in zip(names, confusion.diagonal() / confusion.sum(1), strict=True)
        },
        "train_cpu_seconds_a_fold": round(train_cpu / len(FOLDS), 1),
        "predict_cpu_microseconds_a_point": round(1e6 * predict_cpu / n, 1),
        "million_points_a_minute_a_core": round(60.0 * n / predict_cpu / 1e6, 2),
        "peak_megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3),
    }

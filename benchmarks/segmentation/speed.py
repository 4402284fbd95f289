"""Seconds of large inputs: a photograph of one million pixels, a scan of one million points, strokes of seeds."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.segmentation.scans import synthetic_scans
from maxmargin.tasks.segmentation import ScanSegmenter, Segmenter
from maxmargin.tasks.segmentation.drawings import drawn_pictures


def measure(jobs: int) -> dict[str, Any]:
    return {"image": _image(jobs), "scan": _scan(jobs)}


def _image(jobs: int) -> dict[str, Any]:
    model = Segmenter(n_jobs=jobs).fit(*drawn_pictures(24, seed=0, size=(200, 250)))
    (image,), (gold,) = drawn_pictures(1, seed=1, size=(1000, 1000))
    wall, cpu = time.perf_counter(), time.process_time()
    predicted = model.predict([image])[0]
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    error = round(100 * float((predicted != gold).mean()), 2)
    (image,), (gold,) = drawn_pictures(1, seed=2, size=(400, 500))
    session = model.interactive(image)
    session.segment()
    strokes = []
    rng = np.random.default_rng(0)
    seeds = np.full(gold.shape, -1)
    for _ in range(12):
        row, column = rng.integers(0, gold.shape[0]), rng.integers(0, gold.shape[1] - 30)
        seeds[row, column : column + 30] = rng.integers(0, 2)
        began = time.process_time()
        session.segment(seeds)
        strokes.append(time.process_time() - began)
    return {
        "pixels": predicted.size,
        "seconds": round(wall, 2),
        "cpu_seconds": round(cpu, 2),
        "error": error,
        "stroke_cpu_milliseconds_on_500_x_400": round(1e3 * float(np.median(strokes)), 1),
    }


def _scan(jobs: int) -> dict[str, Any]:
    train = synthetic_scans(4, 20_000, 0)
    model = ScanSegmenter(n_jobs=jobs, stages=2).fit([points for points, _ in train], [own for _, own in train])
    blocks = [own for own, _ in synthetic_scans(50, 20_000, 1)]
    places = np.stack([np.arange(50) % 10, np.arange(50) // 10, np.zeros(50)], axis=1) * 20.0
    points = np.concatenate([own + place for own, place in zip(blocks, places, strict=True)])
    cpu = time.process_time()
    model.predict([points])
    cpu = time.process_time() - cpu
    rate = 60e-6 * len(points) / cpu
    return {"points": len(points), "cpu_seconds": round(cpu, 1), "million_points_a_minute_a_core": round(rate, 2)}

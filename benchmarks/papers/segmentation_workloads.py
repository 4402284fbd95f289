"""Segmentation into two labels: Oakland laser scans, Weizmann horses, and made-up substitutes for both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import maxmargin as mm
from benchmarks import workloads
from benchmarks.papers.runs import Judge, Workload
from benchmarks.segmentation import scans
from maxmargin.encoders import CutEncoder
from maxmargin.encoders.base import Encoder
from maxmargin.training import Examples, Settings

Part = tuple[list[mm.Graph], list[np.ndarray]]
"""Graphs and their 0/1 labels."""


def oakland(data: Path, size: int) -> list[Part]:
    """Five scans of so many points to train on, three to validate and three to test: vegetation against the rest."""
    workloads.need(data / "segmentation/oakland")
    return scans.graphs(list(scans.oakland(data, size)))


def streets(size: int) -> list[Part]:
    """The same with synthetic streets: bushes against the rest."""
    return scans.graphs([scans.synthetic_scans(n, size, seed) for n, seed in ((5, 1), (3, 2), (3, 3))])


def horses(data: Path, count: int) -> list[Part]:
    """``count`` images to train on, then 20 to validate and 40 to test."""
    X, y = workloads.horses(data, "dev", 60)
    return [workloads.horses(data, "train", count), (X[:20], y[:20]), (X[20:], y[20:])]


def disks(count: int) -> list[Part]:
    """Images of a bright disk in noise: ``count`` to train on, as many to validate and to test."""
    rng = np.random.default_rng(0)
    parts = []
    for _ in range(3):
        X, y = [], []
        for _ in range(count):
            rows, columns = np.mgrid[:12, :16]
            label = ((rows - rng.uniform(4, 8)) ** 2 + (columns - rng.uniform(5, 11)) ** 2 < 16).astype(np.int64)
            color = np.clip(0.4 * label[:, :, None] - 0.2 + rng.normal(scale=0.4, size=(12, 16, 3)), -1, 1)
            X.append(workloads.image_graph(color))
            y.append(label.ravel())
        parts.append((X, y))
    return parts


def workload(parts: Sequence[Part]) -> Workload:
    """The training problem of the first part, judged by the share of nodes with the right label in the others."""
    examples = Examples.fit(CutEncoder(), *parts[0])
    problem = examples.problem(Settings(C=np.inf), np.inf)
    return Workload(problem, *(_judge(examples.encoder, part) for part in parts[1:]))


def _judge(encoder: Encoder, part: Part) -> Judge:
    batch = encoder.transform(part[0])
    nodes = batch.structure.variable_parts
    gold = encoder.encode(batch, part[1]).dense()[nodes] > 0.5

    def judge(weights: np.ndarray) -> np.ndarray:
        found = batch.structure.argmax(batch.features.scores(weights)).z[nodes] > 0.5
        return np.array([np.sum(found == gold), len(gold)])

    return judge

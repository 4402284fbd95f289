"""The Weizmann horses: cuts with learned weights against tuned ones, by solver."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks.workloads import need
from maxmargin.tasks.segmentation import ImageEncoder, ImageExtractor, LabeledImages, learn_codes
from maxmargin.tasks.segmentation.model import ImageSegmenterModel
from maxmargin.tasks.segmentation.training import (
    SETTINGS,
    Prepared,
    StageSettings,
    pixel_examples,
    prepare,
    segmenter_of,
    with_pixel_cut,
)
from maxmargin.training import Examples, Settings, train_examples

SOLVERS: dict[str, Callable[[], Any]] = {
    "averaged perceptron": mm.AveragedPerceptron,
    "extragradient": mm.Extragradient,
    "dual extragradient": mm.DualExtragradient,
    "default": lambda: "auto",
}
STRENGTHS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3.0, 6.0)
"""Weights of edges that the grid tries, on each edge feature in turn."""


def read(folder: Path, part: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    base = need(folder / "segmentation/horses" / part)
    masks = sorted((base / "figure_ground").iterdir())
    found = list(LabeledImages.of(base / "rgb", base / "figure_ground", learn_codes(masks)))
    return [one.image for one in found], [one.mask for one in found]


class Dev:
    """The dev images after the stages: regions labeled by weights, then pixels."""

    def __init__(self, prepared: Prepared, X: Sequence[np.ndarray], y: Sequence[np.ndarray]) -> None:
        self.y = y
        self.sites = [prepared.encoder.extractor.sites(image) for image in X]
        self.probabilities = [prepared.encoder.auto_context.probabilities(one) for one in self.sites]

    def score(self, labels: Sequence[np.ndarray]) -> dict[str, float]:
        """Percentage of wrong pixels, and IoU of the horses."""
        wrong = sum(int((a != b).sum()) for a, b in zip(labels, self.y, strict=True))
        both = sum(int(((a == 1) & (b == 1)).sum()) for a, b in zip(labels, self.y, strict=True))
        either = sum(int(((a == 1) | (b == 1)).sum()) for a, b in zip(labels, self.y, strict=True))
        return {"error": 100 * wrong / sum(one.size for one in self.y), "iou": both / either}

    def alone(self) -> dict[str, float]:
        """The node classifier without a cut."""
        pairs = zip(self.sites, self.probabilities, strict=True)
        return self.score([own.argmax(axis=1)[one.node_of] for one, own in pairs])

    def regions(self, model: ImageSegmenterModel) -> list[np.ndarray]:
        """Labels of pixels by the cut of regions."""
        pairs = zip(self.sites, self.probabilities, strict=True)
        return [model.node_labels(one, own)[one.node_of] for one, own in pairs]

    def pixels(self, model: ImageSegmenterModel, regions: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Labels of pixels after the cut of those near boundaries."""
        triples = zip(self.sites, self.probabilities, regions, strict=True)
        return [model.pixel_labels(one, own, labels) for one, own, labels in triples]

    def both(self, model: ImageSegmenterModel) -> dict[str, float]:
        """Error and IoU of regions, then of pixels."""
        regions = self.regions(model)
        found = self.score(self.pixels(model, regions))
        return {"regions": self.score(regions)["error"], **found}


def tuned(examples: Examples, n_node: int, unaries: dict[int, float]) -> np.ndarray:
    """Weights of a cut tuned by hand, as a grid does it: log-odds, and one edge feature with the strength that has the
    smallest loss on the training graphs.

    ``unaries``: the columns of log-odds to try, each with the weight that makes it log-odds.
    """
    problem = examples.problem(SETTINGS, 1.0)
    n_edge = problem.n_weights - n_node
    best, chosen = np.inf, np.zeros(problem.n_weights)
    for (unary, scale), column, strength in product(unaries.items(), range(n_edge), STRENGTHS):
        weights = np.zeros(problem.n_weights)
        weights[unary], weights[n_node + column] = scale, strength
        loss = problem.loss(problem.structure.argmax(problem.features.scores(weights)).z)
        if loss < best:
            best, chosen = loss, weights
    return chosen


def measure(folder: Path, classifier: str, seeds: int, jobs: int) -> dict[str, Any]:
    X, y = read(folder, "train")
    X_dev, y_dev = read(folder, "dev")
    rows: dict[str, list[dict[str, float]]] = {}
    seconds: dict[str, list[float]] = {"train": [], "predict": []}
    for seed in range(seeds):
        settings = replace(SETTINGS, random_state=seed, n_jobs=jobs)
        began = time.process_time()
        with mm.threads(jobs):
            prepared = prepare(ImageEncoder(ImageExtractor()), X, y, StageSettings(classifier=classifier), seed)
            examples = prepared.examples()
            default = segmenter_of(prepared.encoder, train_examples(examples, settings))
            pixels = pixel_examples(default, prepared, y)
            default = with_pixel_cut(default, pixels, settings)
            seconds["train"].append(time.process_time() - began)
            began = time.process_time()
            default.predict(X_dev)
            seconds["predict"].append((time.process_time() - began) / len(X_dev))
            dev = Dev(prepared, X_dev, y_dev)
            found = {"(a) node classifier alone": {"regions": dev.alone()["error"], **dev.alone()}}
            found["(b) cut tuned by a grid"] = dev.both(_grid(default, examples, pixels))
            for letter, (name, solver) in zip("cdef", SOLVERS.items(), strict=True):
                found[f"({letter}) {name}"] = dev.both(
                    default if name == "default" else _by(solver(), prepared, examples, pixels, settings)
                )
        for name, row in found.items():
            rows.setdefault(name, []).append(row)
    return {
        "rows": {name: _mean(several) for name, several in rows.items()},
        "seeds": seeds,
        "train_cpu_seconds": [round(one, 1) for one in seconds["train"]],
        "predict_cpu_seconds_an_image": [round(one, 3) for one in seconds["predict"]],
        "certificate": str(default.training.solution.certificate) if default.training else None,
    }


def _mean(rows: Sequence[dict[str, float]]) -> dict[str, Any]:
    found: dict[str, Any] = {key: round(float(np.mean([row[key] for row in rows])), 3) for key in rows[0]}
    return {**found, "errors": [round(row["error"], 2) for row in rows]}


def _grid(default: ImageSegmenterModel, examples: Examples, pixels: Examples) -> ImageSegmenterModel:
    """Both cuts tuned by grids."""
    assert default.encoder.pixel_cut is not None
    # Regions have half the log-odds in column 1, pixels log-odds and two smoothed ones in the first three.
    weights = tuned(examples, examples.batch.features.features[0].n_weights, {1: 2.0})
    pixel_weights = tuned(pixels, pixels.batch.features.features[0].n_weights, {0: 1.0, 1: 1.0, 2: 1.0})
    cut = replace(default.encoder.pixel_cut, weights=pixel_weights)
    return replace(default, encoder=replace(default.encoder, pixel_cut=cut), weights=weights)


def _by(
    solver: mm.solvers.Solver, prepared: Prepared, examples: Examples, pixels: Examples, settings: Settings
) -> ImageSegmenterModel:
    """Both cuts learned by a solver, within budgets."""
    budget = replace(settings, solver=solver, max_iter=None, max_seconds=10.0)
    model = segmenter_of(prepared.encoder, train_examples(examples, budget))
    assert isinstance(model, ImageSegmenterModel)
    return with_pixel_cut(model, pixels, budget)


def curves(folder: Path, classifier: str, jobs: int, out: Path) -> dict[str, Any]:
    """Plot training loss and dev error of the cut of regions against iterations and weight norm, as in the papers."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    X, y = read(folder, "train")
    X_dev, y_dev = read(folder, "dev")
    with mm.threads(jobs):
        prepared = prepare(ImageEncoder(ImageExtractor()), X, y, StageSettings(classifier=classifier))
        examples, dev = prepared.examples(), Dev(prepared, X_dev, y_dev)
        found = {name: _curve(solver(), prepared, examples, dev, jobs) for name, solver in SOLVERS.items()}
    figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
    titles = {"iteration": "iterations", "norm": "norm of the weights"}
    for row, measured in zip(axes, ("loss", "error"), strict=True):
        for panel, against in zip(row, titles, strict=True):
            for name, points in found.items():
                values = [point[against] for point in points], [point[measured] for point in points]
                panel.plot(*values, marker="o", markersize=3, label=name)
            panel.set_xscale("log")
            panel.set_yscale("log" if measured == "loss" else "linear")
            if measured == "error":  # the first iterations of some are far above
                lowest = min(point["error"] for points in found.values() for point in points)
                panel.set_ylim(0.95 * lowest, 1.35 * lowest)
            panel.set_xlabel(titles[against])
            panel.set_ylabel("hinge loss of a region" if measured == "loss" else "dev error, % of pixels")
            panel.grid(alpha=0.3)
    axes[0, 0].legend()
    path = out / "tasks" / "segmentation_horses.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return {"plot": path.name, **{name: points[-1] for name, points in found.items()}}


def _curve(solver: Any, prepared: Prepared, examples: Examples, dev: Dev, jobs: int) -> list[dict[str, float]]:
    """Loss, norm and dev error at each certificate of a run."""
    points: list[dict[str, float]] = []
    problem = examples.problem(SETTINGS, 1.0)
    n_nodes = problem.structure.starts[1]

    def watch(record: Any) -> None:
        if record.norm < 1e-3:  # has no place on a logarithmic axis
            return
        model = replace(segmenter_of(prepared.encoder, shell), weights=np.array(record.weights))
        error = dev.score(dev.regions(model))["error"]
        loss = problem.hinge(model.weights) / n_nodes
        points.append({"iteration": record.iteration, "norm": record.norm, "loss": loss, "error": error})

    shell = mm.Model.of(examples.encoder)
    settings = replace(SETTINGS, solver=solver, callbacks=(watch,), n_jobs=jobs, max_iter=100, max_seconds=20.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # slow solvers do not reach the tolerance
        train_examples(examples, settings)
    return points

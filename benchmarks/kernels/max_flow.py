"""Minimum cuts and projections of whole photographs, against PyMaxflow in the same run. Prints JSON.

The graphs are grids of pixels with unaries from a color model (log-odds of two Gaussians fitted to figure and ground of
smoothed colors, plus noise) and contrast-sensitive edges: a photograph of ``../shared/data/segmentation/horses`` scaled
to 500 x 400 where that folder and Pillow are there, and a drawn image of the same size; 4 and 8 neighbors, a drawn
image of a million pixels and a drawn volume of 64^3 voxels with 6. Measured on one thread, in CPU time, least of
``--repeats``:

- ``clear`` and ``noisy``: minimum cuts where colors decide most pixels, and where they say little and edges are strong.
  From scratch (``cut_ms``), and with the graph built as well; PyMaxflow's ``maxflow()`` alone, and with its graph; both
  cut values must agree. Warm, from the flow of the last call: every node score changed by noise of 1% of their
  deviation (``warm_noise_ms``), for which PyMaxflow adds the differences to its terminal edges and reuses its search
  trees; weights moved by 1% (``warm_weights_ms``); three strokes of 60 pixels forced to a label by a large score
  (``seeds_ms``).
- ``projection``: ``Cut.project`` inside an extragradient run on the graph, relative to the cold cut of ``noisy``; not
  for the million pixels.
- ``expansion``: an associative network of five classes on a drawn image of 100,000 pixels, ``predict`` and ``argmax``.

    python -m benchmarks.kernels.max_flow [--repeats 5] [--iterations 12] [--cases photograph,drawn] [--skip-expansion]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter

import maxmargin as mm
from benchmarks.record import DATA
from benchmarks.timing import significant, timed
from maxmargin.features.parts import PartFeatures, Stacked
from maxmargin.losses import Hamming
from maxmargin.regions import L2
from maxmargin.structures.base import Points
from maxmargin.structures.cuts.cut import Cut
from maxmargin.structures.networks.associative import Associative

# Of log-odds at two scales, noise and 1; of 1 / distance and contrast.
WEIGHTS = {
    "clear": np.array([1.0, 0.0, 0.0, 0.0, 0.2, 1.8]),
    "noisy": np.array([0.3, 0.0, 1.7, 0.0, 0.6, 5.4]),
}
HORSES = DATA / "segmentation" / "horses" / "train"


@dataclass(frozen=True)
class Picture:
    """An image or volume with colors in 0..1, its gold mask, and how many neighbors a pixel has."""

    colors: np.ndarray  # (*shape, 3)
    gold: np.ndarray  # (*shape), bool
    diagonal: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns, or slices, rows and columns."""
        return self.gold.shape

    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of neighbors and the distance of each pair."""
        at = np.arange(self.gold.size).reshape(self.shape)
        pairs, lengths = [], []
        for step in product((0, 1, -1), repeat=at.ndim):
            if not any(step) or next(s for s in step if s) < 0 or (sum(map(abs, step)) > 1 and not self.diagonal):
                continue
            here = tuple(slice(max(0, -s), n - max(0, s)) for s, n in zip(step, at.shape, strict=True))
            there = tuple(slice(max(0, s), n - max(0, -s)) for s, n in zip(step, at.shape, strict=True))
            pairs.append(np.stack([at[here].ravel(), at[there].ravel()], axis=1))
            lengths.append(np.full(len(pairs[-1]), np.sqrt(sum(map(abs, step)))))
        return np.concatenate(pairs), np.concatenate(lengths)


def photograph(height: int, width: int, diagonal: bool = False) -> Picture | str:
    """A photograph of a horse scaled to the given size, or why there is none."""
    try:
        from PIL import Image
    except ImportError:
        return "skipped: Pillow is not installed"
    file = next(iter(sorted((HORSES / "rgb").glob("*"))), None)
    if file is None:
        return f"skipped: {HORSES} is not there; set MAXMARGIN_DATA to the folder of the data sets"
    colors = Image.open(file).convert("RGB").resize((width, height), Image.Resampling.BICUBIC)
    mask = Image.open(HORSES / "figure_ground" / file.name).convert("L").resize((width, height))
    return Picture(np.asarray(colors) / 255.0, np.asarray(mask) > 127, diagonal)


def drawn(shape: tuple[int, ...], rng: np.random.Generator, diagonal: bool = False) -> Picture:
    """Smooth blobs of random shape with overlapping colors and texture."""
    field = gaussian_filter(rng.standard_normal(shape), min(shape) / 15, mode="wrap")
    gold = field > np.quantile(field, 0.65)
    tint = np.where(gold[..., None], (0.55, 0.42, 0.36), (0.45, 0.5, 0.4))
    shade = 2.0 * gaussian_filter(rng.standard_normal(shape), 6) + gaussian_filter(rng.standard_normal(shape), 1)
    noise = 0.06 * rng.standard_normal((*shape, 3))
    return Picture(np.clip(tint + 0.2 * shade[..., None] + noise, 0.0, 1.0), gold, diagonal)


def log_odds(picture: Picture, sigma: float) -> np.ndarray:
    """Log-odds of figure against ground under two Gaussians fitted to the smoothed colors."""
    spread = (sigma,) * len(picture.shape) + (0,)
    smooth = gaussian_filter(picture.colors, spread).reshape(-1, 3)
    gold = picture.gold.ravel()

    def log_density(rows: np.ndarray) -> np.ndarray:
        covariance = np.cov(rows.T) + 1e-4 * np.eye(3)
        off = smooth - rows.mean(axis=0)
        return -0.5 * (np.einsum("ij,jk,ik->i", off, np.linalg.inv(covariance), off) + np.linalg.slogdet(covariance)[1])

    return np.clip(log_density(smooth[gold]) - log_density(smooth[~gold]), -4.0, 4.0)


@dataclass(frozen=True)
class Case:
    """A graph with node features (log-odds at two scales, noise, 1) and edge features (1 / distance, contrast)."""

    picture: Picture
    pairs: np.ndarray
    nodes: np.ndarray
    edges: np.ndarray

    @classmethod
    def of(cls, picture: Picture, rng: np.random.Generator) -> Case:
        """The features of a picture."""
        pairs, length = picture.edges()
        flat = picture.colors.reshape(-1, 3)
        square = ((flat[pairs[:, 0]] - flat[pairs[:, 1]]) ** 2).sum(axis=1)
        contrast = np.exp(-square / (2 * square.mean()))
        noise = rng.standard_normal(len(flat))
        nodes = np.stack([log_odds(picture, 1.0) + noise, log_odds(picture, 4.0), noise, np.ones(len(flat))], axis=1)
        return cls(picture, pairs, nodes, np.stack([1 / length, contrast / length], axis=1))

    def structure(self) -> Cut:
        """The graph."""
        return Cut([len(self.nodes)], self.pairs, [0, len(self.pairs)])

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Scores of nodes and edges by the weights of their features."""
        half = 0.5 if self.picture.diagonal else 1.0
        return np.concatenate([self.nodes @ weights[:4], -half * (self.edges @ weights[4:])])

    def problem(self, structure: Cut) -> mm.Problem:
        """Learning to segment this picture."""
        features = Stacked(
            PartFeatures(self.nodes, structure.blocks[0].offsets),
            PartFeatures(self.edges, structure.blocks[1].offsets, sign=-1.0),
        )
        region = L2(nonnegative=np.arange(6) >= 4)
        gold = structure.encode([self.picture.gold.ravel().astype(np.int64)])
        return mm.Problem.build(structure, features, gold, Hamming(), region)


def milliseconds(call: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    result, seconds = timed(call, repeats, time.thread_time)
    return result, significant(1e3 * seconds, 3)


class PyMaxflow:
    """One graph of PyMaxflow; a call solves it once."""

    def __init__(self, case: Case, scores: np.ndarray) -> None:
        import maxflow

        n, capacity = len(case.nodes), -scores[len(case.nodes) :]
        self.graph = maxflow.Graph[float](n, len(case.pairs))
        self.ids = self.graph.add_nodes(n)
        self.graph.add_edges(case.pairs[:, 0], case.pairs[:, 1], capacity, capacity)
        self.graph.add_grid_tedges(self.ids, np.maximum(scores[:n], 0.0), np.maximum(-scores[:n], 0.0))

    def again(self, difference: np.ndarray) -> None:
        """Add to the node scores and solve from the trees of the last call."""
        self.graph.add_grid_tedges(self.ids, np.maximum(difference, 0.0), np.maximum(-difference, 0.0))
        self.graph.mark_grid_nodes(self.ids)
        self.graph.maxflow(reuse_trees=True)


def argmax(case: Case, weights: np.ndarray, repeats: int, rng: np.random.Generator) -> dict[str, Any]:
    scores, n = case.scores(weights), len(case.nodes)
    structure = case.structure()
    change = 0.01 * scores[:n].std() * rng.standard_normal(n)
    noise = scores + np.concatenate([change, np.zeros(len(case.pairs))])
    moved = case.scores(weights * 1.01 ** np.array([1, 1, 1, 1, -1, -1]) + [0, 0, 0, 0.01, 0, 0])
    seeded = scores.copy()
    for stroke, first in enumerate(rng.integers(0, n - 60, size=3)):
        seeded[first : first + 60] = 1e4 * (-1) ** stroke
    row: dict[str, Any] = {}
    _, row["build_and_cut_ms"] = milliseconds(lambda: case.structure().argmax(scores), repeats)
    best, row["cut_ms"] = milliseconds(lambda: structure.argmax(scores), repeats)
    for name, values in (("warm_noise_ms", noise), ("warm_weights_ms", moved), ("seeds_ms", seeded)):
        again, row[name] = milliseconds(lambda: structure.argmax(values, warm=best.warm), repeats)  # noqa: B023
        assert np.isclose(again.value[0], structure.argmax(values).value[0], rtol=1e-12), "warm and cold cuts differ"
    try:
        import maxflow  # noqa: F401
    except ImportError:
        return {**row, "pymaxflow": "skipped: PyMaxflow is not installed"}
    build, cut, warm = [], [], []
    for _ in range(repeats):
        other, spent = milliseconds(lambda: PyMaxflow(case, scores), 1)
        build.append(spent)
        flow, spent = milliseconds(other.graph.maxflow, 1)
        cut.append(spent)
        warm.append(milliseconds(lambda: other.again(change), 1)[1])  # noqa: B023
    assert np.isclose(best.value[0], np.maximum(scores[:n], 0.0).sum() - flow, rtol=1e-9), "the cut values differ"
    row["pymaxflow"] = {"build_ms": min(build), "cut_ms": min(cut), "warm_noise_ms": min(warm)}
    row["ratios"] = {
        "cold": significant(row["cut_ms"] / min(cut), 3),
        "cold_with_building": significant(row["build_and_cut_ms"] / (min(build) + min(cut)), 3),
        "warm_noise": significant(row["warm_noise_ms"] / min(cut), 3),
        "warm_weights": significant(row["warm_weights_ms"] / min(cut), 3),
        "warm_noise_to_reused_trees": significant(row["warm_noise_ms"] / min(warm), 3),
    }
    return row


class TimedCut(Cut):
    """A cut that notes how long its projections take."""

    spent: list[tuple[float, bool, int]]

    def project(self, point: np.ndarray, *, tol: float = 1e-8, warm: Any = None) -> Points:
        """The projection, timed."""
        began = time.thread_time()
        points = super().project(point, tol=tol, warm=warm)
        self.spent.append((1e3 * (time.thread_time() - began), warm is not None, int(points.status[0])))
        return points


def projections(case: Case, iterations: int, cut_ms: float) -> dict[str, Any]:
    structure = TimedCut([len(case.nodes)], case.pairs, [0, len(case.pairs)])
    structure.spent = []
    _, plan = milliseconds(lambda: structure._plan, 1)
    solution = mm.solve(case.problem(structure), mm.Extragradient(), stop=mm.Stop(tol=0.0, max_iter=iterations))
    warm = np.array([spent for spent, started, _ in structure.spent if started])
    settled = warm[len(warm) // 3 :]
    return {
        "plan_ms": plan,
        "iterations": solution.counters.iterations,
        "projections": len(structure.spent),
        "inexact": sum(status != 0 for _, _, status in structure.spent),
        "first_ms": significant(structure.spent[0][0], 3),
        "largest_ms": significant(max(spent for spent, _, _ in structure.spent), 3),
        "warm_ms": significant(float(np.median(settled)), 3),
        "mean_warm_ms": significant(float(settled.mean()), 3),
        "ratio_to_cut": significant(float(np.median(settled)) / cut_ms, 3),
        "relative_gap": significant(solution.certificate.relative_gap, 3),
    }


def expansion(height: int, width: int, labels: int, rng: np.random.Generator) -> dict[str, Any]:
    """Five classes: smooth fields whose largest gives the gold label, noisy scores, contrast-sensitive edges."""
    case = Case.of(drawn((height, width), rng), rng)
    n = len(case.nodes)
    fields = np.stack([gaussian_filter(rng.standard_normal((height, width)), 12) for _ in range(labels)], axis=-1)
    nodes = 2.0 * fields.reshape(n, labels) / fields.std() + rng.standard_normal((n, labels))
    edges = np.repeat((case.edges @ [0.1, 0.9])[:, None], labels, axis=1)
    structure = Associative([n], case.pairs, [0, len(case.pairs)], labels)
    scores = np.concatenate([nodes.ravel(), edges.ravel()])
    predicted, predict_ms = milliseconds(lambda: structure.predict(scores), 1)
    relaxed, argmax_ms = milliseconds(lambda: structure.argmax(scores), 1)
    return {
        "nodes": n,
        "edges": len(case.pairs),
        "labels": labels,
        "predict_ms": predict_ms,
        "argmax_ms": argmax_ms,
        "argmax_status": int(relaxed.status[0]),
        "value": float(predicted.value[0]),
        "bound": float(relaxed.value[0]),
    }


def cases(seed: int) -> dict[str, Callable[[], Picture | str]]:
    return {
        "photograph": lambda: photograph(400, 500),
        "drawn": lambda: drawn((400, 500), np.random.default_rng(seed)),
        "photograph_8": lambda: photograph(400, 500, diagonal=True),
        "megapixel": lambda: drawn((1000, 1000), np.random.default_rng(seed)),
        "volume": lambda: drawn((64, 64, 64), np.random.default_rng(seed)),
    }


def measure(
    names: Sequence[str], *, repeats: int = 5, iterations: int = 12, seed: int = 0, with_expansion: bool = True
) -> dict[str, Any]:
    report: dict[str, Any] = {}
    with mm.threads(1):
        for name in names:
            picture = cases(seed)[name]()
            if isinstance(picture, str):
                report[name] = picture
                continue
            rng = np.random.default_rng(seed + 1)
            case = Case.of(picture, rng)
            row: dict[str, Any] = {"shape": list(picture.shape), "edges": len(case.pairs)}
            for setting, weights in WEIGHTS.items():
                row[setting] = argmax(case, weights, repeats, rng)
            if iterations and len(case.nodes) < 500_000:
                row["projection"] = projections(case, iterations, row["noisy"]["cut_ms"])
            report[name] = row
        if with_expansion:
            report["expansion"] = expansion(250, 400, 5, np.random.default_rng(seed))
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=12, help="extragradient iterations; 0: no projections")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", default=",".join(cases(0)), help="names, separated by commas")
    parser.add_argument("--skip-expansion", action="store_true")
    options = parser.parse_args()
    names = [name for name in options.cases.split(",") if name]
    settings = {"repeats": options.repeats, "iterations": options.iterations, "seed": options.seed}
    report = measure(names, **settings, with_expansion=not options.skip_expansion)
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()

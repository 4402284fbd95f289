"""Three structures, trained end to end on real handwriting: ``make demo``.

Data: scikit-learn's 1,797 handwritten digits (8 x 8 grey images), which come with scikit-learn itself.

* cut: find the ink in noisy images, enlarged to 24 x 24. A pixel's feature is its noisy grey value; edges join
  neighbouring pixels. Compared with the same model without edges.
* chain: read dates, one handwritten digit per position, from very noisy images. Compared with one digit at a time.
* matching: find each stroke point of a digit again after it was rotated, shifted and jittered. Compared with choosing
  the best partner for each point by itself.

Prints a table, writes out/demo.png.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.ndimage import zoom
from sklearn.datasets import load_digits
from sklearn.preprocessing import PolynomialFeatures

import maxmargin as mm
from maxmargin.report import plot_convergence

SIDE = 24


@dataclass
class Outcome:
    """One task: the trained model, and its test score beside the baseline's."""

    task: str
    n_train: int
    model: Any
    score: float
    baseline: str
    baseline_score: float


def grid_edges() -> np.ndarray:
    index = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    across = np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()], axis=1)
    down = np.stack([index[:-1].ravel(), index[1:].ravel()], axis=1)
    return np.concatenate([across, down])


def noisy_graph(image: np.ndarray, edges: np.ndarray, rng: np.random.Generator) -> tuple[mm.Graph, np.ndarray]:
    noisy = image / 16 + rng.normal(scale=0.7, size=image.shape)
    return mm.Graph(np.column_stack([noisy.ravel(), np.ones(SIDE * SIDE)]), edges), noisy


def cut_task(images: np.ndarray, rng: np.random.Generator) -> tuple[Outcome, list[Any]]:
    edges, none = grid_edges(), np.zeros((0, 2), dtype=np.int64)
    images = np.array([zoom(image, SIDE / 8, order=1) for image in images])
    pairs = [noisy_graph(image, edges, rng) for image in images]
    X = [graph for graph, _ in pairs]
    y = [(image.ravel() > 7).astype(np.int64) for image in images]
    alone = [mm.Graph(graph.node_features, none, np.zeros((0, 1))) for graph in X]
    n = 30
    model = mm.CutSVM(C=0.1, n_jobs=-1).fit(X[:n], y[:n])
    baseline = mm.CutSVM(C=0.1, n_jobs=-1).fit(alone[:n], y[:n])
    outcome = Outcome(
        "cut: ink in noisy images", n, model, model.score(X[n:], y[n:]), "no edges", baseline.score(alone[n:], y[n:])
    )
    shown = [(pairs[i][1], y[i], model.predict([X[i]])[0]) for i in range(n, n + 4)]
    return outcome, shown


def chain_task(digits: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> Outcome:
    first = datetime.date(1980, 1, 1)
    by_label = [np.flatnonzero(labels == digit) for digit in range(10)]
    X, y = [], []
    for _ in range(1200):
        date = first + datetime.timedelta(days=int(rng.integers(0, 16000)))
        text = date.strftime("%Y%m%d")
        rows = digits[[rng.choice(by_label[int(character)]) for character in text]] / 16
        X.append(np.column_stack([rows + rng.normal(scale=0.6, size=rows.shape), np.ones(len(text))]))
        y.append(list(text))
    n = 400
    model = mm.ChainSVM(C=0.02, n_jobs=-1).fit(X[:n], y[:n])
    single_X = [row[None, :] for x in X for row in x]
    single_y = [[label] for labels_of_one in y for label in labels_of_one]
    baseline = mm.ChainSVM(C=0.02, n_jobs=-1).fit(single_X[: 8 * n], single_y[: 8 * n])
    return Outcome(
        "chain: dates, digit by digit",
        n,
        model,
        model.score(X[n:], y[n:]),
        "each digit alone",
        baseline.score(single_X[8 * n :], single_y[8 * n :]),
    )


def matching_task(images: np.ndarray, rng: np.random.Generator) -> Outcome:
    X, y = [], []
    expand = PolynomialFeatures(degree=2)
    for image in images:
        points = np.argwhere(image > 9).astype(float)
        points = points[rng.permutation(len(points))[:12]]
        angle = rng.normal(scale=0.25)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        order = rng.permutation(len(points))
        moved = (points - points.mean(0)) @ turn + rng.normal(scale=0.35, size=points.shape)
        moved = moved[order] + rng.normal(size=2)
        kept = rng.random(len(points)) < 0.85  # some points are not found again
        left, right = _shape(points), _shape(moved[kept])
        difference = np.abs(left[:, None, :] - right[None, :, :])
        X.append(expand.fit_transform(difference.reshape(-1, left.shape[1])).reshape(len(left), len(right), -1))
        y.append(np.stack([order[kept], np.arange(len(right))], axis=1))
    n = 200
    loss = mm.losses.Hamming(false_positive=1, false_negative=3)
    model = mm.MatchingSVM(C=0.1, loss=loss, n_jobs=-1).fit(X[:n], y[:n])
    alone = [np.stack([np.arange(x.shape[0]), (x @ model.coef_).argmax(axis=1)], axis=1) for x in X[n:]]
    agreed = np.array([model.model_.packer.agreement(gold, found) for gold, found in zip(y[n:], alone, strict=True)])
    baseline_score = agreed[:, 0].sum() / agreed[:, 1].sum()
    return Outcome(
        "matching: stroke points", n, model, model.score(X[n:], y[n:]), "each point alone", float(baseline_score)
    )


def _shape(points: np.ndarray) -> np.ndarray:
    """Position in the figure, and sorted distances to the other points: what a rotation leaves nearly alone."""
    centered = points - points.mean(axis=0)
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    return np.column_stack([centered, np.quantile(distance, [0.25, 0.5, 0.75, 1.0], axis=1).T]) / 4


def draw(outcomes: list[Outcome], shown: list[Any], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1.15, 1])
    axes = left.subplots()
    plot_convergence({outcome.task.split(":")[0]: outcome.model.solution_ for outcome in outcomes}, axes=axes)
    axes.axhline(1e-3, color="0.6", linewidth=1, linestyle="--")
    axes.set_title("training to a certified gap")
    grid = right.subplots(len(shown), 3)
    for place, (row, (noisy, gold, found)) in enumerate(zip(grid, shown, strict=True)):
        pictures = (noisy, found.reshape(SIDE, SIDE), gold.reshape(SIDE, SIDE))
        for cell, picture, title in zip(row, pictures, ("noisy input", "model", "truth"), strict=True):
            cell.imshow(picture, cmap="Greys", interpolation="nearest")
            cell.set_xticks([])
            cell.set_yticks([])
            if place == 0:
                cell.set_title(title, fontsize=10)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=130)


def main() -> None:
    rng = np.random.default_rng(0)
    digits = load_digits()
    images = digits.images[rng.permutation(len(digits.images))]
    cut, shown = cut_task(images[:200], rng)
    outcomes = [cut, chain_task(digits.data, digits.target, rng), matching_task(images[200:800], rng)]
    table = Table(title="maxmargin demo: scikit-learn's handwritten digits")
    for name in ("task", "train", "seconds", "relative gap", "test score", "baseline"):
        table.add_column(name, justify="left" if name == "task" else "right")
    for outcome in outcomes:
        solution = outcome.model.solution_
        table.add_row(
            outcome.task,
            str(outcome.n_train),
            f"{solution.seconds:.1f}",
            f"{solution.certificate.relative_gap:.1e}",
            f"{outcome.score:.3f}",
            f"{outcome.baseline_score:.3f} ({outcome.baseline})",
        )
    Console().print(table)
    path = Path("out") / "demo.png"
    draw(outcomes, shown, path)
    print(f"plot: {path}")


if __name__ == "__main__":
    main()

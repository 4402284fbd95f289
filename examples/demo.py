"""Seven models trained on data that need no download: ``make demo``.

Three on the 1,797 handwritten digits (8 x 8 gray images) of scikit-learn:

* cut: find the ink in noisy images, enlarged to 24 x 24. The feature of a pixel is its noisy gray value; edges join
  neighboring pixels. Baseline: the same model without edges.
* chain: read dates, one handwritten digit per position, from very noisy images. Baseline: one digit at a time.
* matching: match the stroke points of a digit after rotation, shift and jitter. Baseline: each point by itself.

One on the 550 English sentences of the package:

* tagging: parts of speech, from 440 sentences. Baseline: the most frequent tag of each word.

One on the 260 English-French sentence pairs of the package:

* alignment: link words that translate each other, from 195 hand-aligned pairs; the text of all 260 is the bitext. The
  score is 1 - AER. Baseline: the intersection of hidden Markov models trained on the same bitext.

One on lists of translations that the package makes:

* reranking: choose the best of 50 hypotheses, from 120 lists. The score is BLEU / 100. Baseline: the first of a list.

One on pictures that the package draws:

* segmentation: find a leaf on the ground, from 16 pictures. Baseline: the node classifier of the last stage alone, each
  superpixel by itself.

Prints a table, writes out/demo.png, out/demo_alignment.html and out/demo_segmentation.html.
"""

from __future__ import annotations

import datetime
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from scipy.ndimage import zoom
from sklearn.datasets import load_digits
from sklearn.preprocessing import PolynomialFeatures

import maxmargin as mm
from maxmargin.report import plot_convergence
from maxmargin.tasks import tagging
from maxmargin.tasks.alignment import Bitext, WordAligner, evaluate, load_corpus, show
from maxmargin.tasks.reranking import Bleu, Reranker, made_lists
from maxmargin.tasks.segmentation import Segmenter
from maxmargin.tasks.segmentation.drawings import PICTURE_CLASSES, drawn_pictures
from maxmargin.tasks.segmentation.files.report import report_on_arrays
from maxmargin.tasks.segmentation.show import default_colors, overlay

SIDE = 24
DRAWN = (5, 10)
"""The test pairs in the plot."""


@dataclass
class Outcome:
    """The trained model of a task, its test score and that of a baseline."""

    task: str
    n_train: int
    model: Any
    score: float
    baseline: str
    baseline_score: float
    seconds: float | None = None
    """Of training; None if the solution knows them."""


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
        "cut: ink in noise", n, model, model.score(X[n:], y[n:]), "no edges", baseline.score(alone[n:], y[n:])
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
        "chain: written dates",
        n,
        model,
        model.score(X[n:], y[n:]),
        "alone",
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
        kept = rng.random(len(points)) < 0.85  # some points disappear
        left, right = _shape(points), _shape(moved[kept])
        difference = np.abs(left[:, None, :] - right[None, :, :])
        X.append(expand.fit_transform(difference.reshape(-1, left.shape[1])).reshape(len(left), len(right), -1))
        y.append(np.stack([order[kept], np.arange(len(right))], axis=1))
    n = 200
    loss = mm.losses.Hamming(false_positive=1, false_negative=3)
    model = mm.MatchingSVM(C=0.1, loss=loss, n_jobs=-1).fit(X[:n], y[:n])
    alone = [np.stack([np.arange(x.shape[0]), (x @ model.coef_).argmax(axis=1)], axis=1) for x in X[n:]]
    agreed = np.array([model.model_.encoder.agreement(gold, found) for gold, found in zip(y[n:], alone, strict=True)])
    baseline_score = agreed[:, 0].sum() / agreed[:, 1].sum()
    return Outcome("matching: stroke points", n, model, model.score(X[n:], y[n:]), "alone", float(baseline_score))


def tagging_task() -> Outcome:
    train, test = tagging.load_corpus().split()
    model = tagging.SequenceTagger(preset="pos", tol=1e-3, n_jobs=-1).fit(train.tokens, train.upos)
    counts: dict[str, Counter[str]] = {}
    for words, tags in zip(train.tokens, train.upos, strict=True):
        for word, tag in zip(words, tags, strict=True):
            counts.setdefault(word.lower(), Counter())[tag] += 1
    most = {word: count.most_common(1)[0][0] for word, count in counts.items()}
    usual = [[most.get(word.lower(), "NOUN") for word in words] for words in test.tokens]
    baseline = tagging.evaluate(test.upos, usual).accuracy
    score = model.score(test.tokens, test.upos)
    return Outcome("tagging: of words", len(train), model, score, "by word", baseline)


def alignment_task() -> tuple[Outcome, list[show.ShownPair]]:
    train, test = load_corpus().split()
    X, X_test = (list(zip(part.source, part.target, strict=True)) for part in (train, test))
    # Fixed settings, so that fit need not choose them; two folds calibrate the confidences.
    model = WordAligner(C=0.1, false_negative=2.0, folds=2, n_jobs=-1)
    model.fit(X, train.references, bitext=X_test)
    predictions = model.align(X_test)
    outcome = Outcome(
        "alignment: of words",
        len(X),
        model,
        1 - evaluate(test.references, predictions).aer,
        "HMMs",
        1 - evaluate(test.references, model.align_hmm(X_test)).aer,
    )
    return outcome, show.shown_pairs(Bitext(test.source, test.target), predictions, test.references)


def reranking_task() -> Outcome:
    train, test = made_lists(120, seed=1), made_lists(100, seed=2)
    # A fixed C, so that fit need not hold lists out to choose it.
    model = Reranker(C=1.0, folds=0, n_jobs=-1).fit(train, train.references)
    bleu = Bleu()
    first = bleu.statistics(test.texts, test.references, test.owner)[test.offsets[:-1]]
    baseline = float(bleu.quality(first.sum(axis=0)))
    score = model.score(test, test.references)
    return Outcome("reranking: translations", len(train), model, score, "first", baseline)


@dataclass
class Segmented:
    """The test pictures of the segmentation, their labels, and those of the model."""

    images: list[np.ndarray]
    gold: list[np.ndarray]
    found: list[np.ndarray]


def segmentation_task() -> tuple[Outcome, Segmented]:
    X, y = drawn_pictures(24)
    n = 16
    model = Segmenter(classifier="linear", stages=2, n_regions=300, n_jobs=-1).fit(X[:n], y[:n])
    found = model.predict(X[n:])
    alone = [probabilities.argmax(axis=-1) for probabilities in model.predict_proba(X[n:])]
    score, baseline = (float(np.mean([a == b for a, b in zip(y[n:], one, strict=True)])) for one in (found, alone))
    seconds = model.model_.metadata["seconds"]
    outcome = Outcome("segmentation: of leaves", n, model, score, "no cut", baseline, seconds)
    return outcome, Segmented(X[n:], y[n:], found)


def _shape(points: np.ndarray) -> np.ndarray:
    """Relative position, and quantiles of the distances to the other points, which are invariant under rotation."""
    centered = points - points.mean(axis=0)
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    return np.column_stack([centered, np.quantile(distance, [0.25, 0.5, 0.75, 1.0], axis=1).T]) / 4


def draw(
    outcomes: list[Outcome], digits: list[Any], segmented: Segmented, sentences: list[show.ShownPair], path: Path
) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 12.4), layout="constrained")
    top, middle, bottom = figure.subfigures(3, 1, height_ratios=[1, 0.68, 1.1])
    left, right = top.subfigures(1, 2, width_ratios=[1.15, 1])
    axes = left.subplots()
    plot_convergence({outcome.task.split(":")[0]: outcome.model.solution_ for outcome in outcomes}, axes=axes)
    axes.set_xscale("log")
    axes.set_ylim(bottom=1e-5)
    axes.axhline(1e-3, color="0.6", linewidth=1, linestyle="--")
    axes.set_title("training to a certified gap")
    grid = right.subplots(len(digits), 3)
    for place, (row, (noisy, gold, found)) in enumerate(zip(grid, digits, strict=True)):
        pictures = (noisy, found.reshape(SIDE, SIDE), gold.reshape(SIDE, SIDE))
        for cell, picture, title in zip(row, pictures, ("noisy input", "model", "truth"), strict=True):
            cell.imshow(picture, cmap="Grays", interpolation="nearest")
            cell.set_xticks([])
            cell.set_yticks([])
            if place == 0:
                cell.set_title(title, fontsize=10)
    draw_pictures(middle, segmented)
    widths = [len(pair.target) + 2 for pair in sentences]
    for axes, pair in zip(bottom.subplots(1, len(sentences), width_ratios=widths), sentences, strict=True):
        draw_links(axes, pair)
    handles, labels = bottom.axes[-1].get_legend_handles_labels()
    bottom.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=130)


def draw_pictures(figure: Any, pictures: Segmented, columns: int = 6) -> None:
    """Draw pictures, and below them the model's labels with the true outline."""
    grid = figure.subplots(2, columns)
    for at in range(columns):
        found = overlay(pictures.images[at], pictures.found[at], default_colors(2))
        for cell, image in zip(grid[:, at], (pictures.images[at], found), strict=True):
            cell.imshow(image)
            cell.set_xticks([])
            cell.set_yticks([])
        grid[1, at].contour(pictures.gold[at], levels=[0.5], colors="white", linewidths=1.2, linestyles="dashed")
    grid[0, 0].set_ylabel("drawn picture", fontsize=10)
    grid[1, 0].set_ylabel("model, true outline", fontsize=10)


def draw_links(axes: Any, pair: show.ShownPair) -> None:
    """Draw the links of a pair: squares for the annotators' links, dots and crosses for the model's."""
    places: dict[str, list[tuple[int, int]]] = {kind: [] for kind in show.KINDS}
    for link, (kind, _) in pair.drawn().items():
        places[kind].append(link)
    sure, possible = places["sure"] + places["missed"], places["possible"] + places["open"]
    size = 50_000 / max(len(pair.source), len(pair.target), 12) ** 2
    for links, style in (
        (sure, {"marker": "s", "s": size, "color": "#9ec3e0", "label": "sure link"}),
        (possible, {"marker": "s", "s": size, "color": "#e3e3e3", "label": "possible link"}),
        (places["sure"] + places["possible"], {"marker": "o", "s": size / 10, "color": "black", "label": "predicted"}),
        (places["wrong"], {"marker": "x", "s": size / 5, "color": "#c3002f", "label": "predicted, wrong"}),
    ):
        source, target = np.array(links, dtype=np.int64).reshape(-1, 2).T
        axes.scatter(target, source, **style)
    axes.set_xticks(range(len(pair.target)), pair.target, rotation=90, fontsize=9)
    axes.set_yticks(range(len(pair.source)), pair.source, fontsize=9)
    axes.xaxis.tick_top()
    axes.set_xlim(-0.6, len(pair.target) - 0.4)
    axes.set_ylim(len(pair.source) - 0.4, -0.6)
    axes.set_aspect("equal")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xticks(np.arange(len(pair.target) + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(len(pair.source) + 1) - 0.5, minor=True)
    axes.grid(which="minor", color="0.9", linewidth=0.6)
    axes.tick_params(which="minor", length=0)


def main() -> None:
    rng = np.random.default_rng(0)
    digits = load_digits()
    images = digits.images[rng.permutation(len(digits.images))]
    cut, shown = cut_task(images[:200], rng)
    alignment, sentences = alignment_task()
    segmentation, pictures = segmentation_task()
    chain, matching = chain_task(digits.data, digits.target, rng), matching_task(images[200:800], rng)
    outcomes = [cut, chain, matching, tagging_task(), alignment, reranking_task(), segmentation]
    table = Table(title="maxmargin demo: digits, sentences, translations, and pictures", box=SIMPLE_HEAD)
    for name in ("task", "train", "seconds", "gap", "test", "baseline"):
        table.add_column(name, justify="left" if name == "task" else "right")
    for outcome in outcomes:
        solution = outcome.model.solution_
        table.add_row(
            outcome.task,
            str(outcome.n_train),
            f"{solution.seconds if outcome.seconds is None else outcome.seconds:.1f}",
            f"{solution.certificate.relative_gap:.1e}",
            f"{outcome.score:.3f}",
            f"{outcome.baseline_score:.3f} {outcome.baseline}",
        )
    Console().print(table)
    path = Path("out") / "demo.png"
    draw(outcomes, shown, pictures, [sentences[place] for place in DRAWN], path)
    page = path.with_name("demo_alignment.html")
    title = "Word alignments of the demo's test pairs"
    page.write_text(show.page(sentences, title=title, source_language="en", target_language="fr"), encoding="utf-8")
    names = [f"picture {number}" for number in range(1, len(pictures.images) + 1)]
    report = report_on_arrays(
        names,
        pictures.images,
        pictures.gold,
        pictures.found,
        PICTURE_CLASSES[:2],
        title="Segmentation of the demo's test pictures",
        facts=segmentation.model.model_.metadata,
    )
    other = path.with_name("demo_segmentation.html")
    other.write_text(report, encoding="utf-8")
    print(f"plot: {path}\npage: {page}\npage: {other}")


if __name__ == "__main__":
    main()

"""The 2006 paper (Taskar, Lacoste-Julien, Jordan): Figures 2a and 2b, extragradient against the averaged perceptron.

python -m benchmarks.papers.taskar2006 [--write] [--only segmentation alignment]
"""

from __future__ import annotations

from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks.papers import alignment_workloads as alignment
from benchmarks.papers import segmentation_workloads as segmentation
from benchmarks.papers.page import Page, table
from benchmarks.papers.path_figures import Claim, claims, figure
from benchmarks.papers.runs import Curve, Workload, perceptron, trace

ERROR, LOSS, PERCEPTRON = "#1f77b4", "#7f7f7f", "#9467bd"


def draw(gradient: Curve, online: Curve, parts: int, error: str, loss: str, title: str) -> Any:
    drawn, panels = figure(6.4, 4.2, 1, 1)
    axes = panels.flat[0]
    for curve, color, name in ((online, PERCEPTRON, "averaged perceptron"), (gradient, ERROR, "extragradient")):
        axes.plot(curve.iteration[curve.moved], curve.test_error[curve.moved], color=color, label=f"{name}, {error}")
    least = min(curve.test_error[curve.moved].min() for curve in (gradient, online))
    axes.set_ylim(0, 3.2 * least)
    axes.set_xlabel("iteration", fontsize=9)
    axes.set_ylabel(f"{error} (%)", fontsize=9)
    other = axes.twinx()
    other.plot(gradient.iteration, gradient.hinge / parts, color=LOSS, linestyle="--", label=f"extragradient, {loss}")
    other.set_ylim(0, min(0.5 * gradient.hinge[0], 12 * gradient.hinge.min()) / parts)
    other.set_ylabel(loss, fontsize=9)
    other.spines["top"].set_visible(False)
    other.tick_params(labelsize=8)
    lines = [*axes.lines, *other.lines]
    axes.legend(lines, [line.get_label() for line in lines], frameon=False, fontsize=8)
    axes.set_title(title, loc="left", fontsize=10)
    return drawn


def later(curve: Curve, iterations: int) -> np.ndarray:
    """Test errors after each of the last three quarters of the iterations; a run that ended early stays as it is."""
    return np.interp(np.arange(iterations // 4, iterations), curve.iteration, curve.test_error)


def measure(page: Page, block: str, work: Workload, solver: mm.AveragedPerceptron, texts: dict[str, Any]) -> None:
    jobs, iterations = page.options.jobs, 40 if page.options.small else 600
    gradient = trace(work, mm.Extragradient.plain(), iterations, jobs=jobs)
    online = perceptron(work, solver, iterations, jobs=jobs)
    error, loss, parts = texts["error"], texts["loss"], texts["parts"]
    page.figure(block, draw(gradient, online, parts, error, loss, texts["title"]))
    rows, numbers = [], {}
    for name, curve in (("extragradient", gradient), ("averaged perceptron", online)):
        at = curve.chosen
        values = later(curve, iterations)
        cpu = curve.cpu[-1]
        rows.append(
            [
                name,
                texts["paper"][name],
                f"{curve.test_error[at]:.1f}% ({int(curve.iteration[at])})",
                f"{np.median(values):.1f}%",
                f"{curve.test_error[-1]:.1f}%",
                f"{cpu:.0f}",
                f"{1e3 * cpu / iterations:.0f}",
            ]
        )
        numbers[name] = {"chosen": curve.test_error[at], "median": float(np.median(values)), "cpu": cpu}
    ours, theirs = later(gradient, iterations), later(online, iterations)
    lower = ours < theirs
    steps = np.maximum(np.diff(gradient.hinge), 0.0) / gradient.hinge[0]
    early, rises = (steps[part].sum() for part in (gradient.iteration[1:] <= 50, gradient.iteration[1:] > 50))
    observed = [
        Claim(
            f"extragradient has the lower {error} throughout",
            bool(lower.mean() > 0.95),
            f"in {100 * lower.mean():.0f}% of the last three quarters of the iterations",
        ),
        Claim(
            f"by about {texts['by']:g} point{'' if texts['by'] == 1 else 's'}",
            bool(0.5 * texts["by"] <= np.median(theirs) - np.median(ours) <= 2 * texts["by"]),
            f"medians there {np.median(ours):.1f}% and {np.median(theirs):.1f}%",
        ),
        Claim(
            f"its {loss} falls with the iterations",
            bool(gradient.hinge[-1] < 1.01 * gradient.hinge.min()),
            f"from {gradient.hinge[0] / parts:.3g} to {gradient.hinge[-1] / parts:.3g}, with rises that add up to "
            f"{100 * early:.0f}% of the first value in the first 50 iterations and to {100 * rises:.1f}% after them",
        ),
    ]
    page.numbers[block] = {"methods": numbers, "claims": [claim.plain() for claim in observed]}
    page.text(
        block,
        texts["about"]
        + "\n\n"
        + table(
            [
                "method",
                f"{error}, paper",
                "chosen on validation data (iteration)",
                "median of the last three quarters",
                "at the end",
                "CPU s",
                "ms an iteration",
            ],
            rows,
        )
        + f"\n\n![{texts['title']}]({page.name}_{block}.png)\n\n"
        + claims(observed, "the paper"),
    )


def measure_segmentation(page: Page) -> None:
    small = page.options.small
    parts = segmentation.streets(60) if small else segmentation.oakland(page.options.data, 7000)
    work = segmentation.workload(parts)
    nodes = int(work.problem.structure.starts[1])
    texts = {
        "error": "test error",
        "loss": "training loss per node",
        "title": "(a) Oakland laser scans: vegetation against the rest",
        "parts": nodes,
        "paper": {"extragradient": "about 3%", "averaged perceptron": "about 4%"},
        "by": 1.0,
        "about": f"{work.problem.structure.n_examples} scans, {nodes:,} nodes and "
        f"{work.problem.structure.n_parts - nodes:,} edges:",
    }
    measure(page, "segmentation", work, mm.AveragedPerceptron(batch=True), texts)


def measure_alignment(page: Page) -> None:
    small = page.options.small
    text = alignment.synthetic(30, 200) if small else alignment.hansards(page.options.data)
    encoder = text.encoder(withheld=alignment.WITHHELD)
    annotated = text.annotated(encoder)
    test, dev = np.split(np.arange(len(annotated)), [len(annotated) - (12 if small else alignment.DEV)])
    pairs = text.machine_aligned(encoder, 60 if small else 5000)
    work = alignment.workload(pairs, annotated.select(dev), annotated.select(test))
    links = work.problem.structure.n_parts
    texts = {
        "error": "test AER",
        "loss": "training loss per link",
        "title": f"(b) Hansards, {len(pairs):,} machine-aligned pairs",
        "parts": links,
        "paper": {"extragradient": "on axes from 6 to 15%", "averaged perceptron": "0.5 points more"},
        "by": 0.5,
        "about": f"{len(pairs):,} pairs, {links:,} possible links:",
    }
    measure(page, "alignment", work, mm.AveragedPerceptron(), texts)


BLOCKS = {"segmentation": measure_segmentation, "alignment": measure_alignment}

if __name__ == "__main__":
    Page("taskar2006", __doc__.splitlines()[0], BLOCKS).run()

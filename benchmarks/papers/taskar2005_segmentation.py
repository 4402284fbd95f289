"""Figure 6 of the 2005 report: segmentation by four methods, on laser scans and on images."""

from __future__ import annotations

from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks.papers import segmentation_workloads as segmentation
from benchmarks.papers.page import Page, table
from benchmarks.papers.path_figures import STYLES, Claim, claims, excess, figure, finish
from benchmarks.papers.runs import Curve, Workload, exact, perceptron, radii_of, trace


def four_methods(work: Workload, iterations: int, tol: float, jobs: int) -> dict[str, Curve]:
    """The methods of Figure 6; the perceptron is the batch form, as in the report."""
    run = trace(work, mm.DualExtragradient.plain(), iterations, jobs=jobs)
    return {
        "dual-ex": run,
        "ave-perc": perceptron(work, mm.AveragedPerceptron(batch=True), iterations, jobs=jobs),
        "reg-path": exact(work, radii_of(run), tol=tol, jobs=jobs),
        "proj-grad": trace(work, mm.ProjectedGradient.plain(), iterations, jobs=jobs),
    }


def draw_figure_6(curves: dict[str, Curve], title: str) -> Any:
    drawn, panels = figure(9.0, 6.6, 2, 2)
    (loss, growth), (dev, test) = panels
    run, path = curves["dual-ex"], curves["reg-path"]
    for name, curve in curves.items():
        style = {"linewidth": 1.2, "label": name, **STYLES[name]}
        at = curve.moved
        loss.plot(curve.norm, curve.hinge, **style)
        if name != "reg-path":
            growth.plot(curve.iteration, curve.norm, **style)
        dev.plot(curve.norm[at], curve.dev_error[at], **style)
        test.plot(curve.norm[at], curve.test_error[at], **style)
    for axes in (loss, dev, test):
        axes.set_xlim(0, 1.4 * run.norm.max())
    loss.set_ylim(0.8 * path.hinge.min(), 0.7 * run.hinge[0])
    growth.set_ylim(0, 4 * run.norm.max())
    for axes, values in ((dev, "dev_error"), (test, "test_error")):
        least = min(getattr(curve, values)[curve.moved].min() for curve in curves.values())
        axes.set_ylim(0.8 * least, 3.5 * least)
    finish(loss, "a", "training hinge loss", "norm of the weights", "hinge loss")
    finish(growth, "b", "norm of the weights", "iteration", "norm")
    finish(dev, "c", "validation error", "norm of the weights", "error (%)")
    finish(test, "d", "test error", "norm of the weights", "error (%)")
    drawn.suptitle(title, fontsize=11)
    return drawn


def figure_6_claims(curves: dict[str, Curve]) -> list[Claim]:
    run, path, gradient, online = (curves[name] for name in ("dual-ex", "reg-path", "proj-grad", "ave-perc"))
    last = run.iteration[-1]
    half = float(np.interp(last / 2, run.iteration, run.norm))
    above = np.concatenate([excess(one, path) for one in (run, gradient, online)])
    best = {name: curve.dev_error[curve.chosen] for name, curve in curves.items()}
    norms = {name: curve.norm[curve.chosen] for name, curve in curves.items()}
    close = ("dual-ex", "reg-path", "ave-perc")
    swing = np.diff(gradient.hinge[gradient.norm <= run.norm.max()])
    drop = run.hinge[0] - run.hinge.min()
    return [
        Claim(
            "at equal norm reg-path has the smallest hinge loss",
            bool(np.nanmin(above) > -0.5),
            f"the others are above it by at least {np.nanmin(above):.2f}% of H(0)",
        ),
        Claim(
            "dual-ex's loss tends to that of reg-path as the norm grows",
            bool(excess(run, path)[-1] < 0.6 * np.nanmax(excess(run, path))),
            f"{np.nanmax(excess(run, path)):.2f}% of H(0) above at the most, {excess(run, path)[-1]:.2f}% at the end",
        ),
        Claim(
            "proj-grad's loss behaves erratically",
            bool(swing[swing > 0].sum() > 0.1 * drop),
            f"its rises add up to {100 * swing[swing > 0].sum() / run.hinge[0]:.0f}% of H(0) within dual-ex's norms",
        ),
        Claim(
            "dual-ex's norm grows ever more slowly",
            bool(run.norm[-1] - half < 0.5 * half),
            f"{half:.3g} after half of the iterations, {run.norm[-1]:.3g} at the end",
        ),
        Claim(
            "proj-grad soon has a very large norm",
            bool(gradient.norm[-1] > 3 * run.norm[-1]),
            f"{gradient.norm[-1]:.3g} after {int(gradient.iteration[-1])} iterations, dual-ex {run.norm[-1]:.3g}",
        ),
        Claim(
            "dual-ex passes through the norms more gradually than ave-perc",
            bool(np.mean(online.norm[1:9]) / online.norm.max() > np.mean(run.norm[1:9]) / run.norm.max()),
            f"mean norm of the first 8 iterations: {100 * np.mean(run.norm[1:9]) / run.norm.max():.0f}% of the "
            f"largest, ave-perc {100 * np.mean(online.norm[1:9]) / online.norm.max():.0f}%",
        ),
        Claim(
            "the best validation errors of dual-ex, ave-perc and reg-path are close",
            max(best[name] for name in close) < 1.25 * min(best[name] for name in close),
            ", ".join(f"{name} {best[name]:.1f}%" for name in close),
        ),
        Claim(
            "they are reached at different norms, the largest more than 1.5 times the smallest",
            max(norms[name] for name in close) > 1.5 * min(norms[name] for name in close),
            ", ".join(f"{name} {norms[name]:.3g}" for name in close),
        ),
        Claim(
            "validation and test data prefer different norms",
            not 0.8 < run.norm[run.chosen] / run.norm[run.best] < 1.25,
            f"{run.norm[run.chosen]:.3g} and {run.norm[run.best]:.3g} on dual-ex's path",
        ),
    ]


def figure_6(page: Page, block: str, work: Workload, iterations: int, title: str, report: dict[str, str]) -> None:
    jobs, tol = page.options.jobs, 5e-3
    curves = four_methods(work, iterations, tol, jobs)
    page.figure(block, draw_figure_6(curves, title))
    nodes = int(work.problem.structure.starts[1])
    edges = work.problem.structure.n_parts - nodes
    rows, numbers = [], {}
    for name in ("dual-ex", "ave-perc", "reg-path", "proj-grad"):
        curve = curves[name]
        at = curve.chosen
        cpu = curve.cpu.sum() if name == "reg-path" else curve.cpu[-1]
        length = f"{len(curve.norm)} points" if name == "reg-path" else f"{int(curve.iteration[-1])} iterations"
        when = "" if name == "reg-path" else int(curve.iteration[at])
        found = [f"{curve.dev_error[at]:.1f}%", f"{curve.test_error[at]:.1f}%", f"{curve.norm[at]:.3g}", when]
        rows.append([name, *([report[name]] if report else []), *found, length, f"{cpu:.0f}"])
        numbers[name] = {"dev": curve.dev_error[at], "test": curve.test_error[at], "norm": curve.norm[at], "cpu": cpu}
    observed = figure_6_claims(curves)
    page.numbers[block] = {
        "nodes": nodes,
        "edges": edges,
        "methods": numbers,
        "claims": [claim.plain() for claim in observed],
    }
    heading = ["method", *(["test error, report"] if report else []), "validation error", "test error", "norm"]
    page.text(
        block,
        f"{work.problem.structure.n_examples} training examples, {nodes:,} nodes and {edges:,} edges, "
        f"{work.problem.n_weights} weights, steps 1/‖F‖ = {work.step:.2g}, exact points to a relative gap of {tol:g}. "
        "Errors, norm and iteration of the model that the validation data choose:\n\n"
        + table([*heading, "iteration", "run", "CPU s"], rows)
        + f"\n\n![{title}]({page.name}_{block}.png)\n\n"
        + claims(observed),
    )


def measure_segmentation(page: Page) -> None:
    size, iterations = (60, 40) if page.options.small else (7000, 600)
    parts = segmentation.streets(size) if page.options.small else segmentation.oakland(page.options.data, size)
    report = {"dual-ex": "3.4%", "ave-perc": "3.5%", "reg-path": "3.6%", "proj-grad": "3.8%"}
    title = "Oakland laser scans: vegetation against the rest"
    figure_6(page, "segmentation", segmentation.workload(parts), iterations, title, report)


def measure_horses(page: Page) -> None:
    count, iterations = (4, 40) if page.options.small else (30, 600)
    parts = segmentation.disks(count) if page.options.small else segmentation.horses(page.options.data, count)
    figure_6(page, "horses", segmentation.workload(parts), iterations, "Weizmann horses: figure against ground", {})

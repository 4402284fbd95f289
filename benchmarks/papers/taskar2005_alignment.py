"""Figure 7 of the 2005 report: word alignment by four methods, on hand-aligned and on machine-aligned pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks.papers import alignment_workloads as alignment
from benchmarks.papers.page import Page, table
from benchmarks.papers.path_figures import STYLES, Claim, claims, figure, finish, hump
from benchmarks.papers.runs import Curve, Rotation, exact, perceptron, radii_of, trace


def corpus(page: Page) -> alignment.Corpus:
    """The annotated pairs and the bitext; learning the translation models takes 15 s."""
    return alignment.synthetic(48, 300) if page.options.small else alignment.hansards(page.options.data)


def by_hand(page: Page, text: alignment.Corpus) -> tuple[dict[str, Rotation], dict[str, list[float]]]:
    """The methods on hand-aligned pairs, and the test AERs of perceptrons with other orders of the examples."""
    small, jobs = page.options.small, page.options.jobs
    n_train, n, iterations, passes = (24, 3, 30, 5) if small else (100, 7, 500, 100)
    works = alignment.rotations(text.annotated(text.encoder()), n_train, n)
    runs = [trace(work, mm.DualExtragradient.plain(), iterations, jobs=jobs) for work in works]
    radii = np.mean([radii_of(run, 4 if small else 10) for run in runs], axis=0)
    methods = {
        "dual-ex": runs,
        "reg-path": [exact(work, radii, tol=2e-3, jobs=jobs) for work in works],
        "proj-grad": [trace(work, mm.ProjectedGradient.plain(), iterations, jobs=jobs) for work in works],
        "ave-perc": [perceptron(work, mm.AveragedPerceptron(), passes, jobs=jobs) for work in works],
    }
    orders: dict[str, list[float]] = {"fixed": [], "new": []}
    for seed in range(2 if small else 5):
        for name in orders:
            found = []
            for work in works:
                order = np.random.default_rng(seed).permutation(work.problem.structure.n_examples)
                problem = work.problem.select(order) if name == "fixed" else work.problem
                solver = mm.AveragedPerceptron(shuffle=name == "new")
                found.append(trace(replace(work, problem=problem), solver, min(passes, 10), jobs=jobs, seed=seed))
            orders[name].append(Rotation(tuple(found)).chosen_test)
    return {name: Rotation(tuple(curves)) for name, curves in methods.items()}, orders


def by_machine(page: Page, text: alignment.Corpus, sizes: Sequence[int]) -> dict[int, dict[str, Curve]]:
    """Dual extragradient and exact points on machine-aligned pairs, validated and tested on annotated ones."""
    small, jobs = page.options.small, page.options.jobs
    encoder = text.encoder(withheld=alignment.WITHHELD)
    annotated = text.annotated(encoder)
    test, dev = np.split(np.arange(len(annotated)), [len(annotated) - (18 if small else alignment.DEV)])
    found = {}
    for size in sizes:
        pairs = text.machine_aligned(encoder, size)
        work = alignment.workload(pairs, annotated.select(dev), annotated.select(test))
        run = trace(work, mm.DualExtragradient.plain(), 40 if small else 500, jobs=jobs)
        path = exact(work, radii_of(run, 4 if small else 10), tol=5e-3, jobs=jobs)
        found[size] = {"dual-ex": run, "reg-path": path}
    return found


def draw_figure_7(hand: dict[str, Curve], machine: dict[int, dict[str, Curve]]) -> Any:
    drawn, panels = figure(9.6, 10.0, 3, 2)
    (a, b), (c, d), (e, f) = panels
    style = {name: {"linewidth": 1.2, **STYLES[name]} for name in STYLES}
    for name, curve in hand.items():
        a.plot(curve.norm, curve.hinge, label=name, **style[name])
    widest = 1.3 * hand["dual-ex"].norm.max()
    a.set_xlim(0, widest)
    a.set_ylim(0, 1.05 * hand["dual-ex"].hinge[0])
    for axes, names in ((b, ("dual-ex", "reg-path")), (c, ("dual-ex", "proj-grad")), (d, ("proj-grad", "ave-perc"))):
        for name in names:
            curve, at = hand[name], hand[name].moved
            axes.plot(curve.norm[at], curve.test_error[at], label=f"{name}, test", **style[name])
            axes.plot(curve.norm[at], curve.dev_error[at], label=f"{name}, valid", **style[name], alpha=0.35)
        axes.set_xlim(0, widest)
    sizes = sorted(machine)
    for axes, shown, values in ((e, sizes[:2], "hinge"), (f, sizes[1:], "test_error")):
        for place, size in enumerate(shown):
            for name, curve in machine[size].items():
                at = curve.moved if values == "test_error" else np.arange(len(curve.norm))
                up = getattr(curve, values)[at]
                axes.plot(curve.norm[at], up, label=f"{name}, {size:,} pairs", **style[name], alpha=(0.45, 1.0)[place])
    for axes in (b, c, d, f):
        shown_values = np.concatenate([line.get_ydata() for line in axes.lines])
        axes.set_ylim(0.85 * shown_values.min(), 2.6 * shown_values.min())
    norm = "norm of the weights"
    finish(a, "a", "hand-aligned pairs", norm, "training hinge loss")
    finish(b, "b", "hand-aligned pairs", norm, "AER (%)")
    finish(c, "c", "hand-aligned pairs", norm, "AER (%)")
    finish(d, "d", "hand-aligned pairs", norm, "AER (%)")
    finish(e, "e", "machine-aligned pairs", norm, "training hinge loss")
    finish(f, "f", "machine-aligned pairs", norm, "test AER (%)")
    return drawn


def ahead(run: Curve, path: Curve) -> tuple[int, int, float]:
    """At how many exact points between the ends the run has the smaller test error, of how many, by how much."""
    inside = (path.norm > 0.05 * run.norm.max()) & (path.norm < 0.95 * run.norm.max())
    differences = (path.test_error - run.at(path.norm, run.test_error))[inside]
    return int((differences > 0).sum()), len(differences), float(differences.mean())


def figure_7_claims(
    hand: dict[str, Rotation], orders: dict[str, list[float]], machine: dict[int, dict[str, Curve]]
) -> list[Claim]:
    pooled = {name: rotation.pooled for name, rotation in hand.items()}
    run, path = pooled["dual-ex"], pooled["reg-path"]
    first, all_, by = ahead(run, path)
    middle = sorted(machine)[1]
    noisy = ahead(machine[middle]["dual-ex"], machine[middle]["reg-path"])
    best = int(run.iteration[run.best])
    test = {name: rotation.chosen_test for name, rotation in hand.items()}
    spread = {name: max(values) - min(values) for name, values in orders.items()}
    passes = [int(curve.iteration[curve.chosen]) for curve in hand["ave-perc"].curves]
    gradient = pooled["proj-grad"]
    return [
        Claim(f"hand-aligned, {hump(run, path)[0]}", *hump(run, path)[1:]),
        *(
            Claim(f"{size:,} machine-aligned pairs: the same", *hump(*machine[size].values())[1:])
            for size in sorted(machine)[:2]
        ),
        Claim("dual-ex has its smallest AER after roughly 200 iterations", 100 <= best <= 400, f"after {best}"),
        Claim(
            "dual-ex has a smaller test AER than reg-path at equal norm (panel b)",
            2 * first > all_ and by > 0,
            f"at {first} of {all_} exact points between the ends, by {by:.2f} points on average",
        ),
        Claim(
            f"more so on {middle:,} machine-aligned pairs (panel f)",
            noisy[2] > by,
            f"at {noisy[0]} of {noisy[1]}, by {noisy[2]:.2f} points on average",
        ),
        Claim(
            "proj-grad comes much closer to dual-ex than in segmentation",
            abs(test["proj-grad"] - test["dual-ex"]) < 1,
            f"test AER {test['proj-grad']:.1f}% and {test['dual-ex']:.1f}%; its norm at the end {gradient.norm[-1]:.3g}"
            f" against {run.norm[-1]:.3g}",
        ),
        Claim(
            "ave-perc's test AER is above that of dual-ex",
            test["ave-perc"] > test["dual-ex"],
            f"{test['ave-perc']:.1f}% and {test['dual-ex']:.1f}%",
        ),
        Claim(
            "ave-perc varies much with a fixed order of the examples, by up to 5 points",
            spread["fixed"] > 1,
            f"{min(orders['fixed']):.1f} to {max(orders['fixed']):.1f}% over {len(orders['fixed'])} orders",
        ),
        Claim(
            "a new order in each pass varies less",
            spread["new"] < spread["fixed"],
            f"{min(orders['new']):.1f} to {max(orders['new']):.1f}% over {len(orders['new'])} seeds",
        ),
        Claim(
            "ave-perc is at its best within few passes, on hand-aligned pairs as few as five",
            float(np.median(passes)) <= 10,
            f"after {', '.join(map(str, sorted(passes)))} passes in the divisions",
        ),
    ]


def measure_alignment(page: Page) -> None:
    sizes = (30, 60, 100) if page.options.small else (500, 1000, 5000)
    text = corpus(page)
    hand, orders = by_hand(page, text)
    machine = by_machine(page, text, sizes)
    page.figure("alignment", draw_figure_7({name: rotation.pooled for name, rotation in hand.items()}, machine))
    report = {"dual-ex": "5.6%", "reg-path": "5.6%", "proj-grad": "5.8%", "ave-perc": "6.1%"}
    rows, numbers = [], {}
    for name, rotation in hand.items():
        curves = rotation.curves
        cpu = sum(curve.cpu.sum() if name == "reg-path" else curve.cpu[-1] for curve in curves) / len(curves)
        rows.append([name, report[name], f"{rotation.chosen_test:.1f}%", f"{rotation.chosen_dev:.1f}%", f"{cpu:.1f}"])
        numbers[name] = {"test": rotation.chosen_test, "dev": rotation.chosen_dev, "cpu": cpu}
    noisy = []
    for size, curves in machine.items():
        cells: list[object] = [f"{size:,}"]
        for curve in curves.values():
            at = curve.chosen
            cells += [f"{curve.test_error[at]:.1f}% ({curve.test_error[curve.best]:.1f}%)"]
        noisy.append([*cells, f"{curves['dual-ex'].cpu[-1]:.0f}", f"{curves['reg-path'].cpu.sum():.0f}"])
        numbers[str(size)] = {name: curve.test_error[curve.chosen] for name, curve in curves.items()}
    observed = figure_7_claims(hand, orders, machine)
    page.numbers["alignment"] = {
        "methods": numbers,
        "orders": orders,
        "claims": [claim.plain() for claim in observed],
    }
    page.text(
        "alignment",
        "Trained on 100 hand-aligned pairs; AER of the models that the validation data choose, CPU seconds of one "
        "division:\n\n"
        + table(["method", "test AER, report", "test AER", "validation AER", "CPU s"], rows)
        + "\n\nTrained on machine-aligned pairs; test AER of the model that the validation data choose (in brackets "
        "the smallest on the path), CPU seconds of 500 iterations and of ten exact points:\n\n"
        + table(["pairs", "dual-ex", "reg-path", "CPU s, dual-ex", "CPU s, reg-path"], noisy)
        + f"\n\n![Figure 7 on the Hansards]({page.name}_alignment.png)\n\n"
        + claims(observed),
    )

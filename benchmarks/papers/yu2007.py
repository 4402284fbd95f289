"""The 2007 report (Yu, Rousu): seconds and objectives of restricted simplicial decomposition, which it leaves open.

python -m benchmarks.papers.yu2007 [--write] [--only margin slack rounds finite claims]

The report has no experiments. Its methods run here as it states them (``SimplicialDecomposition.plain()``: exact
masters) on its applications: cuts (Weizmann horses), matchings (Hansards), and chains (OCR letters) for slack
rescaling, which is exact there. Seconds are CPU seconds of one thread, so that other processes do not count.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks.papers.page import Page, table
from benchmarks.timing import Budget, significant, timed
from benchmarks.workloads import grid_edges, hansards, horses, letters
from maxmargin.encoders import ChainEncoder, CutEncoder, MatchingEncoder
from maxmargin.optimization.run import Run
from maxmargin.optimization.solver import Start
from maxmargin.training import Examples, Settings

SD = mm.SimplicialDecomposition
MASTERS: dict[str, dict[str, Any]] = {
    "one simplex": {"master": "one"},
    "working sets, one simplex each": {"master": "one", "working_set": "cyclic"},
    "working sets, product": {"working_set": "cyclic"},
    "product": {},
}
LIMITS = (1, 2, 3, 10, np.inf)


@dataclass(frozen=True)
class Data:
    """Training data: their name, the encoded examples, settings with our C, and the relative gap aimed at."""

    name: str
    examples: Examples
    settings: dict[str, Any]
    tol: float

    def problem(self, **more: Any) -> mm.Problem:
        """The training problem."""
        settings = Settings(**(self.settings | more))
        return self.examples.problem(settings, float(settings.C))


@dataclass(frozen=True)
class Outcome:
    """One run: CPU seconds and argmax passes to the gap aimed at or to the budget, and the curve on the way."""

    seconds: float
    passes: float
    rounds: int
    certificate: mm.solvers.Certificate
    weights: np.ndarray
    reached: bool
    curve: list[tuple[float, float]]

    def cell(self, optimum: float) -> str:
        """Seconds and passes, and by how much the objective is above the optimum."""
        excess = f"+{100 * max(0.0, self.certificate.primal / optimum - 1):.2g}%"
        if self.reached:
            return f"{significant(self.seconds):g} s, {self.passes:.0f}, {excess}"
        return f"gap {100 * self.certificate.relative_gap:.2g}%, {excess}"


def run(problem: mm.Problem, solver: mm.solvers.Solver, *, tol: float, cpu: float, iterations: int = 10**6) -> Outcome:
    """Solve with one thread until the gap or so many CPU seconds are reached."""
    curve: list[tuple[float, float]] = []

    def watch(record: mm.solvers.Record) -> None:
        curve.append((record.argmax, record.certificate.relative_gap))

    budget = Budget(cpu)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stop = mm.Stop(tol=tol, max_iter=iterations)
        done = mm.solve(problem, solver, stop=stop, callbacks=[watch, budget], n_jobs=1, random_state=0)
    reached = done.certificate.relative_gap <= tol
    counters = done.counters
    return Outcome(
        budget.used(),
        counters.argmax,
        counters.iterations,
        done.certificate,
        done.weights,
        reached,
        curve,
    )


def data(page: Page) -> list[Data]:
    """Cuts, matchings and chains."""
    loss = {"loss": mm.losses.Hamming(false_positive=1, false_negative=3)}
    if page.options.small:
        graphs, links, words = made_up()
        count = 4
    else:
        folder = page.options.data
        graphs, links, words, count = horses(folder), hansards(folder), letters(folder, [0]), 100
    chains = [part[:count] for part in words]
    return [
        Data("horses", Examples.fit(CutEncoder(), *graphs), {"C": 1e-3}, 1e-3),
        Data("Hansards", Examples.fit(MatchingEncoder(), *links), {"C": 0.1} | loss, 1e-3),
        Data("letters", Examples.fit(ChainEncoder(), *chains), {"C": 0.1}, 1e-2),
    ]


def made_up() -> tuple[Any, Any, Any]:
    """A few grids, matchings and chains of random features, whose gold outputs follow the first of them."""
    rng = np.random.default_rng(0)
    edges = grid_edges(5, 4)
    nodes = [rng.normal(size=(20, 3)) for _ in range(4)]
    graphs = [mm.Graph(own, edges, rng.random((len(edges), 2))) for own in nodes]
    links = [rng.normal(size=(4, 5, 4)) for _ in range(6)]
    gold = [np.array([(j, int(np.argmax(own[j, :, 0]))) for j in range(4)]) for own in links]
    matchings = [own[np.unique(own[:, 1], return_index=True)[1]] for own in gold]
    words = [rng.normal(size=(4, 5)) for _ in range(6)]
    labels = [own[:, :3].argmax(axis=1).tolist() for own in words]
    return (graphs, [(own[:, 0] > 0).astype(int) for own in nodes]), (links, matchings), (words, labels)


def paper_c(kind: Data, hinge: str) -> float:
    """The report's C of this problem: C/n stands in its variations I and II where we have C."""
    return float(kind.settings["C"]) * (len(kind.examples) if hinge.startswith("slack") else 1)


def optimum_of(problem: mm.Problem, small: bool) -> float:
    return run(problem, SD(), tol=1e-4 if small else 1e-6, cpu=60).certificate.dual


def sweep(page: Page, kind: Data, hinge: str, masters: Sequence[str], limits: Sequence[float]) -> tuple[str, Any]:
    """A table of masters against limits, and its numbers."""
    rescaling, slack = hinge.split(", ")
    problem, cpu = kind.problem(rescaling=rescaling, slack=slack), 0.05 if page.options.small else 10.0
    optimum = optimum_of(problem, page.options.small)
    rows, numbers = [], []
    for name in masters:
        cells = []
        for r in limits:
            outcome = run(problem, SD.plain(r=r, **MASTERS[name]), tol=kind.tol, cpu=cpu)
            cells.append(outcome.cell(optimum))
            numbers.append(
                {
                    "data": kind.name,
                    "hinge": hinge,
                    "master": name,
                    "r": str(r),
                    "cpu_seconds": significant(outcome.seconds, 3),
                    "passes": round(outcome.passes, 1),
                    "rounds": outcome.rounds,
                    "objective": float(kind.settings["C"]) * outcome.certificate.primal,
                    "relative_gap": significant(outcome.certificate.relative_gap, 3),
                }
            )
        rows.append([name, *cells])
    C = float(kind.settings["C"])
    caption = (
        f"{kind.name}: {len(kind.examples)} examples, {problem.structure.n_parts:,} parts, d = {problem.n_weights:,}, "
        f"C = {paper_c(kind, hinge):g}, optimum {C * optimum:.6g}, aim {100 * kind.tol:g}%"
    )
    header = [caption, *("r = ∞" if np.isinf(r) else f"r = {r}" for r in limits)]
    return table(header, rows), {"optimum": C * optimum, "runs": numbers}


def measure_margin(page: Page) -> None:
    """Section 3 and 4.1: margin rescaling on all data."""
    found = {kind.name: sweep(page, kind, "margin, linear", list(MASTERS), LIMITS) for kind in data(page)}
    page.numbers["margin"] = {name: numbers for name, (_, numbers) in found.items()}
    page.text("margin", "\n\n".join(text for text, _ in found.values()))


def measure_slack(page: Page) -> None:
    """Section 4.2: variations I and II on chains."""
    kind, texts, numbers = data(page)[2], [], {}
    for title, hinge in (("Variation I", "slack, linear"), ("Variation II", "slack, quadratic")):
        text, numbers[hinge] = sweep(page, kind, hinge, list(MASTERS), LIMITS)
        texts += [f"{title}:", text]
    page.numbers["slack"] = numbers
    page.text("slack", "\n\n".join(texts))


def measure_rounds(page: Page) -> None:
    """How the gap falls with the passes for each limit, one simplex and product."""
    from matplotlib.figure import Figure

    cuts, _, chains = data(page)
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    panels, curves = figure.subplots(1, 3, sharey=True), {}
    shown = (("one simplex", cuts), ("product", cuts), ("product", chains))
    for axes, (name, kind) in zip(panels, shown, strict=True):
        problem = kind.problem()
        for color, r in zip(("C3", "C1", "C2", "C0", "k"), LIMITS, strict=True):
            solver = SD.plain(r=r, **MASTERS[name])
            outcome = run(problem, solver, tol=1e-6, cpu=0.05 if page.options.small else 10.0, iterations=400)
            label = "r = ∞" if np.isinf(r) else f"r = {r}"
            curves[f"{kind.name}, {name}, {label}"] = [(p, significant(g, 3)) for p, g in outcome.curve]
            axes.plot(*zip(*outcome.curve, strict=True), color=color, label=label)
        axes.set(title=f"{kind.name}, {name}", xlabel="argmax passes", xscale="log", yscale="log", ylim=(1e-6, 2))
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("certified relative gap")
    panels[0].legend()
    page.figure("rounds", figure)
    levels = {
        name: {f"{level:g}": next((p for p, gap in curve if gap <= level), None) for level in (1e-1, 1e-2, 1e-3, 1e-4)}
        for name, curve in curves.items()
    }
    page.numbers["rounds"] = levels
    rows = [[name, *("" if at is None else f"{at:.0f}" for at in found.values())] for name, found in levels.items()]
    page.text("rounds", table(["passes to a gap of", "10%", "1%", "0.1%", "0.01%"], rows))


def measure_finite(page: Page) -> None:
    """Section 3.2, (i): one simplex with the dimension of (w, gamma) as its limit, certified after every round."""
    rows, numbers = [], {}
    for kind in data(page)[:2]:
        problem = kind.problem()
        d = problem.n_weights
        for r in (1, 3, d // 2, d + 1, np.inf):
            rounds, gap, points = to_the_end(problem, SD.plain(master="one", r=r), 20 if page.options.small else 2000)
            name = "∞" if np.isinf(r) else f"{r}" + (" = d + 1" if r == d + 1 else "")
            rows.append([kind.name, d, name, rounds, f"{gap:.1e}", points])
            numbers[f"{kind.name}, r = {name}"] = {"rounds": rounds, "relative_gap": float(gap), "points": points}
    page.numbers["finite"] = numbers
    page.text("finite", table(["data", "d", "r", "rounds", "relative gap", "points with weight"], rows))


def to_the_end(problem: mm.Problem, solver: mm.SimplicialDecomposition, limit: int) -> tuple[int, float, int]:
    """Rounds to a relative gap of 1e-9, the gap after them, and how many points have weight at the end."""
    runner = Run.of(problem, np.random.default_rng(0))
    state = solver.init(runner, Start())
    rounds, gap = 0, np.inf
    while gap > 1e-9 and rounds < limit:
        state, rounds = solver.step(runner, state), rounds + 1
        gap = state.gap(problem.hinge(state.weights)) / max(state.dual, 1e-300)
    weights = np.empty(state.masters.kernel.n_points())  # of the one block
    state.masters.kernel.weights(0, weights)
    return rounds, max(gap, 0.0), int((weights > 0).sum())


def measure_claims(page: Page) -> None:
    """Sections 3.3, 3.4 and 4.1: what a point needs, argmax against projection; and what the library adds."""
    sizes, adds, numbers = [], [], {}
    for kind in data(page):
        problem = kind.problem()
        structure = problem.structure
        best = run(problem, SD(), tol=1e-3, cpu=60)
        scores = problem.augmented(best.weights)
        argmax = timed(partial(structure.argmax, scores), repeats=5)[1]
        # A step of the size that extragradient takes: 1 / ||F||.
        project = timed(partial(structure.project, problem.gold + scores / problem.norm), repeats=3)[1]
        dual = run(
            problem, mm.DualExtragradient(geometry=mm.Euclidean()), tol=1e-3, cpu=1 if page.options.small else 60
        )
        plain = run(problem, SD.plain(), tol=kind.tol, cpu=0.2 if page.options.small else 60)
        ours = run(problem, SD(), tol=kind.tol, cpu=60)
        sizes.append(
            [
                kind.name,
                f"{structure.n_parts:,}",
                f"{problem.n_weights + 1:,}",
                f"{1000 * significant(argmax):g}",
                f"{1000 * significant(project):g}",
                f"{significant(best.seconds):g}",
                f"{significant(dual.seconds):g}" if dual.reached else f"gap {100 * dual.certificate.relative_gap:.2g}%",
            ]
        )
        shown = f"{significant(plain.seconds):g} s, {plain.passes:.0f}"
        adds.append(
            [
                kind.name,
                f"{100 * kind.tol:g}%",
                shown if plain.reached else f"gap {100 * plain.certificate.relative_gap:.2g}% after 60 s",
                f"{significant(ours.seconds):g} s, {ours.passes:.0f}",
            ]
        )
        numbers[kind.name] = {
            "argmax_seconds": significant(argmax, 3),
            "project_seconds": significant(project, 3),
            "simplicial_cpu_seconds": significant(best.seconds, 3),
            "dual_extragradient_cpu_seconds": significant(dual.seconds, 3) if dual.reached else None,
            "plain_cpu_seconds": significant(plain.seconds, 3) if plain.reached else None,
            "default_cpu_seconds": significant(ours.seconds, 3),
        }
    page.numbers["claims"] = numbers
    first = [
        "data",
        "parts (z)",
        "numbers a point",
        "argmax pass, ms",
        "projection pass, ms",
        "simplicial decomposition to 0.1%, CPU s",
        "dual extragradient, Euclidean, to 0.1%, CPU s",
    ]
    second = ["data", "aim", "product as published", "`SimplicialDecomposition()`"]
    page.text("claims", table(first, sizes) + "\n\n" + table(second, adds))


if __name__ == "__main__":
    Page(
        "yu2007",
        __doc__.splitlines()[0],
        {
            "margin": measure_margin,
            "slack": measure_slack,
            "rounds": measure_rounds,
            "finite": measure_finite,
            "claims": measure_claims,
        },
    ).run()

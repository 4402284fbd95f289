"""Every solver on real data: objective gap against seconds and passes.

    python -m benchmarks.solvers.comparison [letters hansards horses] [--seconds 10] [--jobs 1] [--out out] ...

Tasks: OCR letters fold 0 (26 labels, C = 0.1), 100 hand-aligned Hansards pairs (matchings, false negatives cost 3), 40
Weizmann horses reduced to grids 40 cells wide (cuts). Each solver runs to a certified gap of 1e-4 or its seconds, all
of CPU time. The objective gap is ``(primal - best dual of all) / best dual``; a pass is one argmax or one projection of
every example. Perceptron and MIRA do not minimize the objective, so only their errors are reported. CRFsuite trains on
the letters too. Prints one JSON object, and writes the curves and one plot per task to --out;
docs/how-to/solvers_*.png are these plots.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks.timing import Budget, significant, timed
from benchmarks.workloads import DATA, hansards, horses, letters
from maxmargin.training import Examples

TOL = 1e-4
LEVELS = (1e-1, 1e-2, 1e-3)

MINIMIZERS: dict[str, mm.solvers.Solver] = {
    "block Frank-Wolfe": mm.BlockFrankWolfe(),
    "block Frank-Wolfe, gap sampling": mm.BlockFrankWolfe(sampling="gap", cache=0.25, kept_passes=1),
    "block Frank-Wolfe, 2013": mm.BlockFrankWolfe(direction="frank-wolfe", steps=1, kept_passes=0),
    "simplicial decomposition, product": mm.SimplicialDecomposition(),
    "simplicial decomposition, one": mm.SimplicialDecomposition(master="one"),
    "cutting planes, n-slack": mm.CuttingPlane(slacks="n"),
    "cutting planes, 1-slack": mm.CuttingPlane(slacks="one"),
    "extragradient": mm.Extragradient(),
    "dual extragradient": mm.DualExtragradient(),
    "dual extragradient, memory-efficient": mm.DualExtragradient(store_duals=False),
    "exponentiated gradient": mm.ExponentiatedGradient(),
    "projected gradient": mm.ProjectedGradient(),
    "projected subgradient": mm.ProjectedSubgradient(),
    "subgradient": mm.Subgradient(),
}
ONLINE: dict[str, mm.solvers.Solver] = {
    "averaged perceptron, 10 passes": mm.AveragedPerceptron(),
    "MIRA, 10 passes": mm.Mira(aggressiveness=0.1),
    "MIRA, 5-best, 10 passes": mm.Mira(k=5, aggressiveness=0.1),
}


def task(name: str, folder: Path) -> tuple[Any, list[Any], list[Any], tuple[list[Any], list[Any]] | None]:
    """An estimator, training data, and data to test on."""
    if name == "letters":
        return mm.ChainSVM(C=0.1), *letters(folder, [0]), letters(folder, range(1, 10))
    if name == "hansards":
        X, y = hansards(folder)
        return mm.MatchingSVM(C=0.1, loss=mm.losses.Hamming(false_positive=1, false_negative=3)), X, y, None
    return mm.CutSVM(C=1e-3), *horses(folder), horses(folder, "dev")


def run(name: str, options: argparse.Namespace) -> dict[str, Any]:
    estimator, X, y, test = task(name, options.data)
    examples, settings = Examples.fit(estimator._encoder(), X, y), estimator._settings()
    encoder, problem = examples.encoder, examples.problem(settings, settings.C)
    solutions: dict[str, mm.Solution] = {}
    budgets: dict[str, Budget] = {}
    refused: dict[str, str] = {}
    for label, solver in MINIMIZERS.items():
        if reason := solver.unsupported(problem):
            refused[label] = reason
            continue
        budgets[label] = Budget(options.seconds)
        stop, watch = mm.Stop(tol=TOL, max_iter=10**7), [budgets[label]]
        solutions[label] = mm.solve(problem, solver, stop=stop, callbacks=watch, n_jobs=options.jobs, random_state=0)
    best = max(solution.certificate.dual for solution in solutions.values())
    curves = {label: curve(solutions[label], budgets[label].times, problem, best) for label in solutions}
    rows = {label: row(solutions[label], curves[label], encoder, test) for label in solutions}
    lists = name == "letters"  # elsewhere k-best lists take an argmax call per variable
    for label, solver in ONLINE.items():
        if "best" in label and not lists:
            continue
        solution, seconds = timed(lambda solver=solver: mm.solve(problem, solver, n_jobs=options.jobs, random_state=0))
        rows[label] = {"seconds": significant(seconds), **errors(encoder, solution.weights, test)}
    if name == "letters":
        rows |= crfsuite(X, y, test)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / f"solvers_{name}.json").write_text(json.dumps(curves))
    draw(name, curves).savefig(options.out / f"solvers_{name}.png", dpi=130)
    return {"examples": len(X), "weights": problem.n_weights, "optimum": best, "solvers": rows, "refused": refused}


def curve(solution: mm.Solution, seconds: list[float], problem: mm.Problem, best: float) -> dict[str, list[float]]:
    n = max(problem.structure.n_examples, 1)
    records = solution.history
    return {
        "seconds": seconds,
        "passes": [record.argmax + record.projections / n for record in records],
        "objective": [max(record.certificate.primal - best, 0.0) / best for record in records],
        "certified": [record.certificate.relative_gap for record in records],
    }


def row(solution: mm.Solution, curve: dict[str, list[float]], encoder: Any, test: Any) -> dict[str, Any]:
    reached: dict[str, Any] = {}
    for level in LEVELS:
        below = [i for i, gap in enumerate(curve["certified"]) if gap <= level]
        reached[f"{level:g}"] = (
            {"seconds": significant(curve["seconds"][below[0]]), "passes": round(curve["passes"][below[0]], 1)}
            if below
            else None
        )
    return {
        "status": str(solution.status),
        "seconds": significant(curve["seconds"][-1]),
        "relative_gap": significant(solution.certificate.relative_gap),
        "to_certified_gap": reached,
        **errors(encoder, solution.weights, test),
    }


def errors(encoder: Any, weights: np.ndarray, test: Any) -> dict[str, float]:
    if test is None:
        return {}
    return {"test_error_percent": round(100 * (1 - mm.Model(weights, encoder).score(*test)), 2)}


def crfsuite(X: list[np.ndarray], y: list[list[int]], test: Any) -> dict[str, Any]:
    """CRFsuite's two best trainers on the same pixels, with one attribute per black pixel."""
    try:
        import pycrfsuite
    except ImportError:
        return {"CRFsuite": "not installed: pip install python-crfsuite"}
    from tempfile import TemporaryDirectory

    def items(words: list[np.ndarray]) -> list[Any]:
        return [pycrfsuite.ItemSequence([[str(k) for k in np.flatnonzero(row)] for row in word]) for word in words]

    rows = {}
    training, testing = items(X), items(test[0])
    with TemporaryDirectory() as folder:
        for algorithm in ("ap", "lbfgs"):
            trainer = pycrfsuite.Trainer(algorithm=algorithm, verbose=False)
            for sequence, labels in zip(training, y, strict=True):
                trainer.append(sequence, [str(label) for label in labels])
            began = time.process_time()
            trainer.train(f"{folder}/{algorithm}")
            seconds = time.process_time() - began
            tagger = pycrfsuite.Tagger()
            tagger.open(f"{folder}/{algorithm}")
            wrong = total = 0
            for sequence, labels in zip(testing, test[1], strict=True):
                wrong += sum(a != str(b) for a, b in zip(tagger.tag(sequence), labels, strict=True))
                total += len(labels)
            rows[f"CRFsuite {algorithm}"] = {
                "seconds": round(seconds, 2),
                "test_error_percent": round(100 * wrong / total, 2),
            }
    return rows


def draw(name: str, curves: dict[str, dict[str, list[float]]]) -> Any:
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.5, 5.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    colors, lines = colormaps["tab10"].colors, ("-", "--", ":")
    for axes, (against, title) in zip(panels, {"seconds": "CPU seconds", "passes": "passes"}.items(), strict=True):
        for number, (label, values) in enumerate(curves.items()):
            x, gap = np.array(values[against]), np.array(values["objective"])
            shown = (gap > 1e-6) & (x > 0)
            style = {"color": colors[number % 10], "linestyle": lines[number // 10]}
            axes.plot(x[shown], gap[shown], linewidth=1.7, label=label, **style)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(1e-5, 3.0)
        axes.set_xlabel(title)
        axes.grid(True, alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("(objective - optimum) / optimum")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=9)
    figure.suptitle(f"Solvers on {'the Hansards' if name == 'hansards' else name}: objective gap")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ("letters", "hansards", "horses")
    parser.add_argument("tasks", nargs="*", default=list(names), metavar="task", help=", ".join(names))
    parser.add_argument("--seconds", type=float, default=10.0, help="of CPU time, for each solver")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    if unknown := set(options.tasks) - set(names):
        parser.error(f"unknown task {sorted(unknown)[0]!r}; tasks are {', '.join(names)}")
    warnings.simplefilter("ignore")
    found = {name: run(name, options) for name in options.tasks}
    print(json.dumps({"jobs": options.jobs, "tol": TOL, "tasks": found}, indent=1))


if __name__ == "__main__":
    main()

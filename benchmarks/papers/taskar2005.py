"""The 2005 report (Taskar, Lacoste-Julien, Jordan): Figures 6 and 7, the scaling of its section 6.2, and kernels.

python -m benchmarks.papers.taskar2005 [--write] [--only segmentation horses alignment scaling kernels]
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Sequence
from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks.alignment import scaling as alignment_scaling
from benchmarks.alignment.dice_links import Links, matching
from benchmarks.papers import alignment_workloads as alignment
from benchmarks.papers.page import Page, table
from benchmarks.papers.taskar2005_alignment import corpus, measure_alignment
from benchmarks.papers.taskar2005_segmentation import measure_horses, measure_segmentation
from maxmargin.solvers import Stop
from maxmargin.tasks.alignment import Bitext

REPORT_SECONDS = {500: 600, 1000: 1800, 5000: 10800}
REPORT_LINKS = {500: 31_000, 1000: 99_000, 5000: 555_000}


def time_run(problem: mm.Problem, iterations: int, jobs: int) -> tuple[float, float]:
    """CPU seconds of the memory-efficient form, and the hinge loss at the end as a share of that of zero weights."""
    began = time.process_time()
    stop = Stop(tol=0.0, max_iter=iterations)
    done = mm.solve(problem, mm.DualExtragradient.plain(store_duals=False), stop=stop, n_jobs=jobs)
    return time.process_time() - began, done.certificate.hinge / done.history[0].primal


def measure_scaling(page: Page) -> None:
    small, jobs = page.options.small, page.options.jobs
    sizes, iterations = ((30, 60), 20) if small else ((500, 1000, 5000), 500)
    text = corpus(page)
    encoder = text.encoder(withheld=alignment.WITHHELD)
    rows, numbers = [], []
    for size in sizes:
        pairs = text.machine_aligned(encoder, size)
        real = alignment.workload(pairs, pairs, pairs).problem
        for name, problem in (("real", real), ("synthetic", alignment_scaling.workload(size))):
            cpu, hinge = time_run(problem, iterations, jobs)
            links = problem.structure.n_parts
            per_link = 1e9 * cpu / iterations / links
            seconds = REPORT_SECONDS.get(size, 0)
            rows.append(
                [
                    f"{size:,}",
                    name,
                    f"{links:,}",
                    problem.n_weights,
                    f"{cpu:.1f}",
                    f"{1e3 * cpu / iterations:.1f}",
                    f"{per_link:.0f}",
                    f"{100 * hinge:.0f}%",
                    f"{REPORT_LINKS.get(size, 0):,}",
                    f"{seconds / 60:.0f} min",
                    f"{1e3 * seconds / 500:,.0f}",
                ]
            )
            numbers.append({"pairs": size, "data": name, "links": links, "cpu": cpu, "ns per link": per_link})
    page.numbers["scaling"] = numbers
    heading = ["pairs", "data", "links", "weights", "CPU s", "ms an iteration", "ns a link and iteration", "H(w)/H(0)"]
    page.text(
        "scaling",
        f"{iterations} iterations of the memory-efficient form, the report's links and times beside ours:\n\n"
        + table([*heading, "report: links", "time", "ms an iteration"], rows),
    )


# Kernels.


def monomials(X: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Explicit features of the kernel ``(x'y + 1)^2``: all products of two features, with the constant among them."""
    found = []
    for x in X:
        whole = np.concatenate([np.ones((*x.shape[:2], 1)), x], axis=2)
        i, j = np.triu_indices(whole.shape[2])
        found.append(whole[:, :, i] * whole[:, :, j] * np.where(i == j, 1.0, np.sqrt(2.0)))
    return found


def scores_of(model: mm.MatchingSVM, X: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([one.ravel() for one in model.decision_function(X)])


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """The largest difference, relative to the largest number."""
    return float(np.abs(a - b).max() / np.abs(b).max())


def measure_kernels(page: Page) -> None:
    small = page.options.small
    text = alignment.synthetic(8, 100) if small else corpus(page)
    links = Links(Bitext([pair.source for pair in text.bitext], [pair.target for pair in text.bitext]))
    short = [i for i, pair in enumerate(text.pairs) if max(len(pair.source), len(pair.target)) <= 14]
    chosen, others = short[: (4 if small else 30)], short[(4 if small else 30) :]
    X, X_test = ([links(text.pairs[i].source, text.pairs[i].target) for i in part] for part in (chosen, others))
    y, y_test = (
        [matching(text.references[i], x.shape[:2]) for i, x in zip(part, inputs, strict=True)]
        for part, inputs in ((chosen, X), (others, X_test))
    )
    # Without regularization and with the report's own steps, so that iterates, not only solutions, are compared.
    settings: dict[str, Any] = {
        "C": np.inf,
        "loss": alignment.LOSS,
        "solver": mm.DualExtragradient.plain(),
        "tol": 0.0,
        "max_iter": 20 if small else 200,
        "n_jobs": page.options.jobs,
    }
    cases: list[tuple[str, Any, Any]] = [
        ("x'y", mm.features.Kernel("linear"), lambda inputs: inputs),
        ("(x'y + 1)²", mm.features.Kernel("poly", degree=2, gamma=1.0, coef0=1.0), monomials),
        ("exp(-‖x - y‖²/4)", mm.features.Kernel("rbf", gamma=0.25), None),
    ]
    rows, numbers = [], {}
    for name, kernel, expand in cases:
        tracemalloc.start()
        began = time.process_time()
        model = mm.MatchingSVM(features=kernel, **settings).fit(X, y)
        cpu = time.process_time() - began
        megabytes = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        dimension = len(model.solution_.weights)
        scores = scores_of(model, X_test)
        dual_form = mm.MatchingSVM(
            features=kernel, **settings | {"solver": mm.DualExtragradient.plain(store_weights=False)}
        )
        found = {"parts": difference(scores_of(dual_form.fit(X, y), X_test), scores)}
        explicit = ""
        if expand is not None:
            twin = mm.MatchingSVM(**settings).fit(expand(X), y)
            found["explicit"] = difference(scores, scores_of(twin, expand(X_test)))
            explicit = str(expand(X)[0].shape[2])
        numbers[name] = found
        shown = [f"{found[kind]:.0e}" if kind in found else "" for kind in ("explicit", "parts")]
        wrong = 100 * (1 - model.score(X_test, y_test))
        rows.append([name, explicit, dimension, *shown, f"{wrong:.1f}%", f"{cpu:.1f}", f"{megabytes:.0f}"])
    n = sum(x.shape[0] * x.shape[1] for x in X)
    page.numbers["kernels"] = {"links": n, "differences": numbers}
    heading = ["kernel", "explicit features", "rank", "from explicit features", "from vectors over links", "1 - score"]
    page.text(
        "kernels",
        f"{len(X)} hand-aligned pairs of at most 14 words, {n:,} links, {X[0].shape[2]} Dice features, "
        f"{settings['max_iter']} iterations; scores and errors on {len(X_test)} other pairs. Largest differences of "
        "scores from training on explicit features, and between the run that keeps weights and the one that keeps "
        "vectors over the links alone, both relative to the largest score; CPU seconds and memory of the first:\n\n"
        + table([*heading, "CPU s", "peak MB"], rows),
    )


BLOCKS = {
    "segmentation": measure_segmentation,
    "horses": measure_horses,
    "alignment": measure_alignment,
    "scaling": measure_scaling,
    "kernels": measure_kernels,
}

if __name__ == "__main__":
    Page("taskar2005", __doc__.splitlines()[0], BLOCKS).run()

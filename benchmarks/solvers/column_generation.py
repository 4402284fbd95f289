"""Chains with an L1 penalty: seconds of column generation to a certified gap, with each kind of master.

    python -m benchmarks.solvers.column_generation [--data ../shared/data] [--sentences 500] [--C 1] [--tol 1e-3] ...
    python -m benchmarks.solvers.column_generation --chains 2000 --rescaling margin [--C 1] [--tol 1e-3] ...

The data is chunking (CoNLL-2000) or, with ``--chains``, synthetic: ten labels and few weights (``auto.chains``). In
chunking, the features are words and parts of speech in a window of two (``workloads.chunking``), and transitions;
``--tags`` keeps only the parts of speech of three positions, for few weights. The objective is
``1/C ||w||_1 + sum_i max(0, 1 + w'df_i)`` over wrong outputs (``--rescaling none``, LP (6) of Wang and Shawe-Taylor
2009) or that of margin rescaling. One thread; a run ends after ``--seconds`` of CPU time.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from itertools import chain, product
from operator import eq
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks import workloads
from benchmarks.solvers.auto import chains
from benchmarks.timing import Budget, significant

SIZES: list[int] = []
TAGS = ("bias", "p-1=", "p0=", "p1=")


class Counted(mm.ColumnGeneration):
    """Column generation that records how many rows its masters have."""

    def step(self, run: Any, state: Any) -> Any:
        """One round."""
        state = super().step(run, state)
        SIZES.append(len(state.rows))
        return state


def sentences(folder: Path, part: str, count: int | None, *, tags: bool) -> tuple[list[Any], list[list[str]]]:
    """Attributes and chunk tags; ``tags`` keeps only the parts of speech of three positions."""
    X, y = workloads.chunking(folder, part, count)
    if tags:
        X = [[[name for name in word if name.startswith(TAGS)] for word in sentence] for sentence in X]
    return X, y


def data(options: argparse.Namespace) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """Training inputs and labels, and those of a test."""
    if options.chains:
        X, y = chains(options.chains + 500, 300, np.random.default_rng(0))
        return X[:-500], y[:-500], X[-500:], y[-500:]
    words, y = sentences(options.data, "train", options.sentences, tags=options.tags)
    X, known = workloads.indicators(words)
    words, y_test = sentences(options.data, "test", None, tags=options.tags)
    return X, y, workloads.indicators(words, known)[0], y_test


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=workloads.DATA)
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--chains", type=int, default=0, help="that many synthetic chains instead of sentences")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--rescaling", default="none", choices=["none", "margin"])
    parser.add_argument("--stabilize", type=int, nargs="*", default=[1])
    parser.add_argument("--age", nargs="*", default=["auto"], help="rounds, 0 for no limit, or auto")
    parser.add_argument("--k-best", type=int, nargs="*", default=[1])
    parser.add_argument("--masters", nargs="*", default=["highs", "newton", "proximal"])
    parser.add_argument("--tags", action="store_true")
    options = parser.parse_args()
    X, y, X_test, y_test = data(options)
    warnings.simplefilter("ignore")
    runs = {}
    for master, box, age, k in product(options.masters, options.stabilize, options.age, options.k_best):
        solver = Counted(master=master, stabilize=bool(box), age=age if age == "auto" else int(age) or None, k_best=k)
        settings = {"norm": "l1", "C": options.C, "rescaling": options.rescaling, "tol": options.tol}
        SIZES.clear()
        budget = Budget(options.seconds)
        model = mm.ChainSVM(solver=solver, callbacks=[budget], n_jobs=1, **settings).fit(X, y)
        used = budget.used()
        solution = model.solution_
        predicted, gold = (list(chain.from_iterable(labels)) for labels in (model.predict(X_test), y_test))
        runs[f"{master}, box {box}, age {age}, k_best {k}"] = row = {
            "status": str(solution.status),
            "cpu_seconds": significant(used),
            "rounds": solution.counters.iterations,
            "primal": significant(solution.certificate.primal, 10),
            "relative_gap": significant(solution.certificate.relative_gap),
            "nonzero": int((model.coef_ != 0).sum()),
            "rows": SIZES[-1] if SIZES else 0,
            "most_rows": max(SIZES, default=0),
            "accuracy": round(sum(map(eq, predicted, gold)) / len(gold), 4),
        }
        print(json.dumps({master: row}), file=sys.stderr, flush=True)
    report = {
        "examples": len(X),
        "weights": len(model.coef_),
        "C": options.C,
        "rescaling": options.rescaling,
        "tol": options.tol,
        "runs": runs,
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()

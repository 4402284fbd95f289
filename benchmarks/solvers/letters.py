"""Handwritten words (OCR letters): certified training on one fold, test error after training on nine, and CRFsuite.

    python -m benchmarks.solvers.letters [--data ../shared/data] [--tol 1e-3]

Plain chain features: 26 x 128 node weights and 26 x 26 transitions, no bias, Hamming loss, one thread. First, training
on fold 0 with C = 0.1 to a certified gap of --tol, tested on the other nine. Then training on folds 1 to 9, tested on
fold 0: C is chosen by training on folds 1 to 8 (with warm starts) and testing on 9; the final gap is 0.1, below which
the error does not fall. CRFsuite's averaged perceptron and L-BFGS get the same pixels in the same run.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import maxmargin as mm
from benchmarks.solvers.comparison import crfsuite
from benchmarks.timing import significant
from benchmarks.workloads import DATA, letters

GRID = (0.3, 1.0, 3.0)
TRAINED, TRIED = 0.1, 0.05
"""Relative gaps for the final model, and for the models that choose C."""


def fold_zero(folder: Path, tol: float) -> dict[str, Any]:
    X, y = letters(folder, [0])
    began = time.process_time()
    model = mm.ChainSVM(C=0.1, tol=tol, random_state=0).fit(X, y)
    seconds = time.process_time() - began
    solution = model.solution_
    return {
        "status": str(solution.status),
        "fit_seconds": round(seconds, 2),
        "solver": type(solution.solver).__name__,
        "iterations": solution.counters.iterations,
        "relative_gap": significant(solution.certificate.relative_gap),
        "primal": round(solution.certificate.primal, 2),
        "dual": round(solution.certificate.dual, 2),
        "test_error_percent": round(100 * (1 - model.score(*letters(folder, range(1, 10)))), 2),
    }


def nine_folds(folder: Path) -> dict[str, Any]:
    began = time.process_time()
    inner, held = letters(folder, range(1, 9)), letters(folder, [9])
    tried = mm.ChainSVM(tol=TRIED, warm_start=True, random_state=0)
    grid = {C: 1 - tried.set_params(C=C).fit(*inner).score(*held) for C in GRID}
    chosen = min(grid, key=lambda C: grid[C])
    selection = time.process_time() - began
    X, y = letters(folder, range(1, 10))
    test = letters(folder, [0])
    began = time.process_time()
    model = mm.ChainSVM(C=chosen, tol=TRAINED, random_state=0).fit(X, y)
    seconds = time.process_time() - began
    return {
        "fold_9_error_percent": {str(C): round(100 * error, 2) for C, error in grid.items()},
        "C": chosen,
        "selection_seconds": round(selection, 2),
        "fit_seconds": round(seconds, 2),
        "relative_gap": significant(model.solution_.certificate.relative_gap),
        "test_error_percent": round(100 * (1 - model.score(*test)), 2),
        "crfsuite": crfsuite(X, y, test),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--tol", type=float, default=1e-3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    one, nine = fold_zero(options.data, options.tol), nine_folds(options.data)
    print(json.dumps({"fold_0": one, "folds_1_to_9": nine}, indent=1))


if __name__ == "__main__":
    main()

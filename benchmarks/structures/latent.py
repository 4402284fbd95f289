"""Handwritten words with hidden sub-labels and with partly unknown labels; prints one JSON object.

    python -m benchmarks.structures.latent [--data FOLDER] [--tol 0.05] [--only PART]

OCR letters, 128 pixels, one thread. A letter is written in several ways: ``LatentSVM(ChainSVM(), n_sublabels=k)`` gives
each label k hidden ones. Folds 1 to 9 for training, fold 0 for testing; C, for each k on its own, by training on folds
1 to 8 and testing on 9. The plain chain (k = 1) has the same folds, the same choice of C and the same gap.

Unknown labels: folds 1 and 2 for training, at C = 0.3, fold 0 for testing. Half of the labels are unknown, or all are
given as one of three. The limit is the chain that knows all labels; a floor is the one that knows of each word only its
longest run of known labels, in the second case a label drawn from the three. CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import maxmargin as mm
from benchmarks.timing import significant, timed
from benchmarks.workloads import DATA, letters

GRID, SUBLABELS, ROUNDS, LABELS = (0.3, 1.0, 3.0), (1, 2, 3), 4, 26
Words = tuple[list[np.ndarray], list[Any]]


def chain(C: float, tol: float) -> mm.ChainSVM:
    return mm.ChainSVM(C=C, tol=tol, random_state=0, n_jobs=1, classes=list(range(LABELS)))


def trained(words: Words, C: float, tol: float, k: int) -> tuple[Any, float]:
    """The model with k sub-labels, and CPU seconds."""
    model: Any = chain(C, tol) if k == 1 else mm.LatentSVM(chain(C, tol), n_sublabels=k, rounds=ROUNDS)
    return timed(lambda: model.fit(*words))


def error(model: Any, words: Words) -> float:
    return round(100.0 * (1.0 - model.score(*words)), 2)


def sublabels(folder: Path, tol: float) -> dict[str, Any]:
    def words(folds: Iterable[int]) -> Words:
        return letters(folder, folds)

    inner, held, whole, test = words(range(1, 9)), words([9]), words(range(1, 10)), words([0])
    found: dict[str, Any] = {}
    for k in SUBLABELS:
        grid = {C: error(trained(inner, C, tol, k)[0], held) for C in GRID}
        chosen = min(grid, key=lambda C: grid[C])
        model, seconds = trained(whole, chosen, tol, k)
        found[str(k)] = {
            "weights": len(model.coef_),
            "fold_9_error_percent": {str(C): value for C, value in grid.items()},
            "C": chosen,
            "fit_seconds": round(seconds, 1),
            "objectives": [significant(value) for value in getattr(model, "objectives_", ())],
            "test_error_percent": error(model, test),
        }
    return found


def longest_run(labels: list[Any]) -> slice:
    """The longest run of known labels, which may be empty."""
    best = at = slice(0, 0)
    for place, label in enumerate(labels):
        at = (
            slice(at.start if at.stop == place and at.stop > at.start else place, place + 1)
            if label is not None
            else at
        )
        best = max(best, at, key=lambda run: run.stop - run.start)
    return best


def unknown(folder: Path, tol: float) -> dict[str, Any]:
    (X, y), test, rng = letters(folder, [1, 2]), letters(folder, [0]), np.random.default_rng(0)
    hidden = [[None if rng.random() < 0.5 else label for label in own] for own in y]
    three = [[{label, *rng.choice(LABELS, 2).tolist()} for label in own] for own in y]
    runs = [(x[run], own[run]) for x, own in zip(X, hidden, strict=True) if (run := longest_run(own)).stop > run.start]
    drawn = [[int(rng.choice(sorted(one))) for one in own] for own in three]
    base, found = chain(0.3, tol), {}
    found["all_known"] = error(chain(0.3, tol).fit(X, y), test)
    found["floors"] = {
        "half_unknown": error(chain(0.3, tol).fit([x for x, _ in runs], [own for _, own in runs]), test),
        "one_of_three": error(chain(0.3, tol).fit(X, drawn), test),
    }
    for name, known in (("half_unknown", hidden), ("one_of_three", three)):
        for formulation in ("best", "mean"):
            model, seconds = timed(
                lambda known=known, formulation=formulation: mm.LatentSVM(base, formulation=formulation).fit(X, known)
            )
            found[f"{name}_{formulation}"] = {
                "rounds": len(model.objectives_),
                "fit_seconds": round(seconds, 1),
                "test_error_percent": error(model, test),
            }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--tol", type=float, default=0.05)
    parts = {"sublabels": sublabels, "unknown": unknown}
    parser.add_argument("--only", choices=parts)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {name: part(options.data, options.tol) for name, part in parts.items() if options.only in (None, name)}
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()

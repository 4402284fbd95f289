"""Chunking (CoNLL-2000) with an L1 penalty: seconds to a certified gap of column generation with either master.

    python benchmarks/column_generation.py [--data ../shared/data] [--sentences 500] [--C 1] [--tol 1e-3] [--tags] ...

Indicators of the word and its neighbours and of the tags of parts of speech two positions each way; transitions. The
objective is ``1/C ||w||_1 + sum_i max(0, 1 + w'df_i)`` over wrong outputs (``--rescaling none``, LP (6) of Wang and
Shawe-Taylor 2009) or the margin re-scaled. Weights are signed. ``--tags``
keeps the tags of three positions alone, for few weights. One thread.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import maxmargin as mm

Sentence = list[list[str]]
SIZES: list[int] = []


class Counted(mm.ColumnGeneration):
    """Notes how many rows its masters have."""

    def step(self, run: Any, state: Any) -> Any:
        """One round."""
        state = super().step(run, state)
        SIZES.append(len(state.rows))
        return state


def sentences(file: Path) -> list[Sentence]:
    """Lists of (word, part of speech, chunk tag)."""
    found: list[Sentence] = [[]]
    with gzip.open(file, "rt") as lines:
        for line in lines:
            if line.strip():
                found[-1].append(line.split())
            elif found[-1]:
                found.append([])
    return [sentence for sentence in found if sentence]


def names(sentence: Sentence, at: int) -> list[str]:
    """The indicators of one position."""

    def entry(shift: int, column: int) -> str:
        here = at + shift
        return sentence[here][column].lower() if 0 <= here < len(sentence) else "-"

    words = [f"w{shift}={entry(shift, 0)}" for shift in (-1, 0, 1)]
    tags = [f"t{shift}={entry(shift, 1)}" for shift in (-2, -1, 0, 1, 2)]
    pairs = [f"tt{shift}={entry(shift, 1)}/{entry(shift + 1, 1)}" for shift in (-1, 0)]
    return [*words, *tags, *pairs, "bias"]


def rows(data: list[Sentence], index: dict[str, int], *, grow: bool, tags: bool = False) -> list[Any]:
    """One CSR matrix per sentence; ``tags`` leaves the parts of speech of three positions alone."""
    found = []
    for sentence in data:
        columns, starts = [], [0]
        for at in range(len(sentence)):
            for name in names(sentence, at):
                if tags and name.split("=")[0] not in ("t-1", "t0", "t1", "bias"):
                    continue
                if grow:
                    index.setdefault(name, len(index))
                if name in index:
                    columns.append(index[name])
            starts.append(len(columns))
        found.append((np.array(columns), np.array(starts)))
    width = len(index)
    return [sp.csr_array((np.ones(len(c)), c, s), shape=(len(s) - 1, width)) for c, s in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    folder = os.environ.get("MAXMARGIN_DATA", str(Path(__file__).parents[1] / "../shared/data"))
    parser.add_argument("--data", type=Path, default=Path(folder))
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--rescaling", default="none", choices=["none", "margin"])
    parser.add_argument("--stabilise", type=int, nargs="*", default=[1])
    parser.add_argument("--age", type=int, nargs="*", default=[3])
    parser.add_argument("--k-best", type=int, nargs="*", default=[1])
    parser.add_argument("--masters", nargs="*", default=["highs", "extragradient"])
    parser.add_argument("--tags", action="store_true")
    options = parser.parse_args()
    file = options.data / "tagging/conll2000/train.txt.gz"
    if not file.exists():
        sys.exit(f"{file} is not there: give --data or set MAXMARGIN_DATA")
    data, index = sentences(file)[: options.sentences], {}
    X, y = rows(data, index, grow=True, tags=options.tags), [[token[2] for token in sentence] for sentence in data]
    test = sentences(options.data / "tagging/conll2000/test.txt.gz")
    X_test, y_test = rows(test, index, grow=False), [[token[2] for token in sentence] for sentence in test]
    warnings.simplefilter("ignore")
    runs = {}
    cases = [
        (m, x, a, k) for m in options.masters for x in options.stabilise for a in options.age for k in options.k_best
    ]
    for master, box, age, k in cases:
        solver = Counted(master=master, stabilise=bool(box), age=age or None, k_best=k)
        settings = {"norm": "l1", "C": options.C, "rescaling": options.rescaling, "tol": options.tol}
        SIZES.clear()
        model = mm.ChainSVM(solver=solver, max_seconds=options.seconds, **settings).fit(X, y)
        solution = model.solution_
        pairs = [
            pair
            for found, gold in zip(model.predict(X_test), y_test, strict=True)
            for pair in zip(found, gold, strict=True)
        ]
        right, total = sum(a == b for a, b in pairs), len(pairs)
        runs[f"{master}, box {box}, age {age}, k_best {k}"] = {
            "status": str(solution.status),
            "seconds": round(solution.seconds, 2),
            "rounds": solution.counters.iterations,
            "primal": float(f"{solution.certificate.primal:.8g}"),
            "relative_gap": float(f"{solution.certificate.relative_gap:.2g}"),
            "nonzero": int((model.coef_ != 0).sum()),
            "rows": SIZES[-1],
            "most_rows": max(SIZES),
            "accuracy": round(right / total, 4),
        }
        print(json.dumps({master: runs[f"{master}, box {box}, age {age}, k_best {k}"]}), file=sys.stderr, flush=True)
    report = {
        "benchmark": "column_generation",
        "sentences": len(X),
        "weights": len(model.coef_),
        "C": options.C,
        "rescaling": options.rescaling,
        "tol": options.tol,
        "runs": runs,
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()

"""Rerankers on the Hansards and on made transcripts of speech, beside what people use. Prints one JSON object.

    python -m benchmarks.reranking [--only hansards rivals speech sparse] [--seeds 5] [--jobs 2] [--small] ...

- ``hansards``: cross-validated corpus BLEU of all methods on 100-best lists of two systems, 100 sentences each, with
  dense features and with sparse ones beside them.
- ``rivals``: LightGBM's lambdarank, a linear SVM on pairs and random search on the same features and folds.
- ``speech``: two scores and the length of 2,600 made lists of 100, tuned to the word error rate, against grids.
- ``sparse``: a million sparse features (benchmarks/reranking/sparse.py).

The speed of MERT: benchmarks/reranking/mert.py; of metrics: benchmarks/reranking/metrics.py.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.reranking import hansards, rivals, speech
from benchmarks.workloads import DATA

SMALL_SPARSE = ("--lists", "200", "--hypotheses", "20", "--features", "20000", "--masters", "25", "--limit", "5")


def main() -> None:
    parts = ["hansards", "rivals", "speech", "sparse"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the public data sets")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--seeds", type=int, default=5, help="splits of the Hansards into folds")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--small", action="store_true", help="a quick check: one seed, fewer folds, lists and draws")
    parser.add_argument("--plots", type=Path, default=None, help="folder of the pages, for plots in its tasks/")
    options = parser.parse_args()
    seeds, folds = (1, 3) if options.small else (options.seeds, 10)
    found: dict[str, Any] = {"jobs": options.jobs}
    if "hansards" in options.only:
        found["hansards"] = hansards.measure(options.data, seeds, folds, options.jobs)
    if "rivals" in options.only:
        draws = 100 if options.small else rivals.DRAWS
        found["rivals"] = rivals.measure(options.data, seeds, folds, draws, options.jobs)
    if "speech" in options.only:
        found["speech"] = speech.measure(260 if options.small else 2600, options.jobs, options.plots)
    if "sparse" in options.only:
        command = [sys.executable, "-m", "benchmarks.reranking.sparse", *(SMALL_SPARSE if options.small else ())]
        found["sparse"] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    if options.plots is not None and "hansards" in found:
        found["hansards"]["plot"] = hansards.plot(found["hansards"], found.get("rivals", {}), options.plots)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()

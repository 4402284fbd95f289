"""Segmentation of horses (images) and streets (laser scans), and its speed. Prints one JSON object.

    python -m benchmarks.segmentation [--only horses scans speed flow] [--seeds 3] [--jobs 2] [--plots docs]

- ``horses``: 100 training and 60 dev images. Wrong pixels and IoU of (a) the node classifier alone, (b) a cut tuned by
  a grid on the same probabilities, (c) averaged perceptron, (d) extragradient, (e) dual extragradient, (f) the default
  solver, each for regions alone and with the cut of pixels; by node classifier; CPU seconds of training and prediction.
- ``scans``: eight laser scans of Oakland, cross-validated by whole scans: ground against the rest, vegetation against
  facade, five classes; thinned to the papers' 7,000 points a scan and with all points.
- ``speed``: a photograph of one million pixels, a scan of one million points, strokes of seeds.
- ``flow``: minimum cuts against PyMaxflow (benchmarks/kernels/max_flow.py).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.segmentation import horses, oakland, speed
from benchmarks.workloads import DATA


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the public data sets")
    parser.add_argument("--only", nargs="+", choices=["horses", "scans", "speed", "flow"], default=None)
    parser.add_argument("--classifiers", nargs="+", default=["linear", "boosting", "lightgbm"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--plots", type=Path, default=None, help="folder of the pages, for plots in its tasks/")
    options = parser.parse_args()
    chosen = options.only or ["horses", "scans", "speed", "flow"]
    found: dict[str, Any] = {"jobs": options.jobs}
    if "horses" in chosen:
        found["horses"] = {
            name: horses.measure(options.data, name, options.seeds, options.jobs) for name in options.classifiers
        }
        if options.plots is not None:
            found["horses"]["curves"] = horses.curves(options.data, options.classifiers[0], options.jobs, options.plots)
    if "scans" in chosen:
        found["scans"] = oakland.measure(options.data, options.jobs)
    if "speed" in chosen:
        found["speed"] = speed.measure(options.jobs)
    if "flow" in chosen:
        from benchmarks.kernels import max_flow

        found["flow"] = max_flow.measure(["photograph", "drawn"], with_expansion=False)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()

"""Many fits leave nothing behind: no objects, open files, threads or memory."""

from __future__ import annotations

import runpy
from pathlib import Path

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "soak.py"


def test_many_fits_leave_nothing_behind():
    """Estimators, solvers, files, checkpoints, interrupted and failing fits, in a first round and then once more."""
    benchmark = runpy.run_path(str(BENCHMARK))
    once = 5 * len(benchmark["KINDS"])  # every kind in every manner
    found = benchmark["soak"](2 * once, [once, 2 * once])
    first, last = found[once], found[2 * once]
    for name in ("open_files", "threads"):
        assert last[name] == first[name], name
    assert last["objects"] - first["objects"] < once  # less than one for each fit: caches of other libraries
    assert last["rss_mb"] - first["rss_mb"] < 10

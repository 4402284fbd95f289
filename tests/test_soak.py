"""Many fits leave nothing behind: no objects, open files, threads or memory."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "soak.py"


def test_many_fits_leave_nothing_behind():
    """Estimators, solvers, files, checkpoints, interrupted and failing fits, in a first round and then once more.

    In a process of its own, whose memory no other test has grown and cut up.
    """
    soak = runpy.run_path(str(BENCHMARK))
    once = len(soak["KINDS"]) * soak["MANNERS"]
    command = [sys.executable, str(BENCHMARK), "--fits", str(2 * once), "--first", str(once)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    grown = json.loads(answer.stdout)["grown"]
    assert grown["open_files"] == 0
    assert grown["threads"] == 0
    assert grown["objects"] < once  # less than one for each fit: caches of other libraries
    assert grown["rss_mb"] < 10

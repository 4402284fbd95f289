"""Many fits leave nothing behind: no objects, open files, threads or memory."""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.record import ROOT
from benchmarks.robustness import soak


def test_many_fits_leave_nothing_behind():
    """Estimators, solvers, files, checkpoints, interrupted and failing fits, in a first round and then once more.

    In a process of its own, whose memory no other test has grown and cut up.
    """
    once = len(soak.KINDS) * soak.MANNERS
    command = [sys.executable, "-m", "benchmarks.robustness.soak", "--fits", str(2 * once), "--first", str(once)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, cwd=ROOT)
    grown = json.loads(answer.stdout)["grown"]
    assert grown["open_files"] == 0
    assert grown["threads"] == 0
    assert grown["objects"] < once  # less than one for each fit: caches of other libraries
    assert grown["rss_mb"] < 10

"""Run a benchmark and keep what it measured; pages take their figures from there.

    python -m benchmarks.record NAME benchmarks.ROOM.SCRIPT [ARGUMENTS ...]

The script prints one JSON object, which becomes the "figures" of ``NAME.json`` in ``benchmarks/results``, in rooms as
the scripts are, with the command, the date, the processor and the version and commit of the library. NAME is a Python
name, as pages use it in expressions. Nothing is kept of a run that fails, but what it printed is shown. Then
``make figures`` fills the pages.

A record with ``"transcribed": true`` was not written by a run, but copied from tables of an earlier one.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
DATA = Path(os.environ.get("MAXMARGIN_DATA", ROOT.parent / "shared" / "data"))
"""The default folder of the public data sets; tests that need them skip where it is absent."""


def keep(name: str, module: str, arguments: list[str], figures: dict[str, Any], *, source: str | None = None) -> None:
    """Write the figures of a run that has just ended, with where they come from, as a record.

    ``source`` is the commit at the start of the run.
    """
    from maxmargin import __version__

    if not name.isidentifier():
        raise SystemExit(f"{name!r} is not a Python name: pages could not use it in expressions")
    shown = [one.replace(str(DATA), "$MAXMARGIN_DATA") for one in arguments]
    record = {
        "benchmark": module,
        "command": " ".join(["python", "-m", module, *(one if "$" in one else shlex.quote(one) for one in shown)]),
        "date": datetime.date.today().isoformat(),
        "machine": f"{processor()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "version": __version__,
        "commit": commit() if source is None else source,
        "figures": figures,
    }
    place = ROOT.joinpath(*module.split("."))
    room = place if place.is_dir() else place.parent
    file = RESULTS / room.relative_to(ROOT / "benchmarks") / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def processor() -> str:
    """The model of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def commit() -> str:
    """The commit of the library, with "+" if its sources have changed since; "" outside of a repository."""
    head = git("rev-parse", "--short", "HEAD")
    changed = git("diff", "--quiet", "HEAD", "--", "src", "cpp")
    return "" if head.returncode else head.stdout.strip() + "+" * (changed.returncode != 0)


def git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)


def main() -> None:
    """Run the benchmark in a process of its own."""
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    name, module, *arguments = sys.argv[1:]
    source, environment = commit(), os.environ | {"MAXMARGIN_DATA": str(DATA)}
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, env=environment, text=True, check=False
    )
    if done.returncode:
        print(done.stdout, end="")
        sys.exit(done.returncode)
    keep(name, module, arguments, json.loads(done.stdout), source=source)


if __name__ == "__main__":
    main()

"""Size of the package and of what it needs, and the time until it can be used: one JSON object.

    python -m benchmarks.package [--wheel FILE] [--repeats N]

Run it in an environment with the wheel and nothing else. Sizes are those of its files, in MB. Times are seconds of a
new Python process: the least CPU time of some with files in the memory of the system ("warm"), which a busy machine
does not change much, and the wall-clock time of one after that has dropped them ("cold"; null where this process may
not drop them). Of the modules that are imported, those of a package count together.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path
from typing import Any

DROP = Path("/proc/sys/vm/drop_caches")
LINE = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)")
CASES = {
    "python": ["-c", ""],
    "import maxmargin": ["-c", "import maxmargin"],
    "import maxmargin; maxmargin.ChainSVM": ["-c", "import maxmargin; maxmargin.ChainSVM"],
    "maxmargin version": ["-m", "maxmargin", "version"],
    "maxmargin tag predict --help": ["-m", "maxmargin", "tag", "predict", "--help"],
}


def closure(name: str) -> set[str]:
    """The names of the distributions that one needs, without extras, with its own."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        one = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if one in found:
            continue
        try:
            needed = requires(one) or []
        except PackageNotFoundError:  # for another system or version
            continue
        found.add(one)
        waiting += [re.split(r"[^\w.-]", each, maxsplit=1)[0] for each in needed if "extra ==" not in each]
    return found


def installed_size(name: str) -> float:
    """The MB of the files of a distribution, without compiled modules of Python, which are made when they are used."""
    files = distribution(name).files or []
    paths = {Path(str(one.locate())) for one in files if one.suffix != ".pyc"}
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def run(arguments: list[str]) -> None:
    """Run a Python process."""
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


def warm_seconds(arguments: list[str]) -> float:
    """CPU seconds of a Python process."""
    before = os.times()
    run(arguments)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def cold_seconds(arguments: list[str]) -> float | None:
    """Seconds of the wall clock of the same without files in memory."""
    if not os.access(DROP, os.W_OK):
        return None
    os.sync()
    DROP.write_text("3", encoding="ascii")
    begin = time.perf_counter()
    run(arguments)
    return time.perf_counter() - begin


def shares(arguments: list[str]) -> dict[str, float]:
    """Milliseconds of importing the modules of each package, the five that take longest."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], check=True, capture_output=True, encoding="utf-8"
    )
    spent: dict[str, float] = defaultdict(float)
    for line in done.stderr.splitlines():
        if match := LINE.match(line):
            spent[match[2].split(".")[0]] += int(match[1]) / 1000
    most = sorted(spent, key=lambda one: -spent[one])[:5]
    return {one: round(spent[one], 1) for one in most}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, help="also the size of this wheel")
    parser.add_argument("--repeats", type=int, default=10)
    given = parser.parse_args()
    found: dict[str, Any] = {}
    if given.wheel is not None:
        found["wheel"] = {"file": given.wheel.name, "MB": round(given.wheel.stat().st_size / 1e6, 2)}
    found["installed MB of maxmargin"] = round(installed_size("maxmargin"), 1)
    own = {name: closure(name) for name in sorted(closure("maxmargin") - {"maxmargin"})}
    direct = {re.split(r"[^\w.-]", one)[0].lower() for one in requires("maxmargin") or [] if "extra ==" not in one}
    direct = {re.sub(r"[-_.]+", "-", one) for one in direct}
    sizes = {name: installed_size(name) for name in own}
    found["installed MB"] = {name: round(size, 1) for name, size in sorted(sizes.items(), key=lambda one: -one[1])}
    found["installed MB of all"] = round(sum(sizes.values()), 1)
    # What would not be installed without them.
    found["MB without which"] = {}
    for names in [*([one] for one in sorted(direct)), ["rich", "typer"]]:  # typer needs rich
        kept = set().union(*(own[other] for other in direct.difference(names)))
        found["MB without which"][" and ".join(names)] = round(sum(sizes[one] for one in set(own) - kept), 1)
    found["seconds"] = {}
    for case, arguments in CASES.items():
        cold = cold_seconds(arguments)
        warm = min(warm_seconds(arguments) for _ in range(given.repeats))
        found["seconds"][case] = {"cold": None if cold is None else round(cold, 2), "warm": round(warm, 2)}
    found["milliseconds of imports"] = {case: shares(CASES[case]) for case in list(CASES)[1:]}
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()

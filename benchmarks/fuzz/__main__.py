"""Hostile input for every way into the library: files, checkpoints, calls of the public API and of the kernels.

``python -m benchmarks.fuzz [--inputs N] [--seed S] [--jobs J] [--only NAME ...]`` runs N random inputs for each target
and prints one JSON object: per target how many inputs were accepted, how many refused with a clear error, and how many
ended badly (crash, hang, too much memory, an unclear error). The exit code is 1 if any did. ``--only`` takes modules
("files") or targets ("files.links"); ``--number K`` runs one input of one target in this process, to debug it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from benchmarks.fuzz.harness import BAD, find, outcome_of, run, targets

MODULES = ("files", "checkpoints", "calls", "kernels")


def chosen(only: list[str]) -> Iterator[tuple[str, str]]:
    """Modules and names of the targets to run."""
    named = {name.partition(".")[0] for name in only}
    for module in MODULES:
        if only and module not in named:
            continue
        for target in targets(module):
            if not only or module in only or f"{module}.{target.name}" in only:
                yield module, target.name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=25_000, help="random inputs for each target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="targets at a time")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help=f"of {', '.join(MODULES)} or their targets"
    )
    parser.add_argument("--number", type=int, help="run this input of the one target alone")
    options = parser.parse_args()
    targets = list(chosen(options.only))
    if not targets:
        parser.error(f"no target is called {' or '.join(options.only)}")
    if options.number is not None:
        if len(targets) != 1:
            parser.error("--number needs the one target that --only names")
        print(*outcome_of(find(*targets[0]), options.seed, options.number), sep="\n")
        return
    with ThreadPoolExecutor(options.jobs) as pool:
        reports = list(pool.map(lambda target: run(*target, options.inputs, options.seed), targets))
    totals = {outcome: sum(report.outcomes[outcome] for report in reports) for outcome in BAD}
    inputs = sum(report.inputs for report in reports)
    print(json.dumps({"inputs": inputs, **totals, "targets": [report.as_dict() for report in reports]}, indent=1))
    sys.exit(any(totals.values()))


if __name__ == "__main__":
    main()

"""A short run of fuzzing targets in this process."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "fuzz"))

from harness import BAD, outcome_of

SEED = 7


def targets(module: str) -> list[str]:
    """The names of a module's targets."""
    return [target.name for target in import_module(module).targets()]


def all_good(module: str, name: str, inputs: int) -> None:
    """Run some inputs of a target: each is accepted or refused with a clear error."""
    target = next(target for target in import_module(module).targets() if target.name == name)
    for number in range(inputs):
        outcome, detail = outcome_of(target, SEED, number)
        if outcome in BAD:
            pytest.fail(f"python benchmarks/fuzz --only {module}.{name} --seed {SEED} --number {number}: {detail}")

"""A short run of fuzzing targets in this process."""

from __future__ import annotations

import pytest

from benchmarks.fuzz import harness
from benchmarks.fuzz.harness import BAD, outcome_of

SEED = 7


def targets(module: str) -> list[str]:
    """The names of a module's targets."""
    return [target.name for target in harness.targets(module)]


def all_good(module: str, name: str, inputs: int) -> None:
    """Run some inputs of a target: each is accepted or refused with a clear error."""
    target = harness.find(module, name)
    for number in range(inputs):
        outcome, detail = outcome_of(target, SEED, number)
        if outcome in BAD:
            pytest.fail(f"python -m benchmarks.fuzz --only {module}.{name} --seed {SEED} --number {number}: {detail}")

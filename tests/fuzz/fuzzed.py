"""A short run of fuzzing targets in this process."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.fuzz import harness
from benchmarks.fuzz.harness import BAD, outcome_of

SEED = 7


def targets(module: str) -> list[str]:
    """The names of a module's targets."""
    return [target.name for target in harness.targets(module)]


def all_good(module: str, name: str, inputs: int) -> Counter[str]:
    """Run some inputs of a target: each is accepted or refused with a clear error. Returns how many were which."""
    target, outcomes = harness.find(module, name), Counter()
    for number in range(inputs):
        outcome, detail = outcome_of(target, SEED, number)
        outcomes[outcome] += 1
        if outcome in BAD:
            pytest.fail(f"python -m benchmarks.fuzz --only {module}.{name} --seed {SEED} --number {number}: {detail}")
    return outcomes

"""A short run of hostile calls of the compiled functions, and that none of them is left out."""

from __future__ import annotations

import inspect
import sys

import numpy as np
import pytest

from benchmarks.fuzz.harness import outcome_of, targets
from benchmarks.fuzz.kernel_calls import TOPICS
from maxmargin import _kernels
from maxmargin.tasks import _kernels as task_kernels

TARGETS = {target.name: target for target in targets("kernels")}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the harness reads memory the way Linux shows it")
@pytest.mark.parametrize("name", TARGETS)
def test_hostile_calls_are_refused_or_harmless(name: str) -> None:
    outcomes = [outcome_of(TARGETS[name], 1, number) for number in range(60)]
    assert [found for found in outcomes if found[0] not in ("accepted", "refused")] == []
    assert {found for found, _ in outcomes} == {"accepted", "refused"}


def test_every_function_and_method_is_called() -> None:
    named = set()
    for topic in TOPICS.values():
        for seed in range(8):
            calls, own = topic(np.random.default_rng(seed)), set()
            while calls:
                fresh = {call.name: call for call in calls if call.name not in own}  # one call of each is enough
                own |= fresh.keys()
                calls = [more for call in fresh.values() for more in follow(call)]
            named |= own
    assert bound_names() - named == set()


def follow(call):
    try:
        return call.then(call.function(*call.arguments))
    except (ValueError, LookupError, ArithmeticError):  # some calls fit only after others
        return []


def bound_names() -> set[str]:
    """Functions, classes that can be made, and methods of both modules."""
    found = set()
    for module in (_kernels, task_kernels):
        for name, value in vars(module).items():
            if inspect.isclass(value):
                never = "Oracle", "FeatureMap", "DependencyFeatures", "Hinge", "MertLists"
                made = "__init__" in vars(value) and name not in never
                found |= {name} if made else set()
                if name != "Oracle":
                    found |= {f"{name}.{one}" for one in vars(value) if one == "__len__" or not one.startswith("_")}
            elif callable(value) and not name.startswith("_"):
                found.add(name)
    return found

"""Odd arguments of the public API are accepted or refused in words: a short run of ``benchmarks/fuzz/calls.py``."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

if not Path("/proc/self/clear_refs").exists():
    pytest.skip("the harness reads a process's memory from /proc", allow_module_level=True)
pytest.importorskip("skimage", reason="segmentation needs the images extra")
pytest.importorskip("matplotlib", reason="plots need the plot extra")

from benchmarks.fuzz import calls, explain_calls, harness

INPUTS = {"alignment": 10, "reranking": 20, "segmentation": 20, "fit": 30, "whole": 20}
"""Of targets that train models; of others there are more."""


@pytest.fixture(scope="module")
def targets():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # models of short runs, of which nobody expects a closed gap
        return {target.name: target for target in calls.targets()}


def test_every_target_is_run(targets):
    assert set(targets) == set(calls.NAMES)


@pytest.mark.parametrize("name", calls.NAMES)
def test_odd_arguments_are_accepted_or_refused_in_words(targets, name):
    for number in range(INPUTS.get(name, 60)):
        outcome, detail = harness.outcome_of(targets[name], 1, number)
        assert outcome in ("accepted", "refused"), f"{name}, input {number}: {outcome}\n{detail}"


def test_explanations_with_good_arguments_are_made_and_shown():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # models of short runs
        for name, (call, arguments) in explain_calls.calls(calls.KINDS, calls.fitted).items():
            for seed in range(4):
                given = arguments(np.random.default_rng(seed))
                try:
                    call(**given)
                except ValueError as error:
                    raise AssertionError(f"{name} with {', '.join(given)}") from error


ONCE_UNCLEAR = {
    "models": (1651, 1669),
    "whole": (1764,),
    "tagging": (128, 1169, 1817),
    "alignment": (1706,),
    "reranking": (884, 1021),
    "segmentation": (263, 380, 964, 1509),
}
"""Inputs of seed 0 that were refused by other libraries' words: sparse matrices, deep lists, views of one number."""


@pytest.mark.parametrize("name", ONCE_UNCLEAR)
def test_inputs_that_were_refused_without_words(targets, name):
    for number in ONCE_UNCLEAR[name]:
        outcome, detail = harness.outcome_of(targets[name], 0, number)
        assert outcome in ("accepted", "refused"), f"{name}, input {number}: {outcome}\n{detail}"

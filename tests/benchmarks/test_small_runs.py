"""Benchmarks that need no data run, at small size, and print one JSON object; all others are imported by test_docs."""

from __future__ import annotations

import json
import runpy
import sys

import pytest

COMMANDS = (
    "kernels.viterbi --examples 20 --length 6 --labels 5 --repeats 1",
    "kernels.forward_backward --examples 20 --length 6 --labels 5 --repeats 1",
    "kernels.matching_projection --quick --repeats 1",
    "kernels.matching_capacities --examples 20 --repeats 1",
    "kernels.cut_projection --nodes 200 --iterations 8",
    "kernels.relaxation --sides 4",
    "alignment.scaling --pairs 20 --iterations 5 --jobs 1",
    "segmentation.scaling --iterations 2 --jobs 1",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_runs_and_prints_json(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module, *arguments = command.split()
    monkeypatch.setattr(sys, "argv", [module, *arguments])
    runpy.run_module(f"benchmarks.{module}", run_name="__main__")
    assert json.loads(capsys.readouterr().out)

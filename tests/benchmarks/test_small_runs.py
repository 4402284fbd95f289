"""Quick benchmarks that need no data run, at small size, and print one JSON object; test_docs imports all of them."""

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
    "kernels.features --small --repeat 1",
    "kernels.networks --sides 6 --images 2 --labels 3 --tol 0.1 --limit 1",
    "solvers.column_generation --chains 10 --seconds 1",
    "structures.pairings --most 10",
    "structures.nonprojective --most 10 --sentences 5",
    "structures.dependencies --sentences 3",
    "reranking.mert --small",
    "reranking.sparse --one perceptron --lists 40 --hypotheses 20 --features 500",
    "robustness.soak --fits 4 --first 2",
    "alignment.scaling --pairs 20 --iterations 5 --jobs 1",
    "segmentation.scaling --iterations 2 --jobs 1",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_runs_and_prints_json(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module, *arguments = command.split()
    monkeypatch.setattr(sys, "argv", [module, *arguments])
    monkeypatch.delitem(sys.modules, f"benchmarks.{module}", raising=False)  # others may have imported it
    runpy.run_module(f"benchmarks.{module}", run_name="__main__")
    assert json.loads(capsys.readouterr().out)

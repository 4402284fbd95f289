"""The example of pairings."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import maxmargin as mm

ROOT = Path(__file__).parents[2]


def test_the_example_runs(tmp_path, capsys):
    spec = importlib.util.spec_from_file_location("disulfide_bonds", ROOT / "examples" / "disulfide_bonds.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    outcome = module.main(str(tmp_path / "bonds.png"), 80, 100)
    assert (tmp_path / "bonds.png").stat().st_size > 10_000
    assert outcome["patterns"] > outcome["one by one"] > outcome["nearest"]
    assert outcome["sure"] > outcome["patterns"] > 0.6
    assert "gold bonds above" in capsys.readouterr().out


def test_graphs_without_a_perfect_pairing_are_refused() -> None:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(4, 4, 2)) for _ in range(3)]
    model = mm.PairingSVM(perfect=True).fit(X, [[(0, 1), (2, 3)]] * 3)
    for found in (model.predict, lambda inputs: model.k_best(inputs, 2)):
        with pytest.raises(ValueError, match="example 1: it has no legal output"):
            found([X[0], rng.normal(size=(3, 3, 2))])

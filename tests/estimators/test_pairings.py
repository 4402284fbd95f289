"""The example of pairings."""

from __future__ import annotations

import importlib.util
from pathlib import Path

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

"""Tables of scores: what they say, labels that look like markup, JSON, the picture."""

from __future__ import annotations

import json

import pytest
from rich.console import Console

from maxmargin.tasks.tagging.metrics.scores import evaluate
from maxmargin.tasks.tagging.metrics.tables import (
    confusions_table,
    draw_confusions,
    most_confused,
    rates_table,
    scores_table,
    summary,
)

GOLD = [["B-NP", "I-NP", "O", "B-[red]"], ["B-NP", "O"]] * 5
FIRST = [["B-NP", "I-NP", "O", "B-NP"], ["B-NP", "O"]] * 5
SECOND = [["B-NP", "O", "O", "B-NP"], ["B-NP", "B-NP"]] * 5


def shown(table):
    console = Console(width=200, force_terminal=False)
    with console.capture() as capture:
        console.print(table)
    return [line.split() for line in capture.get().splitlines()]


def test_scores_of_two_systems():
    scores = [evaluate(GOLD, predicted, known=["B-NP", "I-NP", "O"]) for predicted in (FIRST, SECOND)]
    metadata = json.loads(json.dumps(summary(["one", "two"], scores)))
    assert [system["predicted_file"] for system in metadata["systems"]] == ["one", "two"]
    assert metadata["systems"][0]["chunks"]["f1"] == pytest.approx(2 / 3)
    assert metadata["systems"][1]["against_first"]["accuracy"]["difference"] == pytest.approx(-2 / 6)
    rows = shown(scores_table(["one", "two"], metadata))
    assert rows[0] == ["one", "two"]
    assert ["chunk", "F1", "%", "66.67", "28.57"] in rows
    assert ["token", "accuracy", "%", "83.33", "50.00"] in rows
    assert ["labels", "unknown", "to", "it", "B-[red]", "B-[red]"] in rows
    assert ["token", "accuracy", "against", "first", "-33.33"] in rows


def test_one_system_without_chunks():
    scores = evaluate([["NN", "VB"]], [["NN", "NN"]])
    metadata = summary(["one"], [scores])
    assert set(metadata["systems"][0]["intervals"]) == {"accuracy", "sentence_accuracy"}
    rows = shown(scores_table(["one"], metadata))
    assert not any("chunk" in row or "chunks" in row or "against" in row or "unknown" in row for row in rows)
    assert ["token", "accuracy", "%", "50.00"] in rows


def test_rates_and_confusions():
    metadata = evaluate(GOLD, FIRST).summary()
    rows = shown(rates_table(metadata["chunks"]["types"], "type"))
    assert rows[0][0] == "type"
    assert rows[1:] == [["NP", "66.67", "100.00", "80.00", "10", "15", "10"], ["[red]", *["0.00"] * 3, "5", "0", "0"]]
    rows = shown(rates_table(metadata["labels"], "label"))
    assert ["B-[red]", "0.00", "0.00", "0.00", "5", "0", "0"] in rows
    rows = shown(confusions_table(metadata["confusions"], metadata["tokens"] - metadata["correct"]))
    assert rows[1:] == [["B-[red]", "B-NP", "5", "100.0"]]


def test_picture(tmp_path):
    pytest.importorskip("matplotlib")
    scores = evaluate([[*GOLD[0], "$x_1$"]], [[*SECOND[0], "$x_1$"]])
    draw_confusions(scores, tmp_path / "all.png")
    draw_confusions(scores, tmp_path / "few.png", limit=2)
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in ("all.png", "few.png"))
    assert most_confused(scores, 3) == ["B-NP", "B-[red]", "I-NP"]
    with pytest.raises(ValueError, match="limit must be at least 1"):
        draw_confusions(scores, tmp_path / "none.png", limit=0)
    with pytest.raises(ValueError, match="for each of the 0 labels"):
        draw_confusions(evaluate([], []), tmp_path / "none.png")

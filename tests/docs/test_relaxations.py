"""The table of docs/explanation/relaxations.md names every structure and says of each what its class says."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from maxmargin import structures
from maxmargin.structures import Structure

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "relaxations.md"
CLASSES = {
    name: one
    for name in dir(structures)
    if inspect.isclass(one := getattr(structures, name)) and issubclass(one, Structure) and not inspect.isabstract(one)
}
ROWS = {
    name: [cell.strip() for cell in cells.split("|")]
    for name, cells in re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.M)
}


def test_every_structure_has_a_row() -> None:
    assert ROWS.keys() == CLASSES.keys()


@pytest.mark.parametrize("name", CLASSES)
def test_cells_say_what_the_class_says(name: str) -> None:
    one = CLASSES[name]
    argmax, k_best, marginals, _, slack, _ = ROWS[name]
    sometimes = issubclass(one, structures.Associative | structures.LinearProgram)  # by the number of labels, as told
    assert ("relaxed" in argmax) == (one.relaxed or sometimes)
    assert ("exact" in argmax) == (not one.relaxed)
    assert (k_best == "no") == one.relaxed
    assert (marginals == "exact") == (not one.marginals_unsupported)
    assert ("#P-hard" in marginals) == ("#P-hard" in one.marginals_unsupported)
    assert slack == ("relaxed" if one.slack_relaxed else "exact")

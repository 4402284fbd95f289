"""Figures of the pages are those of the records of the benchmarks, which name benchmarks that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pages import name_of

from benchmarks import figures
from benchmarks.record import RESULTS, ROOT

RECORDS = sorted(RESULTS.rglob("*.json"))


def test_pages_have_the_figures_of_the_records() -> None:
    names = figures.measured()
    for page in figures.pages():
        text = page.read_text(encoding="utf-8")
        assert figures.broken(text) == [], name_of(page)
        assert figures.filled(text, names) == text, f"{name_of(page)}: run make figures, do not type figures"


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_records_name_a_benchmark_and_the_run(record: Path) -> None:
    found = json.loads(record.read_text(encoding="utf-8"))
    texts = [page.read_text(encoding="utf-8") for page in figures.pages()]
    script = ROOT.joinpath(*found["benchmark"].split("."))
    assert script.with_suffix(".py").exists() or (script / "__main__.py").exists()
    assert found["command"].startswith(f"python -m {found['benchmark']}")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", found["date"])
    assert found["machine"]
    assert found["figures"]
    assert str(Path.home()) not in record.read_text(encoding="utf-8")
    templates = [one for text in texts for one in figures.templates(text)]
    assert any(re.search(rf"\b{record.stem}\b", template) for template in templates), "no page has a figure of it"


NAMES = {"speed": {"ours": 1234.5, "theirs": None, "rows": [{"n": 10, "ms": 0.0416}, {"n": 20, "ms": 3.0}]}}


@pytest.fixture
def names() -> dict[str, object]:
    return json.loads(json.dumps(NAMES), object_hook=figures.Object)


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("speed.ours:,.1f", "1,234.5"),
        ("speed.ours:2s", "1,200"),
        ("speed['ours'] / 1000:2s", "1.2"),
        ("speed.theirs:.1f", ""),
        ("{speed.rows[0].n} to {speed.rows[1].n}", "10 to 20"),
        ("[row.ms for row in speed.rows]:2s", "0.042 | 3.0"),
        ("min(row.ms for row in speed.rows):.0e", "4e-02"),
        ("1e-7:2s", "1.0e-7"),
        ("0.0:2s", "0"),
    ],
)
def test_a_figure_in_a_line(template: str, filled: str, names: dict[str, object]) -> None:
    page = f"The figure <!-- figure {template} -->old<!-- / -->, and another."
    assert figures.filled(page, names) == page.replace("old", filled)


def test_a_table_has_a_line_for_each_row(names: dict[str, object]) -> None:
    begin = (
        "<!-- figures\nlet rows = speed.rows\n| n | ms |\n|--:|--:|\nfor row in rows: | {row.n} | {row.ms:2s} |\n-->\n"
    )
    page = f"Before.\n\n{begin}| old |\n<!-- /figures -->\n\nAfter."
    table = "| n | ms |\n|--:|--:|\n| 10 | 0.042 |\n| 20 | 3.0 |\n"
    new = figures.filled(page, names)
    assert new == page.replace("| old |\n", table)
    assert figures.filled(new, names) == new
    assert figures.broken(new) == []


def test_names_hold_in_the_rest_of_the_page(names: dict[str, object]) -> None:
    page = "<!-- figures\nlet low = min(row.ms for row in speed.rows)\n-->\n<!-- /figures -->\n\nAt least <!-- figure "
    assert figures.filled(f"{page}low:2s -->1<!-- / --> ms", names) == f"{page}low:2s -->0.042<!-- / --> ms"


@pytest.mark.parametrize(
    "page",
    [
        "half <!-- figure speed.ours --> of a pair",
        "half of a pair <!-- / -->",
        "<!-- figures\n| n |\n-->\n| 1 |\n",
        "A paragraph that would end here:\n<!-- figure speed.ours -->1,234<!-- / --> is in the next one.",
    ],
)
def test_broken_markers_are_found(page: str) -> None:
    assert figures.broken(page)


def test_a_name_that_was_not_measured_is_an_error(names: dict[str, object]) -> None:
    with pytest.raises(AttributeError, match="there is no 'our' beside 'ours'"):
        figures.filled("a <!-- figure speed.our -->1<!-- / -->", names)


def test_all_errors_of_a_page_are_found(names: dict[str, object]) -> None:
    errors: list[str] = []
    page = "a <!-- figure speed.our -->1<!-- / -->\n\n<!-- figures\nlet x = lost.date\n-->\n<!-- /figures -->\n"
    page += "\nb <!-- figure speed.ours -->3<!-- / -->"
    assert figures.filled(page, names, errors) == page.replace(">3<", ">1234.5<")
    assert [error.partition(": ")[0] for error in errors] == ["line 1", "line 3"]
    assert "'our'" in errors[0]
    assert "'lost'" in errors[1]

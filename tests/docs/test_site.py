"""The sources of the site: every page is listed, every public name and every option has its place; nothing is built."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer.main
from pages import ROOT

import maxmargin
from maxmargin.cli import app


@pytest.fixture(scope="module")
def site():
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        from _sphinx import api, commands, sources
    finally:
        sys.path.remove(str(ROOT / "docs"))
    return api, commands, sources


def listed_from(sources: ModuleType, name: str, seen: set[str]) -> set[str]:
    """The pages that an index page leads to by its tables of contents."""
    seen.add(name)
    page = sources.pages().get(name)
    if page is not None and name.endswith("index"):
        for _, found in sources.listed(name, page.read_text(encoding="utf-8")):
            for one in found.keys() - seen:
                listed_from(sources, one, seen)
    return seen


def test_every_page_is_in_a_table_of_contents(site) -> None:
    sources = site[2]
    linked = {
        os.path.relpath(ROOT / path, ROOT): name
        for path, name in sources.ELSEWHERE.items()
        if (ROOT / path).is_file()
        and any(sources.place_of(page.parent / link[0]) == f"{name}.md"
                for page in sources.pages().values() for link in sources.links(page.read_text(encoding="utf-8")))
    }  # fmt: skip
    docs = {name for name, path in sources.pages().items() if path.is_relative_to(sources.DOCS)}
    missing = (docs | {*linked.values()}) - listed_from(sources, "index", set())
    assert not missing, f"list {sorted(missing)} in the index.md of their part"


def test_parts_of_the_site_are_in_order(site) -> None:
    sources = site[2]
    ((_, parts),) = sources.listed("index", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    titles = ["Get started", "Tutorials", "How-to", "Explanation", "Papers", "Gallery", "Reference", "Changelog"]
    assert [*parts.values()] == titles


def test_links_lead_to_their_places_on_the_site(site, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = site[2]
    text = """[a](../../benchmarks/RESULTS.md#letters) [b](../papers) [c](training.md) [d](../../examples/demo.py)
        ![e](../demo.png) [f](https://example.org/a.md) [g](missing.md) [h](#here)
```text
[i](../../CHANGELOG.md)
```
"""
    found = [match[0] for match in re.finditer(r"(?<=\]\()[^)]*", sources.on_the_site("how-to/scaling", text))]
    expected = ["../reference/benchmarks/index.md#letters", "../papers/index.md", "training.md"]
    expected += ["../_files/examples/demo.py", "../demo.png", "https://example.org/a.md", "missing.md", "#here"]
    expected += ["../../CHANGELOG.md"]
    assert found == expected


def test_marks_of_figures_are_left_out(site) -> None:
    text = "a <!-- figure x:.1f -->1.9<!-- / --> b\n\n<!-- figures\n| {x} |\n-->\n| 3 |\n<!-- /figures -->\n<!-- a -->"
    assert site[2].on_the_site("how-to/scaling", text) == "a 1.9 b\n\n\n\n\n| 3 |\n\n<!-- a -->"


def test_long_code_in_tables_keeps_all_its_characters(site) -> None:
    pytest.importorskip("sphinx", reason="Sphinx is not installed")
    from _sphinx import markdown
    from docutils import nodes
    from docutils.utils import new_document

    document, texts = new_document("page"), ["a.name_of_many_characters(first,\nsecond_of_both)", "a_short_name"]
    table = nodes.table()
    document += table
    for text in texts:
        table += nodes.literal(text, text)
    markdown.breaks(None, document, "page")
    long, short = table.findall(nodes.literal)
    pieces, breaks = long.children[::2], long.children[1::2]
    assert "".join(piece.astext() for piece in pieces) == texts[0]
    assert {one.astext() for one in breaks} == {"<wbr>"}
    assert short.astext() == texts[1]
    assert len(short) == 1


def test_generated_pages_head_the_list_of_their_page(site) -> None:
    text = site[2].on_the_site("reference/index", "# Reference\n\n- [The model file](model-format.md): bytes.\n- b\n")
    assert text.startswith("# Reference\n\n- [API](api/index.rst): every public name.\n- [Command line](commands/")
    assert text.endswith("\n- [The model file](model-format.md): bytes.\n- b\n")


def test_every_example_has_a_place_in_the_gallery(site) -> None:
    sources = site[2]
    found = {f"{path.parent.name}/{path.name}" for path in sources.GALLERY.glob("*/plot_*.py")}
    assert found == {f"{folder}/plot_{name}.py" for folder, names in sources.SECTIONS.items() for name in names}


def test_sources_are_laid_out_once(site, tmp_path: Path) -> None:
    sources = site[2]
    sources.stage(tmp_path, {"reference/api/index.rst": "API\n===\n"})
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert {f"{name}.md" for name in sources.pages()} <= {path.relative_to(tmp_path).as_posix() for path in times}
    sources.stage(tmp_path, {"reference/api/index.rst": "API\n===\n"})
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == times
    (tmp_path / "old.md").write_text("# Old")
    sources.stage(tmp_path, {})
    assert not (tmp_path / "old.md").exists()
    assert not (tmp_path / "reference" / "api" / "index.rst").exists()


def test_every_public_name_has_a_docstring_and_a_page(site) -> None:
    api = site[0]
    names = api.public()
    assert [path for path, name in names.items() if not api.docstring(name)] == []
    pages = api.pages()
    assert {f"{name.page}.rst" for name in names.values()} <= {*pages}
    folded = Counter(page.casefold() for page in pages)
    assert max(folded.values()) == 1, folded.most_common(3)
    values = {id(name.value) for name in names.values()}
    for module in ("maxmargin", "maxmargin.structures", "maxmargin.tasks.tagging", "maxmargin.problem"):
        for name in set(sys.modules[module].__all__):
            value = getattr(sys.modules[module], name)
            assert isinstance(value, ModuleType | str) or id(value) in values, f"{module}.{name}"


def test_the_package_itself_lists_what_can_be_imported_from_it(site) -> None:
    named = {name for name in maxmargin.__all__ if not isinstance(getattr(maxmargin, name), ModuleType)}
    assert {f"maxmargin.{name}" for name in named - {"__version__"}} <= site[0].public().keys()


def commands_below(command: Any, words: str) -> list[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        return [(words, command)]
    return [pair for name, found in command.commands.items() for pair in commands_below(found, f"{words} {name}")]


def test_every_command_and_option_is_on_a_page(site) -> None:
    text = "".join(site[1].pages().values())
    sections = dict(re.findall(r"^\.\. program:: (.*)\n((?:(?!\.\. program::).*\n)*)", text, re.M))
    for words, command in commands_below(typer.main.get_command(app), "maxmargin"):
        assert f".. code-block:: none\n\n   {words}" in text
        for parameter in command.params:
            options = [name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("-")]
            for name in options or [parameter.name.upper()]:
                assert re.search(rf"^\.\. option:: (.*, )?{re.escape(name)}\b", sections[words], re.M), (
                    f"{words} {name}"
                )


def test_plain_text_of_help_is_kept(site) -> None:
    text = site[1]._text("Of --dev or *all* x_i: 2^BITS weights <= `C` of word-pos, - for none")
    assert text == r"Of ``--dev`` or \*all\* x\_i: 2^BITS weights \<= ``C`` of word-pos, - for none"

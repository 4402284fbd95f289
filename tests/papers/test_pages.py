"""Every page of ``docs/papers`` has a command that measures it; at small size the commands run, and print JSON.

The tables of a page have the headers that its command now writes: a block of an earlier command is stale.
"""

import json
import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(page.stem for page in (ROOT / "docs" / "papers").glob("*.md") if page.stem != "index")


def headers(markdown: str) -> list[list[str]]:
    """The header cells of every table; the first may be a caption, and its numbers, which depend on the size, are #."""
    rows = re.findall(r"^\| (.*) \|\n\| ---", markdown, re.MULTILINE)
    cells = [row.split(" | ") for row in rows]
    return [[re.sub(r"\d[\d.,]*", "#", first), *rest] for first, *rest in cells]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", PAGES)
def test_command_runs_at_small_size_and_measures_every_block_of_its_page(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = f"benchmarks.papers.{page}"
    monkeypatch.setattr(sys, "argv", [command, "--small", "--jobs", "1"])
    runpy.run_module(command, run_name="__main__")
    printed = json.loads(capsys.readouterr().out)
    assert printed["benchmark"] == page
    text = (ROOT / "docs" / "papers" / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(rf"<!-- figures\n{{{page}_(\w+)\.text}}\n-->\n(.*?)<!-- /figures -->", text, re.DOTALL)
    assert blocks
    assert all(measured.strip() for _, measured in blocks)
    assert printed["blocks"].keys() == {block for block, _ in blocks}
    for block, measured in blocks:
        found, wanted = headers(measured), headers(printed["blocks"][block])
        assert found == wanted, f"block {block} of {page}.md is stale: measure it again"
    monkeypatch.setattr(sys, "argv", [command, "--help"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_module(command, run_name="__main__")
    help_text = capsys.readouterr().out
    assert all(block in help_text for block, _ in blocks)
